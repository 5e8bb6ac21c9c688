//! The users and roles of a server: what it knows of them, and how they change.
//!
//! *Thread safety*: any thread may read and change them. Changes come one after the other; a reader
//! meanwhile sees all of a change or nothing of it.
//!
//! *Invariants*
//! 1. The state in memory is the stored one: a change is stored first.
//! 2. The epoch rises after each change, and nothing worked out in an older epoch is used.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use frond_db::{AccessChange, AccessKind, Error, Frond};
use frond_doc::{Binary, DocumentBuilder, Value};

use super::Directory;
use super::login_failures::LoginFailures;
use crate::scram::random_bytes;

const SECRET_BYTES: usize = 32;

/// The users and roles of a server.
#[derive(Default)]
pub struct Accounts {
    /// Whether commands need the rights that their table names: `--auth`.
    is_enforced: bool,
    /// `None` before a client asked.
    directory: RwLock<Option<Arc<Directory>>>,
    epoch: AtomicU64,
    /// Held while users or roles change.
    changing: Mutex<()>,
    /// Logins that failed.
    pub failures: LoginFailures,
}

impl Accounts {
    /// Those of a server that asks for rights, or not.
    pub fn new(is_enforced: bool) -> Accounts {
        Accounts { is_enforced, ..Accounts::default() }
    }

    /// Whether commands need rights.
    pub fn is_enforced(&self) -> bool {
        self.is_enforced
    }

    /// Rises with each change.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// All users and roles as they are now.
    ///
    /// # Errors
    /// As [`Directory::read`], the first time.
    pub fn directory(&self, frond: &Frond) -> Result<Arc<Directory>, Error> {
        if let Some(known) = &*self.directory.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(Arc::clone(known));
        }
        let mut known = self.directory.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*known {
            return Ok(Arc::clone(known));
        }
        let read = Arc::new(Directory::read(frond)?);
        *known = Some(Arc::clone(&read));
        Ok(read)
    }

    /// Has them read again: another member of the set has changed them.
    pub fn forget(&self) {
        *self.directory.write().unwrap_or_else(PoisonError::into_inner) = None;
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// Changes users and roles: `work` gets the present ones, and returns the changes and the
    /// answer. Other changes wait.
    ///
    /// # Errors
    /// A refusal by `work`; an error of writing: then nothing has changed.
    pub fn change<T>(
        &self,
        frond: &Frond,
        work: impl FnOnce(&Directory) -> Result<(Vec<AccessChange>, T), Error>,
    ) -> Result<T, Error> {
        let changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.directory(frond)?;
        let (mut changes, result) = work(&before)?;
        if changes.is_empty() {
            return Ok(result);
        }
        if before.secret.is_empty() {
            changes.push(new_secret()?);
        }
        let stored = frond.change_access(&changes);
        // Read again even if that failed: what is stored is what counts.
        let read = Directory::read(frond);
        if let Ok(read) = read {
            let mut known = self.directory.write().unwrap_or_else(PoisonError::into_inner);
            *known = Some(Arc::new(read));
            self.epoch.fetch_add(1, Ordering::AcqRel);
        }
        drop(changing);
        stored.map(|()| result)
    }
}

fn new_secret() -> Result<AccessChange, Error> {
    let bytes = random_bytes(SECRET_BYTES)?;
    let mut secret = DocumentBuilder::new();
    secret.append("secret", Value::Binary(Binary { subtype: 0, bytes: &bytes }));
    Ok(AccessChange {
        kind: AccessKind::Secret,
        database: String::new(),
        name: String::new(),
        document: Some(secret.build()),
    })
}
