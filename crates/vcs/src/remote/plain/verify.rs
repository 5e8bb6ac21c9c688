//! Reads everything in a place, and reports which backups and branches are whole.
//!
//! 1. Every pack is read, from its beginning to its end, and compared with its index. The
//!    references of its chunks are noted, in 16 bytes each: the beginnings of both names. (Two
//!    names that begin alike would hide a loss, or invent one; of a hundred million chunks none do,
//!    most likely.)
//! 2. From each backup, branch and tag these references are followed, without reading anything
//!    again: to chunks that are nowhere whole.

use std::collections::{HashMap, HashSet};

use frond_db::inside::Error;
use frond_store::ChunkHash;

use super::PlainRemote;
use super::examine::StorageDamage;
use super::format::Refs;
use super::reread::Reread;

/// The number of chunks between two calls of `progress`.
const CHUNKS_A_REPORT: u64 = 256;
/// Chunks that are looked for together.
const BATCH: usize = 256;

/// The result of a verification.
#[derive(Clone, Debug, Default)]
pub struct PlaceReport {
    /// Chunks that are whole.
    pub chunks: u64,
    /// Bytes of all packs.
    pub bytes: u64,
    /// The damage found.
    pub damages: Vec<StorageDamage>,
    /// The parts that were checked: backups first, the oldest first.
    pub parts: Vec<StoragePart>,
}

/// A backup, branch or tag, and what it lacks.
#[derive(Clone, Debug)]
pub struct StoragePart {
    /// `backup monday`, `branch main`.
    pub name: String,
    /// The chunk that reaches all others.
    pub root: ChunkHash,
    /// Chunks that it needs and that are nowhere whole.
    pub lost: Vec<ChunkHash>,
    /// The number of these chunks that could not be read when the backup was made.
    pub lost_before: u64,
}

/// The beginning of a name.
fn short(hash: &ChunkHash) -> u64 {
    hash.0.first_chunk().copied().map_or(0, u64::from_be_bytes)
}

/// The references of chunks, sorted by the chunk that refers.
struct References(Vec<(u64, u64)>);

impl References {
    fn of(&self, chunk: u64) -> impl Iterator<Item = u64> + '_ {
        let first = self.0.partition_point(|(from, _)| *from < chunk);
        self.0[first..].iter().take_while(move |(from, _)| *from == chunk).map(|(_, to)| *to)
    }
}

/// A starting point for following references.
struct Root {
    name: String,
    chunk: ChunkHash,
    unread: Vec<ChunkHash>,
    /// Commits that a shallow clone in it lacks: they are elsewhere.
    absent: Vec<ChunkHash>,
}

impl PlainRemote {
    /// Reads everything that lies here and reports what of `backup` (default: of all backups,
    /// branches and tags) is damaged. Nothing is changed. `progress` is called with how many chunks
    /// were read.
    ///
    /// # Errors
    /// `NamespaceNotFound` if there is no such backup; `Unavailable` if the place doesn't answer.
    /// Damage is in the report.
    pub fn verify(
        &self,
        backup: Option<&str>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<PlaceReport, Error> {
        let refs = self.refresh()?;
        let roots = roots_of(&refs, backup)?;
        let mut references = Vec::new();
        let mut names: HashMap<u64, ChunkHash> = HashMap::new();
        let mut done = 0;
        self.reread(Reread::All, &mut |chunk| {
            let own = short(&chunk.hash());
            if names.insert(own, chunk.hash()).is_none() {
                references.extend(chunk.references().map(|to| (own, short(&to))));
                done += 1;
                if done % CHUNKS_A_REPORT == 0 {
                    progress(done);
                }
            }
        })?;
        progress(done);
        references.sort_unstable();
        let references = References(references);
        let mut parts = Vec::new();
        for Root { name, chunk, unread, absent } in roots {
            let lost = reach(short(&chunk), &references, &names);
            let mut lost = self.named(lost, chunk)?;
            lost.retain(|hash| !absent.contains(hash));
            let lost_before = lost.iter().filter(|hash| unread.contains(hash)).count() as u64;
            parts.push(StoragePart { name, root: chunk, lost, lost_before });
        }
        let bytes = self.packs.list()?.iter().map(|(_, bytes)| bytes).sum();
        Ok(PlaceReport { chunks: done, bytes, damages: self.packs.damages(), parts })
    }

    /// The whole names of chunks that begin so: the chunks that refer to them are read.
    fn named(
        &self,
        lost: HashMap<u64, ChunkHash>,
        root: ChunkHash,
    ) -> Result<Vec<ChunkHash>, Error> {
        let mut named: HashSet<ChunkHash> = HashSet::new();
        if lost.contains_key(&short(&root)) {
            named.insert(root);
        }
        let parents: HashSet<ChunkHash> = lost.values().copied().collect();
        let parents: Vec<ChunkHash> = parents.into_iter().collect();
        for batch in parents.chunks(BATCH) {
            for chunk in self.get_found(batch)?.into_iter().flatten() {
                named.extend(chunk.references().filter(|hash| lost.contains_key(&short(hash))));
            }
        }
        let mut named: Vec<ChunkHash> = named.into_iter().collect();
        named.sort_unstable();
        Ok(named)
    }
}

/// Chunks that are reached and nowhere whole, by the beginnings of their names; each with one that
/// refers to it.
fn reach(
    root: u64,
    references: &References,
    whole: &HashMap<u64, ChunkHash>,
) -> HashMap<u64, ChunkHash> {
    let (mut seen, mut stack) = (HashSet::from([root]), vec![root]);
    let mut lost = HashMap::new();
    if !whole.contains_key(&root) {
        lost.insert(root, ChunkHash([0; 32]));
    }
    while let Some(chunk) = stack.pop() {
        for to in references.of(chunk) {
            if !seen.insert(to) {
                continue;
            }
            match (whole.contains_key(&to), whole.get(&chunk)) {
                (true, _) => stack.push(to),
                (false, Some(from)) => drop(lost.insert(to, *from)),
                (false, None) => {}
            }
        }
    }
    lost
}

fn roots_of(refs: &Refs, only: Option<&str>) -> Result<Vec<Root>, Error> {
    let mut roots = Vec::new();
    for backup in refs.backups.iter().filter(|backup| only.is_none_or(|name| name == backup.name)) {
        let (name, unread) = (format!("backup {}", backup.name), backup.lost.clone());
        roots.push(Root { name, chunk: backup.root, unread, absent: backup.absent.clone() });
    }
    if let Some(name) = only {
        if roots.is_empty() {
            let message = format!("no backup {name}");
            return Err(Error::invalid(frond_query::Code::NamespaceNotFound, message));
        }
        return Ok(roots);
    }
    let Some(state) = &refs.repository else { return Ok(roots) };
    let branches = state.branches.iter().map(|(name, chunk)| (format!("branch {name}"), *chunk));
    let tags = state.tags.iter().map(|(name, (_, chunk))| (format!("tag {name}"), *chunk));
    let root = |(name, chunk)| Root { name, chunk, unread: Vec::new(), absent: Vec::new() };
    roots.extend(branches.chain(tags).map(root));
    Ok(roots)
}
