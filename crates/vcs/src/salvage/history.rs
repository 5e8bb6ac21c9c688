//! Commits, branches and tags of what is left.

use std::collections::{HashMap, HashSet};

use frond_db::inside::refs::{self, format, shallow};
use frond_db::inside::{
    BranchRef, Commit, Error, ErrorKind, Frond, LatchMode, Outcome, RepositoryRecord, Scope,
    TreeRef, system,
};
use frond_engine::{Durability, TreeId};
use frond_store::{Chunk, ChunkHash, ChunkStore, Lifetime};
use frond_tree::{Bounds, Direction, Value as TreeValue};

use crate::TagInfo;
use crate::refs::tag;
use crate::remote::{carry_commits, ensure_repository, register};
use crate::repository::Repository;
use crate::salvage::source::Source;
use crate::salvage::{SalvageReport, unreadable_note};

/// Commits that are registered together.
const BATCH: usize = 1_024;

/// A branch of what is left.
pub(super) struct Branch {
    pub name: String,
    /// The commit that it names.
    pub head: Option<ChunkHash>,
    /// The commit that it names in the new directory.
    pub saved: Option<ChunkHash>,
}

/// Remembers which chunks have all chunks below them.
#[derive(Default)]
pub(super) struct Whole(HashMap<ChunkHash, bool>);

impl Whole {
    /// Whether `root` and all below it can be read. Of a commit its catalog counts, not its
    /// parents.
    ///
    /// # Errors
    /// `Unavailable` if the store doesn't answer.
    pub fn check(&mut self, store: &dyn ChunkStore, root: ChunkHash) -> Result<bool, Error> {
        // Chunks on the way, what they refer to yet, and whether all so far was whole.
        let mut stack: Vec<(ChunkHash, Vec<ChunkHash>, bool)> = Vec::new();
        let mut next = Some(root);
        loop {
            let mut answer = None;
            if let Some(hash) = next.take() {
                answer = self.0.get(&hash).copied();
                if answer.is_none() {
                    match store.get(hash).map_err(Error::from) {
                        Ok(chunk) => stack.push((hash, chunk.references().collect(), true)),
                        Err(error) if error.kind == ErrorKind::Damaged => {
                            self.0.insert(hash, false);
                            answer = Some(false);
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
            let Some((hash, left, is_whole)) = stack.last_mut() else {
                return Ok(answer.unwrap_or_default());
            };
            *is_whole &= answer.unwrap_or(true);
            match left.pop() {
                Some(child) => next = Some(child),
                None => {
                    self.0.insert(*hash, *is_whole);
                    // Looked up at once, for the chunk that refers to it.
                    next = Some(*hash);
                    stack.pop();
                }
            }
        }
    }
}

/// The commits in packs that no database of `names` has, each with its repository's salt.
pub(super) fn unnamed<'a>(
    source: &Source,
    names: impl Iterator<Item = &'a str>,
) -> Result<Vec<(u64, ChunkHash)>, Error> {
    let mut named = HashSet::new();
    for name in names {
        named.extend(read_commits(source, name)?);
    }
    let mut unnamed = Vec::new();
    for hash in source.commits.iter().filter(|hash| !named.contains(*hash)) {
        if let Ok(commit) = Commit::decode(&source.store().get(*hash)?) {
            unnamed.push((commit.catalog.format.salt, *hash));
        }
    }
    Ok(unnamed)
}

/// The commits of a database that can be read with all that they name.
struct WholeCommits {
    /// Their chunks, parents first.
    chunks: Vec<Chunk>,
    /// Their parents.
    saved: HashMap<ChunkHash, Vec<ChunkHash>>,
    newest: Option<ChunkHash>,
    /// What was found out on the way.
    whole: Whole,
}

fn whole_commits(
    source: &Source,
    name: &str,
    unnamed: &HashSet<ChunkHash>,
    report: &mut SalvageReport,
) -> Result<WholeCommits, Error> {
    let store = source.store();
    let commits = read_commits(source, name)?.into_iter().chain(unnamed.iter().copied());
    let (mut whole, mut saved) = (Whole::default(), HashMap::new());
    let mut chunks: Vec<(u64, Chunk)> = Vec::new();
    for hash in commits {
        let found =
            store.get(hash).ok().map(|chunk| Ok::<_, Error>((Commit::decode(&chunk)?, chunk)));
        match found.transpose().ok().flatten() {
            Some((commit, chunk)) if whole.check(&*store, commit.catalog.root)? => {
                saved.insert(hash, commit.parents);
                chunks.push((commit.generation, chunk));
            }
            // Perhaps nothing named it for long.
            _ if unnamed.contains(&hash) => {}
            _ => report.commits_lost.push((name.to_owned(), format::id_of(hash).to_string())),
        }
    }
    chunks.sort_by_key(|(generation, chunk)| (*generation, chunk.hash()));
    let newest = chunks.last().map(|(_, chunk)| chunk.hash());
    let chunks = chunks.into_iter().map(|(_, chunk)| chunk).collect();
    Ok(WholeCommits { chunks, saved, newest, whole })
}

/// Tags for the commits that neither a branch nor another commit names.
fn tags_of_tips(
    source: &Source,
    name: &str,
    unnamed: &HashSet<ChunkHash>,
    saved: &HashMap<ChunkHash, Vec<ChunkHash>>,
    branches: &[Branch],
    report: &mut SalvageReport,
) -> Vec<TagInfo> {
    let is_parent: HashSet<&ChunkHash> = saved.values().flatten().collect();
    let is_head = |hash: &ChunkHash| branches.iter().any(|branch| branch.saved == Some(*hash));
    let tips = unnamed.iter().filter(|hash| saved.contains_key(*hash) && !is_parent.contains(hash));
    let mut tags = Vec::new();
    for tip in tips.filter(|hash| !is_head(hash)) {
        let tag = new_tag(source, *tip);
        let what = "is in no branch that can be read; it is kept by the tag";
        report.notes.push(format!("{name}: the commit {} {what} {}", tag.commit, tag.name));
        tags.push(tag);
    }
    tags
}

/// Saves the history of a database, with those of the commits `unnamed` that are of its repository.
/// Returns its branches, and which chunks were found whole.
pub(super) fn save(
    source: &Source,
    target: &Frond,
    (name, repository): (&str, &RepositoryRecord),
    unnamed: &[(u64, ChunkHash)],
    report: &mut SalvageReport,
) -> Result<(Vec<Branch>, Whole), Error> {
    let store = source.store();
    let unnamed: HashSet<ChunkHash> = unnamed
        .iter()
        .filter(|(salt, _)| *salt == repository.salt)
        .map(|(_, hash)| *hash)
        .collect();
    let WholeCommits { chunks, saved, newest, whole } =
        whole_commits(source, name, &unnamed, report)?;
    let is_absent = |parent: &&ChunkHash| !saved.contains_key(*parent);
    let absent: HashSet<ChunkHash> = saved.values().flatten().filter(is_absent).copied().collect();
    let new = target.engine().store().clone();
    let _session = new.session();
    shallow::list(&*new, &absent)?;
    carry_commits(&store, &new, Lifetime::Lasting, &chunks, &absent)?;
    new.sync()?;
    report.commits += chunks.len() as u64;
    let mut branches = read_branches(source, name, &saved)?;
    if branches.is_empty() && newest.is_some() {
        let name = repository.default_branch.clone();
        branches.push(Branch { name, head: newest, saved: newest });
    }
    report.notes.extend(source.losses().iter().map(|lost| unreadable_note(name, lost)));
    let database = Repository::open(target, name)?;
    for batch in chunks.chunks(BATCH) {
        let hashes: Vec<ChunkHash> = batch.iter().map(Chunk::hash).collect();
        write(&database, repository, |transaction| register(&database, transaction, &hashes))?;
    }
    let mut tags = tags_of(source, name, &saved, &absent, &branches, report)?;
    tags.extend(tags_of_tips(source, name, &unnamed, &saved, &branches, report));
    write(&database, repository, |transaction| {
        for branch in &branches {
            let record = BranchRef { commit: branch.saved.map(format::id_of) };
            let key = system::branch_key(name, &branch.name);
            transaction.put(TreeId::SYSTEM, key, TreeValue::inline(record.encode()))?;
        }
        tags.iter().try_for_each(|tag| tag.put(transaction, name))
    })?;
    for branch in branches.iter().filter(|branch| branch.head != branch.saved) {
        report.notes.push(match branch.saved.map(format::id_of) {
            Some(id) => format!("{name}@{}: its last whole commit is {id}", branch.name),
            None => format!("{name}@{}: none of its commits is whole", branch.name),
        });
    }
    Ok((branches, whole))
}

/// Notes the commits of a database that aren't whole. Returns the names of its branches.
pub(super) fn survey(
    source: &Source,
    name: &str,
    report: &mut SalvageReport,
) -> Result<Vec<String>, Error> {
    let (store, mut whole) = (source.store(), Whole::default());
    for hash in read_commits(source, name)? {
        let commit = store.get(hash).ok().and_then(|chunk| Commit::decode(&chunk).ok());
        let is_whole = match commit {
            Some(commit) => whole.check(&*store, commit.catalog.root)?,
            None => false,
        };
        if !is_whole {
            report.commits_lost.push((name.to_owned(), format::id_of(hash).to_string()));
        }
    }
    let branches = read_branches(source, name, &HashMap::new())?;
    report.notes.extend(source.losses().iter().map(|lost| unreadable_note(name, lost)));
    Ok(branches.into_iter().map(|branch| branch.name).collect())
}

/// Changes the new directory's records of a database, which is made where it is missing.
pub(super) fn write(
    database: &Repository,
    repository: &RepositoryRecord,
    mut change: impl FnMut(&mut frond_engine::Transaction) -> Result<(), Error>,
) -> Result<(), Error> {
    let scope = Scope::branch(database.repository_name(), "");
    database.transact_alone(scope, LatchMode::Writer, Durability::Synced, |transaction| {
        let default_branch = &repository.default_branch;
        ensure_repository(database, transaction, repository.salt, default_branch)?;
        change(transaction)?;
        Ok(Outcome::Commit(()))
    })
}

/// The chunks of all commits of a database, as far as their records can be read.
fn read_commits(source: &Source, name: &str) -> Result<Vec<ChunkHash>, Error> {
    let (reader, prefix) = (source.reader(), system::commit_key(name, &[]));
    let system = TreeRef::Live(TreeId::SYSTEM);
    let mut commits = Vec::new();
    for entry in reader.range(system, Bounds::prefix(&prefix), Direction::Ascending)? {
        commits.push(system::commit_chunk(&entry?.value)?);
    }
    Ok(commits)
}

/// The branches of a database, each with the last whole commit on the line of its first parents.
fn read_branches(
    source: &Source,
    name: &str,
    saved: &HashMap<ChunkHash, Vec<ChunkHash>>,
) -> Result<Vec<Branch>, Error> {
    let (reader, prefix) = (source.reader(), system::branches_prefix(name));
    let system = TreeRef::Live(TreeId::SYSTEM);
    let mut branches = Vec::new();
    for entry in reader.range(system, Bounds::prefix(&prefix), Direction::Ascending)? {
        let entry = entry?;
        let branch = system::name_after(&prefix, &entry.key)?;
        let commit = BranchRef::decode(reader.read(&entry.value)?)?.commit;
        let head = commit.map(|id| refs::commit_chunk(&reader, name, &id)).transpose();
        let head = head.ok().flatten().flatten();
        let mut at = head;
        while let Some(hash) = at.filter(|hash| !saved.contains_key(hash)) {
            let commit =
                source.store().get(hash).ok().and_then(|chunk| Commit::decode(&chunk).ok());
            at = commit.and_then(|commit| commit.parents.first().copied());
        }
        branches.push(Branch { name: branch, head, saved: at });
    }
    Ok(branches)
}

/// The tags of whole commits, and new ones for what lies behind a commit that is left out.
fn tags_of(
    source: &Source,
    name: &str,
    saved: &HashMap<ChunkHash, Vec<ChunkHash>>,
    absent: &HashSet<ChunkHash>,
    branches: &[Branch],
    report: &mut SalvageReport,
) -> Result<Vec<TagInfo>, Error> {
    let reader = source.reader();
    let mut tags = Vec::new();
    for tag in tag::of_database(&reader, name)? {
        let chunk = refs::commit_chunk(&reader, name, &tag.commit).ok().flatten();
        match chunk.is_some_and(|chunk| saved.contains_key(&chunk)) {
            true => tags.push(tag),
            false => report.notes.push(format!("{name}: the tag {} is lost", tag.name)),
        }
    }
    for lost in absent {
        let commit = source.store().get(*lost).ok().and_then(|chunk| Commit::decode(&chunk).ok());
        for parent in commit.into_iter().flat_map(|commit| commit.parents) {
            let is_head = branches.iter().any(|branch| branch.saved == Some(parent));
            let new = new_tag(source, parent);
            let is_new = tags.iter().all(|tag| tag.name != new.name);
            if saved.contains_key(&parent) && !is_head && is_new {
                tags.push(new);
            }
        }
    }
    Ok(tags)
}

/// A tag for a commit that nothing names any more.
fn new_tag(source: &Source, commit: ChunkHash) -> TagInfo {
    let commit = format::id_of(commit);
    let name = format!("salvaged-{}", &commit.to_string()[..8]);
    TagInfo { name, commit, message: None, author: None, time_millis: source.frond.now_millis() }
}
