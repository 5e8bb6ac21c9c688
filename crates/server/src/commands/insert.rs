//! `insert`.

use frond_db::name;
use frond_doc::DocumentBuilder;

use crate::commands::{reply, write};
use crate::request::{Answer, Request};
use crate::shared::Counter;
use crate::usage::DocumentEvent;

/// Runs an `insert`.
pub fn run(request: &Request<'_>) -> Answer {
    let collection = match request.collection()? {
        // mongorestore inserts the buckets of a time series.
        buckets if name::of_buckets(buckets).is_some() => buckets,
        _ => request.writable_collection()?,
    };
    let mut fields = request.fields()?;
    let documents = request.documents(&mut fields, "documents")?;
    let options = write::read_options(&mut fields)?;
    write::check_statements(&options.statements, documents.len())?;
    fields.finish()?;
    request.server.count(Counter::Insert, documents.len() as u64);
    let database = write::database(request, options.statements.clone())?;
    let durability = request.common.durability;
    let report = database.insert(collection, &documents, options.is_ordered, durability)?;
    let names = (&options.statements, &report.retried[..]);
    write::count_documents(request, DocumentEvent::Inserted, &report.each, names);
    let mut answer = DocumentBuilder::new();
    answer.append("n", reply::number(report.count));
    write::append_write_errors(request, &mut answer, &report.errors);
    write::append_retried(&mut answer, &report.retried);
    Ok(answer)
}
