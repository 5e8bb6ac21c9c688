//! The way to one member: its stream, and the frames that wait for it.
//!
//! 1. A thread that has a frame takes the stream, if no other has it and nothing waits, and sends
//!    as much as there is room for. Usually that is all of it: no other thread is woken.
//! 2. Otherwise the frame waits. The member's own thread (`frond-member`) sends what waits, and
//!    what there was no room for; it waits for room. Long frames are left to it, too.
//!
//! *Invariants*
//! 1. At most one thread has the stream, so boxes leave in the order of their numbers.
//! 2. Where something waits, or is left, and no thread has the stream, the member's own was called.

use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::replica::channel::Sender;

/// The bytes that may wait to be sent to one member.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// A longer frame takes a while to be made a box of: its sender has other things to do.
const SOON_BYTES_MAX: usize = 64 << 10;

/// See the module.
///
/// *Thread safety*: all methods may be called at once, but for `open`, `send_next` and `close`:
/// these are for the member's own thread. No lock is held while something is sent.
#[derive(Default)]
pub struct Outgoing {
    waiting: Mutex<Waiting>,
    /// Something waits or is left, or the stream is back.
    came: Condvar,
}

#[derive(Default)]
struct Waiting {
    frames: VecDeque<Bytes>,
    bytes: usize,
    /// Absent while a thread sends, and while the member isn't called.
    sender: Option<Sender>,
    /// Whether the member's own thread waits for the stream, which another has.
    is_wanted: bool,
    /// Whether this member has something new to say of itself.
    has_news: bool,
    /// Why the stream is of no use any more.
    failed: Option<io::Error>,
    /// Whether the process there has ended since this one called it.
    has_ended: bool,
}

impl Waiting {
    /// Whether the member's own thread has something to do.
    fn is_due(&self) -> bool {
        let is_left = self.sender.as_ref().is_some_and(Sender::has_rest);
        let ends = self.has_ended || self.failed.is_some();
        is_left || ends || self.has_news || !self.frames.is_empty()
    }
}

impl Outgoing {
    /// Sends a frame, has it sent soon, or drops it.
    pub fn push(&self, frame: Bytes) {
        let mut waiting = self.waiting();
        if frame.len() <= SOON_BYTES_MAX
            && !waiting.is_due()
            && let Some(mut sender) = waiting.sender.take()
        {
            drop(waiting);
            let sent = sender.send_now(&frame);
            let mut waiting = self.waiting();
            waiting.failed = sent.err();
            waiting.sender = Some(sender);
            self.call(waiting);
        } else if waiting.bytes + frame.len() <= WAITING_BYTES_MAX {
            waiting.bytes += frame.len();
            waiting.frames.push_back(frame);
            self.call(waiting);
        }
    }

    /// Calls the member's own thread, if it has something to do and can.
    fn call(&self, waiting: MutexGuard<'_, Waiting>) {
        let is_called = waiting.sender.is_some() && (waiting.is_due() || waiting.is_wanted);
        drop(waiting);
        if is_called {
            self.came.notify_one();
        }
    }

    /// Frames are sent by `sender` from now on. What this member is is news.
    pub fn open(&self, sender: Sender) {
        let mut waiting = self.waiting();
        (waiting.sender, waiting.failed, waiting.has_news) = (Some(sender), None, true);
    }

    /// Ends the stream, once no other thread has it.
    pub fn close(&self) {
        drop(self.take_sender(self.waiting()).1);
    }

    /// Has `send` called once something is to be done, or nothing was for so long, with the stream
    /// and the frame that waits, if one does.
    ///
    /// # Errors
    /// What `send` says; the process there has ended; why the stream is of no use.
    pub fn send_next(
        &self,
        longest: Duration,
        send: impl FnOnce(&mut Sender, Option<Bytes>) -> io::Result<()>,
    ) -> io::Result<()> {
        let (mut waiting, mut sender) = self.take_sender(self.await_work(longest));
        waiting.has_news = false;
        let failed = match waiting.has_ended {
            true => Some(io::ErrorKind::ConnectionReset.into()),
            false => waiting.failed.take(),
        };
        let sent = match failed {
            Some(error) => Err(error),
            None => {
                let frame = waiting.frames.pop_front();
                waiting.bytes -= frame.as_ref().map_or(0, Bytes::len);
                drop(waiting);
                let sent = send(&mut sender, frame);
                waiting = self.waiting();
                sent
            }
        };
        waiting.sender = Some(sender);
        sent
    }

    /// Waits until something is to be done, for so long at most.
    fn await_work(&self, longest: Duration) -> MutexGuard<'_, Waiting> {
        let is_idle = |it: &mut Waiting| it.sender.is_none() || !it.is_due();
        let waited = self.came.wait_timeout_while(self.waiting(), longest, is_idle);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Takes the stream. Another thread has it for moments only.
    fn take_sender<'a>(
        &'a self,
        mut waiting: MutexGuard<'a, Waiting>,
    ) -> (MutexGuard<'a, Waiting>, Sender) {
        waiting.is_wanted = true;
        let mut waiting = self
            .came
            .wait_while(waiting, |it| it.sender.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        waiting.is_wanted = false;
        let sender = waiting.sender.take().expect("it was waited for");
        (waiting, sender)
    }

    /// Has the member learn soon what this one is.
    pub fn note_news(&self) {
        let mut waiting = self.waiting();
        waiting.has_news = true;
        self.call(waiting);
    }

    /// Notes that the process there has ended: it is to be called again.
    pub fn note_end(&self) {
        let mut waiting = self.waiting();
        waiting.has_ended = true;
        self.call(waiting);
    }

    /// Forgets that: it is being called.
    pub fn note_call(&self) {
        self.waiting().has_ended = false;
    }

    /// Drops all that waits. There is no stream.
    pub fn clear(&self) {
        let mut waiting = self.waiting();
        waiting.frames.clear();
        waiting.bytes = 0;
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::thread;
    use std::time::Instant;

    use super::*;
    use crate::replica::channel::{Receiver, Side, secure};
    use crate::replica::key::ClusterKey;

    const LONG: Duration = Duration::from_secs(60);

    /// A stream's sending side, and the other member's receiving one.
    fn stream() -> (Sender, Receiver) {
        let key = || ClusterKey::parse(&"k".repeat(40)).expect("long enough");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it has one");
        let calls = thread::spawn(move || {
            let stream = TcpStream::connect(address).expect("it listens");
            secure(stream, &key(), Side::Caller).expect("the magic is right").0
        });
        let called = listener.accept().expect("it comes").0;
        let (_, mut receiver) = secure(called, &key(), Side::Called).expect("the magic is right");
        receiver.box_bytes_max = 2 * SOON_BYTES_MAX;
        (calls.join().expect("it doesn't panic"), receiver)
    }

    fn frame(number: u64, bytes: usize) -> Bytes {
        let mut frame = number.to_le_bytes().to_vec();
        frame.resize(bytes.max(frame.len()), 7);
        frame.into()
    }

    /// Sends what waits, as the member's own thread does, until that says that it ends.
    fn send_all(outgoing: &Outgoing) {
        let send = |sender: &mut Sender, frame: Option<Bytes>| match frame {
            Some(frame) => sender.send(&frame),
            None => sender.send_rest(),
        };
        while outgoing.send_next(LONG, send).is_ok() {}
    }

    /// Without that, frames go into a stream that ended, and nothing shows it for two seconds.
    #[test]
    fn a_stream_to_a_process_that_has_ended_ends() {
        let outgoing = Outgoing::default();
        let (sender, mut receiver) = stream();
        outgoing.open(sender);
        outgoing.send_next(LONG, |_, _| Ok(())).expect("what this member is");
        outgoing.push(Bytes::from_static(b"first"));
        assert_eq!(receiver.receive().expect("a box"), b"first");
        thread::scope(|scope| {
            let begun = Instant::now();
            let sends = scope.spawn(|| outgoing.send_next(LONG, |_, _| Ok(())));
            outgoing.note_end();
            let sent = sends.join().expect("it doesn't panic");
            assert!(sent.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset));
            assert!(begun.elapsed() < LONG, "it waited for a frame");
        });
        outgoing.close();
        // It counts until the next call, whatever is cleared meanwhile.
        outgoing.push(Bytes::from_static(b"lost"));
        outgoing.clear();
        outgoing.open(stream().0);
        assert!(outgoing.send_next(LONG, |_, _| Ok(())).is_err());
        outgoing.close();
        outgoing.note_call();
        outgoing.push(Bytes::from_static(b"second"));
        outgoing.open(stream().0);
        let second = outgoing.send_next(LONG, |_, frame| {
            assert_eq!(frame.as_deref(), Some(&b"second"[..]));
            Ok(())
        });
        second.expect("another stream");
    }

    /// Frames of many threads, of which the other side takes none for a while: long ones among
    /// short ones, so that both ways are gone.
    #[test]
    fn frames_of_each_thread_arrive_in_their_order() {
        const FRAMES: u64 = 3_000;
        const THREADS: u64 = 3;
        let outgoing = Outgoing::default();
        let (sender, mut receiver) = stream();
        outgoing.open(sender);
        thread::scope(|scope| {
            let own = scope.spawn(|| send_all(&outgoing));
            let pushes: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let outgoing = &outgoing;
                    scope.spawn(move || {
                        for number in 0..FRAMES / THREADS {
                            let bytes = [40, 900, SOON_BYTES_MAX + 1][(number % 29 / 14) as usize];
                            outgoing.push(frame(number * THREADS + thread, bytes));
                        }
                    })
                })
                .collect();
            let mut next = [0; THREADS as usize];
            for _ in 0..FRAMES {
                let content = receiver.receive().expect("it opens");
                let number = u64::from_le_bytes(*content.first_chunk().expect("a number"));
                let thread = (number % THREADS) as usize;
                assert_eq!(number / THREADS, next[thread], "of thread {thread}");
                next[thread] += 1;
            }
            pushes.into_iter().for_each(|push| push.join().expect("it doesn't panic"));
            outgoing.note_end();
            own.join().expect("it doesn't panic");
        });
        outgoing.close();
    }

    #[test]
    fn a_stream_that_breaks_while_another_thread_sends_is_reported_to_its_own() {
        let outgoing = Outgoing::default();
        let (sender, receiver) = stream();
        outgoing.open(sender);
        drop(receiver);
        let begun = Instant::now();
        while outgoing.send_next(Duration::ZERO, |_, _| Ok(())).is_ok() {
            assert!(begun.elapsed() < LONG, "nothing shows that it is broken");
            outgoing.push(frame(1, 40));
        }
        outgoing.close();
    }

    #[test]
    fn news_call_the_thread_that_says_them() {
        let outgoing = Outgoing::default();
        outgoing.open(stream().0);
        let send = |_: &mut Sender, frame: Option<Bytes>| -> io::Result<()> {
            assert_eq!(frame, None);
            Ok(())
        };
        outgoing.send_next(LONG, send).expect("a stream");
        thread::scope(|scope| {
            let begun = Instant::now();
            let sends = scope.spawn(|| outgoing.send_next(LONG, send));
            outgoing.note_news();
            sends.join().expect("it doesn't panic").expect("a stream");
            assert!(begun.elapsed() < LONG);
        });
        outgoing.close();
    }
}
