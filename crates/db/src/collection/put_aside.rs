//! Errors of the database on their way through stages and expressions, which speak of errors in
//! MongoDB's codes only. So that damage or a full disk keeps its kind, the first such error is put
//! aside, and the command returns it instead.

use std::sync::{Arc, Mutex, PoisonError};

use frond_query::QueryError;

use crate::error::Error;

/// The first error that isn't a query's.
#[derive(Clone, Default)]
pub(crate) struct PutAside(Arc<Mutex<Option<Error>>>);

impl PutAside {
    /// Keeps `error` and returns what stages are told instead.
    pub fn keep(&self, error: Error) -> QueryError {
        let told = error.as_query();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert(error);
        told
    }

    /// The error that was kept, if `error` is what stages were told of it.
    pub fn restore(&self, error: Error) -> Error {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.filter(|kept| kept.message == error.message).unwrap_or(error)
    }
}
