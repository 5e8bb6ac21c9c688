//! `create` and `collMod`.

use frond_db::Error;
use frond_doc::{DocumentBuilder, Value};

use crate::fields::Fields;
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
    "size",
    "storageEngine",
    "temp",
    "timeseries",
];

/// Runs a `create`.
pub fn run(request: &Request<'_>) -> Answer {
    let collection = request.writable_collection()?;
    let mut fields = request.fields()?;
    fields.refuse_all(REFUSED)?;
    let collation = fields.document("collation")?;
    let mut options = read_options(&mut fields)?;
    if let Some(collation) = collation {
        options.append("collation", Value::Document(collation));
    }
    let options = options.build();
    // `_id` is indexed always; the old flags mean nothing.
    fields.ignore(&["autoIndexId", "flags", "idIndex"]);
    fields.finish()?;
    request.database()?.create_collection(collection, options.view())?;
    Ok(DocumentBuilder::new())
}

/// Runs a `collMod`.
pub fn modify(request: &Request<'_>) -> Answer {
    let collection = request.writable_collection()?;
    let mut fields = request.fields()?;
    fields.refuse_all(&["cappedMax", "cappedSize", "dryRun", "expireAfterSeconds", "index"])?;
    fields.refuse("changeStreamPreAndPostImages")?;
    let options = read_options(&mut fields)?.build();
    fields.finish()?;
    request.database()?.change_collection(collection, options.view())?;
    Ok(DocumentBuilder::new())
}

/// Takes the options that a collection or a view keeps, as they came.
fn read_options(fields: &mut Fields<'_>) -> Result<DocumentBuilder, Error> {
    let mut options = DocumentBuilder::new();
    if let Some(validator) = fields.document("validator")? {
        options.append("validator", Value::Document(validator));
    }
    for name in ["validationLevel", "validationAction", "viewOn"] {
        if let Some(text) = fields.string(name)? {
            options.append(name, Value::String(text));
        }
    }
    if let Some(pipeline) = fields.array("pipeline")? {
        options.append("pipeline", Value::Array(pipeline));
    }
    Ok(options)
}
