//! The documents that a scan finds, lent to a pipeline's stages.

use std::sync::Arc;

use frond_doc::{Document, DocumentBuf};
use frond_query::QueryError;
use frond_query::cores::{Cores, Workers};
use frond_query::pipeline::{LentRows, Parts, Pieces, Visit};

use crate::collection::deferred_errors::DeferredErrors;
use crate::collection::scan::{DividedScan, Scan, ScanPieces};
use crate::interrupt::Interrupt;

/// The documents between two checks whether to stop.
const CHECK_COUNT: usize = 64;

/// The documents that a scan finds, for stages.
pub(super) struct ScannedRows {
    scan: DividedScan<'static>,
    deferred: DeferredErrors,
    interrupt: Interrupt,
    /// Documents that came out.
    count: usize,
}

impl ScannedRows {
    /// Lends the documents that `scan` finds, by the help of idle `cores`; its error is put aside.
    pub fn of(
        scan: Scan<'static>,
        cores: Option<Arc<Cores>>,
        deferred: DeferredErrors,
    ) -> ScannedRows {
        let scan = DividedScan::new(scan, cores);
        let interrupt = scan.interrupt().clone();
        ScannedRows { scan, deferred, interrupt, count: 0 }
    }
}

impl LentRows for ScannedRows {
    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<(), QueryError> {
        let (interrupt, count) = (&self.interrupt, &mut self.count);
        let mut failure = None;
        let done = self.scan.visit_fields(&mut |document: Document<'_>| {
            *count = count.wrapping_add(1);
            if count.is_multiple_of(CHECK_COUNT) {
                interrupt.check()?;
            }
            Ok(visit(document).unwrap_or_else(|error| {
                failure = Some(error);
                false
            }))
        });
        match (done, failure) {
            (_, Some(error)) => Err(error),
            (done, None) => done.map_err(|error| self.deferred.keep(error)),
        }
    }

    fn next(&mut self) -> Result<Option<DocumentBuf>, QueryError> {
        self.count = self.count.wrapping_add(1);
        let keep_going =
            if self.count.is_multiple_of(CHECK_COUNT) { self.interrupt.check() } else { Ok(()) };
        match keep_going.and_then(|()| self.scan.next().transpose()) {
            Ok(document) => Ok(document),
            Err(error) => Err(self.deferred.keep(error)),
        }
    }

    fn parts(&self, workers: &Arc<Workers>) -> Result<Option<Parts<'_>>, QueryError> {
        if 0 < self.count {
            return Ok(None);
        }
        let parts = self.scan.parts(workers).map_err(|error| self.deferred.keep(error))?;
        let rows = |scan: Scan<'static>| -> Box<dyn LentRows> {
            Box::new(ScannedRows::of(scan, None, self.deferred.clone()))
        };
        Ok(parts.map(|parts| parts.into_iter().map(rows).collect()))
    }

    fn pieces(&mut self, cores: &Cores) -> Result<Option<Box<dyn Pieces>>, QueryError> {
        if 0 < self.count {
            return Ok(None);
        }
        let pieces = self.scan.pieces(cores).map_err(|error| self.deferred.keep(error))?;
        let deferred = self.deferred.clone();
        Ok(pieces.map(|pieces| -> Box<dyn Pieces> { Box::new(ScannedPieces { pieces, deferred }) }))
    }

    fn remaining(&mut self, enough: u64) -> Result<Option<u64>, QueryError> {
        let counted = self.scan.unbegun().map_or(Ok(None), |scan| scan.remaining(enough));
        counted.map_err(|error| self.deferred.keep(error))
    }
}

/// The documents that a scan finds, in pieces.
struct ScannedPieces {
    pieces: ScanPieces<'static>,
    deferred: DeferredErrors,
}

impl Pieces for ScannedPieces {
    fn count(&self) -> usize {
        self.pieces.count()
    }

    fn check(&mut self) -> Result<(), QueryError> {
        self.pieces.check().map_err(|error| self.deferred.keep(error))
    }

    fn rows(&self, position: usize, worker: Option<(&Arc<Workers>, usize)>) -> Box<dyn LentRows> {
        let scan = self.pieces.scan(position, worker);
        Box::new(ScannedRows::of(scan, None, self.deferred.clone()))
    }
}
