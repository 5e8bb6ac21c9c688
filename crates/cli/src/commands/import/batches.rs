//! Documents in batches, read and parsed by a thread of their own.
//!
//! The channel between the threads holds few batches: a fast reader waits for a slow writer. When
//! the writer has enough, it drops its end, and the reader ends at its next batch.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use frond_doc::DocumentBuf;
use frond_doc::document::DOCUMENT_BYTES_MAX;

use crate::failure::Failure;
use crate::input::{Parsed, Source, Text};

/// A batch is full with this many bytes: well below a message's 48 MB, whatever its documents.
const BATCH_BYTES: usize = 8 << 20;
/// Batches that wait between the threads.
const BATCHES_WAITING: usize = 2;

/// The limits of a batch, and whether reading stops at a problem.
#[derive(Clone, Copy)]
pub struct BatchLimits {
    /// Documents of a batch.
    pub documents_max: usize,
    /// Whether the first problem is the last record.
    pub stops_on_problem: bool,
}

/// Documents that are written together.
#[derive(Default)]
pub struct Batch {
    /// The documents in the file's order.
    pub documents: Vec<DocumentBuf>,
    /// The line of each document.
    pub lines: Vec<u64>,
    /// The records that were no documents: line, and why.
    pub problems: Vec<(u64, String)>,
    /// A document behind them all that is too long to be held, and its line.
    pub streamed: Option<(u64, Text)>,
    bytes: usize,
}

/// Reads `source` to its end and gives each batch to `write`, until that says `false`.
///
/// # Errors
/// An error of the source where it can't be read; an error of `write`.
pub fn read_batches(
    source: Source,
    limits: BatchLimits,
    mut write: impl FnMut(Batch) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    thread::scope(|scope| {
        let (sender, receiver) = sync_channel(BATCHES_WAITING);
        scope.spawn(move || read(source, limits, &sender));
        for batch in receiver {
            if !write(batch?)? {
                return Ok(()); // The receiver is dropped: the reader's next send fails.
            }
        }
        Ok(())
    })
}

fn read(source: Source, limits: BatchLimits, sender: &SyncSender<Result<Batch, Failure>>) {
    let mut batch = Batch::default();
    for record in source {
        let record = match record {
            Ok(record) => record,
            Err(failure) => {
                // Where a send fails the receiver is gone: there is nothing left to do.
                let _ = sender.send(Ok(batch));
                let _ = sender.send(Err(failure));
                return;
            }
        };
        match record.document.and_then(check_size) {
            // The source goes on when this is read: it must be sent first.
            Ok(Parsed::Streamed(text)) => {
                batch.streamed = Some((record.line, text));
                if sender.send(Ok(std::mem::take(&mut batch))).is_err() {
                    return;
                }
            }
            Ok(Parsed::Whole(document)) => {
                batch.bytes += document.as_bytes().len();
                batch.documents.push(document);
                batch.lines.push(record.line);
            }
            Err(what) => {
                batch.problems.push((record.line, what));
                if limits.stops_on_problem {
                    break;
                }
            }
        }
        let count = batch.documents.len() + batch.problems.len();
        let is_full = count >= limits.documents_max || batch.bytes >= BATCH_BYTES;
        if is_full && sender.send(Ok(std::mem::take(&mut batch))).is_err() {
            return;
        }
    }
    let _ = sender.send(Ok(batch));
}

/// Refuses here what the server would refuse, so that it doesn't cost its whole batch.
fn check_size(parsed: Parsed) -> Result<Parsed, String> {
    if let Parsed::Whole(document) = &parsed {
        let bytes = document.as_bytes().len();
        if bytes > DOCUMENT_BYTES_MAX {
            let max = DOCUMENT_BYTES_MAX;
            return Err(format!("document of {bytes} bytes; at most {max} are accepted"));
        }
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Record;
    use frond_doc::document;

    fn source(documents: &'static [i32], then_fail: bool) -> Source {
        let records = documents.iter().enumerate().map(|(position, number)| {
            let document =
                if *number < 0 { Err("bad".to_owned()) } else { Ok(document! { "a": *number }) };
            let document = document.map(Parsed::Whole);
            Ok(Record { line: position as u64 + 1, document })
        });
        let failure = then_fail.then(|| Err(Failure::failed("disk")));
        Box::new(records.chain(failure))
    }

    fn sizes(source: Source, stops_on_problem: bool) -> (Vec<(usize, usize)>, bool) {
        let mut sizes = Vec::new();
        let limits = BatchLimits { documents_max: 2, stops_on_problem };
        let done = read_batches(source, limits, |batch| {
            sizes.push((batch.documents.len(), batch.problems.len()));
            Ok(true)
        });
        (sizes, done.is_ok())
    }

    #[test]
    fn batches_hold_what_they_may() {
        assert_eq!(sizes(source(&[1, 2, 3], false), false), (vec![(2, 0), (1, 0)], true));
        assert_eq!(sizes(source(&[1, -1, 3], false), false), (vec![(1, 1), (1, 0)], true));
        assert_eq!(sizes(source(&[1, -1, 3], false), true), (vec![(1, 1)], true));
        assert_eq!(sizes(source(&[1], true), false), (vec![(1, 0)], false));
    }

    #[test]
    fn a_writer_that_has_enough_ends_the_reader() {
        let endless = std::iter::repeat_with(|| {
            Ok(Record { line: 1, document: Ok(Parsed::Whole(document! { "a": 1_i32 })) })
        });
        let limits = BatchLimits { documents_max: 2, stops_on_problem: false };
        let mut batches = 0;
        let done = read_batches(Box::new(endless), limits, |_| {
            batches += 1;
            Ok(batches < 3)
        });
        assert!(done.is_ok());
        assert_eq!(batches, 3);
    }
}
