//! The index builds that are under way, and how far each has come.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The index builds that are under way.
#[derive(Default)]
pub(crate) struct Builds {
    next: AtomicU64,
    running: Mutex<BTreeMap<u64, Arc<Progress>>>,
}

/// The progress of a build.
#[derive(Debug)]
pub(crate) struct Progress {
    namespace: String,
    names: Vec<String>,
    done: AtomicU64,
    total: AtomicU64,
}

/// An index build that is under way, as `currentOp` shows it.
#[derive(Clone, Debug)]
pub struct IndexBuild {
    /// `shop.things`.
    pub namespace: String,
    /// The names of the indexes.
    pub names: Vec<String>,
    /// Documents that were read, one index after the other.
    pub done: u64,
    /// Documents that are to be read.
    pub total: u64,
}

/// A build among those that are under way, until it is dropped.
pub(crate) struct Running<'a> {
    builds: &'a Builds,
    number: u64,
    /// Its progress.
    pub progress: Arc<Progress>,
}

impl Progress {
    /// Counts a document that was read.
    pub fn count_document(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

impl Builds {
    /// Adds a build that has to read `total` documents.
    pub fn begin(&self, namespace: String, names: Vec<String>, total: u64) -> Running<'_> {
        let (done, total) = (AtomicU64::new(0), AtomicU64::new(total));
        let progress = Arc::new(Progress { namespace, names, done, total });
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.insert(number, Arc::clone(&progress));
        drop(running);
        Running { builds: self, number, progress }
    }

    /// The builds that are under way, the oldest first.
    pub fn list(&self) -> Vec<IndexBuild> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let describe = |progress: &Arc<Progress>| IndexBuild {
            namespace: progress.namespace.clone(),
            names: progress.names.clone(),
            done: progress.done.load(Ordering::Relaxed),
            total: progress.total.load(Ordering::Relaxed),
        };
        running.values().map(describe).collect()
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut running = self.builds.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.remove(&self.number);
    }
}
