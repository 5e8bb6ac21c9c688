//! A bucket in memory that answers as real ones do: late, twice, not at all, or with yesterday's
//! list.
//!
//! *The model*
//! 1. Objects change one at a time, each put under its condition.
//! 2. A put may be *refused for now* (503, 409): it isn't done, and the answer is unknown. Its
//!    reply may be *lost*: it is done, and the answer is unknown. It may be *late*: the answer is
//!    unknown, and it is done, under its condition of then, before some later call of any client.
//!    It may come *twice*: once now, once late.
//! 3. A read may fail. It shows the present state.
//! 4. A list may be stale: it shows the state of some calls ago.
//! 5. A client that was cut off ([`SimDepot::cut_after`]) reaches nothing any more; what it put
//!    before may still be late. So a process ends at each of its calls.
//!
//! 6. It may be *silent* ([`SimDepot::set_silent`]): requests wait for as long.
//!
//! *Replay*: one seed decides everything; clients that one thread runs repeat exactly.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use bytes::Bytes;
use frond_store::bucket::{Bucket, BucketError, Created, ObjectPart, ObjectVersion, Swapped};

use crate::random::Random;

/// The faults of a simulated bucket, each one time in so many; 0 for never.
#[derive(Clone, Copy, Debug, Default)]
pub struct DepotFaults {
    /// A call is refused for now.
    pub busy_one_in: usize,
    /// A put is done and its reply lost.
    pub lost_one_in: usize,
    /// A put is done later.
    pub late_one_in: usize,
    /// A put is done now and once more later.
    pub twice_one_in: usize,
    /// A list shows an earlier state.
    pub stale_one_in: usize,
}

impl DepotFaults {
    /// All of them, often.
    pub const MANY: DepotFaults = DepotFaults {
        busy_one_in: 6,
        lost_one_in: 5,
        late_one_in: 7,
        twice_one_in: 7,
        stale_one_in: 2,
    };
}

/// A client of a simulated bucket; [`SimDepot::other_client`] is another of the same.
pub struct SimDepot {
    shared: Arc<Mutex<Shared>>,
    client: Mutex<Client>,
    /// Requests wait while it is silent; shared by all clients.
    silence: Arc<(Mutex<bool>, Condvar)>,
}

#[derive(Default)]
struct Client {
    calls: u64,
    cut_at: Option<u64>,
    has_hung_up: bool,
}

#[derive(Clone)]
struct Put {
    name: String,
    /// `None`: if there is no such object.
    was: Option<u64>,
    bytes: Bytes,
}

struct Shared {
    random: Random,
    faults: DepotFaults,
    objects: BTreeMap<String, (Bytes, u64)>,
    /// The former objects that lists may still show.
    stale: BTreeMap<String, (Bytes, u64)>,
    late: Vec<Put>,
    versions: u64,
    ignores_conditions: bool,
    bytes_read: u64,
    /// The number of parts that are read with a bit turned over.
    garbled: u64,
    /// The number of whole objects that are read with a bit turned over.
    garbled_objects: u64,
}

impl SimDepot {
    /// An empty bucket without faults.
    pub fn new(seed: u64) -> SimDepot {
        let shared = Shared {
            random: Random::new(seed),
            faults: DepotFaults::default(),
            objects: BTreeMap::new(),
            stale: BTreeMap::new(),
            late: Vec::new(),
            versions: 0,
            ignores_conditions: false,
            bytes_read: 0,
            garbled: 0,
            garbled_objects: 0,
        };
        let shared = Arc::new(Mutex::new(shared));
        SimDepot { shared, client: Mutex::default(), silence: Arc::default() }
    }

    /// Another client of this bucket.
    pub fn other_client(&self) -> SimDepot {
        let (shared, silence) = (Arc::clone(&self.shared), Arc::clone(&self.silence));
        SimDepot { shared, client: Mutex::default(), silence }
    }

    /// Has faults from now on.
    pub fn set_faults(&self, faults: DepotFaults) {
        self.shared().faults = faults;
    }

    /// Takes requests and answers none, until it is called with false: one waits so long, and is
    /// done then, or until its client hangs up.
    pub fn set_silent(&self, is_silent: bool) {
        *self.silence.0.lock().expect("no panic while the lock is held") = is_silent;
        self.silence.1.notify_all();
    }

    /// Waits as long as it is silent; false: the client has hung up.
    fn await_voice(&self) -> bool {
        let (silence, changed) = &*self.silence;
        let mut is_silent = silence.lock().expect("no panic while the lock is held");
        while *is_silent && !self.client().has_hung_up {
            is_silent = changed.wait(is_silent).expect("no panic while the lock is held");
        }
        !*is_silent
    }

    /// Takes every put for one without a condition, as some stores do.
    pub fn ignore_conditions(&self) {
        self.shared().ignores_conditions = true;
    }

    /// Lets `calls` more of this client through; the next one may still be done, but neither it nor
    /// any later one is answered.
    pub fn cut_after(&self, calls: u64) {
        let mut client = self.client();
        client.cut_at = Some(client.calls + calls);
    }

    /// Calls of this client so far.
    pub fn calls(&self) -> u64 {
        self.client().calls
    }

    /// Whether it was cut off.
    pub fn is_cut(&self) -> bool {
        let client = self.client();
        client.cut_at.is_some_and(|at| at < client.calls)
    }

    /// Does what is late.
    pub fn settle(&self) {
        let mut shared = self.shared();
        while !shared.late.is_empty() {
            shared.do_late();
        }
    }

    /// The names and bytes of all objects.
    pub fn objects(&self) -> BTreeMap<String, Bytes> {
        let shared = self.shared();
        shared.objects.iter().map(|(name, (bytes, _))| (name.clone(), bytes.clone())).collect()
    }

    /// Turns a bit of an object over.
    ///
    /// # Panics
    /// If there is no such object or bit.
    pub fn flip_bit(&self, name: &str, bit: usize) {
        let mut shared = self.shared();
        let (bytes, _) = shared.objects.get_mut(name).expect("an object of this name");
        let mut changed = bytes.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        *bytes = changed.into();
    }

    /// Has the next `count` parts come with a bit turned over.
    pub fn garble(&self, count: u64) {
        self.shared().garbled = count;
    }

    /// Has the next `count` objects that are loaded come with a bit turned over.
    pub fn garble_objects(&self, count: u64) {
        self.shared().garbled_objects = count;
    }

    /// Bytes that were read in parts.
    pub fn bytes_read(&self) -> u64 {
        self.shared().bytes_read
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().expect("no panic while the lock is held")
    }

    fn client(&self) -> MutexGuard<'_, Client> {
        self.client.lock().expect("no panic while the lock is held")
    }

    /// Begins a call: what is late may be done before. `None`: the client is cut off.
    fn call(&self) -> Option<MutexGuard<'_, Shared>> {
        let is_cut = {
            let mut client = self.client();
            client.calls += 1;
            client.cut_at.is_some_and(|at| at < client.calls)
        };
        let mut shared = self.shared();
        if !shared.late.is_empty() && shared.random.one_in(3) {
            shared.do_late();
        }
        (!is_cut).then_some(shared)
    }

    /// Whether this call is the first that isn't answered any more: it may still be done.
    fn is_last_word(&self) -> bool {
        let client = self.client();
        client.cut_at.is_some_and(|at| at + 1 == client.calls)
    }

    fn put(&self, put: Put) -> Option<Result<u64, ()>> {
        if !self.await_voice() {
            return None;
        }
        let Some(mut shared) = self.call() else {
            let mut shared = self.shared();
            if self.is_last_word() && shared.random.one_in(2) {
                shared.late.push(put);
            }
            return None;
        };
        let faults = shared.faults;
        if shared.meets(faults.busy_one_in) {
            return None;
        }
        if shared.meets(faults.late_one_in) {
            shared.late.push(put);
            return None;
        }
        if shared.meets(faults.twice_one_in) {
            shared.late.push(put.clone());
        }
        let done = shared.put(put);
        (!shared.meets(faults.lost_one_in)).then_some(done)
    }

    fn reading(&self, name: &str) -> Result<MutexGuard<'_, Shared>, BucketError> {
        let away = || BucketError::Unavailable { name: name.to_owned(), what: "503".to_owned() };
        if !self.await_voice() {
            return Err(away());
        }
        let mut shared = self.call().ok_or_else(away)?;
        let busy_one_in = shared.faults.busy_one_in;
        if shared.meets(busy_one_in) { Err(away()) } else { Ok(shared) }
    }
}

impl Shared {
    fn meets(&mut self, one_in: usize) -> bool {
        one_in > 0 && self.random.one_in(one_in)
    }

    fn do_late(&mut self) {
        let position = self.random.below(self.late.len());
        let put = self.late.swap_remove(position);
        let _ = self.put(put);
    }

    /// Puts under the condition; the new version.
    fn put(&mut self, Put { name, was, bytes }: Put) -> Result<u64, ()> {
        let now = self.objects.get(&name).map(|(_, version)| *version);
        if now != was && !self.ignores_conditions {
            return Err(());
        }
        self.remember();
        self.versions += 1;
        self.objects.insert(name, (bytes, self.versions));
        Ok(self.versions)
    }

    fn remember(&mut self) {
        if self.faults.stale_one_in > 0 && self.random.one_in(3) {
            self.stale = self.objects.clone();
        }
    }
}

fn garbled(part: &Bytes) -> Bytes {
    let mut bytes = part.to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    bytes.into()
}

fn version(number: u64) -> ObjectVersion {
    ObjectVersion(number.to_string())
}

impl Bucket for SimDepot {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Created, BucketError> {
        Ok(match self.put(Put { name: name.to_owned(), was: None, bytes }) {
            Some(Ok(made)) => Created::Made(version(made)),
            Some(Err(())) => Created::Exists,
            None => Created::Unknown,
        })
    }

    fn swap(&self, name: &str, was: &ObjectVersion, bytes: Bytes) -> Result<Swapped, BucketError> {
        let was = was.0.parse().ok();
        Ok(match self.put(Put { name: name.to_owned(), was, bytes }) {
            Some(Ok(made)) => Swapped::Yes(version(made)),
            Some(Err(())) => Swapped::No,
            None => Swapped::Unknown,
        })
    }

    fn load(&self, name: &str) -> Result<Option<(Bytes, ObjectVersion)>, BucketError> {
        let mut shared = self.reading(name)?;
        let found = shared.objects.get(name).cloned();
        let is_garbled = shared.garbled_objects > 0 && found.is_some();
        shared.garbled_objects -= u64::from(is_garbled);
        Ok(found.map(|(bytes, number)| {
            (if is_garbled { garbled(&bytes) } else { bytes }, version(number))
        }))
    }

    fn read_many(&self, parts: &[ObjectPart]) -> Result<Vec<Option<Bytes>>, BucketError> {
        let mut shared = self.reading("parts of objects")?;
        let mut read = Vec::with_capacity(parts.len());
        for ObjectPart { name, range } in parts {
            let found = shared.objects.get(name).map(|(bytes, _)| bytes.clone());
            let range = range.start as usize..range.end as usize;
            let part = found.filter(|bytes| range.end <= bytes.len()).map(|it| it.slice(range));
            shared.bytes_read += part.as_ref().map_or(0, |part| part.len() as u64);
            let is_garbled = shared.garbled > 0 && part.as_ref().is_some_and(|it| !it.is_empty());
            shared.garbled -= u64::from(is_garbled);
            read.push(part.map(|part| if is_garbled { garbled(&part) } else { part }));
        }
        Ok(read)
    }

    fn remove(&self, name: &str) -> Result<(), BucketError> {
        let mut shared = self.reading(name)?;
        shared.remember();
        shared.objects.remove(name);
        Ok(())
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, BucketError> {
        let mut shared = self.reading(prefix)?;
        let stale_one_in = shared.faults.stale_one_in;
        let is_stale = shared.meets(stale_one_in);
        let objects = if is_stale { &shared.stale } else { &shared.objects };
        Ok(objects.keys().filter(|name| name.starts_with(prefix)).cloned().collect())
    }

    fn wait(&self, _attempt: u32) {}

    fn hang_up(&self) {
        self.client().has_hung_up = true;
        drop(self.silence.0.lock().expect("no panic while the lock is held"));
        self.silence.1.notify_all();
    }
}
