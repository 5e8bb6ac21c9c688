//! JSON text straight into BSON: one pass over the bytes, and no memory but the document's.
//!
//! 1. A name or a string is copied where it will stand: what comes before it, a type or a length,
//!    is left open and filled in.
//! 2. An object whose first name is a wrapper's becomes a document first, is converted when it
//!    ends, and gives way to the value. The commonest, of one short text, become the value at once
//!    ([`short`]).
//! 3. What isn't JSON, or no document's, ends in `None`, and so does text that ends too soon.
//!    Recursion is bounded by the documents' own depth; what only wrappers make deeper is given
//!    up, too.

use super::plain::append_plain;
use super::{short, wrapper};
use crate::builder::{append_value, position_name};
use crate::document::{DEPTH_MAX, Document};
use crate::element_type::ElementType;

/// Appends the object that `text` begins with, behind white space, to `out`, which is empty;
/// returns where it ends.
pub(super) fn read(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let mut reader = Reader { text, at: 0, out };
    reader.skip_white();
    reader.take(b'{')?;
    reader.fields(1)?;
    Some(reader.at)
}

/// Whether a byte may stand between what JSON consists of.
pub(super) fn is_white(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    out: &'t mut Vec<u8>,
}

impl Reader<'_> {
    fn next(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn take(&mut self, wanted: u8) -> Option<()> {
        let is_there = self.next()? == wanted;
        self.at += 1;
        is_there.then_some(())
    }

    #[inline(always)]
    fn skip_white(&mut self) {
        while self.next().is_some_and(is_white) {
            self.at += 1;
        }
    }

    /// Behind an opening brace: reads to the closing one. Returns whether the first name is a
    /// wrapper's.
    fn fields(&mut self, depth: usize) -> Option<bool> {
        let start = self.begin()?;
        let mut may_be_wrapper = false;
        self.skip_white();
        if self.next()? == b'}' {
            self.at += 1;
            self.end(start)?;
            return Some(false);
        }
        loop {
            self.skip_white();
            self.take(b'"')?;
            let kind_at = self.out.len();
            self.out.push(0);
            let has_escapes = self.text_to_quote()?;
            let name = &self.out[kind_at + 1..];
            if has_escapes && name.contains(&0) {
                return None;
            }
            if kind_at == start + size_of::<i32>() && name.first() == Some(&b'$') {
                may_be_wrapper = std::str::from_utf8(name).is_ok_and(wrapper::is_wrapper);
            }
            self.out.push(0);
            self.skip_white();
            self.take(b':')?;
            self.skip_white();
            self.value(kind_at, depth)?;
            self.skip_white();
            match self.next()? {
                b',' => self.at += 1,
                b'}' => break,
                _ => return None,
            }
        }
        self.at += 1;
        self.end(start)?;
        Some(may_be_wrapper)
    }

    /// Behind an opening bracket: reads to the closing one.
    fn elements(&mut self, depth: usize) -> Option<()> {
        let start = self.begin()?;
        self.skip_white();
        if self.next()? == b']' {
            self.at += 1;
            return self.end(start);
        }
        let mut digits = [0; 20];
        for position in 0.. {
            let kind_at = self.out.len();
            self.out.push(0);
            self.out.extend_from_slice(position_name(position, &mut digits).as_bytes());
            self.out.push(0);
            self.skip_white();
            self.value(kind_at, depth)?;
            self.skip_white();
            match self.next()? {
                b',' => self.at += 1,
                b']' => break,
                _ => return None,
            }
        }
        self.at += 1;
        self.end(start)
    }

    /// Leaves a length open; returns where.
    fn begin(&mut self) -> Option<usize> {
        let start = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        Some(start)
    }

    /// Ends what began at `start`.
    fn end(&mut self, start: usize) -> Option<()> {
        self.out.push(0);
        let length = i32::try_from(self.out.len() - start).ok()?;
        self.fill(start, length);
        Some(())
    }

    fn fill(&mut self, at: usize, length: i32) {
        self.out[at..at + size_of::<i32>()].copy_from_slice(&length.to_le_bytes());
    }

    /// Reads a value behind its name, and fills in its type. `depth` is that of the container.
    fn value(&mut self, kind_at: usize, depth: usize) -> Option<()> {
        let kind = match self.next()? {
            b'"' => {
                self.at += 1;
                let start = self.begin()?;
                self.text_to_quote()?;
                self.out.push(0);
                let length = i32::try_from(self.out.len() - start - size_of::<i32>()).ok()?;
                self.fill(start, length);
                ElementType::String as u8
            }
            b'{' if depth < DEPTH_MAX => {
                if let Some(kind) = self.short_wrapper() {
                    self.out[kind_at] = kind as u8;
                    return Some(());
                }
                self.at += 1;
                let start = self.out.len();
                match self.fields(depth + 1)? {
                    true => self.convert(start)?,
                    false => ElementType::Document as u8,
                }
            }
            b'[' if depth < DEPTH_MAX => {
                self.at += 1;
                self.elements(depth + 1)?;
                ElementType::Array as u8
            }
            b't' => self.word(b"true", &[1], ElementType::Boolean)?,
            b'f' => self.word(b"false", &[0], ElementType::Boolean)?,
            b'n' => self.word(b"null", &[], ElementType::Null)?,
            _ => self.number()?,
        };
        self.out[kind_at] = kind;
        Some(())
    }

    fn word(&mut self, word: &[u8], value: &[u8], kind: ElementType) -> Option<u8> {
        if !self.text[self.at..].starts_with(word) {
            return None;
        }
        self.at += word.len();
        self.out.extend_from_slice(value);
        Some(kind as u8)
    }

    /// An object that stands for a value and is as short as most of them.
    #[inline(always)]
    fn short_wrapper(&mut self) -> Option<ElementType> {
        let (kind, bytes) = short::read(&self.text[self.at..], self.out)?;
        self.at += bytes;
        Some(kind)
    }

    /// Puts the value in place of the document that stands for it, which began at `start`.
    fn convert(&mut self, start: usize) -> Option<u8> {
        let Some(value) = wrapper::convert(Document::from_validated(&self.out[start..])).ok()?
        else {
            return Some(ElementType::Document as u8);
        };
        self.out.truncate(start);
        append_value(self.out, value.as_value());
        Some(value.as_value().type_byte())
    }

    /// Behind a quote: appends what comes before the next one. Returns whether there were escapes.
    #[inline(always)]
    fn text_to_quote(&mut self) -> Option<bool> {
        let start = self.out.len();
        let (mut has_escapes, mut is_ascii) = (false, true);
        loop {
            let rest = &self.text[self.at..];
            let plain = append_plain(rest, self.out);
            is_ascii &= plain.is_ascii;
            self.at += plain.bytes + 1;
            match rest.get(plain.bytes)? {
                b'"' => break,
                b'\\' => self.escape()?,
                _ => return None,
            }
            has_escapes = true;
        }
        // What an escape stands for is UTF-8.
        let is_text = is_ascii || std::str::from_utf8(&self.out[start..]).is_ok();
        is_text.then_some(has_escapes)
    }

    /// Behind a backslash: appends what it stands for.
    fn escape(&mut self) -> Option<()> {
        let letter = self.next()?;
        self.at += 1;
        let byte = match letter {
            b'"' | b'\\' | b'/' => letter,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let letter = self.escaped_letter()?;
                self.out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                return Some(());
            }
            _ => return None,
        };
        self.out.push(byte);
        Some(())
    }

    /// Behind `\u`: a letter, of two such escapes beyond the first plane.
    fn escaped_letter(&mut self) -> Option<char> {
        let first = self.four_digits()?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        self.take(b'\\')?;
        self.take(b'u')?;
        let second = self.four_digits()?.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
        char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + second)
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        digits
            .iter()
            .try_fold(0, |number, digit| Some(number << 4 | char::from(*digit).to_digit(16)?))
    }

    /// Reads a number: an int if it is one that fits, a long, or a double.
    fn number(&mut self) -> Option<u8> {
        let start = self.at;
        let is_negative = self.next()? == b'-';
        self.at += usize::from(is_negative);
        let mut digits = Digits::default();
        let whole = self.digits(&mut digits)?;
        if whole > 1 && self.text[self.at - whole] == b'0' {
            return None;
        }
        let (mut behind_point, mut has_exponent) = (0, false);
        if self.next() == Some(b'.') {
            self.at += 1;
            behind_point = self.digits(&mut digits)?;
        }
        if let Some(b'e' | b'E') = self.next() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.next() {
                self.at += 1;
            }
            self.digits(&mut Digits::default())?;
            has_exponent = true;
        }
        // It may go on: what is cut off here is no number yet.
        self.next()?;
        let text = &self.text[start..self.at];
        if behind_point == 0
            && !has_exponent
            && let Some(number) = integer(text, digits, is_negative)
        {
            return Some(self.integer(number));
        }
        let number = match digits.over_power_of_ten(behind_point) {
            Some(number) if !has_exponent => {
                if is_negative {
                    -number
                } else {
                    number
                }
            }
            _ => std::str::from_utf8(text).ok()?.parse().ok()?,
        };
        self.out.extend_from_slice(&f64::to_le_bytes(number));
        number.is_finite().then_some(ElementType::Double as u8)
    }

    fn integer(&mut self, number: i64) -> u8 {
        match i32::try_from(number) {
            Ok(number) => {
                self.out.extend_from_slice(&number.to_le_bytes());
                ElementType::Int32 as u8
            }
            Err(_) => {
                self.out.extend_from_slice(&number.to_le_bytes());
                ElementType::Int64 as u8
            }
        }
    }

    /// Reads one digit or more; returns how many.
    #[inline(always)]
    fn digits(&mut self, digits: &mut Digits) -> Option<usize> {
        let start = self.at;
        while let Some(digit @ b'0'..=b'9') = self.next() {
            digits.push(digit);
            self.at += 1;
        }
        (start < self.at).then_some(self.at - start)
    }
}

/// The digits of a number, as long as they are few.
#[derive(Clone, Copy, Default)]
struct Digits {
    number: u64,
    count: usize,
}

impl Digits {
    /// So many fit a signed number of 64 bits.
    const COUNT_MAX: usize = 18;

    #[inline(always)]
    fn push(&mut self, digit: u8) {
        self.number = self.number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        self.count += 1;
    }

    /// The number, if its digits are few.
    fn whole(self) -> Option<u64> {
        (self.count <= Digits::COUNT_MAX).then_some(self.number)
    }

    /// The double that is nearest to the number with so many digits behind the point: both of which
    /// it is the quotient are doubles, and division rounds once (W. D. Clinger, How to Read
    /// Floating Point Numbers Accurately, 1990).
    fn over_power_of_ten(self, behind_point: usize) -> Option<f64> {
        const EXACT_MAX: u64 = 1 << f64::MANTISSA_DIGITS;
        let number = self.whole().filter(|number| *number <= EXACT_MAX)?;
        Some(number as f64 / POWERS_OF_TEN.get(behind_point)?)
    }
}

/// Powers of ten that are doubles, and as many as [`Digits`] are few.
static POWERS_OF_TEN: [f64; 19] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18,
];

/// A number without a point that fits 64 bits. One zero, with a sign, is none.
fn integer(text: &[u8], digits: Digits, is_negative: bool) -> Option<i64> {
    let number = match digits.whole() {
        Some(number) if is_negative => -(number as i64),
        Some(number) => number as i64,
        None => std::str::from_utf8(text).ok()?.parse().ok()?,
    };
    (!is_negative || number != 0).then_some(number)
}
