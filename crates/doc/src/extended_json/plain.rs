//! Text of JSON's strings: copied and looked through at once, both ways.
//!
//! Names and strings are mostly some ten bytes long. For so few a call that copies costs more than
//! the copying, so they are copied eight bytes at a time, some too many, and the end is set back.

use crate::raw::array_at;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;
const WORD_BYTES: usize = size_of::<u64>();

/// Behind so many bytes the rest is copied by a call.
const FEW_BYTES: usize = 64;

/// What lies before a byte that isn't itself in a string of JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Plain {
    /// How many bytes.
    pub(super) bytes: usize,
    /// Whether they are ASCII, and so UTF-8.
    pub(super) is_ascii: bool,
}

/// Appends what of `text` comes before a quote, a backslash or a control character.
#[inline(always)]
pub(super) fn append_plain(text: &[u8], out: &mut Vec<u8>) -> Plain {
    let (mut bytes, mut bits_of_all) = (0, 0);
    while let Some(word) = array_at(text, bytes) {
        if FEW_BYTES <= bytes {
            return append_many(text, Plain { bytes, is_ascii: bits_of_all & HIGHS == 0 }, out);
        }
        out.extend_from_slice(&word);
        let word = u64::from_le_bytes(word);
        let plain = plain_bytes_of(word);
        if plain < WORD_BYTES {
            out.truncate(out.len() - WORD_BYTES + plain);
            bits_of_all |= word & ((1 << (8 * plain)) - 1);
            return Plain { bytes: bytes + plain, is_ascii: bits_of_all & HIGHS == 0 };
        }
        bits_of_all |= word;
        bytes += WORD_BYTES;
    }
    let word = last_word(&text[bytes..]);
    let plain = plain_bytes_of(word);
    out.extend_from_slice(&word.to_le_bytes());
    out.truncate(out.len() - WORD_BYTES + plain);
    bits_of_all |= word & ((1 << (8 * plain)) - 1);
    Plain { bytes: bytes + plain, is_ascii: bits_of_all & HIGHS == 0 }
}

/// Appends the name that lies before the first zero of `bytes`, in quotes and with a colon; returns
/// how long it is. `None` where something in it is escaped, or it has no end, or it lies at the
/// very end: nothing is appended then.
#[inline(always)]
pub(super) fn append_plain_name(bytes: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let start = out.len();
    out.push(b'"');
    let mut at = 0;
    while let Some(word) = array_at(bytes, at) {
        out.extend_from_slice(&word);
        let plain = plain_bytes_of(u64::from_le_bytes(word));
        let Some(special) = word.get(plain) else {
            at += WORD_BYTES;
            continue;
        };
        if *special != 0 {
            break;
        }
        out.truncate(out.len() - WORD_BYTES + plain);
        out.extend_from_slice(b"\":");
        return Some(at + plain);
    }
    out.truncate(start);
    None
}

/// Goes on behind `begun`, which is many bytes.
#[inline(never)]
fn append_many(text: &[u8], begun: Plain, out: &mut Vec<u8>) -> Plain {
    let rest = &text[begun.bytes..];
    let rest = &rest[..plain_bytes(rest)];
    out.extend_from_slice(rest);
    Plain { bytes: begun.bytes + rest.len(), is_ascii: begun.is_ascii && rest.is_ascii() }
}

/// How many bytes come before one that isn't itself in a string.
fn plain_bytes(text: &[u8]) -> usize {
    // What the compiler makes of it looks at sixteen bytes at once.
    let is_plain = |part: &[u8; 32]| {
        !part.iter().fold(false, |bits_of_all, byte| bits_of_all | is_special(*byte))
    };
    let (parts, _) = text.as_chunks::<32>();
    let begun = 32 * parts.iter().take_while(|part| is_plain(part)).count();
    let rest = &text[begun..];
    begun + rest.iter().position(|byte| is_special(*byte)).unwrap_or(rest.len())
}

fn is_special(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

/// How many of a word's bytes, from the lowest, come before a special one: eight if none is.
#[inline(always)]
fn plain_bytes_of(word: u64) -> usize {
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let quote = zero(word ^ (ONES * u64::from(b'"')));
    let backslash = zero(word ^ (ONES * u64::from(b'\\')));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    // The lowest of these bits is at the first such byte (Mycroft's test).
    ((quote | backslash | control) & HIGHS).trailing_zeros() as usize / 8
}

/// Fewer than eight bytes as a word; those that aren't there are zero, and so special.
#[inline(always)]
fn last_word(bytes: &[u8]) -> u64 {
    match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last)) => {
            let last = u64::from(u32::from_le_bytes(*last));
            u64::from(u32::from_le_bytes(*first)) | last << (8 * (bytes.len() - size_of::<u32>()))
        }
        _ => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each byte at each place of texts of all short lengths, with more behind and with nothing.
    #[test]
    fn as_many_bytes_are_plain_as_one_by_one() {
        for length in (0..40).chain([63, 64, 65, 71, 72, 95, 96, 97, 128, 200]) {
            for at in (0..length).chain([length]) {
                for byte in [0, 1, 0x1f, 0x20, b'"', b'!', b'#', b'\\', b']', 0x7f, 0x80, 0xff] {
                    let mut text = vec![b'a'; length];
                    if let Some(place) = text.get_mut(at) {
                        *place = byte;
                    }
                    let bytes = text.iter().position(|byte| is_special(*byte)).unwrap_or(length);
                    let expected = Plain { bytes, is_ascii: text[..bytes].is_ascii() };
                    let mut out = b"before".to_vec();
                    assert_eq!(append_plain(&text, &mut out), expected, "{length} {at} {byte}");
                    assert_eq!(out, [b"before", &text[..bytes]].concat());
                }
            }
        }
    }

    #[test]
    fn a_name_ends_at_its_zero() {
        for length in 0..40 {
            let name = "a".repeat(length);
            let mut out = Vec::new();
            let bytes = [name.as_bytes(), b"\0\x01\"behind it"].concat();
            assert_eq!(append_plain_name(&bytes, &mut out), Some(length));
            assert_eq!(out, format!("\"{name}\":").into_bytes());
            for wrong in ["\"", "\\", "\n"] {
                let bytes = [name.as_bytes(), wrong.as_bytes(), b"\0behind it"].concat();
                assert_eq!(append_plain_name(&bytes, &mut out), None);
            }
            assert_eq!(append_plain_name(name.as_bytes(), &mut out), None, "it has no end");
            assert_eq!(out.len(), length + 3, "nothing is left of what wasn't plain");
        }
    }
}
