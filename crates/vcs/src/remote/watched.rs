//! A remote that is left as soon as the command that uses it must stop.
//!
//! It asks between two requests: what came before stays, and the next transfer goes on from there.

use frond_store::{Chunk, ChunkHash};

use crate::remote::{RefUpdate, Remote, RemoteState, StorageDamage};
use frond_db::inside::{Error, Interrupt};

/// A [`Remote`] with an [`Interrupt`].
pub struct WatchedRemote {
    remote: Box<dyn Remote>,
    interrupt: Interrupt,
}

impl WatchedRemote {
    /// `remote`, as long as `interrupt` lets it go on.
    pub fn new(remote: Box<dyn Remote>, interrupt: Interrupt) -> WatchedRemote {
        WatchedRemote { remote, interrupt }
    }
}

impl Remote for WatchedRemote {
    fn state(&self) -> Result<Option<RemoteState>, Error> {
        self.interrupt.check()?;
        self.remote.state()
    }

    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, Error> {
        self.interrupt.check()?;
        self.remote.has_many(hashes)
    }

    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        self.interrupt.check()?;
        self.remote.get_many(hashes)
    }

    fn put_many(&self, chunks: &[Chunk]) -> Result<(), Error> {
        self.interrupt.check()?;
        self.remote.put_many(chunks)
    }

    fn update(&self, update: &RefUpdate) -> Result<(), Error> {
        self.interrupt.check()?;
        self.remote.update(update)
    }

    fn reread(&self) -> Result<(), Error> {
        self.interrupt.check()?;
        self.remote.reread()
    }

    fn damages(&self) -> Vec<StorageDamage> {
        self.remote.damages()
    }
}
