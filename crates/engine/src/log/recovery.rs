//! Reads the log back when a data directory is opened.
//!
//! 1. Segments below the engine state's log position are left over from a fold and removed, and so
//!    are spares.
//! 2. The others must follow one another without a gap, each beginning where its predecessor ended.
//! 3. Every record is checked (checksums, chain, order) and its payload handed to the caller; some
//!    are announced together before.
//! 4. A segment ends at the first record that isn't its next one; behind it lies nothing, zeros, or
//!    what an older segment left in its file. Of an earlier segment the next one's header tells
//!    where that was: to end before is damage. The last one may end in a torn write, and is cut; a
//!    broken record that a later one's header, or the mark behind the last, calls synced is damage.
//! 5. What is not known to be durable is written once more and synced: the process may have ended
//!    without the machine, and after a failed sync a page can be clean in memory and old on disk.

use std::sync::Arc;

use bytes::Bytes;
use frond_store::StoreError;
use frond_store::field::checksum_holds;
use frond_store::io::{Disk, DiskFile, Machine};

use super::decode::DecodeError;
use super::format::{
    Chain, LogOffset, RECORD_ALIGNMENT, RECORD_HEADER_BYTES, RecordHeader, SEGMENT_HEADER_BYTES,
    SegmentHeader, SegmentNumber, VERSION, damaged, encode_mark, payload_checksum,
};
use crate::error::EngineError;
use crate::ids::Sequence;
use crate::log::recycled::remove_spares;

/// Bytes read at once.
const WINDOW_BYTES: u64 = 1 << 20;
/// Payloads that are announced together.
const BATCH_BYTES: usize = 1 << 20;

/// Takes the records of a log.
pub(crate) trait Replay {
    /// Is told of a record that will be applied soon.
    fn expect(&mut self, sequence: Sequence, payload: &Bytes);

    /// Takes the next record.
    ///
    /// # Errors
    /// [`DecodeError::Wrong`] if the payload is no record; [`DecodeError::Before`] if what it needs
    /// can't be read.
    fn apply(&mut self, sequence: Sequence, payload: &Bytes) -> Result<(), DecodeError>;
}

/// Where the log ends.
pub(crate) struct LogEnd {
    /// The segment to be begun next.
    pub next: SegmentNumber,
    /// Where the one before it ended.
    pub previous: (LogOffset, Chain),
    /// Segments read.
    pub segment_count: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

/// Hands every record from segment `first` on to `replay`, and leaves the log durable, whole and
/// without a torn tail.
pub(crate) fn replay(
    machine: &Machine,
    first: SegmentNumber,
    replay: &mut dyn Replay,
) -> Result<LogEnd, EngineError> {
    let disk = &*machine.disk;
    let numbers = find_segments(disk, first)?;
    let mut end = LogEnd { next: first, previous: Default::default(), segment_count: 0, bytes: 0 };
    let mut last_sequence = Sequence::ZERO;
    for (position, number) in numbers.iter().enumerate() {
        if *number != end.next {
            let missing = end.next;
            return Err(damaged(missing, LogOffset(0), "this log segment is missing").into());
        }
        let mut segment = Segment::open(disk, *number)?;
        let header = segment.read_header()?;
        if let Some(before) = position.checked_sub(1).map(|before| numbers[before]) {
            check_end(before, end.previous, &header)?;
        }
        segment.read_records(&mut last_sequence, replay)?;
        if position + 1 == numbers.len() {
            segment.make_durable()?;
        }
        end.next = number.next();
        end.previous = (LogOffset(segment.end), segment.chain);
        end.segment_count += 1;
        end.bytes += segment.end;
    }
    disk.sync_directory().map_err(|error| StoreError::io("the directory", error))?;
    Ok(end)
}

/// Fails unless the segment `before`, which was read up to `end`, ended there as `header`, the next
/// one's, says.
fn check_end(
    before: SegmentNumber,
    end: (LogOffset, Chain),
    header: &SegmentHeader,
) -> Result<(), StoreError> {
    if end == (header.previous_end, header.previous_chain) {
        return Ok(());
    }
    Err(if end.0 < header.previous_end {
        damaged(before, end.0, "a record is broken")
    } else {
        let what = "the segment before this one doesn't end where it did";
        damaged(header.number, LogOffset(0), what)
    })
}

/// The segments from `first` on, in order. Removes those before, and spares.
fn find_segments(disk: &dyn Disk, first: SegmentNumber) -> Result<Vec<SegmentNumber>, StoreError> {
    remove_spares(disk).map_err(|error| StoreError::io("a spare of the log", error))?;
    let names = disk.list().map_err(|error| StoreError::io("the directory", error))?;
    let mut numbers: Vec<SegmentNumber> =
        names.iter().filter_map(|name| SegmentNumber::of_file_name(name)).collect();
    numbers.sort();
    let mut kept = Vec::new();
    for number in numbers {
        if number < first {
            io(number, disk.remove(&number.file_name()))?;
        } else {
            kept.push(number);
        }
    }
    Ok(kept)
}

/// A segment that is being read.
struct Segment {
    number: SegmentNumber,
    file: Arc<dyn DiskFile>,
    /// The file's length.
    bytes: u64,
    /// The end of what was read and is right.
    end: u64,
    chain: Chain,
    nonce: u64,
    /// What a record said to be durable.
    synced: u64,
    window: Bytes,
    window_offset: u64,
}

impl Segment {
    fn open(disk: &dyn Disk, number: SegmentNumber) -> Result<Segment, StoreError> {
        let file = io(number, disk.open(&number.file_name()))?;
        let bytes = io(number, file.bytes())?;
        Ok(Segment {
            number,
            file,
            bytes,
            end: 0,
            chain: Chain::default(),
            nonce: 0,
            synced: SEGMENT_HEADER_BYTES as u64,
            window: Bytes::new(),
            window_offset: 0,
        })
    }

    fn read_header(&mut self) -> Result<SegmentHeader, StoreError> {
        let Some(bytes) = self.read_array(0)? else {
            return Err(damaged(self.number, LogOffset(0), "shorter than a segment's header"));
        };
        let (header, chain) = SegmentHeader::decode(&bytes, self.number)?;
        self.chain = chain;
        self.nonce = header.nonce;
        self.end = SEGMENT_HEADER_BYTES as u64;
        Ok(header)
    }

    /// Reads records until the first that is not there or broken.
    fn read_records(
        &mut self,
        last_sequence: &mut Sequence,
        replay: &mut dyn Replay,
    ) -> Result<(), EngineError> {
        loop {
            let records = self.read_some(last_sequence)?;
            if records.is_empty() {
                return Ok(());
            }
            for (_, sequence, payload) in &records {
                replay.expect(*sequence, payload);
            }
            for (offset, sequence, payload) in records {
                replay.apply(sequence, &payload).map_err(|error| match error {
                    DecodeError::Wrong(what) => damaged(self.number, offset, what).into(),
                    DecodeError::Before(error) => error,
                })?;
            }
        }
    }

    /// Reads some records, as `read_records`; none is left where there are none.
    fn read_some(
        &mut self,
        last_sequence: &mut Sequence,
    ) -> Result<Vec<(LogOffset, Sequence, Bytes)>, StoreError> {
        let (mut records, mut bytes) = (Vec::new(), 0);
        while bytes < BATCH_BYTES
            && let Some((header, chain, payload)) = self.read_record()?
        {
            let offset = LogOffset(self.end);
            if header.version != VERSION {
                let (file, found) = (self.number.file_name(), header.version);
                return Err(StoreError::Version { file, found, readable: VERSION });
            }
            if header.sequence <= *last_sequence {
                return Err(damaged(self.number, offset, "a record goes back in time"));
            }
            *last_sequence = header.sequence;
            self.synced = header.synced.0;
            self.chain = chain;
            self.end += header.record_bytes();
            bytes += payload.len();
            records.push((offset, header.sequence, payload));
        }
        Ok(records)
    }

    /// Reads the record at `end`, if a whole one stands there and continues the chain.
    fn read_record(&mut self) -> Result<Option<(RecordHeader, Chain, Bytes)>, StoreError> {
        let offset = self.end;
        let Some(bytes) = self.read_array::<RECORD_HEADER_BYTES>(offset)? else { return Ok(None) };
        let Some((header, chain)) = RecordHeader::decode(&bytes, self.nonce) else {
            return Ok(None);
        };
        let fits = offset + header.record_bytes() <= self.bytes;
        if header.previous != self.chain || !fits {
            return Ok(None);
        }
        let body_bytes = header.record_bytes() - RECORD_HEADER_BYTES as u64;
        let Some(body) = self.read(offset + RECORD_HEADER_BYTES as u64, body_bytes)? else {
            return Ok(None);
        };
        let payload = body.slice(..header.payload_bytes as usize);
        let gap_is_zero = body[payload.len()..].iter().all(|byte| *byte == 0);
        let right = checksum_holds(header.payload_checksum, payload_checksum(&payload));
        Ok((gap_is_zero && right).then_some((header, chain, payload)))
    }

    /// Cuts what is torn and makes the rest durable.
    fn make_durable(&mut self) -> Result<(), StoreError> {
        if self.end < self.bytes {
            self.check_torn()?;
            io(self.number, self.file.set_bytes(self.end))?;
            self.bytes = self.end;
        }
        let unsynced = self.read(self.synced, self.end.saturating_sub(self.synced))?;
        if let Some(unsynced) = unsynced.filter(|bytes| !bytes.is_empty()) {
            io(self.number, self.file.write_all_at(self.synced, &unsynced))?;
        }
        io(self.number, self.file.sync())?;
        // No record may ever follow in this segment. Like any mark, it is not needed.
        let _ = self.file.write_all_at(self.end, &encode_mark(LogOffset(self.end), self.nonce));
        Ok(())
    }

    /// Fails if what follows `end` was synced once: then it is not a torn tail.
    fn check_torn(&mut self) -> Result<(), StoreError> {
        let broken = self.end;
        let mut offset = broken;
        while let Some(bytes) = self.read_array::<RECORD_HEADER_BYTES>(offset)? {
            let header = RecordHeader::decode(&bytes, self.nonce);
            if header.is_some_and(|(header, _)| header.synced.0 > broken) {
                let what = "a record is broken that was durable when a later one was written";
                return Err(damaged(self.number, LogOffset(broken), what));
            }
            offset += RECORD_ALIGNMENT as u64;
        }
        Ok(())
    }

    fn read_array<const BYTES: usize>(
        &mut self,
        offset: u64,
    ) -> Result<Option<[u8; BYTES]>, StoreError> {
        let bytes = self.read(offset, BYTES as u64)?;
        Ok(bytes.and_then(|bytes| bytes[..].try_into().ok()))
    }

    /// Reads `bytes` bytes, or `None` if the file is shorter.
    fn read(&mut self, offset: u64, bytes: u64) -> Result<Option<Bytes>, StoreError> {
        let Some(end) = offset.checked_add(bytes).filter(|end| *end <= self.bytes) else {
            return Ok(None);
        };
        let window_end = self.window_offset + self.window.len() as u64;
        if offset < self.window_offset || window_end < end {
            let count = bytes.max(WINDOW_BYTES).min(self.bytes - offset);
            let mut window = vec![0; usize::try_from(count).expect("a segment fits in memory")];
            io(self.number, self.file.read_exact_at(offset, &mut window))?;
            self.window = window.into();
            self.window_offset = offset;
        }
        let start = usize::try_from(offset - self.window_offset).expect("within the window");
        let count = usize::try_from(bytes).expect("within the window");
        Ok(Some(self.window.slice(start..start + count)))
    }
}

fn io<T>(number: SegmentNumber, result: std::io::Result<T>) -> Result<T, StoreError> {
    result.map_err(|error| StoreError::io(number.file_name(), error))
}
