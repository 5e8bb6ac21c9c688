//! A data directory that takes the place of its content: what another has, chunk by chunk.
//!
//! 1. Chunks that an image has and the directory lacks are brought while that is in use
//!    ([`copy_image`]). Chunks brought before a cut are there, as long as nothing collects them.
//! 2. Before the directory is opened again the image becomes its content ([`install_copy`]).

use std::sync::Arc;

use frond_db::inside::refs::shallow;
use frond_db::inside::{Error, Frond};
use frond_engine::Image;
use frond_store::io::Machine;
use frond_store::local::{LocalOptions, LocalStore};
use frond_store::{Chunk, ChunkHash, ChunkStore, Lifetime, Session};

use crate::remote::image::ImageSource;
use crate::remote::mend::has_intact;
use crate::remote::transfer::{Endpoint, Moved, Transfer};

/// An image whose chunks are all here, durably. They are kept until it is dropped.
pub struct Copied {
    /// The counts of moved chunks.
    pub moved: Moved,
    _session: Session,
}

/// Chunks go from an image to the store of a data directory.
struct FromImage<'a> {
    image: &'a dyn ImageSource,
    store: &'a Arc<dyn ChunkStore>,
}

impl Endpoint for FromImage<'_> {
    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, Error> {
        has_intact(&**self.store, hashes)
    }

    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        self.image.get_many(hashes)
    }

    fn put_many(&self, chunks: &[Chunk]) -> Result<(), Error> {
        Ok(self.store.put_many_for(Lifetime::Working, chunks)?)
    }

    fn read_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        Ok(self.store.get_many(hashes)?)
    }
}

/// Brings the chunks of `image` that the directory of `frond` lacks.
///
/// # Errors
/// As the image's [`ImageSource::get_many`]; `Unavailable` if the disk is full or doesn't answer.
pub fn copy_image(
    frond: &Frond,
    image: &dyn ImageSource,
    progress: &mut dyn FnMut(&Moved),
) -> Result<Copied, Error> {
    let store = frond.engine().store();
    let session = store.session();
    let lane = FromImage { image, store };
    let mut transfer = Transfer::of_engine(&lane, progress);
    transfer.tree(vec![image.root()], Vec::new())?;
    let absent = image.absent().iter().copied().collect();
    transfer.unrecorded(&absent, false)?;
    let moved = transfer.moved;
    shallow::list(&**store, &absent)?;
    store.sync()?;
    Ok(Copied { moved, _session: session })
}

/// Makes the image `root` the content of a data directory that has its chunks, and is not open: see
/// [`Image::install_over`].
///
/// # Errors
/// `Damaged` if the chunk isn't there, or is no directory's state; `Unavailable` if the disk
/// doesn't answer.
pub fn install_copy(machine: &Machine, root: ChunkHash) -> Result<(), Error> {
    let store = LocalStore::open(machine, LocalOptions::default())?;
    Ok(Image::install_over(&*machine.disk, &*store, root)?)
}
