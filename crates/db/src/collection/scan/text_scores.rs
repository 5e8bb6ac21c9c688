//! The scores of documents in a search by text, from the index's entries: no text is cut into terms
//! again.
//!
//! An entry holds the score of its term in its document, and a document's score is the sum over the
//! terms that are searched for. For a search for one term, each entry holds its document's score.
//! For several, a document's entries lie apart, one in the range of each term, so all entries are
//! read before the first document comes out; the sums take memory, and where there is none for
//! them, scores are computed from documents as before.
//!
//! *Invariant*: ranges are read in ascending order, so that a document's terms are summed in the
//! order in which [`TextMatcher::score`](frond_query::search::TextMatcher::score) does it, and the
//! sums are equal to the last bit.

use std::collections::HashMap;

use bytes::Bytes;
use frond_doc::{Value, ValueBuf};
use frond_query::index::{FieldKind, IndexField, decode};
use frond_store::budget::Reservation;
use frond_tree::Entry;

use super::fetch::CHECK_COUNT;
use crate::catalog::index_entry;
use crate::collection::walk::{Walk, WalkCounts};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::reader::Reader;
use crate::schema::Index;

/// About what the table takes for a document besides its key.
const DOCUMENT_BYTES: usize = 64;

/// The scores of all documents that have one of the terms, by the keys of their `_id`s.
pub(super) struct TextScores {
    by_id: HashMap<Box<[u8]>, f64>,
    bytes: usize,
    reservation: Reservation,
}

impl TextScores {
    /// Reads the entries of `walk`, which is along a text index; `None` if the sums take more
    /// memory than `reservation` allows, or an entry's key was cut.
    pub(super) fn read(
        mut walk: Walk,
        reader: &Reader<'_>,
        interrupt: &Interrupt,
        reservation: Reservation,
    ) -> Result<Option<TextScores>, Error> {
        let mut scores = TextScores { by_id: HashMap::new(), bytes: 0, reservation };
        let is_read = scores.read_all(&mut walk, reader, interrupt);
        walk.count_since(WalkCounts::default());
        Ok(is_read?.then_some(scores))
    }

    /// Adds what all entries' terms count; answers whether the entries held that and there was
    /// memory.
    fn read_all(
        &mut self,
        walk: &mut Walk,
        reader: &Reader<'_>,
        interrupt: &Interrupt,
    ) -> Result<bool, Error> {
        while let Some(entry) = walk.next(reader)? {
            if walk.keys_examined.is_multiple_of(CHECK_COUNT) {
                interrupt.check()?;
            }
            let Some(index) = &walk.index else { return Ok(false) };
            if !self.add(index, reader, &entry)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds what an entry's term counts; answers whether it held that and there was memory for it.
    fn add(&mut self, index: &Index, reader: &Reader<'_>, entry: &Entry) -> Result<bool, Error> {
        let Some((id_key, score)) = of_entry(index, reader, entry)? else { return Ok(false) };
        if let Some(sum) = self.by_id.get_mut(&id_key[..]) {
            *sum += score;
            return Ok(true);
        }
        self.bytes += DOCUMENT_BYTES + id_key.len();
        self.by_id.insert(id_key[..].into(), score);
        Ok(self.reservation.hold(self.bytes).is_ok())
    }

    /// Returns a document's score, if it has one of the terms.
    pub(super) fn of(&self, id_key: &[u8]) -> Option<f64> {
        self.by_id.get(id_key).copied()
    }
}

/// The key of an entry's `_id`, and what its term counts there; `None` if its key was cut.
pub(super) fn of_entry(
    index: &Index,
    reader: &Reader<'_>,
    entry: &Entry,
) -> Result<Option<(Bytes, f64)>, Error> {
    if index.is_cut(&entry.key) {
        return Ok(None);
    }
    let content = reader.read(&entry.value)?;
    let parts = index_entry::cut(index, &entry.key, &content)?;
    let (mut rest, mut bits) = (&entry.key[..], &parts.bits[..]);
    let is_text = |field: &IndexField| field.kind == FieldKind::Text;
    // The score stands behind the term.
    let place = index.shape.fields().iter().position(is_text).map_or(0, |term| term + 1);
    let mut score = None;
    for descending in index.shape.parts().iter().take(place + 1) {
        score = decode::part(&mut rest, &mut bits, *descending)
            .map_err(|error| Error::damaged(format!("key of a text index: {error}")))?;
    }
    match score.as_ref().map(ValueBuf::as_value) {
        Some(Value::Double(score)) => Ok(Some((parts.id_key, score))),
        _ => Err(Error::damaged("an entry of a text index without a score")),
    }
}
