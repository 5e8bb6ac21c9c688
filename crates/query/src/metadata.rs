//! Metadata of a document besides its fields: its text score, its distance, and so on.
//!
//! Documents carry it with them through stages, sorts and spills as fields of names that no user
//! gives (they begin with [`MARK`]): the search that finds documents appends what is asked for
//! ([`append`]), `{$meta: ...}` reads it ([`of`]), stages that make new documents hand it on
//! ([`carry`]), and before documents go out it is taken off ([`strip`]). Metadata that isn't asked
//! for is never there, so that searches without it cost nothing.

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};

use crate::code::Code;
use crate::error::QueryError;
use crate::error::failure;

/// The beginning of the names of metadata's fields.
const MARK: &str = "\u{1}";

/// One kind of metadata.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum MetadataKind {
    /// The score of a document for a `$text`.
    TextScore,
    /// The distance of its place from that of a `$near` or `$geoNear`.
    GeoNearDistance,
    /// Its nearest place.
    GeoNearPoint,
    /// The key of the index by which it was found.
    IndexKey,
    /// The key of its record.
    RecordId,
    /// The value by which a `$sample` chose it.
    RandVal,
    /// The key by which it was sorted.
    SortKey,
}

/// The kinds, by the names that users and documents give them.
const KINDS: [(MetadataKind, &str, &str); 7] = [
    (MetadataKind::GeoNearDistance, "geoNearDistance", "\u{1}geoNearDistance"),
    (MetadataKind::GeoNearPoint, "geoNearPoint", "\u{1}geoNearPoint"),
    (MetadataKind::IndexKey, "indexKey", "\u{1}indexKey"),
    (MetadataKind::RandVal, "randVal", "\u{1}randVal"),
    (MetadataKind::RecordId, "recordId", "\u{1}recordId"),
    (MetadataKind::SortKey, "sortKey", "\u{1}sortKey"),
    (MetadataKind::TextScore, "textScore", "\u{1}textScore"),
];

/// Kinds that MongoDB has and no search here leaves.
const ABSENT: [&str; 7] = [
    "searchHighlights",
    "searchScore",
    "searchScoreDetails",
    "searchSequenceToken",
    "timeseriesBucketMaxTime",
    "timeseriesBucketMinTime",
    "vectorSearchScore",
];

impl MetadataKind {
    /// The kind that a `$meta` names.
    ///
    /// # Errors
    /// 17307 and 17308 for what is none, 40218 for one that nothing here leaves.
    pub(crate) fn parse(name: Value<'_>) -> Result<MetadataKind, QueryError> {
        let Value::String(name) = name else {
            return Err(failure(17307, "$meta only supports string arguments"));
        };
        if let Some((kind, ..)) = KINDS.iter().find(|(_, known, _)| *known == name) {
            return Ok(*kind);
        }
        match ABSENT.contains(&name) {
            true => Err(unavailable(name)),
            false => Err(failure(17308, format!("Unsupported argument to $meta: {name}"))),
        }
    }

    /// The name of the field in which documents carry it.
    pub(crate) fn field(self) -> &'static str {
        KINDS.iter().find(|(kind, ..)| *kind == self).map_or("", |(.., field)| field)
    }

    /// The kind whose field has this name.
    pub(crate) fn of_field(name: &str) -> Option<MetadataKind> {
        KINDS.iter().find(|(.., field)| *field == name).map(|(kind, ..)| *kind)
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }

    /// The error of a caller that asks for what isn't there.
    pub fn unavailable(self) -> QueryError {
        match self {
            MetadataKind::TextScore => unavailable("text score"),
            MetadataKind::GeoNearDistance => unavailable("$geoNear distance"),
            MetadataKind::GeoNearPoint => unavailable("$geoNear point"),
            MetadataKind::IndexKey => unavailable("index key"),
            MetadataKind::RecordId => unavailable("record id"),
            MetadataKind::RandVal => unavailable("rand val"),
            MetadataKind::SortKey => unavailable("sort key"),
        }
    }
}

fn unavailable(name: &str) -> QueryError {
    let message = format!("query requires {name} metadata, but it is not available");
    QueryError::new(Code::Location(40218), message)
}

/// A set of kinds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Metadata(u8);

impl Metadata {
    /// Adds a kind.
    pub fn insert(&mut self, kind: MetadataKind) {
        self.0 |= kind.bit();
    }

    /// The kinds of either.
    pub fn union(self, other: Metadata) -> Metadata {
        Metadata(self.0 | other.0)
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether `kind` is among them.
    pub fn contains(self, kind: MetadataKind) -> bool {
        self.0 & kind.bit() != 0
    }

    /// Those that a search leaves in the documents it finds; stages leave the others.
    pub fn of_search(self) -> Metadata {
        Metadata(self.0 & !(MetadataKind::RandVal.bit() | MetadataKind::SortKey.bit()))
    }

    /// Refuses all.
    pub(crate) fn refuse(self) -> Result<(), QueryError> {
        match KINDS.iter().find(|(kind, ..)| self.contains(*kind)) {
            Some((kind, ..)) => Err(kind.unavailable()),
            None => Ok(()),
        }
    }
}

/// `document` with metadata; what it had of these kinds is replaced.
pub fn append(document: Document<'_>, metadata: &[(MetadataKind, Value<'_>)]) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    let is_replaced =
        |name: &[u8]| metadata.iter().any(|(kind, _)| kind.field().as_bytes() == name);
    for element in document.elements().filter(|element| !is_replaced(element.name)) {
        builder.append_element(&element);
    }
    for (kind, value) in metadata {
        builder.append(kind.field(), *value);
    }
    builder.build()
}

/// `document` with the key by which it was sorted, as
/// [`SortPattern::sort_key`](crate::SortPattern::sort_key) returns it.
pub fn append_sort_key(document: Document<'_>, key: &DocumentBuf) -> DocumentBuf {
    append(document, &[(MetadataKind::SortKey, key.get("").unwrap_or(Value::Null))])
}

/// The key by which `document` was found, with its index's names, in the document's place: empty if
/// none led to it. At `sort_key_paths` stands the key by which it was sorted.
pub fn index_key(document: Document<'_>, sort_key_paths: &[String]) -> DocumentBuf {
    let key = of(document, MetadataKind::IndexKey).and_then(|key| key.as_document());
    let sort_key = of(document, MetadataKind::SortKey).unwrap_or(Value::Null);
    let is_shown = |name: &str| sort_key_paths.iter().any(|path| path == name);
    let mut builder = DocumentBuilder::new();
    for (name, value) in key.iter().flat_map(|key| key.iter()) {
        builder.append(name, if is_shown(name) { sort_key } else { value });
    }
    for path in sort_key_paths {
        if key.is_some_and(|key| key.get(path).is_some()) {
            continue;
        }
        let outer = path.split('.').count() - 1;
        let mut names = path.split('.');
        for name in names.by_ref().take(outer) {
            builder.begin_document(name);
        }
        builder.append(names.next().unwrap_or_default(), sort_key);
        for _ in 0..outer {
            builder.end();
        }
    }
    builder.build()
}

/// The paths at which a projection shows the key by which documents were sorted. Recursion follows
/// its nesting, which validation has bounded.
pub fn sort_key_paths(projection: Document<'_>) -> Vec<String> {
    let mut paths = Vec::new();
    for (name, value) in projection.iter() {
        let Some(inner) = value.as_document() else { continue };
        if inner.get("$meta") == Some(Value::String("sortKey")) {
            paths.push(name.to_owned());
        } else {
            let below = sort_key_paths(inner).into_iter();
            paths.extend(below.map(|path| format!("{name}.{path}")));
        }
    }
    paths
}

/// The metadata of a document that carries any.
pub(crate) fn of(document: Document<'_>, kind: MetadataKind) -> Option<Value<'_>> {
    document.get(kind.field())
}

/// Whether a document carries any.
fn is_carrying(document: Document<'_>) -> bool {
    document.elements().any(|element| is_mark(element.name))
}

/// Whether a field is metadata.
pub(crate) fn is_mark(name: &[u8]) -> bool {
    name.starts_with(MARK.as_bytes())
        && std::str::from_utf8(name).is_ok_and(|name| MetadataKind::of_field(name).is_some())
}

/// The document without metadata.
pub fn strip(document: DocumentBuf) -> DocumentBuf {
    if !is_carrying(document.view()) {
        return document;
    }
    let mut builder = DocumentBuilder::new();
    for element in document.view().elements().filter(|element| !is_mark(element.name)) {
        builder.append_element(&element);
    }
    builder.build()
}

/// The metadata of a document, alone.
pub fn split(document: Document<'_>) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    for element in document.elements().filter(|element| is_mark(element.name)) {
        builder.append_element(&element);
    }
    builder.build()
}

/// `document` with `metadata` in the place of its own.
pub fn carry(document: DocumentBuf, metadata: &DocumentBuf) -> DocumentBuf {
    if metadata.view().is_empty() {
        return document;
    }
    let document = strip(document);
    let mut builder = DocumentBuilder::new();
    for element in document.view().elements().chain(metadata.view().elements()) {
        builder.append_element(&element);
    }
    builder.build()
}

#[cfg(test)]
mod tests {
    use frond_doc::document;

    use super::*;

    #[test]
    fn metadata_comes_and_goes() {
        let plain = document! { "_id": 1, "a": "x" };
        let score = [(MetadataKind::TextScore, Value::Double(1.5))];
        let found = append(plain.view(), &score);
        assert_eq!(of(found.view(), MetadataKind::TextScore), Some(Value::Double(1.5)));
        assert_eq!(of(found.view(), MetadataKind::RecordId), None);
        assert_eq!(append(found.view(), &score), found, "what was there is replaced");
        assert_eq!(strip(found.clone()), plain);
        let made = carry(document! { "b": 2 }, &split(found.view()));
        assert_eq!(of(made.view(), MetadataKind::TextScore), Some(Value::Double(1.5)));
        assert_eq!(strip(made), document! { "b": 2 });
    }

    #[test]
    fn keys_stand_in_the_place_of_documents() {
        let found = document! { "_id": 1, "a": "x" };
        assert_eq!(index_key(found.view(), &[]), document! {});
        let key = document! { "b": 2, "a": "x" };
        let found = append(found.view(), &[(MetadataKind::IndexKey, Value::from(&key))]);
        assert_eq!(index_key(found.view(), &[]), key);
        let sort_key = document! { "": 5 };
        let found = append_sort_key(found.view(), &sort_key);
        let meta = document! { "$meta": "sortKey" };
        let inner = document! { "d": &meta };
        let projection = document! { "b": &meta, "c": &inner, "e": 1 };
        let paths = sort_key_paths(projection.view());
        assert_eq!(paths, ["b", "c.d"]);
        let shown = document! { "d": 5 };
        let expected = document! { "b": 5, "a": "x", "c": &shown };
        assert_eq!(index_key(found.view(), &paths), expected);
    }

    #[test]
    fn kinds() {
        for (kind, name, field) in KINDS {
            assert_eq!(MetadataKind::parse(Value::String(name)).ok(), Some(kind));
            assert_eq!((kind.field(), MetadataKind::of_field(field)), (field, Some(kind)));
            assert_eq!(field.strip_prefix(MARK), Some(name));
        }
        for (name, code) in [("searchScore", 40218), ("x", 17308)] {
            let error = MetadataKind::parse(Value::String(name)).expect_err(name);
            assert_eq!(error.code.number(), code);
        }
        assert_eq!(MetadataKind::parse(Value::Null).expect_err("null").code.number(), 17307);
    }
}
