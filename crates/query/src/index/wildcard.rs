//! Wildcard indexes: every leaf of a document is filed under its path and its value.
//!
//! 1. Documents are walked into, names joined with dots; an empty document is a leaf.
//! 2. Arrays are walked into without their positions; an element that is an array itself is a leaf,
//!    as a whole. An empty array is a leaf, undefined, as in other indexes.
//! 3. `{"a.$**": 1}` takes what lies at and below `a`; a `wildcardProjection` of `{"$**": 1}` takes
//!    the paths that it names, or all but these. `_id` is taken only if that is asked for.
//! 4. Other fields of a compound wildcard index are filed by their values, once with each leaf;
//!    they and the leaves may not both be in arrays.
//!
//! A wildcard index is sparse: a document without leaves is not filed.

use frond_doc::{Document, Value, ValueBuf};

use super::{FieldKind, IndexField};
use crate::code::Code;
use crate::error::QueryError;
use crate::keys;
use crate::sort_field::SortField;

/// The leaves that a wildcard index covers.
#[derive(Clone, Debug)]
pub(super) struct Wildcard {
    /// Place of the field.
    place: usize,
    /// The beginning of leaves' paths; all leaves, if it is empty.
    root: String,
    /// Paths, and whether they are those that are taken.
    projection: Option<(Vec<String>, bool)>,
    /// Whether `_id` is.
    takes_id: bool,
}

/// A leaf.
struct Leaf<'d> {
    path: String,
    value: Value<'d>,
    is_in_array: bool,
}

impl Wildcard {
    /// The wildcard among `fields`.
    ///
    /// # Errors
    /// `CannotCreateIndex` for two of them, or one beside hashes, places or terms;
    /// `FailedToParse`, `BadValue`, 51271 for a projection that is none.
    pub(super) fn of_fields(
        fields: &[IndexField],
        projection: Option<Document<'_>>,
    ) -> Result<Option<Wildcard>, QueryError> {
        let refuse = |code, message: &str| Err(QueryError::new(code, message));
        let mut places =
            (0..fields.len()).filter(|place| fields[*place].kind == FieldKind::Wildcard);
        let Some(place) = places.next() else {
            return match projection {
                Some(_) => refuse(
                    Code::BadValue,
                    "The field 'wildcardProjection' is only allowed in an 'wildcard' index",
                ),
                None => Ok(None),
            };
        };
        if places.next().is_some() {
            let message = "wildcard indexes do not allow compounding with another wildcard";
            return refuse(Code::CannotCreateIndex, message);
        }
        // Its leaves go beside values only: each other kind files in a way of its own.
        let is_filed = |kind| matches!(kind, FieldKind::Wildcard | FieldKind::Value);
        if !fields.iter().all(|field| is_filed(field.kind)) {
            let message = "Can't use more than one index plugin for a single index.";
            return refuse(Code::CannotCreateIndex, message);
        }
        let root = fields[place].path.clone();
        let Some(projection) = projection else {
            return Ok(Some(Wildcard { place, takes_id: root == "_id", root, projection: None }));
        };
        if !root.is_empty() {
            let message =
                "The field 'wildcardProjection' is only allowed when 'key' is {\"$**\": ±1}";
            return refuse(Code::FailedToParse, message);
        }
        let mut named = Named::default();
        named.add("", projection, 0)?;
        let Named { paths, takes, takes_id } = named;
        if paths.is_empty() && takes_id.is_none() {
            let message = "The 'wildcardProjection' field can't be an empty object";
            return refuse(Code::FailedToParse, message);
        }
        // Only `_id` is named: all others are taken, or none.
        let takes = takes.unwrap_or(takes_id == Some(true) && paths.is_empty());
        let takes_id = takes_id.unwrap_or(false);
        Ok(Some(Wildcard { place, root, projection: Some((paths, takes)), takes_id }))
    }

    /// Whether leaves at `path` are filed.
    pub(super) fn takes(&self, path: &str) -> bool {
        if !self.root.is_empty() && !is_at_or_below(path, &self.root) {
            return false;
        }
        if is_at_or_below(path, "_id") {
            return self.takes_id;
        }
        match &self.projection {
            None => true,
            Some((paths, takes)) => paths.iter().any(|outer| is_at_or_below(path, outer)) == *takes,
        }
    }

    /// Whether all leaves at and below `path` are filed.
    pub(super) fn takes_all_below(&self, path: &str) -> bool {
        let leaves_out = match &self.projection {
            Some((paths, false)) => paths.iter().any(|outer| is_at_or_below(outer, path)),
            _ => false,
        };
        self.takes(path) && !leaves_out
    }

    /// Calls `emit` with the parts of each key: in the place of the wildcard, path and value.
    /// Returns which fields met an array.
    pub(super) fn for_each<'d>(
        &self,
        plain: &[SortField],
        document: Document<'d>,
        emit: &mut dyn FnMut(&[Option<Value<'_>>]),
    ) -> Result<u64, QueryError> {
        let mut leaves = Vec::new();
        self.collect(String::new(), document, false, &mut leaves);
        let mut others: Vec<SortField> = plain.to_vec();
        others.remove(self.place);
        let mut rows: Vec<Vec<Option<ValueBuf>>> = Vec::new();
        let arrays = keys::for_each(&others, document, &mut |values| {
            rows.push(values.iter().map(|value| value.map(|value| value.to_buf())).collect());
        })?;
        if arrays != 0 {
            let path = others.get(arrays.trailing_zeros() as usize).map_or("", |field| &field.path);
            let message = format!(
                "Field '{path}' of a compound wildcard index is an array, and only the wildcard \
                 field may have some"
            );
            return Err(QueryError::new(Code::Location(7_246_301), message));
        }
        let in_array = leaves.iter().any(|leaf| leaf.is_in_array);
        for leaf in &leaves {
            for row in &rows {
                let value_of = |value: &'_ Option<ValueBuf>| -> Option<ValueBuf> { value.clone() };
                let row: Vec<Option<ValueBuf>> = row.iter().map(value_of).collect();
                let mut parts: Vec<Option<Value<'_>>> =
                    row.iter().map(|value| value.as_ref().map(ValueBuf::as_value)).collect();
                parts.insert(self.place, Some(leaf.value));
                parts.insert(self.place, Some(Value::String(&leaf.path)));
                emit(&parts);
            }
        }
        Ok(u64::from(in_array) << self.place)
    }

    /// Recursion follows the document's nesting, which validation has bounded.
    fn collect<'d>(
        &self,
        outer: String,
        document: Document<'d>,
        is_in_array: bool,
        leaves: &mut Vec<Leaf<'d>>,
    ) {
        for (name, value) in document.iter() {
            let path = if outer.is_empty() { name.to_owned() } else { format!("{outer}.{name}") };
            self.collect_value(path, value, is_in_array, leaves);
        }
    }

    fn collect_value<'d>(
        &self,
        path: String,
        value: Value<'d>,
        is_in_array: bool,
        leaves: &mut Vec<Leaf<'d>>,
    ) {
        match value {
            Value::Document(inner) if !inner.is_empty() => {
                self.collect(path, inner, is_in_array, leaves);
            }
            Value::Array(array) if array.is_empty() => {
                self.leaf(path, Value::Undefined, true, leaves);
            }
            Value::Array(array) => {
                for element in array.iter() {
                    match element {
                        Value::Array(_) => self.leaf(path.clone(), element, true, leaves),
                        _ => self.collect_value(path.clone(), element, true, leaves),
                    }
                }
            }
            _ => self.leaf(path, value, is_in_array, leaves),
        }
    }

    fn leaf<'d>(
        &self,
        path: String,
        value: Value<'d>,
        is_in_array: bool,
        leaves: &mut Vec<Leaf<'d>>,
    ) {
        if self.takes(&path) {
            leaves.push(Leaf { path, value, is_in_array });
        }
    }
}

/// The paths that a projection names.
#[derive(Default)]
struct Named {
    paths: Vec<String>,
    takes: Option<bool>,
    takes_id: Option<bool>,
}

impl Named {
    fn add(
        &mut self,
        outer: &str,
        projection: Document<'_>,
        depth: usize,
    ) -> Result<(), QueryError> {
        let refuse = |message: String| Err(QueryError::new(Code::FailedToParse, message));
        if depth > 100 {
            return refuse("wildcardProjection is nested too deeply".to_owned());
        }
        for (name, value) in projection.iter() {
            let path = if outer.is_empty() { name.to_owned() } else { format!("{outer}.{name}") };
            if name.starts_with('$') || name.is_empty() {
                return refuse(format!("wildcardProjection can't hold the field '{name}'"));
            }
            let takes = match value {
                Value::Document(inner) if !inner.is_empty() => {
                    self.add(&path, inner, depth + 1)?;
                    continue;
                }
                Value::Boolean(takes) => takes,
                _ if value.is_number() => value.is_truthy(),
                _ => {
                    let message = format!("wildcardProjection can't compute the field '{path}'");
                    return Err(QueryError::new(Code::Location(51271), message));
                }
            };
            if path == "_id" {
                self.takes_id = Some(takes);
                continue;
            }
            if self.takes.is_some_and(|before| before != takes) {
                let kind = if takes { "inclusion" } else { "exclusion" };
                let other = if takes { "exclusion" } else { "inclusion" };
                let message = format!("Cannot do {kind} on field {path} in {other} projection");
                return Err(QueryError::new(Code::Location(31253 + i32::from(!takes)), message));
            }
            self.takes = Some(takes);
            self.paths.push(path);
        }
        Ok(())
    }
}

/// Whether `path` is `outer` or begins with it and a dot.
fn is_at_or_below(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
