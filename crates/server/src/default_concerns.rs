//! The concerns of requests that carry none: what `setDefaultRWConcern` said.
//!
//! - They are a setting of the data directory, kept beside users and roles, and hold from the
//!   answer on, also once the server was started again.
//! - Of a write concern without `w`, `w` is the default's, and so is what it doesn't say of the
//!   journal.
//! - All read concerns that can be a default read the same here (see [`crate::concerns`]), so a
//!   default one is shown, and changes no answer.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use frond_db::{AccessChange, AccessKind, Durability, Error, Frond};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Timestamp, Value};
use frond_query::Code;

use crate::common_fields::{Common, Level};

/// The name of the setting, and of the document in MongoDB's `config.settings`.
const NAME: &str = "ReadWriteConcernDefaults";
const READ: &str = "defaultReadConcern";
const WRITE: &str = "defaultWriteConcern";
const PROVENANCE: &str = "provenance";
/// MongoDB's code of what is no default.
const UNSUITABLE: Code = Code::BadValue;

/// The concerns of requests that carry none.
///
/// *Thread safety*: any thread may ask and change them.
#[derive(Default)]
pub struct Defaults {
    /// The stored defaults, and when they were read; `None` until a request asks.
    known: RwLock<Option<Arc<Known>>>,
    /// Held while they change.
    changing: Mutex<()>,
}

/// The stored defaults, in the form of [`NAME`].
#[derive(Clone, Default, Debug)]
struct Known {
    stored: DocumentBuf,
    read_at_millis: i64,
}

impl Known {
    fn part(&self, name: &str) -> Option<Document<'_>> {
        self.stored.get(name).and_then(|concern| concern.as_document())
    }
}

impl Defaults {
    fn known(&self, frond: &Frond) -> Result<Arc<Known>, Error> {
        if let Some(known) = &*self.known.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(Arc::clone(known));
        }
        let mut slot = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*slot {
            return Ok(Arc::clone(known));
        }
        let stored = frond.access_documents(AccessKind::Setting)?;
        let is_it = |it: &DocumentBuf| it.get("_id") == Some(Value::String(NAME));
        let stored = stored.into_iter().find(is_it).unwrap_or_else(DocumentBuf::empty);
        let known = Arc::new(Known { stored, read_at_millis: frond.now_millis() });
        *slot = Some(Arc::clone(&known));
        Ok(known)
    }

    /// Gives a command that takes a write concern what that doesn't say.
    ///
    /// # Errors
    /// An error of reading them, the first time.
    pub fn apply(&self, frond: &Frond, common: &mut Common) -> Result<(), Error> {
        if common.has_w || common.journal.is_some() {
            return Ok(());
        }
        let known = self.known(frond)?;
        let journal = known.part(WRITE).and_then(|concern| concern.get("j"));
        if journal.is_some_and(|journal| !journal.is_truthy()) {
            common.durability = Durability::Relaxed;
        }
        Ok(())
    }

    /// Sets what is given of both; an empty one is unset.
    ///
    /// # Errors
    /// `BadValue` for what is no default; `UnknownReplWriteConcern` and `UnsatisfiableWriteConcern`
    /// for what one member can't do; `IllegalOperation` for a write concern that is to be unset.
    pub fn set(
        &self,
        frond: &Frond,
        read: Option<Document<'_>>,
        write: Option<Document<'_>>,
        now: Timestamp,
    ) -> Result<(), Error> {
        if read.is_none() && write.is_none() {
            let message =
                format!("At least one of the \"{READ}\" or \"{WRITE}\" fields must be present");
            return Err(Error::invalid(UNSUITABLE, message));
        }
        let read = read.map(read_default).transpose()?;
        let write = write.map(write_default).transpose()?;
        let changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.known(frond)?;
        if write.as_ref().is_some_and(|write| write.view().is_empty())
            && before.part(WRITE).is_some()
        {
            let message = "The global default write concern cannot be unset once it is set.";
            return Err(Error::invalid(Code::IllegalOperation, message));
        }
        let mut stored = DocumentBuilder::new();
        stored.append("_id", Value::String(NAME));
        for (name, given) in [(READ, &read), (WRITE, &write)] {
            let kept = before.part(name);
            let concern = given.as_ref().map(DocumentBuf::view).or(kept);
            if let Some(concern) = concern.filter(|concern| !concern.is_empty()) {
                stored.append(name, Value::Document(concern));
            }
        }
        stored
            .append("updateOpTime", Value::Timestamp(now))
            .append("updateWallClockTime", Value::DateTime(frond.now_millis()));
        let document = Some(stored.build());
        let (database, name) = (String::new(), NAME.to_owned());
        let change = AccessChange { kind: AccessKind::Setting, database, name, document };
        let changed = frond.change_access(&[change]);
        // Read again even if that failed: what is stored is what counts.
        self.forget();
        drop(changing);
        changed
    }

    /// They have changed, or may have: they are read again.
    pub fn forget(&self) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Appends what holds now.
    ///
    /// # Errors
    /// An error of reading them, the first time.
    pub fn append(&self, frond: &Frond, answer: &mut DocumentBuilder) -> Result<(), Error> {
        let known = self.known(frond)?;
        let (read, write) = (known.part(READ), known.part(WRITE));
        answer.begin_document(READ);
        append_all(answer, read);
        if read.is_none() {
            answer.append("level", Value::String(Level::Local.name()));
        }
        answer.end().begin_document(WRITE);
        append_all(answer, write);
        if write.is_none() {
            answer.append("w", Value::String("majority")).append("wtimeout", Value::Int32(0));
        }
        answer.end();
        for name in ["updateOpTime", "updateWallClockTime"] {
            if let Some(value) = known.stored.get(name) {
                answer.append(name, value);
            }
        }
        let source = |is_set| Value::String(if is_set { "global" } else { "implicit" });
        answer
            .append("defaultWriteConcernSource", source(write.is_some()))
            .append("defaultReadConcernSource", source(read.is_some()))
            .append("localUpdateWallClockTime", Value::DateTime(known.read_at_millis));
        Ok(())
    }
}

fn append_all(answer: &mut DocumentBuilder, concern: Option<Document<'_>>) {
    for (name, value) in concern.into_iter().flat_map(|concern| concern.iter()) {
        answer.append(name, value);
    }
}

/// The read concern as it is stored; empty where it is unset.
fn read_default(concern: Document<'_>) -> Result<DocumentBuf, Error> {
    let unsuitable = |what: String| {
        let message = format!("{what} is not suitable for the default read concern");
        Err(Error::invalid(UNSUITABLE, message))
    };
    for name in ["afterOpTime", "afterClusterTime", "atClusterTime"] {
        if concern.get(name).is_some() {
            return unsuitable(format!("'{name}'"));
        }
    }
    refuse_provenance(concern, "read")?;
    if concern.is_empty() {
        return Ok(DocumentBuf::empty());
    }
    let level = Common::of_concerns("readConcern", concern)?.level;
    if matches!(level, Level::Snapshot | Level::Linearizable) {
        return unsuitable(format!("level: '{}'", level.name()));
    }
    let mut stored = DocumentBuilder::new();
    stored.append("level", Value::String(level.name()));
    Ok(stored.build())
}

/// The write concern as it is stored; empty where it is to be unset.
fn write_default(concern: Document<'_>) -> Result<DocumentBuf, Error> {
    if concern.is_empty() {
        return Ok(DocumentBuf::empty());
    }
    let common = Common::of_concerns("writeConcern", concern)?;
    if !common.has_w {
        let message = "Default write concern must have 'w' field.";
        return Err(Error::invalid(UNSUITABLE, message));
    }
    if !common.acknowledged {
        let message = "Unacknowledged write concern is not suitable for the default write concern";
        return Err(Error::invalid(UNSUITABLE, message));
    }
    refuse_provenance(concern, "write")?;
    if let Some(failure) = common.concern_failure {
        return Err(Error { details: None, ..failure });
    }
    let mut stored = DocumentBuilder::new();
    match concern.get("w") {
        Some(Value::String(mode)) => stored.append("w", Value::String(mode)),
        _ => stored.append("w", Value::Int32(1)),
    };
    if let Some(journal) = common.journal {
        stored.append("j", Value::Boolean(journal));
    }
    let timeout = concern.get("wtimeout").and_then(|timeout| timeout.as_integer());
    let timeout = timeout.and_then(|timeout| i32::try_from(timeout).ok());
    stored.append("wtimeout", Value::Int32(timeout.unwrap_or(0)));
    Ok(stored.build())
}

fn refuse_provenance(concern: Document<'_>, what: &str) -> Result<(), Error> {
    if concern.get(PROVENANCE).is_none() {
        return Ok(());
    }
    let message = format!("'{PROVENANCE}' must be unset in default {what} concern");
    Err(Error::invalid(UNSUITABLE, message))
}

#[cfg(test)]
mod tests {
    use frond_doc::document;
    use frond_testkit::SimDisk;

    use super::*;

    fn open(disk: &SimDisk) -> Frond {
        frond_vcs::open_on(&disk.machine(), frond_db::FrondOptions::default()).expect("opens")
    }

    fn described(defaults: &Defaults, frond: &Frond) -> DocumentBuf {
        let mut answer = DocumentBuilder::new();
        defaults.append(frond, &mut answer).expect("read");
        answer.build()
    }

    fn durability(defaults: &Defaults, frond: &Frond, concern: DocumentBuf) -> Durability {
        let mut common = Common::of_concerns("writeConcern", concern.view()).expect("one");
        defaults.apply(frond, &mut common).expect("read");
        common.durability
    }

    #[test]
    fn defaults_apply_to_requests_without_concerns_and_survive_a_crash() {
        let disk = SimDisk::new(1);
        let frond = open(&disk);
        let defaults = Defaults::default();
        let before = described(&defaults, &frond);
        assert_eq!(before.get("defaultReadConcernSource"), Some(Value::String("implicit")));
        assert!(before.get("updateOpTime").is_none());
        let relaxed = document! { "w": 1, "j": false };
        let now = frond.operation_time();
        defaults.set(&frond, None, Some(relaxed.view()), now).expect("a default");
        let majority = document! { "level": "majority" };
        defaults.set(&frond, Some(majority.view()), None, now).expect("a default");
        drop(frond);
        let frond = open(&disk);
        let defaults = Defaults::default();
        let after = described(&defaults, &frond);
        let write = document! { "w": 1, "j": false, "wtimeout": 0 };
        assert_eq!(after.get("defaultWriteConcern"), Some(Value::from(&write)));
        assert_eq!(after.get("defaultReadConcern"), Some(Value::from(&majority)));
        assert_eq!(after.get("defaultWriteConcernSource"), Some(Value::String("global")));
        assert_eq!(after.get("updateOpTime"), Some(Value::Timestamp(now)));
        for (concern, expected) in [
            (document! {}, Durability::Relaxed),
            (document! { "wtimeout": 5 }, Durability::Relaxed),
            (document! { "w": 1 }, Durability::Synced),
            (document! { "j": true }, Durability::Synced),
            (document! { "w": "majority", "j": false }, Durability::Relaxed),
        ] {
            assert_eq!(durability(&defaults, &frond, concern.clone()), expected, "{concern:?}");
        }
        defaults.set(&frond, Some(Document::empty()), None, now).expect("unset");
        assert_eq!(
            described(&defaults, &frond).get("defaultReadConcernSource"),
            Some(Value::String("implicit"))
        );
    }

    #[test]
    fn malformed_defaults_are_refused_and_change_nothing() {
        let frond = open(&SimDisk::new(1));
        let defaults = Defaults::default();
        let set = |read: Option<&DocumentBuf>, write: Option<&DocumentBuf>| {
            let (read, write) = (read.map(DocumentBuf::view), write.map(DocumentBuf::view));
            let set = defaults.set(&frond, read, write, frond.operation_time());
            set.map_err(|error| error.code.number())
        };
        assert_eq!(set(None, None), Err(2));
        for (read, code) in [
            (document! { "level": "snapshot" }, 2),
            (document! { "level": "linearizable" }, 2),
            (document! { "level": "local", "afterClusterTime": Timestamp(1 << 32) }, 2),
            (document! { "provenance": "clientSupplied" }, 2),
        ] {
            assert_eq!(set(Some(&read), None), Err(code), "{read:?}");
        }
        for (write, code) in [
            (document! { "w": 0 }, 2),
            (document! { "j": true }, 2),
            (document! { "w": 1, "provenance": "clientSupplied" }, 2),
            (document! { "w": 2 }, 100),
            (document! { "w": "elsewhere" }, 79),
        ] {
            assert_eq!(set(None, Some(&write)), Err(code), "{write:?}");
        }
        assert_eq!(set(None, Some(&document! {})), Ok(()), "it wasn't set");
        assert_eq!(
            described(&defaults, &frond).get("defaultWriteConcernSource"),
            Some(Value::String("implicit"))
        );
        assert_eq!(set(None, Some(&document! { "w": 1 })), Ok(()));
        assert_eq!(set(None, Some(&document! {})), Err(20));
    }
}
