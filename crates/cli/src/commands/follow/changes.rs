//! Changes of documents, taken over together in one transaction with the record.
//!
//! 1. The changes of one document are put together: a document that was changed a hundred times is
//!    read once and written once. Deletions go first, so that values of unique indexes are free.
//! 2. Where documents exchanged unique values, that is undone, and all of them are removed before
//!    any is written: a merge's changes, say, have no order in which each could be written alone.
//! 3. Both expect of each document that it is as the source had it. Where one isn't, all is undone
//!    and taken over change by change, as it happened; what isn't there then is counted as unlike
//!    the source ([`Record::unlike`]).

use std::collections::HashMap;

use frond_doc::{DocumentBuf, Value, ValueBuf, key};

use crate::commands::follow::description;
use crate::commands::follow::event::Change;
use crate::commands::follow::record::Record;
use crate::commands::follow::target::{Target, WriteError, Writes, upserted};
use crate::commands::import::writer::{removal, replacement};
use crate::failure::Failure;
use crate::output::count_of;

/// The bytes that one command writes at most, unless one document is larger.
const COMMAND_BYTES: usize = 12 << 20;
/// Documents that are read together at first, and at most.
const READ_FIRST: usize = 16;
const READ_MAX: usize = 1_000;

const INSERT: (&str, &str) = ("insert", "documents");
const UPDATE: (&str, &str) = ("update", "updates");
const DELETE: (&str, &str) = ("delete", "deletes");

/// Changes that are taken over together, in their order.
#[derive(Default)]
pub struct Changes {
    all: Vec<Changed>,
    /// Their size.
    pub bytes: usize,
}

/// One change.
struct Changed {
    collection: String,
    id: ValueBuf,
    change: Change,
}

/// The outcome of the changes to one document.
struct Outcome<'c> {
    id: &'c ValueBuf,
    /// Whether it was there before.
    was_there: bool,
    /// Its content as far as no description is left, or `None` where it is gone.
    content: Option<DocumentBuf>,
    /// Whether that content is known; else it is what is stored.
    is_known: bool,
    /// The updates to apply to it.
    descriptions: Vec<&'c DocumentBuf>,
}

impl Changes {
    /// Adds one.
    pub fn push(&mut self, collection: &str, id: ValueBuf, change: Change, bytes: usize) {
        self.bytes += bytes;
        self.all.push(Changed { collection: collection.to_owned(), id, change });
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Takes all over; `record` then is what is stored: as `after`, which may be unlike in more.
    ///
    /// # Errors
    /// As of the target; [`Failure::Failed`] if the copy can't take what the source has.
    pub fn take_over(
        &self,
        target: &mut Target<'_>,
        record: &mut Record,
        mut after: Record,
    ) -> Result<(), Failure> {
        for write in [Changes::write_outcomes, Changes::write_anew] {
            let written = target.transact(|writes| {
                write(self, writes)?;
                Ok(writes.record(record, &after)?)
            });
            match written {
                Err(WriteError::Refused(_)) => {}
                written => {
                    written?;
                    *record = after;
                    return Ok(());
                }
            }
        }
        after = self.take_over_each(target, record, &after)?;
        *record = after;
        Ok(())
    }

    /// Takes over change by change; returns the record as it is stored then.
    fn take_over_each(
        &self,
        target: &mut Target<'_>,
        record: &Record,
        after: &Record,
    ) -> Result<Record, Failure> {
        let written = target.transact(|writes| {
            let mut after = after.clone();
            self.write_each(writes, &mut after)?;
            Ok(writes.record(record, &after)?)
        });
        written.map_err(|error| match error {
            WriteError::Refused(message) => {
                Failure::failed(format!("the copy can't hold what the source has: {message}"))
            }
            WriteError::Failed(failure) => failure,
        })?;
        target.record()?.ok_or_else(|| Failure::failed("the copy's record is gone"))
    }

    fn write_outcomes(&self, writes: &mut Writes<'_, '_>) -> Result<(), WriteError> {
        for (collection, mut outcomes) in self.outcomes() {
            let gone = outcomes.iter().filter(|outcome| outcome.was_there && outcome.is_gone());
            let removals: Vec<DocumentBuf> =
                gone.map(|outcome| removal(outcome.id.as_value())).collect();
            write(writes, DELETE, collection, removals)?;
            outcomes.retain(|outcome| !outcome.is_gone());
            let outcomes: Vec<&Outcome<'_>> = outcomes.iter().collect();
            let mut rest = &outcomes[..];
            let mut count = READ_FIRST;
            while !rest.is_empty() {
                let (some, others) = rest.split_at(count.min(rest.len()));
                let bytes = write_some(writes, collection, some)?;
                count = (COMMAND_BYTES * some.len() / bytes.max(1)).clamp(1, READ_MAX);
                rest = others;
            }
        }
        Ok(())
    }

    /// Removes all documents, and inserts what they become.
    fn write_anew(&self, writes: &mut Writes<'_, '_>) -> Result<(), WriteError> {
        for (collection, outcomes) in self.outcomes() {
            let (left, gone): (Vec<_>, Vec<_>) =
                outcomes.iter().partition(|outcome| !outcome.is_gone());
            let mut documents = Vec::new();
            for some in left.chunks(READ_FIRST) {
                documents.extend(finished(writes, collection, some)?);
            }
            let old = left.iter().chain(&gone).filter(|outcome| outcome.was_there);
            let removals = old.map(|outcome| removal(outcome.id.as_value())).collect();
            write(writes, DELETE, collection, removals)?;
            write(writes, INSERT, collection, documents)?;
        }
        Ok(())
    }

    /// Returns the outcome for each document, by collections, in the order in which they were
    /// changed first.
    fn outcomes(&self) -> Vec<(&str, Vec<Outcome<'_>>)> {
        let mut found: Vec<(&str, Vec<Outcome<'_>>)> = Vec::new();
        let mut places: HashMap<(&str, Vec<u8>), (usize, usize)> = HashMap::new();
        for Changed { collection, id, change } in &self.all {
            let of = found.iter().position(|(name, _)| name == collection);
            let of = of.unwrap_or_else(|| {
                found.push((collection, Vec::new()));
                found.len() - 1
            });
            let place = (collection.as_str(), key_of(id.as_value()));
            let (of, position) = *places.entry(place).or_insert_with(|| {
                found[of].1.push(Outcome::new(id, change));
                (of, found[of].1.len() - 1)
            });
            found[of].1[position].apply(change);
        }
        found
    }

    /// Takes over change by change.
    fn write_each(
        &self,
        writes: &mut Writes<'_, '_>,
        after: &mut Record,
    ) -> Result<(), WriteError> {
        for Changed { collection, id, change } in &self.all {
            let (command, statement) = match change {
                Change::Insert(document) | Change::Replace(document) => {
                    (UPDATE, replacement(document, id.as_value()))
                }
                Change::Delete => (DELETE, removal(id.as_value())),
                Change::Update(described) => {
                    let stored = writes.documents(collection, &[id])?;
                    let new =
                        stored.first().and_then(|it| description::apply(it, described.view()));
                    let Some(new) = new else {
                        after.unlike += 1;
                        continue;
                    };
                    (UPDATE, replacement(&new, id.as_value()))
                }
            };
            let answer = writes.write(command, collection, vec![statement])?;
            let is_like = match change {
                Change::Insert(_) => upserted(&answer) == 1,
                Change::Replace(_) | Change::Update(_) => upserted(&answer) == 0,
                Change::Delete => count_of(answer.view(), "n") == 1,
            };
            after.unlike += i64::from(!is_like);
        }
        Ok(())
    }
}

impl<'c> Outcome<'c> {
    fn new(id: &'c ValueBuf, first: &Change) -> Outcome<'c> {
        let was_there = !matches!(first, Change::Insert(_));
        Outcome { id, was_there, content: None, is_known: false, descriptions: Vec::new() }
    }

    fn apply(&mut self, change: &'c Change) {
        let content = match change {
            Change::Update(description) => return self.descriptions.push(description),
            Change::Insert(document) | Change::Replace(document) => Some(document.clone()),
            Change::Delete => None,
        };
        (self.content, self.is_known) = (content, true);
        self.descriptions.clear();
    }

    fn is_gone(&self) -> bool {
        self.is_known && self.content.is_none()
    }

    /// The document as it becomes; `None` if a description doesn't fit.
    fn finish(&self, stored: Option<&DocumentBuf>) -> Option<DocumentBuf> {
        let mut document = if self.is_known { self.content.clone() } else { stored.cloned() }?;
        for description in &self.descriptions {
            document = description::apply(&document, description.view())?;
        }
        Some(document)
    }
}

/// Writes documents as they become; returns how large they were.
fn write_some(
    writes: &mut Writes<'_, '_>,
    collection: &str,
    outcomes: &[&Outcome<'_>],
) -> Result<usize, WriteError> {
    let documents = finished(writes, collection, outcomes)?;
    let bytes = documents.iter().map(|document| document.as_bytes().len()).sum();
    let (mut new, mut changed) = (Vec::new(), Vec::new());
    for (outcome, document) in outcomes.iter().zip(documents) {
        match outcome.was_there {
            true => changed.push(replacement(&document, outcome.id.as_value())),
            false => new.push(document),
        }
    }
    for (command, statements) in [(UPDATE, changed), (INSERT, new)] {
        write(writes, command, collection, statements)?;
    }
    Ok(bytes)
}

/// The documents, none of which is gone, as they become.
fn finished(
    writes: &mut Writes<'_, '_>,
    collection: &str,
    outcomes: &[&Outcome<'_>],
) -> Result<Vec<DocumentBuf>, WriteError> {
    let unknown_ids: Vec<&ValueBuf> =
        outcomes.iter().filter(|outcome| !outcome.is_known).map(|outcome| outcome.id).collect();
    let mut stored = HashMap::new();
    if !unknown_ids.is_empty() {
        for document in writes.documents(collection, &unknown_ids)? {
            let id = document.get("_id").map(key_of);
            stored.extend(id.map(|id| (id, document)));
        }
    }
    let finish = |outcome: &&Outcome<'_>| {
        outcome.finish(stored.get(&key_of(outcome.id.as_value()))).ok_or_else(unlike)
    };
    outcomes.iter().map(finish).collect()
}

/// Writes statements, as many commands as they need; each must meet what it expects.
fn write(
    writes: &mut Writes<'_, '_>,
    command: (&str, &str),
    collection: &str,
    statements: Vec<DocumentBuf>,
) -> Result<(), WriteError> {
    let mut statements = statements.into_iter().peekable();
    while statements.peek().is_some() {
        let (mut some, mut bytes) = (Vec::new(), 0);
        while let Some(next) = statements
            .next_if(|next| some.is_empty() || bytes + next.as_bytes().len() <= COMMAND_BYTES)
        {
            bytes += next.as_bytes().len();
            some.push(next);
        }
        let count = some.len() as u64;
        let answer = writes.write(command, collection, some)?;
        if count_of(answer.view(), "n") != count || upserted(&answer) > 0 {
            return Err(unlike());
        }
    }
    Ok(())
}

fn key_of(id: Value<'_>) -> Vec<u8> {
    key::of_value(id).to_vec()
}

/// Returns the error that a document isn't as it was expected.
fn unlike() -> WriteError {
    WriteError::Refused("a document isn't as the source had it".to_owned())
}
