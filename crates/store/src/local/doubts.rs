//! Distinguishes damage from what a crash left, once it is known which chunks acknowledged writes
//! need.
//!
//! Bytes in the newest part of an open pack that are no whole frame are a write that a crash tore,
//! that was never acknowledged, or one that was synced and became something else: a *doubt*
//! ([`HoleOrigin::DamageOrCrash`]). The pack doesn't show which. The layer that opens the store
//! below a log knows:
//!
//! 1. A record that is in force was written once all that it names in packs was synced, with all
//!    that this refers to. So what of that isn't found was lost by damage.
//! 2. Chunks in open packs are followed, and no others. A pack that a manifest lists as sealed
//!    refers to nothing beyond the lengths that the manifest records, and damage below these is no
//!    doubt.
//! 3. A place that by its own word held a chunk that is lost is damage: set aside, reported, and
//!    listed. If none says so, its names are damaged, too: each of the places may have held the
//!    chunk.

use std::collections::HashSet;
use std::sync::Arc;

use super::LocalStore;
use crate::chunk::ChunkHash;
use crate::damage::{Damage, FrameDamage, Hole, HoleOrigin};
use crate::error::StoreError;
use crate::hash::NameHasherBuilder;
use crate::location::{PackNumber, PackedChunk};
use crate::pack::Pack;
use crate::pack::recover::claimed;

/// A place that damage made, or a crash.
struct Doubt {
    pack: Arc<Pack>,
    offset: u32,
    what: String,
    /// The chunks that it held by its own word.
    chunks: Vec<PackedChunk>,
}

impl LocalStore {
    /// Whether there are places that damage made, or a crash.
    pub(super) fn is_in_doubt(&self) -> bool {
        let origin = HoleOrigin::DamageOrCrash;
        self.index(|index| index.holes().iter().any(|hole| hole.origin == origin))
    }

    /// Looks for all that `needed` reach, which was durable. Chunks that aren't found are lost by
    /// damage.
    ///
    /// # Errors
    /// [`StoreError::Io`]. Damage is none.
    pub(super) fn settle_doubts(&self, needed: &[ChunkHash]) -> Result<(), StoreError> {
        let doubts = self.doubts();
        if doubts.is_empty() {
            return Ok(());
        }
        let mut unnamed = Vec::new();
        for hash in self.unfound(needed)? {
            let named = doubts.iter().find_map(|doubt| {
                let chunk = doubt.chunks.iter().find(|chunk| chunk.hash == hash)?;
                Some((doubt, chunk.location(doubt.pack.number, None)))
            });
            let Some((doubt, at)) = named else {
                unnamed.push(hash);
                continue;
            };
            let damage = FrameDamage { at, what: doubt.what.clone() };
            self.note_finding(damage.of(hash));
            let mut index = self.index_mut();
            index.settle_hole(doubt.pack.number, doubt.offset, HoleOrigin::Named);
            index.note_lost(hash, damage);
        }
        // A missing chunk may have lain in a place that is known as damaged.
        let origin = HoleOrigin::Damage;
        let is_in_doubt_here =
            self.index(|index| index.holes().iter().any(|hole| hole.origin == origin));
        if !is_in_doubt_here {
            self.report_unnamed(&doubts, &unnamed);
        }
        Ok(())
    }

    /// Notes that one of `doubts` had `lost`, but that it isn't known which.
    fn report_unnamed(&self, doubts: &[Doubt], lost: &[ChunkHash]) {
        let [first, ..] = lost else { return };
        let what = format!("chunk {first} isn't found, and may have lain here");
        for doubt in doubts {
            self.index_mut().settle_hole(doubt.pack.number, doubt.offset, HoleOrigin::Damage);
            let (file, offset) = (doubt.pack.name.clone(), u64::from(doubt.offset));
            let what = format!("{what}: {}", doubt.what);
            self.note_finding(Damage { file, offset, chunk: None, what });
        }
    }

    fn doubts(&self) -> Vec<Doubt> {
        let mut doubts: Vec<(Doubt, u32)> = self.index(|index| {
            let holes = index.holes().iter();
            let doubtful = holes.filter(|hole| hole.origin == HoleOrigin::DamageOrCrash);
            let place = |hole: &Hole| {
                let number = PackNumber::from_file_name(&hole.damage.file)?;
                let offset = u32::try_from(hole.damage.offset).ok()?;
                let end = index.aside().get(&(number, offset))?.end;
                let pack = Arc::clone(index.packs().get(&number)?);
                let what = hole.damage.what.clone();
                Some((Doubt { pack, offset, what, chunks: Vec::new() }, end))
            };
            doubtful.filter_map(place).collect()
        });
        for (doubt, end) in &mut doubts {
            doubt.chunks = claimed(&doubt.pack, u64::from(doubt.offset)..u64::from(*end));
        }
        doubts.into_iter().map(|(doubt, _)| doubt).collect()
    }

    /// Returns the chunks among all that `needed` reach which aren't found, can't be healed, and
    /// aren't known as lost.
    fn unfound(&self, needed: &[ChunkHash]) -> Result<Vec<ChunkHash>, StoreError> {
        let mut seen = HashSet::with_hasher(NameHasherBuilder);
        let mut level: Vec<ChunkHash> =
            needed.iter().copied().filter(|hash| seen.insert(*hash)).collect();
        let mut unfound = Vec::new();
        while !level.is_empty() {
            let mut below = Vec::new();
            for (hash, found) in level.iter().zip(self.find_many(&level)?) {
                match found {
                    Some((_, at)) if at.position.is_none() && at.refers => {
                        below.extend(self.references(*hash)?);
                    }
                    Some(_) => {}
                    None => {
                        let is_known = self.index(|index| index.damage(*hash).is_some());
                        if !is_known && !self.heal_in_place(*hash) {
                            unfound.push(*hash);
                        }
                    }
                }
            }
            below.retain(|hash| seen.insert(*hash));
            level = below;
        }
        Ok(unfound)
    }

    /// Returns a chunk's references; nothing if it turns out to be damaged, which is then reported.
    fn references(&self, hash: ChunkHash) -> Result<Vec<ChunkHash>, StoreError> {
        match self.fetch_past_cache(hash) {
            Ok(chunk) => Ok(chunk.references().collect()),
            Err(StoreError::Damaged { .. }) => Ok(Vec::new()),
            Err(other) => Err(other),
        }
    }
}
