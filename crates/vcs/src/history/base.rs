//! The best common ancestors of two commits.
//!
//! Commits are visited by falling generation, so each one after all that were made from it:
//! 1. Each of the two paints itself and its ancestors in its own colour.
//! 2. The first visited that has both colours is a common ancestor that no other one descends from.
//!    Its ancestors are common too, but not best: they are painted stale.
//! 3. Once only stale commits wait, all best ones are found.
//!
//! Criss-cross histories have more than one best common ancestor. They come in the order of their
//! generations, the greatest first, and among equals of their hashes, so that both directions
//! agree; the merge makes one base of all of them.
//!
//! The walk ends early: nothing below the common ancestors but what shares their generation is
//! read.

use std::collections::{BTreeMap, HashMap};

use frond_db::inside::{Commit, Error};
use frond_store::ChunkHash;

/// Paint. Bits: a commit may have several.
const OURS: u8 = 1;
const THEIRS: u8 = 2;
const STALE: u8 = 4;

/// The place of a commit in the order of visits: the last is visited first.
type VisitOrder = (u64, std::cmp::Reverse<ChunkHash>);

/// Returns the best common ancestors of two commits, the one that a merge begins with first. A
/// commit is its own ancestor; several in the place of ours count as one that was made from all of
/// them. `load` reads commits; each is asked for once.
pub(crate) fn merge_bases(
    ours: &[ChunkHash],
    theirs: ChunkHash,
    load: &mut dyn FnMut(ChunkHash) -> Result<Commit, Error>,
) -> Result<Vec<ChunkHash>, Error> {
    let mut walk = Walk { load, colours: HashMap::new(), waiting: BTreeMap::new(), fresh: 0 };
    for ours in ours {
        walk.paint(*ours, OURS)?;
    }
    walk.paint(theirs, THEIRS)?;
    let mut best = Vec::new();
    while walk.fresh > 0 {
        let Some(((_, std::cmp::Reverse(hash)), commit)) = walk.waiting.pop_last() else { break };
        let mut colour = walk.colours.get(&hash).copied().unwrap_or_default();
        if colour & STALE == 0 {
            walk.fresh -= 1;
            if colour == OURS | THEIRS {
                best.push(hash);
                colour |= STALE;
            }
        }
        for parent in commit.parents {
            walk.paint(parent, colour)?;
        }
    }
    Ok(best)
}

/// Whether `ancestor` is `descendant` or one of its ancestors.
pub(crate) fn is_ancestor(
    ancestor: ChunkHash,
    descendant: ChunkHash,
    load: &mut dyn FnMut(ChunkHash) -> Result<Commit, Error>,
) -> Result<bool, Error> {
    Ok(merge_bases(&[ancestor], descendant, load)?.first() == Some(&ancestor))
}

struct Walk<'a> {
    load: &'a mut dyn FnMut(ChunkHash) -> Result<Commit, Error>,
    colours: HashMap<ChunkHash, u8>,
    waiting: BTreeMap<VisitOrder, Commit>,
    /// The number of those that wait and are not stale.
    fresh: usize,
}

impl Walk<'_> {
    fn paint(&mut self, hash: ChunkHash, colour: u8) -> Result<(), Error> {
        let Some(known) = self.colours.get_mut(&hash) else {
            let commit = (self.load)(hash)?;
            self.colours.insert(hash, colour);
            self.waiting.insert((commit.generation, std::cmp::Reverse(hash)), commit);
            self.fresh += usize::from(colour & STALE == 0);
            return Ok(());
        };
        // It still waits: its generation is below that of the commit that paints it.
        if *known & STALE == 0 && colour & STALE != 0 {
            self.fresh -= 1;
        }
        *known |= colour;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
