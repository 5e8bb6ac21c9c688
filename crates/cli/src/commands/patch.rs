//! `frond format-patch` and `frond apply`: a difference between two versions as a file.
//!
//! A patch is lines of canonical extended JSON (`file`): a head (`frondPatch`), the rows of
//! `$diff` with both sides of each document, and an end that counts them and has their checksum, so
//! that a file that was cut or changed is seen. A collection that is new or gone has its options
//! beside it.
//!
//! It applies by a merge: beside the branch two commits are made, its own state with the patch's
//! left side put in (`before`) and with its right side (`after`), and what lies between them is
//! picked onto the branch. So what doesn't fit is a conflict as others are, with the same rules.

mod apply;
mod file;

pub use apply::Apply;

use std::io::Write;
use std::path::PathBuf;

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, document};

use crate::arguments::Target;
use crate::backend::{Backend, visit_batch};
use crate::failure::Failure;
use crate::notice::print;
use crate::output::{array_of, counted, text_of};
use crate::output_file::WholeFile;
use crate::terminal::Terminal;

use file::PatchWriter;

const EXAMPLES: &str = "\
Examples:
  frond format-patch shop HEAD -o prices.patch           what the last commit did
  frond format-patch shop main..sale -m 'the sale'       what sale has that main doesn't, as one
  frond format-patch shop v1 | frond apply store --data ../elsewhere/frond-data";

/// The version that has nothing.
const NOTHING: &str = "NOTHING";

/// Write what a commit changed, or how two versions differ, as a patch
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct FormatPatch {
    /// Database, or DATABASE@BRANCH
    database: String,

    /// A commit, compared with its (first) parent, or FROM..TO; by default the last commit
    #[arg(value_name = "VERSION")]
    version: Option<String>,

    /// Message of the commit that applying it makes; by default that of the (later) commit
    #[arg(short, long)]
    message: Option<String>,

    /// File to write; by default standard output
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,

    #[command(flatten)]
    target: Target,
}

impl FormatPatch {
    /// Writes the patch.
    ///
    /// # Errors
    /// As [`Target::open`]; [`Failure::Refused`] if there is no such version; [`Failure::Failed`]
    /// if nothing differs, or options of a collection do, or the file can't be written.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let mut backend = self.target.open_to_stream()?;
        let rows = match &self.out {
            None => {
                let rows = self.write(&mut *backend, terminal)?;
                terminal.finish()?;
                rows
            }
            Some(path) => {
                let failed = |error| Failure::file(&path.display().to_string(), &error);
                let mut file = WholeFile::begin(path).map_err(failed)?;
                let rows = self.write(&mut *backend, &mut file);
                let rows = rows.map_err(|failure| file.failure().map_or(failure, failed))?;
                file.finish().map_err(failed)?;
                rows
            }
        };
        print(format_args!("{}", counted(rows, "change")));
        backend.close()
    }

    fn write(&self, backend: &mut dyn Backend, out: &mut dyn Write) -> Result<u64, Failure> {
        let (from, to) = self.range()?;
        let commit = self.show(backend, to)?;
        let from = match from {
            Some(from) => text_of(self.show(backend, from)?.view(), "commitId").to_owned(),
            None => {
                let parents = array_of(commit.view(), "parents");
                let first = parents.iter().next().and_then(|parent| parent.as_str());
                first.unwrap_or(NOTHING).to_owned()
            }
        };
        let to = text_of(commit.view(), "commitId");
        let mut patch = PatchWriter::new(out);
        patch.line(self.head(commit.view(), &from).view())?;
        let command = diff_of(&from, to);
        // The list of added and removed collections comes first: their options go beside them.
        let (rows, collections) = self.changed_collections(backend, &command)?;
        if rows == 0 {
            return Err(Failure::failed("nothing differs: there is nothing to write"));
        }
        let mut options = Vec::new();
        for (collection, change) in &collections {
            let version = if change == "added" { to } else { &*from };
            options.push((collection.clone(), self.options(backend, version, collection)?));
        }
        let mut answer = backend.execute(&self.database, &command)?;
        loop {
            let more = visit_batch(&answer, &mut |row| match text_of(row, "kind") {
                "collection" => {
                    let name = text_of(row, "collection");
                    let found = options.iter().find(|(collection, _)| collection == name);
                    patch.line(with_options(row, found.map(|(_, options)| options)).view())
                }
                "document" => patch.line(self.whole(backend, row, [&*from, to])?.view()),
                _ => patch.line(row),
            })?;
            let Some(more) = more else { break };
            answer = backend.execute(&self.database, &more)?;
        }
        patch.end(rows)?;
        Ok(rows)
    }

    /// The versions that were given, if the first was, and the second.
    fn range(&self) -> Result<(Option<&str>, &str), Failure> {
        let (from, to) = match self.version.as_deref().and_then(|text| text.split_once("..")) {
            Some((from, to)) => (Some(from), to),
            None => (None, self.version.as_deref().unwrap_or("HEAD")),
        };
        if from == Some("") || to.starts_with('.') {
            return Err(Failure::Usage("VERSION or FROM..TO is expected".to_owned()));
        }
        Ok((from, if to.is_empty() { "HEAD" } else { to }))
    }

    /// Returns how many rows `diff` has, and the collections that came or went, with which of
    /// these.
    fn changed_collections(
        &self,
        backend: &mut dyn Backend,
        diff: &DocumentBuf,
    ) -> Result<(u64, Vec<(String, String)>), Failure> {
        let (mut rows, mut collections) = (0, Vec::new());
        backend.for_each_document(&self.database, diff, &mut |row| {
            let collection = text_of(row, "collection");
            match text_of(row, "kind") {
                "options" => {
                    return Err(Failure::failed(format!(
                        "options of {collection} differ: a patch has collections, indexes and \
                         documents; collMod changes options"
                    )));
                }
                "collection" => {
                    collections.push((collection.to_owned(), text_of(row, "change").to_owned()));
                }
                _ => {}
            }
            rows += 1;
            Ok(())
        })?;
        Ok((rows, collections))
    }

    fn show(&self, backend: &mut dyn Backend, version: &str) -> Result<DocumentBuf, Failure> {
        backend.execute(&self.database, &document! { "frondShow": 1_i32, "target": version })
    }

    /// A document's row with both of its sides: those for which the row had no room are read.
    fn whole(
        &self,
        backend: &mut dyn Backend,
        row: Document<'_>,
        [from, to]: [&str; 2],
    ) -> Result<DocumentBuf, Failure> {
        let collection = text_of(row, "collection");
        let id = row.get("_id").unwrap_or(Value::Null);
        let mut whole = DocumentBuilder::new();
        for (name, value) in row.iter() {
            let (side, version) = match name {
                "beforeBytes" => ("before", from),
                "afterBytes" => ("after", to),
                _ => {
                    whole.append(name, value);
                    continue;
                }
            };
            let mut command = DocumentBuilder::new();
            command.append("find", Value::String(collection));
            command.begin_document("filter").begin_document("_id").append("$eq", id).end().end();
            let version = self.at(version);
            backend.for_each_document(&version, &command.build(), &mut |document| {
                whole.append(side, Value::Document(document));
                Ok(())
            })?;
        }
        Ok(whole.build())
    }

    /// A version of the database, as a database.
    fn at(&self, version: &str) -> String {
        let repository = self.database.split('@').next().unwrap_or(&self.database);
        format!("{repository}@{version}")
    }

    /// The options with which a version has a collection.
    fn options(
        &self,
        backend: &mut dyn Backend,
        version: &str,
        collection: &str,
    ) -> Result<DocumentBuf, Failure> {
        let filter = document! { "name": collection };
        let command = document! { "listCollections": 1_i32, "filter": &filter };
        let mut options = DocumentBuf::empty();
        backend.for_each_document(&self.at(version), &command, &mut |found| {
            let found = found.get("options").and_then(|options| options.as_document());
            options = found.map_or_else(DocumentBuf::empty, |found| found.to_buf());
            Ok(())
        })?;
        Ok(options)
    }

    fn head(&self, commit: Document<'_>, from: &str) -> DocumentBuf {
        let repository = self.database.split('@').next().unwrap_or(&self.database);
        let message = self.message.as_deref().unwrap_or(text_of(commit, "message"));
        let made = commit.get("authored").or_else(|| commit.get("timestamp"));
        let mut head = DocumentBuilder::new();
        head.append(file::HEAD, Value::Int32(file::VERSION));
        head.append("database", Value::String(repository));
        head.append("from", Value::String(from));
        head.append("to", Value::String(text_of(commit, "commitId")));
        head.append("author", Value::String(text_of(commit, "author")));
        head.append("date", made.unwrap_or(Value::Null));
        head.append("message", Value::String(message));
        head.build()
    }
}

/// The command that asks for all that differs.
fn diff_of(from: &str, to: &str) -> DocumentBuf {
    let diff = document! { "from": from, "to": to };
    let mut command = DocumentBuilder::new();
    command.append("aggregate", Value::Int32(1));
    command.begin_array("pipeline").push_begin_document();
    command.append("$diff", Value::Document(diff.view())).end().end();
    command.begin_document("cursor").end();
    command.build()
}

/// The row of a collection that came or went, with its options.
fn with_options(row: Document<'_>, options: Option<&DocumentBuf>) -> DocumentBuf {
    let mut whole = DocumentBuilder::new();
    for (name, value) in row.iter() {
        whole.append(name, value);
    }
    if let Some(options) = options {
        whole.append("options", Value::Document(options.view()));
    }
    whole.build()
}
