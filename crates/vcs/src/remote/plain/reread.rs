//! Reads chunks again that are believed to lie in a place.
//!
//! - A chunk that a transfer counts as there is read first (`Remote::has_many`).
//! - A chunk that a transfer passes over, since its predecessor has it, is not. So each backup
//!   rereads a share of the packs: those behind the one that was read last, in the order of their
//!   names. All of a place comes to its turn in [`SHARE`] backups; a place of [`BYTES_MIN`] each
//!   time. A push, which may be of a few bytes, rereads [`LITTLE_BYTES`].
//! - A pack that the refs may need and that isn't there is damage, too, and so is another one under
//!   its name.
//! - A damaged pack nothing of which is lost (since it lies elsewhere, or was put again) is *set
//!   aside* when the refs are changed: what else it holds was put into other packs, and it counts
//!   for nothing. The next collection removes it. One that is the only place where something was
//!   stays, reported again and again.

use frond_db::inside::Error;
use frond_store::{Chunk, ChunkHash};

use super::PlainRemote;
use super::examine::StorageDamage;
use super::format::{PackId, Refs};
use super::packs::check::{id_of_pack, name_of_pack};

/// The number of transfers that together reread all of a place.
const SHARE: u64 = 16;
/// The number of bytes that are reread at least: eight packs, about a second of work.
const BYTES_MIN: u64 = 128 << 20;

/// The number of bytes that a push rereads: one whole pack, or many small ones.
const LITTLE_BYTES: u64 = 16 << 20;

/// The part of a place that is reread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reread {
    /// A share, which goes round.
    #[default]
    Share,
    /// A few packs, which go round, too.
    Little,
    /// Everything.
    All,
}

impl PlainRemote {
    /// Chunks that were found damaged and lie nowhere else.
    pub(in crate::remote) fn lost(&self) -> Vec<ChunkHash> {
        self.packs.lost()
    }

    /// All that any ref needs was read and is there: nothing unknown is lost.
    pub(in crate::remote) fn forget_unknown(&self) {
        self.packs.forget_unknown();
    }

    /// Rereads packs. `seen` is called with every chunk that is whole.
    pub(in crate::remote) fn reread(
        &self,
        how_much: Reread,
        seen: &mut dyn FnMut(&Chunk),
    ) -> Result<(), Error> {
        let refs = self.refresh()?;
        self.note_missing(&refs)?;
        self.note_replaced(&refs);
        self.check_copy(&refs)?;
        let packs = self.packs.list()?;
        let total: u64 = packs.iter().map(|(_, bytes)| bytes).sum();
        let mut left = match how_much {
            Reread::Share => (total / SHARE).max(BYTES_MIN),
            Reread::Little => LITTLE_BYTES,
            Reread::All => u64::MAX,
        };
        let last = self.reread.lock().expect("no panic while the lock is held").or(refs.reread);
        let last = last.map(|id| name_of_pack(&id)).unwrap_or_default();
        let first = packs.partition_point(|(name, _)| *name <= last);
        for (name, bytes) in packs[first..].iter().chain(&packs[..first]) {
            if left == 0 {
                break;
            }
            self.packs.check(name, *bytes, seen)?;
            left = left.saturating_sub(*bytes);
            *self.reread.lock().expect("no panic while the lock is held") = id_of_pack(name);
        }
        Ok(())
    }

    /// Notes packs that the refs may need and that aren't there.
    fn note_missing(&self, refs: &Refs) -> Result<(), Error> {
        let missing = |refs: &Refs| -> Result<Vec<PackId>, Error> {
            let there = self.place.list(super::packs::PACK_PREFIX)?;
            let there: Vec<PackId> =
                there.iter().filter_map(|(name, _)| id_of_pack(name)).collect();
            let is_gone = |pack: &&PackId| {
                !there.contains(*pack) && !refs.doomed.contains(&name_of_pack(pack))
            };
            Ok(refs.packs.keys().filter(is_gone).copied().collect())
        };
        if missing(refs)?.is_empty() {
            return Ok(());
        }
        // A collection that just ran removed them, or they are gone.
        let refs = self.refresh()?;
        for pack in missing(&refs)? {
            let file = name_of_pack(&pack);
            let what = format!("remote: {file}: is gone");
            let chunks = Vec::new();
            self.packs.note(StorageDamage { file, what, chunks, may_hold_more: true });
        }
        Ok(())
    }

    /// Notes packs under whose names others lie: what was in them is gone.
    fn note_replaced(&self, refs: &Refs) {
        for (pack, written) in &refs.packs {
            let file = name_of_pack(pack);
            let found = self.packs.mark(&file);
            if written.zip(found).is_some_and(|(written, found)| written != found) {
                let what = format!("remote: {file}: is another pack than was written there");
                let chunks = Vec::new();
                self.packs.note(StorageDamage { file, what, chunks, may_hold_more: true });
            }
        }
    }

    /// Changes refs for what is known of the packs: those that may be needed, those that are set
    /// aside.
    pub(super) fn note_packs(&self, refs: &mut Refs, aside: &[String]) -> Result<(), Error> {
        let there = self.packs.marked()?;
        let damages = self.packs.damages();
        let is_gone = |id: &PackId, name: &String| {
            !there.contains_key(id) && damages.iter().any(|damage| damage.file == *name)
        };
        for (id, mark) in &there {
            let written = refs.packs.entry(*id).or_default();
            *written = written.or(*mark);
        }
        refs.packs.retain(|id, _| {
            let name = name_of_pack(id);
            !aside.contains(&name) && !is_gone(id, &name)
        });
        if !aside.is_empty() {
            let new = aside.iter().filter(|name| !refs.doomed.contains(name)).cloned();
            let new: Vec<String> = new.collect();
            refs.doomed.extend(new);
            refs.collections += 1;
        }
        let last = *self.reread.lock().expect("no panic while the lock is held");
        refs.reread = last.or(refs.reread);
        Ok(())
    }

    /// Says that a file of the refs is damaged, or a part of it; changing them mends it.
    pub(super) fn note_refs(&self, file: &str, error: Error) {
        let (file, what) = (file.to_owned(), error.message);
        self.packs.note(StorageDamage { file, what, chunks: Vec::new(), may_hold_more: false });
    }
}
