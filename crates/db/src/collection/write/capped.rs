//! The records of a write to a capped collection: the places of its documents, and the limits.
//!
//! See [`crate::collection::capped`] for the tree that holds them.

use bytes::Bytes;
use frond_doc::{DocumentBuf, document};
use frond_engine::TreeId;
use frond_query::Code;
use frond_tree::{Direction, Value};

use super::{CollectionWriter, MatchedRow};
use crate::collection::capped::{all_places, place_key, record_key};
use crate::error::Error;
use crate::schema::TreeRef;

/// The key of record 3. Stored: never change.
const SUMS: &[u8] = &[0];

/// The sums of a capped collection, and the place of the next document.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Sums {
    next: u64,
    documents: u64,
    bytes: u64,
}

impl CollectionWriter<'_> {
    /// Notes that a document was put where none was.
    pub(in crate::collection) fn note_inserted(
        &mut self,
        id_key: &Bytes,
        bytes: u64,
    ) -> Result<(), Error> {
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
    pub(in crate::collection) fn note_replaced(
        &mut self,
        id_key: &Bytes,
        bytes: u64,
    ) -> Result<(), Error> {
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
    pub(in crate::collection) fn note_removed(&mut self, id_key: &Bytes) -> Result<(), Error> {
        let Some(order) = self.order()? else { return Ok(()) };
        let Some((place, bytes)) = self.record(order, id_key)? else { return Ok(()) };
        let mut sums = self.sums(order)?;
        sums.documents = sums.documents.saturating_sub(1);
        sums.bytes = sums.bytes.saturating_sub(bytes);
        self.delete_order(order, place_key(place))?;
        self.delete_order(order, record_key(id_key))?;
        self.put_sums(order, sums)
    }

    /// Removes the oldest documents until the limits hold. Change streams get no events, as in
    /// MongoDB.
    pub(in crate::collection) fn evict(&mut self) -> Result<(), Error> {
        self.is_silent = true;
        let evicted = self.evict_oldest();
        self.is_silent = false;
        evicted
    }

    fn evict_oldest(&mut self) -> Result<(), Error> {
        let (Some(limits), Some(order)) = (self.limits(), self.order()?) else { return Ok(()) };
        loop {
            let sums = self.sums(order)?;
            if sums.documents <= limits.documents && sums.bytes <= limits.bytes {
                return Ok(());
            }
            match self.oldest(order)? {
                Some((_, Some(oldest))) => self.remove_matched(oldest)?,
                Some((id_key, None)) => self.note_removed(&id_key)?,
                None => return Err(Error::damaged("a capped collection counts what isn't there")),
            }
        }
    }

    /// The key of the `_id` at the first place, and its document unless that was erased.
    fn oldest(&self, order: TreeId) -> Result<Option<(Bytes, Option<MatchedRow>)>, Error> {
        let reader = self.reader();
        let order = TreeRef::Live(order);
        let mut places = reader.range(order, all_places(), Direction::Ascending)?;
        let Some(entry) = places.next().transpose()? else { return Ok(None) };
        let id_key = reader.read(&entry.value)?;
        let Some(documents) = self.documents() else { return Ok(None) };
        let Some(value) = reader.get(documents, &id_key)? else { return Ok(Some((id_key, None))) };
        Ok(Some((id_key.clone(), Some(MatchedRow::of(id_key, &value, &reader)?))))
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
        debug_assert!(sums.documents <= sums.next, "each document had a place of its own");
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
