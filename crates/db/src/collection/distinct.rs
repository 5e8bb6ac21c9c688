//! `distinct`.

use std::collections::HashSet;

use frond_doc::path::Path;
use frond_doc::{Document, DocumentBuf, Value, ValueBuf};
use frond_query::{Code, Collation};

use crate::collection::FindRequest;
use crate::collection::find::{Search, collation_of};
use crate::collection::plan::Order;
use crate::collection::scan::Scan;
use crate::database::Database;
use crate::error::Error;

/// The answer is one document, so its values have to fit into one.
const DISTINCT_BYTES_MAX: usize = frond_doc::document::DOCUMENT_BYTES_MAX;
/// MongoDB's code of an answer that doesn't.
const DISTINCT_TOO_BIG: Code = Code::Location(17217);

/// The values met so far.
#[derive(Default)]
struct Values {
    collation: Collation,
    seen: HashSet<Vec<u8>>,
    values: Vec<ValueBuf>,
    bytes: usize,
}

impl Database {
    /// The distinct values at `path` (elements of arrays on their own), in order of their first
    /// appearance. Values that are equal, numbers of different types too, count once.
    pub fn distinct(
        &self,
        collection: &str,
        path: &str,
        filter: Option<Document<'_>>,
        hint: Option<&ValueBuf>,
    ) -> Result<Vec<ValueBuf>, Error> {
        let request = FindRequest {
            filter: filter.map(|filter| filter.to_buf()),
            hint: hint.cloned(),
            ..FindRequest::default()
        };
        self.distinct_found(collection, path, &request)
    }

    /// The distinct values at `path` of what a `find` would give; under a collation, of strings
    /// that are equal the one that came first.
    pub fn distinct_found(
        &self,
        collection: &str,
        path: &str,
        request: &FindRequest,
    ) -> Result<Vec<ValueBuf>, Error> {
        let reader = self.reader();
        if self.view(&reader, collection)?.is_some() {
            let view = self.find_collection(&reader, collection)?;
            let collation = collation_of(request.collation.as_ref(), view.as_deref())?;
            let found = self.filter_view(collection, request)?;
            return values_at(path, &collation, found);
        }
        let found = self.find_collection(&reader, collection)?;
        let collation = collation_of(request.collation.as_ref(), found.as_deref())?;
        let variables = self.parse_variables(request.variables.as_ref())?;
        let variables = variables.with_collation(collation.clone());
        let filter =
            self.parse_filter(request.filter.as_ref().map(DocumentBuf::view), &variables)?;
        let search = Search {
            needs: Some(vec![path.to_owned()]),
            ..Search::of(&filter, request.hint.as_ref())
        };
        let Some((collection, access)) = self.access(&reader, found, search)? else {
            return Ok(Vec::new());
        };
        let scan = Scan::new(reader, &collection, access, filter, &Order::Any);
        values_at(path, &collation, scan.map(|found| Ok(found?.document)))
    }
}

fn values_at(
    path: &str,
    collation: &Collation,
    documents: impl Iterator<Item = Result<DocumentBuf, Error>>,
) -> Result<Vec<ValueBuf>, Error> {
    let path = Path::new(path);
    let mut values = Values { collation: collation.clone(), ..Values::default() };
    for document in documents {
        path.visit(document?.view(), &mut |value| {
            match value {
                Some(Value::Array(array)) => {
                    array.iter().for_each(|element| values.add(element));
                }
                Some(value) => values.add(value),
                None => {}
            }
            false
        });
        if values.bytes > DISTINCT_BYTES_MAX {
            return Err(Error::invalid(DISTINCT_TOO_BIG, "distinct too big, 16mb cap"));
        }
    }
    Ok(values.values)
}

impl Values {
    fn add(&mut self, value: Value<'_>) {
        let mut key = Vec::new();
        self.collation.append_key(&mut key, value, false);
        if !self.seen.contains(&key) {
            self.bytes += key.len();
            self.seen.insert(key);
            self.values.push(value.to_buf());
        }
    }
}
