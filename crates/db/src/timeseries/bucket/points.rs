//! Buckets into points. The input is checked: it comes from a client's insert.

use std::collections::HashMap;

use frond_doc::column::{self, COLUMN_SUBTYPE, ColumnValue};
use frond_doc::raw::RawElement;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::Code;

use super::{COMPRESSED, PLAIN, meta_position};
use crate::error::Error;
use crate::timeseries::Series;

/// Points in a bucket: more than any server makes.
const POINT_COUNT_MAX: usize = 100_000;
/// Bytes of a bucket's points together.
const POINTS_BYTES_MAX: usize = 64 << 20;

/// The points of a bucket, each as it was but for the order of its fields, which only our own
/// buckets hold.
///
/// # Errors
/// `DocumentValidationFailure` (121) for what is no bucket, or more than a bucket.
pub(crate) fn points(series: &Series, bucket: Document<'_>) -> Result<Vec<DocumentBuf>, Error> {
    let version = document(bucket, "control")?.get("version").and_then(|it| it.as_integer());
    let data = document(bucket, "data")?;
    let Some(times) = data.field(series.time.as_bytes()) else {
        return refuse(format!("'data' has no '{}'", series.time));
    };
    let mut points = match version {
        Some(PLAIN) => Points::numbered(column_by_number(&times)?)?,
        Some(version) if COMPRESSED.contains(&version) => {
            let times = compressed(&times, POINTS_BYTES_MAX)?;
            Points::counted(times.len())?
        }
        _ => return refuse("'control.version' is 1, 2 or 3".to_owned()),
    };
    let before = match bucket.get("_id") {
        Some(Value::ObjectId(id)) => meta_position(id),
        _ => None,
    };
    let meta = bucket.field(b"meta");
    let column = series.meta.as_ref().and_then(|name| data.field(name.as_bytes()));
    if column.is_some() || meta.is_some() && series.meta.is_none() {
        return refuse("the source is in 'meta', where points have one".to_owned());
    }
    let mut meta = meta.zip(series.meta.as_ref());
    for (position, column) in data.elements().enumerate() {
        if before.is_some_and(|before| before <= position) {
            points.add_meta(meta.take())?;
        }
        points.add_column(&column, version == Some(PLAIN))?;
        // As MongoDB shows them.
        if before.is_none() && column.name == series.time.as_bytes() {
            points.add_meta(meta.take())?;
        }
    }
    points.add_meta(meta.take())?;
    points.build()
}

/// Points whose fields are being added.
struct Points<'a> {
    points: Vec<DocumentBuilder>,
    /// Their numbers, where the bucket has values by number.
    numbers: HashMap<&'a [u8], usize>,
    bytes_left: usize,
}

impl<'a> Points<'a> {
    fn numbered(times: Document<'a>) -> Result<Points<'a>, Error> {
        let names = times.elements().map(|time| time.name);
        let numbers: HashMap<&[u8], usize> = names.zip(0..).collect();
        let points = Points::counted(times.elements().count())?;
        if numbers.len() != points.points.len() {
            return refuse("two points have one number".to_owned());
        }
        Ok(Points { numbers, ..points })
    }

    fn counted(count: usize) -> Result<Points<'a>, Error> {
        if POINT_COUNT_MAX < count {
            return refuse(format!("it has more than {POINT_COUNT_MAX} points"));
        }
        let points = (0..count).map(|_| DocumentBuilder::new()).collect();
        Ok(Points { points, numbers: HashMap::new(), bytes_left: POINTS_BYTES_MAX })
    }

    fn add_meta(&mut self, meta: Option<(RawElement<'_>, &String)>) -> Result<(), Error> {
        let Some((meta, name)) = meta else { return Ok(()) };
        let element = RawElement { name: name.as_bytes(), ..meta };
        (0..self.points.len()).try_for_each(|point| self.add(point, &element))
    }

    fn add_column(&mut self, column: &RawElement<'_>, is_plain: bool) -> Result<(), Error> {
        let name = column.name;
        if is_plain {
            for value in column_by_number(column)?.elements() {
                let Some(&point) = self.numbers.get(value.name) else {
                    return refuse("a value is of no point".to_owned());
                };
                self.add(point, &RawElement { name, ..value })?;
            }
            return Ok(());
        }
        let values = compressed(column, self.bytes_left)?;
        if self.points.len() < values.len() {
            return refuse("a column has more values than there are points".to_owned());
        }
        for (point, value) in values.iter().enumerate() {
            if let Some(value) = value {
                self.add(point, &value.named(name))?;
            }
        }
        Ok(())
    }

    fn add(&mut self, point: usize, element: &RawElement<'_>) -> Result<(), Error> {
        let bytes = element.name.len() + element.value.len() + 2;
        let Some(left) = self.bytes_left.checked_sub(bytes) else {
            return refuse(format!("its points have more than {POINTS_BYTES_MAX} bytes"));
        };
        self.bytes_left = left;
        self.points[point].append_element(element);
        Ok(())
    }

    /// Builds the points. Differences may make an invalid text: so the points are validated, like
    /// documents from outside.
    fn build(self) -> Result<Vec<DocumentBuf>, Error> {
        let built = self.points.into_iter().map(|point| {
            DocumentBuf::validated(point.build().into_bytes())
                .or_else(|error| refuse(error.to_string()))
        });
        built.collect()
    }
}

fn document<'a>(bucket: Document<'a>, name: &str) -> Result<Document<'a>, Error> {
    match bucket.get(name).and_then(|value| value.as_document()) {
        Some(document) => Ok(document),
        None => refuse(format!("'{name}' is not a document")),
    }
}

fn column_by_number<'a>(column: &RawElement<'a>) -> Result<Document<'a>, Error> {
    match column.decode() {
        Some(Value::Document(values)) => Ok(values),
        _ => refuse("a column of version 1 is a document".to_owned()),
    }
}

fn compressed(column: &RawElement<'_>, bytes: usize) -> Result<Vec<Option<ColumnValue>>, Error> {
    match column.decode() {
        Some(Value::Binary(binary)) if binary.subtype == COLUMN_SUBTYPE => {
            column::read(binary.bytes, bytes).or_else(|error| refuse(error.to_string()))
        }
        _ => refuse("a column of versions 2 and 3 is a binary of subtype 7".to_owned()),
    }
}

fn refuse<T>(what: String) -> Result<T, Error> {
    let message = format!("Document failed validation: a bucket of a time series: {what}");
    Err(Error::invalid(Code::DocumentValidationFailure, message))
}
