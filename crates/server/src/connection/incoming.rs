//! Cutting messages from what comes in.
//!
//! 1. A read takes what has come in, mostly one small message, and never waits for more than that.
//! 2. The missing part of a large message is read straight into its own memory, in steps.
//! 3. The memory of a message beyond [`FREE_BYTES`] comes from the [`MessageMemory`].
//! 4. If others wait for that and the client stalls, the message goes to a file, with what comes of
//!    it from then on, until all is here. So does one that has waited for memory as long: however
//!    many stall, they delay it once.
//!
//! *Invariants*
//! 1. Memory for a message grows with the bytes that came in, never with the length that its header
//!    claims.
//! 2. Nothing is kept of messages that were handed out; each has memory of its own.

use std::io::{self, Read};
use std::time::Instant;

use bytes::Bytes;

use crate::limits::{FREE_BYTES, READ_STEP_BYTES, stall_time};
use crate::message_memory::{MessageMemory, MessageReservation};
use crate::stalled_bytes::{StalledBytes, StalledFiles};
use crate::wire::{HEADER_BYTES, Header};

/// A message has waited for memory as long as one may stall that others wait for.
const WAITED_LONG: io::ErrorKind = io::ErrorKind::QuotaExceeded;

/// The bytes that have come in of a connection and weren't handed out yet.
#[derive(Default)]
pub struct Incoming {
    bytes: Vec<u8>,
    /// The reservation of the message that these bytes begin.
    hold: Option<MessageReservation>,
    /// The message in place of these, of so many bytes in all.
    stalled: Option<(StalledBytes, usize)>,
    /// Whether no file had room for it.
    spill_failed: bool,
}

/// What all clients share: memory, and files for those that stall.
pub struct ReceiveBuffers<'a> {
    /// The memory.
    pub memory: &'a MessageMemory,
    /// The files.
    pub files: &'a StalledFiles,
}

/// One message.
pub struct Received {
    /// Its header, checked.
    pub header: Header,
    /// All of it, its header included.
    pub message: Bytes,
    /// The memory that it holds, if it is large.
    pub hold: Option<MessageReservation>,
}

/// A stream that ends with an error once its client is too slow, though it may send a byte now and
/// then; and before that, if `can_spill`, as if there were no more.
struct Watched<'a, S> {
    stream: &'a mut S,
    intake: &'a MessageMemory,
    hold: &'a MessageReservation,
    received: usize,
    can_spill: bool,
    should_spill: bool,
}

impl<S: Read> Read for Watched<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let now = Instant::now();
        if self.can_spill && self.hold.should_spill(self.intake, self.received, now) {
            self.should_spill = true;
            return Ok(0);
        }
        if self.hold.is_too_slow(self.intake, self.received, now) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let count = self.stream.read(buffer)?;
        self.received += count;
        Ok(count)
    }
}

impl Incoming {
    /// Reads one message. `None` if the client closed the connection between two messages.
    ///
    /// # Errors
    /// `WouldBlock` where `stream` waits for more: what came is kept. Others if the stream is
    /// broken, the header is wrong, or `check` ends the wait for memory; `TimedOut` if the client
    /// is too slow.
    pub fn read(
        &mut self,
        stream: &mut impl Read,
        scratch: &mut [u8],
        buffers: &ReceiveBuffers<'_>,
        check: impl Fn() -> io::Result<()>,
    ) -> io::Result<Option<Received>> {
        loop {
            if self.should_spill(buffers.memory, Instant::now()) {
                self.spill(buffers.files);
            }
            if self.stalled.is_some() {
                self.receive_stalled(stream, scratch, buffers.memory, &check)?;
            }
            if let Some(header) = self.header()? {
                if self.bytes.len() >= header.bytes {
                    return Ok(Some(self.cut(header)));
                }
                if self.bytes.len() >= FREE_BYTES {
                    self.read_rest(stream, header.bytes, buffers, &check)?;
                    continue;
                }
            }
            match stream.read(scratch) {
                Ok(0) if self.bytes.is_empty() => return Ok(None),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.bytes.extend_from_slice(&scratch[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether bytes are here that have not been handed to the reader yet.
    pub fn has_more(&self) -> bool {
        !self.bytes.is_empty() || self.stalled.is_some()
    }

    /// Whether it is to be spilled: others wait for its memory, and its client stalls.
    pub fn should_spill(&self, intake: &MessageMemory, now: Instant) -> bool {
        let stalls = |hold: &MessageReservation| hold.should_spill(intake, self.bytes.len(), now);
        !self.spill_failed && self.hold.as_ref().is_some_and(stalls)
    }

    /// Whether it holds memory that others wait for, and its client is too slow.
    pub fn is_too_slow(&self, intake: &MessageMemory, now: Instant) -> bool {
        let received = self.bytes.len();
        self.hold.as_ref().is_some_and(|hold| hold.is_too_slow(intake, received, now))
    }

    /// Returns how much it holds of the intake.
    #[cfg(test)]
    pub fn held_bytes(&self) -> usize {
        self.hold.as_ref().map_or(0, MessageReservation::bytes)
    }

    fn header(&self) -> io::Result<Option<Header>> {
        let Some(bytes) = self.bytes.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        Header::decode(bytes).map(Some).map_err(io::Error::other)
    }

    /// Reads the next step of a message of `bytes`.
    fn read_rest(
        &mut self,
        stream: &mut impl Read,
        bytes: usize,
        buffers: &ReceiveBuffers<'_>,
        check: impl Fn() -> io::Result<()>,
    ) -> io::Result<()> {
        let intake = buffers.memory;
        let received = self.bytes.len();
        // Doubling keeps the copying linear; it is never more than twice what came in.
        let step = (bytes - received).min(received.max(READ_STEP_BYTES));
        let can_spill = !self.spill_failed;
        let begun = Instant::now();
        // One that waits for those that stall goes to a file as they do.
        let check = || match can_spill && stall_time(received) <= begun.elapsed() {
            true => Err(WAITED_LONG.into()),
            false => check(),
        };
        let hold = match &mut self.hold {
            Some(hold) => hold.grow(intake, received + step, check).map(|()| hold),
            none => intake.take(received + step, check).map(|taken| none.insert(taken)),
        };
        let hold = match hold {
            Err(error) if error.kind() == WAITED_LONG => {
                self.spill(buffers.files);
                return Ok(());
            }
            other => other?,
        };
        self.bytes.reserve(step);
        let mut watched =
            Watched { stream, intake, hold, received, can_spill, should_spill: false };
        // Bytes that came before an error stay.
        match watched.by_ref().take(step as u64).read_to_end(&mut self.bytes)? {
            0 if !watched.should_spill => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Writes what came in to a file, and gives the memory back, if a file has room.
    fn spill(&mut self, files: &StalledFiles) {
        let Ok(Some(header)) = self.header() else { return };
        match files.put(&[&self.bytes]) {
            Some(stalled) => {
                self.stalled = Some((stalled, header.bytes));
                (self.bytes, self.hold) = (Vec::new(), None);
            }
            None => self.spill_failed = true,
        }
    }

    /// Receives the rest of the message that is in a file, and takes it back into memory when it is
    /// whole, or the file can't grow.
    fn receive_stalled(
        &mut self,
        stream: &mut impl Read,
        scratch: &mut [u8],
        intake: &MessageMemory,
        check: impl Fn() -> io::Result<()>,
    ) -> io::Result<()> {
        let mut last: &[u8] = &[];
        while let Some((stalled, bytes)) = &mut self.stalled
            && stalled.bytes() < *bytes
        {
            let step = scratch.len().min(*bytes - stalled.bytes());
            let count = match stream.read(&mut scratch[..step]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if !stalled.append(&scratch[..count]) {
                (last, self.spill_failed) = (&scratch[..count], true);
                break;
            }
        }
        let Some((stalled, _)) = self.stalled.take() else { return Ok(()) };
        let needed = stalled.bytes() + last.len();
        let mut hold = intake.take(needed.min(READ_STEP_BYTES), &check)?;
        hold.grow(intake, needed, &check)?;
        self.bytes = stalled.read(0, stalled.bytes())?;
        self.bytes.extend_from_slice(last);
        self.hold = Some(hold);
        Ok(())
    }

    fn cut(&mut self, header: Header) -> Received {
        let rest = match self.bytes.len() == header.bytes {
            true => Vec::new(),
            false => self.bytes.split_off(header.bytes),
        };
        let message = Bytes::from(std::mem::replace(&mut self.bytes, rest));
        self.spill_failed = false;
        Received { header, message, hold: self.hold.take() }
    }
}

#[cfg(test)]
mod tests {
    use frond_db::FrondOptions;
    use frond_doc::document;
    use frond_testkit::SimDisk;

    use super::*;
    use crate::wire::{MESSAGE_BYTES_MAX, Message};

    fn files() -> StalledFiles {
        let frond = frond_vcs::open_on(&SimDisk::new(1).machine(), FrondOptions::default());
        StalledFiles::new(frond.expect("an empty disk opens"))
    }

    /// Hands out at most so many bytes at a time, and is not ready each time in between.
    struct Dripping<'a> {
        bytes: &'a [u8],
        step: usize,
        is_ready: bool,
    }

    impl Read for Dripping<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.is_ready = !self.is_ready;
            if !self.is_ready {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let step = self.step.min(buffer.len());
            self.bytes.read(&mut buffer[..step])
        }
    }

    fn read(incoming: &mut Incoming, stream: &mut impl Read) -> io::Result<Option<Received>> {
        let memory = MessageMemory::new(MESSAGE_BYTES_MAX);
        read_in(&ReceiveBuffers { memory: &memory, files: &files() }, incoming, stream)
    }

    fn read_in(
        buffers: &ReceiveBuffers<'_>,
        incoming: &mut Incoming,
        stream: &mut impl Read,
    ) -> io::Result<Option<Received>> {
        let mut scratch = [0; 4_096];
        loop {
            match incoming.read(stream, &mut scratch, buffers, || Ok(())) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }

    #[test]
    fn messages_that_came_together_are_cut_apart() {
        let one = Message::new(document! { "ping": 1_i32 }).encode(1, 0);
        let two = Message::new(document! { "text": &"x".repeat(300_000) }).encode(2, 0);
        let all = [&one[..], &two, &one, &one[..20]].concat();
        for step in [7, 1_000, 100_000] {
            let mut stream = Dripping { bytes: &all, step, is_ready: false };
            let mut incoming = Incoming::default();
            for expected in [&one, &two, &one] {
                let received = read(&mut incoming, &mut stream).expect("whole").expect("not ended");
                assert_eq!(received.message, expected[..]);
                assert_eq!(received.hold.is_some(), expected.len() > 2 * FREE_BYTES);
            }
            let error = read(&mut incoming, &mut stream).err().expect("cut off");
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
        assert!(read(&mut Incoming::default(), &mut &b""[..]).expect("ended").is_none());
    }

    #[test]
    fn memory_grows_with_what_came_in_not_with_what_was_claimed() {
        let mut claim = vec![0; HEADER_BYTES];
        claim[..4].copy_from_slice(&(MESSAGE_BYTES_MAX as i32).to_le_bytes());
        claim[12..].copy_from_slice(&2013_i32.to_le_bytes());
        for sent in [0, 1_000, 100_000, 1_000_000] {
            let stream = [claim.clone(), vec![0; sent]].concat();
            let mut incoming = Incoming::default();
            assert!(read(&mut incoming, &mut &stream[..]).is_err());
            assert_eq!(incoming.bytes.len(), stream.len());
            let most = 2 * stream.len() + 2 * READ_STEP_BYTES;
            assert!(incoming.bytes.capacity() <= most, "{}", incoming.bytes.capacity());
            assert_eq!(incoming.held_bytes() > 0, stream.len() > FREE_BYTES);
            assert!(incoming.held_bytes() <= most, "{}", incoming.held_bytes());
        }
    }

    /// Which files have room: for what came in, and for what comes later.
    #[test]
    fn a_spilled_message_is_the_same_when_it_is_whole() {
        let message = Message::new(document! { "text": &"x".repeat(900_000) }).encode(2, 0);
        let memory = MessageMemory::new(4 << 20);
        let files = files();
        let buffers = ReceiveBuffers { memory: &memory, files: &files };
        for (has_room, can_grow) in [(true, true), (true, false), (false, false)] {
            let mut incoming = Incoming::default();
            let mut stream = Dripping { bytes: &message[..300_000], step: 10_000, is_ready: true };
            let read = |incoming: &mut Incoming, stream: &mut Dripping<'_>| {
                incoming.read(stream, &mut [0; 4_096], &buffers, || Ok(()))
            };
            while !stream.bytes.is_empty() {
                assert!(read(&mut incoming, &mut stream).is_err(), "it isn't whole");
            }
            let all = (!has_room).then(|| files.take_room());
            incoming.spill(&files);
            assert_eq!(memory.held() == 0, has_room);
            assert!(incoming.has_more());
            let rest_of_room = (has_room && !can_grow).then(|| files.take_room());
            let rest = [&message[300_000..], &message].concat();
            let mut stream = Dripping { bytes: &rest, step: 7_000, is_ready: false };
            for _ in 0..2 {
                let received = read_in(&buffers, &mut incoming, &mut stream).expect("whole");
                assert_eq!(received.expect("not ended").message, message);
            }
            drop((all, rest_of_room));
            assert_eq!((memory.held(), files.bytes(), incoming.spill_failed), (0, 0, false));
        }
    }

    #[test]
    fn only_a_stalled_message_that_is_waited_for_is_spilled() {
        let message = Message::new(document! { "text": &"x".repeat(900_000) }).encode(2, 0);
        let (memory, files) = (MessageMemory::new(1 << 20), files());
        let buffers = ReceiveBuffers { memory: &memory, files: &files };
        let mut incoming = Incoming::default();
        let mut stream = Dripping { bytes: &message[..300_000], step: 300_000, is_ready: false };
        while !stream.bytes.is_empty() {
            let read = incoming.read(&mut stream, &mut [0; 4_096], &buffers, || Ok(()));
            assert!(read.is_err(), "it isn't whole");
        }
        let late = Instant::now() + stall_time(900_000);
        assert!(!incoming.should_spill(&memory, late), "nothing waits");
        std::thread::scope(|scope| {
            let other = scope.spawn(|| memory.take(1 << 20, || Ok::<(), ()>(())).is_ok());
            while !memory.is_waited_for() {
                std::thread::yield_now();
            }
            assert!(!incoming.should_spill(&memory, Instant::now()), "not at once");
            assert!(incoming.should_spill(&memory, late));
            incoming.spill(&files);
            assert!(other.join().expect("it doesn't panic"));
        });
        assert!(!incoming.should_spill(&memory, late), "it holds nothing");
    }

    #[test]
    fn nothing_is_kept_of_a_message_that_was_handed_out() {
        let big = Message::new(document! { "text": &"x".repeat(3 << 20) }).encode(2, 0);
        let mut incoming = Incoming::default();
        let received = read(&mut incoming, &mut &big[..]).expect("whole").expect("not ended");
        assert_eq!(received.message.len(), big.len());
        assert_eq!((incoming.bytes.capacity(), incoming.held_bytes()), (0, 0));
    }
}
