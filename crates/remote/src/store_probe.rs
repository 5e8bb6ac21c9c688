//! Checks whether a store can hold a data directory's packs, and how fast it is: races
//! ([`cas_probe`](crate::cas_probe)), replies that are lost, and a table of latencies.
//!
//! *Lost replies*: a large object is replaced by a caller that soon stops listening, at moments
//! from before it sent anything to after it was answered. The outcome is then found out
//! ([`swap_until_known`]) as a server does, and must agree with the object.

use std::time::Duration;

use bytes::Bytes;
use frond_db::Error;
use frond_store::bucket::{
    Bucket, BucketError, ObjectPart, Swapped, create_until_known, swap_until_known,
};
use frond_store::io::steady_now;

use crate::cas_probe::{BYTES_LARGE, CasReport, bucket_error, own_name, race_on};
use crate::object_bucket::ObjectBucket;
use crate::remote_url::BucketUrl;

/// Replies that are lost, each after another time.
const LOST_REPLIES: u32 = 16;
/// The longest time; the others are parts of it.
const LOST_AFTER_MAX: Duration = Duration::from_millis(80);
/// Requests of each kind that are timed.
const TIMED: u32 = 40;
/// A small object, and a part of a large one: what a leaf's read asks for.
const BYTES_SMALL: usize = 4 << 10;
const BYTES_PART: u64 = 64 << 10;

/// The time that requests of one kind took.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Latency {
    /// The kind of request.
    pub what: &'static str,
    /// Half were faster.
    pub p50: Duration,
    /// One in a hundred was slower; of so few as are timed, the slowest.
    pub p99: Duration,
}

/// The results of probing a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreReport {
    /// The races.
    pub races: CasReport,
    /// Replies that the caller did not wait for.
    pub replies_lost: u32,
    /// The number of these that were of a put that was done.
    pub lost_were_done: u32,
    /// The number of these after which something else lay there than was found out.
    pub lost_mistaken: u32,
    /// The latencies of requests.
    pub latencies: Vec<Latency>,
}

impl StoreReport {
    /// Whether the store can hold what Frond puts there.
    pub fn is_safe(&self) -> bool {
        self.races.is_safe() && self.lost_mistaken == 0
    }
}

/// Probes the bucket that `url` names.
///
/// # Errors
/// `BadValue` if it is no bucket, has no conditional put, or refuses access; `Unavailable` if it
/// doesn't answer.
pub fn probe(url: &str) -> Result<StoreReport, Error> {
    probe_bucket(&ObjectBucket::open(&BucketUrl::parse(url)?)?)
}

/// Probes a store; one that failed the races is asked for nothing more.
///
/// # Errors
/// As [`probe`].
pub fn probe_bucket(bucket: &ObjectBucket) -> Result<StoreReport, Error> {
    let races = race_on(bucket)?;
    let mut report = StoreReport {
        races,
        replies_lost: 0,
        lost_were_done: 0,
        lost_mistaken: 0,
        latencies: Vec::new(),
    };
    if report.races.is_safe() {
        let name = own_name();
        let probed = lose_replies(bucket, &name, &mut report);
        let probed = probed.and_then(|()| time_requests(bucket, &name));
        let removed = bucket.remove(&name).map_err(bucket_error);
        report.latencies = probed?;
        removed?;
    }
    Ok(report)
}

/// A large object that no other is equal to.
fn large(number: u32) -> Bytes {
    let mut bytes = format!("large {number}").into_bytes();
    bytes.resize(BYTES_LARGE, number as u8);
    Bytes::from(bytes)
}

fn lose_replies(bucket: &ObjectBucket, name: &str, report: &mut StoreReport) -> Result<(), Error> {
    create_until_known(bucket, name, &large(0)).map_err(bucket_error)?;
    for number in 1..=LOST_REPLIES {
        let gone = || Error::unavailable("an object that was made is not there");
        let (_, was) = bucket.load(name).map_err(bucket_error)?.ok_or_else(gone)?;
        let bytes = large(number);
        let wait = LOST_AFTER_MAX * number / LOST_REPLIES;
        let answer =
            bucket.swap_impatiently(name, &was, bytes.clone(), wait).map_err(bucket_error)?;
        if answer == Swapped::Unknown {
            report.replies_lost += 1;
            let there = bucket.load(name).map_err(bucket_error)?.ok_or_else(gone)?;
            report.lost_were_done += u32::from(there.0 == bytes);
        }
        // No other writer is there, so it must be found out to have been done.
        let is_mine = swap_until_known(bucket, name, &was, &bytes).map_err(bucket_error)?.is_some();
        let there = bucket.load(name).map_err(bucket_error)?.ok_or_else(gone)?;
        report.lost_mistaken += u32::from(!is_mine || there.0 != bytes);
    }
    Ok(())
}

/// Runs `act` on what `prepare` makes, and times `act` alone.
fn time<T>(
    what: &'static str,
    mut prepare: impl FnMut(u32) -> Result<T, BucketError>,
    mut act: impl FnMut(T) -> Result<(), BucketError>,
) -> Result<Latency, Error> {
    let mut times = Vec::with_capacity(TIMED as usize);
    for number in 0..TIMED {
        let prepared = prepare(number).map_err(bucket_error)?;
        let begun = steady_now();
        act(prepared).map_err(bucket_error)?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    let (p50, p99) = (times[times.len() / 2], times[times.len() - 1]);
    Ok(Latency { what, p50, p99 })
}

fn time_requests(bucket: &dyn Bucket, name: &str) -> Result<Vec<Latency>, Error> {
    let small = format!("{name}-small");
    let bytes = Bytes::from(vec![7; BYTES_SMALL]);
    let part = [ObjectPart { name: name.to_owned(), range: 0..BYTES_PART }];
    let latencies = vec![
        time(
            "put 4 KB",
            |_| bucket.remove(&small),
            |()| create_until_known(bucket, &small, &bytes).map(drop),
        )?,
        time(
            "put 1 MB",
            |number| Ok((bucket.load(name)?, large(LOST_REPLIES + 1 + number))),
            |(was, bytes)| match was {
                Some((_, was)) => swap_until_known(bucket, name, &was, &bytes).map(drop),
                None => create_until_known(bucket, name, &bytes).map(drop),
            },
        )?,
        time("get 4 KB", |_| Ok(()), |()| bucket.load(&small).map(drop))?,
        time("get 64 KB of 1 MB", |_| Ok(()), |()| bucket.read_many(&part).map(drop))?,
    ];
    bucket.remove(&small).map_err(bucket_error)?;
    Ok(latencies)
}
