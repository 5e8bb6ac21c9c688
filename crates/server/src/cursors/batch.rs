//! Reading a cursor's documents into one answer after the other.
//!
//! A batch ends at so many documents, at about 16 MB, or where the server has no memory for more
//! ([`crate::answer_memory`]): the client then asks for the next. To know whether a batch is the
//! last one, one document more is read, and kept for the next batch ([`crate::kept_documents`]).
//! Where there is no room for it, it goes into the batch that it was too much for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use frond_db::Error;
use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_query::Code;

use crate::answer_memory::AnswerMemory;
use crate::cursors::{CursorFacts, Following, OpenStream};
use crate::kept_documents::KeptDocument;
use crate::limits::{BATCH_BYTES_MAX, COMMAND_BYTES_MARGIN, REPLY_BYTES_MAX};
use crate::operations::{CurrentOperation, Origin};
use crate::peer::Presence;

/// The bytes of an element of a batch besides its document: a type and a position.
const ELEMENT_BYTES_MAX: usize = 16;

/// The most bytes of an answer besides its batch.
const ANSWER_BYTES_MARGIN: usize = COMMAND_BYTES_MARGIN as usize;
const ANSWER_BYTES_MAX: usize = REPLY_BYTES_MAX - ANSWER_BYTES_MARGIN;

const NO_ROOM_TO_KEEP: &str = "open cursors keep as many documents as are allowed, in memory and in \
                               files: close some, or ask for batches with fewer documents";

/// The source of a cursor's documents.
pub type Documents = Box<dyn Iterator<Item = Result<DocumentBuf, Error>> + Send>;

/// A cursor, taken from the table or not in it yet.
pub struct OpenCursor {
    /// The facts about it.
    pub facts: CursorFacts,
    /// The command that reads it now.
    pub current: CurrentOperation,
    /// Says whether it stays open when it has no more.
    pub following: Following,
    /// Set for one that stays open when no more documents can come.
    pub is_over: Option<Arc<AtomicBool>>,
    /// The change stream that it reads.
    pub stream: Option<OpenStream>,
    /// The connection over which it was used last.
    pub client: Arc<Presence>,
    /// The command that opened it.
    pub origin: Option<Arc<Origin>>,
    /// The time that it may still be read: what is left of the `maxTimeMS` of the command that
    /// opened it. Time between its batches doesn't count.
    pub time_left: Option<Duration>,
    documents: Documents,
    /// The error behind the documents that were read.
    failed: Option<Error>,
    /// A document that was read but didn't go into the last batch.
    held: Option<KeptDocument>,
    /// The size of the last batch: about as much as the next.
    batch_bytes: usize,
    /// The number of documents it had.
    batch_documents: u64,
}

/// The size that a batch may have.
#[derive(Clone, Copy, Debug)]
pub struct BatchSize {
    /// The greatest number of documents; `None`: as many as fit.
    pub documents_max: Option<u64>,
    /// Whether there is no other batch, so that this one waits for the memory that it needs.
    pub is_single: bool,
    /// Whether the command's time is how long it waits for something to come, and not a limit.
    pub is_awaited: bool,
}

impl OpenCursor {
    /// A cursor over `documents`.
    pub fn new(facts: CursorFacts, documents: Documents) -> OpenCursor {
        OpenCursor {
            facts,
            current: CurrentOperation::default(),
            following: Following::Nothing,
            is_over: None,
            stream: None,
            client: Arc::default(),
            origin: None,
            time_left: None,
            documents,
            failed: None,
            held: None,
            batch_bytes: 0,
            batch_documents: 0,
        }
    }

    /// Whether nothing comes after what there is now.
    fn ends(&self) -> bool {
        self.following == Following::Nothing
            || self.is_over.as_ref().is_some_and(|is_over| is_over.load(Ordering::Relaxed))
    }

    /// Returns how many documents the last batch had.
    pub fn batch_documents(&self) -> u64 {
        self.batch_documents
    }

    /// Reads at most so many documents and about 16 MB (one document at least) into the array that
    /// is open in `answer`; returns whether the cursor has no more. Looks one document ahead, so
    /// that the last batch says that it is the last.
    ///
    /// # Errors
    /// An error of the documents; the error that ends the operation; that the answer is larger than
    /// there is memory for.
    pub fn next_batch(
        &mut self,
        answer: &mut DocumentBuilder,
        size: BatchSize,
        room: &AnswerMemory<'_>,
    ) -> Result<bool, Error> {
        let before = answer.bytes();
        // Else the answer grows by doubling, and is copied each time.
        if room.fits(before + self.batch_bytes) {
            answer.reserve(self.batch_bytes);
        }
        let is_last = self.read_batch(answer, size, room)?;
        self.batch_bytes = answer.bytes() - before;
        if let Some(stream) = &self.stream
            && self.held.is_none()
        {
            self.facts.resume_token = Some(stream.token());
        }
        Ok(is_last)
    }

    /// The next document: one that didn't fit into the batch before, or one that is read.
    fn next_document(
        &mut self,
        answer_bytes: usize,
        room: &AnswerMemory<'_>,
    ) -> Result<Option<DocumentBuf>, Error> {
        let Some(held) = self.held.take() else { return self.documents.next().transpose() };
        // Before it is read: one in a file takes no memory while its answer waits for some.
        room.wait_for(answer_bytes + held.bytes() + ELEMENT_BYTES_MAX)?;
        held.take().map(Some)
    }

    fn read_batch(
        &mut self,
        answer: &mut DocumentBuilder,
        size: BatchSize,
        room: &AnswerMemory<'_>,
    ) -> Result<bool, Error> {
        self.batch_documents = 0;
        self.failed.take().map_or(Ok(()), Err)?;
        if size.documents_max == Some(0) {
            return Ok(false);
        }
        let (mut count, mut largest, before) = (0_u64, 0, answer.bytes());
        let is_last = loop {
            if size.is_awaited {
                room.operation.check_killed()?;
            }
            let has_all = size.documents_max.is_some_and(|max| count >= max);
            if has_all && !room.kept.has_memory(largest) {
                break false;
            }
            let document = match self.next_document(answer.bytes(), room) {
                Ok(Some(document)) => document,
                Ok(None) => break self.ends(),
                // An error met while looking ahead belongs to the next batch.
                Err(error) if has_all || self.stream.is_some() && count > 0 => {
                    self.failed = Some(error);
                    break false;
                }
                Err(error) => return Err(error),
            };
            // Not before: a pipeline that ends in `$out` gives nothing, and has written by now.
            if !size.is_awaited {
                room.operation.check()?;
            }
            let document_bytes = document.as_bytes().len();
            let bytes = answer.bytes() + document_bytes + ELEMENT_BYTES_MAX;
            let is_full = has_all || count > 0 && bytes - before > BATCH_BYTES_MAX;
            match (size.is_single, count) {
                (true, _) if is_full => break false,
                (true, _) => room.wait_for_batch(bytes)?,
                (false, 0) => room.wait_for(bytes)?,
                (false, _) => {}
            }
            if is_full || !room.fits(bytes) {
                self.keep_document(document, (answer, bytes), room)?;
                break false;
            }
            self.append_document(answer, &document);
            (count, largest) = (count + 1, largest.max(document_bytes));
        };
        room.finish(answer.bytes() + ANSWER_BYTES_MARGIN);
        Ok(is_last)
    }

    /// Keeps a document for the next batch; without room for it, appends it if it fits.
    fn keep_document(
        &mut self,
        document: DocumentBuf,
        (answer, bytes): (&mut DocumentBuilder, usize),
        room: &AnswerMemory<'_>,
    ) -> Result<(), Error> {
        match room.kept.keep(document) {
            Ok(kept) => self.held = Some(kept),
            Err(document) if bytes <= ANSWER_BYTES_MAX && room.fits(bytes) => {
                self.append_document(answer, &document);
            }
            Err(_) => return Err(Error::invalid(Code::ExceededMemoryLimit, NO_ROOM_TO_KEEP)),
        }
        Ok(())
    }

    fn append_document(&mut self, answer: &mut DocumentBuilder, document: &DocumentBuf) {
        answer.push(Value::Document(document.view()));
        self.batch_documents += 1;
        self.note_token(document);
    }

    /// Notes behind which event of a change stream to go on.
    fn note_token(&mut self, event: &DocumentBuf) {
        if self.stream.is_some()
            && let Some(Value::Document(id)) = event.get("_id")
        {
            self.facts.resume_token = Some(id.to_buf());
        }
    }
}
