//! Log segments: file names, the segment header, record headers. The authority is
//! docs/format/log.md.
//!
//! *What the fields are for*
//! 1. A record's checksum covers the rest of its header, `previous` among it, and is seeded with
//!    the segment's nonce: a record of another segment or of a recycled file never verifies.
//! 2. `previous` is the checksum of what stands before: a record after a hole never verifies as the
//!    next one.
//! 3. `synced` says how much of the segment was known to be durable when the record was made. A
//!    broken record below the `synced` of a later one is damage, not a torn tail.
//! 4. A segment's header says where the segment before it ended; it is written only once that one
//!    is durable.

use frond_store::StoreError;
use frond_store::field::checksum_holds;
use twox_hash::XxHash3_64;

use crate::ids::Sequence;

/// The version that this build writes and the only one that it reads.
pub(crate) const VERSION: u16 = 0;
const MAGIC: [u8; 8] = *b"FRNDLG\x1A\n";
const NAME_PREFIX: &str = "log-";

const OFFSET_WRITE_VERSION: usize = MAGIC.len();
const OFFSET_READ_VERSION: usize = OFFSET_WRITE_VERSION + size_of::<u16>();
const OFFSET_FLAGS: usize = OFFSET_READ_VERSION + size_of::<u16>();
const OFFSET_NUMBER: usize = OFFSET_FLAGS + size_of::<u32>();
const OFFSET_NONCE: usize = OFFSET_NUMBER + size_of::<u64>();
const OFFSET_PREVIOUS_BYTES: usize = OFFSET_NONCE + size_of::<u64>();
const OFFSET_PREVIOUS_CHAIN: usize = OFFSET_PREVIOUS_BYTES + size_of::<u64>();
const OFFSET_HEADER_CHECKSUM: usize = OFFSET_PREVIOUS_CHAIN + size_of::<u64>();
/// Bytes of a segment's header.
pub(crate) const SEGMENT_HEADER_BYTES: usize = OFFSET_HEADER_CHECKSUM + size_of::<u64>();
const _: () = assert!(SEGMENT_HEADER_BYTES == 56); // Stored: change only with a new version.

const OFFSET_RECORD_CHECKSUM: usize = 0;
const OFFSET_RECORD_PREVIOUS: usize = OFFSET_RECORD_CHECKSUM + size_of::<u64>();
const OFFSET_RECORD_PAYLOAD_CHECKSUM: usize = OFFSET_RECORD_PREVIOUS + size_of::<u64>();
const OFFSET_RECORD_SEQUENCE: usize = OFFSET_RECORD_PAYLOAD_CHECKSUM + size_of::<u64>();
const OFFSET_RECORD_SYNCED: usize = OFFSET_RECORD_SEQUENCE + size_of::<u64>();
const OFFSET_RECORD_PAYLOAD_BYTES: usize = OFFSET_RECORD_SYNCED + size_of::<u64>();
const OFFSET_RECORD_VERSION: usize = OFFSET_RECORD_PAYLOAD_BYTES + size_of::<u32>();
const OFFSET_RECORD_ZERO: usize = OFFSET_RECORD_VERSION + size_of::<u16>();
/// Bytes of a record's header.
pub(crate) const RECORD_HEADER_BYTES: usize = OFFSET_RECORD_ZERO + size_of::<u16>();
const _: () = assert!(RECORD_HEADER_BYTES == 48); // Stored: change only with a new version.

/// Stored: a flag of a segment whose transactions record what they change.
const FLAG_EVENTS: u32 = 1;

/// Records begin at multiples of this; the gap is filled with zeros.
pub(crate) const RECORD_ALIGNMENT: usize = 8;
const _: () = assert!(SEGMENT_HEADER_BYTES.is_multiple_of(RECORD_ALIGNMENT));

/// A segment's place in the log, and its file's name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct SegmentNumber(pub u64);

impl SegmentNumber {
    /// The first of a log that goes on behind an image. That of an empty directory is the one
    /// before: what comes behind *that* is all that ever was ([`super::retained`]).
    pub const BEHIND_AN_IMAGE: SegmentNumber = SegmentNumber(2);

    /// The segment after this one.
    pub fn next(self) -> SegmentNumber {
        SegmentNumber(self.0 + 1)
    }

    /// The file's name.
    pub fn file_name(self) -> String {
        format!("{NAME_PREFIX}{:010}", self.0)
    }

    /// The segment of a file's name, if it is a segment's.
    pub fn of_file_name(name: &str) -> Option<SegmentNumber> {
        let digits = name.strip_prefix(NAME_PREFIX)?;
        let number = SegmentNumber(digits.parse().ok()?);
        (number.file_name() == name).then_some(number)
    }
}

/// A position in a segment's file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct LogOffset(pub u64);

/// A record's checksum, or a segment header's: what the next record is chained to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Chain(pub u64);

/// The header of a segment's file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SegmentHeader {
    /// The segment.
    pub number: SegmentNumber,
    /// Random: seeds the checksums of the segment's records.
    pub nonce: u64,
    /// The end of the segment before this one.
    pub previous_end: LogOffset,
    /// The chain at its end.
    pub previous_chain: Chain,
    /// Whether its transactions record what they change (`crate::change_event`).
    pub records_events: bool,
}

impl SegmentHeader {
    /// The bytes to be written, and the chain that the first record continues.
    pub fn encode(&self) -> ([u8; SEGMENT_HEADER_BYTES], Chain) {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        put(&mut bytes, 0, &MAGIC);
        put(&mut bytes, OFFSET_WRITE_VERSION, &VERSION.to_le_bytes());
        put(&mut bytes, OFFSET_READ_VERSION, &VERSION.to_le_bytes());
        let flags = if self.records_events { FLAG_EVENTS } else { 0 };
        put(&mut bytes, OFFSET_FLAGS, &flags.to_le_bytes());
        put(&mut bytes, OFFSET_NUMBER, &self.number.0.to_le_bytes());
        put(&mut bytes, OFFSET_NONCE, &self.nonce.to_le_bytes());
        put(&mut bytes, OFFSET_PREVIOUS_BYTES, &self.previous_end.0.to_le_bytes());
        put(&mut bytes, OFFSET_PREVIOUS_CHAIN, &self.previous_chain.0.to_le_bytes());
        let checksum = XxHash3_64::oneshot(&bytes[..OFFSET_HEADER_CHECKSUM]);
        put(&mut bytes, OFFSET_HEADER_CHECKSUM, &checksum.to_le_bytes());
        (bytes, Chain(checksum))
    }

    /// Reads a header, which must be that of segment `number`.
    pub fn decode(
        bytes: &[u8; SEGMENT_HEADER_BYTES],
        number: SegmentNumber,
    ) -> Result<(SegmentHeader, Chain), StoreError> {
        let file = number.file_name();
        let damaged = |what: &str| damaged(number, LogOffset(0), what);
        if bytes[..MAGIC.len()] != MAGIC {
            return Err(damaged("not a log segment"));
        }
        let found = get_u16(bytes, OFFSET_READ_VERSION);
        if found != VERSION {
            return Err(StoreError::Version { file, found, readable: VERSION });
        }
        let checksum = get_u64(bytes, OFFSET_HEADER_CHECKSUM);
        if !checksum_holds(checksum, XxHash3_64::oneshot(&bytes[..OFFSET_HEADER_CHECKSUM])) {
            return Err(damaged("the header's checksum is wrong"));
        }
        let flags = get_u32(bytes, OFFSET_FLAGS);
        if get_u64(bytes, OFFSET_NUMBER) != number.0 || flags & !FLAG_EVENTS != 0 {
            return Err(damaged("the header of another segment"));
        }
        let header = SegmentHeader {
            number,
            nonce: get_u64(bytes, OFFSET_NONCE),
            previous_end: LogOffset(get_u64(bytes, OFFSET_PREVIOUS_BYTES)),
            previous_chain: Chain(get_u64(bytes, OFFSET_PREVIOUS_CHAIN)),
            records_events: flags & FLAG_EVENTS != 0,
        };
        Ok((header, Chain(checksum)))
    }
}

/// The chain of a mark once another segment follows. Stored.
const FOLLOWED: Chain = Chain(1);

/// The header of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RecordHeader {
    /// The chain before this record.
    pub previous: Chain,
    /// [`payload_checksum`] of the payload.
    pub payload_checksum: u64,
    /// The transaction's.
    pub sequence: Sequence,
    /// The segment was known to be durable up to here.
    pub synced: LogOffset,
    /// Bytes of the payload.
    pub payload_bytes: u32,
    /// The record's version.
    pub version: u16,
}

impl RecordHeader {
    /// The bytes to be written, and the chain that the next record continues.
    pub fn encode(&self, nonce: u64) -> ([u8; RECORD_HEADER_BYTES], Chain) {
        let mut bytes = [0; RECORD_HEADER_BYTES];
        put(&mut bytes, OFFSET_RECORD_PREVIOUS, &self.previous.0.to_le_bytes());
        put(&mut bytes, OFFSET_RECORD_PAYLOAD_CHECKSUM, &self.payload_checksum.to_le_bytes());
        put(&mut bytes, OFFSET_RECORD_SEQUENCE, &self.sequence.0.to_le_bytes());
        put(&mut bytes, OFFSET_RECORD_SYNCED, &self.synced.0.to_le_bytes());
        put(&mut bytes, OFFSET_RECORD_PAYLOAD_BYTES, &self.payload_bytes.to_le_bytes());
        put(&mut bytes, OFFSET_RECORD_VERSION, &self.version.to_le_bytes());
        let checksum = XxHash3_64::oneshot_with_seed(nonce, &bytes[OFFSET_RECORD_PREVIOUS..]);
        put(&mut bytes, OFFSET_RECORD_CHECKSUM, &checksum.to_le_bytes());
        (bytes, Chain(checksum))
    }

    /// Reads a header, or `None` if its checksum is wrong: nothing was written here, it was torn,
    /// or it belongs to another segment.
    pub fn decode(bytes: &[u8; RECORD_HEADER_BYTES], nonce: u64) -> Option<(RecordHeader, Chain)> {
        let checksum = get_u64(bytes, OFFSET_RECORD_CHECKSUM);
        let computed = XxHash3_64::oneshot_with_seed(nonce, &bytes[OFFSET_RECORD_PREVIOUS..]);
        if !checksum_holds(checksum, computed) {
            return None;
        }
        let header = RecordHeader {
            previous: Chain(get_u64(bytes, OFFSET_RECORD_PREVIOUS)),
            payload_checksum: get_u64(bytes, OFFSET_RECORD_PAYLOAD_CHECKSUM),
            sequence: Sequence(get_u64(bytes, OFFSET_RECORD_SEQUENCE)),
            synced: LogOffset(get_u64(bytes, OFFSET_RECORD_SYNCED)),
            payload_bytes: get_u32(bytes, OFFSET_RECORD_PAYLOAD_BYTES),
            version: get_u16(bytes, OFFSET_RECORD_VERSION),
        };
        Some((header, Chain(checksum)))
    }

    /// What a header says of how much is durable, if these bytes are one: they aren't checked.
    pub fn unchecked_synced(bytes: &[u8; RECORD_HEADER_BYTES]) -> LogOffset {
        LogOffset(get_u64(bytes, OFFSET_RECORD_SYNCED))
    }

    /// Bytes of the whole record, gap included.
    pub fn record_bytes(&self) -> u64 {
        record_bytes(self.payload_bytes as usize) as u64
    }
}

/// Sectors of disks have so many bytes at most: damage of one leaves the others as they are.
const SECTOR_BYTES: u64 = 4 << 10;

/// Returns where the second of two marks stands: in another sector than what ends at `end` and than
/// the mark there, so that it shows their damage.
pub(crate) fn second_mark_offset(end: LogOffset) -> LogOffset {
    LogOffset((end.0 / SECTOR_BYTES + 2) * SECTOR_BYTES)
}

/// Returns the mark behind the last record once everything up to `end` is durable: a record's
/// header that continues no chain.
pub(crate) fn encode_mark(end: LogOffset, nonce: u64) -> [u8; RECORD_HEADER_BYTES] {
    mark(end, Chain::default()).encode(nonce).0
}

/// As `encode_mark`, once the segment behind this one is on the disk.
pub(crate) fn encode_last_mark(end: LogOffset, nonce: u64) -> [u8; RECORD_HEADER_BYTES] {
    mark(end, FOLLOWED).encode(nonce).0
}

/// Whether `header`, which stands at `end`, is the mark of a segment that another one followed.
pub(crate) fn is_last_mark(header: &RecordHeader, end: LogOffset) -> bool {
    *header == mark(end, FOLLOWED)
}

fn mark(end: LogOffset, previous: Chain) -> RecordHeader {
    RecordHeader {
        previous,
        payload_checksum: 0,
        sequence: Sequence::ZERO,
        synced: end,
        payload_bytes: 0,
        version: VERSION,
    }
}

/// Bytes of a record with a payload of this length, gap included.
pub(crate) fn record_bytes(payload_bytes: usize) -> usize {
    (RECORD_HEADER_BYTES + payload_bytes).next_multiple_of(RECORD_ALIGNMENT)
}

/// The checksum that a record's header carries of its payload.
pub(crate) fn payload_checksum(payload: &[u8]) -> u64 {
    XxHash3_64::oneshot(payload)
}

/// The error for stored bytes that are not what was written.
pub(crate) fn damaged(number: SegmentNumber, offset: LogOffset, what: &str) -> StoreError {
    StoreError::Damaged { file: number.file_name(), offset: offset.0, what: what.to_owned() }
}

fn put(bytes: &mut [u8], offset: usize, field: &[u8]) {
    bytes[offset..offset + field.len()].copy_from_slice(field);
}

/// Reads a field of a header, whose fixed size contains every field.
fn get<const BYTES: usize>(header: &[u8], offset: usize) -> [u8; BYTES] {
    let mut field = [0; BYTES];
    field.copy_from_slice(&header[offset..offset + BYTES]);
    field
}

fn get_u16(header: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes(get(header, offset))
}

fn get_u32(header: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(get(header, offset))
}

fn get_u64(header: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(get(header, offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: SegmentHeader = SegmentHeader {
        number: SegmentNumber(3),
        nonce: 0x1122_3344_5566_7788,
        previous_end: LogOffset(136),
        previous_chain: Chain(42),
        records_events: false,
    };

    const RECORD: RecordHeader = RecordHeader {
        previous: Chain(9),
        payload_checksum: 77,
        sequence: Sequence(5 << 32),
        synced: LogOffset(56),
        payload_bytes: 13,
        version: VERSION,
    };

    #[test]
    fn file_names_are_read_back_and_others_left_alone() {
        let number = SegmentNumber(12);
        assert_eq!(number.file_name(), "log-0000000012");
        assert_eq!(SegmentNumber::of_file_name(&number.file_name()), Some(number));
        for other in ["log-", "log-12", "log-000000001x", "pack-0000000012", "log-+000000012"] {
            assert_eq!(SegmentNumber::of_file_name(other), None, "{other}");
        }
    }

    #[test]
    fn every_flipped_bit_of_a_segment_header_is_found() {
        let recording = SegmentHeader { records_events: true, ..HEADER };
        let (bytes, chain) = recording.encode();
        assert_eq!(SegmentHeader::decode(&bytes, HEADER.number).unwrap(), (recording, chain));
        let (bytes, chain) = HEADER.encode();
        assert_eq!(SegmentHeader::decode(&bytes, HEADER.number).unwrap(), (HEADER, chain));
        for bit in 0..SEGMENT_HEADER_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHeader::decode(&flipped, HEADER.number).is_err(), "bit {bit}");
        }
        assert!(SegmentHeader::decode(&bytes, SegmentNumber(4)).is_err());
    }

    #[test]
    fn every_flipped_bit_of_a_record_header_is_found() {
        let (bytes, chain) = RECORD.encode(HEADER.nonce);
        assert_eq!(RecordHeader::decode(&bytes, HEADER.nonce).unwrap(), (RECORD, chain));
        assert_eq!(RecordHeader::decode(&bytes, HEADER.nonce + 1), None);
        for bit in 0..RECORD_HEADER_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(RecordHeader::decode(&flipped, HEADER.nonce), None, "bit {bit}");
        }
    }

    #[test]
    fn another_version_is_refused_with_both_numbers() {
        let (mut bytes, _) = HEADER.encode();
        bytes[OFFSET_READ_VERSION] = 2;
        let error = SegmentHeader::decode(&bytes, HEADER.number).unwrap_err();
        assert!(matches!(error, StoreError::Version { found: 2, readable: VERSION, .. }));
    }

    #[test]
    fn the_example_in_the_document_is_right() {
        let (header, chain) = HEADER.encode();
        let (record, _) = RecordHeader { previous: chain, ..RECORD }.encode(HEADER.nonce);
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let document = include_str!("../../../../docs/format/log.md").replace([' ', '\n'], "");
        assert!(document.contains(&hex(&header)), "{}", hex(&header));
        assert!(document.contains(&hex(&record)), "{}", hex(&record));
    }
}
