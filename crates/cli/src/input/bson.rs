//! BSON: one document after another, as mongodump writes a collection.
//!
//! A document that isn't one costs only itself, as long as its length can be believed; its number
//! in the file stands for the line.

use std::io::{ErrorKind, Read};

use frond_doc::DocumentBuf;
use frond_doc::document::DOCUMENT_BYTES_MAX;

use crate::failure::Failure;
use crate::input::{Parsed, Record, broken};

/// A document's shortest form: its length and its end.
const DOCUMENT_BYTES_MIN: usize = 5;

/// Documents of a BSON file.
pub struct BsonSource<R> {
    reader: R,
    number: u64,
    is_over: bool,
}

impl<R: Read> BsonSource<R> {
    /// The documents of `reader`.
    pub fn new(reader: R) -> BsonSource<R> {
        BsonSource { reader, number: 0, is_over: false }
    }

    fn next_record(&mut self) -> Result<Option<Record>, Failure> {
        let line = self.number + 1;
        let told = |error| broken(line, &error);
        let mut bytes = Vec::new();
        let count = self.reader.by_ref().take(4).read_to_end(&mut bytes).map_err(told)?;
        if count == 0 {
            return Ok(None);
        }
        self.number = line;
        let cut = || broken(line, &ErrorKind::UnexpectedEof.into());
        let length: [u8; 4] = bytes[..].try_into().map_err(|_| cut())?;
        let length = usize::try_from(i32::from_le_bytes(length)).unwrap_or(0);
        if !(DOCUMENT_BYTES_MIN..=DOCUMENT_BYTES_MAX).contains(&length) {
            let what = format!("document {line}: {length} can't be its length: this is no BSON");
            return Err(Failure::failed(what));
        }
        self.reader.by_ref().take(length as u64 - 4).read_to_end(&mut bytes).map_err(told)?;
        if bytes.len() < length {
            return Err(cut());
        }
        let document = DocumentBuf::validated(bytes.into());
        let document = document.map(Parsed::Whole).map_err(|error| error.to_string());
        Ok(Some(Record { line, document }))
    }
}

impl<R: Read> Iterator for BsonSource<R> {
    type Item = Result<Record, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let record = self.next_record();
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
        let told = |text: &str| Some(text.to_owned());
        let expected = vec![told("{\"_id\": Int32(1)}"), told("{\"_id\": String(\"x\")}")];
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
}
