//! Explains a search that MongoDB 8.0 answers without its planner ([`express`]): as one stage
//! without inputs.
//!
//! *Surprise*: the key's pattern is shown as a string, as 8.0 does.

use frond_doc::Value;

use super::stage::Stage;
use super::{Done, details};
use crate::collection::express::{self, Express};
use crate::collection::plan::Access;
use crate::collection::{FindRequest, Purpose};
use crate::definition::IndexSpec;
use crate::request_profile::key_text;
use crate::schema::Collection;

/// The one stage of a search that goes so.
pub(super) fn stage(
    collection: &Collection,
    access: &Access,
    request: &FindRequest,
    purpose: Purpose,
    done: &[Done],
) -> Option<Stage> {
    let [done] = done else { return None };
    let id = IndexSpec::of_id();
    let (spec, keys) = match express::of(collection, access, request, purpose)? {
        Express::Id => (&id, done.documents),
        Express::Index(index) => (&index.spec, done.keys),
    };
    let pattern = key_text(spec.key.view());
    let mut fields =
        vec![("keyPattern", Value::String(&pattern)), ("indexName", Value::String(&spec.name))];
    if let Some(projection) = request.projection.as_ref().filter(|_| purpose == Purpose::Find) {
        fields.push(("projection", Value::from(projection)));
        fields.push(("projectionCovered", Value::Boolean(false)));
    }
    let stage = Stage::express("EXPRESS_IXSCAN", details(&fields), done.returned);
    Some(stage.counting("keysExamined", keys).counting("docsExamined", done.documents))
}
