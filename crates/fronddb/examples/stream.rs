//! A document of a gigabyte, streamed in and out: never in memory as a whole.
//!
//! `cargo run --release -p fronddb --example stream -- 1000` takes megabytes; 1,000 are what it
//! takes by itself.

use std::io::{self, Read, Write};
use std::time::Instant;

use fronddb::{Document, Frond, Options, doc};

/// JSON of one document with as many lines as asked for, made as it is read.
struct Lines {
    next: u64,
    count: u64,
    /// The line that says something else.
    changed: Option<u64>,
    /// The lines that were made and not read yet.
    text: io::Cursor<Vec<u8>>,
}

impl Lines {
    fn new(count: u64, changed: Option<u64>) -> Lines {
        let text = io::Cursor::new(br#"{"_id":"log","lines":["#.to_vec());
        Lines { next: 0, count, changed, text }
    }
}

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.text.read(buffer)?;
        if read > 0 || self.next > self.count {
            return Ok(read);
        }
        let comma = if self.next == 0 { "" } else { "," };
        let text = if self.next == self.count {
            "]}".to_owned()
        } else if self.changed == Some(self.next) {
            format!(r#"{comma}"changed""#)
        } else {
            // Something else in each line: equal ones would be stored once.
            let noise = self.next.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            format!(
                r#"{comma}"line {} says {noise:016x} and {:016x}""#,
                self.next,
                noise.swap_bytes()
            )
        };
        self.next += 1;
        self.text = io::Cursor::new(text.into_bytes());
        self.text.read(buffer)
    }
}

/// Takes what is written and compares it with what another reader gives.
struct Compare<R> {
    expected: R,
    bytes: u64,
}

impl<R: Read> Write for Compare<R> {
    fn write(&mut self, written: &[u8]) -> io::Result<usize> {
        let mut expected = vec![0; written.len()];
        self.expected.read_exact(&mut expected)?;
        assert!(written == expected, "other bytes after {} of them", self.bytes);
        self.bytes += written.len() as u64;
        Ok(written.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs the example with a gigabyte, or as many megabytes as the first argument says.
pub fn main() -> fronddb::Result<()> {
    let megabytes = std::env::args().nth(1).map_or(Ok(1_000), |argument| argument.parse());
    run(megabytes.map_err(fronddb::Error::other)?)
}

/// Runs the example with a document of so many megabytes.
///
/// # Errors
/// An error of the database.
pub fn run(megabytes: u64) -> fronddb::Result<()> {
    let data = tempfile::tempdir()?;
    let options = Options { memory_bytes: Some(128 << 20), ..Options::default() };
    let archive = Frond::open_with(&data, options)?.database("archive")?;
    let logs = archive.collection::<Document>("logs");
    let count = megabytes * 1_000_000 / 60;
    let begun = Instant::now();

    let id = logs.insert_json(Lines::new(count, None))?;
    archive.commit("a long log")?;
    println!("in, and committed, after {:.1?}", begun.elapsed());

    let read_out = |changed| {
        let mut out = Compare { expected: Lines::new(count, changed), bytes: 0 };
        assert!(logs.write_json(&id, &mut out)?);
        assert_eq!(out.expected.read(&mut [0])?, 0, "the end is missing");
        println!("{} bytes out, after {:.1?}", out.bytes, begun.elapsed());
        Ok::<(), fronddb::Error>(())
    };
    read_out(None)?;

    // Then it is a document as any other, and changing a line of it costs what a line costs.
    let (changed, before) = (count / 2, begun.elapsed());
    let line = format!("lines.{changed}");
    logs.update_one(doc! { "_id": "log" }, doc! { "$set": { line: "changed" } })?;
    archive.commit("one line")?;
    println!("a line changed, and committed, in {:.1?}", begun.elapsed() - before);
    read_out(Some(changed))?;

    if let Some(peak) = peak_megabytes() {
        println!("{peak} MB of memory at most");
        assert!(megabytes < 1_000 || peak < 256, "it was held in memory");
    }
    Ok(())
}

/// The most memory that this process has taken, where the system reports it.
fn peak_megabytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? / 1_000)
}
