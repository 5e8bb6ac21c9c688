//! Documents from a file as `mongodump` writes it, each streamed in, and out again: however large
//! one is, it is never in memory as a whole.
//!
//! `cargo run -p fronddb --example load -- DIRECTORY DATABASE COLLECTION < in.bson > out.bson`;
//! `conformance/round_trips.py` compares the two files.

use std::env::args;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

use fronddb::Document;

/// Runs the example with what stands in the command line.
pub fn main() -> fronddb::Result<()> {
    let given: Vec<String> = args().skip(1).collect();
    let [directory, database, collection] = &given[..] else {
        return Err(fronddb::Error::other("DIRECTORY DATABASE COLLECTION are needed"));
    };
    let names = (&database[..], &collection[..]);
    run(directory.as_ref(), names, io::stdin().lock(), io::stdout().lock())
}

/// Brings the documents that `from` gives into a collection, and writes them to `to`.
///
/// # Errors
/// An error of the database.
pub fn run(
    directory: &Path,
    (database, collection): (&str, &str),
    from: impl Read,
    to: impl Write,
) -> fronddb::Result<()> {
    let database = fronddb::open(directory)?.database(database)?;
    let collection = database.collection::<Document>(collection);
    let (mut from, mut to) = (BufReader::new(from), BufWriter::new(to));
    let mut ids = Vec::new();
    while !from.fill_buf()?.is_empty() {
        // It reads one document, and nothing behind it.
        ids.push(collection.insert_bson(&mut from)?);
    }
    for id in ids {
        assert!(collection.write_bson(id, &mut to)?, "it was inserted");
    }
    Ok(to.flush()?)
}
