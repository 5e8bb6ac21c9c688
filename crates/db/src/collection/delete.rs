//! `delete`.

use frond_doc::ValueBuf;
use frond_engine::Durability;
use frond_query::{Code, Filter};

use crate::collection::batch::{BATCH_COUNT_MAX, BatchOptions, BatchReport};
use crate::collection::plan::Order;
use crate::collection::update::MULTI_IS_NOT_RETRYABLE;
use crate::collection::write::CollectionWriter;
use crate::collection::{DeleteStatement, WriteReport};
use crate::database::Database;
use crate::error::Error;
use crate::retry::StatementDone;

/// A delete statement whose filter is parsed.
struct ParsedStatement {
    filter: Filter,
    /// Whether the collection's own collation has no say.
    has_collation: bool,
    limit: Option<usize>,
    hint: Option<ValueBuf>,
}

impl Database {
    /// Deletes by each of `statements`, in their order.
    ///
    /// # Errors
    /// What concerns the request as a whole; what concerns a statement is in the report.
    pub fn delete(
        &self,
        collection: &str,
        statements: &[DeleteStatement],
        ordered: bool,
        durability: Durability,
    ) -> Result<WriteReport, Error> {
        if let Some(statement) = statements.first() {
            self.parse_variables(statement.variables.as_ref())?;
        }
        let options = BatchOptions { ordered, durability };
        let prepare = |begun: usize| {
            let batch = statements[begun..].iter().take(BATCH_COUNT_MAX);
            batch.map(|statement| self.parse_delete(statement)).collect()
        };
        let report =
            self.run_statements(collection, options, statements.len(), prepare, run_delete)?;
        let BatchReport { count, errors, retried, each, .. } = report;
        Ok(WriteReport { count, errors, retried, each })
    }

    fn parse_delete(&self, statement: &DeleteStatement) -> Result<ParsedStatement, Error> {
        if !statement.only_first && self.retry().is_some() {
            return Err(Error::invalid(Code::InvalidOptions, MULTI_IS_NOT_RETRYABLE));
        }
        let variables = self.parse_variables(statement.variables.as_ref())?;
        let variables = variables.with_collation(statement.collation.clone().unwrap_or_default());
        Ok(ParsedStatement {
            filter: self.parse_filter(Some(statement.filter.view()), &variables)?,
            has_collation: statement.collation.is_some(),
            limit: statement.only_first.then_some(1),
            hint: statement.hint.clone(),
        })
    }
}

fn run_delete(
    writer: &mut CollectionWriter<'_>,
    statement: &ParsedStatement,
) -> Result<StatementDone, Error> {
    let hint = statement.hint.as_ref();
    let filter = match statement.has_collation {
        true => statement.filter.clone(),
        false => statement.filter.clone().with_collation(writer.collation()),
    };
    let matching = writer.matching(&filter, &Order::Any, hint, statement.limit)?;
    for found in &matching {
        writer.remove(found)?;
    }
    Ok(StatementDone { count: matching.len() as u64, ..StatementDone::default() })
}
