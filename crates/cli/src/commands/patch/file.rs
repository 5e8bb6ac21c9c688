//! A patch that is read: its head, then row after row.
//!
//! It is read three times: to see that it is whole before anything is written, and once for each
//! side. Standard input is held in memory for that.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use frond_doc::{DocumentBuf, Value, extended_json};

use crate::failure::{Failure, describe};
use crate::input::compressed;
use crate::output::{array_of, count_of, text_of};

/// The field of a patch's first line, with the format's version.
pub const HEAD: &str = "frondPatch";
/// The version that is written, and the only one that is read.
pub const VERSION: i32 = 1;
/// The field of its last line, with the number of rows.
pub const END: &str = "frondPatchEnd";

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
        let (mut rows, mut told) = (0, None);
        patch.each_line(&mut |number, line| {
            if number == 1 {
                match line.get(HEAD).and_then(|version| version.as_integer()) {
                    Some(version) if version == i64::from(VERSION) => patch_head(&line)?,
                    Some(version) => {
                        let what = format!("version {version}, this build reads {VERSION}");
                        return Err(wrong(number, &what));
                    }
                    None => return Err(wrong(number, "this is no patch of frond format-patch")),
                }
            } else if told.is_some() {
                return Err(wrong(number, "something follows the end"));
            } else if line.get(END).is_some() {
                told = Some(count_of(line.view(), END));
            } else {
                check(number, &line)?;
                rows += 1;
            }
            Ok(())
        })?;
        if told != Some(rows) {
            return Err(Failure::failed("the patch isn't whole: its end is missing"));
        }
        let mut head = None;
        patch.each_line(&mut |_, line| {
            head.get_or_insert(line);
            Ok(())
        })?;
        patch.head = head.unwrap_or_else(DocumentBuf::empty);
        Ok(patch)
    }

    /// Shows each row to `visit`.
    ///
    /// # Errors
    /// What `visit` fails with; [`Failure::Failed`] if the patch can't be read.
    pub fn each_row(
        &self,
        visit: &mut dyn FnMut(DocumentBuf) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.each_line(&mut |_, line| match line.get("kind") {
            Some(_) => visit(line),
            None => Ok(()),
        })
    }

    fn each_line(
        &self,
        visit: &mut dyn FnMut(u64, DocumentBuf) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let told = |error| Failure::file("patch", &error);
        let reader: Box<dyn Read> = match &self.source {
            Source::Held(bytes) => compressed::plain(Cursor::new(bytes.clone())).map_err(told)?,
            Source::File(path) => {
                let told = |error| Failure::file(&path.display().to_string(), &error);
                compressed::plain(File::open(path).map_err(told)?).map_err(told)?
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
            visit(number, parsed.map_err(|error| wrong(number, &error.to_string()))?)?;
        }
    }
}

fn patch_head(head: &DocumentBuf) -> Result<(), Failure> {
    match text_of(head.view(), "message") {
        "" => Err(wrong(1, "its message is missing")),
        _ => Ok(()),
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
            let id = |name: &str| {
                let side = view.get(name).and_then(|side| side.as_document());
                side.is_none_or(|side| side.get("_id") == view.get("_id"))
            };
            fits && view.get("_id").is_some() && id("before") && id("after")
        }
        other => return Err(wrong(number, &format!("a change of a {other:?} is not known"))),
    };
    // A collection's name never begins the path of another namespace.
    let name = text_of(view, "collection");
    let is_named = !name.is_empty() && !name.starts_with("system.");
    match is_whole && is_named && array_of(view, "changes").iter().all(is_change) {
        true => Ok(()),
        false => Err(wrong(number, "the change isn't whole")),
    }
}

fn is_change(change: Value<'_>) -> bool {
    change.as_document().is_some()
}

fn wrong(number: u64, what: &str) -> Failure {
    Failure::failed(format!("patch, line {number}: {what}"))
}
