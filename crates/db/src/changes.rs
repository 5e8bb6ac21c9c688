//! Change streams: the events that transactions recorded, as MongoDB's change events.
//!
//! 1. A stream is a place in the log and its pipeline. The records it reads are durable: an event
//!    that was shown is never taken back.
//! 2. Records are read one after the other; of each, the events are taken that concern what is
//!    watched, in the order of the statements. Each has a token ([`token`]), by which a stream goes
//!    on behind it, in another process too.
//! 3. An event is run through the stages alone: none of those that are allowed looks at two.
//! 4. The changes of a merge or a reset are read when the stream comes to them ([`expansion`]):
//!    each document is an event, with a place of its own.
//! 5. A stream may begin with what differs between a commit and now ([`net`]).
//! 6. A change that can't be shown document by document, or isn't kept any more, ends the stream
//!    with an error: no change is passed over.

mod changed_places;
mod document;
mod expansion;
mod expiry;
mod images;
mod net;
mod open;
mod request;
mod split;
pub mod token;
mod watched;

use std::collections::VecDeque;
use std::sync::Arc;

use frond_doc::{DocumentBuf, Value};
use frond_engine::{Changes, ChangesError, Sequence};
use frond_query::Code;
use frond_query::expression::Variables;
use frond_query::pipeline::Pipeline;

use crate::error::Error;
use crate::event::{Event, EventKind};
use crate::frond::Frond;
use crate::interrupt::Interrupt;
use crate::tail::record::Record;
use crate::tail::{Next, TailError, TailReader};

pub use changed_places::{ChangedPlaces, TouchedPlace};
pub use expiry::CHANGE_STREAM_OPTIONS;
pub use request::{ChangeStreamRequest, FullDocument, Image, StreamStart, Watched};

use document::EventSource;
use expansion::Expansion;
use net::Net;
use token::{ResumePoint, Step};

/// The number of records without an event after which nothing is there yet: a caller that asks may
/// have to say so.
const RECORDS_MAX: usize = 1_000;
/// The number of times that the tail passes over records that don't concern the stream, likewise.
const PASSES_MAX: usize = 16;

/// A change stream.
pub struct ChangeStream {
    watched: Watched,
    frond: Frond,
    tail: TailReader,
    /// Everything up to here was read.
    after: Sequence,
    /// Reads the log where the tail has it no more.
    changes: Option<Changes>,
    full_document: FullDocument,
    before_change: Image,
    is_expanded: bool,
    /// The stages; none: events are returned as they are.
    stages: Option<(Pipeline, Variables)>,
    /// Everything up to here was returned, or didn't concern the stream.
    place: ResumePoint,
    era: [u8; token::ERA_BYTES],
    /// Whether an event that is too large comes in fragments.
    splits: bool,
    /// The fragments of one event that are left.
    fragments: VecDeque<(ResumePoint, DocumentBuf)>,
    /// The differences since a commit that are left.
    net: Option<Net>,
    /// The record whose events are being returned.
    current: Option<Current>,
    is_over: bool,
}

/// A record some of whose events are yet to be returned.
struct Current {
    record: Arc<Record>,
    /// The next event.
    next: usize,
    /// The event behind which the stream ends, and when that was.
    end: Option<(ResumePoint, i64)>,
    /// The rest of an event that expands to several.
    expansion: Option<(ResumePoint, Expansion)>,
}

/// Returns the client's error for a log that can't be read any more.
fn lost(error: ChangesError) -> Error {
    match error {
        ChangesError::Gone { kept_after } => {
            let message = format!(
                "Resume of change stream was not possible, as the resume point may no longer be in \
                 the log: what happened up to the second {} is no longer kept",
                kept_after.seconds()
            );
            Error::invalid(Code::ChangeStreamHistoryLost, message)
        }
        ChangesError::Store(error) => error.into(),
    }
}

impl ChangeStream {
    /// The next event, if there is one by now.
    ///
    /// # Errors
    /// `ChangeStreamHistoryLost` (286) if it isn't kept any more, or can't be reported document by
    /// document; `ChangeStreamFatalError` (280) if the stages change its `_id`;
    /// `BSONObjectTooLarge` (10334); what the stages fail with; what interrupts the request. The
    /// stream is over then.
    pub fn next(&mut self, interrupt: &Interrupt) -> Result<Option<DocumentBuf>, Error> {
        let next = self.find_next(interrupt);
        self.is_over |= next.is_err();
        next
    }

    fn find_next(&mut self, interrupt: &Interrupt) -> Result<Option<DocumentBuf>, Error> {
        if let Some((place, fragment)) = self.fragments.pop_front() {
            self.place = place;
            return Ok(Some(fragment));
        }
        if self.net.is_some() {
            return self.find_net(interrupt);
        }
        let mut passes = 0;
        for _ in 0..RECORDS_MAX {
            if let Some(mut current) = self.current.take() {
                while let Some(found) = self.next_event(&mut current)? {
                    if let Some(event) = found {
                        self.current = Some(current);
                        return Ok(Some(event));
                    }
                }
                if !self.is_over {
                    self.place = self.place.max(ResumePoint::after(current.record.sequence));
                }
            }
            interrupt.check()?;
            if self.is_over {
                return Ok(None);
            }
            let Some(record) = self.next_record()? else {
                self.place = self.place.max(ResumePoint::after(self.after));
                passes += 1;
                if passes == PASSES_MAX || !self.has_news() {
                    return Ok(None);
                }
                continue;
            };
            self.current = Some(Current { record, next: 0, end: None, expansion: None });
        }
        Ok(None)
    }

    /// Goes on with what differs since a commit.
    fn find_net(&mut self, interrupt: &Interrupt) -> Result<Option<DocumentBuf>, Error> {
        for _ in 0..RECORDS_MAX {
            interrupt.check()?;
            let Some(net) = &mut self.net else { break };
            let sequence = net.sequence();
            let Some((place, event)) = net.next(self.frond.engine())? else {
                self.place = self.place.max(ResumePoint::after(sequence));
                self.net = None;
                return self.find_next(interrupt);
            };
            let Some(database) = self.concerned(&event)? else { continue };
            let record = Record::empty(sequence);
            if let Some(found) = self.event_at(place, &database, (&record, &event))? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns the record of the next transaction that may concern the stream, if there is one by
    /// now.
    fn next_record(&mut self) -> Result<Option<Arc<Record>>, Error> {
        let may_concern = |record: &Record| {
            record.events.iter().any(|event| self.watched.may_be_concerned(event))
        };
        let next = self.tail.next_wanted(self.frond.engine(), self.after, may_concern);
        let next = next.map_err(|error| match error {
            TailError::Log(error) => lost(error),
            TailError::Record(error) => error,
        })?;
        let (after, record) = match next {
            Next::Record(record) => (record.sequence, Some(record)),
            Next::Nothing(after) => (after, None),
            Next::Behind => return self.next_by_itself(),
        };
        (self.after, self.changes) = (after, None);
        Ok(record)
    }

    /// The same, read for this stream alone.
    fn next_by_itself(&mut self) -> Result<Option<Arc<Record>>, Error> {
        let engine = self.frond.engine();
        let changes = self.changes.get_or_insert_with(|| engine.changes(self.after));
        let logged = changes.next_record().map_err(lost)?;
        self.after = changes.position();
        logged.map(|logged| Ok(Arc::new(Record::decode(&logged)?))).transpose()
    }

    /// Whether anything was written since it last looked.
    pub fn has_news(&self) -> bool {
        self.net.is_some() || self.after < self.frond.engine().horizon()
    }

    /// Whether nothing will come any more.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The token from which a stream goes on with what this one didn't give yet.
    pub fn token(&self) -> DocumentBuf {
        token::encode(self.place, self.era)
    }

    /// Goes on to the next event of a record that concerns what is watched; `None`: there is none.
    /// An event that the stages leave out is `Some(None)`.
    fn next_event(&mut self, current: &mut Current) -> Result<Option<Option<DocumentBuf>>, Error> {
        let record = Arc::clone(&current.record);
        if let Some(found) = self.next_of_expansion(current, &record)? {
            return Ok(Some(found));
        }
        if let Some((place, wall_millis)) = current.end.take() {
            (current.next, self.is_over) = (record.events.len(), true);
            let id = token::encode(place, self.era);
            let event = document::of_invalidation(place.sequence, &id, wall_millis);
            let shown = self.shown(event, &id)?;
            self.place = place;
            return Ok(Some(shown));
        }
        while let Some(event) = record.events.get(current.next) {
            let is_last = current.next + 1 == record.events.len();
            let step = if is_last { Step::LastEvent } else { Step::Event };
            let position = u32::try_from(current.next).unwrap_or(u32::MAX);
            let sequence = record.sequence;
            let place = ResumePoint { position, ..ResumePoint::of(sequence, step) };
            current.next += 1;
            let Some(database) = self.concerned(event)? else { continue };
            let is_begun = self.place.of_event() == place && self.place != place;
            if event.kind == EventKind::Rewritten && (self.place < place || is_begun) {
                let sent_count = match (is_begun, self.place.item, self.place.fragment) {
                    (true, Some(item), None) => item.saturating_add(1),
                    (true, Some(item), Some(_)) => item,
                    _ => 0,
                };
                let expansion = Expansion::of(self.frond.engine(), event, sent_count)?;
                current.expansion = Some((place, expansion.ok_or_else(|| rewritten(event))?));
                return self.next_event(current);
            }
            let end = ResumePoint { step: Step::Invalidate, ..place };
            if self.watched.is_ended_by(event) && self.place < end {
                current.end = Some((end, event.scope.wall_millis));
            }
            if self.place < place || self.is_within(place) {
                return self.event_at(place, &database, (&record, event)).map(Some);
            }
            if current.end.is_some() {
                return self.next_event(current);
            }
        }
        Ok(None)
    }

    /// Goes on with an event that is many.
    fn next_of_expansion(
        &mut self,
        current: &mut Current,
        record: &Record,
    ) -> Result<Option<Option<DocumentBuf>>, Error> {
        let Some((place, expansion)) = &mut current.expansion else { return Ok(None) };
        let (place, whole) = (*place, &record.events[place.position as usize]);
        let next = expansion.next(self.frond.engine())?;
        let database = self.concerned(whole)?;
        let (Some((number, event)), Some(database)) = (next, database) else {
            current.expansion = None;
            return Ok(None);
        };
        let place = ResumePoint { item: Some(number), ..place };
        self.event_at(place, &database, (record, &event)).map(Some)
    }

    /// Whether some of the fragments of the event at a place were returned.
    fn is_within(&self, place: ResumePoint) -> bool {
        self.place.fragment.is_some() && self.place.of_item() == place
    }

    /// Returns an event, or what wasn't returned yet of one that was split.
    fn event_at(
        &mut self,
        place: ResumePoint,
        database: &str,
        (record, event): (&Record, &Event),
    ) -> Result<Option<DocumentBuf>, Error> {
        match self.build_event(place, database, (record, event))? {
            Some(event) if self.is_within(place) || is_too_large(&event) => {
                self.next_fragment(place, &event)
            }
            whole => {
                self.place = place;
                Ok(whole)
            }
        }
    }

    /// The next fragment of an event that is too large; those behind it come later.
    fn next_fragment(
        &mut self,
        place: ResumePoint,
        event: &DocumentBuf,
    ) -> Result<Option<DocumentBuf>, Error> {
        if !self.splits {
            return Err(document::too_large());
        }
        let fatal = |message: &str| Err(Error::invalid(Code::ChangeStreamFatalError, message));
        let skipped = match self.place.fragment {
            Some(fragment) if self.is_within(place) => fragment as usize + 1,
            _ => 0,
        };
        if 0 < skipped && !is_too_large(event) {
            return fatal(
                "Attempted to resume from a split event fragment, but the event in the resumed \
                 stream was not large enough to be split",
            );
        }
        let of = |number| ResumePoint { fragment: Some(number), ..place };
        let era = self.era;
        let fragments = split::fragments(event.view(), |number| token::encode(of(number), era))?;
        if fragments.len() < skipped {
            return fatal(
                "Attempted to resume from a split event, but the resumed stream produced a \
                 different split. Ensure that the pipeline used to resume is the same as the \
                 original",
            );
        }
        self.fragments = (0..).map(of).zip(fragments).skip(skipped).collect();
        let next = self.fragments.pop_front();
        self.place = next.as_ref().map_or(place, |(place, _)| *place);
        Ok(next.map(|(_, fragment)| fragment))
    }

    /// The name of the event's database, if the event concerns the stream.
    fn concerned(&self, event: &Event) -> Result<Option<String>, Error> {
        match event.kind.is_expanded() && !self.is_expanded {
            true => Ok(None),
            false => self.watched.concerned(event),
        }
    }

    /// Returns the document of an event for the client, unless the stages leave it out.
    fn build_event(
        &self,
        place: ResumePoint,
        database: &str,
        (record, event): (&Record, &Event),
    ) -> Result<Option<DocumentBuf>, Error> {
        // A stream of one collection ends with that collection's own event; the database's is left
        // out.
        if let Watched::Collection(..) = &self.watched
            && event.kind == EventKind::DropDatabase
        {
            return Ok(None);
        }
        let document = record.document(&**self.frond.engine().store(), &event.content)?;
        let (before, looked_up) = self.images(record, event)?;
        let transaction = record.transaction.as_ref();
        let (is_expanded, is_net) = (self.is_expanded, place.step == Step::Net);
        let source = EventSource {
            database,
            event,
            transaction,
            document,
            before,
            looked_up,
            is_expanded,
            is_net,
        };
        let id = token::encode(place, self.era);
        let document = document::of(&source, place.sequence, &id)?;
        self.shown(document, &id)
    }

    /// Returns the stages' result for an event.
    fn shown(&self, document: DocumentBuf, id: &DocumentBuf) -> Result<Option<DocumentBuf>, Error> {
        let Some((pipeline, variables)) = &self.stages else { return Ok(Some(document)) };
        let input = Box::new(std::iter::once(Ok(document)));
        let mut output = pipeline.clone().run_alone(input, variables.clone())?;
        let Some(shown) = output.next().transpose()? else { return Ok(None) };
        if shown.get("_id") != Some(Value::Document(id.view())) {
            let message = "Encountered an event whose _id field, which contains the resume token, was \
                           modified by the pipeline. Modifying the _id field of an event makes it \
                           impossible to resume the stream from that point. Only transformations that \
                           retain the unmodified _id field are allowed.";
            return Err(Error::invalid(Code::ChangeStreamFatalError, message));
        }
        Ok(Some(shown))
    }
}

fn is_too_large(event: &DocumentBuf) -> bool {
    document::EVENT_BYTES_MAX < event.as_bytes().len()
}

fn rewritten(event: &Event) -> Error {
    let scope = &event.scope;
    let what = match scope.collection.is_empty() {
        true => scope.database.clone(),
        false => format!("{}.{}", scope.database, scope.collection),
    };
    let message = format!(
        "the documents of {what} were replaced all at once, by $out, or as a whole database that came \
         back, and what they were isn't kept: read the collection again and begin a new stream"
    );
    Error::invalid(Code::ChangeStreamHistoryLost, message)
}
