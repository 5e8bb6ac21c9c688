//! Carries metadata through a stage that makes a new document of each.
//!
//! The metadata of a document is noted when the stage takes it, and given to the stage's result:
//! such stages keep the order, however many documents they take at once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use frond_doc::DocumentBuf;

use super::Documents;
use super::stage::{Context, Stage};
use crate::error::QueryError;
use crate::metadata;

/// Puts `stage` after `input`, and gives what comes out the metadata of what went in.
pub(super) fn through<'a>(
    stage: &Arc<dyn Stage>,
    input: Documents<'a>,
    context: &Context,
) -> Result<Documents<'a>, QueryError> {
    let noted: Arc<Mutex<VecDeque<DocumentBuf>>> = Arc::default();
    let notes = Arc::clone(&noted);
    let input = input.inspect(move |document| {
        if let Ok(document) = document {
            let carried = metadata::split(document.view());
            notes.lock().unwrap_or_else(PoisonError::into_inner).push_back(carried);
        }
    });
    let made = Arc::clone(stage).run(Box::new(input), context)?;
    Ok(Box::new(made.map(move |made| {
        let carried = noted.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        Ok(match carried {
            Some(carried) => metadata::carry(made?, &carried),
            None => made?,
        })
    })))
}
