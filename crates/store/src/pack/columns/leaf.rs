//! Converts a map's leaf to columns and back.
//!
//! 1. The leaf is read as docs/format/map-node.md has it: keys, flags and values, all inline.
//! 2. Each value is filed under its shape ([`shape`]); a leaf of many shapes isn't worth it.
//! 3. Written are: how many entries, the shapes, which one each entry has, the flags, and for each
//!    shape its columns and how its keys are derived ([`keys`]).
//!
//! The header, the offset table and all lengths follow from that. Layout: docs/format/columns.md.

use std::rc::Rc;

use super::column::{Column, Plan, Read};
use super::cursor::{Reader, write_string, write_varint};
use super::keys::{append_piece, candidates, split_keys};
use super::shape::Shape;
use super::slot::Slot;
use super::strings::{self, Strings};
use super::{known_shapes, numbers};

// The offsets of the parts of a leaf's chunk: docs/format/chunk.md and map-node.md.
const CHUNK_HEADER: [u8; 8] = [2, 0, 0, 0, 0, 0, 0, 0];
const OFFSET_LEVEL: usize = CHUNK_HEADER.len();
const OFFSET_FLAGS: usize = OFFSET_LEVEL + 1;
const OFFSET_ENTRY_COUNT: usize = OFFSET_LEVEL + 4;
const OFFSET_COUNT: usize = OFFSET_ENTRY_COUNT + 4;
const OFFSET_KEY_BYTES: usize = OFFSET_COUNT + 8;
const OFFSET_VALUE_BYTES: usize = OFFSET_KEY_BYTES + 8;
const OFFSET_TABLE: usize = OFFSET_VALUE_BYTES + 8;
const PLACE_BYTES: usize = size_of::<u32>();
const ENTRY_FLAGS: usize = 2;
const ENTRY_TAG: usize = 3;
const ENTRY_KEY: usize = 4;
const TAG_INLINE: u8 = 0;

/// The least number of entries: fewer share too little.
const ENTRY_COUNT_MIN: usize = 4;
/// One entry in so many may have a new shape, and at most `SHAPES_MAX`.
const SHAPES_SHARE: usize = 4;
const SHAPES_MAX: usize = 16;
/// The shapes whose plans are known at once.
const SHAPES_KNOWN_MAX: usize = 16;
/// What serves a shape's columns is searched for again in each of so many leaves.
const LEAVES_A_SEARCH: usize = 16;

/// The rows of one shape.
struct Rows<'a> {
    shape: Rc<Shape>,
    columns: Vec<Column<'a>>,
    keys: Vec<&'a [u8]>,
}

/// What served the columns of a shape's rows.
struct Plans {
    shape: Box<[u8]>,
    columns: Vec<Plan>,
    /// The leaves that they have served.
    leaf_count: usize,
}

/// What served the leaves before, most of which are like the next.
#[derive(Default)]
pub(super) struct KnownPlans(Vec<Plans>);

impl KnownPlans {
    /// Those of a shape; nothing is known of one that is new, or of any from time to time.
    fn of(&mut self, shape: &Shape) -> &mut [Plan] {
        let position = self.0.iter().position(|plans| *plans.shape == *shape.bytes);
        let position = position.unwrap_or_else(|| {
            if self.0.len() == SHAPES_KNOWN_MAX {
                self.0.remove(0);
            }
            let shape = shape.bytes.as_slice().into();
            self.0.push(Plans { shape, columns: Vec::new(), leaf_count: 0 });
            self.0.len() - 1
        });
        let Plans { columns, leaf_count, .. } = &mut self.0[position];
        if leaf_count.is_multiple_of(LEAVES_A_SEARCH) {
            columns.clear();
            columns.resize_with(shape.columns.len(), Plan::default);
        }
        *leaf_count += 1;
        columns
    }
}

/// Appends the columns of a leaf, the whole chunk; `None` if it isn't one that is worth it.
pub(super) fn write(out: &mut Vec<u8>, chunk: &[u8], known: &mut KnownPlans) -> Option<()> {
    let table = table(chunk)?;
    let mut shapes: Vec<Rows<'_>> = Vec::new();
    let (mut which, mut flags) = (Vec::with_capacity(table.len()), Vec::with_capacity(table.len()));
    let mut last = 0;
    for (position, start) in table.iter().enumerate() {
        let end = table.get(position + 1).map_or(chunk.len(), offset);
        let entry = chunk.get(offset(start)..end)?;
        let key_bytes = usize::from(u16::from_le_bytes(*entry.first_chunk()?));
        if *entry.get(ENTRY_TAG)? != TAG_INLINE {
            return None;
        }
        let (key, value) = entry[ENTRY_KEY..].split_at_checked(key_bytes)?;
        last = file(&mut shapes, last, key, value, table.len())?;
        which.push(last as i64);
        flags.push(i64::from(entry[ENTRY_FLAGS]));
    }
    write_varint(out, table.len() as u64);
    write_varint(out, shapes.len() as u64);
    shapes.iter().for_each(|rows| write_string(out, &rows.shape.bytes));
    numbers::write(out, &which, &mut numbers::Plan::Unknown);
    numbers::write(out, &flags, &mut numbers::Plan::Unknown);
    shapes.iter().for_each(|rows| rows.write(out, known.of(&rows.shape)));
    Some(())
}

/// The offset table of a chunk that begins as a leaf without references does.
fn table(chunk: &[u8]) -> Option<&[[u8; PLACE_BYTES]]> {
    if !chunk.starts_with(&CHUNK_HEADER) || *chunk.get(OFFSET_LEVEL)? != 0 {
        return None;
    }
    let count = u32::from_le_bytes(*chunk.get(OFFSET_ENTRY_COUNT..)?.first_chunk()?) as usize;
    let table = chunk.get(OFFSET_TABLE..)?.get(..count.checked_mul(PLACE_BYTES)?)?;
    (ENTRY_COUNT_MIN <= count).then_some(table.as_chunks().0)
}

/// An offset counts from the payload's beginning.
fn offset(place: &[u8; PLACE_BYTES]) -> usize {
    (u32::from_le_bytes(*place) as usize).saturating_add(CHUNK_HEADER.len())
}

/// Files an entry under its shape, which is probably the one at `last`; returns which it is.
fn file<'a>(
    shapes: &mut Vec<Rows<'a>>,
    last: usize,
    key: &'a [u8],
    value: &'a [u8],
    entry_count: usize,
) -> Option<usize> {
    let order = (last..shapes.len()).chain(0..last.min(shapes.len()));
    for position in order {
        let rows = &mut shapes[position];
        if rows.shape.take(value, &mut rows.columns) {
            rows.keys.push(key);
            return Some(position);
        }
    }
    if (entry_count / SHAPES_SHARE).min(SHAPES_MAX) <= shapes.len() {
        return None;
    }
    let shape = known_shapes::of(value)?;
    let mut columns: Vec<Column<'_>> =
        shape.columns.iter().map(|kind| Column::new(*kind, entry_count)).collect();
    if !shape.take(value, &mut columns) {
        return None;
    }
    shapes.push(Rows { shape, columns, keys: vec![key] });
    Some(shapes.len() - 1)
}

impl Rows<'_> {
    fn write(&self, out: &mut Vec<u8>, plans: &mut [Plan]) {
        self.columns.iter().zip(plans).for_each(|(column, plan)| column.write(out, plan));
        let split = split_keys(&candidates(&self.shape), &self.columns, &self.keys);
        write_varint(out, split.pieces.len() as u64);
        split.pieces.iter().for_each(|piece| write_varint(out, *piece as u64));
        split.rests.iter().for_each(|rest| strings::write(out, rest, &mut Plan::default()));
    }
}

/// The rows of one shape that were read.
struct ReadRows<'a> {
    shape: Rc<Shape>,
    columns: Vec<Read<'a>>,
    pieces: Vec<Slot>,
    /// The strings before each piece, and behind the last.
    rests: Vec<Strings<'a>>,
    /// The next row.
    row: usize,
    /// The offset of each run of each document.
    starts: Vec<usize>,
    /// Room for the documents that are open while one is written.
    open: Vec<usize>,
}

impl<'a> ReadRows<'a> {
    fn read(shape: Rc<Shape>, reader: &mut Reader<'a>, count: usize) -> Option<ReadRows<'a>> {
        let mut columns = Vec::with_capacity(shape.columns.len());
        for kind in &shape.columns {
            columns.push(Read::of(*kind, reader, count)?);
        }
        let candidates = candidates(&shape);
        let (mut pieces, mut rests) = (Vec::new(), Vec::new());
        for _ in 0..reader.count(candidates.len())? {
            pieces.push(*candidates.get(reader.count(candidates.len())?)?);
        }
        for _ in 0..=pieces.len() {
            rests.push(Strings::read(reader, count)?);
        }
        let (starts, open) = (Vec::with_capacity(count * shape.runs()), Vec::new());
        Some(ReadRows { shape, columns, pieces, rests, row: 0, starts, open })
    }

    /// Appends the next row's key.
    fn append_key(&self, bytes_max: usize, out: &mut Vec<u8>) -> Option<()> {
        for (number, rest) in self.rests.iter().enumerate() {
            rest.append(self.row, out);
            if let Some(slot) = self.pieces.get(number) {
                append_piece(slot, &self.columns, self.row, out);
            }
            if bytes_max < out.len() {
                return None;
            }
        }
        Some(())
    }
}

/// Appends the leaf that columns hold; `None` if they hold none, or if `out` would have more than
/// `bytes_max`.
pub(super) fn read(reader: &mut Reader<'_>, bytes_max: usize, out: &mut Vec<u8>) -> Option<()> {
    let left = bytes_max.checked_sub(out.len())?;
    let count = reader.count(left / (PLACE_BYTES + ENTRY_KEY))?;
    let shape_count = reader.count(count)?;
    let mut shapes = Vec::with_capacity(shape_count);
    for _ in 0..shape_count {
        shapes.push(known_shapes::parse(reader.string()?)?);
    }
    let which = numbers::read(reader, count)?;
    let flags = numbers::read(reader, count)?;
    let mut row_counts = vec![0; shape_count];
    for shape in &which {
        *row_counts.get_mut(usize::try_from(*shape).ok()?)? += 1;
    }
    let mut all_rows = Vec::with_capacity(shape_count);
    for (shape, row_count) in shapes.into_iter().zip(row_counts) {
        // Each row has the template's bytes at least: what can't fit isn't allocated.
        if left < shape.template.len().checked_mul(row_count)? {
            return None;
        }
        all_rows.push(ReadRows::read(shape, reader, row_count)?);
    }
    append_leaf(&mut all_rows, &which, &flags, bytes_max, out)
}

/// Appends the chunk: header, offset table and entries.
fn append_leaf(
    all_rows: &mut [ReadRows<'_>],
    which: &[i64],
    flags: &[i64],
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> Option<()> {
    let chunk_start = out.len();
    out.extend_from_slice(&CHUNK_HEADER);
    let payload_start = out.len();
    out.resize(chunk_start + OFFSET_TABLE + which.len() * PLACE_BYTES, 0);
    let (mut all_flags, mut key_bytes_sum, mut value_bytes_sum) = (0, 0u64, 0u64);
    for (position, shape) in which.iter().enumerate() {
        let rows = all_rows.get_mut(usize::try_from(*shape).ok()?)?;
        let start = out.len();
        let place = chunk_start + OFFSET_TABLE + position * PLACE_BYTES;
        put(out, place, &u32::try_from(start - payload_start).ok()?.to_le_bytes());
        let flags = u8::try_from(flags[position]).ok()?;
        out.extend_from_slice(&[0, 0, flags, TAG_INLINE]);
        rows.append_key(bytes_max, out)?;
        let key_bytes = out.len() - start - ENTRY_KEY;
        put(out, start, &u16::try_from(key_bytes).ok()?.to_le_bytes());
        let room = (&mut rows.starts, &mut rows.open);
        rows.shape.append(&rows.columns, rows.row, bytes_max, room, out)?;
        rows.row += 1;
        all_flags |= flags;
        key_bytes_sum += key_bytes as u64;
        value_bytes_sum += (out.len() - start - ENTRY_KEY - key_bytes) as u64;
    }
    for rows in all_rows {
        rows.shape.put_fixed(&rows.columns, &rows.starts, out);
    }
    let count = u32::try_from(which.len()).ok()?;
    out[chunk_start + OFFSET_FLAGS] = all_flags;
    put(out, chunk_start + OFFSET_ENTRY_COUNT, &count.to_le_bytes());
    put(out, chunk_start + OFFSET_COUNT, &u64::from(count).to_le_bytes());
    put(out, chunk_start + OFFSET_KEY_BYTES, &key_bytes_sum.to_le_bytes());
    put(out, chunk_start + OFFSET_VALUE_BYTES, &value_bytes_sum.to_le_bytes());
    Some(())
}

fn put(out: &mut [u8], offset: usize, bytes: &[u8]) {
    out[offset..offset + bytes.len()].copy_from_slice(bytes);
}
