//! Writes records to log segments. Used by one thread at a time: the leader of a group.
//!
//! *Invariants*
//! 1. A segment's file exists only if the segment before it is durable to its end, and its header
//!    is durable before the first record is written. So only the last segment can have a torn tail.
//! 2. After a failed write the file is cut back to where it was; if that fails too, or a sync
//!    fails, the log's state is unknown and the error says so ([`WriteError::Unknown`]).
//!
//! *Marks*: behind the last record, once it is durable and nothing else comes, the header of a
//! record stands that says so and continues no chain. A reader of the log skips it, but if what
//! is before it is broken it wasn't torn ([`crate::log::recovery`]). The next record takes its
//! place. A second one stands in another sector, for damage that takes a whole one: that one is
//! written now and then while records come, too, and the next sync takes it along. Once the next
//! segment is there another says so: without that one, the log lost it.
//!
//! *Length*: a file that would grow grows by zeros ahead of the records, in steps, and a file of an
//! old segment is used again ([`crate::log::recycled`]): so most syncs write no length.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use frond_store::io::{Chance, DiskFile, Machine};
use frond_store::{Chunk, StoreError};

use super::format::{
    Chain, LogOffset, RECORD_ALIGNMENT, RECORD_HEADER_BYTES, RecordHeader, SEGMENT_HEADER_BYTES,
    SegmentHeader, SegmentNumber, VERSION, encode_last_mark, encode_mark, payload_checksum,
    record_bytes, second_mark_offset,
};
use crate::ids::Sequence;
use crate::log::recycled::{Failed, RecycledSegments};
use crate::log::retained::RetainedSegments;

/// A file grows by a quarter, but by so much at least and at most.
const STEP_BYTES_MIN: u64 = 4 << 10;
const STEP_BYTES_MAX: u64 = 1 << 20;
/// The size up to which the buffer of a write is kept for the next.
const BUFFER_BYTES_MAX: usize = 4 << 20;
/// A payload that is larger is written by itself: to copy it first would take as much memory again.
const COPIED_BYTES_MAX: usize = 1 << 20;

/// A record that waits to be written.
pub(crate) struct PendingRecord {
    /// The transaction's place.
    pub sequence: Sequence,
    /// The segment that it goes to; never less than an earlier record's.
    pub segment: SegmentNumber,
    /// As [`Record`](super::record::Record) makes it for the log.
    pub payload: Bytes,
    /// Computed where no lock is held.
    pub payload_checksum: u64,
    /// The chunks that it names and doesn't bring, in a set: see [`crate::order`].
    pub referenced_chunks: Vec<Chunk>,
}

impl PendingRecord {
    /// A record whose place is not known yet.
    pub fn new(payload: Bytes) -> PendingRecord {
        PendingRecord {
            sequence: Sequence::ZERO,
            segment: SegmentNumber(0),
            payload_checksum: payload_checksum(&payload),
            payload,
            referenced_chunks: Vec::new(),
        }
    }

    /// Returns how much an entry of a set's log carries for it.
    pub fn carried_bytes(&self) -> usize {
        let chunks = self.referenced_chunks.iter().map(|chunk| chunk.encoded().len());
        self.payload.len() + chunks.sum::<usize>()
    }
}

/// The reason why records were not written.
pub(crate) enum WriteError {
    /// The first `written` records are, the others are not, and nothing of them remains: the disk
    /// is full.
    Refused {
        /// The number of records that were written.
        written: usize,
        /// The error of the disk.
        error: StoreError,
    },
    /// The content of the disk is unknown.
    Unknown(StoreError),
}

/// Counts of what the writer has done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WriterCounters {
    /// Syncs of segments.
    pub syncs: u64,
    /// Bytes written.
    pub bytes: u64,
    /// The number of these bytes that are of records: not what a file grew by ahead of them.
    pub record_bytes: u64,
}

/// The end of the log.
pub(crate) struct Writer {
    recycled: Arc<RecycledSegments>,
    chance: Arc<dyn Chance>,
    /// The segment being written; `None` until the first record.
    open: Option<OpenSegment>,
    /// The segment after the open one, or after the last one if none is open.
    next: SegmentNumber,
    /// The end of the segment before the open one, or of the last segment if none is open.
    previous: SegmentEnd,
    /// Says in which segments the transactions record what they change.
    kept: Arc<RetainedSegments>,
    counters: WriterCounters,
    /// The buffer for the next write.
    buffer: Vec<u8>,
}

/// The end of a finished segment.
#[derive(Clone, Default)]
pub(crate) struct SegmentEnd {
    pub offset: LogOffset,
    /// The checksum that a next record would continue.
    pub chain: Chain,
    /// Its file, and its nonce.
    pub file: Option<(Arc<dyn DiskFile>, u64)>,
}

impl SegmentEnd {
    /// Marks that another segment follows. As any mark it may fail.
    fn mark_followed(&self) {
        if let Some((file, nonce)) = &self.file {
            let _ = file.write_all_at(self.offset.0, &encode_last_mark(self.offset, *nonce));
        }
    }
}

struct OpenSegment {
    header: SegmentHeader,
    file: Arc<dyn DiskFile>,
    end: LogOffset,
    /// The file's length.
    bytes: u64,
    synced: LogOffset,
    /// The file was cut back to `end`, and was not synced since: a crash may bring back what was
    /// behind it.
    cut: bool,
    /// The offset up to which marks say that all is durable.
    marked: LogOffset,
    /// The offset in a mark ahead of the records.
    ahead: LogOffset,
    chain: Chain,
}

impl Writer {
    /// A writer that begins with the new segment `next`, after one that ended as `previous` says.
    pub fn new(
        machine: &Machine,
        recycled: &Arc<RecycledSegments>,
        next: SegmentNumber,
        previous: SegmentEnd,
        kept: &Arc<RetainedSegments>,
    ) -> Writer {
        Writer {
            recycled: Arc::clone(recycled),
            chance: Arc::clone(&machine.chance),
            open: None,
            next,
            previous,
            kept: Arc::clone(kept),
            counters: WriterCounters::default(),
            buffer: Vec::new(),
        }
    }

    /// Returns the writer's counters.
    pub fn counters(&self) -> WriterCounters {
        self.counters
    }

    /// Returns where the log ends: the segment, and the place in it.
    pub fn end(&self) -> (SegmentNumber, LogOffset) {
        match &self.open {
            Some(open) => (open.header.number, open.end),
            None => (self.next, LogOffset(0)),
        }
    }

    /// The segment after the last one that is on the disk.
    pub fn next(&self) -> SegmentNumber {
        self.next
    }

    /// Goes on to segment `number`, unless it is there already, or the disk is full. All records of
    /// those before must have been written.
    ///
    /// # Errors
    /// [`WriteError::Unknown`] if it isn't known what is on the disk.
    pub fn begin(&mut self, number: SegmentNumber) -> Result<(), WriteError> {
        if number < self.next {
            return Ok(());
        }
        match self.open_segment(number) {
            Err(WriteError::Refused { .. }) => Ok(()),
            begun => begun,
        }
    }

    /// Writes all of `records`, in their order, with one write for each segment.
    ///
    /// # Errors
    /// [`WriteError::Refused`] with the count of records written before it, if the disk took
    /// nothing of the rest; [`WriteError::Unknown`] if it isn't known what the segment holds now.
    pub fn write(&mut self, records: &[PendingRecord]) -> Result<(), WriteError> {
        let mut written = 0;
        for group in records.chunk_by(|left, right| left.segment == right.segment) {
            self.open_segment(group[0].segment).and_then(|()| self.write_group(group)).map_err(
                |error| match error {
                    WriteError::Refused { error, .. } => WriteError::Refused { written, error },
                    unknown => unknown,
                },
            )?;
            written += group.len();
        }
        Ok(())
    }

    /// Makes everything written durable.
    ///
    /// # Errors
    /// [`WriteError::Unknown`]: whether anything since the last sync is kept shows at the next
    /// opening.
    pub fn sync(&mut self) -> Result<(), WriteError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        if open.synced < open.end || open.cut {
            let file_name = || open.header.number.file_name();
            open.file.sync().map_err(|error| unknown(file_name(), error))?;
            open.synced = open.end;
            open.cut = false;
            self.counters.syncs += 1;
        }
        Ok(())
    }

    /// Marks that all records are durable, if they are. It isn't synced, and may fail: without it
    /// nothing is wrong, but damage at the end looks like a torn write.
    pub fn mark(&mut self) {
        let Some(open) = &mut self.open else { return };
        if open.synced < open.end || open.cut || open.marked == open.end {
            return;
        }
        if open.mark_at(open.end) && open.mark_at(second_mark_offset(open.end)) {
            open.marked = open.end;
        }
    }

    /// Marks away from where records come how far all is durable: for damage that takes the sector
    /// of the newest ones. As any mark it may fail.
    pub fn mark_ahead(&mut self) {
        let Some(open) = &mut self.open else { return };
        if open.cut || open.ahead == open.synced {
            return;
        }
        if open.mark_at(second_mark_offset(open.end)) {
            open.ahead = open.synced;
        }
    }

    /// Goes on to segment `number`. One between stays empty: its records were refused.
    fn open_segment(&mut self, number: SegmentNumber) -> Result<(), WriteError> {
        while self.next <= number {
            self.sync()?;
            if let Some(open) = self.open.take() {
                let file = Some((open.file, open.header.nonce));
                self.previous = SegmentEnd { offset: open.end, chain: open.chain, file };
            }
            self.open = Some(self.create_segment(self.next)?);
            self.previous.mark_followed();
            self.next = self.next.next();
        }
        let open = self.open.as_ref().map(|open| open.header.number);
        assert!(open == Some(number), "records come in the order of their segments");
        Ok(())
    }

    fn create_segment(&mut self, number: SegmentNumber) -> Result<OpenSegment, WriteError> {
        let mut nonce = [0; size_of::<u64>()];
        self.chance.fill(&mut nonce);
        let header = SegmentHeader {
            number,
            nonce: u64::from_le_bytes(nonce),
            previous_end: self.previous.offset,
            previous_chain: self.previous.chain,
            records_events: self.kept.records_events(number),
        };
        let (bytes, chain) = header.encode();
        let name = number.file_name();
        let file = self.recycled.make(number, &bytes).map_err(|failed| match failed {
            Failed::Unchanged(error) => refused(&name, error),
            Failed::Unknown(error) => unknown(name.clone(), error),
        })?;
        let file_bytes = file.bytes().map_err(|error| unknown(name.clone(), error))?;
        self.counters.syncs += 1;
        self.counters.bytes += bytes.len() as u64;
        let end = LogOffset(SEGMENT_HEADER_BYTES as u64);
        let (bytes, synced, cut) = (file_bytes, end, false);
        let (marked, ahead) = (LogOffset(0), end);
        Ok(OpenSegment { header, file, end, bytes, synced, cut, marked, ahead, chain })
    }

    /// Writes records of the open segment: with one write, but for the payloads that are large.
    fn write_group(&mut self, group: &[PendingRecord]) -> Result<(), WriteError> {
        let open = self.open.as_mut().expect("a segment was opened for the group");
        let copied = group.iter().filter(|record| record.payload.len() <= COPIED_BYTES_MAX);
        let bytes = copied.map(|record| record_bytes(record.payload.len())).sum();
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.reserve(bytes);
        let mut chain = open.chain;
        // The place where the buffer goes; what lies before was written.
        let mut at = open.end.0;
        for record in group {
            let header = RecordHeader {
                previous: chain,
                payload_checksum: record.payload_checksum,
                sequence: record.sequence,
                synced: open.synced,
                payload_bytes: u32::try_from(record.payload.len())
                    .expect("a transaction's limit is below 4 GiB"),
                version: VERSION,
            };
            let (header, next) = header.encode(open.header.nonce);
            let mut end = buffer.len() + record_bytes(record.payload.len());
            assert!(header.len() == RECORD_HEADER_BYTES);
            buffer.extend_from_slice(&header);
            if record.payload.len() <= COPIED_BYTES_MAX {
                buffer.extend_from_slice(&record.payload);
                buffer.resize(end, 0);
            } else {
                open.write(at, &buffer)?;
                at += buffer.len() as u64;
                end -= buffer.len();
                open.write(at, &record.payload)?;
                at += record.payload.len() as u64;
                end -= record.payload.len();
                buffer.clear();
                assert!(end < RECORD_ALIGNMENT, "a record ends where the next may begin");
                buffer.resize(end, 0);
            }
            chain = next;
        }
        let end = at + buffer.len() as u64;
        open.write_and_grow(at, &mut buffer)?;
        self.counters.record_bytes += end - open.end.0;
        self.counters.bytes += at + buffer.len() as u64 - open.end.0;
        open.end = LogOffset(end);
        open.chain = chain;
        if buffer.capacity() <= BUFFER_BYTES_MAX {
            buffer.clear();
            self.buffer = buffer;
        }
        Ok(())
    }
}

impl OpenSegment {
    /// Writes a mark of how far all is durable; returns whether it worked.
    fn mark_at(&mut self, at: LogOffset) -> bool {
        let mark = encode_mark(self.synced, self.header.nonce);
        let is_written = self.file.write_all_at(at.0, &mark).is_ok();
        if is_written {
            self.bytes = self.bytes.max(at.0 + mark.len() as u64);
        }
        is_written
    }

    /// Writes the last records of a group at `at`, with zeros behind them where the file grows;
    /// `buffer` has what was written.
    fn write_and_grow(&mut self, at: u64, buffer: &mut Vec<u8>) -> Result<(), WriteError> {
        let bytes = buffer.len();
        let end = at + bytes as u64;
        // After a failure all of the group is cut off: only one write is tried again.
        if self.bytes < end && at == self.end.0 {
            let grown = end + (end / 4).clamp(STEP_BYTES_MIN, STEP_BYTES_MAX);
            buffer.resize((grown - at) as usize, 0);
            if self.write(at, buffer).is_err() {
                // Perhaps there is room for the records, if not for more.
                self.write(at, &buffer[..bytes])?;
                buffer.truncate(bytes);
            }
        } else if !buffer.is_empty() {
            self.write(at, buffer)?;
        }
        Ok(())
    }

    /// Writes behind the segment's end, without moving it; what fails leaves nothing behind it.
    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), WriteError> {
        let name = || self.header.number.file_name();
        if let Err(error) = self.file.write_all_at(at, bytes) {
            self.file.set_bytes(self.end.0).map_err(|error| unknown(name(), error))?;
            self.bytes = self.end.0;
            self.cut = true;
            self.marked = LogOffset(0);
            return Err(refused(&name(), error));
        }
        self.bytes = self.bytes.max(at + bytes.len() as u64);
        Ok(())
    }
}

/// A failed write. Only a full disk, or a file that may not be opened, is known to have left
/// everything else as it was.
fn refused(file: &str, error: io::Error) -> WriteError {
    let error = StoreError::io(file, error);
    match error.is_full() {
        true => WriteError::Refused { written: 0, error },
        false => WriteError::Unknown(error),
    }
}

fn unknown(file: String, error: io::Error) -> WriteError {
    WriteError::Unknown(StoreError::io(file, error))
}

#[cfg(test)]
mod tests;
