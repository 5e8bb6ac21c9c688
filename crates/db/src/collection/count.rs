//! `count`.

use frond_doc::{Document, ValueBuf};

use crate::collection::FindRequest;
use crate::collection::find::Query;
use crate::collection::scan::Scan;
use crate::database::Database;
use crate::error::Error;

impl Database {
    /// Counts documents that pass `filter`. Without one, and without a hint, the tree knows.
    pub fn count(
        &self,
        collection: &str,
        filter: Option<Document<'_>>,
        skip: u64,
        limit: Option<u64>,
        hint: Option<&ValueBuf>,
    ) -> Result<u64, Error> {
        let request = FindRequest {
            filter: filter.map(|filter| filter.to_buf()),
            skip,
            limit,
            hint: hint.cloned(),
            ..FindRequest::default()
        };
        self.count_found(collection, &request)
    }

    /// Counts what a `find` would give.
    pub fn count_found(&self, collection: &str, request: &FindRequest) -> Result<u64, Error> {
        let (skip, limit) = (request.skip, request.limit);
        let reader = self.reader();
        if self.view(&reader, collection)?.is_some() {
            let mut count: u64 = 0;
            for document in self.filter_view(collection, request)? {
                document?;
                count += 1;
            }
            return Ok(count.saturating_sub(skip).min(limit.unwrap_or(u64::MAX)));
        }
        let Query { collection, filter, .. } = self.query(&reader, collection, request)?;
        let Some((collection, access)) = collection else {
            return Ok(0);
        };
        let limit = limit.unwrap_or(u64::MAX);
        // The tree doesn't know what a transaction has written itself.
        if filter.is_all() && request.hint.is_none() && self.transaction().is_none() {
            return Ok(reader.count(collection.documents)?.saturating_sub(skip).min(limit));
        }
        let mut count = 0;
        let enough = skip.saturating_add(limit);
        for found in Scan::new(reader, &collection, access, filter) {
            found?;
            count += 1;
            if count >= enough {
                break;
            }
        }
        Ok(count.saturating_sub(skip))
    }
}
