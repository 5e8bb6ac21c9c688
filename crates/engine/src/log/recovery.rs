//! Reads the log back when a data directory is opened.
//!
//! 1. Segments below the engine state's log position are left over from a fold and removed, unless
//!    they are kept ([`super::retained`]), and so are spares.
//! 2. The others must follow one another without a gap, each beginning where its predecessor ended:
//!    from the one that the engine state names, which is there from before that was published, to
//!    one that no mark calls followed by another.
//! 3. Every record is checked (checksums, chain, order) and its payload handed to the caller; some
//!    are announced together before.
//! 4. A segment ends at the first record that isn't its next one; behind it lies nothing, zeros, or
//!    what an older segment left in its file. For an earlier segment the next one's header says
//!    where that was: to end before is damage. The last one may end in a torn write, and is cut; a
//!    broken record that a later one's header, or the mark behind the last, calls synced is damage,
//!    and one that a single bit makes whole wasn't torn ([`super::bit_flip`]).
//! 5. Records that are not known to be durable are written once more and synced: the process may
//!    have ended without the machine, and after a failed sync a page can be clean in memory and old
//!    on disk.

use bytes::Bytes;
use frond_store::StoreError;
use frond_store::io::{Disk, Machine};

use super::decode::DecodeError;
use super::format::{LogOffset, SegmentHeader, SegmentNumber, damaged};
use super::segment::{Segment, io};
use super::writer::SegmentEnd;
use crate::error::EngineError;
use crate::ids::Sequence;
use crate::log::recycled::remove_spares;

/// Takes the records of a log.
pub(crate) trait Replay {
    /// Is called with a record that will be applied soon.
    fn expect(&mut self, sequence: Sequence, payload: &Bytes);

    /// Takes the next record.
    ///
    /// # Errors
    /// [`DecodeError::Wrong`] if the payload is no record; [`DecodeError::Before`] if what it needs
    /// can't be read.
    fn apply(&mut self, sequence: Sequence, payload: &Bytes) -> Result<(), DecodeError>;

    /// Is called where segment `number` is missing, behind all that are there. Whether to go on
    /// without.
    fn skip_unreadable(&mut self, number: SegmentNumber) -> bool;
}

/// The segments that must exist.
pub(crate) struct ExpectedSegments {
    /// Those below are removed.
    pub kept: SegmentNumber,
    /// The first to be replayed.
    pub first: SegmentNumber,
    /// Whether that one must be there.
    pub has_first: bool,
}

/// The end of the log.
pub(crate) struct LogEnd {
    /// The segment to be begun next.
    pub next: SegmentNumber,
    /// The end of the segment before it.
    pub previous: SegmentEnd,
    /// Segments read.
    pub segment_count: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Bits at its end that had turned over.
    pub bits_turned_back: u64,
}

/// Hands every record from the first segment on to `replay`, and leaves the log durable, whole and
/// without a torn tail.
pub(crate) fn replay(
    machine: &Machine,
    expected: &ExpectedSegments,
    replay: &mut dyn Replay,
) -> Result<LogEnd, EngineError> {
    let disk = &*machine.disk;
    let first = expected.first;
    let numbers = find_segments(disk, expected.kept, first)?;
    if numbers.is_empty() && expected.has_first && !replay.skip_unreadable(first) {
        return Err(missing(first).into());
    }
    let previous = SegmentEnd::default();
    let mut end = LogEnd { next: first, previous, segment_count: 0, bytes: 0, bits_turned_back: 0 };
    let mut last_sequence = Sequence::ZERO;
    for (position, number) in numbers.iter().enumerate() {
        if *number != end.next {
            return Err(missing(end.next).into());
        }
        let mut segment = Segment::open(disk, *number)?;
        let header = segment.read_header()?;
        if let Some(before) = position.checked_sub(1).map(|before| numbers[before]) {
            check_end(before, &end.previous, &header)?;
        }
        read_records(&mut segment, &mut last_sequence, replay)?;
        if position + 1 == numbers.len() {
            while segment.correct_bit_flip()? {
                end.bits_turned_back += 1;
                read_records(&mut segment, &mut last_sequence, replay)?;
            }
            let next = number.next();
            if segment.is_followed()? && !replay.skip_unreadable(next) {
                return Err(missing(next).into());
            }
            segment.make_durable()?;
        }
        end.next = number.next();
        end.segment_count += 1;
        end.bytes += segment.end;
        end.previous = segment.into_end();
    }
    disk.sync_directory().map_err(|error| StoreError::io("the directory", error))?;
    Ok(end)
}

fn missing(number: SegmentNumber) -> StoreError {
    damaged(number, LogOffset(0), "this log segment is missing")
}

/// Fails unless the segment `before`, which was read up to `end`, ended there as `header`, the next
/// one's, says.
fn check_end(
    before: SegmentNumber,
    end: &SegmentEnd,
    header: &SegmentHeader,
) -> Result<(), StoreError> {
    if (end.offset, end.chain) == (header.previous_end, header.previous_chain) {
        return Ok(());
    }
    Err(if end.offset < header.previous_end {
        damaged(before, end.offset, "a record is broken")
    } else {
        let what = "the segment before this one doesn't end where it did";
        damaged(header.number, LogOffset(0), what)
    })
}

/// The segments from `first` on, in order. Removes those before `kept`, and spares.
fn find_segments(
    disk: &dyn Disk,
    kept: SegmentNumber,
    first: SegmentNumber,
) -> Result<Vec<SegmentNumber>, StoreError> {
    remove_spares(disk).map_err(|error| StoreError::io("a spare of the log", error))?;
    let names = disk.list().map_err(|error| StoreError::io("the directory", error))?;
    let mut numbers: Vec<SegmentNumber> =
        names.iter().filter_map(|name| SegmentNumber::of_file_name(name)).collect();
    numbers.sort();
    let mut needed = Vec::new();
    for number in numbers {
        if number < kept {
            io(number, disk.remove(&number.file_name()))?;
        } else if first <= number {
            needed.push(number);
        }
    }
    Ok(needed)
}

/// Reads records of a segment until the first that is not there or broken.
fn read_records(
    segment: &mut Segment,
    last_sequence: &mut Sequence,
    replay: &mut dyn Replay,
) -> Result<(), EngineError> {
    loop {
        let records = segment.read_some(last_sequence)?;
        if records.is_empty() {
            return Ok(());
        }
        for (_, sequence, payload) in &records {
            replay.expect(*sequence, payload);
        }
        for (offset, sequence, payload) in records {
            replay.apply(sequence, &payload).map_err(|error| match error {
                DecodeError::Wrong(what) => damaged(segment.number, offset, what).into(),
                DecodeError::Before(error) => error,
            })?;
        }
    }
}
