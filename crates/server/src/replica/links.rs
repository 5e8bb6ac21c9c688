//! The streams between members: each member calls each other one, and what it has to say goes that
//! way. All are secured by the cluster key ([`super::channel`]).
//!
//! 1. Both sides first exchange their identities. Until a directory knows the members of the set,
//!    that is all that they do, again and again.
//! 2. Then the caller sends frames ([`outgoing`]). A frame that can't be sent soon is dropped: it
//!    is sent again some time. One that comes between a call that failed and the next waits for
//!    that: it may be a request for a vote, at a member that has come back a moment ago.
//! 3. Once a second, and when that has changed, the caller says what it is ([`MemberStatus`]).
//! 4. A stream that its caller's system closes shows that the process has ended: if that was the
//!    leader, an election begins at once. This member's own stream to it has ended, too, and it
//!    calls again: a follower says little, and would find out by a request for a vote that is lost.
//! 5. What isn't received for [`UNRECEIVED_MAX`] ends a stream, and so does a call: after a
//!    network was cut and is whole again, the system would wait about as long as it was cut until
//!    it sends again.
//!
//! A stream on which an image is asked for goes on as [`image`] has it.

mod outgoing;

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use frond_quorum::{FRAME_BYTES_MAX, MemberId};

use super::beginning::{self, ALREADY_INITIALIZED, BegunSet, Step};
use super::channel::{Receiver, Side, connect, secure};
use super::identity::Identity;
use super::image;
use super::status::{MemberStatus, State};
use super::{Replica, lock};
pub use outgoing::Outgoing;

/// The wait after a stream broke, or couldn't be made.
const CALL_AGAIN: Duration = Duration::from_millis(200);
/// A member that takes nothing for so long is called again.
const SEND_WAIT_MAX: Duration = Duration::from_secs(5);
/// What a member's system doesn't acknowledge for so long ends the stream (on Linux).
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux can be told"))]
const UNRECEIVED_MAX: Duration = Duration::from_millis(1_500);
/// How often it is said what a member is, and for how long nothing may come.
const STATUS_EVERY: Duration = Duration::from_secs(1);
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// The bytes of a box besides a frame, generously.
const BOX_EXTRA_BYTES: usize = 64;

/// Calls the member at `address` until this one stops.
pub fn call_until_stopped(replica: &Arc<Replica>, address: &str) {
    let mut reported = None;
    while !replica.is_stopped() {
        let Err(error) = call(replica, address) else { continue };
        // Once: a member that isn't there is not there for long.
        let line = error.to_string();
        if let Some(outgoing) = replica.outgoing(address) {
            outgoing.clear();
        }
        if reported.as_ref() != Some(&line) {
            replica.log_line(&format!("member {address}: {line}"));
            reported = Some(line);
        }
        std::thread::sleep(CALL_AGAIN);
    }
}

fn call(replica: &Replica, address: &str) -> io::Result<()> {
    if let Some(outgoing) = replica.outgoing(address) {
        outgoing.note_call();
    }
    let stream = connect(address)?;
    stream.set_nodelay(true)?;
    #[cfg(target_os = "linux")]
    rustix::net::sockopt::set_tcp_user_timeout(&stream, UNRECEIVED_MAX.as_millis() as u32)?;
    stream.set_write_timeout(Some(SEND_WAIT_MAX))?;
    stream.set_read_timeout(Some(SEND_WAIT_MAX))?;
    let (mut sender, mut receiver) = secure(stream, &replica.options.key, Side::Caller)?;
    let own = replica.identity();
    sender.send(own.to_text().as_bytes())?;
    let other = parse(&receiver.receive()?)?;
    if other.address != address {
        let what = format!("it says that it is {}", other.address);
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    replica.meet(&other)?;
    if own.members.is_empty() || other.members.is_empty() {
        std::thread::sleep(CALL_AGAIN);
        return Ok(());
    }
    let Some(outgoing) = replica.outgoing(address) else { return Ok(()) };
    outgoing.open(sender);
    let ended = send_until_stopped(replica, address, &outgoing);
    outgoing.close();
    ended
}

/// Sends what can't be sent at once, and what this member is.
fn send_until_stopped(replica: &Replica, address: &str, outgoing: &Outgoing) -> io::Result<()> {
    let mut sent: Option<(Instant, State)> = None;
    while !replica.is_stopped() {
        outgoing.send_next(STATUS_EVERY, |sender, frame| {
            let state = replica.state();
            let is_known = sent.is_some_and(|(at, of)| of == state && at.elapsed() < STATUS_EVERY);
            if !is_known
                && let Some(own_status) = replica.own_status.get()
                && let Some(peer_status) = own_status()
            {
                let members = replica.members();
                let (configuration, has_receiver) = (members.version, members.has(address));
                let status = MemberStatus { configuration, has_receiver, ..peer_status };
                sender.send(&status.encode())?;
                sent = Some((Instant::now(), peer_status.state));
            }
            match frame {
                Some(frame) => sender.send(&frame),
                None => sender.send_rest(),
            }
        })?;
    }
    Ok(())
}

/// Takes what the member that has called on `stream` says.
///
/// # Errors
/// An error of the socket; that it is no member.
pub fn answer(replica: &Replica, stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(SEND_WAIT_MAX))?;
    stream.set_read_timeout(Some(SEND_WAIT_MAX))?;
    let watched = stream.try_clone()?;
    let (mut sender, mut receiver) = secure(stream, &replica.options.key, Side::Called)?;
    let first = receiver.receive()?;
    if first == image::HEAD {
        watched.set_read_timeout(Some(image::WAIT_MAX))?;
        watched.set_write_timeout(Some(image::WAIT_MAX))?;
        return image::serve(replica.offer(), &mut sender, &mut receiver);
    }
    let own = replica.identity();
    if let Some((step, set)) = beginning::read_step(&String::from_utf8_lossy(&first)) {
        return beginning::send_decision(&mut sender, &decide(replica, &own, step, &set));
    }
    let other = parse(&first)?;
    sender.send(own.to_text().as_bytes())?;
    replica.meet(&other)?;
    if own.members.is_empty() || other.members.is_empty() {
        return Ok(());
    }
    watched.set_read_timeout(Some(SILENCE_MAX))?;
    receiver.box_bytes_max = FRAME_BYTES_MAX + BOX_EXTRA_BYTES;
    let stream = lock(&replica.peer_statuses).begin();
    let ended = listen(replica, &mut receiver, &other, stream);
    let was_newest = lock(&replica.peer_statuses).end(stream);
    if was_newest && ended.as_ref().is_err_and(is_closed) {
        if let Some(outgoing) = replica.outgoing(&other.address) {
            outgoing.note_end();
        }
        if let Some(running) = replica.running() {
            running.lost(other.id);
        }
    }
    ended
}

/// Answers a server that makes a set: a member that hasn't met the others yet is as good as one
/// that waits, for its own set alone.
fn decide(replica: &Replica, own: &Identity, step: Step, set: &BegunSet) -> Result<(), String> {
    let members = replica.options.members.clone();
    let begun = BegunSet { set: own.set.clone(), own: own.address.clone(), members };
    match own.members.is_empty() && step != Step::Forget && begun.is_same(set) {
        true => Ok(()),
        false => Err(ALREADY_INITIALIZED.to_owned()),
    }
}

/// Whether the other side's system closed the connection, as it does when a process ends. One that
/// is frozen or cut off keeps it open.
fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset)
}

fn listen(
    replica: &Replica,
    receiver: &mut Receiver,
    other: &Identity,
    stream: u64,
) -> io::Result<()> {
    while !replica.is_stopped() {
        let frame = receiver.receive()?;
        if let Some(peer_status) = MemberStatus::decode(&frame) {
            lock(&replica.peer_statuses).note(stream, &other.address, peer_status);
        } else if let Some(running) = replica.running() {
            running.receive(other.id, frame.into());
        }
    }
    Ok(())
}

fn parse(text: &[u8]) -> io::Result<Identity> {
    let text = String::from_utf8_lossy(text);
    Identity::parse(&text).map_err(|what| io::Error::new(io::ErrorKind::InvalidData, what))
}

impl frond_quorum::Peers for Replica {
    fn send(&self, to: MemberId, frame: Bytes) {
        if let Some(outgoing) = self.address_of(to).and_then(|address| self.outgoing(&address)) {
            outgoing.push(frame);
        }
    }
}
