//! Names of commits, as people and drivers write them: 32 letters of base32.
//!
//! The alphabet is base32hex in lower case, `0-9a-v`: letters sort as the bytes do, so that the ids
//! that begin with some letters lie together, and no case is lost in a database's name.

use std::fmt;

/// Bytes of a commit's id: 160 bits of its chunk's 256.
pub const COMMIT_ID_BYTES: usize = 20;
/// Letters of a commit's id.
pub const COMMIT_ID_LETTERS: usize = COMMIT_ID_BYTES * 8 / LETTER_BITS;
const LETTER_BITS: usize = 5;
const ALPHABET: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
/// The least number of letters that abbreviate an id.
pub(crate) const PREFIX_LETTERS_MIN: usize = 4;
const _: () = assert!(COMMIT_ID_LETTERS == 32);

/// The first 160 bits of a commit chunk's name; printed as 32 letters of base32 (`0-9a-v`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct CommitId(pub [u8; COMMIT_ID_BYTES]);

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&letters(&self.0))
    }
}

impl CommitId {
    /// Reads the 32 letters of an id; `None` if `text` is something else.
    pub fn parse(text: &str) -> Option<CommitId> {
        if text.len() != COMMIT_ID_LETTERS {
            return None;
        }
        prefix_range(text).map(|(first, _)| first)
    }
}

/// The least and the greatest id that begin with the letters `prefix`; `None` if no id does.
pub fn prefix_range(prefix: &str) -> Option<(CommitId, CommitId)> {
    if prefix.len() > COMMIT_ID_LETTERS {
        return None;
    }
    let (mut first, mut last) = ([0; COMMIT_ID_BYTES], [0xff; COMMIT_ID_BYTES]);
    for (position, letter) in prefix.bytes().enumerate() {
        let value = ALPHABET.iter().position(|known| *known == letter)?;
        for bit in 0..LETTER_BITS {
            let place = position * LETTER_BITS + bit;
            let mask = 0x80 >> (place % 8);
            if value & (0x10 >> bit) == 0 {
                last[place / 8] &= !mask;
            } else {
                first[place / 8] |= mask;
            }
        }
    }
    Some((CommitId(first), CommitId(last)))
}

/// Writes `bytes` in base32; bits that fill the last letter are zero.
pub fn letters(bytes: &[u8]) -> String {
    let mut letters = String::with_capacity(bytes.len().saturating_mul(8).div_ceil(LETTER_BITS));
    let (mut pending, mut pending_bits) = (0u32, 0);
    for byte in bytes {
        pending = (pending << 8) | u32::from(*byte);
        pending_bits += 8;
        while pending_bits >= LETTER_BITS {
            pending_bits -= LETTER_BITS;
            letters.push(letter(pending >> pending_bits));
        }
        pending &= (1 << pending_bits) - 1;
    }
    if pending_bits > 0 {
        letters.push(letter(pending << (LETTER_BITS - pending_bits)));
    }
    letters
}

fn letter(value: u32) -> char {
    char::from(ALPHABET[(value % 32) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back_from_their_letters() {
        let mut bytes = [0; COMMIT_ID_BYTES];
        for (position, byte) in bytes.iter_mut().enumerate() {
            *byte = (position * 37 + 11) as u8;
        }
        let id = CommitId(bytes);
        let text = id.to_string();
        assert_eq!(text.len(), COMMIT_ID_LETTERS);
        assert_eq!(CommitId::parse(&text), Some(id));
        assert_eq!(CommitId([0; 20]).to_string(), "0".repeat(32));
        assert_eq!(CommitId([255; 20]).to_string(), "v".repeat(32));
        // RFC 4648's examples, in lower case and without padding.
        for (plain, coded) in [("f", "co"), ("fo", "cpng"), ("foobar", "cpnmuoj1e8")] {
            assert_eq!(letters(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn strings_that_are_no_ids_are_refused() {
        let long = "0".repeat(33);
        for wrong in ["", "0123", "w".repeat(32).as_str(), "A".repeat(32).as_str(), &long] {
            assert_eq!(CommitId::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_prefix_is_a_range() {
        let id = CommitId([0xa5; 20]);
        let text = id.to_string();
        for count in 0..=COMMIT_ID_LETTERS {
            let (first, last) = prefix_range(&text[..count]).expect("letters of the alphabet");
            assert!(first <= id && id <= last, "{count} letters");
            assert!(first.to_string().starts_with(&text[..count]));
            assert!(last.to_string().starts_with(&text[..count]));
        }
        assert_eq!(prefix_range("xyzw"), None);
        assert_eq!(prefix_range("ä"), None);
    }
}
