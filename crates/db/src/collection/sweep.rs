//! Finds the documents for a statement that changes many, each document once.
//!
//! 1. All are looked for at one snapshot: so no document is found twice, however the statement
//!    moves it in the index that is walked.
//! 2. The memory that snapshots keep is bounded, so one may expire under a long statement. Then the
//!    rest is looked for at a snapshot of now: behind the last document where they come in the
//!    order of `_id`; else without those that were found, as far as there is memory to know them.

use bytes::Bytes;
use frond_doc::ValueBuf;
use frond_query::{Code, Filter};
use frond_tree::Direction;

use crate::catalog::Catalog;
use crate::collection::plan::{Access, Order, Source};
use crate::collection::scan::seen::SeenDocuments;
use crate::collection::scan::{Row, Scan};
use crate::collection::search::Search;
use crate::database::Database;
use crate::error::Error;

/// The most memory in which documents that were found are remembered.
const VISITED_BYTES_MAX: usize = 64 << 20;
/// The number of times in a row that a snapshot may expire before anything was found.
const EXPIRED_MAX: u32 = 8;

/// The documents that a statement finds.
pub(crate) struct Sweep<'a> {
    database: &'a Database,
    collection: &'a str,
    search: (&'a Filter, Option<&'a ValueBuf>),
    scan: Option<Scan<'a>>,
    /// Whether documents come in the order of `_id`.
    is_ordered: bool,
    visited: Visited,
    expired: u32,
}

/// The documents that were found already.
struct Visited {
    /// All up to this key of `_id`.
    up_to: Option<Bytes>,
    /// These; none if there was no memory for them.
    each: Option<SeenDocuments>,
}

impl<'a> Sweep<'a> {
    /// Begins to look for what passes a filter.
    ///
    /// # Errors
    /// As [`Search::access`].
    pub fn begin(
        database: &'a Database,
        collection: &'a str,
        search: (&'a Filter, Option<&'a ValueBuf>),
    ) -> Result<Sweep<'a>, Error> {
        let each = SeenDocuments::new(search.0.memory().another(VISITED_BYTES_MAX));
        let visited = Visited { up_to: None, each: Some(each) };
        let mut sweep = Sweep {
            database,
            collection,
            search,
            scan: None,
            is_ordered: false,
            visited,
            expired: 0,
        };
        sweep.look_again()?;
        Ok(sweep)
    }

    /// Returns the filter that documents pass: a `$text` in it knows its terms, from the scan. None
    /// if there is no collection.
    pub fn passing_filter(&self) -> Option<Filter> {
        self.scan.as_ref().map(|scan| scan.passing_filter().clone())
    }

    /// Looks for the rest at a snapshot of now.
    fn look_again(&mut self) -> Result<(), Error> {
        let Sweep { database, collection, search: (filter, hint), .. } = *self;
        let reader = database.reader();
        let found = Catalog::of(&reader, database).collection(collection)?;
        let accessed = Search::of(filter, hint).access(database.frond(), &reader, found)?;
        self.scan = accessed.map(|(found, mut access)| {
            self.is_ordered = is_ordered(&access);
            if let Some(key) = self.visited.up_to.as_ref().filter(|_| self.is_ordered) {
                go_on_behind(&mut access, key);
            }
            let scan = Scan::new(reader, &found, access, filter.clone(), &Order::Any);
            scan.for_update(std::iter::empty()).interrupted_by(database.interrupt())
        });
        Ok(())
    }

    /// The next document.
    ///
    /// # Errors
    /// `SnapshotTooOld` if it isn't known any more what was found.
    pub fn next(&mut self) -> Result<Option<Row>, Error> {
        loop {
            let Some(scan) = &mut self.scan else { return Ok(None) };
            match scan.next() {
                None => return Ok(None),
                Some(Ok(row)) if self.visited.contains(&row.id_key) => {}
                Some(Ok(row)) => {
                    self.expired = 0;
                    self.visited.note(&row.id_key, self.is_ordered);
                    return Ok(Some(row));
                }
                Some(Err(error)) if error.code == Code::SnapshotTooOld && self.may_look_again() => {
                    self.expired += 1;
                    self.look_again()?;
                }
                Some(Err(error)) => return Err(error),
            }
        }
    }

    fn may_look_again(&self) -> bool {
        self.expired < EXPIRED_MAX && (self.is_ordered || self.visited.each.is_some())
    }
}

impl Visited {
    fn contains(&self, id_key: &Bytes) -> bool {
        self.up_to.as_ref().is_some_and(|key| id_key <= key)
            || self.each.as_ref().is_some_and(|each| each.contains(id_key))
    }

    fn note(&mut self, id_key: &Bytes, is_ordered: bool) {
        if is_ordered {
            self.up_to = Some(id_key.clone());
        } else if let Some(each) = &mut self.each
            && each.insert(id_key).is_err()
        {
            self.each = None;
        }
    }
}

/// Whether documents come in the order of `_id`.
fn is_ordered(access: &Access) -> bool {
    let [path] = &access.paths[..] else { return false };
    matches!(path.source, Source::Collection | Source::Id) && path.direction == Direction::Ascending
}

/// Leaves out the documents up to a key.
fn go_on_behind(access: &mut Access, key: &Bytes) {
    let behind: Bytes = [key, &[0][..]].concat().into();
    for path in &mut access.paths {
        path.ranges.retain(|range| range.end.as_ref().is_none_or(|end| behind < end));
        for range in &mut path.ranges {
            if range.start.as_ref().is_none_or(|start| *start < behind) {
                range.start = Some(behind.clone());
            }
        }
    }
}
