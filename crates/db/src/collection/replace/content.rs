//! The documents of `$out`, sorted by the keys of their `_id`s in bounded memory.
//!
//! Documents that don't fit go to temporary files ([`Sorter`]), with references for values that are
//! stored already.

use bytes::Bytes;
use frond_doc::{DocumentBuf, Value as BsonValue, key};
use frond_query::Collation;
use frond_query::pipeline::{Resources, Sorted, Sorter};
use frond_store::ChunkStore;
use frond_tree::{Entry, Tree, TreeFormat};

use crate::catalog::duplicate;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::large::{self, value_of_referring};
use crate::timeseries::Series;

/// The name of the sorter, in messages.
const OUT: &str = "$out";
/// The documents between two checks whether to stop.
const CHECK_COUNT: usize = 64;

/// The content that a collection will hold. Takes documents in any order.
pub(in crate::collection) struct Content<'r> {
    sorter: Sorter<'r>,
    /// The time series, if the collection is one.
    series: Option<Series>,
    interrupt: &'r Interrupt,
    count: usize,
}

impl<'r> Content<'r> {
    /// Begins with none.
    pub fn new(
        resources: &'r Resources,
        interrupt: &'r Interrupt,
        series: Option<Series>,
    ) -> Content<'r> {
        Content { sorter: Sorter::new(OUT, resources, usize::MAX), series, interrupt, count: 0 }
    }

    /// Returns the time series, if the collection is one.
    pub fn series(&self) -> Option<&Series> {
        self.series.as_ref()
    }

    /// Takes a document, which has an `_id`.
    ///
    /// # Errors
    /// An error of writing a temporary file; the error that ends the command; `BadValue` (2) for a
    /// document that is no point of a time series.
    pub fn add(&mut self, document: &DocumentBuf) -> Result<(), Error> {
        let key = match &self.series {
            Some(series) => {
                series.check(document.view())?;
                series.place(document.view(), 0)
            }
            None => key::of_id(document.get("_id").unwrap_or(BsonValue::Null)),
        };
        self.count += 1;
        if self.count.is_multiple_of(CHECK_COUNT) {
            self.interrupt.check()?;
        }
        Ok(self.sorter.add_view(&key, document.view())?)
    }

    /// Puts the tree of all documents into the store.
    ///
    /// # Errors
    /// `DuplicateKey` if two have one `_id`.
    pub fn load(
        self,
        store: &dyn ChunkStore,
        format: TreeFormat,
        (namespace, collation): (&str, &Collation),
    ) -> Result<Tree, Error> {
        let mut sorted = self.sorter.finish()?;
        let mut before: Option<Bytes> = None;
        let (mut count, mut same_count) = (0_usize, 0_i64);
        // The tree's errors can't hold ours: its entries end, and what comes of them is dropped.
        let mut failure = None;
        let mut next = |sorted: &mut Sorted| -> Result<Option<Entry>, Error> {
            count += 1;
            if count.is_multiple_of(CHECK_COUNT) {
                self.interrupt.check()?;
            }
            let Some((key, document)) = sorted.next().transpose()? else { return Ok(None) };
            let value = value_of_referring(store, format, &document)?;
            same_count = if before.as_ref() == Some(&key) { same_count + 1 } else { 0 };
            if let Some(series) = self.series.as_ref().filter(|_| 0 < same_count) {
                let key = series.place(document.view(), same_count);
                return Ok(Some(Entry { key, value }));
            }
            if 0 < same_count {
                let document = large::read_document(store, &value)?;
                return Err(duplicate::of_id(namespace, collation, document.view()));
            }
            before = Some(key.clone());
            Ok(Some(Entry { key, value }))
        };
        let mut entries = std::iter::from_fn(|| match next(&mut sorted) {
            Ok(entry) => entry.map(Ok),
            Err(error) => {
                failure = Some(error);
                None
            }
        });
        let loaded = Tree::load(store, format, &mut entries);
        match failure {
            Some(error) => Err(error),
            None => Ok(loaded?),
        }
    }
}
