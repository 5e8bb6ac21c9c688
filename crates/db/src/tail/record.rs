//! The record of one transaction's events, decoded: for all streams that read it.

use std::collections::HashMap;

use frond_doc::{DocumentBuf, Value as BsonValue};
use frond_engine::{LoggedContent, LoggedEvents, Sequence};
use frond_store::{Chunk, ChunkHash, ChunkStore, Layered, StoreLayer};
use frond_tree::{Content, Value};

use crate::error::Error;
use crate::event::{Event, EventKind};
use crate::large;

/// See the module.
pub struct Record {
    /// The transaction's place.
    pub sequence: Sequence,
    /// The events, in order.
    pub events: Vec<Event>,
    /// The client's transaction that it was.
    pub transaction: Option<DocumentBuf>,
    /// Those of documents of 32 KB and more.
    chunks: HashMap<ChunkHash, Chunk>,
    /// About how much memory it takes.
    pub bytes: u64,
}

impl Record {
    /// The record of no transaction: for what is read elsewhere.
    pub fn empty(sequence: Sequence) -> Record {
        let (events, chunks) = (Vec::new(), HashMap::new());
        Record { sequence, events, transaction: None, chunks, bytes: 0 }
    }

    /// Decodes what was read.
    ///
    /// # Errors
    /// `Damaged` if it can't be.
    pub fn decode(logged: &LoggedEvents) -> Result<Record, Error> {
        let (mut events, mut transaction, mut before) = (Vec::new(), None, LoggedContent::None);
        for mut event in Event::decode_all(&logged.events)? {
            match event.kind {
                EventKind::InTransaction => transaction = Some(event.facts),
                EventKind::PreImage => before = event.content,
                _ => {
                    event.before = std::mem::replace(&mut before, LoggedContent::None);
                    events.push(event);
                }
            }
        }
        let chunks = logged.chunks.iter().map(|chunk| (chunk.hash(), chunk.clone())).collect();
        let bytes = logged.bytes + (events.len() * size_of::<Event>()) as u64;
        Ok(Record { sequence: logged.sequence, events, transaction, chunks, bytes })
    }

    /// The document of an event of this record, or what it was before, if the record has that.
    ///
    /// # Errors
    /// `Damaged` if it can't be read.
    pub fn document(
        &self,
        store: &dyn ChunkStore,
        content: &LoggedContent,
    ) -> Result<Option<DocumentBuf>, Error> {
        match content {
            LoggedContent::None => Ok(None),
            LoggedContent::Whole(bytes) => {
                let document = DocumentBuf::validated(bytes.clone());
                let damaged = |_| Error::damaged("a document that was told can't be read");
                document.map(Some).map_err(damaged)
            }
            LoggedContent::Chunks { root, bytes } => {
                let content = Content::Chunk { hash: *root, bytes: *bytes };
                let head = Value { flags: frond_doc::pieces::HEAD_FLAG, content };
                let chunks = Layered(WithChunks { store, chunks: &self.chunks });
                Ok(Some(large::read_document(&chunks, &head)?))
            }
        }
    }
}

/// The `_id` of an event's document.
pub fn key<'a>(event: &'a Event, document: Option<&'a DocumentBuf>) -> Option<BsonValue<'a>> {
    let of_document = document.and_then(|document| document.get("_id"));
    of_document.or_else(|| event.facts.get("key").and_then(|key| key.as_document()?.get("_id")))
}

/// A store, with the chunks of a record, which it may not have any more.
struct WithChunks<'a> {
    store: &'a dyn ChunkStore,
    chunks: &'a HashMap<ChunkHash, Chunk>,
}

impl StoreLayer for WithChunks<'_> {
    fn inner(&self) -> &dyn ChunkStore {
        self.store
    }

    fn own(&self, hash: ChunkHash) -> Option<Chunk> {
        self.chunks.get(&hash).cloned()
    }
}
