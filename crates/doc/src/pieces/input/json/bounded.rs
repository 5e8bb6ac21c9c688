//! A reader of JSON that ends with an error in a string that is too long to be any document's: a
//! small compressed file may hold one without an end, and serde holds it whole.

use std::io::{self, Read};

/// The longest text of a string: that of 2 GiB, the largest document, as base64.
const STRING_BYTES_MAX: u64 = 3 << 30;

/// The reader.
pub struct Bounded<R> {
    reader: R,
    bytes_max: u64,
    /// The length of the string that is being read; `None` between strings.
    string_bytes: Option<u64>,
    /// Whether a backslash came before.
    is_escaped: bool,
    /// Whether a string was too long.
    is_exceeded: bool,
}

impl<R: Read> Bounded<R> {
    /// Reads what `reader` does.
    pub fn new(reader: R) -> Bounded<R> {
        let (bytes_max, string_bytes) = (STRING_BYTES_MAX, None);
        Bounded { reader, bytes_max, string_bytes, is_escaped: false, is_exceeded: false }
    }

    /// Follows what was read: where strings begin and end.
    fn follow(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match &mut self.string_bytes {
                None if *byte == b'"' => self.string_bytes = Some(0),
                None => {}
                Some(_) if *byte == b'"' && !self.is_escaped => self.string_bytes = None,
                Some(count) => {
                    *count += 1;
                    self.is_exceeded |= self.bytes_max < *count;
                    self.is_escaped = *byte == b'\\' && !self.is_escaped;
                }
            }
        }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.follow(&buffer[..count]);
        if self.is_exceeded {
            let what = format!("a string of more than {} bytes", self.bytes_max);
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `text` in steps of so many bytes.
    fn read(text: &str, step: usize) -> Option<String> {
        let mut reader = Bounded { bytes_max: 8, ..Bounded::new(text.as_bytes()) };
        let (mut read, mut part) = (Vec::new(), vec![0; step]);
        loop {
            match reader.read(&mut part).ok()? {
                0 => return String::from_utf8(read).ok(),
                count => read.extend_from_slice(&part[..count]),
            }
        }
    }

    #[test]
    fn strings_are_bounded_and_nothing_else() {
        for (text, is_read) in [
            (r#"{"a": "12345678"}"#, true),
            (r#"{"a": "123456789"}"#, false),
            (r#"{"123456789": 1}"#, false),
            (r#"{"a": 123456789012345678}"#, true),
            (r#"["1", "2", "3", "4", "5", "6"]"#, true),
            (r#"["a\"b", "c\\", "d\\\"e"]"#, true),
            (r#"["a\"12345678"]"#, false),
            (r#"["\\", 123456789, "\\"]"#, true),
        ] {
            for step in [1, 2, 3, 5, 1 << 10] {
                assert_eq!(read(text, step).as_deref(), is_read.then_some(text), "{text} {step}");
            }
        }
    }
}
