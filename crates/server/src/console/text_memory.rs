//! The memory that bodies and answers hold, as text.
//!
//! 1. A body holds what has come of it, never what its head announces; the first [`FREE_BYTES`]
//!    cost nothing, so that logins and small commands never wait here.
//! 2. A body that needs more than there is waits for the turn. The one that has it takes what it
//!    needs beyond what there is, and waits for nothing here.
//! 3. An answer is there as a whole: it waits for all that it needs, and holds nothing meanwhile.
//! 4. A body ends if nothing of it comes for [`TAKE_TIME_MAX`], and one that holds memory for which
//!    others wait ends once it takes longer than [`progress_time`] has it.
//!
//! *Invariant*: what waits for memory holds none, and what waits for the turn doesn't have it. So
//! nothing waits in a circle.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::TAKE_TIME_MAX;
use crate::limits::{FREE_BYTES, READ_STEP_BYTES, progress_time};

/// The most that bodies and answers may hold together, in KB: two of the largest answers as text.
/// Less where messages of the wire may hold less: then one at a time takes more than there is.
const KILOBYTES: u32 = 384 << 10;
/// The interval of checks whether a body's client is too slow.
const STEP: Duration = Duration::from_secs(1);

/// The memory of all bodies and answers.
pub(super) struct TextMemory {
    /// The shares, in KB.
    shares: Arc<Semaphore>,
    kilobytes: u32,
    /// One: the turn.
    turns: Arc<Semaphore>,
    /// The number of bodies and answers that wait, for memory or the turn.
    waiting: AtomicUsize,
}

/// The memory that one body or answer holds, given back when it is dropped.
#[derive(Default)]
pub(super) struct TextShare {
    shares: Option<OwnedSemaphorePermit>,
    turn: Option<OwnedSemaphorePermit>,
}

/// The reason why a body wasn't read.
#[derive(Debug)]
pub(super) enum BodyError {
    /// It didn't come, or too slowly.
    Stopped,
    /// There is more of it than was announced.
    TooLarge,
}

impl TextMemory {
    /// All of it, where messages of the wire may hold so much.
    pub fn beside(messages_bytes_max: usize) -> TextMemory {
        TextMemory::of(kilobytes(messages_bytes_max).min(KILOBYTES))
    }

    fn of(kilobytes: u32) -> TextMemory {
        let shares = Arc::new(Semaphore::new(kilobytes as usize));
        let turns = Arc::new(Semaphore::new(1));
        TextMemory { shares, kilobytes, turns, waiting: AtomicUsize::new(0) }
    }

    /// Waits until an answer may have so much; one that is larger than all there is has all.
    pub async fn hold(&self, bytes: usize) -> TextShare {
        if bytes <= FREE_BYTES {
            return TextShare::default();
        }
        let kilobytes = kilobytes(bytes).min(self.kilobytes);
        TextShare { shares: Some(self.wait(&self.shares, kilobytes).await), turn: None }
    }

    /// Reads a body with `bytes` announced.
    ///
    /// # Errors
    /// If it doesn't come, too slowly, or there is more of it.
    pub async fn read<B>(&self, body: B, bytes: usize) -> Result<(Vec<u8>, TextShare), BodyError>
    where
        B: Body<Data = Bytes>,
    {
        self.read_within(body, bytes, TAKE_TIME_MAX).await
    }

    async fn read_within<B>(
        &self,
        body: B,
        bytes: usize,
        stall_max: Duration,
    ) -> Result<(Vec<u8>, TextShare), BodyError>
    where
        B: Body<Data = Bytes>,
    {
        let mut body = pin!(body);
        let (mut text, mut share) = (Vec::new(), TextShare::default());
        // Time in which the client waited for us doesn't count.
        let (mut begun, mut last) = (Instant::now(), Instant::now());
        loop {
            let next = tokio::time::timeout(STEP.min(stall_max), body.frame()).await;
            let now = Instant::now();
            let holds = share.shares.is_some() || share.turn.is_some();
            let is_late = holds && self.is_waited_for() && now - begun >= progress_time(text.len());
            if is_late || next.is_err() && now - last >= stall_max {
                return Err(BodyError::Stopped);
            }
            let Ok(next) = next else { continue };
            let Some(frame) = next else { return Ok((text, share)) };
            let frame = frame.map_err(|_| BodyError::Stopped)?;
            let Ok(data) = frame.into_data() else { continue };
            let needed = text.len() + data.len();
            if bytes < needed {
                return Err(BodyError::TooLarge);
            }
            if text.capacity() < needed {
                // Doubling keeps the copying linear.
                let capacity = needed.max(2 * text.capacity()).max(READ_STEP_BYTES).min(bytes);
                if self.grow(&mut share, capacity).await {
                    begun = Instant::now();
                }
                text.reserve_exact(capacity - text.len());
            }
            text.extend_from_slice(&data);
            last = Instant::now();
        }
    }

    /// Has a body hold `bytes` in all; true if it waited for that.
    async fn grow(&self, share: &mut TextShare, bytes: usize) -> bool {
        let held = share.shares.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let wanted = kilobytes(bytes).saturating_sub(u32::try_from(held).unwrap_or(u32::MAX));
        if bytes <= FREE_BYTES || wanted == 0 || share.turn.is_some() {
            return false;
        }
        match (Arc::clone(&self.shares).try_acquire_many_owned(wanted), &mut share.shares) {
            (Ok(more), Some(shares)) => shares.merge(more),
            (Ok(first), none) => *none = Some(first),
            (Err(_), _) => {
                share.turn = Some(self.wait(&self.turns, 1).await);
                return true;
            }
        }
        false
    }

    fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    async fn wait(&self, semaphore: &Arc<Semaphore>, count: u32) -> OwnedSemaphorePermit {
        struct Waiting<'a>(&'a AtomicUsize);
        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        let taken = Arc::clone(semaphore).acquire_many_owned(count).await;
        taken.expect("the semaphore is never closed")
    }
}

fn kilobytes(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
