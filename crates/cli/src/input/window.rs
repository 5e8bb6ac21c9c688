//! A stream as it is read: what lies in memory of it can be looked at before it is consumed, and
//! more brought in behind it.

use std::io::{self, BufRead, Read};

/// A buffer that grows where what is looked at doesn't fit.
pub struct Window<R> {
    reader: R,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    bytes_max: usize,
    is_at_end: bool,
}

impl<R: Read> Window<R> {
    /// Holds `bytes` of `reader`, up to `bytes_max` if it must.
    pub fn new(reader: R, bytes: usize, bytes_max: usize) -> Window<R> {
        Window { reader, bytes: vec![0; bytes], start: 0, end: 0, bytes_max, is_at_end: false }
    }

    /// Returns the bytes in memory.
    pub fn available(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Puts bytes that were consumed back in front of what lies in memory.
    pub fn put_back(&mut self, bytes: &[u8]) {
        match self.start.checked_sub(bytes.len()) {
            Some(start) => {
                self.bytes[start..self.start].copy_from_slice(bytes);
                self.start = start;
            }
            None => {
                self.bytes = [bytes, self.available()].concat();
                (self.start, self.end) = (0, self.bytes.len());
            }
        }
    }

    /// Whether nothing more can be brought in: the stream is at its end, or the window as large as
    /// it may become.
    pub fn is_full(&self) -> bool {
        self.is_at_end || self.bytes_max <= self.end - self.start
    }

    /// Reads more behind what lies in memory. Nothing is lost of that.
    ///
    /// # Errors
    /// As the reader.
    pub fn read_more(&mut self) -> io::Result<()> {
        if self.is_full() {
            return Ok(());
        }
        if self.end == self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.bytes.len() {
            self.bytes.resize((2 * self.end).min(self.bytes_max), 0);
        }
        loop {
            match self.reader.read(&mut self.bytes[self.end..]) {
                Ok(count) => {
                    self.end += count;
                    self.is_at_end = count == 0;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl<R: Read> Read for Window<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(bytes)?;
        self.consume(count);
        Ok(count)
    }
}

impl<R: Read> BufRead for Window<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            self.read_more()?;
        }
        Ok(self.available())
    }

    fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives few bytes at a time.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let count = bytes.len().min(3);
            self.0.read(&mut bytes[..count])
        }
    }

    #[test]
    fn unconsumed_bytes_stay() {
        let text: Vec<u8> = (0..100).collect();
        let mut window = Window::new(Drip(&text), 4, 16);
        let (mut seen, mut longest) = (Vec::new(), 0);
        while !window.fill_buf().unwrap().is_empty() {
            while !window.is_full() {
                window.read_more().unwrap();
            }
            longest = longest.max(window.available().len());
            assert_eq!(window.available()[0], seen.len() as u8);
            seen.extend_from_slice(&window.available()[..1]);
            window.consume(1);
        }
        assert_eq!(seen, text);
        assert_eq!(longest, 16);
    }

    #[test]
    fn bytes_that_are_put_back_are_read_again() {
        let text: Vec<u8> = (0..100).collect();
        for count in [1, 3, 4, 30] {
            let mut window = Window::new(Drip(&text), 4, 16);
            let mut first = vec![0; count];
            window.read_exact(&mut first).unwrap();
            window.put_back(&first[count / 2..]);
            let mut rest = Vec::new();
            window.read_to_end(&mut rest).unwrap();
            assert_eq!(rest, text[count / 2..], "{count}");
        }
    }

    #[test]
    fn it_is_read_as_the_stream_is() {
        let text: Vec<u8> = (0..100).collect();
        let mut read = Vec::new();
        Window::new(Drip(&text), 4, 16).read_to_end(&mut read).unwrap();
        assert_eq!(read, text);
    }
}
