//! Packs that are read again as a whole, and those that are set aside since they were found
//! damaged.

use std::collections::{BTreeMap, HashSet};

use frond_db::inside::{CommitId, Error, ErrorKind};
use frond_store::{Chunk, ChunkHash};

use super::{PACK_PREFIX, Packs};
use crate::remote::plain::examine::{self, BadFrame, StorageDamage};
use crate::remote::plain::format::{self, PackId, PackMark};
use crate::remote::plain::storage::FilePart;

/// Chunks that are put together.
const BATCH: usize = 256;

/// Returns the id in a pack's name, behind the prefix.
pub(crate) fn id_of_pack(name: &str) -> Option<PackId> {
    CommitId::parse(name.strip_prefix(PACK_PREFIX)?)
}

/// The name of a pack.
pub(crate) fn name_of_pack(id: &PackId) -> String {
    format!("{PACK_PREFIX}{id}")
}

impl Packs {
    /// The packs that are known, by name, and their lengths now.
    ///
    /// # Errors
    /// As the place.
    pub fn list(&self) -> Result<Vec<(String, u64)>, Error> {
        let mut found = self.place.list(PACK_PREFIX)?;
        let state = self.state();
        found.retain(|(name, _)| state.opened.contains(name));
        found.sort();
        Ok(found)
    }

    /// The mark of a pack that is known and has an index.
    pub fn mark(&self, name: &str) -> Option<PackMark> {
        self.state().marks.get(name).copied()
    }

    /// The packs that are known, and the marks of those that have an index.
    ///
    /// # Errors
    /// As the place.
    pub fn marked(&self) -> Result<BTreeMap<PackId, Option<PackMark>>, Error> {
        let there = self.list()?;
        let state = self.state();
        let marked = |name: &String| Some((id_of_pack(name)?, state.marks.get(name).copied()));
        Ok(there.iter().filter_map(|(name, _)| marked(name)).collect())
    }

    /// Reads a whole pack and compares it with its index; what isn't what it should be counts as
    /// not being there from now on. `seen` is called with every chunk that is whole.
    ///
    /// # Errors
    /// As the place; what is damaged is noted instead.
    pub fn check(&self, name: &str, bytes: u64, seen: &mut dyn FnMut(&Chunk)) -> Result<(), Error> {
        let Some(mut bad) = self.check_once(name, bytes, seen)? else { return Ok(()) };
        if !bad.is_empty() {
            // Was it the disk, or the way?
            let Some(again) = self.check_once(name, bytes, seen)? else { return Ok(()) };
            bad = again;
        }
        let mut state = self.state();
        let Some(number) = state.names.iter().position(|known| known == name) else {
            return Ok(());
        };
        let number = u32::try_from(number).expect("packs are far fewer");
        for BadFrame { place, what, chunks } in bad {
            let lost: HashSet<ChunkHash> = chunks.iter().copied().collect();
            state.forget(&|at, hash| (at.pack, at.place) == (number, place) && lost.contains(hash));
            state.recent.forget((number, place.offset));
            state.note(StorageDamage { file: name.to_owned(), what, chunks, may_hold_more: false });
        }
        Ok(())
    }

    /// The frames that are bad; `None` if the pack is gone or has no index to compare it with.
    fn check_once(
        &self,
        name: &str,
        bytes: u64,
        seen: &mut dyn FnMut(&Chunk),
    ) -> Result<Option<Vec<BadFrame>>, Error> {
        let whole = [FilePart { name: name.to_owned(), range: 0..bytes }];
        let pack = match self.place.read_many(&whole) {
            // It got shorter since it was listed.
            Err(error) if error.kind == ErrorKind::Damaged => Default::default(),
            read => match read?.and_then(|mut read| read.pop()) {
                Some(pack) => pack,
                None => return Ok(None),
            },
        };
        let damage = |error: Error| StorageDamage {
            file: name.to_owned(),
            what: error.message,
            chunks: Vec::new(),
            may_hold_more: false,
        };
        if let Err(error) = format::check_pack_prefix(name, &pack) {
            self.state().note(damage(error));
        }
        match format::read_index(name, bytes, &pack) {
            Ok(places) => Ok(Some(examine::check_frames(name, &pack, &places, seen))),
            Err(error) => {
                let scanned = examine::scan(name, &pack, seen);
                let (chunks, may_hold_more) = (scanned.lost, scanned.may_hold_more);
                self.state().note(StorageDamage { chunks, may_hold_more, ..damage(error) });
                Ok(None)
            }
        }
    }

    /// All damage that was found since the place was opened.
    pub fn damages(&self) -> Vec<StorageDamage> {
        self.state().damages.clone()
    }

    /// Notes damage that others found.
    pub fn note(&self, damage: StorageDamage) {
        self.state().note(damage);
    }

    /// Notes that nothing is needed of what damaged packs may have held beside what is known.
    pub fn forget_unknown(&self) {
        for damage in &mut self.state().damages {
            if std::mem::take(&mut damage.may_hold_more) {
                damage.chunks.clear();
            }
        }
    }

    /// Chunks that were found damaged, and lie nowhere else.
    pub fn lost(&self) -> Vec<ChunkHash> {
        let state = self.state();
        let damaged = state.damages.iter().flat_map(|damage| &damage.chunks);
        let lost: HashSet<ChunkHash> = damaged.filter(|hash| !state.has(hash)).copied().collect();
        lost.into_iter().collect()
    }

    /// Packs with damage by which nothing is lost: what else is in them is put again, so that they
    /// are needed no more. Returns their names.
    ///
    /// # Errors
    /// As the place. Nothing was removed then.
    pub fn rewrite_damaged(&self) -> Result<Vec<String>, Error> {
        let damages = self.damages();
        let lost: HashSet<ChunkHash> = self.lost().into_iter().collect();
        let is_needed = |damage: &StorageDamage| {
            damage.may_hold_more || damage.chunks.iter().any(|hash| lost.contains(hash))
        };
        let needed: HashSet<&String> =
            damages.iter().filter(|damage| is_needed(damage)).map(|damage| &damage.file).collect();
        let names = damages.iter().map(|damage| &damage.file);
        let names: HashSet<&String> = names.filter(|name| !needed.contains(name)).collect();
        let mut contents = self.contents();
        let mut rewritten = Vec::new();
        for name in names {
            let Some(hashes) = contents.remove(name) else { continue };
            for batch in hashes.chunks(BATCH) {
                // One more that can't be read: then the pack stays, and is looked at the next time.
                let Some(chunks) = self.get_found(batch)? else { return Ok(Vec::new()) };
                self.put_again(chunks.into_iter().flatten().collect())?;
            }
            rewritten.push(name.clone());
        }
        let lost: HashSet<ChunkHash> = self.lost().into_iter().collect();
        let damages = self.damages();
        rewritten.retain(|name| {
            let of_it = damages.iter().filter(|damage| damage.file == *name);
            of_it.into_iter().all(|damage| damage.chunks.iter().all(|hash| !lost.contains(hash)))
        });
        Ok(rewritten)
    }
}
