//! Cutting messages from what comes in.
//!
//! 1. A read takes what has come in, mostly one small message, and never waits for more than that.
//! 2. The missing part of a large message is read straight into its own memory, in steps.
//! 3. The memory of a message beyond [`FREE_BYTES`] comes from the [`MessageMemory`].
//!
//! *Invariants*
//! 1. Memory for a message grows with the bytes that came in, never with the length that its header
//!    claims.
//! 2. Nothing is kept of messages that were handed out; each has memory of its own.

use std::io::{self, Read};
use std::time::Instant;

use bytes::Bytes;

use crate::limits::{FREE_BYTES, READ_STEP_BYTES};
use crate::message_memory::{MessageMemory, MessageReservation};
use crate::wire::{HEADER_BYTES, Header};

/// The bytes that have come in of a connection and weren't handed out yet.
#[derive(Default)]
pub struct Incoming {
    bytes: Vec<u8>,
    /// The reservation of the message that these bytes begin.
    hold: Option<MessageReservation>,
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
/// then.
struct Watched<'a, S> {
    stream: &'a mut S,
    intake: &'a MessageMemory,
    hold: &'a MessageReservation,
    received: usize,
}

impl<S: Read> Read for Watched<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.hold.is_too_slow(self.intake, self.received, Instant::now()) {
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
        intake: &MessageMemory,
        check: impl Fn() -> io::Result<()>,
    ) -> io::Result<Option<Received>> {
        loop {
            if let Some(header) = self.header()? {
                if self.bytes.len() >= header.bytes {
                    return Ok(Some(self.cut(header)));
                }
                if self.bytes.len() >= FREE_BYTES {
                    self.read_rest(stream, header.bytes, intake, &check)?;
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
        !self.bytes.is_empty()
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
        intake: &MessageMemory,
        check: impl Fn() -> io::Result<()>,
    ) -> io::Result<()> {
        let received = self.bytes.len();
        // Doubling keeps the copying linear; it is never more than twice what came in.
        let step = (bytes - received).min(received.max(READ_STEP_BYTES));
        let hold = match &mut self.hold {
            Some(hold) => {
                hold.grow(intake, received + step, check)?;
                hold
            }
            none => none.insert(intake.take(received + step, check)?),
        };
        self.bytes.reserve(step);
        let watched = Watched { stream, intake, hold, received };
        // Bytes that came before an error stay.
        match watched.take(step as u64).read_to_end(&mut self.bytes)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    fn cut(&mut self, header: Header) -> Received {
        let rest = match self.bytes.len() == header.bytes {
            true => Vec::new(),
            false => self.bytes.split_off(header.bytes),
        };
        let message = Bytes::from(std::mem::replace(&mut self.bytes, rest));
        Received { header, message, hold: self.hold.take() }
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::document;

    use super::*;
    use crate::wire::{MESSAGE_BYTES_MAX, Message};

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
        let intake = MessageMemory::new(MESSAGE_BYTES_MAX);
        let mut scratch = [0; 4_096];
        loop {
            match incoming.read(stream, &mut scratch, &intake, || Ok(())) {
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

    #[test]
    fn nothing_is_kept_of_a_message_that_was_handed_out() {
        let big = Message::new(document! { "text": &"x".repeat(3 << 20) }).encode(2, 0);
        let mut incoming = Incoming::default();
        let received = read(&mut incoming, &mut &big[..]).expect("whole").expect("not ended");
        assert_eq!(received.message.len(), big.len());
        assert_eq!((incoming.bytes.capacity(), incoming.held_bytes()), (0, 0));
    }
}
