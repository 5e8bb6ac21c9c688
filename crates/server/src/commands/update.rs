//! `update`.

use frond_db::{Error, UpdateStatement};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::pipeline::check_stage_names;

use crate::commands::{find, reply, write};
use crate::fields::Fields;
use crate::request::{Answer, Request};
use crate::shared::Counter;
use crate::usage::DocumentEvent;

/// Runs an `update`.
pub fn run(request: &Request<'_>) -> Answer {
    let collection = request.writable_collection()?;
    let write::WriteCommand { statements, options } =
        write::read(request, "updates", read_statement)?;
    request.server.count(Counter::Update, statements.len() as u64);
    let durability = request.common.durability;
    let database = write::database(request, options.statements.clone())?;
    let report = database.update(collection, &statements, options.is_ordered, durability)?;
    let names = (&options.statements, &report.retried[..]);
    write::count_documents(request, DocumentEvent::Updated, &report.each, names);
    check_stages(&statements)?;
    let mut answer = DocumentBuilder::new();
    let upserted = report.upserted.len() as u64;
    answer.append("n", reply::number(report.matched + upserted));
    if upserted > 0 {
        answer.begin_array("upserted");
        for (position, id) in &report.upserted {
            answer
                .push_begin_document()
                .append("index", reply::number(*position as u64))
                .append("_id", Value::from(id))
                .end();
        }
        answer.end();
    }
    answer.append("nModified", reply::number(report.modified));
    write::append_write_errors(request, &mut answer, &report.errors);
    write::append_retried(&mut answer, &report.retried);
    Ok(answer)
}

/// Checks the names of all stages, of statements that weren't run too. MongoDB counts stages when
/// the statements have run: one that it doesn't know fails the command, and what was written stays.
///
/// # Errors
/// 40323, 40324.
fn check_stages(statements: &[UpdateStatement]) -> Result<(), Error> {
    for statement in statements {
        if let Value::Array(stages) = statement.update.as_value() {
            check_stage_names(stages)?;
        }
    }
    Ok(())
}

/// Reads one element of `updates`; `variables` are the command's `let`.
///
/// # Errors
/// Wrong fields, by MongoDB's codes; fields that exclude each other.
pub fn read_statement(
    document: Document<'_>,
    variables: &Option<DocumentBuf>,
) -> Result<UpdateStatement, Error> {
    let mut fields = Fields::of_part("update.updates", document)?;
    let filter = fields.required_document("q")?.to_buf();
    let update = fields.value("u").ok_or_else(|| fields.missing("u"))?;
    write::check_update(update)?;
    let statement = UpdateStatement {
        filter,
        update: update.to_buf(),
        upsert: fields.boolean("upsert")?,
        multi: fields.boolean("multi")?,
        array_filters: fields.array("arrayFilters")?.map(|array| Value::Array(array).to_buf()),
        sort: fields.document("sort")?.filter(|sort| !sort.is_empty()).map(|sort| sort.to_buf()),
        constants: fields.document("c")?.map(|constants| constants.to_buf()),
        variables: variables.clone(),
        collation: fields.collation()?,
        hint: find::read_hint(&mut fields),
    };
    fields.refuse("upsertSupplied")?;
    fields.finish()?;
    Ok(statement)
}
