//! Recycles the files of old segments: they become new ones.
//!
//! A file that was written before has its blocks: a sync of it writes data and nothing else, where
//! one of a growing file also writes its length and the places of its new blocks. The bytes that an
//! old segment left in the file never read as a record of the new one (see [`super::format`]).
//!
//! A segment's file gets its name when its header is durable: so no crash leaves a segment without
//! one. Until then, and between two segments, the file is called a spare; spares that an opening
//! finds are removed. A closing leaves none, nor does a collection that is to give all space back
//! ([`RecycledSegments::none`]).

use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard};

use frond_store::io::{Disk, DiskFile};

use super::format::SegmentNumber;
use crate::background::backpressure::SEALED_COUNT_MAX;

const NAME_PREFIX: &str = "spare-";
/// Most spares: as many segments end at once when what they hold is flushed.
const COUNT_MAX: usize = SEALED_COUNT_MAX;

/// Files that wait to become new segments.
pub(crate) struct RecycledSegments {
    disk: Arc<dyn Disk>,
    kept: Mutex<Kept>,
}

struct Kept {
    names: Vec<String>,
    /// 0 while old segments' bytes must go.
    count_max: usize,
}

/// A guard: while it lives old segments are removed, and new ones get new files.
pub(crate) struct RecyclingPaused<'a>(&'a RecycledSegments);

impl Drop for RecyclingPaused<'_> {
    fn drop(&mut self) {
        self.0.kept().count_max = COUNT_MAX;
    }
}

/// The name of the spare that was the file of `number`, or becomes it.
fn spare_name(number: SegmentNumber) -> String {
    format!("{NAME_PREFIX}{}", number.file_name())
}

/// Removes what a process before left.
pub(crate) fn remove_spares(disk: &dyn Disk) -> io::Result<()> {
    let names = disk.list()?;
    let mut recycled = names.iter().filter(|name| name.starts_with(NAME_PREFIX));
    recycled.try_for_each(|name| disk.remove(name))
}

impl RecycledSegments {
    pub fn new(disk: &Arc<dyn Disk>) -> RecycledSegments {
        let kept = Kept { names: Vec::new(), count_max: COUNT_MAX };
        RecycledSegments { disk: Arc::clone(disk), kept: Mutex::new(kept) }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("no panic while the lock is held")
    }

    /// Removes all spares, and keeps none while the answer lives.
    ///
    /// # Errors
    /// An error of the disk when a spare is removed. The spares that are left are forgotten until
    /// the next opening.
    pub fn none(&self) -> io::Result<RecyclingPaused<'_>> {
        let mut kept = self.kept();
        kept.count_max = 0;
        let none = RecyclingPaused(self);
        let names = std::mem::take(&mut kept.names);
        // Dropped before `none` is, which takes the lock.
        drop(kept);
        names.iter().try_for_each(|name| self.disk.remove(name))?;
        Ok(none)
    }

    /// Takes the file of a segment that no opening needs any more.
    ///
    /// # Errors
    /// An error of the disk when the file is renamed or removed. A file that isn't there is no
    /// error.
    pub fn give(&self, number: SegmentNumber) -> io::Result<()> {
        let (name, spare) = (number.file_name(), spare_name(number));
        let mut kept = self.kept();
        let given = if kept.names.len() < kept.count_max {
            self.disk.rename(&name, &spare).map(|()| kept.names.push(spare))
        } else {
            self.disk.remove(&name)
        };
        match given {
            // A segment that took no record was never created.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            given => given,
        }
    }

    /// Makes the file of segment `number`, durably, with `header` at its beginning. Behind it lies
    /// what lay there before. On a failure the file isn't there.
    ///
    /// # Errors
    /// [`Failed::Unchanged`] if nothing of it is left on the disk; [`Failed::Unknown`] if that
    /// isn't known.
    pub fn make(&self, number: SegmentNumber, header: &[u8]) -> Result<Arc<dyn DiskFile>, Failed> {
        let spare = self.kept().names.pop();
        let (name, created) = match spare {
            Some(name) => (name.clone(), self.disk.open(&name)),
            None => (spare_name(number), self.disk.create(&spare_name(number))),
        };
        let file = created.map_err(Failed::Unchanged)?;
        if let Err(error) = file.write_all_at(0, header) {
            self.disk.remove(&name).map_err(Failed::Unknown)?;
            return Err(Failed::Unchanged(error));
        }
        file.sync()
            .and_then(|()| self.disk.rename(&name, &number.file_name()))
            .and_then(|()| self.disk.sync_directory())
            .map_err(Failed::Unknown)?;
        Ok(file)
    }
}

/// The reason why a file wasn't created.
pub(crate) enum Failed {
    /// All is as before.
    Unchanged(io::Error),
    /// The content of the disk is unknown.
    Unknown(io::Error),
}

#[cfg(test)]
mod tests {
    use frond_testkit::SimDisk;

    use super::*;

    fn given(disk: &SimDisk) -> RecycledSegments {
        let machine = disk.machine();
        let recycled = RecycledSegments::new(&machine.disk);
        for number in [1, 2].map(SegmentNumber) {
            machine.disk.create(&number.file_name()).expect("there is room");
            recycled.give(number).expect("the disk works");
        }
        recycled
    }

    fn recycled_files(disk: &SimDisk) -> usize {
        let names = disk.list().expect("the disk works");
        names.iter().filter(|name| name.starts_with(NAME_PREFIX)).count()
    }

    #[test]
    fn old_bytes_go_while_they_must_and_are_kept_afterwards() {
        let disk = SimDisk::new(1);
        let recycled = given(&disk);
        assert_eq!(recycled_files(&disk), 2);
        let none = recycled.none().expect("the disk works");
        assert_eq!(recycled_files(&disk), 0);
        disk.create(&SegmentNumber(3).file_name()).expect("there is room");
        recycled.give(SegmentNumber(3)).expect("the disk works");
        assert_eq!(recycled_files(&disk), 0);
        drop(none);
        disk.create(&SegmentNumber(4).file_name()).expect("there is room");
        recycled.give(SegmentNumber(4)).expect("the disk works");
        assert_eq!(recycled_files(&disk), 1);
    }

    #[test]
    fn a_file_that_can_not_be_removed_is_reported_and_others_are_kept_again() {
        let disk = SimDisk::new(1);
        let recycled = given(&disk);
        disk.fail_name_change_after(0);
        assert!(recycled.none().is_err());
        disk.create(&SegmentNumber(3).file_name()).expect("there is room");
        recycled.give(SegmentNumber(3)).expect("the disk works");
        assert_eq!(recycled_files(&disk), 3);
    }
}
