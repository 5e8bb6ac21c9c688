//! An image: everything the engine holds at one moment, reachable from one chunk that no root
//! names.
//!
//! All trees are folded up to one snapshot while writers go on, and an engine-state chunk is made
//! that has these as bases and needs no log. A store with that chunk, all that it reaches, and a
//! root `engine` that names it is a data directory as it was at that moment: [`Image::install`].
//!
//! A base says that it was folded to Sequence 0: nothing below the horizon can lie over it. So a
//! tree that didn't change has the same base chunk in the next image, and two images share what
//! they have in common.

use bytes::Bytes;
use frond_store::io::Disk;
use frond_store::{Chunk, ChunkHash, ChunkKind, ChunkStore, Lifetime, Session, StoreError};
use frond_tree::{Edit, Tree, TreeError};

use crate::compaction::publish::ROOT_NAME;
use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};
use crate::log::format::SegmentNumber;
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use crate::state::Base;
use crate::state::format::{EngineState, base_key, base_value, encode_base};
use crate::state::metadata_chunks::{self, GetSome};

/// The root that a store has while it becomes a data directory.
const BEGUN_NAME: &str = "begun";

/// Everything at one moment. Its chunks are kept until it is dropped.
pub struct Image {
    root: ChunkHash,
    snapshot: Snapshot,
    _session: Session,
}

impl Image {
    /// The chunks by which the other chunks of the image `root` are found: its state, the base map,
    /// the base of each tree, and the nodes of the system tree. `get` returns what it is asked for,
    /// or nothing for what is to be passed over with all below it. The cost is that of these
    /// chunks.
    ///
    /// # Errors
    /// `Damaged` if a chunk isn't what it should be; as `get`.
    pub fn metadata_chunks<E: From<EngineError>>(
        root: ChunkHash,
        get: GetSome<'_, E>,
    ) -> Result<Vec<Chunk>, E> {
        let mut found = Vec::new();
        metadata_chunks::walk(root, get, &mut |chunk| found.push(chunk))?;
        Ok(found)
    }

    /// The chunk of the engine's state.
    pub fn root(&self) -> ChunkHash {
        self.root
    }

    /// The moment.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The moment of a chunk that is a data directory's state, if it is one.
    pub fn horizon(chunk: &Chunk) -> Option<u64> {
        EngineState::decode(chunk).ok().map(|state| state.horizon.0)
    }

    /// Says of a store that it is to be a data directory, and is none until
    /// [`Image::install`]: no engine opens it, so that what was cut short isn't taken for one
    /// without data.
    ///
    /// # Errors
    /// As the store's.
    pub fn begin(store: &dyn ChunkStore) -> Result<(), StoreError> {
        if store.root(BEGUN_NAME)?.is_some() {
            return Ok(());
        }
        let mark = Chunk::new(ChunkKind::Blob, &[], BEGUN_NAME.as_bytes());
        store.put_many_for(Lifetime::Lasting, std::slice::from_ref(&mark))?;
        store.swap_root(BEGUN_NAME, None, Some(mark.hash()))
    }

    /// Whether a store was begun and never became a data directory.
    pub(crate) fn is_begun(store: &dyn ChunkStore) -> Result<bool, StoreError> {
        Ok(store.root(BEGUN_NAME)?.is_some() && store.root(ROOT_NAME)?.is_none())
    }

    /// Makes an empty store the one of a data directory as it was in the image `root`, whose chunks
    /// it has.
    ///
    /// # Errors
    /// [`StoreError::RootChanged`] if the store belongs to a data directory already;
    /// [`StoreError::Damaged`] if the chunk is no engine's state; [`StoreError::Missing`] if it
    /// isn't there. If the store takes nothing more then, it may be installed all the same.
    pub fn install(store: &dyn ChunkStore, root: ChunkHash) -> Result<(), StoreError> {
        EngineState::decode(&store.get(root)?)?;
        store.sync()?;
        store.swap_root(ROOT_NAME, None, Some(root))?;
        // The directory is there now: a mark that stays says nothing any more.
        if let Ok(Some(mark)) = store.root(BEGUN_NAME) {
            let _ = store.swap_root(BEGUN_NAME, Some(mark), None);
        }
        Ok(())
    }

    /// Makes a data directory the one of the image `root`, whose chunks its store has: what it held
    /// before is gone, with its log. Where that was cut short the directory is none until it is
    /// done again.
    ///
    /// # Errors
    /// As `install`; what the disk says.
    pub fn install_over(
        disk: &dyn Disk,
        store: &dyn ChunkStore,
        root: ChunkHash,
    ) -> Result<(), StoreError> {
        EngineState::decode(&store.get(root)?)?;
        store.sync()?;
        let io = |error| StoreError::io("the log", error);
        for name in disk.list().map_err(io)? {
            if SegmentNumber::of_file_name(&name).is_some() {
                disk.remove(&name).map_err(io)?;
            }
        }
        disk.sync_directory().map_err(io)?;
        match store.root(ROOT_NAME)? {
            Some(old) if old == root => Ok(()),
            old => store.swap_root(ROOT_NAME, old, Some(root)),
        }
    }
}

impl Shared {
    /// Makes an image of what is visible now; its chunks are durable. The cost is that of folding
    /// what lies over the trees.
    ///
    /// # Errors
    /// As `fold`; [`EngineError::Store`] if the image's chunks can't be put.
    pub fn image(&self) -> Result<Image, EngineError> {
        let session = self.store.session();
        let snapshot = self.snapshot();
        let trees: Vec<TreeId> = snapshot.trees();
        let folded = self.fold(&snapshot, &trees)?;
        let store = &*self.store;
        let mut edits: Vec<Result<(Bytes, Edit), TreeError>> = Vec::with_capacity(trees.len());
        let mut chunks = Vec::with_capacity(trees.len());
        for (tree, folded) in trees.iter().zip(folded) {
            let chunk = encode_base(&Base::whole(folded, Sequence::ZERO));
            edits.push(Ok((base_key(*tree), Edit::Put(base_value(&chunk)))));
            chunks.push(chunk);
        }
        store.put_many(&chunks)?;
        let bases = Tree::empty(store, self.local_format)?;
        let state = EngineState {
            bases: bases.apply(store, &mut edits.into_iter())?,
            horizon: snapshot.sequence(),
            segment: SegmentNumber::BEHIND_AN_IMAGE,
            has_segment: false,
            next_tree_id: self.tree_ids.next(),
        };
        let chunk = state.encode();
        store.put_many(std::slice::from_ref(&chunk))?;
        self.store_synced(store.sync())?;
        Ok(Image { root: chunk.hash(), snapshot, _session: session })
    }
}
