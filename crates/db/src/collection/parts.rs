//! Updates and deletes of many documents: in parts, each a transaction of bounded size.
//!
//! MongoDB writes each document by itself and not all of them at once; so may we, where the
//! statement belongs to no transaction.
//!
//! 1. A statement is first run within the transaction of its command, as long as what it finds and
//!    writes is little: then it is done as a whole ([`CollectionWriter::matching_few`]).
//! 2. Else it is run here: what passes is looked for so that no document is found twice, however an
//!    update moves it in the index that is walked ([`Sweep`]).
//! 3. The documents found are written some at a time, each time in a new transaction, which checks
//!    whether a document that was changed meanwhile still passes. A part that conflicts is run
//!    again, as any transaction.
//! 4. A document that is refused (a unique index, a validator) ends the statement; what came before
//!    it stays, also when the statement is interrupted.

use frond_doc::ValueBuf;
use frond_engine::{Durability, Transaction};
use frond_query::{Collation, Filter};

use crate::catalog::Catalog;
use crate::collection::scan::{FoundRows, Row};
use crate::collection::sweep::Sweep;
use crate::collection::write::CollectionWriter;
use crate::contention::Scope;
use crate::database::Database;
use crate::error::Error;
use crate::retry::StatementDone;
use crate::schema::CatalogEpoch;
use crate::transact::Outcome;

/// The result of a part.
#[derive(Default)]
struct Part {
    done: StatementDone,
    /// The number of the documents found that were looked at.
    taken: usize,
    failed: Option<Error>,
}

/// Calls `change`, which returns whether it changed something, with each document that passes
/// `filter`.
///
/// # Errors
/// The first error; what was done before stays done.
pub(crate) fn change_in_parts(
    database: &Database,
    collection: &str,
    search: (&Filter, Option<&ValueBuf>),
    durability: Durability,
    change: &dyn Fn(&mut CollectionWriter<'_>, Row) -> Result<bool, Error>,
) -> Result<StatementDone, Error> {
    let mut done = StatementDone::default();
    let mut sweep = Sweep::begin(database, collection, search)?;
    let Some(filter) = sweep.passing_filter() else { return Ok(done) };
    loop {
        let mut found = FoundRows::default();
        while !found.is_full()
            && let Some(row) = sweep.next()?
        {
            found.push(row);
        }
        let mut rest = &found.rows[..];
        if rest.is_empty() {
            return Ok(done);
        }
        while !rest.is_empty() {
            let part = change_part(database, collection, rest, &filter, durability, change)?;
            done.count += part.done.count;
            done.modified += part.done.modified;
            if let Some(error) = part.failed {
                return Err(error);
            }
            rest = &rest[part.taken..];
        }
    }
}

/// Changes the first of `rows`, in one transaction.
fn change_part(
    database: &Database,
    collection: &str,
    rows: &[Row],
    filter: &Filter,
    durability: Durability,
    change: &dyn Fn(&mut CollectionWriter<'_>, Row) -> Result<bool, Error>,
) -> Result<Part, Error> {
    write_once(database, collection, durability, |writer| {
        let mut part = Part::default();
        for row in rows {
            database.interrupt().check()?;
            part.taken += 1;
            let Some(row) = writer.current(row, filter)? else { continue };
            match change(writer, row) {
                Ok(modified) => {
                    part.done.count += 1;
                    part.done.modified += u64::from(modified);
                }
                Err(error) if error.is_of_statement() => {
                    part.failed = Some(error);
                    break;
                }
                Err(error) => return Err(error),
            }
            if writer.is_full_since(0) {
                break;
            }
        }
        Ok(part)
    })
}

/// Writes to a collection in one transaction, which is run again while it conflicts.
pub(crate) fn write_once<T>(
    database: &Database,
    collection: &str,
    durability: Durability,
    write: impl Fn(&mut CollectionWriter<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    // The next part is looked for among what is visible.
    let database = &database.awaiting();
    let branch = database.writable_branch()?;
    let scope = Scope::collection(database.repository_name(), branch, collection);
    let body = |transaction: &mut Transaction, moment: Option<CatalogEpoch>| {
        let mut writer =
            CollectionWriter::open_at(moment, transaction, database, branch, collection)?;
        let answer = write(&mut writer)?;
        Ok(Outcome::commit_if(writer.changed(), answer))
    };
    database.transact_noted(scope, durability, None, body)
}

/// Returns how strings compare in a collection where a statement doesn't say.
pub(crate) fn collation_of_collection(
    database: &Database,
    collection: &str,
) -> Result<Collation, Error> {
    let found = Catalog::of(&database.reader(), database).collection(collection)?;
    found.map_or(Ok(Collation::SIMPLE), |found| found.collation())
}
