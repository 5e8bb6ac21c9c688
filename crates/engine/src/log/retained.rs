//! Log segments that are retained for change streams after their contents are published.
//!
//! *Invariants*
//! 1. The segments from `first` on are on the disk, and their transactions recorded what they
//!    changed. A number without a file is that of a segment that never took a record.
//! 2. Everything above the *floor* is in them. The floor rises before a file goes: a reader that
//!    meets a file that isn't the segment's any more finds the floor above itself.
//! 3. A *term* of keeping begins and ends between two segments, under the queue's lock. A
//!    transaction that commits in a term was begun in it, so that all its writes have events.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use frond_store::StoreError;
use frond_store::io::Disk;

use super::format::SegmentNumber;
use super::recycled::RecycledSegments;
use super::segment::Segment;
use crate::ids::Sequence;
use crate::options::{ChangeRetention, RetentionBegins};

/// The retained segments, and the term of retention.
pub(crate) struct RetainedSegments {
    disk: Arc<dyn Disk>,
    retention: ChangeRetention,
    /// The term of keeping; [`RetentionTerm::NONE`] while nothing is kept.
    term: AtomicU64,
    /// The time when the log was last read, in seconds since 1970.
    followed: AtomicU64,
    state: Mutex<State>,
}

/// A term of retention: while it lasts, transactions record what they change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RetentionTerm(u64);

impl RetentionTerm {
    /// They don't.
    pub const NONE: RetentionTerm = RetentionTerm(0);
}

struct State {
    kept: VecDeque<Kept>,
    bytes: u64,
    /// The oldest segment that may be read.
    first: SegmentNumber,
    /// Everything above is readable.
    floor: Sequence,
    /// The number of terms that have begun.
    terms: u64,
}

struct Kept {
    number: SegmentNumber,
    bytes: u64,
    /// The latest possible time of its last transaction, in seconds since 1970.
    ended: u64,
}

/// The first of the segments below `first` that can be kept: all from it on have events.
///
/// # Errors
/// An error of the disk when it is listed.
pub(crate) fn first_kept(
    disk: &dyn Disk,
    retention: ChangeRetention,
    first: SegmentNumber,
) -> Result<SegmentNumber, StoreError> {
    if !retention.is_on() {
        return Ok(first);
    }
    let names = disk.list().map_err(|error| StoreError::io("the directory", error))?;
    let numbers = names.iter().filter_map(|name| SegmentNumber::of_file_name(name));
    let mut numbers: Vec<SegmentNumber> = numbers.filter(|number| *number < first).collect();
    numbers.sort_by(|left, right| right.cmp(left));
    let recording = numbers.into_iter().take_while(|number| records_events(disk, *number));
    Ok(recording.last().unwrap_or(first))
}

/// Whether a segment is readable as one that has events.
fn records_events(disk: &dyn Disk, number: SegmentNumber) -> bool {
    let header = Segment::open(disk, number).and_then(|mut segment| segment.read_header());
    header.is_ok_and(|header| header.records_events)
}

/// The Sequence of a segment's first record; `None` if it has none, or isn't there.
fn first_sequence(disk: &dyn Disk, number: SegmentNumber) -> Option<Sequence> {
    let mut segment = Segment::open(disk, number).ok()?;
    segment.read_header().ok()?;
    segment.first_sequence().ok().flatten()
}

impl RetainedSegments {
    /// Makes the list from the findings of an opening at this second: published segments from
    /// `first_kept` on, those that a restart needs from `first_live` to before `next`, which comes.
    /// The last Sequence found is `last`.
    pub fn open(
        disk: &Arc<dyn Disk>,
        retention: ChangeRetention,
        (first_kept, first_live, next): (SegmentNumber, SegmentNumber, SegmentNumber),
        last: Sequence,
        now_seconds: u64,
    ) -> RetainedSegments {
        let mut state =
            State { kept: VecDeque::new(), bytes: 0, first: next, floor: last, terms: 1 };
        let is_on = retention.is_on()
            && match retention.begins {
                RetentionBegins::AtOnce => true,
                RetentionBegins::WhenRequested => {
                    newest(&**disk, next).is_some_and(|it| records_events(&**disk, it))
                }
            };
        if is_on {
            let mut number = next;
            while first_kept < number {
                let before = SegmentNumber(number.0 - 1);
                if exists(&**disk, before) && !records_events(&**disk, before) {
                    break;
                }
                number = before;
            }
            if number < next {
                state.first = number;
                state.floor = match number {
                    // Nothing was ever before it.
                    SegmentNumber(1) => Sequence::ZERO,
                    _ => floor_of(&**disk, number, next, last),
                };
            }
            let mut kept = number;
            while kept < first_live {
                if !exists(&**disk, kept) {
                    kept = kept.next();
                    continue;
                }
                let bytes = file_bytes(&**disk, kept);
                let ended = floor_of(&**disk, kept.next(), next, last).0 >> 32;
                state.bytes += bytes;
                state.kept.push_back(Kept { number: kept, bytes, ended });
                kept = kept.next();
            }
        }
        RetainedSegments {
            disk: Arc::clone(disk),
            retention,
            term: AtomicU64::new(u64::from(is_on)),
            followed: AtomicU64::new(now_seconds),
            state: Mutex::new(state),
        }
    }

    /// Whether anything is kept, and transactions record what they change.
    pub fn is_on(&self) -> bool {
        self.term() != RetentionTerm::NONE
    }

    /// Whether it is, or would be if it were asked for.
    pub fn may_be_on(&self) -> bool {
        self.retention.is_on()
    }

    /// The term that transactions begin in.
    pub fn term(&self) -> RetentionTerm {
        RetentionTerm(self.term.load(Ordering::SeqCst))
    }

    /// Whether the transactions of a segment that is written from now on record events.
    pub fn records_events(&self, number: SegmentNumber) -> bool {
        self.is_on() && self.state().first <= number
    }

    /// Begins a term with the segment `first`, in which nothing has a Sequence up to `floor`. The
    /// caller holds the queue.
    pub fn begin_term(&self, first: SegmentNumber, floor: Sequence, now_seconds: u64) {
        let mut state = self.state();
        (state.first, state.floor) = (first, floor);
        state.terms += 1;
        self.followed.store(now_seconds, Ordering::SeqCst);
        self.term.store(state.terms, Ordering::SeqCst);
    }

    /// Ends the term: the segment that comes next has no events. The caller holds the queue.
    pub fn end_term(&self) {
        self.term.store(RetentionTerm::NONE.0, Ordering::SeqCst);
    }

    /// Notes that the log is read at this second.
    pub fn note_followed(&self, now_seconds: u64) {
        self.followed.fetch_max(now_seconds, Ordering::Relaxed);
    }

    /// Whether the term is one that was asked for, and that no client has read for as long as the
    /// log is kept.
    pub fn is_abandoned(&self, now_seconds: u64) -> bool {
        let unread = now_seconds.saturating_sub(self.followed.load(Ordering::Relaxed));
        self.is_on()
            && self.retention.begins == RetentionBegins::WhenRequested
            && self.retention.seconds < unread
    }

    /// The oldest segment that may be read, and the Sequence above which everything is there.
    pub fn floor(&self) -> (SegmentNumber, Sequence) {
        let state = self.state();
        (state.first, state.floor)
    }

    /// Bytes of what is kept for nothing else.
    pub fn bytes(&self) -> u64 {
        self.state().bytes
    }

    /// Takes a segment that no opening needs any more, at this second.
    ///
    /// # Errors
    /// An error of the disk when a file is given to `recycled`.
    pub fn take(
        &self,
        number: SegmentNumber,
        now_seconds: u64,
        recycled: &RecycledSegments,
    ) -> io::Result<()> {
        let mut state = self.state();
        if !self.is_on() || number < state.first {
            return recycled.give(number);
        }
        if exists(&*self.disk, number) {
            let bytes = file_bytes(&*self.disk, number);
            state.bytes += bytes;
            state.kept.push_back(Kept { number, bytes, ended: now_seconds });
        }
        Ok(())
    }

    /// Gives up what is older than it is to be kept at this second, or more than it and `bytes_max`
    /// allow: the oldest first. `end` is where the log is durable.
    ///
    /// # Errors
    /// As [`RetainedSegments::take`].
    pub fn trim(
        &self,
        now_seconds: u64,
        bytes_max: u64,
        end: (SegmentNumber, Sequence),
        recycled: &RecycledSegments,
    ) -> io::Result<()> {
        let bytes_max = bytes_max.min(self.retention.bytes);
        let mut state = self.state();
        while let Some(oldest) = state.kept.front() {
            let age = now_seconds.saturating_sub(oldest.ended);
            if state.bytes <= bytes_max && age < self.retention.seconds {
                return Ok(());
            }
            self.give_up_oldest(&mut state, end, recycled)?;
        }
        Ok(())
    }

    fn give_up_oldest(
        &self,
        state: &mut State,
        end: (SegmentNumber, Sequence),
        recycled: &RecycledSegments,
    ) -> io::Result<()> {
        let Some(oldest) = state.kept.pop_front() else { return Ok(()) };
        state.bytes -= oldest.bytes;
        state.first = oldest.number.next();
        let floor = floor_of(&*self.disk, state.first, end.0.next(), end.1);
        state.floor = state.floor.max(floor.min(end.1));
        recycled.give(oldest.number)
    }

    /// Removes all that is kept, and lets no follower read what comes before `end`.
    ///
    /// # Errors
    /// An error of the disk when a file is removed; the others are gone.
    pub fn forget(&self, end: (SegmentNumber, Sequence)) -> io::Result<()> {
        let mut state = self.state();
        state.floor = state.floor.max(end.1);
        state.first = state.first.max(end.0);
        state.bytes = 0;
        let mut removed = Ok(());
        let kept = std::mem::take(&mut state.kept);
        if let Some(last) = kept.back() {
            state.first = state.first.max(last.number.next());
        }
        for kept in kept {
            match self.disk.remove(&kept.number.file_name()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => removed = Err(error),
                _ => {}
            }
        }
        removed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the lock is held")
    }
}

/// The last segment before `next` that is there.
fn newest(disk: &dyn Disk, next: SegmentNumber) -> Option<SegmentNumber> {
    let names = disk.list().ok()?;
    let numbers = names.iter().filter_map(|name| SegmentNumber::of_file_name(name));
    numbers.filter(|number| *number < next).max()
}

/// Returns the Sequence before the first record of the segments from `number` to before `next`;
/// `last` where they have none.
fn floor_of(
    disk: &dyn Disk,
    mut number: SegmentNumber,
    next: SegmentNumber,
    last: Sequence,
) -> Sequence {
    while number < next {
        if let Some(first) = first_sequence(disk, number) {
            return first.preceding();
        }
        number = number.next();
    }
    last
}

fn exists(disk: &dyn Disk, number: SegmentNumber) -> bool {
    !matches!(disk.open(&number.file_name()), Err(error) if error.kind() == io::ErrorKind::NotFound)
}

fn file_bytes(disk: &dyn Disk, number: SegmentNumber) -> u64 {
    disk.open(&number.file_name()).and_then(|file| file.bytes()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use frond_testkit::SimDisk;

    use super::*;
    use crate::log::writer::{PendingRecord, SegmentEnd, Writer};

    const ALL: ChangeRetention =
        ChangeRetention { begins: RetentionBegins::AtOnce, seconds: 100, bytes: 1 << 30 };

    /// A retained segment is as old as the segment behind it, also over a restart.
    #[test]
    fn retained_segments_expire() {
        let machine = SimDisk::new(1).machine();
        let recycled = Arc::new(RecycledSegments::new(&machine.disk));
        let open = |segments: [u64; 3], last| {
            let [kept, live, next] = segments.map(SegmentNumber);
            RetainedSegments::open(&machine.disk, ALL, (kept, live, next), last, 0)
        };
        let kept = Arc::new(open([1, 1, 1], Sequence::ZERO));
        let first = SegmentNumber(1);
        let mut writer = Writer::new(&machine, &recycled, first, SegmentEnd::default(), &kept);
        let at = |second: u64| Sequence((second << 32) + 7);
        for (number, second) in [(1, 1000), (2, 1010), (3, 1020)] {
            let pending = PendingRecord::new(Bytes::from(vec![7; 100]));
            let (sequence, segment) = (at(second), SegmentNumber(number));
            assert!(writer.write(&[PendingRecord { sequence, segment, ..pending }]).is_ok());
        }
        drop(writer);
        let kept = open([1, 3, 4], at(1020));
        let end = (SegmentNumber(3), at(1020));
        for (now, oldest, left) in [(1109, 1, 2), (1110, 2, 1), (1119, 2, 1), (1120, 3, 0)] {
            kept.trim(now, u64::MAX, end, &recycled).unwrap();
            assert_eq!(kept.floor().0, SegmentNumber(oldest), "at {now}");
            assert_eq!(kept.state().kept.len(), left, "at {now}");
        }
    }
}
