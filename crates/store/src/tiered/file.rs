//! A pack's file, wherever its bytes are: on the disk, or in the bucket, with its index in a file
//! of its own ([`index_file`](super::index_file)) or in the bucket as well.
//!
//! *Extents* of a pack in the bucket: first those of its frames, then those of its index, which
//! begin anew where that does.

use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use bytes::Bytes;

use super::extents::{EXTENT_BYTES, Extent, Extents};
use super::format::PackObject;
use super::index_file::{PackIndex, find_parts};
use super::read_ahead::ReadAhead;
use super::single_flight::FlightGuard;
use crate::bucket::{Bucket, ObjectPart};
use crate::field::{PREFIX_BYTES, prefix};
use crate::io::DiskFile;
use crate::location::PackNumber;
use crate::pack::format::PACK_MAGIC;

/// Parts of objects that are there; one that isn't ends too early, as a file that is cut.
fn read_parts(bucket: &dyn Bucket, parts: &[ObjectPart]) -> io::Result<Vec<Bytes>> {
    let there = |part: Option<Bytes>| part.ok_or_else(|| ErrorKind::UnexpectedEof.into());
    find_parts(bucket, parts)?.into_iter().map(there).collect()
}

/// A pack that lies in the bucket.
pub(super) struct Remote {
    pub(super) number: PackNumber,
    pub(super) pack: PackObject,
    pub(super) index: PackIndex,
    pub(super) bucket: Arc<dyn Bucket>,
    pub(super) extents: Arc<Extents>,
    pub(super) read_ahead: ReadAhead,
}

impl Remote {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64).filter(|end| *end <= self.pack.bytes);
        let end = end.ok_or(ErrorKind::UnexpectedEof)?;
        let index = u64::from(self.pack.index);
        let header = prefix(PACK_MAGIC);
        let (in_header, rest) = split(buffer, offset, PREFIX_BYTES as u64);
        if let Some(part) = header.get(offset as usize..offset as usize + in_header.len()) {
            in_header.copy_from_slice(part);
        }
        let offset = end - rest.len() as u64;
        let (in_frames, in_index) = split(rest, offset, index);
        self.read_extents(self.frames(), offset, in_frames)?;
        if in_index.is_empty() {
            return Ok(());
        }
        self.read_index(end - in_index.len() as u64, in_index)
    }

    /// Fills `buffer` from `offset`, which lies in the index.
    fn read_index(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let index = u64::from(self.pack.index);
        let is_most = self.pack.bytes - index < 2 * buffer.len() as u64;
        if is_most && self.index.file()?.is_none() {
            self.index.keep(&*self.bucket)?;
        }
        match self.index.file()? {
            Some(file) => file.read_exact_at(PREFIX_BYTES as u64 + offset - index, buffer),
            None => self.read_extents(self.index_region(), offset, buffer),
        }
    }

    fn frames(&self) -> Region {
        Region { first: 0, bytes: 0..u64::from(self.pack.index) }
    }

    fn index_region(&self) -> Region {
        let first = self.pack.index.div_ceil(EXTENT_BYTES as u32);
        Region { first, bytes: u64::from(self.pack.index)..self.pack.bytes }
    }

    fn read_extents(&self, region: Region, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if buffer.is_empty() {
            return Ok(());
        }
        let mut absent: Vec<u32> = Vec::new();
        for number in region.extents(offset..offset + buffer.len() as u64) {
            match self.extents.get((self.number, number)) {
                Some(bytes) => copy_part(offset, buffer, region.range(number).start, &bytes),
                None => absent.push(number),
            }
        }
        for run in absent.chunk_by(|left, right| left + 1 == *right) {
            self.fetch(&region, offset, buffer, run[0]..run[run.len() - 1] + 1)?;
        }
        Ok(())
    }

    /// Fetches a run of extents, and what lies behind it where a reader goes on in order, and
    /// copies what belongs into `buffer`.
    fn fetch(
        &self,
        region: &Region,
        offset: u64,
        buffer: &mut [u8],
        run: Range<u32>,
    ) -> io::Result<()> {
        let mut next = run.start;
        while next < run.end {
            // Extents that another reader has fetched are taken from it, once: if it failed, or its
            // extents had to go at once, this one doesn't wait for a third.
            let flight = self.begin(region, next, run.end);
            let waited = flight.is_none().then(|| self.extents.get((self.number, next))).flatten();
            if let Some(bytes) = waited {
                copy_part(offset, buffer, region.range(next).start, &bytes);
                next += 1;
                continue;
            }
            let count = flight.as_ref().map_or(1, FlightGuard::count);
            let range = region.range(next).start..region.range(next + count - 1).end;
            let part = ObjectPart { name: self.pack.name(), range: range.clone() };
            let bytes = read_parts(&*self.bucket, &[part])?.remove(0);
            copy_part(offset, buffer, range.start, &bytes);
            for (number, extent) in (next..).zip(bytes.chunks(EXTENT_BYTES as usize)) {
                self.extents.put((self.number, number), &self.pack.own, extent);
            }
            next += count;
        }
        Ok(())
    }

    /// Begins to fetch extents from `first` on, up to `end` or beyond; `None` if another reader
    /// fetched the first one meanwhile, or tried to.
    fn begin(&self, region: &Region, first: u32, end: u32) -> Option<FlightGuard<'_>> {
        let extents = region.end();
        let ahead =
            self.read_ahead.end(first, end, self.extents.read_at_once()).min(extents).max(end);
        // Extents that arrived since this reader missed them are taken from the cache.
        let is_absent = |extent: &Extent| !self.extents.has(*extent);
        let absent = (first..ahead).map(|number| (self.number, number)).take_while(is_absent);
        let flight = self.extents.flights.begin(absent, (end - first) as usize)?;
        self.read_ahead.note(first, flight.count());
        Some(flight)
    }

    /// Lets go of what lies in the cache of a part.
    fn forget(&self, offset: u64, bytes: u64) {
        let (frames, index) = (self.frames(), self.index_region());
        let region = if offset < frames.bytes.end { frames } else { index };
        let end = (offset + bytes).min(region.bytes.end);
        for number in region.extents(offset.min(end)..end) {
            self.extents.forget_one((self.number, number));
        }
    }
}

/// A part of a pack that has extents of its own.
struct Region {
    /// The number of its first extent.
    first: u32,
    /// Where it lies in the pack.
    bytes: Range<u64>,
}

impl Region {
    /// The extents that have part of `bytes`, which lie in it.
    fn extents(&self, bytes: Range<u64>) -> Range<u32> {
        let number = |count: u64| self.first + count as u32;
        let (from, to) = (bytes.start - self.bytes.start, bytes.end - self.bytes.start);
        number(from / EXTENT_BYTES)..number(to.div_ceil(EXTENT_BYTES))
    }

    /// The number behind that of its last extent.
    fn end(&self) -> u32 {
        self.extents(self.bytes.clone()).end
    }

    /// Returns where an extent lies in the pack: the last one ends where the region does.
    fn range(&self, number: u32) -> Range<u64> {
        let start = self.bytes.start + u64::from(number - self.first) * EXTENT_BYTES;
        start..(start + EXTENT_BYTES).min(self.bytes.end)
    }
}

/// Cuts what is read from `offset` on in two, where the pack's byte `at` goes.
fn split(buffer: &mut [u8], offset: u64, at: u64) -> (&mut [u8], &mut [u8]) {
    let position = at.saturating_sub(offset).min(buffer.len() as u64) as usize;
    buffer.split_at_mut(position)
}

/// Copies what of `bytes`, which lie at `start`, belongs into `buffer`, read from `offset`.
fn copy_part(offset: u64, buffer: &mut [u8], start: u64, bytes: &[u8]) {
    let end = offset + buffer.len() as u64;
    let (first, last) = (start.max(offset), (start + bytes.len() as u64).min(end));
    if first < last {
        let from = &bytes[(first - start) as usize..(last - start) as usize];
        buffer[(first - offset) as usize..(last - offset) as usize].copy_from_slice(from);
    }
}

#[derive(Clone)]
enum Storage {
    Here(Arc<dyn DiskFile>),
    There(Arc<Remote>),
}

/// See the module.
pub(super) struct TieredFile {
    place: RwLock<Storage>,
    written: Arc<AtomicU64>,
}

impl TieredFile {
    /// A pack on the disk; `written` counts what is written to it.
    pub(super) fn local(file: Arc<dyn DiskFile>, written: &Arc<AtomicU64>) -> TieredFile {
        TieredFile { place: RwLock::new(Storage::Here(file)), written: Arc::clone(written) }
    }

    /// A pack in the bucket.
    pub(super) fn remote(remote: Remote, written: &Arc<AtomicU64>) -> TieredFile {
        let place = RwLock::new(Storage::There(Arc::new(remote)));
        TieredFile { place, written: Arc::clone(written) }
    }

    /// Has its bytes read in the bucket from now on, which are the same.
    pub(super) fn move_to(&self, remote: Remote) {
        let mut place = self.place.write().expect("no panic while the lock is held");
        *place = Storage::There(Arc::new(remote));
    }

    fn place(&self) -> Storage {
        self.place.read().expect("no panic while the lock is held").clone()
    }
}

/// Returns the error for a caller that would change a pack in the bucket.
fn immutable() -> io::Error {
    io::Error::new(ErrorKind::Unsupported, "a pack in the bucket is never changed")
}

impl DiskFile for TieredFile {
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        match self.place() {
            Storage::Here(file) => file.read_exact_at(offset, buffer),
            Storage::There(remote) => remote.read(offset, buffer),
        }
    }

    fn read_past_cache(
        &self,
        offset: u64,
        bytes: usize,
        buffer: &mut Vec<u8>,
    ) -> io::Result<Range<usize>> {
        match self.place() {
            Storage::Here(file) => file.read_past_cache(offset, bytes, buffer),
            Storage::There(_) => self.read_into(offset, bytes, buffer),
        }
    }

    fn forget_cached(&self, offset: u64, bytes: u64) -> bool {
        match self.place() {
            Storage::Here(_) => false,
            Storage::There(remote) => {
                remote.forget(offset, bytes);
                true
            }
        }
    }

    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let Storage::Here(file) = self.place() else { return Err(immutable()) };
        file.write_all_at(offset, bytes)?;
        self.written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        match self.place() {
            Storage::Here(file) => file.sync(),
            Storage::There(_) => Ok(()),
        }
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        match self.place() {
            Storage::Here(file) => file.set_bytes(bytes),
            Storage::There(_) => Err(immutable()),
        }
    }

    fn bytes(&self) -> io::Result<u64> {
        match self.place() {
            Storage::Here(file) => file.bytes(),
            Storage::There(remote) => Ok(remote.pack.bytes),
        }
    }
}
