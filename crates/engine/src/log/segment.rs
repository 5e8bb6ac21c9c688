//! Reads a segment of the log, for a recovery or a change stream.

use std::sync::Arc;

use bytes::Bytes;
use frond_store::StoreError;
use frond_store::field::checksum_holds;
use frond_store::io::{Disk, DiskFile};

use super::bit_flip::{TRIED_BYTES_MAX, flipped_byte};
use super::format::{
    Chain, LogOffset, RECORD_ALIGNMENT, RECORD_HEADER_BYTES, RecordHeader, SEGMENT_HEADER_BYTES,
    SegmentHeader, SegmentNumber, VERSION, damaged, encode_mark, is_last_mark, payload_checksum,
    second_mark_offset,
};
use crate::ids::Sequence;
use crate::log::writer::SegmentEnd;

/// Bytes read at once.
const WINDOW_BYTES: u64 = 1 << 20;
/// Payloads that are announced together.
const BATCH_BYTES: usize = 1 << 20;

/// A segment that is being read.
pub(super) struct Segment {
    pub number: SegmentNumber,
    file: Arc<dyn DiskFile>,
    /// The file's length, or less: nothing beyond is read.
    bytes: u64,
    /// The end of what was read and is right.
    pub end: u64,
    pub chain: Chain,
    /// The end of the segment before it, according to its header.
    pub previous: (LogOffset, Chain),
    nonce: u64,
    /// The offset up to which a record declared the segment durable.
    synced: u64,
    window: Bytes,
    window_offset: u64,
}

impl Segment {
    /// Opens a segment.
    ///
    /// # Errors
    /// If it can't be opened.
    pub fn open(disk: &dyn Disk, number: SegmentNumber) -> Result<Segment, StoreError> {
        let file = io(number, disk.open(&number.file_name()))?;
        let bytes = io(number, file.bytes())?;
        Ok(Segment {
            number,
            file,
            bytes,
            end: 0,
            chain: Chain::default(),
            previous: Default::default(),
            nonce: 0,
            synced: SEGMENT_HEADER_BYTES as u64,
            window: Bytes::new(),
            window_offset: 0,
        })
    }

    /// Reads the header.
    ///
    /// # Errors
    /// If it can't be read, or the header is none.
    pub fn read_header(&mut self) -> Result<SegmentHeader, StoreError> {
        let Some(bytes) = self.read_array(0)? else {
            return Err(damaged(self.number, LogOffset(0), "shorter than a segment's header"));
        };
        let (header, chain) = SegmentHeader::decode(&bytes, self.number)?;
        self.chain = chain;
        self.nonce = header.nonce;
        self.previous = (header.previous_end, header.previous_chain);
        self.end = SEGMENT_HEADER_BYTES as u64;
        Ok(header)
    }

    /// The Sequence of the first record, whose header was read alone; `None` if there is none.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn first_sequence(&mut self) -> Result<Option<Sequence>, StoreError> {
        let header = self.read_array::<RECORD_HEADER_BYTES>(SEGMENT_HEADER_BYTES as u64)?;
        let decoded = header.and_then(|bytes| RecordHeader::decode(&bytes, self.nonce));
        let first = decoded.filter(|(header, _)| header.previous == self.chain);
        Ok(first.map(|(header, _)| header.sequence))
    }

    /// The file's length now.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn file_bytes(&self) -> Result<u64, StoreError> {
        io(self.number, self.file.bytes())
    }

    /// Reads no further than up to `bytes`, and again what was read ahead: it may be there by now.
    pub fn limit_to(&mut self, bytes: u64) {
        if self.bytes != bytes {
            self.bytes = bytes;
            self.forget_window();
        }
    }

    /// Reads again what was read ahead.
    pub fn forget_window(&mut self) {
        self.window = Bytes::new();
        self.window_offset = 0;
    }

    /// Goes on behind a record that was read.
    pub fn pass(&mut self, header: &RecordHeader, chain: Chain) {
        self.synced = header.synced.0;
        self.chain = chain;
        self.end += header.record_bytes();
    }

    /// Reads some records, as `read_records`; none is left where there are none.
    ///
    /// # Errors
    /// If it can't be read, or is damaged.
    pub fn read_some(
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
            self.pass(&header, chain);
            bytes += payload.len();
            records.push((offset, header.sequence, payload));
        }
        Ok(records)
    }

    /// Reads the record at `end`, if a whole one stands there and continues the chain.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn read_record(&mut self) -> Result<Option<(RecordHeader, Chain, Bytes)>, StoreError> {
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
        Ok(is_body_of(&header, &body).then_some((header, chain, payload)))
    }

    /// Turns back the bit that turned over in the record at `end`, if it is one: the record may be
    /// the newest, and then nothing else distinguishes it from a torn one.
    ///
    /// # Errors
    /// If it can't be read or written; as [`Segment::check_torn`].
    pub fn correct_bit_flip(&mut self) -> Result<bool, StoreError> {
        let Some(mut bytes) = self.read_array::<RECORD_HEADER_BYTES>(self.end)? else {
            return Ok(false);
        };
        let (nonce, chain) = (self.nonce, self.chain);
        let is_next = |bytes: &[u8; RECORD_HEADER_BYTES]| {
            let decoded = RecordHeader::decode(bytes, nonce);
            decoded.map(|(header, _)| header).filter(|header| header.previous == chain)
        };
        let body_offset = self.end + RECORD_HEADER_BYTES as u64;
        let (offset, turned) = match is_next(&bytes) {
            None => (self.end, flipped_byte(&mut bytes, |bytes| is_next(bytes).is_some())),
            Some(header) => {
                let body_bytes = header.record_bytes() - RECORD_HEADER_BYTES as u64;
                let body = match body_bytes <= TRIED_BYTES_MAX {
                    true => self.read(body_offset, body_bytes)?,
                    false => None,
                };
                let Some(mut body) = body.map(Vec::from) else { return Ok(false) };
                (body_offset, flipped_byte(&mut body[..], |body| is_body_of(&header, body)))
            }
        };
        let Some((position, byte)) = turned else { return Ok(false) };
        self.check_torn()?;
        io(self.number, self.file.write_all_at(offset + position as u64, &[byte]))?;
        self.forget_window();
        Ok(true)
    }

    /// Whether another segment followed this one, all of which was read.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn is_followed(&mut self) -> Result<bool, StoreError> {
        let header = self.read_array::<RECORD_HEADER_BYTES>(self.end)?;
        let header = header.and_then(|bytes| RecordHeader::decode(&bytes, self.nonce));
        Ok(header.is_some_and(|(header, _)| is_last_mark(&header, LogOffset(self.end))))
    }

    /// Returns where it ends, for the writer that goes on behind it.
    pub fn into_end(self) -> SegmentEnd {
        let Segment { file, end, chain, nonce, .. } = self;
        SegmentEnd { offset: LogOffset(end), chain, file: Some((file, nonce)) }
    }

    /// Cuts what is torn and makes the rest durable.
    ///
    /// # Errors
    /// If it can't be written; as [`Segment::check_torn`].
    pub fn make_durable(&mut self) -> Result<(), StoreError> {
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
        // No record may ever follow in this segment. Like any marks, they are not needed.
        let end = LogOffset(self.end);
        for at in [end, second_mark_offset(end)] {
            let _ = self.file.write_all_at(at.0, &encode_mark(end, self.nonce));
        }
        Ok(())
    }

    /// Fails if what follows `end` was synced once: then it is not a torn tail.
    ///
    /// # Errors
    /// If it can't be read, or is damaged.
    pub fn check_torn(&mut self) -> Result<(), StoreError> {
        let broken = self.end;
        let mut offset = broken;
        // A segment that was used before is full of old records: millions of places.
        while RECORD_HEADER_BYTES as u64 <= self.bytes.saturating_sub(offset) {
            let count = WINDOW_BYTES.min(self.bytes - offset);
            let Some(bytes) = self.read(offset, count)? else { break };
            for header in bytes.windows(RECORD_HEADER_BYTES).step_by(RECORD_ALIGNMENT) {
                let header = header.first_chunk().expect("a window is that long");
                // Of what isn't one hardly anything would say so: a checksum takes much longer.
                let synced = RecordHeader::unchecked_synced(header).0;
                let says_so = broken < synced && synced <= self.bytes;
                if says_so && RecordHeader::decode(header, self.nonce).is_some() {
                    let what = "a record is broken that was durable when a later one was written";
                    return Err(damaged(self.number, LogOffset(broken), what));
                }
                offset += RECORD_ALIGNMENT as u64;
            }
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

/// Whether what stands behind a record's header is what that says.
fn is_body_of(header: &RecordHeader, body: &[u8]) -> bool {
    let (payload, gap) = body.split_at(header.payload_bytes as usize);
    gap.iter().all(|byte| *byte == 0)
        && checksum_holds(header.payload_checksum, payload_checksum(payload))
}

pub(super) fn io<T>(number: SegmentNumber, result: std::io::Result<T>) -> Result<T, StoreError> {
    result.map_err(|error| StoreError::io(number.file_name(), error))
}

#[cfg(test)]
mod tests {
    use frond_testkit::SimDisk;

    use super::*;

    /// A later record shows it wherever it stands, on both sides of what is read at once too.
    #[test]
    fn durable_records_are_not_taken_for_torn_ones() {
        const END: u64 = 104;
        let number = SegmentNumber(7);
        let behind_windows = [WINDOW_BYTES, 2 * WINDOW_BYTES].map(|bytes| END + bytes);
        let near = behind_windows.iter().flat_map(|at| (0..8).map(move |step| at - 56 + 8 * step));
        let bytes = END + 2 * WINDOW_BYTES + 1000;
        let old: Vec<u8> = (0..bytes).map(|n| ((n * n) >> 7) as u8).collect();
        for at in near.chain([END, END + 8, END + 5_000, END + 2 * WINDOW_BYTES + 952]) {
            for (synced, is_torn) in [(END + 1, false), (END, true)] {
                let disk = SimDisk::new(1);
                let file = disk.create(&number.file_name()).expect("there is room");
                file.write_all_at(0, &old).expect("there is room");
                let header = RecordHeader {
                    previous: Chain::default(),
                    payload_checksum: 0,
                    sequence: Sequence(1),
                    synced: LogOffset(synced),
                    payload_bytes: 0,
                    version: VERSION,
                };
                file.write_all_at(at, &header.encode(3).0).expect("there is room");
                let mut segment = Segment::open(&disk, number).expect("it is there");
                (segment.nonce, segment.end) = (3, END);
                assert_eq!(segment.check_torn().is_ok(), is_torn, "{at}");
            }
        }
    }
}
