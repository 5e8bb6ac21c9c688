//! A long value where it lies: a question about it reads no more than the answer needs.

use std::cell::RefCell;

use frond_store::{ChunkHash, ChunkStore};
use frond_tree::Sequence;

use super::item::{BodyRef, ItemRef, Layout};
use super::reach::{ReachedPart, VisitPart, Walk};
use super::read::append_value;
use super::shallow::{item_of, reading_format};
use super::{Container, LargeDocument, LocatedElement, PiecesError};
use crate::document::decode_value;
use crate::document::value::Value;
use crate::element_type::ElementType;
use crate::path::Path;
use crate::reference::Reference;

/// The error of reading first: where answers are given, none of them counts then.
pub(super) type Failure = RefCell<Option<PiecesError>>;

/// A value that lies elsewhere. Its answers are `None` where they can't be given without putting it
/// together, or where reading fails.
#[derive(Clone, Copy)]
pub struct Long<'a> {
    pub(super) store: &'a dyn ChunkStore,
    pub(super) failure: &'a Failure,
    pub(super) kind: ElementType,
    pub(super) layout: Option<Layout>,
    pub(super) bytes: u64,
    pub(super) root: ChunkHash,
}

/// An array's element.
#[derive(Clone, Copy)]
pub enum Lying<'a> {
    /// In its item.
    Here(Value<'a>),
    /// In a container of its own, or in slices.
    Elsewhere(Long<'a>),
}

/// Shows the value that a reference stands for, and gives what `visit` says of it.
///
/// # Errors
/// As [`LargeDocument::read`].
pub fn long(
    store: &dyn ChunkStore,
    reference: Reference<'_>,
    visit: &mut dyn FnMut(Long<'_>) -> Option<bool>,
) -> Result<Option<bool>, PiecesError> {
    let failure = Failure::default();
    let answer = match item_of(reference)?.body {
        BodyRef::Here(_) => None,
        BodyRef::Elsewhere { layout, bytes, root } => {
            let (kind, failure) = (reference.kind(), &failure);
            visit(Long { store, failure, kind, layout, bytes, root })
        }
    };
    failure.into_inner().map_or(Ok(answer), Err)
}

impl LargeDocument {
    /// Shows the elements of the array that `found` ends in, until `visit` says `true`; they aren't
    /// put together.
    ///
    /// # Errors
    /// As [`LargeDocument::read`].
    pub fn visit_elements(
        &self,
        store: &dyn ChunkStore,
        found: &LocatedElement,
        visit: &mut dyn FnMut(u64, Lying<'_>) -> bool,
    ) -> Result<(), PiecesError> {
        let failure = Failure::default();
        let Container { sequence, layout, bytes } = found.container();
        let (kind, root) = (ElementType::Array, sequence.root);
        let array = Long { store, failure: &failure, kind, layout: Some(layout), bytes, root };
        array.elements(&mut |position, element| Some(visit(position, element)));
        failure.into_inner().map_or(Ok(()), Err)
    }
}

impl Long<'_> {
    /// Its type.
    pub fn kind(&self) -> ElementType {
        self.kind
    }

    /// Returns how many elements an array has.
    pub fn element_count(&self) -> Option<u64> {
        let container = self.container()?;
        self.read(container.sequence.count(self.store))
    }

    /// Asks the value, put together.
    pub fn test_value(&self, test_value: impl FnOnce(Value<'_>) -> bool) -> Option<bool> {
        let Long { kind, layout, bytes, root, .. } = *self;
        let item = ItemRef { kind, name: &[], body: BodyRef::Elsewhere { layout, bytes, root } };
        let mut whole = Vec::new();
        self.read(append_value(self.store, reading_format(), item, &mut whole, 1))?;
        let value = decode_value(kind, &whole);
        let value = value.ok_or_else(|| PiecesError::damaged("a value of another type"));
        self.read(value).map(test_value)
    }

    /// Shows the elements of an array until one is enough, or one of them can't say.
    pub fn elements(&self, visit: &mut dyn FnMut(u64, Lying<'_>) -> Option<bool>) -> Option<bool> {
        let Container { sequence, layout, .. } = self.container()?;
        let mut answer = Some(false);
        let visited = sequence.visit(self.store, 0, &mut |position, item| {
            let element = ItemRef::decode(item, layout).and_then(|item| self.element(item));
            answer = self.read(element).and_then(|element| visit(position, element));
            answer != Some(false)
        });
        self.read(visited)?;
        answer
    }

    /// Shows what a path reaches of whose parts the first `done` led here.
    pub fn reach(&self, path: &Path, done: usize, visit: &mut VisitPart<'_>) -> Option<bool> {
        if done == path.parts().len() {
            let is_expandable = self.kind == ElementType::Array;
            return visit(ReachedPart::Long { value: *self, position: None, is_expandable });
        }
        let walk = Walk { store: self.store, path, failure: self.failure };
        self.read(walk.go_on(self.container()?, (done, None), visit))?
    }

    fn element<'e>(&'e self, item: ItemRef<'e>) -> Result<Lying<'e>, PiecesError> {
        Ok(match item.body {
            BodyRef::Here(value) => Lying::Here(
                decode_value(item.kind, value)
                    .ok_or_else(|| PiecesError::damaged("a value of another type"))?,
            ),
            BodyRef::Elsewhere { layout, bytes, root } => {
                Lying::Elsewhere(Long { kind: item.kind, layout, bytes, root, ..*self })
            }
        })
    }

    fn container(&self) -> Option<Container> {
        let sequence = Sequence { root: self.root, format: reading_format() };
        self.layout.map(|layout| Container { sequence, layout, bytes: self.bytes })
    }

    /// Returns the value that was read; keeps the error otherwise.
    fn read<T>(&self, read: Result<T, impl Into<PiecesError>>) -> Option<T> {
        match read {
            Ok(read) => Some(read),
            Err(error) => {
                self.failure.borrow_mut().get_or_insert(error.into());
                None
            }
        }
    }
}
