//! An archive of mongodump (`--archive`): all collections of a dump in one stream.
//!
//! 1. A magic number, a document about the dump, and one for each collection with its metadata as
//!    JSON; a terminator ends them.
//! 2. Then blocks: a header names a collection, its documents follow up to a terminator. Blocks of
//!    several collections alternate, as mongodump read them.
//! 3. A header with `EOF` ends its collection, and has the checksum of all its documents. An
//!    archive that doesn't agree with it was not written by mongodump so: the import fails.
//!
//! Source: `common/archive` of mongodb/mongo-tools.

use std::collections::HashMap;
use std::io::Read;

use frond_doc::DocumentBuf;
use frond_doc::document::DOCUMENT_BYTES_MAX;

use crate::failure::{Failure, describe};

/// The first bytes of an archive.
const MAGIC: [u8; 4] = 0x8199_e26d_u32.to_le_bytes();
/// The bytes that end the prelude and each block, in the place of a document's length.
const TERMINATOR: [u8; 4] = [0xff; 4];
/// A document's shortest form: its length and its end.
const DOCUMENT_BYTES_MIN: usize = 5;

/// A database's name and a collection's.
pub type Namespace = (String, String);

/// A collection that the archive's beginning names.
pub struct ArchivedCollection {
    /// Its namespace when it was dumped.
    pub namespace: Namespace,
    /// Its options and indexes, as JSON.
    pub metadata: String,
}

/// An archive whose beginning was read.
pub struct Archive<R> {
    reader: R,
    /// The collection whose block is read.
    block: Option<Namespace>,
    /// The checksums of the collections that haven't ended.
    checksums: HashMap<Namespace, Checksum>,
    /// Documents so far.
    number: u64,
}

impl<R: Read> Archive<R> {
    /// Reads the beginning of an archive.
    ///
    /// # Errors
    /// [`Failure::Failed`] if it can't be read, or this is no archive.
    pub fn open(mut reader: R) -> Result<(Archive<R>, Vec<ArchivedCollection>), Failure> {
        let mut magic = Vec::new();
        let read = reader.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic);
        read.map_err(|error| Failure::file("archive", &error))?;
        if magic != MAGIC {
            return Err(Failure::failed("this is not an archive made by mongodump --archive"));
        }
        let checksums = HashMap::new();
        let mut archive = Archive { reader, block: None, checksums, number: 0 };
        archive.document()?.ok_or_else(|| damaged("it has no header"))?;
        let mut collections = Vec::new();
        while let Some(bytes) = archive.document()? {
            let document = archive.header(bytes)?;
            collections.push(ArchivedCollection {
                namespace: namespace_of(&document),
                metadata: text_of(&document, "metadata"),
            });
        }
        Ok((archive, collections))
    }

    /// The next document and the collection that it is of; a document that isn't BSON is reported
    /// by its number and what is wrong. `None` where the archive ends.
    ///
    /// # Errors
    /// [`Failure::Failed`] if it can't be read, ends early, or a checksum isn't its documents'.
    pub fn next(&mut self) -> Result<Option<Archived>, Failure> {
        loop {
            let Some(namespace) = &self.block else {
                if !self.begin_block()? {
                    return Ok(None);
                }
                continue;
            };
            let namespace = namespace.clone();
            let Some(bytes) = self.document()? else {
                self.block = None;
                continue;
            };
            self.number += 1;
            self.checksums.entry(namespace.clone()).or_default().add(&bytes);
            let document = DocumentBuf::validated(bytes.into());
            let document = document.map_err(|error| error.to_string());
            return Ok(Some(Archived { namespace, number: self.number, document }));
        }
    }

    /// Reads a block's header, and what belongs to it where it ends a collection. Whether there was
    /// one.
    fn begin_block(&mut self) -> Result<bool, Failure> {
        let mut begun = Vec::new();
        let read = self.reader.by_ref().take(4).read_to_end(&mut begun);
        read.map_err(|error| Failure::file("archive", &error))?;
        // Where a block could begin the archive may end, but no collection may be open.
        if begun.is_empty() {
            return match self.checksums.keys().next() {
                None => Ok(false),
                Some((database, collection)) => {
                    Err(damaged(&format!("it ends before {database}.{collection} does")))
                }
            };
        }
        let length = <[u8; 4]>::try_from(&begun[..]);
        let length = length.map_err(|_| damaged("it ends in the middle of a block"))?;
        let bytes = self.document_of(length)?.ok_or_else(|| damaged("a block has no header"))?;
        let header = self.header(bytes)?;
        let namespace = namespace_of(&header);
        if !header.get("EOF").is_some_and(|over| over.is_truthy()) {
            self.checksums.entry(namespace.clone()).or_default();
            self.block = Some(namespace);
            return Ok(true);
        }
        let found = self.checksums.remove(&namespace).unwrap_or_default().value();
        let expected = header.get("CRC").and_then(|checksum| checksum.as_integer()).unwrap_or(0);
        if found != expected.cast_unsigned() {
            let (database, collection) = namespace;
            let what = format!(
                "checksum of {database}.{collection}: {found:x} found, {:x} expected",
                expected.cast_unsigned()
            );
            return Err(damaged(&what));
        }
        if self.document()?.is_some() {
            return Err(damaged("documents follow the end of their collection"));
        }
        Ok(true)
    }

    fn header(&self, bytes: Vec<u8>) -> Result<DocumentBuf, Failure> {
        DocumentBuf::validated(bytes.into())
            .map_err(|error| damaged(&format!("a header is not a document: {error}")))
    }

    /// The bytes of a document, or nothing where a terminator stands.
    fn document(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let mut length = [0; 4];
        self.reader.read_exact(&mut length).map_err(|error| broken(&error))?;
        self.document_of(length)
    }

    /// The same, after its first four bytes.
    fn document_of(&mut self, length: [u8; 4]) -> Result<Option<Vec<u8>>, Failure> {
        if length == TERMINATOR {
            return Ok(None);
        }
        let bytes = usize::try_from(i32::from_le_bytes(length)).unwrap_or(0);
        if !(DOCUMENT_BYTES_MIN..=DOCUMENT_BYTES_MAX).contains(&bytes) {
            let what = format!("{bytes} can't be a document's length");
            return Err(damaged(&what));
        }
        let mut document = length.to_vec();
        let rest = (bytes - length.len()) as u64;
        let read = self.reader.by_ref().take(rest).read_to_end(&mut document);
        read.map_err(|error| broken(&error))?;
        match document.len() == bytes {
            true => Ok(Some(document)),
            false => Err(damaged("it ends in the middle of a document")),
        }
    }
}

/// A document of an archive.
pub struct Archived {
    /// The collection that it is of.
    pub namespace: Namespace,
    /// Its number in the archive, counted from 1.
    pub number: u64,
    /// The document, or what is wrong with it.
    pub document: Result<DocumentBuf, String>,
}

fn damaged(what: &str) -> Failure {
    Failure::failed(format!("the archive is damaged: {what}"))
}

fn broken(error: &std::io::Error) -> Failure {
    damaged(&describe(error))
}

fn text_of(document: &DocumentBuf, name: &str) -> String {
    document.get(name).and_then(|value| value.as_str()).unwrap_or("").to_owned()
}

fn namespace_of(document: &DocumentBuf) -> Namespace {
    (text_of(document, "db"), text_of(document, "collection"))
}

/// CRC-64/XZ (ECMA-182, reflected), which mongodump computes.
struct Checksum(u64);

impl Default for Checksum {
    fn default() -> Checksum {
        Checksum(!0)
    }
}

impl Checksum {
    const TABLE: [u64; 256] = {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < table.len() {
            let (mut value, mut bit) = (byte as u64, 0);
            while bit < 8 {
                value = (value >> 1) ^ (0xc96c_5795_d787_0f42 & (value & 1).wrapping_neg());
                bit += 1;
            }
            table[byte] = value;
            byte += 1;
        }
        table
    };

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let position = (self.0 ^ u64::from(*byte)) & 0xff;
            self.0 = (self.0 >> 8) ^ Checksum::TABLE[position as usize];
        }
    }

    fn value(&self) -> u64 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::document;

    use super::*;

    #[test]
    fn checksums() {
        let mut checksum = Checksum::default();
        assert_eq!(checksum.value(), 0);
        checksum.add(b"12345");
        checksum.add(b"6789");
        assert_eq!(checksum.value(), 0x995d_c9bb_df19_39fa);
    }

    fn beginning() -> Vec<u8> {
        let header = document! { "version": "0.1" };
        let collection = document! { "db": "shop", "collection": "items", "metadata": "{}" };
        [&MAGIC, header.as_bytes(), collection.as_bytes(), &TERMINATOR].concat()
    }

    fn end(checksum: u64) -> Vec<u8> {
        let checksum = checksum.cast_signed();
        let header =
            document! { "db": "shop", "collection": "items", "EOF": true, "CRC": checksum };
        [header.as_bytes(), &TERMINATOR].concat()
    }

    /// Returns how many documents come, and what ends it badly.
    fn read(bytes: &[u8]) -> (u64, String) {
        let mut archive = match Archive::open(bytes) {
            Ok((archive, collections)) => {
                assert_eq!(collections.len(), 1);
                archive
            }
            Err(failure) => return (0, failure.to_string()),
        };
        let mut count = 0;
        loop {
            match archive.next() {
                Ok(Some(found)) => {
                    assert_eq!(found.namespace, ("shop".to_owned(), "items".to_owned()));
                    count += 1;
                }
                Ok(None) => return (count, String::new()),
                Err(failure) => return (count, failure.to_string()),
            }
        }
    }

    #[test]
    fn blocks_are_checked() {
        let item = document! { "_id": 1_i32 };
        let mut checksum = Checksum::default();
        checksum.add(item.as_bytes());
        checksum.add(item.as_bytes());
        let header = document! { "db": "shop", "collection": "items", "EOF": false, "CRC": 0_i64 };
        let block = [header.as_bytes(), item.as_bytes(), &TERMINATOR].concat();
        let whole = [beginning(), block.clone(), block.clone(), end(checksum.value())].concat();
        assert_eq!(read(&whole), (2, String::new()));
        assert_eq!(read(&[beginning(), end(0)].concat()), (0, String::new()));
        let wrong = [beginning(), block.clone(), end(checksum.value())].concat();
        let (count, error) = read(&wrong);
        assert!(count == 1 && error.contains("checksum of shop.items"), "{error}");
        let (count, error) = read(&whole[..whole.len() - end(0).len()]);
        assert!(count == 2 && error.contains("ends before shop.items does"), "{error}");
        // Without a block it is the archive of an empty dump.
        let lengths = (0..whole.len() - end(0).len()).filter(|it| *it != beginning().len());
        for length in lengths {
            assert_ne!(read(&whole[..length]).1, "", "{length} bytes");
        }
        assert!(read(b"PK\x03\x04").1.contains("not an archive"));
    }
}
