//! Parts that several answers have.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use frond_db::{Error, request_profile};
use frond_doc::{DocumentBuf, DocumentBuilder, Value};

use crate::access::Granted;
use crate::authorization;
use crate::cursors::{BatchSize, CursorFacts, Documents, Following, OpenCursor, OpenStream};
use crate::limits::FIRST_BATCH_DOCUMENTS;
use crate::log::shortened;
use crate::operations::{CurrentOperation, Origin};
use crate::request::{Answer, Request};
use crate::usage::DocumentEvent;

/// Room for an answer of one small document.
const ANSWER_BYTES: usize = 2 << 10;
/// The size of a command that opened a cursor above which its long parts aren't kept.
const ORIGIN_BYTES_MAX: usize = 4 << 10;

/// The options of the first batch.
#[derive(Clone, Default)]
pub struct BatchOptions {
    /// The greatest number of documents.
    pub size: Option<u64>,
    /// Close the cursor after the first batch.
    pub is_single: bool,
    /// Keep the cursor open however long it is not used.
    pub no_timeout: bool,
    /// The operation, which the query asks whether to go on.
    pub current: CurrentOperation,
    /// The behaviour at the end: whether the cursor stays open for documents that come later.
    pub following: Following,
    /// It has written its documents to a collection, and returns none: an operation that is out of
    /// time by now is done all the same.
    pub has_written: bool,
    /// Set when no more documents can come.
    pub is_over: Option<Arc<AtomicBool>>,
    /// The change stream that it reads.
    pub stream: Option<OpenStream>,
}

/// Answers with the first batch of `documents`, and keeps the rest as a cursor.
pub fn first_batch(
    request: &Request<'_>,
    namespace: String,
    documents: Documents,
    options: BatchOptions,
) -> Answer {
    let facts = CursorFacts {
        user: request.peer.digest(),
        granted: None,
        namespace,
        session: request.common.session,
        connection: request.peer.id,
        address: request.peer.address.ip(),
        transaction: request.current.as_ref().map(|current| current.slot.number),
        no_timeout: options.no_timeout,
        api: request.common.api,
        read_time: request.read_time(),
        resume_token: None,
    };
    let mut cursor = OpenCursor::new(facts, documents);
    cursor.current = options.current;
    cursor.following = options.following;
    cursor.is_over = options.is_over;
    cursor.stream = options.stream;
    cursor.client = Arc::clone(&request.peer.presence);
    let documents_max = Some(options.size.unwrap_or(FIRST_BATCH_DOCUMENTS));
    let size = BatchSize { documents_max, is_single: options.is_single, is_awaited: false };
    let mut answer = begin_batch("firstBatch");
    let is_last = options.has_written || cursor.next_batch(&mut answer, size, &request.room())?;
    count_returned(request, &cursor);
    if is_last || options.is_single {
        return Ok(end_batch(answer, 0, &cursor.facts));
    }
    if let Some(current) = &request.current {
        current.slot.note_cursor();
    }
    cursor.facts.granted = granted(request)?;
    cursor.origin = Some(origin(request));
    cursor.time_left = request.operation.time_left();
    let facts = cursor.facts.clone();
    let id = request.server.cursors.open(cursor, std::time::Instant::now())?;
    Ok(end_batch(answer, id, &facts))
}

/// Counts the documents of the batch that a cursor has made.
pub fn count_returned(request: &Request<'_>, cursor: &OpenCursor) {
    let work = request.server.usage.work();
    work.count_documents(DocumentEvent::Returned, cursor.batch_documents());
}

/// Returns a record of the command that opens a cursor, for reports when it is read on.
fn origin(request: &Request<'_>) -> Arc<Origin> {
    let sent = &request.operation.sent;
    let command = match sent.as_bytes().len() <= ORIGIN_BYTES_MAX {
        true => sent.clone(),
        false => shortened(sent.view()),
    };
    Arc::new(Origin { command, plan: request_profile::plan() })
}

/// Returns the rights that the command used, to be checked again when its cursor is read on.
fn granted(request: &Request<'_>) -> Result<Option<Arc<Granted>>, Error> {
    let Some(rights) = &request.rights else { return Ok(None) };
    let granted = authorization::granted(&request.authorization(rights), request.needs)?;
    Ok(Some(Arc::new(granted)))
}

/// Answers with documents that are all there already: all at once unless `size` says otherwise.
pub fn listing(
    request: &Request<'_>,
    namespace: String,
    documents: Vec<DocumentBuf>,
    size: Option<u64>,
) -> Answer {
    let documents: Documents = Box::new(documents.into_iter().map(Ok));
    // Not the count of documents: with none, a batch of 0 would leave an empty cursor open.
    let options = BatchOptions { size: Some(size.unwrap_or(u64::MAX)), ..BatchOptions::default() };
    first_batch(request, namespace, documents, options)
}

/// Begins `{cursor: {firstBatch | nextBatch: [...], id, ns}}`: documents are pushed next.
pub fn begin_batch(name: &str) -> DocumentBuilder {
    let mut answer = DocumentBuilder::with_capacity(ANSWER_BYTES);
    answer.begin_document("cursor").begin_array(name);
    answer
}

/// Ends what [`begin_batch`] began.
pub fn end_batch(mut answer: DocumentBuilder, id: i64, facts: &CursorFacts) -> DocumentBuilder {
    answer.end();
    if let Some(token) = &facts.resume_token {
        answer.append("postBatchResumeToken", Value::Document(token.view()));
    }
    if let Some(time) = facts.read_time {
        answer.append("atClusterTime", Value::Timestamp(time));
    }
    answer.append("id", Value::Int64(id)).append("ns", Value::String(&facts.namespace)).end();
    answer
}

/// A count as MongoDB answers it: an int where it fits, otherwise a long.
pub fn number(count: u64) -> Value<'static> {
    match i32::try_from(count) {
        Ok(count) => Value::Int32(count),
        Err(_) => Value::Int64(long(count)),
    }
}

/// A count as a long.
pub fn long(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Reads the batch size from a command's `cursor: {batchSize}`.
///
/// # Errors
/// `TypeMismatch` (14); a size below zero; any field beside it.
pub fn cursor_batch_size(
    path: &str,
    cursor: Option<frond_doc::Document<'_>>,
) -> Result<Option<u64>, Error> {
    let Some(cursor) = cursor else { return Ok(None) };
    let mut fields = crate::fields::Fields::of_part(path, cursor)?;
    let size = fields.count("batchSize")?;
    fields.finish()?;
    Ok(size)
}
