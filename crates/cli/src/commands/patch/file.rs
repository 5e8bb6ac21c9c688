//! A patch as lines: its head, then row after row, and an end that counts them and has the lines'
//! checksum.
//!
//! A line is the row's canonical extended JSON. A row that doesn't come back from that as it was (a
//! document that reads as a wrapper of a type, a NaN's payload) is written as BSON.
//!
//! A patch is read three times: to see that it is whole before anything is written, and once for
//! each side. Standard input is held in memory for that.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Write};
use std::path::{Path, PathBuf};

use frond_doc::extended_json::{self, Form};
use frond_doc::key;
use frond_doc::{Binary, Document, DocumentBuf, DocumentBuilder, Value};

use crate::failure::{Failure, describe};
use crate::input::compressed;
use crate::output::{array_of, count_of, count_value, text_of};

/// The field of a patch's first line, with the format's version.
pub const HEAD: &str = "frondPatch";
/// The version that is written, and the only one that is read.
pub const VERSION: i32 = 1;
/// The field of its last line, with the number of rows.
const END: &str = "frondPatchEnd";
/// The field beside it, with the BLAKE3 of the lines before it, in hex.
const CHECKSUM: &str = "blake3";
/// The field of a line that has its row as BSON.
const ROW: &str = "frondPatchRow";

/// A patch that is written.
pub struct PatchWriter<'a> {
    out: &'a mut dyn Write,
    checksum: blake3::Hasher,
}

impl<'a> PatchWriter<'a> {
    pub fn new(out: &'a mut dyn Write) -> PatchWriter<'a> {
        PatchWriter { out, checksum: blake3::Hasher::new() }
    }

    /// Writes the head, or a row.
    ///
    /// # Errors
    /// As writing.
    pub fn line(&mut self, document: Document<'_>) -> Result<(), Failure> {
        let mut text = canonical(document);
        let comes_back =
            extended_json::parse(&text).is_ok_and(|read| read.as_bytes() == document.as_bytes());
        if !comes_back {
            let mut row = DocumentBuilder::new();
            row.append(ROW, Value::Binary(Binary { subtype: 0, bytes: document.as_bytes() }));
            text = canonical(row.build().view());
        }
        add_line(&mut self.checksum, &text);
        text.push('\n');
        Ok(self.out.write_all(text.as_bytes())?)
    }

    /// Writes the end.
    ///
    /// # Errors
    /// As writing.
    pub fn end(self, rows: u64) -> Result<(), Failure> {
        let mut end = DocumentBuilder::new();
        end.append(END, count_value(rows));
        end.append(CHECKSUM, Value::String(&self.checksum.finalize().to_hex()));
        let text = canonical(end.build().view());
        Ok(writeln!(self.out, "{text}")?)
    }
}

fn canonical(document: Document<'_>) -> String {
    let mut text = String::new();
    extended_json::write(document, Form::Canonical, &mut text);
    text
}

/// The end of a line doesn't count: a mail may change it.
fn add_line(checksum: &mut blake3::Hasher, text: &str) {
    checksum.update(text.trim_end().as_bytes()).update(b"\n");
}

/// A patch that was found to be whole.
pub struct Patch {
    source: Source,
    /// The first line.
    pub head: DocumentBuf,
}

enum Source {
    File(PathBuf),
    Held(Vec<u8>),
}

impl Patch {
    /// Reads a patch through: the file at `path`, or standard input.
    ///
    /// # Errors
    /// [`Failure::Failed`] if it can't be read, is none, or isn't whole.
    pub fn open(path: Option<&Path>) -> Result<Patch, Failure> {
        let source = match path {
            Some(path) => Source::File(path.to_owned()),
            None => {
                let mut bytes = Vec::new();
                let read = io::stdin().lock().read_to_end(&mut bytes);
                read.map_err(|error| Failure::file("standard input", &error))?;
                Source::Held(bytes)
            }
        };
        let mut patch = Patch { source, head: DocumentBuf::empty() };
        let (mut rows, mut trailer) = (0, None);
        let mut checksum = blake3::Hasher::new();
        patch.each_line(&mut |number, text, line| {
            if number == 1 {
                check_head(&line)?;
            } else if trailer.is_some() {
                return Err(wrong(number, "something follows the end"));
            } else if line.get(END).is_some() {
                trailer =
                    Some((count_of(line.view(), END), text_of(line.view(), CHECKSUM).to_owned()));
                return Ok(());
            } else {
                check(number, &line)?;
                rows += 1;
            }
            add_line(&mut checksum, text);
            Ok(())
        })?;
        let Some((count, trailer)) = trailer.filter(|(count, _)| *count == rows) else {
            return Err(Failure::failed("the patch is incomplete: its end is missing"));
        };
        if trailer != checksum.finalize().to_hex().as_str() {
            return Err(Failure::failed(format!(
                "the patch was changed since it was written: the checksum of its {count} changes \
                 differs"
            )));
        }
        let mut head = None;
        patch.each_line(&mut |_, _, line| {
            head.get_or_insert(line);
            Ok(())
        })?;
        patch.head = head.unwrap_or_else(DocumentBuf::empty);
        Ok(patch)
    }

    /// Shows each row to `visit`.
    ///
    /// # Errors
    /// The error of `visit`; [`Failure::Failed`] if the patch can't be read.
    pub fn each_row(
        &self,
        visit: &mut dyn FnMut(DocumentBuf) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.each_line(&mut |_, _, line| match line.get("kind") {
            Some(_) => visit(line),
            None => Ok(()),
        })
    }

    fn each_line(
        &self,
        visit: &mut dyn FnMut(u64, &str, DocumentBuf) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let failed = |error| Failure::file("patch", &error);
        let reader: Box<dyn Read> = match &self.source {
            Source::Held(bytes) => compressed::plain(Cursor::new(bytes.clone())).map_err(failed)?,
            Source::File(path) => {
                let failed = |error| Failure::file(&path.display().to_string(), &error);
                compressed::plain(File::open(path).map_err(failed)?).map_err(failed)?
            }
        };
        let mut reader = BufReader::new(reader);
        let (mut number, mut text) = (0, String::new());
        loop {
            text.clear();
            number += 1;
            match reader.read_line(&mut text) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(wrong(number, &describe(&error))),
            }
            let parsed = extended_json::parse(text.trim_end());
            let line = parsed.map_err(|error| wrong(number, &error.to_string()))?;
            visit(number, &text, row_of(number, line)?)?;
        }
    }
}

/// Returns the row in a line, or the one that it holds as BSON.
fn row_of(number: u64, line: DocumentBuf) -> Result<DocumentBuf, Failure> {
    match line.get(ROW) {
        Some(Value::Binary(row)) => DocumentBuf::validated(row.bytes.to_vec().into())
            .map_err(|error| wrong(number, &error.to_string())),
        Some(_) => Err(wrong(number, "a row's BSON is not a binary")),
        None => Ok(line),
    }
}

fn check_head(head: &DocumentBuf) -> Result<(), Failure> {
    match head.get(HEAD).and_then(|version| version.as_integer()) {
        Some(version) if version == i64::from(VERSION) => {}
        Some(version) => {
            return Err(wrong(1, &format!("version {version}, this build reads {VERSION}")));
        }
        None => return Err(wrong(1, "this is not a patch by frond format-patch")),
    }
    // It may be empty, as a commit's.
    match head.get("message") {
        Some(Value::String(_)) => Ok(()),
        _ => Err(wrong(1, "its message is missing")),
    }
}

/// Checks that a row has what its kind needs.
fn check(number: u64, row: &DocumentBuf) -> Result<(), Failure> {
    let view = row.view();
    let is_document = |name: &str| matches!(view.get(name), Some(Value::Document(_)));
    let sides = (is_document("before"), is_document("after"));
    let fits = match text_of(view, "change") {
        "added" => sides == (false, true),
        "removed" => sides == (true, false),
        "modified" => sides == (true, true),
        _ => false,
    };
    let is_whole = match text_of(view, "kind") {
        "collection" => is_document("options"),
        "index" => fits && !text_of(view, "name").is_empty(),
        "document" => {
            // As collections compare them: NaN is NaN, and 1 is 1.0.
            let key = |document: Document<'_>| document.get("_id").map(key::of_id);
            let id = |name: &str| {
                let side = view.get(name).and_then(|side| side.as_document());
                side.is_none_or(|side| key(side) == key(view))
            };
            fits && key(view).is_some() && id("before") && id("after")
        }
        other => return Err(wrong(number, &format!("unknown kind of change: {other:?}"))),
    };
    // A collection's name never begins the path of another namespace.
    let name = text_of(view, "collection");
    let is_named = !name.is_empty() && !name.starts_with("system.");
    match is_whole && is_named && array_of(view, "changes").iter().all(is_change) {
        true => Ok(()),
        false => Err(wrong(number, "the change is incomplete")),
    }
}

fn is_change(change: Value<'_>) -> bool {
    change.as_document().is_some()
}

fn wrong(number: u64, what: &str) -> Failure {
    Failure::failed(format!("patch, line {number}: {what}"))
}
