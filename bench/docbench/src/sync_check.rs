//! Finds targets that acknowledge writes before they are on the disk.
//!
//! One client inserts documents one after the other, each in a durable step. A database that syncs
//! makes the disk flush at least once a write. Other processes may flush too, so a culprit can be
//! missed when the disk is busy, but no target is accused wrongly. A server on another machine
//! can't be judged.

use std::path::Path;
use std::time::Instant;

use bson::doc;

use crate::machine;
use crate::query::{CollectionSpec, Kind};
use crate::target::{Durability, Encoded, Failure, Target};

const WRITES: u64 = 40;
const WRITES_WARMING: u64 = 5;
/// The number of flushes a write below which writes aren't synced. Not 1: a flush may end as the
/// count is read.
const FLUSHES_MIN: f64 = 0.9;
const COLLECTION: &str = "sync_check";

/// The result of the check.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Flushes of the disk for each write; `None` where they can't be counted.
    pub flushes_a_write: Option<f64>,
    /// The median write.
    pub write_micros: f64,
}

impl Found {
    /// Checks that the result agrees with the target's promise.
    pub fn verdict(&self, promised: Durability) -> Result<(), Failure> {
        match (promised, self.flushes_a_write) {
            (Durability::Synced, Some(flushes)) if flushes < FLUSHES_MIN => {
                Err(Failure::Wrong(format!(
                    "writes are acknowledged before they are synced: {flushes:.2} flushes of the \
                     disk a write"
                )))
            }
            _ => Ok(()),
        }
    }
}

/// Writes, and counts the flushes of the disk below `directory`.
pub fn check(target: &dyn Target, directory: &Path, counted: bool) -> Result<Found, Failure> {
    let mut session = target.session()?;
    session.create(&CollectionSpec::new(COLLECTION, Kind::Integer))?;
    let mut documents = Vec::new();
    for number in 0..(WRITES_WARMING + WRITES) as i64 {
        let bytes = target.encode(&doc! { "_id": number, "name": "written and synced" })?;
        documents.push(Encoded { id: number.into(), bytes });
    }
    let (warming, measured) = documents.split_at(WRITES_WARMING as usize);
    for document in warming {
        session.insert(COLLECTION, std::slice::from_ref(document))?;
    }
    let before = machine::flushes(directory);
    let mut taken = Vec::new();
    for document in measured {
        let begin = Instant::now();
        session.insert(COLLECTION, std::slice::from_ref(document))?;
        taken.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    let after = machine::flushes(directory);
    // A target without files here may be on another machine, or on another disk.
    let ours = counted && target.disk_bytes().is_some();
    let flushes = before.zip(after).filter(|_| ours);
    taken.sort_unstable_by(f64::total_cmp);
    Ok(Found {
        flushes_a_write: flushes.map(|(before, after)| (after - before) as f64 / WRITES as f64),
        write_micros: taken[taken.len() / 2],
    })
}
