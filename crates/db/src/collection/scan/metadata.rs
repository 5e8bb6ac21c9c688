//! The metadata of its search that a scan leaves in the documents it finds, where it is wanted.

use frond_doc::{Binary, DocumentBuf, DocumentBuilder, Value, ValueBuf, document};
use frond_query::index::{FieldKind, decode};
use frond_query::metadata::{self, MetadataKind};
use frond_tree::Entry;

use super::fetch::{Fetch, Scores};
use super::row::Row;
use super::text_scores;
use crate::catalog::index_entry;
use crate::collection::walk::Walk;
use crate::error::Error;
use crate::schema::Index;

/// Whether the keys of an index can be turned back into what they are made of.
pub fn has_reversible_keys(index: &Index) -> bool {
    let is_reversible =
        |kind| matches!(kind, FieldKind::Value | FieldKind::Hashed | FieldKind::Wildcard);
    index.shape.fields().iter().all(|field| is_reversible(field.kind))
        && index.shape.collation().is_simple()
}

impl Fetch<'_> {
    /// Whether documents may come out as they lie.
    pub(super) fn lends(&self) -> bool {
        !self.counts_only && self.metadata.is_empty()
    }

    /// The key of the index that led to a document, if it is asked for, and the entry holds it.
    pub(super) fn index_key(
        &self,
        walk: &Walk,
        entry: &Entry,
    ) -> Result<Option<DocumentBuf>, Error> {
        if !self.metadata.contains(MetadataKind::IndexKey) {
            return Ok(None);
        }
        let Some(index) = walk.index.as_ref().filter(|index| has_reversible_keys(index)) else {
            return Ok(None);
        };
        let content = self.reader.read(&entry.value)?;
        let parts = index_entry::cut(index, &entry.key, &content)?;
        let recovered = match index.is_cut(&entry.key) {
            true => match self.reader.get(self.documents, &parts.id_key)? {
                Some(value) => {
                    let document = self.reader.document(&value)?;
                    index_entry::whole_key(index, &entry.key, &parts.id_key, document.view())?
                }
                None => None,
            },
            false => None,
        };
        let (mut rest, mut bits) = match &recovered {
            Some(whole) => (&whole.key[..], &whole.bits[..]),
            None => (&entry.key[..], &parts.bits[..]),
        };
        let mut directions = index.shape.parts().iter();
        let mut next = || {
            let descending = directions.next().copied().unwrap_or(false);
            decode::part(&mut rest, &mut bits, descending)
                .map_err(|error| Error::damaged(format!("key of an index: {error}")))
        };
        let mut key = DocumentBuilder::new();
        for field in index.shape.fields() {
            let first = next()?;
            let first = first.as_ref().map_or(Value::Null, ValueBuf::as_value);
            if field.kind != FieldKind::Wildcard {
                key.append(&field.path, first);
                continue;
            }
            // A wildcard's key names the leaf, and has its value under this name, as in MongoDB.
            let value = next()?;
            key.append("$_path", first);
            if let Value::String(path) = first {
                key.append(path, value.as_ref().map_or(Value::Null, ValueBuf::as_value));
            }
        }
        Ok(Some(key.build()))
    }

    /// The key of the index of `_id` that leads to a document, if it is asked for.
    pub(super) fn key_of_id(&self, walk: &Walk, found: &Row) -> Option<DocumentBuf> {
        if !walk.is_of_id || !self.metadata.contains(MetadataKind::IndexKey) {
            return None;
        }
        found.fields().get("_id").map(|id| document! { "_id": id })
    }

    /// Returns the score of an entry's term, if that is its document's score.
    pub(super) fn score_of_entry(&self, walk: &Walk, entry: &Entry) -> Result<Option<f64>, Error> {
        match (&self.scores, &walk.index) {
            (Scores::Entry, Some(index)) => {
                let scores = text_scores::of_entry(index, &self.reader, entry)?;
                Ok(scores.map(|(_, score)| score))
            }
            _ => Ok(None),
        }
    }

    /// Adds the wanted metadata to a row; `key` is that of its index, `score` the one in its entry.
    pub(super) fn with_metadata(
        &self,
        row: Row,
        key: Option<DocumentBuf>,
        score: Option<f64>,
    ) -> Row {
        if self.metadata.is_empty() {
            return row;
        }
        let document = row.fields();
        let mut values: Vec<(MetadataKind, ValueBuf)> = Vec::new();
        if self.metadata.contains(MetadataKind::TextScore)
            && let Some(matcher) = self.filter.text_matcher()
        {
            let score = match &self.scores {
                Scores::Entries(scores) => scores.of(&row.id_key),
                Scores::Entry | Scores::Texts => score,
            };
            let score = score.unwrap_or_else(|| matcher.score(document));
            let score = Value::Double(score).to_buf();
            values.push((MetadataKind::TextScore, score));
        }
        if self.metadata.contains(MetadataKind::RecordId) {
            let key = Binary { subtype: 0, bytes: &row.id_key };
            values.push((MetadataKind::RecordId, Value::Binary(key).to_buf()));
        }
        if let Some(key) = &key {
            values.push((MetadataKind::IndexKey, Value::from(key).to_buf()));
        }
        if let Some((distance, place)) = self.filter.nearest(document) {
            values.push((MetadataKind::GeoNearDistance, Value::Double(distance).to_buf()));
            values.push((MetadataKind::GeoNearPoint, place));
        }
        let values: Vec<_> = values.iter().map(|(kind, value)| (*kind, value.as_value())).collect();
        row.with_read(|document| metadata::append(document, &values))
    }
}
