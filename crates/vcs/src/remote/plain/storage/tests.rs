//! Goal: whatever interrupts a write, a directory of backups keeps only whole files, and no client
//! loses its writes to another that tidies up. Method: a simulated disk that is full, fails, or
//! loses its power at every step; and a disk on which another client begins just before a rename.

use std::sync::atomic::{AtomicBool, Ordering};

use frond_store::io::DiskSpace;
use frond_testkit::SimDisk;

use super::*;

fn leftovers(disk: &dyn Disk) -> Vec<String> {
    let mut names = disk.list().expect("it answers");
    names.retain(|name| name.starts_with(NEW_PREFIX));
    names
}

#[test]
fn a_write_that_fails_leaves_nothing() {
    type Fault = (&'static str, fn(&SimDisk));
    let checks: [Fault; 5] = [
        ("full", |disk| disk.limit_to(Some(1_000))),
        ("full after a part", |disk| disk.fill_after(100)),
        ("a write fails", |disk| disk.fail_write_after(0)),
        ("a sync fails", |disk| disk.fail_sync_after(0)),
        ("the rename fails", |disk| disk.fail_name_change_after(1)),
    ];
    for (what, fail) in checks {
        let disk = SimDisk::new(1);
        let machine = disk.machine();
        let place = DirectoryStorage::new(&machine);
        place.create("pack-1", vec![1; 300].into()).expect("there is room");
        fail(&disk);
        place.create("pack-2", vec![2; 3_000].into()).expect_err(what);
        assert_eq!(machine.disk.list().expect("it answers"), ["pack-1"], "{what}");
    }
}

#[test]
fn a_file_that_another_client_replaced_stays_as_it_is() {
    let machine = SimDisk::new(1).machine();
    let place = DirectoryStorage::new(&machine);
    let swap = |expected: Option<&FileVersion>, byte: u8| {
        place.swap("refs", expected, vec![byte; 300].into()).expect("a good disk")
    };
    let load = || place.load("refs", usize::MAX).expect("a good disk").expect("it is there");
    assert!(swap(None, 1));
    let (_, first) = load();
    assert!(swap(Some(&first), 2));
    assert!(!swap(Some(&first), 3) && !swap(None, 4));
    assert_eq!(load().0, vec![2; 300]);
}

#[test]
fn leftovers_of_a_crash_make_room_for_the_next_file() {
    let mut found = 0;
    for operations in 0..6 {
        let disk = SimDisk::new(operations);
        let machine = disk.machine();
        machine.disk.sync_directory().expect("a good disk");
        disk.crash_after(operations);
        let place = DirectoryStorage::new(&machine);
        // The power fails on the way, or nothing is left.
        let _ = place.create("pack-1", vec![1; 3_000].into());
        let machine = disk.kill().machine();
        found += leftovers(&*machine.disk).len();
        let place = DirectoryStorage::new(&machine);
        place.create("pack-2", vec![2; 3_000].into()).expect("a good disk");
        assert_eq!(leftovers(&*machine.disk), [""; 0], "after {operations}");
    }
    assert!(0 < found, "some crash leaves a file");
}

/// A disk on which another client writes its first file just before the first rename.
struct Crowded {
    disk: Arc<dyn Disk>,
    other: DirectoryStorage,
    has_come: AtomicBool,
}

impl Disk for Crowded {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.create(name)
    }
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open(name)
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        if !self.has_come.swap(true, Ordering::Relaxed) {
            self.other.create("pack-2", vec![2; 20].into()).expect("a good disk");
        }
        self.disk.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }
    fn space(&self) -> io::Result<Option<DiskSpace>> {
        self.disk.space()
    }
    fn sync_directory(&self) -> io::Result<()> {
        self.disk.sync_directory()
    }
    fn lock(&self) -> io::Result<()> {
        self.disk.lock()
    }
    fn unlock(&self) {
        self.disk.unlock();
    }
}

#[test]
fn a_file_that_another_client_took_for_a_leftover_is_written_again() {
    let machine = SimDisk::new(3).machine();
    let (disk, has_come) = (machine.disk.clone(), AtomicBool::new(false));
    let crowded = Crowded { disk, other: DirectoryStorage::new(&machine), has_come };
    let place = DirectoryStorage::new(&Machine { disk: Arc::new(crowded), ..machine.clone() });
    place.create("pack-1", vec![1; 10].into()).expect("it is written again");
    assert_eq!(machine.disk.list().expect("it answers"), ["pack-1", "pack-2"]);
    let found = place.list("pack-").expect("it answers");
    assert_eq!(found, [("pack-1".to_owned(), 10), ("pack-2".to_owned(), 20)]);
}
