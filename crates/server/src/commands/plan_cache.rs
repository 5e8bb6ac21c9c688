//! Commands about cached plans: a plan is chosen anew each time, by the sizes of ranges of keys, so
//! there is nothing to clear and nothing to list.

use frond_doc::DocumentBuilder;

use crate::request::{Answer, Request};

/// Clears what there is not.
pub fn clear(request: &Request<'_>) -> Answer {
    request.collection()?;
    let mut fields = request.fields()?;
    for name in ["query", "sort", "projection", "collation"] {
        fields.document(name)?;
    }
    fields.finish()?;
    Ok(DocumentBuilder::new())
}

/// Lists no filters.
pub fn list_filters(request: &Request<'_>) -> Answer {
    request.collection()?;
    request.no_fields()?;
    let mut answer = DocumentBuilder::new();
    answer.begin_array("filters").end();
    Ok(answer)
}
