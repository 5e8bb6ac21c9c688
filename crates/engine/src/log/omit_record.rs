//! Removes an unreadable record from a damaged log, in the copy that a salvage works on.
//!
//! The records behind it are often whole, and each shows by its checksums that it is. Where a
//! record changes a value that the lost one brought, the patch's mark shows that too, and the
//! opening names it as the next that can't be read. So no record is applied to what it wasn't made
//! for.
//!
//! The records that are left are chained anew, and so are the segments behind.

use bytes::Bytes;
use frond_store::StoreError;
use frond_store::field::checksum_holds;
use frond_store::io::Disk;

use super::format::{
    Chain, LogOffset, RECORD_ALIGNMENT, RECORD_HEADER_BYTES, RecordHeader, SEGMENT_HEADER_BYTES,
    SegmentHeader, SegmentNumber, VERSION, payload_checksum, record_bytes,
};
use super::segment::io;
use crate::ids::Sequence;

/// Leaves out what stands at `offset` of a log's file `name`, so that the log goes on with the next
/// record that is whole. Returns how many records then stand behind the place; `None` if there are
/// none, and nothing was changed: the log ends there.
///
/// Costs as much as reading the log from there on, and writing it.
///
/// # Errors
/// `StoreError` if the log can't be read or written, or a segment's header is damaged, too.
pub fn omit_record(disk: &dyn Disk, name: &str, offset: u64) -> Result<Option<u64>, StoreError> {
    let Some(first) = SegmentNumber::of_file_name(name) else { return Ok(None) };
    let names = disk.list().map_err(|error| StoreError::io("the directory", error))?;
    let mut numbers: Vec<_> =
        names.iter().filter_map(|name| SegmentNumber::of_file_name(name)).collect();
    numbers.retain(|number| first <= *number);
    numbers.sort();
    let (mut segments, mut last, mut behind) = (Vec::new(), Sequence::ZERO, 0);
    for number in numbers {
        let left_out = (number == first).then_some(offset);
        let (header, records) = read_whole(disk, number, left_out, &mut last)?;
        let is_behind = |at: &u64| number != first || offset <= *at;
        behind += records.iter().filter(|(at, ..)| is_behind(at)).count() as u64;
        segments.push((header, records));
    }
    if behind == 0 {
        return Ok(None);
    }
    let mut before = None;
    for (header, records) in segments {
        before = Some(write_anew(disk, header, &records, before)?);
    }
    Ok(Some(behind))
}

/// A record that is whole, and where it stood.
type IntactRecord = (u64, RecordHeader, Bytes);

/// The records of a segment that are whole, but for what stands at `left_out`.
fn read_whole(
    disk: &dyn Disk,
    number: SegmentNumber,
    left_out: Option<u64>,
    last: &mut Sequence,
) -> Result<(SegmentHeader, Vec<IntactRecord>), StoreError> {
    let file = io(number, disk.open(&number.file_name()))?;
    let bytes = io(number, file.bytes())?;
    let mut content = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
    io(number, file.read_exact_at(0, &mut content))?;
    let content = Bytes::from(content);
    let mut whole_header = [0; SEGMENT_HEADER_BYTES];
    let count = content.len().min(SEGMENT_HEADER_BYTES);
    whole_header[..count].copy_from_slice(&content[..count]);
    let (header, _) = SegmentHeader::decode(&whole_header, number)?;
    let (mut records, mut at) = (Vec::new(), SEGMENT_HEADER_BYTES);
    while at + RECORD_HEADER_BYTES <= content.len() {
        let record = whole_record(&content, at, header.nonce)
            .filter(|(header, _)| left_out != Some(at as u64) && *last < header.sequence);
        match record {
            Some((header, payload)) => {
                *last = header.sequence;
                let bytes = record_bytes(payload.len());
                records.push((at as u64, header, payload));
                at += bytes;
            }
            None => at += RECORD_ALIGNMENT,
        }
    }
    Ok((header, records))
}

/// The record at a place, if one stands there that is whole, wherever in the chain.
fn whole_record(content: &Bytes, at: usize, nonce: u64) -> Option<(RecordHeader, Bytes)> {
    let header = content[at..].first_chunk::<RECORD_HEADER_BYTES>()?;
    let (header, _) = RecordHeader::decode(header, nonce)?;
    let begin = at + RECORD_HEADER_BYTES;
    let end = begin.checked_add(header.payload_bytes as usize)?;
    let payload = (end <= content.len()).then(|| content.slice(begin..end))?;
    let is_whole = header.version == VERSION
        && !payload.is_empty()
        && checksum_holds(header.payload_checksum, payload_checksum(&payload));
    is_whole.then_some((header, payload))
}

/// Writes a segment anew behind the one before it. Returns where it ends.
fn write_anew(
    disk: &dyn Disk,
    mut header: SegmentHeader,
    records: &[IntactRecord],
    before: Option<(LogOffset, Chain)>,
) -> Result<(LogOffset, Chain), StoreError> {
    let number = header.number;
    if let Some((end, chain)) = before {
        (header.previous_end, header.previous_chain) = (end, chain);
    }
    let (bytes, mut chain) = header.encode();
    let mut content = bytes.to_vec();
    for (_, record, payload) in records {
        let synced = LogOffset(content.len() as u64);
        let record = RecordHeader { previous: chain, synced, ..*record };
        let (bytes, next) = record.encode(header.nonce);
        content.extend_from_slice(&bytes);
        content.extend_from_slice(payload);
        content.resize(content.len().next_multiple_of(RECORD_ALIGNMENT), 0);
        chain = next;
    }
    let file = io(number, disk.open(&number.file_name()))?;
    io(number, file.set_bytes(content.len() as u64))?;
    io(number, file.write_all_at(0, &content))?;
    io(number, file.sync())?;
    Ok((LogOffset(content.len() as u64), chain))
}
