//! The profiler's levels, and where a database's operations are recorded: in its `system.profile`,
//! a capped collection, so that it is in no version. [`crate::dispatch`] decides what is recorded.
//!
//! A level is a database's, by the name under which clients use it, and is forgotten when the
//! server ends; the options of the start may have one for all others. So is a filter: it selects
//! the operations to record in place of their slowness, and is applied to their records.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use frond_db::{Database, Error};
use frond_doc::{Document, DocumentBuf, Value, document};
use frond_query::{Code, Filter};

/// The collection in which a database's operations are recorded.
pub const COLLECTION: &str = "system.profile";
/// The size up to which they are kept: the same as in MongoDB.
const COLLECTION_BYTES: i64 = 1 << 20;
/// The time for which nothing is recorded once a record failed: a full disk lets writers wait.
const SILENCE: Duration = Duration::from_secs(30);

/// The fields that describe a query's shape.
const HASHES: &[&str] = &["queryHash", "planCacheShapeHash", "planCacheKey"];

/// The operations of a database that are profiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Level {
    /// None.
    #[default]
    Off,
    /// Slow ones.
    Slow,
    /// All.
    All,
}

impl Level {
    /// The level of a number, if it has one.
    pub fn of_number(number: i64) -> Option<Level> {
        match number {
            0 => Some(Level::Off),
            1 => Some(Level::Slow),
            2 => Some(Level::All),
            _ => None,
        }
    }

    /// The number for `profile`.
    pub fn number(self) -> i32 {
        match self {
            Level::Off => 0,
            Level::Slow => 1,
            Level::All => 2,
        }
    }
}

/// A query that selects the operations to profile, whether they are slow or not.
pub struct ProfileFilter {
    /// As it was given.
    pub text: DocumentBuf,
    /// Whether it may ask for the hashes of queries, which take as long as a plan.
    pub needs_hashes: bool,
    filter: Filter,
}

impl ProfileFilter {
    /// Parses a filter.
    ///
    /// # Errors
    /// The reasons why it can be no filter, by MongoDB's codes.
    pub fn parse(text: Document<'_>) -> Result<ProfileFilter, Error> {
        let filter = Filter::parse_test(text)?;
        let is_hash = |path: &&str| HASHES.contains(path);
        let needs_hashes = filter.paths().is_none_or(|paths| paths.iter().any(is_hash));
        Ok(ProfileFilter { text: text.to_buf(), needs_hashes, filter })
    }

    /// Whether an operation is recorded, judged by its record.
    pub fn matches(&self, entry: Document<'_>) -> bool {
        self.filter.try_matches(entry).unwrap_or(false)
    }
}

/// The levels of a server's databases.
///
/// *Thread safety*: any number of threads may ask; where no database has a level or a filter,
/// without a lock.
#[derive(Default)]
pub struct Profiler {
    is_on: AtomicBool,
    levels: Mutex<HashMap<String, Level>>,
    /// The number of the level of databases that have none of their own.
    default: AtomicI32,
    has_filters: AtomicBool,
    filters: Mutex<HashMap<String, Arc<ProfileFilter>>>,
    /// The time until which nothing is recorded.
    silent_until: Mutex<Option<Instant>>,
    /// The time when something was erased last.
    erased: Mutex<Option<Instant>>,
}

impl Profiler {
    /// The level of a database.
    pub fn level(&self, database: &str) -> Level {
        match self.is_on.load(Ordering::Relaxed) {
            true => {
                self.levels().get(database).copied().unwrap_or_else(|| self.unset_level(database))
            }
            false => Level::Off,
        }
    }

    /// The level of a database that has none of its own. A branch or a past version, whose name has
    /// an `@`, is profiled only where that was asked for.
    fn unset_level(&self, database: &str) -> Level {
        match database.contains('@') {
            true => Level::Off,
            false => self.default_level(),
        }
    }

    fn default_level(&self) -> Level {
        let number = self.default.load(Ordering::Relaxed);
        Level::of_number(number.into()).unwrap_or_default()
    }

    /// Sets the level of databases that have none of their own.
    pub fn begin_at(&self, level: Level) {
        let levels = self.levels();
        self.default.store(level.number(), Ordering::Relaxed);
        self.note_whether_on(&levels);
    }

    fn note_whether_on(&self, levels: &HashMap<String, Level>) {
        let is_on = !levels.is_empty() || self.default_level() != Level::Off;
        self.is_on.store(is_on, Ordering::Relaxed);
    }

    /// The filter of a database.
    pub fn filter(&self, database: &str) -> Option<Arc<ProfileFilter>> {
        match self.has_filters.load(Ordering::Relaxed) {
            true => self.filters().get(database).cloned(),
            false => None,
        }
    }

    /// Sets the filter of a database, or takes it away.
    pub fn set_filter(&self, database: &str, filter: Option<ProfileFilter>) {
        let mut filters = self.filters();
        match filter {
            Some(filter) => filters.insert(database.to_owned(), Arc::new(filter)),
            None => filters.remove(database),
        };
        self.has_filters.store(!filters.is_empty(), Ordering::Relaxed);
    }

    fn filters(&self) -> MutexGuard<'_, HashMap<String, Arc<ProfileFilter>>> {
        self.filters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a record failed: for a while no other operation waits for that.
    pub fn pause(&self) {
        *self.silence() = Some(Instant::now() + SILENCE);
    }

    /// Whether recording is paused.
    pub fn is_paused(&self) -> bool {
        self.silence().is_some_and(|until| Instant::now() < until)
    }

    /// Notes that something was erased now, of any database.
    pub fn note_erased(&self) {
        *self.erased.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Whether something was erased since: an operation that began then may carry it, and isn't
    /// recorded.
    pub fn has_erased_since(&self, began: Instant) -> bool {
        let erased = *self.erased.lock().unwrap_or_else(PoisonError::into_inner);
        erased.is_some_and(|erased| began <= erased)
    }

    /// Sets the level of a database, and ends a pause; returns what it was.
    pub fn set(&self, database: &str, level: Level) -> Level {
        *self.silence() = None;
        let mut levels = self.levels();
        let before = match level == self.unset_level(database) {
            true => levels.remove(database),
            false => levels.insert(database.to_owned(), level),
        };
        self.note_whether_on(&levels);
        before.unwrap_or_else(|| self.unset_level(database))
    }

    /// Forgets the level of a database that was dropped.
    pub fn forget(&self, database: &str) {
        let mut levels = self.levels();
        levels.remove(database);
        self.note_whether_on(&levels);
    }

    fn silence(&self) -> MutexGuard<'_, Option<Instant>> {
        self.silent_until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn levels(&self) -> MutexGuard<'_, HashMap<String, Level>> {
        // It is whole after each statement.
        self.levels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the collection that a database's operations are recorded in, unless it is there.
///
/// # Errors
/// `IllegalOperation` (20) if it is there and isn't capped; what making a collection may meet.
pub fn make_collection(database: &Database) -> Result<(), Error> {
    let found = database.list_collections()?.into_iter().find(|found| found.name == COLLECTION);
    if let Some(found) = found {
        if found.options.get("capped") != Some(Value::Boolean(true)) {
            let message = format!("{COLLECTION} exists but isn't capped");
            return Err(Error::invalid(Code::IllegalOperation, message));
        }
        return Ok(());
    }
    let options = document! { "capped": true, "size": COLLECTION_BYTES };
    match database.create_collection(COLLECTION, options.view()) {
        Err(error) if error.code == Code::NamespaceExists => Ok(()),
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_without_a_level_have_that_of_the_start() {
        let profiler = Profiler::default();
        assert_eq!(profiler.level("shop"), Level::Off);
        profiler.begin_at(Level::Slow);
        assert_eq!(profiler.level("shop"), Level::Slow);
        assert_eq!(profiler.level("shop@dev"), Level::Off, "a branch has its own");
        assert_eq!(profiler.set("shop", Level::Off), Level::Slow);
        assert_eq!((profiler.level("shop"), profiler.level("other")), (Level::Off, Level::Slow));
        assert_eq!(profiler.set("shop", Level::All), Level::Off);
        assert_eq!(profiler.set("shop@dev", Level::Slow), Level::Off);
        assert_eq!((profiler.level("shop"), profiler.level("shop@dev")), (Level::All, Level::Slow));
        profiler.forget("shop");
        assert_eq!(profiler.level("shop"), Level::Slow);
        profiler.set("shop@dev", Level::Off);
        profiler.begin_at(Level::Off);
        assert!(!profiler.is_on.load(Ordering::Relaxed), "nothing is asked for");
    }

    #[test]
    fn after_a_failed_write_later_profiles_do_not_wait() {
        let profiler = Profiler::default();
        profiler.set("shop", Level::All);
        assert!(!profiler.is_paused());
        profiler.pause();
        assert!(profiler.is_paused());
        profiler.set("shop", Level::All);
        assert!(!profiler.is_paused(), "an operator who sets a level wants it now");
    }
}
