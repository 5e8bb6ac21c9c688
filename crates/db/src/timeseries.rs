//! Time series: collections of *points*, documents that each have a time and mostly a source.
//!
//! All that is particular to them is here (why it is so: docs/decisions/0012-time-series.md):
//!
//! 1. `options`: what `create` and `collMod` say of them.
//! 2. `place`: the key under which a point lies, its *place*: its source (the meta field's value),
//!    its time, its `_id`. So the documents' tree is an index of source and time: points of one
//!    source lie together, and a stretch of time of one source is a range of the tree.
//! 3. `limits`: which writes and indexes MongoDB refuses.
//! 4. `bucket`: MongoDB's buckets, which its tools dump and restore instead of points.
//!
//! *Invariant*: a point lies under one of its places, and never changes there: an update of its
//! source removes it from one place and puts it to another.

mod bucket;
mod limits;
pub(crate) mod options;
mod place;

use std::sync::Arc;

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::index::IndexShape;

use crate::definition::IndexSpec;

pub(crate) use bucket::{Buckets, points};
pub use limits::UpdateKind;
pub use place::is_any_place;
pub(crate) use place::{HEAD_BYTES, ranges, with_arrays};

/// A time series: a collection of points.
#[derive(Clone, Debug)]
pub struct Series {
    /// The field with each point's time.
    pub time: String,
    /// The field with each point's source, if points have one.
    pub meta: Option<String>,
    /// The index that the documents' tree is.
    pub index: IndexSpec,
    /// The shape of that index's keys.
    pub shape: Arc<IndexShape>,
    /// The longest stretch of time of one of MongoDB's buckets, in seconds.
    pub(crate) span_seconds: i64,
    /// The times at which one may begin are so many seconds apart.
    pub(crate) rounding_seconds: i64,
}

impl Series {
    /// Returns the time series of a collection with these options, which were checked; `None` if it
    /// is none.
    pub fn of(options: Document<'_>) -> Option<Series> {
        let Some(Value::Document(series)) = options.get(options::OPTION) else { return None };
        let field = |name| series.get(name).and_then(|field| field.as_str()).map(str::to_owned);
        let (time, meta) = (field(options::TIME)?, field(options::META));
        let mut key = DocumentBuilder::new();
        for field in meta.iter().chain([&time]) {
            key.append(field, Value::Int32(1));
        }
        let index = IndexSpec::plain(name_of(&meta, &time), key.build());
        let shape = Arc::new(index.shape().ok()?);
        let (span_seconds, rounding_seconds) = options::bucket_seconds(series);
        Some(Series { time, meta, index, shape, span_seconds, rounding_seconds })
    }

    /// The index of source and time as it is listed; MongoDB makes none where points have no
    /// source.
    pub fn listed_index(&self) -> Option<&IndexSpec> {
        self.meta.as_ref().map(|_| &self.index)
    }
}

/// Returns the further statistics of a time series: of MongoDB's buckets, which don't exist here.
pub(crate) fn statistics(buckets: &str) -> DocumentBuf {
    let mut built = DocumentBuilder::new();
    built.append("bucketsNs", Value::String(buckets));
    for name in ["bucketCount", "numBucketInserts", "numBucketUpdates", "numMeasurementsCommitted"]
    {
        built.append(name, Value::Int64(0));
    }
    built.build()
}

/// Whether documents lie by the same fields, by `_id` where it is no time series.
pub fn lie_alike(one: Option<&Series>, other: Option<&Series>) -> bool {
    let fields = |series: Option<&Series>| series.map(|it| (it.time.clone(), it.meta.clone()));
    fields(one) == fields(other)
}

fn name_of(meta: &Option<String>, time: &str) -> String {
    let parts: Vec<String> =
        meta.iter().map(String::as_str).chain([time]).map(|field| format!("{field}_1")).collect();
    parts.join("_")
}
