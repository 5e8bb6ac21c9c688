//! A scan whose documents come out one after the other, found by several threads where cores are
//! idle.
//!
//! A filter that no index decides reads many documents for each that it finds, and its caller waits
//! for all of them.
//!
//! 1. A scan of a tree, or of ranges of it, is cut into pieces of about equally many entries, which
//!    follow one another. The first is read by the caller's thread: where few documents are wanted,
//!    they are mostly found there.
//! 2. Once nothing is left that was found, the next pieces are read, each by a thread (a *round*),
//!    if a core is idle; else one by the caller's thread. A round has twice as many pieces as the
//!    one before, so that little is read that isn't wanted.
//! 3. A round keeps copies of what it finds, [`PIECE_BYTES_MAX`] of each piece at most. Where a
//!    piece has more, its caller waits for the client rather than for the scan; where reading one
//!    fails, the caller's thread has to meet the error that comes first. In both cases what the
//!    round found is forgotten, and the caller's thread reads all the rest.
//!
//! *Invariant*: what comes out is, in the same order, what the scan alone gives, errors included.

use std::collections::VecDeque;
use std::sync::Arc;

use frond_doc::{Document, DocumentBuf};
use frond_query::cores::{Cores, Workers};
use frond_store::budget::Reservation;

use super::{Scan, ScanPieces};
use crate::collection::walk::Walk;
use crate::error::Error;
use crate::interrupt::Interrupt;

/// The most that a round keeps of a piece.
const PIECE_BYTES_MAX: usize = 256 << 10;
/// What a document takes besides its bytes.
const DOCUMENT_BYTES: usize = 64;

/// A scan, and what was found ahead of its caller.
pub(crate) struct DividedScan<'a> {
    /// At the piece that the caller's thread reads.
    scan: Scan<'a>,
    /// `None`: it isn't divided.
    cores: Option<Arc<Cores>>,
    has_begun: bool,
    /// The pieces behind that, none of them begun.
    left: VecDeque<Walk>,
    /// The number of pieces of the next round.
    round_count: usize,
    /// What the last round found.
    found: VecDeque<DocumentBuf>,
    /// Memory of what is found.
    reservation: Reservation,
}

impl<'a> DividedScan<'a> {
    /// Reads `scan`, which hasn't begun, on the cores that are idle of `cores`.
    pub fn new(scan: Scan<'a>, cores: Option<Arc<Cores>>) -> DividedScan<'a> {
        let reservation = scan.fetch.filter.memory().another(usize::MAX);
        let (has_begun, left, round_count, found) = Default::default();
        DividedScan { scan, cores, has_begun, left, round_count, found, reservation }
    }

    /// Returns the check that stops the scan.
    pub fn interrupt(&self) -> &Interrupt {
        self.scan.interrupt()
    }

    /// The scan, if it hasn't begun.
    pub fn unbegun(&mut self) -> Option<&mut Scan<'a>> {
        (!self.has_begun).then_some(&mut self.scan)
    }

    /// As [`Scan::parts`].
    ///
    /// # Errors
    /// As [`Scan::parts`].
    pub fn parts(&self, workers: &Arc<Workers>) -> Result<Option<Vec<Scan<'a>>>, Error> {
        if self.has_begun { Ok(None) } else { self.scan.parts(workers) }
    }

    /// As [`Scan::pieces`].
    ///
    /// # Errors
    /// As [`Scan::pieces`].
    pub fn pieces(&mut self, cores: &Cores) -> Result<Option<ScanPieces<'a>>, Error> {
        if self.has_begun { Ok(None) } else { self.scan.pieces(cores) }
    }

    /// As [`Scan::visit_fields`].
    ///
    /// # Errors
    /// As [`Scan::visit_fields`].
    pub fn visit_fields(
        &mut self,
        visit: &mut dyn FnMut(Document<'_>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        self.begin()?;
        let mut wants_more = true;
        loop {
            self.scan.check_ending()?;
            while let Some(found) = self.found.pop_front() {
                if !visit(found.view())? {
                    return Ok(());
                }
            }
            self.scan.visit_fields(&mut |document| {
                wants_more = visit(document)?;
                Ok(wants_more)
            })?;
            if !wants_more || !self.go_on()? {
                return Ok(());
            }
        }
    }

    fn next_document(&mut self) -> Result<Option<DocumentBuf>, Error> {
        self.begin()?;
        loop {
            self.scan.check_ending()?;
            if let Some(found) = self.found.pop_front() {
                return Ok(Some(found));
            }
            if let Some(row) = self.scan.step()? {
                return Ok(Some(row.into_fields()));
            }
            if !self.go_on()? {
                return Ok(None);
            }
        }
    }

    /// Cuts the scan, if it is worth it.
    fn begin(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        let Some(cores) = &self.cores else { return Ok(()) };
        let fetch = &self.scan.fetch;
        let decides = fetch.may_fail && !fetch.reader.may_change() && self.scan.waiting.is_empty();
        if !decides || !self.scan.can_be_cut() {
            return Ok(());
        }
        let pieces = self.scan.walks[0].parts(&fetch.reader, |count| cores.piece_count(count))?;
        self.left = pieces.unwrap_or_default().into();
        self.round_count = 4;
        if let Some(first) = self.left.pop_front() {
            self.scan.walks[0] = first;
        }
        Ok(())
    }

    /// Finds more, or goes on to the next piece. Returns whether there was one.
    fn go_on(&mut self) -> Result<bool, Error> {
        self.reservation.release();
        if self.left.is_empty() {
            return Ok(false);
        }
        self.scan.check_ending()?;
        if let Some(found) = self.round() {
            self.found = found;
        } else if let Some(next) = self.left.pop_front() {
            let walk = &mut self.scan.walks[0];
            *walk = next.counting_on(walk);
            self.scan.current = 0;
        }
        Ok(true)
    }

    /// Reads the next pieces at once; `None` if the caller's thread must read the next one.
    fn round(&mut self) -> Option<VecDeque<DocumentBuf>> {
        let workers = Workers::find(self.cores.as_ref()?)?;
        let count = self.round_count.min(workers.round_max()).min(self.left.len());
        if count < 2 {
            return None;
        }
        let part =
            |(position, walk): (usize, &Walk)| self.scan.part(walk.twin(), position, &workers);
        let parts: Vec<Scan<'a>> = self.left.iter().take(count).enumerate().map(part).collect();
        let found = workers.run(parts, |mut part| piece(&mut part));
        let found = found.filter(|found| {
            let bytes = found.iter().map(|(_, bytes)| bytes).sum();
            self.reservation.hold(bytes).is_ok()
        });
        let Some(found) = found else {
            self.cores = None;
            return None;
        };
        self.left.drain(..count);
        self.round_count = count * 2;
        Some(found.into_iter().flat_map(|(documents, _)| documents).collect())
    }
}

impl Iterator for DividedScan<'_> {
    type Item = Result<DocumentBuf, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_document().transpose()
    }
}

/// A piece has more than a round keeps, or can't be read.
struct NotKept;

/// Returns copies of what is found in a piece, and their memory.
fn piece(scan: &mut Scan<'_>) -> Result<(Vec<DocumentBuf>, usize), NotKept> {
    let (mut documents, mut bytes) = (Vec::new(), 0);
    let read = scan.visit_fields(&mut |document| {
        bytes += document.as_bytes().len() + DOCUMENT_BYTES;
        documents.push(document.to_buf());
        Ok(bytes <= PIECE_BYTES_MAX)
    });
    if read.is_err() || PIECE_BYTES_MAX < bytes {
        return Err(NotKept);
    }
    Ok((documents, bytes))
}
