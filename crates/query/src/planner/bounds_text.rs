//! Bounds as MongoDB's `explain` shows them: `[5, 5]`, `("x", {})`, `[MinKey, MaxKey]`.
//!
//! The ends of a type's bracket are keys of one byte and no values: they are shown as the least and
//! the greatest value of the type, as MongoDB does where it has one.

use super::FieldBounds;
use super::interval::{Cut, Interval};
use super::parts::value_of_key;
use crate::text;

/// The ends of brackets: the first byte of a type, what is shown at a start and at an end before
/// it.
const BRACKETS: &[(u8, &str, &str)] = &[
    (0x08, "MinKey", "MinKey"),
    (0x10, "undefined", "undefined"),
    (0x11, "null", "undefined"),
    (0x18, "null", "null"),
    (0x19, "nan", "null"),
    (0x20, "nan", "nan"),
    (0x28, "\"\"", "inf.0"),
    (0x30, "\"\"", "\"\""),
    (0x31, "{}", "{}"),
    (0x38, "{}", "{}"),
    (0x39, "[]", "[]"),
    (0x40, "[]", "[]"),
    (0x41, "BinData(0, \"\")", "BinData(0, \"\")"),
    (0x48, "BinData(0, \"\")", "BinData(0, \"\")"),
    (0x49, "ObjectId('000000000000000000000000')", "ObjectId('000000000000000000000000')"),
    (0x50, "ObjectId('000000000000000000000000')", "ObjectId('000000000000000000000000')"),
    (0x51, "false", "ObjectId('ffffffffffffffffffffffff')"),
    (0x58, "false", "false"),
    (0x5a, "new Date(-9223372036854775808)", "true"),
    (0x60, "new Date(-9223372036854775808)", "new Date(-9223372036854775808)"),
    (0x61, "Timestamp(0, 0)", "new Date(9223372036854775807)"),
    (0x68, "Timestamp(0, 0)", "Timestamp(0, 0)"),
    (0x69, "//", "Timestamp(4294967295, 4294967295)"),
    (0xf0, "MaxKey", "MaxKey"),
    (0xf1, "MaxKey", "MaxKey"),
];

impl FieldBounds {
    /// The intervals in the order in which they are scanned.
    pub fn texts(&self, backwards: bool) -> Vec<String> {
        let is_reversed = self.descending != backwards;
        let text_of = |interval: &Interval| shown(interval, is_reversed);
        let mut texts: Vec<String> = self.intervals.as_slice().iter().map(text_of).collect();
        if is_reversed {
            texts.reverse();
        }
        texts
    }
}

fn shown(interval: &Interval, is_reversed: bool) -> String {
    let (start, start_is_in) = end_of(&interval.start, true);
    let (end, end_is_in) = end_of(&interval.end, false);
    let (first, first_is_in, last, last_is_in) = match is_reversed {
        false => (start, start_is_in, end, end_is_in),
        true => (end, end_is_in, start, start_is_in),
    };
    let open = if first_is_in { '[' } else { '(' };
    let close = if last_is_in { ']' } else { ')' };
    format!("{open}{first}, {last}{close}")
}

/// One end of an interval, and whether what is shown lies within.
fn end_of(cut: &Cut, is_start: bool) -> (String, bool) {
    let (bytes, is_before) = match cut {
        Cut::Before(bytes) => (bytes, true),
        Cut::After(bytes) => (bytes, false),
    };
    if bytes.is_empty() {
        let text = if is_start { "MinKey" } else { "MaxKey" };
        return (text.to_owned(), true);
    }
    if let Some(value) = value_of_key(bytes) {
        return (text::value(value.as_value()), is_before == is_start);
    }
    let bracket = BRACKETS.iter().find(|(first, ..)| [*first] == bytes[..]);
    match bracket {
        Some((_, start, _)) if is_start => ((*start).to_owned(), is_before),
        // `{}` and `[]` are the least values of the next type, and not within.
        Some((_, _, end)) => ((*end).to_owned(), !matches!(*end, "{}" | "[]")),
        None => (prefix_text(bytes), is_before == is_start),
    }
}

/// The beginning of strings, or what it is as bytes.
fn prefix_text(bytes: &[u8]) -> String {
    let mut whole = bytes.to_vec();
    whole.push(0);
    match value_of_key(&whole) {
        Some(value) => text::value(value.as_value()),
        None => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}
