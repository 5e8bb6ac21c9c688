//! A copy-on-write disk: writes stay in memory, page by page, and the disk below is only read. For
//! commands that inspect a damaged data directory.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use super::{Disk, DiskFile};

const PAGE_BYTES: usize = 4 << 10;
const NO_PANIC: &str = "no panic while the lock is held";

/// A copy-on-write disk. *Thread safety*: every method may be called from any number of threads at
/// once.
pub struct ScratchDisk {
    below: Arc<dyn Disk>,
    files: Mutex<BTreeMap<String, Arc<ScratchFile>>>,
}

impl ScratchDisk {
    /// Makes a disk with the present content of `below`.
    ///
    /// # Errors
    /// If one of its files can't be opened.
    pub fn over(below: &Arc<dyn Disk>) -> io::Result<ScratchDisk> {
        let mut files = BTreeMap::new();
        for name in below.list()? {
            let file = below.open(&name)?;
            let bytes = file.bytes()?;
            let state = State { bytes, bytes_below: bytes, pages: BTreeMap::new() };
            let file = ScratchFile { below: Some(file), state: Mutex::new(state) };
            files.insert(name, Arc::new(file));
        }
        Ok(ScratchDisk { below: Arc::clone(below), files: Mutex::new(files) })
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<String, Arc<ScratchFile>>> {
        self.files.lock().expect(NO_PANIC)
    }
}

impl Disk for ScratchDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut files = self.files();
        if files.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = Arc::new(ScratchFile::default());
        files.insert(name.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.files().get(name).cloned().ok_or(io::ErrorKind::NotFound)?;
        Ok(file)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.files().keys().cloned().collect())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.files();
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files().remove(name).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self) -> io::Result<()> {
        self.below.lock()
    }

    fn unlock(&self) {
        self.below.unlock();
    }
}

#[derive(Default)]
struct ScratchFile {
    below: Option<Arc<dyn DiskFile>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    bytes: u64,
    /// The number of bytes of what lies below that is still in force where there is no page.
    bytes_below: u64,
    pages: BTreeMap<u64, Box<[u8]>>,
}

impl ScratchFile {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect(NO_PANIC)
    }

    /// Fills `buffer` with what lies below, and zeros where nothing does.
    fn read_below(&self, state: &State, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let there = state.bytes_below.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let (read, rest) = buffer.split_at_mut(there);
        rest.fill(0);
        match &self.below {
            Some(below) if !read.is_empty() => below.read_exact_at(offset, read),
            _ => Ok(()),
        }
    }

    /// The page of that number, to be written.
    fn page<'a>(&self, state: &'a mut State, number: u64) -> io::Result<&'a mut [u8]> {
        if !state.pages.contains_key(&number) {
            let mut page = vec![0; PAGE_BYTES].into_boxed_slice();
            self.read_below(state, number * PAGE_BYTES as u64, &mut page)?;
            state.pages.insert(number, page);
        }
        Ok(state.pages.get_mut(&number).expect("it was just made where it was absent"))
    }
}

/// Cuts `bytes` bytes at `offset` at the ends of pages: the number of each page, and from where to
/// where in it and in the bytes.
fn pieces(offset: u64, bytes: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let (number, start) = (at / PAGE_BYTES as u64, (at % PAGE_BYTES as u64) as usize);
        let count = (PAGE_BYTES - start).min(bytes - done);
        done += count;
        (count > 0).then_some((number, start, done - count..done))
    })
}

impl DiskFile for ScratchFile {
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let state = self.state();
        if offset.checked_add(buffer.len() as u64).is_none_or(|end| state.bytes < end) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if state.pages.is_empty() {
            return self.read_below(&state, offset, buffer);
        }
        for (number, start, part) in pieces(offset, buffer.len()) {
            let at = offset + part.start as u64;
            let part = &mut buffer[part];
            match state.pages.get(&number) {
                Some(page) => part.copy_from_slice(&page[start..start + part.len()]),
                None => self.read_below(&state, at, part)?,
            }
        }
        Ok(())
    }

    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        for (number, start, part) in pieces(offset, bytes.len()) {
            let part = &bytes[part];
            self.page(&mut state, number)?[start..start + part.len()].copy_from_slice(part);
        }
        state.bytes = state.bytes.max(offset + bytes.len() as u64);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.state();
        state.bytes = bytes;
        state.bytes_below = state.bytes_below.min(bytes);
        let (number, start) = (bytes / PAGE_BYTES as u64, (bytes % PAGE_BYTES as u64) as usize);
        state.pages.retain(|page, _| *page <= number);
        if let Some(page) = state.pages.get_mut(&number) {
            page[start..].fill(0);
        }
        Ok(())
    }

    /// Takes no memory.
    fn allocate(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.state();
        state.bytes = state.bytes.max(bytes);
        Ok(())
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.state().bytes)
    }
}
