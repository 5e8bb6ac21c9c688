//! Reads the log while it is being written: whole records, in order, each once.
//!
//! 1. Nothing beyond the durable end is looked at, and up to it every record is whole: what isn't
//!    is damage, never the end.
//! 2. A segment must begin where the one before it ended, as its header says. The first one that a
//!    process made says nothing if it had no other to follow; the one before it must then have
//!    nothing behind its end that was synced.
//! 3. A file may be given to another segment at any time, once the floor lies above it
//!    ([`super::retained`]): what fails is looked at again under the floor.

use bytes::Bytes;
use frond_store::StoreError;
use frond_store::io::Disk;

use super::format::{Chain, LogOffset, SegmentNumber, damaged};
use super::segment::Segment;
use crate::ids::Sequence;

/// A place between two records.
pub(crate) struct Follower {
    /// The segment that was read last, or will be next.
    segment: Segment,
}

/// The next thing in the log.
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
    /// An error of the disk; that a segment is damaged.
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
        // Records behind the window may be written since.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use frond_store::io::Machine;
    use frond_testkit::SimDisk;

    use super::*;
    use crate::log::format::RECORD_HEADER_BYTES;
    use crate::log::recycled::RecycledSegments;
    use crate::log::retained::RetainedSegments;
    use crate::log::writer::{PendingRecord, SegmentEnd, Writer};
    use crate::options::ChangeRetention;

    const FIRST: SegmentNumber = SegmentNumber(1);

    fn writer(machine: &Machine) -> Writer {
        let recycled = Arc::new(RecycledSegments::new(&machine.disk));
        let (retention, segments) = (ChangeRetention::default(), (FIRST, FIRST, FIRST));
        let kept = RetainedSegments::open(&machine.disk, retention, segments, Sequence::ZERO, 0);
        Writer::new(machine, &recycled, FIRST, SegmentEnd::default(), &Arc::new(kept))
    }

    /// Writes a record; returns where the log ends then.
    fn write(writer: &mut Writer, sequence: u64, segment: u64) -> (SegmentNumber, LogOffset) {
        let payload = Bytes::from(vec![sequence as u8; 100]);
        let (sequence, segment) = (Sequence(sequence), SegmentNumber(segment));
        let record = PendingRecord { sequence, segment, ..PendingRecord::new(payload) };
        assert!(writer.write(&[record]).is_ok());
        writer.end()
    }

    /// The Sequence that is read next; `None` if nothing is.
    fn next(
        follower: &mut Follower,
        disk: &SimDisk,
        end: (SegmentNumber, LogOffset),
    ) -> Result<Option<u64>, StoreError> {
        Ok(match follower.next(disk, end)? {
            Next::Record(sequence, _) => Some(sequence.0),
            Next::Nothing => None,
        })
    }

    #[test]
    fn nothing_is_read_before_it_is_durable() {
        let disk = SimDisk::new(1);
        let mut writer = writer(&disk.machine());
        let ends = [1, 2, 3].map(|number| write(&mut writer, number, 1));
        let opened = Follower::open(&disk, FIRST, FIRST, Sequence::ZERO).unwrap();
        let mut follower = opened.expect("a segment");
        for (number, end) in [1, 2, 3].into_iter().zip(ends) {
            assert_eq!(next(&mut follower, &disk, end).unwrap(), Some(number));
            assert_eq!(next(&mut follower, &disk, end).unwrap(), None, "it isn't durable yet");
        }
    }

    #[test]
    fn only_a_segment_that_is_not_there_is_passed_over() {
        let disk = SimDisk::new(3);
        let mut writer = writer(&disk.machine());
        write(&mut writer, 1, 1);
        write(&mut writer, 2, 2);
        let all = write(&mut writer, 3, 3);
        let open = |after| Follower::open(&disk, FIRST, SegmentNumber(2), Sequence(after));
        let mut follower = open(0).unwrap().expect("a segment");
        assert_eq!(next(&mut follower, &disk, all).unwrap(), Some(1));
        let (name, header) = (SegmentNumber(2).file_name(), 0..3);
        let contents = disk.contents(&name).expect("the segment is there");
        let mut damaged = contents.clone();
        damaged[header].fill(0);
        disk.set_contents(&name, &damaged);
        assert!(matches!(open(2), Err(StoreError::Damaged { .. })));
        assert!(matches!(next(&mut follower, &disk, all), Err(StoreError::Damaged { .. })));
        disk.remove(&name).unwrap();
        let mut before = open(2).unwrap().expect("the one before it");
        assert_eq!(before.segment(), FIRST);
        assert_eq!(next(&mut before, &disk, all).unwrap(), Some(1));
        assert!(next(&mut before, &disk, all).is_err(), "the third doesn't follow the first");
    }

    /// No mark says so: the next segment's header does.
    #[test]
    fn a_last_record_that_is_damaged_is_not_passed_over() {
        let disk = SimDisk::new(2);
        let mut writer = writer(&disk.machine());
        let (_, begin) = write(&mut writer, 1, 1);
        let (_, end) = write(&mut writer, 2, 1);
        let all = write(&mut writer, 3, 2);
        let mut contents = disk.contents(&FIRST.file_name()).expect("the segment is there");
        contents[end.0 as usize..][..RECORD_HEADER_BYTES].fill(0);
        let follow = |contents: &[u8]| {
            disk.set_contents(&FIRST.file_name(), contents);
            let opened = Follower::open(&disk, FIRST, FIRST, Sequence::ZERO).unwrap();
            let mut follower = opened.expect("a segment");
            [(); 3].map(|()| next(&mut follower, &disk, all))
        };
        let whole = follow(&contents).map(Result::unwrap);
        assert_eq!(whole, [Some(1), Some(2), Some(3)]);
        for at in [begin.0 as usize, end.0 as usize - 20] {
            contents[at] ^= 1;
            let [first, second, _] = follow(&contents);
            assert_eq!(first.unwrap(), Some(1));
            assert!(matches!(second, Err(StoreError::Damaged { .. })), "{at}: {second:?}");
            contents[at] ^= 1;
        }
    }
}
