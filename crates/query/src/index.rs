//! The keys that an index has for a document: the one place where kinds of index differ.
//!
//! An [`IndexShape`] is an index's definition, parsed once. [`IndexShape::keys`] gives the keys
//! under which it files a document:
//! 1. A partial index files documents that pass its filter ([`partial`]), a sparse one those in
//!    which a field is there.
//! 2. By the [`FieldKind`]s of its fields the document's values are walked ([`crate::keys`]),
//!    hashed ([`hashed`]), or all of its leaves are taken, each with its path ([`wildcard`]).
//! 3. Each value becomes a *part* of the key, by the index's collation and `frond_doc::key`,
//!    ascending or descending, and its type bits are kept beside the key, so that the value can be
//!    given back ([`decode`]).
//!
//! *Invariants*
//! 1. Keys ascend strictly; each consists of [`IndexShape::parts`] parts, each of which ends by
//!    itself.
//! 2. Flags say which fields met an array; the first is that any did, or that a key was cut. They
//!    are ORed upward in trees.
//! 3. The planner's bounds for a kind ([`crate::planner`]) rest on what is filed here.

pub mod decode;
mod hashed;
pub mod partial;
mod points;
mod terms;
mod wildcard;

use frond_doc::{Document, Value};

use crate::code::Code;
use crate::collation::Collation;
use crate::error::QueryError;
use crate::filter::Filter;
use crate::geometry::grid::Grid;
use crate::geometry::near::Near;
use crate::keys;
use crate::search::TextSpec;
use crate::sort_field::SortField;
use wildcard::Wildcard;

/// Flag: some key doesn't hold all that its document has, since a field of the index met an array,
/// or since the key was cut.
pub const FLAG_INEXACT_KEY: u8 = 1;
/// Flag: on some document's path a field of the index met an array within another's element.
pub const FLAG_NESTED: u8 = 0x40;
/// Fields from this one on share the last flag but [`FLAG_NESTED`] and the engine's.
const FLAGGED_FIELDS: usize = 4;
const _: () = assert!(2 << FLAGGED_FIELDS < FLAG_NESTED);

/// The first and the second part of the terms of a text index, as its key is shown.
pub const TERMS_FIRST: &str = "_fts";
/// See [`TERMS_FIRST`].
pub const TERMS_SECOND: &str = "_ftsx";

/// The kind of an index's field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldKind {
    /// Its values.
    Value,
    /// The cells of the sphere that its places lie in.
    Sphere,
    /// The squares of the plane that its places lie in.
    Plane,
    /// The hash of its value, as `$toHashedIndexKey` gives it.
    Hashed,
    /// All leaves below the path (all of the document, where it is empty): each leaf's path,
    /// ascending, and its value: two parts.
    Wildcard,
    /// The terms of texts, and what each counts: two parts.
    Text,
}

impl FieldKind {
    /// Whether a field of this kind files all places that have a distance as `near` measures it.
    pub fn suits(self, near: &Near) -> bool {
        match self {
            FieldKind::Sphere => !near.is_in_plane(),
            FieldKind::Plane => !near.is_in_metres(),
            _ => false,
        }
    }
}

/// A field of an index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexField {
    /// The dotted path; of a wildcard, what stands before `$**`, without the dot.
    pub path: String,
    /// Whether it goes from the greatest to the least.
    pub descending: bool,
    /// The kind of the field's values.
    pub kind: FieldKind,
}

/// An index's definition, parsed.
#[derive(Clone, Debug)]
pub struct IndexShape {
    fields: Vec<IndexField>,
    /// The fields as paths and directions, where each is of kind `Value`.
    plain: Vec<SortField>,
    /// For each part of a key, whether it descends.
    parts: Vec<bool>,
    sparse: bool,
    partial: Option<Filter>,
    wildcard: Option<Wildcard>,
    text: Option<TextSpec>,
    /// The grid of its field of kind `Plane`.
    grid: Grid,
    /// The part that is a wildcard's path, which no collation touches.
    path_part: Option<usize>,
    collation: Collation,
}

/// A key of an index, and flags for what it can't express.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexKey {
    /// The parts, one after the other.
    pub key: Vec<u8>,
    /// Their type bits, not trimmed: see [`decode`].
    pub bits: Vec<u8>,
}

/// The keys of an index for one document.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct IndexKeys {
    /// Ascend strictly.
    pub keys: Vec<IndexKey>,
    /// [`FLAG_INEXACT_KEY`], [`FLAG_NESTED`] and those of the fields that met an array.
    pub flags: u8,
}

/// The options of an index besides its key.
#[derive(Clone, Default, Debug)]
pub struct ShapeOptions<'a> {
    /// Whether documents without any of the fields are left out.
    pub sparse: bool,
    /// `partialFilterExpression`.
    pub partial: Option<Document<'a>>,
    /// `wildcardProjection`.
    pub wildcard_projection: Option<Document<'a>>,
    /// The texts that a text index files.
    pub text: Option<TextOptions<'a>>,
    /// The grid by which a 2d index divides the plane.
    pub grid: Grid,
    /// The collation by which its keys of strings are ordered.
    pub collation: Collation,
}

/// The options of a text index.
#[derive(Clone, Copy, Debug)]
pub struct TextOptions<'a> {
    /// `weights`
    pub weights: Document<'a>,
    /// `default_language`
    pub default_language: &'a str,
    /// `language_override`
    pub language_override: &'a str,
}

impl IndexShape {
    /// Parses the key of an index, `{path: 1 | -1 | "hashed", ...}`, and the options that matter
    /// here.
    ///
    /// # Errors
    /// `CannotCreateIndex` and MongoDB's other codes for what isn't a key, or doesn't go together.
    pub fn parse(key: Document<'_>, options: ShapeOptions<'_>) -> Result<IndexShape, QueryError> {
        let mut fields = Vec::new();
        for (path, value) in key.iter() {
            // The second part of the terms, which stands behind them.
            if path != TERMS_SECOND || !fields.last().is_some_and(is_text) {
                fields.push(field(path, value)?);
            }
        }
        let text = text(&fields, &options)?;
        let partial = options.partial.map(partial::parse).transpose()?;
        let hashed = fields.iter().filter(|field| field.kind == FieldKind::Hashed).count();
        if hashed > 1 {
            let message = "A maximum of one index field is allowed to be hashed";
            return Err(QueryError::new(Code::Location(31303), message));
        }
        if hashed > 0 && !options.collation.is_simple() {
            let message = "Index plugins do not support collation: hashed";
            return Err(QueryError::new(Code::CannotCreateIndex, message));
        }
        check_plane(&fields, &options.collation)?;
        let wildcard = Wildcard::of_fields(&fields, options.wildcard_projection)?;
        let partial = partial.map(|partial| partial.with_collation(&options.collation));
        let sparse = options.sparse || text.is_some();
        let shape = IndexShape::new(fields, sparse, partial, wildcard);
        Ok(IndexShape { collation: options.collation, grid: options.grid, text, ..shape })
    }

    /// An index of values.
    pub fn of_values(fields: &[SortField], sparse: bool) -> IndexShape {
        let field = |field: &SortField| IndexField {
            path: field.path.clone(),
            descending: field.descending,
            kind: FieldKind::Value,
        };
        IndexShape::new(fields.iter().map(field).collect(), sparse, None, None)
    }

    fn new(
        fields: Vec<IndexField>,
        sparse: bool,
        partial: Option<Filter>,
        wildcard: Option<Wildcard>,
    ) -> IndexShape {
        let mut parts = Vec::new();
        let mut path_part = None;
        for field in &fields {
            if field.kind == FieldKind::Wildcard {
                path_part = Some(parts.len());
                parts.push(false);
            } else if field.kind == FieldKind::Text {
                parts.push(false);
            }
            parts.push(field.descending);
        }
        let plain = |field: &IndexField| SortField {
            path: field.path.clone(),
            descending: field.descending,
        };
        let plain = fields.iter().map(plain).collect();
        let (collation, grid, text) = (Collation::SIMPLE, Grid::default(), None);
        IndexShape {
            fields,
            plain,
            parts,
            sparse,
            partial,
            wildcard,
            text,
            grid,
            path_part,
            collation,
        }
    }

    /// Returns the collation by which its keys of strings are ordered.
    pub fn collation(&self) -> &Collation {
        &self.collation
    }

    /// Returns how its field of kind `Plane` divides the plane.
    pub(crate) fn grid(&self) -> &Grid {
        &self.grid
    }

    /// `near`, ring by ring from the least distance to the greatest: the places of one ring are no
    /// farther than those of the next.
    pub fn rings(&self, near: &Near) -> Vec<Near> {
        near.rings(&self.grid)
    }

    /// Its fields.
    pub fn fields(&self) -> &[IndexField] {
        &self.fields
    }

    /// Paths and directions of its fields, whatever their kinds.
    pub fn sort_fields(&self) -> &[SortField] {
        &self.plain
    }

    /// Returns for each part of a key whether it descends.
    pub fn parts(&self) -> &[bool] {
        &self.parts
    }

    /// Whether documents without any of the fields are left out.
    pub fn is_sparse(&self) -> bool {
        self.sparse
    }

    /// The filter of a partial index.
    pub fn partial(&self) -> Option<&Filter> {
        self.partial.as_ref()
    }

    /// Whether a field of this kind is among its fields.
    pub fn has_kind(&self, kind: FieldKind) -> bool {
        self.fields.iter().any(|field| field.kind == kind)
    }

    /// Whether all fields are filed by their values.
    pub fn is_of_values(&self) -> bool {
        self.fields.iter().all(|field| field.kind == FieldKind::Value)
    }

    /// Returns the texts it files, if it is a text index.
    pub fn text(&self) -> Option<&TextSpec> {
        self.text.as_ref()
    }

    /// Whether a wildcard takes leaves at `path`.
    pub fn wildcard_takes(&self, path: &str) -> bool {
        self.wildcard.as_ref().is_some_and(|wildcard| wildcard.takes(path))
    }

    /// Whether a wildcard takes all leaves at and below `path`.
    pub fn wildcard_takes_all_below(&self, path: &str) -> bool {
        self.wildcard.as_ref().is_some_and(|wildcard| wildcard.takes_all_below(path))
    }

    /// The outermost fields that decide what is filed of a document; `None` if all may.
    pub fn outermost_names(&self) -> Option<Vec<&[u8]>> {
        if self.has_kind(FieldKind::Wildcard) {
            return None;
        }
        let first =
            |path: &'_ str| path.len() - path.split_once('.').map_or(0, |(_, rest)| rest.len() + 1);
        let mut names: Vec<&[u8]> =
            self.fields.iter().map(|field| &field.path.as_bytes()[..first(&field.path)]).collect();
        if let Some(text) = &self.text {
            names.extend(text.outermost_names()?);
        }
        if let Some(partial) = &self.partial {
            names.extend(partial.outermost_names()?);
        }
        Some(names)
    }

    /// The keys under which the index files `document`.
    ///
    /// # Errors
    /// `CannotIndexParallelArrays`, 16746 (as the module `keys` says), 16766 for an array under a
    /// hash.
    pub fn keys(&self, document: Document<'_>) -> Result<IndexKeys, QueryError> {
        if self.partial.as_ref().is_some_and(|partial| !partial.matches(document)) {
            return Ok(IndexKeys::default());
        }
        let mut found = Vec::new();
        if self.has_kind(FieldKind::Hashed) {
            let (values, is_present) = hashed::values(&self.fields, document)?;
            if is_present || !self.sparse {
                found.push(self.key_of(&values));
            }
            return Ok(IndexKeys { keys: found, flags: 0 });
        }
        let mut any_present = false;
        let mut emit = |values: &[Option<Value<'_>>]| {
            any_present |= values.iter().any(Option::is_some);
            found.push(self.key_of(values));
        };
        let arrays = if let Some(text) = &self.text {
            terms::for_each(&self.fields, text, document, &mut emit)?
        } else if self.has_kind(FieldKind::Sphere) || self.has_kind(FieldKind::Plane) {
            points::for_each(&self.fields, &self.grid, document, &mut emit)?
        } else if let Some(wildcard) = &self.wildcard {
            wildcard.for_each(&self.plain, document, &mut emit)?
        } else {
            keys::for_each(&self.plain, document, &mut emit)?
        };
        if self.sparse && !any_present {
            found.clear();
        }
        found.sort_by(|left, right| left.key.cmp(&right.key));
        found.dedup_by(|left, right| left.key == right.key);
        Ok(IndexKeys { keys: found, flags: flags(arrays) })
    }
}

impl IndexShape {
    fn key_of(&self, values: &[Option<Value<'_>>]) -> IndexKey {
        let mut key = Vec::with_capacity(16 * self.parts.len());
        let mut bits = Vec::new();
        for (place, (descending, value)) in self.parts.iter().zip(values).enumerate() {
            decode::append_bits(&mut bits, *value);
            let is_path = self.path_part == Some(place);
            let collation = if is_path { &Collation::SIMPLE } else { &self.collation };
            collation.append_key(&mut key, value.unwrap_or(Value::Null), *descending);
        }
        IndexKey { key, bits }
    }
}

/// The flag of the field at a place; each field has one of its own up to the fourth.
pub fn field_flag(place: usize) -> u8 {
    2 << place.min(FLAGGED_FIELDS)
}

/// The flags for the fields in `arrays`, a bit a field, and whether some were nested.
fn flags(arrays: u64) -> u8 {
    let mut flags = if arrays == 0 { 0 } else { FLAG_INEXACT_KEY };
    if arrays & keys::NESTED != 0 {
        flags |= FLAG_NESTED;
    }
    for place in (0..63).filter(|place| arrays & (1 << place) != 0) {
        flags |= field_flag(place);
    }
    flags
}

fn is_text(field: &IndexField) -> bool {
    field.kind == FieldKind::Text
}

/// Returns the texts to file, if the key asks for terms.
fn text(fields: &[IndexField], options: &ShapeOptions<'_>) -> Result<Option<TextSpec>, QueryError> {
    let refuse = |message: &str| Err(QueryError::new(Code::CannotCreateIndex, message));
    let TextOptions { weights, default_language, language_override } =
        match (fields.iter().filter(|field| is_text(field)).count(), options.text) {
            (0, _) => return Ok(None),
            (1, Some(text)) => text,
            _ => return refuse("the key of a text index has its terms at one place"),
        };
    if !options.collation.is_simple() {
        return refuse("Index plugins do not support collation: text");
    }
    if !fields.iter().all(|field| matches!(field.kind, FieldKind::Text | FieldKind::Value)) {
        return refuse("expected value 1 or -1 for non-text key in compound index");
    }
    TextSpec::new(weights, default_language, language_override).map(Some)
}

/// A 2d index has one field of places, the first, and no collation.
fn check_plane(fields: &[IndexField], collation: &Collation) -> Result<(), QueryError> {
    let refuse = |code: Code, message: &str| Err(QueryError::new(code, message));
    let is_place = |field: &&IndexField| matches!(field.kind, FieldKind::Plane | FieldKind::Sphere);
    match fields.iter().position(|field| field.kind == FieldKind::Plane) {
        None => Ok(()),
        Some(_) if fields.iter().filter(is_place).count() > 1 => {
            refuse(Code::Location(16800), "can't have 2 geo fields")
        }
        Some(0) if collation.is_simple() => Ok(()),
        Some(0) => refuse(Code::CannotCreateIndex, "Index type '2d' does not support collation"),
        Some(_) => refuse(Code::Location(16801), "2d has to be first in index"),
    }
}

/// Reads one field of an index's key pattern.
fn field(path: &str, value: Value<'_>) -> Result<IndexField, QueryError> {
    let refuse = |message: String| Err(QueryError::new(Code::CannotCreateIndex, message));
    if let Value::String(name) = value {
        let kind = match name {
            "hashed" => FieldKind::Hashed,
            "2dsphere" => FieldKind::Sphere,
            "2d" => FieldKind::Plane,
            "text" => FieldKind::Text,
            "wildcard" => {
                let message = "The key pattern value for a wildcard index must be a number";
                return Err(QueryError::new(Code::Location(7_246_202), message));
            }
            _ => return refuse(format!("Unknown index plugin '{name}'")),
        };
        return Ok(IndexField { path: path.to_owned(), descending: false, kind });
    }
    let number = match value {
        Value::Double(number) => Some(number),
        _ if value.is_number() => value.as_integer().map(|number| number as f64),
        _ => None,
    };
    let descending = match number {
        Some(0.0) => return refuse("Values in the index key pattern cannot be 0.".to_owned()),
        Some(number) if !number.is_nan() => number < 0.0,
        _ => {
            return refuse(format!(
                "Values in v:2 index key pattern cannot be of type {}. Only numbers > 0, numbers < 0, \
                 and strings are allowed.",
                value.element_type().alias()
            ));
        }
    };
    let (path, kind) = match path.strip_suffix("$**") {
        Some("") => ("", FieldKind::Wildcard),
        Some(outer) => match outer.strip_suffix('.') {
            Some(outer) => (outer, FieldKind::Wildcard),
            None => (path, FieldKind::Value),
        },
        None => (path, FieldKind::Value),
    };
    Ok(IndexField { path: path.to_owned(), descending, kind })
}

#[cfg(test)]
mod tests;
