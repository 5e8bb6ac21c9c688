//! Opens a change stream: where it begins, and what may stand behind `$changeStream`.

use std::collections::VecDeque;

use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value};
use frond_engine::Sequence;
use frond_query::Code;
use frond_query::collation::Collation;
use frond_query::expression::Variables;
use frond_query::pipeline::Pipeline;

use super::net::Net;
use super::request::{ChangeStreamRequest, StreamStart, Watched};
use super::token::{self, ResumePoint, Step};
use super::{ChangeStream, lost, split};
use crate::collection::parse::variables_in;
use crate::error::Error;
use crate::frond::Frond;
use crate::interrupt::Interrupt;

/// The code of a pipeline with a stage that there isn't.
const NO_SUCH_STAGE: Code = Code::Location(40324);

/// The stages that may stand behind `$changeStream`.
const STAGES: &[&str] = &[
    "$addFields",
    "$match",
    "$project",
    "$redact",
    "$replaceRoot",
    "$replaceWith",
    "$set",
    "$unset",
];

impl Frond {
    /// Watches what changes from a moment on.
    ///
    /// # Errors
    /// `IllegalOperation` (20) where nothing is kept, and for a stage that can't stand there;
    /// `ChangeStreamHistoryLost` (286) if what comes after the start isn't kept any more;
    /// `InvalidResumeToken` (260); what the stages are refused for.
    pub fn watch(
        &self,
        watched: Watched,
        request: &ChangeStreamRequest,
    ) -> Result<ChangeStream, Error> {
        if !self.engine().keep_changes()? {
            let message = "change streams need the log to be kept for a while, and here it isn't: \
                           it is without the setting --changes off of frond serve";
            return Err(Error::invalid(Code::IllegalOperation, message));
        }
        let given = request.stages.as_ref().and_then(|stages| stages.as_value().as_array());
        let (given, splits) = match given.map(split::without_stage).transpose()? {
            Some((stages, splits)) => (Some(stages), splits),
            None => (None, false),
        };
        let stages = match given.as_ref().and_then(|stages| stages.as_value().as_array()) {
            Some(stages) if !stages.is_empty() => {
                Some(self.parse_stages(&watched, stages, request)?)
            }
            _ => None,
        };
        let era = self.era()?;
        let (place, net) = self.start(&watched, &request.start, era)?;
        if place.fragment.is_some() && !splits {
            let message = "To resume from a split event, the $changeStream pipeline must include a \
                           $changeStreamSplitLargeEvent stage";
            return Err(Error::invalid(Code::ChangeStreamFatalError, message));
        }
        let after = place.read_after();
        self.engine().changes(after).check().map_err(lost)?;
        Ok(ChangeStream {
            watched,
            frond: self.clone(),
            tail: self.tail().reader(),
            after,
            changes: None,
            full_document: request.full_document,
            before_change: request.before_change,
            is_expanded: request.is_expanded,
            stages,
            place,
            era,
            splits,
            fragments: VecDeque::new(),
            net,
            current: None,
            is_over: false,
        })
    }

    /// Returns the mark of this directory or set, for tokens.
    fn era(&self) -> Result<[u8; token::ERA_BYTES], Error> {
        let named = match self.engine().is_in_set() {
            true => self.set_id().get().copied(),
            false => Some(self.engine().local_format().salt),
        };
        named.map(token::era).ok_or_else(|| {
            let message = "the replica set hasn't begun";
            Error::invalid(Code::NotYetInitialized, message)
        })
    }

    /// Returns the beginning of a stream, and the differences that come before the log.
    fn start(
        &self,
        watched: &Watched,
        start: &StreamStart,
        era: [u8; token::ERA_BYTES],
    ) -> Result<(ResumePoint, Option<Net>), Error> {
        let place = match start {
            StreamStart::Now => ResumePoint::after(self.engine().horizon()),
            StreamStart::At(time) => ResumePoint::after(Sequence(time.0.saturating_sub(1))),
            StreamStart::Resume(given) => self.resumed(given, era, false)?,
            StreamStart::After(given) => self.resumed(given, era, true)?,
            StreamStart::AfterCommit(revision) => {
                let net = Net::since(watched, revision)?;
                return Ok((net.begin(), Some(net)));
            }
        };
        let net = place.span.map(|ends| Net::behind(watched, place, ends)).transpose()?;
        Ok((place, net))
    }

    fn parse_stages(
        &self,
        watched: &Watched,
        stages: Array<'_>,
        request: &ChangeStreamRequest,
    ) -> Result<(Pipeline, Variables), Error> {
        for stage in stages.iter().filter_map(|stage| stage.as_document()) {
            if let Some((name, _)) = stage.iter().next()
                && name.starts_with('$')
                && !STAGES.contains(&name)
            {
                return Err(not_behind(name, stage));
            }
        }
        let database = match watched {
            Watched::Collection(database, _) | Watched::Database(database) => database.clone(),
            Watched::Deployment(frond) => frond.database("admin")?,
        };
        let collation = request.collation.clone().unwrap_or(Collation::SIMPLE);
        let pipeline = Pipeline::parse_collated(stages, &collation)?;
        let variables = variables_in(&database, request.variables.as_ref(), &Interrupt::default())?;
        let variables = variables.with_collation(collation);
        pipeline.compute_constants(&variables)?;
        Ok((pipeline, variables))
    }

    /// Returns the place that a token leads to.
    fn resumed(
        &self,
        given: &DocumentBuf,
        era: [u8; token::ERA_BYTES],
        after_invalidation: bool,
    ) -> Result<ResumePoint, Error> {
        let (place, of) = token::decode(given.view())?;
        if of != era || !self.engine().is_possible_horizon(place.sequence) {
            let message = "Resume of change stream was not possible, as the resume token is of \
                           another data directory, or of a time before this one was restored";
            return Err(Error::invalid(Code::ChangeStreamHistoryLost, message));
        }
        if place.step == Step::Invalidate && !after_invalidation {
            let message = "Attempting to resume a change stream using 'resumeAfter' is not allowed \
                           from an invalidate notification.";
            return Err(Error::invalid(Code::InvalidResumeToken, message));
        }
        Ok(place)
    }
}

/// The error of a stage that isn't permitted; one that there isn't has an error of its own.
fn not_behind(name: &str, stage: Document<'_>) -> Error {
    let mut alone = DocumentBuilder::new();
    alone.begin_array("stages").push(Value::Document(stage)).end();
    let alone = alone.build();
    let stages = alone.get("stages").and_then(|stages| stages.as_array());
    let parsed = stages.map(|stages| Pipeline::parse_collated(stages, &Collation::SIMPLE));
    if let Some(Err(error)) = parsed
        && error.code == NO_SUCH_STAGE
    {
        return error.into();
    }
    let message = format!("{name} is not permitted in a $changeStream pipeline");
    Error::invalid(Code::IllegalOperation, message)
}
