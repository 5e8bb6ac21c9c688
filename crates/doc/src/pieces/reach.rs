//! What a query's path reaches in a large document, or in one whose long values are references.
//! Arrays are read element by element where they lie: nothing is put together, and nothing behind
//! what decides is read.

use frond_store::ChunkStore;
use frond_tree::Sequence;

use super::item::{Body, BodyRef, ItemRef, Layout};
use super::read::child;
use super::shallow::{container, has_references};
use super::{Container, LargeDocument, PiecesError};
use crate::document::value::Value;
use crate::document::{Document, decode_value};
use crate::element_type::ElementType;
use crate::path::{Path, Reached};

/// Is shown what a path reaches; answers whether that is enough.
pub type VisitReached<'v> = dyn FnMut(Reached<'_>) -> bool + 'v;

impl LargeDocument {
    /// Calls `visit` as [`Path::visit_reached`] does, and tells whether it said `true`. `None` if
    /// that can't be told so: where the path ends at a long value; `visit` may have been called
    /// then.
    ///
    /// # Errors
    /// As [`LargeDocument::read`].
    pub fn visit_reached(
        &self,
        store: &dyn ChunkStore,
        path: &Path,
        visit: &mut VisitReached<'_>,
    ) -> Result<Option<bool>, PiecesError> {
        Walk { store, path }.go_on(self.root, (0, None), visit)
    }
}

/// As [`LargeDocument::visit_reached`], of a document some of whose values are references.
///
/// # Errors
/// As [`LargeDocument::read`].
pub fn visit_reached(
    store: &dyn ChunkStore,
    document: Document<'_>,
    path: &Path,
    visit: &mut VisitReached<'_>,
) -> Result<Option<bool>, PiecesError> {
    Walk { store, path }.fields(document, 0, visit)
}

/// How many of a path's parts are done, and the position in the outermost array that was walked
/// through.
type Done = (usize, Option<usize>);

/// A path through the pieces of a document.
struct Walk<'a> {
    store: &'a dyn ChunkStore,
    path: &'a Path,
}

impl Walk<'_> {
    /// Goes on from a container, where parts of the path are left. The recursion is as deep as the
    /// path, or twice that where it leads through arrays.
    fn go_on(
        &self,
        container: Container,
        (done, position): Done,
        visit: &mut VisitReached<'_>,
    ) -> Result<Option<bool>, PiecesError> {
        if container.layout != Layout::Document {
            return self.elements(container, (done, position), visit);
        }
        let child = child(self.store, &container, &self.path.parts()[done])?;
        let absent = Reached { value: None, position, is_expandable: false };
        let Some((_, item)) = child else { return Ok(Some(visit(absent))) };
        let done = done + 1;
        match item.body {
            Body::Here(value) => {
                let value = decode_value(item.kind, &value);
                let value = value.ok_or_else(|| PiecesError::damaged("a value of another type"))?;
                let visit = &mut |reached: Reached<'_>| visit(reached);
                Ok(Some(self.path.visit_reached_at(value, done, position, visit)))
            }
            Body::Elsewhere { .. } if done == self.path.parts().len() => Ok(None),
            Body::Elsewhere { layout: None, .. } => Ok(Some(visit(absent))),
            Body::Elsewhere { layout: Some(layout), bytes, root } => {
                let sequence = Sequence { root, format: container.sequence.format };
                self.go_on(Container { sequence, layout, bytes }, (done, position), visit)
            }
        }
    }

    /// Goes on from a document in memory, where parts of the path are left.
    fn fields(
        &self,
        document: Document<'_>,
        done: usize,
        visit: &mut VisitReached<'_>,
    ) -> Result<Option<bool>, PiecesError> {
        let absent = Reached { value: None, position: None, is_expandable: false };
        let Some(value) = document.get(&self.path.parts()[done]) else {
            return Ok(Some(visit(absent)));
        };
        let done = done + 1;
        let is_end = done == self.path.parts().len();
        let refers = match value {
            Value::Reference(reference) => {
                return match container(reference)? {
                    _ if is_end => Ok(None),
                    Some(container) => self.go_on(container, (done, None), visit),
                    None => Ok(Some(visit(absent))),
                };
            }
            Value::Document(inner) if !is_end => return self.fields(inner, done, visit),
            Value::Document(inner) => has_references(inner),
            Value::Array(array) => has_references(array.as_document()),
            _ => false,
        };
        if refers {
            return Ok(None);
        }
        let visit = &mut |reached: Reached<'_>| visit(reached);
        Ok(Some(self.path.visit_reached_at(value, done, None, visit)))
    }

    /// Goes on from each element of an array that is a document, and from the one that the next
    /// part names. The order is that of [`Path::visit_reached`].
    fn elements(
        &self,
        array: Container,
        (done, position): Done,
        visit: &mut VisitReached<'_>,
    ) -> Result<Option<bool>, PiecesError> {
        let named = Named::of(&self.path.parts()[done], array.layout);
        let mut told = Ok(Some(false));
        array.sequence.visit(self.store, 0, &mut |at, item| {
            told = ItemRef::decode(item, array.layout).and_then(|item| {
                let within = position.or(usize::try_from(at).ok());
                match self.element(&array, item, (done, within), visit)? {
                    Some(false) if named.is(at, item.name) => {
                        self.named_element(&array, item, (done + 1, position), visit)
                    }
                    told => Ok(told),
                }
            });
            !matches!(told, Ok(Some(false)))
        })?;
        told
    }

    fn element(
        &self,
        array: &Container,
        item: ItemRef<'_>,
        (done, position): Done,
        visit: &mut VisitReached<'_>,
    ) -> Result<Option<bool>, PiecesError> {
        if item.kind != ElementType::Document {
            return Ok(Some(false));
        }
        match item.body {
            BodyRef::Here(value) => {
                let document = Document::from_validated(value);
                let visit = &mut |reached: Reached<'_>| visit(reached);
                Ok(Some(self.path.visit_reached_in(document, done, position, visit)))
            }
            BodyRef::Elsewhere { bytes, root, .. } => {
                let sequence = Sequence { root, format: array.sequence.format };
                let layout = Layout::Document;
                self.go_on(Container { sequence, layout, bytes }, (done, position), visit)
            }
        }
    }

    /// Goes on from an element that a number of the path led to, the last of the parts that are
    /// done.
    fn named_element(
        &self,
        array: &Container,
        item: ItemRef<'_>,
        (done, position): Done,
        visit: &mut VisitReached<'_>,
    ) -> Result<Option<bool>, PiecesError> {
        let is_end = done == self.path.parts().len();
        let is_walked = matches!(item.kind, ElementType::Document | ElementType::Array);
        match item.body {
            BodyRef::Here(value) if is_end || is_walked => {
                let value = decode_value(item.kind, value);
                let value = value.ok_or_else(|| PiecesError::damaged("a value of another type"))?;
                let reached = Reached { value: Some(value), position, is_expandable: false };
                let visit = &mut |reached: Reached<'_>| visit(reached);
                Ok(Some(match is_end {
                    true => visit(reached),
                    false => self.path.visit_reached_at(value, done, position, visit),
                }))
            }
            BodyRef::Elsewhere { .. } if is_end => Ok(None),
            BodyRef::Elsewhere { layout: Some(layout), bytes, root } => {
                let sequence = Sequence { root, format: array.sequence.format };
                self.go_on(Container { sequence, layout, bytes }, (done, position), visit)
            }
            _ => Ok(Some(false)), // A number leads to a scalar, and the path on: to nothing.
        }
    }
}

/// Which element of an array a part of a path names.
enum Named<'p> {
    None,
    At(u64),
    Called(&'p [u8]),
}

impl Named<'_> {
    fn of(part: &str, layout: Layout) -> Named<'_> {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let position = || part.parse().ok().filter(|_| part == "0" || !part.starts_with('0'));
        match layout {
            _ if !is_number => Named::None,
            Layout::Array => position().map_or(Named::None, Named::At),
            _ => Named::Called(part.as_bytes()),
        }
    }

    fn is(&self, position: u64, name: &[u8]) -> bool {
        match self {
            Named::None => false,
            Named::At(named) => *named == position,
            Named::Called(named) => *named == name,
        }
    }
}
