//! Capped collections: documents in the order of their insertion, of a bounded size, the oldest removed.
//!
//! The documents lie by `_id` as in every collection. A further tree, the *order*, holds
//! 1. for each document its *place*, a number that rises with every insertion, with the key of its `_id`;
//! 2. for each `_id`'s key its place, and the document's size as it counts;
//! 3. one record of the next place, and of how many documents of how many bytes there are.
//!
//! An insertion appends, and then removes the oldest documents until the limits hold, all in its own
//! transaction. A scan in natural order walks the places.
//!
//! *Surprises*: every insertion writes record 3, so two transactions that insert at once conflict, and one
//! of them runs again. MongoDB's capped collections take one insertion at a time, too; and it makes
//! places rise in the order of commits, so that whoever follows the end ([`crate::collection::tail`])
//! misses nothing. Capped collections are not versioned: they are in no commit, merge or clone, and go with
//! their branch.

use bytes::Bytes;
use frond_doc::{DocumentBuf, document};
use frond_engine::TreeId;
use frond_query::Code;
use frond_tree::{Bounds, Direction, Value};

use crate::collection::write::{CollectionWriter, Met};
use crate::error::Error;
use crate::reader::Reader;
use crate::schema::TreeRef;

/// The key of record 3. Stored: never change these three.
const SUMS: &[u8] = &[0];
/// What keys of places begin with.
const PLACE: u8 = 1;
/// What keys of `_id`s begin with.
const ID: u8 = 2;

/// What a capped collection holds, and where the next document goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Sums {
    next: u64,
    documents: u64,
    bytes: u64,
}

/// The range of the places from `first` to `last`, both within it.
pub(crate) fn places(first: u64, last: u64) -> Bounds {
    let end = last.checked_add(1).map_or_else(|| Bytes::from_static(&[ID]), place_key);
    Bounds { start: Some(place_key(first)), end: Some(end) }
}

/// The range of all places.
pub(crate) fn all_places() -> Bounds {
    places(0, u64::MAX)
}

fn place_key(place: u64) -> Bytes {
    let mut key = vec![PLACE];
    key.extend_from_slice(&place.to_be_bytes());
    key.into()
}

fn record_key(id_key: &[u8]) -> Bytes {
    [&[ID], id_key].concat().into()
}

/// The last place that is taken; `None` if the collection is empty.
pub(crate) fn last_place(reader: &Reader<'_>, order: TreeRef) -> Result<Option<u64>, Error> {
    let mut places = reader.range(order, all_places(), Direction::Descending)?;
    let Some(entry) = places.next().transpose()? else { return Ok(None) };
    let number = entry.key.get(1..).and_then(|bytes| bytes.try_into().ok());
    let number =
        number.ok_or_else(|| Error::damaged("a place of a capped collection has no number"))?;
    Ok(Some(u64::from_be_bytes(number)))
}

/// Whether a place is taken.
pub(crate) fn has_place(reader: &Reader<'_>, order: TreeRef, place: u64) -> Result<bool, Error> {
    Ok(reader.get(order, &place_key(place))?.is_some())
}

fn stored(numbers: DocumentBuf) -> Value {
    Value::inline(numbers.into_bytes())
}

fn number(record: &DocumentBuf, name: &str) -> Result<u64, Error> {
    let number = record.get(name).and_then(|value| value.as_integer());
    let number = number.and_then(|number| u64::try_from(number).ok());
    number.ok_or_else(|| Error::damaged(format!("a capped collection's record has no {name}")))
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl CollectionWriter<'_> {
    /// Notes that a document was put where none was.
    pub(super) fn note_inserted(&mut self, id_key: &Bytes, bytes: u64) -> Result<(), Error> {
        let Some(order) = self.order()? else { return Ok(()) };
        if let Some(limits) = self.limits().filter(|limits| bytes > limits.bytes) {
            let message = format!(
                "object to insert exceeds cappedMaxSize: {bytes} bytes, at most {}",
                limits.bytes
            );
            return Err(Error::invalid(Code::BadValue, message));
        }
        // A document that was erased has left its place behind.
        self.note_removed(id_key)?;
        let mut sums = self.sums(order)?;
        let place = sums.next;
        sums.next += 1;
        sums.documents += 1;
        sums.bytes += bytes;
        self.put_order(order, place_key(place), Value::inline(id_key.clone()))?;
        let record = document! { "place": signed(place), "bytes": signed(bytes) };
        self.put_order(order, record_key(id_key), stored(record))?;
        self.put_sums(order, sums)
    }

    /// Notes that a document was put in the place of another.
    pub(super) fn note_replaced(&mut self, id_key: &Bytes, bytes: u64) -> Result<(), Error> {
        let Some(order) = self.order()? else { return Ok(()) };
        let Some((place, before)) = self.record(order, id_key)? else { return Ok(()) };
        if before == bytes {
            return Ok(());
        }
        let mut sums = self.sums(order)?;
        sums.bytes = sums.bytes.saturating_sub(before) + bytes;
        let record = document! { "place": signed(place), "bytes": signed(bytes) };
        self.put_order(order, record_key(id_key), stored(record))?;
        self.put_sums(order, sums)
    }

    /// Notes that a document was removed.
    pub(super) fn note_removed(&mut self, id_key: &Bytes) -> Result<(), Error> {
        let Some(order) = self.order()? else { return Ok(()) };
        let Some((place, bytes)) = self.record(order, id_key)? else { return Ok(()) };
        let mut sums = self.sums(order)?;
        sums.documents = sums.documents.saturating_sub(1);
        sums.bytes = sums.bytes.saturating_sub(bytes);
        self.delete_order(order, place_key(place))?;
        self.delete_order(order, record_key(id_key))?;
        self.put_sums(order, sums)
    }

    /// Removes the oldest documents until the limits hold.
    pub(super) fn evict(&mut self) -> Result<(), Error> {
        let (Some(limits), Some(order)) = (self.limits(), self.order()?) else { return Ok(()) };
        loop {
            let sums = self.sums(order)?;
            if sums.documents <= limits.documents && sums.bytes <= limits.bytes {
                return Ok(());
            }
            match self.oldest(order)? {
                Some((_, Some(oldest))) => self.remove_met(oldest)?,
                Some((id_key, None)) => self.note_removed(&id_key)?,
                None => return Err(Error::damaged("a capped collection counts what isn't there")),
            }
        }
    }

    /// The key of the `_id` at the first place, and its document unless that was erased.
    fn oldest(&self, order: TreeId) -> Result<Option<(Bytes, Option<Met>)>, Error> {
        let reader = self.reader();
        let order = TreeRef::Live(order);
        let mut places = reader.range(order, all_places(), Direction::Ascending)?;
        let Some(entry) = places.next().transpose()? else { return Ok(None) };
        let id_key = reader.read(&entry.value)?;
        let Some(documents) = self.documents() else { return Ok(None) };
        let Some(value) = reader.get(documents, &id_key)? else { return Ok(Some((id_key, None))) };
        Ok(Some((id_key.clone(), Some(Met::of(id_key, &value, &reader)?))))
    }

    /// The place and the size that are noted of a document.
    fn record(&self, order: TreeId, id_key: &[u8]) -> Result<Option<(u64, u64)>, Error> {
        let Some(record) = self.read_order(order, &record_key(id_key))? else { return Ok(None) };
        Ok(Some((number(&record, "place")?, number(&record, "bytes")?)))
    }

    fn sums(&self, order: TreeId) -> Result<Sums, Error> {
        let Some(record) = self.read_order(order, SUMS)? else { return Ok(Sums::default()) };
        Ok(Sums {
            next: number(&record, "next")?,
            documents: number(&record, "documents")?,
            bytes: number(&record, "bytes")?,
        })
    }

    fn put_sums(&mut self, order: TreeId, sums: Sums) -> Result<(), Error> {
        let record = document! {
            "next": signed(sums.next),
            "documents": signed(sums.documents),
            "bytes": signed(sums.bytes),
        };
        self.put_order(order, Bytes::from_static(SUMS), stored(record))
    }

    fn read_order(&self, order: TreeId, key: &[u8]) -> Result<Option<DocumentBuf>, Error> {
        let reader = self.reader();
        let Some(value) = reader.get(TreeRef::Live(order), key)? else { return Ok(None) };
        crate::system::record(reader.read(&value)?).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_ascend_as_keys() {
        let range = all_places();
        for place in [0, 1, 255, 256, u64::MAX] {
            let key = place_key(place);
            assert!(Some(&key) >= range.start.as_ref() && Some(&key) < range.end.as_ref());
        }
        assert!(place_key(255) < place_key(256));
    }
}
