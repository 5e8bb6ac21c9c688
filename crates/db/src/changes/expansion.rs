//! A change of versions, told document by document when it is read: what differs between two trees
//! of documents, in the order of their keys.
//!
//! The event has the roots alone, whatever their size. They are those of commits, or of states that
//! the reflog names, and are there as long as history keeps them; what isn't there any more ends
//! the stream.

use std::sync::Arc;

use frond_engine::{Engine, ToldBytes};
use frond_query::Code;
use frond_tree::{Change, TreeError};

use crate::error::Error;
use crate::event::{Event, EventScope};
use crate::rewritten;

type Differences = Box<dyn Iterator<Item = Result<Change, TreeError>> + Send>;

/// The events that are left.
pub struct Expansion {
    differences: Differences,
    scope: Arc<EventScope>,
    next: u32,
}

impl Expansion {
    /// The events of a change from the one with that number on; `None` if it doesn't say between
    /// what it lies.
    ///
    /// # Errors
    /// `Damaged` if the store can't be read.
    pub fn of(engine: &Engine, event: &Event, from: u32) -> Result<Option<Expansion>, Error> {
        let Some((before, after)) = rewritten::trees(engine, event.facts.view())? else {
            return Ok(None);
        };
        let mut differences: Differences = Box::new(before.diff(engine.store(), &after));
        // What was told already isn't read: only where it lies.
        for _ in 0..from {
            if differences.next().transpose().map_err(|error| gone(event, &error.into()))?.is_none()
            {
                break;
            }
        }
        Ok(Some(Expansion { differences, scope: Arc::clone(&event.scope), next: from }))
    }

    /// The next event and its number.
    ///
    /// # Errors
    /// `ChangeStreamHistoryLost` (286) if what it is about isn't there any more.
    pub fn next(&mut self, engine: &Engine, of: &Event) -> Result<Option<(u32, Event)>, Error> {
        loop {
            let lost = |error: Error| gone(of, &error);
            let Some(difference) = self.differences.next() else { return Ok(None) };
            let difference = difference.map_err(|error| lost(error.into()))?;
            let change = rewritten::change_of(engine, &difference).map_err(lost)?;
            let number = self.next;
            self.next += 1;
            let Some((kind, facts, document)) = change else { continue };
            let content = document.map_or(ToldBytes::None, |it| ToldBytes::Whole(it.into_bytes()));
            let scope = Arc::clone(&self.scope);
            let event = Event { kind, scope, facts, content, before: ToldBytes::None };
            return Ok(Some((number, event)));
        }
    }
}

fn gone(event: &Event, error: &Error) -> Error {
    let message = format!(
        "what {}.{} was before a merge, a reset or another command of versions isn't kept any more: \
         read the collection again and begin a new stream ({})",
        event.scope.database, event.scope.collection, error.message
    );
    Error::invalid(Code::ChangeStreamHistoryLost, message)
}
