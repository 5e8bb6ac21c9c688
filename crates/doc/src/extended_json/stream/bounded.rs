//! A reader of JSON that ends with an error in a string that is too long to be any document's: a
//! small compressed file may hold one without an end, and serde holds it whole.

use std::io::{self, Read};

/// The longest text of a string: that of 2 GiB, the largest document, as base64.
const STRING_BYTES_MAX: u64 = 3 << 30;

/// The reader.
pub struct Bounded<R> {
    reader: R,
    bytes_max: u64,
    /// Of the string that is being read; `None` between strings.
    string_bytes: Option<u64>,
    /// Whether a backslash came before.
    is_escaped: bool,
}

impl<R: Read> Bounded<R> {
    /// Reads what `reader` does.
    pub fn new(reader: R) -> Bounded<R> {
        Bounded { reader, bytes_max: STRING_BYTES_MAX, string_bytes: None, is_escaped: false }
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
        match self.string_bytes {
            Some(bytes) if bytes > self.bytes_max => {
                let what = format!("a string of more than {} bytes", self.bytes_max);
                Err(io::Error::new(io::ErrorKind::InvalidData, what))
            }
            _ => Ok(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn read(text: &str, step: usize) -> Option<String> {
        let reader = Bounded { bytes_max: 8, ..Bounded::new(text.as_bytes()) };
        let mut read = String::new();
        // It asks for so many bytes at a time.
        BufReader::with_capacity(step, reader).take(1 << 20).read_to_string(&mut read).ok()?;
        Some(read)
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
            for step in [1, 2, 3, 5] {
                assert_eq!(read(text, step).as_deref(), is_read.then_some(text), "{text} {step}");
            }
            // At once, it is known of a string that has ended only that it was there.
            assert!(!is_read || read(text, 1 << 10).as_deref() == Some(text), "{text}");
        }
    }
}
