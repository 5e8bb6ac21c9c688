//! The documents that a scan has given out, where one may come again: by several entries of a
//! multikey index, or by several ranges.
//!
//! A document is known by the key of its `_id`: one of up to fifteen bytes (numbers, ObjectIds) as
//! a number, which takes a third of what its bytes would beside their place; any other as it is.
//! All is charged to a reservation of the memory that all requests share.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use frond_query::{Code, QueryError};
use frond_store::budget::Reservation;

use crate::error::Error;

/// The factor for the memory of an entry in a table: the table's least fill, and a byte that marks
/// an entry.
const PLACE_BYTES: usize = 2;
/// The memory of a key by itself besides its bytes.
const KEY_BYTES: usize = 16;

/// A set of documents.
#[derive(Debug)]
pub(crate) struct SeenDocuments {
    short: HashSet<u128, RandomState>,
    long: HashSet<Box<[u8]>, RandomState>,
    /// The memory of the long keys.
    bytes: usize,
    reservation: Reservation,
}

impl SeenDocuments {
    /// Begins with no documents; as many as `reservation` allows may be added.
    pub fn new(reservation: Reservation) -> SeenDocuments {
        // Seeded for each scan, and three times as fast as the standard library's.
        let (short, long) = (HashSet::default(), HashSet::default());
        SeenDocuments { short, long, bytes: 0, reservation }
    }

    /// Whether a document is in.
    pub fn contains(&self, id_key: &[u8]) -> bool {
        match short(id_key) {
            Some(key) => self.short.contains(&key),
            None => self.long.contains(id_key),
        }
    }

    /// Adds a document; whether it wasn't in.
    ///
    /// # Errors
    /// `ExceededMemoryLimit`.
    pub fn insert(&mut self, id_key: &[u8]) -> Result<bool, Error> {
        match short(id_key) {
            Some(key) => {
                if self.short.len() == self.short.capacity() {
                    if self.short.contains(&key) {
                        return Ok(false);
                    }
                    self.hold(self.short.capacity() * 2 + 4, self.long.capacity())?;
                }
                Ok(self.short.insert(key))
            }
            None => {
                if self.long.contains(id_key) {
                    return Ok(false);
                }
                self.bytes += id_key.len() + KEY_BYTES;
                let is_full = self.long.len() == self.long.capacity();
                let more = if is_full { self.long.capacity() + 4 } else { 0 };
                self.hold(self.short.capacity(), self.long.capacity() + more)?;
                Ok(self.long.insert(id_key.into()))
            }
        }
    }

    /// Says how many places there are to be.
    fn hold(&mut self, short: usize, long: usize) -> Result<(), Error> {
        let places =
            short * PLACE_BYTES * size_of::<u128>() + long * PLACE_BYTES * size_of::<Box<[u8]>>();
        self.reservation.hold(places + self.bytes).map_err(|exceeded| {
            let message =
                format!("the documents that a scan has met exceed memory limit of {exceeded}");
            Error::from(QueryError::new(Code::ExceededMemoryLimit, message))
        })
    }
}

/// A short key as a number: its bytes, and how many.
fn short(id_key: &[u8]) -> Option<u128> {
    let mut bytes = [0; 16];
    bytes.get_mut(1..=id_key.len())?.copy_from_slice(id_key);
    bytes[0] = u8::try_from(id_key.len()).ok()?;
    Some(u128::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use frond_store::budget::MemoryBudget;
    use std::sync::Arc;

    #[test]
    fn documents_are_known_by_the_whole_of_their_keys() {
        let mut seen = SeenDocuments::new(Reservation::new(usize::MAX, None));
        let keys: Vec<Vec<u8>> = (0..40).map(|length| vec![0; length]).collect();
        for key in &keys {
            assert!(!seen.contains(key));
            assert!(seen.insert(key).unwrap());
        }
        for key in &keys {
            assert!(seen.contains(key));
            assert!(!seen.insert(key).unwrap());
        }
        assert!(!seen.contains(&[1]));
    }

    #[test]
    fn seen_keys_are_charged_to_the_budget() {
        let budget = MemoryBudget::new(1 << 20);
        let mut seen = SeenDocuments::new(Reservation::new(usize::MAX, Some(Arc::clone(&budget))));
        let mut count = 0_u64;
        let error = loop {
            match seen.insert(&count.to_be_bytes()) {
                Ok(is_new) => assert!(is_new),
                Err(error) => break error,
            }
            count += 1;
        };
        assert_eq!(error.code, Code::ExceededMemoryLimit);
        assert!((14_000..40_000).contains(&count), "{count}");
        assert!(seen.short.capacity() * 17 <= budget.bytes());
        drop(seen);
        assert_eq!(budget.bytes(), 0);
    }
}
