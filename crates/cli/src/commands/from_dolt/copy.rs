//! The database that gets the history.
//!
//! 1. Each commit is made on a branch of its own ([`WORKING`]), moved to the commit's first parent
//!    where it isn't there already. Its committer names the commit of Dolt, so that the copy itself
//!    says what it has: nothing else is kept, and nothing is done twice.
//! 2. A commit that is left before anything names it gets a tag, for garbage collection and for the
//!    next run; the tags go at the end.
//! 3. Branches and tags come last. A branch that was written to since is left where it is.

use std::collections::HashMap;

use frond_doc::{DocumentBuf, DocumentBuilder, Value, document};
use frond_server::wire::DocumentSequence;

use crate::backend::Backend;
use crate::commands::from_dolt::repository::{Commit, Name};
use crate::commands::import::progress::Progress;
use crate::commands::import::writer::{Mode, Writer};
use crate::failure::Failure;
use crate::output::{documents_of, text_of};

/// The branch on which commits are made.
const WORKING: &str = "from-dolt-working";
/// The prefix of tags that hold commits until a branch has them.
const HELD: &str = "from-dolt-held-";
/// The beginning of each commit's committer; the commit's hash in Dolt follows.
const COMMITTER: &str = "from-dolt ";
/// The branch that a database begins with.
pub const MAIN: &str = "main";

const NAMESPACE_NOT_FOUND: i64 = 26;

/// A database that becomes a copy.
pub struct Copy<'b> {
    backend: &'b mut dyn Backend,
    database: String,
    working: String,
    /// The commits that are there, by their hash in Dolt.
    known: HashMap<String, String>,
    /// The commit of Dolt that the working branch is at.
    at: Option<String>,
}

impl<'b> Copy<'b> {
    /// Finds what a database has of a copy.
    ///
    /// # Errors
    /// As `Backend::execute`; [`Failure::Failed`] if it holds something else.
    pub fn open(backend: &'b mut dyn Backend, database: &str) -> Result<Copy<'b>, Failure> {
        let working = format!("{database}@{WORKING}");
        let (database, known) = (database.to_owned(), HashMap::new());
        let mut copy = Copy { backend, database, working, known, at: None };
        let branches = match copy.run(&document! { "frondBranch": 1_i32 }) {
            Err(Failure::Refused { code: NAMESPACE_NOT_FOUND, .. }) => return Ok(copy),
            answer => names(&answer?, "branches", "branch"),
        };
        let tags = names(&copy.run(&document! { "frondTag": 1_i32 })?, "tags", "tag");
        for (name, _) in branches.iter().chain(&tags) {
            copy.read_log(name)?;
        }
        if copy.known.is_empty() {
            return Err(Failure::failed(format!(
                "the database {} holds something else: name another with --into",
                copy.database
            )));
        }
        if let Some((_, tip)) = branches.iter().find(|(name, _)| name == WORKING) {
            // Writes of an earlier run that weren't committed are dropped.
            copy.reset("HEAD")?;
            let at = copy.known.iter().find(|(_, id)| *id == tip).map(|(hash, _)| hash.clone());
            copy.at = at;
        }
        Ok(copy)
    }

    fn read_log(&mut self, version: &str) -> Result<(), Failure> {
        let log = match version {
            MAIN => document! { "frondLog": 1_i32 },
            other => {
                let range = format!("{MAIN}..{other}");
                document! { "frondLog": 1_i32, "range": range.as_str() }
            }
        };
        let answer = self.run(&log)?;
        for commit in documents_of(answer.view(), "commits") {
            if let Some(hash) = text_of(commit, "committer").strip_prefix(COMMITTER) {
                // A server with users appends the name of the user who was logged in.
                let hash = hash.split_once(',').map_or(hash, |(hash, _)| hash);
                self.known.insert(hash.to_owned(), text_of(commit, "commitId").to_owned());
            }
        }
        Ok(())
    }

    /// Whether a commit of Dolt is there.
    pub fn has(&self, hash: &str) -> bool {
        self.known.contains_key(hash)
    }

    /// Moves the working branch to the first parent of a commit that is made next.
    ///
    /// # Errors
    /// As `Backend::execute`; [`Failure::Failed`] for a second commit without a parent.
    pub fn begin(&mut self, commit: &Commit) -> Result<(), Failure> {
        let Some(parent) = commit.parents.first() else {
            return match self.known.is_empty() {
                true => Ok(()),
                false => Err(Failure::failed(format!(
                    "commit {} has no parent, like the first commit: a database has only one \
                     beginning",
                    commit.hash
                ))),
            };
        };
        if self.at.as_ref() == Some(parent) {
            return Ok(());
        }
        let id = self.id_of(parent)?;
        match self.at.take() {
            Some(left) => {
                let (tag, target) = (format!("{HELD}{left}"), self.id_of(&left)?);
                let hold = document! {
                    "frondTag": 1_i32, "tag": tag.as_str(), "target": target.as_str(), "force": true
                };
                self.run(&hold)?;
                self.reset(&id)?;
            }
            None => {
                let make =
                    document! { "frondBranch": 1_i32, "branch": WORKING, "start": id.as_str() };
                self.run(&make)?;
            }
        }
        self.at = Some(parent.clone());
        Ok(())
    }

    fn id_of(&self, hash: &str) -> Result<String, Failure> {
        let id = self.known.get(hash).cloned();
        id.ok_or_else(|| Failure::failed(format!("commit {hash} isn't in the copy")))
    }

    fn reset(&mut self, target: &str) -> Result<(), Failure> {
        let reset = document! { "frondReset": 1_i32, "target": target, "hard": true };
        self.backend.execute(&self.working, &reset).map(drop)
    }

    /// Returns where a commit's rows are written: the first one makes the database.
    fn place(&self) -> &str {
        if self.known.is_empty() { &self.database } else { &self.working }
    }

    /// Makes a collection for a table that may have no rows.
    ///
    /// # Errors
    /// As `Backend::execute`.
    pub fn create(&mut self, table: &str) -> Result<(), Failure> {
        let place = self.place().to_owned();
        self.backend.execute(&place, &document! { "create": table }).map(drop)
    }

    /// Drops a table's collection.
    ///
    /// # Errors
    /// As `Backend::execute`.
    pub fn drop_table(&mut self, table: &str) -> Result<(), Failure> {
        self.backend.execute(&self.working, &document! { "drop": table }).map(drop)
    }

    /// Gives a table's collection another name.
    ///
    /// # Errors
    /// As `Backend::execute`.
    pub fn rename(&mut self, from: &str, to: &str) -> Result<(), Failure> {
        let (from, to) = (format!("{}.{from}", self.working), format!("{}.{to}", self.working));
        let rename = document! { "renameCollection": from.as_str(), "to": to.as_str() };
        self.backend.execute("admin", &rename).map(drop)
    }

    /// Writes a table's documents in a mode; `fill` gives batches to what it is handed.
    ///
    /// # Errors
    /// As `Backend::execute`; [`Failure::Failed`] if a document is refused.
    pub fn write(
        &mut self,
        (table, mode): (&str, Mode),
        progress: &Progress,
        fill: impl FnOnce(&mut Batches<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let place = self.place().to_owned();
        let writer = Writer::new(&place, table, mode, true);
        let backend = &mut *self.backend;
        let mut batches = Batches { backend, writer, progress, place: &place, table };
        fill(&mut batches)?;
        if mode == Mode::ReplaceAll {
            batches.writer.remove_others(batches.backend)?;
        }
        Ok(())
    }

    /// Records what was written as the copy of a commit.
    ///
    /// # Errors
    /// As `Backend::execute`.
    pub fn commit(&mut self, commit: &Commit) -> Result<(), Failure> {
        let mut command = DocumentBuilder::new();
        command.append("frondCommit", Value::Int32(1));
        command.append("message", Value::String(&commit.message));
        command.append("author", Value::String(&commit.author));
        let committer = format!("{COMMITTER}{}", commit.hash);
        command.append("committer", Value::String(&committer));
        command.append("time", Value::DateTime(commit.made_millis));
        command.append("allowEmpty", Value::Boolean(true));
        command.begin_array("merges");
        for parent in commit.parents.iter().skip(1) {
            command.push(Value::String(&self.id_of(parent)?));
        }
        command.end();
        let place = self.place().to_owned();
        let answer = self.backend.execute(&place, &command.build())?;
        let is_first = self.known.is_empty();
        let id = text_of(answer.view(), "commitId").to_owned();
        self.known.insert(commit.hash.clone(), id);
        self.at = (!is_first).then(|| commit.hash.clone());
        Ok(())
    }

    /// Has a branch name the commit that Dolt's does. Returns why not, if it has gone its own way.
    ///
    /// # Errors
    /// As `Backend::execute`.
    pub fn set_branch(&mut self, branch: &str, hash: &str) -> Result<Option<String>, Failure> {
        let id = self.id_of(hash)?;
        let there = names(&self.run(&document! { "frondBranch": 1_i32 })?, "branches", "branch");
        let Some((_, tip)) = there.iter().find(|(name, _)| name == branch) else {
            let make = document! { "frondBranch": 1_i32, "branch": branch, "start": id.as_str() };
            return self.run(&make).map(|_| None);
        };
        if *tip == id {
            return Ok(None);
        }
        let merge = document! {
            "frondMerge": 1_i32, "merge_in": id.as_str(), "ffOnly": true, "refuseDirty": true
        };
        let place = format!("{}@{}", self.database, encoded(branch));
        match self.backend.execute(&place, &merge) {
            Err(Failure::Refused { message, .. }) => Ok(Some(message)),
            other => other.map(|_| None),
        }
    }

    /// Has a tag name the commit that Dolt's does. Returns why not, if the name is taken.
    ///
    /// # Errors
    /// As `Backend::execute`.
    pub fn set_tag(&mut self, tag: &Name) -> Result<Option<String>, Failure> {
        let id = self.id_of(&tag.hash)?;
        let there = names(&self.run(&document! { "frondTag": 1_i32 })?, "tags", "tag");
        if there.iter().any(|(name, target)| *name == tag.name && *target == id) {
            return Ok(None);
        }
        let mut command = DocumentBuilder::new();
        command.append("frondTag", Value::Int32(1)).append("tag", Value::String(&tag.name));
        command.append("target", Value::String(&id));
        if let Some((message, author)) =
            tag.message.as_ref().filter(|(message, _)| !message.is_empty())
        {
            command.append("message", Value::String(message));
            command.append("author", Value::String(author));
        }
        match self.run(&command.build()) {
            Err(Failure::Refused { message, .. }) => Ok(Some(message)),
            other => other.map(|_| None),
        }
    }

    /// Removes what only the copying needed, once branches have the commits.
    ///
    /// # Errors
    /// As `Backend::execute`.
    pub fn end(mut self) -> Result<(), Failure> {
        let tags = names(&self.run(&document! { "frondTag": 1_i32 })?, "tags", "tag");
        for (tag, _) in tags.iter().filter(|(tag, _)| tag.starts_with(HELD)) {
            self.run(&document! { "frondTag": 1_i32, "tag": tag.as_str(), "delete": true })?;
        }
        let branches = names(&self.run(&document! { "frondBranch": 1_i32 })?, "branches", "branch");
        if branches.iter().any(|(branch, _)| branch == WORKING) {
            self.run(&document! {
                "frondBranch": 1_i32, "branch": WORKING, "delete": true, "forceDelete": true
            })?;
        }
        Ok(())
    }

    fn run(&mut self, command: &DocumentBuf) -> Result<DocumentBuf, Failure> {
        self.backend.execute(&self.database, command)
    }
}

/// Writes a table's documents, some at a time.
pub struct Batches<'w> {
    backend: &'w mut dyn Backend,
    writer: Writer<'w>,
    progress: &'w Progress,
    place: &'w str,
    table: &'w str,
}

impl Batches<'_> {
    /// Writes documents.
    ///
    /// # Errors
    /// As [`Copy::write`].
    pub fn write(&mut self, documents: Vec<DocumentBuf>) -> Result<(), Failure> {
        let lines = vec![0; documents.len()];
        self.writer.write(self.backend, documents, &lines, self.progress)?;
        match self.writer.report.failed {
            0 => Ok(()),
            _ => Err(Failure::failed(format!("a row of {} can't be a document", self.table))),
        }
    }

    /// Removes documents, by `statements` of a delete.
    ///
    /// # Errors
    /// As [`Copy::write`].
    pub fn remove(&mut self, statements: Vec<DocumentBuf>) -> Result<(), Failure> {
        let command = document! { "delete": self.table };
        let sequence = DocumentSequence { name: "deletes".to_owned(), documents: statements };
        let answer = self.backend.execute_with(self.place, command.view(), vec![sequence])?;
        match documents_of(answer.view(), "writeErrors").next() {
            Some(error) => Err(Failure::failed(text_of(error, "errmsg"))),
            None => Ok(()),
        }
    }
}

/// The names in an answer, and what they name.
fn names(answer: &DocumentBuf, list: &str, name: &str) -> Vec<(String, String)> {
    let named = documents_of(answer.view(), list);
    named.map(|it| (text_of(it, name).to_owned(), text_of(it, "commitId").to_owned())).collect()
}

/// A branch's name as a part of a database's.
fn encoded(branch: &str) -> String {
    let mut encoded = String::new();
    for byte in branch.bytes() {
        match byte {
            b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => encoded.push(char::from(byte)),
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}
