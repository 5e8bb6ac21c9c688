//! Visits the values that a query's path reaches in a large document, or in one whose long values
//! are references. Arrays are read element by element where they lie: nothing is put together, and
//! nothing behind what decides is read.

use frond_store::{ChunkHash, ChunkStore};
use frond_tree::Sequence;

use super::item::{Body, BodyRef, ItemRef, Layout};
use super::long::{Failure, Long};
use super::read::child;
use super::shallow::{container, has_references, item_of};
use super::{Container, LargeDocument, PiecesError};
use crate::document::value::Value;
use crate::document::{Document, decode_value};
use crate::element_type::ElementType;
use crate::path::{Path, Reached};
use crate::reference::Reference;

/// A value that a path reached.
#[derive(Clone, Copy)]
pub enum ReachedPart<'a> {
    /// A value in memory, or nothing.
    Value(Reached<'a>),
    /// A long value at its end.
    Long {
        /// The value.
        value: Long<'a>,
        /// As in [`Reached`].
        position: Option<usize>,
        /// As in [`Reached`].
        is_expandable: bool,
    },
}

/// A callback for a value that a path reaches; answers whether that is enough, if it can say. Of
/// values in memory it always can.
pub type VisitPart<'v> = dyn FnMut(ReachedPart<'_>) -> Option<bool> + 'v;

impl LargeDocument {
    /// Calls `visit` as [`Path::visit_reached`] does, and returns whether it said `true`; `None` if
    /// it couldn't say.
    ///
    /// # Errors
    /// As [`LargeDocument::read`].
    pub fn visit_reached(
        &self,
        store: &dyn ChunkStore,
        path: &Path,
        visit: &mut VisitPart<'_>,
    ) -> Result<Option<bool>, PiecesError> {
        let failure = Failure::default();
        let answer = Walk { store, path, failure: &failure }.go_on(self.root, (0, None), visit)?;
        failure.into_inner().map_or(Ok(answer), Err)
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
    visit: &mut VisitPart<'_>,
) -> Result<Option<bool>, PiecesError> {
    let failure = Failure::default();
    let answer = Walk { store, path, failure: &failure }.fields(document, 0, visit)?;
    failure.into_inner().map_or(Ok(answer), Err)
}

/// The number of a path's parts that are done, and the position in the outermost array that was
/// walked through.
type Done = (usize, Option<usize>);

/// A path through the pieces of a document.
pub(super) struct Walk<'a> {
    pub(super) store: &'a dyn ChunkStore,
    pub(super) path: &'a Path,
    pub(super) failure: &'a Failure,
}

impl Walk<'_> {
    /// Goes on from a container, where parts of the path are left. The recursion is as deep as the
    /// path, or twice that where it leads through arrays.
    pub(super) fn go_on(
        &self,
        container: Container,
        (done, position): Done,
        visit: &mut VisitPart<'_>,
    ) -> Result<Option<bool>, PiecesError> {
        if container.layout != Layout::Document {
            return self.elements(container, (done, position), visit);
        }
        let child = child(self.store, &container, &self.path.parts()[done])?;
        let absent = Reached { value: None, position, is_expandable: false };
        let Some((_, item)) = child else { return Ok(visit(ReachedPart::Value(absent))) };
        let done = done + 1;
        match item.body {
            Body::Here(value) => {
                let value = decode_value(item.kind, &value);
                let value = value.ok_or_else(|| PiecesError::damaged("a value of another type"))?;
                let visit =
                    &mut |reached: Reached<'_>| visit(ReachedPart::Value(reached)) == Some(true);
                Ok(Some(self.path.visit_reached_at(value, done, position, visit)))
            }
            Body::Elsewhere { layout, bytes, root } if done == self.path.parts().len() => {
                let (kind, is_expandable) = (item.kind, item.kind == ElementType::Array);
                let value = self.long(kind, layout, bytes, root);
                Ok(visit(ReachedPart::Long { value, position, is_expandable }))
            }
            Body::Elsewhere { layout: None, .. } => Ok(visit(ReachedPart::Value(absent))),
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
        visit: &mut VisitPart<'_>,
    ) -> Result<Option<bool>, PiecesError> {
        let absent = Reached { value: None, position: None, is_expandable: false };
        let Some(value) = document.get(&self.path.parts()[done]) else {
            return Ok(visit(ReachedPart::Value(absent)));
        };
        let done = done + 1;
        let is_end = done == self.path.parts().len();
        let refers = match value {
            Value::Reference(reference) => {
                return match container(reference)? {
                    _ if is_end => self.end(reference, visit),
                    Some(container) => self.go_on(container, (done, None), visit),
                    None => Ok(visit(ReachedPart::Value(absent))),
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
        let visit = &mut |reached: Reached<'_>| visit(ReachedPart::Value(reached)) == Some(true);
        Ok(Some(self.path.visit_reached_at(value, done, None, visit)))
    }

    /// Shows a reference at the path's end.
    fn end(
        &self,
        reference: Reference<'_>,
        visit: &mut VisitPart<'_>,
    ) -> Result<Option<bool>, PiecesError> {
        let kind = reference.kind();
        let BodyRef::Elsewhere { layout, bytes, root } = item_of(reference)?.body else {
            return Ok(None);
        };
        let value = self.long(kind, layout, bytes, root);
        let is_expandable = kind == ElementType::Array;
        Ok(visit(ReachedPart::Long { value, position: None, is_expandable }))
    }

    fn long(
        &self,
        kind: ElementType,
        layout: Option<Layout>,
        bytes: u64,
        root: ChunkHash,
    ) -> Long<'_> {
        Long { store: self.store, failure: self.failure, kind, layout, bytes, root }
    }

    /// Goes on from each element of an array that is a document, and from the one that the next
    /// part names. The order is that of [`Path::visit_reached`].
    fn elements(
        &self,
        array: Container,
        (done, position): Done,
        visit: &mut VisitPart<'_>,
    ) -> Result<Option<bool>, PiecesError> {
        let named = Named::of(&self.path.parts()[done], array.layout);
        let mut answer = Ok(Some(false));
        array.sequence.visit(self.store, 0, &mut |at, item| {
            answer = ItemRef::decode(item, array.layout).and_then(|item| {
                let within = position.or(usize::try_from(at).ok());
                match self.element(&array, item, (done, within), visit)? {
                    Some(false) if named.is(at, item.name) => {
                        self.named_element(&array, item, (done + 1, position), visit)
                    }
                    answer => Ok(answer),
                }
            });
            !matches!(answer, Ok(Some(false)))
        })?;
        answer
    }

    fn element(
        &self,
        array: &Container,
        item: ItemRef<'_>,
        (done, position): Done,
        visit: &mut VisitPart<'_>,
    ) -> Result<Option<bool>, PiecesError> {
        if item.kind != ElementType::Document {
            return Ok(Some(false));
        }
        match item.body {
            BodyRef::Here(value) => {
                let document = Document::from_validated(value);
                let visit =
                    &mut |reached: Reached<'_>| visit(ReachedPart::Value(reached)) == Some(true);
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
        visit: &mut VisitPart<'_>,
    ) -> Result<Option<bool>, PiecesError> {
        let is_end = done == self.path.parts().len();
        let is_walked = matches!(item.kind, ElementType::Document | ElementType::Array);
        match item.body {
            BodyRef::Here(value) if is_end || is_walked => {
                let value = decode_value(item.kind, value);
                let value = value.ok_or_else(|| PiecesError::damaged("a value of another type"))?;
                let reached = Reached { value: Some(value), position, is_expandable: false };
                let visit =
                    &mut |reached: Reached<'_>| visit(ReachedPart::Value(reached)) == Some(true);
                Ok(Some(match is_end {
                    true => visit(reached),
                    false => self.path.visit_reached_at(value, done, position, visit),
                }))
            }
            BodyRef::Elsewhere { layout, bytes, root } if is_end => {
                let value = self.long(item.kind, layout, bytes, root);
                Ok(visit(ReachedPart::Long { value, position, is_expandable: false }))
            }
            BodyRef::Elsewhere { layout: Some(layout), bytes, root } => {
                let sequence = Sequence { root, format: array.sequence.format };
                self.go_on(Container { sequence, layout, bytes }, (done, position), visit)
            }
            _ => Ok(Some(false)), // A number leads to a scalar, and the path on: to nothing.
        }
    }
}

/// The element of an array that a part of a path names.
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
