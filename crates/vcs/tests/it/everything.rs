//! Random work of every kind at once, against a model of whole copies.
//!
//! *Method*: interleaved transactions of several statements (over branches and databases), updates
//! of large documents, version commits, branches, merges, resets and undoings; flushes, checkpoints
//! and collections between them or, for some seeds, beside them; cursors and transactions that stay
//! open across all of it; a full disk, killed processes and power cuts at any write, during
//! recovery too. The model ([`state`]) is a list of what everything was after each step.
//! 1. After each step a branch is what the model says, by scan and by index; a cursor shows what
//!    was there when it began, until its collection is gone.
//! 2. All that a transaction has read is of one state since it began ([`transactions`]); what it
//!    wrote is there at once or never.
//! 3. A restart finds one of the states since the last one that was acknowledged as durable, or the
//!    one under way, and then all of it: working states, HEADs, and commits with what they held.
//!    Every chunk is whole and there ([`failures`]).
//!
//! One seed is one run, but for seeds with threads in the background. A long run:
//! `FROND_SEED_SECONDS=3600 cargo test --release -p frond-db --test it version::everything`.

mod edits;
mod failures;
mod state;
mod transactions;
mod versions;

use std::collections::BTreeMap;
use std::rc::Rc;

use edits::{Edit, LARGE_IDS};
use failures::Collector;
use frond_db::catalog::IndexSpec;
use frond_db::{
    Cursor, Durability, Error, ErrorKind, FindRequest, Frond, FrondOptions, ReclaimOptions,
};
use frond_doc::{Document, DocumentBuf, document};
use frond_engine::EngineOptions;
use frond_query::Code;
use frond_testkit::machine::{SimClock, machine};
use frond_testkit::random::{assert_met, for_seeds};
use frond_testkit::{Random, SimDisk};
use frond_vcs::Repository;
use state::{Branch, Model, Tried, check_branch};
use transactions::{OpenTransaction, Patience};

use super::model::history::History;
use super::model::index_keys;
use super::model::naive::{COLLECTIONS, to_document};
use crate::support::aggregate;

const SEEDS: u64 = 60;
const STEPS: usize = 150;
const IDS: usize = 40;
const REPOSITORIES: [&str; 2] = ["shop", "other"];
const FOR_EVER: u64 = u64::MAX;

/// A find that goes on, and what it has still to show.
struct Held {
    /// The branch, the collection's name and its UUID.
    collection: (String, String, Option<[u8; 16]>),
    cursor: Cursor,
    rest: std::vec::IntoIter<DocumentBuf>,
    /// Whether what it reads is another by now, under the same UUID.
    is_replaced: bool,
}

fn uuid_of(repository: &Repository, name: &str) -> Result<Option<[u8; 16]>, Error> {
    let collections = repository.list_collections()?;
    Ok(collections.iter().find(|collection| collection.name == name).map(|found| found.uuid))
}

/// A data directory, and what it should be.
struct World {
    disk: SimDisk,
    clock: SimClock,
    options: FrondOptions,
    random: Random,
    frond: Frond,
    collector: Option<Collector>,
    history: History,
    /// The state of everything after each step; the last is the present one.
    log: Vec<Model>,
    /// The first state in the log that a power cut can bring back.
    durable: usize,
    /// The states that are possible if the step under way has failed.
    tried: Vec<Tried>,
    is_full: bool,
    /// Whether the disk was full: failures in the background are reported later.
    was_full: bool,
    transactions: Vec<OpenTransaction>,
    held: Vec<Held>,
    seen: Seen,
}

/// The number of times each tested case came up.
#[derive(Default, Debug, Clone, Copy)]
struct Seen {
    committed: u32,
    conflicts: u32,
    cuts: u32,
    kills: u32,
    full: u32,
    collections: u32,
    versions: u32,
    branches: u32,
    merges: u32,
    resolved: u32,
    undone: u32,
}

fn options(random: &mut Random) -> FrondOptions {
    let engine = EngineOptions {
        cache_bytes: *random.choose(&[20_000, 128 << 20]),
        slow_read_micros: 0,
        memtable_bytes_max: *random.choose(&[3_000, 30_000, 300_000]),
        overlay_percent_max: *random.choose(&[5, 20, 400]),
        run_count_max: *random.choose(&[1, 2, 8]),
        fold_threads: if random.one_in(4) { 2 } else { 0 },
        relaxed_sync_millis: 3_600_000,
        ..EngineOptions::default()
    };
    // A writer that waits here waits for its own thread.
    FrondOptions { engine, write_wait_millis_max: Some(0), ..FrondOptions::default() }
}

impl World {
    fn begin(mut random: Random) -> Result<World, Error> {
        let (disk, clock) = (SimDisk::new(random.next()), SimClock::new());
        let options = options(&mut random);
        let frond = frond_vcs::open_on(&machine(&disk, &clock, random.next()), options)?;
        let mut world = World {
            disk,
            clock,
            options,
            random,
            frond,
            collector: None,
            history: History::default(),
            log: vec![Model::default()],
            durable: 0,
            tried: Vec::new(),
            is_full: false,
            was_full: false,
            transactions: Vec::new(),
            held: Vec::new(),
            seen: Seen::default(),
        };
        for repository in REPOSITORIES {
            for collection in &COLLECTIONS[..2] {
                world.create_collection(&format!("{repository}@main"), collection)?;
            }
        }
        world.watch();
        Ok(world)
    }

    fn now(&self) -> &Model {
        self.log.last().expect("a log has a first state")
    }

    /// Does what leaves `after`; durably, if it succeeds.
    fn act<T>(
        &mut self,
        after: Model,
        durability: Durability,
        act: impl FnOnce(&Frond) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.tried = vec![Tried { model: after.clone(), commit: None }];
        let done = act(&self.frond)?;
        self.settle(after, durability);
        Ok(done)
    }

    fn settle(&mut self, after: Model, durability: Durability) {
        self.log.push(after);
        self.tried.clear();
        if durability == Durability::Synced {
            self.durable = self.log.len() - 1;
        }
    }

    /// A branch's name, with its database's: `shop@main`.
    fn any_branch(&mut self) -> String {
        let names: Vec<&String> = self.log.last().expect("see now").0.keys().collect();
        (*self.random.choose(&names)).clone()
    }

    /// Often that of a large document.
    fn any_id(&mut self) -> i32 {
        let below = if self.random.one_in(3) { LARGE_IDS } else { IDS };
        self.random.below(below) as i32
    }

    fn durability(&mut self) -> Durability {
        if self.random.one_in(3) { Durability::Relaxed } else { Durability::Synced }
    }

    fn create_collection(&mut self, branch: &str, name: &'static str) -> Result<(), Error> {
        let mut after = self.now().clone();
        let first = || Branch::new(Rc::default(), None);
        after.0.entry(branch.to_owned()).or_insert_with(first);
        after.edit(branch).insert(name, BTreeMap::new());
        after.replace(branch, self.log.len());
        let specs = index_keys().map(|key| {
            // An index on large documents holds the same chunks.
            let clusters = key.get("a").is_some();
            let spec = document! { "key": &key, "clustering": clusters };
            IndexSpec::parse(spec.view()).expect("a good index")
        });
        let branch = branch.strip_suffix("@main").unwrap_or(branch);
        self.act(after, Durability::Synced, |frond| {
            let transaction = frond.begin();
            let database = transaction.database(branch)?;
            database.create_collection(name, Document::empty())?;
            database.create_indexes(name, &specs)?;
            transaction.commit(Durability::Synced, None)
        })
    }

    fn drop_collection(&mut self, branch: &str, name: &'static str) -> Result<(), Error> {
        let mut after = self.now().clone();
        after.edit(branch).remove(name);
        after.replace(branch, self.log.len());
        self.act(after, Durability::Synced, |frond| {
            Repository::open(frond, branch)?.drop_collection(name).map(|dropped| assert!(dropped))
        })
    }

    /// Changes documents one by one, each in a transaction of its own.
    fn edit(&mut self) -> Result<(), Error> {
        let branch = self.any_branch();
        let names: Vec<&'static str> = self.now().0[&branch].working.keys().copied().collect();
        if names.len() < 2 || self.random.one_in(40) {
            let name = *self.random.choose(&COLLECTIONS);
            let is_claimed = self.transactions.iter().any(|open| open.has_written(&branch, name));
            return match names.contains(&name) {
                true => self.drop_collection(&branch, name),
                // It was there when that transaction wrote, which would make it again.
                false if is_claimed => Ok(()),
                false => self.create_collection(&branch, name),
            };
        }
        for _ in 0..1 + self.random.below(6) {
            let name = *self.random.choose(&names);
            let id = self.any_id();
            let key = (branch.clone(), name, id);
            if self.transactions.iter().any(|open| open.own.contains_key(&key)) {
                continue; // It would wait for this very thread.
            }
            let mut after = self.now().clone();
            let edit = Edit::random(id, after.document(&key), &mut self.random);
            after.put(&key, edit.apply(after.document(&key)));
            let durability = self.durability();
            self.tried = vec![Tried { model: after.clone(), commit: None }];
            let is_alone = !self.transactions.iter().any(|open| open.has_written(&branch, name));
            let result = match is_alone || self.random.one_in(4) {
                true => edit.run(&self.frond.database(&branch)?, name, id, durability),
                false => edit.run_within(&self.frond.begin(), &key, durability),
            };
            match result {
                // A write that changes nothing waits for no sync.
                Ok(false) => self.settle(after, Durability::Relaxed),
                Ok(true) => {
                    self.settle(after, durability);
                    self.seen.committed += 1;
                }
                Err(error) if error.kind == ErrorKind::Conflict && !is_alone => {
                    self.tried.clear();
                    self.seen.conflicts += 1;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Copies a collection over another one: they share what they hold.
    fn copy(&mut self) -> Result<(), Error> {
        let branch = self.any_branch();
        let names: Vec<&'static str> = self.now().0[&branch].working.keys().copied().collect();
        let [from, to, ..] = names[..] else { return Ok(()) };
        let (from, to) = if self.random.one_in(2) { (from, to) } else { (to, from) };
        let mut after = self.now().clone();
        let copied = after.0[&branch].working[from].clone();
        after.edit(&branch).insert(to, copied);
        after.replace(&branch, self.log.len());
        // The new collection is durable once a later write waits for that.
        self.act(after, Durability::Relaxed, |frond| {
            let pipeline = format!("[{{'$out': '{to}'}}]");
            aggregate(&frond.database(&branch)?, Some(from), &pipeline).map(drop)
        })?;
        self.replace_held(&branch, Some(to));
        Ok(())
    }

    /// Has cursors end that are open on a branch, or on one collection of it, though it has its
    /// UUID still: `$out` replaced it, or the branch was deleted and may come back.
    fn replace_held(&mut self, branch: &str, collection: Option<&str>) {
        for held in &mut self.held {
            let (own, name, _) = &held.collection;
            held.is_replaced |=
                own == branch && collection.is_none_or(|collection| collection == name);
        }
    }

    fn collect(&mut self) -> Result<(), Error> {
        let undo_millis = *self.random.choose(&[0, FOR_EVER]);
        let thorough = self.random.one_in(3);
        let options =
            ReclaimOptions { thorough, bytes_a_second: None, purge: self.random.one_in(8) };
        frond_vcs::reclaim(&self.frond, undo_millis, options)?;
        self.seen.collections += 1;
        Ok(())
    }

    fn hold(&mut self) -> Result<(), Error> {
        let branch = self.any_branch();
        let working = Rc::clone(&self.now().0[&branch].working);
        for (name, collection) in working.iter() {
            let repository = Repository::open(&self.frond, &branch)?;
            let uuid = uuid_of(&repository, name)?;
            let cursor = repository.find(name, &FindRequest::default())?;
            let documents = collection.iter().map(|(id, fields)| to_document(*id, fields));
            let rest = documents.collect::<Vec<_>>().into_iter();
            let collection = (branch.clone(), (*name).to_owned(), uuid);
            self.held.push(Held { collection, cursor, rest, is_replaced: false });
        }
        Ok(())
    }

    /// Reads on in one of the cursors.
    fn read_on(&mut self) -> Result<(), Error> {
        if self.held.is_empty() {
            return Ok(());
        }
        let position = self.random.below(self.held.len());
        let held = &mut self.held[position];
        for _ in 0..self.random.below(IDS) {
            let found = held.cursor.next().transpose();
            if matches!(&found, Err(error) if error.code == Code::QueryPlanKilled) {
                let Held { collection: (branch, name, uuid), is_replaced, .. } =
                    self.held.swap_remove(position);
                let now = Repository::open(&self.frond, &branch);
                let now = now.and_then(|repository| uuid_of(&repository, &name));
                assert!(is_replaced || now.ok() != Some(uuid), "{branch}.{name} is still there");
                break;
            }
            let found = found?;
            assert_eq!(found, held.rest.next(), "a cursor shows what was there when it began");
            if found.is_none() {
                self.held.swap_remove(position);
                break;
            }
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), Error> {
        if let Some(collector) = &self.collector {
            collector.collect();
        }
        let mut branches = self.now().0.iter();
        if let Some((branch, _)) = branches.find(|(_, branch)| branch.is_merging) {
            return self.abort_merge(&branch.clone()); // A failure has left it.
        }
        if self.random.one_in(2) {
            let count = 1 + self.random.below(4);
            return (0..count).try_for_each(|_| self.transact());
        }
        let patience = Patience::begin(&self.frond, &self.transactions);
        let result = self.step_outside();
        if patience.end() {
            self.transactions.clear();
        }
        result
    }

    fn step_outside(&mut self) -> Result<(), Error> {
        match self.random.below(48) {
            0..=18 => self.edit(),
            19 => self.copy(),
            20..=24 => {
                let branch = self.any_branch();
                self.commit(&branch)
            }
            25..=27 => self.create_branch(),
            28 => self.delete_branch(),
            29..=33 => self.merge(),
            34..=36 => self.reset(),
            37 => self.frond.flush(),
            38 => Ok(self.frond.engine().checkpoint()?),
            39 | 40 => self.collect(),
            41 | 42 => self.hold(),
            43..=45 => self.read_on(),
            46 => self.trouble(),
            _ => self.restart_by_chance(),
        }
    }

    fn check(&mut self) -> Result<(), Error> {
        let branch = self.any_branch();
        check_branch(&Repository::open(&self.frond, &branch)?, &self.now().0[&branch].working)
    }

    fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            // Now and then a clock is set back.
            let back = self.random.one_in(20);
            let micros = 1 + self.random.below(1_000_000) as i64;
            self.clock.step(if back { -micros } else { micros });
            let result = self.step().and_then(|()| self.check());
            self.recover(result);
        }
        self.heal();
        self.restart(false).expect("nothing fails any more");
    }
}

#[test]
fn random_work_of_every_kind_is_what_whole_copies_say() {
    let mut all: Vec<Seen> = Vec::new();
    for_seeds(SEEDS, |random| {
        let mut world = World::begin(random).expect("the disk works");
        world.run(STEPS);
        all.push(world.seen);
        if all.len().is_multiple_of(100) {
            // A long run.
            println!("{:?}", counts(&all));
        }
    });
    counts(&all).into_iter().for_each(|(what, count)| assert_met(what, count, 1));
}

fn counts(all: &[Seen]) -> [(&'static str, u32); 12] {
    let total = |count: fn(&Seen) -> u32| all.iter().map(count).sum::<u32>();
    [
        ("seeds", all.len() as u32),
        ("transactions", total(|seen| seen.committed)),
        ("conflicts", total(|seen| seen.conflicts)),
        ("power cuts", total(|seen| seen.cuts)),
        ("kills", total(|seen| seen.kills)),
        ("full disks", total(|seen| seen.full)),
        ("collections", total(|seen| seen.collections)),
        ("version commits", total(|seen| seen.versions)),
        ("branches", total(|seen| seen.branches)),
        ("merges", total(|seen| seen.merges)),
        ("conflicts resolved", total(|seen| seen.resolved)),
        ("undoings", total(|seen| seen.undone)),
    ]
}
