//! A plain directory as a remote: packs of chunks, and one file of refs. No process need run there.
//!
//! - A pack is written under a name of its own, synced, and renamed to a name that its content gives it; so
//!   a pack is there as a whole or not at all, and writing it twice is harmless.
//! - The refs are one file, replaced by a rename under the directory's lock, which is held for that only: whoever
//!   changes refs reads them again first, and gives up if they aren't what was expected.
//!
//! Readers take no lock: a pack that a ref needs was durable before the ref. What a cut push leaves are packs
//! that nothing refers to; the next push finds their chunks there, and goes on.
//!
//! An object store can do the same: packs are objects, and the refs' rename is a conditional put.

pub(crate) mod format;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use frond_query::Code;
use frond_store::io::{Chance, Disk, DiskFile, Machine};
use frond_store::{Chunk, ChunkHash, StoreError};

use crate::error::{Error, ErrorKind};
use crate::version::format as commit_format;
use crate::version::remote::data::{moved_on, other_lineage};
use crate::version::remote::{RefUpdate, Remote, RemoteState};

use format::{Frame, Place};

/// MongoDB's `LockBusy`.
const LOCK_BUSY: Code = Code::Location(46);
/// A pack is written when its frames have grown to this.
const PACK_BYTES_TARGET: usize = 16 << 20;
/// The file of refs, and what it is written as before it is renamed.
const REFS_NAME: &str = "REFS";
const REFS_NEW_NAME: &str = "REFS.new";
/// What the names of packs begin with.
const PACK_PREFIX: &str = "pack-";
/// How often the lock is asked for, and how long it is waited for each time.
const LOCK_ATTEMPTS_MAX: u32 = 500;
const LOCK_WAIT_MILLIS: u64 = 10;

/// A repository in a plain directory.
pub struct PlainRemote {
    disk: Arc<dyn Disk>,
    chance: Arc<dyn Chance>,
    packs: Vec<Arc<dyn DiskFile>>,
    /// Names of packs that were opened, in the order of `packs`.
    names: Vec<String>,
    chunks: HashMap<ChunkHash, (usize, Place)>,
    /// Frames that wait for a pack to be written, and where each is in it.
    pending: Vec<u8>,
    pending_chunks: Vec<(ChunkHash, Place)>,
}

/// Lets go of the directory when dropped.
struct Locked<'a>(&'a dyn Disk);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

fn failed(file: &str, error: io::Error) -> Error {
    Error::from(StoreError::Io { file: file.to_owned(), source: error })
}

impl PlainRemote {
    /// Opens the repository in `machine`'s directory, which may be empty.
    ///
    /// # Errors
    /// `Damaged` if a pack is; `Unavailable` if the disk doesn't answer.
    pub fn open(machine: &Machine) -> Result<PlainRemote, Error> {
        let mut remote = PlainRemote {
            disk: machine.disk.clone(),
            chance: machine.chance.clone(),
            packs: Vec::new(),
            names: Vec::new(),
            chunks: HashMap::new(),
            pending: format::begin_pack(),
            pending_chunks: Vec::new(),
        };
        remote.look_for_packs()?;
        Ok(remote)
    }

    /// Opens the packs that came since.
    fn look_for_packs(&mut self) -> Result<(), Error> {
        let names = self.disk.list().map_err(|error| failed("", error))?;
        for name in names {
            if !name.starts_with(PACK_PREFIX) || self.names.contains(&name) {
                continue;
            }
            let file = self.disk.open(&name).map_err(|error| failed(&name, error))?;
            let bytes = file.bytes().map_err(|error| failed(&name, error))?;
            let mut read = |offset: u64, count: usize| {
                let mut buffer = vec![0; count];
                file.read_exact_at(offset, &mut buffer).map_err(|error| failed(&name, error))?;
                Ok::<Vec<u8>, Error>(buffer)
            };
            let places = format::read_index(&name, bytes, &mut read)?;
            self.add_pack(name, file, places);
        }
        Ok(())
    }

    fn add_pack(&mut self, name: String, file: Arc<dyn DiskFile>, places: Vec<(ChunkHash, Place)>) {
        let number = self.packs.len();
        self.packs.push(file);
        self.names.push(name);
        for (hash, place) in places {
            self.chunks.insert(hash, (number, place));
        }
    }

    /// Writes the pack that waits.
    fn flush(&mut self) -> Result<(), Error> {
        if self.pending_chunks.is_empty() {
            return Ok(());
        }
        let mut bytes = std::mem::replace(&mut self.pending, format::begin_pack());
        let mut places = std::mem::take(&mut self.pending_chunks);
        let hash = format::end_pack(&mut bytes, &mut places);
        let name = format!("{PACK_PREFIX}{}", commit_format::id_of(hash));
        let mut own = [0; 8];
        self.chance.fill(&mut own);
        let temporary = format!("new-{:016x}", u64::from_le_bytes(own));
        let file = self.disk.create(&temporary).map_err(|error| failed(&temporary, error))?;
        let written = file.write_all_at(0, &bytes).and_then(|()| file.sync());
        written.map_err(|error| failed(&temporary, error))?;
        let named = self.disk.rename(&temporary, &name).and_then(|()| self.disk.sync_directory());
        named.map_err(|error| failed(&name, error))?;
        self.add_pack(name, file, places);
        Ok(())
    }

    fn read_refs(&self) -> Result<Option<RemoteState>, Error> {
        let file = match self.disk.open(REFS_NAME) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(REFS_NAME, error)),
        };
        let bytes = file.bytes().map_err(|error| failed(REFS_NAME, error))?;
        let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= format::REFS_BYTES_MAX);
        let bytes = bytes.ok_or_else(|| Error::damaged("the file of refs is too large"))?;
        let mut buffer = vec![0; bytes];
        file.read_exact_at(0, &mut buffer).map_err(|error| failed(REFS_NAME, error))?;
        format::decode_refs(&buffer).map(Some)
    }

    fn write_refs(&self, state: &RemoteState) -> Result<(), Error> {
        let written = || -> io::Result<()> {
            match self.disk.remove(REFS_NEW_NAME) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let file = self.disk.create(REFS_NEW_NAME)?;
            file.write_all_at(0, &format::encode_refs(state))?;
            file.sync()?;
            self.disk.rename(REFS_NEW_NAME, REFS_NAME)?;
            self.disk.sync_directory()
        };
        written().map_err(|error| failed(REFS_NAME, error))
    }

    fn lock(&self) -> Result<Locked<'_>, Error> {
        for _ in 0..LOCK_ATTEMPTS_MAX {
            match self.disk.lock() {
                Ok(()) => return Ok(Locked(&*self.disk)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::sleep(Duration::from_millis(LOCK_WAIT_MILLIS));
                }
                Err(error) => return Err(failed("LOCK", error)),
            }
        }
        let message = "the remote's refs are being changed by somebody else: try again";
        Err(Error { kind: ErrorKind::Unavailable, ..Error::invalid(LOCK_BUSY, message) })
    }
}

impl Remote for PlainRemote {
    fn state(&mut self) -> Result<Option<RemoteState>, Error> {
        let state = self.read_refs()?;
        // A ref that is read now may need packs that came since this was opened.
        self.look_for_packs()?;
        Ok(state)
    }

    fn has_many(&mut self, hashes: &[ChunkHash]) -> Result<Vec<bool>, Error> {
        let is_pending = |hash: &ChunkHash| self.pending_chunks.iter().any(|(put, _)| put == hash);
        Ok(hashes.iter().map(|hash| self.chunks.contains_key(hash) || is_pending(hash)).collect())
    }

    fn get_many(&mut self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        self.flush()?;
        let mut chunks = Vec::with_capacity(hashes.len());
        for hash in hashes {
            let found = self.chunks.get(hash);
            let (pack, place) = found.ok_or_else(|| Error::from(StoreError::Missing(*hash)))?;
            let name = &self.names[*pack];
            let mut buffer = vec![0; place.bytes as usize];
            let read = self.packs[*pack].read_exact_at(u64::from(place.offset), &mut buffer);
            read.map_err(|error| failed(name, error))?;
            let encoded: Bytes = Frame::decode(name, place, &buffer)?;
            let chunk = Chunk::from_encoded(encoded, (name, u64::from(place.offset)))?;
            if chunk.hash() != *hash {
                let message = format!("{name}: chunk {} where {hash} is expected", chunk.hash());
                return Err(Error::damaged(message));
            }
            chunks.push(chunk);
        }
        Ok(chunks)
    }

    fn put_many(&mut self, chunks: &[Chunk]) -> Result<(), Error> {
        for chunk in chunks {
            if self.chunks.contains_key(&chunk.hash()) {
                continue;
            }
            let place = Frame::append(&mut self.pending, chunk.encoded());
            self.pending_chunks.push((chunk.hash(), place));
            if self.pending.len() >= PACK_BYTES_TARGET {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn update(&mut self, update: &RefUpdate) -> Result<(), Error> {
        self.flush()?;
        let _locked = self.lock()?;
        let mut state = match self.read_refs()? {
            Some(state) if state.salt != update.salt => return Err(other_lineage("the database")),
            Some(state) => state,
            None => RemoteState {
                salt: update.salt,
                default_branch: update.default_branch.clone(),
                branches: Default::default(),
                tags: Default::default(),
            },
        };
        if state.branches.get(&update.branch).copied() != update.expected {
            return Err(moved_on(&update.branch));
        }
        state.branches.insert(update.branch.clone(), update.new);
        for (tag, chunk) in &update.tags {
            let entry = state.tags.entry(tag.name.clone());
            entry.or_insert_with(|| (tag.clone(), *chunk));
        }
        self.write_refs(&state)
    }
}
