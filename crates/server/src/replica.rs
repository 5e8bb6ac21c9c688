//! A member of a replica set of several: how it follows, leads, and shows clients which it does.
//!
//! 1. Directories that are new exchange their identities, and note which members belong to the set
//!    ([`identity`]).
//! 2. `frond_quorum` agrees with the others on one order of entries ([`links`] carries what it
//!    says); what is committed is applied (`crate::member`).
//! 3. An elected member waits until everything committed before is applied, and leads then: what
//!    its engine proposes is an entry ([`Order`] of this).
//! 4. A member that lacks entries that no log has any more gets a copy of what the leader has
//!    ([`image`]), which becomes its content when it begins anew ([`incoming`]).
//! 5. Servers by themselves may become a set ([`beginning`]).
//! 6. A deposed leader is of no further use: its engine may have proposed what was never committed.
//!    The process begins anew, from logs that hold nothing of it ([`ReplicaOptions::restart`]). So
//!    its clients' connections end, and none reads on from what has no leader.
//!
//! *Thread safety*: all methods may be called at once. No lock is taken while another is held.

pub mod beginning;
pub mod channel;
pub mod identity;
pub mod image;
pub mod incoming;
pub mod key;
pub mod links;
pub mod members;
pub mod purges;
pub mod status;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use frond_db::set::Order;
use frond_db::{Error, Frond, FrondOptions};
use frond_doc::Timestamp;
use frond_quorum::{FileLog, MemberId, Proposal, Running, Status};
use frond_store::StoreError;
use frond_store::io::Machine;

use crate::log::Log;
use identity::Identity;
use image::Offer;
use incoming::Incoming;
use key::ClusterKey;
use links::Outgoing;
use members::Members;
use purges::Purges;
use status::{MemberStatus, PeerStatuses, State};

/// The bytes that are proposed before the first of them must be committed: the quorum takes no
/// more.
const PROPOSED_BYTES_MAX: usize = 56 << 20;

/// The options of a member of a set.
#[derive(Clone)]
pub struct ReplicaOptions {
    /// The set's name.
    pub set: String,
    /// All members, by the `HOST:PORT` by which clients and members reach them.
    pub members: Vec<String>,
    /// The address of this one among them.
    pub own: String,
    /// The key that all members know.
    pub key: ClusterKey,
    /// Whether the directory is that of a server by itself until now, which held nothing.
    pub begins: bool,
    /// The log of entries is kept up to so many bytes for a member that is away.
    pub log_bytes_max: u64,
    /// Begins the process anew; it doesn't return.
    pub restart: fn(),
}

/// The role of a member, as its clients see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Role {
    /// The members of the set aren't known yet.
    #[default]
    Starting,
    /// It follows.
    Secondary,
    /// It leads, and takes writes.
    Primary,
    /// It led, and is about to begin anew.
    Deposed,
    /// It lacks what no log has any more, and gets it from the leader.
    Recovering,
}

/// A member's role, and the leader.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MemberView {
    /// The role.
    pub role: Role,
    /// The newest term that it knows.
    pub term: u64,
    /// The address of the leader, as far as it knows.
    pub primary: Option<String>,
    /// Whether it is a member of the set, as far as it knows.
    pub is_member: bool,
}

/// Makes an offer, or says why there is none.
pub(crate) type OfferSource = dyn Fn() -> Result<Offer, String> + Send + Sync;
/// Says what the server is; `None`: it stops.
pub(crate) type StatusSource = dyn Fn() -> Option<MemberStatus> + Send + Sync;

/// See the module.
pub struct Replica {
    /// As it was started.
    pub options: ReplicaOptions,
    pub(crate) identity: Mutex<Identity>,
    /// What other members say of themselves, by their addresses.
    pub(crate) known_peers: Mutex<HashMap<String, Identity>>,
    pub(crate) meeting: Condvar,
    /// The messages that wait to be sent, by addresses.
    outgoing: Mutex<BTreeMap<String, Arc<Outgoing>>>,
    pub(crate) members: Mutex<Arc<Members>>,
    /// Held while these change, or purges are counted.
    pub(crate) configuring: Mutex<()>,
    pub(crate) purges: Mutex<Purges>,
    pub(crate) running: OnceLock<Running>,
    pub(crate) quorum_log: OnceLock<Arc<dyn frond_quorum::Log>>,
    /// Held while that is cut.
    pub(crate) cutting: Mutex<()>,
    /// Makes a copy of this member's data, for one that lacks entries.
    pub(crate) offers: OnceLock<Box<OfferSource>>,
    /// What it is, for the others.
    pub(crate) own_status: OnceLock<Box<StatusSource>>,
    pub(crate) peer_statuses: Mutex<PeerStatuses>,
    pub(crate) standing: Mutex<MemberView>,
    /// The term in which this process leads, or led; 0: none.
    pub(crate) led_term: AtomicU64,
    pub(crate) stopped: AtomicBool,
    pub(crate) machine: OnceLock<Machine>,
    pub(crate) log: OnceLock<Arc<Log>>,
}

impl Replica {
    /// Opens the data directory of a member.
    ///
    /// # Errors
    /// If it can't be opened; if it holds data that others of the set don't have, or belongs to
    /// another set.
    pub fn open(
        directory: &Path,
        options: FrondOptions,
        own: ReplicaOptions,
    ) -> Result<(Frond, Arc<Replica>), Error> {
        let begins = own.begins;
        let replica = Arc::new(Replica {
            outgoing: Mutex::default(),
            members: Mutex::new(Arc::new(Members::first(&own.members))),
            configuring: Mutex::new(()),
            purges: Mutex::default(),
            identity: Mutex::new(Identity {
                set: own.set.clone(),
                address: own.own.clone(),
                id: MemberId(0),
                members: Vec::new(),
            }),
            options: own,
            known_peers: Mutex::default(),
            meeting: Condvar::new(),
            running: OnceLock::new(),
            quorum_log: OnceLock::new(),
            cutting: Mutex::new(()),
            offers: OnceLock::new(),
            own_status: OnceLock::new(),
            peer_statuses: Mutex::default(),
            standing: Mutex::default(),
            led_term: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            machine: OnceLock::new(),
            log: OnceLock::new(),
        });
        let order = Arc::clone(&replica) as Arc<dyn Order>;
        let prepare = |machine: &Machine| match Identity::read(machine)? {
            Some(own) => Incoming::install(machine, &own),
            None if begins => beginning::empty(machine, options),
            None => Ok(()),
        };
        let (frond, machine) = frond_vcs::open_in_set(directory, options, order, &prepare)?;
        replica.identify(&frond, &machine)?;
        replica.read_members(&frond)?;
        *lock(&replica.purges) = Purges::read(&frond, &machine)?;
        let own = replica.identity();
        if !own.members.is_empty() && FileLog::owner(&machine)? != Some((own.id, own.set_id())) {
            // Its data may be old, or missing.
            lock(&replica.standing).role = Role::Recovering;
        }
        let _ = replica.machine.set(machine);
        Ok((frond, replica))
    }

    /// Reads the directory's identity, or draws one if it is new.
    fn identify(&self, frond: &Frond, machine: &Machine) -> Result<(), Error> {
        let own = &self.options;
        let found = Identity::read(machine)?;
        let identity = match found {
            Some(found) => found,
            None if frond.operation_time().0 != 0 => {
                return Err(Error::bad_value(
                    "it holds data that no other member has: a replica set begins with empty \
                     data directories; import what another server has exported",
                ));
            }
            None => {
                let drawn = Identity::draw(machine, &own.set, &own.own);
                drawn.write(machine)?;
                drawn
            }
        };
        if (&identity.set, &identity.address) != (&own.set, &own.own) {
            return Err(Error::bad_value(format!(
                "it is member {} of the replica set {}, and can't be another",
                identity.address, identity.set
            )));
        }
        self.name_set(frond, &identity);
        *lock(&self.identity) = identity;
        Ok(())
    }

    /// Sets the id of the directory's set, once it is known.
    pub(crate) fn name_set(&self, frond: &Frond, identity: &Identity) {
        if !identity.members.is_empty() {
            frond.name_set(identity.set_id().0);
        }
    }

    /// Whether it takes writes.
    pub fn is_primary(&self) -> bool {
        lock(&self.standing).role == Role::Primary
    }

    /// Returns its role, and the leader.
    pub fn standing(&self) -> MemberView {
        lock(&self.standing).clone()
    }

    /// Returns its state, as its clients see it.
    pub fn state(&self) -> State {
        match self.standing().role {
            Role::Primary => State::Primary,
            Role::Recovering => State::Recovering,
            _ if lock(&self.identity).members.is_empty() => State::Startup,
            _ if !self.is_member() => State::Removed,
            // One that begins, or is about to begin anew, shows what it has applied: drivers that
            // knew of no member that can be read would give up instead of waiting.
            _ => State::Secondary,
        }
    }

    /// What another member has said of itself, and how long ago; `None` if it isn't reached.
    pub fn last_status_of(&self, address: &str) -> Option<(Duration, MemberStatus)> {
        lock(&self.peer_statuses).of(address)
    }

    /// The newest moment that another member has reported to be at.
    pub fn newest_moment(&self) -> Timestamp {
        lock(&self.peer_statuses).newest_moment()
    }

    /// Returns the status of the log that the members share, once that has begun.
    pub fn status(&self) -> Option<Status> {
        self.running().map(Running::status)
    }

    /// Returns where a member is reached.
    pub fn address_of(&self, id: MemberId) -> Option<String> {
        let known_peers = lock(&self.known_peers)
            .values()
            .find(|known_peers| known_peers.id == id)
            .map(|known_peers| known_peers.address.clone());
        known_peers.or_else(|| {
            let identity = lock(&self.identity);
            let (address, own) = (identity.address.clone(), identity.id);
            let members = identity.members.iter().map(|(address, id)| (address, *id));
            let mut members = members.chain([(&address, own)]);
            members.find(|(_, member)| *member == id).map(|(address, _)| address.clone())
        })
    }

    /// Returns a copy of this member's data, for one that lacks entries.
    fn offer(&self) -> Result<Offer, String> {
        self.offers.get().ok_or("it hasn't started yet")?()
    }

    /// Returns this member's identity, and those of the others.
    pub fn identity(&self) -> Identity {
        lock(&self.identity).clone()
    }

    pub(crate) fn running(&self) -> Option<&Running> {
        self.running.get()
    }

    /// Returns the messages that wait to be sent to an address, if that is called.
    fn outgoing(&self, address: &str) -> Option<Arc<Outgoing>> {
        lock(&self.outgoing).get(address).cloned()
    }

    /// The other members that are to be called, and aren't yet: from now on they are. Those with
    /// which the set begins, those that it has, and those that have called.
    pub(crate) fn to_call(&self) -> Vec<String> {
        let members = self.members();
        let known_peers: Vec<String> = lock(&self.known_peers).keys().cloned().collect();
        let known = self.options.members.iter().chain(members.addresses()).chain(&known_peers);
        let mut called = lock(&self.outgoing);
        let mut new = Vec::new();
        for address in known {
            if *address != self.options.own && !called.contains_key(address) {
                called.insert(address.clone(), Arc::default());
                new.push(address.clone());
            }
        }
        new
    }

    /// The other members that are called.
    pub(crate) fn called(&self) -> Vec<String> {
        lock(&self.outgoing).keys().cloned().collect()
    }

    /// Has the others learn soon that this member's state is another one.
    pub(crate) fn report_state(&self) {
        let called: Vec<Arc<Outgoing>> = lock(&self.outgoing).values().cloned().collect();
        called.iter().for_each(|outgoing| outgoing.note_news());
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Takes what another says of itself.
    fn meet(&self, other: &Identity) -> io::Result<()> {
        let own = self.identity();
        let refused = if other.set != own.set {
            format!("it is of the replica set {}", other.set)
        } else if own.members.is_empty() && !self.options.members.contains(&other.address) {
            format!("{} isn't among the members with which this set begins", other.address)
        } else if !own.members.is_empty()
            && !other.members.is_empty()
            && own.members != other.members
        {
            "it is of another set of that name".to_owned()
        } else {
            lock(&self.known_peers).insert(other.address.clone(), other.clone());
            self.meeting.notify_all();
            return Ok(());
        };
        Err(io::Error::new(io::ErrorKind::PermissionDenied, refused))
    }

    /// Says something in the log.
    pub(crate) fn log_line(&self, line: &str) {
        if let Some(log) = self.log.get() {
            log.write(&crate::log::notice(frond_db::Notice::Warning, line), |_| {});
        }
    }
}

impl fmt::Debug for Replica {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Replica({}, {:?})", self.options.own, self.standing())
    }
}

impl Order for Replica {
    fn agree(&self, entries: Vec<Bytes>, _report: &dyn Fn(StoreError)) -> Result<(), StoreError> {
        let failed = |why: String| StoreError::io("the set's log", std::io::Error::other(why));
        let running = self.running().ok_or_else(|| failed("the set hasn't begun".to_owned()))?;
        let mut under_way: VecDeque<(usize, Proposal)> = VecDeque::new();
        let mut bytes = 0;
        for entry in entries {
            bytes += entry.len();
            while PROPOSED_BYTES_MAX < bytes
                && let Some((of_one, proposal)) = under_way.pop_front()
            {
                proposal.wait().map_err(|error| failed(error.to_string()))?;
                bytes -= of_one;
            }
            under_way.push_back((entry.len(), running.propose(entry)));
        }
        for (_, proposal) in under_way {
            proposal.wait().map_err(|error| failed(error.to_string()))?;
        }
        Ok(())
    }

    fn pause(&self) {
        if let Some(running) = self.running() {
            running.announce();
        }
    }
}

pub(crate) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
