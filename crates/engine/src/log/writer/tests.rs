//! Goal: damage of a whole sector at the end of the log is distinguished from a torn write wherever
//! a mark says that it was synced. Method: records by a writer, and the segment read back from a
//! disk on which a sector is another.

use frond_testkit::SimDisk;

use super::*;
use crate::log::segment::Segment;
use crate::options::ChangeRetention;

const FIRST: SegmentNumber = SegmentNumber(1);
const SECTOR: usize = 4096;

fn writer(machine: &Machine) -> Writer {
    let recycled = Arc::new(RecycledSegments::new(&machine.disk));
    let (retention, segments) = (ChangeRetention::default(), (FIRST, FIRST, FIRST));
    let kept = RetainedSegments::open(&machine.disk, retention, segments, Sequence::ZERO, 0);
    Writer::new(machine, &recycled, FIRST, SegmentEnd::default(), &Arc::new(kept))
}

fn write(writer: &mut Writer, sequence: u64, bytes: usize) {
    let pending = PendingRecord::new(Bytes::from(vec![7; bytes]));
    let record = PendingRecord { sequence: Sequence(sequence), segment: FIRST, ..pending };
    assert!(writer.write(&[record]).is_ok());
}

/// Returns how many records are read, and whether what follows may be cut.
fn read(disk: &SimDisk) -> (usize, bool) {
    let mut segment = Segment::open(disk, FIRST).unwrap();
    segment.read_header().unwrap();
    let (mut count, mut last) = (0, Sequence::ZERO);
    loop {
        let records = segment.read_some(&mut last).unwrap();
        if records.is_empty() {
            return (count, segment.check_torn().is_ok());
        }
        count += records.len();
    }
}

/// A disk on which the sector is another in which `at` lies, but for what stands before `from`.
fn without_sector(disk: &SimDisk, at: usize, from: usize) -> SimDisk {
    let mut contents = disk.contents(&FIRST.file_name()).unwrap();
    let sector = at / SECTOR * SECTOR;
    let end = (sector + SECTOR).min(contents.len());
    contents[sector.max(from)..end].fill(0);
    let damaged = SimDisk::new(0);
    damaged.set_contents(&FIRST.file_name(), &contents);
    damaged
}

#[test]
fn a_mark_ahead_describes_the_sector_of_the_newest_records() {
    let disk = SimDisk::new(1);
    let mut writer = writer(&disk.machine());
    let mut place = |sequence, bytes| {
        write(&mut writer, sequence, bytes);
        assert!(writer.sync().is_ok());
        writer.mark_ahead();
        writer.end().1.0 as usize
    };
    place(1, 6_000);
    let second = place(2, 100);
    write(&mut writer, 3, 100);
    let third = writer.end().1.0 as usize;
    assert_eq!(second / SECTOR, (third - 1) / SECTOR, "both in one sector");
    assert_eq!(read(&disk), (3, true));
    // The third may be torn: nothing has said that it was synced.
    assert_eq!(read(&without_sector(&disk, third, second)), (2, true));
    assert_eq!(read(&without_sector(&disk, third, 0)), (0, false), "the second was synced");
}

#[test]
fn marks_of_the_end_describe_the_sector_of_the_other() {
    let disk = SimDisk::new(1);
    let mut writer = writer(&disk.machine());
    write(&mut writer, 1, 6_000);
    write(&mut writer, 2, 100);
    writer.mark();
    let end = writer.end().1.0 as usize;
    assert_eq!(read(&without_sector(&disk, end, 0)), (0, true), "it isn't synced: no mark");
    assert!(writer.sync().is_ok());
    writer.mark();
    assert_eq!(read(&without_sector(&disk, end, 0)), (0, false));
    // The other is gone, and the last record has a bit that turned over.
    let damaged = without_sector(&disk, second_mark_offset(LogOffset(end as u64)).0 as usize, 0);
    damaged.flip_bit(&FIRST.file_name(), (end as u64 - 50) * 8);
    assert_eq!(read(&damaged), (1, false));
}

/// Cutting off a group takes the mark along: it is written again.
#[test]
fn a_mark_comes_back_after_a_write_that_was_refused() {
    let disk = SimDisk::new(1);
    let mut writer = writer(&disk.machine());
    write(&mut writer, 1, 6_000);
    assert!(writer.sync().is_ok());
    writer.mark();
    let marked = disk.contents(&FIRST.file_name()).unwrap();
    disk.fill_after(0);
    let pending = PendingRecord::new(Bytes::from(vec![7; 60_000]));
    let record = PendingRecord { sequence: Sequence(2), segment: FIRST, ..pending };
    assert!(matches!(writer.write(&[record]), Err(WriteError::Refused { .. })));
    disk.make_room();
    assert!(writer.sync().is_ok());
    writer.mark();
    let end = writer.end().1.0 as usize;
    let again = disk.contents(&FIRST.file_name()).unwrap();
    assert_eq!(again[end..], marked[end..]);
}
