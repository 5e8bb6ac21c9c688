//! `create`.

use frond_doc::DocumentBuilder;

use crate::request::{Answer, Request};

/// What MongoDB can do with a collection and Frond can't yet.
const REFUSED: &[&str] = &[
    "capped",
    "changeStreamPreAndPostImages",
    "clusteredIndex",
    "encryptedFields",
    "expireAfterSeconds",
    "indexOptionDefaults",
    "max",
    "pipeline",
    "size",
    "storageEngine",
    "temp",
    "timeseries",
    "validator",
    "viewOn",
];

/// Runs a `create`. No option that changes anything is supported, so none is handed on.
pub fn run(request: &Request<'_>) -> Answer {
    let collection = request.writable_collection()?;
    let mut fields = request.fields()?;
    fields.refuse_all(REFUSED)?;
    fields.simple_collation()?;
    // How a validator works, without one; `_id` is indexed always; the old flags mean nothing.
    fields.ignore(&["validationLevel", "validationAction", "autoIndexId", "flags", "idIndex"]);
    fields.finish()?;
    request.database()?.create_collection(collection, frond_doc::Document::empty())?;
    Ok(DocumentBuilder::new())
}
