//! How stages may run over parts of their documents, and what they make of a part.

use std::any::Any;
use std::sync::Arc;

use super::Documents;
use super::rows::Input;
use super::stage::Context;
use crate::error::QueryError;

/// The way a stage may run over parts of its documents.
pub(super) enum Division {
    /// It makes something of one document after the other, whatever the others are.
    Each,
    /// It gathers all of them; what it gathers of parts can be put together.
    Gathers(Arc<dyn ParallelStage>),
    /// It doesn't.
    Whole,
}

/// A stage, parts of whose input can be gathered apart.
pub(super) trait ParallelStage: Send + Sync {
    /// Gathers a part of the documents.
    ///
    /// # Errors
    /// An error of a document; if the part needs more than its share of memory.
    fn gather(
        self: Arc<Self>,
        input: Input<'_>,
        context: &Context,
    ) -> Result<Box<dyn PartialResult>, QueryError>;

    /// Whether what it gathers of a part takes less memory once it was put behind what it gathered
    /// of those before: then no part is to be large.
    fn shrinks(&self) -> bool {
        false
    }

    /// Whether what it gives of all parts may come in pieces, which are dear to make.
    fn gives_pieces(&self) -> bool {
        false
    }
}

/// The result of a stage over a part of the documents.
pub(super) trait PartialResult: Any + Send {
    /// Takes what the same stage has gathered of the documents that follow.
    ///
    /// # Errors
    /// If both together aren't known to be what it would have gathered of all of them.
    fn append(&mut self, next: Box<dyn PartialResult>) -> Result<(), QueryError>;

    /// Returns the stage's results.
    ///
    /// # Errors
    /// An error of the stage.
    fn documents(self: Box<Self>, context: &Context) -> Result<Documents<'static>, QueryError>;

    /// Returns the stage's results, in pieces if they can be made apart.
    ///
    /// # Errors
    /// An error of the stage.
    fn input(self: Box<Self>, context: &Context) -> Result<Input<'static>, QueryError> {
        self.documents(context).map(Input::Documents)
    }
}

/// Takes the partial result of the same stage on other documents.
pub(super) fn of_same_stage<G: PartialResult>(next: Box<dyn PartialResult>) -> Box<G> {
    let next: Box<dyn Any> = next;
    next.downcast().expect("both are of one stage")
}
