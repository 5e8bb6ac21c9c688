//! `bulkWrite`: inserts, updates and deletes of any number of collections in one command.
//!
//! 1. All operations are read first: a wrong one refuses the command before anything is written.
//! 2. Neighbours of one kind on one collection run together, as the command of that kind would run
//!    them: that is one transaction of the engine, and one sync, instead of one each.
//! 3. No group waits for its sync: the command waits once, for all ([`Deferred`]), before any
//!    result is answered.
//! 4. Each operation is answered by its position, as a document of a cursor.

use std::sync::Arc;

use frond_db::request_profile;
use frond_db::retry::StatementIds;
use frond_db::{
    Database, Deferred, DeleteStatement, Error, StatementCounts, UpdateStatement, WriteError,
};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, ValueBuf};
use frond_query::{Code, text};

use crate::access::{Action, ActionSet};
use crate::authorization::{AuthorizationRequest, VersionScope};
use crate::commands::{find, reply, write};
use crate::errors::{append_details, append_error};
use crate::fields::Fields;
use crate::request::{
    Answer, Request, check_collection_name, check_writable, documents, split_namespace,
};
use crate::shared::Counter;
use crate::usage::DocumentEvent;

/// One operation, and the position of its collection in `nsInfo`.
struct Operation {
    namespace: usize,
    write: Write,
}

enum Write {
    Insert(DocumentBuf),
    Update(Box<UpdateStatement>),
    Delete(Box<DeleteStatement>),
}

/// The results of operations.
#[derive(Default)]
struct Outcome {
    inserted: u64,
    matched: u64,
    modified: u64,
    upserted: u64,
    deleted: u64,
    /// One an operation that was run, in their order.
    results: Vec<OperationResult>,
    retried: Vec<i32>,
}

struct OperationResult {
    position: usize,
    done: Result<Done, Error>,
}

struct Done {
    count: u64,
    /// The number of modified documents, which only updates have.
    modified: Option<u64>,
    upserted: Option<ValueBuf>,
}

/// Runs a `bulkWrite`.
pub fn run(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let operations = request.documents(&mut fields, "ops")?;
    let namespaces = request.documents(&mut fields, "nsInfo")?;
    let errors_only = fields.boolean("errorsOnly")?;
    let variables = fields.document("let")?.map(|variables| variables.to_buf());
    let size = reply::cursor_batch_size("bulkWrite.cursor", fields.document("cursor")?)?;
    let options = write::read_options(&mut fields)?;
    write::check_statements(&options.statements, operations.len())?;
    fields.finish()?;
    let namespaces = namespaces.iter().map(|namespace| read_namespace(namespace.view()));
    let namespaces = namespaces.collect::<Result<Vec<_>, _>>()?;
    let operations = operations
        .iter()
        .map(|operation| read_operation(operation.view(), namespaces.len(), &variables))
        .collect::<Result<Vec<_>, _>>()?;
    let command = Command { request, namespaces, options, deferred: Arc::default() };
    let outcome = command.run(&operations);
    // Also where an operation failed: the data it saw may not be durable yet.
    command.deferred.wait(&request.operation.interrupt())?;
    answer(request, outcome?, errors_only, size)
}

/// The facts that all operations share.
struct Command<'a> {
    request: &'a Request<'a>,
    namespaces: Vec<(String, String)>,
    options: write::WriteOptions,
    /// Their transactions, until they are awaited.
    deferred: Arc<Deferred>,
}

impl Command<'_> {
    fn run(&self, operations: &[Operation]) -> Result<Outcome, Error> {
        let mut outcome = Outcome::default();
        let mut begun = 0;
        for group in operations.chunk_by(|left, right| left.runs_with(right)) {
            let errors = self.run_group(begun, group, &mut outcome)?;
            if errors > 0 && self.options.is_ordered {
                break;
            }
            begun += group.len();
        }
        Ok(outcome)
    }

    /// Runs neighbours of one kind on one collection, beginning with the one at `begun`; returns
    /// how many failed.
    fn run_group(
        &self,
        begun: usize,
        group: &[Operation],
        outcome: &mut Outcome,
    ) -> Result<usize, Error> {
        let Command { request, namespaces, options, deferred } = self;
        let Some((database, collection)) =
            group.first().and_then(|it| namespaces.get(it.namespace))
        else {
            return Ok(0);
        };
        let statements = match &options.statements {
            StatementIds::From(first) => {
                let begun = i32::try_from(begun).unwrap_or(i32::MAX);
                StatementIds::From(first.saturating_add(begun))
            }
            StatementIds::Listed(ids) => {
                StatementIds::Listed(ids.get(begun..).unwrap_or_default().to_vec())
            }
        };
        request_profile::begin_group(begun);
        let done = open(request, database, collection, statements.clone()).and_then(|database| {
            let database = database.deferring(deferred);
            let names = &statements;
            group_in(request, (&database, collection), (group, names), options.is_ordered)
        });
        let (mut results, retried) = match done {
            Ok(done) => done,
            // A view or a version that can't be written: each operation fails by itself.
            Err(error) if error.is_of_statement() => {
                let failing = if options.is_ordered { 1 } else { group.len() };
                let failed = |position| OperationResult { position, done: Err(error.clone()) };
                ((0..failing).map(failed).collect(), Vec::new())
            }
            Err(error) => return Err(error),
        };
        results.sort_by_key(|result| result.position);
        let mut errors = 0;
        for result in &mut results {
            if let (Some(operation), Ok(done)) = (group.get(result.position), &result.done) {
                outcome.add(&operation.write, done);
            }
            errors += usize::from(result.done.is_err());
            result.position += begun;
        }
        outcome.results.append(&mut results);
        outcome.retried.extend(retried);
        Ok(errors)
    }
}

fn open(
    request: &Request<'_>,
    database: &str,
    collection: &str,
    statements: StatementIds,
) -> Result<Database, Error> {
    check_collection_name(database, collection)?;
    check_writable(database, collection)?;
    if request.current.is_some() && ["admin", "config", "local"].contains(&database) {
        let message =
            format!("Cannot run command against the '{database}' database in a transaction.");
        return Err(Error::invalid(Code::OperationNotSupportedInTransaction, message));
    }
    let database = request.database_named(database)?;
    Ok(write::as_validated(request, request.for_write(&database, statements)))
}

type Results = (Vec<OperationResult>, Vec<i32>);

/// Runs a group as the command of its kind; positions count from the group's first.
fn group_in(
    request: &Request<'_>,
    (database, collection): (&Database, &str),
    (group, names): (&[Operation], &StatementIds),
    ordered: bool,
) -> Result<Results, Error> {
    let durability = request.common.durability;
    let note = |event, each: &[StatementCounts], retried: &[i32]| {
        write::count_documents(request, event, each, (names, retried));
    };
    let count = group.len() as u64;
    match group.first().map(|operation| &operation.write) {
        None => Ok((Vec::new(), Vec::new())),
        Some(Write::Insert(_)) => {
            request.server.count(Counter::Insert, count);
            let documents: Vec<DocumentBuf> =
                group.iter().filter_map(|operation| operation.write.insert()).collect();
            let report = database.insert(collection, &documents, ordered, durability)?;
            note(DocumentEvent::Inserted, &report.each, &report.retried);
            Ok((results(&report.each, false, Vec::new(), report.errors), report.retried))
        }
        Some(Write::Update(_)) => {
            request.server.count(Counter::Update, count);
            let statements: Vec<UpdateStatement> =
                group.iter().filter_map(|operation| operation.write.update()).collect();
            let report = database.update(collection, &statements, ordered, durability)?;
            note(DocumentEvent::Updated, &report.each, &report.retried);
            Ok((results(&report.each, true, report.upserted, report.errors), report.retried))
        }
        Some(Write::Delete(_)) => {
            request.server.count(Counter::Delete, count);
            let statements: Vec<DeleteStatement> =
                group.iter().filter_map(|operation| operation.write.delete()).collect();
            let report = database.delete(collection, &statements, ordered, durability)?;
            note(DocumentEvent::Deleted, &report.each, &report.retried);
            Ok((results(&report.each, false, Vec::new(), report.errors), report.retried))
        }
    }
}

fn results(
    each: &[StatementCounts],
    shows_modified: bool,
    upserted: Vec<(usize, ValueBuf)>,
    errors: Vec<WriteError>,
) -> Vec<OperationResult> {
    let mut upserted = upserted.into_iter().peekable();
    let done = each.iter().map(|counts| {
        let id = upserted.next_if(|(position, _)| *position == counts.position);
        let done = Done {
            count: counts.count + u64::from(id.is_some()),
            modified: shows_modified.then_some(counts.modified),
            upserted: id.map(|(_, id)| id),
        };
        OperationResult { position: counts.position, done: Ok(done) }
    });
    let failed = errors
        .into_iter()
        .map(|WriteError { position, error }| OperationResult { position, done: Err(error) });
    done.chain(failed).collect()
}

fn answer(request: &Request<'_>, outcome: Outcome, errors_only: bool, size: Option<u64>) -> Answer {
    let errors = outcome.results.iter().filter(|result| result.done.is_err()).count() as u64;
    request.has_write_errors.set(errors > 0);
    let shown = outcome.results.iter().filter(|result| !errors_only || result.done.is_err());
    let documents: Vec<DocumentBuf> = shown.map(OperationResult::to_document).collect();
    let mut answer = reply::listing(request, request.namespace("$cmd.bulkWrite"), documents, size)?;
    for (name, count) in [
        ("nErrors", errors),
        ("nInserted", outcome.inserted),
        ("nMatched", outcome.matched),
        ("nModified", outcome.modified),
        ("nUpserted", outcome.upserted),
        ("nDeleted", outcome.deleted),
    ] {
        answer.append(name, reply::number(count));
    }
    write::append_retried(&mut answer, &outcome.retried);
    Ok(answer)
}

impl Outcome {
    fn add(&mut self, write: &Write, done: &Done) {
        match write {
            Write::Insert(_) => self.inserted += done.count,
            Write::Update(_) => {
                let upserted = u64::from(done.upserted.is_some());
                self.upserted += upserted;
                self.matched += done.count - upserted;
                self.modified += done.modified.unwrap_or(0);
            }
            Write::Delete(_) => self.deleted += done.count,
        }
    }
}

impl OperationResult {
    fn to_document(&self) -> DocumentBuf {
        let position = reply::number(self.position as u64);
        let mut document = DocumentBuilder::new();
        match &self.done {
            Ok(done) => {
                document.append("ok", Value::Double(1.0)).append("idx", position);
                document.append("n", reply::number(done.count));
                if let Some(modified) = done.modified {
                    document.append("nModified", reply::number(modified));
                }
                if let Some(id) = &done.upserted {
                    document.begin_document("upserted").append("_id", Value::from(id)).end();
                }
            }
            Err(error) => {
                document.append("ok", Value::Double(0.0)).append("idx", position);
                append_error(&mut document, error, "errmsg");
                append_details(&mut document, error);
                document.append("n", Value::Int32(0));
            }
        }
        document.build()
    }
}

impl Operation {
    fn runs_with(&self, next: &Operation) -> bool {
        self.namespace == next.namespace
            && std::mem::discriminant(&self.write) == std::mem::discriminant(&next.write)
    }
}

impl Write {
    fn insert(&self) -> Option<DocumentBuf> {
        if let Write::Insert(document) = self { Some(document.clone()) } else { None }
    }

    fn update(&self) -> Option<UpdateStatement> {
        if let Write::Update(statement) = self { Some((**statement).clone()) } else { None }
    }

    fn delete(&self) -> Option<DeleteStatement> {
        if let Write::Delete(statement) = self { Some((**statement).clone()) } else { None }
    }
}

/// Reads one element of `nsInfo`.
fn read_namespace(document: Document<'_>) -> Result<(String, String), Error> {
    let mut fields = Fields::of_part("bulkWrite.nsInfo", document)?;
    let namespace = fields.required_string("ns")?;
    fields.refuse_all(&["collectionUUID", "encryptionInformation", "isTimeseriesNamespace"])?;
    fields.finish()?;
    let (database, collection) = split_namespace(namespace)?;
    Ok((database.to_owned(), collection.to_owned()))
}

/// Reads one element of `ops`; `variables` are the command's `let`.
fn read_operation(
    document: Document<'_>,
    namespaces: usize,
    variables: &Option<DocumentBuf>,
) -> Result<Operation, Error> {
    let (kind, _) = document.iter().next().unwrap_or(("", Value::Null));
    let mut fields = Fields::of_part("bulkWrite.ops", document)?;
    let write = match kind {
        "insert" => Write::Insert(fields.required_document("document")?.to_buf()),
        "update" => Write::Update(Box::new(read_update(&mut fields, variables)?)),
        "delete" => Write::Delete(Box::new(read_delete(&mut fields, variables)?)),
        other => return Err(unknown_kind(other)),
    };
    let namespace = read_position(&mut fields, kind, document, namespaces)?;
    fields.finish()?;
    Ok(Operation { namespace, write })
}

/// Reads which of so many namespaces an operation is for.
fn read_position(
    fields: &mut Fields<'_>,
    kind: &str,
    document: Document<'_>,
    namespaces: usize,
) -> Result<usize, Error> {
    let namespace = fields.integer(kind)?.ok_or_else(|| fields.missing(kind))?;
    let position = usize::try_from(namespace).ok().filter(|position| *position < namespaces);
    position.ok_or_else(|| {
        let entry = text::value(Value::Document(document));
        let message = format!("BulkWrite ops entry {entry} has an invalid nsInfo index.");
        Error::invalid(Code::BadValue, message)
    })
}

/// Checks the rights that the command needs: for each operation, on the namespace that
/// [`read_operation`] finds.
///
/// # Errors
/// `Unauthorized` (13); what the command's own reading of operations and namespaces meets.
pub fn needs(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let mut fields = request.fields()?;
    let mut sent = |name| documents(request.name, request.sequences, &mut fields, name);
    let (operations, namespaces) = (sent("ops")?, sent("nsInfo")?);
    let namespaces = namespaces.iter().map(|namespace| read_namespace(namespace.view()));
    let namespaces = namespaces.collect::<Result<Vec<_>, _>>()?;
    let bypasses = fields.boolean("bypassDocumentValidation")?;
    let mut wanted = vec![ActionSet::default(); namespaces.len()];
    for operation in &operations {
        let operation = operation.view();
        let (kind, _) = operation.iter().next().unwrap_or(("", Value::Null));
        let mut fields = Fields::of_part("bulkWrite.ops", operation)?;
        let position = read_position(&mut fields, kind, operation, namespaces.len())?;
        let action = match kind {
            "insert" => Action::Insert,
            "update" => Action::Update,
            "delete" => Action::Remove,
            other => return Err(unknown_kind(other)),
        };
        let mut actions = vec![action];
        if fields.boolean("upsert")? {
            actions.push(Action::Insert);
        }
        if bypasses {
            actions.push(Action::BypassDocumentValidation);
        }
        wanted[position] = wanted[position].union(ActionSet::of(&actions));
    }
    for ((database, collection), actions) in namespaces.iter().zip(wanted) {
        let actions: Vec<Action> = actions.iter().collect();
        request.on(&actions, database, VersionScope::Open, Some(collection))?;
    }
    Ok(())
}

fn unknown_kind(kind: &str) -> Error {
    let message = format!("BSON field 'bulkWrite.ops.{kind}' is an unknown field.");
    Error::invalid(Code::Location(40415), message)
}

fn read_update(
    fields: &mut Fields<'_>,
    variables: &Option<DocumentBuf>,
) -> Result<UpdateStatement, Error> {
    let filter = fields.required_document("filter")?.to_buf();
    let update = fields.value("updateMods").ok_or_else(|| fields.missing("updateMods"))?;
    write::check_update(update)?;
    fields.refuse("upsertSupplied")?;
    Ok(UpdateStatement {
        filter,
        update: update.to_buf(),
        upsert: fields.boolean("upsert")?,
        multi: fields.boolean("multi")?,
        array_filters: fields.array("arrayFilters")?.map(|array| Value::Array(array).to_buf()),
        sort: fields.document("sort")?.filter(|sort| !sort.is_empty()).map(|sort| sort.to_buf()),
        constants: fields.document("constants")?.map(|constants| constants.to_buf()),
        variables: variables.clone(),
        collation: fields.collation()?,
        hint: find::read_hint(fields),
    })
}

fn read_delete(
    fields: &mut Fields<'_>,
    variables: &Option<DocumentBuf>,
) -> Result<DeleteStatement, Error> {
    Ok(DeleteStatement {
        filter: fields.required_document("filter")?.to_buf(),
        only_first: !fields.boolean("multi")?,
        hint: find::read_hint(fields),
        variables: variables.clone(),
        collation: fields.collation()?,
    })
}
