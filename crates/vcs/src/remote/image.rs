//! Backups: a clone of a whole data directory, into a plain remote and back.
//!
//! 1. An *image* of the engine is everything at one moment: all databases with their branches,
//!    tags, working states and reflogs, and what isn't versioned, reachable from one chunk. Writers
//!    go on.
//! 2. Chunks that the plain remote lacks move there, found as for a push; those of the last backup
//!    there are skipped without being looked at. So a backup costs what changed since the one
//!    before, and each is whole.
//! 3. A record names the chunk. It is written last: a backup that was cut is none, and what it
//!    brought stays for the next one.
//!
//! *Damage in the place*: a share of what lies there is reread before (`plain::reread`). Damaged
//! chunks move again. Where something is left that can't be had any more, or isn't known, the
//! predecessor proves nothing: then all that the backups there need, and the whole image, is
//! compared with what is there, each chunk of which is read; and what the image has of it moves.
//!
//! *What the rest is found by lies twice*: the image's state, its base map and the system tree, in
//! packs of their own. So no damage in one place takes more of a backup than what lies there and
//! below it.
//!
//! *Damage in the image*: the rest is saved, and the record lists what is lacking. The next backup
//! tries to bring it.
//!
//! A restore goes the other way into an empty directory, and ends by naming the chunk as the
//! engine's root.

use std::path::Path;
use std::sync::Arc;

use frond_db::inside::refs::{repositories, shallow};
use frond_db::inside::{Error, Frond, Reader};
use frond_doc::Timestamp;
use frond_engine::{Engine, Image};
use frond_query::Code;
use frond_store::io::Machine;
use frond_store::local::{LocalOptions, LocalStore};
use frond_store::{Chunk, ChunkHash, ChunkStore, Lifetime};

use crate::remote::Remote;
use crate::remote::mend::{has_intact, mend};
use crate::remote::plain::{BackupInfo, PlainRemote, Reread, StorageDamage};
use crate::remote::transfer::{Endpoint, Moved, Transfer};

/// The number of lost chunks that are listed: 2 MB of names. A client that lacks more needs no
/// list.
const LOST_MAX: usize = 65_536;

/// A data directory at one moment; its chunks stay as long as this lives.
pub struct DataImage {
    frond: Frond,
    image: Image,
    time_millis: i64,
    databases: Vec<String>,
    absent: Vec<ChunkHash>,
}

/// A source of an image: here, or on another machine.
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
    ///
    /// # Errors
    /// `Damaged` if one is absent or isn't what was written; `Unavailable` if it doesn't answer.
    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error>;
}

/// The result of a backup.
#[derive(Clone, Debug)]
pub struct BackupReport {
    /// The backup.
    pub backup: BackupInfo,
    /// The counts of moved chunks.
    pub moved: Moved,
    /// The damage found in the place.
    pub damages: Vec<StorageDamage>,
    /// The number of chunks of that, and of what earlier backups lack, that were brought again.
    pub mended: u64,
    /// The chunks of that which are not to be had any more: earlier backups are damaged. The new
    /// one isn't.
    pub gone: Vec<ChunkHash>,
    /// The reason why chunks of `backup.lost` could not be read.
    pub unread: Vec<Error>,
}

/// The result of a restore.
#[derive(Clone, Debug)]
pub struct RestoreReport {
    /// The backup.
    pub backup: BackupInfo,
    /// The counts of moved chunks.
    pub moved: Moved,
    /// Chunks that can't be read there, and why: what they hold, and what only they lead to, isn't
    /// restored.
    pub lost: Vec<(ChunkHash, Error)>,
    /// Whether the directory is a data directory now. It isn't if something is lost and no part was
    /// asked for; what came stays for the next restore.
    pub is_there: bool,
}

/// The backup to restore.
#[derive(Clone, Debug, Default)]
pub struct RestoreRequest {
    /// The backup; default: the last.
    pub name: Option<String>,
    /// Make a data directory of what can be read, if that isn't all.
    pub partial: bool,
}

impl DataImage {
    /// Takes an image of what is visible now.
    ///
    /// # Errors
    /// As the engine's `image`: what lies over the trees can't be folded; `Damaged` if a record
    /// isn't one.
    pub fn take(frond: &Frond) -> Result<DataImage, Error> {
        let image = frond.engine().image()?;
        let reader = Reader::at(image.snapshot().clone());
        let databases = repositories(&reader)?.into_iter().map(|(name, _)| name).collect();
        let absent = shallow::listed(&**frond.engine().store())?.into_iter().collect();
        let (frond, time_millis) = (frond.clone(), frond.time_millis());
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

    /// The moment on the clock of the databases.
    pub fn moment(&self) -> Timestamp {
        Timestamp(self.image.snapshot().sequence().0)
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
    ///
    /// # Errors
    /// `Damaged` if one is absent or isn't what was written; `Unavailable` if the disk doesn't
    /// answer.
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

impl Endpoint for ToPlain<'_> {
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
        // Chunks of the last backup may be gone where the image is.
        self.plain.get_many(hashes)
    }
}

/// Chunks go from a plain remote to a store that is a data directory's soon.
struct FromPlain<'a> {
    plain: &'a PlainRemote,
    store: Arc<LocalStore>,
}

impl Endpoint for FromPlain<'_> {
    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, Error> {
        has_intact(&*self.store, hashes)
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
    /// Adds `image` to the backups here, as `name`; rereads a share of the place, or all of it,
    /// before.
    ///
    /// # Errors
    /// `NamespaceExists` if there is a backup of that name. Damage, here or in the image, is in the
    /// report.
    pub fn back_up(
        &self,
        name: &str,
        image: &dyn ImageSource,
        reread: Reread,
        progress: &mut dyn FnMut(&Moved),
    ) -> Result<BackupReport, Error> {
        let known = self.backups()?;
        if known.iter().any(|backup| backup.name == name) {
            let message = format!("there is already a backup {name}");
            return Err(Error::invalid(Code::NamespaceExists, message));
        }
        self.reread(reread, &mut |_| {})?;
        let lane = ToPlain { image, plain: self };
        let put = |chunks: &[Chunk]| self.put_many(chunks);
        let get = |hashes: &[ChunkHash]| lane.get_many(hashes);
        let (mut mended, mut gone) = mend(&self.lost(), &get, &put)?;
        let is_sure = gone.is_empty() && !self.damages().iter().any(|it| it.may_hold_more);
        let mut others = Transfer::of_engine(&lane, progress).saving();
        // Chunks that could not be read the last time, with all below them.
        let lacking = known.iter().flat_map(|known| known.lost.iter().copied()).collect();
        others.tree(lacking, Vec::new())?;
        let lacking: Vec<ChunkHash> =
            std::mem::take(&mut others.lost).into_iter().map(|(hash, _)| hash).collect();
        if !is_sure {
            others.tree(known.iter().map(|backup| backup.root).collect(), Vec::new())?;
            gone.extend(others.lost.iter().map(|(hash, _)| *hash));
            if others.lost.is_empty() && self.state()?.is_none() {
                self.forget_unknown();
                // No backup lacks anything: what damage left of an index may look like names.
                gone.clear();
            }
        }
        mended += others.moved.chunks;
        let mut transfer = Transfer::of_engine(&lane, progress).saving();
        let is_whole = |backup: &BackupInfo| backup.lost.is_empty() && backup.has_parents;
        let is_proof = |backup: &&BackupInfo| is_sure && is_whole(backup);
        let before = known.last().filter(is_proof).map(|backup| backup.root);
        transfer.tree(vec![image.root()], before.into_iter().collect())?;
        let absent = image.absent().iter().copied().collect();
        transfer.unrecorded(&absent, before.is_some())?;
        let (moved, lost) = (transfer.moved, std::mem::take(&mut transfer.lost));
        let (lost, unread): (Vec<_>, Vec<_>) = lost.into_iter().unzip();
        if lost.contains(&image.root()) {
            return Err(unread.into_iter().next().unwrap_or_else(|| Error::internal("no reason")));
        }
        let backup = BackupInfo {
            name: name.to_owned(),
            root: image.root(),
            time_millis: image.time_millis(),
            databases: image.databases().to_vec(),
            absent: image.absent().to_vec(),
            lost: lost.into_iter().take(LOST_MAX).collect(),
            has_parents: true,
        };
        self.put_directory_twice(image.root(), true, &|hashes| image.get_many(hashes))?;
        self.add_backup(&backup, &lacking)?;
        let gone = self.still_gone(gone)?;
        Ok(BackupReport { backup, moved, damages: self.damages(), mended, gone, unread })
    }

    /// Those of `gone` that aren't here, each once.
    fn still_gone(&self, mut gone: Vec<ChunkHash>) -> Result<Vec<ChunkHash>, Error> {
        gone.sort_unstable();
        gone.dedup();
        let mut there = self.has_many(&gone)?.into_iter();
        gone.retain(|_| there.next() == Some(false));
        Ok(gone)
    }

    /// [`PlainRemote::restore_on`] a directory, made where it is missing.
    ///
    /// # Errors
    /// As there.
    pub fn restore(
        &self,
        request: &RestoreRequest,
        directory: &Path,
        progress: &mut dyn FnMut(&Moved),
    ) -> Result<RestoreReport, Error> {
        self.restore_on(request, &frond_db::inside::open_machine(directory)?, progress)
    }

    /// The backup `name`; default: the last.
    pub(crate) fn backup(&self, name: Option<&str>) -> Result<BackupInfo, Error> {
        let backups = self.backups()?;
        let backup = match name {
            Some(name) => backups.into_iter().find(|backup| backup.name == name),
            None => backups.into_iter().next_back(),
        };
        backup.ok_or_else(|| {
            let message =
                name.map_or("there is no backup".to_owned(), |n| format!("no backup {n}"));
            Error::invalid(Code::NamespaceNotFound, message)
        })
    }

    /// Makes `machine`'s empty directory the data directory that a backup is of. One that a cut
    /// restore left is gone on with. Chunks that can't be read here are in the report.
    ///
    /// # Errors
    /// `NamespaceNotFound` if there is no such backup; `NamespaceExists` if the directory is in use
    /// already; `Damaged` if nothing of it can be read.
    pub fn restore_on(
        &self,
        request: &RestoreRequest,
        machine: &Machine,
        progress: &mut dyn FnMut(&Moved),
    ) -> Result<RestoreReport, Error> {
        let backup = self.backup(request.name.as_deref())?;
        let store = LocalStore::open(machine, LocalOptions::default())?;
        if Engine::is_in(&*store)? {
            let message = "the directory holds databases: restore into an empty one";
            return Err(Error::invalid(Code::NamespaceExists, message));
        }
        Image::begin(&*store)?;
        let lane = FromPlain { plain: self, store: store.clone() };
        let mut transfer = Transfer::of_engine(&lane, progress).saving();
        transfer.tree(vec![backup.root], Vec::new())?;
        let absent = backup.absent.iter().copied().collect();
        transfer.unrecorded(&absent, false)?;
        let (moved, lost) = (transfer.moved, transfer.lost);
        if let Some((_, error)) = lost.iter().find(|(hash, _)| *hash == backup.root) {
            return Err(error.clone());
        }
        let is_there = lost.is_empty() || request.partial;
        if is_there {
            shallow::list(&*store, &absent)?;
            Image::install(&*store, backup.root)?;
        }
        Ok(RestoreReport { backup, moved, lost, is_there })
    }
}
