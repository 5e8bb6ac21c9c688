//! Shapes: the names of a document's fields, interned, so that a field is found without a scan.
//!
//! Documents of a collection mostly have the same names in the same order. A [`ShapeRegistry`]
//! knows each such list of names once, nested documents included (arrays not). A [`FieldIndex`] is
//! a shape's number and one offset a field; a [`ShapePath`] remembers which ordinal its path has in
//! a shape, so that a get is two loads. All of it is derived: never stored, never part of a hash.
//!
//! *Invariants*: 1. A registry never holds more than its bound, however documents look: beyond it,
//! and for documents that are too wide, there is no index and the path scans. 2. What
//! `ShapePath::get` returns is what [`Path::get`] returns.

use std::collections::HashMap;

use crate::document::Document;
use crate::path::Path;
use crate::raw::RawElements;
use crate::value::{ElementType, Value};

/// Most fields of an indexed document, nested ones counted.
pub const FIELD_COUNT_MAX: usize = 1024;
/// Most bytes of names of an indexed document.
pub const NAME_BYTES_MAX: usize = 16 << 10;

/// Ends a nested document in a shape's signature: no byte of a name in UTF-8.
const NESTED_END: u8 = 0xff;

/// The shapes that were seen, up to a bound. The caller owns it and decides how long it lives.
#[derive(Debug)]
pub struct ShapeRegistry {
    shape_count_max: usize,
    /// Signature to number. The signature is all the names, so different shapes never meet.
    numbers: HashMap<Box<[u8]>, u32>,
    /// By number.
    shapes: Vec<Shape>,
}

#[derive(Debug)]
struct Shape {
    /// In the order in which the document has them, a nested document's after it.
    fields: Vec<ShapeField>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ShapeField {
    name: Box<[u8]>,
    /// The ordinal of the document around it; `None` for the outermost.
    parent: Option<u32>,
}

/// Where a document's fields lie: derived data that is kept beside it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldIndex {
    shape: u32,
    /// By ordinal: the offset of the element in the document.
    offsets: Box<[u32]>,
}

impl ShapeRegistry {
    /// Makes an empty registry that will hold at most so many shapes.
    pub fn new(shape_count_max: usize) -> ShapeRegistry {
        ShapeRegistry { shape_count_max, numbers: HashMap::new(), shapes: Vec::new() }
    }

    /// How many shapes are known.
    pub fn count(&self) -> usize {
        self.shapes.len()
    }

    /// Indexes a document. `None` if it is too wide, or its shape is new and the registry full.
    pub fn index(&mut self, document: Document<'_>) -> Option<FieldIndex> {
        let walk = Walk::over(document)?;
        if let Some(number) = self.numbers.get(walk.signature.as_slice()) {
            return Some(FieldIndex { shape: *number, offsets: walk.offsets.into() });
        }
        if self.shape_count_max <= self.shapes.len() {
            return None;
        }
        let number = u32::try_from(self.shapes.len()).ok()?;
        self.shapes.push(Shape { fields: fields_of(&walk.signature) });
        self.numbers.insert(walk.signature.into(), number);
        Some(FieldIndex { shape: number, offsets: walk.offsets.into() })
    }

    /// The ordinal of a path in a shape.
    fn resolve(&self, shape: u32, path: &Path) -> Option<u32> {
        let fields = &self.shapes.get(shape as usize)?.fields;
        let mut parent = None;
        for part in path.parts() {
            // The first field of that name counts, even if it is no document and a later one is.
            let found = fields
                .iter()
                .position(|field| field.parent == parent && *field.name == *part.as_bytes());
            parent = Some(found? as u32);
        }
        parent
    }
}

/// A path that remembers its ordinal in each shape that it has met. It belongs to one registry.
#[derive(Clone, Debug)]
pub struct ShapePath {
    path: Path,
    /// By shape number.
    ordinals: Vec<Ordinal>,
}

#[derive(Clone, Copy, Debug)]
enum Ordinal {
    Unknown,
    Absent,
    At(u32),
}

impl ShapePath {
    /// Wraps a path; nothing is remembered yet.
    pub fn new(path: Path) -> ShapePath {
        ShapePath { path, ordinals: Vec::new() }
    }

    /// The value at the path through documents only, as [`Path::get`]: by the index if there is
    /// one, by a scan otherwise. `index` is what `registry` made for `document`.
    pub fn get<'a>(
        &mut self,
        registry: &ShapeRegistry,
        document: Document<'a>,
        index: Option<&FieldIndex>,
    ) -> Option<Value<'a>> {
        let Some(index) = index else { return self.path.get(document) };
        match self.ordinal(registry, index.shape) {
            Ordinal::At(ordinal) => {
                let offset = *index.offsets.get(ordinal as usize)? as usize;
                RawElements::at(document.as_bytes(), offset).next()?.decode()
            }
            _ => None,
        }
    }

    #[inline]
    fn ordinal(&mut self, registry: &ShapeRegistry, shape: u32) -> Ordinal {
        match self.ordinals.get(shape as usize) {
            Some(Ordinal::Unknown) | None => self.remember(registry, shape),
            Some(known) => *known,
        }
    }

    #[cold]
    fn remember(&mut self, registry: &ShapeRegistry, shape: u32) -> Ordinal {
        if self.ordinals.len() <= shape as usize {
            self.ordinals.resize(shape as usize + 1, Ordinal::Unknown);
        }
        let ordinal = registry.resolve(shape, &self.path).map_or(Ordinal::Absent, Ordinal::At);
        self.ordinals[shape as usize] = ordinal;
        ordinal
    }
}

/// What one walk over a document collects.
#[derive(Default)]
struct Walk {
    /// Per field the name, a zero, and whether a nested document follows; after that its end.
    signature: Vec<u8>,
    offsets: Vec<u32>,
}

impl Walk {
    fn over(document: Document<'_>) -> Option<Walk> {
        let mut walk = Walk::default();
        let bytes = document.as_bytes();
        u32::try_from(bytes.len()).ok()?;
        // Per open document its elements. Offsets come from what is left to walk over: a nested
        // document's end is known when its parent's element was cut.
        let mut open = vec![(bytes.len(), document.elements())];
        while let Some((end, elements)) = open.last_mut() {
            let (end, offset) = (*end, *end - elements.rest().len());
            let Some(element) = elements.next() else {
                walk.signature.push(NESTED_END);
                open.pop();
                continue;
            };
            let is_document = element.kind == ElementType::Document;
            walk.offsets.push(offset as u32);
            walk.signature.extend_from_slice(element.name);
            walk.signature.extend_from_slice(&[0, u8::from(is_document)]);
            if FIELD_COUNT_MAX < walk.offsets.len() || NAME_BYTES_MAX < walk.signature.len() {
                return None;
            }
            if is_document {
                let nested_end = end - elements.rest().len();
                open.push((nested_end, RawElements::new(element.value)));
            }
        }
        Some(walk)
    }
}

/// The fields that a signature tells.
fn fields_of(signature: &[u8]) -> Vec<ShapeField> {
    let mut fields = Vec::new();
    let mut parents = vec![None];
    let mut rest = signature;
    while let Some((first, after)) = rest.split_first() {
        if *first == NESTED_END {
            parents.pop();
            rest = after;
            continue;
        }
        let Some((name, after)) = crate::raw::split_name(rest) else { break };
        let parent = parents.last().copied().flatten();
        fields.push(ShapeField { name: name.into(), parent });
        let Some((is_document, after)) = after.split_first() else { break };
        if *is_document == 1 {
            parents.push(Some(fields.len() as u32 - 1));
        }
        rest = after;
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document;

    #[test]
    fn registry_is_bounded() {
        let mut registry = ShapeRegistry::new(2);
        let documents = [
            document! { "a": 1_i32, "b": "x" },
            document! { "b": 1_i32, "a": "x" },
            document! { "c": 1_i32 },
        ];
        let indexes: Vec<_> = documents.iter().map(|it| registry.index(it.view())).collect();
        assert_eq!(registry.count(), 2);
        assert!(indexes[2].is_none());
        // Types don't matter, but for documents.
        let same = document! { "a": true, "b": 5_i64 };
        assert_eq!(
            registry.index(same.view()).map(|it| it.shape),
            indexes[0].as_ref().map(|it| it.shape)
        );
        let mut path = ShapePath::new(Path::new("b"));
        for (document, index) in documents.iter().zip(&indexes) {
            let found = path.get(&registry, document.view(), index.as_ref());
            assert_eq!(found, Path::new("b").get(document.view()));
        }
    }

    #[test]
    fn wide_documents_are_scanned() {
        let mut registry = ShapeRegistry::new(10);
        let mut builder = crate::DocumentBuilder::new();
        for position in 0..=FIELD_COUNT_MAX {
            builder.append(&position.to_string(), Value::Null);
        }
        assert_eq!(registry.index(builder.build().view()), None);
        let long = "x".repeat(NAME_BYTES_MAX);
        let mut builder = crate::DocumentBuilder::new();
        builder.append(&long, Value::Null);
        assert_eq!(registry.index(builder.build().view()), None);
        assert_eq!(registry.count(), 0);
    }
}
