//! `distinct`.

use frond_db::Error;
use frond_doc::{Document, DocumentBuilder, Value};

use crate::fields::Fields;
use crate::limits::DOCUMENT_BYTES_MAX;
use crate::request::{Answer, Request};

/// Runs a `distinct`.
pub fn run(request: &Request<'_>) -> Answer {
    let collection = request.collection()?;
    let (path, filter) = read(request.fields()?)?;
    let values = request.database()?.distinct(collection, path, filter)?;
    let mut answer = DocumentBuilder::new();
    answer.begin_array("values");
    for value in &values {
        answer.push(Value::from(value));
    }
    answer.end();
    if answer.bytes() > DOCUMENT_BYTES_MAX {
        let code = frond_query::Code::Location(17217);
        return Err(Error::invalid(code, "distinct too big, 16mb cap"));
    }
    Ok(answer)
}

/// Reads the fields of a `distinct`, the collection's name apart: the path and the filter.
pub fn read(mut fields: Fields<'_>) -> Result<(&str, Option<Document<'_>>), Error> {
    let path = fields.required_string("key")?;
    let filter = fields.document("query")?;
    fields.simple_collation()?;
    fields.refuse("hint")?;
    fields.finish()?;
    Ok((path, filter))
}
