//! What the answers of insert, update and delete have in common.

use frond_db::{Database, Error, WriteError};
use frond_doc::{DocumentBuilder, Value};

use crate::dispatch::{append_details, append_error};
use crate::fields::Fields;
use crate::request::Request;

/// Takes the fields that all three writes have; tells whether to stop at the first error.
pub fn read_options(fields: &mut Fields<'_>) -> Result<bool, Error> {
    let is_ordered = fields.optional_boolean("ordered")?.unwrap_or(true);
    // The first of them is read by `database`.
    fields.ignore(&["bypassDocumentValidation", "bypassEmptyTsReplacement", "maxTimeMS"]);
    Ok(is_ordered)
}

/// The database to write to: one that asks no validators where `bypassDocumentValidation` says so.
pub fn database(request: &Request<'_>) -> Result<Database, Error> {
    let database = request.database()?;
    let bypasses = request.body.get("bypassDocumentValidation");
    Ok(match bypasses.is_some_and(|bypasses| bypasses.is_truthy()) {
        true => database.without_validation(),
        false => database,
    })
}

/// Appends `writeErrors`, if there are any.
pub fn append_write_errors(answer: &mut DocumentBuilder, errors: &[WriteError]) {
    if errors.is_empty() {
        return;
    }
    answer.begin_array("writeErrors");
    for WriteError { position, error } in errors {
        answer.push_begin_document();
        answer.append("index", Value::Int32(i32::try_from(*position).unwrap_or(i32::MAX)));
        append_error(answer, error, "errmsg");
        append_details(answer, error);
        answer.end();
    }
    answer.end();
}
