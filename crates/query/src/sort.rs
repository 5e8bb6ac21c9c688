//! Sort patterns: `{a: 1, b: -1}`.
//!
//! A document's sort key is the least of the keys under which an index with the pattern's fields
//! would file it, so that an index scan and a sort agree, also on arrays.

use bytes::Bytes;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};

use crate::code::Code;
use crate::collation::Collation;
use crate::error::QueryError;
use crate::large::{Depth, NeededPaths};
use crate::metadata::{Metadata, MetadataKind};
use crate::sort_field::REFERENCE_NAMES;
pub use crate::sort_field::SortField;
use crate::{keys, number, text};

/// A sort has at most so many fields, as an index has.
const FIELDS_MAX: usize = 32;

/// A parsed sort pattern.
#[derive(Clone, Debug)]
pub struct SortPattern {
    /// Paths and directions, in their order.
    pub fields: Vec<SortField>,
    /// The rules by which strings compare.
    pub collation: Collation,
}

impl SortPattern {
    /// Returns the paths at which a sort looks.
    pub fn needed_paths(&self) -> NeededPaths {
        let mut needed = NeededPaths::default();
        self.fields.iter().for_each(|field| needed.add(&field.path, Depth::Whole));
        needed
    }

    /// The outermost fields that decide about a document's place. Their parts at the paths don't:
    /// an array's elements that aren't documents sort as null, and a projection leaves them out.
    pub fn deciding_names(&self) -> impl Iterator<Item = String> {
        self.fields.iter().filter_map(|field| field.path.split('.').next().map(str::to_owned))
    }

    /// Parses `{field: 1 | -1, ...}`.
    ///
    /// # Errors
    /// For other values than 1 and -1 (as integers: 1.9 is 1), `$meta`, paths that are none
    /// (`$natural` is one), and more than 32 fields.
    pub fn parse(pattern: Document<'_>) -> Result<SortPattern, QueryError> {
        let parsed = SortPattern::parse_search(pattern)?;
        parsed.metadata().refuse()?;
        Ok(parsed)
    }

    /// As [`SortPattern::parse`], for what a search has found: `{$meta: "textScore"}` sorts the
    /// best first.
    ///
    /// # Errors
    /// As [`SortPattern::parse`], but for `$meta`.
    pub fn parse_search(pattern: Document<'_>) -> Result<SortPattern, QueryError> {
        let mut fields = Vec::new();
        for (path, value) in pattern.iter() {
            if fields.iter().any(|field: &SortField| field.path == path) {
                let message =
                    format!("$sort key must not contain duplicate keys (field: '{path}')");
                return Err(QueryError::new(Code::Location(7_472_500), message));
            }
            if let Value::Document(expression) = value {
                let kind = metadata_of(expression)?;
                // The nearest first, but the best.
                let descending = kind != MetadataKind::GeoNearDistance;
                fields.push(SortField { path: kind.field().to_owned(), descending });
                continue;
            }
            if !value.is_number() {
                return Err(QueryError::new(
                    Code::Location(15974),
                    format!("Illegal key in $sort specification: {}", text::field(path, value)),
                ));
            }
            let descending = match number::rounded(value) {
                Some(1) => false,
                Some(-1) => true,
                _ => return Err(wrong_direction()),
            };
            check_field_path(path)?;
            fields.push(SortField { path: path.to_owned(), descending });
        }
        if fields.len() > FIELDS_MAX {
            return Err(QueryError::new(Code::Location(13103), "too many compound keys"));
        }
        Ok(SortPattern { fields, collation: Collation::SIMPLE })
    }

    /// Whether a document may have no place in this order: two of its fields may lie in different
    /// arrays, or one at a position that is a field's name, too.
    pub(crate) fn may_refuse(&self) -> bool {
        may_refuse(self.fields.iter().map(|field| field.path.as_str()))
    }

    /// As [`may_refuse`](Self::may_refuse), of documents that are stored: no array is an `_id`.
    pub(crate) fn may_refuse_stored(&self) -> bool {
        let paths = self.fields.iter().map(|field| field.path.as_str());
        may_refuse(paths.filter(|path| *path != "_id"))
    }

    /// The field `_id`, if the order is its own: it is the first, and what stands behind it, which
    /// changes nothing since `_id`s are unique and never arrays, refuses no document either.
    pub fn id_field(&self) -> Option<&SortField> {
        let first = self.fields.first().filter(|field| field.path == "_id")?;
        (self.collation.is_simple() && !self.may_refuse_stored()).then_some(first)
    }

    /// Returns the metadata of the search that it sorts by.
    pub fn metadata(&self) -> Metadata {
        let mut metadata = Metadata::default();
        let kinds = self.fields.iter().filter_map(|field| MetadataKind::of_field(&field.path));
        kinds.for_each(|kind| metadata.insert(kind));
        metadata
    }

    /// The key by which `document` is sorted: keys compare as bytes. Of an array the least element
    /// counts (the greatest where descending), an empty array sorts as undefined before null, an
    /// absent field as null.
    ///
    /// # Errors
    /// `BadValue` where two fields lie in different arrays: they have no common keys.
    pub fn key(&self, document: Document<'_>) -> Result<Bytes, QueryError> {
        self.key_by(document, &self.collation)
    }

    /// Appends [`key`](Self::key)'s bytes.
    ///
    /// # Errors
    /// As [`SortPattern::key`].
    pub fn append(&self, key: &mut Vec<u8>, document: Document<'_>) -> Result<(), QueryError> {
        self.append_key(key, document, &self.collation)
    }

    /// As [`SortPattern::key`], by another collation than the pattern's own.
    pub(crate) fn key_by(
        &self,
        document: Document<'_>,
        collation: &Collation,
    ) -> Result<Bytes, QueryError> {
        let mut key = Vec::with_capacity(16 * self.fields.len());
        self.append_key(&mut key, document, collation)?;
        Ok(key.into())
    }

    /// Appends [`key_by`](Self::key_by)'s bytes.
    pub(crate) fn append_key(
        &self,
        key: &mut Vec<u8>,
        document: Document<'_>,
        collation: &Collation,
    ) -> Result<(), QueryError> {
        let begin = key.len();
        for field in &self.fields {
            let Some(value) = only_value(document, &field.path) else {
                // An array is on the way.
                key.truncate(begin);
                key.extend_from_slice(&least_key(&self.fields, document, collation)?);
                return Ok(());
            };
            collation.append_key(key, value, field.descending);
        }
        Ok(())
    }

    /// Returns the sort key of `document`, as a document whose only field is the array of a value
    /// for each field.
    pub fn sort_key(&self, document: Document<'_>, collation: &Collation) -> DocumentBuf {
        let plain = self.fields.iter().map(|field| only_value(document, &field.path));
        let values = plain
            .collect::<Option<Vec<_>>>()
            .or_else(|| least_values(&self.fields, document, collation))
            .unwrap_or_default();
        let mut key = DocumentBuilder::new();
        key.begin_array("");
        for value in values {
            key.push(value);
        }
        key.end();
        key.build()
    }

    /// Compares strings by `collation`.
    pub fn with_collation(self, collation: Collation) -> SortPattern {
        SortPattern { collation, ..self }
    }
}

/// The kind of metadata that stands in the place of a direction.
fn metadata_of(expression: Document<'_>) -> Result<MetadataKind, QueryError> {
    let refuse = |code, message: String| Err(QueryError::new(Code::Location(code), message));
    let mut fields = expression.iter();
    let Some(("$meta", name)) = fields.next() else {
        return refuse(
            17312,
            "$meta is the only expression supported by $sort right now".to_owned(),
        );
    };
    if fields.next().is_some() {
        let message = "Cannot have additional keys in a $meta sort specification";
        return Err(QueryError::new(Code::FailedToParse, message));
    }
    match MetadataKind::parse(name) {
        Ok(
            kind
            @ (MetadataKind::TextScore | MetadataKind::GeoNearDistance | MetadataKind::RandVal),
        ) => Ok(kind),
        // Nothing here leaves it; MongoDB sorts by it.
        Err(absent) if matches!(name, Value::String("searchScore" | "vectorSearchScore")) => {
            Err(absent)
        }
        _ => refuse(31138, format!("Illegal $meta sort: {}", text::field("$meta", name))),
    }
}

/// Whether a document may have no place in an order by these paths.
fn may_refuse<'p>(paths: impl Iterator<Item = &'p str>) -> bool {
    let mut paths = paths.filter(|path| MetadataKind::of_field(path).is_none());
    let is_position = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    match (paths.next(), paths.next()) {
        (Some(only), None) => only.split('.').skip(1).any(is_position),
        (first, _) => first.is_some(),
    }
}

fn parallel_arrays() -> QueryError {
    QueryError::new(Code::BadValue, "cannot sort with keys that are parallel arrays")
}

fn wrong_direction() -> QueryError {
    QueryError::new(
        Code::Location(15975),
        "$sort key ordering must be 1 (for ascending) or -1 (for descending)",
    )
}

/// The value at a path, null where there is none; `None` if there is an array on the way.
fn only_value<'d>(document: Document<'d>, dotted: &str) -> Option<Value<'d>> {
    let mut at = Value::Document(document);
    for part in dotted.split('.') {
        at = match at {
            Value::Document(inner) => match inner.get(part) {
                Some(value) => value,
                None => return Some(Value::Null),
            },
            Value::Array(_) => return None,
            _ => return Some(Value::Null),
        };
    }
    if let Value::Array(_) = at { None } else { Some(at) }
}

fn least_key(
    fields: &[SortField],
    document: Document<'_>,
    collation: &Collation,
) -> Result<Vec<u8>, QueryError> {
    let mut least: Option<Vec<u8>> = None;
    let mut key = Vec::with_capacity(16 * fields.len());
    keys::for_each(fields, document, &mut |values| {
        key.clear();
        keys::append(&mut key, fields, values, collation);
        if least.as_ref().is_none_or(|least| key < *least) {
            least = Some(key.clone());
        }
    })
    .map_err(|error| match error.code {
        Code::CannotIndexParallelArrays => parallel_arrays(),
        _ => error,
    })?;
    Ok(least.unwrap_or_default())
}

/// The values of the least key.
fn least_values<'d>(
    fields: &[SortField],
    document: Document<'d>,
    collation: &Collation,
) -> Option<Vec<Value<'d>>> {
    let mut least: Option<(Vec<u8>, Vec<Value<'d>>)> = None;
    keys::for_each(fields, document, &mut |values| {
        let mut key = Vec::new();
        keys::append(&mut key, fields, values, collation);
        if least.as_ref().is_none_or(|(least, _)| key < *least) {
            let values = values.iter().map(|value| value.unwrap_or(Value::Null));
            least = Some((key, values.collect()));
        }
    })
    .ok()?;
    least.map(|(_, values)| values)
}

/// Checks that `path` can be a field's path.
pub(crate) fn check_field_path(path: &str) -> Result<(), QueryError> {
    let refuse = |code, message: &str| Err(QueryError::new(Code::Location(code), message));
    if path.is_empty() {
        return refuse(40352, "FieldPath cannot be constructed with empty string");
    }
    if path.ends_with('.') {
        return refuse(40353, "FieldPath must not end with a '.'.");
    }
    for part in path.split('.') {
        if part.is_empty() {
            return refuse(15998, "FieldPath field names may not be empty strings.");
        }
        if part.starts_with('$') && !REFERENCE_NAMES.contains(&part) {
            return refuse(
                16410,
                "FieldPath field names may not start with '$'. Consider using $getField or \
                 $setField.",
            );
        }
    }
    Ok(())
}

/// The direction of an index's field: any positive or negative number.
///
/// # Errors
/// For zero and whatever is no number (`"text"`, `"2dsphere"`, `"hashed"`).
pub fn index_field(path: &str, value: Value<'_>) -> Result<SortField, QueryError> {
    check_field_path(path)
        .map_err(|error| QueryError::new(Code::CannotCreateIndex, error.message))?;
    let number = match value {
        Value::Double(number) => number,
        _ if value.is_number() => value.as_integer().unwrap_or(0) as f64,
        _ => f64::NAN,
    };
    if number.is_nan() || number == 0.0 {
        return Err(QueryError::new(
            Code::CannotCreateIndex,
            format!(
                "Values in the index key pattern must be numbers above or below 0, found {}",
                text::field(path, value)
            ),
        ));
    }
    Ok(SortField { path: path.to_owned(), descending: number < 0.0 })
}

#[cfg(test)]
mod tests {
    use frond_doc::{DocumentBuf, extended_json};

    use super::*;

    fn json(text: &str) -> DocumentBuf {
        extended_json::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn arrays_in_parallel_have_no_order() {
        for (pattern, document, code) in [
            (r#"{"a": 1, "b": 1}"#, r#"{"a": [1, 2], "b": [3, 4]}"#, Some(2)),
            (r#"{"a": 1, "b": -1}"#, r#"{"a": [], "b": []}"#, Some(2)),
            (r#"{"a.x": 1, "b.y": 1}"#, r#"{"a": [{"x": 1}], "b": [{"y": 1}]}"#, Some(2)),
            (r#"{"c": 1, "a": 1, "b": 1}"#, r#"{"c": 1, "a": [1], "b": [2]}"#, Some(2)),
            (r#"{"a.x": 1, "a.y": 1}"#, r#"{"a": [{"x": 1, "y": 2}, {"x": 3}]}"#, None),
            (r#"{"a": 1, "b": 1}"#, r#"{"a": [1, 2], "b": 3}"#, None),
            (r#"{"a": 1, "b": 1}"#, "{}", None),
            (r#"{"a.0": 1}"#, r#"{"a": [{"0": 1}]}"#, Some(16746)),
        ] {
            let pattern = SortPattern::parse(json(pattern).view()).expect(pattern);
            let key = pattern.key(json(document).view());
            assert_eq!(key.err().map(|error| error.code.number()), code, "{document}");
        }
    }

    #[test]
    fn a_sort_has_32_fields_at_most() {
        for (count, code) in [(32, None), (33, Some(13103))] {
            let mut pattern = DocumentBuilder::new();
            (0..count).for_each(|field| {
                pattern.append(&format!("f{field}"), Value::Int32(1));
            });
            let parsed = SortPattern::parse(pattern.build().view());
            assert_eq!(parsed.err().map(|error| error.code.number()), code);
        }
    }
}
