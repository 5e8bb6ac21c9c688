//! `count`.

use frond_doc::{DocumentBuilder, ValueBuf};

use crate::commands::{find, reply};
use crate::request::{Answer, Request};

/// Runs a `count`.
pub fn run(request: &Request<'_>) -> Answer {
    let collection = request.collection()?;
    let mut fields = request.fields()?;
    let filter = fields.document("query")?;
    let skip = fields.count("skip")?.unwrap_or(0);
    // A negative limit means the same as a positive one, and 0 means none.
    let limit = fields.integer("limit")?.map(i64::unsigned_abs).filter(|limit| *limit > 0);
    let hint: Option<ValueBuf> = fields.value("hint").map(|hint| hint.to_buf());
    let hint = hint.filter(|hint| !find::is_empty_hint(hint));
    fields.simple_collation()?;
    fields.ignore(&["fields"]);
    fields.finish()?;
    let count = request.database()?.count(collection, filter, skip, limit, hint.as_ref())?;
    let mut answer = DocumentBuilder::new();
    answer.append("n", reply::number(count));
    Ok(answer)
}
