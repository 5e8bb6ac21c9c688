//! Reads the indexes of sealed packs, several at once: what opening a large store takes its time
//! for. Each is read as a whole and checked; of a chunk, the start of its name stays. Where the
//! disk's tier has a pack's outline, that does instead: the starts are read where it lies, and the
//! index's pages when they are searched.

use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use crate::io::{StoredBytes, Tier};
use crate::pack::Pack;
use crate::pack::outline::{Outline, Starts};
use crate::pack::reader::read_index;
use crate::pack::table::PackTable;

/// Threads that read and check them: more wait for a disk than work.
const THREADS_MAX: usize = 8;
/// Packs of fewer bytes aren't worth a thread: some 5,000 chunks.
const A_THREAD_BYTES_MIN: u64 = 64 << 20;

/// A sealed pack, and how many bytes it has.
pub(super) type SealedPack = (Arc<Pack>, u64);

/// Returns the starts of the names of each of `packs`, in their order; `None` where a pack's header
/// or index isn't right or can't be read.
pub(super) fn read(packs: &[SealedPack], tier: Option<&dyn Tier>) -> Vec<Option<Starts>> {
    let outlined = |(pack, bytes): &SealedPack| read_outline(pack, *bytes, tier?);
    let mut found: Vec<Option<Starts>> = packs.iter().map(outlined).collect();
    let is_absent = |position: &usize| found[*position].is_none();
    let absent: Vec<usize> = (0..packs.len()).filter(is_absent).collect();
    let rest: Vec<SealedPack> = absent.iter().map(|position| packs[*position].clone()).collect();
    for (position, read) in absent.into_iter().zip(read_whole(&rest)) {
        found[position] = read;
    }
    found
}

/// Afterwards the pack can be searched.
fn read_outline(pack: &Pack, pack_bytes: u64, tier: &dyn Tier) -> Option<Starts> {
    let stored = tier.outline(&pack.name)?;
    let outline = Outline::parse(&stored.read(0..stored.len()).ok()?, pack_bytes)?;
    pack.table.get_or_init(|| PackTable::of_outline(pack_bytes, &outline));
    let elsewhere = matches!(stored, StoredBytes::InFile(..)).then_some(stored);
    Some(outline.into_starts(pack.number, elsewhere))
}

fn read_whole(packs: &[SealedPack]) -> Vec<Option<Starts>> {
    let bytes: u64 = packs.iter().map(|(_, bytes)| bytes).sum();
    let worth = usize::try_from(bytes / A_THREAD_BYTES_MIN).unwrap_or(THREADS_MAX);
    // One that works leaves the disk idle, two processors are kept busy by two that work.
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    read_by(packs, worth.min(2 * cores).clamp(1, THREADS_MAX))
}

fn read_by(packs: &[SealedPack], thread_count: usize) -> Vec<Option<Starts>> {
    let read_part =
        |part: &[SealedPack]| -> Vec<Option<Starts>> { part.iter().map(read_one).collect() };
    if thread_count == 1 {
        return read_part(packs);
    }
    let parts = packs.chunks(packs.len().div_ceil(thread_count).max(1));
    thread::scope(|scope| {
        let threads: Vec<_> = parts.map(|part| scope.spawn(move || read_part(part))).collect();
        // A panic of another thread is one of this.
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().flat_map(join).collect()
    })
}

fn read_one((pack, bytes): &SealedPack) -> Option<Starts> {
    let chunks = read_index(pack, *bytes).ok()?;
    Some(Outline::new(0, &chunks).into_starts(pack.number, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ChunkStore;
    use crate::chunk::{Chunk, ChunkKind};
    use crate::io::Machine;
    use crate::local::{LocalOptions, LocalStore};

    #[test]
    fn several_threads_read_what_one_does() {
        let name = format!("frond-indexes-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let machine = Machine::system(&directory).unwrap();
        let options = LocalOptions { pack_bytes_target: 1 << 10, ..LocalOptions::default() };
        let store = LocalStore::open(&machine, options).unwrap();
        for number in 0..300u32 {
            store.put_many(&[Chunk::new(ChunkKind::Blob, &[], &number.to_le_bytes())]).unwrap();
        }
        let mut packs: Vec<SealedPack> = store.index(|index| {
            let packs = index.packs().values();
            packs.filter_map(|it| Some((Arc::clone(it), it.table.get()?.pack_bytes))).collect()
        });
        assert!(packs.len() > 10, "{} packs", packs.len());
        // No index ends there.
        packs[3].1 -= 1;
        let read_by = |thread_count| -> Vec<Option<Vec<_>>> {
            let take_all = |mut starts: Starts| {
                let mut all = Vec::new();
                starts.take_below(None, &mut all).unwrap();
                all
            };
            read_by(&packs, thread_count).into_iter().map(|it| it.map(take_all)).collect()
        };
        let one_by_one = read_by(1);
        let absent: Vec<usize> =
            (0..packs.len()).filter(|position| one_by_one[*position].is_none()).collect();
        assert_eq!(absent, [3]);
        for thread_count in [2, 4, 100] {
            assert_eq!(read_by(thread_count), one_by_one);
        }
        drop((packs, store));
        std::fs::remove_dir_all(directory).unwrap();
    }
}
