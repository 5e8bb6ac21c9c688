//! What a stage gives in pieces ([`Pieces`]), as rows for the stages after it: read one piece after
//! the other, or in parts of several pieces each.

use std::collections::VecDeque;
use std::sync::Arc;

use frond_doc::DocumentBuf;

use super::Documents;
use super::rows::{Parts, Pieces, Rows, Visit};
use crate::cores::{Cores, Workers};
use crate::error::QueryError;

/// Documents of their own, as rows.
pub(super) struct OwnRows<'a>(pub(super) Documents<'a>);

impl Rows for OwnRows<'_> {
    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<(), QueryError> {
        for document in self.0.by_ref() {
            if !visit(document?.view())? {
                break;
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<DocumentBuf>, QueryError> {
        self.0.next().transpose()
    }
}

/// The documents of pieces.
pub(super) struct PieceRows {
    /// `None` once they are read.
    pieces: Option<Box<dyn Pieces>>,
    left: ChainedRows,
}

impl PieceRows {
    /// The documents of all pieces.
    pub(super) fn of(pieces: Box<dyn Pieces>) -> PieceRows {
        PieceRows { pieces: Some(pieces), left: ChainedRows(VecDeque::new()) }
    }

    fn begin(&mut self) {
        if let Some(pieces) = self.pieces.take() {
            let all = (0..pieces.count()).map(|position| pieces.rows(position, None));
            self.left = ChainedRows(all.collect());
        }
    }
}

impl Rows for PieceRows {
    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<(), QueryError> {
        self.begin();
        self.left.visit(visit)
    }

    fn next(&mut self) -> Result<Option<DocumentBuf>, QueryError> {
        self.begin();
        self.left.next()
    }

    fn parts(&self, workers: &Arc<Workers>) -> Result<Option<Parts<'_>>, QueryError> {
        let Some(pieces) = &self.pieces else { return Ok(None) };
        let count = workers.parts_max().min(pieces.count());
        if count < 2 {
            return Ok(None);
        }
        let part = |part: usize| -> Box<dyn Rows> {
            let begin_of = |part: usize| pieces.count() * part / count;
            let positions = begin_of(part)..begin_of(part + 1);
            let rows = positions.map(|position| pieces.rows(position, Some((workers, part))));
            Box::new(ChainedRows(rows.collect()))
        };
        Ok(Some((0..count).map(part).collect()))
    }

    fn pieces(&mut self, _: &Cores) -> Result<Option<Box<dyn Pieces>>, QueryError> {
        Ok(self.pieces.take())
    }
}

/// Rows that follow one another.
struct ChainedRows(VecDeque<Box<dyn Rows>>);

impl Rows for ChainedRows {
    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<(), QueryError> {
        let mut wants_more = true;
        while let Some(first) = self.0.front_mut() {
            first.visit(&mut |document| {
                wants_more = visit(document)?;
                Ok(wants_more)
            })?;
            if !wants_more {
                break;
            }
            self.0.pop_front();
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<DocumentBuf>, QueryError> {
        while let Some(first) = self.0.front_mut() {
            if let Some(document) = first.next()? {
                return Ok(Some(document));
            }
            self.0.pop_front();
        }
        Ok(None)
    }
}
