//! Transactions by closure, which run again when they lose against others.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use frond_db::ErrorKind;

use crate::frond::Settings;
use crate::{Database, Frond, Result};

/// The number of attempts at a transaction before it gives up. Those that lose have waited for the
/// one that won, so this is minutes, and more than any number of threads needs whose transactions
/// end.
const ATTEMPTS_MAX: u32 = 1_000;
/// The wait after the first; each is longer by as much, up to so many of them.
const ATTEMPT_WAIT: Duration = Duration::from_micros(50);
const ATTEMPT_WAITS_MAX: u32 = 200;

/// A transaction that runs: what is read through it is of one moment, and no other reader sees what
/// is written before it ends.
pub struct Transaction {
    inner: frond_db::Transaction,
    settings: Arc<Settings>,
}

impl Transaction {
    /// As [`Frond::database`], within the transaction: what is read and written through it, and
    /// through its collections, takes part. So a transaction may span databases and branches.
    ///
    /// # Errors
    /// As there.
    pub fn database(&self, name: &str) -> Result<Database> {
        Ok(Database::new(self.inner.database(name)?.into(), &self.settings))
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").finish_non_exhaustive()
    }
}

impl Frond {
    /// Runs `body` as a transaction: all that it writes happens at once when it returns `Ok`, or
    /// not at all.
    ///
    /// A write waits for another transaction that has changed the same document, for some seconds.
    /// If that one was first, `body` runs again, at what is visible then: it must do nothing that
    /// can't be done twice. An error of the application itself goes through as
    /// [`Error::other`](crate::Error::other).
    ///
    /// ```
    /// use fronddb::{Document, Error, doc};
    /// # let data = tempfile::tempdir()?;
    ///
    /// let frond = fronddb::open(&data)?;
    /// let accounts = frond.database("bank")?.collection::<Document>("accounts");
    /// accounts.insert_many([doc! { "_id": "ada", "sum": 10 }, doc! { "_id": "bob", "sum": 0 }])?;
    ///
    /// let pay = |sum: i32| {
    ///     frond.transaction(|transaction| {
    ///         let accounts = transaction.database("bank")?.collection::<Document>("accounts");
    ///         accounts.update_one(doc! { "_id": "bob" }, doc! { "$inc": { "sum": sum } })?;
    ///         let enough = doc! { "_id": "ada", "sum": { "$gte": sum } };
    ///         let paid = accounts.update_one(enough, doc! { "$inc": { "sum": -sum } })?;
    ///         if paid.matched_count == 0 { Err(Error::other("too little money")) } else { Ok(()) }
    ///     })
    /// };
    /// pay(7)?;
    /// assert_eq!(pay(7).unwrap_err().to_string(), "too little money");
    /// assert_eq!(accounts.get("bob")?, Some(doc! { "_id": "bob", "sum": 7 }));
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// Making collections, and indexes of empty ones, takes part. Commits, branches and merges
    /// don't: within a transaction they fail.
    ///
    /// # Errors
    /// The error of `body`; [`Conflict`](ErrorKind::Conflict) if it lost again and again;
    /// [`Unknown`](ErrorKind::Unknown) if only opening the directory again shows whether it
    /// happened.
    pub fn transaction<R>(&self, mut body: impl FnMut(&Transaction) -> Result<R>) -> Result<R> {
        let mut attempt = 1;
        loop {
            let settings = Arc::clone(&self.settings);
            let transaction = Transaction { inner: self.inner.begin(), settings };
            let done = body(&transaction).and_then(|answer| {
                transaction.inner.commit(self.settings.durability, None)?;
                Ok(answer)
            });
            // The closure may have kept a handle of it, which must not go on holding its locks.
            transaction.inner.abort();
            match done {
                Err(error) if error.kind() == ErrorKind::Conflict && attempt < ATTEMPTS_MAX => {
                    // The winner is seen once its sync is done: an earlier attempt is lost, too.
                    std::thread::sleep(ATTEMPT_WAIT * attempt.min(ATTEMPT_WAITS_MAX));
                    attempt += 1;
                }
                done => return done,
            }
        }
    }
}
