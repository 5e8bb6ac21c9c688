//! Indexes that are being built while writers go on, until a transaction publishes them.
//!
//! 1. *Build*: the documents are folded as they are now, and the indexes built from that tree in
//!    bounded memory ([`Builder`]).
//! 2. *Rounds*: each brings the indexes from the last round's snapshot to one of now. Which
//!    documents were written in between the memtables show; if part of it was flushed, both moments
//!    are folded and compared. Changes of an index lie beside its tree, and go into it when there
//!    are many of them. Many documents are filed part by part, so that memory is bounded; for a
//!    unique index the entries that go are taken away first, then those that come are brought, so
//!    that a key may pass from one document to another. A round has to do what was written during
//!    the one before, so they become shorter, until [`WRITES_LEFT`] are left.
//! 3. Where a round isn't half of the one before, writers come faster than rounds: they are slowed
//!    ([`Throttle`]), twice as much each time, and in a long one again and again ([`Pace`]), there
//!    by 15 ms at once at most.
//! 4. *The last round* is made by the transaction that publishes, with the collection's latch
//!    closed: it has a few hundred documents to read at most, and puts what lies beside the trees
//!    over them as ordinary writes. If there is more to do it gives up, opens the latch and another
//!    round comes first.
//!
//! *Unique indexes*: each round looks at all documents as they were at one moment. Two that have
//! one key at such a moment end the build, though one of them may be gone later.
//!
//! A prepared index is part of no collection until it is published: if the build ends before that,
//! no reader has seen any of it.

use std::time::{Duration, Instant};

use bytes::Bytes;
use frond_engine::{Snapshot, TreeId};
use frond_query::{Code, Collation, text};
use frond_store::io::steady_now;
use frond_tree::{Change, Tree, Value};

use crate::catalog::CatalogView;
use crate::catalog::build::Builder;
use crate::catalog::changed_entries::{self, Edited, ExistingIndex, Step};
use crate::catalog::indexes::{is_known, missing_indexes};
use crate::contention::Throttle;
use crate::database::Database;
use crate::definition::{IndexSpec, view};
use crate::error::Error;
use crate::frond::{Frond, Notice};
use crate::interrupt::Interrupt;
use crate::reader::Reader;
use crate::schema::{Collection, TreeRef};

/// The number of documents in a round after which, or after fewer, the next is the last.
const WRITES_LEFT: u64 = 256;
/// The last round reads no more documents than this: some milliseconds.
const WRITES_LAST_MAX: usize = 512;
/// The number of writes above which they are found by comparing trees: names of so many keys take
/// some 10 MB.
const WRITES_BY_KEY_MAX: usize = 100_000;
/// The number of entries beside the trees above which those go into them: the rest is written with
/// the latch closed.
const ENTRIES_BESIDE_MAX: usize = 1_024;
/// The number of entries that wait beside the trees at most while a round files part by part,
/// unless their bytes are too many: the more go into a tree at once, the fewer times each of its
/// leaves is written.
const ENTRIES_GATHERED_MAX: usize = 1 << 16;
const BYTES_GATHERED_MAX: u64 = 16 << 20;
/// Documents that changed are filed together up to so many, and so many bytes of them.
const PART_COUNT_MAX: usize = 4_096;
const PART_BYTES_MAX: u64 = 8 << 20;

/// Rounds that are shorter than this aren't too long.
const TIGHTEN_AFTER_MIN: Duration = Duration::from_millis(100);

/// Indexes of a collection that are being built.
pub(crate) struct Prepared<'a> {
    database: &'a Database,
    /// The collection's name.
    name: &'a str,
    interrupt: &'a Interrupt,
    /// The collection's.
    uuid: [u8; 16],
    documents: Documents,
    indexes: Vec<UnfinishedIndex>,
    /// The bytes of the edits that lie over the trees, keys and values.
    bytes_beside: u64,
    /// Whether the trees are durable.
    is_synced: bool,
}

/// The documents that were filed.
enum Documents {
    /// All of a tree.
    Whole(Tree),
    /// Those of a tree of the engine, at a moment.
    At(Snapshot, TreeId),
}

/// An index that is being built.
pub(crate) struct UnfinishedIndex {
    pub spec: IndexSpec,
    pub tree: Tree,
    /// The edits that lie over the tree.
    pub over: Edited,
}

/// Slows writers while a round takes longer than it should.
struct Pace<'t, 'c> {
    throttle: &'t mut Throttle<'c>,
    began: Instant,
    /// The time when they are slowed next, since then, and how much later after that.
    due: Duration,
    every: Duration,
}

impl<'t, 'c> Pace<'t, 'c> {
    /// Begins a round that should take no longer than `due`.
    fn begin(throttle: &'t mut Throttle<'c>, due: Duration) -> Pace<'t, 'c> {
        let every = (due / 4).max(TIGHTEN_AFTER_MIN);
        Pace { throttle, began: steady_now(), due: due.max(every), every }
    }

    fn filed_part(&mut self) {
        if self.due <= self.began.elapsed() {
            self.throttle.tighten_gently();
            self.due += self.every;
        }
    }
}

impl<'a> Prepared<'a> {
    /// The index that `spec` defines.
    pub fn index(&self, spec: &IndexSpec) -> Option<&UnfinishedIndex> {
        self.indexes.iter().find(|growing| growing.spec == *spec)
    }

    /// Whether a crash leaves what was built, as it must before a transaction names it.
    pub fn is_durable(&self) -> bool {
        self.is_synced
    }

    /// Whether these are the indexes `wanted` of `collection`.
    pub fn is_of(&self, collection: &Collection, wanted: &[IndexSpec]) -> bool {
        self.uuid == collection.uuid && wanted.iter().all(|spec| self.index(spec).is_some())
    }

    /// Builds those of `specs` that are missing, unless `prepared` has them, and catches up with
    /// writers. `None` if there is no collection, or nothing to build.
    ///
    /// # Errors
    /// The error that ends the build: a key that is there twice, a damaged document, an
    /// interruption.
    pub fn caught_up(
        (database, name): (&'a Database, &'a str),
        specs: &[IndexSpec],
        mut prepared: Option<Prepared<'a>>,
        throttle: &mut Throttle<'_>,
        interrupt: &'a Interrupt,
    ) -> Result<Option<Prepared<'a>>, Error> {
        let engine = database.frond().engine();
        let mut last = None;
        // A build before this was caught up with once.
        let mut lasted = Duration::ZERO;
        loop {
            interrupt.check()?;
            let snapshot = engine.snapshot();
            let reader = Reader::at(snapshot.clone());
            let Some(found) = CatalogView::open(&reader, database)?.collection(name)? else {
                return Ok(None);
            };
            drop(reader);
            view::refuse(found.options.view(), &database.namespace(name))?;
            let wanted = missing_indexes(&found.indexes, &in_collection(specs, &found)?)?;
            if wanted.is_empty() {
                return Ok(None);
            }
            let Some(built) = prepared.as_mut().filter(|built| built.is_of(&found, &wanted)) else {
                let (of, began) = ((database, name), steady_now());
                prepared = Some(Prepared::build(of, &found, wanted, snapshot, interrupt)?);
                lasted = began.elapsed();
                continue;
            };
            let mut pace = Pace::begin(throttle, lasted / 2);
            let count = built.round(&snapshot, found.documents, &mut || pace.filed_part())?;
            lasted = pace.began.elapsed();
            if count <= WRITES_LEFT && built.is_synced {
                return Ok(prepared);
            }
            if last.is_some_and(|last| last < 2 * count) && count > WRITES_LEFT {
                throttle.tighten();
            }
            last = Some(count);
            built.lower()?;
        }
    }

    /// Builds indexes of the documents as they are in `snapshot`.
    fn build(
        (database, name): (&'a Database, &'a str),
        collection: &Collection,
        specs: Vec<IndexSpec>,
        snapshot: Snapshot,
        interrupt: &'a Interrupt,
    ) -> Result<Prepared<'a>, Error> {
        let frond = database.frond();
        let documents = whole(frond, &snapshot, collection.documents)?;
        drop(snapshot);
        let count = documents.count(&**frond.engine().store())?;
        let names: Vec<String> = specs.iter().map(|spec| spec.name.clone()).collect();
        let described = names.join(", ");
        let total = count.saturating_mul(specs.len() as u64);
        let namespace = &database.namespace(name);
        let notice = |what: &str| {
            let line = format!("index build of {namespace}: {described}: {what}");
            frond.notice(Notice::IndexBuild, &line);
        };
        notice(&format!("{count} documents"));
        let running = frond.builds().begin(namespace.clone(), names, total);
        let (format, progress) = (documents.format, Some(&*running.progress));
        let builder = Builder { frond, format, namespace, interrupt, progress };
        let mut indexes = Vec::new();
        for spec in specs {
            let tree = builder.index_over(documents, &spec)?;
            indexes.push(UnfinishedIndex { spec, tree, over: Edited::new() });
        }
        notice("built");
        let (uuid, documents) = (collection.uuid, Documents::Whole(documents));
        let (bytes_beside, is_synced) = (0, false);
        Ok(Prepared {
            database,
            name,
            interrupt,
            uuid,
            documents,
            indexes,
            bytes_beside,
            is_synced,
        })
    }

    /// Brings indexes to what `snapshot` shows; returns how many documents had to be looked at.
    fn round(
        &mut self,
        snapshot: &Snapshot,
        documents: TreeRef,
        filed_part: &mut dyn FnMut(),
    ) -> Result<u64, Error> {
        let by_key = self.round_by_key(snapshot, documents, WRITES_BY_KEY_MAX, filed_part)?;
        if let Some(count) = by_key {
            return Ok(count);
        }
        let frond = self.database.frond();
        let before = match &self.documents {
            Documents::Whole(tree) => *tree,
            Documents::At(before, id) => whole(frond, before, TreeRef::Live(*id))?,
        };
        let after = whole(frond, snapshot, documents)?;
        let store = frond.engine().store();
        let changes = || before.diff(store, &after).map(|change| Ok(change?));
        let count = self.file_all(changes, filed_part)?;
        self.documents = match documents {
            TreeRef::Committed(tree) => Documents::Whole(tree),
            TreeRef::Live(id) => Documents::At(snapshot.clone(), id),
        };
        Ok(count)
    }

    /// As `round`, if memtables show what was written and that isn't more than `count_max`.
    fn round_by_key(
        &mut self,
        snapshot: &Snapshot,
        documents: TreeRef,
        count_max: usize,
        filed_part: &mut dyn FnMut(),
    ) -> Result<Option<u64>, Error> {
        let (before, id) = match (&self.documents, documents) {
            (Documents::At(before, id), TreeRef::Live(now)) if *id == now => (before.clone(), now),
            (Documents::Whole(before), TreeRef::Committed(now)) if *before == now => {
                return Ok(Some(0));
            }
            _ => return Ok(None),
        };
        let Some(keys) = snapshot.keys_written_since(&before, id, count_max)? else {
            return Ok(None);
        };
        let change = |key: &Bytes| {
            let (from, to) = (before.get(id, key)?, snapshot.get(id, key)?);
            Ok(Change { key: key.clone(), from, to })
        };
        let count = self.file_all(|| keys.iter().map(change), filed_part)?;
        self.documents = Documents::At(snapshot.clone(), id);
        Ok(Some(count))
    }

    /// Files what changed, in parts where that is much, and calls `filed_part` after each; returns
    /// how many documents that were.
    fn file_all<I: Iterator<Item = Result<Change, Error>>>(
        &mut self,
        changes: impl Fn() -> I,
        filed_part: &mut dyn FnMut(),
    ) -> Result<u64, Error> {
        let mut first = changes();
        let part = next_part(&mut first)?;
        let Some(next) = first.next().transpose()? else {
            let count = part.len() as u64;
            self.file(part, Step::Whole)?;
            return Ok(count);
        };
        drop((part, next, first));
        // Elsewhere the document's `_id` is part of each key, and no two documents meet.
        let is_unique = self.indexes.iter().any(|growing| growing.spec.unique);
        let steps: &[Step] = if is_unique { &[Step::Free, Step::Bring] } else { &[Step::Whole] };
        let mut count = 0;
        for &step in steps {
            count = 0;
            let mut left = changes();
            loop {
                let part = next_part(&mut left)?;
                if part.is_empty() {
                    break;
                }
                count += part.len() as u64;
                self.file(part, step)?;
                if self.count_beside() > ENTRIES_GATHERED_MAX
                    || self.bytes_beside > BYTES_GATHERED_MAX
                {
                    self.sink()?;
                }
                self.interrupt.check()?;
                filed_part();
            }
        }
        Ok(count)
    }

    /// Files what changed, beside the trees.
    fn file(&mut self, changes: Vec<Change>, step: Step) -> Result<(), Error> {
        let indexes: Vec<ExistingIndex<'_>> = self
            .indexes
            .iter()
            .map(|growing| ExistingIndex {
                spec: &growing.spec,
                tree: growing.tree,
                over: &growing.over,
            })
            .collect();
        let store = self.database.frond().engine().store();
        let changes = changes.into_iter().map(Ok::<Change, Error>);
        let namespace = self.database.namespace(self.name);
        let (edited, duplicates) =
            changed_entries::edits(store, &indexes, changes, step, &namespace)?;
        if let Some(duplicate) = duplicates.into_iter().next() {
            return Err(duplicate.error);
        }
        assert_eq!(edited.len(), self.indexes.len(), "each index has its edits");
        for (growing, edited) in self.indexes.iter_mut().zip(edited) {
            let bytes = |(key, value): (&Bytes, &Option<Value>)| {
                key.len() as u64 + value.as_ref().map_or(0, Value::bytes)
            };
            self.bytes_beside += edited.iter().map(bytes).sum::<u64>();
            growing.over.extend(edited);
        }
        Ok(())
    }

    /// Returns how many entries lie beside the trees.
    fn count_beside(&self) -> usize {
        self.indexes.iter().map(|growing| growing.over.len()).sum()
    }

    /// Puts what lies beside the trees into them.
    fn sink(&mut self) -> Result<(), Error> {
        self.bytes_beside = 0;
        let changed = self.indexes.iter_mut().map(|growing| {
            let over = std::mem::take(&mut growing.over);
            (growing.tree, changed_entries::as_edits(over))
        });
        let trees = Tree::apply_many(&**self.database.frond().engine().store(), changed.collect())?;
        assert_eq!(trees.len(), self.indexes.len(), "each index has its tree");
        for (growing, tree) in self.indexes.iter_mut().zip(trees) {
            growing.tree = tree;
        }
        self.is_synced = false;
        Ok(())
    }

    /// Puts what lies beside the trees into them, if that is much, and makes them durable: neither
    /// is left to the transaction that publishes them.
    fn lower(&mut self) -> Result<(), Error> {
        if self.count_beside() > ENTRIES_BESIDE_MAX {
            self.sink()?;
        }
        if !self.is_synced {
            self.database.frond().engine().store().sync()?;
            self.is_synced = true;
        }
        Ok(())
    }

    /// The last round, at the snapshot of the transaction that publishes. False: there is more to
    /// do than writers should wait for.
    ///
    /// # Errors
    /// As [`Prepared::caught_up`].
    pub fn last_round(&mut self, snapshot: &Snapshot, documents: TreeRef) -> Result<bool, Error> {
        let done = self.round_by_key(snapshot, documents, WRITES_LAST_MAX, &mut || {})?;
        Ok(done.is_some() && self.is_synced)
    }
}

/// The documents in `snapshot`, as a tree.
fn whole(frond: &Frond, snapshot: &Snapshot, documents: TreeRef) -> Result<Tree, Error> {
    match documents {
        TreeRef::Committed(tree) => Ok(tree),
        TreeRef::Live(id) => {
            let folded = frond.engine().fold(snapshot, &[id])?;
            Ok(*folded.first().expect("one tree was asked for"))
        }
    }
}

/// The next changes, as many as are filed together; none: there are no more.
fn next_part(
    changes: &mut impl Iterator<Item = Result<Change, Error>>,
) -> Result<Vec<Change>, Error> {
    let (mut part, mut bytes) = (Vec::new(), 0);
    while part.len() < PART_COUNT_MAX && bytes < PART_BYTES_MAX {
        let Some(change) = changes.next().transpose()? else { break };
        let documents = [&change.from, &change.to];
        bytes += documents.into_iter().flatten().map(Value::bytes).sum::<u64>();
        part.push(change);
    }
    Ok(part)
}

/// The definitions as indexes of the collection have them, without the one that is a time series'
/// own tree.
pub(super) fn in_collection(
    specs: &[IndexSpec],
    collection: &Collection,
) -> Result<Vec<IndexSpec>, Error> {
    let collation = collection.collation()?;
    let specs: Vec<IndexSpec> = specs.iter().map(|spec| spec.in_collection(&collation)).collect();
    for spec in &specs {
        spec.shape()?;
        refuse_other_id_collation(spec, &collation)?;
    }
    let Some(series) = &collection.series else { return Ok(specs) };
    let own: Vec<&IndexSpec> = series.listed_index().into_iter().collect();
    let mut wanted = Vec::with_capacity(specs.len());
    for spec in specs {
        series.check_index(&spec)?;
        if !is_known(&own, &spec)? {
            wanted.push(spec);
        }
    }
    Ok(wanted)
}

/// Refuses an index of `_id` that compares otherwise than its collection.
pub(super) fn refuse_other_id_collation(
    spec: &IndexSpec,
    collation: &Collation,
) -> Result<(), Error> {
    let own = spec.collation.as_ref().unwrap_or(collation);
    if !spec.is_id() || own == collation {
        return Ok(());
    }
    let text_of = |collation: &Collation| match collation.specification() {
        Some(specification) => text::value(frond_doc::Value::Document(specification)),
        None => r#"{ locale: "simple" }"#.to_owned(),
    };
    let message = format!(
        "The _id index must have the same collation as the collection. Index collation: {}, \
         collection collation: {}",
        text_of(own),
        text_of(collation)
    );
    Err(Error::invalid(Code::BadValue, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contention::{Contention, Scope};

    #[test]
    fn a_round_that_takes_too_long_slows_writers_more_and_more() {
        let contention = Contention::new();
        let mut throttle = contention.throttle(Scope::collection("shop", "main", "things"));
        let mut pace = Pace::begin(&mut throttle, Duration::from_secs(3600));
        pace.filed_part();
        assert!(pace.throttle.delay(1).is_zero(), "it has only begun");
        pace.began -= Duration::from_secs(3600);
        pace.filed_part();
        let first = pace.throttle.delay(1);
        pace.filed_part();
        assert_eq!(pace.throttle.delay(1), first, "not for each part");
        for _ in 0..3 {
            pace.began -= Duration::from_secs(900);
            pace.filed_part();
        }
        assert_eq!(pace.throttle.delay(1), 8 * first);
        for _ in 0..20 {
            pace.began -= Duration::from_secs(900);
            pace.filed_part();
        }
        assert_eq!(pace.throttle.delay(usize::MAX), Duration::from_millis(15));
    }
}
