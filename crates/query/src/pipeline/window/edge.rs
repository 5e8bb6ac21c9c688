//! One end of the windows as they move along a partition that is read from a [`Spool`].

use std::sync::Arc;

use frond_doc::DocumentBuf;

use super::series;
use crate::error::QueryError;
use crate::pipeline::spool::{Spool, SpoolReader};

/// Stands before a document, and only goes on.
pub(super) struct Edge {
    reader: SpoolReader,
    next: Option<DocumentBuf>,
    /// Of the document that it stands before.
    position: usize,
    has_begun: bool,
}

impl Edge {
    /// Stands before the first document.
    pub(super) fn new(spool: &Arc<Spool>) -> Edge {
        Edge { reader: spool.read(), next: None, position: 0, has_begun: false }
    }

    /// How many documents it has passed.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// The document that it stands before; `None` at the end.
    pub(super) fn peek(&mut self) -> Result<Option<&DocumentBuf>, QueryError> {
        if !self.has_begun {
            self.has_begun = true;
            self.next = self.reader.next_document()?;
        }
        Ok(self.next.as_ref())
    }

    /// Passes the document that it stands before.
    pub(super) fn pass(&mut self) -> Result<(), QueryError> {
        if self.peek()?.is_some() {
            self.position += 1;
            self.next = self.reader.next_document()?;
        }
        Ok(())
    }
}

/// An edge, and the line through the points of the documents that it has passed.
pub(super) struct Trail {
    pub(super) edge: Edge,
    last: Option<(f64, f64)>,
    /// Below the line.
    area: f64,
}

impl Trail {
    /// A line without points.
    pub(super) fn new(spool: &Arc<Spool>) -> Trail {
        Trail { edge: Edge::new(spool), last: None, area: 0.0 }
    }

    /// The point of the document that was passed last.
    pub(super) fn last(&self) -> Option<(f64, f64)> {
        self.last
    }

    /// The area below the line, if it goes on to `point`.
    pub(super) fn area_to(&self, point: (f64, f64)) -> f64 {
        self.last.map_or(0.0, |last| self.area + series::area(last, point))
    }

    /// The area below the line.
    pub(super) fn area(&self) -> f64 {
        self.area
    }

    /// Passes a document whose point is `point`.
    pub(super) fn pass(&mut self, point: (f64, f64)) -> Result<(), QueryError> {
        self.area = self.area_to(point);
        self.last = Some(point);
        self.edge.pass()
    }
}
