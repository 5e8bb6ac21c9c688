//! Frond's engine: trees by their ids, transactions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use frond_engine::{Durability, Engine, EngineError, EngineOptions, ReclaimOptions, Stage, TreeId};
use frond_store::io::Machine;
use frond_tree::{Bounds, ContentRef, Direction, Entry, EntryRef, Tree, TreeFormat, Value};

use crate::document;
use crate::measure;
use crate::target::{Entries, Failure, Put, Session, Settings, Target, VisitEntry, VisitValue};

/// Pages of packs' indexes get such a part of the cache's bytes, on top of them: less than half of
/// what an engine gives them that is told how much memory there is.
const INDEX_SHARE: u64 = 16;
/// How long a transaction waits that lost against another.
const CONFLICT_PAUSE: Duration = Duration::from_micros(20);

/// The slowest commits are shown with the stages that took at least so long.
const SLOW_COUNT: usize = 5;
const SLOW_MILLIS: f64 = 1.0;

/// The engine is at rest if nothing is due and its threads use less than this in such a time, twice
/// in a row.
const QUIET: Duration = Duration::from_millis(5);
const QUIET_CPU_SECONDS: f64 = 0.000_5;

/// The engine and its trees.
pub struct Frond {
    engine: Engine,
    trees: Vec<TreeId>,
    description: String,
    conflicts: AtomicU64,
}

impl Frond {
    /// Opens an empty directory and makes the trees.
    pub fn open(settings: &Settings<'_>) -> Result<Frond, Failure> {
        let usual = EngineOptions::default();
        let options = EngineOptions {
            cache_bytes: settings.cache_bytes,
            index_cache_bytes: usual.index_cache_bytes.max(settings.cache_bytes / INDEX_SHARE),
            memtable_bytes_max: usual.memtable_bytes_max.min(settings.write_buffer_bytes),
            ..usual
        };
        let engine = Engine::open(&Machine::system(settings.directory)?, options)?;
        let mut trees = Vec::new();
        let mut transaction = engine.begin();
        for position in 0..settings.tree_count {
            let tree = engine.reserve_tree_id();
            let empty = Tree::empty(&**engine.store(), format_of(&engine, position))?;
            transaction.set_base(tree, empty)?;
            trees.push(tree);
        }
        transaction.commit(Durability::Synced)?;
        let description = format!(
            "Frond {}: nodes of {} KB, memtable {} MB",
            env!("CARGO_PKG_VERSION"),
            engine.local_format().chunk_bytes_target >> 10,
            options.memtable_bytes_max >> 20
        );
        Ok(Frond { engine, trees, description, conflicts: AtomicU64::new(0) })
    }

    /// The engine itself, for what only Frond can do.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The trees.
    pub fn trees(&self) -> &[TreeId] {
        &self.trees
    }

    /// Gives `tree` a base of sorted entries.
    pub fn load_tree(
        &self,
        tree: TreeId,
        format: TreeFormat,
        entries: &mut Entries<'_>,
    ) -> Result<(), Failure> {
        let mut entries =
            entries.map(|(key, value)| Ok(Entry { key, value: Value::inline(value) }));
        // Begun first: it keeps what is built from being collected before it is a base.
        let mut transaction = self.engine.begin();
        let base = Tree::load(&**self.engine.store(), format, &mut entries)?;
        transaction.set_base(tree, base)?;
        transaction.commit(Durability::Synced)?;
        Ok(())
    }
}

/// As collections choose them: trees that hold documents, and indexes.
fn format_of(engine: &Engine, position: usize) -> TreeFormat {
    match position {
        document::PRIMARY | document::CLUSTERED => engine.local_format(),
        _ => engine.local_format().for_scattered_edits(),
    }
}

impl Target for Frond {
    fn description(&self) -> String {
        self.description.clone()
    }

    fn session(&self) -> Result<Box<dyn Session + '_>, Failure> {
        Ok(Box::new(FrondSession(self)))
    }

    fn rest(&self) -> Result<(), Failure> {
        self.engine.flush()?;
        let mut quiet = 0;
        while quiet < 2 {
            let before = measure::cpu_seconds_of_threads()?;
            std::thread::sleep(QUIET);
            let used = measure::cpu_seconds_of_threads()? - before;
            let is_quiet = used <= QUIET_CPU_SECONDS && self.engine.is_at_rest()?;
            quiet = if is_quiet { quiet + 1 } else { 0 };
        }
        Ok(())
    }

    fn fold_all(&self) -> Result<bool, Failure> {
        self.engine.checkpoint()?;
        Ok(true)
    }

    fn pack(&self) -> Result<bool, Failure> {
        self.engine.reclaim(ReclaimOptions { thorough: true, ..ReclaimOptions::default() })?;
        Ok(true)
    }

    fn load(&self, tree: usize, entries: &mut Entries<'_>) -> Result<(), Failure> {
        self.load_tree(self.trees[tree], format_of(&self.engine, tree), entries)
    }

    fn counters(&self) -> Vec<(String, f64)> {
        let (engine, store) = (self.engine.counters(), self.engine.store().counters());
        let mut counters = vec![
            ("log MB".to_owned(), engine.log_bytes as f64 / 1e6),
            ("folds".to_owned(), engine.folds as f64),
            ("sync of a group, p99, ms".to_owned(), engine.sync_micros.quantile(0.99) as f64 / 1e3),
            ("sync of a group, most, ms".to_owned(), engine.sync_micros.quantile(1.0) as f64 / 1e3),
            ("flush, most, ms".to_owned(), engine.flush_micros.quantile(1.0) as f64 / 1e3),
            ("step or merge, most, ms".to_owned(), engine.work_micros.quantile(1.0) as f64 / 1e3),
            (
                "delay of a commit, most, ms".to_owned(),
                engine.delay_micros.quantile(1.0) as f64 / 1e3,
            ),
            ("delays, s".to_owned(), engine.delay_micros.sum as f64 / 1e6),
            ("flushes".to_owned(), engine.flushes as f64),
            ("runs written".to_owned(), engine.runs_written as f64),
            ("steps of folds".to_owned(), engine.pass_steps as f64),
            ("merges of runs".to_owned(), engine.merges as f64),
            ("conflicts".to_owned(), self.conflicts.load(Ordering::Relaxed) as f64),
            ("commits a sync".to_owned(), engine.commits as f64 / engine.log_syncs.max(1) as f64),
            ("chunks written".to_owned(), store.chunks_written as f64),
            ("chunk MB before compression".to_owned(), store.bytes_put as f64 / 1e6),
            ("chunk MB written".to_owned(), store.bytes_written as f64 / 1e6),
            ("of these for runs".to_owned(), store.bytes_brief as f64 / 1e6),
            ("of these moved by collections".to_owned(), store.bytes_moved as f64 / 1e6),
            ("run MB before compression, flushed".to_owned(), engine.bytes_flushed as f64 / 1e6),
            ("run MB before compression, merged".to_owned(), engine.bytes_merged as f64 / 1e6),
            ("chunks read".to_owned(), store.chunks_read as f64),
            ("chunks fetched".to_owned(), store.chunks_fetched as f64),
        ];
        for (position, slow) in self.engine.slowest_commits().iter().take(SLOW_COUNT).enumerate() {
            counters.push((
                format!("slow commit {}: began after s", position + 1),
                slow.begun.as_secs_f64(),
            ));
            for stage in Stage::ALL {
                let millis = slow.in_stage(stage).as_secs_f64() * 1e3;
                let name = format!("slow commit {}: {}, ms", position + 1, stage.name());
                counters.extend((SLOW_MILLIS <= millis).then_some((name, millis)));
            }
        }
        counters
    }
}

struct FrondSession<'a>(&'a Frond);

impl FrondSession<'_> {
    fn try_write(&self, puts: &[Put]) -> Result<(), EngineError> {
        let mut transaction = self.0.engine.begin();
        for put in puts {
            let tree = self.0.trees[put.tree];
            transaction.put(tree, put.key.clone(), Value::inline(put.value.clone()))?;
        }
        transaction.commit(Durability::Synced)?;
        Ok(())
    }
}

impl Session for FrondSession<'_> {
    fn write(&mut self, puts: &[Put]) -> Result<(), Failure> {
        loop {
            match self.try_write(puts) {
                Err(EngineError::Conflict { .. }) => {
                    self.0.conflicts.fetch_add(1, Ordering::Relaxed);
                    // The other one becomes visible with the next sync: no use before.
                    std::thread::sleep(CONFLICT_PAUSE);
                }
                done => return Ok(done?),
            }
        }
    }

    fn get(
        &mut self,
        tree: usize,
        key: &[u8],
        visit: &mut VisitValue<'_>,
    ) -> Result<bool, Failure> {
        Ok(self.0.engine.snapshot().look(self.0.trees[tree], key, visit)?.is_some())
    }

    fn range(
        &mut self,
        tree: usize,
        from: &[u8],
        visit: &mut VisitEntry<'_>,
    ) -> Result<(), Failure> {
        let snapshot = self.0.engine.snapshot();
        let bounds = Bounds { start: Some(Bytes::copy_from_slice(from)), end: None };
        let mut cursor = snapshot.range(self.0.trees[tree], bounds, Direction::Ascending)?;
        while cursor.step()? {
            let goes_on = match cursor.entry_ref() {
                Some(EntryRef { key, content: ContentRef::Inline(bytes), .. }) => visit(key, bytes),
                _ => {
                    let entry = cursor.entry().ok_or("the cursor stands nowhere")?;
                    visit(&entry.key, &snapshot.read(&entry.value)?)
                }
            };
            if !goes_on {
                break;
            }
        }
        Ok(())
    }
}
