//! A column of any kind, while it is gathered and after it was read.

use super::cursor::Reader;
use super::strings::Strings;
use super::{doubles, numbers, strings};

/// The kind of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Numbers,
    Doubles,
    Strings,
}

/// What served the column of the leaf before, and is tried first.
#[derive(Default)]
pub(super) struct Plan {
    /// Of doubles and strings, the column's first byte.
    pub(super) first: Option<u8>,
    /// Of the numbers, or those that doubles and strings consist of.
    pub(super) numbers: numbers::Plan,
}

impl Plan {
    /// Returns `first`, which is what serves now. Numbers of another kind have another plan.
    pub(super) fn begin(&mut self, first: u8) -> u8 {
        if self.first.replace(first) != Some(first) {
            self.numbers = numbers::Plan::Unknown;
        }
        first
    }
}

/// A column that is gathered.
pub(super) enum Column<'a> {
    Numbers(Vec<i64>),
    Doubles(Vec<u64>),
    Strings(Vec<&'a [u8]>),
}

/// A column that was read; of doubles, their bits. A reader that asks for another kind than it has
/// gets zeros or nothing.
pub(super) enum Read<'a> {
    Numbers(Vec<i64>),
    Strings(Strings<'a>),
}

impl<'a> Column<'a> {
    pub(super) fn new(kind: Kind, count: usize) -> Column<'a> {
        match kind {
            Kind::Numbers => Column::Numbers(Vec::with_capacity(count)),
            Kind::Doubles => Column::Doubles(Vec::with_capacity(count)),
            Kind::Strings => Column::Strings(Vec::with_capacity(count)),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Column::Numbers(numbers) => numbers.len(),
            Column::Doubles(bits) => bits.len(),
            Column::Strings(strings) => strings.len(),
        }
    }

    pub(super) fn truncate(&mut self, count: usize) {
        match self {
            Column::Numbers(numbers) => numbers.truncate(count),
            Column::Doubles(bits) => bits.truncate(count),
            Column::Strings(strings) => strings.truncate(count),
        }
    }

    pub(super) fn push_number(&mut self, number: i64) {
        if let Column::Numbers(numbers) = self {
            numbers.push(number);
        }
    }

    pub(super) fn push_bits(&mut self, double: u64) {
        if let Column::Doubles(bits) = self {
            bits.push(double);
        }
    }

    pub(super) fn push_string(&mut self, string: &'a [u8]) {
        if let Column::Strings(strings) = self {
            strings.push(string);
        }
    }

    pub(super) fn number(&self, row: usize) -> i64 {
        if let Column::Numbers(numbers) = self { numbers[row] } else { 0 }
    }

    pub(super) fn string(&self, row: usize) -> &'a [u8] {
        if let Column::Strings(strings) = self { strings[row] } else { &[] }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>, plan: &mut Plan) {
        match self {
            Column::Numbers(numbers) => numbers::write(out, numbers, &mut plan.numbers),
            Column::Doubles(bits) => doubles::write(out, bits, plan),
            Column::Strings(strings) => strings::write(out, strings, plan),
        }
    }
}

impl<'a> Read<'a> {
    pub(super) fn of(kind: Kind, reader: &mut Reader<'a>, count: usize) -> Option<Read<'a>> {
        Some(match kind {
            Kind::Numbers => Read::Numbers(numbers::read(reader, count)?),
            Kind::Doubles => Read::Numbers(doubles::read(reader, count)?),
            Kind::Strings => Read::Strings(Strings::read(reader, count)?),
        })
    }

    pub(super) fn number(&self, row: usize) -> i64 {
        if let Read::Numbers(numbers) = self { numbers[row] } else { 0 }
    }

    pub(super) fn numbers(&self) -> &[i64] {
        if let Read::Numbers(numbers) = self { numbers } else { &[] }
    }

    pub(super) fn append_string(&self, row: usize, out: &mut Vec<u8>) {
        if let Read::Strings(strings) = self {
            strings.append(row, out);
        }
    }
}
