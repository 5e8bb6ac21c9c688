//! One client of YCSB: the mixes of operations, with YCSB's distributions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bson::Document;
use hdrhistogram::Histogram;

use crate::drive::{Client, Operation, new_histogram};
use crate::query::{Change, Comparison, Direction, Kind, Query};
use crate::random::{Random, Zipf};
use crate::target::{Failure, Session, Target};
use crate::workload::Context;
use crate::workloads::ycsb::RECORDS;
use crate::workloads::ycsb::record::{self, FIELDS};

const SCAN_MAX: u64 = 100;
/// Records that are read at the end.
const CHECKED_AT_END: u64 = 1_000;
/// Records that are updated and read back before time counts.
const CHECKED_UPDATES: u64 = 50;

/// Shares of operations, in percent.
#[derive(Debug)]
pub struct Mix {
    /// YCSB's letter.
    pub name: &'static str,
    reads: u64,
    updates: u64,
    inserts: u64,
    scans: u64,
    /// The rest reads and then updates.
    latest: bool,
}

/// YCSB's core workloads.
pub const MIXES: &[Mix] = &[
    Mix { name: "A", reads: 50, updates: 50, inserts: 0, scans: 0, latest: false },
    Mix { name: "B", reads: 95, updates: 5, inserts: 0, scans: 0, latest: false },
    Mix { name: "C", reads: 100, updates: 0, inserts: 0, scans: 0, latest: false },
    Mix { name: "D", reads: 95, updates: 0, inserts: 5, scans: 0, latest: true },
    Mix { name: "E", reads: 0, updates: 0, inserts: 5, scans: 95, latest: false },
    Mix { name: "F", reads: 50, updates: 0, inserts: 0, scans: 0, latest: false },
];

/// The knowledge that all clients share.
pub struct Shared {
    /// Records that were loaded.
    loaded: u64,
    /// Records below this were inserted and acknowledged, except the few that are under way.
    inserted: AtomicU64,
    /// Records below this are there.
    acknowledged: AtomicU64,
    version: AtomicU64,
    checked: AtomicU64,
    any: Zipf,
    latest: Zipf,
}

impl Shared {
    /// The state after `loaded` records were loaded.
    pub fn new(loaded: u64) -> Shared {
        Shared {
            loaded,
            inserted: AtomicU64::new(loaded),
            acknowledged: AtomicU64::new(loaded),
            version: AtomicU64::new(1),
            checked: AtomicU64::new(0),
            any: Zipf::of_ycsb(),
            latest: Zipf::new(loaded),
        }
    }

    fn next_version(&self) -> u64 {
        self.version.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns how many answers were checked.
    pub fn checked(&self) -> u64 {
        self.checked.load(Ordering::Relaxed)
    }
}

/// A client with its connection.
pub struct YcsbClient<'a> {
    target: &'a dyn Target,
    session: Box<dyn Session>,
    shared: Arc<Shared>,
    mix: &'static Mix,
}

impl<'a> YcsbClient<'a> {
    /// Connects.
    pub fn new(
        target: &'a dyn Target,
        shared: Arc<Shared>,
        mix: &'static Mix,
    ) -> Result<YcsbClient<'a>, Failure> {
        Ok(YcsbClient { target, session: target.session()?, shared, mix })
    }

    fn pick(&self, random: &mut Random) -> u64 {
        if self.mix.latest {
            let newest = self.shared.acknowledged.load(Ordering::Relaxed) - 1;
            return newest - self.shared.latest.next(random).min(newest);
        }
        self.shared.any.scrambled(random, self.shared.loaded)
    }

    fn read(&mut self, number: u64) -> Result<Document, Failure> {
        let found = self.session.get(RECORDS, &record::key(number))?;
        let bytes = found.ok_or_else(|| Failure::Wrong(format!("record {number} is missing")))?;
        let document = self.target.decode(&bytes)?;
        record::check(&document, number)?;
        self.shared.checked.fetch_add(1, Ordering::Relaxed);
        Ok(document)
    }

    fn update(&mut self, number: u64, random: &mut Random) -> Result<(), Failure> {
        self.set(number, random.below(FIELDS), self.shared.next_version())
    }

    fn set(&mut self, number: u64, position: u64, version: u64) -> Result<(), Failure> {
        let value = record::value(number, position, version);
        let change = Change::Set(record::field(position), value.into());
        // A database that lets the first of two win says so, and its users try again; that takes
        // its time.
        let matched = loop {
            match self.session.update(RECORDS, &record::key(number), std::slice::from_ref(&change))
            {
                Err(Failure::Conflict(_)) => {}
                other => break other?,
            }
        };
        if matched == 1 {
            Ok(())
        } else {
            Err(Failure::Wrong(format!("an update of record {number} matched {matched}")))
        }
    }

    fn insert(&mut self) -> Result<(), Failure> {
        let number = self.shared.inserted.fetch_add(1, Ordering::Relaxed);
        let encoded = record::encoded(self.target, number)?;
        loop {
            match self.session.insert(RECORDS, std::slice::from_ref(&encoded)) {
                Err(Failure::Conflict(_)) => {}
                other => break other?,
            }
        }
        // Waits for its predecessors, as YCSB does: what is counted is there without gaps. So it
        // isn't part of the database's work, but takes a moment only if an earlier one is late.
        let acknowledged = &self.shared.acknowledged;
        let _ =
            acknowledged.compare_exchange(number, number + 1, Ordering::Relaxed, Ordering::Relaxed);
        Ok(())
    }

    fn scan(&mut self, number: u64, random: &mut Random) -> Result<(), Failure> {
        let limit = 1 + random.below(SCAN_MAX);
        let query = Query::all(RECORDS)
            .filter("_id", Comparison::AtLeast, record::key(number))
            .sort("_id", Kind::Text, Direction::Ascending)
            .limit(limit);
        let mut least = record::key(number).as_str().unwrap_or_default().to_owned();
        let target = self.target;
        let mut is_first = true;
        let count = self.session.find(&query, &mut |bytes| {
            let document = target.decode(bytes)?;
            let key = document.get_str("_id").unwrap_or_default();
            let right = if is_first { key == least } else { *key > *least };
            if !right || document.len() as u64 != FIELDS + 1 {
                return Err(Failure::Wrong(format!("a scan has {key:?} after {least:?}")));
            }
            least = key.to_owned();
            is_first = false;
            Ok(())
        })?;
        self.shared.checked.fetch_add(count, Ordering::Relaxed);
        if count == 0 || count > limit {
            return Err(Failure::Wrong(format!("a scan of {limit} has {count} records")));
        }
        Ok(())
    }
}

impl Client for YcsbClient<'_> {
    fn operate(&mut self, random: &mut Random) -> Result<Operation, Failure> {
        let dice = random.below(100);
        let number = self.pick(random);
        let mix = self.mix;
        if dice < mix.reads {
            self.read(number)?;
            return Ok("read");
        }
        if dice < mix.reads + mix.updates {
            self.update(number, random)?;
            return Ok("update");
        }
        if dice < mix.reads + mix.updates + mix.inserts {
            self.insert()?;
            return Ok("insert");
        }
        if dice < mix.reads + mix.updates + mix.inserts + mix.scans {
            self.scan(number, random)?;
            return Ok("scan");
        }
        self.read(number)?;
        self.update(number, random)?;
        Ok("read-modify-write")
    }
}

/// Updates some records and reads each back at once, while no other client runs.
pub fn check_updates(context: &Context<'_>, shared: &Arc<Shared>) -> Result<(), Failure> {
    let mut client = YcsbClient::new(context.target()?, shared.clone(), &MIXES[2])?;
    let mut random = Random::of(context.seed, &[3]);
    for _ in 0..CHECKED_UPDATES {
        let number = random.below(shared.loaded);
        let (position, version) = (random.below(FIELDS), shared.next_version());
        client.set(number, position, version)?;
        let document = client.read(number)?;
        let expected = record::value(number, position, version);
        if document.get_str(record::field(position)).ok() != Some(expected.as_str()) {
            let text = format!("record {number}: an acknowledged update is lost: {document}");
            return Err(Failure::Wrong(text));
        }
    }
    Ok(())
}

/// Reads random records one after the other, each answer checked.
pub fn read_cold(
    context: &Context<'_>,
    shared: &Arc<Shared>,
    reads: u64,
) -> Result<Histogram<u64>, Failure> {
    let mut client = YcsbClient::new(context.target()?, shared.clone(), &MIXES[2])?;
    let (mut latencies, mut random) = (new_histogram(), Random::of(context.seed, &[4]));
    for _ in 0..reads {
        let number = random.below(shared.loaded);
        let begun = Instant::now();
        client.read(number)?;
        latencies.saturating_record(begun.elapsed().as_micros() as u64);
    }
    Ok(latencies)
}

/// Reads some of all records, to the last that was inserted.
pub fn check_all(context: &Context<'_>, shared: &Arc<Shared>) -> Result<(), Failure> {
    let mut client = YcsbClient::new(context.target()?, shared.clone(), &MIXES[2])?;
    let count = shared.inserted.load(Ordering::Relaxed);
    let step = count.div_ceil(CHECKED_AT_END).max(1);
    for number in (0..count).step_by(step as usize).chain(count.checked_sub(1)) {
        client.read(number)?;
    }
    Ok(())
}
