//! A disk whose syncs wait until a test lets them go on.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use frond_store::io::{Disk, DiskFile, Machine};

/// Syncs wait while it is closed.
#[derive(Default)]
pub struct Gate {
    is_closed: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    /// Has syncs wait from now on.
    pub fn close(&self) {
        *self.is_closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Has them go on.
    pub fn open(&self) {
        *self.is_closed.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let is_closed = self.is_closed.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.opened.wait_while(is_closed, |is_closed| *is_closed));
    }
}

/// Opens it at the end, also of a test that fails: the database has to close.
pub struct Keeper(pub Arc<Gate>);

impl Drop for Keeper {
    fn drop(&mut self) {
        self.0.open();
    }
}

impl Gate {
    /// A machine whose disk is `machine`'s, behind this gate.
    pub fn before(gate: &Arc<Gate>, machine: Machine) -> Machine {
        let disk = Arc::new(GatedDisk(Arc::clone(&machine.disk), Arc::clone(gate)));
        Machine { disk, ..machine }
    }
}

struct GatedDisk(Arc<dyn Disk>, Arc<Gate>);

struct GatedFile(Arc<dyn DiskFile>, Arc<Gate>);

impl GatedDisk {
    fn gated(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(GatedFile(file, Arc::clone(&self.1)))
    }
}

impl Disk for GatedDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.0.create(name).map(|file| self.gated(file))
    }
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.0.open(name).map(|file| self.gated(file))
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }
    fn sync_directory(&self) -> io::Result<()> {
        self.0.sync_directory()
    }
    fn lock(&self) -> io::Result<()> {
        self.0.lock()
    }
    fn unlock(&self) {
        self.0.unlock();
    }
}

impl DiskFile for GatedFile {
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(offset, buffer)
    }
    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(offset, bytes)
    }
    fn sync(&self) -> io::Result<()> {
        self.1.pass();
        self.0.sync()
    }
    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        self.0.set_bytes(bytes)
    }
    fn bytes(&self) -> io::Result<u64> {
        self.0.bytes()
    }
}
