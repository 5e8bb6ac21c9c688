//! The chunks by which the others of a backup are found lie twice, in different packs: its state,
//! the base map, the base of each tree, and the nodes of the system tree. So damage to one pack
//! takes no more than the chunks in it and below them.

use std::collections::HashMap;

use frond_db::inside::Error;
use frond_engine::Image;
use frond_store::{Chunk, ChunkHash};

use super::PlainRemote;
use crate::remote::mend::Get;
use crate::remote::transfer::each;

/// Chunks that are read together.
const BATCH: usize = 256;

impl PlainRemote {
    /// Puts a second copy of the chunks by which all else of the image `root` is found, in another
    /// pack, unless they lie twice. `trusts`: below what lies twice all does. A chunk that can't be
    /// read is left out.
    pub(in crate::remote) fn put_directory_twice(
        &self,
        root: ChunkHash,
        trusts: bool,
        get: Get<'_>,
    ) -> Result<(), Error> {
        self.packs.flush()?;
        let mut get = |hashes: &[ChunkHash]| {
            let mut wanted = hashes.to_vec();
            wanted.retain(|hash| !(trusts && self.packs.lies_twice(hash)));
            let mut found: HashMap<ChunkHash, Chunk> = HashMap::new();
            for batch in wanted.chunks(BATCH) {
                let chunks = each(batch, get, &mut |_, _| {})?;
                found.extend(chunks.into_iter().map(|chunk| (chunk.hash(), chunk)));
            }
            Ok::<_, Error>(hashes.iter().map(|hash| found.get(hash).cloned()).collect())
        };
        let mut chunks = Image::metadata_chunks(root, &mut get)?;
        chunks.retain(|chunk| !self.packs.lies_twice(&chunk.hash()));
        self.packs.put_again(chunks)?;
        self.packs.flush()
    }
}
