//! Talking with a client that is busy: read a message, answer it, write the answer, all on one
//! thread.
//!
//! A thread leaves its client with a [`Pause`]: when that has its answer and has said nothing more,
//! falls silent inside a message for [`QUIET`](crate::limits::QUIET), or the second time for less,
//! or takes no more of its answer. Where the system can't have silent clients watched
//! ([`crate::workers`]), a thread waits as long for the next message, too.
//!
//! *Invariants*
//! 1. One message of a connection is worked on at a time, so answers keep the order of requests.
//! 2. A conversation that pauses holds no thread and no memory but what came in or is still to be
//!    written.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use frond_db::{Error, HandedCommit};
use tokio::sync::watch;

use crate::connection::compressed::{self, InflateError};
use crate::connection::incoming::{Incoming, ReceiveBuffers, Received};
use crate::connection::socket::Socket;
use crate::connection::stream::{Session, Stream};
use crate::cursors::Parked;
use crate::dispatch::{self, HeldAnswer, Outcome, Repeat, Wait};
use crate::limits::{QUIET, QUIET_AGAIN, QUIET_CROWDED, STALL_STEP, progress_time, stall_time};
use crate::operations::Operation;
use crate::outgoing::Outgoing;
use crate::peer::Peer;
use crate::shared::Shared;
use crate::wire::{Compressor, Message, OperationCode};
use crate::workers::{Thread, Workers};

/// One connection, as far as its messages are concerned.
pub struct Conversation {
    shared: Arc<Shared>,
    peer: Arc<Peer>,
    stop: watch::Receiver<bool>,
    /// `None` without TLS.
    session: Option<Box<Session>>,
    incoming: Incoming,
    outgoing: Option<Outgoing>,
    /// The next answer, sent before anything is read.
    next: Option<Next>,
    closes: bool,
    /// The time when it first paused inside the answer that is under way.
    delayed_since: Option<Instant>,
}

/// A message that is answered later or again, how the client compresses, and what has waited.
type Next = (Repeat, Option<Compressor>, Option<Parked>);

/// An answer that is held until its commit is durable, and how it is sent.
pub struct HeldReply {
    answer: Box<HeldAnswer>,
    compressor: Option<Compressor>,
    has_checksum: bool,
}

/// The reason why a conversation doesn't go on.
pub enum Pause {
    /// The client says nothing.
    Silent,
    /// The client doesn't take its answer.
    Full,
    /// A command waits for something to be written.
    Parked(Arc<Operation>, Instant),
    /// A `hello` waits for news; `request_id` names it.
    Hello { wait: Wait, request_id: i32 },
    /// The answer is ready, and goes out only after this.
    Late(Duration),
    /// The answer is made once it is known what became of its commit.
    Held(HandedCommit, HeldReply),
    /// It is over.
    Closed,
}

impl Conversation {
    /// A conversation that begins.
    pub fn new(
        shared: Arc<Shared>,
        peer: Arc<Peer>,
        stop: watch::Receiver<bool>,
        session: Option<Box<Session>>,
    ) -> Conversation {
        Conversation {
            shared,
            peer,
            stop,
            session,
            incoming: Incoming::default(),
            outgoing: None,
            next: None,
            closes: false,
            delayed_since: None,
        }
    }

    /// Talks over `socket`, which blocks for as long as a client may be silent, until there is a
    /// pause. A command that runs when the server stops is still answered.
    pub fn talk(&mut self, socket: &Socket, thread: &mut Thread<'_>) -> Pause {
        loop {
            let pause = match self.step(socket, thread) {
                Ok(None) => continue,
                Ok(Some(pause)) => pause,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match self.is_answering() {
                        // Others count on a thread that has only a short answer to send.
                        true if !thread.is_ending() && socket.wait_for_room(STALL_STEP) => continue,
                        true => Pause::Full,
                        false => Pause::Silent,
                    }
                }
                // Whatever is wrong with the stream or a header, the client can't get an answer.
                Err(_) => Pause::Closed,
            };
            if self.is_answering() && self.delayed_since.is_none() {
                self.delayed_since = Some(Instant::now());
            }
            if let Some(session) = &mut self.session {
                session.rest();
            }
            return pause;
        }
    }

    /// Writes what is to be written. Returns a pause if the client has had its turn: it has said no
    /// more, or there is no end to its answers and another client waits for the thread.
    fn write_outgoing(&mut self, socket: &Socket) -> io::Result<Option<Pause>> {
        let should_spill = self.should_spill_answer(Instant::now());
        let Some(outgoing) = &mut self.outgoing else { return Ok(None) };
        if should_spill {
            outgoing.spill(&self.shared.stalled_files);
        }
        outgoing.write(&mut Stream::new(socket, self.session.as_deref_mut()))?;
        (self.outgoing, self.delayed_since) = (None, None);
        let workers = &self.shared.workers;
        if self.closes {
            return Ok(None);
        }
        if self.next.is_some() {
            return Ok(workers.is_waited_for().then_some(Pause::Full));
        }
        let ends = !self.has_more() && (workers.can_watch() || workers.is_waited_for());
        Ok(ends.then_some(Pause::Silent))
    }

    /// Writes what is to be written, then answers one message.
    fn step(&mut self, socket: &Socket, thread: &mut Thread<'_>) -> io::Result<Option<Pause>> {
        if let Some(outgoing) = &self.outgoing
            && self.next.is_none()
            && !self.has_more()
        {
            thread.answers(outgoing.bytes());
        }
        if let Some(pause) = self.write_outgoing(socket)? {
            return Ok(Some(pause));
        }
        thread.works();
        let mut stream = Stream::new(socket, self.session.as_deref_mut());
        if self.closes {
            // Otherwise the system may throw away the answer with what the client has yet to say.
            stream.finish();
            return Ok(Some(Pause::Closed));
        }
        let stop = &self.stop;
        let check = || match *stop.borrow() {
            true => Err(io::ErrorKind::ConnectionAborted.into()),
            false => Ok(()),
        };
        check()?;
        if let Some((Repeat { header, message }, compressor, parked)) = self.next.take() {
            let received = Received { header, message, hold: None };
            return Ok(self.answer(received, compressor, parked));
        }
        let buffers =
            ReceiveBuffers { memory: &self.shared.messages, files: &self.shared.stalled_files };
        let scratch = &mut *thread.scratch;
        let Some(received) = self.incoming.read(&mut stream, scratch, &buffers, check)? else {
            return Ok(Some(Pause::Closed));
        };
        let header = received.header;
        let (received, compressor) = match header.operation {
            OperationCode::Compressed => match compressed::inflate(&self.shared, received, check) {
                Ok(inflated) => {
                    let (bytes, usage) = (inflated.received.header.bytes, &self.shared.usage);
                    usage.count_request(bytes, header.bytes);
                    let compression = usage.compression();
                    compression.count_message(inflated.compressor, header.bytes, bytes);
                    (inflated.received, Some(inflated.compressor))
                }
                Err(InflateError::Ended(error)) => return Err(error),
                Err(InflateError::Refused(error)) => {
                    self.shared.usage.count_request(header.bytes, header.bytes);
                    let outcome = dispatch::refuse(&self.shared, header, &error);
                    let bytes = outcome.reply.as_ref().map_or(0, Outgoing::bytes);
                    self.shared.usage.count_answer(bytes, bytes);
                    (self.outgoing, self.closes) = (outcome.reply, outcome.close);
                    return Ok(None);
                }
            },
            _ => {
                self.shared.usage.count_request(header.bytes, header.bytes);
                (received, None)
            }
        };
        Ok(self.answer(received, compressor, None))
    }

    /// Answers a message, which came compressed so; what has waited goes on.
    fn answer(
        &mut self,
        received: Received,
        compressor: Option<Compressor>,
        resumed: Option<Parked>,
    ) -> Option<Pause> {
        let Received { header, message, hold } = received;
        // Nothing changes on the way with TLS.
        let has_checksum = self.session.is_none()
            && header.operation == OperationCode::Message
            && Message::has_checksum(&message);
        let mut outcome = dispatch::answer(&self.shared, &self.peer, (header, message), resumed);
        drop(hold);
        if let Some((commit, answer)) = outcome.held.take() {
            return Some(Pause::Held(commit, HeldReply { answer, compressor, has_checksum }));
        }
        if let Some((repeat, parked)) = outcome.parked.take() {
            let pause = Pause::Parked(Arc::clone(&parked.operation), parked.until);
            self.next = Some((repeat, compressor, Some(parked)));
            return Some(pause);
        }
        if let Some(wait) = outcome.wait.take() {
            return Some(Pause::Hello { wait, request_id: header.request_id });
        }
        self.take_outcome(outcome, compressor, has_checksum);
        let delay = self.peer.take_delay();
        (delay > Duration::ZERO).then_some(Pause::Late(delay))
    }

    /// Takes the answer that was held, once its commit has come to `done`.
    ///
    /// # Errors
    /// As [`HeldAnswer::answer`].
    pub fn take_held(
        &mut self,
        held: HeldReply,
        done: Result<(), Error>,
        may_wait: bool,
    ) -> Result<(), (HeldReply, Result<(), Error>)> {
        let HeldReply { answer, compressor, has_checksum } = held;
        match answer.answer((&self.shared, &self.peer), done, may_wait) {
            Ok(outcome) => {
                self.take_outcome(outcome, compressor, has_checksum);
                Ok(())
            }
            Err((answer, done)) => Err((HeldReply { answer, compressor, has_checksum }, done)),
        }
    }

    /// Sends the answer if the client takes it at once; returns whether there is nothing else to do
    /// before the client speaks. A thread may call it that must not wait.
    pub fn send_now(&mut self, mut socket: &Socket) -> bool {
        if self.session.is_some() || self.closes || self.next.is_some() {
            return false;
        }
        let written = self.outgoing.as_mut().map(|outgoing| outgoing.write(&mut socket));
        if !matches!(written, Some(Ok(()))) {
            // Whatever it is: a thread that talks with the client meets it, too.
            return false;
        }
        (self.outgoing, self.delayed_since) = (None, None);
        !self.has_more()
    }

    /// The threads that talk with clients.
    pub fn workers(&self) -> Workers {
        self.shared.workers.clone()
    }

    /// Takes what a message came to.
    fn take_outcome(
        &mut self,
        outcome: Outcome,
        compressor: Option<Compressor>,
        has_checksum: bool,
    ) {
        let mut reply = outcome.reply;
        if has_checksum {
            reply = reply.map(Outgoing::with_checksum);
        }
        let bytes = reply.as_ref().map_or(0, Outgoing::bytes);
        if let Some(compressor) = compressor {
            reply = reply.map(|reply| reply.compressed(compressor));
            let smaller = reply.as_ref().map(Outgoing::bytes).filter(|smaller| *smaller < bytes);
            if let Some(smaller) = smaller {
                self.shared.usage.compression().count_answer(compressor, bytes, smaller);
            }
        }
        if let Some(reply) = &reply {
            self.shared.usage.count_answer(bytes, reply.bytes());
        }
        self.outgoing = reply;
        self.closes = outcome.close;
        self.next = outcome.repeat.map(|repeat| (repeat, compressor, None));
    }

    /// Whether it is inside a message or an answer.
    pub fn is_inside(&self) -> bool {
        self.has_more() || self.is_answering()
    }

    /// Whether an answer isn't sent whole.
    pub fn is_answering(&self) -> bool {
        self.outgoing.is_some() || self.session.as_ref().is_some_and(|session| session.is_sending())
    }

    /// Whether the client has said something that wasn't answered yet.
    pub fn has_more(&self) -> bool {
        self.incoming.has_more() || self.session.as_ref().is_some_and(|session| session.has_more())
    }

    /// Whether clients that have a thread may wait for one that has none.
    pub fn must_go_on(&self) -> bool {
        self.shared.sessions.has_open()
    }

    /// Returns how long a thread whose turn begins waits for a client that is silent inside a
    /// message.
    pub fn quiet(&self) -> Duration {
        match self.shared.is_crowded() {
            // A turn has ended inside it before.
            _ if self.has_more() => QUIET_AGAIN,
            true => QUIET_CROWDED,
            false => QUIET,
        }
    }

    /// Whether it is by TLS.
    pub fn is_tls(&self) -> bool {
        self.session.is_some()
    }

    /// Returns the TLS session that encrypts it.
    pub fn session(&mut self) -> Option<&mut Session> {
        self.session.as_deref_mut()
    }

    /// Whether it keeps memory that another client waits for, and has taken longer than a client
    /// that reads and writes all the time.
    pub fn is_too_slow(&self, now: Instant) -> bool {
        self.incoming.is_too_slow(&self.shared.messages, now)
            || self.is_reader_late(now, progress_time)
    }

    /// Whether it keeps memory that another client waits for, and stalls: a thread that talks for
    /// it now has what it keeps go to a file.
    pub fn should_spill(&self, now: Instant) -> bool {
        self.incoming.should_spill(&self.shared.messages, now) || self.should_spill_answer(now)
    }

    fn should_spill_answer(&self, now: Instant) -> bool {
        self.outgoing.as_ref().is_some_and(Outgoing::can_spill)
            && self.is_reader_late(now, stall_time)
    }

    /// Whether an answer is under way for longer than `time` says of its bytes, and another client
    /// waits for the memory that it holds.
    fn is_reader_late(&self, now: Instant, time: fn(usize) -> Duration) -> bool {
        let bytes = self.outgoing.as_ref().map_or(0, Outgoing::share_bytes);
        let is_late = |since: Instant| now.saturating_duration_since(since) >= time(bytes);
        bytes > 0 && self.shared.answers.is_waited_for() && self.delayed_since.is_some_and(is_late)
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        match self.next.take() {
            Some((_, _, Some(parked))) => dispatch::abandon(&self.shared, parked),
            Some((repeat, _, None)) => dispatch::end_repeating(&self.shared, repeat),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::AtomicUsize;

    use frond_db::FrondOptions;
    use frond_doc::document;
    use frond_testkit::SimDisk;
    use rustix::net::sockopt;

    use super::*;
    use crate::common_fields::UserDigest;
    use crate::cursors::{CursorFacts, OpenCursor};
    use crate::limits::{MESSAGES_BYTES_MAX, SCRATCH_BYTES};
    use crate::shared::MemberOptions;
    use crate::stable_api::ApiParameters;

    /// A conversation, its side of the connection, and the client's.
    fn begin() -> (Conversation, Socket, TcpStream, watch::Sender<bool>) {
        let frond = frond_vcs::open_on(&SimDisk::new(1).machine(), FrondOptions::default());
        let frond = frond.expect("an empty disk opens");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("bound");
        let client = TcpStream::connect(address).expect("listens");
        let (stream, _) = listener.accept().expect("it connected");
        let socket = Socket::Tcp(stream);
        socket.block(Duration::from_millis(5)).expect("a socket");
        let member = MemberOptions::default();
        let shared = Shared::new(frond, address, 1, Vec::new(), String::new(), member);
        let (stop, stopped) = watch::channel(false);
        let peer = Arc::new(Peer::new(1, address));
        (Conversation::new(Arc::new(shared), peer, stopped, None), socket, client, stop)
    }

    fn talk(conversation: &mut Conversation, socket: &Socket) -> Pause {
        let (mut scratch, ending) = ([0; SCRATCH_BYTES], AtomicUsize::new(0));
        conversation.talk(socket, &mut Thread::new(&mut scratch, &ending))
    }

    fn ping(text: &str) -> Vec<u8> {
        let body = document! { "ping": 1_i32, "$db": "admin", "comment": text };
        Message::new(body).encode(1, 0)
    }

    #[test]
    fn a_conversation_goes_on_where_it_paused() {
        let (mut conversation, stream, mut client, stop) = begin();
        let ping = ping("");
        assert_eq!(conversation.quiet(), QUIET);
        for part in [&ping[..10], &ping[10..40]] {
            client.write_all(part).expect("sends");
            assert!(matches!(talk(&mut conversation, &stream), Pause::Silent));
            assert!(conversation.is_inside() && !conversation.is_answering());
            assert_eq!(conversation.quiet(), QUIET_AGAIN);
        }
        client.write_all(&[&ping[40..], &ping, &ping].concat()).expect("sends");
        assert!(matches!(talk(&mut conversation, &stream), Pause::Silent));
        assert!(!conversation.is_inside());
        assert_eq!(conversation.quiet(), QUIET);
        stop.send_replace(true);
        assert!(matches!(talk(&mut conversation, &stream), Pause::Closed));
        drop((conversation, stream));
        let mut answers = Vec::new();
        client.read_to_end(&mut answers).expect("closed, not reset");
        let bytes = i32::from_le_bytes(answers[..4].try_into().expect("four bytes")) as usize;
        assert_eq!(answers.len(), 3 * bytes);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_client_that_says_no_more_is_left_at_once() {
        let (mut conversation, stream, mut client, _stop) = begin();
        let long = Duration::from_secs(60);
        stream.block(long).expect("a socket");
        let begun = Instant::now();
        for _ in 0..3 {
            client.write_all(&ping("")).expect("sends");
            assert!(matches!(talk(&mut conversation, &stream), Pause::Silent));
            assert!(!conversation.is_inside());
        }
        assert!(begun.elapsed() < long, "the thread waited for the client");
    }

    #[test]
    fn no_thread_waits_until_a_short_answer_is_taken() {
        let (mut conversation, ..) = begin();
        let (ours, mut client) = UnixStream::pair().expect("a pair");
        let socket = Socket::Unix(ours);
        socket.block(Duration::from_millis(5)).expect("a socket");
        sockopt::set_socket_send_buffer_size(&socket, 4096).expect("a socket");
        let ping = ping("");
        while !conversation.is_answering() {
            client.write_all(&ping).expect("sends");
            talk(&mut conversation, &socket);
        }
        let turns = (0..20).map(|_| {
            let begun = Instant::now();
            assert!(matches!(talk(&mut conversation, &socket), Pause::Full));
            begun.elapsed()
        });
        assert!(turns.min().is_some_and(|shortest| shortest < STALL_STEP));
    }

    #[test]
    fn a_client_that_leaves_amid_several_answers_takes_its_cursor_along() {
        let (mut conversation, stream, mut client, _stop) = begin();
        let facts = CursorFacts {
            namespace: "shop.things".to_owned(),
            session: None,
            user: UserDigest::ANONYMOUS,
            granted: None,
            connection: 1,
            address: std::net::Ipv4Addr::LOCALHOST.into(),
            transaction: None,
            no_timeout: false,
            api: ApiParameters::default(),
            read_time: None,
            resume_token: None,
        };
        let text = "x".repeat(1 << 20);
        let documents = (0..100).map(move |_| Ok(document! { "text": text.as_str() }));
        let shared = Arc::clone(&conversation.shared);
        let cursor = OpenCursor::new(facts, Box::new(documents));
        let id = shared.cursors.open(cursor, Instant::now()).expect("the only one");
        let body = document! { "getMore": id, "collection": "things", "$db": "shop" };
        let mut more = Message::new(body);
        more.flags.exhaust_allowed = true;
        client.write_all(&more.encode(1, 0)).expect("sends");
        assert!(matches!(talk(&mut conversation, &stream), Pause::Full));
        assert_eq!(shared.cursors.counts().open, 1);
        drop(conversation);
        assert_eq!(shared.cursors.counts().open, 0);
    }

    #[test]
    fn a_client_that_keeps_others_waiting_has_to_make_progress() {
        let (mut conversation, stream, mut client, _stop) = begin();
        let ping = ping(&"x".repeat(1 << 20));
        client.write_all(&ping[..200_000]).expect("sends");
        assert!(matches!(talk(&mut conversation, &stream), Pause::Silent));
        let (late, shared) =
            (Instant::now() + progress_time(200_000), Arc::clone(&conversation.shared));
        // As much as came in, rounded up.
        assert!((200_000..600_000).contains(&shared.messages.held()));
        assert!(!conversation.is_too_slow(late), "no message waits");
        std::thread::scope(|scope| {
            let others = scope.spawn(|| {
                let all = shared.messages.take(MESSAGES_BYTES_MAX, || Ok::<(), ()>(()));
                drop(all.expect("nothing ends the wait"));
            });
            while !shared.messages.is_waited_for() {
                std::thread::yield_now();
            }
            assert!(conversation.is_too_slow(late));
            assert!(!conversation.is_too_slow(Instant::now()), "not at once");
            // Its message is answered, and so others get the memory.
            scope.spawn(|| client.write_all(&ping[200_000..]).expect("sends"));
            while conversation.is_inside() {
                assert!(matches!(talk(&mut conversation, &stream), Pause::Silent));
            }
            others.join().expect("it doesn't panic");
        });
        assert!(!conversation.is_too_slow(late));
    }
}
