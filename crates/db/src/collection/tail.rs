//! Following the end of a capped collection: a tailable cursor.
//!
//! A [`Tail`] gives the documents that are there, and then pauses: `next` is `None`. Asked again,
//! it goes on with what was inserted since, from a new snapshot. Places rise in the order of
//! commits ([`crate::collection::capped`]), so nothing is missed and nothing comes twice.
//!
//! It is over when the document that it saw last is gone: what was behind it can't be distinguished
//! from what was removed. One over an empty collection is over at once, as in MongoDB.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use frond_doc::DocumentBuf;
use frond_query::Code;
use frond_tree::Direction;

use crate::catalog::Catalog;
use crate::collection::plan::Order;
use crate::collection::{Cursor, FindRequest, capped};
use crate::database::Database;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::schema::{Collection, TAILABLE_SCANS, TreeRef};

/// The documents of a capped collection that pass a filter, as they come.
pub struct Tail {
    database: Database,
    collection: String,
    request: FindRequest,
    /// The collection's, to notice that another has its name.
    uuid: [u8; 16],
    /// The cursor that is read now.
    current: Option<Cursor>,
    /// The place of the last document that `current` gives, or of the last that was seen.
    last: Option<u64>,
    /// The number of documents that are passed over yet, and how many are given yet.
    skip: u64,
    limit: u64,
    is_over: Arc<AtomicBool>,
}

/// Follows a capped collection.
pub(crate) fn tail(
    database: &Database,
    collection: &str,
    request: &FindRequest,
) -> Result<Tail, Error> {
    let order = Order::parse(request.sort.as_ref().map(DocumentBuf::view))?;
    if !matches!(order, Order::Any | Order::Natural(Direction::Ascending)) {
        let message = "cannot use tailable option with a sort other than {$natural: 1}";
        return Err(Error::invalid(Code::BadValue, message));
    }
    let reader = database.reader();
    let found = Catalog::of(&reader, database).collection(collection)?;
    let (skip, limit) = (request.skip, request.limit.unwrap_or(u64::MAX));
    let mut tail = Tail {
        database: database.clone(),
        collection: collection.to_owned(),
        request: FindRequest {
            skip: 0,
            limit: None,
            sort: None,
            // The command that opens it doesn't last; a `getMore` that waits may be interrupted.
            interrupt: Interrupt::default(),
            ..request.clone()
        },
        uuid: [0; 16],
        current: None,
        last: None,
        skip,
        limit,
        is_over: Arc::default(),
    };
    match found {
        // Nothing can be said of a collection that isn't there yet.
        None => tail.end(),
        Some(found) => {
            if found.options.get("viewOn").is_some() {
                let message = "Tailable cursors are not supported in aggregation.";
                return Err(Error::invalid(Code::InvalidPipelineOperator, message));
            }
            if found.order.is_none() {
                let message = format!(
                    "error processing query: ns={} tailable cursor requested on non capped \
                     collection",
                    database.namespace(collection)
                );
                return Err(Error::invalid(Code::BadValue, message));
            }
            tail.uuid = found.uuid;
            database.frond().usage().count(found.uuid, TAILABLE_SCANS);
            tail.go_on()?;
            if tail.current.is_none() {
                tail.end();
            }
        }
    }
    Ok(tail)
}

impl Tail {
    /// Returns a flag that says, also while the tail is used, whether nothing will come any more.
    pub fn is_over(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_over)
    }

    fn end(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Begins to read what was inserted since, if anything was.
    fn go_on(&mut self) -> Result<(), Error> {
        let Some((order, last)) = self.look()? else { return Ok(()) };
        let first = self.last.map_or(0, |seen| seen + 1);
        if last < first {
            return Ok(());
        }
        debug_assert!(matches!(order, TreeRef::Live(_)));
        self.request.placed = Some((first, last));
        self.current = Some(self.database.find(&self.collection, &self.request)?);
        self.last = Some(last);
        Ok(())
    }

    /// Returns where the order lies, and its last place; `None` if it is empty and was when the
    /// tail began.
    fn look(&self) -> Result<Option<(TreeRef, u64)>, Error> {
        let reader = self.database.reader();
        let found = Catalog::of(&reader, &self.database).collection(&self.collection)?;
        let same = |found: &Arc<Collection>| found.uuid == self.uuid;
        let Some(order) = found.filter(same).and_then(|found| found.order) else {
            let message = format!("collection dropped: {}", self.collection);
            return Err(Error::invalid(Code::Location(175), message));
        };
        if let Some(seen) = self.last
            && !capped::has_place(&reader, order, seen)?
        {
            let message = format!(
                "CollectionScan died due to position in capped collection being deleted. Last seen \
                 record id: RecordId({seen})"
            );
            return Err(Error::invalid(Code::CappedPositionLost, message));
        }
        Ok(capped::last_place(&reader, order)?.map(|last| (order, last)))
    }

    fn step(&mut self) -> Result<Option<DocumentBuf>, Error> {
        loop {
            if self.limit == 0 {
                self.end();
            }
            if self.is_over.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if self.current.is_none() {
                self.go_on()?;
            }
            let Some(current) = &mut self.current else { return Ok(None) };
            let Some(document) = current.next().transpose()? else {
                self.current = None;
                return Ok(None);
            };
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            self.limit -= 1;
            return Ok(Some(document));
        }
    }
}

impl Iterator for Tail {
    type Item = Result<DocumentBuf, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let stepped = self.step();
        if stepped.is_err() {
            self.end();
        }
        stepped.transpose()
    }
}
