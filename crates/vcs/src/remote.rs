//! Remotes: the same repository elsewhere. Clone, fetch, pull and push move what the other side
//! lacks.
//!
//! Reading order: [`Remote`] (what another place must be able to do; two do: `data`, a data
//! directory, and `plain`, a directory or bucket of packs and one file of refs), `transfer` (which
//! chunks move), `frame` (chunks as they travel), `fetch` (fetch, clone, pull), `push`. A server
//! that is asked over HTTP is a third kind, in a crate of its own.
//!
//! *Refs*: what a remote's branches were when they were last seen is kept as `origin/main`, and
//! resolves like a tag. Tags come along; one that is there already stays.
//!
//! *Lineage*: trees of two repositories are comparable only if their salt is the same, which a
//! clone inherits. Another salt is refused.

mod admit;
mod copy;
mod data;
mod fetch;
pub mod frame;
mod image;
mod mend;
mod plain;
mod push;
mod transfer;
mod watched;
mod wire;

use std::collections::BTreeMap;
use std::path::Path;

pub use copy::{Copied, copy_image, install_copy};
pub use data::DataRemote;
pub(crate) use data::{ensure_repository, register};
pub use fetch::{Depth, FetchReport, FetchedBranch};
use frond_db::inside::{Error, FrondOptions, LatchMode, Outcome, Scope, TreeRef, refs, system};
use frond_doc::{DocumentBuilder, Value};
use frond_engine::{Durability, TreeId};
use frond_query::Code;
pub use frond_store::MANIFEST_NAMES;
use frond_store::{Chunk, ChunkHash};
use frond_tree::{Bounds, Direction, Value as TreeValue};
pub use image::{BackupReport, DataImage, ImageSource, RestoreReport, RestoreRequest};
pub(crate) use mend::{carry_commits, carry_trees};
pub use plain::{
    BackupInfo, FilePart, FileVersion, PlaceReport, PlainReclaimed, PlainRemote, PlainStorage,
    Reread, StorageDamage, StoragePart,
};
pub use push::{PushReport, PushRequest};
pub(crate) use transfer::saved;
pub use transfer::{CHUNK_BYTES_MAX, Moved};
pub use watched::WatchedRemote;
pub use wire::{decode_hashes, encode_hashes};

use crate::TagInfo;
use crate::refs::ref_name;
use crate::repository::Repository;

/// The name of the remote that clone makes.
pub const ORIGIN: &str = "origin";

/// The refs of a repository elsewhere.
#[derive(Clone, PartialEq, Debug)]
pub struct RemoteState {
    /// The salt of its trees.
    pub salt: u64,
    /// The branch that its bare name means.
    pub default_branch: String,
    /// Branches that have commits, and the chunks of these.
    pub branches: BTreeMap<String, ChunkHash>,
    /// Tags, and the chunks of the commits that they name.
    pub tags: BTreeMap<String, (TagInfo, ChunkHash)>,
}

/// The changes of a push, which are made there all or not at all.
#[derive(Clone, Debug)]
pub struct RefUpdate {
    /// The repository's salt: it is made where there is none, and compared where there is one.
    pub salt: u64,
    /// Its default branch, if it is made.
    pub default_branch: String,
    /// The branch that moves.
    pub branch: String,
    /// The commit at which the branch must be now.
    pub expected: Option<ChunkHash>,
    /// The commit to which it moves.
    pub new: ChunkHash,
    /// Whether it may go to what isn't ahead.
    pub force: bool,
    /// Commits that came, the oldest first.
    pub commits: Vec<ChunkHash>,
    /// Tags to make, where there are none of these names.
    pub tags: Vec<(TagInfo, ChunkHash)>,
}

/// A repository elsewhere: chunks by name, and refs that are swapped.
///
/// *Thread safety*: a transfer asks for several batches of chunks at once, from as many threads.
pub trait Remote: Send + Sync {
    /// The refs; `None` if there is no repository yet.
    ///
    /// # Errors
    /// `Unavailable` if it doesn't answer; `Damaged` if what it holds is no repository.
    fn state(&self) -> Result<Option<RemoteState>, Error>;

    /// Returns for each of `hashes` whether its chunk is there, and whole: it is read, since what
    /// isn't sent to it can't be mended.
    ///
    /// # Errors
    /// `Unavailable` if it doesn't answer.
    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, Error>;

    /// Returns the chunks named by `hashes`, in their order. Each was hashed and compared with its
    /// name.
    ///
    /// # Errors
    /// `Damaged` if one is absent or isn't what was written; `Unavailable` if it doesn't answer.
    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error>;

    /// Adds chunks. They stay if what they were sent for is cut.
    ///
    /// # Errors
    /// `Unavailable` if it doesn't answer or takes no more.
    fn put_many(&self, chunks: &[Chunk]) -> Result<(), Error>;

    /// Makes all that was put durable, then changes the refs, if they are what is expected.
    ///
    /// # Errors
    /// `IllegalOperation` if the branch is not where it is expected; nothing was changed.
    fn update(&self, update: &RefUpdate) -> Result<(), Error>;

    /// Checks whether the transfer may go on: asked between its batches, of which many need nothing
    /// from the remote.
    ///
    /// # Errors
    /// What is to end the transfer.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Reads a share of what lies there again, where no server does that: a server looks after its
    /// own.
    ///
    /// # Errors
    /// `Unavailable` if it doesn't answer.
    fn reread(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the damage that was found there since it was opened.
    fn damages(&self) -> Vec<StorageDamage> {
        Vec::new()
    }
}

/// A remote, by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoteInfo {
    /// Its name.
    pub name: String,
    /// Its address: `DIRECTORY` or `DIRECTORY#DATABASE`.
    pub url: String,
}

/// Opens what `url` names: a data directory (with the database after a `#`, or `database`), or any
/// other directory as a plain remote. One that is missing becomes a plain one with the first push.
///
/// # Errors
/// `BadValue` (2) if `url` is no directory, or names a database where there is no data directory;
/// as opening the directory.
pub fn open(url: &str, database: &str) -> Result<Box<dyn Remote>, Error> {
    let (directory, named) = match url.rsplit_once('#') {
        Some((directory, named)) => (directory, Some(named)),
        None => (url, None),
    };
    if directory.is_empty() || directory.contains("://") {
        let message = format!("remote '{url}': a directory is expected, or DIRECTORY#DATABASE");
        return Err(Error::invalid(Code::BadValue, message));
    }
    let directory = Path::new(directory);
    if is_data_directory(directory) {
        let frond = crate::open::open(directory, FrondOptions::default())?;
        return Ok(Box::new(DataRemote::new(frond, named.unwrap_or(database))?));
    }
    if named.is_some() {
        let message = format!("remote '{url}': there is no data directory {}", directory.display());
        return Err(Error::invalid(Code::BadValue, message));
    }
    Ok(Box::new(PlainRemote::open(&frond_db::inside::open_machine(directory)?)?))
}

/// Whether `directory` is a data directory.
pub fn is_data_directory(directory: &Path) -> bool {
    MANIFEST_NAMES.iter().any(|name| directory.join(name).is_file())
}

impl Repository {
    /// The remotes, by name.
    ///
    /// # Errors
    /// `Damaged` if a record isn't one; `Unavailable` if the disk doesn't answer.
    pub fn list_remotes(&self) -> Result<Vec<RemoteInfo>, Error> {
        let reader = self.reader();
        let prefix = system::remote_key(self.repository_name(), "");
        let place = TreeRef::Live(TreeId::SYSTEM);
        let mut remotes = Vec::new();
        for entry in reader.range(place, Bounds::prefix(&prefix), Direction::Ascending)? {
            let entry = entry?;
            let name = system::name_after(&prefix, &entry.key)?;
            let record = system::record(reader.read(&entry.value)?)?;
            remotes
                .push(RemoteInfo { name, url: system::field(&record, "url", system::as_string)? });
        }
        Ok(remotes)
    }

    /// Returns where the remote `name` is.
    ///
    /// # Errors
    /// `NoSuchKey` if there is no such remote.
    pub fn remote_url(&self, name: &str) -> Result<String, Error> {
        self.check_exists()?;
        let found = self.list_remotes()?.into_iter().find(|remote| remote.name == name);
        let missing = || {
            let database = self.repository_name();
            // A place, where git takes one.
            let (new, place) = match name.contains(['/', ':']) {
                true => ("NAME", name),
                false => (name, "PLACE"),
            };
            let message = format!(
                "no remote {name} of {database}: `frond remote {database} add {new} {place}` or \
                 frondRemote makes one"
            );
            Error::invalid(Code::NoSuchKey, message)
        };
        Ok(found.ok_or_else(missing)?.url)
    }

    /// Names another place of this repository.
    ///
    /// # Errors
    /// `BadValue` if the name is not allowed; `NamespaceExists` if there is such a remote, or a
    /// branch or tag whose name begins as those of its branches would; `NamespaceNotFound` if there
    /// is no such database.
    pub fn add_remote(&self, name: &str, url: &str) -> Result<(), Error> {
        ref_name::check_name_of("remote", name)?;
        if name.contains('/') || url.is_empty() {
            let message = "a remote's name holds no /, and its place is not empty";
            return Err(Error::invalid(Code::BadValue, message));
        }
        if has_user(url) {
            let message = "a remote's place names no user or password: a token stands in a file or \
                           in FROND_REMOTE_TOKEN";
            return Err(Error::invalid(Code::BadValue, message));
        }
        let repository = self.repository_name();
        let scope = Scope::branch(repository, "");
        self.transact_alone(scope, LatchMode::Writer, Durability::Synced, |transaction| {
            let key = system::remote_key(repository, name);
            let (exists, known) = {
                let reader = frond_db::inside::Reader::within(self.frond().engine(), transaction);
                let exists = refs::repository(&reader, repository)?.is_some();
                (exists, reader.get(TreeRef::Live(TreeId::SYSTEM), &key)?.is_some())
            };
            if !exists {
                return Err(refs::missing(repository));
            }
            let its = format!("{name}/");
            let branches = self.list_branches()?.into_iter().map(|branch| branch.name);
            let mut names = branches.chain(self.list_tags()?.into_iter().map(|tag| tag.name));
            if let Some(taken) = names.find(|name| name.starts_with(&its)) {
                let message = format!(
                    "{taken} of {repository} would be taken for a branch of the remote {name}: the \
                     remote needs another name"
                );
                return Err(Error::invalid(Code::NamespaceExists, message));
            }
            if known {
                let message = format!("remote {name} of {repository} exists");
                return Err(Error::invalid(Code::NamespaceExists, message));
            }
            transaction.validate(TreeId::SYSTEM, system::repository_key(repository));
            transaction.put(TreeId::SYSTEM, key, remote_record(url))?;
            Ok(Outcome::Commit(()))
        })
    }

    /// Forgets a remote, and where its branches were.
    ///
    /// # Errors
    /// `NoSuchKey` if there is no such remote.
    pub fn remove_remote(&self, name: &str) -> Result<(), Error> {
        self.remote_url(name)?;
        self.forget_remote_branches(name)
    }

    /// Forgets where a remote's branches were, and the remote if it is one by name.
    pub(crate) fn forget_remote_branches(&self, name: &str) -> Result<(), Error> {
        let repository = self.repository_name();
        let scope = Scope::branch(repository, "");
        self.transact_alone(scope, LatchMode::Writer, Durability::Synced, |transaction| {
            let known = {
                let reader = frond_db::inside::Reader::within(self.frond().engine(), transaction);
                crate::refs::tag::tracking(&reader, repository, Some(name))?
            };
            for tracked in known {
                let key = system::tracking_key(repository, &tracked.name);
                transaction.delete(TreeId::SYSTEM, key)?;
            }
            transaction.delete(TreeId::SYSTEM, system::remote_key(repository, name))?;
            Ok(Outcome::Commit(()))
        })
    }

    /// Returns where the branches of remotes were when they were last seen: `origin/main`.
    ///
    /// # Errors
    /// `Damaged` if a record isn't one; `Unavailable` if the disk doesn't answer.
    pub fn remote_branches(&self, remote: Option<&str>) -> Result<Vec<TagInfo>, Error> {
        crate::refs::tag::tracking(&self.reader(), self.repository_name(), remote)
    }
}

fn remote_record(url: &str) -> TreeValue {
    let mut builder = DocumentBuilder::new();
    builder.append("url", Value::String(url));
    TreeValue::inline(builder.build().into_bytes())
}

/// Whether a URL has a user: what is stored, logged and shown to all readers holds no secret.
fn has_user(url: &str) -> bool {
    let authority = url.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or(rest));
    authority.is_some_and(|authority| authority.contains('@'))
}
