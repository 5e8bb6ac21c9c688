//! An answer on its way to the client: in memory, or in a file since its client stalls.

use std::io::{self, IoSlice, Write};

use bytes::Bytes;
use frond_db::memory_queue::MemoryShare;

use crate::limits::FREE_BYTES;
use crate::stalled_bytes::{StalledBytes, StalledFiles};
use crate::wire::compression::{self, Compressor};
use crate::wire::message;

/// Bodies up to this are copied behind their head: cheaper than passing two pieces to the system.
const COPIED_BYTES_MAX: usize = 16 << 10;

/// An answer, and how far it was written.
pub struct Outgoing {
    head: Vec<u8>,
    body: Bytes,
    written: usize,
    share: Option<MemoryShare>,
    /// What comes behind that, and how much of it was read again.
    stalled: Option<(StalledBytes, usize)>,
    /// Whether no file had room for it.
    spill_failed: bool,
}

impl Outgoing {
    /// An answer of two pieces, nothing of which was written.
    pub fn new(mut head: Vec<u8>, body: Bytes, share: Option<MemoryShare>) -> Outgoing {
        let body = match body.len() <= COPIED_BYTES_MAX {
            true => {
                head.extend_from_slice(&body);
                Bytes::new()
            }
            false => body,
        };
        Outgoing { head, body, written: 0, share, stalled: None, spill_failed: false }
    }

    /// The same answer with a checksum.
    pub fn with_checksum(mut self) -> Outgoing {
        let checksum = message::announce_checksum(&mut self.head, &self.body);
        if self.body.is_empty() {
            self.head.extend_from_slice(&checksum);
        } else {
            let mut body = Vec::from(std::mem::take(&mut self.body));
            body.extend_from_slice(&checksum);
            self.body = Bytes::from(body);
        }
        self
    }

    /// All of it, in one piece.
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.head.extend_from_slice(&self.body);
        self.head
    }

    /// The same answer, compressed if it is smaller then and there is memory for it: a client takes
    /// either.
    pub fn compressed(mut self, compressor: Compressor) -> Outgoing {
        // The answer in one piece, and what becomes of it: a sixth more at worst.
        let bytes = self.bytes() * 2 + self.bytes() / 6;
        let fits = match &mut self.share {
            Some(share) => bytes <= share.bytes() || share.try_grow(bytes),
            None => self.bytes() <= FREE_BYTES,
        };
        if !fits {
            return self;
        }
        self.head.extend_from_slice(&self.body);
        self.body = Bytes::new();
        if let Some(compressed) = compression::deflate(&self.head, compressor) {
            self.head = compressed;
        }
        if let Some(share) = &mut self.share {
            share.shrink(self.head.len());
        }
        self
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// `WouldBlock` where `stream` takes no more: the next call goes on there. Others if it is
    /// broken.
    pub fn write(&mut self, stream: &mut impl Write) -> io::Result<()> {
        loop {
            self.write_memory(stream)?;
            let Some((stalled, read)) = &mut self.stalled else { break };
            if *read == stalled.bytes() {
                break;
            }
            (self.head, self.written) = (stalled.read(*read, FREE_BYTES)?, 0);
            *read += self.head.len();
        }
        stream.flush()
    }

    fn write_memory(&mut self, stream: &mut impl Write) -> io::Result<()> {
        while self.written < self.bytes() {
            let written = match self.written.checked_sub(self.head.len()) {
                Some(begun) => stream.write(&self.body[begun..]),
                None if self.body.is_empty() => stream.write(&self.head[self.written..]),
                None => {
                    let pieces = [&self.head[self.written..], &self.body];
                    stream.write_vectored(&pieces.map(IoSlice::new))
                }
            };
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes what wasn't sent to a file, and gives the memory back, if a file has room.
    pub fn spill(&mut self, files: &StalledFiles) {
        let head = self.head.get(self.written..).unwrap_or_default();
        let body = &self.body[self.written.saturating_sub(self.head.len())..];
        match files.put(&[head, body]) {
            Some(stalled) => {
                (self.head, self.body, self.written) = (Vec::new(), Bytes::new(), 0);
                (self.stalled, self.share) = (Some((stalled, 0)), None);
            }
            None => self.spill_failed = true,
        }
    }

    /// Whether it holds memory that it could give back.
    pub fn can_spill(&self) -> bool {
        self.share.is_some() && !self.spill_failed
    }

    /// Returns how many bytes it has.
    pub fn bytes(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// Returns how much it holds of a budget.
    pub fn share_bytes(&self) -> usize {
        self.share.as_ref().map_or(0, MemoryShare::bytes)
    }
}

#[cfg(test)]
mod tests {
    use frond_db::FrondOptions;
    use frond_db::memory_queue::MemoryQueue;
    use frond_testkit::SimDisk;

    use super::*;

    /// Takes at most so many bytes at a time, and is not ready each time in between.
    struct Slow {
        taken: Vec<u8>,
        step: usize,
        is_ready: bool,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.is_ready = !self.is_ready;
            if !self.is_ready {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let count = bytes.len().min(self.step);
            self.taken.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_spilled_answer_arrives_from_where_it_was() {
        let frond = frond_vcs::open_on(&SimDisk::new(1).machine(), FrondOptions::default());
        let files = StalledFiles::new(frond.expect("an empty disk opens"));
        let body: Vec<u8> = (0..1_000_000).map(|byte| (byte / 3) as u8).collect();
        let (head, budget) = (vec![7; 30_000], MemoryQueue::new(2 << 20));
        let expected = [&head[..], &body].concat();
        for writes_before in [0, 1, 7, 60] {
            let share = budget.try_take(1 << 20);
            let mut outgoing = Outgoing::new(head.clone(), body.clone().into(), share);
            let mut slow = Slow { taken: Vec::new(), step: 10_007, is_ready: false };
            for write in 0.. {
                if write == writes_before {
                    assert!(outgoing.can_spill());
                    outgoing.spill(&files);
                    assert_eq!((budget.held(), outgoing.can_spill()), (0, false));
                }
                if outgoing.write(&mut slow).is_ok() {
                    break;
                }
            }
            assert!(slow.taken == expected, "{writes_before}");
        }
        assert_eq!(files.bytes(), 0);
        let _all = files.take_room();
        let mut outgoing = Outgoing::new(head, body.into(), budget.try_take(1 << 20));
        outgoing.spill(&files);
        assert_eq!((outgoing.share_bytes(), outgoing.can_spill()), (1 << 20, false));
    }

    #[test]
    fn all_arrives_in_its_order_whatever_a_write_takes() {
        for body_bytes in [0, 100, COPIED_BYTES_MAX, COPIED_BYTES_MAX + 1, 100_000] {
            for step in [7, 1_000, 1 << 20] {
                let body: Vec<u8> = (0..body_bytes).map(|byte| byte as u8).collect();
                let expected = [b"the head", &body[..]].concat();
                let mut outgoing = Outgoing::new(b"the head".to_vec(), body.into(), None);
                assert_eq!(outgoing.bytes(), expected.len());
                let mut slow = Slow { taken: Vec::new(), step, is_ready: false };
                while let Err(error) = outgoing.write(&mut slow) {
                    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                }
                assert_eq!(slow.taken, expected);
            }
        }
    }
}
