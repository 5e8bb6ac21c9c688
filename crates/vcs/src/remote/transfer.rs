//! Selects the chunks to move: those that the new commits reach and the other side lacks.
//!
//! 1. The commits that the other side doesn't have are gone through in groups, the oldest first. A
//!    group is compared with the parents of its commits, which are there by then or in the group.
//! 2. The trees of chunks below a group's catalogs are walked level by level, beside those of the
//!    parents. A chunk that a parent has, too, is there with all below it, and is not looked at. So
//!    the cost follows the change, not the data, and the questions that are asked follow the depth
//!    of the trees and the number of groups, not the number of commits: the other side may be far
//!    away.
//! 3. Of what is new, in batches, several at once: what the other side has already (a transfer that
//!    was cut) isn't sent again, but what it refers to is looked at, since it may have come without
//!    that.
//!
//! A chunk that the other side *has* was read there and is whole (`Endpoint::has_many`): a name in
//! an index is no proof. The common chunks of both are looked at only to pass over them, so a node
//! of these that can't be read is left out, and more is asked for.
//!
//! *Damage* where chunks come from ends a transfer, unless it is to save the rest
//! ([`Transfer::saving`]): then what can't be read is listed, and what only it leads to isn't
//! reached.
//!
//! The order of a level is that of the trees, commit by commit: so versions of the same data, and
//! what lies side by side in a tree, are sent together, and compress well together.
//!
//! *Bounds*: hashes are kept in memory, 32 bytes for each chunk that moves; chunks only a batch at
//! a time and thread. The other side may be a stranger's: what comes is of a kind that has a place
//! below a commit, no larger than [`CHUNK_BYTES_MAX`], and no deeper than [`LEVELS_MAX`].

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use frond_db::inside::{Commit, Error, ErrorKind};
use frond_store::{Chunk, ChunkHash, ChunkKind};

/// Chunks that are asked for and put together.
const BATCH: usize = 256;
/// Commits whose trees are walked together.
const GROUP: usize = 64;
/// Batches that are on their way at once.
const THREADS: usize = 4;
/// Levels of chunks below a commit: catalog, entries, documents, and a document's containers, each
/// a tree of several levels. Documents nest at most 180 deep or so.
const LEVELS_MAX: usize = 2_048;
/// The greatest number of bytes of a chunk that moves. The largest that Frond makes is a
/// collection's entry with a validator of 16 MB.
pub const CHUNK_BYTES_MAX: usize = 20 << 20;

/// The counts of moved commits, chunks and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moved {
    /// Commits that the other side lacked.
    pub commits: u64,
    /// The number of these that are done.
    pub commits_done: u64,
    /// Chunks that were sent.
    pub chunks: u64,
    /// Their bytes, uncompressed.
    pub bytes: u64,
    /// Chunks that were there already.
    pub known: u64,
    /// Chunks to be looked at down to the level of the trees that is on its way: what is below it
    /// isn't known yet. Most chunks are on the last level.
    pub found: u64,
}

impl Moved {
    /// Chunks that were sent or are there.
    pub fn looked_at(&self) -> u64 {
        self.chunks + self.known
    }
}

/// Moves chunks between two places.
pub(crate) trait Endpoint: Sync {
    /// Returns for each of `hashes` whether the place that chunks are sent to has it, whole: it was
    /// read.
    ///
    /// # Errors
    /// As the store or remote that it is.
    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, Error>;
    /// Gets chunks from the place that they are sent from.
    ///
    /// # Errors
    /// As the store or remote that it is.
    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error>;
    /// Puts chunks where they are sent to.
    ///
    /// # Errors
    /// As the store or remote that it is.
    fn put_many(&self, chunks: &[Chunk]) -> Result<(), Error>;
    /// Reads chunks that both places have, where that costs least.
    ///
    /// # Errors
    /// As the store or remote that it is.
    fn read_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error>;
}

/// A transfer on its way.
pub(crate) struct Transfer<'a> {
    lane: &'a dyn Endpoint,
    progress: &'a mut dyn FnMut(&Moved),
    pub moved: Moved,
    /// The chunks that were looked at.
    seen: HashSet<ChunkHash>,
    /// The parents of commits among them.
    parents: Vec<ChunkHash>,
    how: How,
    /// The chunks that can't be read where they come from, and why.
    pub lost: Vec<(ChunkHash, Error)>,
}

/// The kinds of chunks that may move, and the treatment of those that can't.
#[derive(Clone, Copy, Default)]
struct How {
    /// Whether an engine's state may move: in a backup, never to or from a remote's repository.
    with_engine_state: bool,
    /// Whether damage where chunks come from is passed over.
    is_saving: bool,
}

/// The result of a batch.
struct Batch {
    /// The references of its chunks.
    below: Vec<ChunkHash>,
    /// The parents of commits among them.
    parents: Vec<ChunkHash>,
    sent: u64,
    bytes: u64,
    known: u64,
    lost: Vec<(ChunkHash, Error)>,
}

impl<'a> Transfer<'a> {
    /// Begins with nothing moved.
    pub fn new(lane: &'a dyn Endpoint, progress: &'a mut dyn FnMut(&Moved)) -> Transfer<'a> {
        let (moved, seen, parents, lost) = Default::default();
        Transfer { lane, progress, moved, seen, parents, how: How::default(), lost }
    }

    /// The same, for a whole data directory.
    pub fn of_engine(lane: &'a dyn Endpoint, progress: &'a mut dyn FnMut(&Moved)) -> Transfer<'a> {
        let how = How { with_engine_state: true, ..How::default() };
        Transfer { how, ..Transfer::new(lane, progress) }
    }

    /// The same, which lists in `lost` what can't be read, and moves the rest.
    pub fn saving(self) -> Transfer<'a> {
        Transfer { how: How { is_saving: true, ..self.how }, ..self }
    }

    /// Moves commits that the other side lacks, the oldest first. Their chunks are `chunks`; those
    /// of their parents that are neither among these nor on both sides are `absent`.
    ///
    /// # Errors
    /// `Damaged` if a chunk is no commit; as [`Transfer::tree`].
    pub fn commits(&mut self, chunks: &[Chunk], absent: &HashSet<ChunkHash>) -> Result<(), Error> {
        self.moved.commits = chunks.len() as u64;
        for group in chunks.chunks(GROUP) {
            let inside: HashSet<ChunkHash> = group.iter().map(Chunk::hash).collect();
            let (mut roots, mut parents) = (Vec::new(), Vec::new());
            for chunk in group {
                let commit = Commit::decode(chunk)?;
                roots.push(commit.catalog.root);
                let is_before = |hash: &ChunkHash| !inside.contains(hash) && !absent.contains(hash);
                parents.extend(commit.parents.into_iter().filter(is_before));
            }
            let mut before = Vec::new();
            for parent in self.lane.read_many(&unique(parents))? {
                before.push(Commit::decode(&parent)?.catalog.root);
            }
            self.tree(roots, before)?;
            self.lane.put_many(group)?;
            self.moved.chunks += group.len() as u64;
            self.moved.found = self.moved.looked_at();
            self.moved.bytes += bytes_of(group);
            self.moved.commits_done += group.len() as u64;
            (self.progress)(&self.moved);
        }
        Ok(())
    }

    /// Moves what is below `roots`, and isn't below one of `before`.
    ///
    /// # Errors
    /// `Damaged` if a chunk isn't what its name says, or the trees are deeper than any can be; as
    /// the side that is read, and the side that is written.
    pub fn tree(&mut self, roots: Vec<ChunkHash>, before: Vec<ChunkHash>) -> Result<(), Error> {
        let (mut fresh, mut old) = (unique(roots), unique(before));
        let mut known: HashSet<ChunkHash> = HashSet::new();
        for _ in 0..LEVELS_MAX {
            // A tree may have grown by a level: what stood higher on the other side is known, too.
            known.extend(&old);
            let shared: HashSet<ChunkHash> = fresh.iter().copied().collect();
            fresh.retain(|hash| !known.contains(hash) && self.seen.insert(*hash));
            if fresh.is_empty() {
                return Ok(());
            }
            // Chunks on both sides needn't be opened to find which chunks they share below them.
            old.retain(|hash| !shared.contains(hash));
            fresh = unique(self.level(&fresh)?);
            old = if fresh.is_empty() {
                Vec::new()
            } else {
                references(self.lane, &old, self.how, (Passed::Over, &mut |_| ()))?
            };
        }
        Err(Error::damaged("the repository's trees are deeper than any can be"))
    }

    /// Moves the commits of an engine's state to which only their children lead, after all else:
    /// those of a database that was dropped before drops recorded each commit. `absent` are those
    /// that a shallow clone lacks. If what the other side has `is_proven` to be there with all
    /// below it, commits that are there are passed over.
    ///
    /// # Errors
    /// As [`Transfer::tree`].
    pub fn unrecorded(
        &mut self,
        absent: &HashSet<ChunkHash>,
        is_proven: bool,
    ) -> Result<(), Error> {
        loop {
            let mut parents = unique(std::mem::take(&mut self.parents));
            parents.retain(|hash| !self.seen.contains(hash) && !absent.contains(hash));
            if is_proven {
                let mut there = Vec::with_capacity(parents.len());
                for batch in parents.chunks(BATCH) {
                    there.extend(self.lane.has_many(batch)?);
                }
                let mut there = there.into_iter();
                parents.retain(|_| there.next() == Some(false));
            }
            if parents.is_empty() {
                return Ok(());
            }
            self.tree(parents, Vec::new())?;
        }
    }

    /// Moves the chunks of a level that are missing, several batches at once; returns the hashes to
    /// which all of it refers.
    fn level(&mut self, hashes: &[ChunkHash]) -> Result<Vec<ChunkHash>, Error> {
        let batches: Vec<&[ChunkHash]> = hashes.chunks(BATCH).collect();
        let (lane, how) = (self.lane, self.how);
        let next = AtomicUsize::new(0);
        let (sender, receiver) = mpsc::channel();
        let mut below: Vec<Vec<ChunkHash>> = vec![Vec::new(); batches.len()];
        let mut failed = None;
        self.moved.found = self.moved.looked_at() + hashes.len() as u64;
        std::thread::scope(|scope| {
            for _ in 0..THREADS.min(batches.len()) {
                let (sender, batches, next) = (sender.clone(), &batches, &next);
                scope.spawn(move || {
                    loop {
                        let position = next.fetch_add(1, Ordering::Relaxed);
                        let Some(batch) = batches.get(position) else { return };
                        let done = move_batch(lane, batch, how);
                        if done.is_err() {
                            next.store(batches.len(), Ordering::Relaxed);
                        }
                        if sender.send((position, done)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            for (position, done) in receiver {
                match done {
                    Ok(batch) => {
                        self.moved.chunks += batch.sent;
                        self.moved.bytes += batch.bytes;
                        self.moved.known += batch.known;
                        self.lost.extend(batch.lost);
                        self.parents.extend(batch.parents);
                        (self.progress)(&self.moved);
                        below[position] = batch.below;
                    }
                    Err(error) => failed = failed.take().or(Some(error)),
                }
            }
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(below.concat()),
        }
    }
}

/// Sends what of a batch is missing.
fn move_batch(lane: &dyn Endpoint, hashes: &[ChunkHash], how: How) -> Result<Batch, Error> {
    let there = lane.has_many(hashes)?;
    if there.len() != hashes.len() {
        return Err(Error::damaged("an answer for each chunk was expected"));
    }
    let (mut missing, mut known) = (Vec::new(), Vec::new());
    for (hash, is_there) in hashes.iter().zip(&there) {
        if *is_there { known.push(*hash) } else { missing.push(*hash) }
    }
    let mut lost = Vec::new();
    let get = |hashes: &[ChunkHash]| lane.get_many(hashes);
    let chunks = match get_many(&missing, &get) {
        Err(error) if how.is_saving && error.kind == ErrorKind::Damaged => {
            each(&missing, &get, &mut |hash, error| lost.push((hash, error)))?
        }
        chunks => chunks?,
    };
    for chunk in &chunks {
        check(chunk, how.with_engine_state)?;
    }
    if !chunks.is_empty() {
        lane.put_many(&chunks)?;
    }
    let mut lower: Vec<ChunkHash> = chunks.iter().flat_map(below).collect();
    let mut before: Vec<ChunkHash> = chunks.iter().flat_map(parents).collect();
    let mut note = |chunk: &Chunk| before.extend(parents(chunk));
    lower.extend(references(lane, &known, how, (Passed::Through, &mut note))?);
    let (sent, known) = (chunks.len() as u64, known.len() as u64);
    let bytes = bytes_of(&chunks);
    Ok(Batch { below: lower, parents: before, sent, bytes, known, lost })
}

/// Gets chunks by their names, in their order.
pub(crate) type ChunkGetter<'a> = dyn Fn(&[ChunkHash]) -> Result<Vec<Chunk>, Error> + 'a;

/// Gets chunks, and compares their names with those that were asked for.
fn get_many(hashes: &[ChunkHash], get: &ChunkGetter<'_>) -> Result<Vec<Chunk>, Error> {
    let chunks = if hashes.is_empty() { Vec::new() } else { get(hashes)? };
    match hashes.iter().copied().eq(chunks.iter().map(Chunk::hash)) {
        true => Ok(chunks),
        false => Err(Error::damaged("other chunks came than were asked for")),
    }
}

/// Gets those chunks that are there and whole, together if that can be; `lose` is called with the
/// others.
pub(crate) fn saved(
    hashes: &[ChunkHash],
    get: &ChunkGetter<'_>,
    lose: &mut dyn FnMut(ChunkHash),
) -> Result<Vec<Chunk>, Error> {
    match get_many(hashes, get) {
        Err(error) if error.kind == ErrorKind::Damaged => {
            each(hashes, get, &mut |hash, _| lose(hash))
        }
        chunks => chunks,
    }
}

/// Gets chunks one by one; `lose` is called with those that are damaged or missing.
pub(crate) fn each(
    hashes: &[ChunkHash],
    get: &ChunkGetter<'_>,
    lose: &mut dyn FnMut(ChunkHash, Error),
) -> Result<Vec<Chunk>, Error> {
    let mut found = Vec::with_capacity(hashes.len());
    for hash in hashes {
        match get_many(std::slice::from_ref(hash), get) {
            Ok(chunks) => found.extend(chunks),
            Err(error) if error.kind == ErrorKind::Damaged => lose(*hash, error),
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Refuses what has no place below a commit.
fn check(chunk: &Chunk, with_engine_state: bool) -> Result<(), Error> {
    match chunk.kind() {
        ChunkKind::Commit | ChunkKind::EngineState if !with_engine_state => {
            let (hash, kind) = (chunk.hash(), chunk.kind());
            Err(Error::damaged(format!("chunk {hash}: a {kind:?} has no place there")))
        }
        _ => check_size(chunk),
    }
}

/// Refuses a chunk that is larger than any.
pub(crate) fn check_size(chunk: &Chunk) -> Result<(), Error> {
    let bytes = chunk.encoded().len();
    if bytes <= CHUNK_BYTES_MAX {
        return Ok(());
    }
    Err(Error::damaged(format!("chunk {}: {bytes} bytes are too many", chunk.hash())))
}

/// Returns the references of a chunk that are to be moved with it. Of a commit in an engine's state
/// not its parents: each commit has a record there, and in a shallow clone the parents of some are
/// elsewhere.
fn below(chunk: &Chunk) -> impl Iterator<Item = ChunkHash> + '_ {
    let count = if chunk.kind() == ChunkKind::Commit { 1 } else { usize::MAX };
    chunk.references().take(count)
}

/// Returns the parents of a commit in an engine's state.
fn parents(chunk: &Chunk) -> impl Iterator<Item = ChunkHash> + '_ {
    let count = if chunk.kind() == ChunkKind::Commit { 1 } else { usize::MAX };
    chunk.references().skip(count)
}

/// The reason why chunks are read that both places have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Passed {
    /// Chunks below them needn't move: one that can't be read only causes more to be looked at.
    Over,
    /// Chunks below them may be missing yet: all of them must be read.
    Through,
}

/// Returns the references of chunks that both places have, each of which is shown to `note`.
fn references(
    lane: &dyn Endpoint,
    hashes: &[ChunkHash],
    how: How,
    (passed, note): (Passed, &mut dyn FnMut(&Chunk)),
) -> Result<Vec<ChunkHash>, Error> {
    let mut found = Vec::new();
    let read = |hashes: &[ChunkHash]| lane.read_many(hashes);
    for batch in hashes.chunks(BATCH) {
        let chunks = match read(batch) {
            Err(error) if passed == Passed::Over && error.kind == ErrorKind::Damaged => {
                each(batch, &read, &mut |_, _| ())?
            }
            chunks => chunks?,
        };
        for chunk in chunks {
            check(&chunk, how.with_engine_state)?;
            note(&chunk);
            found.extend(below(&chunk));
        }
    }
    Ok(unique(found))
}

fn bytes_of(chunks: &[Chunk]) -> u64 {
    chunks.iter().map(|chunk| chunk.encoded().len() as u64).sum()
}

/// Returns each once, where it stood first.
fn unique(mut hashes: Vec<ChunkHash>) -> Vec<ChunkHash> {
    let mut seen = HashSet::with_capacity(hashes.len());
    hashes.retain(|hash| seen.insert(*hash));
    hashes
}
