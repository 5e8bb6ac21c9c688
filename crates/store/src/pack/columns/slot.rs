//! A value's place in a shape: which bytes a value has, and how they become numbers and strings of
//! columns, and bytes again.

use super::column::{Column, Kind, Read};

// BSON's types, of elements that a shape can express.
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

pub(super) const LENGTH_BYTES: usize = size_of::<i32>();
/// The parts of an ObjectId: a time, what is the process's own, and a counter.
const ID_TIME_BYTES: usize = 4;
const ID_PROCESS_BYTES: usize = 5;
const ID_COUNTER_BYTES: usize = 3;
pub(super) const ID_BYTES: usize = ID_TIME_BYTES + ID_PROCESS_BYTES + ID_COUNTER_BYTES;
const ID_PROCESS_MASK: u64 = (1 << (8 * ID_PROCESS_BYTES)) - 1;
const ID_COUNTER_BITS: u32 = 8 * ID_COUNTER_BYTES as u32;
const ID_COUNTER_MASK: u64 = (1 << ID_COUNTER_BITS) - 1;

/// The content of an element after its name.
pub(super) enum Content {
    Nothing,
    Nested,
    Value(Value),
}

/// Returns the content behind the name of an element of this type; `None` if no shape can express
/// it.
pub(super) fn content(element_type: u8) -> Option<Content> {
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
    pub(super) fn columns(self) -> &'static [Kind] {
        match self {
            Value::Double => &[Kind::Doubles],
            Value::Integer(_) => &[Kind::Numbers],
            Value::ObjectId => &[Kind::Numbers, Kind::Numbers, Kind::Numbers],
            Value::Text | Value::Binary => &[Kind::Strings],
            Value::Decimal128 => &[Kind::Numbers, Kind::Numbers],
        }
    }

    /// Returns how many bytes each such value has, if all have as many.
    pub(super) fn fixed_bytes(self) -> Option<usize> {
        match self {
            Value::Double => Some(size_of::<f64>()),
            Value::Integer(bytes) => Some(bytes),
            Value::ObjectId => Some(ID_BYTES),
            Value::Decimal128 => Some(size_of::<u128>()),
            Value::Text | Value::Binary => None,
        }
    }

    /// Returns how many bytes the value has that `bytes` begin with, by its own word.
    pub(super) fn bytes_in(self, bytes: &[u8]) -> Option<usize> {
        if let Some(fixed) = self.fixed_bytes() {
            return Some(fixed);
        }
        let length = usize::try_from(i32::from_le_bytes(*bytes.first_chunk()?)).ok()?;
        Some(LENGTH_BYTES + if self == Value::Text { length.max(1) } else { length + 1 })
    }
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

impl Slot {
    /// Appends the value that `bytes` begin with, which are as many as it has or more, to the
    /// slot's columns; of one of any length they are exactly its own.
    pub(super) fn take<'a>(&self, bytes: &'a [u8], columns: &mut [Column<'a>]) {
        let columns = &mut columns[self.column..];
        match self.value {
            Value::Double => columns[0].push_bits(word(bytes)),
            Value::Integer(count) => columns[0].push_number(integer(bytes, count)),
            Value::ObjectId => {
                let time = bytes.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
                let rest = word(&bytes[ID_TIME_BYTES..]).swap_bytes();
                columns[0].push_number(i64::from(time));
                columns[1].push_number((rest >> ID_COUNTER_BITS) as i64);
                columns[2].push_number((rest & ID_COUNTER_MASK) as i64);
            }
            Value::Text => columns[0].push_string(&bytes[LENGTH_BYTES..bytes.len() - 1]),
            Value::Binary => columns[0].push_string(&bytes[LENGTH_BYTES..]),
            Value::Decimal128 => {
                columns[0].push_number(word(bytes) as i64);
                columns[1].push_number(word(&bytes[size_of::<u64>()..]) as i64);
            }
        }
    }

    /// Puts the values of all rows, whose length is fixed, in their places in `out`.
    pub(super) fn put_all(
        &self,
        columns: &[Read<'_>],
        places: impl Iterator<Item = usize>,
        out: &mut [u8],
    ) {
        let columns = &columns[self.column..];
        let column = columns[0].numbers().iter().zip(places);
        // The length is known when this is compiled: a call for each value costs more.
        match self.value {
            Value::Integer(1) => column.for_each(|(number, at)| put(out, at, [*number as u8])),
            Value::Integer(4) => {
                column.for_each(|(number, at)| put(out, at, (*number as i32).to_le_bytes()));
            }
            Value::Double | Value::Integer(_) => {
                column.for_each(|(number, at)| put(out, at, number.to_le_bytes()));
            }
            Value::ObjectId => {
                column.enumerate().for_each(|(row, (_, at))| put(out, at, id(columns, row)));
            }
            Value::Decimal128 => {
                for (row, (low, at)) in column.enumerate() {
                    put(out, at, low.to_le_bytes());
                    put(out, at + size_of::<u64>(), columns[1].number(row).to_le_bytes());
                }
            }
            Value::Text | Value::Binary => debug_assert!(false, "a value of no fixed length"),
        }
    }

    /// Appends the value in `row`, which is one of any length, as BSON has it.
    pub(super) fn append(&self, columns: &[Read<'_>], row: usize, out: &mut Vec<u8>) -> Option<()> {
        let start = out.len();
        out.extend_from_slice(&[0; LENGTH_BYTES]);
        columns[self.column].append_string(row, out);
        if self.value == Value::Text {
            out.push(0);
            return put_length(&mut out[start..], LENGTH_BYTES);
        }
        put_length(&mut out[start..], LENGTH_BYTES + 1)
    }
}

/// The ObjectId in `row` of its three columns.
pub(super) fn id(columns: &[Read<'_>], row: usize) -> [u8; ID_BYTES] {
    let part = |column: usize| columns.get(column).map_or(0, |column| column.number(row) as u64);
    let rest = (part(1) & ID_PROCESS_MASK) << ID_COUNTER_BITS | part(2) & ID_COUNTER_MASK;
    let mut id = [0; ID_BYTES];
    put(&mut id, 0, (part(0) as u32).to_be_bytes());
    put(&mut id, ID_TIME_BYTES, rest.to_be_bytes());
    id
}

/// Puts at the beginning of `bytes` how many they are, without `uncounted` ones.
pub(super) fn put_length(bytes: &mut [u8], uncounted: usize) -> Option<()> {
    let length = i32::try_from(bytes.len().checked_sub(uncounted)?).ok()?;
    bytes.get_mut(..LENGTH_BYTES)?.copy_from_slice(&length.to_le_bytes());
    Some(())
}

fn put<const COUNT: usize>(out: &mut [u8], at: usize, bytes: [u8; COUNT]) {
    out[at..at + COUNT].copy_from_slice(&bytes);
}

/// The eight bytes that `bytes` begin with.
fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The number that the first `count` of `bytes` are, with its sign.
fn integer(bytes: &[u8], count: usize) -> i64 {
    match count {
        1 => bytes.first().map_or(0, |byte| i64::from(*byte as i8)),
        4 => bytes.first_chunk().map_or(0, |bytes| i64::from(i32::from_le_bytes(*bytes))),
        _ => word(bytes) as i64,
    }
}
