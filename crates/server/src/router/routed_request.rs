//! The parts of a request that a router has to know: its command, and its session, number and
//! transaction.

use std::time::Duration;

use frond_doc::{Document, Value};

/// The time that a request waits for a line's leader: a fail-over is over by then.
pub(super) const LEADER_WAIT_MAX: Duration = Duration::from_secs(15);

/// A request, as far as the router has to know it.
#[derive(Clone, Copy)]
pub(super) struct RoutedRequest<'a> {
    /// The command's name.
    pub name: &'a str,
    /// All of its fields.
    pub body: Document<'a>,
    /// `$db`.
    pub database: &'a str,
}

impl<'a> RoutedRequest<'a> {
    /// Reads a command; `None` if it has no name.
    pub fn read(body: Document<'a>) -> Option<RoutedRequest<'a>> {
        let (name, _) = body.iter().next()?;
        let database = body.get("$db").and_then(|database| database.as_str()).unwrap_or("admin");
        Some(RoutedRequest { name, body, database })
    }

    /// Returns the id of its session.
    pub fn session(&self) -> Option<&'a [u8]> {
        match self.body.get("lsid")?.as_document()?.get("id")? {
            Value::Binary(id) => Some(id.bytes),
            _ => None,
        }
    }

    /// The number of its write, or of its transaction, within the session.
    pub fn number(&self) -> Option<i64> {
        self.body.get("txnNumber")?.as_integer()
    }

    fn flag(&self, name: &str) -> Option<bool> {
        match self.body.get(name)? {
            Value::Boolean(flag) => Some(flag),
            _ => None,
        }
    }

    /// Whether it is part of a transaction of several requests.
    pub fn in_transaction(&self) -> bool {
        self.flag("autocommit") == Some(false)
    }

    /// Whether it is the first statement of one.
    pub fn begins_transaction(&self) -> bool {
        self.flag("startTransaction") == Some(true)
    }

    /// Whether it ends one.
    pub fn ends_transaction(&self) -> bool {
        matches!(self.name, "commitTransaction" | "abortTransaction")
    }

    /// The labels by which a driver knows what to do once it is unknown whether the line has acted.
    pub fn labels_when_lost(&self) -> &'static [&'static str] {
        if self.ends_transaction() {
            &["RetryableWriteError"]
        } else if self.in_transaction() {
            &["TransientTransactionError"]
        } else if self.name == "getMore" {
            &["ResumableChangeStreamError"]
        } else if self.number().is_some() {
            &["RetryableWriteError"]
        } else {
            &[]
        }
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::{DocumentBuf, document};

    use super::*;

    fn labels(body: &DocumentBuf) -> &'static [&'static str] {
        RoutedRequest::read(body.view()).expect("a command").labels_when_lost()
    }

    #[test]
    fn drivers_learn_what_they_may_send_again() {
        let retryable = document! { "insert": "items", "txnNumber": 3_i64 };
        assert_eq!(labels(&retryable), ["RetryableWriteError"]);
        let within = document! { "insert": "items", "txnNumber": 3_i64, "autocommit": false };
        assert_eq!(labels(&within), ["TransientTransactionError"]);
        let commit =
            document! { "commitTransaction": 1_i32, "txnNumber": 3_i64, "autocommit": false };
        assert_eq!(labels(&commit), ["RetryableWriteError"]);
        assert!(labels(&document! { "update": "items" }).is_empty());
        assert!(RoutedRequest::read(Document::empty()).is_none());
    }
}
