//! A plain directory or bucket as a remote: packs of chunks, and one file of refs. No process need run there.
//!
//! - A pack is written as a whole and never changed.
//! - The refs are one file, which is swapped: whoever changes refs reads them first, and begins anew if
//!   somebody else was faster.
//!
//! Readers take no lock: a pack that a ref needs was durable before the ref. What a cut push leaves are packs
//! that nothing refers to; the next push finds their chunks there, and goes on, or `reclaim` removes them.
//!
//! Where the files lie is a [`PlainPlace`]: a directory here, a bucket of an object store in a crate of its own.

pub(crate) mod format;
pub(crate) mod packs;
pub(crate) mod place;
mod reclaim;

use std::sync::{Arc, Mutex};

use frond_store::io::{Chance, Machine};
use frond_store::{Chunk, ChunkHash};

use crate::error::Error;
use crate::version::remote::data::{moved_on, other_lineage};
use crate::version::remote::{RefUpdate, Remote, RemoteState};

use format::Refs;
use packs::Packs;
use place::DirectoryPlace;

pub use format::BackupInfo;
pub use place::{FilePart, FileVersion, PlainPlace};
pub use reclaim::PlainReclaimed;

/// The file of refs.
const REFS_NAME: &str = "REFS";
/// How often a swap of the refs is tried again when others were faster.
const SWAP_ATTEMPTS_MAX: u32 = 1_000;

/// A repository, or backups, in a plain place.
pub struct PlainRemote {
    place: Arc<dyn PlainPlace>,
    packs: Packs,
    /// How often the place had been collected when the packs were looked at first: what was found there
    /// may be gone if it was collected since.
    collections: Mutex<u64>,
}

impl PlainRemote {
    /// Opens the repository in `machine`'s directory, which may be empty.
    ///
    /// # Errors
    /// `Damaged` if a pack is; `Unavailable` if the disk doesn't answer.
    pub fn open(machine: &Machine) -> Result<PlainRemote, Error> {
        PlainRemote::open_in(Arc::new(DirectoryPlace::new(machine)), machine.chance.clone())
    }

    /// Opens the repository in `place`, which may be empty.
    ///
    /// # Errors
    /// As `open`.
    pub fn open_in(
        place: Arc<dyn PlainPlace>,
        chance: Arc<dyn Chance>,
    ) -> Result<PlainRemote, Error> {
        let packs = Packs::new(place.clone(), chance);
        let remote = PlainRemote { place, packs, collections: Mutex::new(0) };
        let refs = remote.refresh()?;
        *remote.collections.lock().expect("no panic while the lock is held") = refs.collections;
        Ok(remote)
    }

    /// Reads the refs, and looks for packs that came since: a ref that is read now may need them.
    fn refresh(&self) -> Result<Refs, Error> {
        let (refs, _) = self.read_refs()?;
        self.packs.refresh(&refs.doomed)?;
        Ok(refs)
    }

    fn read_refs(&self) -> Result<(Refs, Option<FileVersion>), Error> {
        match self.place.load(REFS_NAME, format::REFS_BYTES_MAX)? {
            Some((bytes, version)) => Ok((format::decode_refs(&bytes)?, Some(version))),
            None => Ok((Refs::default(), None)),
        }
    }

    /// Changes the refs by `change`, which is called again if somebody else changed them meanwhile.
    fn change_refs(
        &self,
        change: &mut dyn FnMut(&mut Refs) -> Result<(), Error>,
    ) -> Result<Refs, Error> {
        for _ in 0..SWAP_ATTEMPTS_MAX {
            let (mut refs, version) = self.read_refs()?;
            change(&mut refs)?;
            let bytes = bytes::Bytes::from(format::encode_refs(&refs));
            if self.place.swap(REFS_NAME, version.as_ref(), bytes.clone())? {
                return Ok(refs);
            }
            // Or it was swapped, and the answer was lost on its way.
            let now = self.place.load(REFS_NAME, format::REFS_BYTES_MAX)?;
            if now.is_some_and(|(now, _)| now == bytes) {
                return Ok(refs);
            }
        }
        Err(Error::unavailable("the remote's refs are being changed by many others: try again"))
    }

    /// Makes all that was put durable, then changes the refs, which may refer to it.
    fn publish(&self, change: &mut dyn FnMut(&mut Refs) -> Result<(), Error>) -> Result<(), Error> {
        self.packs.flush()?;
        let known = *self.collections.lock().expect("no panic while the lock is held");
        let done = self.change_refs(&mut |refs| {
            if refs.collections != known {
                let message = "the remote was collected meanwhile: run it again";
                return Err(Error::unavailable(message));
            }
            change(refs)
        });
        done.map(drop)
    }

    /// The backups that lie there, the oldest first.
    pub fn backups(&self) -> Result<Vec<BackupInfo>, Error> {
        Ok(self.refresh()?.backups)
    }

    /// Adds a backup, whose chunks were put before.
    ///
    /// # Errors
    /// `NamespaceExists` if there is one of that name.
    pub fn add_backup(&self, backup: &BackupInfo) -> Result<(), Error> {
        self.publish(&mut |refs| {
            if refs.backups.iter().any(|known| known.name == backup.name) {
                let message = format!("a backup {} is there", backup.name);
                return Err(Error::invalid(frond_query::Code::NamespaceExists, message));
            }
            refs.backups.push(backup.clone());
            Ok(())
        })
    }

    /// Forgets a backup; `reclaim` then removes what only it needed.
    ///
    /// # Errors
    /// `NamespaceNotFound` if there is none of that name.
    pub fn remove_backup(&self, name: &str) -> Result<(), Error> {
        let done = self.change_refs(&mut |refs| {
            let count = refs.backups.len();
            refs.backups.retain(|known| known.name != name);
            if refs.backups.len() == count {
                let message = format!("no backup {name}");
                return Err(Error::invalid(frond_query::Code::NamespaceNotFound, message));
            }
            Ok(())
        });
        done.map(drop)
    }
}

impl Remote for PlainRemote {
    fn state(&self) -> Result<Option<RemoteState>, Error> {
        Ok(self.refresh()?.repository)
    }

    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, Error> {
        Ok(self.packs.has_many(hashes))
    }

    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        if let Some(chunks) = self.packs.get_many(hashes)? {
            return Ok(chunks);
        }
        // A collection moved what is wanted to other packs.
        self.refresh()?;
        let gone = || Error::unavailable("packs of the remote went while it was read: try again");
        self.packs.get_many(hashes)?.ok_or_else(gone)
    }

    fn put_many(&self, chunks: &[Chunk]) -> Result<(), Error> {
        self.packs.put_many(chunks)
    }

    fn update(&self, update: &RefUpdate) -> Result<(), Error> {
        self.publish(&mut |refs| {
            let state = refs.repository.get_or_insert_with(|| RemoteState {
                salt: update.salt,
                default_branch: update.default_branch.clone(),
                branches: Default::default(),
                tags: Default::default(),
            });
            if state.salt != update.salt {
                return Err(other_lineage("the database"));
            }
            if state.branches.get(&update.branch).copied() != update.expected {
                return Err(moved_on(&update.branch));
            }
            state.branches.insert(update.branch.clone(), update.new);
            for (tag, chunk) in &update.tags {
                let entry = state.tags.entry(tag.name.clone());
                entry.or_insert_with(|| (tag.clone(), *chunk));
            }
            Ok(())
        })
    }
}
