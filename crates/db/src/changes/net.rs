//! The differences between a commit and the branch at a later moment, as events before those that
//! the log has from that moment on.
//!
//! 1. Changes in between aren't shown: a document that was changed twice gives one event, as it is
//!    at the moment; a collection that is gone gives the deletion of its documents, one that came
//!    their insertion.
//! 2. The collections come by name, the documents of each in the order of their keys; each event
//!    has its number. Both ends never change, so a stream goes on behind any of them.
//! 3. Where the branch was changed since its last commit, the end is a working state that only the
//!    open stream keeps: its tokens lead nowhere once the stream is gone (286).

use std::collections::VecDeque;
use std::sync::Arc;

use frond_engine::{Engine, Sequence, Snapshot};
use frond_query::Code;
use frond_tree::{Tree, Value};

use super::expansion::Expansion;
use super::request::Watched;
use super::token::{ResumePoint, SpanEnds, Step};
use crate::catalog::view as catalog_view;
use crate::database::Database;
use crate::definition::images;
use crate::error::Error;
use crate::event::{Event, EventScope};
use crate::hook::Span;
use crate::reader::Reader;
use crate::schema::entry::CatalogEntry;

/// Collections whose changes no client is shown.
const SILENT_PREFIX: &str = "system.";

/// The differences that are still to be sent.
pub(super) struct Net {
    /// The place of the next event: its item is its number.
    place: ResumePoint,
    /// Those that weren't begun.
    collections: VecDeque<Changed>,
    current: Option<Expansion>,
    /// Keeps the trees at the end.
    _moment: Snapshot,
}

/// A collection that differs.
struct Changed {
    scope: Arc<EventScope>,
    before: Tree,
    after: Tree,
    keeps_images: bool,
}

impl Net {
    /// All that differs since a commit of the history of the branch that is watched.
    ///
    /// # Errors
    /// `BadValue` if there is no such commit in it, or more than a branch is watched.
    pub fn since(watched: &Watched, revision: &str) -> Result<Net, Error> {
        let database = database_of(watched)?;
        let reader = Reader::now(database.frond().engine());
        let moment = reader.snapshot()?;
        let span = database.versions()?.span(database, &reader, revision, None)?;
        // Events must be durable before a client sees them.
        database.frond().engine().keep_changes()?;
        let ends = SpanEnds { from: span.from, to: span.to };
        Net::new(watched, span, (ends, moment.sequence()), moment)
    }

    /// Returns the differences behind a place among them.
    ///
    /// # Errors
    /// `ChangeStreamHistoryLost` (286) if its ends aren't there any more.
    pub fn behind(watched: &Watched, place: ResumePoint, ends: SpanEnds) -> Result<Net, Error> {
        let database = database_of(watched)?;
        let reader = Reader::now(database.frond().engine());
        let moment = reader.snapshot()?;
        let Some(to) = ends.to else {
            return Err(lost(ends, "the branch had changes since its last commit"));
        };
        let span = database.versions()?.span(database, &reader, &ends.from.to_string(), Some(to));
        let span = span.map_err(|error| lost(ends, &error.message))?;
        let mut net = Net::new(watched, span, (ends, place.sequence), moment)?;
        // Some fragments of an event that was split may be left.
        let count = place.item.map_or(0, |item| item.saturating_add(1));
        net.skip(
            database.frond().engine(),
            count - u32::from(place.fragment.is_some()).min(count),
        )?;
        Ok(net)
    }

    fn new(
        watched: &Watched,
        span: Span,
        (ends, sequence): (SpanEnds, Sequence),
        moment: Snapshot,
    ) -> Result<Net, Error> {
        let database = database_of(watched)?;
        let engine = database.frond().engine();
        let store = engine.store();
        let empty = Tree::empty(&**store, span.before.format)?;
        let mut collections = VecDeque::new();
        for change in span.before.diff(store, &span.after) {
            let change = change?;
            let name = catalog_view::collection_name(&change.key)?;
            let is_watched = match watched {
                Watched::Collection(_, watched) => *watched == name,
                _ => !name.starts_with(SILENT_PREFIX),
            };
            let read = |entry: &Option<Value>| {
                entry.as_ref().map(|it| catalog_view::read_entry(&**store, it)).transpose()
            };
            let (before, after) = (read(&change.from)?, read(&change.to)?);
            let mut both = before.iter().chain(&after);
            if !is_watched || both.any(|entry| entry.series().is_some()) {
                continue;
            }
            let keeps_images =
                before.as_ref().is_some_and(|entry| images::are_kept(entry.options.view()));
            let tree = |entry: Option<CatalogEntry>| {
                entry.map_or(empty, |entry| entry.documents_tree(span.before.format))
            };
            let scope = Arc::new(EventScope {
                database: database.repository_name().to_owned(),
                branch: database.branch().unwrap_or_default().to_owned(),
                collection: name,
                wall_millis: i64::try_from(sequence.seconds()).unwrap_or(0).saturating_mul(1000),
                uuid: None,
            });
            let (before, after) = (tree(before), tree(after));
            collections.push_back(Changed { scope, before, after, keeps_images });
        }
        let place =
            ResumePoint { item: Some(0), span: Some(ends), ..ResumePoint::of(sequence, Step::Net) };
        Ok(Net { place, collections, current: None, _moment: moment })
    }

    /// The place before all of it.
    pub fn begin(&self) -> ResumePoint {
        ResumePoint { item: None, ..self.place }
    }

    /// Returns where the log has to be read behind.
    pub fn sequence(&self) -> Sequence {
        self.place.sequence
    }

    /// The next event and its place.
    ///
    /// # Errors
    /// `ChangeStreamHistoryLost` (286) if what it is about isn't there any more.
    pub fn next(&mut self, engine: &Engine) -> Result<Option<(ResumePoint, Event)>, Error> {
        while let Some(expansion) = self.current(engine) {
            let before = expansion.number();
            let next = expansion.next(engine)?;
            let passed = expansion.number() - before;
            self.pass(passed);
            if let Some((_, event)) = next {
                let item = self.place.item.map(|next| next.saturating_sub(1));
                return Ok(Some((ResumePoint { item, ..self.place }, event)));
            }
            self.current = None;
        }
        Ok(None)
    }

    fn skip(&mut self, engine: &Engine, count: u32) -> Result<(), Error> {
        let mut left = count;
        while 0 < left
            && let Some(expansion) = self.current(engine)
        {
            let skipped = expansion.skip(left)?;
            self.pass(skipped);
            left -= skipped;
            if 0 < left {
                self.current = None;
            }
        }
        Ok(())
    }

    fn pass(&mut self, count: u32) {
        self.place.item = self.place.item.map(|item| item.saturating_add(count));
    }

    /// The collection whose events are returned; the next one, if there is none.
    fn current(&mut self, engine: &Engine) -> Option<&mut Expansion> {
        if self.current.is_none() {
            let Changed { scope, before, after, keeps_images } = self.collections.pop_front()?;
            self.current = Some(Expansion::between(engine, (before, after), &scope, keeps_images));
        }
        self.current.as_mut()
    }
}

fn database_of(watched: &Watched) -> Result<&Database, Error> {
    match watched {
        Watched::Collection(database, _) | Watched::Database(database) => Ok(database),
        Watched::Deployment(_) => {
            let message = "startAfter a commit needs a collection or a database, since a commit belongs to \
                 one";
            Err(Error::invalid(Code::BadValue, message))
        }
    }
}

fn lost(ends: SpanEnds, why: &str) -> Error {
    let message = format!(
        "Resume of change stream was not possible in the middle of what differs since the commit {}: \
         {why}; begin a new stream after that commit",
        ends.from
    );
    Error::invalid(Code::ChangeStreamHistoryLost, message)
}
