//! The measured work, in its order, on one target with an empty directory.
//!
//! Each row has two parts: answers are compared with the expected ones (off the clock), then the
//! same is done many times by the clock. A wrong answer is a failure: the target has no row.

use std::thread;

use crate::measure::{Sample, disk_bytes, measured};
use crate::order::{Numbers, Orders};
use crate::target::{Encoded, Failure, Session, Target, Versions};

const BATCH: usize = 1_000;
const CHECKED: u64 = 200;
const SEED: u64 = 20_240_229;
const CHANGED: u64 = 10;

/// A row of the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Work {
    /// Many documents in transactions of a thousand.
    InsertBatches,
    /// Background work that the inserts left to be done.
    SettleInserts,
    /// A transaction a document, one thread.
    InsertSingles,
    /// One document by `_id`.
    ReadById,
    /// All documents of a customer.
    ReadByIndex,
    /// All documents looked at, a hundredth answered.
    Scan,
    /// One field of one document, one thread.
    Update,
    /// The same by eight threads.
    UpdateThreads,
    /// Background work that the updates left to be done.
    SettleUpdates,
    /// The first commit, of all documents.
    CommitAll,
    /// A commit of ten changed documents.
    CommitChanged,
    /// A new branch.
    Branch,
    /// Ten documents differ.
    Diff,
    /// Ten documents changed on one side, ten on the other.
    Merge,
}

impl Work {
    /// As it stands in the report.
    pub fn title(self) -> &'static str {
        match self {
            Work::InsertBatches => "insert, 1,000 a transaction",
            Work::SettleInserts => "checkpoint after the inserts",
            Work::InsertSingles => "insert, one a transaction",
            Work::ReadById => "read by `_id`",
            Work::ReadByIndex => "read by index (10 documents)",
            Work::Scan => "scan with a filter (a document)",
            Work::Update => "update of one field, 1 thread",
            Work::UpdateThreads => "update of one field, 8 threads",
            Work::SettleUpdates => "checkpoint after the updates",
            Work::CommitAll => "first commit, all documents",
            Work::CommitChanged => "commit, 10 documents changed",
            Work::Branch => "branch",
            Work::Diff => "diff, 10 documents differ",
            Work::Merge => "merge, 10 documents on each side",
        }
    }

    /// Whether it is one long act: shown by its time, not by its rate.
    pub fn is_settling(self) -> bool {
        matches!(self, Work::SettleInserts | Work::SettleUpdates)
    }
}

/// The amounts of work.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Documents loaded in batches.
    pub count: u64,
    /// Documents inserted one by one.
    pub singles: u64,
    /// Reads by `_id`.
    pub reads: u64,
    /// Reads by index.
    pub index_reads: u64,
    /// Scans.
    pub scans: u64,
    /// Updates by one thread, and by each of eight.
    pub updates: u64,
    /// Commits, branches, diffs and merges.
    pub versions: u64,
}

impl Scale {
    /// The scale whose largest part is `count` documents; the others grow with it up to a point.
    pub fn of(count: u64) -> Scale {
        Scale {
            count,
            singles: (count / 10).clamp(10, 5_000),
            reads: (count / 2).clamp(100, 50_000),
            index_reads: (count / 5).clamp(100, 20_000),
            scans: 3,
            updates: (count / 10).clamp(10, 5_000),
            versions: 20,
        }
    }
}

/// Threads of [`Work::UpdateThreads`].
pub const THREADS: u64 = 8;

/// The measurements of one target.
pub struct Measured {
    /// A sample a row.
    pub samples: Vec<(Work, Sample)>,
    /// Bytes on the disk at the end of all that every target does.
    pub disk_bytes: u64,
    /// Bytes of one document as the target takes it, on average.
    pub document_bytes: u64,
}

/// Runs everything that `target` can do.
pub fn run(target: &dyn Target, scale: Scale) -> Result<Measured, Failure> {
    let mut run = Run {
        target,
        scale,
        orders: Orders { count: scale.count },
        session: target.session()?,
        samples: Vec::new(),
    };
    let document_bytes = run.insert_batches()?;
    run.settle(Work::SettleInserts, scale.count)?;
    run.insert_singles()?;
    run.check_documents()?;
    run.read_by_id()?;
    run.read_by_index()?;
    run.scan()?;
    run.update()?;
    run.update_threads()?;
    run.settle(Work::SettleUpdates, scale.updates * (1 + THREADS))?;
    let disk_bytes = disk_bytes(target.directory())?;
    if let Some(versions) = target.versions() {
        run.versions(versions)?;
    }
    Ok(Measured { samples: run.samples, disk_bytes, document_bytes })
}

struct Run<'t> {
    target: &'t dyn Target,
    scale: Scale,
    orders: Orders,
    session: Box<dyn Session>,
    samples: Vec<(Work, Sample)>,
}

impl Run<'_> {
    fn encoded(&self, numbers: std::ops::Range<u64>) -> Result<Vec<Encoded>, Failure> {
        numbers
            .map(|number| {
                let order = self.orders.order(number);
                Ok((order.number, self.target.encode(&order)?))
            })
            .collect()
    }

    fn insert_batches(&mut self) -> Result<u64, Failure> {
        let documents = self.encoded(0..self.scale.count)?;
        let bytes: u64 = documents.iter().map(|(_, document)| document.len() as u64).sum();
        let sample = measured(self.target, self.scale.count, || {
            documents.chunks(BATCH).try_for_each(|batch| self.session.insert(batch))
        })?;
        self.samples.push((Work::InsertBatches, sample));
        Ok(bytes / self.scale.count)
    }

    fn insert_singles(&mut self) -> Result<(), Failure> {
        let end = self.scale.count + self.scale.singles;
        let documents = self.encoded(self.scale.count..end)?;
        let sample = measured(self.target, self.scale.singles, || {
            documents.chunks(1).try_for_each(|one| self.session.insert(one))
        })?;
        self.samples.push((Work::InsertSingles, sample));
        Ok(())
    }

    /// `writes`: what it is a share of, so that its cost adds up with theirs.
    fn settle(&mut self, work: Work, writes: u64) -> Result<(), Failure> {
        let sample = measured(self.target, writes, || self.target.settle())?;
        self.samples.push((work, sample));
        Ok(())
    }

    /// A random choice of the documents must be as they were made, and none there beyond.
    fn check_documents(&mut self) -> Result<(), Failure> {
        let mut numbers = Numbers::new(SEED);
        let all = self.scale.count + self.scale.singles;
        for _ in 0..CHECKED {
            let number = numbers.below(all);
            let expected = self.orders.order(number);
            let found = self.session.by_id(number as i64)?.ok_or("a document is missing")?;
            let found = self.target.decode(&found)?;
            if found != expected {
                return Err(format!("document {number} is {found:?}, not {expected:?}").into());
            }
        }
        match self.session.by_id(all as i64)? {
            Some(_) => Err("a document is there that was never written".into()),
            None => Ok(()),
        }
    }

    fn read_by_id(&mut self) -> Result<(), Failure> {
        let mut numbers = Numbers::new(SEED + 1);
        let sample = measured(self.target, self.scale.reads, || {
            for _ in 0..self.scale.reads {
                let number = numbers.below(self.scale.count) as i64;
                if self.session.by_id(number)?.is_none_or(|document| document.is_empty()) {
                    return Err("a document is missing".into());
                }
            }
            Ok(())
        })?;
        self.samples.push((Work::ReadById, sample));
        Ok(())
    }

    fn read_by_index(&mut self) -> Result<(), Failure> {
        let customers = self.orders.customers();
        let mut counts = vec![0_usize; customers as usize];
        let mut totals = vec![0_i64; customers as usize];
        for number in 0..self.scale.count + self.scale.singles {
            let order = self.orders.order(number);
            counts[order.customer.number as usize] += 1;
            totals[order.customer.number as usize] += order.total;
        }
        let mut numbers = Numbers::new(SEED + 2);
        for _ in 0..CHECKED {
            let customer = numbers.below(customers);
            let found = self.session.by_customer(customer as i64)?;
            let mut total = 0;
            for document in &found {
                total += self.target.decode(document)?.total;
            }
            let position = customer as usize;
            if (found.len(), total) != (counts[position], totals[position]) {
                return Err(format!("customer {customer}: {} orders, {total}", found.len()).into());
            }
        }
        let sample = measured(self.target, self.scale.index_reads, || {
            for _ in 0..self.scale.index_reads {
                let customer = numbers.below(customers);
                let found = self.session.by_customer(customer as i64)?.len();
                if found != counts[customer as usize] {
                    return Err(format!("customer {customer} has {found} orders").into());
                }
            }
            Ok(())
        })?;
        self.samples.push((Work::ReadByIndex, sample));
        Ok(())
    }

    fn scan(&mut self) -> Result<(), Failure> {
        let all = self.scale.count + self.scale.singles;
        let city = Orders::city(42);
        let there = (0..all).map(|number| self.orders.order(number));
        let there: Vec<_> = there.filter(|order| order.address.city == city).collect();
        let mut total = 0;
        for document in self.session.by_city(&city)? {
            total += self.target.decode(&document)?.total;
        }
        if total != there.iter().map(|order| order.total).sum::<i64>() {
            return Err(format!("a scan's sum is {total}").into());
        }
        let sample = measured(self.target, all * self.scale.scans, || {
            for _ in 0..self.scale.scans {
                let found = self.session.by_city(&city)?.len();
                if found != there.len() {
                    return Err(format!("a scan found {found} of {}", there.len()).into());
                }
            }
            Ok(())
        })?;
        self.samples.push((Work::Scan, sample));
        Ok(())
    }

    fn update(&mut self) -> Result<(), Failure> {
        let mut numbers = Numbers::new(SEED + 3);
        let chosen: Vec<u64> =
            (0..self.scale.updates).map(|_| numbers.below(self.scale.count)).collect();
        let sample = measured(self.target, self.scale.updates, || {
            chosen.iter().try_for_each(|number| set_status(self.session.as_mut(), *number, "sent"))
        })?;
        self.samples.push((Work::Update, sample));
        self.check_status(&chosen, "sent")
    }

    fn update_threads(&mut self) -> Result<(), Failure> {
        let mut sessions = Vec::new();
        for thread in 0..THREADS {
            let mut numbers = Numbers::new(SEED + 4 + thread);
            let chosen: Vec<u64> =
                (0..self.scale.updates).map(|_| numbers.below(self.scale.count)).collect();
            sessions.push((self.target.session()?, chosen));
        }
        let sample = measured(self.target, self.scale.updates * THREADS, || {
            thread::scope(|scope| {
                let threads: Vec<_> = sessions
                    .iter_mut()
                    .map(|(session, chosen)| {
                        scope.spawn(move || {
                            chosen.iter().try_for_each(|number| {
                                set_status(session.as_mut(), *number, "received")
                            })
                        })
                    })
                    .collect();
                threads.into_iter().try_for_each(|thread| match thread.join() {
                    Ok(done) => done,
                    Err(_) => Err("a thread panicked".into()),
                })
            })
        })?;
        self.samples.push((Work::UpdateThreads, sample));
        for (_, chosen) in &sessions {
            self.check_status(chosen, "received")?;
        }
        Ok(())
    }

    fn check_status(&mut self, numbers: &[u64], status: &str) -> Result<(), Failure> {
        for number in numbers {
            let found = self.session.by_id(*number as i64)?.ok_or("a document is missing")?;
            let mut expected = self.orders.order(*number);
            expected.status = status.into();
            if self.target.decode(&found)? != expected {
                return Err(format!("an update of document {number} is missing").into());
            }
        }
        Ok(())
    }

    fn versions(&mut self, versions: &dyn Versions) -> Result<(), Failure> {
        let mut commits = Vec::new();
        let sample = measured(self.target, 1, || {
            commits.push(versions.commit("all documents")?);
            Ok(())
        })?;
        self.samples.push((Work::CommitAll, sample));
        let (mut commit, mut branch, mut diff, mut merge) = (None, None, None, None);
        for round in 0..self.scale.versions {
            let (ours, theirs) = (self.changed(round, 0), self.changed(round, 1));
            let name = format!("feature{round}");
            let sample = measured(self.target, 1, || versions.branch(&name))?;
            add(&mut branch, sample);
            versions.change_branch(&name, &theirs, &name)?;
            for number in &ours {
                set_status(self.session.as_mut(), *number as u64, &format!("round{round}"))?;
            }
            let sample = measured(self.target, 1, || {
                commits.push(versions.commit("ten documents")?);
                Ok(())
            })?;
            add(&mut commit, sample);
            let [.., before, after] = commits.as_slice() else {
                return Err("two commits were just made".into());
            };
            let mut differing = 0;
            let sample = measured(self.target, 1, || {
                differing = versions.diff(before, after)?;
                Ok(())
            })?;
            add(&mut diff, sample);
            if differing != CHANGED {
                return Err(format!("a diff found {differing} documents, not {CHANGED}").into());
            }
            let sample = measured(self.target, 1, || versions.merge(&name))?;
            add(&mut merge, sample);
            let merged: Vec<u64> = theirs.iter().map(|number| *number as u64).collect();
            self.check_status(&merged, &name)?;
            // The next round's diff is against the merge.
            for number in &ours[..1] {
                set_status(self.session.as_mut(), *number as u64, "between")?;
            }
            commits.push(versions.commit("one document")?);
        }
        let rows = [
            (Work::CommitChanged, commit),
            (Work::Branch, branch),
            (Work::Diff, diff),
            (Work::Merge, merge),
        ];
        self.samples.extend(rows.into_iter().filter_map(|(work, sample)| Some((work, sample?))));
        Ok(())
    }

    /// Ten different documents, spread over all; no two rounds and sides have one in common.
    fn changed(&self, round: u64, side: u64) -> Vec<i64> {
        let spacing = self.scale.count / CHANGED;
        let offset = (round * 2 + side) % spacing.max(1);
        (0..CHANGED).map(|position| (position * spacing + offset) as i64).collect()
    }
}

fn set_status(session: &mut dyn Session, number: u64, status: &str) -> Result<(), Failure> {
    match session.set_status(number as i64, status)? {
        1 => Ok(()),
        found => Err(format!("an update of document {number} found {found}").into()),
    }
}

fn add(sum: &mut Option<Sample>, sample: Sample) {
    *sum = Some(match *sum {
        None => sample,
        Some(sum) => Sample {
            operations: sum.operations + sample.operations,
            wall_micros: sum.wall_micros + sample.wall_micros,
            cpu_micros: sum.cpu_micros + sample.cpu_micros,
            written_bytes: sum
                .written_bytes
                .zip(sample.written_bytes)
                .map(|(sum, more)| sum + more),
        },
    });
}
