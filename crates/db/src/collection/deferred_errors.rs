//! Errors of the database on their way through stages and expressions, which speak of errors in
//! MongoDB's codes only. So that damage or a full disk keeps its kind, such an error is put aside,
//! and the command returns it instead: of those that parts of a query ran into before it was run by
//! one thread, the one whose stand-in this is.

use std::sync::{Arc, Mutex, PoisonError};

use frond_query::QueryError;

use crate::error::Error;

/// The number of errors that are kept.
const ERRORS_MAX: usize = 32;

/// Errors that aren't a query's.
#[derive(Clone, Default)]
pub(crate) struct DeferredErrors(Arc<Mutex<Vec<Error>>>);

impl DeferredErrors {
    /// Keeps `error` and returns the one that stages get instead.
    pub fn keep(&self, error: Error) -> QueryError {
        let query_error = error.as_query();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < ERRORS_MAX && kept.iter().all(|known| known.message != error.message) {
            kept.push(error);
        }
        query_error
    }

    /// The error that was kept, if `error` is what stages got in its place.
    pub fn restore(&self, error: Error) -> Error {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().position(|kept| kept.message == error.message);
        found.map_or(error, |position| kept.swap_remove(position))
    }
}
