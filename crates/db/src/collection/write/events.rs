//! The events of a writer about the documents that it writes: see [`crate::event`].
//!
//! An event is recorded on the savepoint of its write. The log has a document once: if an event
//! needs all of a document of 32 KB or more, all its chunks travel with the transaction, whole, and
//! the event names the first. So the record alone suffices, whatever became of the chunks since.
//! For a document that no event can hold the event is recorded without it, and the stream says so.

use bytes::Bytes;
use frond_doc::document::DOCUMENT_BYTES_MAX;
use frond_doc::pieces::LargeDocument;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value as BsonValue};
use frond_engine::{EventContent, TreeId};
use frond_tree::{Content, Value};

use super::CollectionWriter;
use crate::error::Error;
use crate::event::{EventKind, EventRecorder, difference};
use crate::large::{self, damaged};

/// About what facts take besides a description: a short key, and names.
const FACTS_BYTES: usize = 64;

/// The kind of change that change streams see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DocumentChange {
    /// The old one, changed: the event has what changed.
    Changed,
    /// Another in its place: the event has all of it.
    Replaced,
}

/// The description of a document that comes in the place of another.
pub(super) enum EventDetail {
    /// Not at all.
    Nothing,
    /// By what changed: the facts of the event.
    Described(DocumentBuf),
    /// Whole.
    Whole,
}

impl CollectionWriter<'_> {
    /// Whether an event can have all of a document that is written, where it doesn't have what
    /// changed.
    pub(super) fn records_whole(&mut self, document: &DocumentBuf) -> bool {
        document.as_bytes().len() <= DOCUMENT_BYTES_MAX && self.recorder_ref().is_some()
    }

    /// The recorder of this collection's events; `None` if there are to be none.
    pub(super) fn recorder(&mut self) -> Option<EventRecorder> {
        self.recorder_ref().cloned()
    }

    fn recorder_ref(&mut self) -> Option<&EventRecorder> {
        if self.is_silent {
            return None;
        }
        if self.recorder.is_none() {
            let scope = (self.database.repository_name(), self.branch, self.name);
            let uuid = self.now.as_ref().map(|now| &now.uuid);
            let engine = self.database.frond().engine();
            self.recorder = Some(EventRecorder::of_collection(engine, scope, uuid));
        }
        self.recorder.as_ref().and_then(Option::as_ref)
    }

    /// Puts a new document, stored as `value`, under `id_key`, and records its event.
    pub(super) fn put_inserted(
        &mut self,
        tree: TreeId,
        id_key: &Bytes,
        document: &DocumentBuf,
        value: Value,
    ) -> Result<(), Error> {
        let key = id_key.clone();
        if let Content::Inline(content) = &value.content {
            let event = self.recorder_ref().map(|recorder| {
                let (key, content) = (id_key.clone(), content.clone());
                recorder.insertion(EventContent::Written { tree, key, content })
            });
            match event {
                Some(event) => self.transaction.put_new_recorded(tree, key, value, event)?,
                None => self.transaction.put_new(tree, key, value)?,
            }
            return Ok(());
        }
        self.transaction.put_new(tree, key, value.clone())?;
        self.record_document(EventKind::Insert, id_key, document, &value);
        Ok(())
    }

    /// Records the event of a large document that was inserted.
    pub(super) fn record_large_insert(&mut self, large: &LargeDocument) -> Result<(), Error> {
        let Some(recorder) = self.recorder() else { return Ok(()) };
        if large.bytes() <= DOCUMENT_BYTES_MAX as u64 {
            return self.record_content(EventKind::Insert, large);
        }
        let key = self.fields_of(large, &[b"_id"])?;
        recorder.record(self.transaction, EventKind::Insert, keyed(key.view(), None).view());
        Ok(())
    }

    /// Records the event of a document whose whole content is known, written as `value`; its
    /// chunks, if it has any, all travel.
    fn record_document(
        &mut self,
        kind: EventKind,
        id_key: &Bytes,
        document: &DocumentBuf,
        value: &Value,
    ) {
        let Some(recorder) = self.recorder() else { return };
        let none = Document::empty();
        let content = match &value.content {
            Content::Inline(content) => {
                let tree = self.live.as_ref().expect("it was written").documents;
                EventContent::Written { tree, key: id_key.clone(), content: content.clone() }
            }
            Content::Chunk { hash, bytes } if *bytes <= DOCUMENT_BYTES_MAX as u64 => {
                EventContent::Chunks { root: *hash, bytes: *bytes }
            }
            Content::Chunk { .. } | Content::Sequence { .. } => {
                recorder.record(self.transaction, kind, keyed(document.view(), None).view());
                return;
            }
        };
        recorder.record_with(self.transaction, kind, none, content);
    }

    /// Records the event of a large document whose chunks don't all travel, by its content.
    fn record_content(&mut self, kind: EventKind, large: &LargeDocument) -> Result<(), Error> {
        let Some(recorder) = self.recorder() else { return Ok(()) };
        self.make_room(2 * large.bytes())?;
        let document = large::read(&self.transaction.store(), large)?;
        let content = EventContent::Whole(document.into_bytes());
        recorder.record_with(self.transaction, kind, Document::empty(), content);
        Ok(())
    }

    /// Whether events show what documents were before they are changed.
    pub(super) fn records_images(&mut self) -> bool {
        self.keeps_images && self.recorder().is_some()
    }

    /// Records what the document of the next event was, where the collection keeps that.
    pub(super) fn record_image(&mut self, before: Document<'_>) {
        if self.keeps_images
            && let Some(recorder) = self.recorder()
        {
            let content = EventContent::Whole(Bytes::copy_from_slice(before.as_bytes()));
            let none = Document::empty();
            recorder.record_with(self.transaction, EventKind::PreImage, none, content);
        }
    }

    /// Returns the description of replacing `before` by `after`.
    pub(super) fn event_detail(
        &mut self,
        before: Document<'_>,
        after: &DocumentBuf,
        becoming: DocumentChange,
    ) -> EventDetail {
        if self.recorder().is_none() {
            return EventDetail::Nothing;
        }
        let described = match becoming {
            DocumentChange::Changed => difference::describe(before, after.view()),
            DocumentChange::Replaced => None,
        };
        match described {
            Some(description) => {
                EventDetail::Described(keyed(after.view(), Some(description.view())))
            }
            None => EventDetail::Whole,
        }
    }

    /// Records the event, as `telling` describes it, of a document that was written as `value`.
    pub(super) fn record_replace(
        &mut self,
        id_key: &Bytes,
        after: &DocumentBuf,
        value: &Value,
        event_detail: EventDetail,
    ) {
        match (event_detail, self.recorder()) {
            (EventDetail::Described(facts), Some(recorder)) => {
                recorder.record(self.transaction, EventKind::Update, facts.view());
            }
            (EventDetail::Whole, _) => {
                self.record_document(EventKind::Replace, id_key, after, value)
            }
            (EventDetail::Nothing | EventDetail::Described(_), _) => {}
        }
    }

    /// Records the event of a large document that was changed piece by piece: what both versions
    /// share isn't read.
    pub(super) fn record_large_change(
        &mut self,
        before: &LargeDocument,
        after: &LargeDocument,
    ) -> Result<(), Error> {
        let Some(recorder) = self.recorder() else { return Ok(()) };
        if self.keeps_images {
            self.make_room(2 * before.bytes())?;
            let image = large::read(&self.transaction.store(), before)?;
            self.record_image(image.view());
        }
        let description = match before.bytes().max(after.bytes()) <= DOCUMENT_BYTES_MAX as u64 {
            true => {
                let store = self.transaction.store();
                let described = difference::describe_large(&store, before, after);
                let described = described.map_err(|error| damaged(&after.value(), error))?;
                if described.is_none() {
                    drop(store);
                    return self.record_content(EventKind::Replace, after);
                }
                described
            }
            // No event can hold it.
            false => None,
        };
        let key = self.fields_of(after, &[b"_id"])?;
        let facts = keyed(key.view(), description.as_ref().map(DocumentBuf::view));
        recorder.record(self.transaction, EventKind::Update, facts.view());
        Ok(())
    }

    /// Records the event of a document that was removed, where `fields` has the `_id`.
    pub(super) fn record_delete(&mut self, fields: Document<'_>) {
        if let Some(recorder) = self.recorder() {
            recorder.record(self.transaction, EventKind::Delete, keyed(fields, None).view());
        }
    }
}

/// The key of an event's document, and what changed.
fn keyed(document: Document<'_>, description: Option<Document<'_>>) -> DocumentBuf {
    let described = description.map_or(0, |description| description.as_bytes().len());
    let mut facts = DocumentBuilder::with_capacity(described + FACTS_BYTES);
    facts.begin_document("key");
    facts.append("_id", document.get("_id").unwrap_or(BsonValue::Null)).end();
    if let Some(description) = description {
        facts.append("description", BsonValue::Document(description));
    }
    facts.build()
}
