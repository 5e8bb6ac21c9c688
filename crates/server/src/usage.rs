//! Counts of what clients have used: time by kind of command and by collection, bytes on the wire,
//! failures.
//!
//! `serverStatus`, `top` and `latencyStats` show them. All are counted since the server began.
//!
//! *Thread safety*: everything may be called from any number of threads at once. Counters are
//! relaxed: each is exact, several that are read together may be a command apart.

pub mod class;
mod commands;
mod compression;
mod histogram;
mod logins;
mod namespace;
mod work;

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

pub use class::{Class, Event};
pub use commands::CommandCounts;
pub use compression::{Compression, ThroughBytes};
use foldhash::fast::RandomState;
pub use histogram::{Latencies, Latency};
pub use logins::{LoginCounts, Logins, MechanismLogins};
pub use namespace::{CommandTime, NamespaceUsage};
pub use work::{DocumentEvent, Examined, Expired, Work};

use crate::limits::NAMESPACES_COUNTED_MAX;

/// Collections are spread over so many lists, so that commands don't meet on one lock.
const LISTS: usize = 16;

/// The counts of bytes and requests on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Bytes of messages as they are read, when what was compressed is inflated.
    pub bytes_in: u64,
    /// Bytes of answers before they are compressed.
    pub bytes_out: u64,
    /// Bytes of messages as they came.
    pub physical_bytes_in: u64,
    /// Bytes of answers as they go.
    pub physical_bytes_out: u64,
    /// Messages.
    pub requests: u64,
}

/// The counts of failed commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Failures {
    /// Commands that were refused or failed.
    pub user: u64,
    /// Those of them that met a defect and reported it.
    pub internal: u64,
    /// Those that panicked.
    pub panics: u64,
}

/// The kind of a command's failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failed {
    /// By what was asked, or by what the data are.
    User,
    /// By a defect.
    Internal,
    /// By a panic.
    Panic,
}

type List = HashMap<String, Arc<NamespaceUsage>, RandomState>;

/// The counts of what clients have used.
#[derive(Default)]
pub struct Usage {
    messages: Counters<5>,
    failures: Counters<3>,
    latencies: Latencies,
    commands: CommandCounts,
    logins: LoginCounts,
    work: Work,
    compression: Compression,
    hasher: RandomState,
    lists: [RwLock<List>; LISTS],
}

/// Counters that lie apart from others: threads that count something else aren't slowed.
#[repr(align(128))]
struct Counters<const COUNT: usize>([AtomicU64; COUNT]);

impl<const COUNT: usize> Default for Counters<COUNT> {
    fn default() -> Counters<COUNT> {
        Counters(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl<const COUNT: usize> Counters<COUNT> {
    fn add(&self, position: usize, amount: u64) {
        self.0[position].fetch_add(amount, Ordering::Relaxed);
    }

    fn read(&self) -> [u64; COUNT] {
        std::array::from_fn(|position| self.0[position].load(Ordering::Relaxed))
    }
}

impl Usage {
    /// Counts a message that came as `physical` bytes, and has `logical`.
    pub fn count_request(&self, logical: usize, physical: usize) {
        self.messages.add(0, logical as u64);
        self.messages.add(2, physical as u64);
        self.messages.add(4, 1);
    }

    /// Counts an answer of `logical` bytes that goes as `physical`.
    pub fn count_answer(&self, logical: usize, physical: usize) {
        self.messages.add(1, logical as u64);
        self.messages.add(3, physical as u64);
    }

    /// Returns the counts of bytes and requests on the wire.
    pub fn traffic(&self) -> Traffic {
        let [bytes_in, bytes_out, physical_bytes_in, physical_bytes_out, requests] =
            self.messages.read();
        Traffic { bytes_in, bytes_out, physical_bytes_in, physical_bytes_out, requests }
    }

    /// Counts a command that failed.
    pub fn count_failure(&self, failed: Failed) {
        self.failures.add(failed as usize, 1);
    }

    /// Returns how commands failed.
    pub fn failures(&self) -> Failures {
        let [user, internal, panics] = self.failures.read();
        Failures { user, internal, panics }
    }

    /// Counts a command that took `time`; `collection` if it works on one of `database`.
    pub fn count_command(
        &self,
        class: Class,
        database: &str,
        collection: Option<&str>,
        time: Duration,
    ) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.latencies.count(class.latency, micros);
        if let Some(collection) = collection {
            self.count_in(class, [database, ".", collection].concat(), micros);
        }
    }

    /// Counts a transaction that has ended, `time` after it began.
    pub fn count_transaction(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.latencies.count(Latency::Transaction, micros);
    }

    fn count_in(&self, class: Class, namespace: String, micros: u64) {
        let position = self.position_of(&namespace);
        if let Some(usage) = self.list(position).get(&namespace) {
            usage.count(class, micros);
            return;
        }
        let mut list = self.lists[position].write().unwrap_or_else(PoisonError::into_inner);
        // A client that invents names must not take memory by it.
        if list.len() < NAMESPACES_COUNTED_MAX / LISTS || list.contains_key(&namespace) {
            list.entry(namespace).or_default().count(class, micros);
        }
    }

    /// The same, that also counts how often each of these commands runs.
    pub fn counting(self, commands: impl Iterator<Item = &'static str>) -> Usage {
        Usage { commands: CommandCounts::of(commands), ..self }
    }

    /// Returns how often each command ran.
    pub fn commands(&self) -> &CommandCounts {
        &self.commands
    }

    /// Returns how often clients tried to log in.
    pub fn logins(&self) -> &LoginCounts {
        &self.logins
    }

    /// Returns the counts of what operations did.
    pub fn work(&self) -> &Work {
        &self.work
    }

    /// Returns the counts of what compression saved.
    pub fn compression(&self) -> &Compression {
        &self.compression
    }

    /// Returns how long commands took, of all collections and of none.
    pub fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    /// Returns the usage of a collection; `None` if it wasn't used.
    pub fn of_namespace(&self, namespace: &str) -> Option<Arc<NamespaceUsage>> {
        self.list(self.position_of(namespace)).get(namespace).cloned()
    }

    /// All collections that were used, by name.
    pub fn namespaces(&self) -> Vec<(String, Arc<NamespaceUsage>)> {
        let mut all = Vec::new();
        for position in 0..LISTS {
            let list = self.list(position);
            all.extend(list.iter().map(|(name, usage)| (name.clone(), Arc::clone(usage))));
        }
        all.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        all
    }

    /// Forgets a collection that was dropped or renamed.
    pub fn forget(&self, namespace: &str) {
        self.forget_where(|name| name == namespace);
    }

    /// Forgets the collections of a database, on all its branches.
    pub fn forget_database(&self, database: &str) {
        self.forget_where(|name| {
            let rest = name.strip_prefix(database);
            rest.is_some_and(|rest| rest.starts_with(['.', '@']))
        });
    }

    fn forget_where(&self, is_gone: impl Fn(&str) -> bool) {
        for list in &self.lists {
            let mut list = list.write().unwrap_or_else(PoisonError::into_inner);
            list.retain(|name, _| !is_gone(name));
        }
    }

    fn position_of(&self, namespace: &str) -> usize {
        self.hasher.hash_one(namespace) as usize % LISTS
    }

    fn list(&self, position: usize) -> RwLockReadGuard<'_, List> {
        // A list is whole after each statement, so a panic elsewhere can't have broken it.
        self.lists[position].read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(usage: &Usage, command: &str, collection: &str, micros: u64) {
        let time = Duration::from_micros(micros);
        usage.count_command(Class::of(command), "shop", Some(collection), time);
    }

    #[test]
    fn commands_are_counted_by_collection_and_kind() {
        let usage = Usage::default();
        count(&usage, "find", "items", 5);
        count(&usage, "find", "items", 7);
        count(&usage, "insert", "items", 100);
        count(&usage, "find", "other", 1);
        let items = usage.of_namespace("shop.items").expect("it was used");
        assert_eq!(items.spent(Event::Query), CommandTime { micros: 12, count: 2 });
        assert_eq!(items.spent(Event::Insert), CommandTime { micros: 100, count: 1 });
        assert_eq!(items.spent(Event::Remove), CommandTime::default());
        let reads = usage.latencies().spent(Latency::Read);
        assert_eq!(reads, CommandTime { micros: 13, count: 3 });
        let names: Vec<String> = usage.namespaces().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["shop.items", "shop.other"]);
    }

    #[test]
    fn usage_of_dropped_collections_is_forgotten() {
        let usage = Usage::default();
        for (database, collection) in
            [("shop", "a"), ("shop", "b"), ("shop@dev", "a"), ("shops", "a")]
        {
            let time = Duration::from_micros(1);
            usage.count_command(Class::of("find"), database, Some(collection), time);
        }
        usage.forget("shop.a");
        assert!(usage.of_namespace("shop.a").is_none());
        assert!(usage.of_namespace("shop.b").is_some());
        usage.forget_database("shop");
        let names: Vec<String> = usage.namespaces().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["shops.a"]);
    }

    #[test]
    fn invented_names_take_no_more_memory_than_allowed() {
        let usage = Usage::default();
        let time = Duration::from_micros(1);
        for number in 0..NAMESPACES_COUNTED_MAX * 2 {
            usage.count_command(Class::of("find"), "shop", Some(&number.to_string()), time);
        }
        assert!(usage.namespaces().len() <= NAMESPACES_COUNTED_MAX);
        let all = usage.latencies().spent(Latency::Read).count;
        assert_eq!(all, NAMESPACES_COUNTED_MAX as u64 * 2);
    }
}
