//! Large documents on their way through filters, expressions and stages: a document whose long
//! values are references ([`frond_doc::Reference`]) until a reader looks at them.
//!
//! 1. A caller that reads documents from a store gives a request's [`Variables`](crate::expression)
//!    a reader of what references stand for ([`Pieces`]): it goes wherever they go.
//! 2. An expression's operators are given whole values. Those that only copy values, or look at one
//!    level of them (`$setField`, `$mergeObjects`, `$size`), are given them as they lie.
//! 3. Whatever else looks at a document says at which paths ([`NeededPaths`]); these are opened
//!    before. A stage that doesn't say gets whole documents.
//!
//! *Invariant*: what is opened, and when, changes no answer: only how much is read.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use frond_doc::builder::position_name;
use frond_doc::path::Path;
use frond_doc::pieces::{Long, VisitPart, has_references};
use frond_doc::{
    Array, Document, DocumentBuf, DocumentBuilder, ElementType, Reference, Value, ValueBuf,
};

use crate::by_name::ByName;
use crate::error::QueryError;

/// Reads what references stand for.
pub trait Pieces: Send + Sync {
    /// Whether the request has met any: until then no stage looks for them.
    fn has_references(&self) -> bool;

    /// Notes that the request has met a reference.
    fn note_references(&self);

    /// One level of it.
    ///
    /// # Errors
    /// The error of reading.
    fn open(&self, reference: Reference<'_>) -> Result<ValueBuf, QueryError>;

    /// Returns how many elements an array has.
    ///
    /// # Errors
    /// The error of reading.
    fn element_count(&self, array: Reference<'_>) -> Result<u64, QueryError>;

    /// An array of those elements of an array that stand at these positions; they may be references
    /// in turn.
    ///
    /// # Errors
    /// The error of reading.
    fn elements(&self, array: Reference<'_>, positions: Range<u64>)
    -> Result<ValueBuf, QueryError>;

    /// Shows what a path reaches in a document until it is enough; returns whether it was, if that
    /// can be decided without putting anything together.
    ///
    /// # Errors
    /// The error of reading.
    fn reach(
        &self,
        document: Document<'_>,
        path: &Path,
        visit: &mut VisitPart<'_>,
    ) -> Result<Option<bool>, QueryError>;

    /// Shows what a reference stands for where it lies; what `visit` says of it.
    ///
    /// # Errors
    /// The error of reading.
    fn long(
        &self,
        reference: Reference<'_>,
        visit: &mut dyn FnMut(Long<'_>) -> Option<bool>,
    ) -> Result<Option<bool>, QueryError>;

    /// The document without references.
    ///
    /// # Errors
    /// The error of reading.
    fn whole(&self, document: Document<'_>) -> Result<DocumentBuf, QueryError>;
}

/// Reads references, if a request may meet any. Cloning is cheap.
#[derive(Clone, Default)]
pub struct Large(Option<Arc<dyn Pieces>>);

/// The part of a value that is read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Depth {
    /// At nothing but what is asked of its parts.
    #[default]
    Parts,
    /// At all of it if it is in memory; at what lies in the store where it lies.
    Lying,
    /// At its elements, which may be references.
    Level,
    /// At all of it.
    Whole,
}

/// The values of a document that a reader needs: a tree by the names of paths. In an array it holds
/// for each element, and by position.
#[derive(Clone, Debug, Default)]
pub struct NeededPaths {
    depth: Depth,
    fields: ByName<NeededPaths>,
}

impl NeededPaths {
    /// All of a document.
    pub fn all() -> NeededPaths {
        NeededPaths { depth: Depth::Whole, fields: ByName::default() }
    }

    /// Adds a path.
    pub fn add(&mut self, dotted: &str, depth: Depth) {
        let mut place = self;
        for part in dotted.split('.') {
            place = place.field(part);
        }
        place.depth = place.depth.max(depth);
    }

    /// The part of that name, made where it isn't there.
    pub fn field(&mut self, name: &str) -> &mut NeededPaths {
        self.fields.entry(name, NeededPaths::default).0
    }

    /// Adds all that another asks for.
    pub fn add_all(&mut self, other: &NeededPaths) {
        self.depth = self.depth.max(other.depth);
        for (name, inner) in other.fields.iter() {
            self.field(name).add_all(inner);
        }
    }

    /// Has the value itself looked at so far.
    pub fn look(&mut self, depth: Depth) {
        self.depth = self.depth.max(depth);
    }

    /// The outermost names, unless all is asked for.
    pub fn outermost_names(&self) -> Option<impl Iterator<Item = &[u8]>> {
        let names = self.fields.iter().map(|(name, _)| name.as_bytes());
        (self.depth != Depth::Whole).then_some(names)
    }

    fn get(&self, name: &[u8]) -> Option<&NeededPaths> {
        self.fields.get(name)
    }

    /// Returns the needs for an array's element: those of the array's parts, and those of its
    /// position.
    fn of_element(&self, position: usize) -> NeededPaths {
        let mut digits = [0; 20];
        let mut needed = NeededPaths { depth: Depth::Parts, fields: self.fields.clone() };
        if let Some(own) = self.get(position_name(position, &mut digits).as_bytes()) {
            needed.add_all(own);
        }
        needed
    }

    fn has_positions(&self) -> bool {
        self.fields.iter().any(|(name, _)| name.bytes().all(|byte| byte.is_ascii_digit()))
    }
}

impl fmt::Debug for Large {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Large").field(&self.0.is_some()).finish()
    }
}

impl Large {
    /// References are read by `pieces`.
    pub fn new(pieces: Arc<dyn Pieces>) -> Large {
        Large(Some(pieces))
    }

    /// Whether there may be references.
    pub fn may_have_references(&self) -> bool {
        self.0.is_some()
    }

    /// Whether references were seen.
    #[inline]
    pub fn has_references(&self) -> bool {
        self.0.as_ref().is_some_and(|pieces| pieces.has_references())
    }

    /// Notes that there are references from now on.
    pub fn note_references(&self) {
        self.0.iter().for_each(|pieces| pieces.note_references());
    }

    fn pieces(&self) -> Result<&dyn Pieces, QueryError> {
        // A request that can't read references is given none.
        Ok(&**self.0.as_ref().expect("a request that meets a reference can read it"))
    }

    /// One level of what a reference stands for.
    pub(crate) fn open(&self, reference: Reference<'_>) -> Result<ValueBuf, QueryError> {
        self.pieces()?.open(reference)
    }

    /// Returns how many elements an array has.
    pub(crate) fn element_count(&self, array: Reference<'_>) -> Result<u64, QueryError> {
        self.pieces()?.element_count(array)
    }

    /// An array of those elements of an array that stand at these positions.
    pub(crate) fn elements_at(
        &self,
        array: Reference<'_>,
        positions: Range<u64>,
    ) -> Result<ValueBuf, QueryError> {
        self.pieces()?.elements(array, positions)
    }

    /// Shows what a path reaches in a document until it is enough; returns whether it was, if that
    /// can be decided without putting anything together.
    pub(crate) fn reach(
        &self,
        document: Document<'_>,
        path: &Path,
        visit: &mut VisitPart<'_>,
    ) -> Result<Option<bool>, QueryError> {
        self.pieces()?.reach(document, path, visit)
    }

    /// Shows what a reference stands for where it lies; what `visit` says of it.
    pub(crate) fn long(
        &self,
        reference: Reference<'_>,
        visit: &mut dyn FnMut(Long<'_>) -> Option<bool>,
    ) -> Result<Option<bool>, QueryError> {
        self.pieces()?.long(reference, visit)
    }

    /// The document without references; `None` if it has none.
    ///
    /// # Errors
    /// The error of reading.
    pub fn whole(&self, document: Document<'_>) -> Result<Option<DocumentBuf>, QueryError> {
        match &self.0 {
            Some(pieces) if pieces.has_references() && has_references(document) => {
                pieces.whole(document).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The value without references; `None` if it has none.
    pub(crate) fn whole_value(&self, value: Value<'_>) -> Result<Option<ValueBuf>, QueryError> {
        if !self.has_references() {
            return Ok(None);
        }
        let has = match value {
            Value::Reference(_) => true,
            Value::Document(document) => has_references(document),
            Value::Array(array) => has_references(array.as_document()),
            _ => false,
        };
        if !has {
            return Ok(None);
        }
        let mut only = DocumentBuilder::new();
        only.append("", value);
        let whole = self.pieces()?.whole(only.build().view())?;
        Ok(Some(ValueBuf::from_only_field(whole)))
    }

    /// The document with what is asked for; `None` if it has that already.
    ///
    /// # Errors
    /// The error of reading.
    pub fn opened(
        &self,
        needed: &NeededPaths,
        document: Document<'_>,
    ) -> Result<Option<DocumentBuf>, QueryError> {
        if !self.has_references() {
            return Ok(None);
        }
        if needed.depth == Depth::Whole {
            return self.whole(document);
        }
        if !lacks(needed, document) {
            return Ok(None);
        }
        let mut out = DocumentBuilder::with_capacity(document.as_bytes().len() * 2);
        self.fields(&mut out, needed, document)?;
        Ok(Some(out.build()))
    }

    /// As [`Large::opened`], of a document of one's own.
    ///
    /// # Errors
    /// The error of reading.
    pub fn open_document(
        &self,
        needed: &NeededPaths,
        document: DocumentBuf,
    ) -> Result<DocumentBuf, QueryError> {
        Ok(self.opened(needed, document.view())?.unwrap_or(document))
    }

    /// Writes a document's fields. The recursion is as deep as the document.
    fn fields(
        &self,
        out: &mut DocumentBuilder,
        needed: &NeededPaths,
        document: Document<'_>,
    ) -> Result<(), QueryError> {
        for element in document.elements() {
            let value = element.decode();
            match (needed.get(element.name), element.name(), value) {
                (Some(inner), Some(name), Some(value)) => {
                    self.value(out, name, inner, value)?;
                }
                _ => {
                    out.append_element(&element);
                }
            }
        }
        Ok(())
    }

    fn value(
        &self,
        out: &mut DocumentBuilder,
        name: &str,
        needed: &NeededPaths,
        value: Value<'_>,
    ) -> Result<(), QueryError> {
        let is_reference = matches!(value, Value::Reference(_));
        if needed.depth == Depth::Whole || needed.depth == Depth::Lying && !is_reference {
            let whole = self.whole_value(value)?;
            out.append(name, whole.as_ref().map_or(value, ValueBuf::as_value));
            return Ok(());
        }
        match value {
            Value::Reference(reference) if is_opened(needed, reference) => {
                let opened = self.open(reference)?;
                self.value(out, name, needed, opened.as_value())
            }
            Value::Document(document) if lacks(needed, document) => {
                out.begin_document(name);
                self.fields(out, needed, document)?;
                out.end();
                Ok(())
            }
            Value::Array(array) if lacks_elements(needed, array) => {
                out.begin_array(name);
                self.elements(out, needed, array)?;
                out.end();
                Ok(())
            }
            other => {
                out.append(name, other);
                Ok(())
            }
        }
    }

    /// Writes an array's elements, under their names, which may be others than their positions.
    fn elements(
        &self,
        out: &mut DocumentBuilder,
        needed: &NeededPaths,
        array: Array<'_>,
    ) -> Result<(), QueryError> {
        let of_each = NeededPaths { depth: Depth::Parts, fields: needed.fields.clone() };
        let has_positions = needed.has_positions();
        for (position, element) in array.elements().enumerate() {
            let (Some(name), Some(value)) = (element.name(), element.decode()) else {
                out.append_element(&element);
                continue;
            };
            match has_positions {
                true => self.value(out, name, &needed.of_element(position), value)?,
                false => self.value(out, name, &of_each, value)?,
            }
        }
        Ok(())
    }
}

/// Whether a reference is to be opened. A value that has no parts isn't opened for those.
fn is_opened(needed: &NeededPaths, reference: Reference<'_>) -> bool {
    let has_parts = matches!(reference.kind(), ElementType::Document | ElementType::Array);
    match needed.depth {
        Depth::Parts | Depth::Lying => has_parts && !needed.fields.is_empty(),
        Depth::Level | Depth::Whole => true,
    }
}

/// Whether something that is asked for is a reference.
fn lacks(needed: &NeededPaths, document: Document<'_>) -> bool {
    let lacks = |inner: &NeededPaths, value: Option<Value<'_>>| {
        value.is_some_and(|value| lacks_value(inner, value))
    };
    if needed.fields.is_many() {
        return document.elements().any(|element| {
            needed.get(element.name).is_some_and(|inner| lacks(inner, element.decode()))
        });
    }
    needed.fields.iter().any(|(name, inner)| lacks(inner, document.get(name)))
}

fn lacks_value(needed: &NeededPaths, value: Value<'_>) -> bool {
    let is_whole = matches!(needed.depth, Depth::Lying | Depth::Whole);
    match value {
        Value::Reference(reference) => is_opened(needed, reference),
        Value::Document(document) if is_whole => has_references(document),
        Value::Document(document) => lacks(needed, document),
        Value::Array(array) if is_whole => has_references(array.as_document()),
        Value::Array(array) => lacks_elements(needed, array),
        _ => false,
    }
}

fn lacks_elements(needed: &NeededPaths, array: Array<'_>) -> bool {
    if needed.fields.is_empty() || !has_references(array.as_document()) {
        return false;
    }
    let of_each = NeededPaths { depth: Depth::Parts, fields: needed.fields.clone() };
    let has_positions = needed.has_positions();
    array.iter().enumerate().any(|(position, element)| match has_positions {
        true => lacks_value(&needed.of_element(position), element),
        false => lacks_value(&of_each, element),
    })
}
