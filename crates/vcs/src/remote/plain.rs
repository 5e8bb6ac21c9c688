//! A plain directory or bucket as a remote: packs of chunks, and one file of refs. No process need
//! run there.
//!
//! - A pack is written as a whole and never changed.
//! - The refs are one file, which is swapped: a writer that changes refs reads them first, and
//!   begins anew if another one was faster. Then it writes a copy, for when that file is lost
//!   (`refs_file`).
//!
//! Readers take no lock: a pack that a ref needs was durable before the ref. A push that was cut
//! leaves packs that nothing refers to; the next push finds their chunks there, and goes on, or
//! `reclaim` removes them.
//!
//! The chunks that a place is believed to hold are read again, by and by: see `reread`.
//!
//! Where the files lie is a [`PlainStorage`]: a directory here, a bucket of an object store in a
//! crate of its own.

mod examine;
pub(crate) mod format;
pub(crate) mod packs;
mod reclaim;
mod refs_file;
mod reread;
mod second_copy;
pub(crate) mod storage;
mod verify;
use std::sync::{Arc, Mutex};

pub use examine::StorageDamage;
pub use format::BackupInfo;
use format::{PackId, Refs};
use frond_db::inside::Error;
use frond_store::io::{Chance, Machine};
use frond_store::{Chunk, ChunkHash};
use packs::Packs;
pub use reclaim::PlainReclaimed;
pub use reread::Reread;
use storage::DirectoryStorage;
pub use storage::{FilePart, FileVersion, PlainStorage};
pub use verify::{PlaceReport, StoragePart};

use crate::remote::data::{moved_on, other_lineage};
use crate::remote::{RefUpdate, Remote, RemoteState};

/// A repository, or backups, in a plain place.
pub struct PlainRemote {
    place: Arc<dyn PlainStorage>,
    packs: Packs,
    /// The number of collections of the place when the packs were looked at first: chunks found
    /// there may be gone if it was collected since.
    collections: Mutex<u64>,
    /// The pack that we reread last.
    reread: Mutex<Option<PackId>>,
}

impl PlainRemote {
    /// Opens the repository in `machine`'s directory, which may be empty.
    ///
    /// # Errors
    /// `Damaged` if a pack is; `Unavailable` if the disk doesn't answer.
    pub fn open(machine: &Machine) -> Result<PlainRemote, Error> {
        PlainRemote::open_in(Arc::new(DirectoryStorage::new(machine)), machine.chance.clone())
    }

    /// Opens the repository in `place`, which may be empty.
    ///
    /// # Errors
    /// As `open`.
    pub fn open_in(
        place: Arc<dyn PlainStorage>,
        chance: Arc<dyn Chance>,
    ) -> Result<PlainRemote, Error> {
        let packs = Packs::new(place.clone(), chance);
        let remote =
            PlainRemote { place, packs, collections: Mutex::new(0), reread: Mutex::new(None) };
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

    /// Makes all that was put durable, then changes the refs, which may refer to it. Damaged packs
    /// are set aside.
    fn publish(&self, change: &mut dyn FnMut(&mut Refs) -> Result<(), Error>) -> Result<(), Error> {
        let aside = self.packs.rewrite_damaged()?;
        self.packs.flush()?;
        let known = *self.collections.lock().expect("no panic while the lock is held");
        let done = self.change_refs(&mut |refs| {
            if refs.collections != known {
                let message = "the remote was collected meanwhile: run it again";
                return Err(Error::unavailable(message));
            }
            self.note_packs(refs, &aside)?;
            change(refs)
        });
        let refs = done?;
        *self.collections.lock().expect("no panic while the lock is held") = refs.collections;
        if aside.is_empty() { Ok(()) } else { self.packs.refresh(&refs.doomed) }
    }

    /// Chunks that are there and whole, and nothing in the place of the others.
    fn get_found(&self, hashes: &[ChunkHash]) -> Result<Vec<Option<Chunk>>, Error> {
        self.reading(&|packs| packs.get_found(hashes))
    }

    /// Reads from the packs, again if one of them went meanwhile.
    fn reading<T>(&self, read: &dyn Fn(&Packs) -> Result<Option<T>, Error>) -> Result<T, Error> {
        if let Some(found) = read(&self.packs)? {
            return Ok(found);
        }
        // A collection moved what is wanted to other packs.
        self.refresh()?;
        let gone = || Error::unavailable("packs of the remote went while it was read: try again");
        read(&self.packs)?.ok_or_else(gone)
    }

    /// The backups that lie there, the oldest first.
    ///
    /// # Errors
    /// As the place; `Damaged` if what lies there isn't a plain remote's.
    pub fn backups(&self) -> Result<Vec<BackupInfo>, Error> {
        Ok(self.refresh()?.backups)
    }

    /// Adds a backup, whose chunks were put before. An attempt was made to bring the chunks that
    /// the others lack; they still lack `lacking`.
    ///
    /// # Errors
    /// `NamespaceExists` if there is one of that name.
    pub(super) fn add_backup(
        &self,
        backup: &BackupInfo,
        lacking: &[ChunkHash],
    ) -> Result<(), Error> {
        self.publish(&mut |refs| {
            for known in refs.backups.iter_mut().filter(|known| !known.lost.is_empty()) {
                known.lost = lacking.to_vec();
            }
            if refs.backups.iter().any(|known| known.name == backup.name) {
                let message = format!("there is already a backup {}", backup.name);
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

    /// A stored chunk that counts as there was read and is whole.
    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, Error> {
        let mut there = self.packs.has_many(hashes);
        let is_stored = |(position, there): (usize, &bool)| {
            (*there && !self.packs.is_new(&hashes[position])).then_some(position)
        };
        let stored: Vec<usize> = there.iter().enumerate().filter_map(is_stored).collect();
        let names: Vec<ChunkHash> = stored.iter().map(|position| hashes[*position]).collect();
        for (position, found) in stored.into_iter().zip(self.get_found(&names)?) {
            there[position] = found.is_some();
        }
        Ok(there)
    }

    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        self.reading(&|packs| packs.get_many(hashes))
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

    fn reread(&self) -> Result<(), Error> {
        PlainRemote::reread(self, Reread::Little, &mut |_| {})
    }

    fn damages(&self) -> Vec<StorageDamage> {
        self.packs.damages()
    }
}

#[cfg(test)]
mod tests;
