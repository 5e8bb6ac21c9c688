//! Matches a filter against a large document that isn't assembled, given a function that looks up
//! paths.

use frond_doc::path::Path;
use frond_doc::pieces::VisitPart;

use super::Filter;
use super::evaluate::Run;
use super::pieces::{self, Reach};
use super::position::{self, Position, Subject};
use super::tree::Node;

impl Filter {
    /// Whether a path of the filter leads on from an outermost field: else a document's outermost
    /// fields are all that need be read.
    pub fn descends(&self) -> bool {
        pieces::descends(&self.root)
    }

    /// Whether a document passes, by what `reach` shows of its paths, if that decides.
    ///
    /// # Errors
    /// The error of `reach`.
    pub fn matches_in_pieces<E>(&self, reach: &mut Reach<'_, E>) -> Result<Option<bool>, E> {
        let run = Run::new(&self.variables);
        let answer = pieces::node(&self.root, &run, reach)?;
        Ok(answer.filter(|_| !run.has_failed()))
    }

    /// As [`Filter::matches_position`] for a document that passes, by what `reach` shows of its
    /// paths; `None` if that doesn't decide.
    ///
    /// # Errors
    /// The error of `reach`.
    pub fn position_in_pieces<E>(&self, reach: &mut Reach<'_, E>) -> Result<Option<Position>, E> {
        let run = Run::new(&self.variables);
        let answer = position::of_node(&self.root, &run, &mut InPieces(reach))?;
        Ok(answer.filter(|_| !run.has_failed()))
    }
}

/// A document of which a function shows what paths reach.
struct InPieces<'s, 'r, E>(&'s mut Reach<'r, E>);

impl<E> Subject for InPieces<'_, '_, E> {
    type Error = E;

    fn passes(&mut self, node: &Node, run: &Run<'_>) -> Result<Option<bool>, E> {
        pieces::node(node, run, self.0)
    }

    fn reach(&mut self, path: &Path, visit: &mut VisitPart<'_>) -> Result<Option<bool>, E> {
        (self.0)(path, visit)
    }
}
