//! One shard of the entry cache: records in segments, which are evicted as a whole.
//!
//! 1. A part is appended to the open segment of a queue, and found by its fingerprint; the chunk's
//!    whole name stands in the record. A record that its fingerprint leads to no more is as good as
//!    gone.
//! 2. A new part comes to *probation*, a tenth of the segments. When its oldest segment is wanted
//!    for others, what was read since moves to the *main* queue, the rest is dropped and its
//!    fingerprint noted. A part that is put again while that note is there comes to the main queue
//!    at once.
//! 3. Of the main queue's oldest segment, what was read moves to its end, and counts as read once
//!    less.
//!
//! (S3-FIFO: Yang, Zhang, Qiu, Yue and Rashmi, SOSP 2023; ours gives up segments instead of single
//! objects, and the ghosts are a table without order.)
//!
//! *Invariants*
//! 1. A place leads to the beginning of a record.
//! 2. After each change at least one segment is free, or can be taken within the bytes that it was
//!    given.

use std::collections::VecDeque;

use crate::cache::entries::slots::{RecordAddress, SlotTable};
use crate::chunk::{ChunkHash, HASH_BYTES};

/// A shard's bytes in such parts are a segment, between the bounds.
const SEGMENT_SHARE: u64 = 128;
const SEGMENT_BYTES_MIN: u64 = 1 << 10;
/// Offsets have two bytes.
const SEGMENT_BYTES_MAX: u64 = 1 << 16;
/// Segments' numbers, too; one more may be taken while others are given back.
const SEGMENT_COUNT_MAX: usize = u16::MAX as usize;
/// The largest part takes such a share of a segment.
const RECORD_SHARE: usize = 2;
/// Probation has such a part of all segments.
const PROBATION_SHARE: usize = 10;
const SPARE_SEGMENTS: usize = 2;
/// The number of segments that are tried before parts are dropped that were read.
const TRIES_MAX: usize = 4;
/// Reads beyond these aren't counted.
const READS_MAX: u8 = 3;
/// There is a ghost for so many bytes: as many as there are parts.
const GHOST_BYTES: u64 = 1 << 10;

const OFFSET_PRINT: usize = 0;
const OFFSET_READS: usize = OFFSET_PRINT + size_of::<u32>();
const OFFSET_BYTES: usize = OFFSET_READS + 2 * size_of::<u8>();
const OFFSET_CHUNK: usize = OFFSET_BYTES + size_of::<u16>();
/// The bytes before the part itself.
const HEADER_BYTES: usize = OFFSET_CHUNK + HASH_BYTES;
const _: () = assert!(SEGMENT_BYTES_MAX as usize / RECORD_SHARE <= u16::MAX as usize);

pub(super) struct Shard {
    places: SlotTable,
    /// The segments by number; those that are vacant take no memory.
    segments: Vec<Vec<u8>>,
    probation: VecDeque<u16>,
    main: VecDeque<u16>,
    free: Vec<u16>,
    vacant: Vec<u16>,
    ghosts: Vec<u32>,
    segment_bytes: usize,
    ghost_count: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Queue {
    Probation,
    Main,
}

/// A record as it lies in a segment.
struct Record<'a> {
    print: u32,
    reads: u8,
    chunk: [u8; HASH_BYTES],
    content: &'a [u8],
}

impl Shard {
    /// Makes one for at most about so many bytes.
    pub(super) fn new(bytes: u64) -> Shard {
        let segment_bytes = (bytes / SEGMENT_SHARE).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX);
        Shard {
            places: SlotTable::default(),
            segments: Vec::new(),
            probation: VecDeque::new(),
            main: VecDeque::new(),
            free: Vec::new(),
            vacant: Vec::new(),
            ghosts: Vec::new(),
            segment_bytes: segment_bytes as usize,
            ghost_count: (bytes / GHOST_BYTES).max(1) as usize,
        }
    }

    /// Returns the memory that this takes.
    pub(super) fn bytes(&self) -> u64 {
        let ghosts = self.ghosts.len() * size_of::<u32>();
        (self.taken() * self.segment_bytes + ghosts + self.places.bytes()) as u64
    }

    fn taken(&self) -> usize {
        self.segments.len() - self.vacant.len()
    }

    pub(super) fn get(&mut self, chunk: ChunkHash, print: u32) -> Option<&[u8]> {
        let place = self.places.get(print)?;
        let bytes = &mut self.segments[usize::from(place.segment)][usize::from(place.offset)..];
        if bytes[OFFSET_CHUNK..HEADER_BYTES] != chunk.0 {
            return None;
        }
        let reads = bytes[OFFSET_READS];
        if reads < READS_MAX {
            bytes[OFFSET_READS] = reads + 1;
        }
        Some(Record::at(bytes).content)
    }

    /// Keeps a part, if it isn't too large or here already, within `bytes_max` for all of the
    /// shard.
    pub(super) fn insert(
        &mut self,
        chunk: ChunkHash,
        print: u32,
        pieces: &[&[u8]],
        bytes_max: u64,
    ) {
        let bytes = HEADER_BYTES + pieces.iter().map(|piece| piece.len()).sum::<usize>();
        if bytes > self.segment_bytes / RECORD_SHARE || self.has(chunk, print) {
            return;
        }
        let count_max = self.segment_count_max(bytes_max);
        if count_max <= SPARE_SEGMENTS {
            return;
        }
        self.ghosts.resize(self.ghost_count, 0);
        let queue = if self.take_ghost(print) { Queue::Main } else { Queue::Probation };
        if self.open_with_room(queue, bytes).is_none() {
            self.free_some(count_max);
        }
        self.append(queue, Record { print, reads: 0, chunk: chunk.0, content: &[] }, pieces);
    }

    fn has(&self, chunk: ChunkHash, print: u32) -> bool {
        self.places.get(print).is_some_and(|place| self.record(place).chunk == chunk.0)
    }

    fn record(&self, place: RecordAddress) -> Record<'_> {
        Record::at(&self.segments[usize::from(place.segment)][usize::from(place.offset)..])
    }

    /// Returns how many segments fit into so many bytes beside the tables.
    fn segment_count_max(&self, bytes_max: u64) -> usize {
        let tables = self.ghost_count * size_of::<u32>() + self.places.bytes_next();
        let count = bytes_max.saturating_sub(tables as u64) / self.segment_bytes as u64;
        (count as usize).min(SEGMENT_COUNT_MAX)
    }

    /// Gives one segment back, and with the last one the tables; `with_moves` if what was read is
    /// rather kept than what wasn't.
    pub(super) fn shrink(&mut self, with_moves: bool) {
        for tries in 1.. {
            let is_done = SPARE_SEGMENTS <= self.free.len();
            if is_done || !self.give_up(with_moves && tries <= TRIES_MAX) {
                break;
            }
        }
        if let Some(segment) = self.free.pop() {
            self.segments[usize::from(segment)] = Vec::new();
            self.vacant.push(segment);
        }
        self.places.shrink();
        if self.taken() == 0 {
            (self.places, self.ghosts) = Default::default();
            (self.segments, self.vacant) = Default::default();
        }
    }

    /// Sees to it that two segments can be had, of `count_max`: one for what moves while another is
    /// given up.
    fn free_some(&mut self, count_max: usize) {
        while count_max < self.taken() {
            self.shrink(true);
        }
        for tries in 1.. {
            let spare = self.free.len() + count_max - self.taken();
            if SPARE_SEGMENTS <= spare || !self.give_up(tries <= TRIES_MAX) {
                break;
            }
        }
    }

    /// Frees the oldest segment of a queue; `with_moves` if what was read is kept. False if there
    /// is none.
    fn give_up(&mut self, with_moves: bool) -> bool {
        let (probation, main) = (self.probation.len(), self.main.len());
        let is_large = probation > 1 && probation + main < probation * PROBATION_SHARE;
        let is_probation = main == 0 || is_large;
        let queue = if is_probation { &mut self.probation } else { &mut self.main };
        let Some(number) = queue.pop_front() else {
            return false;
        };
        let mut segment = std::mem::take(&mut self.segments[usize::from(number)]);
        let mut offset = 0;
        while offset < segment.len() {
            let record = Record::at(&segment[offset..]);
            let place = RecordAddress { segment: number, offset: offset as u16 };
            offset += HEADER_BYTES + record.content.len();
            if self.places.get(record.print) != Some(place) {
                continue;
            }
            if with_moves && record.reads > 0 {
                let reads = if is_probation { 0 } else { record.reads - 1 };
                let content = record.content;
                self.append(Queue::Main, Record { reads, ..record }, &[content]);
            } else {
                self.places.remove(record.print);
                if is_probation {
                    self.note_ghost(record.print);
                }
            }
        }
        segment.clear();
        self.segments[usize::from(number)] = segment;
        self.free.push(number);
        true
    }

    fn queue(&mut self, queue: Queue) -> &mut VecDeque<u16> {
        match queue {
            Queue::Probation => &mut self.probation,
            Queue::Main => &mut self.main,
        }
    }

    /// The open segment of a queue, if it has room for so many bytes.
    fn open_with_room(&mut self, queue: Queue, bytes: usize) -> Option<u16> {
        let open = *self.queue(queue).back()?;
        let used = self.segments[usize::from(open)].len();
        (used + bytes <= self.segment_bytes).then_some(open)
    }

    /// Appends a record with `pieces` for its content, in a new segment if it must.
    fn append(&mut self, queue: Queue, record: Record<'_>, pieces: &[&[u8]]) {
        let bytes = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let open = self.open_with_room(queue, HEADER_BYTES + bytes);
        let number = open.unwrap_or_else(|| {
            let new = self.take_segment();
            self.queue(queue).push_back(new);
            new
        });
        let segment = &mut self.segments[usize::from(number)];
        let place = RecordAddress { segment: number, offset: segment.len() as u16 };
        segment.extend_from_slice(&record.print.to_le_bytes());
        segment.extend_from_slice(&[record.reads, 0]);
        segment.extend_from_slice(&(bytes as u16).to_le_bytes());
        segment.extend_from_slice(&record.chunk);
        pieces.iter().for_each(|piece| segment.extend_from_slice(piece));
        self.places.insert(record.print, place);
    }

    fn take_segment(&mut self) -> u16 {
        if let Some(number) = self.free.pop() {
            return number;
        }
        let number = self.vacant.pop().unwrap_or_else(|| {
            self.segments.push(Vec::new());
            (self.segments.len() - 1) as u16
        });
        self.segments[usize::from(number)].reserve_exact(self.segment_bytes);
        number
    }

    fn note_ghost(&mut self, print: u32) {
        let position = self.ghost_position(print);
        self.ghosts[position] = print;
    }

    /// Whether `print` was noted; if so, it is forgotten.
    fn take_ghost(&mut self, print: u32) -> bool {
        let position = self.ghost_position(print);
        let is_noted = self.ghosts[position] == print;
        if is_noted {
            self.ghosts[position] = 0;
        }
        is_noted
    }

    fn ghost_position(&self, print: u32) -> usize {
        ((u64::from(print) * self.ghosts.len() as u64) >> u32::BITS) as usize
    }
}

impl Record<'_> {
    /// The record that begins where `bytes` do.
    fn at(bytes: &[u8]) -> Record<'_> {
        let (header, rest) = bytes.split_at(HEADER_BYTES);
        let field = "a header's fields lie in it";
        let print = header[OFFSET_PRINT..OFFSET_READS].try_into().expect(field);
        let content_bytes = header[OFFSET_BYTES..OFFSET_CHUNK].try_into().expect(field);
        Record {
            print: u32::from_le_bytes(print),
            reads: header[OFFSET_READS],
            chunk: header[OFFSET_CHUNK..].try_into().expect(field),
            content: &rest[..usize::from(u16::from_le_bytes(content_bytes))],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 32 << 10;
    /// Far more than such a shard has room for.
    const MANY: u32 = 2000;

    /// Another fingerprint for each number.
    fn print(number: u32) -> u32 {
        (number + 1).wrapping_mul(0x9e37_79b1)
    }

    fn insert(shard: &mut Shard, number: u32) {
        let chunk = ChunkHash([number as u8; HASH_BYTES]);
        shard.insert(chunk, print(number), &[&number.to_le_bytes()], BYTES);
        assert!(shard.has(chunk, print(number)) && shard.bytes() <= BYTES);
    }

    fn read(shard: &mut Shard, number: u32) -> bool {
        shard.get(ChunkHash([number as u8; HASH_BYTES]), print(number)).is_some()
    }

    fn is_here(shard: &Shard, number: u32) -> bool {
        shard.has(ChunkHash([number as u8; HASH_BYTES]), print(number))
    }

    #[test]
    fn records_that_were_read_survive_others() {
        let mut shard = Shard::new(BYTES);
        (0..20).for_each(|number| insert(&mut shard, number));
        assert!((0..10).all(|number| read(&mut shard, 2 * number)));
        (20..MANY).for_each(|number| insert(&mut shard, number));
        assert!((0..20).all(|number| is_here(&shard, number) == (number % 2 == 0)));
    }

    #[test]
    fn records_that_return_survive_others() {
        let mut shard = Shard::new(BYTES);
        let dropped = |shard: &Shard| (0..MANY).rev().find(|number| !is_here(shard, *number));
        (0..MANY).for_each(|number| insert(&mut shard, number));
        let again = dropped(&shard).expect("not all have room");
        insert(&mut shard, again);
        insert(&mut shard, MANY);
        (MANY + 1..2 * MANY).for_each(|number| insert(&mut shard, number));
        assert!(is_here(&shard, again) && !is_here(&shard, MANY));
    }

    #[test]
    fn of_what_was_read_the_part_that_is_read_no_more_goes_first() {
        let mut shard = Shard::new(BYTES);
        for number in 0..MANY {
            insert(&mut shard, number);
            assert!(read(&mut shard, number) && read(&mut shard, 0), "{number}");
        }
        assert!(!is_here(&shard, 1));
    }
}
