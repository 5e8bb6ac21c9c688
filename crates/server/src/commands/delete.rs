//! `delete`.

use frond_db::{DeleteStatement, Error};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, order};
use frond_query::Code;

use crate::commands::{find, reply, write};
use crate::fields::Fields;
use crate::request::{Answer, Request};
use crate::shared::Counter;
use crate::tables;
use crate::usage::DocumentEvent;

/// Runs a `delete`.
pub fn run(request: &Request<'_>) -> Answer {
    let collection = request.writable_collection()?;
    let write::WriteCommand { statements, options } =
        write::read(request, "deletes", read_statement)?;
    request.server.count(Counter::Delete, statements.len() as u64);
    let durability = request.common.durability;
    let database = write::database(request, options.statements.clone())?;
    let report = database.delete(collection, &statements, options.is_ordered, durability)?;
    let names = (&options.statements, &report.retried[..]);
    write::count_documents(request, DocumentEvent::Deleted, &report.each, names);
    let mut answer = DocumentBuilder::new();
    answer.append("n", reply::number(report.count));
    write::append_write_errors(request, &mut answer, &report.errors);
    write::append_retried(&mut answer, &report.retried);
    Ok(answer)
}

/// Reads one element of `deletes`; `variables` are the command's `let`.
///
/// # Errors
/// Wrong fields, by MongoDB's codes; `FailedToParse` (9) for a limit above 1.
pub fn read_statement(
    document: Document<'_>,
    variables: &Option<DocumentBuf>,
) -> Result<DeleteStatement, Error> {
    let mut fields = Fields::of_part("delete.deletes", document)?;
    let filter = fields.required_document("q")?.to_buf();
    let only_first = read_limit(fields.value_or_null("limit"))?;
    let hint = find::read_hint(&mut fields);
    let collation = fields.collation()?;
    fields.finish()?;
    let variables = variables.clone();
    Ok(DeleteStatement { filter, only_first, hint, variables, collation })
}

/// Whether only the first is meant. A value that is no number means all, as in MongoDB.
fn read_limit(limit: Option<Value<'_>>) -> Result<bool, Error> {
    match limit.filter(|limit| limit.is_number()) {
        None => Ok(false),
        Some(limit) if order::equal(limit, Value::Int32(0)) => Ok(false),
        Some(limit) if order::equal(limit, Value::Int32(1)) => Ok(true),
        Some(limit) => {
            let number = match limit {
                Value::Double(number) => number.to_string(),
                other => tables::integer(other).unwrap_or(0).to_string(),
            };
            let message = format!("The limit field in delete objects must be 0 or 1. Got {number}");
            Err(Error::invalid(Code::FailedToParse, message))
        }
    }
}
