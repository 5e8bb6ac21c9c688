//! The memory of one answer while it is made.
//!
//! 1. The first [`FREE_BYTES`] are free for every answer.
//! 2. Further bytes come from the budget of answers, a step at a time. If there is none left, a
//!    batch that isn't empty ends there: the client asks for more, and the server doesn't wait.
//! 3. An answer that can't do with less waits: for its first document, or for a whole batch that
//!    has to be single. It waits once and holds nothing meanwhile, so that answers that hold memory
//!    can always go on.
//! 4. Each that waits has a thread, so only half of the threads may: the others are for commands
//!    with small answers, and what is more is refused.

use std::cell::RefCell;

use frond_db::Error;
use frond_db::memory_queue::{MemoryQueue, MemoryShare};
use frond_query::Code;

use crate::kept_documents::KeptRoom;
use crate::limits::{BATCH_BYTES_MAX, FREE_BYTES, ROOM_STEP_BYTES};
use crate::operations::Operation;

const TOO_MANY_WAIT: &str = "too many large answers wait for memory, since clients don't read \
                             theirs: ask again later, or for smaller batches";

/// The memory of one answer.
pub struct AnswerMemory<'a> {
    /// The memory that answers share.
    pub answers: &'a MemoryQueue,
    /// The number of answers that may wait for that.
    pub waiting_max: usize,
    /// The room for documents that were read and didn't go into a batch.
    pub kept: KeptRoom<'a>,
    /// The memory that the answer holds, to be kept until the client has it.
    pub share: &'a RefCell<Option<MemoryShare>>,
    /// The command that waits, until it is interrupted.
    pub operation: &'a Operation,
}

impl AnswerMemory<'_> {
    /// Whether the answer may have so many bytes now.
    pub fn fits(&self, bytes: usize) -> bool {
        if bytes <= FREE_BYTES {
            return true;
        }
        // One that is larger than all there is has all there is.
        let needed = bytes.min(self.answers.bytes());
        let wanted = bytes.next_multiple_of(ROOM_STEP_BYTES).min(self.answers.bytes());
        let mut share = self.share.borrow_mut();
        match &mut *share {
            Some(share) => {
                needed <= share.bytes() || share.try_grow(wanted) || share.try_grow(needed)
            }
            None => {
                *share = self.answers.try_take(wanted).or_else(|| self.answers.try_take(needed));
                share.is_some()
            }
        }
    }

    /// Waits until the answer may have so many bytes.
    ///
    /// # Errors
    /// The error that ends the command meanwhile; `ExceededMemoryLimit` if too many wait.
    pub fn wait_for(&self, bytes: usize) -> Result<(), Error> {
        if self.fits(bytes) {
            return Ok(());
        }
        if self.waiting_max <= self.answers.waiting_count() {
            return Err(Error::invalid(Code::ExceededMemoryLimit, TOO_MANY_WAIT));
        }
        // Given back before the wait: an answer that waits holds nothing.
        drop(self.share.take());
        let share = self.answers.take(bytes, || self.operation.check())?;
        *self.share.borrow_mut() = Some(share);
        Ok(())
    }

    /// Waits until the answer may have a whole batch, and needs `bytes` of it at once.
    ///
    /// # Errors
    /// As [`AnswerMemory::wait_for`].
    pub fn wait_for_batch(&self, bytes: usize) -> Result<(), Error> {
        match bytes <= FREE_BYTES {
            true => Ok(()),
            false => self.wait_for(bytes.max(BATCH_BYTES_MAX)),
        }
    }

    /// Gives back what an answer of so many bytes doesn't need.
    pub fn finish(&self, bytes: usize) {
        if let Some(share) = &mut *self.share.borrow_mut() {
            share.shrink(bytes);
        }
    }
}
