//! Deleting and replacing documents that can't be read.
//!
//! 1. A filter that asks for nothing but `_id` is decided by the key under which a document lies.
//!    Any other finds a damaged document only if what it asks for can be read.
//! 2. The entries by which indexes file such a document can't be known. Each index is searched as a
//!    whole for its `_id`: afterwards it is as if it were built anew.
//! 3. Where the leaf that would hold the document of an `_id` can't itself be read, the document
//!    may or may not be there. It is taken to be there: what is written lies above the leaf, and
//!    can be read.
//!
//! An update by operators needs the old document, and fails.

use bytes::Bytes;
use frond_doc::pieces::LargeDocument;
use frond_doc::{DocumentBuf, DocumentBuilder, Value as BsonValue, ValueBuf, document, key};
use frond_query::Filter;
use frond_tree::{Bounds, Direction, Value};

use super::{CollectionWriter, DocumentChange};
use crate::catalog::index_entry::{id_key_of, id_of};
use crate::collection::plan::{Order, Source};
use crate::collection::scan::Row;
use crate::collection::update::ParsedUpdate;
use crate::collection::walk::Walk;
use crate::error::{Error, ErrorKind};
use crate::large;
use crate::reader::Reader;
use crate::schema::TreeRef;

/// The entries between two checks whether to stop.
const CHECK_COUNT: usize = 256;

/// A row for a statement that needs only its place.
pub enum MatchedRow {
    /// A document that was read, at least in part.
    Row(Row),
    /// The key of one that can't be read.
    Damaged(Bytes),
}

impl MatchedRow {
    /// The document that `value` is. Of a large one nothing is read.
    ///
    /// # Errors
    /// As [`Reader::document`], but for `Damaged`.
    pub fn of(id_key: Bytes, value: &Value, reader: &Reader<'_>) -> Result<MatchedRow, Error> {
        if let Some(large) = large::head(value) {
            return Ok(MatchedRow::Row(Row::part(id_key, DocumentBuf::empty(), Some(large))));
        }
        match reader.document(value) {
            Err(error) if error.kind == ErrorKind::Damaged => Ok(MatchedRow::Damaged(id_key)),
            read => Ok(MatchedRow::Row(Row::whole(id_key, read?, None))),
        }
    }
}

impl CollectionWriter<'_> {
    /// As [`CollectionWriter::matching_in_part`], for a caller that deletes or replaces what is
    /// found: what can't be read is found, too, if the filter asks for its `_id` only.
    ///
    /// # Errors
    /// As [`CollectionWriter::matching_in_part`].
    pub fn matching_or_damaged(
        &self,
        filter: &Filter,
        order: &Order,
        hint: Option<&ValueBuf>,
        limit: Option<usize>,
    ) -> Result<Vec<MatchedRow>, Error> {
        let is_by_id = || filter.paths().is_some_and(|paths| paths.iter().all(|it| *it == "_id"));
        match self.matching_in_part(filter, order, hint, limit) {
            Err(error) if error.kind == ErrorKind::Damaged && is_by_id() => {
                self.matching_by_id(filter, order, hint, limit)?.ok_or(error)
            }
            found => Ok(found?.into_iter().map(MatchedRow::Row).collect()),
        }
    }

    /// Returns the keys that a filter on `_id` alone finds; `None` if there is another order, or an
    /// index to use.
    fn matching_by_id(
        &self,
        filter: &Filter,
        order: &Order,
        hint: Option<&ValueBuf>,
        limit: Option<usize>,
    ) -> Result<Option<Vec<MatchedRow>>, Error> {
        let (Some(now), Order::Any, None) = (&self.now, order, &self.series) else {
            return Ok(None);
        };
        let mut access = self.access(now, filter, order, hint, limit)?;
        let beside = now.collated_id().map(Source::Index);
        if beside.is_some() && access.paths.iter().any(|path| Some(path.source) == beside) {
            // Finds documents in their own order: an index of `_id` beside them leads to what can't
            // be read.
            let all = document! { "$natural": 1 };
            let all = BsonValue::from(&all).to_buf();
            access = self.access(now, filter, order, Some(&all), limit)?;
        }
        if access.paths.iter().any(|it| !matches!(it.source, Source::Id | Source::Collection)) {
            return Ok(None);
        }
        let reader = self.reader();
        if let Some(id) = filter.id_equality()?.filter(|_| filter.collation().is_simple()) {
            let id_key = key::of_id(id);
            if let Err(Error { kind: ErrorKind::Damaged, .. }) = reader.get(now.documents, &id_key)
            {
                return Ok(Some(vec![MatchedRow::Damaged(id_key)]));
            }
        }
        let mut rows = Vec::new();
        for path in access.paths {
            let mut walk = Walk::new(now, path);
            while rows.len() < limit.unwrap_or(usize::MAX)
                && let Some(entry) = walk.next(&reader)?
            {
                let id = match key::is_id_cut(&entry.key) {
                    true => self.reader().document(&entry.value)?,
                    false => only_id(&entry.key)?,
                };
                if !filter.try_matches(id.view())? {
                    continue;
                }
                rows.push(MatchedRow::of(entry.key, &entry.value, &reader)?);
                if rows.len().is_multiple_of(CHECK_COUNT) {
                    self.database.interrupt().check()?;
                }
            }
        }
        Ok(Some(rows))
    }

    /// Removes the row that was found.
    ///
    /// # Errors
    /// As [`CollectionWriter::remove`].
    pub fn remove_matched(&mut self, matched: MatchedRow) -> Result<(), Error> {
        let id_key = match matched {
            MatchedRow::Damaged(id_key) => id_key,
            MatchedRow::Row(row) => {
                let id_key = row.id_key.clone();
                match self.remove_row(row) {
                    Err(error) if error.kind == ErrorKind::Damaged => id_key,
                    removed => return removed,
                }
            }
        };
        self.ensure()?;
        self.undoing(|writer| {
            writer.remove_entries_of(&id_key)?;
            let documents = writer.live()?.documents;
            writer.transaction.delete(documents, id_key.clone())?;
            writer.record_delete(only_id(&id_key)?.view());
            writer.note_removed(&id_key)
        })
    }

    /// Puts the replacement that `update` is in the place of a document that can't be read.
    ///
    /// # Errors
    /// As [`CollectionWriter::replace`]; what the update fails with.
    pub fn replace_damaged(&mut self, id_key: &Bytes, update: &ParsedUpdate) -> Result<(), Error> {
        let before = self.id_of_damaged(id_key, update)?;
        let after = update.update.apply(before.view(), &update.context)?;
        let after = after.unwrap_or_else(|| before.clone());
        self.check_result(after.as_bytes().len() as u64)?;
        self.check_valid(None, after.view())?;
        self.ensure()?;
        self.undoing(|writer| {
            writer.remove_entries_of(id_key)?;
            let documents = writer.live()?.documents;
            let event_detail = writer.event_detail(before.view(), &after, DocumentChange::Replaced);
            let is_recorded = writer.records_whole(&after);
            let value = writer.store_document(&after, None, is_recorded)?;
            writer.transaction.put(documents, id_key.clone(), value.clone())?;
            writer.record_replace(id_key, &after, &value, event_detail);
            writer.note_replaced(id_key, after.as_bytes().len() as u64)?;
            writer.change_indexes(id_key, None, Some(after.view()))
        })
    }

    /// A document of nothing but the `_id`, with the number's type that the replacement says, or
    /// else the damaged document, or else the key: which holds numbers, and not their types.
    fn id_of_damaged(&self, id_key: &Bytes, update: &ParsedUpdate) -> Result<DocumentBuf, Error> {
        let source = match update.source.as_value() {
            BsonValue::Document(replacement) => replacement.get("_id"),
            _ => None,
        };
        if let Some(source) = source.filter(|id| key::of_id(*id) == id_key) {
            return Ok(with_id(source));
        }
        let reader = self.reader();
        let value = self.documents().and_then(|documents| reader.get(documents, id_key).ok()?);
        let large: Option<LargeDocument> = value.as_ref().and_then(large::head);
        match large.and_then(|large| reader.project(&large, &[b"_id"]).ok()) {
            Some(read) => Ok(read),
            None => only_id(id_key),
        }
    }

    /// Removes the entries of a document from all indexes, whichever they are.
    fn remove_entries_of(&mut self, id_key: &Bytes) -> Result<(), Error> {
        let live = self.live.as_ref().expect("the collection was adopted before the write");
        let mut found = Vec::new();
        let reader = self.reader();
        for (index, tree) in live.collection.indexes.iter().zip(&live.indexes) {
            let entries =
                reader.range(TreeRef::Live(*tree), Bounds::all(), Direction::Ascending)?;
            for (position, entry) in entries.enumerate() {
                let entry = entry?;
                let content = reader.read(&entry.value)?;
                if id_key_of(index, &entry.key, &content)? == id_key {
                    found.push((*tree, entry.key));
                }
                if position.is_multiple_of(CHECK_COUNT) {
                    self.database.interrupt().check()?;
                }
            }
        }
        found.into_iter().try_for_each(|(tree, key)| Ok(self.transaction.delete(tree, key)?))
    }
}

/// A document of nothing but the `_id` whose key this is.
fn only_id(id_key: &[u8]) -> Result<DocumentBuf, Error> {
    Ok(with_id(id_of(id_key, &mut &[][..])?.as_value()))
}

fn with_id(id: BsonValue<'_>) -> DocumentBuf {
    let mut out = DocumentBuilder::new();
    out.append("_id", id);
    out.build()
}
