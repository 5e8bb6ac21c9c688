//! Finds the elements in which two versions of a large document, or of a container in it, differ,
//! without reading shared parts.

use frond_store::ChunkStore;
use frond_tree::Sequence;

use super::item::{Body, Item, ItemRef, Layout, has_name};
use super::{Container, LargeDocument, PiecesError};

/// A container before and after it was changed.
#[derive(Clone, Copy, Debug)]
pub struct Versions {
    before: Container,
    after: Container,
}

/// A run of elements that is another in the other version. Between two runs both have the same, in
/// the same order.
#[derive(Clone, Debug)]
pub struct Hunk {
    /// The position of the first element before.
    pub before_at: u64,
    /// The replaced elements.
    pub before: Vec<Item>,
    /// The position of the first element after.
    pub after_at: u64,
    /// The elements in their place.
    pub after: Vec<Item>,
}

/// The differences between two versions.
#[derive(Clone, Debug)]
pub struct Differing {
    /// The runs, ascending.
    pub hunks: Vec<Hunk>,
    /// The number of elements there were.
    pub before_count: u64,
    /// The number of elements there are.
    pub after_count: u64,
}

impl LargeDocument {
    /// The outermost containers of this document and of `after`, which is what became of it.
    pub fn versions(&self, after: &LargeDocument) -> Versions {
        Versions { before: self.root, after: after.root }
    }
}

impl Versions {
    /// Those that two items refer to, if both refer to documents, or to arrays whose elements are
    /// named by their positions.
    pub fn of_items(before: &Item, after: &Item, of: &LargeDocument) -> Option<Versions> {
        let container = |item: &Item| match item.body {
            Body::Elsewhere { layout: Some(layout), bytes, root } => {
                let sequence = Sequence { root, format: of.root.sequence.format };
                Some(Container { sequence, layout, bytes })
            }
            _ => None,
        };
        let (before, after) = (container(before)?, container(after)?);
        let are_alike = before.layout == after.layout && before.layout != Layout::NamedArray;
        are_alike.then_some(Versions { before, after })
    }

    /// Whether they are arrays.
    pub fn are_arrays(&self) -> bool {
        self.after.layout == Layout::Array
    }

    /// Returns the differences between the two versions.
    ///
    /// # Errors
    /// As [`LargeDocument::read`].
    pub fn differing(&self, store: &dyn ChunkStore) -> Result<Differing, PiecesError> {
        let (before, after) = (&self.before, &self.after);
        let hunks = before.sequence.differing(store, &after.sequence)?;
        let items = |items: &[bytes::Bytes], layout| {
            let items = items.iter().map(|item| Ok(ItemRef::decode(item, layout)?.to_item()));
            items.collect::<Result<Vec<Item>, PiecesError>>()
        };
        let hunks = hunks.iter().map(|hunk| {
            Ok(Hunk {
                before_at: hunk.before_at,
                before: items(&hunk.before, before.layout)?,
                after_at: hunk.after_at,
                after: items(&hunk.after, after.layout)?,
            })
        });
        Ok(Differing {
            hunks: hunks.collect::<Result<_, PiecesError>>()?,
            before_count: before.sequence.count(store)?,
            after_count: after.sequence.count(store)?,
        })
    }

    /// All elements of either version from a position on.
    ///
    /// # Errors
    /// As [`LargeDocument::read`].
    pub fn items_from(
        &self,
        store: &dyn ChunkStore,
        position: u64,
    ) -> Result<(Vec<Item>, Vec<Item>), PiecesError> {
        let items = |container: &Container| {
            let (mut items, mut failure) = (Vec::new(), None);
            container.sequence.visit(store, position, &mut |_, item| {
                match ItemRef::decode(item, container.layout) {
                    Ok(item) => items.push(item.to_item()),
                    Err(error) => failure = Some(error),
                }
                failure.is_some()
            })?;
            failure.map_or(Ok(items), Err)
        };
        Ok((items(&self.before)?, items(&self.after)?))
    }

    /// Whether each of these names stands at most once in either version. Both are read for that.
    ///
    /// # Errors
    /// As the store.
    pub fn have_once(&self, store: &dyn ChunkStore, names: &[&[u8]]) -> Result<bool, PiecesError> {
        for container in [&self.before, &self.after] {
            let mut seen = vec![false; names.len()];
            let is_twice = container.sequence.visit(store, 0, &mut |_, item| {
                let found = names.iter().position(|name| has_name(item, name));
                found.is_some_and(|found| std::mem::replace(&mut seen[found], true))
            })?;
            if is_twice {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Item {
    /// The value's bytes as in BSON, if they lie here.
    pub fn short_value(&self) -> Option<&[u8]> {
        match &self.body {
            Body::Here(value) => Some(value),
            Body::Elsewhere { .. } => None,
        }
    }

    /// Returns how long its value is.
    pub fn value_len(&self) -> u64 {
        match &self.body {
            Body::Here(value) => value.len() as u64,
            Body::Elsewhere { bytes, .. } => *bytes,
        }
    }

    /// The value's bytes as in BSON. `of` is the document that it is of.
    ///
    /// # Errors
    /// As [`LargeDocument::read`].
    pub fn value_bytes(
        &self,
        of: &LargeDocument,
        store: &dyn ChunkStore,
    ) -> Result<Vec<u8>, PiecesError> {
        let mut bytes = Vec::new();
        of.append_value_of(store, self, &mut bytes)?;
        Ok(bytes)
    }
}
