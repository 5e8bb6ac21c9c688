//! The places of points: keys of `[source, time, _id]`, as of an array.
//!
//! - Being the key of one value, a place stands wherever the key of an `_id` does: in entries of
//!   indexes, in diffs, in conflicts.
//! - `_id`s of points needn't differ. Points that agree in all three have a number as a fourth
//!   item, the second of them 1.
//! - The range that an index of source and time has between two keys, the tree has behind the
//!   array's first byte ([`ranges`]), since no place is so long that it would be cut. But an index
//!   files each item of an array; a source that is an array lies here once, as a whole. Where there
//!   is one ([`with_arrays`]) the tree is no index.

use bytes::Bytes;
use frond_doc::{Document, DocumentBuilder, Value, key};
use frond_query::Code;
use frond_tree::Bounds;

use super::Series;
use crate::error::Error;

/// The length at most: longer places would be hard to keep beside a collection's name in one key.
const PLACE_BYTES_MAX: usize = 4_096;

/// The bytes of a place before its first part.
pub(crate) const HEAD_BYTES: usize = 1;

/// The first byte of an array's key.
fn head() -> u8 {
    key::bracket(empty_array())
        .0
        .first()
        .copied()
        .expect("each type's keys begin with a byte of their own")
}

fn empty_array<'a>() -> Value<'a> {
    Value::Array(frond_doc::Array::from_validated(&frond_doc::document::EMPTY))
}

impl Series {
    /// Checks that a document is a point.
    ///
    /// # Errors
    /// `BadValue` (2) if its time is no date; `BSONObjectTooLarge` (10334) if its source is so
    /// large that its place would be cut.
    pub fn check(&self, point: Document<'_>) -> Result<(), Error> {
        let time = &self.time;
        if !matches!(point.get(time), Some(Value::DateTime(_))) {
            let message =
                format!("'{time}' must be present and contain a valid BSON UTC datetime value");
            return Err(Error::invalid(Code::BadValue, message));
        }
        if PLACE_BYTES_MAX < self.place(point, i64::MAX).len() {
            let message = format!(
                "the metaField and the _id of a point have at most {PLACE_BYTES_MAX} bytes as a key"
            );
            return Err(Error::invalid(Code::BSONObjectTooLarge, message));
        }
        Ok(())
    }

    /// Returns where a point lies among `number` others that have the same source, time and `_id`.
    pub fn place(&self, point: Document<'_>, number: i64) -> Bytes {
        let field = |name: &str| point.get(name).unwrap_or(Value::Null);
        let mut place = DocumentBuilder::new();
        place.begin_array("");
        if let Some(meta) = &self.meta {
            place.push(field(meta));
        }
        place.push(field(&self.time)).push(field("_id"));
        if 0 < number {
            place.push(Value::Int64(number));
        }
        place.end();
        let place = place.build();
        key::of_id(place.get("").unwrap_or(Value::Null))
    }

    /// Returns the part of a point that stays when it gets another source: its time and its `_id`,
    /// as bytes that are equal for equal ones.
    pub fn identity(&self, point: Document<'_>) -> Bytes {
        let mut identity = DocumentBuilder::new();
        identity.begin_array("");
        for name in [&self.time, "_id"] {
            identity.push(point.get(name).unwrap_or(Value::Null));
        }
        identity.end();
        let identity = identity.build();
        key::of_id(identity.get("").unwrap_or(Value::Null))
    }

    /// The first place for a point that isn't taken.
    ///
    /// # Errors
    /// The error of `is_taken`.
    pub fn free_place(
        &self,
        point: Document<'_>,
        is_taken: &mut dyn FnMut(&Bytes) -> Result<bool, Error>,
    ) -> Result<Bytes, Error> {
        let first = self.place(point, 0);
        if !is_taken(&first)? {
            return Ok(first);
        }
        // Not all of thousands that agree are asked for.
        let (mut taken, mut free) = (0, 1);
        while is_taken(&self.place(point, free))? {
            (taken, free) = (free, free * 2);
        }
        while 1 < free - taken {
            let between = taken + (free - taken) / 2;
            match is_taken(&self.place(point, between))? {
                true => taken = between,
                false => free = between,
            }
        }
        Ok(self.place(point, free))
    }

    /// Whether this is one of a point's places.
    pub fn is_place(&self, place: &[u8], point: Document<'_>) -> bool {
        let first = self.place(point, 0);
        // A number stands where the first place ends.
        let is_whole = place.len() <= PLACE_BYTES_MAX;
        is_whole && (place == first || place.starts_with(&first[..first.len() - 1]))
    }
}

/// Ranges of the tree for those of the index of source and time.
pub(crate) fn ranges(of_index: Vec<Bounds>) -> Vec<Bounds> {
    let head = head();
    let behind = |bound: Bytes| Bytes::from([&[head][..], &bound[..]].concat());
    let range = |range: Bounds| Bounds {
        start: Some(range.start.map_or_else(|| Bytes::from(vec![head]), behind)),
        end: Some(range.end.map_or_else(|| Bytes::from(vec![head + 1]), behind)),
    };
    of_index.into_iter().map(range).collect()
}

/// Whether a key is a place, and no `_id`'s: none of those is an array.
pub fn is_any_place(key: &[u8]) -> bool {
    key.first() == Some(&head())
}

/// Returns where points lie whose source is an array.
pub(crate) fn with_arrays() -> Bounds {
    Bounds::prefix(&[head(), head()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use frond_doc::{DocumentBuf, document};

    fn series() -> Series {
        let series = document! { "timeField": "t", "metaField": "m" };
        Series::of(document! { "timeseries": &series }.view()).expect("it is one")
    }

    fn point(source: &str, millis: i64, id: i32) -> DocumentBuf {
        document! { "_id": id, "t": Value::DateTime(millis), "m": source }
    }

    #[test]
    fn places_are_in_the_order_of_source_and_time() {
        let series = series();
        let points =
            [("a", -1, 9), ("a", 0, 1), ("a", 0, 2), ("a", 256, 0), ("b", -5, 0), ("b", 1, 0)];
        let places: Vec<Bytes> =
            points.map(|(source, time, id)| series.place(point(source, time, id).view(), 0)).into();
        assert!(places.is_sorted());
        let mut of_a = Vec::new();
        key::append(&mut of_a, Value::String("a"), false);
        let [range] = &ranges(vec![Bounds::prefix(&of_a)])[..] else { panic!("one range") };
        let within = |place: &Bytes| {
            range.start.as_ref().is_some_and(|start| start <= place)
                && range.end.as_ref().is_some_and(|end| place < end)
        };
        assert_eq!(places.iter().filter(|place| within(place)).count(), 4);
    }

    #[test]
    fn points_that_agree_have_places_of_their_own() {
        let (series, point) = (series(), point("a", 1, 1));
        let mut taken: Vec<Bytes> = Vec::new();
        for _ in 0..50 {
            let mut is_taken = |place: &Bytes| Ok(taken.contains(place));
            let place = series.free_place(point.view(), &mut is_taken).expect("free");
            assert!(!taken.contains(&place) && series.is_place(&place, point.view()));
            taken.push(place);
        }
        assert!(taken.is_sorted());
        let other = document! { "_id": 2, "t": Value::DateTime(1), "m": "a" };
        assert!(!series.is_place(&taken[0], other.view()));
        assert!(series.check(document! { "t": 1 }.view()).is_err());
    }
}
