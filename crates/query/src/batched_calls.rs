//! The script calls of one document when documents are evaluated in batches: calls already made are
//! answered, the next one is noted, to be made together with those of the other documents.

use std::sync::Arc;

use frond_doc::{DocumentBuf, ValueBuf};
use frond_script::Call;

use crate::code::Code;
use crate::error::QueryError;

/// The calls of one document, in their order.
#[derive(Default)]
pub(crate) struct BatchedCalls {
    made: Vec<(DocumentBuf, Result<ValueBuf, QueryError>)>,
    /// The number of calls that were answered.
    position: usize,
    next: Option<NextCall>,
}

/// A call that is to be made.
pub(crate) struct NextCall {
    /// The call, as a document.
    pub(crate) message: DocumentBuf,
    /// What is global for it.
    pub(crate) globals: Option<Arc<DocumentBuf>>,
}

impl BatchedCalls {
    /// The answer to a call, an error where it was noted; `None` if it is to be made at once. That
    /// is so where it isn't the one of the time before, by a `$rand`: it might never be.
    pub(crate) fn answer(
        &mut self,
        call: &Call<'_>,
        globals: Option<&Arc<DocumentBuf>>,
    ) -> Option<Result<ValueBuf, QueryError>> {
        let waits = || QueryError::new(Code::InternalError, "a script's call waits for others");
        if self.next.is_some() {
            return Some(Err(waits()));
        }
        let message = call.write();
        let Some((made, answer)) = self.made.get(self.position) else {
            self.next = Some(NextCall { message, globals: globals.cloned() });
            return Some(Err(waits()));
        };
        self.position += 1;
        (*made == message).then(|| answer.clone())
    }

    /// The call that was noted. The document is asked anew.
    pub(crate) fn take_next(&mut self) -> Option<NextCall> {
        self.position = 0;
        self.next.take()
    }

    /// Takes what became of a call that was noted.
    pub(crate) fn push(&mut self, message: DocumentBuf, answer: Result<ValueBuf, QueryError>) {
        self.made.push((message, answer));
    }
}
