//! JSON objects one after another, or in one array, cut from a stream.
//!
//! The cutter knows just enough JSON to find where an object ends: strings, escapes, and brackets.
//! The text between is parsed as extended JSON. Where an object can't be whole, the cutter says so
//! and goes on at the next place where one can begin:
//! - a line break inside a string, which JSON forbids: the string's quote is missing;
//! - an opening brace where JSON wants a comma first: the one before was not closed.
//!
//! Where an object that can't be whole has swallowed lines one of which begins with a brace, as
//! each does in a file of JSON lines, the cutter goes on there. So one broken line of such a file
//! costs that line only. The text of a long object isn't gathered: the record's receiver reads it
//! while the cutter goes on.

use std::io::{BufRead, Read};
use std::sync::mpsc::SyncSender;

use frond_doc::{DocumentBuf, extended_json};

use crate::failure::Failure;
use crate::input::window::Window;
use crate::input::{
    BIT_BYTES, DocumentEncoding, Parsed, Record, STREAMED_TEXT_BYTES_MIN, Text, broken,
};

/// A longer text gets room for all that is gathered of one at once: growing by halves it would take
/// three times that for a moment.
const GROWING_BYTES_MAX: usize = 1 << 20;

/// An object that can't be whole is looked through for others up to this length.
const SWALLOWED_BYTES_MAX: usize = 64 << 10;

/// The place of the cutter between objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// Nothing read yet: an array may begin.
    Start,
    /// Among objects that follow one another.
    Sequence,
    /// In an array, before its first element or behind a comma.
    Element,
    /// In an array, behind an element.
    AfterElement,
    /// Behind the end, or behind something that nothing can be read after.
    End,
}

/// The end of an object's text.
enum Cut {
    Whole,
    Broken(&'static str),
    /// Not yet, and it is long.
    Long(Scanner),
}

/// Objects of a stream of JSON.
pub struct JsonSource<R> {
    reader: Window<R>,
    line: u64,
    place: Place,
    text: Vec<u8>,
    /// The buffer in which documents are built.
    scratch: Vec<u8>,
    /// The length of the text of the last object that was read where it lay.
    object_bytes: usize,
    /// Objects of more text are streamed.
    streamed_bytes_min: usize,
    /// An object that is being streamed.
    streamed: Option<Streamed>,
}

/// An object whose text goes to another thread.
struct Streamed {
    /// `None` when the receiver is gone.
    sender: Option<SyncSender<Vec<u8>>>,
    scanner: Scanner,
    /// The place of the cutter behind it.
    after: Place,
}

impl<R: Read> JsonSource<R> {
    /// Reads objects from `reader`.
    pub fn new(reader: Window<R>) -> JsonSource<R> {
        JsonSource {
            reader,
            line: 1,
            place: Place::Start,
            text: Vec::new(),
            scratch: Vec::new(),
            object_bytes: 0,
            streamed_bytes_min: STREAMED_TEXT_BYTES_MIN,
            streamed: None,
        }
    }

    fn next_record(&mut self) -> Result<Option<Record>, Failure> {
        loop {
            let Some(byte) = self.peek_solid()? else { return Ok(self.at_end()) };
            match (self.place, byte) {
                (Place::End, _) => return Ok(None),
                (Place::Start, b'[') => self.step(Place::Element),
                (Place::Start | Place::Sequence, b'{') => return self.object(Place::Sequence),
                (Place::Element, b'{') => return self.object(Place::AfterElement),
                (Place::AfterElement, b',') => self.step(Place::Element),
                (Place::Element | Place::AfterElement, b']') => self.step_out(),
                (Place::Start | Place::Sequence, other) => return self.skip_line(other).map(Some),
                (Place::Element | Place::AfterElement, other) => {
                    let expected_text =
                        if self.place == Place::Element { "an object" } else { "a comma or ]" };
                    self.place = Place::End;
                    return Ok(Some(self.problem(self.line, &expected(expected_text, other))));
                }
            }
        }
    }

    /// Returns the error of an input that ends too early, if it does.
    fn at_end(&mut self) -> Option<Record> {
        let is_open = matches!(self.place, Place::Element | Place::AfterElement);
        self.place = Place::End;
        is_open.then(|| self.problem(self.line, "the array is not closed: the input is cut off"))
    }

    fn step(&mut self, place: Place) {
        self.reader.consume(1);
        self.place = place;
    }

    /// Behind an array only white space may follow, which [`Place::Sequence`] also takes; an object
    /// there is taken too, as mongoimport does.
    fn step_out(&mut self) {
        self.step(Place::Sequence);
    }

    fn problem(&self, line: u64, what: &str) -> Record {
        Record { line, document: Err(what.to_owned()) }
    }

    /// Reports a line that no object begins on, and skips the rest of it.
    fn skip_line(&mut self, found: u8) -> Result<Record, Failure> {
        let record = self.problem(self.line, &expected("an object", found));
        self.place = Place::Sequence;
        loop {
            let available = self.reader.fill_buf().map_err(|error| broken(self.line, &error))?;
            if available.is_empty() {
                return Ok(record);
            }
            if let Some(end) = available.iter().position(|byte| *byte == b'\n') {
                self.reader.consume(end); // The line break is counted with the white space.
                return Ok(record);
            }
            let count = available.len();
            self.reader.consume(count);
        }
    }

    /// Reads an object, whose brace was seen.
    fn object(&mut self, after: Place) -> Result<Option<Record>, Failure> {
        let line = self.line;
        if let Some(document) = self.whole_object()? {
            self.place = after;
            return Ok(Some(Record { line, document: Ok(Parsed::Whole(document)) }));
        }
        let cut = self.cut()?;
        self.place = after;
        let document = match cut {
            Cut::Long(scanner) => {
                let (sender, text) = Text::channel(DocumentEncoding::Json);
                // The first bit waits in the channel.
                let sent = sender.send(std::mem::take(&mut self.text)).is_ok();
                let sender = Some(sender).filter(|_| sent);
                self.streamed = Some(Streamed { sender, scanner, after });
                return Ok(Some(Record { line, document: Ok(Parsed::Streamed(text)) }));
            }
            Cut::Broken(what) => {
                match swallowed(&self.text) {
                    _ if after == Place::AfterElement => self.place = Place::End,
                    Some(swallowed) => {
                        self.line -= line_breaks(swallowed);
                        self.reader.put_back(swallowed);
                    }
                    None => {}
                }
                Err(what.to_owned())
            }
            Cut::Whole => match std::str::from_utf8(&self.text) {
                Ok(text) => {
                    let parsed = extended_json::parse(text).map_err(|error| error.to_string());
                    parsed.map(Parsed::Whole)
                }
                Err(_) => Err("the text is not UTF-8".to_owned()),
            },
        };
        Ok(Some(Record { line, document }))
    }

    /// Reads an object where it lies; `None` if it isn't right, or too long for that.
    ///
    /// Objects are mostly as long as the one before: where less is there, more is read first, so
    /// that few are begun in vain. Each attempt has twice the text of the one before. One that ends
    /// within its text and can't be read is wrong whatever follows: nothing more is read for it.
    fn whole_object(&mut self) -> Result<Option<DocumentBuf>, Failure> {
        let mut wanted_bytes = self.object_bytes;
        loop {
            let (available, is_full) = (self.reader.available(), self.reader.is_full());
            if wanted_bytes <= available.len() || is_full {
                let read = extended_json::parse_first(available, &mut self.scratch);
                if let Some((document, count)) = read {
                    if self.streamed_bytes_min < count {
                        return Ok(None);
                    }
                    self.line += line_breaks(&available[..count]);
                    self.reader.consume(count);
                    self.object_bytes = count;
                    return Ok(Some(document));
                }
                if is_full || Scanner::default().scan(available).1.is_some() {
                    return Ok(None);
                }
                wanted_bytes = 2 * available.len();
            }
            self.reader.read_more().map_err(|error| broken(self.line, &error))?;
        }
    }

    /// Sends the rest of an object that is being streamed.
    fn send_rest(&mut self, mut streamed: Streamed) -> Result<(), Failure> {
        loop {
            let available = self.reader.fill_buf().map_err(|error| broken(self.line, &error))?;
            if available.is_empty() {
                return Ok(()); // Its reader finds that it isn't closed.
            }
            let available = &available[..available.len().min(BIT_BYTES)];
            let (count, found) = streamed.scanner.scan(available);
            if let Some(sender) = &streamed.sender
                && sender.send(available[..count].to_vec()).is_err()
            {
                streamed.sender = None; // It was refused: the rest is passed over.
            }
            self.line += line_breaks(&available[..count]);
            self.reader.consume(count);
            match found {
                None => {}
                Some(Cut::Broken(_)) if streamed.after == Place::AfterElement => {
                    self.place = Place::End;
                    return Ok(());
                }
                Some(_) => return Ok(()),
            }
        }
    }

    /// Copies an object's text to `self.text`.
    fn cut(&mut self) -> Result<Cut, Failure> {
        self.text.clear();
        let mut scanner = Scanner::default();
        loop {
            let available = self.reader.fill_buf().map_err(|error| broken(self.line, &error))?;
            if available.is_empty() {
                return Ok(Cut::Broken("the object is not closed: the input is cut off"));
            }
            let (count, found) = scanner.scan(available);
            if GROWING_BYTES_MAX < self.text.len() {
                let room = self.streamed_bytes_min.saturating_sub(self.text.len()) + count;
                self.text.reserve_exact(room);
            }
            self.text.extend_from_slice(&available[..count]);
            self.line += line_breaks(&available[..count]);
            self.reader.consume(count);
            if let Some(cut) = found {
                return Ok(cut);
            }
            if self.text.len() > self.streamed_bytes_min {
                return Ok(Cut::Long(scanner));
            }
        }
    }

    /// Skips white space; returns the byte behind it, which stays.
    fn peek_solid(&mut self) -> Result<Option<u8>, Failure> {
        loop {
            let available = self.reader.fill_buf().map_err(|error| broken(self.line, &error))?;
            if available.is_empty() {
                return Ok(None);
            }
            let solid = available.iter().position(|byte| !byte.is_ascii_whitespace());
            let count = solid.unwrap_or(available.len());
            let byte = available.get(count).copied();
            self.line += line_breaks(&available[..count]);
            self.reader.consume(count);
            if byte.is_some() {
                return Ok(byte);
            }
        }
    }
}

impl<R: Read> Iterator for JsonSource<R> {
    type Item = Result<Record, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(streamed) = self.streamed.take()
            && let Err(failure) = self.send_rest(streamed)
        {
            self.place = Place::End;
            return Some(Err(failure));
        }
        if self.place == Place::End {
            return None;
        }
        self.next_record().inspect_err(|_| self.place = Place::End).transpose()
    }
}

/// Returns the part of a broken object's text that belongs to another object: all from its first
/// line that begins with a brace. Where its own first line is no more than a brace, its lines are
/// those of one object. Of long texts it returns nothing: each of a million broken lines would be
/// read to the end again.
fn swallowed(text: &[u8]) -> Option<&[u8]> {
    if SWALLOWED_BYTES_MAX < text.len() {
        return None;
    }
    let first = text.iter().position(|byte| *byte == b'\n')?;
    let is_line = text[..first].trim_ascii().len() > 1;
    let begins = text.windows(2).position(|pair| pair == b"\n{").filter(|_| is_line)?;
    Some(&text[begins + 1..])
}

fn line_breaks(bytes: &[u8]) -> u64 {
    // Counts that fit a byte are added many at a time.
    let few = |bytes: &[u8]| bytes.iter().map(|byte| u8::from(*byte == b'\n')).sum::<u8>();
    bytes.chunks(usize::from(u8::MAX)).map(|bytes| u64::from(few(bytes))).sum()
}

fn expected(expected_text: &str, found: u8) -> String {
    match found {
        0x21..0x7f => format!("expected {expected_text}, found {:?}", char::from(found)),
        _ => format!("expected {expected_text}, found byte 0x{found:02x}"),
    }
}

/// Finds the end of an object, through any number of buffers.
#[derive(Default)]
struct Scanner {
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
    /// The last byte outside strings that is not white space.
    previous: u8,
}

impl Scanner {
    /// Returns how many bytes belong to the object and, if it ends there, how.
    fn scan(&mut self, bytes: &[u8]) -> (usize, Option<Cut>) {
        for (position, &byte) in bytes.iter().enumerate() {
            if self.is_in_string {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => self.is_in_string = false,
                    b'\n' => return (position, Some(Cut::Broken("a string is not closed"))),
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.is_in_string = true,
                b'{' if self.depth > 0 && !matches!(self.previous, b':' | b',' | b'[') => {
                    return (position, Some(Cut::Broken("the object is not closed")));
                }
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth -= 1; // Positive since the first byte, a brace.
                    if self.depth == 0 {
                        return (position + 1, Some(Cut::Whole));
                    }
                }
                _ => {}
            }
            if !byte.is_ascii_whitespace() {
                self.previous = byte;
            }
        }
        (bytes.len(), None)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// Checks, whatever the reader's buffer holds, the line of each record and the value of its
    /// `a`, or a part of what is wrong.
    fn check(text: &str, expected: &[(u64, Result<i64, &str>)]) {
        for buffer_bytes in [1, 2, 7, 1000] {
            let reader = Window::new(text.as_bytes(), buffer_bytes, 2 * buffer_bytes);
            let records: Vec<Record> = JsonSource::new(reader).map(Result::unwrap).collect();
            assert_eq!(records.len(), expected.len(), "{text}");
            for (record, (line, expected)) in records.iter().zip(expected) {
                assert_eq!(record.line, *line, "{text}");
                match (&record.document, expected) {
                    (Ok(Parsed::Whole(document)), Ok(value)) => {
                        let found = document.get("a").and_then(|value| value.as_integer());
                        assert_eq!(found, Some(*value), "{text}");
                    }
                    (Err(error), Err(part)) => assert!(error.contains(part), "{error}: {text}"),
                    _ => panic!("expected {expected:?}: {text}"),
                }
            }
        }
    }

    #[test]
    fn three_shapes() {
        check("", &[]);
        check("{\"a\":1}\n{\"a\":2}\n", &[(1, Ok(1)), (2, Ok(2))]);
        check("{\"a\":1}{\"a\":2}", &[(1, Ok(1)), (1, Ok(2))]);
        check("\n{\n\"a\":1\n}\r\n\n{\"a\":2}", &[(2, Ok(1)), (6, Ok(2))]);
        check("[]", &[]);
        check("[{\"a\":1},\n {\"a\":2}]\n", &[(1, Ok(1)), (2, Ok(2))]);
    }

    #[test]
    fn brackets_in_strings_are_text() {
        check(r#"{"b":"}{\"","c":"\\","a":1}"#, &[(1, Ok(1))]);
        check(r#"{"b":[{"c":{}},[{}]],"a":3}"#, &[(1, Ok(3))]);
    }

    #[test]
    fn a_broken_line_costs_that_line() {
        let good = "{\"a\":2}\n";
        for (bad, part) in [
            ("{\"a\": \"x}\n", "string is not closed"),
            ("{\"a\": 1\n", "not closed"),
            ("{\"a\":\n", "not closed"),
            ("{\"a\": 1,\n", "not closed"),
            ("{\"a\": [\n", "not closed"),
            ("a,b\n", "expected an object, found 'a'"),
            ("\u{1}\n", "byte 0x01"),
        ] {
            check(&format!("{bad}{good}"), &[(1, Err(part)), (2, Ok(2))]);
            let more = &format!("{bad}{good}{{\"a\":3}}\n");
            check(more, &[(1, Err(part)), (2, Ok(2)), (3, Ok(3))]);
        }
        // These lines are of one object.
        let lines = "{\n\"b\":\n{\n\"a\": 1\n}\n";
        check(&format!("{lines}{{\"a\":2}}"), &[(1, Err("not closed")), (6, Ok(2))]);
        check("{\"a\":1}\n{\"a\"", &[(1, Ok(1)), (2, Err("cut off"))]);
    }

    /// However large the window may become.
    #[test]
    fn no_more_is_read_than_a_broken_line() {
        for bad in ["{\"a\": 1,, \"b\": 2}", "{'a': 1}", "{\"a\": \"x}", "{\"a\": 1"] {
            let text = format!("{bad}\n").repeat(5_000);
            let mut left = text.as_bytes();
            let mut source = JsonSource::new(Window::new(&mut left, 64, 1 << 20));
            for line in 1..=5 {
                let record = source.next().expect("a line").expect("it is read");
                assert!(record.line == line && record.document.is_err(), "{bad}");
            }
            drop(source);
            let read = text.len() - left.len();
            assert!(read < 1_000, "{read} bytes were read: {bad}");
        }
    }

    #[test]
    fn nothing_is_read_behind_a_broken_array() {
        check("[{\"a\":1}", &[(1, Ok(1)), (1, Err("array is not closed"))]);
        check("[{\"a\":1} {\"a\":2}]", &[(1, Ok(1)), (1, Err("a comma or ]"))]);
        check("[1]", &[(1, Err("expected an object"))]);
    }

    /// A long object's text goes to its reader, even if that stops early.
    #[test]
    fn long_objects_are_streamed() {
        let long = format!("{{\"b\": \"{}\"}}", "x}{".repeat(1000));
        let text = format!("[{{\"a\":1}}, {long},\n{long}, {{\"a\":2}}]");
        let reader = Window::new(std::io::Cursor::new(text), 100, 200);
        let source = JsonSource { streamed_bytes_min: 500, ..JsonSource::new(reader) };
        let (sender, receiver) = std::sync::mpsc::sync_channel(0);
        let reading = std::thread::spawn(move || {
            source.for_each(|record| sender.send(record.unwrap()).unwrap());
        });
        let mut found = Vec::new();
        for record in receiver {
            match record.document.unwrap() {
                Parsed::Whole(document) => found.push((record.line, document.iter().count())),
                Parsed::Streamed(mut streamed) if record.line == 1 => {
                    let mut whole = String::new();
                    streamed.read_to_string(&mut whole).unwrap();
                    assert_eq!(whole, long);
                    found.push((1, 0));
                }
                Parsed::Streamed(_) => found.push((2, 0)),
            }
        }
        reading.join().unwrap();
        assert_eq!(found, [(1, 1), (1, 0), (2, 0), (2, 1)]);
    }
}
