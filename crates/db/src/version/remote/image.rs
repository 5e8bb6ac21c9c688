//! Backups: a clone of a whole data directory, into a plain remote and back.
//!
//! 1. An *image* of the engine is everything at one moment: all databases with their branches, tags, working
//!    states and reflogs, and what isn't versioned, reachable from one chunk. Writers go on.
//! 2. What the plain remote lacks of it moves there, found as for a push; what the last backup there has is
//!    skipped without being looked at. So a backup costs what changed since the one before, and each is whole.
//! 3. A record names the chunk. It is written last: a backup that was cut is none, and what it brought stays
//!    for the next one.
//!
//! A restore goes the other way into an empty directory, and ends by naming the chunk as the engine's root.

use std::path::Path;
use std::sync::Arc;

use frond_engine::{Engine, Image};
use frond_query::Code;
use frond_store::io::Machine;
use frond_store::local::{LocalOptions, LocalStore};
use frond_store::{Chunk, ChunkHash, ChunkStore, Lifetime};

use crate::error::Error;
use crate::frond::{Frond, repositories};
use crate::reader::Reader;
use crate::version::remote::Remote;
use crate::version::remote::plain::{BackupInfo, PlainRemote};
use crate::version::remote::transfer::{Lane, Moved, Transfer};
use crate::version::shallow;

/// A data directory at one moment; its chunks stay as long as this lives.
pub struct DataImage {
    frond: Frond,
    image: Image,
    time_millis: i64,
    databases: Vec<String>,
    absent: Vec<ChunkHash>,
}

/// Where an image can be read: here, or on another machine.
pub trait ImageSource: Send + Sync {
    /// The chunk that reaches all others.
    fn root(&self) -> ChunkHash;
    /// The moment: milliseconds since 1970.
    fn time_millis(&self) -> i64;
    /// The databases in it, by name.
    fn databases(&self) -> &[String];
    /// Commits that shallow clones in it lack.
    fn absent(&self) -> &[ChunkHash];
    /// Returns chunks of the image, in the order of `hashes`. Each was compared with its name.
    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error>;
}

/// What a restore brought.
#[derive(Clone, Debug)]
pub struct RestoreReport {
    /// The backup.
    pub backup: BackupInfo,
    /// How much moved.
    pub moved: Moved,
}

impl DataImage {
    /// Takes an image of what is visible now.
    pub fn take(frond: &Frond) -> Result<DataImage, Error> {
        let image = frond.engine().image()?;
        let reader = Reader::at(frond.engine(), image.snapshot().clone());
        let databases = repositories(&reader)?.into_iter().map(|(name, _)| name).collect();
        let absent = shallow::listed(&**frond.engine().store())?.into_iter().collect();
        let (frond, time_millis) = (frond.clone(), frond.now_millis());
        Ok(DataImage { frond, image, time_millis, databases, absent })
    }

    /// See [`ImageSource::root`].
    pub fn root(&self) -> ChunkHash {
        self.image.root()
    }

    /// See [`ImageSource::time_millis`].
    pub fn time_millis(&self) -> i64 {
        self.time_millis
    }

    /// See [`ImageSource::databases`].
    pub fn databases(&self) -> &[String] {
        &self.databases
    }

    /// See [`ImageSource::absent`].
    pub fn absent(&self) -> &[ChunkHash] {
        &self.absent
    }

    /// See [`ImageSource::get_many`].
    pub fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        Ok(self.frond.engine().store().get_many(hashes)?)
    }
}

impl ImageSource for DataImage {
    fn root(&self) -> ChunkHash {
        DataImage::root(self)
    }

    fn time_millis(&self) -> i64 {
        self.time_millis
    }

    fn databases(&self) -> &[String] {
        &self.databases
    }

    fn absent(&self) -> &[ChunkHash] {
        &self.absent
    }

    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        DataImage::get_many(self, hashes)
    }
}

/// Chunks go from an image to a plain remote.
struct ToPlain<'a> {
    image: &'a dyn ImageSource,
    plain: &'a PlainRemote,
}

impl Lane for ToPlain<'_> {
    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, Error> {
        self.plain.has_many(hashes)
    }

    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        self.image.get_many(hashes)
    }

    fn put_many(&self, chunks: &[Chunk]) -> Result<(), Error> {
        self.plain.put_many(chunks)
    }

    fn read_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        // What the last backup has may be gone where the image is.
        self.plain.get_many(hashes)
    }
}

/// Chunks go from a plain remote to a store that is a data directory's soon.
struct FromPlain<'a> {
    plain: &'a PlainRemote,
    store: Arc<LocalStore>,
}

impl Lane for FromPlain<'_> {
    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, Error> {
        Ok(self.store.has_many(hashes)?)
    }

    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        self.plain.get_many(hashes)
    }

    fn put_many(&self, chunks: &[Chunk]) -> Result<(), Error> {
        Ok(self.store.put_many_for(Lifetime::Working, chunks)?)
    }

    fn read_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        Ok(self.store.get_many(hashes)?)
    }
}

impl PlainRemote {
    /// Adds `image` to the backups here, as `name`.
    ///
    /// # Errors
    /// `NamespaceExists` if there is a backup of that name.
    pub fn back_up(
        &self,
        name: &str,
        image: &dyn ImageSource,
        progress: &mut dyn FnMut(&Moved),
    ) -> Result<(BackupInfo, Moved), Error> {
        let known = self.backups()?;
        if known.iter().any(|backup| backup.name == name) {
            let message = format!("a backup {name} is there");
            return Err(Error::invalid(Code::NamespaceExists, message));
        }
        let last: Vec<ChunkHash> = known.last().map(|backup| backup.root).into_iter().collect();
        let lane = ToPlain { image, plain: self };
        let mut transfer = Transfer::of_engine(&lane, progress);
        transfer.tree(vec![image.root()], last)?;
        let moved = transfer.moved;
        let backup = BackupInfo {
            name: name.to_owned(),
            root: image.root(),
            time_millis: image.time_millis(),
            databases: image.databases().to_vec(),
            absent: image.absent().to_vec(),
        };
        self.add_backup(&backup)?;
        Ok((backup, moved))
    }

    /// [`PlainRemote::restore_on`] a directory, made where it is missing.
    ///
    /// # Errors
    /// As there.
    pub fn restore(
        &self,
        name: Option<&str>,
        directory: &Path,
        progress: &mut dyn FnMut(&Moved),
    ) -> Result<RestoreReport, Error> {
        self.restore_on(name, &crate::frond::open_machine(directory)?, progress)
    }

    /// Makes `machine`'s empty directory the data directory that the backup `name` (default: the last) is of.
    /// One that a cut restore left is gone on with.
    ///
    /// # Errors
    /// `NamespaceNotFound` if there is no such backup; `NamespaceExists` if the directory is in use already.
    pub fn restore_on(
        &self,
        name: Option<&str>,
        machine: &Machine,
        progress: &mut dyn FnMut(&Moved),
    ) -> Result<RestoreReport, Error> {
        let backups = self.backups()?;
        let backup = match name {
            Some(name) => backups.into_iter().find(|backup| backup.name == name),
            None => backups.into_iter().next_back(),
        };
        let backup = backup.ok_or_else(|| {
            let message =
                name.map_or("there is no backup".to_owned(), |n| format!("no backup {n}"));
            Error::invalid(Code::NamespaceNotFound, message)
        })?;
        let store = LocalStore::open(machine, LocalOptions::default())?;
        if Engine::is_in(&*store)? {
            let message = "the directory holds databases: restore into an empty one";
            return Err(Error::invalid(Code::NamespaceExists, message));
        }
        let lane = FromPlain { plain: self, store: store.clone() };
        let mut transfer = Transfer::of_engine(&lane, progress);
        transfer.tree(vec![backup.root], Vec::new())?;
        let moved = transfer.moved;
        shallow::list(&*store, &backup.absent.iter().copied().collect())?;
        Image::install(&*store, backup.root)?;
        Ok(RestoreReport { backup, moved })
    }
}
