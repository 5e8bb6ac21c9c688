//! Transactions that wait for one another and whose snapshots move: what each has read is of one
//! moment, and no update is lost.
//!
//! *Method*: random transactions over few keys, all driven from one thread, so that a seed repeats:
//! one that is blocked is parked until its wait is over. Interactive ones run statements of some
//! reads and writes, each undone and run again as the layer above does it; those of a single
//! statement begin optimistically and run again as a whole. Every answer is kept beside what the
//! transaction itself had written by then. When one ends, however it ends, there must be one moment
//! in the history of commits at which all its answers are right (snapshot isolation: no read skew);
//! if it was committed, no other transaction may have written one of its keys between that moment
//! and its commit (no lost update). Write skew may happen, and does. In the end power fails,
//! perhaps in the midst of a commit.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use frond_engine::{
    Durability, Engine, EngineError, EngineOptions, LockMode, Transaction, TreeId, Wait,
};
use frond_testkit::random::{assert_met, for_seeds};
use frond_testkit::{Random, SimDisk};
use frond_tree::{Bounds, Direction, Value};

use crate::rig::{churning, make_trees, open, quiet};

const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// The content of a tree, or the writes of its keys.
type Content = BTreeMap<(TreeId, &'static str), u64>;
type Writes = BTreeMap<(TreeId, &'static str), Option<u64>>;

/// One step of a statement; keys by position.
#[derive(Clone, Copy, Debug)]
enum Step {
    Get(TreeId, usize),
    /// Up to `limit` entries from a key on.
    Range {
        tree: TreeId,
        from: usize,
        limit: usize,
        direction: Direction,
    },
    Count(TreeId),
    Put(TreeId, usize),
    Delete(TreeId, usize),
    /// Adds one to what is there.
    Add(TreeId, usize),
}

/// The answer to a step of reading, besides the writes by then.
#[derive(Clone, Debug)]
struct Answer {
    step: Step,
    found: Vec<(&'static str, u64)>,
    own: Writes,
}

struct Running {
    transaction: Transaction,
    is_interactive: bool,
    own: Writes,
    answers: Vec<Answer>,
    /// A statement that runs again once the wait is over.
    parked: Option<(Vec<Step>, Wait)>,
}

/// The counts of events over all seeds: each must occur.
#[derive(Default, Debug)]
struct Seen {
    waits: u64,
    deadlocks: u64,
    moved: u64,
    kept: u64,
    skews: u64,
}

struct World {
    engine: Engine,
    trees: Vec<TreeId>,
    /// The content after each commit, and the commit's writes.
    versions: Vec<Content>,
    commits: Vec<Writes>,
    running: Vec<Running>,
    next_value: u64,
    skews: u64,
}

impl World {
    fn new(engine: Engine) -> World {
        let trees = make_trees(&engine, 2).unwrap();
        let (versions, commits) = (vec![Content::new()], vec![Writes::new()]);
        World { engine, trees, versions, commits, running: Vec::new(), next_value: 0, skews: 0 }
    }

    fn begin(&mut self, random: &mut Random) {
        let lock_mode =
            *random.choose(&[LockMode::Interactive, LockMode::Interactive, LockMode::Optimistic]);
        self.running.push(Running {
            transaction: self.engine.begin_as(lock_mode),
            is_interactive: lock_mode == LockMode::Interactive,
            own: Writes::new(),
            answers: Vec::new(),
            parked: None,
        });
    }

    fn step(&mut self, random: &mut Random) -> Result<(), EngineError> {
        if self.running.len() < 5 && random.one_in(3) {
            self.begin(random);
        }
        match random.below(60) {
            0 => self.engine.checkpoint()?,
            1 => drop(self.engine.fold(&self.engine.snapshot(), &self.trees)?),
            2 => self.engine.flush()?,
            _ => {}
        }
        let waits = |running: &Running| {
            running.parked.as_ref().is_some_and(|(_, wait)| !wait.wait(Duration::ZERO))
        };
        let ready: Vec<usize> =
            (0..self.running.len()).filter(|at| !waits(&self.running[*at])).collect();
        assert!(self.running.is_empty() || !ready.is_empty(), "all wait for one another");
        if ready.is_empty() {
            return Ok(());
        }
        let at = *random.choose(&ready);
        let mut running = self.running.swap_remove(at);
        if let Some((steps, _)) = running.parked.take() {
            if !running.transaction.unblock() {
                self.end(running, None);
                return Ok(());
            }
            return self.again(running, steps);
        }
        if running.is_interactive && random.one_in(4) {
            return self.finish(running, random);
        }
        let count = 1 + random.below(3);
        let steps = (0..count).map(|_| self.draw(random)).collect();
        self.run(running, steps)
    }

    fn draw(&self, random: &mut Random) -> Step {
        let (tree, key) = (*random.choose(&self.trees), random.below(KEYS.len()));
        match random.below(8) {
            0 | 1 => Step::Get(tree, key),
            2 => Step::Range {
                tree,
                from: key,
                limit: random.below(4),
                direction: *random.choose(&[Direction::Ascending, Direction::Descending]),
            },
            3 => Step::Count(tree),
            4 => Step::Delete(tree, key),
            5 => Step::Put(tree, key),
            _ => Step::Add(tree, key),
        }
    }

    /// Runs a statement, or runs it again.
    fn run(&mut self, mut running: Running, steps: Vec<Step>) -> Result<(), EngineError> {
        let statement = running.transaction.begin_statement();
        let (own, answered) = (running.own.clone(), running.answers.len());
        let done = steps.iter().try_for_each(|step| self.take(&mut running, *step));
        match done {
            Ok(()) if running.is_interactive => self.running.push(running),
            Ok(()) => return self.commit(running),
            Err(EngineError::Conflict { .. }) => {
                running.own = own;
                running.answers.truncate(answered);
                running.transaction.undo_statement(statement);
                match running.transaction.blocked() {
                    Some(wait) => {
                        running.parked = Some((steps, wait));
                        self.running.push(running);
                    }
                    None if running.transaction.is_stale() => return self.again(running, steps),
                    None => self.end(running, None),
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Runs a statement again that met others, at a newer snapshot if it must.
    fn again(&mut self, mut running: Running, steps: Vec<Step>) -> Result<(), EngineError> {
        if !running.is_interactive {
            running.transaction.restart()?;
        } else if running.transaction.is_stale() && !running.transaction.refresh_snapshot()? {
            self.end(running, None);
            return Ok(());
        }
        self.run(running, steps)
    }

    fn take(&mut self, running: &mut Running, step: Step) -> Result<(), EngineError> {
        let transaction = &mut running.transaction;
        let key = |key: usize| Bytes::from_static(KEYS[key].as_bytes());
        let mut found = Vec::new();
        match step {
            Step::Get(tree, at) | Step::Add(tree, at) => {
                if let Some(value) = transaction.get(tree, KEYS[at].as_bytes())? {
                    found.push((KEYS[at], number(transaction, &value)));
                }
            }
            Step::Range { tree, from, limit, direction } => {
                let bounds = Bounds { start: Some(key(from)), end: None };
                for entry in transaction.range(tree, bounds, direction)?.take(limit) {
                    let entry = entry?;
                    let name = KEYS.iter().find(|name| name.as_bytes() == &entry.key[..]);
                    found.push((*name.unwrap(), number(transaction, &entry.value)));
                }
            }
            // Own writes aren't counted.
            Step::Count(tree) => found.push(("", transaction.count(tree)?)),
            Step::Put(tree, at) => {
                self.next_value += 1_000;
                write(running, tree, at, Some(self.next_value))?;
                return Ok(());
            }
            Step::Delete(tree, at) => return write(running, tree, at, None),
        }
        let value_found = found.first().map(|(_, value)| *value);
        running.answers.push(Answer { step, found, own: running.own.clone() });
        match step {
            Step::Add(tree, at) => write(running, tree, at, Some(value_found.unwrap_or(0) + 1)),
            _ => Ok(()),
        }
    }

    fn finish(&mut self, running: Running, random: &mut Random) -> Result<(), EngineError> {
        if random.one_in(4) {
            self.end(running, None);
            return Ok(());
        }
        self.commit(running)
    }

    fn commit(&mut self, running: Running) -> Result<(), EngineError> {
        let Running { transaction, own, answers, is_interactive, .. } = running;
        match transaction.commit(Durability::Synced) {
            Ok(_) => {
                let mut content = self.versions.last().unwrap().clone();
                apply(&mut content, &own);
                self.check(&answers, Some(&own));
                // One that wrote nothing was no commit.
                if !own.is_empty() {
                    self.versions.push(content);
                    self.commits.push(own);
                }
                Ok(())
            }
            Err(EngineError::Conflict { .. }) => {
                assert!(!is_interactive, "what it wrote was its own");
                self.check(&answers, None);
                Ok(())
            }
            Err(error) => {
                // Power failed: it may be there or not.
                let mut content = self.versions.last().unwrap().clone();
                apply(&mut content, &own);
                self.versions.push(content);
                Err(error)
            }
        }
    }

    fn end(&mut self, running: Running, own: Option<&Writes>) {
        self.check(&running.answers, own);
    }

    /// Checks that all answers are those of one moment, after which no other transaction wrote what
    /// `own` has.
    fn check(&mut self, answers: &[Answer], own: Option<&Writes>) {
        let newest = self.versions.len() - 1;
        let is_right = |version: &usize| {
            let content = &self.versions[*version];
            answers.iter().all(|answer| is_right_in(answer, content))
        };
        let is_unwritten = |version: &usize| {
            own.is_none_or(|own| {
                let later = &self.commits[version + 1..];
                // A transaction that has read nothing may write over anything: it is as if it came
                // later.
                answers.is_empty() || !later.iter().flatten().any(|(key, _)| own.contains_key(key))
            })
        };
        let moments: Vec<usize> = (0..=newest).filter(is_right).filter(is_unwritten).collect();
        assert!(!moments.is_empty(), "answers of no one moment: {answers:?} {own:?}");
        if own.is_some_and(|own| !own.is_empty()) && !moments.contains(&newest) {
            self.skews += 1;
        }
    }
}

fn write(
    running: &mut Running,
    tree: TreeId,
    at: usize,
    value: Option<u64>,
) -> Result<(), EngineError> {
    let key = Bytes::from_static(KEYS[at].as_bytes());
    match value {
        Some(value) => running.transaction.put(tree, key, Value::inline(value.to_string()))?,
        None => running.transaction.delete(tree, key)?,
    }
    running.own.insert((tree, KEYS[at]), value);
    Ok(())
}

fn number(transaction: &Transaction, value: &Value) -> u64 {
    std::str::from_utf8(&transaction.read(value).unwrap()).unwrap().parse().unwrap()
}

fn apply(content: &mut Content, writes: &Writes) {
    for (key, value) in writes {
        match value {
            Some(value) => content.insert(*key, *value),
            None => content.remove(key),
        };
    }
}

/// Whether `content` under the own writes of then gives the answer.
fn is_right_in(answer: &Answer, content: &Content) -> bool {
    let mut seen = content.clone();
    apply(&mut seen, &answer.own);
    let of_tree = |tree: TreeId| {
        seen.iter().filter(move |((of, _), _)| *of == tree).map(|((_, key), value)| (*key, *value))
    };
    let expected: Vec<(&str, u64)> = match answer.step {
        Step::Get(tree, at) | Step::Add(tree, at) => {
            of_tree(tree).filter(|(key, _)| *key == KEYS[at]).collect()
        }
        Step::Range { tree, from, limit, direction } => {
            let mut all: Vec<_> = of_tree(tree).filter(|(key, _)| KEYS[from] <= *key).collect();
            if direction == Direction::Descending {
                all.reverse();
            }
            all.truncate(limit);
            all
        }
        Step::Count(tree) => vec![("", of_tree(tree).count() as u64)],
        Step::Put(..) | Step::Delete(..) => return true,
    };
    expected == answer.found
}

fn stored(engine: &Engine, trees: &[TreeId]) -> Content {
    let snapshot = engine.snapshot();
    let mut content = Content::new();
    for (tree, key) in trees.iter().flat_map(|tree| KEYS.iter().map(move |key| (*tree, *key))) {
        if let Some(value) = snapshot.get(tree, key.as_bytes()).unwrap() {
            let bytes = snapshot.read(&value).unwrap();
            content.insert((tree, key), std::str::from_utf8(&bytes).unwrap().parse().unwrap());
        }
    }
    content
}

#[test]
fn a_transaction_reads_one_moment_and_no_update_is_lost() {
    let mut seen = Seen::default();
    for_seeds(150, |mut random| {
        let disk = SimDisk::new(random.next());
        let options: EngineOptions = if random.one_in(2) { quiet() } else { churning(15) };
        let mut world = World::new(open(&disk, options).unwrap());
        for _ in 0..150 {
            world.step(&mut random).unwrap();
        }
        assert_eq!(stored(&world.engine, &world.trees), *world.versions.last().unwrap());
        let acknowledged = world.versions.len() - 1;
        disk.crash_after(random.below(40) as u64);
        while world.step(&mut random).is_ok() {}
        let counters = world.engine.counters();
        seen.waits += counters.key_lock_waits;
        seen.deadlocks += counters.deadlocks;
        seen.moved += counters.snapshots_refreshed;
        seen.kept += counters.snapshots_kept;
        seen.skews += world.skews;
        let World { trees, versions, .. } = world;
        let engine = open(&disk.crash(), options).unwrap();
        let found = stored(&engine, &trees);
        assert!(versions[acknowledged..].contains(&found), "{found:?} after {acknowledged}");
        engine.check().unwrap();
    });
    let Seen { waits, deadlocks, moved, kept, skews } = seen;
    assert_met("waits", waits, 10);
    assert_met("deadlocks", deadlocks, 10);
    assert_met("snapshots that were refreshed", moved, 10);
    assert_met("snapshots that were kept", kept, 10);
    assert_met("skews", skews, 10);
}
