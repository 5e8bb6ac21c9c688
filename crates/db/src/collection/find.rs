//! `find`.

use std::sync::Arc;

use frond_doc::{Document, DocumentBuf, ValueBuf};
use frond_query::expression::Variables;
use frond_query::{Filter, Projection};

use crate::catalog::{CatalogView, Collection};
use crate::collection::plan::{self, Access, Hint, Order, OwnFacts};
use crate::collection::scan::{Found, Scan};
use crate::collection::{Cursor, FindRequest, sort};
use crate::database::Database;
use crate::error::Error;
use crate::reader::Reader;

/// A `find` whose parts are parsed and whose plan is made.
pub(crate) struct Query {
    /// The collection; `None`: there is none, nothing is found.
    pub collection: Option<(Arc<Collection>, Access)>,
    /// Which documents.
    pub filter: Filter,
    /// In which order.
    pub order: Order,
    /// What of them.
    pub projection: Option<Projection>,
}

impl Database {
    /// Finds documents.
    pub fn find(&self, collection: &str, request: &FindRequest) -> Result<Cursor, Error> {
        let reader = self.reader();
        let Query { collection, filter, order, projection } =
            self.query(&reader, collection, request)?;
        let Some((collection, access)) = collection else {
            return Ok(Cursor::empty());
        };
        let in_order = access.gives_order;
        let scan = Scan::new(reader, &collection, access, filter.clone());
        let skip = usize::try_from(request.skip).unwrap_or(usize::MAX);
        let limit =
            request.limit.map_or(usize::MAX, |limit| limit.try_into().unwrap_or(usize::MAX));
        let project = move |found: Result<Found, Error>| -> Result<DocumentBuf, Error> {
            let document = found?.document;
            match &projection {
                Some(projection) => Ok(projection.apply(document.view(), &filter)?),
                None => Ok(document),
            }
        };
        match order {
            Order::By(pattern) if !in_order => {
                let keep = request.limit.map(|_| skip.saturating_add(limit));
                let found = sort::sorted(scan, &pattern, keep)?.into_iter().map(Ok);
                Ok(Cursor::new(found.skip(skip).take(limit).map(project)))
            }
            _ => Ok(Cursor::new(scan.skip(skip).take(limit).map(project))),
        }
    }

    /// Parses a `find` and chooses its plan.
    pub(crate) fn query(
        &self,
        reader: &Reader<'_>,
        collection: &str,
        request: &FindRequest,
    ) -> Result<Query, Error> {
        let filter = self.parse_filter(
            request.filter.as_ref().map(DocumentBuf::view),
            request.variables.as_ref().map(DocumentBuf::view),
        )?;
        let order = Order::parse(request.sort.as_ref().map(DocumentBuf::view))?;
        let projection = request.projection.as_ref().map(DocumentBuf::view);
        let variables = request.variables.as_ref().map(DocumentBuf::view);
        let projection = self.parse_projection(projection, variables)?;
        let hint = request.hint.as_ref();
        let collection = self.access(reader, collection, &filter, &order, hint)?;
        Ok(Query { collection, filter, order, projection })
    }

    /// Finds a collection and chooses how to find its documents that pass `filter`.
    pub(crate) fn access(
        &self,
        reader: &Reader<'_>,
        collection: &str,
        filter: &Filter,
        order: &Order,
        hint: Option<&ValueBuf>,
    ) -> Result<Option<(Arc<Collection>, Access)>, Error> {
        let Some(collection) = self.find_collection(reader, collection)? else {
            return Ok(None);
        };
        let hint = match hint {
            Some(hint) => Hint::parse(hint, &collection)?,
            None => None,
        };
        let own = OwnFacts::default();
        let access = plan::choose(reader, &collection, &own, filter, order, hint)?;
        Ok(Some((collection, access)))
    }

    /// Finds a collection: where it was found before, if that is known to be right.
    fn find_collection(
        &self,
        reader: &Reader<'_>,
        name: &str,
    ) -> Result<Option<Arc<Collection>>, Error> {
        let known = self.known_to(reader);
        if let Some(collection) = known.and_then(|known| known.collection(name)) {
            return Ok(Some(collection));
        }
        let found = CatalogView::open(reader, self)?.collection(name)?.map(Arc::new);
        if let (Some(known), Some(found)) = (known, &found) {
            known.keep_collection(name, found);
        }
        Ok(found)
    }

    /// Evaluates a command's `let`, and notes the time for `$$NOW`.
    pub(crate) fn parse_variables(
        &self,
        variables: Option<&DocumentBuf>,
    ) -> Result<Variables, Error> {
        let variables = variables.map(DocumentBuf::view);
        Ok(Variables::new(self.frond().now_millis(), variables)?)
    }

    /// Parses a projection; `None` if documents go through unchanged.
    pub(crate) fn parse_projection(
        &self,
        projection: Option<Document<'_>>,
        variables: Option<Document<'_>>,
    ) -> Result<Option<Projection>, Error> {
        let Some(projection) = projection.filter(|projection| !projection.is_empty()) else {
            return Ok(None);
        };
        let variables = Variables::new(self.frond().now_millis(), variables)?;
        let projection = Projection::parse(projection)?.with_variables(variables);
        Ok(Some(projection).filter(|projection| !projection.is_identity()))
    }

    /// Parses a filter (`None`: everything passes) and a command's `let`.
    pub(crate) fn parse_filter(
        &self,
        filter: Option<Document<'_>>,
        variables: Option<Document<'_>>,
    ) -> Result<Filter, Error> {
        let Some(filter) = filter.filter(|filter| !filter.is_empty()) else {
            return Ok(Filter::all());
        };
        let variables = Variables::new(self.frond().now_millis(), variables)?;
        Ok(Filter::parse(filter)?.with_variables(variables))
    }
}
