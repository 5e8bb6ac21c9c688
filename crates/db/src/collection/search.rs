//! A search: what is looked for in a collection, and the way to it that the planner chooses.

use std::sync::Arc;

use frond_doc::{Document, ValueBuf};
use frond_query::{Code, Filter};
use frond_tree::Direction;

use crate::collection::covered::NeededPaths;
use crate::collection::plan::{self, Access, Hint, MinMaxBounds, Order, OwnFacts};
use crate::collection::{capped, index_filters};
use crate::definition::ID_INDEX_NAME;
use crate::error::Error;
use crate::frond::Frond;
use crate::reader::Reader;
use crate::request_profile::{self, Plan};
use crate::schema::{COLLECTION_SCANS, Collection, IndexFilter};

/// A search in a collection.
pub(crate) struct Search<'a> {
    /// The filter of the documents.
    pub filter: &'a Filter,
    /// The order.
    pub order: &'a Order,
    /// Index name or key.
    pub hint: Option<&'a ValueBuf>,
    /// The greatest number, those that are passed over counted.
    pub limit: Option<u64>,
    /// The number of documents that are passed over first.
    pub skip: u64,
    /// The parts of them that are needed.
    pub needs: NeededPaths,
    /// The keys of the hinted index between which it searches.
    pub between: MinMaxBounds<'a>,
    /// The projection, as far as it is a part of the query's shape.
    pub projection: Option<Document<'a>>,
    /// The field whose distinct values alone are wanted.
    pub distinct: Option<&'a str>,
    /// The first and the last place of a capped collection's documents.
    pub placed: Option<(u64, u64)>,
}

impl<'a> Search<'a> {
    /// All documents that pass `filter`, whole and in any order.
    pub fn of(filter: &'a Filter, hint: Option<&'a ValueBuf>) -> Search<'a> {
        Search {
            filter,
            order: &Order::Any,
            hint,
            limit: None,
            skip: 0,
            needs: None,
            between: MinMaxBounds::default(),
            projection: None,
            distinct: None,
            placed: None,
        }
    }
}

impl Search<'_> {
    /// Returns the request to this collection.
    ///
    /// # Errors
    /// `BadValue` for a hint on an index that it hasn't.
    pub(crate) fn on(&self, collection: &Collection) -> Result<plan::Request<'_>, Error> {
        let hint = match self.hint {
            Some(hint) => Hint::parse(hint, collection)?,
            None => None,
        };
        let Search { filter, order, limit, skip, needs, between, distinct, .. } = self;
        let (limit, skip, between, distinct) = (*limit, *skip, *between, *distinct);
        let is_by_id = collection.series.is_none();
        let allowed = None;
        Ok(plan::Request {
            filter,
            order,
            hint,
            limit,
            skip,
            needs,
            between,
            distinct,
            is_by_id,
            allowed,
        })
    }
    /// The indexes that may be used, if an operator has said so.
    pub fn allowed(&self, frond: &Frond, collection: &Collection) -> Option<Arc<IndexFilter>> {
        index_filters::allowed(frond, collection, (self.filter, self.order), self.projection)
    }

    /// The ways that were considered and not chosen.
    ///
    /// # Errors
    /// As [`Search::access`].
    pub fn rejected(
        &self,
        frond: &Frond,
        reader: &Reader<'_>,
        collection: &Collection,
    ) -> Result<Vec<Access>, Error> {
        let allowed = self.allowed(frond, collection);
        plan::rejected(reader, collection, self.on(collection)?.among(allowed.as_deref()))
    }

    /// Chooses how to find what is looked for; `None` if there is no collection.
    ///
    /// # Errors
    /// `BadValue` for a hint on an index that there isn't, or for what no plan can do; `Damaged` or
    /// `Unavailable` if an index's size can't be read.
    pub fn access(
        &self,
        frond: &Frond,
        reader: &Reader<'_>,
        collection: Option<Arc<Collection>>,
    ) -> Result<Option<(Arc<Collection>, Access)>, Error> {
        let chosen = self.access_again(frond, reader, collection)?;
        if let Some((collection, access)) = &chosen {
            count_uses(frond, collection, access, self.placed.is_some());
        }
        Ok(chosen)
    }

    /// As [`Search::access`], for a search that has run: its indexes aren't used once more.
    ///
    /// # Errors
    /// As [`Search::access`].
    pub fn access_again(
        &self,
        frond: &Frond,
        reader: &Reader<'_>,
        collection: Option<Arc<Collection>>,
    ) -> Result<Option<(Arc<Collection>, Access)>, Error> {
        let Some(collection) = collection else {
            return match self.filter.text() {
                Some(_) => Err(plan::no_text_index()),
                None => {
                    request_profile::note(|| Plan::Nothing);
                    Ok(None)
                }
            };
        };
        let allowed = self.allowed(frond, &collection);
        let request = self.on(&collection)?.among(allowed.as_deref());
        let access = match self.placed {
            Some(_) if request.filter.text().is_some() => {
                let message = "text and tailable cursor not allowed in same query";
                return Err(Error::invalid(Code::BadValue, message));
            }
            // Between two places nothing but the places is worth reading.
            Some((first, last)) => {
                let mut access = Access::natural(&collection, Direction::Ascending, request);
                for path in &mut access.paths {
                    path.ranges = vec![capped::places(first, last)];
                }
                access
            }
            None => plan::choose(reader, &collection, &OwnFacts::default(), request)?,
        };
        Ok(Some((collection, access)))
    }
}

/// Counts the use of the indexes by which documents are found, or of none: for `$indexStats` and
/// `$collStats`. Tailable cursors, which look for more again and again, are counted elsewhere.
fn count_uses(frond: &Frond, collection: &Collection, access: &Access, is_tailable: bool) {
    for path in &access.paths {
        let name = match path.source {
            plan::Source::Collection | plan::Source::Natural if is_tailable => continue,
            plan::Source::Collection | plan::Source::Natural => COLLECTION_SCANS,
            plan::Source::Id => ID_INDEX_NAME,
            plan::Source::Index(position) => &collection.indexes[position].spec.name,
            plan::Source::Place => match &collection.series {
                Some(series) => &series.index.name,
                None => continue,
            },
        };
        frond.usage().count(collection.uuid, name);
    }
}
