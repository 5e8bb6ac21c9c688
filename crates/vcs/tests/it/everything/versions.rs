//! Version commits, branches, merges, resets, and undoing them: each state in between is one that a
//! power cut may leave.

use std::rc::Rc;

use frond_db::{Durability, Error, ErrorKind, Frond};
use frond_vcs::Repository;
use frond_vcs::{ConflictKind, ConflictSelection, MergeOutcome, MergeRequest, Resolution};

use super::state::{Branch, Model, Tried, check_branch};
use super::{REPOSITORIES, World};
use crate::model::model_conflict;
use crate::model::naive::{
    ModelConflicts, OURS, THEIRS, Whole, document_sides, merge_document, merge_wholes,
};

const BRANCHES_MAX: usize = 7;

/// A merge under way: the branch, and what its sides were.
struct Merge {
    branch: String,
    base: Whole,
    ours: usize,
    theirs: usize,
}

impl World {
    fn branch(&self, name: &str) -> &Branch {
        &self.now().0[name]
    }

    pub fn is_dirty(&self, branch: &str) -> bool {
        let branch = self.branch(branch);
        self.history.whole(branch.head) != *branch.working
    }

    /// Another one of the same database, or this one.
    fn sibling(&mut self, branch: &str) -> String {
        let repository = branch.split('@').next().expect("a first part").to_owned();
        let names = self.log.last().expect("see now").0.keys();
        let names: Vec<&String> =
            names.filter(|name| name.split('@').next() == Some(&*repository)).collect();
        (*self.random.choose(&names)).clone()
    }

    /// Returns the model with a new commit of `working` as the branch's HEAD.
    fn with_commit(&self, branch: &str, working: Whole) -> Model {
        let mut after = self.now().clone();
        let head = Some(self.history.count());
        let replaced = self.branch(branch).replaced;
        let next = Branch { replaced, ..Branch::new(Rc::new(working), head) };
        after.0.insert(branch.to_owned(), next);
        after
    }

    /// Notes a commit that was made, after which everything is as in `after`.
    fn committed(
        &mut self,
        mut after: Model,
        branch: &str,
        parents: Vec<usize>,
        id: frond_vcs::CommitId,
    ) {
        let working = after.0.get_mut(branch).expect("it was there");
        working.head = Some(self.history.add((*working.working).clone(), parents, id));
        self.settle(after, Durability::Synced);
        self.seen.versions += 1;
    }

    pub fn commit(&mut self, branch: &str) -> Result<(), Error> {
        if !self.is_dirty(branch) {
            let error = Repository::open(&self.frond, branch)?.commit("nothing", "");
            let error = error.expect_err("nothing has changed");
            return if error.kind == ErrorKind::Invalid { Ok(()) } else { Err(error) };
        }
        let after = self.with_commit(branch, (*self.branch(branch).working).clone());
        let parents: Vec<usize> = self.branch(branch).head.into_iter().collect();
        let commit = Some((branch.to_owned(), parents.clone()));
        self.tried = vec![Tried { model: after.clone(), commit }];
        let made = Repository::open(&self.frond, branch)?.commit("by the model", "")?;
        self.committed(after, branch, parents, made.id);
        Ok(())
    }

    pub fn create_branch(&mut self) -> Result<(), Error> {
        if self.now().0.len() >= BRANCHES_MAX {
            return Ok(());
        }
        let from = self.any_branch();
        let repository = from.split('@').next().expect("a first part");
        let short = format!("b{}", self.log.len());
        let head = self.branch(&from).head;
        let working = Rc::new(self.history.whole(head));
        let mut after = self.now().clone();
        after.0.insert(format!("{repository}@{short}"), Branch::new(working, head));
        self.act(after, Durability::Synced, |frond| {
            Repository::open(frond, &from)?.create_branch(&short, None).map(drop)
        })?;
        self.seen.branches += 1;
        Ok(())
    }

    pub fn delete_branch(&mut self) -> Result<(), Error> {
        let branch = self.any_branch();
        let (repository, short) = branch.split_once('@').expect("two parts");
        if short == "main" {
            return Ok(());
        }
        let mut after = self.now().clone();
        after.0.remove(&branch);
        self.act(after, Durability::Synced, |frond| {
            Repository::open(frond, repository)?.delete_branch(short, true)
        })?;
        self.replace_held(&branch, None);
        self.undo_by_chance(&branch)
    }

    pub fn reset(&mut self) -> Result<(), Error> {
        let branch = self.any_branch();
        let other = self.sibling(&branch);
        let Some(head) = self.branch(&other).head else { return Ok(()) };
        let targets: Vec<usize> = self.history.ancestors(head).into_iter().collect();
        let target = *self.random.choose(&targets);
        let id = self.history[target].id.to_string();
        let hard = !self.random.one_in(3);
        let mut after = self.now().clone();
        let changed = after.0.get_mut(&branch).expect("it is there");
        changed.head = Some(target);
        if hard {
            changed.working = Rc::new(self.history.whole(Some(target)));
            changed.replaced = self.log.len();
        }
        self.act(after, Durability::Synced, |frond| {
            Repository::open(frond, &branch)?.reset(Some(&id), hard).map(drop)
        })?;
        if hard { self.undo_by_chance(&branch) } else { Ok(()) }
    }

    /// Undoes the last step, which changed a branch's ref, now and then.
    fn undo_by_chance(&mut self, branch: &str) -> Result<(), Error> {
        if self.collector.is_some() || !self.random.one_in(2) {
            return Ok(()); // A collection beside this may have forgotten it.
        }
        let (repository, short) = branch.split_once('@').expect("two parts");
        let mut before = self.log[self.log.len() - 2].clone();
        before.replace(branch, self.log.len());
        self.act(before, Durability::Synced, |frond| {
            Repository::open(frond, repository)?.undo(Some(short), None).map(drop)
        })?;
        self.seen.undone += 1;
        Ok(())
    }

    pub fn merge(&mut self) -> Result<(), Error> {
        let branch = self.any_branch();
        let from = self.sibling(&branch);
        for dirty in [&branch, &from] {
            if self.is_dirty(dirty) {
                self.commit(dirty)?;
            }
        }
        let Some(theirs) = self.branch(&from).head else { return Ok(()) };
        let head = self.branch(&branch).head;
        let bases = head.map_or_else(Vec::new, |ours| self.history.bases(ours, theirs));
        let mut after = self.now().clone();
        let request = MergeRequest {
            merge_in: from.split('@').next_back().expect("a last part").to_owned(),
            refuse_dirty: true,
            ..MergeRequest::default()
        };
        let ask = |frond: &Frond| Repository::open(frond, &branch)?.merge(&request);
        let Some(ours) = head.filter(|ours| bases.first() != Some(ours)) else {
            let changed = after.0.get_mut(&branch).expect("it is there");
            let working = Rc::clone(&self.branch(&from).working);
            *changed = Branch { replaced: self.log.len(), ..Branch::new(working, Some(theirs)) };
            let outcome = self.act(after, Durability::Relaxed, ask)?;
            let is_same = head == Some(theirs);
            assert_eq!(is_same, matches!(outcome, MergeOutcome::UpToDate { .. }), "{outcome:?}");
            return Ok(());
        };
        if bases.first() == Some(&theirs) {
            let outcome = self.act(after, Durability::Relaxed, ask)?;
            assert!(matches!(outcome, MergeOutcome::UpToDate { .. }), "{outcome:?}");
            return Ok(());
        }
        let merge = Merge { base: self.history.base_whole(&bases), branch, ours, theirs };
        self.merge_wholes(&merge, None, |database| database.merge(&request))
    }

    /// Asks for a merge's outcome, and follows it to its end. `decided` is the side that counts for
    /// collections that one side has dropped.
    fn merge_wholes(
        &mut self,
        merge: &Merge,
        decided: Option<usize>,
        ask: impl FnOnce(&Repository) -> Result<MergeOutcome, Error>,
    ) -> Result<(), Error> {
        let wholes = [
            merge.base.clone(),
            self.history.whole(Some(merge.ours)),
            self.history.whole(Some(merge.theirs)),
        ];
        let sides = [&wholes[0], &wholes[1], &wholes[2]];
        let branch = &merge.branch;
        let mut after = self.now().clone();
        let changed = after.0.get_mut(branch).expect("it is there");
        (changed.is_merging, changed.replaced) = (true, self.log.len());
        let Some((merged, conflicts)) = merge_wholes(sides, OURS, decided) else {
            let outcome = self
                .act(after, Durability::Synced, |frond| ask(&Repository::open(frond, branch)?))?;
            assert!(matches!(outcome, MergeOutcome::Conflicts { .. }), "{outcome:?}");
            return self.decide(merge);
        };
        if !conflicts.is_empty() {
            changed.working = Rc::new(merged);
            let outcome = self
                .act(after, Durability::Synced, |frond| ask(&Repository::open(frond, branch)?))?;
            assert!(matches!(outcome, MergeOutcome::Conflicts { .. }), "{outcome:?}");
            return self.resolve(merge, sides, &conflicts, decided);
        }
        self.finish(merge, merged, ask)
    }

    /// The commit that ends a merge.
    fn finish(
        &mut self,
        merge: &Merge,
        merged: Whole,
        ask: impl FnOnce(&Repository) -> Result<MergeOutcome, Error>,
    ) -> Result<(), Error> {
        let mut after = self.with_commit(&merge.branch, merged);
        after.replace(&merge.branch, self.log.len());
        let parents = vec![merge.ours, merge.theirs];
        let commit = Some((merge.branch.clone(), parents.clone()));
        self.tried = vec![Tried { model: after.clone(), commit }];
        let outcome = ask(&Repository::open(&self.frond, &merge.branch)?)?;
        let MergeOutcome::Merged { commit } = outcome else { panic!("{outcome:?}") };
        self.committed(after, &merge.branch, parents, commit.id);
        self.seen.merges += 1;
        Ok(())
    }

    pub fn abort_merge(&mut self, branch: &str) -> Result<(), Error> {
        let mut after = self.now().clone();
        let changed = after.0.get_mut(branch).expect("it is there");
        changed.working = Rc::new(self.history.whole(changed.head));
        (changed.is_merging, changed.replaced) = (false, self.log.len());
        self.act(after, Durability::Synced, |frond| {
            Repository::open(frond, branch)?.merge_abort().map(drop)
        })?;
        check_branch(&Repository::open(&self.frond, branch)?, &self.branch(branch).working)
    }

    /// Decides what was dropped on one side and changed on the other; then the rest is merged.
    fn decide(&mut self, merge: &Merge) -> Result<(), Error> {
        if self.random.one_in(3) {
            return self.abort_merge(&merge.branch);
        }
        let database = Repository::open(&self.frond, &merge.branch)?;
        let waiting = database.conflicts(None)?;
        assert!(waiting.iter().all(|conflict| conflict.kind == ConflictKind::Collection));
        let side = if self.random.one_in(2) { OURS } else { THEIRS };
        let resolution = if side == OURS { Resolution::Ours } else { Resolution::Theirs };
        let after = self.now().clone();
        self.act(after, Durability::Synced, |_| {
            database.resolve_conflicts(&ConflictSelection::All, &resolution).map(drop)
        })?;
        self.merge_wholes(merge, Some(side), |database| database.merge_continue(None, None))
    }

    /// Gives a merge with conflicts up, or resolves each conflict one way or the other.
    fn resolve(
        &mut self,
        merge: &Merge,
        sides: [&Whole; 3],
        expected: &ModelConflicts,
        decided: Option<usize>,
    ) -> Result<(), Error> {
        let branch = &merge.branch;
        let database = Repository::open(&self.frond, branch)?;
        let conflicts = database.conflicts(None)?;
        let found: ModelConflicts = conflicts.iter().map(model_conflict).collect();
        assert_eq!(&found, expected);
        if self.random.one_in(3) {
            return self.abort_merge(branch);
        }
        for conflict in &conflicts {
            let (name, id, _) = model_conflict(conflict);
            let (resolution, prefer) = match self.random.one_in(2) {
                true => (Resolution::Ours, OURS),
                false => (Resolution::Theirs, THEIRS),
            };
            let documents = document_sides(sides, (name, id), decided);
            let (resolved, _) = merge_document(documents.each_ref().map(Option::as_ref), prefer);
            let mut after = self.now().clone();
            after.put(&(branch.clone(), name, id), resolved);
            self.act(after, Durability::Synced, |_| {
                database.resolve_conflict(&conflict.id, &resolution).map(drop)
            })?;
            self.seen.resolved += 1;
            check_branch(&database, &self.branch(branch).working)?;
        }
        let merged = (*self.branch(branch).working).clone();
        self.finish(merge, merged, |database| database.merge_continue(None, None))
    }

    /// Checks that commits that a branch reaches are what they were: a few, or all.
    pub fn check_history(&mut self, all: bool) -> Result<(), Error> {
        let heads = self.now().0.values().filter_map(|branch| branch.head);
        let reachable: std::collections::BTreeSet<usize> =
            heads.flat_map(|head| self.history.ancestors(head)).collect();
        for commit in reachable {
            if !all && !self.random.one_in(6) {
                continue;
            }
            let ModelCommitView { id, whole, count } = self.view(commit);
            let names = REPOSITORIES.map(|repository| format!("{repository}@{id}"));
            let mut versions =
                names.iter().filter_map(|name| Repository::open(&self.frond, name).ok());
            let version = versions.next().expect("a commit that a branch reaches is there");
            super::check_branch(&version, whole)?;
            assert_eq!(version.log(None, None)?.len(), count);
        }
        Ok(())
    }

    fn view(&self, commit: usize) -> ModelCommitView<'_> {
        let count = self.history.ancestors(commit).len();
        let commit = &self.history[commit];
        ModelCommitView { id: commit.id.to_string(), whole: &commit.whole, count }
    }
}

/// A commit: its id, what it holds, and how many it reaches.
struct ModelCommitView<'a> {
    id: String,
    whole: &'a Whole,
    count: usize,
}
