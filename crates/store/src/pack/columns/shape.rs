//! The shape of BSON documents: their types and names, in order, without values.
//!
//! A *shape* is a document's bytes without lengths and without the values of its elements; nested
//! documents and arrays are part of it. The parts of a document beyond its shape are its values, in
//! *slots*, each a column (or some) over all documents of the shape.
//!
//! Between two values that have any length, all documents of a shape have as many bytes: a *run*,
//! which is compared and copied as a whole, and in which each length and value has its place.
//!
//! Nothing is trusted here: what a shape can't express has none, and what a shape says wrongly (a
//! length that isn't that of the content) is found when the columns are read back.

use std::ops::Range;

use super::column::{Column, Kind, Read};
use super::slot::{Content, LENGTH_BYTES, Slot, Value, content, put_length};

/// Bytes that differ between documents of a shape only in some places.
#[derive(Debug)]
struct Run {
    /// Their place in the template.
    bytes: Range<usize>,
    /// The places of lengths, and of values whose length is their type's. They count from the run's
    /// beginning.
    lengths: Vec<(usize, LengthPlace)>,
    values: Vec<(usize, Slot)>,
    /// The value behind them, which has any length; `None` behind a document's last run.
    value: Option<Slot>,
}

/// A place that a document's length has to do with.
#[derive(Clone, Copy, Debug)]
enum LengthPlace {
    /// It stands here, at the document's beginning.
    Open,
    /// The document's end is right before.
    Close,
}

/// A shape, taken apart.
#[derive(Default)]
pub(super) struct Shape {
    pub(super) bytes: Vec<u8>,
    pub(super) slots: Vec<Slot>,
    pub(super) columns: Vec<Kind>,
    /// The bytes of all runs, with zeros in place of lengths and values.
    pub(super) template: Vec<u8>,
    /// The bits of each of these bytes that are the same in all documents: all those of types,
    /// names and ends, none of lengths and values.
    literals: Vec<u8>,
    runs: Vec<Run>,
}

impl Shape {
    /// Takes `bytes` apart, if they are a shape.
    pub(super) fn parse(bytes: &[u8]) -> Option<Shape> {
        let mut shape = Shape::default();
        let mut run = Run::from(0);
        let (mut position, mut depth) = (0, 1);
        shape.open(&mut run);
        while depth > 0 {
            let element_type = *bytes.get(position)?;
            if element_type == 0 {
                shape.literal(&[0]);
                run.lengths.push((shape.template.len() - run.bytes.start, LengthPlace::Close));
                position += 1;
                depth -= 1;
                continue;
            }
            let name_bytes = bytes[position + 1..].iter().position(|byte| *byte == 0)?;
            let end = position + 1 + name_bytes + 1;
            shape.literal(&bytes[position..end]);
            position = end;
            match content(element_type)? {
                Content::Nothing => {}
                Content::Nested => {
                    shape.open(&mut run);
                    depth += 1;
                }
                Content::Value(value) => shape.value(&mut run, element_type, value),
            }
        }
        if position != bytes.len() {
            return None;
        }
        shape.end(run, None);
        shape.bytes = bytes.to_vec();
        Some(shape)
    }

    /// Returns how many runs it has.
    pub(super) fn runs(&self) -> usize {
        self.runs.len()
    }

    fn open(&mut self, run: &mut Run) {
        run.lengths.push((self.template.len() - run.bytes.start, LengthPlace::Open));
        self.blank(LENGTH_BYTES);
    }

    fn literal(&mut self, bytes: &[u8]) {
        self.template.extend_from_slice(bytes);
        self.literals.resize(self.template.len(), u8::MAX);
    }

    /// Bytes that differ from document to document.
    fn blank(&mut self, count: usize) {
        self.template.resize(self.template.len() + count, 0);
        self.literals.resize(self.template.len(), 0);
    }

    fn value(&mut self, run: &mut Run, element_type: u8, value: Value) {
        let slot = Slot { element_type, value, column: self.columns.len() };
        self.columns.extend_from_slice(value.columns());
        self.slots.push(slot);
        let here = self.template.len();
        if let Some(bytes) = value.fixed_bytes() {
            run.values.push((here - run.bytes.start, slot));
            self.blank(bytes);
        } else {
            let ended = std::mem::replace(run, Run::from(here));
            self.end(ended, Some(slot));
        }
    }

    fn end(&mut self, mut run: Run, value: Option<Slot>) {
        run.bytes.end = self.template.len();
        run.value = value;
        self.runs.push(run);
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
                Content::Value(value) => position += value.bytes_in(document.get(position..)?)?,
            }
        }
        Shape::parse(&bytes)
    }

    /// Whether `document` has this shape.
    pub(super) fn is_of(&self, document: &[u8]) -> bool {
        self.walk(document, |_, _| {}).is_some()
    }

    /// Appends the values of `document` to `columns`, if it has this shape; else leaves them as
    /// they are.
    pub(super) fn take<'a>(&self, document: &'a [u8], columns: &mut [Column<'a>]) -> bool {
        let row_count = columns.first().map(Column::len);
        let taken = self.walk(document, |slot, value| slot.take(value, columns)).is_some();
        if let (false, Some(row_count)) = (taken, row_count) {
            columns.iter_mut().for_each(|column| column.truncate(row_count));
        }
        taken
    }

    /// Shows the bytes from each value of `document` on, if it has this shape; else some.
    fn walk<'a>(&self, document: &'a [u8], mut visit: impl FnMut(&Slot, &'a [u8])) -> Option<()> {
        let mut rest = document;
        for run in &self.runs {
            let template = &self.template[run.bytes.clone()];
            let literals = &self.literals[run.bytes.clone()];
            let (bytes, behind) = rest.split_at_checked(template.len())?;
            // All of it, many bytes at once: a comparison for each name costs more.
            let differs =
                |sum: u8, ((byte, own), literal): ((&u8, &u8), &u8)| sum | (byte ^ own) & literal;
            if bytes.iter().zip(template).zip(literals).fold(0, differs) != 0 {
                return None;
            }
            run.values.iter().for_each(|(at, slot)| visit(slot, &bytes[*at..]));
            rest = behind;
            if let Some(slot) = run.value {
                let (value, behind) = rest.split_at_checked(slot.value.bytes_in(rest)?)?;
                visit(&slot, value);
                rest = behind;
            }
        }
        rest.is_empty().then_some(())
    }

    /// Appends the document that the values in `row` make, unless that exceeds `bytes_max` of
    /// `out`; but values of a fixed length are left zero. Where each of its runs begins goes to
    /// `starts`. The former content of `open` doesn't count.
    pub(super) fn append(
        &self,
        columns: &[Read<'_>],
        row: usize,
        bytes_max: usize,
        (starts, open): (&mut Vec<usize>, &mut Vec<usize>),
        out: &mut Vec<u8>,
    ) -> Option<()> {
        open.clear();
        for run in &self.runs {
            let start = out.len();
            starts.push(start);
            out.extend_from_slice(&self.template[run.bytes.clone()]);
            for (at, place) in &run.lengths {
                let at = start + at;
                match place {
                    LengthPlace::Open => open.push(at),
                    LengthPlace::Close => put_length(&mut out[open.pop()?..at], 0)?,
                }
            }
            if let Some(slot) = run.value {
                slot.append(columns, row, out)?;
            }
            if bytes_max < out.len() {
                return None;
            }
        }
        Some(())
    }
}

impl Shape {
    /// Puts in their places the values of a fixed length of all documents whose runs begin at
    /// `starts`, a column after the other: a loop over numbers costs less than one over slots.
    pub(super) fn put_fixed(&self, columns: &[Read<'_>], starts: &[usize], out: &mut [u8]) {
        for (number, run) in self.runs.iter().enumerate() {
            for (at, slot) in &run.values {
                let starts = starts.iter().skip(number).step_by(self.runs.len());
                slot.put_all(columns, starts.map(|start| start + at), out);
            }
        }
    }
}

impl Run {
    /// One that begins at `start` of the template.
    fn from(start: usize) -> Run {
        Run { bytes: start..start, lengths: Vec::new(), values: Vec::new(), value: None }
    }
}
