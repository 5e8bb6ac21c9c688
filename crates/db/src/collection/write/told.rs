//! What a writer tells of the documents that it writes: see [`crate::event`].
//!
//! An event is told on the savepoint of its write. A document of 32 KB or more is told by value,
//! since its chunks may be gone when it is read; one that no event can hold is told without it, and
//! who follows is told so.

use bytes::Bytes;
use frond_doc::document::DOCUMENT_BYTES_MAX;
use frond_doc::pieces::{LARGE_DOCUMENT_BYTES, LargeDocument};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value as BsonValue};
use frond_engine::ToldContent;

use super::CollectionWriter;
use crate::error::Error;
use crate::event::{EventKind, Teller, difference};
use crate::large::{self, damaged};

/// What a new document is to those who are told of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Becoming {
    /// The old one, changed: what changed is told.
    Changed,
    /// Another in its place: all of it is told.
    Replaced,
}

impl CollectionWriter<'_> {
    /// Tells of this collection; `None` if nothing is to be told.
    fn teller(&mut self) -> Option<Teller> {
        if self.is_silent {
            return None;
        }
        if self.teller.is_none() {
            let scope = (self.database.repository_name(), self.branch, self.name);
            self.teller = Some(Teller::new(self.database.frond().engine(), scope));
        }
        self.teller.clone().flatten()
    }

    pub(super) fn tell_inserted(&mut self, id_key: &Bytes, document: &DocumentBuf) {
        self.tell_document(EventKind::Insert, id_key, document);
    }

    /// Tells of a large document that was inserted.
    pub(super) fn tell_inserted_large(
        &mut self,
        id_key: &Bytes,
        large: &LargeDocument,
    ) -> Result<(), Error> {
        let Some(teller) = self.teller() else { return Ok(()) };
        if large.bytes() <= DOCUMENT_BYTES_MAX as u64 {
            self.make_room(2 * large.bytes())?;
            let document = large::read(&self.transaction.store(), large)?;
            self.tell_document(EventKind::Insert, id_key, &document);
            return Ok(());
        }
        let key = self.fields_of(large, &[b"_id"])?;
        teller.tell(self.transaction, EventKind::Insert, keyed(key.view(), None).view());
        Ok(())
    }

    /// Tells of a document whose whole content is known.
    fn tell_document(&mut self, kind: EventKind, id_key: &Bytes, document: &DocumentBuf) {
        let Some(teller) = self.teller() else { return };
        let bytes = document.as_bytes().len();
        let content = document.clone().into_bytes();
        let none = Document::empty();
        if bytes < LARGE_DOCUMENT_BYTES {
            let tree = self.live.as_ref().expect("it was written").documents;
            let content = ToldContent::Written { tree, key: id_key.clone(), content };
            teller.tell_with(self.transaction, kind, none, content);
        } else if bytes <= DOCUMENT_BYTES_MAX {
            teller.tell_with(self.transaction, kind, none, ToldContent::Whole(content));
        } else {
            teller.tell(self.transaction, kind, keyed(document.view(), None).view());
        }
    }

    pub(super) fn tell_replaced(
        &mut self,
        id_key: &Bytes,
        before: Document<'_>,
        after: &DocumentBuf,
        becoming: Becoming,
    ) {
        let Some(teller) = self.teller() else { return };
        if becoming == Becoming::Changed
            && let Some(description) = difference::describe(before, after.view())
        {
            let facts = keyed(after.view(), Some(description.view()));
            teller.tell(self.transaction, EventKind::Update, facts.view());
            return;
        }
        self.tell_document(EventKind::Replace, id_key, after);
    }

    /// Tells of a large document that was changed piece by piece: of its outermost fields only
    /// those are read that differ.
    pub(super) fn tell_changed_large(
        &mut self,
        id_key: &Bytes,
        before: &LargeDocument,
        after: &LargeDocument,
    ) -> Result<(), Error> {
        let Some(teller) = self.teller() else { return Ok(()) };
        if (DOCUMENT_BYTES_MAX as u64) < before.bytes().max(after.bytes()) {
            let key = self.fields_of(after, &[b"_id"])?;
            teller.tell(self.transaction, EventKind::Update, keyed(key.view(), None).view());
            return Ok(());
        }
        let described = {
            let store = self.transaction.store();
            let failed = |error| Error::from(damaged(&after.value(), error));
            let old = before.shallow(&store, None).map_err(failed)?;
            let new = after.shallow(&store, None).map_err(failed)?;
            let names = differing(old.view(), new.view());
            let opened = |large: &LargeDocument, shallow: &DocumentBuf| {
                let whole = large.project(&store, &names).map_err(failed)?;
                Ok::<_, Error>(with_fields(shallow.view(), whole.view()))
            };
            let (old, new) = (opened(before, &old)?, opened(after, &new)?);
            let description = difference::describe(old.view(), new.view());
            description.map(|description| keyed(new.view(), Some(description.view())))
        };
        match described {
            Some(facts) => teller.tell(self.transaction, EventKind::Update, facts.view()),
            None => {
                self.make_room(2 * after.bytes())?;
                let document = large::read(&self.transaction.store(), after)?;
                self.tell_document(EventKind::Replace, id_key, &document);
            }
        }
        Ok(())
    }

    /// Tells of a document that was removed, of which `fields` has the `_id`.
    pub(super) fn tell_removed(&mut self, fields: Document<'_>) {
        if let Some(teller) = self.teller() {
            teller.tell(self.transaction, EventKind::Delete, keyed(fields, None).view());
        }
    }
}

/// The key of an event's document, and what changed.
fn keyed(document: Document<'_>, description: Option<Document<'_>>) -> DocumentBuf {
    let mut facts = DocumentBuilder::new();
    facts.begin_document("key");
    facts.append("_id", document.get("_id").unwrap_or(BsonValue::Null)).end();
    if let Some(description) = description {
        facts.append("description", BsonValue::Document(description));
    }
    facts.build()
}

/// The names of outermost fields that one has otherwise than the other.
fn differing<'a>(old: Document<'a>, new: Document<'a>) -> Vec<&'a [u8]> {
    let differs = |here: Document<'a>, there: Document<'a>| {
        let is_there = move |element: &frond_doc::raw::RawElement<'a>| {
            let other = there.field(element.name);
            other.is_some_and(|it| it.kind == element.kind && it.value == element.value)
        };
        here.elements().filter(move |it| !is_there(it)).map(|it| it.name)
    };
    let mut names: Vec<&[u8]> = differs(old, new).chain(differs(new, old)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// A document with some of its fields as `whole` has them.
fn with_fields(document: Document<'_>, whole: Document<'_>) -> DocumentBuf {
    let mut out = DocumentBuilder::new();
    for element in document.elements() {
        out.append_element(&whole.field(element.name).unwrap_or(element));
    }
    out.build()
}
