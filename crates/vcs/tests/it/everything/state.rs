//! The expected state of everything at one moment, and the state found.

use std::collections::BTreeMap;
use std::rc::Rc;

use frond_db::{Error, FindRequest, Frond};
use frond_doc::DocumentBuf;
use frond_vcs::CommitId;
use frond_vcs::Repository;

use super::REPOSITORIES;
use crate::model::check_indexes;
use crate::model::history::History;
use crate::model::naive::{Fields, Whole, to_document};
use crate::try_find;

/// A document: branch (`shop@main`), collection, `_id`.
pub type Key = (String, &'static str, i32);

#[derive(Clone, PartialEq, Debug)]
pub struct Branch {
    pub working: Rc<Whole>,
    /// A commit in the history.
    pub head: Option<usize>,
    pub is_merging: bool,
    /// The time when trees were last replaced.
    pub replaced: usize,
}

impl Branch {
    pub fn new(working: Rc<Whole>, head: Option<usize>) -> Branch {
        Branch { working, head, is_merging: false, replaced: 0 }
    }
}

/// All branches of all databases.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Model(pub BTreeMap<String, Branch>);

impl Model {
    pub fn document(&self, (branch, collection, id): &Key) -> Option<&Fields> {
        self.0.get(branch)?.working.get(collection)?.get(id)
    }

    /// The working state of a branch, to be changed.
    pub fn edit(&mut self, branch: &str) -> &mut Whole {
        Rc::make_mut(&mut self.0.get_mut(branch).expect("the branch is there").working)
    }

    /// Notes that other trees come into their places.
    pub fn replace(&mut self, branch: &str, moment: usize) {
        self.0.get_mut(branch).expect("the branch is there").replaced = moment;
    }

    pub fn put(&mut self, (branch, collection, id): &Key, document: Option<Fields>) {
        let collection = self.edit(branch).get_mut(collection).expect("the collection is there");
        collection.remove(id);
        collection.extend(document.map(|document| (*id, document)));
    }

    pub fn has_collection(&self, branch: &str, collection: &str) -> bool {
        self.0.get(branch).is_some_and(|branch| branch.working.contains_key(collection))
    }
}

/// A state that a failed step may have left.
pub struct Tried {
    pub model: Model,
    /// The branch and the parents of a commit, whose id isn't known: in the model it is the next
    /// one of the history.
    pub commit: Option<(String, Vec<usize>)>,
}

/// The state found.
pub struct Found(BTreeMap<String, FoundBranch>);

#[derive(PartialEq, Debug)]
struct FoundBranch {
    collections: BTreeMap<String, Vec<DocumentBuf>>,
    head: Option<CommitId>,
    is_merging: bool,
}

impl Found {
    pub fn read(frond: &Frond) -> Result<Found, Error> {
        let mut found = BTreeMap::new();
        let databases = frond.list_databases()?;
        for repository in REPOSITORIES {
            if !databases.iter().any(|database| database.name == repository) {
                continue;
            }
            for branch in Repository::open(frond, repository)?.list_branches()? {
                let name = format!("{repository}@{}", branch.name);
                let database = Repository::open(frond, &name)?;
                let mut collections = BTreeMap::new();
                for collection in database.list_collections()? {
                    let documents = try_find(&database, &collection.name, None, None)?;
                    collections.insert(collection.name, documents);
                }
                let is_merging = database.status()?.merging.is_some();
                found.insert(name, FoundBranch { collections, head: branch.head, is_merging });
            }
        }
        Ok(Found(found))
    }

    /// The HEAD of a branch.
    pub fn head(&self, branch: &str) -> Option<CommitId> {
        self.0.get(branch)?.head
    }

    /// The first difference from a model; nothing if it is just that.
    pub fn difference(&self, history: &History, tried: &Model) -> Option<String> {
        if !self.0.keys().eq(tried.0.keys()) {
            return Some(format!("branches {:?}, not {:?}", self.0.keys(), tried.0.keys()));
        }
        self.0.iter().zip(&tried.0).find_map(|((name, found), (_, expected))| {
            let is_pending = expected.head == Some(history.count());
            let head = expected.head.filter(|_| !is_pending).map(|head| history[head].id);
            let is_head = if is_pending {
                let known = |id| (0..history.count()).any(|commit| history[commit].id == id);
                found.head.is_some_and(|id| !known(id))
            } else {
                found.head == head
            };
            if !is_head || found.is_merging != expected.is_merging {
                let (head, merging) = (found.head, found.is_merging);
                return Some(format!("{name} is at {head:?}, merging: {merging}"));
            }
            if !found.collections.keys().eq(expected.working.keys()) {
                return Some(format!("{name} has collections {:?}", found.collections.keys()));
            }
            found.collections.iter().zip(expected.working.iter()).find_map(
                |((collection, found), (_, expected))| {
                    let difference = difference(found, &documents(expected))?;
                    Some(format!("{name}.{collection}: {difference}"))
                },
            )
        })
    }
}

fn documents(collection: &BTreeMap<i32, Fields>) -> Vec<DocumentBuf> {
    collection.iter().map(|(id, fields)| to_document(*id, fields)).collect()
}

/// Returns where documents differ first. Large ones are shown around that place.
fn difference(found: &[DocumentBuf], expected: &[DocumentBuf]) -> Option<String> {
    let count = found.len().max(expected.len());
    let differs = |at: &usize| found.get(*at) != expected.get(*at);
    let at = (0..count).find(differs)?;
    let [found, expected] = [found.get(at), expected.get(at)].map(|it| format!("{it:?}"));
    let place = found.chars().zip(expected.chars()).take_while(|(one, other)| one == other).count();
    let around =
        |text: &str| -> String { text.chars().skip(place.saturating_sub(200)).take(600).collect() };
    Some(format!("{} is not {}", around(&found), around(&expected)))
}

/// Checks a version by scans and by indexes.
pub fn check_branch(version: &Repository, expected: &Whole) -> Result<(), Error> {
    let names: Vec<String> =
        version.list_collections()?.into_iter().map(|found| found.name).collect();
    assert_eq!(names, expected.keys().copied().collect::<Vec<_>>());
    for (name, collection) in expected {
        let found = try_find(version, name, None, None)?;
        let difference = difference(&found, &documents(collection));
        assert!(difference.is_none(), "{name}: {}", difference.unwrap_or_default());
        assert_eq!(version.count(name, &FindRequest::default())?, collection.len() as u64);
        check_indexes(version, name)?;
    }
    Ok(())
}
