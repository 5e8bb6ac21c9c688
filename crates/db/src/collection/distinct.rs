//! `distinct`.

use std::collections::HashSet;

use frond_doc::path::Path;
use frond_doc::{Document, DocumentBuf, Value, ValueBuf, key};
use frond_query::Code;

use crate::collection::find::Search;
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
        let reader = self.reader();
        if self.view(&reader, collection)?.is_some() {
            let found = self.filter_view(collection, filter)?;
            return values_at(path, found);
        }
        let filter = self.parse_filter(filter, None)?;
        let search = Search { needs: Some(vec![path.to_owned()]), ..Search::of(&filter, hint) };
        let Some((collection, access)) = self.access(&reader, collection, search)? else {
            return Ok(Vec::new());
        };
        let scan = Scan::new(reader, &collection, access, filter, &Order::Any);
        values_at(path, scan.map(|found| Ok(found?.document)))
    }
}

fn values_at(
    path: &str,
    documents: impl Iterator<Item = Result<DocumentBuf, Error>>,
) -> Result<Vec<ValueBuf>, Error> {
    let path = Path::new(path);
    let mut values = Values::default();
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
        key::append(&mut key, value, false);
        if !self.seen.contains(&key) {
            self.bytes += key.len();
            self.seen.insert(key);
            self.values.push(value.to_buf());
        }
    }
}
