//! Reads ahead the old values that the log's patches change.
//!
//! Of a small change the log has what differs, and a replay makes the value again from the one
//! before: one read of a tree for each, from a disk that takes its time for one as for many. So the
//! keys of the records to come are gathered, and some hundreds at a time are read by several
//! threads, each in the order of keys.
//!
//! It is a guess: a record in between may write the key, or give its tree another base. A replay
//! that takes a value looks into the memtable first, and compares the generation; what wasn't read
//! here, for whatever reason, is read then.

use std::collections::VecDeque;
use std::thread;

use bytes::Bytes;
use frond_store::ChunkStore;

use crate::ids::{Sequence, TreeId};
use crate::log::decode::patched_keys;
use crate::state::State;

/// The number of values that are read together: enough to keep a disk busy, and few enough to lie
/// in memory.
const TOGETHER: usize = 1024;
/// Threads that read them. They wait for the disk, mostly.
const THREADS: usize = 8;
/// The least number that is worth a thread.
const A_THREAD_MIN: usize = 16;
/// A thread reads no more than this ahead.
const A_THREAD_BYTES_MAX: usize = 2 << 20;

/// A key whose value changes at a Sequence.
type Wanted = (Sequence, TreeId, Bytes);

/// A value of a base.
pub(super) struct Old {
    /// The time when the base's generation began.
    pub generation: Sequence,
    /// Empty also if there was none.
    pub bytes: Bytes,
}

/// Keys whose old values will be asked for, in that order.
#[derive(Default)]
pub(super) struct OldValues {
    wanted: VecDeque<Wanted>,
    read: VecDeque<(Wanted, Option<Old>)>,
}

impl OldValues {
    /// Notes what a record will ask for.
    pub fn expect(&mut self, sequence: Sequence, payload: &Bytes) {
        let wanted = &mut self.wanted;
        // A record that can't be read is reported when it is its turn.
        let _ = patched_keys(payload, &mut |tree, key| wanted.push_back((sequence, tree, key)));
    }

    /// The value that a base had for the next key that was expected, which is this one; `None` if
    /// it must be read.
    pub fn take(
        &mut self,
        store: &dyn ChunkStore,
        state: &State,
        (sequence, tree, key): (Sequence, TreeId, &[u8]),
    ) -> Option<Old> {
        if self.read.is_empty() {
            self.read_some(store, state);
        }
        let (wanted, old) = self.read.pop_front()?;
        old.filter(|_| wanted == (sequence, tree, Bytes::copy_from_slice(key)))
    }

    fn read_some(&mut self, store: &dyn ChunkStore, state: &State) {
        let count = self.wanted.len().min(TOGETHER);
        let mut ordered: Vec<(usize, Wanted)> = self.wanted.drain(..count).enumerate().collect();
        ordered
            .sort_unstable_by(|(_, left), (_, right)| (left.1, &left.2).cmp(&(right.1, &right.2)));
        let read = |part: &[(usize, Wanted)]| -> Vec<Option<Old>> {
            let mut left = A_THREAD_BYTES_MAX;
            let old = |(_, wanted): &(usize, Wanted)| {
                let old = old_value(store, state, wanted).filter(|old| old.bytes.len() <= left)?;
                left -= old.bytes.len();
                Some(old)
            };
            part.iter().map(old).collect()
        };
        let parts = ordered.chunks(count.div_ceil(THREADS).max(A_THREAD_MIN));
        let olds: Vec<Option<Old>> = thread::scope(|scope| {
            let threads: Vec<_> = parts.map(|part| scope.spawn(move || read(part))).collect();
            // A panic of another thread is one of this.
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().flat_map(join).collect()
        });
        let mut read: Vec<(usize, (Wanted, Option<Old>))> = ordered
            .into_iter()
            .zip(olds)
            .map(|((position, wanted), old)| (position, (wanted, old)))
            .collect();
        read.sort_unstable_by_key(|(position, _)| *position);
        self.read.extend(read.into_iter().map(|(_, read)| read));
    }
}

/// Returns the base's value of a key, if that will be asked for.
fn old_value(store: &dyn ChunkStore, state: &State, (sequence, tree, key): &Wanted) -> Option<Old> {
    let before = sequence.preceding();
    let generation = state.generation(*tree, before)?;
    let base = generation.base.as_ref().filter(|base| base.folded_to < *sequence)?;
    if state.find_recent((*tree, base), key, before).is_some() {
        return None;
    }
    let bytes = match base.get(store, key).ok()? {
        // Copied: it must not keep a leaf in memory.
        Some(value) => Bytes::copy_from_slice(&value.read(store).ok()?),
        None => Bytes::new(),
    };
    Some(Old { generation: generation.from, bytes })
}
