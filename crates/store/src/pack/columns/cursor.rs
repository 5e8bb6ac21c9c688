//! Numbers and strings in a stream of columns: a varint has seven bits a byte, the lowest first,
//! and the top bit where more follow; a signed one is zigzag (0, -1, 1, -2 ... as 0, 1, 2, 3 ...).
//!
//! Reading checks every length against what is left, and ends in `None`.

const VARINT_BITS: u32 = 7;
const VARINT_GOES_ON: u8 = 1 << VARINT_BITS;

/// The rest of a stream.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    /// The bytes that the content has at least beside the strings of the dictionaries that were
    /// read: each of these stands somewhere in it.
    pub(super) content_bytes: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], content_bytes: usize) -> Reader<'a> {
        Reader { rest: bytes, content_bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    pub(super) fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(VARINT_BITS as usize) {
            let byte = self.byte()?;
            let bits = u64::from(byte & !VARINT_GOES_ON);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte & VARINT_GOES_ON == 0 {
                return Some(number);
            }
        }
        None
    }

    pub(super) fn signed(&mut self) -> Option<i64> {
        let number = self.varint()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// A number that is at most `max`.
    pub(super) fn count(&mut self, max: usize) -> Option<usize> {
        usize::try_from(self.varint()?).ok().filter(|count| *count <= max)
    }

    /// A string behind its length.
    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        let bytes = self.count(self.rest.len())?;
        self.take(bytes)
    }
}

pub(super) fn write_varint(out: &mut Vec<u8>, mut number: u64) {
    while u64::from(VARINT_GOES_ON) <= number {
        out.push(number as u8 | VARINT_GOES_ON);
        number >>= VARINT_BITS;
    }
    out.push(number as u8);
}

pub(super) fn write_signed(out: &mut Vec<u8>, number: i64) {
    write_varint(out, zigzag(number));
}

pub(super) fn write_string(out: &mut Vec<u8>, string: &[u8]) {
    write_varint(out, string.len() as u64);
    out.extend_from_slice(string);
}

/// Returns how many bytes [`write_signed`] takes.
pub(super) fn signed_bytes(number: i64) -> usize {
    let bits = u64::BITS - (zigzag(number) | 1).leading_zeros();
    bits.div_ceil(VARINT_BITS) as usize
}

fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A size above the content of any column here.
    const CONTENT_BYTES: usize = 100;

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, -1, 63, 64, -64, -65, 300, i64::MAX, i64::MIN] {
            let mut bytes = Vec::new();
            write_signed(&mut bytes, number);
            assert_eq!(signed_bytes(number), bytes.len(), "{number}");
            let mut reader = Reader::new(&bytes, CONTENT_BYTES);
            assert_eq!(reader.signed(), Some(number));
            assert!(reader.is_empty());
            assert_eq!(Reader::new(&bytes[..bytes.len() - 1], CONTENT_BYTES).signed(), None);
        }
    }

    #[test]
    fn overlong_varints_are_refused() {
        assert_eq!(Reader::new(&[0xff; 11], CONTENT_BYTES).varint(), None);
        let mut beyond = [0xff; 10];
        beyond[9] = 0x02;
        assert_eq!(Reader::new(&beyond, CONTENT_BYTES).varint(), None, "a bit beyond the 64th");
        assert_eq!(Reader::new(&[3, b'a', b'b'], CONTENT_BYTES).string(), None);
        assert_eq!(Reader::new(&[2, b'a', b'b'], CONTENT_BYTES).string(), Some(&b"ab"[..]));
        assert_eq!(Reader::new(&[5], CONTENT_BYTES).count(4), None);
    }
}
