//! MongoDB's buckets: made of points as they are read, taken apart as they are written. None is
//! stored: MongoDB's tools dump and restore time series so.
//!
//! 1. A bucket has up to a thousand points of one source, of a stretch of time: `{_id, control:
//!    {version, min, max}, meta, data}`. `meta` is the source. `data` has a column for each other
//!    field: its values, each under its point's number (version 1); or compressed
//!    ([`frond_doc::column`]; versions 2 and 3, read only).
//! 2. `fill` makes them (version 1): of neighbours in the tree, which are of one source and ascend
//!    in time. `extreme` computes `min` and `max`.
//! 3. `points` takes them apart.
//!
//! A bucket doesn't show where in a point its source stood, nor the order of its fields where
//! points differ in it. So that points come back as they were, a bucket takes only points whose
//! fields stand in the order of its columns, and its `_id`, in which MongoDB has a counter, names
//! the column before which the source stood ([`MARK`]).

mod extreme;
mod fill;
mod points;

use frond_doc::ObjectId;

pub(crate) use fill::Buckets;
pub(crate) use points::points;

/// Points in a bucket, as in MongoDB.
const POINT_COUNT_MAX: usize = 1_000;
/// Bytes of the points in a bucket, but for a single one, as in MongoDB.
const BYTES_MAX: usize = 125 << 10;
/// The version that is made: columns by number.
const PLAIN: i64 = 1;
/// Versions with compressed columns: of points in the order of time, and in any.
const COMPRESSED: [i64; 2] = [2, 3];

/// The mark behind the seconds of an `_id`: these bytes, the column before which the source stands,
/// and a counter of three bytes.
const MARK: [u8; 4] = *b"frnd";

/// A bucket's `_id`: MongoDB wants the seconds of its `control.min` in front.
fn id(seconds: i64, meta_position: usize, counter: u32) -> ObjectId {
    let [_, counter @ ..] = counter.to_be_bytes();
    let position = u8::try_from(meta_position).unwrap_or(u8::MAX);
    let mut id = [0; 12];
    // Times before 1970 and after 2106 wrap around, as in MongoDB.
    id[..4].copy_from_slice(&(seconds as u32).to_be_bytes());
    id[4..8].copy_from_slice(&MARK);
    id[8] = position;
    id[9..].copy_from_slice(&counter);
    ObjectId(id)
}

/// The column before which the source stands, if the `_id` names it.
fn meta_position(id: ObjectId) -> Option<usize> {
    let is_marked = id.0[4..8] == MARK && id.0[8] != u8::MAX;
    is_marked.then(|| usize::from(id.0[8]))
}

#[cfg(test)]
mod tests;
