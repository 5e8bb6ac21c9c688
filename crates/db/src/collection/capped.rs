//! Capped collections: documents in the order of their insertion, of a bounded size, the oldest
//! removed.
//!
//! The documents lie by `_id` as in every collection. A further tree, the *order*, holds
//! 1. for each document its *place*, a number that rises with every insertion, with the key of its
//!    `_id`;
//! 2. for each `_id`'s key its place, and the document's size as it counts;
//! 3. one record of the next place, and of how many documents of how many bytes there are.
//!
//! An insertion appends, and then removes the oldest documents until the limits hold, all in its
//! own transaction. A scan in natural order walks the places.
//!
//! *Surprises*: every insertion writes record 3, so two transactions that insert at once conflict,
//! and one of them runs again. MongoDB's capped collections take one insertion at a time, too; and
//! it makes places rise in the order of commits, so that a reader that follows the end
//! ([`crate::collection::tail`]) misses nothing. Capped collections are not versioned: they are in
//! no commit, merge or clone, and go with their branch.

use bytes::Bytes;
use frond_tree::{Bounds, Direction};

use crate::error::Error;
use crate::reader::Reader;
use crate::schema::TreeRef;

/// The first byte of keys of places. Stored: never change.
const PLACE: u8 = 1;
/// The first byte of keys of `_id`s. Stored: never change.
const ID: u8 = 2;

/// The range of the places from `first` to `last`, both within it.
pub(crate) fn places(first: u64, last: u64) -> Bounds {
    let end = last.checked_add(1).map_or_else(|| Bytes::from_static(&[ID]), place_key);
    Bounds { start: Some(place_key(first)), end: Some(end) }
}

/// The range of all places.
pub fn all_places() -> Bounds {
    places(0, u64::MAX)
}

/// The key of a place.
pub(super) fn place_key(place: u64) -> Bytes {
    let mut key = vec![PLACE];
    key.extend_from_slice(&place.to_be_bytes());
    key.into()
}

/// The key of what is noted of a document.
pub(super) fn record_key(id_key: &[u8]) -> Bytes {
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
