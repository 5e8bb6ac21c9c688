//! Random histories against a naive model of whole copies ([`naive`]).
//!
//! The model keeps every commit and every working state as a whole copy, finds merge bases by their
//! definition, and merges by walking over everything. After each step the branch must show what the
//! model says, by scan and by index; at the end every commit must, and so must differences.

pub mod history;
pub mod naive;

use std::collections::BTreeMap;

use frond_db::{Error, Frond};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, document};
use frond_query::Code;
use frond_testkit::random::{assert_met, for_seeds};
use frond_testkit::{Random, SimDisk};
use frond_vcs::Repository;
use frond_vcs::{Conflict, ConflictKind, ConflictSelection, MergeOutcome, Resolution};
use history::History;
use naive::{
    COLLECTIONS, Fields, IDS, ModelConflicts, OURS, Preferred, THEIRS, Whole, document_sides,
    merge_document, merge_wholes, random_fields, to_document,
};

use super::{all, index, merge, new, open, put, remove, shop, try_find};

const SEEDS: u64 = 60;
const STEPS: usize = 40;

struct ModelBranch {
    name: String,
    working: Whole,
    head: Option<usize>,
}

/// A database, and what it should be.
struct Run {
    disk: SimDisk,
    frond: Frond,
    random: Random,
    commits: History,
    branches: Vec<ModelBranch>,
    seen: Seen,
}

/// The number of times each way of ending a merge was tried.
#[derive(Default, Debug)]
struct Seen {
    up_to_date: u32,
    fast_forwards: u32,
    dirty: u32,
    schema: u32,
    merged: u32,
    aborted: u32,
    resolved: u32,
}

impl Run {
    fn begin(random: Random) -> Run {
        let disk = SimDisk::new(1);
        let frond = open(&disk);
        let main = ModelBranch { name: "main".to_owned(), working: Whole::new(), head: None };
        Run {
            disk,
            frond,
            random,
            commits: History::default(),
            branches: vec![main],
            seen: Seen::default(),
        }
    }

    fn database(&self, branch: usize) -> Repository {
        shop(&self.frond, &self.branches[branch].name)
    }

    fn head_whole(&self, branch: usize) -> Whole {
        self.commits.whole(self.branches[branch].head)
    }

    fn record(&mut self, branch: usize, parents: Vec<usize>, id: frond_vcs::CommitId) {
        let whole = self.branches[branch].working.clone();
        self.branches[branch].head = Some(self.commits.add(whole, parents, id));
    }

    fn edit(&mut self, branch: usize) {
        let database = self.database(branch);
        let working = &mut self.branches[branch].working;
        let name = *self.random.choose(&COLLECTIONS);
        if self.random.one_in(25) {
            assert_eq!(database.drop_collection(name).unwrap(), working.remove(name).is_some());
            return;
        }
        let to = *self.random.choose(&COLLECTIONS);
        if self.random.one_in(12) && name != to && working.contains_key(name) {
            database.rename_collection(name, to, true).unwrap();
            let renamed = working.remove(name).unwrap();
            working.insert(to, renamed);
            return;
        }
        if !working.contains_key(name) {
            database.create_collection(name, Document::empty()).unwrap();
            index_keys().into_iter().for_each(|key| index(&database, name, key, false));
        }
        let collection = working.entry(name).or_default();
        let id = self.random.below(IDS) as i32;
        if self.random.one_in(4) {
            remove(&database, name, id);
            collection.remove(&id);
        } else {
            let fields = random_fields(&mut self.random);
            put(&database, name, &to_document(id, &fields)).unwrap();
            collection.insert(id, fields);
        }
    }

    fn commit(&mut self, branch: usize) {
        let result = self.database(branch).commit("by the model", "");
        if self.head_whole(branch) == self.branches[branch].working {
            assert!(result.unwrap_err().message.starts_with("nothing to commit"));
            return;
        }
        let parents = self.branches[branch].head.into_iter().collect();
        self.record(branch, parents, result.unwrap().id);
    }

    /// Folds everything into trees, or starts anew from the disk.
    fn settle_storage(&mut self) {
        if self.random.one_in(2) {
            self.frond.engine().checkpoint().unwrap();
        } else {
            self.frond.close().unwrap();
            self.disk = self.disk.kill();
            self.frond = open(&self.disk);
        }
    }

    fn create_branch(&mut self, from: usize) {
        let name = format!("b{}", self.branches.len());
        let info = match self.database(from).create_branch(&name, None) {
            Ok(info) => info,
            Err(error) => {
                assert_eq!(error.code, Code::NamespaceNotFound, "{error}");
                assert!(self.commits.count() == 0);
                return;
            }
        };
        let head = self.branches[from].head;
        assert_eq!(info.head, head.map(|head| self.commits[head].id));
        let working = self.head_whole(from);
        self.branches.push(ModelBranch { name, working, head });
    }

    fn reset(&mut self, branch: usize) {
        let database = self.database(branch);
        if self.commits.count() == 0 {
            return;
        }
        let target = self.random.below(self.commits.count());
        let hard = self.random.one_in(2);
        let id = self.commits[target].id;
        assert_eq!(database.reset(Some(&id.to_string()), hard).unwrap(), Some(id));
        self.branches[branch].head = Some(target);
        if hard {
            self.branches[branch].working = self.commits[target].whole.clone();
        }
    }

    fn merge(&mut self, branch: usize, from: usize) {
        let database = self.database(branch);
        let result = merge(&database, &self.branches[from].name);
        let Some(theirs) = self.branches[from].head else {
            assert!(result.is_err());
            return;
        };
        let head = self.branches[branch].head;
        let bases = head.map_or_else(Vec::new, |ours| self.commits.bases(ours, theirs));
        let base = bases.first().copied();
        if base == Some(theirs) {
            assert!(matches!(result, Ok(MergeOutcome::UpToDate { .. })), "{result:?}");
            self.seen.up_to_date += 1;
            return;
        }
        if self.head_whole(branch) != self.branches[branch].working {
            assert_eq!(result.unwrap_err().code, Code::IllegalOperation);
            self.seen.dirty += 1;
            return;
        }
        let Some(ours) = self.branches[branch].head.filter(|ours| base != Some(*ours)) else {
            assert!(matches!(result, Ok(MergeOutcome::FastForward { .. })), "{result:?}");
            self.seen.fast_forwards += 1;
            self.branches[branch].head = Some(theirs);
            self.branches[branch].working = self.commits[theirs].whole.clone();
            return;
        };
        let base = self.commits.base_whole(&bases);
        let sides = [&base, &self.commits[ours].whole, &self.commits[theirs].whole];
        let mut side = None;
        let mut outcome = result.unwrap();
        let (merged, conflicts) = match merge_wholes(sides, OURS, None) {
            Some(merged) => merged,
            None => {
                // Dropped here, changed or renamed there, or renamed differently: decided first,
                // then the rest is merged.
                assert!(matches!(outcome, MergeOutcome::Conflicts { .. }), "{outcome:?}");
                let waiting = database.conflicts(None).unwrap();
                assert!(waiting.iter().all(|conflict| conflict.kind == ConflictKind::Collection));
                self.seen.schema += 1;
                if self.random.one_in(3) {
                    database.merge_abort().unwrap();
                    return;
                }
                let decided = if self.random.one_in(2) { OURS } else { THEIRS };
                let resolution = match decided {
                    OURS => Resolution::Ours,
                    _ => Resolution::Theirs,
                };
                side = Some(decided);
                assert!(database.merge_continue(None, None).is_err(), "nothing is decided yet");
                database.resolve_conflicts(&ConflictSelection::All, &resolution).unwrap();
                outcome = database.merge_continue(None, None).unwrap();
                merge_wholes(sides, OURS, side).expect("everything is decided")
            }
        };
        self.branches[branch].working = merged;
        match outcome {
            MergeOutcome::Merged { commit } => {
                assert!(conflicts.is_empty(), "{conflicts:?}");
                self.record(branch, vec![ours, theirs], commit.id);
                self.seen.merged += 1;
                if side.is_none() {
                    self.check_other_direction(branch, ours, theirs);
                }
            }
            MergeOutcome::Conflicts { counts } => {
                assert_eq!(
                    counts.iter().map(|(_, count)| count).sum::<u64>(),
                    conflicts.len() as u64
                );
                self.check_working(branch);
                self.settle(branch, &conflicts, (&base, ours, theirs), side);
            }
            other => panic!("{other:?}"),
        }
    }

    /// A merge of ours into theirs gives the same, byte by byte: the trees have the same roots.
    fn check_other_direction(&self, branch: usize, ours: usize, theirs: usize) {
        let database = self.database(branch);
        database.create_branch("mirror", Some(&self.commits[theirs].id.to_string())).unwrap();
        let mirror = shop(&self.frond, "mirror");
        let outcome = merge(&mirror, &self.commits[ours].id.to_string()).unwrap();
        assert!(matches!(outcome, MergeOutcome::Merged { .. }), "{outcome:?}");
        for name in self.branches[branch].working.keys() {
            check_indexes(&mirror, name).unwrap();
        }
        let differs = database.diff(Some("mirror"), None).unwrap();
        assert!(differs.is_empty(), "{differs:?}");
        database.delete_branch("mirror", true).unwrap();
    }

    /// Gives a merge with conflicts up, or resolves each conflict one way or the other.
    fn settle(
        &mut self,
        branch: usize,
        expected: &ModelConflicts,
        sides: (&Whole, usize, usize),
        decided: Option<Preferred>,
    ) {
        let (base, ours, theirs) = sides;
        let database = self.database(branch);
        let conflicts = database.conflicts(None).unwrap();
        let found: ModelConflicts = conflicts.iter().map(model_conflict).collect();
        assert_eq!(&found, expected);
        if self.random.one_in(3) {
            database.merge_abort().unwrap();
            self.seen.aborted += 1;
            self.branches[branch].working = self.commits[ours].whole.clone();
            return;
        }
        let mut left = conflicts.len() as u64;
        for conflict in &conflicts {
            left -= 1;
            let (name, id, _) = model_conflict(conflict);
            let resolution =
                if self.random.one_in(2) { Resolution::Ours } else { Resolution::Theirs };
            assert_eq!(database.resolve_conflict(&conflict.id, &resolution).unwrap(), left);
            let wholes = [base, &self.commits[ours].whole, &self.commits[theirs].whole];
            let sides = document_sides(wholes, (name, id), decided);
            let prefer = if matches!(resolution, Resolution::Theirs) { THEIRS } else { OURS };
            let (resolved, _) = merge_document(sides.each_ref().map(Option::as_ref), prefer);
            let collection = self.branches[branch].working.get_mut(name).unwrap();
            collection.remove(&id);
            collection.extend(resolved.map(|resolved| (id, resolved)));
        }
        self.check_working(branch);
        let outcome = database.merge_continue(None, None).unwrap();
        let MergeOutcome::Merged { commit } = outcome else { panic!("{outcome:?}") };
        self.record(branch, vec![ours, theirs], commit.id);
        self.seen.resolved += 1;
    }

    fn check_working(&self, branch: usize) {
        check_whole(&self.database(branch), &self.branches[branch].working);
    }

    fn check_status(&self, branch: usize) {
        let (head, working) = (self.head_whole(branch), &self.branches[branch].working);
        let found: Vec<_> = self.database(branch).status().unwrap().collections;
        let found: Vec<_> = found
            .iter()
            .map(|found| (found.collection.as_str(), [found.added, found.removed, found.modified]))
            .collect();
        assert_eq!(found, differences(&head, working));
    }

    /// Checks that every commit is what it was, and differs from another one as their copies do.
    fn check_history(&mut self) {
        for position in 0..self.commits.count() {
            let commit = &self.commits[position];
            let version = shop(&self.frond, &commit.id.to_string());
            check_whole(&version, &commit.whole);
            assert_eq!(
                version.log(None, None).unwrap().len(),
                self.commits.ancestors(position).len()
            );
            let other = self.random.below(self.commits.count());
            let other = &self.commits[other];
            let found = version.diff(None, Some(&other.id.to_string())).unwrap();
            let found: Vec<_> = found
                .iter()
                .map(|found| {
                    let counts = [found.added.len(), found.removed.len(), found.modified.len()];
                    (found.collection.as_str(), counts.map(|count| count as u64))
                })
                .collect();
            assert_eq!(found, differences(&commit.whole, &other.whole));
        }
    }
}

pub fn model_conflict(conflict: &Conflict) -> (&'static str, i32, Vec<String>) {
    let name = COLLECTIONS.into_iter().find(|name| *name == conflict.collection).unwrap();
    let Value::Int32(id) = conflict.document_id.as_value() else { panic!("ids are numbers") };
    let mut paths = conflict.paths.clone();
    paths.sort();
    (name, id, paths)
}

/// Returns for each collection that differs how many documents were added, removed, modified.
fn differences(from: &Whole, to: &Whole) -> Vec<(&'static str, [u64; 3])> {
    let mut differences = Vec::new();
    for name in COLLECTIONS {
        let (left, right) = (from.get(name), to.get(name));
        if left == right {
            continue;
        }
        let mut counts = [0; 3];
        for id in 0..IDS as i32 {
            let sides = [left, right].map(|side| side.and_then(|side| side.get(&id)));
            match sides {
                [None, Some(_)] => counts[0] += 1,
                [Some(_), None] => counts[1] += 1,
                [from, to] => counts[2] += u64::from(from != to),
            }
        }
        differences.push((name, counts));
    }
    differences
}

fn check_whole(version: &Repository, expected: &Whole) {
    let names: Vec<String> =
        version.list_collections().unwrap().into_iter().map(|found| found.name).collect();
    assert_eq!(names, expected.keys().copied().collect::<Vec<_>>());
    for (name, collection) in expected {
        let expected: Vec<DocumentBuf> =
            collection.iter().map(|(id, fields)| to_document(*id, fields)).collect();
        assert_eq!(all(version, name), expected);
        check_indexes(version, name).unwrap();
    }
}

/// The keys of the indexes that each collection has.
pub fn index_keys() -> [DocumentBuf; 3] {
    [document! { "a": 1_i32 }, document! { "n.x": -1_i32, "b": 1_i32 }, document! { "t": 1_i32 }]
}

/// Checks that each index finds the same as a scan.
pub fn check_indexes(version: &frond_db::Database, collection: &str) -> Result<(), Error> {
    let documents = try_find(version, collection, None, None)?;
    for number in 0..3 {
        for (path, hint) in [("a", "a_1"), ("n.x", "n.x_-1_b_1"), ("t", "t_1")] {
            let matches = |document: &&DocumentBuf| matches(document, path, number);
            let mut filter = DocumentBuilder::new();
            filter.append(path, Value::Int32(number));
            let mut found = try_find(version, collection, Some(filter.build()), Some(hint))?;
            found.sort_by_key(|document| document.get("_id").and_then(|id| id.as_integer()));
            assert!(found.iter().eq(documents.iter().filter(matches)), "{path}: {number}");
        }
    }
    Ok(())
}

/// Whether the field, or an element of it, is the number.
fn matches(document: &DocumentBuf, path: &str, number: i32) -> bool {
    let value = match path.split_once('.') {
        None => document.get(path),
        Some((outer, inner)) => {
            let outer = document.get(outer).and_then(|outer| outer.as_document());
            outer.and_then(|outer| outer.get(inner))
        }
    };
    match value {
        Some(Value::Array(array)) => array.iter().any(|value| value == Value::Int32(number)),
        value => value == Some(Value::Int32(number)),
    }
}

#[test]
fn random_histories_are_what_whole_copies_say() {
    let mut seen = Vec::new();
    for_seeds(SEEDS, |random| {
        let mut run = Run::begin(random);
        for _ in 0..STEPS {
            let branch = run.random.below(run.branches.len());
            match run.random.below(21) {
                0..=8 => {
                    for _ in 0..1 + run.random.below(4) {
                        run.edit(branch);
                    }
                }
                9..=12 => run.commit(branch),
                13..=14 if run.branches.len() < 4 => run.create_branch(branch),
                13..=18 => {
                    let from = run.random.below(run.branches.len());
                    if !run.random.one_in(3) {
                        run.commit(branch);
                        run.commit(from);
                    }
                    run.merge(branch, from);
                }
                19 => run.settle_storage(),
                _ => run.reset(branch),
            }
            run.check_working(branch);
            run.check_status(branch);
        }
        run.check_history();
        seen.push(run.seen);
    });
    let assert_reached = |what: &str, count: fn(&Seen) -> u32| {
        assert_met(what, seen.iter().map(count).sum::<u32>(), 1);
    };
    assert_reached("merges", |seen| seen.merged);
    assert_reached("conflicts resolved", |seen| seen.resolved);
    assert_reached("merges aborted or into uncommitted work", |seen| seen.aborted + seen.dirty);
    assert_reached("fast-forwards", |seen| seen.fast_forwards);
    assert_reached("merges of what was there", |seen| seen.up_to_date);
}

/// Edits that lead to one content by two ways give one root: a soft reset from the one to the other
/// leaves nothing to commit.
#[test]
fn the_same_content_is_the_same_version_by_any_way() {
    for_seeds(10, |mut random| {
        let frond = new();
        let main = shop(&frond, "");
        let mut target: BTreeMap<i32, Fields> = BTreeMap::new();
        for id in 0..60 {
            target.insert(id, random_fields(&mut random));
        }
        index(&main, "x", document! { "a": 1_i32 }, false);
        main.commit("empty", "").unwrap();
        main.create_branch("other", None).unwrap();
        let other = shop(&frond, "other");
        let mut ids: Vec<i32> = target.keys().copied().collect();
        for branch in [&main, &other] {
            for position in (1..ids.len()).rev() {
                ids.swap(position, random.below(position + 1));
            }
            for id in &ids {
                if random.one_in(3) {
                    let detour = random_fields(&mut random);
                    put(branch, "x", &to_document(*id + 30, &detour)).unwrap();
                }
                if random.one_in(10) {
                    // Nothing may have changed since the last commit.
                    let _ = branch.commit("on the way", "");
                }
            }
            for id in 60..90 {
                remove(branch, "x", id);
            }
            for id in &ids {
                put(branch, "x", &to_document(*id, &target[id])).unwrap();
            }
        }
        other.commit("there", "").unwrap();
        main.reset(Some("other"), false).unwrap();
        assert!(main.status().unwrap().collections.is_empty());
        assert!(main.commit("again", "").unwrap_err().message.starts_with("nothing to commit"));
    });
}
