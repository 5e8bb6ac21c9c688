//! Commits done again, or undone, on top of another version: what pick, revert and rebase share.
//!
//! Each step is a three-way merge onto what the one before gave (*the tip*). To do a commit again
//! its parent is the base and itself theirs; to undo it, the other way round. So every step merges
//! field by field, keeps indexes right, and may conflict.
//!
//! - Pick and revert are one step on top of HEAD. A rebase is a step for each of the branch's own
//!   commits, the oldest first, on top of another version.
//! - The branch doesn't move before all steps are done. The commits that were made until then hang
//!   on the record of the replay that waits, and the working state is what the step that conflicts
//!   has merged.
//! - *Continue*: what the working state is becomes the step's commit (nothing does, if it is the
//!   tip's content), and the steps after it follow. *Skip*: they follow from the tip, without it;
//!   what was written while it waited is carried over. *Abort*: what the steps did is taken back;
//!   what was made is garbage.
//! - Conflicts of the schema wait as a merge's do: before anything of the step is merged.

use std::collections::BTreeMap;

use frond_db::inside::merge_rules::{MergeRules, MergeSide};
use frond_db::inside::refs::{self, format};
use frond_db::inside::{Commit, CommitId, Error, Outcome, Reader};
use frond_engine::Transaction;
use frond_query::Code;
use frond_store::{ChunkHash, ChunkStore};
use frond_tree::Tree;

use crate::adopt::Adoption;
use crate::commit::Signature;
use crate::conflict::{self, MergeKind, MergeState, StoredConflict};
use crate::merge::catalogs::CatalogMerge;
use crate::merge::judged::JudgedMerge;
use crate::merge::waiting;
use crate::refs::reflog::{Lost, RefChange, RefWhy, RememberedMerge};
use crate::repository::Repository;
use crate::state::BranchState;
use crate::three_way::ThreeWay;
use crate::{CommitInfo, MergeOutcome, history};

/// A replay under way, within a transaction.
pub(crate) struct Replay<'a> {
    pub database: &'a Repository,
    pub state: &'a BranchState,
    /// Pick, revert or rebase.
    pub kind: MergeKind,
    /// The parent with which a merge commit is compared.
    pub parent: Option<u32>,
    /// The text for the reflog: `rebase: onto main`.
    pub why: String,
    pub rules: &'a MergeRules,
    /// The next commit's, if it isn't the step's own.
    pub message: Option<&'a str>,
    pub author: Option<&'a str>,
    /// The present working state.
    pub working: Tree,
    /// The working state to go back to if all is aborted.
    pub before: Tree,
    /// The step that waited and is left out.
    pub skipped: Option<SkippedStep<'a>>,
    /// The commit on which the next one goes, and its catalog.
    pub tip: Option<ChunkHash>,
    pub catalog: Tree,
    /// The commits that were made.
    pub made: Vec<CommitInfo>,
    /// Collections in which something was written, while the step waited that is left out, that the
    /// working state doesn't have.
    pub set_aside: Vec<String>,
}

/// A step that waited and is left out. Writes during the wait are carried over.
pub(crate) struct SkippedStep<'a> {
    pub merge: &'a MergeState,
    pub remembered: Option<RememberedMerge>,
}

/// The outcome of a replay.
pub(crate) enum Replayed {
    /// The branch moved to the tip.
    Done { head: Option<ChunkHash>, made: Vec<CommitInfo>, set_aside: Vec<String> },
    /// Conflicts wait, a collection.
    Waits { counts: Vec<(String, u64)>, made: Vec<CommitInfo>, set_aside: Vec<String> },
}

impl Replayed {
    /// The collections in which something is set aside.
    fn set_aside(&mut self) -> Vec<String> {
        let (Replayed::Done { set_aside, .. } | Replayed::Waits { set_aside, .. }) = self;
        std::mem::take(set_aside)
    }

    /// As the outcome of a merge.
    ///
    /// # Errors
    /// `Internal` if it neither made a commit nor found one.
    pub fn outcome(self) -> Result<MergeOutcome, Error> {
        match self {
            Replayed::Waits { counts, .. } => Ok(MergeOutcome::Conflicts { counts }),
            Replayed::Done { mut made, head, .. } => match (made.pop(), head) {
                (Some(commit), _) => Ok(MergeOutcome::Merged { commit }),
                (None, Some(head)) => Ok(MergeOutcome::FastForward { head: format::id_of(head) }),
                (None, None) => Err(Error::internal("a replay ended before the first commit")),
            },
        }
    }
}

impl Replay<'_> {
    /// Does the steps, the first one with `decisions` about the schema.
    ///
    /// # Errors
    /// As a merge, and as a commit, of each step; `Damaged` if a commit or a catalog can't be read.
    pub fn run(
        mut self,
        transaction: &mut Transaction,
        steps: &[ChunkHash],
        decisions: &BTreeMap<String, MergeSide>,
    ) -> Result<Outcome<Replayed>, Error> {
        let none = BTreeMap::new();
        let mut decisions = decisions;
        for (position, hash) in steps.iter().enumerate() {
            let engine = self.database.frond().engine();
            let step = history::load(&**engine.store(), *hash)?;
            let before = self.database.catalog_before(self.state, &step, self.parent)?;
            let (base, theirs) = match self.kind {
                MergeKind::Revert => (&step.catalog, &before),
                _ => (&before, &step.catalog),
            };
            let (format, rules) = (self.state.repository.format(), self.rules);
            let merge =
                CatalogMerge { database: self.database, format, rules, decisions, by_rules: true };
            let ours = self.catalog;
            let catalogs = ThreeWay::new(base, &ours, theirs);
            let merged = merge.merge(catalogs)?;
            let rest = &steps[position + 1..];
            if !merged.schema.is_empty() {
                // The working state stays HEAD's: nothing of the step is merged yet.
                let head = self.state.head_catalog(&**engine.store())?;
                self.adopt(transaction, head, head)?;
                let stops = Stops { merged: vec![head.root], decisions: Some(decisions.clone()) };
                return self.wait(transaction, (*hash, &step), rest, &merged.schema, stops);
            }
            if !merged.conflicts.is_empty() && rules.on_conflict.is_none() {
                let head = self.state.head_catalog(&**engine.store())?;
                self.adopt(transaction, head, merged.catalog)?;
                let both_ways = merge.both_ways(catalogs, &merged)?;
                let stops = Stops { merged: both_ways, decisions: None };
                return self.wait(transaction, (*hash, &step), rest, &merged.conflicts, stops);
            }
            // A step that was decided to change nothing is a commit, as one whose conflicts were
            // resolved so.
            let is_decided = !decisions.is_empty() && self.kind != MergeKind::Rebase;
            if merged.catalog.root != self.catalog.root || is_decided {
                self.add(transaction, *hash, &step, merged.catalog)?;
            } else if self.kind != MergeKind::Rebase {
                let branch = &self.state.branch;
                let message = format!("nothing to {}: {branch} has it already", self.kind.verb());
                return Err(Error::invalid(Code::NoProgressMade, message));
            }
            decisions = &none;
            (self.message, self.author) = (None, None);
        }
        self.finish(transaction)
    }

    /// Goes on where `merge` waits.
    fn go_on(
        mut self,
        transaction: &mut Transaction,
        resume: Resume<'_>,
        merge: &MergeState,
        waiting: WaitingSteps,
    ) -> Result<Outcome<Replayed>, Error> {
        let WaitingSteps { step, rest, .. } = waiting;
        if let (Resume::Continue(_), Some(decisions)) = (resume, &merge.decisions) {
            let steps: Vec<ChunkHash> = std::iter::once(step).chain(rest).collect();
            return self.run(transaction, &steps, decisions);
        }
        if let Resume::Continue(_) = resume {
            let store = self.database.frond().engine().store();
            let (commit, working) = (history::load(&**store, step)?, self.working);
            if working.root != self.catalog.root || merge.kind != MergeKind::Rebase {
                self.add(transaction, step, &commit, working)?;
            }
        }
        (self.message, self.author) = (None, None);
        self.run(transaction, &rest, &BTreeMap::new())
    }

    /// Makes the working state `after`, with what was written while a step waited that is left out.
    fn adopt(
        &mut self,
        transaction: &mut Transaction,
        head: Tree,
        mut after: Tree,
    ) -> Result<(), Error> {
        if let Some(skipped) = &self.skipped {
            let carried = self.database.carry(skipped.merge, self.working, after)?;
            (after, self.set_aside) = (carried.catalog, carried.set_aside);
        }
        let adoption = Adoption { head, before: self.working, after };
        self.state.adopt(self.database.frond().engine(), transaction, &adoption)
    }

    /// Returns the state that the reflog keeps.
    fn lost(&self) -> Lost<'_> {
        match &self.skipped {
            Some(skipped) => Lost::working(self.working, skipped.remembered.as_ref()),
            None => Lost::Working(self.before),
        }
    }

    /// Makes the commit of a step: the next tip.
    ///
    /// # Errors
    /// `BadValue` (2) if a name or message can be none; what the commit policy refuses; as the
    /// transaction's `put`.
    pub fn add(
        &mut self,
        transaction: &mut Transaction,
        hash: ChunkHash,
        step: &Commit,
        catalog: Tree,
    ) -> Result<(), Error> {
        let (message, author) = self.words(hash, step);
        let mut signature = Signature::new(&author, &message, self.database.frond().time_millis())?;
        if self.kind == MergeKind::Revert {
            signature.reverts = Some(format::id_of(hash));
        } else {
            let authored = step.authored_millis.unwrap_or(step.timestamp_millis);
            signature.authored_millis = Some(authored);
        }
        if self.kind == MergeKind::Rebase {
            signature.committer = step.committer.as_deref();
        }
        let parents: Vec<ChunkHash> = self.tip.into_iter().collect();
        let (chunk, info) =
            self.database.make_commit(transaction, catalog, &parents, &signature)?;
        self.state.register(transaction, &chunk)?;
        (self.tip, self.catalog) = (Some(chunk.hash()), catalog);
        self.made.push(info);
        Ok(())
    }

    /// Message and author of a step's commit.
    fn words(&self, hash: ChunkHash, step: &Commit) -> (String, String) {
        let is_revert = self.kind == MergeKind::Revert;
        let own = if is_revert {
            let first_line = step.message.lines().next().unwrap_or_default();
            let id = format::id_of(hash);
            format!("Revert \"{first_line}\"\n\nThis undoes what commit {id} did.")
        } else {
            step.message.clone()
        };
        let nobody = if is_revert { "" } else { step.author.as_str() };
        let message = self.message.map_or(own, str::to_owned);
        (message, self.author.unwrap_or(nobody).to_owned())
    }

    fn wait(
        self,
        transaction: &mut Transaction,
        (hash, step): (ChunkHash, &Commit),
        rest: &[ChunkHash],
        conflicts: &[StoredConflict],
        stops: Stops,
    ) -> Result<Outcome<Replayed>, Error> {
        let (database, branch) = (&self.state.database, &self.state.branch);
        if self.skipped.is_some() {
            let (head, now) = (self.state.head_id(), self.database.frond().time_millis());
            let why = format!("{}: skipped", self.kind.verb());
            let why = RefWhy { lost: self.lost(), ..RefWhy::plain(&why, now) };
            RefChange { from: head, to: head, why }.log(transaction, database, branch)?;
        }
        let (message, author) = self.words(hash, step);
        let merge = MergeState {
            theirs: format::id_of(hash),
            message,
            author,
            kind: self.kind,
            parent: self.parent,
            tip: self.tip.map(format::id_of),
            rest: rest.iter().copied().map(format::id_of).collect(),
            before: self.before.root,
            merged: stops.merged,
            why: self.why,
            rules: self.rules.clone(),
            decisions: stops.decisions,
            remaining: conflicts.len() as u64,
        };
        self.database.frond().engine().store().sync()?;
        conflict::store(transaction, database, branch, &merge, conflicts)?;
        let counts = conflict::count_all(conflicts);
        Ok(Outcome::Commit(Replayed::Waits { counts, made: self.made, set_aside: self.set_aside }))
    }

    /// Moves the branch to the tip, with the working state.
    fn finish(mut self, transaction: &mut Transaction) -> Result<Outcome<Replayed>, Error> {
        self.adopt(transaction, self.catalog, self.catalog)?;
        let moves = self.tip.filter(|tip| Some(*tip) != self.state.head_chunk());
        let tip = moves.or(self.tip.filter(|_| self.skipped.is_some()));
        if let Some(tip) = tip {
            let now = self.database.frond().time_millis();
            let skipped = format!("{}: skipped", self.kind.verb());
            let why = if moves.is_some() { &self.why } else { &skipped };
            let why = RefWhy { lost: self.lost(), ..RefWhy::plain(why, now) };
            self.state.move_ref(transaction, tip, why)?;
        }
        let head = self.tip;
        Ok(Outcome::Commit(Replayed::Done { head, made: self.made, set_aside: self.set_aside }))
    }
}

/// The facts about a step that stops, besides its conflicts: see [`MergeState`].
struct Stops {
    merged: Vec<ChunkHash>,
    decisions: Option<BTreeMap<String, MergeSide>>,
}

/// The commits that a replay that waits has before it.
struct WaitingSteps {
    /// The one at which it waits.
    step: ChunkHash,
    /// The commit on which the next one goes.
    tip: Option<ChunkHash>,
    /// Those after it.
    rest: Vec<ChunkHash>,
}

impl WaitingSteps {
    fn of(reader: &Reader<'_>, name: &str, merge: &MergeState) -> Result<WaitingSteps, Error> {
        let find = |id: &CommitId| {
            let chunk = refs::commit_chunk(reader, name, id)?;
            chunk.ok_or_else(|| Error::damaged(format!("commit {id} is not known")))
        };
        Ok(WaitingSteps {
            step: find(&merge.theirs)?,
            tip: merge.tip.as_ref().map(find).transpose()?,
            rest: merge.rest.iter().map(find).collect::<Result<_, Error>>()?,
        })
    }
}

/// The treatment of the step that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Resume<'a> {
    /// Its conflicts are resolved; what was judged, if something was.
    Continue(Option<&'a JudgedMerge>),
    /// It is left out.
    Skip,
}

impl Resume<'_> {
    /// Refuses what isn't as it was judged.
    fn check(self, state: &BranchState, merge: &MergeState, working: &Tree) -> Result<(), Error> {
        match self {
            Resume::Continue(Some(judged)) => judged.check_waiting(state, merge, working),
            _ => Ok(()),
        }
    }
}

impl Repository {
    /// Goes on with a pick, a revert or a rebase that waits.
    ///
    /// # Errors
    /// `IllegalOperation` if none waits, or conflicts are left.
    pub(crate) fn resume_replay(
        &self,
        resume: Resume<'_>,
        message: Option<&str>,
        author: Option<&str>,
    ) -> Result<(MergeOutcome, Vec<String>), Error> {
        let (branch, name) = (self.writable_branch()?, self.repository_name());
        let engine = self.frond().engine();
        let mut replayed = self.replace_working_state(branch, |transaction| {
            let mut state = BranchState::validated(self.frond(), transaction, name, branch)?;
            let remembered = match resume {
                Resume::Skip => waiting::remember(engine, transaction, &state)?,
                Resume::Continue(_) => None,
            };
            let Some(merge) = state.merging.take().filter(|merge| merge.kind.is_replay()) else {
                return Err(conflict::no_merge(branch));
            };
            let reader = Reader::within(engine, transaction);
            if let Resume::Continue(_) = resume {
                conflict::refuse_left(&conflict::counts(&reader, name, branch)?)?;
            }
            let waiting = WaitingSteps::of(&reader, name, &merge)?;
            drop(reader);
            conflict::clear(engine, transaction, name, branch)?;
            let catalog = catalog_of_tip(&**engine.store(), &state, waiting.tip)?;
            let working = match (resume, &merge.decisions) {
                // Nothing of the step is merged yet, so nothing may be lost by merging it.
                (Resume::Continue(_), Some(_)) => state.clean_catalog(engine, transaction)?,
                _ => state.working_catalog(engine, transaction.snapshot())?,
            };
            resume.check(&state, &merge, &working)?;
            let (before, skipped) = match resume {
                Resume::Skip => {
                    let before = Tree { root: merge.before, format: working.format };
                    (before, Some(SkippedStep { merge: &merge, remembered }))
                }
                Resume::Continue(_) => (self.without_merge(&merge, working)?.catalog, None),
            };
            let replay = Replay {
                database: self,
                state: &state,
                kind: merge.kind,
                parent: merge.parent,
                why: merge.why.clone(),
                rules: &merge.rules,
                message: Some(message.unwrap_or(&merge.message)),
                author: Some(author.unwrap_or(&merge.author)),
                working,
                before,
                skipped,
                tip: waiting.tip,
                catalog,
                made: Vec::new(),
                set_aside: Vec::new(),
            };
            replay.go_on(transaction, resume, &merge, waiting)
        })?;
        let set_aside = replayed.set_aside();
        Ok((replayed.outcome()?, set_aside))
    }

    /// Leaves the commit out at which a rebase, a pick or a revert waits, and goes on. With the
    /// outcome come the collections in which something was written meanwhile that is set aside.
    ///
    /// # Errors
    /// `IllegalOperation` if none waits.
    pub fn merge_skip(&self) -> Result<(MergeOutcome, Vec<String>), Error> {
        self.resume_replay(Resume::Skip, None, None)
    }
}

/// Returns the catalog of the commits that are made already.
fn catalog_of_tip(
    store: &dyn ChunkStore,
    state: &BranchState,
    tip: Option<ChunkHash>,
) -> Result<Tree, Error> {
    match tip {
        Some(tip) => Ok(history::load(store, tip)?.catalog),
        None => Ok(Tree::empty(store, state.repository.format())?),
    }
}
