//! Finds the parts of keys that repeat values of their documents.
//!
//! A document's key is made of its values (`_id`; a point's source and time too), in bytes that
//! sort. So a key is written as *pieces*, each a value of a slot, and what stands before, between
//! and behind them, which is mostly the same in all rows and is a column of strings each.
//!
//! Which slots these are isn't known here: their values are looked for in the first key, and the
//! others must have them in the same order.

use super::column::{Column, Read};
use super::shape::Shape;
use super::slot::{DATE_TIME, ID_BYTES, Slot, Value, id};

/// Shorter strings may be anywhere.
const PIECE_BYTES_MIN: usize = 4;
const PIECES_MAX: usize = 4;
/// Added to a date in a key, so that dates before 1970 sort first.
const SIGN: u64 = 1 << 63;
/// The bytes before those of a binary value, in its column.
const SUBTYPE_BYTES: usize = 1;

/// The slots whose values can be pieces of keys, in the order of a shape.
pub(super) fn candidates(shape: &Shape) -> Vec<Slot> {
    shape.slots.iter().copied().filter(is_candidate).collect()
}

fn is_candidate(slot: &Slot) -> bool {
    match slot.value {
        Value::ObjectId | Value::Text | Value::Binary => true,
        Value::Integer(_) => slot.element_type == DATE_TIME,
        Value::Double | Value::Decimal128 => false,
    }
}

/// A date as it stands in a key.
fn date_piece(millis: i64) -> [u8; size_of::<u64>()] {
    (millis as u64 ^ SIGN).to_be_bytes()
}

/// Puts the piece that the slot's value in `row` is in place of what is in `piece`.
fn piece_of(slot: &Slot, columns: &[Column<'_>], row: usize, piece: &mut Vec<u8>) {
    piece.clear();
    let columns = &columns[slot.column..];
    match slot.value {
        Value::ObjectId => {
            piece.extend_from_slice(&columns[0].number(row).to_be_bytes()[4..]);
            piece.extend_from_slice(&columns[1].number(row).to_be_bytes()[3..]);
            piece.extend_from_slice(&columns[2].number(row).to_be_bytes()[5..]);
            debug_assert!(piece.len() == ID_BYTES);
        }
        Value::Text => piece.extend_from_slice(columns[0].string(row)),
        Value::Binary => {
            piece.extend_from_slice(columns[0].string(row).get(SUBTYPE_BYTES..).unwrap_or(&[]));
        }
        _ => piece.extend_from_slice(&date_piece(columns[0].number(row))),
    }
}

/// Appends the piece that the slot's value in `row` is.
pub(super) fn append_piece(slot: &Slot, columns: &[Read<'_>], row: usize, key: &mut Vec<u8>) {
    let columns = &columns[slot.column..];
    match slot.value {
        Value::ObjectId => key.extend_from_slice(&id(columns, row)),
        Value::Text => columns[0].append_string(row, key),
        Value::Binary => {
            let start = key.len();
            columns[0].append_string(row, key);
            if start < key.len() {
                key.drain(start..start + SUBTYPE_BYTES);
            }
        }
        _ => key.extend_from_slice(&date_piece(columns[0].number(row))),
    }
}

/// The split of the keys of one shape's rows: the pieces, as positions among the candidates, and
/// what stands around them, a string for each row.
pub(super) struct SplitKeys<'a> {
    pub(super) pieces: Vec<usize>,
    pub(super) rests: Vec<Vec<&'a [u8]>>,
}

/// Finds out how to derive `keys`, one for each row of `columns`.
pub(super) fn split_keys<'a>(
    candidates: &[Slot],
    columns: &[Column<'_>],
    keys: &[&'a [u8]],
) -> SplitKeys<'a> {
    let mut pieces = pieces_of_first(candidates, columns, keys);
    loop {
        match split(candidates, columns, keys, &pieces) {
            Ok(rests) => return SplitKeys { pieces, rests },
            Err(absent) => pieces.remove(absent),
        };
    }
}

/// The candidates whose values stand in the first key, in its order, without overlapping.
fn pieces_of_first(candidates: &[Slot], columns: &[Column<'_>], keys: &[&[u8]]) -> Vec<usize> {
    let Some(first) = keys.first() else { return Vec::new() };
    let mut piece = Vec::new();
    let mut found: Vec<(usize, usize, usize)> = Vec::new();
    for (number, slot) in candidates.iter().enumerate() {
        piece_of(slot, columns, 0, &mut piece);
        if piece.len() < PIECE_BYTES_MIN || found.len() == PIECES_MAX {
            continue;
        }
        let at = find(first, &piece);
        if let Some(start) = at {
            let end = start + piece.len();
            if found.iter().all(|(other, other_end, _)| end <= *other || *other_end <= start) {
                found.push((start, end, number));
            }
        }
    }
    found.sort_unstable();
    found.into_iter().map(|(_, _, number)| number).collect()
}

/// Returns the bytes around `pieces` in each of `keys`; or the piece that isn't in some key behind
/// those before it.
fn split<'a>(
    candidates: &[Slot],
    columns: &[Column<'_>],
    keys: &[&'a [u8]],
    pieces: &[usize],
) -> Result<Vec<Vec<&'a [u8]>>, usize> {
    let mut rests = vec![Vec::with_capacity(keys.len()); pieces.len() + 1];
    let mut piece = Vec::new();
    // The place where each was in the last key: it is there again, mostly.
    let mut starts = vec![0; pieces.len()];
    for (row, key) in keys.iter().enumerate() {
        let mut rest = *key;
        for (number, candidate) in pieces.iter().enumerate() {
            piece_of(&candidates[*candidate], columns, row, &mut piece);
            let again = rest.get(starts[number]..).is_some_and(|rest| rest.starts_with(&piece));
            if !again {
                starts[number] = find(rest, &piece).ok_or(number)?;
            }
            let start = starts[number];
            rests[number].push(&rest[..start]);
            rest = &rest[start + piece.len()..];
        }
        rests[pieces.len()].push(rest);
    }
    Ok(rests)
}

fn find(key: &[u8], piece: &[u8]) -> Option<usize> {
    let first = piece.first()?;
    let last_start = key.len().checked_sub(piece.len())?;
    (0..=last_start).find(|start| key[*start] == *first && key[*start..].starts_with(piece))
}
