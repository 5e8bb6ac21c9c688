//! Reads the log while it is written: whole records, in order, each once.
//!
//! 1. Nothing beyond the durable end is looked at, and up to it every record is whole: what isn't
//!    is damage, never the end.
//! 2. A segment must begin where the one before it ended, as its header says. The first one that a
//!    process made says nothing if it had no other to follow; the one before it must then have
//!    nothing behind its end that was synced.
//! 3. A file may be given to another segment at any time, once the floor lies above it
//!    ([`super::kept`]): what fails is looked at again under the floor.

use bytes::Bytes;
use frond_store::StoreError;
use frond_store::io::Disk;

use super::format::{Chain, LogOffset, SegmentNumber, damaged};
use super::segment::Segment;
use crate::ids::Sequence;

/// A place between two records.
pub(crate) struct Follower {
    /// What was read last, or will be next.
    segment: Segment,
}

/// What comes next.
pub(crate) enum Next {
    /// A record.
    Record(Sequence, Bytes),
    /// Nothing, up to the durable end.
    Nothing,
}

impl Follower {
    /// Begins at the last segment up to `end` whose first record isn't above `after`, or at
    /// `first`. `None`: none is there yet.
    ///
    /// # Errors
    /// What the disk says; that a segment is damaged.
    pub fn open(
        disk: &dyn Disk,
        first: SegmentNumber,
        end: SegmentNumber,
        after: Sequence,
    ) -> Result<Option<Follower>, StoreError> {
        let mut number = end;
        loop {
            match Follower::at(disk, number) {
                Ok(mut follower) => {
                    let begins = follower.segment.first_sequence()?;
                    if number <= first || begins.is_some_and(|begins| begins <= after) {
                        follower.segment.forget_window();
                        return Ok(Some(follower));
                    }
                }
                // It never took a record, or didn't yet.
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(error),
            }
            if number <= first {
                return Ok(None);
            }
            number = SegmentNumber(number.0 - 1);
        }
    }

    fn at(disk: &dyn Disk, number: SegmentNumber) -> Result<Follower, StoreError> {
        let mut segment = Segment::open(disk, number)?;
        segment.read_header()?;
        // What lies behind may be written since.
        segment.forget_window();
        Ok(Follower { segment })
    }

    /// The first segment that is there from `number` to `end`.
    fn first_from(
        disk: &dyn Disk,
        mut number: SegmentNumber,
        end: SegmentNumber,
    ) -> Result<Option<Follower>, StoreError> {
        while number <= end {
            match Follower::at(disk, number) {
                Err(error) if is_absent(&error) => number = number.next(),
                found => return found.map(Some),
            }
        }
        Ok(None)
    }

    /// The segment in which it is.
    pub fn segment(&self) -> SegmentNumber {
        self.segment.number
    }

    /// Reads the next record, if there is one up to the durable end.
    ///
    /// # Errors
    /// As [`Follower::open`].
    pub fn next(
        &mut self,
        disk: &dyn Disk,
        end: (SegmentNumber, LogOffset),
    ) -> Result<Next, StoreError> {
        loop {
            let is_last = self.segment.number == end.0;
            let limit = if is_last { end.1.0 } else { self.segment.file_bytes()? };
            self.segment.limit_to(limit);
            if let Some((header, chain, payload)) = self.segment.read_record()? {
                self.segment.pass(&header, chain);
                return Ok(Next::Record(header.sequence, payload));
            }
            if is_last {
                if self.segment.end < end.1.0 {
                    let broken = LogOffset(self.segment.end);
                    return Err(damaged(end.0, broken, "a record is broken that was durable"));
                }
                return Ok(Next::Nothing);
            }
            let Some(next) = Follower::first_from(disk, self.segment.number.next(), end.0)? else {
                return Ok(Next::Nothing); // The last is yet to come.
            };
            self.check_followed_by(&next.segment)?;
            *self = next;
        }
    }

    /// Fails unless the segment ended where the next one says.
    fn check_followed_by(&mut self, next: &Segment) -> Result<(), StoreError> {
        let previous = next.previous;
        if previous == (LogOffset::default(), Chain::default()) {
            return self.segment.check_torn();
        }
        if previous != (LogOffset(self.segment.end), self.segment.chain) {
            let broken = LogOffset(self.segment.end);
            return Err(damaged(self.segment.number, broken, "a record is broken"));
        }
        Ok(())
    }
}

fn is_absent(error: &StoreError) -> bool {
    matches!(error, StoreError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
}
