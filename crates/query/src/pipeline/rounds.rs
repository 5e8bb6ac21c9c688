//! Stages that look at one document at a time, over a source in pieces ([`Pieces`]): several pieces
//! are read at once where cores are idle, and what becomes of them comes out in their order.
//!
//! 1. The first piece is read by the caller's thread, one document after the other: where few are
//!    wanted, they are mostly found there.
//! 2. Once nothing is left that was made, the next pieces go through the stages, each by a thread
//!    (a *round*), if a core is idle; else one by the caller's thread. A round has twice as many
//!    pieces as the one before, so that little is read that isn't wanted.
//! 3. A round keeps copies of what it makes, [`ROUND_BYTES_MAX`] at most: it has as few pieces as
//!    take so much, by what a piece made before. Where one has more than its share, its caller
//!    waits for the client rather than for the stages; where one fails, the caller's thread has to
//!    meet the error that comes first. In both cases what the round made is forgotten, and the
//!    caller's thread reads all the rest.
//!
//! *Invariant*: what comes out is, in the same order, what one thread makes, errors included.

use std::collections::VecDeque;
use std::sync::Arc;

use frond_doc::DocumentBuf;
use frond_store::budget::Reservation;

use super::Documents;
use super::chain::{Wanted, chain, context_of, is_each};
use super::rows::{Input, Pieces, Rows};
use super::stage::Context;
use crate::cores::{Cores, Workers};
use crate::error::QueryError;

/// The most that a round keeps.
const ROUND_BYTES_MAX: usize = 32 << 20;
/// What a document takes besides its bytes.
const DOCUMENT_BYTES: usize = 64;
/// Where no more documents are wanted, they aren't read by rounds.
const FEW: usize = 1000;

/// Documents on their way through the stages.
struct Rounds {
    stages: Vec<Wanted>,
    pieces: Box<dyn Pieces>,
    context: Context,
    /// `None`: the caller's thread reads the rest.
    cores: Option<Arc<Cores>>,
    /// The position of the first piece that wasn't read.
    next: usize,
    /// The number of pieces of the next round.
    round_count: usize,
    /// The most bytes that a piece made so far.
    piece_bytes: usize,
    /// What the caller's thread makes of its piece, and how many bytes that were.
    own: Documents<'static>,
    own_bytes: usize,
    /// What the last round made.
    made: VecDeque<DocumentBuf>,
    /// The memory of what was made.
    reservation: Reservation,
}

/// Returns how many of the first stages can be run by rounds.
pub(super) fn count(stages: &[Wanted]) -> usize {
    let can_be = |(stage, _): &&Wanted| is_each(stage) && !stage.begins_dearly();
    stages.iter().take_while(can_be).count()
}

/// Puts stages that look at one document at a time after rows that may have pieces.
pub(super) fn over<'a>(
    stages: Vec<Wanted>,
    mut rows: Box<dyn Rows + 'a>,
    context: &Context,
) -> Result<Input<'a>, QueryError> {
    let are_few = stages.last().is_some_and(|(_, wanted)| wanted.is_some_and(|it| it <= FEW));
    let cores = context.resources.cores.clone().filter(|_| !are_few);
    // An error of cutting is reported when all is read.
    let pieces = cores.as_ref().and_then(|cores| rows.pieces(cores).ok()?);
    let Some(pieces) = pieces else { return chain(&stages, Input::Rows(rows), context) };
    let mut rounds = Rounds {
        stages,
        pieces,
        context: context.clone(),
        cores,
        next: 0,
        round_count: 4,
        piece_bytes: 0,
        own: Box::new(std::iter::empty()),
        own_bytes: 0,
        made: VecDeque::new(),
        reservation: context.resources.reservation(),
    };
    Ok(Input::Documents(Box::new(std::iter::from_fn(move || rounds.next().transpose()))))
}

impl Rounds {
    /// Returns the next document; nothing follows an error.
    fn next(&mut self) -> Result<Option<DocumentBuf>, QueryError> {
        let next = self.try_next();
        if next.is_err() {
            self.made.clear();
            self.own = Box::new(std::iter::empty());
            self.next = self.pieces.count();
        }
        next
    }

    fn try_next(&mut self) -> Result<Option<DocumentBuf>, QueryError> {
        loop {
            self.pieces.check()?;
            if let Some(made) = self.made.pop_front() {
                return Ok(Some(made));
            }
            if let Some(document) = self.own.next() {
                let document = document?;
                self.own_bytes += document.as_bytes().len() + DOCUMENT_BYTES;
                return Ok(Some(document));
            }
            self.piece_bytes = self.piece_bytes.max(std::mem::take(&mut self.own_bytes));
            self.reservation.release();
            if self.next == self.pieces.count() {
                return Ok(None);
            }
            if 0 < self.next
                && let Some(made) = self.round()
            {
                self.made = made;
                continue;
            }
            let rows = Input::Rows(self.pieces.rows(self.next, None));
            self.own = chain(&self.stages, rows, &self.context)?.into_documents();
            self.next += 1;
        }
    }

    /// Reads the next pieces at once; `None` if the caller's thread must read the next one.
    fn round(&mut self) -> Option<VecDeque<DocumentBuf>> {
        let workers = Workers::find(self.cores.as_ref()?)?;
        let affordable = (ROUND_BYTES_MAX / 2).checked_div(self.piece_bytes).unwrap_or(usize::MAX);
        let left = self.pieces.count() - self.next;
        let count = self.round_count.min(workers.round_max()).min(left).min(affordable.max(2));
        if count < 2 {
            return None;
        }
        let part = |(position, context): (usize, Context)| {
            (self.pieces.rows(self.next + position, Some((&workers, position))), context)
        };
        // As many as there are threads have memory at a time.
        let of_place = |place| context_of(&self.context, (&workers, place), workers.count());
        let parts: Vec<_> = (0..count).map(of_place).enumerate().map(part).collect();
        let (stages, bytes_max) = (&self.stages, ROUND_BYTES_MAX / count);
        let made = workers.run(parts, |(rows, context): (Box<dyn Rows>, Context)| {
            made_of(stages, rows, &context, bytes_max)
        });
        let made = made.filter(|made| {
            let bytes = made.iter().map(|(_, bytes)| bytes).sum();
            self.reservation.hold(bytes).is_ok()
        });
        let Some(made) = made else {
            self.cores = None;
            return None;
        };
        self.next += count;
        self.round_count = count * 2;
        let largest = made.iter().map(|(_, bytes)| *bytes).max();
        self.piece_bytes = self.piece_bytes.max(largest.unwrap_or(0));
        Some(made.into_iter().flat_map(|(documents, _)| documents).collect())
    }
}

/// More is made of a piece than a round keeps, or it can't be read.
struct NotKept;

impl From<QueryError> for NotKept {
    fn from(_: QueryError) -> NotKept {
        NotKept
    }
}

/// Returns copies of what becomes of a piece, and their memory.
fn made_of(
    stages: &[Wanted],
    rows: Box<dyn Rows>,
    context: &Context,
    bytes_max: usize,
) -> Result<(Vec<DocumentBuf>, usize), NotKept> {
    let (mut documents, mut bytes) = (Vec::new(), 0);
    chain(stages, Input::Rows(rows), context)?.visit(&mut |document| {
        bytes += document.as_bytes().len() + DOCUMENT_BYTES;
        documents.push(document.to_buf());
        Ok(bytes <= bytes_max)
    })?;
    if bytes_max < bytes { Err(NotKept) } else { Ok((documents, bytes)) }
}
