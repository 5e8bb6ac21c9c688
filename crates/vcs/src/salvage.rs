//! Writes what can be read of a damaged data directory into a new one.
//!
//! 1. Every frame of every pack is read, whatever index and manifest say, and every chunk that is
//!    whole is put into a store of its own (*what is left*), beside a copy of the log. The damaged
//!    directory is only read.
//! 2. The rest is opened as a data directory, by a store that passes over parts of trees that can't
//!    be read ([`frond_store::ChunkStore::skip_unreadable`]) and notes them. The log is replayed up
//!    to what is damaged of it.
//! 3. Commits all of whose chunks are whole go to the new directory as they are, with their names.
//!    One that isn't is left out: the commits after it are those of a shallow clone, and what came
//!    before it gets a tag. A branch's HEAD is the last whole commit of its first parents' line.
//!    Commits in packs that only what is lost named get tags; where the name of their database is
//!    lost too, a database of their own.
//! 4. Of each branch's working state every document that can be read is written, unless HEAD has
//!    the collection so already; where documents are lost, those that HEAD has there take their
//!    place. Indexes are built anew.
//! 5. Merges that wait, policies, remotes and reflogs come, each record whole or not at all
//!    (`records`).
//!
//! A part of a backup is restored in the same way (`part`): then what is left is the backup, and
//! what is asked for is brought from it.
//!
//! Where packs lie in a bucket, they are read from there, and so is the log, if it is there.
//!
//! What else was there (sessions, dropped databases, users and roles) isn't brought.

mod history;
mod part;
mod records;
mod source;
mod survey;
mod working;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use frond_db::inside::system::DEFAULT_BRANCH;
use frond_db::inside::{Error, Frond, FrondOptions, RepositoryRecord, open_machine};
use frond_store::io::Machine;
use frond_store::tiered::Slots;
use frond_store::{ChunkHash, UnreadableRange};
pub use part::{PartRequest, restore_part};
use source::Source;
pub use survey::survey_backup;
pub(crate) use survey::survey_directory;
#[cfg(test)]
pub(crate) use survey::survey_on;

/// The directory of the rest meanwhile, within the new directory.
const LEFT_DIRECTORY: &str = ".salvage";

/// The saved part of a collection of a branch's working state.
#[derive(Clone, Debug)]
pub struct SalvagedCollection {
    /// `shop`, or `shop@branch`.
    pub database: String,
    /// Its name.
    pub name: String,
    /// Documents that are there.
    pub documents: u64,
    /// The number of these documents that are as the last commit has them: what was written since
    /// is lost.
    pub from_commit: u64,
    /// The lost parts.
    pub lost: Vec<LostPart>,
    /// Indexes that could not be built, and why.
    pub indexes: Vec<String>,
}

impl SalvagedCollection {
    /// Begins with nothing of a collection.
    fn new(database: String, collection: &str) -> SalvagedCollection {
        SalvagedCollection {
            database,
            name: collection.to_owned(),
            documents: 0,
            from_commit: 0,
            lost: Vec::new(),
            indexes: Vec::new(),
        }
    }
}

/// A part of a collection that is lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LostPart {
    /// The document of this `_id`, in JSON.
    Document(String),
    /// Documents between two `_id`s, in JSON: greater than the first, up to the second, and how
    /// many.
    Range(Option<String>, Option<String>, Option<u64>),
    /// All of it: why.
    Whole(String),
}

/// The result of a salvage.
#[derive(Clone, Debug, Default)]
pub struct SalvageReport {
    /// Chunks that are whole.
    pub chunks: u64,
    /// The damage in the files.
    pub damages: Vec<String>,
    /// Collections of working states.
    pub collections: Vec<SalvagedCollection>,
    /// Commits that are there.
    pub commits: u64,
    /// Commits that are not, each with its database.
    pub commits_lost: Vec<(String, String)>,
    /// Other things that are lost or have changed.
    pub notes: Vec<String>,
}

impl SalvageReport {
    /// Whether everything is there.
    pub fn is_whole(&self) -> bool {
        let is_whole = |collection: &SalvagedCollection| {
            collection.lost.is_empty()
                && collection.indexes.is_empty()
                && collection.from_commit == 0
        };
        self.collections.iter().all(is_whole)
            && self.commits_lost.is_empty()
            && self.notes.is_empty()
    }
}

/// Writes all that can be read of `from` into `to`, a new directory. `progress` is called with how
/// many chunks were read.
///
/// # Errors
/// `NamespaceExists` if `to` holds something; `Damaged` if nothing at all can be read; if a disk
/// doesn't answer.
pub fn salvage(
    from: &Path,
    to: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<SalvageReport, Error> {
    salvage_from(&open_machine(from)?, None, to, progress)
}

/// As [`salvage`], of the data directory on the disk of `from`, whose log lies in `slots` where
/// there are any.
///
/// # Errors
/// As [`salvage`].
pub fn salvage_from(
    from: &Machine,
    slots: Option<&Arc<Slots>>,
    to: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<SalvageReport, Error> {
    let target = crate::open::open(to, FrondOptions::default())?;
    let left = to.join(LEFT_DIRECTORY);
    let saved = salvage_on((from, &open_machine(&left)?), slots, &target, progress);
    let closed = target.close();
    // The rest is only needed until then.
    let _ = std::fs::remove_dir_all(&left);
    let report = saved?;
    closed?;
    Ok(report)
}

/// Writes all that can be read of the first machine's disk into `target`; what is left is kept on
/// the second's.
fn salvage_on(
    (from, left): (&Machine, &Machine),
    slots: Option<&Arc<Slots>>,
    target: &Frond,
    progress: &mut dyn FnMut(u64),
) -> Result<SalvageReport, Error> {
    if !target.list_databases()?.is_empty() {
        let message = "the directory holds databases: salvage into a new one";
        return Err(Error::invalid(frond_query::Code::NamespaceExists, message));
    }
    let mut report = SalvageReport::default();
    let source = Source::open((from, left), slots, &mut report, progress)?;
    save(&source, target, &mut report)?;
    Ok(report)
}

fn save(source: &Source, target: &Frond, report: &mut SalvageReport) -> Result<(), Error> {
    let reader = source.reader();
    let repositories = frond_db::inside::refs::repositories(&reader)?;
    report
        .notes
        .extend(source.losses().iter().map(|lost| unreadable_note("the list of databases", lost)));
    let names = repositories.iter().map(|(name, _)| name.as_str());
    let mut unnamed = history::unnamed(source, names)?;
    if source.losses().is_empty() && report.notes.is_empty() {
        // Nothing that names commits is lost: they are garbage.
        unnamed.clear();
    }
    for (name, repository) in &repositories {
        save_database(source, target, (name, repository), &unnamed, report)?;
    }
    unnamed.retain(|(salt, _)| repositories.iter().all(|(_, known)| known.salt != *salt));
    save_nameless(source, target, &unnamed, report)
}

/// Saves a database, with those of the commits `unnamed` that are of its repository.
fn save_database(
    source: &Source,
    target: &Frond,
    (name, repository): (&str, &RepositoryRecord),
    unnamed: &[(u64, ChunkHash)],
    report: &mut SalvageReport,
) -> Result<(), Error> {
    let (branches, whole) = history::save(source, target, (name, repository), unnamed, report)?;
    for branch in &branches {
        working::save(source, target, (name, repository), branch, report)?;
    }
    records::save((source, whole), target, (name, repository), &branches, report)
}

/// Saves the commits of databases whose names are lost.
fn save_nameless(
    source: &Source,
    target: &Frond,
    unnamed: &[(u64, ChunkHash)],
    report: &mut SalvageReport,
) -> Result<(), Error> {
    let salts: BTreeSet<u64> = unnamed.iter().map(|(salt, _)| *salt).collect();
    for salt in salts {
        let name = format!("salvaged-{:08x}", salt >> 32);
        let what = "the name of a database is lost, and what it had beside commits; these are in";
        report.notes.push(format!("{what} {name}"));
        let default_branch = DEFAULT_BRANCH.to_owned();
        let repository =
            RepositoryRecord { salt, uuid: [0; 16], created_millis: 0, default_branch };
        history::save(source, target, (&name, &repository), unnamed, report)?;
    }
    Ok(())
}

/// Says what is lost of what isn't documents.
fn unreadable_note(what: &str, lost: &UnreadableRange) -> String {
    match lost.count {
        Some(count) => format!("{what}: {count} records are lost: {}", lost.why),
        None => format!("{what}: {}", lost.why),
    }
}

#[cfg(test)]
mod tests;
