//! `findAndModify`.

use frond_db::{Error, FindAndModify};
use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_query::Code;

use crate::commands::write::WriteOptions;
use crate::commands::{find, reply, write};
use crate::fields::Fields;
use crate::request::{Answer, Request};
use crate::usage::DocumentEvent;

/// Runs a `findAndModify`.
pub fn run(request: &Request<'_>) -> Answer {
    let collection = request.writable_collection()?;
    let (command, options) = read(request.fields()?)?;
    let durability = request.common.durability;
    // There is one statement, which needs no name.
    let database = write::database(request, options.statements)?;
    let report = database.find_and_modify(collection, &command, durability)?;
    if !report.retried {
        // An upsert is no update: nothing was found.
        let (event, count) = match (&command.update, &report.upserted) {
            (None, _) => (DocumentEvent::Deleted, report.count),
            (Some(_), Some(_)) => (DocumentEvent::Updated, 0),
            (Some(_), None) => (DocumentEvent::Updated, report.count),
        };
        request.server.usage.work().count_documents(event, count);
    }
    let mut answer = DocumentBuilder::new();
    answer.begin_document("lastErrorObject").append("n", reply::number(report.count));
    if command.update.is_some() {
        answer.append("updatedExisting", Value::Boolean(report.updated_existing));
        if let Some(id) = &report.upserted {
            answer.append("upserted", Value::from(id));
        }
    }
    answer.end();
    answer.append("value", report.value.as_ref().map_or(Value::Null, Value::from));
    if report.retried {
        write::append_retried(&mut answer, &[0]);
    }
    Ok(answer)
}

/// Reads the fields of a `findAndModify`, the collection's name apart.
///
/// # Errors
/// Wrong fields, by MongoDB's codes; fields that exclude each other.
pub fn read(mut fields: Fields<'_>) -> Result<(FindAndModify, WriteOptions), Error> {
    let filter = fields.document("query")?;
    let removes = fields.boolean("remove")?;
    let command = FindAndModify {
        filter: filter.map_or_else(DocumentBuf::empty, |filter| filter.to_buf()),
        sort: fields.document("sort")?.filter(|sort| !sort.is_empty()).map(|sort| sort.to_buf()),
        update: fields.value("update").map(|update| update.to_buf()),
        upsert: fields.boolean("upsert")?,
        return_new: fields.boolean("new")?,
        projection: fields.document("fields")?.map(|projection| projection.to_buf()),
        array_filters: fields.array("arrayFilters")?.map(|array| Value::Array(array).to_buf()),
        hint: find::read_hint(&mut fields),
        variables: fields.document("let")?.map(|variables| variables.to_buf()),
        collation: fields.collation()?,
    };
    let options = write::read_options(&mut fields)?;
    fields.finish()?;
    check(&command, removes)?;
    Ok((command, options))
}

fn check(command: &FindAndModify, removes: bool) -> Result<(), Error> {
    let message = match (&command.update, removes) {
        (Some(_), true) => "Cannot specify both an update and remove=true",
        (None, false) => "Either an update or remove=true must be specified",
        (_, true) if command.upsert => "Cannot specify both upsert=true and remove=true",
        (_, true) if command.array_filters.is_some() => {
            "Cannot specify arrayFilters and remove=true"
        }
        (_, true) if command.return_new => {
            "Cannot specify both new=true and remove=true; 'remove' always returns the deleted \
             document"
        }
        _ => return Ok(()),
    };
    Err(Error::invalid(Code::FailedToParse, message))
}
