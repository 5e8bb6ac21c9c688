//! `distinct`.

use frond_db::{Error, FindRequest};
use frond_doc::{DocumentBuilder, Value};

use crate::commands::find;
use crate::fields::Fields;
use crate::limits::DOCUMENT_BYTES_MAX;
use crate::request::{Answer, Request};

/// Runs a `distinct`.
pub fn run(request: &Request<'_>) -> Answer {
    let collection = request.collection()?;
    let mut distinct = read(request.fields()?)?;
    distinct.search.interrupt = request.operation.interrupt();
    let values = request.database()?.distinct(collection, distinct.path, &distinct.search)?;
    let mut answer = DocumentBuilder::new();
    answer.begin_array("values");
    for value in &values {
        answer.push(Value::from(value));
    }
    answer.end();
    if let Some(time) = request.read_time() {
        answer.append("atClusterTime", Value::Timestamp(time));
    }
    if answer.bytes() > DOCUMENT_BYTES_MAX {
        let code = frond_query::Code::Location(17217);
        return Err(Error::invalid(code, "distinct too big, 16mb cap"));
    }
    Ok(answer)
}

/// The parameters of a `distinct`, except for the collection's name.
pub struct Distinct<'a> {
    /// The path of the values that are wanted.
    pub path: &'a str,
    /// The search for the documents.
    pub search: FindRequest,
}

/// Reads the fields of a `distinct`, the collection's name apart.
///
/// # Errors
/// Wrong fields, by MongoDB's codes; unknown fields.
pub fn read(mut fields: Fields<'_>) -> Result<Distinct<'_>, Error> {
    let path = fields.required_string("key")?;
    if path.contains('\0') {
        let message = "Key field cannot contain an embedded null byte";
        return Err(Error::invalid(frond_query::Code::Location(31032), message));
    }
    let filter = fields.document("query")?;
    let hint = find::read_hint(&mut fields);
    let collation = fields.collation()?;
    fields.finish()?;
    let filter = filter.map(|filter| filter.to_buf());
    let search = FindRequest { filter, hint, collation, ..FindRequest::default() };
    Ok(Distinct { path, search })
}
