//! `distinct`.

use frond_db::Error;
use frond_doc::{DocumentBuilder, Value};

use crate::limits::DOCUMENT_BYTES_MAX;
use crate::request::{Answer, Request};

/// Runs a `distinct`.
pub fn run(request: &Request<'_>) -> Answer {
    let collection = request.collection()?;
    let mut fields = request.fields()?;
    let path = fields.required_string("key")?;
    let filter = fields.document("query")?;
    fields.simple_collation()?;
    fields.refuse("hint")?;
    fields.finish()?;
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
