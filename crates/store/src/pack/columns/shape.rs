//! The shape of BSON documents: their types and names, in order, without values.
//!
//! A *shape* is a document's bytes without lengths and without the values of its elements; nested
//! documents and arrays are part of it. What a document is beyond its shape are its values, in
//! *slots*, each of which is a column (or some) over all documents of the shape.
//!
//! Nothing is trusted here: what can't be told by a shape has none, and what a shape tells wrongly
//! (a length that isn't that of the content) is found when the columns are read back.

use std::ops::Range;

use super::column::{Column, Kind, Read};

// BSON's types, of elements that a shape can tell.
const DOUBLE: u8 = 0x01;
const STRING: u8 = 0x02;
const DOCUMENT: u8 = 0x03;
const ARRAY: u8 = 0x04;
const BINARY: u8 = 0x05;
const UNDEFINED: u8 = 0x06;
const OBJECT_ID: u8 = 0x07;
const BOOLEAN: u8 = 0x08;
pub(super) const DATE_TIME: u8 = 0x09;
const NULL: u8 = 0x0a;
const JAVASCRIPT: u8 = 0x0d;
const SYMBOL: u8 = 0x0e;
const INT32: u8 = 0x10;
const TIMESTAMP: u8 = 0x11;
const INT64: u8 = 0x12;
const DECIMAL128: u8 = 0x13;
const MAX_KEY: u8 = 0x7f;
const MIN_KEY: u8 = 0xff;

const LENGTH_BYTES: usize = size_of::<i32>();
/// The parts of an ObjectId: a time, what is the process's own, and a counter.
const ID_TIME_BYTES: usize = 4;
const ID_PROCESS_BYTES: usize = 5;
const ID_COUNTER_BYTES: usize = 3;
pub(super) const ID_BYTES: usize = ID_TIME_BYTES + ID_PROCESS_BYTES + ID_COUNTER_BYTES;

/// The kind of a slot's value. The lengths that BSON has are not in the columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Value {
    Double,
    /// Little-endian, of so many bytes.
    Integer(usize),
    ObjectId,
    /// Text behind its length, which counts a final zero.
    Text,
    /// A length, a subtype and bytes.
    Binary,
    Decimal128,
}

impl Value {
    fn columns(self) -> &'static [Kind] {
        match self {
            Value::Double => &[Kind::Doubles],
            Value::Integer(_) => &[Kind::Numbers],
            Value::ObjectId => &[Kind::Numbers, Kind::Numbers, Kind::Numbers],
            Value::Text | Value::Binary => &[Kind::Strings],
            Value::Decimal128 => &[Kind::Numbers, Kind::Numbers],
        }
    }
}

/// A step of taking a document apart.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// These bytes of the shape: types and names.
    Literal(Range<usize>),
    /// A document's length, and that what follows lies inside it.
    Open,
    /// A document's end.
    Close,
    Slot(Slot),
}

/// A step of putting one together: there are fewer, since they are taken more often.
#[derive(Clone, Debug)]
enum Put {
    /// These bytes of the template: types, names, zeros in place of lengths, and ends.
    Literal(Range<usize>),
    /// A document has begun so many bytes before.
    Open(usize),
    /// One has ended so many bytes before: its length goes to its beginning.
    Close(usize),
    Slot(Slot),
}

/// A place for values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slot {
    /// BSON's type.
    pub(super) element_type: u8,
    pub(super) value: Value,
    /// The first of its columns.
    pub(super) column: usize,
}

/// A shape, taken apart.
pub(super) struct Shape {
    pub(super) bytes: Vec<u8>,
    pub(super) steps: Vec<Step>,
    pub(super) columns: Vec<Kind>,
    template: Vec<u8>,
    puts: Vec<Put>,
}

impl Shape {
    /// Takes `bytes` apart, if they are a shape.
    pub(super) fn parse(bytes: &[u8]) -> Option<Shape> {
        let (mut steps, mut columns) = (vec![Step::Open], Vec::new());
        let (mut position, mut depth) = (0, 1);
        while depth > 0 {
            let element_type = *bytes.get(position)?;
            if element_type == 0 {
                steps.push(Step::Close);
                position += 1;
                depth -= 1;
                continue;
            }
            let name_bytes = bytes[position + 1..].iter().position(|byte| *byte == 0)?;
            let end = position + 1 + name_bytes + 1;
            steps.push(Step::Literal(position..end));
            position = end;
            match content(element_type)? {
                Content::Nothing => {}
                Content::Nested => {
                    steps.push(Step::Open);
                    depth += 1;
                }
                Content::Value(value) => {
                    steps.push(Step::Slot(Slot { element_type, value, column: columns.len() }));
                    columns.extend_from_slice(value.columns());
                }
            }
        }
        if position != bytes.len() {
            return None;
        }
        let (template, puts) = puts(bytes, &steps);
        Some(Shape { bytes: bytes.to_vec(), steps, columns, template, puts })
    }

    /// The shape of `document`, if it has one.
    pub(super) fn of(document: &[u8]) -> Option<Shape> {
        let mut bytes = Vec::with_capacity(document.len() / 2);
        let mut position = LENGTH_BYTES;
        let mut depth = 1;
        while depth > 0 {
            let element_type = *document.get(position)?;
            if element_type == 0 {
                bytes.push(0);
                position += 1;
                depth -= 1;
                continue;
            }
            let name_bytes = document[position + 1..].iter().position(|byte| *byte == 0)?;
            let end = position + 1 + name_bytes + 1;
            bytes.extend_from_slice(&document[position..end]);
            position = end;
            match content(element_type)? {
                Content::Nothing => {}
                Content::Nested => {
                    position += LENGTH_BYTES;
                    depth += 1;
                }
                Content::Value(value) => position += value_bytes(value, document.get(position..)?)?,
            }
        }
        Shape::parse(&bytes)
    }

    /// Appends the values of `document` to `columns`, if it has this shape; else leaves them as
    /// they are.
    pub(super) fn take<'a>(&self, document: &'a [u8], columns: &mut [Column<'a>]) -> bool {
        let row_count = columns.first().map(Column::len);
        let taken = self.try_take(document, columns).is_some();
        if let (false, Some(row_count)) = (taken, row_count) {
            columns.iter_mut().for_each(|column| column.truncate(row_count));
        }
        taken
    }

    fn try_take<'a>(&self, document: &'a [u8], columns: &mut [Column<'a>]) -> Option<()> {
        let mut rest = document;
        for step in &self.steps {
            match step {
                Step::Literal(range) => rest = rest.strip_prefix(&self.bytes[range.clone()])?,
                Step::Open => rest = rest.get(LENGTH_BYTES..)?,
                Step::Close => rest = rest.strip_prefix(&[0])?,
                Step::Slot(slot) => {
                    let (value, behind) = rest.split_at_checked(value_bytes(slot.value, rest)?)?;
                    slot.take(value, &mut columns[slot.column..]);
                    rest = behind;
                }
            }
        }
        rest.is_empty().then_some(())
    }

    /// Appends the document that the values in `row` make, unless that exceeds `bytes_max` of
    /// `out`. What is in `open` is of no account.
    pub(super) fn append(
        &self,
        columns: &[Read<'_>],
        row: usize,
        bytes_max: usize,
        open: &mut Vec<usize>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        open.clear();
        for put in &self.puts {
            match put {
                Put::Literal(range) => out.extend_from_slice(&self.template[range.clone()]),
                Put::Open(before) => open.push(out.len() - before),
                Put::Close(before) => {
                    let (start, end) = (open.pop()?, out.len() - before);
                    put_length(&mut out[start..end], 0)?;
                }
                Put::Slot(slot) => slot.append(&columns[slot.column..], row, out)?,
            }
            if bytes_max < out.len() {
                return None;
            }
        }
        Some(())
    }
}

/// Puts what begins or ends at a place of the template.
type PutAt = fn(usize) -> Put;

/// How to put documents of a shape together: the bytes that all have, and the steps.
fn puts(shape: &[u8], steps: &[Step]) -> (Vec<u8>, Vec<Put>) {
    let (mut template, mut puts, mut start) = (Vec::new(), Vec::new(), 0);
    // Beginnings and ends within the bytes that aren't put yet.
    let mut waiting: Vec<(usize, PutAt)> = Vec::new();
    for step in steps.iter().map(Some).chain([None]) {
        match step {
            Some(Step::Literal(range)) => template.extend_from_slice(&shape[range.clone()]),
            Some(Step::Open) => {
                waiting.push((template.len(), Put::Open));
                template.extend_from_slice(&[0; LENGTH_BYTES]);
            }
            Some(Step::Close) => {
                template.push(0);
                waiting.push((template.len(), Put::Close));
            }
            Some(Step::Slot(_)) | None => {
                puts.push(Put::Literal(start..template.len()));
                start = template.len();
                puts.extend(waiting.drain(..).map(|(at, put)| put(start - at)));
                if let Some(Step::Slot(slot)) = step {
                    puts.push(Put::Slot(*slot));
                }
            }
        }
    }
    (template, puts)
}

/// The content of an element after its name.
enum Content {
    Nothing,
    Nested,
    Value(Value),
}

fn content(element_type: u8) -> Option<Content> {
    Some(Content::Value(match element_type {
        UNDEFINED | NULL | MIN_KEY | MAX_KEY => return Some(Content::Nothing),
        DOCUMENT | ARRAY => return Some(Content::Nested),
        DOUBLE => Value::Double,
        STRING | JAVASCRIPT | SYMBOL => Value::Text,
        BINARY => Value::Binary,
        OBJECT_ID => Value::ObjectId,
        BOOLEAN => Value::Integer(size_of::<u8>()),
        INT32 => Value::Integer(size_of::<i32>()),
        DATE_TIME | TIMESTAMP | INT64 => Value::Integer(size_of::<i64>()),
        DECIMAL128 => Value::Decimal128,
        _ => return None,
    }))
}

/// How many bytes the value has that `bytes` begin with, by its own word.
fn value_bytes(value: Value, bytes: &[u8]) -> Option<usize> {
    let length = || {
        let length = i32::from_le_bytes(*bytes.first_chunk()?);
        usize::try_from(length).ok()
    };
    Some(match value {
        Value::Double => size_of::<f64>(),
        Value::Integer(bytes) => bytes,
        Value::ObjectId => ID_BYTES,
        Value::Decimal128 => size_of::<u128>(),
        Value::Text => LENGTH_BYTES + length()?.max(1),
        Value::Binary => LENGTH_BYTES + 1 + length()?,
    })
}

/// Puts at the beginning of `bytes` how many they are, without `uncounted` ones.
fn put_length(bytes: &mut [u8], uncounted: usize) -> Option<()> {
    let length = i32::try_from(bytes.len().checked_sub(uncounted)?).ok()?;
    bytes.get_mut(..LENGTH_BYTES)?.copy_from_slice(&length.to_le_bytes());
    Some(())
}

impl Slot {
    /// Appends `value`, which has the bytes of this slot's kind.
    fn take<'a>(&self, value: &'a [u8], columns: &mut [Column<'a>]) {
        match self.value {
            Value::Double => columns[0].push_bits(little_endian(value)),
            Value::Integer(bytes) => columns[0].push_number(signed(little_endian(value), bytes)),
            Value::ObjectId => {
                let (time, rest) = value.split_at(ID_TIME_BYTES);
                let (process, counter) = rest.split_at(ID_PROCESS_BYTES);
                for (column, part) in columns.iter_mut().zip([time, process, counter]) {
                    column.push_number(big_endian(part) as i64);
                }
            }
            Value::Text => columns[0].push_string(&value[LENGTH_BYTES..value.len() - 1]),
            Value::Binary => columns[0].push_string(&value[LENGTH_BYTES..]),
            Value::Decimal128 => {
                let (low, high) = value.split_at(size_of::<u64>());
                columns[0].push_number(little_endian(low) as i64);
                columns[1].push_number(little_endian(high) as i64);
            }
        }
    }

    /// Appends the value in `row`, as BSON has it.
    fn append(&self, columns: &[Read<'_>], row: usize, out: &mut Vec<u8>) -> Option<()> {
        match self.value {
            Value::Double => out.extend_from_slice(&columns[0].double_bits(row).to_le_bytes()),
            Value::Integer(bytes) => {
                let number = columns[0].number(row).to_le_bytes();
                // Of a length that is known when this is compiled: a call for each costs more.
                match (bytes, number) {
                    (1, [byte, ..]) => out.push(byte),
                    (4, [a, b, c, d, ..]) => out.extend_from_slice(&[a, b, c, d]),
                    _ => out.extend_from_slice(&number),
                }
            }
            Value::ObjectId => append_id(columns, row, out),
            Value::Text => {
                let start = out.len();
                out.extend_from_slice(&[0; LENGTH_BYTES]);
                columns[0].append_string(row, out);
                out.push(0);
                put_length(&mut out[start..], LENGTH_BYTES)?;
            }
            Value::Binary => {
                let start = out.len();
                out.extend_from_slice(&[0; LENGTH_BYTES]);
                columns[0].append_string(row, out);
                put_length(&mut out[start..], LENGTH_BYTES + 1)?;
            }
            Value::Decimal128 => {
                out.extend_from_slice(&columns[0].number(row).to_le_bytes());
                out.extend_from_slice(&columns[1].number(row).to_le_bytes());
            }
        }
        Some(())
    }
}

/// Appends the ObjectId in `row` of its three columns.
pub(super) fn append_id(columns: &[Read<'_>], row: usize, out: &mut Vec<u8>) {
    let part = |column: usize| columns.get(column).map_or(0, |column| column.number(row) as u64);
    let process_bits = 8 * ID_PROCESS_BYTES as u32;
    let counter_bits = 8 * ID_COUNTER_BYTES as u32;
    let id = u128::from(part(0)) << (process_bits + counter_bits)
        | u128::from(part(1) & ((1 << process_bits) - 1)) << counter_bits
        | u128::from(part(2) & ((1 << counter_bits) - 1));
    let [_, _, _, _, bytes @ ..] = id.to_be_bytes();
    debug_assert!(bytes.len() == ID_BYTES);
    out.extend_from_slice(&bytes);
}

/// A number of at most eight bytes.
fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The number that so many low bytes of `bits` are, with their sign.
fn signed(bits: u64, bytes: usize) -> i64 {
    let unused = u64::BITS - 8 * bytes as u32;
    (bits << unused) as i64 >> unused
}
