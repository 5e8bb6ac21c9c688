//! `insert`.
//!
//! Documents that are too large fail one by one, as MongoDB does it, so the others are inserted
//! around them.

use frond_db::{Database, Error, WriteError, WriteReport};
use frond_doc::{DocumentBuf, DocumentBuilder};

use crate::commands::{reply, write};
use crate::request::{Answer, Request, check_document_size};
use crate::shared::Counter;

/// Runs an `insert`.
pub fn run(request: &Request<'_>) -> Answer {
    let collection = request.writable_collection()?;
    let mut fields = request.fields()?;
    let documents = request.documents(&mut fields, "documents")?;
    let is_ordered = write::read_options(&mut fields)?;
    fields.finish()?;
    request.server.count(Counter::Insert, documents.len() as u64);
    let database = write::database(request)?;
    let report = insert(request, &database, collection, documents, is_ordered)?;
    let mut answer = DocumentBuilder::new();
    answer.append("n", reply::number(report.count));
    write::append_write_errors(&mut answer, &report.errors);
    Ok(answer)
}

fn insert(
    request: &Request<'_>,
    database: &Database,
    collection: &str,
    mut documents: Vec<DocumentBuf>,
    is_ordered: bool,
) -> Result<WriteReport, Error> {
    let durability = request.common.durability;
    let mut too_large = Vec::new();
    for (position, document) in documents.iter().enumerate() {
        if let Err(error) = check_document_size(document) {
            too_large.push(WriteError { position, error });
        }
    }
    if too_large.is_empty() {
        return database.insert(collection, &documents, is_ordered, durability);
    }
    if is_ordered {
        let first = too_large.swap_remove(0);
        documents.truncate(first.position);
        let mut report = database.insert(collection, &documents, true, durability)?;
        if report.errors.is_empty() {
            report.errors.push(first);
        }
        return Ok(report);
    }
    // The positions that errors name are those among all documents.
    let positions: Vec<usize> = (0..documents.len())
        .filter(|position| too_large.iter().all(|error| error.position != *position))
        .collect();
    let kept: Vec<DocumentBuf> =
        positions.iter().map(|position| documents[*position].clone()).collect();
    let mut report = database.insert(collection, &kept, false, durability)?;
    for error in &mut report.errors {
        error.position = positions[error.position];
    }
    report.errors.append(&mut too_large);
    report.errors.sort_by_key(|error| error.position);
    Ok(report)
}
