//! The meaning of names to a reader: collections, views, and the buckets of time series.

use std::sync::Arc;

use frond_query::Code;

use crate::catalog::CatalogView;
use crate::database::Database;
use crate::definition::view::{DEPTH_MAX, View};
use crate::error::Error;
use crate::name;
use crate::reader::Reader;
use crate::schema::{Collection, TreeRef};

/// The catalog of a database as a reader sees it: from what was found before where that is known to
/// be right, else by [`CatalogView`].
#[derive(Clone, Copy)]
pub(crate) struct Catalog<'a> {
    reader: &'a Reader<'a>,
    database: &'a Database,
}

impl<'a> Catalog<'a> {
    /// Reads nothing yet.
    pub fn of(reader: &'a Reader<'a>, database: &'a Database) -> Catalog<'a> {
        Catalog { reader, database }
    }

    /// The collection called `name`: also a view, which has its options and no documents.
    ///
    /// # Errors
    /// `CommandNotSupported` (115) for the buckets of a time series; as
    /// [`CatalogView::collection`].
    pub fn collection(&self, name: &str) -> Result<Option<Arc<Collection>>, Error> {
        let Catalog { reader, database } = *self;
        let known = database.known_to(reader);
        // A transaction whose snapshot may move has to read that a collection has no trees of its
        // own yet: in those that it reads nothing changes when it gets some.
        let is_enough = |found: &Arc<Collection>| {
            !reader.may_change() || matches!(found.documents, TreeRef::Live(_))
        };
        if let Some(collection) = known.and_then(|known| known.collection(name)).filter(is_enough) {
            return Ok(Some(collection));
        }
        let catalog = CatalogView::open(reader, database)?;
        let found = catalog.collection(name)?.map(Arc::new);
        // A client that asks for MongoDB's buckets must not take them for empty.
        if found.is_none()
            && let Some(name) = name::of_buckets(name)
            && catalog.collection(name)?.is_some_and(|found| found.series.is_some())
        {
            let message = format!(
                "{} is a time-series collection, and Frond stores no buckets: this is done by its \
                 own name",
                database.namespace(name)
            );
            return Err(Error::invalid(Code::CommandNotSupported, message));
        }
        if let (Some(known), Some(found)) = (known, &found) {
            known.keep_collection(name, found);
        }
        Ok(found)
    }

    /// The view called `name`, if it is one.
    ///
    /// # Errors
    /// As [`Catalog::collection`]; `Damaged` if its options are no view's.
    pub fn view(&self, name: &str) -> Result<Option<View>, Error> {
        let found = self.collection(name)?.filter(|found| found.options.get("viewOn").is_some());
        found.map_or(Ok(None), |found| View::of_options(found.options.view()))
    }

    /// The collection that is read through views that change nothing: `name` itself if it is none.
    /// A stage that must come first searches there, as if it stood in a pipeline over it.
    ///
    /// # Errors
    /// As [`Catalog::view`].
    pub fn behind_bare_views(&self, name: &str) -> Result<String, Error> {
        let mut name = name.to_owned();
        for _ in 0..DEPTH_MAX {
            match self.view(&name)?.filter(View::is_bare) {
                Some(view) => name = view.on,
                None => break,
            }
        }
        Ok(name)
    }

    /// The time series whose buckets have this name, if there is one.
    ///
    /// # Errors
    /// As [`Catalog::collection`].
    pub fn series_of_buckets(&self, buckets: &str) -> Result<Option<Arc<Collection>>, Error> {
        let Some(name) = name::of_buckets(buckets) else { return Ok(None) };
        Ok(self.collection(name)?.filter(|found| found.series.is_some()))
    }

    /// Whether what is read by this name is made of another collection's documents: it is a view,
    /// or a time series' buckets.
    ///
    /// # Errors
    /// As [`Catalog::collection`].
    pub fn is_made(&self, name: &str) -> Result<bool, Error> {
        Ok(self.series_of_buckets(name)?.is_some() || self.view(name)?.is_some())
    }

    /// The collection by whose collation what is read by this name compares.
    ///
    /// # Errors
    /// As [`Catalog::collection`].
    pub fn compared(&self, name: &str) -> Result<Option<Arc<Collection>>, Error> {
        match self.series_of_buckets(name)? {
            Some(series) => Ok(Some(series)),
            None => self.collection(name),
        }
    }
}
