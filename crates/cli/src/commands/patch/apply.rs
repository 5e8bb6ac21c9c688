//! Putting a patch's two sides beside a branch, and what lies between them onto it.
//!
//! A side is put there in three passes over the patch, so that no unique index is violated on the
//! way that holds at its end: what the patch names goes; what the side has of it comes; then come
//! its indexes.

use std::io::Write;
use std::path::{Path, PathBuf};

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, document};
use frond_server::wire::DocumentSequence;

use super::file::Patch;
use crate::arguments::{Answer, Author, Target};
use crate::backend::Backend;
use crate::commands::import::writer::removal;
use crate::commands::merge::{self, OutcomeDisplay, Rules};
use crate::failure::Failure;
use crate::output::{documents_of, plain, text_of};
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  frond apply shop prices.patch
  frond apply shop@review prices.patch --author 'Ada <ada@example.org>'
  frond format-patch shop main..sale --uri 127.0.0.1:27017 | frond apply shop
  frond apply shop prices.patch --check          only check that the patch is complete

Where the branch differs from what the patch expects there is a conflict, which waits to be resolved as \
a merge's does: the exit code is 1, and frond conflicts lists it. Other differences don't matter. The \
commit's author is the one who made the change, unless --author names another.";

/// Changes that are written together: so many, and so many bytes.
const BATCH_DOCUMENTS: usize = 1_000;
const BATCH_BYTES: usize = 8 << 20;
/// The code of a collection, or an index, that isn't there.
const NOT_FOUND: [i64; 2] = [26, 27];
/// The code of a pick that would change nothing.
const NO_PROGRESS_MADE: i64 = 82;

/// Apply a patch to a branch
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Apply {
    /// Database, or DATABASE@BRANCH
    database: String,

    /// File that frond format-patch wrote; - or nothing reads standard input
    file: Option<PathBuf>,

    /// The commit's message; by default the patch's
    #[arg(short, long)]
    message: Option<String>,

    /// Only read the patch, and report what it holds
    #[arg(long, conflicts_with = "json")]
    check: bool,

    #[command(flatten)]
    rules: Rules,

    #[command(flatten)]
    author: Author,

    #[command(flatten)]
    as_json: Answer,

    #[command(flatten)]
    target: Target,
}

impl Apply {
    /// Applies the patch, or prints what conflicts.
    ///
    /// # Errors
    /// As [`Target::open`]; [`Failure::Failed`] if the patch isn't whole, or its left side can't be
    /// put into the database; [`Failure::Reported`] if conflicts wait; [`Failure::Refused`] if the
    /// branch has all of it already, or something waits there.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let path = self.file.as_deref().filter(|path| *path != Path::new("-"));
        let patch = Patch::open(path)?;
        let head = patch.head.view();
        if self.check {
            let author = plain(text_of(head, "author"));
            let message = plain(text_of(head, "message"));
            return Ok(writeln!(terminal, "{message}\n  by {author}, whole")?);
        }
        let mut pick = DocumentBuilder::new();
        pick.append("frondCherryPick", Value::Int32(1));
        let mut backend = self.target.open()?;
        let branch = Beside::make(&mut *backend, &self.database)?;
        let picked = branch.commits(&mut *backend, &patch);
        let picked = picked.and_then(|commit| {
            pick.append("target", Value::String(&commit));
            let texts = [("message", self.message.as_deref()), ("author", self.author.given())];
            for (name, text) in texts {
                if let Some(text) = text {
                    pick.append(name, Value::String(text));
                }
            }
            self.rules.append_to(&mut pick)
        });
        // It names nothing that is needed once the pick has begun; its commits stay for the undo.
        if let Err(failure) = picked {
            branch.remove(&mut *backend)?;
            return Err(failure);
        }
        let answer = backend.execute(&self.database, &pick.build()).map_err(of_patch);
        branch.remove(&mut *backend)?;
        let how = OutcomeDisplay { as_json: self.as_json, print: merge::print };
        merge::finish(backend, terminal, &self.database, answer, how)
    }
}

/// A failure of the pick by which a patch is applied, as one of the patch.
fn of_patch(failure: Failure) -> Failure {
    match failure {
        Failure::Refused { code: NO_PROGRESS_MADE, message, answer } => {
            let message = message.replace("cherry-pick", "apply");
            Failure::Refused { code: NO_PROGRESS_MADE, message, answer }
        }
        other => other,
    }
}

/// A branch that is there while a patch is applied.
struct Beside {
    /// As a database.
    database: String,
    name: String,
    /// The name of the branch that the patch is for.
    origin: String,
}

/// A side of the patch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

impl Side {
    /// Returns a row's document on this side.
    fn of(self, row: Document<'_>) -> Option<Document<'_>> {
        let side = row.get(if self == Side::Before { "before" } else { "after" });
        side.and_then(|side| side.as_document())
    }

    /// Whether a collection that came or went is there on this side.
    fn has_collection(self, row: Document<'_>) -> bool {
        (text_of(row, "change") == "added") == (self == Side::After)
    }
}

impl Beside {
    fn make(backend: &mut dyn Backend, origin: &str) -> Result<Beside, Failure> {
        let millis = jiff::Timestamp::now().as_millisecond();
        let name = format!("frond-apply-{}-{millis}", std::process::id());
        backend.execute(origin, &document! { "frondBranch": 1_i32, "branch": &*name })?;
        let repository = origin.split('@').next().unwrap_or(origin);
        let database = format!("{repository}@{name}");
        Ok(Beside { database, name, origin: origin.to_owned() })
    }

    fn remove(&self, backend: &mut dyn Backend) -> Result<(), Failure> {
        let command = document! {
            "frondBranch": 1_i32, "branch": &*self.name, "delete": true, "forceDelete": true,
        };
        backend.execute(&self.origin, &command).map(drop)
    }

    /// Makes the two commits; returns the second, which did what the patch does.
    fn commits(&self, backend: &mut dyn Backend, patch: &Patch) -> Result<String, Failure> {
        let head = patch.head.view();
        self.put(backend, patch, Side::Before).map_err(|failure| match failure {
            Failure::Refused { message, .. } => {
                Failure::Failed(format!("the patch doesn't apply: {message}"))
            }
            other => other,
        })?;
        let commit = |message: &str| {
            let mut command = DocumentBuilder::new();
            command.append("frondCommit", Value::Int32(1));
            command.append("message", Value::String(message));
            command.append("author", Value::String(text_of(head, "author")));
            if let Some(date @ Value::DateTime(_)) = head.get("date") {
                command.append("time", date);
            }
            command.append("allowEmpty", Value::Boolean(true));
            command.build()
        };
        let before = format!("before: {}", text_of(head, "message"));
        backend.execute(&self.database, &commit(&before))?;
        self.put(backend, patch, Side::After)?;
        let made = backend.execute(&self.database, &commit(text_of(head, "message")))?;
        Ok(text_of(made.view(), "commitId").to_owned())
    }

    /// Makes what the patch names what it is on one side.
    fn put(&self, backend: &mut dyn Backend, patch: &Patch, side: Side) -> Result<(), Failure> {
        let mut gone = Batch::default();
        patch.each_row(&mut |row| {
            let view = row.view();
            let collection = text_of(view, "collection");
            match text_of(view, "kind") {
                "document" => {
                    let id = removal(view.get("_id").unwrap_or(Value::Null));
                    gone.add(backend, &self.database, collection, id, Batch::remove)?;
                }
                "index" => {
                    let name = text_of(view, "name");
                    self.try_to(backend, &document! { "dropIndexes": collection, "index": name })?;
                }
                _ if side.has_collection(view) => self.create(backend, collection, view)?,
                _ => self.try_to(backend, &document! { "drop": collection })?,
            }
            Ok(())
        })?;
        gone.remove(backend, &self.database)?;
        let mut come = Batch::default();
        patch.each_row(&mut |row| match side.of(row.view()) {
            Some(document) if text_of(row.view(), "kind") == "document" => {
                let collection = text_of(row.view(), "collection");
                come.add(backend, &self.database, collection, document.to_buf(), Batch::insert)
            }
            _ => Ok(()),
        })?;
        come.insert(backend, &self.database)?;
        patch.each_row(&mut |row| match side.of(row.view()) {
            Some(index) if text_of(row.view(), "kind") == "index" => {
                let mut command = DocumentBuilder::new();
                let collection = text_of(row.view(), "collection");
                command.append("createIndexes", Value::String(collection));
                command.begin_array("indexes").push(Value::Document(index)).end();
                backend.execute(&self.database, &command.build()).map(drop)
            }
            _ => Ok(()),
        })
    }

    /// Makes a collection, unless it is there.
    fn create(
        &self,
        backend: &mut dyn Backend,
        collection: &str,
        row: Document<'_>,
    ) -> Result<(), Failure> {
        let filter = document! { "name": collection };
        let list = document! { "listCollections": 1_i32, "filter": &filter };
        let found = backend.execute(&self.database, &list)?;
        let cursor = found.get("cursor").and_then(|cursor| cursor.as_document());
        if cursor.is_some_and(|cursor| documents_of(cursor, "firstBatch").next().is_some()) {
            return Ok(());
        }
        let mut create = DocumentBuilder::new();
        create.append("create", Value::String(collection));
        let options = row.get("options").and_then(|options| options.as_document());
        for (name, value) in options.unwrap_or(Document::empty()).iter() {
            create.append(name, value);
        }
        backend.execute(&self.database, &create.build()).map(drop)
    }

    /// Runs a command that removes what may not be there.
    fn try_to(&self, backend: &mut dyn Backend, command: &DocumentBuf) -> Result<(), Failure> {
        match backend.execute(&self.database, command) {
            Err(Failure::Refused { code, .. }) if NOT_FOUND.contains(&code) => Ok(()),
            done => done.map(drop),
        }
    }
}

/// The documents that are to be written to one collection together.
#[derive(Default)]
struct Batch {
    collection: String,
    documents: Vec<DocumentBuf>,
    bytes: usize,
}

impl Batch {
    /// Adds a document, after writing with `write` what doesn't go with it.
    fn add(
        &mut self,
        backend: &mut dyn Backend,
        database: &str,
        collection: &str,
        document: DocumentBuf,
        write: fn(&mut Batch, &mut dyn Backend, &str) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let is_full = self.documents.len() >= BATCH_DOCUMENTS || self.bytes >= BATCH_BYTES;
        if is_full || self.collection != collection {
            write(self, backend, database)?;
            self.collection = collection.to_owned();
        }
        self.bytes += document.as_bytes().len();
        self.documents.push(document);
        Ok(())
    }

    fn remove(&mut self, backend: &mut dyn Backend, database: &str) -> Result<(), Failure> {
        let command = document! { "delete": &*self.collection };
        self.write(backend, database, "deletes", &command)
    }

    fn insert(&mut self, backend: &mut dyn Backend, database: &str) -> Result<(), Failure> {
        let command = document! { "insert": &*self.collection, "bypassDocumentValidation": true };
        self.write(backend, database, "documents", &command)
    }

    fn write(
        &mut self,
        backend: &mut dyn Backend,
        database: &str,
        name: &str,
        command: &DocumentBuf,
    ) -> Result<(), Failure> {
        let documents = std::mem::take(&mut self.documents);
        self.bytes = 0;
        if documents.is_empty() {
            return Ok(());
        }
        let sequence = DocumentSequence { name: name.to_owned(), documents };
        let answer = backend.execute_with(database, command.view(), vec![sequence])?;
        match documents_of(answer.view(), "writeErrors").next() {
            None => Ok(()),
            Some(error) => {
                let message = text_of(error, "errmsg");
                Err(Failure::failed(format!("the patch doesn't apply: {message}")))
            }
        }
    }
}
