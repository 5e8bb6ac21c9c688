//! `frond from-dolt`: a repository of Dolt with its history.
//!
//! 1. Dolt itself serves the repository, read only ([`program`], [`connection`], [`repository`]).
//! 2. Its commits are made again one by one, parents first, each from what it changed: rows become
//!    documents ([`table`], [`column`](mod@column)). Tables that a commit didn't change aren't
//!    read.
//! 3. The copy says itself which commits it has ([`copy`]): however the import ended, it goes on
//!    with the first that is missing, and later brings what Dolt has got since.

mod column;
mod connection;
mod copy;
mod program;
mod repository;
mod table;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::PathBuf;

use frond_doc::{DocumentBuf, Value, document};

use crate::arguments::{Answer, Target};
use crate::backend::Backend;
use crate::commands::from_dolt::connection::Row;
use crate::commands::from_dolt::copy::{Batches, Copy, MAIN};
use crate::commands::from_dolt::program::Program;
use crate::commands::from_dolt::repository::{Change, Commit, Name, Repository, RowChange};
use crate::commands::from_dolt::table::{Table, Unkeyed};
use crate::commands::import::progress::Progress;
use crate::commands::import::writer::{Mode, removal};
use crate::failure::Failure;
use crate::output::{counted, plain};
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond from-dolt ~/shop                        into ./frond-data, as shop
  frond from-dolt ~/shop --into prod --branch main --branch sale
  frond from-dolt ~/shop --uri 127.0.0.1:27017  into a running server
  frond from-dolt ~/shop --dolt-program /opt/dolt/bin/dolt

A row's primary key becomes its document's _id. Run again, it continues where it stopped, and imports \
what is new in Dolt. Views, triggers, procedures, indexes, foreign keys and uncommitted changes are \
left out.";

/// Documents that are written, or removed, at once.
const BATCH_DOCUMENTS: usize = 2_000;
const BATCH_BYTES: usize = 4 << 20;

/// Import a Dolt repository with its history
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct FromDolt {
    /// Directory of the repository, the one that has .dolt in it
    directory: PathBuf,

    /// Database to import into, if it isn't to have the directory's name
    #[arg(long, value_name = "DATABASE")]
    into: Option<String>,

    /// Only this branch, and tags of its commits; may be repeated
    #[arg(long, value_name = "BRANCH")]
    branch: Vec<String>,

    /// Path of the program dolt, if it isn't on the PATH
    #[arg(long, value_name = "FILE", default_value = "dolt")]
    dolt_program: PathBuf,

    #[command(flatten)]
    as_json: Answer,

    #[command(flatten)]
    target: Target,
}

impl FromDolt {
    /// Brings the history.
    ///
    /// # Errors
    /// [`Failure::Usage`]; [`Failure::Failed`] if the repository can't be read, or holds what
    /// documents have no place for; [`Failure::Warned`] if a branch has gone its own way here.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let database = self.database()?;
        let mut program = Program::start(&self.dolt_program, &self.directory)?;
        let repository = Repository::open(program.connect()?)?;
        let mut backend = self.target.open_or_make()?;
        let done = bring(repository, &mut *backend, &database, &self.branch);
        let closed = backend.close();
        let brought = done?;
        closed?;
        self.print(terminal, &database, &brought)
    }

    fn database(&self) -> Result<String, Failure> {
        if let Some(database) = &self.into {
            return match database.contains('@') {
                true => Err(Failure::Usage("--into names a database, without a branch".to_owned())),
                false => Ok(database.clone()),
            };
        }
        let directory = self.directory.canonicalize();
        let directory = directory
            .map_err(|error| Failure::file(&self.directory.display().to_string(), &error))?;
        let name = directory.file_name().and_then(|name| name.to_str());
        name.map(str::to_owned).ok_or_else(|| Failure::Usage("name it with --into".to_owned()))
    }

    fn print(
        &self,
        terminal: &mut Terminal,
        database: &str,
        brought: &Brought,
    ) -> Result<(), Failure> {
        let answer = document! {
            "database": database,
            "commits": brought.made as i64,
            "there": brought.there as i64,
            "branches": brought.branches as i64,
            "tags": brought.tags as i64
        };
        if !self.as_json.print(terminal, &answer)? {
            let commits = terminal.paint(Style::Strong, counted(brought.made, "commit"));
            let there = match brought.there {
                0 => String::new(),
                count => format!(", {count} were there"),
            };
            let branches = match brought.branches {
                1 => "1 branch".to_owned(),
                count => format!("{count} branches"),
            };
            let tags = counted(brought.tags, "tag");
            writeln!(terminal, "brought {commits} into {database}{there}; {branches}, {tags}")?;
        }
        terminal.finish()?;
        if brought.left.is_empty() {
            return Ok(());
        }
        Err(Failure::Warned(brought.left.join("\n")))
    }
}

/// The results of a copy.
#[derive(Debug, Default)]
struct Brought {
    made: u64,
    there: u64,
    branches: u64,
    tags: u64,
    /// Names that were left where they are, and why.
    left: Vec<String>,
}

/// Brings what a repository has and `database` hasn't.
fn bring(
    mut repository: Repository,
    backend: &mut dyn Backend,
    database: &str,
    only: &[String],
) -> Result<Brought, Failure> {
    let (branches, mut tags) = (selected(repository.branches()?, only)?, repository.tags()?);
    let mut tips: Vec<&str> = branches.iter().map(|branch| branch.hash.as_str()).collect();
    if only.is_empty() {
        tips.extend(tags.iter().map(|tag| tag.hash.as_str()));
    }
    let commits = repository.commits(&tips)?;
    let mut copy = Copy::open(backend, database)?;
    let mut brought = Brought::default();
    let progress = Progress::of_commits(commits.len() as u64);
    for commit in &commits {
        if copy.has(&commit.hash) {
            brought.there += 1;
        } else {
            bring_commit(&mut repository, &mut copy, commit, &progress)
                .map_err(|failure| within(failure, &format!("commit {} of Dolt", commit.hash)))?;
            brought.made += 1;
        }
        progress.step();
    }
    progress.finish();
    tags.retain(|tag| copy.has(&tag.hash));
    let active = repository.active_branch()?;
    for branch in &branches {
        let left = copy.set_branch(&branch.name, &branch.hash)?;
        brought.note("branch", &branch.name, left);
    }
    // The database's own name must show something.
    let has_main = branches.iter().any(|branch| branch.name == MAIN);
    let shown = branches.iter().find(|branch| branch.name == active).or(branches.first());
    if let Some(branch) = shown.filter(|_| !has_main) {
        let left = copy.set_branch(MAIN, &branch.hash)?;
        brought.note("branch", MAIN, left);
    }
    for tag in &tags {
        let left = copy.set_tag(tag)?;
        brought.note("tag", &tag.name, left);
    }
    (brought.branches, brought.tags) = (branches.len() as u64, tags.len() as u64);
    copy.end()?;
    Ok(brought)
}

impl Brought {
    fn note(&mut self, what: &str, name: &str, left: Option<String>) {
        if let Some(why) = left {
            self.left.push(format!("the {what} {} is left as it is: {}", plain(name), plain(&why)));
        }
    }
}

/// The branches that are asked for: all, if none is named.
fn selected(branches: Vec<Name>, only: &[String]) -> Result<Vec<Name>, Failure> {
    let is_there = |name: &String| branches.iter().any(|branch| branch.name == *name);
    if let Some(missing) = only.iter().find(|name| !is_there(name)) {
        return Err(Failure::failed(format!("the repository has no branch {missing}")));
    }
    let is_selected = |branch: &Name| only.is_empty() || only.contains(&branch.name);
    Ok(branches.into_iter().filter(is_selected).collect())
}

fn within(failure: Failure, what: &str) -> Failure {
    match failure {
        Failure::Failed(message) => Failure::Failed(format!("{what}: {message}")),
        Failure::Refused { message, .. } => Failure::Failed(format!("{what}: {message}")),
        other => other,
    }
}

fn bring_commit(
    repository: &mut Repository,
    copy: &mut Copy<'_>,
    commit: &Commit,
    progress: &Progress,
) -> Result<(), Failure> {
    copy.begin(commit)?;
    for change in repository.changes(commit)? {
        match change {
            Change::Dropped(table) => copy.drop_table(&table)?,
            Change::Added(table) => {
                let table = repository.table(&table, &commit.hash)?;
                copy.create(&table.name)?;
                write_whole(repository, copy, (&table, Mode::Insert), commit, progress)?;
            }
            Change::Renamed { from, to } => {
                copy.rename(&from, &to)?;
                let table = repository.table(&to, &commit.hash)?;
                write_whole(repository, copy, (&table, Mode::ReplaceAll), commit, progress)?;
            }
            Change::Changed(name) => {
                let table = repository.table(&name, &commit.hash)?;
                let parent = commit.parents.first().map(String::as_str).unwrap_or_default();
                // A diff by rows is possible only where both versions of a table have the same
                // columns.
                if table.is_keyed() && repository.table(&name, parent)? == table {
                    write_changes(repository, copy, &table, commit, progress)?;
                } else {
                    write_whole(repository, copy, (&table, Mode::ReplaceAll), commit, progress)?;
                }
            }
        }
    }
    copy.commit(commit)
}

/// Documents that are written at once, and those that are removed before them.
#[derive(Default)]
struct Batch {
    written: Vec<DocumentBuf>,
    removed: Vec<DocumentBuf>,
    bytes: usize,
}

impl Batch {
    fn write(&mut self, document: DocumentBuf, batches: &mut Batches<'_>) -> Result<(), Failure> {
        self.bytes += document.as_bytes().len();
        self.written.push(document);
        self.flush_if(BATCH_DOCUMENTS <= self.written.len() || BATCH_BYTES <= self.bytes, batches)
    }

    fn remove(&mut self, id: Value<'_>, batches: &mut Batches<'_>) -> Result<(), Failure> {
        self.removed.push(removal(id));
        self.flush_if(BATCH_DOCUMENTS <= self.removed.len(), batches)
    }

    fn flush_if(&mut self, is_full: bool, batches: &mut Batches<'_>) -> Result<(), Failure> {
        if !is_full {
            return Ok(());
        }
        self.bytes = 0;
        for (what, is_removed) in [(&mut self.removed, true), (&mut self.written, false)] {
            match std::mem::take(what) {
                empty if empty.is_empty() => {}
                statements if is_removed => batches.remove(statements)?,
                documents => batches.write(documents)?,
            }
        }
        Ok(())
    }
}

/// Writes all rows of a table; the mode says what is there.
fn write_whole(
    repository: &mut Repository,
    copy: &mut Copy<'_>,
    (table, mode): (&Table, Mode),
    commit: &Commit,
    progress: &Progress,
) -> Result<(), Failure> {
    copy.write((&table.name, mode), progress, |batches| {
        let (mut batch, mut unkeyed) = (Batch::default(), Unkeyed::default());
        repository.rows(table, &commit.hash, &mut |row: &Row| {
            batch.write(table.document(row, 0, &mut unkeyed)?, batches)
        })?;
        batch.flush_if(true, batches)
    })
}

/// Writes the rows of a table that a commit changed.
fn write_changes(
    repository: &mut Repository,
    copy: &mut Copy<'_>,
    table: &Table,
    commit: &Commit,
    progress: &Progress,
) -> Result<(), Failure> {
    let parent = commit.parents.first().map(String::as_str).unwrap_or_default();
    copy.write((&table.name, Mode::Upsert), progress, |batches| {
        let (mut batch, mut unkeyed) = (Batch::default(), Unkeyed::default());
        repository.row_changes(table, (parent, &commit.hash), &mut |change| match change {
            RowChange::Removed(row, start) => {
                let id = table.id(row, start)?;
                batch.remove(id.get("_id").unwrap_or(Value::Null), batches)
            }
            RowChange::Written(row, start) => {
                batch.write(table.document(row, start, &mut unkeyed)?, batches)
            }
        })?;
        batch.flush_if(true, batches)
    })
}
