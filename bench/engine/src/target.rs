//! The interface that a storage engine must implement to be measured.
//!
//! A target is one small module in [`crate::targets`]. Trees are numbered from 0 and all exist when
//! the target is opened. All work goes through a [`Session`], one a thread. Every write is one
//! atomic transaction, and durable (synced) when the call returns: there is one level of
//! durability, the same for all. A read sees everything that was written before it began.

use std::path::Path;

use bytes::Bytes;

/// The reason why something could not be measured.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The settings with which a target is opened.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// An empty directory.
    pub directory: &'a Path,
    /// The number of trees.
    pub tree_count: usize,
    /// Bytes for cached pages, blocks or chunks; write buffers come on top.
    pub cache_bytes: u64,
    /// The size at which writes gathered in memory are moved, in engines that gather them.
    pub write_buffer_bytes: u64,
}

impl<'a> Settings<'a> {
    /// Opens it with the usual write buffers.
    pub fn new(directory: &'a Path, tree_count: usize, cache_bytes: u64) -> Settings<'a> {
        Settings { directory, tree_count, cache_bytes, write_buffer_bytes: WRITE_BUFFER_BYTES }
    }
}

/// The usual size of write buffers; Frond has its own, smaller default.
const WRITE_BUFFER_BYTES: u64 = 64 << 20;
/// The number of further buffers that may wait to be moved, where that can be set.
#[cfg(feature = "rocksdb")]
pub const WRITE_BUFFERS_WAITING: u32 = 4;

/// An entry to be written.
#[derive(Clone)]
pub struct Put {
    /// The number of the tree.
    pub tree: usize,
    /// The key.
    pub key: Bytes,
    /// The value.
    pub value: Bytes,
}

impl Put {
    /// Returns the bytes that are given to the target.
    pub fn bytes(&self) -> u64 {
        (self.key.len() + self.value.len()) as u64
    }
}

/// Keys and values in order.
pub type Entries<'a> = dyn Iterator<Item = (Bytes, Bytes)> + 'a;

/// An engine, open.
pub trait Target: Sync {
    /// Version and settings.
    fn description(&self) -> String;

    /// A handle for one thread.
    fn session(&self) -> Result<Box<dyn Session + '_>, Failure>;

    /// Pays all debt: returns when nothing is left to be flushed, folded or compacted.
    fn rest(&self) -> Result<(), Failure>;

    /// Goes beyond rest: takes away whatever still lies in layers. False if there is no such thing.
    fn fold_all(&self) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Compresses what lies on the disk as far as the engine can, for what is seldom read. False if
    /// there is no such thing.
    fn pack(&self) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Fills an empty tree with entries whose keys ascend, as fast as the engine can; durable when
    /// it returns.
    fn load(&self, tree: usize, entries: &mut Entries<'_>) -> Result<(), Failure>;

    /// Returns the engine's own counters for the report: name and number.
    fn counters(&self) -> Vec<(String, f64)> {
        Vec::new()
    }
}

/// A callback for a value that was read.
pub type VisitValue<'a> = dyn FnMut(&[u8]) + 'a;

/// A callback for an entry that was read; answers whether to go on.
pub type VisitEntry<'a> = dyn FnMut(&[u8], &[u8]) -> bool + 'a;

/// A handle for one thread.
pub trait Session {
    /// Writes in one atomic, durable transaction.
    fn write(&mut self, puts: &[Put]) -> Result<(), Failure>;

    /// Reads the value of `key`; answers whether there is one.
    fn get(&mut self, tree: usize, key: &[u8], visit: &mut VisitValue<'_>)
    -> Result<bool, Failure>;

    /// Reads entries in key order, from the first key that is not less than `from`.
    fn range(
        &mut self,
        tree: usize,
        from: &[u8],
        visit: &mut VisitEntry<'_>,
    ) -> Result<(), Failure>;
}
