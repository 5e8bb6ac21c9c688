//! A change stream behind a cursor: its events as documents, and where it goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use frond_db::{ChangeStream, Error, Interrupt};
use frond_doc::DocumentBuf;

use super::batch::Documents;

/// A stream behind a cursor.
#[derive(Clone)]
pub struct OpenStream(Arc<Mutex<ChangeStream>>);

impl OpenStream {
    /// A stream, its events as they come, and the flag that no others will.
    pub fn new(stream: ChangeStream) -> (OpenStream, Documents, Arc<AtomicBool>) {
        let stream = OpenStream(Arc::new(Mutex::new(stream)));
        let is_over = Arc::new(AtomicBool::new(false));
        let events = Events { stream: stream.clone(), is_over: Arc::clone(&is_over) };
        (stream, Box::new(events), is_over)
    }

    /// The token from which the stream goes on with what wasn't read yet.
    pub fn token(&self) -> DocumentBuf {
        self.lock().token()
    }

    /// Whether anything was written since it last looked.
    pub fn has_news(&self) -> bool {
        self.lock().has_news()
    }

    fn lock(&self) -> MutexGuard<'_, ChangeStream> {
        // A panic while an event is made leaves the stream where it was.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The events that are there by now.
struct Events {
    stream: OpenStream,
    is_over: Arc<AtomicBool>,
}

impl Iterator for Events {
    type Item = Result<DocumentBuf, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut stream = self.stream.lock();
        // It reads a bounded part of the log; a caller that asks looks for what ends the operation.
        let next = stream.next(&Interrupt::default());
        self.is_over.store(stream.is_over() || next.is_err(), Ordering::Relaxed);
        next.transpose()
    }
}
