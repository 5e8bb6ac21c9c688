//! Writing large documents: pieces travel with the transaction.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use frond_doc::key;
use frond_doc::pieces::{LargeDocument, build_referring, has_deepened, has_references, whole};
use frond_doc::{Document, DocumentBuf, Value as BsonValue};
use frond_engine::{EngineError, Transaction, TreeId};
use frond_query::large::{Depth, Large, NeededPaths};
use frond_query::update::UpdateContext;
use frond_query::{Code, Filter};
use frond_store::{Chunk, ChunkHash, ChunkStore, Layered};
use frond_tree::{Content, Value};

use super::{CollectionWriter, DocumentChange};
use crate::catalog::{adopt, duplicate};
use crate::collection::handles::stored;
use crate::collection::scan::{FetchedDocument, Row};
use crate::collection::update::ParsedUpdate;
use crate::definition::validation::Validator;
use crate::error::Error;
use crate::large::recorder::{Recorder, all_chunks};
use crate::large::{self, damaged, unreadable};
use crate::schema::TreeRef;

/// The number of bytes that the store has already from which on it is synced instead of logging
/// them again: a sync takes as long as writing about that much.
const STORED_BYTES_MIN: usize = 256 << 10;

impl CollectionWriter<'_> {
    /// The value that stands for a document, its pieces taken along. `before` is the large document
    /// in whose place it comes: what that has isn't taken again. If all of it `is_told` all pieces
    /// are taken along, so that the log has them.
    pub(super) fn store_document(
        &mut self,
        document: &DocumentBuf,
        before: Option<&LargeDocument>,
        is_recorded: bool,
    ) -> Result<Value, Error> {
        if document.as_bytes().len() < frond_doc::pieces::LARGE_DOCUMENT_BYTES {
            return Ok(Value::inline(document.clone().into_bytes()));
        }
        // Its chunks, and the log's record of them.
        self.make_room(2 * document.as_bytes().len() as u64)?;
        let format =
            adopt::ensure_repository(self.transaction, self.database, self.branch)?.format();
        let (value, chunks) = {
            let store = self.transaction.store();
            let known = match before.filter(|_| !is_recorded) {
                Some(before) => all_chunks(&store, before.hash())?,
                None => HashSet::new(),
            };
            let recorder = Recorder::new(&store);
            let value = large::value_of(&recorder, format, document)?;
            let chunks = match &value.content {
                Content::Chunk { hash, .. } => recorder.0.into_reached(*hash, &known),
                _ => Vec::new(),
            };
            (value, if is_recorded { chunks } else { without_stored(&store, chunks)? })
        };
        self.transaction.put_chunks(&chunks);
        Ok(value)
    }

    /// Inserts a large document whose chunks are durable; `id` is it with no field but `_id`.
    ///
    /// # Errors
    /// As [`CollectionWriter::insert`]; `Damaged` if the document can't be read where a validator
    /// or an index asks for it.
    pub fn insert_stored(&mut self, large: &LargeDocument, id: Document<'_>) -> Result<(), Error> {
        {
            let store = self.transaction.store();
            self.check_pieces(&Recorder::new(&store), None, large)?;
        }
        if self.series.is_some() {
            let message = "a point of a time series can't come as a stream: it is too large";
            return Err(Error::invalid(Code::BSONObjectTooLarge, message));
        }
        self.insert_pieces(large, &[], id)
    }

    /// Inserts a document some of whose values may be references to what other transactions made.
    ///
    /// # Errors
    /// As [`CollectionWriter::insert`]; `Damaged` if what is referred to can't be read where it has
    /// to be.
    pub fn insert_referring(&mut self, document: &DocumentBuf) -> Result<(), Error> {
        match self.built(None, document)? {
            Some((large, chunks)) => self.insert_pieces(&large, &chunks, document.view()),
            None => self.insert(&self.without_references(document)?),
        }
    }

    /// Puts `after`, some of whose values may be references to what other transactions made, in the
    /// place of a document that was found.
    ///
    /// # Errors
    /// As [`CollectionWriter::replace`]; `Damaged` if what is referred to can't be read where it
    /// has to be.
    pub fn replace_referring(&mut self, row: Row, after: &DocumentBuf) -> Result<(), Error> {
        let is_read_whole = self.validator.is_some() || self.recorder().is_some();
        let built = match &row.large {
            None if is_read_whole => None,
            before => self.built(before.as_ref(), after)?,
        };
        let Some((large, chunks)) = built else {
            let (found, after) = (self.whole(row)?, self.without_references(after)?);
            return match found.document.as_bytes() == after.as_bytes() {
                true => Ok(()),
                false => self.replace(&found, &after, DocumentChange::Changed),
            };
        };
        let Some(before) = row.large else {
            return self.grow(&self.whole(row)?, &large, &chunks);
        };
        if large.hash() == before.hash() {
            return Ok(());
        }
        // The log gets no difference: what it is made of needn't come from the document before.
        self.change_pieces(&row.id_key, (&before, &large), &chunks, Transaction::put_existing)
    }

    /// Puts a large document in the place of one that isn't, where there is no event of the change
    /// and no check.
    fn grow(
        &mut self,
        before: &FetchedDocument,
        after: &LargeDocument,
        chunks: &[Chunk],
    ) -> Result<(), Error> {
        self.check_result(after.bytes())?;
        self.ensure()?;
        self.undoing(|writer| {
            let documents = writer.live()?.documents;
            writer.transaction.put_chunks(chunks);
            let id_key = before.id_key.clone();
            writer.transaction.put_existing(documents, id_key, after.value())?;
            writer.note_replaced(&before.id_key, after.bytes())?;
            let after = writer.indexed(after)?;
            let id_key = key::of_id(after.get("_id").unwrap_or(BsonValue::Null));
            assert!(before.id_key == id_key, "a merge keeps the key of its document");
            writer.change_indexes(&before.id_key, Some(before.document.view()), Some(after.view()))
        })
    }

    fn insert_pieces(
        &mut self,
        large: &LargeDocument,
        chunks: &[Chunk],
        id: Document<'_>,
    ) -> Result<(), Error> {
        self.ensure()?;
        self.undoing(|writer| {
            let id_key = key::of_id(id.get("_id").unwrap_or(BsonValue::Null));
            let documents = writer.live()?.documents;
            if writer.transaction.get(documents, &id_key)?.is_some() {
                return Err(duplicate::of_id(&writer.namespace(), writer.collation(), id));
            }
            writer.transaction.put_chunks(chunks);
            writer.transaction.put_new(documents, id_key.clone(), large.value())?;
            writer.record_large_insert(large)?;
            writer.note_inserted(&id_key, large.bytes())?;
            let indexed = writer.indexed(large)?;
            writer.change_indexes(&id_key, None, Some(indexed.view()))
        })?;
        self.evict()
    }

    /// Updates a large document piece by piece, and returns whether it changed; `None` if it isn't
    /// large, or the update, or a validator, needs the whole document.
    ///
    /// # Errors
    /// As [`CollectionWriter::replace`]; what the update fails with; what interrupts the request.
    pub fn update_large(
        &mut self,
        found: &Row,
        update: &ParsedUpdate,
        filter: &Filter,
    ) -> Result<Option<bool>, Error> {
        let Some(before) = found.large else { return Ok(None) };
        if self.series.is_some() {
            return Ok(None); // It looks at whole documents.
        }
        let context = update.context_of(|| self.position_in(&before, filter))?;
        // Operators write what they bring, and a few pieces beside it; stages may write all of it
        // again.
        let expected = match update.source.as_value() {
            BsonValue::Document(operators) => operators.as_bytes().len() as u64,
            _ => before.bytes(),
        };
        self.make_room(2 * expected)?;
        let Some((after, chunks)) = self.pieces_after(&before, update, &context)? else {
            // Before the whole document is read: it may be that it only was to stop.
            filter.memory().check()?;
            return Ok(None);
        };
        if after.hash() == before.hash() {
            return Ok(Some(false));
        }
        let written: u64 = chunks.iter().map(|chunk| chunk.encoded().len() as u64).sum();
        self.make_room(2 * written.saturating_sub(expected))?;
        let changed = (&before, &after);
        self.change_pieces(&found.id_key, changed, &chunks, Transaction::put_changed_existing)?;
        Ok(Some(true))
    }

    /// Puts a large document in the place of another by `put`.
    fn change_pieces(
        &mut self,
        id_key: &Bytes,
        (before, after): (&LargeDocument, &LargeDocument),
        chunks: &[Chunk],
        put: impl FnOnce(&mut Transaction, TreeId, Bytes, Value) -> Result<(), EngineError>,
    ) -> Result<(), Error> {
        self.ensure()?;
        self.undoing(|writer| {
            let documents = writer.live()?.documents;
            writer.transaction.put_chunks(chunks);
            put(writer.transaction, documents, id_key.clone(), after.value())?;
            writer.record_large_change(before, after)?;
            writer.note_replaced(id_key, after.bytes())?;
            if writer.live()?.collection.indexes.is_empty() {
                return Ok(());
            }
            let (before, after) = (writer.indexed(before)?, writer.indexed(after)?);
            writer.change_indexes(id_key, Some(before.view()), Some(after.view()))
        })
    }

    /// A document some of whose values may be references, as it is stored in the place of `before`,
    /// and the chunks that travel; `None` if it isn't large, or may be nested too deep.
    fn built(
        &mut self,
        before: Option<&LargeDocument>,
        document: &DocumentBuf,
    ) -> Result<Option<(LargeDocument, Vec<Chunk>)>, Error> {
        let refers = has_references(document.view());
        if self.series.is_some() || before.is_none() && !refers || has_deepened(document.view()) {
            return Ok(None);
        }
        self.make_room(2 * document.as_bytes().len() as u64)?;
        let format =
            adopt::ensure_repository(self.transaction, self.database, self.branch)?.format();
        let store = self.transaction.store();
        let recorder = Recorder::new(&store);
        let Some(large) = build_referring(&recorder, format, document.view())? else {
            return Ok(None);
        };
        if before.is_some() {
            self.check_result(large.bytes())?;
        }
        if before.is_none_or(|before| before.hash() != large.hash()) {
            self.check_pieces(&recorder, before, &large)?;
        }
        let known = match before.filter(|_| !refers) {
            Some(before) => all_chunks(&store, before.hash())?,
            None => HashSet::new(),
        };
        let chunks = without_stored(&store, recorder.0.into_reached(large.hash(), &known))?;
        Ok(Some((large, chunks)))
    }

    /// The document with what its references stand for.
    fn without_references(&self, document: &DocumentBuf) -> Result<DocumentBuf, Error> {
        if !has_references(document.view()) {
            return Ok(document.clone());
        }
        whole(&self.transaction.store(), document.view()).map_err(unreadable)
    }

    /// A document that was found, with references for what lies elsewhere; whole if it isn't large,
    /// or has pieces that no other transaction sees yet.
    ///
    /// # Errors
    /// As [`CollectionWriter::whole`].
    pub fn referring(&self, row: &Row) -> Result<DocumentBuf, Error> {
        let shallow = match &row.large {
            Some(large) => self.shallow(&self.transaction.store(), large)?,
            None => None,
        };
        match shallow {
            Some(shallow) => Ok(shallow),
            None => Ok(self.whole(row.clone())?.document),
        }
    }

    /// A large document with references for what lies elsewhere, and their reader; `None` if it has
    /// pieces that no other transaction sees yet.
    ///
    /// # Errors
    /// As [`CollectionWriter::whole`].
    pub fn shallow_of(&self, large: &LargeDocument) -> Result<Option<(DocumentBuf, Large)>, Error> {
        let shallow = self.shallow(&self.transaction.store(), large)?;
        let everybodys = self.database.frond().engine().store();
        Ok(shallow.map(|shallow| (shallow, stored(everybodys))))
    }

    /// All of a large document.
    ///
    /// # Errors
    /// As [`CollectionWriter::whole`].
    pub fn whole_of(&self, large: &LargeDocument) -> Result<DocumentBuf, Error> {
        self.make_room(large.bytes())?;
        Ok(large::read(&self.transaction.store(), large)?)
    }

    /// A document with references for what lies elsewhere, but `_id`; `None` if it has pieces that
    /// no other transaction sees yet.
    fn shallow(
        &self,
        store: &dyn ChunkStore,
        large: &LargeDocument,
    ) -> Result<Option<DocumentBuf>, Error> {
        let everybodys = self.database.frond().engine().store();
        if everybodys.get(large.hash()).is_err() {
            return Ok(None);
        }
        let failed = |error| Error::from(damaged(&large.value(), error));
        let document = large.shallow(store, None).map_err(failed)?;
        let mut id = NeededPaths::default();
        id.add("_id", Depth::Whole);
        Ok(Some(stored(everybodys).open_document(&id, document)?))
    }

    /// The document with all its fields.
    ///
    /// # Errors
    /// `Damaged` if the document isn't there or can't be read; what interrupts the wait for memory.
    pub fn whole(&self, row: Row) -> Result<FetchedDocument, Error> {
        self.make_room(row.large.map_or(0, |large| large.bytes()))?;
        match self.documents() {
            Some(documents) => row.into_whole(&self.reader(), documents),
            None => Err(Error::internal("a document of no collection")),
        }
    }

    /// The pieces of the document that has this key now, if it is large.
    ///
    /// # Errors
    /// As [`Reader::get`](crate::reader::Reader::get).
    pub fn large_at(&self, id_key: &[u8]) -> Result<Option<LargeDocument>, Error> {
        let Some(documents) = self.documents() else { return Ok(None) };
        Ok(self.reader().get(documents, id_key)?.as_ref().and_then(large::head))
    }

    /// These outermost fields of a large document.
    ///
    /// # Errors
    /// As [`Reader::get`](crate::reader::Reader::get).
    pub fn fields_of(&self, large: &LargeDocument, names: &[&[u8]]) -> Result<DocumentBuf, Error> {
        let fields = large.project(&self.transaction.store(), names);
        Ok(fields.map_err(|error| damaged(&large.value(), error))?)
    }

    /// The position of the element by which a large document passes the filter.
    fn position_in(&self, large: &LargeDocument, filter: &Filter) -> Result<Option<usize>, Error> {
        let store = self.transaction.store();
        let answer = filter
            .position_in_pieces(&mut |path, visit| large.visit_reached(&store, path, visit))
            .map_err(|error| damaged(&large.value(), error))?;
        if let Some(position) = answer {
            return Ok(position);
        }
        let fields = match filter.outermost_names() {
            Some(names) => self.fields_of(large, &names.collect::<Vec<_>>())?,
            None => large::read(&store, large)?,
        };
        Ok(filter.matches_position(fields.view()).1)
    }

    /// The head after an update, and the chunks that are new.
    fn pieces_after(
        &mut self,
        before: &LargeDocument,
        update: &ParsedUpdate,
        context: &UpdateContext,
    ) -> Result<Option<(LargeDocument, Vec<Chunk>)>, Error> {
        let format = match self.documents() {
            Some(TreeRef::Live(tree)) => self.transaction.format(tree)?,
            Some(TreeRef::Committed(tree)) => tree.format,
            None => return Err(Error::internal("a document of no collection")),
        };
        if update.update.names_dollar_fields() {
            return Ok(None); // Whether one changes is seen of whole documents.
        }
        let store = self.transaction.store();
        let opened = before.in_format(format);
        let recorder = Recorder::new(&store);
        let after = match update.source.as_value() {
            BsonValue::Document(operators) => {
                let filters = update.array_filters();
                let Some(variables) = update.update.variables() else { return Ok(None) };
                large::update::apply(&recorder, &opened, operators, filters, context, variables)
                    .map_err(|error| damaged(&before.value(), error))?
            }
            BsonValue::Array(_) => self.staged(&recorder, &opened, update, context)?,
            _ => None,
        };
        let Some(after) = after else { return Ok(None) };
        if before.bytes() < after.bytes() {
            self.check_result(after.bytes())?;
        }
        if after.hash() != before.hash() {
            self.check_pieces(&recorder, Some(before), &after)?;
        }
        let chunks = recorder.0.into_reached(after.hash(), &HashSet::new());
        Ok(Some((after, without_stored(&store, chunks)?)))
    }

    /// The document as stages make it of the one with references; `None` if it isn't large any
    /// more, has pieces that no other transaction sees yet, or is the same by another way: whether
    /// that counts as a change is seen of the whole document, as of a small one.
    fn staged(
        &self,
        store: &dyn ChunkStore,
        before: &LargeDocument,
        update: &ParsedUpdate,
        context: &UpdateContext,
    ) -> Result<Option<LargeDocument>, Error> {
        let Some(document) = self.shallow(store, before)? else { return Ok(None) };
        let large = stored(self.database.frond().engine().store());
        let stages = update.update.clone().with_large(&large);
        let Some(made) = stages.apply(document.view(), context)? else {
            return Ok(Some(*before));
        };
        if has_deepened(made.view()) {
            return Ok(None);
        }
        let built = build_referring(store, before.format(), made.view())?;
        Ok(built.filter(|built| built.hash() != before.hash()))
    }

    /// Refuses what the validator doesn't let through, which opens what it looks at; of what it
    /// refuses, the outermost fields that it asks for are read.
    fn check_pieces(
        &self,
        store: &Layered<Recorder<'_>>,
        before: Option<&LargeDocument>,
        after: &LargeDocument,
    ) -> Result<(), Error> {
        let Some(validator) = &self.validator else { return Ok(()) };
        if self.passes_in_pieces(validator, store, before, after)? {
            return Ok(());
        }
        let names = validator.outermost_names().map(|mut names| {
            // The error names the `_id` of a document that is refused.
            if !names.contains(&&b"_id"[..]) {
                names.push(b"_id");
            }
            names
        });
        let part_of = |large: &LargeDocument| match &names {
            Some(names) => {
                let fields = large.project(store, names);
                Ok(fields.map_err(|error| damaged(&large.value(), error))?)
            }
            None => large::read(store, large),
        };
        let before = before.filter(|_| validator.compares_before()).map(part_of).transpose()?;
        self.check_valid(before.as_ref().map(DocumentBuf::view), part_of(after)?.view())
    }

    /// Checks whether a document passes the validator, which opens the parts it tests; `false` also
    /// where only this transaction has the former document.
    fn passes_in_pieces(
        &self,
        validator: &Validator,
        store: &Layered<Recorder<'_>>,
        before: Option<&LargeDocument>,
        after: &LargeDocument,
    ) -> Result<bool, Error> {
        let everybodys = self.database.frond().engine().store();
        if before.is_some_and(|before| everybodys.get(before.hash()).is_err()) {
            return Ok(false);
        }
        let fields = after.shallow(store, None);
        let fields = fields.map_err(|error| damaged(&after.value(), error))?;
        let beside: Arc<dyn ChunkStore> = Arc::new(store.0.beside(everybodys));
        validator.matches_in_pieces(&stored(&beside), fields)
    }

    /// The outermost fields that decide about entries of indexes; the whole document if all may.
    pub(super) fn indexed(&self, large: &LargeDocument) -> Result<DocumentBuf, Error> {
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
        self.fields_of(large, &names)
    }
}

/// The chunks that must travel with the transaction. Those that the store has may not be durable;
/// where they are many, reading them again and syncing the store costs less than logging them
/// again: what is damaged there travels. The transaction keeps them from being collected.
fn without_stored(store: &dyn ChunkStore, chunks: Vec<Chunk>) -> Result<Vec<Chunk>, Error> {
    let bytes = |chunks: &[Chunk]| chunks.iter().map(|it| it.encoded().len()).sum::<usize>();
    if bytes(&chunks) < STORED_BYTES_MIN {
        return Ok(chunks);
    }
    let hashes: Vec<ChunkHash> = chunks.iter().map(Chunk::hash).collect();
    let has = store.has_intact(&hashes)?;
    let lacking = hashes.iter().zip(has).filter(|(_, has)| !has).map(|(hash, _)| *hash);
    let new = with_ancestors(&chunks, lacking.collect());
    if bytes(&chunks) - bytes(&new) < STORED_BYTES_MIN {
        return Ok(chunks);
    }
    store.sync()?;
    Ok(new)
}

/// Those of `chunks` that are in `new`, and what leads to them. A stored chunk may refer to a
/// damaged one; and a walk that moves new chunks from the transaction to packs ends at those
/// already there.
fn with_ancestors(chunks: &[Chunk], mut new: HashSet<ChunkHash>) -> Vec<Chunk> {
    loop {
        let count = new.len();
        let leads = |chunk: &&Chunk| chunk.references().any(|hash| new.contains(&hash));
        let more: Vec<ChunkHash> = chunks.iter().filter(leads).map(Chunk::hash).collect();
        new.extend(more);
        if new.len() == count {
            return chunks.iter().filter(|chunk| new.contains(&chunk.hash())).cloned().collect();
        }
    }
}
