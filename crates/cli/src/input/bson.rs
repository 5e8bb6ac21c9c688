//! BSON: one document after another, as mongodump writes a collection.
//!
//! A document that isn't one costs only itself, as long as its length can be believed; its number
//! in the file stands for the line. One that is longer than a message may be is given as it comes.

use std::io::{ErrorKind, Read};
use std::sync::mpsc::SyncSender;

use frond_doc::DocumentBuf;
use frond_doc::document::DOCUMENT_BYTES_MAX;

use crate::failure::Failure;
use crate::input::{BIT_BYTES, DocumentEncoding, Parsed, Record, Text, broken};

/// A document's shortest form: its length and its end.
const DOCUMENT_BYTES_MIN: usize = 5;

/// Documents of a BSON file.
pub struct BsonSource<R> {
    reader: R,
    number: u64,
    is_over: bool,
    streamed: Option<Streamed>,
}

/// A document whose bytes go to another thread.
struct Streamed {
    sender: SyncSender<Vec<u8>>,
    /// The bytes that are still to be read of it.
    bytes_left: u64,
}

impl<R: Read> BsonSource<R> {
    /// The documents of `reader`.
    pub fn new(reader: R) -> BsonSource<R> {
        BsonSource { reader, number: 0, is_over: false, streamed: None }
    }

    fn next_record(&mut self) -> Result<Option<Record>, Failure> {
        let line = self.number + 1;
        let to_problem = |error| broken(line, &error);
        let mut bytes = Vec::new();
        let count = self.reader.by_ref().take(4).read_to_end(&mut bytes).map_err(to_problem)?;
        if count == 0 {
            return Ok(None);
        }
        self.number = line;
        let cut = || broken(line, &ErrorKind::UnexpectedEof.into());
        let length: [u8; 4] = bytes[..].try_into().map_err(|_| cut())?;
        let length = usize::try_from(i32::from_le_bytes(length)).unwrap_or(0);
        let wrong = || {
            let what = format!("document {line}: {length} can't be its length: this is not BSON");
            Failure::failed(what)
        };
        if length < DOCUMENT_BYTES_MIN {
            return Err(wrong());
        }
        if DOCUMENT_BYTES_MAX < length {
            self.reader.by_ref().take(1).read_to_end(&mut bytes).map_err(to_problem)?;
            if !bytes.last().is_some_and(|tag| matches!(tag, 1..=0x13 | 0x7f | 0xff)) {
                return Err(wrong());
            }
            let bytes_left = (length - bytes.len()) as u64;
            let (sender, text) = Text::channel(DocumentEncoding::Bson);
            // The first bit waits in the channel.
            if sender.send(bytes).is_ok() {
                self.streamed = Some(Streamed { sender, bytes_left });
            }
            return Ok(Some(Record { line, document: Ok(Parsed::Streamed(text)) }));
        }
        self.reader.by_ref().take(length as u64 - 4).read_to_end(&mut bytes).map_err(to_problem)?;
        if bytes.len() < length {
            return Err(cut());
        }
        let document = DocumentBuf::validated(bytes.into());
        let document = document.map(Parsed::Whole).map_err(|error| error.to_string());
        Ok(Some(Record { line, document }))
    }
}

impl<R: Read> BsonSource<R> {
    /// Sends the rest of a document that is being streamed.
    fn send_rest(&mut self) -> Result<(), Failure> {
        let Some(mut streamed) = self.streamed.take() else { return Ok(()) };
        let mut has_reader = true;
        while 0 < streamed.bytes_left {
            let mut bit = Vec::new();
            let bytes_max = streamed.bytes_left.min(BIT_BYTES as u64);
            let read = self.reader.by_ref().take(bytes_max).read_to_end(&mut bit);
            streamed.bytes_left -= read.map_err(|error| broken(self.number, &error))? as u64;
            if (bit.len() as u64) < bytes_max {
                return Err(broken(self.number, &ErrorKind::UnexpectedEof.into()));
            }
            // Where it was refused, the rest is passed over.
            has_reader = has_reader && streamed.sender.send(bit).is_ok();
        }
        Ok(())
    }
}

impl<R: Read> Iterator for BsonSource<R> {
    type Item = Result<Record, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let record = self.send_rest().and_then(|()| self.next_record());
        self.is_over = !matches!(record, Ok(Some(_)));
        record.transpose()
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::document;

    use super::*;

    /// The documents that are read, and whether the file ends well.
    fn read(bytes: &[u8]) -> (Vec<Option<String>>, bool) {
        let (mut found, mut is_well) = (Vec::new(), true);
        for record in BsonSource::new(bytes) {
            match record.map(|record| record.document) {
                Ok(Ok(Parsed::Whole(document))) => found.push(Some(format!("{document:?}"))),
                Ok(_) => found.push(None),
                Err(_) => is_well = false,
            }
        }
        (found, is_well)
    }

    #[test]
    fn documents_follow_each_other() {
        let (one, two) = (document! { "_id": 1_i32 }, document! { "_id": "x" });
        let both = [one.as_bytes(), two.as_bytes()].concat();
        let text_of = |text: &str| Some(text.to_owned());
        let expected = vec![text_of("{\"_id\": Int32(1)}"), text_of("{\"_id\": String(\"x\")}")];
        assert_eq!(read(&both), (expected.clone(), true));
        assert_eq!(read(b""), (Vec::new(), true));
        // A broken one in their middle: its length holds.
        let mut wrong = one.as_bytes().to_vec();
        wrong[4] = 0x7a;
        let three = [one.as_bytes(), &wrong, two.as_bytes()].concat();
        assert_eq!(read(&three), (vec![expected[0].clone(), None, expected[1].clone()], true));
        for cut in [both.len() - 1, one.as_bytes().len() + 2] {
            assert_eq!(read(&both[..cut]), (vec![expected[0].clone()], false), "{cut}");
        }
        assert_eq!(read(b"{\"_id\": 1}"), (Vec::new(), false));
    }

    /// Its bytes come as they stand, whether they are wanted or not, and what is behind it follows.
    #[test]
    fn a_document_that_is_longer_than_a_message_is_given_as_it_comes() {
        let long = "x".repeat(DOCUMENT_BYTES_MAX);
        let (long, short) = (document! { "a": long.as_str() }, document! { "_id": 1_i32 });
        let both = [long.as_bytes(), short.as_bytes()].concat();
        for is_read in [true, false] {
            let mut source = BsonSource::new(&both[..]);
            let Some(Ok(Record { document: Ok(Parsed::Streamed(mut text)), .. })) = source.next()
            else {
                panic!("a stream")
            };
            let reader = std::thread::spawn(move || {
                let mut bytes = Vec::new();
                let _ = is_read.then(|| text.read_to_end(&mut bytes));
                (text.carrier, bytes)
            });
            assert!(matches!(source.next(), Some(Ok(Record { line: 2, document: Ok(_) }))));
            assert!(source.next().is_none());
            let (carrier, bytes) = reader.join().expect("it reads");
            assert_eq!(carrier, DocumentEncoding::Bson);
            assert!(bytes == if is_read { long.as_bytes() } else { b"" });
        }
        let mut cut = BsonSource::new(&both[..DOCUMENT_BYTES_MAX - 1]);
        let streamed = cut.next();
        assert!(matches!(streamed, Some(Ok(_))));
        drop(streamed);
        assert!(matches!(cut.next(), Some(Err(_))));
    }
}
