//! Is a store's conditional put one? Writers race, and it is counted how many believe that they
//! won.
//!
//! In each round all of them want to replace what the one before left, or to make what isn't there,
//! at the same moment. One must win, no other, and what lies there afterwards must be what the
//! winner put. A store where two win loses a client's push one day, so it is refused.

use std::sync::Barrier;

use bytes::Bytes;
use frond_db::Error;
use frond_store::io::{Chance, SystemChance};
use frond_vcs::remote::{FileVersion, PlainStorage};

use crate::bucket::Bucket;
use crate::remote_url::RemoteUrl;

/// Writers that race.
const WRITERS: usize = 8;
/// Rounds of replacing, and of making.
const ROUNDS: usize = 24;
/// Longer than what the writers put.
const BYTES_MAX: usize = 1 << 10;

/// What the races showed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CasReport {
    /// Rounds that were run.
    pub rounds: u64,
    /// Rounds in which more than one was told that it won.
    pub two_won: u64,
    /// Rounds that no writer won: harmless, but slow.
    pub nobody_won: u64,
    /// Rounds after which something else lay there than the winner put.
    pub lost: u64,
}

impl CasReport {
    /// Whether the store can hold a remote.
    pub fn is_safe(&self) -> bool {
        self.two_won == 0 && self.lost == 0
    }
}

/// Races writers on the bucket that `url` names.
///
/// # Errors
/// `BadValue` if it is no bucket, or has no conditional put; `Unavailable` if it doesn't answer.
pub fn probe(url: &str) -> Result<CasReport, Error> {
    match RemoteUrl::parse(url)? {
        RemoteUrl::Bucket { bucket, prefix } => race_on(&Bucket::s3(&bucket, &prefix)?),
        _ => Err(Error::bad_value(format!("{url}: s3://BUCKET/PREFIX is expected"))),
    }
}

/// Races writers on a place.
///
/// # Errors
/// As [`probe`].
pub fn race_on(bucket: &dyn PlainStorage) -> Result<CasReport, Error> {
    let mut own = [0; 8];
    SystemChance.fill(&mut own);
    let name = format!("probe-{:016x}", u64::from_le_bytes(own));
    let raced = race_by_name(bucket, &name);
    bucket.remove(&name)?;
    raced
}

fn race_by_name(bucket: &dyn PlainStorage, name: &str) -> Result<CasReport, Error> {
    let mut report = CasReport::default();
    for round in 0..2 * ROUNDS {
        let is_making = round % 2 == 0;
        if is_making {
            bucket.remove(name)?;
        }
        let before = bucket.load(name, BYTES_MAX)?;
        if is_making && before.is_some() {
            return Err(Error::unavailable("an object that was removed is still there"));
        }
        let version = before.map(|(_, version)| version);
        let winners = one_round(bucket, name, version.as_ref(), round)?;
        report.rounds += 1;
        match winners.as_slice() {
            [] => report.nobody_won += 1,
            [winner] => {
                let left = bucket.load(name, BYTES_MAX)?.map(|(bytes, _)| bytes);
                report.lost += u64::from(left.as_ref() != Some(winner));
            }
            _ => report.two_won += 1,
        }
    }
    Ok(report)
}

/// Returns what those put who were told that they won.
fn one_round(
    bucket: &dyn PlainStorage,
    name: &str,
    expected: Option<&FileVersion>,
    round: usize,
) -> Result<Vec<Bytes>, Error> {
    let barrier = Barrier::new(WRITERS);
    let outcomes: Vec<Result<Option<Bytes>, Error>> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let bytes = Bytes::from(format!("round {round}, writer {writer}"));
                    barrier.wait();
                    let won = bucket.swap(name, expected, bytes.clone())?;
                    Ok(won.then_some(bytes))
                })
            })
            .collect();
        let joined = writers.into_iter().map(|writer| writer.join());
        joined
            .map(|done| done.unwrap_or_else(|_| Err(Error::internal("a writer failed"))))
            .collect()
    });
    let outcomes: Result<Vec<Option<Bytes>>, Error> = outcomes.into_iter().collect();
    Ok(outcomes?.into_iter().flatten().collect())
}
