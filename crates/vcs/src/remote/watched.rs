//! A remote that is left as soon as the command that uses it must stop.
//!
//! It asks between two requests, and a transfer asks it between two batches of chunks that are
//! here: what came before stays, and the next transfer goes on from there.

use frond_db::inside::{Error, Interrupt};
use frond_store::{Chunk, ChunkHash};

use crate::remote::{RefUpdate, Remote, RemoteState, StorageDamage};

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

    fn check(&self) -> Result<(), Error> {
        self.interrupt.check()
    }

    fn reread(&self) -> Result<(), Error> {
        self.interrupt.check()?;
        self.remote.reread()
    }

    fn damages(&self) -> Vec<StorageDamage> {
        self.remote.damages()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use frond_db::inside::Frond;
    use frond_testkit::SimDisk;

    use super::*;
    use crate::remote::DataRemote;

    #[test]
    fn each_request_asks_first_whether_to_go_on() {
        let frond: Frond =
            crate::open_on(&SimDisk::new(1).machine(), Default::default()).expect("it opens");
        let stops = Arc::new(AtomicBool::new(false));
        let checks = Arc::clone(&stops);
        let interrupt = Interrupt::new(move || match checks.load(Ordering::SeqCst) {
            true => Err(Error::unavailable("stopped")),
            false => Ok(()),
        });
        let remote = DataRemote::new(frond, "shop").expect("a database's name");
        let watched = WatchedRemote::new(Box::new(remote), interrupt);
        assert!(watched.state().expect("it goes on").is_none());
        stops.store(true, Ordering::SeqCst);
        assert!(watched.state().is_err());
        assert!(watched.has_many(&[]).is_err() && watched.get_many(&[]).is_err());
        assert!(watched.put_many(&[]).is_err() && watched.reread().is_err());
    }
}
