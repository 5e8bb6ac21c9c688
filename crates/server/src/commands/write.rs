//! The common parts of the answers of insert, update and delete.

use std::collections::HashSet;

use frond_db::retry::StatementIds;
use frond_db::{Database, Error, StatementCounts, WriteError};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::Code;

use crate::errors::{append_details, append_error};
use crate::fields::Fields;
use crate::limits::WRITE_BATCH_MAX;
use crate::request::Request;
use crate::usage::DocumentEvent;

/// The options that all writes have.
pub struct WriteOptions {
    /// Whether to stop at the first error.
    pub is_ordered: bool,
    /// The ids of the statements, in case the client sends them again.
    pub statements: StatementIds,
}

/// The statements of a command that writes, and the options of all of them.
pub struct WriteCommand<S> {
    /// The statements in their order.
    pub statements: Vec<S>,
    /// The options: whether to stop at the first error, and how the statements are named.
    pub options: WriteOptions,
}

/// Reads an `update` or a `delete`, whose statements lie under `name`; `read` reads one, with the
/// command's `let`.
///
/// # Errors
/// Wrong fields of the command, or of the first statement that is wrong.
pub fn read<S>(
    request: &Request<'_>,
    name: &'static str,
    read: impl Fn(Document<'_>, &Option<DocumentBuf>) -> Result<S, Error>,
) -> Result<WriteCommand<S>, Error> {
    let mut fields = request.fields()?;
    let documents = request.documents(&mut fields, name)?;
    let options = read_options(&mut fields)?;
    check_statements(&options.statements, documents.len())?;
    let variables = fields.document("let")?.map(|variables| variables.to_buf());
    fields.finish()?;
    let statements = documents.iter().map(|document| read(document.view(), &variables));
    Ok(WriteCommand { statements: statements.collect::<Result<_, _>>()?, options })
}

/// Takes the fields that all writes have.
///
/// # Errors
/// `TypeMismatch` (14); `InvalidOptions` (72) if both `stmtId` and `stmtIds` are given.
pub fn read_options(fields: &mut Fields<'_>) -> Result<WriteOptions, Error> {
    let is_ordered = fields.optional_boolean("ordered")?.unwrap_or(true);
    // They are read by `database`.
    for name in ["bypassDocumentValidation", "bypassEmptyTsReplacement"] {
        fields.boolean(name)?;
    }
    let first = fields.integer("stmtId")?.map(statement_id);
    let statements = match (fields.array("stmtIds")?, first) {
        (Some(_), Some(_)) => {
            let message = "May not specify both stmtId and stmtIds in write command";
            return Err(Error::invalid(Code::InvalidOptions, message));
        }
        (Some(ids), None) => {
            let ids = ids.iter().take(WRITE_BATCH_MAX + 1);
            StatementIds::Listed(ids.filter_map(|id| id.as_integer().map(statement_id)).collect())
        }
        (None, first) => StatementIds::From(first.unwrap_or(0)),
    };
    Ok(WriteOptions { is_ordered, statements })
}

fn statement_id(id: i64) -> i32 {
    i32::try_from(id).expect("the tables of writes take integers of 32 bits")
}

/// Checks that each of `count` statements has a name of its own: otherwise one would count as done
/// when another was.
///
/// # Errors
/// `BadValue` (2) if they are not as many, or two are the same.
pub fn check_statements(statements: &StatementIds, count: usize) -> Result<(), Error> {
    match statements {
        StatementIds::From(first) => {
            let last = i32::try_from(count.saturating_sub(1)).ok();
            if last.and_then(|last| first.checked_add(last)).is_none() {
                let message = format!("stmtId {first} leaves no numbers for {count} operations");
                return Err(Error::invalid(Code::BadValue, message));
            }
        }
        StatementIds::Listed(ids) if ids.len() != count => {
            let message = format!(
                "Number of statement ids must match the number of batch entries. Got {} statement ids \
                 but {count} operations.",
                ids.len()
            );
            return Err(Error::invalid(Code::InvalidLength, message));
        }
        StatementIds::Listed(ids) => {
            let mut sorted = ids.clone();
            sorted.sort_unstable();
            if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                let message = format!("statement id {} is given twice in stmtIds", pair[0]);
                return Err(Error::invalid(Code::InvalidOptions, message));
            }
        }
    }
    Ok(())
}

/// Checks what of an update is wrong for the whole command, before anything is written: the stages
/// of a pipeline that are no documents.
///
/// # Errors
/// `TypeMismatch` (14).
pub fn check_update(update: Value<'_>) -> Result<(), Error> {
    let stages = update.as_array();
    if stages.is_some_and(|stages| stages.iter().any(|stage| stage.as_document().is_none())) {
        let message = "Each element of the 'pipeline' array must be an object";
        return Err(Error::invalid(Code::TypeMismatch, message));
    }
    Ok(())
}

/// Counts the documents that a write's statements were about, but for those that an earlier try of
/// the command had done.
pub fn count_documents(
    request: &Request<'_>,
    event: DocumentEvent,
    each: &[StatementCounts],
    (names, retried): (&StatementIds, &[i32]),
) {
    let retried: HashSet<i32> = retried.iter().copied().collect();
    let is_new =
        |done: &&StatementCounts| retried.is_empty() || !retried.contains(&names.at(done.position));
    let count = each.iter().filter(is_new).map(|done| done.count).sum();
    request.server.usage.work().count_documents(event, count);
}

/// Appends the names of the statements that were done before, if there are any.
pub fn append_retried(answer: &mut DocumentBuilder, retried: &[i32]) {
    if retried.is_empty() {
        return;
    }
    answer.begin_array("retriedStmtIds");
    for id in retried {
        answer.push(Value::Int32(*id));
    }
    answer.end();
}

/// The database to write to, with what a repetition of the command would have to know. The answer
/// of a command that writes there once, and does nothing after it, may be held until that is
/// durable.
///
/// # Errors
/// As [`Request::database_for_write`].
pub fn database(request: &Request<'_>, statements: StatementIds) -> Result<Database, Error> {
    let database = as_validated(request, request.database_for_write(statements)?);
    Ok(match request.current {
        Some(_) => database,
        None => request.commits.deferring(database),
    })
}

/// The same database, without its validators where `bypassDocumentValidation` says so, and with
/// empty timestamps as they are where `bypassEmptyTsReplacement` does.
pub fn as_validated(request: &Request<'_>, database: Database) -> Database {
    let is_set = |name| request.body.get(name).is_some_and(|value| value.is_truthy());
    let database = match is_set("bypassDocumentValidation") {
        true => database.without_validation(),
        false => database,
    };
    match is_set("bypassEmptyTsReplacement") {
        true => database.keeping_empty_timestamps(),
        false => database,
    }
}

/// Appends `writeErrors`, if there are any.
pub fn append_write_errors(
    request: &Request<'_>,
    answer: &mut DocumentBuilder,
    errors: &[WriteError],
) {
    if errors.is_empty() {
        return;
    }
    request.has_write_errors.set(true);
    answer.begin_array("writeErrors");
    for WriteError { position, error } in errors {
        answer.push_begin_document();
        answer.append("index", Value::Int32(i32::try_from(*position).unwrap_or(i32::MAX)));
        append_error(answer, error, "errmsg");
        append_details(answer, error);
        answer.end();
    }
    answer.end();
}
