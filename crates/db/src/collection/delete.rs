//! `delete`.

use frond_doc::ValueBuf;
use frond_engine::Durability;
use frond_query::{Code, Collation, Filter};

use crate::collection::batch::{
    BATCH_COUNT_MAX, BatchOptions, BatchReport, StatementRun, Statements,
};
use crate::collection::parse::{parse_filter, variables_in};
use crate::collection::parts::{change_in_parts, collation_of_collection};
use crate::collection::plan::Order;
use crate::collection::stored_functions::prepare_scripts;
use crate::collection::update::MULTI_IS_NOT_RETRYABLE;
use crate::collection::write::{CollectionWriter, MatchedRow};
use crate::collection::{DeleteStatement, WriteReport};
use crate::database::Database;
use crate::error::{Error, ErrorKind};
use crate::retry::StatementDone;

/// A delete statement whose filter is parsed.
struct ParsedStatement {
    filter: Filter,
    /// Whether the collection's own collation has no say.
    has_collation: bool,
    only_first: bool,
    hint: Option<ValueBuf>,
}

/// Deletes by each of `statements`, in their order; one that deletes many documents does so in
/// several transactions.
pub(crate) fn delete(
    database: &Database,
    collection: &str,
    statements: &[DeleteStatement],
    ordered: bool,
    durability: Durability,
) -> Result<WriteReport, Error> {
    if let Some(statement) = statements.first() {
        variables_in(database, statement.variables.as_ref(), database.interrupt())?;
    }
    let options = BatchOptions { ordered, durability };
    let prepare = |begun: usize| {
        let batch = statements[begun..].iter().take(BATCH_COUNT_MAX);
        batch.map(|statement| parse_delete(database, statement)).collect()
    };
    let in_parts = |statement: &ParsedStatement| {
        let filter = statement.collated(&collation_of_collection(database, collection)?);
        let search = (&filter, statement.hint.as_ref());
        change_in_parts(database, collection, search, durability, &|writer, row| {
            remove(writer, MatchedRow::Row(row)).map(|()| true)
        })
    };
    let count = statements.len();
    let report = Statements { database, collection, options }
        .run_on_many(count, prepare, run_delete, in_parts)?;
    let BatchReport { count, errors, retried, each, .. } = report;
    Ok(WriteReport { count, errors, retried, each })
}

fn parse_delete(
    database: &Database,
    statement: &DeleteStatement,
) -> Result<ParsedStatement, Error> {
    if !statement.only_first && database.retry().is_some() {
        return Err(Error::invalid(Code::InvalidOptions, MULTI_IS_NOT_RETRYABLE));
    }
    let variables = variables_in(database, statement.variables.as_ref(), database.interrupt())?;
    let variables = variables.with_collation(statement.collation.clone().unwrap_or_default());
    let filter = parse_filter(Some(statement.filter.view()), &variables)?;
    prepare_scripts(database, &filter)?;
    filter.compute_constants()?;
    Ok(ParsedStatement {
        filter,
        has_collation: statement.collation.is_some(),
        only_first: statement.only_first,
        hint: statement.hint.clone(),
    })
}

impl ParsedStatement {
    /// The filter by the collection's own collation, unless another was asked for.
    fn collated(&self, collation: &Collation) -> Filter {
        let filter = self.filter.clone();
        if self.has_collation { filter } else { filter.with_collation(collation) }
    }
}

fn run_delete(
    writer: &mut CollectionWriter<'_>,
    statement: &ParsedStatement,
) -> Result<StatementRun, Error> {
    let hint = statement.hint.as_ref();
    let filter = statement.collated(writer.collation());
    let matching: Vec<MatchedRow> = match statement.only_first {
        true => writer.matching_or_damaged(&filter, &Order::Any, hint, Some(1))?,
        false => match writer.matching_few(&filter, hint) {
            Ok(Some(rows)) => rows.into_iter().map(MatchedRow::Row).collect(),
            Ok(None) => return Ok(StatementRun::Many),
            Err(error) if error.kind == ErrorKind::Damaged => {
                writer.matching_or_damaged(&filter, &Order::Any, hint, None)?
            }
            Err(error) => return Err(error),
        },
    };
    let done = StatementDone { count: matching.len() as u64, ..StatementDone::default() };
    let bytes_before = writer.bytes();
    for matched in matching {
        remove(writer, matched)?;
        if !statement.only_first && writer.is_full_since(bytes_before) {
            return Ok(StatementRun::Many);
        }
    }
    Ok(StatementRun::Done(done))
}

fn remove(writer: &mut CollectionWriter<'_>, matched: MatchedRow) -> Result<(), Error> {
    writer.give_back();
    writer.remove_matched(matched)
}
