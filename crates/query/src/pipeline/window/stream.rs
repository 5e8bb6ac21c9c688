//! Window functions over a partition that doesn't fit into memory: one document after the other.
//!
//! The documents wait in a [`Spool`]. A function reads them once more for each end of its window: what the
//! leading reader comes to enters, what the trailing one comes to leaves. So a function takes two buffers and
//! what its own state holds, which is counted.
//!
//! Functions that look at a distance that only the values tell (windows by range, `$derivative`, `$integral`,
//! `$linearFill`) are refused for such partitions: [`WindowFunction::stream`] gives `None`.

use std::sync::Arc;

use frond_doc::{Document, DocumentBuf, Value, ValueBuf};

use super::{Kind, WindowFunction, series, whole};
use crate::accumulator::{Accumulator, Window};
use crate::error::QueryError;
use crate::expression::number::Number;
use crate::expression::{Evaluated, Expression, Scope, Variables, failure};
use crate::pipeline::spill::Resources;
use crate::pipeline::spool::{Spool, SpoolReader};
use crate::sort::SortPattern;

/// A function's values, one document after the other.
pub(in crate::pipeline) struct Stream {
    function: Arc<WindowFunction>,
    variables: Variables,
    /// Documents whose values were given.
    position: usize,
    state: State,
}

enum State {
    Moving(Box<Moving>),
    Number,
    Rank { path: frond_doc::path::Path, before: Option<ValueBuf>, rank: usize },
    Shift(SpoolReader),
    Average(Option<Number>),
    Last(Evaluated<'static>),
}

/// An accumulator whose window moves along.
struct Moving {
    window: Box<dyn Window>,
    leading: SpoolReader,
    trailing: SpoolReader,
    begin: usize,
    end: usize,
    count: usize,
    /// What all values took that ever entered.
    entered_bytes: usize,
    bytes_max: usize,
}

impl WindowFunction {
    /// Whether the values can be had one by one.
    pub(in crate::pipeline) fn can_stream(&self) -> bool {
        match &self.kind {
            Kind::Accumulator(_) => self.bounds.are_of_documents(),
            Kind::Derivative { .. } | Kind::Integral { .. } | Kind::LinearFill(_) => false,
            Kind::DocumentNumber
            | Kind::Rank { .. }
            | Kind::Shift { .. }
            | Kind::MovingAverage { .. }
            | Kind::LastFill(_) => true,
        }
    }

    /// The function's values for the documents of `spool`; `None` if they can't be had one by one.
    pub(in crate::pipeline) fn stream(
        self: &Arc<WindowFunction>,
        spool: &Arc<Spool>,
        sort: Option<&SortPattern>,
        variables: &Variables,
        resources: &Resources,
    ) -> Result<Option<Stream>, QueryError> {
        let state = match &self.kind {
            Kind::Accumulator(accumulator) if self.can_stream() => {
                State::Moving(Box::new(Moving {
                    window: accumulator.start_window(Document::empty(), variables)?,
                    leading: spool.read(),
                    trailing: spool.read(),
                    begin: 0,
                    end: 0,
                    count: spool.count(),
                    entered_bytes: 0,
                    bytes_max: resources.memory_bytes_max,
                }))
            }
            Kind::DocumentNumber => State::Number,
            Kind::Rank { .. } => {
                let field = sort.and_then(|sort| sort.fields.first());
                let dotted = field.map_or("", |field| field.path.as_str());
                let path = frond_doc::path::Path::new(dotted);
                State::Rank { path, before: None, rank: 0 }
            }
            Kind::Shift { by, .. } => {
                let mut reader = spool.read();
                for _ in 0..*by {
                    reader.next_document()?;
                }
                State::Shift(reader)
            }
            Kind::MovingAverage { .. } => State::Average(None),
            Kind::LastFill(_) => State::Last(Evaluated::NULL),
            Kind::Accumulator(_)
            | Kind::Derivative { .. }
            | Kind::Integral { .. }
            | Kind::LinearFill(_) => return Ok(None),
        };
        let (function, variables) = (Arc::clone(self), variables.clone());
        Ok(Some(Stream { function, variables, position: 0, state }))
    }
}

impl Stream {
    /// The value for the next document of the partition, which is `document`.
    pub(in crate::pipeline) fn next(
        &mut self,
        document: &DocumentBuf,
    ) -> Result<Evaluated<'static>, QueryError> {
        let position = self.position;
        self.position += 1;
        let variables = &self.variables;
        match (&self.function.kind, &mut self.state) {
            (Kind::Accumulator(accumulator), State::Moving(moving)) => {
                let range = self.function.bounds.range_of(position, moving.count);
                moving.move_to(range, accumulator, variables)
            }
            (Kind::DocumentNumber, _) => Ok(whole(position + 1)),
            (Kind::Rank { is_dense }, State::Rank { path, before, rank }) => {
                let value = path.get(document.view()).unwrap_or(Value::Null);
                let is_peer = before
                    .as_ref()
                    .is_some_and(|before| variables.collation().equal(before.as_value(), value));
                if !is_peer {
                    *rank = if *is_dense { *rank + 1 } else { position + 1 };
                    *before = Some(value.to_buf());
                }
                Ok(whole(*rank))
            }
            (Kind::Shift { output, by, default }, State::Shift(reader)) => {
                let is_before =
                    i64::try_from(position).map_or(true, |here| here < by.saturating_neg());
                let shifted = if is_before { None } else { reader.next_document()? };
                match shifted {
                    Some(shifted) => evaluate(output, &shifted, variables),
                    None => Ok(Evaluated::copy(default.as_value())),
                }
            }
            (Kind::MovingAverage { input, alpha }, State::Average(average)) => {
                let value = evaluate(input, document, variables)?;
                if let Some(number) = value.value().and_then(Number::of) {
                    *average = Some(series::averaged(*average, number, *alpha));
                }
                Ok(average.map_or(Evaluated::NULL, Evaluated::from))
            }
            (Kind::LastFill(input), State::Last(last)) => {
                let value = evaluate(input, document, variables)?;
                if !value.is_nullish() {
                    *last = value;
                }
                Ok(last.clone())
            }
            _ => unreachable!("a function's state was made for it"),
        }
    }
}

fn evaluate(
    expression: &Expression,
    document: &DocumentBuf,
    variables: &Variables,
) -> Result<Evaluated<'static>, QueryError> {
    Ok(expression.evaluate_in(&Scope::new(document.view(), variables))?.detach())
}

/// The error of a window, or of a partition that can't be streamed, that is too large.
pub(in crate::pipeline) fn too_large(bytes: usize, bytes_max: usize) -> QueryError {
    let message = format!(
        "Exceeded memory limit in DocumentSourceSetWindowFields, used {bytes} bytes but max allowed \
         is {bytes_max}"
    );
    failure(5_414_201, message)
}

impl Moving {
    fn move_to(
        &mut self,
        (from, to): (usize, usize),
        accumulator: &Accumulator,
        variables: &Variables,
    ) -> Result<Evaluated<'static>, QueryError> {
        while self.end < to {
            self.end += 1;
            let Some(document) = self.leading.next_document()? else { break };
            let value = accumulator.value(&Scope::new(document.view(), variables))?;
            self.entered_bytes = self.entered_bytes.saturating_add(self.window.add(value)?);
            // Those that are in take their share.
            let bytes = self.entered_bytes / self.end * (self.end - self.begin);
            if self.bytes_max < bytes {
                return Err(too_large(bytes, self.bytes_max));
            }
        }
        while self.begin < from {
            self.begin += 1;
            let Some(document) = self.trailing.next_document()? else { break };
            self.window.remove(accumulator.value(&Scope::new(document.view(), variables))?);
        }
        self.window.current()
    }
}
