//! Lines about clients that come, log in and go, with mongod's numbers and words: what fail2ban and
//! readers of mongod's logs look for.
//!
//! 1. Each sort has an [`Allowance`]. Lines of one connection (accepted, its client's metadata,
//!    ended) are all there, or none.
//! 2. No line holds more of what a client says of itself than its name, cut off, and the metadata,
//!    which are short ([`Peer::note_client`]); none holds anything of a proof.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use frond_db::Error;
use frond_doc::{Document, DocumentBuilder, Value};

use super::allowance::Allowance;
use super::{Component, Event, Log, Severity, truncate};
use crate::access::UserName;
use crate::peer::Peer;
use crate::wire::Compressor;

/// Connections that are logged: a pool's at once, then two each second.
const CONNECTIONS: (u32, u32) = (2_000, 500);
/// Logins that went well.
const LOGINS: (u32, u32) = (2_000, 500);
/// Logins that failed, which any client can cause: with the longest names a line takes a kilobyte.
const FAILED_LOGINS: (u32, u32) = (200, 1_000);
/// TLS handshakes that failed.
const FAILED_HANDSHAKES: (u32, u32) = (200, 1_000);
/// Names that clients give are logged up to so many bytes.
const NAME_BYTES_MAX: usize = 256;

/// The lines about clients.
pub(crate) struct ClientLines {
    /// Whether connections are left out.
    is_quiet: AtomicBool,
    connections: Allowance,
    logins: Allowance,
    failed_logins: Allowance,
    failed_handshakes: Allowance,
}

/// A login that has ended.
pub struct LoginLine<'a> {
    /// The user, as far as the client named one.
    pub user: Option<&'a UserName>,
    /// The mechanism, as the client called it.
    pub mechanism: &'a str,
    /// Whether it began within a `hello`.
    pub is_speculative: bool,
    /// The time that it took.
    pub time: Duration,
    /// The reason why it failed, if it did. The client may have learnt less.
    pub failure: Option<&'a Error>,
}

impl Default for ClientLines {
    fn default() -> ClientLines {
        let new = |(lines, interval)| Allowance::new(lines, interval);
        ClientLines {
            is_quiet: AtomicBool::new(false),
            connections: new(CONNECTIONS),
            logins: new(LOGINS),
            failed_logins: new(FAILED_LOGINS),
            failed_handshakes: new(FAILED_HANDSHAKES),
        }
    }
}

impl Log {
    /// Whether clients that come and go are left out.
    pub fn is_quiet(&self) -> bool {
        self.clients.is_quiet.load(Ordering::Relaxed)
    }

    /// Sets whether clients that come and go are left out.
    pub fn set_quiet(&self, is_quiet: bool) {
        self.clients.is_quiet.store(is_quiet, Ordering::Relaxed);
    }

    /// Writes that a connection was accepted, as one of `open`.
    pub fn write_accepted(&self, peer: &Peer, open: usize) {
        if self.is_quiet() {
            return;
        }
        let Some(left_out) = self.clients.connections.take((self.now_millis)()) else { return };
        peer.set_logged();
        self.write(&network(22943, "listener", "Connection accepted"), |attributes| {
            append_connection(attributes, peer, open);
            append_left_out(attributes, left_out);
        });
    }

    /// Writes that a connection has ended, if the log said that it was accepted; `open` are left.
    pub fn write_ended(&self, peer: &Peer, open: usize) {
        if peer.is_logged() && !self.is_quiet() {
            let context = format!("conn{}", peer.id);
            self.write(&network(22944, &context, "Connection ended"), |attributes| {
                append_connection(attributes, peer, open);
            });
        }
    }

    /// Writes that a connection was closed as it came, since there were `open`.
    pub fn write_refused(&self, address: SocketAddr, open: usize) {
        if self.is_quiet() {
            return;
        }
        let Some(left_out) = self.clients.connections.take((self.now_millis)()) else { return };
        let message = "Connection refused because there are too many open connections";
        self.write(&network(22942, "listener", message), |attributes| {
            attributes
                .append("remote", Value::String(&address.to_string()))
                .append("connectionCount", Value::Int64(open as i64));
            append_left_out(attributes, left_out);
        });
    }

    /// Writes why a client's TLS handshake failed: the client itself gets a word at most.
    pub fn write_failed_handshake(&self, peer: &Peer, reason: &str) {
        let left_out = self.clients.failed_handshakes.take((self.now_millis)());
        let Some(left_out) = left_out else { return };
        let context = format!("conn{}", peer.id);
        let mut event = network(0, &context, "TLS handshake failed");
        event.severity = Severity::Warning;
        self.write(&event, |attributes| {
            attributes
                .append("error", Value::String(reason))
                .append("remote", Value::String(&peer.address.to_string()))
                .append("connectionId", Value::Int32(peer.id));
            append_left_out(attributes, left_out);
        });
    }

    /// Writes a client's description of itself, and the compressors that were agreed on.
    pub fn write_client(&self, peer: &Peer, client: Document<'_>, agreed: &[Compressor]) {
        if !peer.is_logged() {
            return;
        }
        let context = format!("conn{}", peer.id);
        self.write(&network(51800, &context, "client metadata"), |attributes| {
            attributes
                .append("remote", Value::String(&peer.address.to_string()))
                .append("client", Value::String(&context))
                .begin_array("negotiatedCompressors");
            for compressor in agreed {
                attributes.push(Value::String(compressor.name()));
            }
            attributes.end().append("doc", Value::Document(client));
        });
    }

    /// Writes that a client has logged in, or couldn't.
    pub fn write_login(&self, peer: &Peer, login: &LoginLine<'_>) {
        let (allowance, id, message) = match login.failure {
            None => (&self.clients.logins, 5_286_306, "Successfully authenticated"),
            Some(_) => (&self.clients.failed_logins, 5_286_307, "Failed to authenticate"),
        };
        let Some(left_out) = allowance.take((self.now_millis)()) else { return };
        let context = format!("conn{}", peer.id);
        let (severity, component) = (Severity::Info, Component::Access);
        let event = Event { severity, component, id, context: &context, message };
        self.write(&event, |attributes| {
            login.append_to(attributes, peer);
            append_left_out(attributes, left_out);
        });
    }
}

impl LoginLine<'_> {
    fn append_to(&self, attributes: &mut DocumentBuilder, peer: &Peer) {
        let (user, database) =
            self.user.map_or(("", ""), |user| (user.user.as_str(), user.database.as_str()));
        let micros = i64::try_from(self.time.as_micros()).unwrap_or(i64::MAX);
        attributes
            .append("client", Value::String(&peer.address.to_string()))
            .append("isSpeculative", Value::Boolean(self.is_speculative))
            .append("isClusterMember", Value::Boolean(false))
            .append("mechanism", Value::String(&name(self.mechanism)))
            .append("user", Value::String(&name(user)))
            .append("db", Value::String(&name(database)));
        if let Some(error) = self.failure {
            let text = format!("{}: {}", error.code.name(), name(&error.message));
            attributes.append("error", Value::String(&text));
        }
        let result = self.failure.map_or(0, |error| error.code.number());
        attributes
            .append("result", Value::Int32(result))
            .begin_document("metrics")
            .begin_document("conversation_duration")
            .append("micros", Value::Int64(micros))
            .end()
            .end()
            .begin_document("extraInfo")
            .end();
    }
}

fn network<'a>(id: i32, context: &'a str, message: &'a str) -> Event<'a> {
    let (severity, component) = (Severity::Info, Component::Network);
    Event { severity, component, id, context, message }
}

fn append_connection(attributes: &mut DocumentBuilder, peer: &Peer, open: usize) {
    attributes
        .append("remote", Value::String(&peer.address.to_string()))
        .append("connectionId", Value::Int32(peer.id))
        .append("connectionCount", Value::Int64(open as i64));
}

/// Says how many lines of this sort were left out before this one.
fn append_left_out(attributes: &mut DocumentBuilder, left_out: u64) {
    if left_out > 0 {
        let count = i64::try_from(left_out).unwrap_or(i64::MAX);
        attributes.append("leftOutBefore", Value::Int64(count));
    }
}

/// A name that a client gave.
fn name(given: &str) -> String {
    let mut name = given.to_owned();
    truncate(&mut name, NAME_BYTES_MAX);
    name
}

#[cfg(test)]
mod tests {
    use frond_query::Code;

    use super::*;

    fn peer(id: i32) -> Peer {
        Peer::new(id, SocketAddr::from(([192, 0, 2, 7], 4_711)))
    }

    fn count(log: &Log, part: &str) -> usize {
        log.lines().lines.iter().filter(|line| line.contains(part)).count()
    }

    #[test]
    fn a_flood_of_connections_and_logins_is_cut_off_and_counted() {
        let (log, lines) = (Log::new(|| 7), CONNECTIONS.0 as usize + 50);
        let mut last = peer(0);
        for id in 0..lines {
            last = peer(id as i32);
            log.write_accepted(&last, 1);
        }
        let written = log.lines().written;
        assert_eq!(written, i64::from(CONNECTIONS.0));
        log.write_ended(&last, 0);
        log.write_client(&last, frond_doc::document! { "a": 1_i32 }.view(), &[]);
        assert_eq!(log.lines().written, written, "what wasn't told when it came isn't later");
        let error = Error::invalid(Code::AuthenticationFailed, "Authentication failed.");
        let user = UserName { database: "admin".to_owned(), user: "u".repeat(4_000) };
        let login = |failure| LoginLine {
            user: Some(&user),
            mechanism: "SCRAM-SHA-256",
            is_speculative: true,
            time: Duration::from_micros(3),
            failure,
        };
        for _ in 0..FAILED_LOGINS.0 + 50 {
            log.write_login(&last, &login(Some(&error)));
        }
        assert_eq!(log.lines().written, written + i64::from(FAILED_LOGINS.0));
        assert!(log.lines().lines.iter().all(|line| line.len() < 1_024), "names are cut off");
        log.write_login(&last, &login(None));
        assert_eq!(count(&log, "Successfully authenticated"), 1, "others are told all the same");
    }

    #[test]
    fn a_quiet_log_has_logins_only() {
        let log = Log::new(|| 7);
        log.set_quiet(true);
        let peer = peer(3);
        log.write_accepted(&peer, 1);
        log.write_refused(peer.address, 1);
        log.write_ended(&peer, 0);
        assert_eq!(log.lines().written, 0);
    }
}
