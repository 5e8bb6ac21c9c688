//! Remembers the meanings of names when they were read last: databases' versions and their
//! collections.
//!
//! To find a collection is to read and decode three records or more, which is much of what reading
//! one document costs, and they hardly ever change. So the results are kept, until any transaction
//! changes any of these records.
//!
//! *Moments*: `changes` counts the changes that began and those that ended, and holds how many are
//! under way. A reader notes it before it takes its snapshot ([`CatalogCache::moment`]) and asks
//! afterwards whether it is still the same ([`CatalogCache::is_current`]). If so, no change became
//! visible in between, and its snapshot has the catalog that every snapshot of that moment has:
//! what one of them found is right for all.
//!
//! *Invariants*
//! 1. A transaction that changes the catalog is committed between `begin_change` and its end, so a
//!    reader that sees it noted a later moment, or sees another one afterwards.
//! 2. The cache's facts were found by readers of one moment, which is noted with them.
//! 3. Only what exists is kept, and a bounded number of it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use foldhash::fast::RandomState;

use crate::name::{DatabaseName, Target};
use crate::schema::Collection;

/// The low bits of `changes` count the changes under way, the others those that began or ended.
const COUNT_SHIFT: u32 = 16;
const UNDER_WAY: u64 = (1 << COUNT_SHIFT) - 1;
/// Names of databases, and collections of one, that are kept.
const DATABASES_MAX: usize = 1_000;
const COLLECTIONS_MAX: usize = 10_000;

/// The time between two changes of the catalog.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CatalogEpoch(u64);

/// The meaning of a database's name at a moment.
pub struct KnownDatabase {
    /// The catalog epoch.
    pub moment: CatalogEpoch,
    /// The name, parsed.
    pub name: Arc<DatabaseName>,
    /// The branch or commit that it named.
    pub target: Target,
    collections: RwLock<HashMap<String, Arc<Collection>, RandomState>>,
}

/// The meanings of names when they were read last.
///
/// *Thread safety*: everything may be called from any number of threads at once.
pub struct CatalogCache {
    changes: AtomicU64,
    /// All of the newest moment among them; others are replaced when they are found.
    databases: RwLock<HashMap<String, Arc<KnownDatabase>, RandomState>>,
}

/// A change of the catalog that is under way.
pub(crate) struct Change<'a>(&'a CatalogCache);

impl CatalogCache {
    /// Knows nothing.
    pub fn new() -> CatalogCache {
        CatalogCache { changes: AtomicU64::new(0), databases: RwLock::default() }
    }

    /// The present moment; `None` while a change is under way.
    pub fn moment(&self) -> Option<CatalogEpoch> {
        let changes = self.changes.load(Ordering::SeqCst);
        (changes & UNDER_WAY == 0).then_some(CatalogEpoch(changes))
    }

    /// Whether nothing has changed, or begun to, since `moment`.
    pub fn is_current(&self, moment: CatalogEpoch) -> bool {
        self.changes.load(Ordering::SeqCst) == moment.0
    }

    /// Begins a change: to be called before a transaction that changes the catalog is committed,
    /// and kept until it is.
    pub fn begin_change(&self) -> Change<'_> {
        let before = self.changes.fetch_add((1 << COUNT_SHIFT) + 1, Ordering::SeqCst);
        assert!(before & UNDER_WAY < UNDER_WAY, "fewer changes are under way than can be counted");
        Change(self)
    }

    /// Returns the meaning of a database's name at `moment`, if it is known.
    pub fn database(&self, moment: CatalogEpoch, name: &str) -> Option<Arc<KnownDatabase>> {
        let databases = self.databases.read().unwrap_or_else(PoisonError::into_inner);
        databases.get(name).filter(|known| known.moment == moment).map(Arc::clone)
    }

    /// Keeps what a reader of `moment`, which is still the present one, found a database's name to
    /// be.
    pub fn keep_database(
        &self,
        moment: CatalogEpoch,
        name: &str,
        parsed: Arc<DatabaseName>,
        target: Target,
    ) -> Arc<KnownDatabase> {
        let collections = RwLock::default();
        let known = Arc::new(KnownDatabase { moment, name: parsed, target, collections });
        let mut databases = self.databases.write().unwrap_or_else(PoisonError::into_inner);
        if databases.len() >= DATABASES_MAX {
            databases.clear();
        }
        databases.insert(name.to_owned(), Arc::clone(&known));
        known
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        let before = self.0.changes.fetch_add((1 << COUNT_SHIFT) - 1, Ordering::SeqCst);
        debug_assert!(0 < before & UNDER_WAY, "what ends was under way");
    }
}

impl KnownDatabase {
    /// The collection called `name`, if it was kept.
    pub fn collection(&self, name: &str) -> Option<Arc<Collection>> {
        let collections = self.collections.read().unwrap_or_else(PoisonError::into_inner);
        collections.get(name).map(Arc::clone)
    }

    /// Keeps the collection that a reader of this moment found.
    pub fn keep_collection(&self, name: &str, collection: &Arc<Collection>) {
        let mut collections = self.collections.write().unwrap_or_else(PoisonError::into_inner);
        if collections.len() >= COLLECTIONS_MAX {
            collections.clear();
        }
        collections.insert(name.to_owned(), Arc::clone(collection));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_ends_when_a_change_begins_and_again_when_it_ends() {
        let cache = CatalogCache::new();
        let before = cache.moment().expect("nothing is under way");
        let (one, other) = (cache.begin_change(), cache.begin_change());
        assert_eq!(cache.moment(), None);
        assert!(!cache.is_current(before));
        drop(one);
        assert_eq!(cache.moment(), None);
        drop(other);
        let after = cache.moment().expect("nothing is under way");
        assert!(before < after && cache.is_current(after) && !cache.is_current(before));
        let name = DatabaseName::parse("shop").expect("a name");
        let target = Target::Branch("main".into());
        cache.keep_database(after, "shop", Arc::new(name), target);
        assert!(cache.database(after, "shop").is_some());
        assert!(cache.database(before, "shop").is_none());
        assert!(cache.database(after, "other").is_none());
    }
}
