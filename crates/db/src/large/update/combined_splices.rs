//! Splices of one document at different places, made at once.

use frond_doc::pieces::{Edited, LargeDocument, PiecesError, Splice};
use frond_store::ChunkStore;

use super::steps::Step;

/// Splices of one document at different places, made at once: what lies on the way to several is
/// written once.
pub(super) struct CombinedSplices<'a, 'u> {
    pub store: &'a dyn ChunkStore,
    pub document: LargeDocument,
    /// The path to the element that each one replaces, removes or adds.
    pub places: Vec<Vec<&'u str>>,
    pub splices: Vec<Splice>,
}

impl<'u> CombinedSplices<'_, 'u> {
    /// Adds a splice at a place.
    pub fn add(&mut self, place: Vec<&'u str>, splice: Splice) {
        self.places.push(place);
        self.splices.push(splice);
    }

    /// Whether a step lies in an element that is to be changed: it needs that as it will be.
    pub fn is_in_one(&self, step: &Step<'_>) -> bool {
        self.places.iter().any(|place| {
            place.len() <= step.parts.len() && place.iter().zip(&step.parts).all(|(a, b)| *a == b)
        })
    }

    /// Makes what was added; `false` if the document isn't large any more.
    ///
    /// # Errors
    /// [`PiecesError`] if the store can't be read or written.
    pub fn apply(&mut self) -> Result<bool, PiecesError> {
        self.places.clear();
        let splices = std::mem::take(&mut self.splices);
        if splices.is_empty() {
            return Ok(true);
        }
        match self.document.splice_all(self.store, splices)? {
            Edited::Large(changed) => self.document = changed,
            Edited::Small(_) => return Ok(false),
        }
        Ok(true)
    }
}
