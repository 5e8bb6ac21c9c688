//! Events of a change stream, as MongoDB reports them with `showExpandedEvents`.

use frond_doc::{Binary, Document, DocumentBuf, Timestamp, Value, ValueBuf};

use crate::failure::Failure;
use crate::output::{documents_of, text_of};

/// One event.
pub struct Event {
    /// The resume token behind it.
    pub token: DocumentBuf,
    /// The time when it was committed; events of one transaction have one time.
    pub time: Timestamp,
    /// The same by the source's clock, in milliseconds since 1970.
    pub wall_millis: i64,
    /// The collection, or nothing for what is the whole database's.
    pub collection: String,
    /// The identity of the collection, among those that had this name.
    pub uuid: Option<Vec<u8>>,
    /// The kind of event.
    pub kind: Kind,
    /// Its size.
    pub bytes: usize,
}

/// The kinds of events.
pub enum Kind {
    /// To a document.
    Document { id: ValueBuf, change: Change },
    /// A collection was made, with these options.
    Create(DocumentBuf),
    /// Indexes were made.
    CreateIndexes(Vec<DocumentBuf>),
    /// Indexes of these names were dropped.
    DropIndexes(Vec<String>),
    /// Options were changed.
    Modify(DocumentBuf),
    /// The collection has another name, perhaps that of one which was dropped for it.
    Rename { to: String, replaces: bool },
    /// The collection was dropped.
    Drop,
    /// All collections were dropped.
    DropDatabase,
    /// The stream ends.
    Invalidate,
    /// Nothing that a copy could have.
    Other(String),
}

/// A change to a document.
pub enum Change {
    /// It is new.
    Insert(DocumentBuf),
    /// It is another.
    Replace(DocumentBuf),
    /// Fields changed, as the `updateDescription` says.
    Update(DocumentBuf),
    /// It is gone.
    Delete,
}

impl Event {
    /// Reads an event.
    ///
    /// # Errors
    /// [`Failure::Failed`] if it lacks what every event has.
    pub fn read(event: Document<'_>) -> Result<Event, Failure> {
        let name = text_of(event, "operationType");
        let wrong = || Failure::failed(format!("the source sent an incomplete {name}"));
        let part = |name: &str| event.get(name).and_then(|part| part.as_document());
        let token = part("_id").ok_or_else(wrong)?.to_buf();
        let Some(Value::Timestamp(time)) = event.get("clusterTime") else { return Err(wrong()) };
        let wall_millis = match event.get("wallTime") {
            Some(Value::DateTime(millis)) => millis,
            _ => i64::try_from(time.0 >> 32).unwrap_or(0) * 1_000,
        };
        let collection = part("ns").map_or("", |namespace| text_of(namespace, "coll")).to_owned();
        let uuid = match event.get("collectionUUID") {
            Some(Value::Binary(Binary { bytes, .. })) => Some(bytes.to_vec()),
            _ => None,
        };
        let kind = Kind::read(name, event).ok_or_else(wrong)?;
        let bytes = event.as_bytes().len();
        Ok(Event { token, time, wall_millis, collection, uuid, kind, bytes })
    }
}

impl Kind {
    fn read(name: &str, event: Document<'_>) -> Option<Kind> {
        let part = |name: &str| event.get(name).and_then(|part| part.as_document());
        let described = part("operationDescription").unwrap_or(Document::empty());
        let indexes = || documents_of(described, "indexes");
        let change = match name {
            "insert" => Change::Insert(part("fullDocument")?.to_buf()),
            "replace" => Change::Replace(part("fullDocument")?.to_buf()),
            "update" => Change::Update(part("updateDescription")?.to_buf()),
            "delete" => Change::Delete,
            "create" => return Some(Kind::Create(described.to_buf())),
            "createIndexes" => {
                return Some(Kind::CreateIndexes(indexes().map(|index| index.to_buf()).collect()));
            }
            "dropIndexes" => {
                let names = indexes().map(|index| text_of(index, "name").to_owned());
                return Some(Kind::DropIndexes(names.collect()));
            }
            "modify" => return Some(Kind::Modify(described.to_buf())),
            "rename" => {
                let to = text_of(part("to")?, "coll").to_owned();
                return Some(Kind::Rename { to, replaces: described.get("dropTarget").is_some() });
            }
            "drop" => return Some(Kind::Drop),
            "dropDatabase" => return Some(Kind::DropDatabase),
            "invalidate" => return Some(Kind::Invalidate),
            other => return Some(Kind::Other(other.to_owned())),
        };
        Some(Kind::Document { id: part("documentKey")?.get("_id")?.to_buf(), change })
    }
}
