//! Points into buckets, as the points are read.

use std::collections::HashSet;
use std::sync::Arc;

use frond_doc::raw::RawElement;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, ElementType, Value};
use frond_query::pipeline::Documents;
use frond_query::{Code, Collation, QueryError};

use super::extreme::{Extreme, Side};
use super::{BYTES_MAX, PLAIN, POINT_COUNT_MAX, id};
use crate::timeseries::Series;

/// The buckets of a time series, in the order in which its points are read.
pub(crate) struct Buckets {
    series: Arc<Series>,
    collation: Collation,
    points: Documents<'static>,
    /// The bucket that is being filled.
    open: Option<Bucket>,
    /// The number of values that were given.
    count: u32,
}

impl Buckets {
    /// The buckets of these points.
    pub fn of(series: &Arc<Series>, collation: Collation, points: Documents<'static>) -> Buckets {
        Buckets { series: series.clone(), collation, points, open: None, count: 0 }
    }

    /// Begins a bucket with a point, and gives the one before.
    fn begin(&mut self, point: Document<'_>) -> Result<Option<Bucket>, QueryError> {
        let mut next = Bucket::begin(&self.series, point);
        if !next.take(&self.series, &self.collation, point) {
            let message = "a point with two fields of one name can't be told in a bucket";
            return Err(QueryError::new(Code::BadValue, message));
        }
        Ok(self.open.replace(next))
    }

    fn built(&mut self, bucket: Bucket) -> DocumentBuf {
        self.count += 1;
        bucket.build(&self.series, self.count)
    }
}

impl Iterator for Buckets {
    type Item = Result<DocumentBuf, QueryError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let point = match self.points.next() {
                None => {
                    let last = self.open.take()?;
                    return Some(Ok(self.built(last)));
                }
                Some(Err(error)) => return Some(Err(error)),
                Some(Ok(point)) => point,
            };
            let (series, collation) = (&self.series, &self.collation);
            if self.open.as_mut().is_some_and(|open| open.take(series, collation, point.view())) {
                continue;
            }
            match self.begin(point.view()) {
                Err(error) => return Some(Err(error)),
                Ok(Some(full)) => return Some(Ok(self.built(full))),
                Ok(None) => {}
            }
        }
    }
}

/// The values of one field.
struct Column {
    name: String,
    /// Whether it is the source's, which has its place among the columns and no values there.
    is_meta: bool,
    /// The values, each named by its point's number.
    values: DocumentBuilder,
    least: Extreme,
    greatest: Extreme,
}

/// A bucket that is being filled.
struct Bucket {
    /// The points' source, as an element.
    meta: Option<(ElementType, Vec<u8>)>,
    /// The time from which on points are in it, in milliseconds, and from which on they aren't.
    begin: i64,
    end: i64,
    columns: Vec<Column>,
    count: usize,
    bytes: usize,
}

impl Bucket {
    fn begin(series: &Series, point: Document<'_>) -> Bucket {
        let time = time_of(series, point);
        let rounding = series.rounding_seconds.saturating_mul(1_000);
        let begin = time.saturating_sub(time.rem_euclid(rounding));
        let end = begin.saturating_add(series.span_seconds.saturating_mul(1_000));
        let meta = meta_of(series, point);
        Bucket { meta, begin, end, columns: Vec::new(), count: 0, bytes: 0 }
    }

    /// Takes a point, if it belongs here and there is room.
    fn take(&mut self, series: &Series, collation: &Collation, point: Document<'_>) -> bool {
        let bytes = point.as_bytes().len();
        let is_full = self.count == POINT_COUNT_MAX
            || 0 < self.count && BYTES_MAX < self.bytes + bytes
            || !(self.begin..self.end).contains(&time_of(series, point))
            || self.meta != meta_of(series, point);
        if is_full || !self.has_order_of(point) {
            return false;
        }
        let number = self.count.to_string();
        let mut next = 0;
        for element in point.elements() {
            next = self.column_at(next, series, &element) + 1;
            self.columns[next - 1].push(&number, collation, &element);
        }
        self.count += 1;
        self.bytes += bytes;
        true
    }

    /// Whether the point's fields, each of another name, stand in the order of the columns.
    fn has_order_of(&self, point: Document<'_>) -> bool {
        let (mut next, mut new) = (0, HashSet::new());
        point.elements().all(|element| {
            let is_named = |column: &Column| column.name.as_bytes() == element.name;
            if self.columns.get(next).is_some_and(is_named) {
                next += 1;
                return true;
            }
            match self.columns.iter().position(is_named) {
                Some(position) if position < next => false,
                Some(position) => {
                    next = position + 1;
                    true
                }
                None => new.insert(element.name),
            }
        })
    }

    /// The column of a field, `next` or one behind it; a new one there if it has none.
    fn column_at(&mut self, next: usize, series: &Series, element: &RawElement<'_>) -> usize {
        let is_named = |column: &Column| column.name.as_bytes() == element.name;
        if let Some(ahead) = self.columns[next..].iter().position(is_named) {
            return next + ahead;
        }
        let name = element.name().unwrap_or_default().to_owned();
        let is_meta = series.meta.as_ref() == Some(&name);
        let (values, least, greatest) = (DocumentBuilder::new(), Extreme::None, Extreme::None);
        self.columns.insert(next, Column { name, is_meta, values, least, greatest });
        next
    }

    fn build(self, series: &Series, counter: u32) -> DocumentBuf {
        let seconds = self.begin.div_euclid(1_000);
        let position = self.columns.iter().position(|column| column.is_meta);
        let position = position.unwrap_or(self.columns.len());
        let columns = || self.columns.iter().filter(|column| !column.is_meta);
        let mut bucket = DocumentBuilder::with_capacity(self.bytes);
        bucket.append("_id", Value::ObjectId(id(seconds, position, counter)));
        bucket.begin_document("control").append("version", Value::Int32(PLAIN as i32));
        bucket.begin_document("min");
        for column in columns() {
            if column.name == series.time {
                bucket.append(&column.name, Value::DateTime(self.begin));
            } else {
                column.least.append_to(&column.name, &mut bucket);
            }
        }
        bucket.end().begin_document("max");
        columns().for_each(|column| column.greatest.append_to(&column.name, &mut bucket));
        bucket.end().end();
        if let Some((kind, value)) = &self.meta {
            bucket.append_element(&RawElement { kind: *kind, name: b"meta", value });
        }
        bucket.begin_document("data");
        for column in self.columns.into_iter().filter(|column| !column.is_meta) {
            bucket.append(&column.name, Value::Document(column.values.build().view()));
        }
        bucket.end();
        bucket.build()
    }
}

impl Column {
    fn push(&mut self, number: &str, collation: &Collation, element: &RawElement<'_>) {
        if self.is_meta {
            return;
        }
        self.values.append_element(&RawElement { name: number.as_bytes(), ..*element });
        let Some(value) = element.decode() else { return };
        self.least.take(value, Side::Least, collation);
        self.greatest.take(value, Side::Greatest, collation);
    }
}

/// A point's time: each has one.
fn time_of(series: &Series, point: Document<'_>) -> i64 {
    match point.get(&series.time) {
        Some(Value::DateTime(time)) => time,
        _ => 0,
    }
}

/// A point's source as an element: sources of one bucket are the same to the byte.
fn meta_of(series: &Series, point: Document<'_>) -> Option<(ElementType, Vec<u8>)> {
    let meta = point.field(series.meta.as_ref()?.as_bytes())?;
    Some((meta.kind, meta.value.to_vec()))
}
