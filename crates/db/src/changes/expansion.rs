//! A change of versions, expanded document by document when it is read: what differs between two
//! trees of documents, in the order of their keys.
//!
//! The event has the roots alone, whatever their size. They are those of commits, or of states that
//! the reflog names, and are there as long as history keeps them; what isn't there any more ends
//! the stream. However many documents differ, reading them takes no cache from other readers.

use std::sync::Arc;

use frond_doc::DocumentBuf;
use frond_engine::{Engine, LoggedContent};
use frond_query::Code;
use frond_tree::{Change, Tree, TreeError};

use crate::error::Error;
use crate::event::{Event, EventScope};
use crate::rewritten::{self, DocumentEvent};

type Differences = Box<dyn Iterator<Item = Result<Change, TreeError>> + Send>;

/// The events that are left.
pub struct Expansion {
    differences: Differences,
    scope: Arc<EventScope>,
    keeps_images: bool,
    next: u32,
}

impl Expansion {
    /// The events of a change from the one with that number on; `None` if it doesn't say between
    /// what it lies.
    ///
    /// # Errors
    /// `Damaged` if the store can't be read.
    pub fn of(engine: &Engine, event: &Event, from: u32) -> Result<Option<Expansion>, Error> {
        let Some(trees) = rewritten::trees(engine, event.facts.view())? else {
            return Ok(None);
        };
        let keeps_images = rewritten::keeps_images(event.facts.view());
        let mut expansion = Expansion::between(engine, trees, &event.scope, keeps_images);
        expansion.skip(from)?;
        Ok(Some(expansion))
    }

    /// Returns the differences between two trees of a collection's documents, with the former
    /// documents, if those are kept.
    pub fn between(
        engine: &Engine,
        (before, after): (Tree, Tree),
        scope: &Arc<EventScope>,
        keeps_images: bool,
    ) -> Expansion {
        let differences = Box::new(before.diff_passing(engine.store(), &after));
        Expansion { differences, scope: Arc::clone(scope), keeps_images, next: 0 }
    }

    /// Passes over so many events, which were returned already: where they lie is read, and nothing
    /// of them. Returns how many there were of these.
    ///
    /// # Errors
    /// `ChangeStreamHistoryLost` (286) if what it is about isn't there any more.
    pub fn skip(&mut self, count: u32) -> Result<u32, Error> {
        for skipped in 0..count {
            let next = self.differences.next().transpose();
            if next.map_err(|error| gone(&self.scope, &error.into()))?.is_none() {
                return Ok(skipped);
            }
            self.next += 1;
        }
        Ok(count)
    }

    /// The number of the next event.
    pub fn number(&self) -> u32 {
        self.next
    }

    /// The next event and its number.
    ///
    /// # Errors
    /// `ChangeStreamHistoryLost` (286) if what it is about isn't there any more.
    pub fn next(&mut self, engine: &Engine) -> Result<Option<(u32, Event)>, Error> {
        loop {
            let Some(difference) = self.differences.next() else { return Ok(None) };
            let change = difference.map_err(Error::from);
            let change = change.and_then(|difference| rewritten::change_of(engine, &difference));
            let change = change.map_err(|error| gone(&self.scope, &error))?;
            let number = self.next;
            self.next += 1;
            let Some(DocumentEvent { kind, facts, document, before }) = change else { continue };
            let content_of = |document: Option<DocumentBuf>| {
                document.map_or(LoggedContent::None, |it| LoggedContent::Whole(it.into_bytes()))
            };
            let before = content_of(before.filter(|_| self.keeps_images));
            let (content, scope) = (content_of(document), Arc::clone(&self.scope));
            let event = Event { kind, scope, facts, content, before };
            return Ok(Some((number, event)));
        }
    }
}

fn gone(scope: &EventScope, error: &Error) -> Error {
    let message = format!(
        "what {}.{} was before a merge, a reset or another command of versions is no longer \
         kept: read the collection again and begin a new stream ({})",
        scope.database, scope.collection, error.message
    );
    Error::invalid(Code::ChangeStreamHistoryLost, message)
}
