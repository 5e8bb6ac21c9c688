//! A disk that calls a hook before each read of it: what happens between a put's first look and its
//! write, and sectors that a disk doesn't give back while all others can be read.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use frond_store::io::{Disk, DiskFile, DiskSpace, Machine};
use frond_store::local::{LocalOptions, LocalStore};
use frond_store::{Chunk, ChunkStore, StoreError};
use frond_testkit::{Random, SimDisk};

use crate::{SMALL, assert_stored, blob, hashes};

/// A disk's error for a sector whose bytes it has lost.
const ERROR_OF_MEDIUM: i32 = 5;

/// The sector in which two frames of [`twenty_in_a_pack`] lie.
const SECTOR: Range<u64> = 16_384..20_480;
const ONE_PACK: LocalOptions = LocalOptions { pack_bytes_target: 1 << 20, ..SMALL };

type BeforeRead = Arc<dyn Fn(&Range<u64>) -> io::Result<()> + Send + Sync>;

#[derive(Clone)]
struct Watched {
    disk: SimDisk,
    before_read: Arc<Mutex<BeforeRead>>,
}

struct WatchedFile {
    file: Arc<dyn DiskFile>,
    before_read: Arc<Mutex<BeforeRead>>,
}

impl Watched {
    fn new(disk: &SimDisk) -> Watched {
        let nothing: BeforeRead = Arc::new(|_| Ok(()));
        Watched { disk: disk.clone(), before_read: Arc::new(Mutex::new(nothing)) }
    }

    fn open(&self, options: LocalOptions) -> Arc<LocalStore> {
        let machine = Machine { disk: Arc::new(self.clone()), ..self.disk.machine() };
        LocalStore::open(&machine, options).unwrap()
    }

    /// Does `act` before the next read, once.
    fn before_next_read(&self, act: impl Fn() + Send + Sync + 'static) {
        let is_done = AtomicBool::new(false);
        self.before_each_read(move |_| {
            if !is_done.swap(true, Ordering::SeqCst) {
                act();
            }
            Ok(())
        });
    }

    fn before_each_read(
        &self,
        act: impl Fn(&Range<u64>) -> io::Result<()> + Send + Sync + 'static,
    ) {
        *self.before_read.lock().unwrap() = Arc::new(act);
    }

    fn watched(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(WatchedFile { file, before_read: Arc::clone(&self.before_read) })
    }
}

impl Disk for Watched {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.create(name).map(|file| self.watched(file))
    }
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open(name).map(|file| self.watched(file))
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
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

impl DiskFile for WatchedFile {
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let before_read = Arc::clone(&self.before_read.lock().unwrap());
        before_read(&(offset..offset + buffer.len() as u64))?;
        self.file.read_exact_at(offset, buffer)
    }
    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(offset, bytes)
    }
    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        self.file.set_bytes(bytes)
    }
    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }
}

/// A store with the first of three chunks, which a put of that chunk reads again.
fn sample() -> (Watched, Arc<LocalStore>, [Chunk; 3]) {
    let watched = Watched::new(&SimDisk::new(0));
    let store = watched.open(SMALL);
    let chunks = [1u8, 2, 3].map(|byte| blob(&[byte; 200]));
    store.put_many(&chunks[..1]).unwrap();
    store.sync().unwrap();
    (watched, store, chunks)
}

#[test]
fn a_put_that_began_before_a_sync_failed_writes_nothing() {
    let (watched, store, [old, new, other]) = sample();
    let (disk, within) = (watched.disk.clone(), Arc::clone(&store));
    watched.before_next_read(move || {
        within.put_many(std::slice::from_ref(&other)).unwrap();
        disk.fail_sync_after(0);
        assert!(within.sync().is_err());
    });
    let refused = store.put_many(&[old, new.clone()]);
    assert!(matches!(refused, Err(StoreError::Poisoned { .. })), "{refused:?}");
    assert_eq!(store.has_many(&[new.hash()]).unwrap(), [false]);
}

#[test]
fn concurrent_puts_of_one_chunk_write_it_once() {
    let (watched, store, [old, new, other]) = sample();
    let (within, put) = (Arc::clone(&store), new.clone());
    watched.before_next_read(move || within.put_many(std::slice::from_ref(&put)).unwrap());
    store.put_many(&[old.clone(), new.clone(), other.clone()]).unwrap();
    assert_eq!(store.counters().chunks_written, 3);
    assert_stored(&*store, &[old, new, other]);
}

/// 20 chunks of one open pack on `disk`, each frame of which takes 3,060 bytes and a little.
fn twenty_in_a_pack(disk: &SimDisk) -> Vec<Chunk> {
    let mut random = Random::new(1);
    let chunks: Vec<Chunk> = (0..20).map(|_| blob(&random.bytes(3_000))).collect();
    let store = Watched::new(disk).open(ONE_PACK);
    store.put_many(&chunks).unwrap();
    store.sync().unwrap();
    chunks
}

/// Opens the store of `disk`, which doesn't give back [`SECTOR`].
fn open_without_sector(disk: &SimDisk) -> Arc<LocalStore> {
    let watched = Watched::new(disk);
    watched.before_each_read(|bytes| match bytes.start < SECTOR.end && SECTOR.start < bytes.end {
        true => Err(io::Error::from_raw_os_error(ERROR_OF_MEDIUM)),
        false => Ok(()),
    });
    watched.open(ONE_PACK)
}

#[test]
fn one_sector_that_the_disk_does_not_give_back_takes_no_others_with_it() {
    let disk = SimDisk::new(0);
    let chunks = twenty_in_a_pack(&disk);
    let store = open_without_sector(&disk);
    let is_there = store.has_many(&hashes(&chunks)).unwrap();
    let lost: Vec<usize> = (0..chunks.len()).filter(|position| !is_there[*position]).collect();
    assert_eq!(lost, [5, 6]);
    let whole: Vec<Chunk> =
        chunks.iter().zip(is_there).filter(|(_, is)| *is).map(|(chunk, _)| chunk.clone()).collect();
    assert_stored(&*store, &whole);
}

/// Frames before the sector are read one by one, and hashed as those behind a gap are: what clients
/// store may look like a frame.
#[test]
fn where_a_sector_is_lost_no_frame_is_believed_that_names_another_chunk() {
    use twox_hash::XxHash3_64;
    let disk = SimDisk::new(0);
    let chunks = twenty_in_a_pack(&disk);
    let name = disk.list().unwrap().into_iter().find(|name| name.ends_with(".pack")).unwrap();
    let mut contents = disk.contents(&name).unwrap();
    let at = contents.windows(32).position(|window| window == chunks[2].hash().0).unwrap();
    let end = contents.windows(32).position(|window| window == chunks[3].hash().0).unwrap();
    let other = blob(b"another");
    let frame = &mut contents[at - 24..end - 24];
    frame[24..56].copy_from_slice(&other.hash().0);
    let checksum = XxHash3_64::oneshot_with_seed(XxHash3_64::oneshot(&frame[..16]), &frame[24..]);
    frame[16..24].copy_from_slice(&checksum.to_le_bytes());
    disk.set_contents(&name, &contents);
    let store = open_without_sector(&disk);
    let requested = [&chunks[1], &other].map(Chunk::hash);
    assert_eq!(store.has_many(&requested).unwrap(), [true, false]);
}
