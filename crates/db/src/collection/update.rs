//! `update`.

use frond_doc::{Array, Document, DocumentBuf, Value, ValueBuf};
use frond_engine::Durability;
use frond_query::expression::Variables;
use frond_query::update::UpdateContext;
use frond_query::{Code, Collation, Filter, Update};

use crate::collection::batch::{
    BATCH_COUNT_MAX, BatchOptions, BatchReport, StatementRun, Statements,
};
use crate::collection::new_document::{check_document, set_zero_timestamps};
use crate::collection::parse::{variables_in, with_metadata};
use crate::collection::parts::{change_in_parts, collation_of_collection, write_once};
use crate::collection::plan::Order;
use crate::collection::scan::{FetchedDocument, Row};
use crate::collection::stored_functions::prepare_scripts;
use crate::collection::write::{CollectionWriter, DocumentChange, MatchedRow};
use crate::collection::{UpdateReport, UpdateStatement};
use crate::database::Database;
use crate::error::{Error, ErrorKind};
use crate::retry::StatementDone;
use crate::timeseries::UpdateKind;

/// An update statement whose parts are parsed.
#[derive(Clone)]
struct ParsedStatement {
    filter: Filter,
    update: ParsedUpdate,
    order: Order,
    upsert: bool,
    multi: bool,
    hint: Option<ValueBuf>,
    /// Whether the collection's own collation has no say.
    has_collation: bool,
}

/// An update, and what it needs to know besides the document.
#[derive(Clone)]
pub struct ParsedUpdate {
    /// The update to make.
    pub update: Update,
    /// As it came.
    pub source: ValueBuf,
    array_filters: Option<ValueBuf>,
    /// The values that it is evaluated with.
    pub context: UpdateContext,
}

/// An updated document that is smaller isn't charged until it is written.
const MADE_BYTES_MIN: usize = 256 << 10;

/// The refusal of a statement that may change many documents in a write that may be sent again.
pub(crate) const MULTI_IS_NOT_RETRYABLE: &str =
    "Cannot use (or request) retryable writes with multi=true";

/// Updates by each of `statements`, in their order.
pub(crate) fn update(
    database: &Database,
    collection: &str,
    statements: &[UpdateStatement],
    ordered: bool,
    durability: Durability,
) -> Result<UpdateReport, Error> {
    // An error in a command's `let` concerns the command, not its first statement.
    if let Some(variables) = statements.first().and_then(|first| first.variables.as_ref()) {
        variables_in(database, Some(variables), database.interrupt())?;
    }
    let options = BatchOptions { ordered, durability };
    let prepare = |begun: usize| {
        let batch = statements[begun..].iter().take(BATCH_COUNT_MAX);
        batch.map(|statement| parse(database, statement)).collect()
    };
    let run = |writer: &mut CollectionWriter<'_>, statement: &ParsedStatement| {
        run_update(database, writer, statement)
    };
    let in_parts = |statement: &ParsedStatement| {
        update_in_parts(database, collection, statement, options.durability)
    };
    let count = statements.len();
    let report =
        Statements { database, collection, options }.run_on_many(count, prepare, run, in_parts)?;
    let BatchReport { count: matched, modified, upserted, errors, retried, each } = report;
    Ok(UpdateReport { matched, modified, upserted, errors, retried, each })
}

fn parse(database: &Database, statement: &UpdateStatement) -> Result<ParsedStatement, Error> {
    let variables = variables_in(database, statement.variables.as_ref(), database.interrupt())?;
    let collation = statement.collation.clone().unwrap_or_default();
    let variables = variables.with_collation(collation.clone());
    let constants = statement.constants.as_ref().map(DocumentBuf::view);
    let array_filters = statement.array_filters.as_ref();
    let update = parse_update(database, &statement.update, array_filters, &variables, constants)?;
    if statement.multi && database.retry().is_some() {
        return Err(Error::invalid(Code::InvalidOptions, MULTI_IS_NOT_RETRYABLE));
    }
    if statement.multi && statement.sort.is_some() {
        let message = "Cannot specify sort with multi=true";
        return Err(Error::invalid(Code::FailedToParse, message));
    }
    if statement.multi && update.update.is_replacement() {
        let message = "multi update is not supported for replacement-style update";
        return Err(Error::invalid(Code::FailedToParse, message));
    }
    let order = Order::parse_search(statement.sort.as_ref().map(DocumentBuf::view))?
        .with_collation(&collation);
    let filter = Filter::parse_search(statement.filter.view())?.with_variables(variables);
    prepare_scripts(database, &filter)?;
    filter.compute_constants()?;
    Ok(ParsedStatement {
        filter: with_metadata(filter, &order, None)?,
        update,
        order,
        upsert: statement.upsert,
        multi: statement.multi,
        hint: statement.hint.clone(),
        has_collation: statement.collation.is_some(),
    })
}

fn run_update(
    database: &Database,
    writer: &mut CollectionWriter<'_>,
    statement: &ParsedStatement,
) -> Result<StatementRun, Error> {
    let collated = statement.collated(writer.collation());
    let statement = collated.as_ref().unwrap_or(statement);
    if let Some(series) = writer.series() {
        let kind = UpdateKind { is_multi: statement.multi, is_upsert: statement.upsert };
        let update = statement.update.source.as_value();
        series.check_update(kind, &statement.filter, update)?;
    }
    let hint = statement.hint.as_ref();
    let (filter, order) = (&statement.filter, &statement.order);
    let matching: Vec<MatchedRow> = if statement.update.update.is_replacement() {
        writer.matching_or_damaged(filter, order, hint, Some(1))?
    } else if statement.multi {
        match writer.matching_few(filter, hint)? {
            Some(rows) => rows.into_iter().map(MatchedRow::Row).collect(),
            None => return Ok(StatementRun::Many),
        }
    } else {
        let rows = writer.matching_in_part(filter, order, hint, Some(1))?;
        rows.into_iter().map(MatchedRow::Row).collect()
    };
    let mut done = StatementDone { count: matching.len() as u64, ..StatementDone::default() };
    let bytes_before = writer.bytes();
    for matched in matching {
        let mut row = match matched {
            MatchedRow::Row(row) => row,
            MatchedRow::Damaged(id_key) => {
                writer.replace_damaged(&id_key, &statement.update)?;
                done.modified += 1;
                continue;
            }
        };
        if !filter.metadata().is_empty() {
            row.take_metadata();
        }
        done.modified += u64::from(statement.change(writer, row)?);
        if statement.multi && writer.is_full_since(bytes_before) {
            return Ok(StatementRun::Many);
        }
    }
    if done.count == 0 && statement.upsert {
        let document = upsert(database, writer, &statement.update, filter)?;
        done.upserted = document.get("_id").map(|id| id.to_buf());
    }
    Ok(StatementRun::Done(done))
}

fn update_in_parts(
    database: &Database,
    collection: &str,
    statement: &ParsedStatement,
    durability: Durability,
) -> Result<StatementDone, Error> {
    let collated = statement.collated(&collation_of_collection(database, collection)?);
    let statement = collated.as_ref().unwrap_or(statement);
    let search = (&statement.filter, statement.hint.as_ref());
    let mut done = change_in_parts(database, collection, search, durability, &|writer, row| {
        statement.change(writer, row)
    })?;
    // All documents that were found may have been changed meanwhile.
    if done.count == 0 && statement.upsert {
        let upserted = write_once(database, collection, durability, |writer| {
            upsert(database, writer, &statement.update, &statement.filter)
        })?;
        done.upserted = upserted.get("_id").map(|id| id.to_buf());
    }
    Ok(done)
}

/// Parses an update and notes what it needs to know.
///
/// # Errors
/// `TypeMismatch` (14) for filters that are no array; MongoDB's codes for an operator, stage or
/// path that can't be; `ExceededMemoryLimit` (146).
pub fn parse_update(
    database: &Database,
    update: &ValueBuf,
    array_filters: Option<&ValueBuf>,
    variables: &Variables,
    constants: Option<Document<'_>>,
) -> Result<ParsedUpdate, Error> {
    let array_filters = match array_filters.map(ValueBuf::as_value) {
        None | Some(Value::Null) => None,
        Some(Value::Array(filters)) => Some(filters),
        Some(_) => {
            let message = "arrayFilters must be an array";
            return Err(Error::invalid(Code::TypeMismatch, message));
        }
    };
    if let Value::Array(stages) = update.as_value() {
        variables.memory().hold_parsed(stages.as_bytes().len())?;
    }
    let source = match update.as_value() {
        Value::Document(update) if !update.iter().any(|(name, _)| name.starts_with('$')) => {
            ValueBuf::from(set_zero_timestamps(database, update.to_buf()))
        }
        _ => update.clone(),
    };
    let filters_source = array_filters.map(|filters| Value::Array(filters).to_buf());
    let mut update = Update::parse(source.as_value(), array_filters)?;
    update.bind(variables, constants)?;
    Ok(ParsedUpdate {
        update,
        source,
        array_filters: filters_source,
        context: update_context(database),
    })
}

/// Returns the values that updates need besides the document.
pub(crate) fn update_context(database: &Database) -> UpdateContext {
    UpdateContext {
        now_millis: database.frond().now_millis(),
        timestamp: database.frond().new_timestamp().0,
        position: None,
    }
}

/// Inserts the document that an upsert makes, and returns it.
pub(crate) fn upsert(
    database: &Database,
    writer: &mut CollectionWriter<'_>,
    update: &ParsedUpdate,
    filter: &Filter,
) -> Result<DocumentBuf, Error> {
    let mut new_id = || database.frond().new_object_id();
    let document = update.update.upsert(filter, &update.context, &mut new_id)?;
    check_document(database, document.view())?;
    writer.insert(&document)?;
    Ok(document)
}

impl ParsedStatement {
    /// Updates a document that was found, and returns whether it changed.
    fn change(&self, writer: &mut CollectionWriter<'_>, row: Row) -> Result<bool, Error> {
        if let Some(modified) = writer.update_large(&row, &self.update, &self.filter)? {
            return Ok(modified);
        }
        let id_key = row.id_key.clone();
        let found = match writer.whole(row) {
            Err(error)
                if error.kind == ErrorKind::Damaged && self.update.update.is_replacement() =>
            {
                return writer.replace_damaged(&id_key, &self.update).map(|()| true);
            }
            found => found?,
        };
        let Some(after) = self.update.apply(&self.filter, &found)? else { return Ok(false) };
        // A document that was sent is charged as a message; one made of a small update may have to
        // wait for memory to be written, too.
        let mut made = self.filter.memory().another(usize::MAX);
        if !self.update.update.is_replacement() && MADE_BYTES_MIN <= after.as_bytes().len() {
            made.hold(after.as_bytes().len()).map_err(|exceeded| {
                let message = format!("the updated document exceeded memory limit of {exceeded}");
                Error::invalid(Code::ExceededMemoryLimit, message)
            })?;
        }
        writer.replace(&found, &after, self.update.becoming()).map(|()| true)
    }

    /// The statement by the collection's own collation, if that changes anything.
    fn collated(&self, collation: &Collation) -> Option<ParsedStatement> {
        if self.has_collation || collation.is_simple() {
            return None;
        }
        let statement = self.clone();
        Some(ParsedStatement {
            filter: statement.filter.with_collation(collation),
            update: statement.update.with_collation(collation),
            order: statement.order.with_collation(collation),
            ..statement
        })
    }
}

impl ParsedUpdate {
    /// Compares strings by `collation`.
    pub fn with_collation(self, collation: &Collation) -> ParsedUpdate {
        ParsedUpdate { update: self.update.with_collation(collation), ..self }
    }

    /// Returns the kind of change to report to change streams.
    pub fn becoming(&self) -> DocumentChange {
        match self.update.is_replacement() {
            true => DocumentChange::Replaced,
            false => DocumentChange::Changed,
        }
    }

    /// Returns the array filters for `$[x]`, as they came.
    pub fn array_filters(&self) -> Option<Array<'_>> {
        self.array_filters.as_ref().and_then(|filters| filters.as_value().as_array())
    }

    /// Returns the values that the update needs besides the document; `position` returns the array
    /// position that the filter found, where that is wanted.
    ///
    /// # Errors
    /// The error of `position`.
    pub fn context_of(
        &self,
        position: impl FnOnce() -> Result<Option<usize>, Error>,
    ) -> Result<UpdateContext, Error> {
        let position = if self.update.needs_position() { position()? } else { None };
        Ok(UpdateContext { position, ..self.context })
    }

    /// The document that was found, changed; `None` if nothing changes.
    ///
    /// # Errors
    /// An operator that can't be applied to this document, by MongoDB's codes.
    pub fn apply(
        &self,
        filter: &Filter,
        found: &FetchedDocument,
    ) -> Result<Option<DocumentBuf>, Error> {
        let document = found.document.view();
        let context = self.context_of(|| Ok(filter.matches_position(document).1))?;
        Ok(self.update.apply(document, &context)?)
    }
}
