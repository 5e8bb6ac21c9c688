//! `count`.

use frond_db::{Error, FindRequest};
use frond_doc::DocumentBuilder;

use crate::commands::{find, reply, sources};
use crate::fields::Fields;
use crate::request::{Answer, Request};

/// Runs a `count`.
pub fn run(request: &Request<'_>) -> Answer {
    let collection = request.collection()?;
    let interrupt = request.operation.interrupt();
    let search = FindRequest { interrupt, ..read(request.fields()?)? };
    let count = match sources::documents_of(request, Some(collection))? {
        Some(documents) => {
            let counted = sources::search_in(&documents, &search);
            let mut found = request.database()?.aggregate(None, &counted)?;
            found.try_fold(0, |count, found| found.map(|_| count + 1))?
        }
        None => request.database()?.count(collection, &search)?,
    };
    let mut answer = DocumentBuilder::new();
    answer.append("n", reply::number(count));
    Ok(answer)
}

/// Reads the fields of a `count`, the collection's name apart, as the search that it makes.
///
/// # Errors
/// Wrong fields, by MongoDB's codes; unknown fields.
pub fn read(mut fields: Fields<'_>) -> Result<FindRequest, Error> {
    let filter = fields.document("query")?;
    let skip = fields.count("skip")?.unwrap_or(0);
    // A negative limit means the same as a positive one, and 0 means none.
    let limit = fields.integer("limit")?.map(i64::unsigned_abs).filter(|limit| *limit > 0);
    let hint = find::read_hint(&mut fields);
    let collation = fields.collation()?;
    fields.ignore(&["fields"]);
    fields.finish()?;
    let filter = filter.map(|filter| filter.to_buf());
    Ok(FindRequest { filter, skip, limit, hint, collation, ..FindRequest::default() })
}
