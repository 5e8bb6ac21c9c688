//! Writing large documents: pieces travel with the transaction.

use std::collections::HashSet;

use frond_doc::pieces::LargeDocument;
use frond_doc::{Document, DocumentBuf, Value as BsonValue};
use frond_store::{Chunk, ChunkHash};
use frond_tree::{Content, Value};

use super::{CollectionWriter, DOCUMENT_BYTES_MAX, RESULT_TOO_LARGE};
use crate::catalog::adopt;
use crate::collection::scan::Found;
use crate::collection::update::ParsedUpdate;
use crate::error::Error;
use crate::large::recorder::{Recorder, all_chunks};
use crate::large::{self, damaged};

impl CollectionWriter<'_> {
    /// The value that stands for a document, its pieces taken along. `before` is the large document
    /// in whose place it comes: what that has isn't taken again.
    pub(super) fn store_document(
        &mut self,
        document: &DocumentBuf,
        before: Option<&LargeDocument>,
    ) -> Result<Value, Error> {
        if document.as_bytes().len() < frond_doc::pieces::LARGE_DOCUMENT_BYTES {
            return Ok(Value::inline(document.clone().into_bytes()));
        }
        let format =
            adopt::ensure_repository(self.transaction, self.database, self.branch)?.format();
        let (value, chunks) = {
            let store = self.transaction.store();
            let known = match before {
                Some(before) => all_chunks(&store, before.hash())?,
                None => HashSet::new(),
            };
            let recorder = Recorder::new(&store);
            let value = large::value_of(&recorder, format, document)?;
            let chunks = match &value.content {
                Content::Chunk { hash, .. } => recorder.into_reached(*hash, &known),
                _ => Vec::new(),
            };
            (value, chunks)
        };
        self.transaction.put_chunks(&chunks);
        Ok(value)
    }

    /// Updates a large document piece by piece, and tells whether it changed; `None` if it isn't
    /// large, or the update, or a validator, needs the whole document.
    pub fn update_large(
        &mut self,
        found: &Found,
        update: &ParsedUpdate,
    ) -> Result<Option<bool>, Error> {
        let (Some(before), BsonValue::Document(operators)) =
            (found.large, update.source.as_value())
        else {
            return Ok(None);
        };
        if self.validator.is_some() {
            return Ok(None); // It looks at whole documents, before and after.
        }
        let Some((after, chunks)) = self.pieces_after(&before, operators, update)? else {
            return Ok(None);
        };
        if after == before.hash() {
            return Ok(Some(false));
        }
        self.ensure()?;
        let mut changed = None;
        self.undoing(|writer| {
            let documents = writer.live()?.documents;
            writer.check_first(documents, &found.id_key)?;
            writer.transaction.put_chunks(&chunks);
            let value = Value { flags: 0, content: head(after, &before) };
            let large = large::head(&writer.transaction.store(), &value)?;
            let large = large.ok_or_else(|| Error::internal("an update made no large document"))?;
            writer.transaction.put(documents, found.id_key.clone(), value)?;
            let (before, after) = (writer.indexed(&before)?, writer.indexed(&large)?);
            changed = Some(true);
            writer.change_indexes(&found.id_key, Some(before.view()), Some(after.view()))
        })?;
        Ok(changed)
    }

    /// The document with all its fields.
    pub fn whole(&self, found: Found) -> Result<Found, Error> {
        let Some(large) = &found.large else { return Ok(found) };
        let document = large::read(&self.transaction.store(), large)?;
        Ok(Found { document, ..found })
    }

    /// The head after an update, and the chunks that are new.
    fn pieces_after(
        &mut self,
        before: &LargeDocument,
        operators: Document<'_>,
        update: &ParsedUpdate,
    ) -> Result<Option<(ChunkHash, Vec<Chunk>)>, Error> {
        let format =
            adopt::ensure_repository(self.transaction, self.database, self.branch)?.format();
        let store = self.transaction.store();
        let opened = large::head_to_change(&store, format, &before.value())?;
        let opened = opened.ok_or_else(|| Error::internal("a large document without a head"))?;
        let recorder = Recorder::new(&store);
        let after = large::update::apply(&recorder, &opened, operators, &update.context)
            .map_err(|error| damaged(&before.value(), error))?;
        let Some(after) = after else { return Ok(None) };
        if DOCUMENT_BYTES_MAX as u64 <= after.bytes() && before.bytes() < after.bytes() {
            let message =
                format!("Resulting document after update is larger than {DOCUMENT_BYTES_MAX}");
            return Err(Error::invalid(RESULT_TOO_LARGE, message));
        }
        Ok(Some((after.hash(), recorder.into_reached(after.hash(), &HashSet::new()))))
    }

    /// The outermost fields that decide about entries of indexes; the whole document if all may.
    fn indexed(&self, large: &LargeDocument) -> Result<DocumentBuf, Error> {
        let mut names: Vec<&[u8]> = vec![b"_id"];
        for index in self.live.iter().flat_map(|live| &live.collection.indexes) {
            let Some(more) = index.outermost_names() else {
                return Ok(large::read(&self.transaction.store(), large)?);
            };
            for name in more {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let fields = large.project(&self.transaction.store(), &names);
        Ok(fields.map_err(|error| damaged(&large.value(), error))?)
    }
}

/// Where the value lies of a document that has the head `after` in the place of `before`.
fn head(after: ChunkHash, before: &LargeDocument) -> Content {
    match before.value().content {
        Content::Chunk { bytes, .. } => Content::Chunk { hash: after, bytes },
        content => content,
    }
}
