//! The file of the audit log. [`crate::audit`] describes its content.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use frond_doc::Document;
use frond_query::Filter;

use crate::log_file::{LogFile, LogRotation};

/// The file of a server's audit log; by default there is none.
#[derive(Default)]
pub struct AuditLog {
    state: Option<Mutex<State>>,
    /// The events to report.
    filter: Option<Filter>,
}

struct State {
    file: LogFile,
    /// Whether the last line couldn't be written.
    is_broken: bool,
}

impl AuditLog {
    /// One that appends the events that pass `filter`, if there is one, to a file, which is rotated
    /// so.
    ///
    /// # Errors
    /// If it can't be opened.
    pub fn to_file(
        path: &Path,
        filter: Option<Filter>,
        rotation: LogRotation,
    ) -> io::Result<AuditLog> {
        let mut file = LogFile::open(path)?;
        file.set_rotation(rotation);
        let state = State { file, is_broken: false };
        Ok(AuditLog { state: Some(Mutex::new(state)), filter })
    }

    /// Whether an event is logged: also one that the filter can't decide.
    pub fn records(&self, event: Document<'_>) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.try_matches(event).unwrap_or(true))
    }

    /// Whether there is one.
    pub fn is_on(&self) -> bool {
        self.state.is_some()
    }

    /// Renames its file and begins another. Returns whether there is one.
    ///
    /// # Errors
    /// As [`LogFile::rotate`].
    pub fn rotate(&self, now_millis: i64) -> io::Result<bool> {
        self.state().map_or(Ok(false), |mut state| state.file.rotate(now_millis))
    }

    /// Finds out whether a line can be written, where the last one could not be: writes one that
    /// says so.
    ///
    /// # Errors
    /// If it can't.
    pub fn check(&self) -> io::Result<()> {
        let Some(mut state) = self.state() else { return Ok(()) };
        if state.is_broken {
            state.file.append(r#"{"atype":"auditLogFailed","param":{}}"#)?;
            state.is_broken = false;
        }
        Ok(())
    }

    /// Appends a line.
    ///
    /// # Errors
    /// If it can't be written; [`AuditLog::check`] fails then until one can.
    pub fn append(&self, line: &str) -> io::Result<()> {
        let Some(mut state) = self.state() else { return Ok(()) };
        let done = state.file.append(line);
        state.is_broken |= done.is_err();
        done
    }

    fn state(&self) -> Option<MutexGuard<'_, State>> {
        // It is whole after each statement.
        Some(self.state.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
