//! A copy's record of itself: how far it is, in a document that lies beside the data, on the same
//! branch, and changes in the same transactions.
//!
//! So the place in the source's log always is that of the data: after a crash, and after a reset, a
//! restore, or a clone of the copy elsewhere, too.

use frond_doc::{Binary, Document, DocumentBuf, DocumentBuilder, Value, ValueBuf, order};

use crate::commands::follow::event::Event;
use crate::output::documents_of;

/// The collection that has the record.
pub const COLLECTION: &str = "frond.follow";
/// The record's `_id`.
pub const ID: &str = "source";
const UUID: u8 = 4;

/// The record.
#[derive(Clone)]
pub struct Record {
    /// The database that is followed.
    pub source: String,
    /// The token of the event behind which all that is copied is.
    pub token: DocumentBuf,
    /// The collections that are copied.
    pub collections: Vec<Followed>,
    /// Changes that were taken over, since the beginning.
    pub changes: i64,
    /// The number of these since the last version.
    pub uncommitted: i64,
    /// Documents that weren't as the source had them: others wrote to the copy.
    pub unlike: i64,
    /// The time when the last version was recorded, in milliseconds since 1970; 0 before the first.
    pub committed_millis: i64,
    /// The time when the source made the last change, by its clock.
    pub wall_millis: i64,
}

/// A collection that is copied.
#[derive(Clone)]
pub struct Followed {
    /// Its name.
    pub name: String,
    /// Its identity, among those that had this name.
    pub uuid: Option<Vec<u8>>,
    /// The `_id` up to which it is copied.
    pub reach: CopiedUpTo,
}

/// The part of a collection that is copied.
#[derive(Clone)]
pub enum CopiedUpTo {
    /// Nothing.
    Nothing,
    /// The documents up to that `_id`.
    UpTo(ValueBuf),
    /// All of it.
    All,
}

impl CopiedUpTo {
    /// Whether a document is copied.
    pub fn holds(&self, id: Value<'_>) -> bool {
        match self {
            CopiedUpTo::Nothing => false,
            CopiedUpTo::UpTo(last) => order::compare(id, last.as_value()).is_le(),
            CopiedUpTo::All => true,
        }
    }
}

impl Record {
    /// The record of a copy that begins.
    pub fn new(source: &str, token: DocumentBuf, collections: Vec<Followed>) -> Record {
        Record {
            source: source.to_owned(),
            token,
            collections,
            changes: 0,
            uncommitted: 0,
            unlike: 0,
            committed_millis: 0,
            wall_millis: 0,
        }
    }

    /// The collection that is called so, if it is copied.
    pub fn named(&mut self, name: &str) -> Option<&mut Followed> {
        self.collections.iter_mut().find(|followed| followed.name == name)
    }

    /// The collection that an event is about. One of the same name that was there before isn't.
    pub fn of(&mut self, event: &Event) -> Option<&mut Followed> {
        let followed = self.named(&event.collection)?;
        followed.is(event.uuid.as_deref()).then_some(followed)
    }

    /// Whether all collections are copied.
    pub fn is_whole(&self) -> bool {
        self.collections.iter().all(|followed| matches!(followed.reach, CopiedUpTo::All))
    }

    /// Forgets a collection.
    pub fn forget(&mut self, name: &str) {
        self.collections.retain(|followed| followed.name != name);
    }

    /// Reads a stored record; `None` if it is none.
    pub fn read(stored: Document<'_>) -> Option<Record> {
        let number = |name: &str| stored.get(name).and_then(|number| number.as_integer());
        let date = |name: &str| match stored.get(name) {
            Some(Value::DateTime(millis)) => millis,
            _ => 0,
        };
        Some(Record {
            source: stored.get("source")?.as_str()?.to_owned(),
            token: stored.get("token")?.as_document()?.to_buf(),
            collections: documents_of(stored, "collections").filter_map(Followed::read).collect(),
            changes: number("changes")?,
            uncommitted: number("uncommitted")?,
            unlike: number("unlike")?,
            committed_millis: date("committed"),
            wall_millis: date("time"),
        })
    }

    /// The record as it is stored.
    pub fn stored(&self) -> DocumentBuf {
        let mut stored = DocumentBuilder::new();
        stored.append("_id", Value::String(ID));
        stored.append("source", Value::String(&self.source));
        stored.append("token", Value::Document(self.token.view()));
        stored.append("time", Value::DateTime(self.wall_millis));
        stored.append("changes", Value::Int64(self.changes));
        stored.append("uncommitted", Value::Int64(self.uncommitted));
        stored.append("unlike", Value::Int64(self.unlike));
        stored.append("committed", Value::DateTime(self.committed_millis));
        stored.begin_array("collections");
        for followed in &self.collections {
            followed.append_to(stored.push_begin_document());
            stored.end();
        }
        stored.end();
        stored.build()
    }
}

impl Followed {
    /// Whether it is the collection of that id, where the source gives one.
    pub fn is(&self, uuid: Option<&[u8]>) -> bool {
        uuid.is_none() || self.uuid.is_none() || self.uuid.as_deref() == uuid
    }

    fn read(stored: Document<'_>) -> Option<Followed> {
        let uuid = match stored.get("uuid") {
            Some(Value::Binary(Binary { bytes, .. })) => Some(bytes.to_vec()),
            _ => None,
        };
        let reach = match (stored.get("all"), stored.get("upTo")) {
            (Some(_), _) => CopiedUpTo::All,
            (None, Some(last)) => CopiedUpTo::UpTo(last.to_buf()),
            (None, None) => CopiedUpTo::Nothing,
        };
        Some(Followed { name: stored.get("name")?.as_str()?.to_owned(), uuid, reach })
    }

    fn append_to(&self, stored: &mut DocumentBuilder) {
        stored.append("name", Value::String(&self.name));
        if let Some(bytes) = &self.uuid {
            stored.append("uuid", Value::Binary(Binary { subtype: UUID, bytes }));
        }
        match &self.reach {
            CopiedUpTo::Nothing => {}
            CopiedUpTo::UpTo(last) => {
                stored.append("upTo", last.as_value());
            }
            CopiedUpTo::All => {
                stored.append("all", Value::Boolean(true));
            }
        }
    }
}
