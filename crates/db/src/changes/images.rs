//! The documents that an event has beside what changed: as it was before, after, and is now.

use frond_doc::{Document, DocumentBuf, Value};
use frond_query::Code;
use frond_query::collation::Collation;

use super::request::{FullDocument, Image};
use super::{ChangeStream, document};
use crate::collection::FindRequest;
use crate::database::{Context, Database};
use crate::error::Error;
use crate::event::{Event, EventKind, difference};
use crate::name::{DatabaseName, VersionName};
use crate::tail::record::Record;

/// The document before an event and after it; outermost `None`: it isn't asked for.
pub(super) type Images = (Option<Option<DocumentBuf>>, Option<Option<DocumentBuf>>);

impl ChangeStream {
    /// Returns the document of an event as it was before, and that of an update as it is: each if
    /// it is wanted, `None` if it isn't there.
    pub(super) fn images(&self, record: &Record, event: &Event) -> Result<Images, Error> {
        let is_update = event.kind == EventKind::Update;
        let is_change = is_update || matches!(event.kind, EventKind::Replace | EventKind::Delete);
        let needs_before = is_change && self.before_change != Image::Off;
        let is_made = is_update
            && matches!(self.full_document, FullDocument::WhenAvailable | FullDocument::Required);
        let is_needed = needs_before || is_made;
        let before = match is_needed && !self.frond.has_expired_image(record.sequence)? {
            true => record.document(&**self.frond.engine().store(), &event.before)?,
            false => None,
        };
        if needs_before && before.is_none() && self.before_change == Image::Required {
            return Err(no_image("pre", "update, delete and replace", record, event));
        }
        let after = match self.full_document {
            FullDocument::UpdateLookup if is_update => Some(self.look_up(event)?),
            _ if is_made => Some(before.as_ref().and_then(|before| made_of(before, event))),
            _ => None,
        };
        if is_made && matches!(after, Some(None)) && self.full_document == FullDocument::Required {
            return Err(no_image("post", "update", record, event));
        }
        Ok((needs_before.then_some(before), after))
    }

    /// The document of an event as it is now.
    fn look_up(&self, event: &Event) -> Result<Option<DocumentBuf>, Error> {
        let name = DatabaseName {
            name: event.scope.database.clone(),
            version: VersionName::Named(event.scope.branch.clone()),
        };
        let database = match Database::resolve(&self.frond, name, Context::Alone) {
            Ok(database) => database,
            // The branch is gone by now.
            Err(error) if error.code == Code::NamespaceNotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(Value::Document(key)) = event.facts.get("key") else { return Ok(None) };
        let request = FindRequest {
            filter: Some(by_id(key)),
            limit: Some(1),
            collation: Some(Collation::SIMPLE),
            ..FindRequest::default()
        };
        match database.find(&event.scope.collection, &request) {
            // It is a view by now.
            Err(error) if error.code == Code::CommandNotSupportedOnView => Ok(None),
            found => found?.next().transpose(),
        }
    }
}

/// Returns the document that an update made.
fn made_of(before: &DocumentBuf, event: &Event) -> Option<DocumentBuf> {
    let description = event.facts.get("description")?.as_document()?;
    difference::applied(before.view(), description)
}

fn no_image(which: &str, of: &str, record: &Record, event: &Event) -> Error {
    let scope = &event.scope;
    let message = format!(
        "Change stream was configured to require a {which}-image for all {of} events, but the \
         {which}-image was not found for event: {{operationType: \"{}\", ns: {{db: \"{}\", coll: \
         \"{}\"}}, clusterTime: Timestamp({}, {})}}",
        document::name(event.kind),
        scope.database,
        scope.collection,
        record.sequence.0 >> 32,
        record.sequence.0 as u32,
    );
    Error::invalid(Code::NoMatchingDocument, message)
}

/// A filter that finds the document of an `_id`, whatever that is.
fn by_id(key: Document<'_>) -> DocumentBuf {
    let mut filter = frond_doc::DocumentBuilder::new();
    filter.begin_document("_id");
    filter.append("$eq", key.get("_id").unwrap_or(Value::Null)).end();
    filter.build()
}
