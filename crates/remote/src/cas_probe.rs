//! Is a store's conditional put one? Writers race, and it is counted how many believe that they
//! won.
//!
//! 1. *The conditions are read*: to make what is there, or to replace what was replaced, is refused
//!    also where no writer races. Some stores ignore the headers.
//! 2. *One wins*: in each round all writers want to make what isn't there, or to replace what the
//!    round before left, at the same moment. One must win, no other, and what lies there afterwards
//!    must be what the winner put. Some stores compare first and then put; with large bodies, there
//!    is more time between.
//!
//! A store where two win loses a client's push one day, or takes two servers for the leader, so it
//! is refused.

use std::sync::Barrier;

use bytes::Bytes;
use frond_db::Error;
use frond_store::bucket::{
    Bucket, BucketError, Created, ObjectVersion, Swapped, create_until_known, swap_until_known,
};
use frond_store::io::{Chance, SystemChance};

/// Writers that race.
const WRITERS: usize = 32;
/// Rounds of small objects: of making one, then of replacing it.
const ROUNDS: usize = 24;
/// The same, of large ones.
const ROUNDS_LARGE: usize = 4;
/// A large one: as HEAD is of a large store.
pub(crate) const BYTES_LARGE: usize = 1 << 20;

/// The results of the races.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CasReport {
    /// Rounds that were run.
    pub rounds: u64,
    /// Rounds in which more than one writer seemed to win.
    pub two_won: u64,
    /// Rounds that no writer won: harmless, but slow.
    pub nobody_won: u64,
    /// Rounds after which something else lay there than the winner put.
    pub lost: u64,
    /// Conditions that the store ignored, by their headers.
    pub ignored: Vec<&'static str>,
}

impl CasReport {
    /// Whether the store can hold a remote, or a data directory's packs.
    pub fn is_safe(&self) -> bool {
        self.two_won == 0 && self.lost == 0 && self.ignored.is_empty()
    }
}

/// As an error of a command.
pub(crate) fn bucket_error(error: BucketError) -> Error {
    match error {
        BucketError::Refused { .. } => Error::bad_value(error.to_string()),
        BucketError::Unavailable { .. } => Error::unavailable(error.to_string()),
    }
}

/// A name of an object that no other writer uses.
pub(crate) fn own_name() -> String {
    let mut own = [0; 8];
    SystemChance.fill(&mut own);
    format!("probe-{:016x}", u64::from_le_bytes(own))
}

/// Races writers on a store.
///
/// # Errors
/// `BadValue` if it has no conditional put, or refuses access; `Unavailable` if it doesn't answer.
pub fn race_on(bucket: &dyn Bucket) -> Result<CasReport, Error> {
    let name = own_name();
    let raced = race_by_name(bucket, &name);
    let removed = bucket.remove(&name).map_err(bucket_error);
    // What failed first says more.
    let report = raced?;
    removed.and(Ok(report))
}

fn race_by_name(bucket: &dyn Bucket, name: &str) -> Result<CasReport, Error> {
    let mut report = CasReport { ignored: ignored(bucket, name)?, ..CasReport::default() };
    // Races would show the same, more slowly.
    if !report.ignored.is_empty() {
        return Ok(report);
    }
    for round in 0..2 * (ROUNDS + ROUNDS_LARGE) {
        let is_making = round % 2 == 0;
        if is_making {
            bucket.remove(name).map_err(bucket_error)?;
        }
        let before = bucket.load(name).map_err(bucket_error)?.map(|(_, version)| version);
        if is_making && before.is_some() {
            return Err(Error::unavailable("an object that was removed is still there"));
        }
        let bytes = if round < 2 * ROUNDS { 0 } else { BYTES_LARGE };
        let winners = one_round(bucket, name, before.as_ref(), (round, bytes))?;
        report.rounds += 1;
        match winners.as_slice() {
            [] => report.nobody_won += 1,
            [winner] => {
                let left = bucket.load(name).map_err(bucket_error)?.map(|(bytes, _)| bytes);
                report.lost += u64::from(left.as_ref() != Some(winner));
            }
            _ => report.two_won += 1,
        }
    }
    Ok(report)
}

/// The headers of conditions that the store ignores.
fn ignored(bucket: &dyn Bucket, name: &str) -> Result<Vec<&'static str>, Error> {
    let mut ignored = Vec::new();
    let gone = || Error::unavailable("an object that was made is not there");
    let first =
        create_until_known(bucket, name, &Bytes::from_static(b"one")).map_err(bucket_error)?;
    let first = first.ok_or_else(gone)?;
    if let Created::Made(_) =
        bucket.create(name, Bytes::from_static(b"two")).map_err(bucket_error)?
    {
        ignored.push("If-None-Match");
    }
    let (_, now) = bucket.load(name).map_err(bucket_error)?.ok_or_else(gone)?;
    let third = Bytes::from_static(b"three");
    swap_until_known(bucket, name, &now, &third).map_err(bucket_error)?;
    let stale = bucket.swap(name, &first, Bytes::from_static(b"four")).map_err(bucket_error)?;
    if let Swapped::Yes(_) = stale {
        ignored.push("If-Match");
    }
    Ok(ignored)
}

/// Returns the body that a writer of a round puts: words, and as many bytes behind them.
fn body(round: usize, writer: usize, bytes: usize) -> Bytes {
    let mut body = format!("round {round}, writer {writer}").into_bytes();
    body.resize(body.len() + bytes, writer as u8);
    Bytes::from(body)
}

/// Returns the objects of the writers that seemed to win.
fn one_round(
    bucket: &dyn Bucket,
    name: &str,
    expected: Option<&ObjectVersion>,
    (round, bytes): (usize, usize),
) -> Result<Vec<Bytes>, Error> {
    let barrier = Barrier::new(WRITERS);
    let outcomes: Vec<Result<Option<Bytes>, BucketError>> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let body = body(round, writer, bytes);
                    barrier.wait();
                    let won = match expected {
                        None => create_until_known(bucket, name, &body),
                        Some(version) => swap_until_known(bucket, name, version, &body),
                    };
                    Ok(won?.map(|_| body))
                })
            })
            .collect();
        let joined = writers.into_iter().map(|writer| writer.join());
        joined.map(|done| done.expect("a writer doesn't panic")).collect()
    });
    let outcomes: Result<Vec<Option<Bytes>>, BucketError> = outcomes.into_iter().collect();
    Ok(outcomes.map_err(bucket_error)?.into_iter().flatten().collect())
}
