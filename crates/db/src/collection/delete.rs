//! `delete`.

use frond_doc::{DocumentBuf, ValueBuf};
use frond_engine::Durability;
use frond_query::Filter;

use crate::collection::insert::BATCH_COUNT_MAX;
use crate::collection::plan::Order;
use crate::collection::write::CollectionWriter;
use crate::collection::{DeleteStatement, WriteError, WriteReport};
use crate::contention::{Outcome, Role, Scope};
use crate::database::Database;
use crate::error::Error;
use crate::name;

/// A delete statement whose filter is parsed.
struct ParsedStatement {
    filter: Filter,
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
        let branch = self.writable_branch()?;
        name::check_collection(self.repository_name(), collection)?;
        if let Some(statement) = statements.first() {
            self.parse_variables(statement.variables.as_ref())?;
        }
        let mut report = WriteReport::default();
        for (number, batch) in statements.chunks(BATCH_COUNT_MAX).enumerate() {
            if ordered && !report.errors.is_empty() {
                break;
            }
            let first = number * BATCH_COUNT_MAX;
            let parse = |statement: &DeleteStatement| {
                Ok(ParsedStatement {
                    filter: self.parse_filter(
                        Some(statement.filter.view()),
                        statement.variables.as_ref().map(DocumentBuf::view),
                    )?,
                    limit: statement.only_first.then_some(1),
                    hint: statement.hint.clone(),
                })
            };
            let batch: Vec<Result<_, Error>> = batch.iter().map(parse).collect();
            let done = self.delete_batch(branch, collection, &batch, ordered, durability)?;
            report.count += done.count;
            report.errors.extend(
                done.errors.into_iter().map(|error| WriteError {
                    position: first + error.position,
                    error: error.error,
                }),
            );
        }
        Ok(report)
    }

    fn delete_batch(
        &self,
        branch: &str,
        collection: &str,
        batch: &[Result<ParsedStatement, Error>],
        ordered: bool,
        durability: Durability,
    ) -> Result<WriteReport, Error> {
        let scope = Scope::collection(self.repository_name(), branch, collection);
        self.frond().transact(scope, Role::Writer, durability, |transaction| {
            let mut writer = CollectionWriter::open(transaction, self, branch, collection)?;
            let mut report = WriteReport::default();
            for (position, statement) in batch.iter().enumerate() {
                let deleted = match statement {
                    Ok(statement) => run_statement(&mut writer, statement),
                    Err(error) => Err(error.clone()),
                };
                match deleted {
                    Ok(count) => report.count += count,
                    Err(error) => report.errors.push(WriteError::of_document(position, error)?),
                }
                if ordered && !report.errors.is_empty() {
                    break;
                }
            }
            Ok(Outcome::commit_if(writer.changed(), report))
        })
    }
}

fn run_statement(
    writer: &mut CollectionWriter<'_>,
    statement: &ParsedStatement,
) -> Result<u64, Error> {
    let hint = statement.hint.as_ref();
    let matching = writer.matching(&statement.filter, &Order::Any, hint, statement.limit)?;
    for found in &matching {
        writer.remove(found)?;
    }
    Ok(matching.len() as u64)
}
