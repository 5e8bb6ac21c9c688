//! Building an index's tree from documents that are there, in bounded memory.
//!
//! 1. Every document's entries go into a sorter, which writes sorted runs to temporary files when
//!    it holds more than a stage of a query may.
//! 2. The runs are interleaved into a tree whose nodes are written once each. Two documents under
//!    one key of a unique index stand next to each other then.
//!
//! The new trees are part of no collection until a transaction names them: a build that is killed
//! or crashes leaves chunks that nothing refers to, and temporary files, which go when the data
//! directory is opened.

use bytes::Bytes;
use frond_doc::{Binary, DocumentBuf, DocumentBuilder, Value as BsonValue};
use frond_query::QueryError;
use frond_query::pipeline::Sorter;
use frond_tree::{Bounds, Direction, Entry, Tree, TreeFormat, Value};

use crate::catalog::duplicate;
use crate::catalog::index_entry::{entries, id_key_of};
use crate::definition::IndexSpec;
use crate::error::Error;
use crate::frond::Frond;
use crate::interrupt::Interrupt;
use crate::large::read_document;
use crate::schema::{Index, Progress, TreeRef};

/// The documents between two checks whether to stop.
const CHECK_COUNT: u64 = 256;
/// The name of the sorter, in messages.
const BUILD: &str = "an index build";

/// The parts that a build needs besides the documents.
#[derive(Clone, Copy)]
pub(crate) struct Builder<'a> {
    /// The directory whose store and temporary files are used.
    pub frond: &'a Frond,
    /// The repository's.
    pub format: TreeFormat,
    /// `shop.things`, for messages.
    pub namespace: &'a str,
    /// Interrupts the build.
    pub interrupt: &'a Interrupt,
    /// Reports the progress.
    pub progress: Option<&'a Progress>,
}

/// Gives the document with an `_id`'s key.
pub(crate) type FindDocument<'a> = dyn Fn(&[u8]) -> Result<Option<DocumentBuf>, Error> + 'a;

impl Builder<'_> {
    /// Builds the tree of `index` over `documents`: each with the key of its `_id`. `find` gives
    /// the document with an `_id`'s key again, for the message if there is a second one under its
    /// key.
    ///
    /// # Errors
    /// `DuplicateKey` if the index is unique and two documents have one key.
    pub fn index_tree(
        &self,
        index: &Index,
        documents: &mut dyn Iterator<Item = Result<(Bytes, DocumentBuf), Error>>,
        find: &FindDocument<'_>,
    ) -> Result<Tree, Error> {
        let resources = self.frond.resources(false);
        let mut sorter = Sorter::new(BUILD, &resources, usize::MAX);
        for (count, document) in (0_u64..).zip(documents) {
            if count.is_multiple_of(CHECK_COUNT) {
                self.interrupt.check()?;
            }
            let (id_key, document) = document?;
            for (key, value) in entries(index, &id_key, document.view())? {
                sorter.add(key, packed(&value)?)?;
            }
            if let Some(progress) = self.progress {
                progress.count_document();
            }
        }
        let sorted = sorter.finish()?;
        self.tree_of(index, sorted, find)
    }

    /// Builds the tree of an index over the documents in a tree.
    ///
    /// # Errors
    /// As [`Builder::index_tree`].
    pub fn index_over(&self, documents: Tree, spec: &IndexSpec) -> Result<Tree, Error> {
        let store = self.frond.engine().store();
        let index = Index::new(spec.clone(), TreeRef::Committed(documents));
        let mut read = documents.range(store, Bounds::all(), Direction::Ascending).map(|entry| {
            let entry = entry?;
            Ok((entry.key, read_document(&**store, &entry.value)?))
        });
        let find = |id_key: &[u8]| {
            let value = documents.get(&**store, id_key)?;
            Ok(value.map(|value| read_document(&**store, &value)).transpose()?)
        };
        self.index_tree(&index, &mut read, &find)
    }

    fn tree_of(
        &self,
        index: &Index,
        sorted: impl Iterator<Item = Result<(Bytes, DocumentBuf), QueryError>>,
        find: &FindDocument<'_>,
    ) -> Result<Tree, Error> {
        let mut before: Option<Bytes> = None;
        let mut count: u64 = 0;
        let mut next = |entry: Result<(Bytes, DocumentBuf), QueryError>| {
            count += 1;
            if count.is_multiple_of(CHECK_COUNT) {
                self.interrupt.check()?;
            }
            let (key, packed) = entry?;
            let value = unpacked(&packed)?;
            debug_assert!(before.as_ref() <= Some(&key), "a sorter gives keys in their order");
            if index.spec.unique && before.as_ref() == Some(&key) {
                return Err(self.duplicate(index, &key, &value, find));
            }
            before = Some(key.clone());
            Ok(Entry { key, value })
        };
        // The tree's errors can't hold ours: its entries end, and what comes of them is dropped.
        let mut failure = None;
        let mut sorted = sorted;
        let mut entries = std::iter::from_fn(|| match next(sorted.next()?) {
            Ok(entry) => Some(Ok(entry)),
            Err(error) => {
                failure = Some(error);
                None
            }
        });
        let format = index.spec.tree_format(self.format);
        let built = Tree::load(&**self.frond.engine().store(), format, &mut entries);
        match failure {
            Some(error) => Err(error),
            None => Ok(built?),
        }
    }

    /// The error of a second document under a key.
    fn duplicate(
        &self,
        index: &Index,
        key: &Bytes,
        value: &Value,
        find: &FindDocument<'_>,
    ) -> Error {
        let document = inline_bytes(value)
            .and_then(|content| id_key_of(index, key, &content))
            .and_then(|id_key| find(&id_key));
        match document {
            Ok(document) => {
                let document = document.unwrap_or_else(DocumentBuf::empty);
                duplicate::of_index(self.namespace, index, key, document.view())
            }
            Err(error) => error,
        }
    }
}

/// The bytes of a value that was just made.
fn inline_bytes(value: &Value) -> Result<Bytes, Error> {
    match &value.content {
        frond_tree::Content::Inline(bytes) => Ok(bytes.clone()),
        _ => Err(Error::internal("an entry that was just made lies out of line")),
    }
}

/// An entry's value as a document, which a sorter takes.
fn packed(value: &Value) -> Result<DocumentBuf, Error> {
    let bytes = inline_bytes(value)?;
    let mut builder = DocumentBuilder::new();
    builder.append("f", BsonValue::Int32(i32::from(value.flags)));
    builder.append("v", BsonValue::Binary(Binary { subtype: 0, bytes: &bytes }));
    Ok(builder.build())
}

fn unpacked(packed: &DocumentBuf) -> Result<Value, Error> {
    let flags = packed.get("f").and_then(|flags| flags.as_integer());
    match (flags.and_then(|flags| u8::try_from(flags).ok()), packed.get("v")) {
        (Some(flags), Some(BsonValue::Binary(binary))) => {
            Ok(Value { flags, ..Value::inline(Bytes::copy_from_slice(binary.bytes)) })
        }
        _ => Err(Error::internal("a sorter gave back something else than it got")),
    }
}
