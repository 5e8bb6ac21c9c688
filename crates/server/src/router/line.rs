//! A line (a shard, in MongoDB's words): a server or a replica set, and which member leads it.
//!
//! Its members are asked for `hello` each second, and at once when something went wrong
//! ([`Line::doubt`]). A member that says it is the primary leads; of two that do, the one of the
//! later election. Requests wait for a leader ([`Line::leader`]); those that run at one while
//! another is found are given up ([`Line::deposed`]): it may be frozen, and never answer.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use frond_doc::{Document, DocumentBuf, Value, document};
use rustls::ClientConfig;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::upstream::Upstream;

const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The interval while there is no leader.
const LOOK_INTERVAL_SOON: Duration = Duration::from_millis(100);
/// A member that takes longer for a `hello` doesn't lead.
const HELLO_MAX: Duration = Duration::from_secs(3);
const PORT: &str = "27017";

/// A server or replica set behind the router.
pub(super) struct Line {
    /// The name by which the table calls it.
    pub name: String,
    /// As it stands in the table.
    pub uri: String,
    /// The TLS configuration for its members, if TLS is spoken.
    pub tls: Option<Arc<ClientConfig>>,
    /// Whether members that others name are taken.
    is_set: bool,
    members: Mutex<BTreeSet<String>>,
    leader: watch::Sender<Option<String>>,
    /// The latest election that a member has reported.
    latest: Mutex<Vec<u8>>,
    doubt: Notify,
}

/// A member's answer to `hello`.
struct MemberAnswer {
    address: String,
    connection: Upstream,
    answer: DocumentBuf,
}

impl Line {
    /// The line of a URI, `mongodb://HOST:PORT,.../?replicaSet=NAME&tls=true`; `tls` is how members
    /// are spoken to if it wants that.
    ///
    /// # Errors
    /// Says what of the URI isn't known. It doesn't show the URI.
    pub fn parse(name: &str, uri: &str, tls: &Arc<ClientConfig>) -> Result<Line, String> {
        let rest = uri.strip_prefix("mongodb://").ok_or("a line's URI begins with mongodb://")?;
        let (hosts, options) = rest.split_once('?').unwrap_or((rest, ""));
        let hosts = hosts.split_once('/').map_or(hosts, |(hosts, _)| hosts);
        if hosts.contains('@') {
            return Err("a line's URI names no user: clients log in by themselves".to_owned());
        }
        let mut members = BTreeSet::new();
        for host in hosts.split(',') {
            let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
            match after.contains(':') {
                _ if host.is_empty() => return Err("a line's URI has an empty host".to_owned()),
                true => members.insert(host.to_owned()),
                false => members.insert(format!("{host}:{PORT}")),
            };
        }
        let (mut is_set, mut speaks_tls) = (members.len() > 1, false);
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("replicaSet", _)) => is_set = true,
                Some(("tls" | "ssl", "true")) => speaks_tls = true,
                Some(("tls" | "ssl", "false")) => {}
                _ => return Err(format!("a line's URI has replicaSet and tls, no {option}")),
            }
        }
        Ok(Line {
            name: name.to_owned(),
            uri: uri.to_owned(),
            tls: speaks_tls.then(|| Arc::clone(tls)),
            is_set,
            members: Mutex::new(members),
            leader: watch::Sender::new(None),
            latest: Mutex::default(),
            doubt: Notify::new(),
        })
    }

    /// The leader, once there is one; `None` if there is none until `end`.
    pub async fn leader(&self, end: Instant) -> Option<String> {
        let mut watched = self.leader.subscribe();
        let found = timeout_at(end, watched.wait_for(Option::is_some)).await;
        found.ok()?.ok()?.clone()
    }

    /// Returns the leader, as far as it is known.
    pub fn leader_now(&self) -> Option<String> {
        self.leader.borrow().clone()
    }

    /// Ends once another than `address` leads.
    pub fn deposed(&self, address: &str) -> impl Future<Output = ()> + use<> {
        let (mut watched, address) = (self.leader.subscribe(), address.to_owned());
        async move {
            let is_other =
                |leader: &Option<String>| leader.as_ref().is_some_and(|leader| *leader != address);
            if watched.wait_for(is_other).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Has the members asked at once: `address` was called and didn't answer as a leader does.
    pub fn doubt(&self, address: &str) {
        self.leader.send_if_modified(|leader| {
            let doubted = leader.as_deref() == Some(address);
            if doubted {
                *leader = None;
            }
            doubted
        });
        self.doubt.notify_one();
    }

    /// Looks after the line until the task is ended.
    pub async fn watch(self: Arc<Line>) {
        let mut connections = BTreeMap::new();
        loop {
            let found = self.look(&mut connections).await;
            self.announce(found);
            let is_led = self.leader.borrow().is_some();
            let rest = if is_led { LOOK_INTERVAL } else { LOOK_INTERVAL_SOON };
            tokio::select! {
                () = sleep(rest) => {}
                // Not faster than that: requests by the hundred may doubt it.
                () = self.doubt.notified() => sleep(LOOK_INTERVAL_SOON / 10).await,
            }
        }
    }

    fn announce(&self, found: Option<String>) {
        self.leader.send_if_modified(|leader| {
            let is_new = *leader != found;
            if is_new {
                *leader = found;
            }
            is_new
        });
    }

    /// Whether an election is later than all that were reported.
    fn is_news(&self, election: &[u8]) -> bool {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = latest.as_slice() < election;
        if is_news {
            *latest = election.to_vec();
        }
        is_news
    }

    /// Asks all members, and returns the leader. A new leader is known before those have answered
    /// that take long: they may be frozen.
    async fn look(&self, connections: &mut BTreeMap<String, Upstream>) -> Option<String> {
        let mut requests = JoinSet::new();
        let members = self.members.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for address in members {
            let (kept, tls) = (connections.remove(&address), self.tls.clone());
            requests.spawn(async move {
                timeout(HELLO_MAX, ask(address, kept, tls.as_ref())).await.ok()?.ok()
            });
        }
        let mut best: Option<(Vec<u8>, String)> = None;
        while let Some(reply) = requests.join_next().await {
            let Ok(Some(MemberAnswer { address, connection, answer })) = reply else { continue };
            connections.insert(address.clone(), connection);
            if self.is_set {
                self.note_members(answer.view());
            }
            let leads = answer.get("isWritablePrimary").is_some_and(|leads| leads.is_truthy());
            let election = match answer.get("electionId") {
                Some(Value::ObjectId(id)) => id.0.to_vec(),
                _ => Vec::new(),
            };
            if leads && best.as_ref().is_none_or(|(latest, _)| *latest < election) {
                if self.is_news(&election) {
                    self.announce(Some(address.clone()));
                }
                best = Some((election, address));
            }
        }
        best.map(|(_, address)| address)
    }

    fn note_members(&self, answer: Document<'_>) {
        let hosts = answer.get("hosts").and_then(|hosts| hosts.as_array());
        let hosts: Vec<&str> =
            hosts.iter().flat_map(|hosts| hosts.iter()).filter_map(|host| host.as_str()).collect();
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        for host in hosts {
            members.insert(host.to_owned());
        }
    }
}

async fn ask(
    address: String,
    kept: Option<Upstream>,
    tls: Option<&Arc<ClientConfig>>,
) -> io::Result<MemberAnswer> {
    let hello = document! { "hello": 1_i32 };
    if let Some(mut connection) = kept
        && let Ok(answer) = connection.command("admin", hello.view()).await
    {
        return Ok(MemberAnswer { address, connection, answer });
    }
    let mut connection = Upstream::connect(&address, tls).await?;
    let answer = connection.command("admin", hello.view()).await?;
    Ok(MemberAnswer { address, connection, answer })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::ClientTls;

    #[test]
    fn uris() {
        let tls = ClientTls::default().config().expect("a configuration");
        let line = |uri: &str| Line::parse("eu", uri, &tls);
        let members = |uri: &str| {
            let line = line(uri).unwrap_or_else(|why| panic!("{uri}: {why}"));
            let members = line.members.lock().expect("unpoisoned").clone();
            let members = members.into_iter().collect::<Vec<_>>().join(" ");
            (members, line.is_set, line.tls.is_some())
        };
        assert_eq!(members("mongodb://a:1"), ("a:1".to_owned(), false, false));
        assert_eq!(members("mongodb://a,b:2/"), ("a:27017 b:2".to_owned(), true, false));
        let set = "mongodb://[::1]/?replicaSet=rs0&tls=true";
        assert_eq!(members(set), ("[::1]:27017".to_owned(), true, true));
        for wrong in ["a:1", "mongodb://", "mongodb://u:p@a:1", "mongodb://a:1/?ssl=maybe"] {
            let why = line(wrong).err().unwrap_or_else(|| panic!("{wrong} was taken"));
            assert!(!why.contains("u:p"), "{why}");
        }
    }
}
