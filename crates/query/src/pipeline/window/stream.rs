//! Window functions over a partition that doesn't fit into memory: one document after the other.
//!
//! The documents wait in a [`Spool`]. A function reads them once more for each end of its window
//! ([`Edge`]): what the leading edge passes enters, what the trailing one passes leaves. So a
//! function takes two buffers and what its own state holds, which is counted. `$linearFill` looks
//! ahead for the next value with one reader more.
//!
//! *Invariant*: the values are those of [`WindowFunction::column`], bit by bit: both add the same
//! numbers in the same order.

use std::sync::Arc;

use frond_doc::path::Path;
use frond_doc::{Document, DocumentBuf, Value, ValueBuf};

use super::bounds::{self, Bounds};
use super::edge::Edge;
use super::series::{self, Area, MovingAverage, Places, Point};
use super::{Kind, WindowFunction, whole};
use crate::accumulator::{Accumulator, Window};
use crate::error::QueryError;
use crate::expression::{Evaluated, Expression, Scope, Variables, failure};
use crate::number::any_type::Number;
use crate::pipeline::spill::Resources;
use crate::pipeline::spool::{Spool, SpoolReader};
use crate::pipeline::time_unit::TimeUnit;
use crate::sort::SortPattern;
use frond_store::budget::{Exceeded, Reservation};

/// A function's values, one document after the other.
pub(in crate::pipeline) struct Stream {
    function: Arc<WindowFunction>,
    variables: Variables,
    /// The path of the sort's first field.
    path: Path,
    /// Documents of the partition.
    count: usize,
    /// Documents whose values were given.
    position: usize,
    state: State,
}

enum State {
    Moving(Box<Moving>),
    Number,
    Rank { before: Option<ValueBuf>, rank: usize },
    Shift(SpoolReader),
    Average(MovingAverage),
    Last(Evaluated<'static>),
    Slope(Box<Slope>),
    Area(Box<MovingArea>),
    Line(Box<Line>),
}

/// An accumulator whose window moves along.
struct Moving {
    window: Box<dyn Window>,
    leading: Edge,
    trailing: Edge,
    /// The memory of all values that ever entered.
    entered_bytes: usize,
    reservation: Reservation,
}

/// The ends of a `$derivative`'s window.
struct Slope {
    leading: Edge,
    trailing: Edge,
    /// The document that the leading edge passed last.
    last: Option<DocumentBuf>,
}

/// The points of an `$integral`'s window.
struct MovingArea {
    leading: Edge,
    trailing: Edge,
    area: Area,
    /// The point that entered last.
    last: Option<Point>,
}

/// The state of a `$linearFill`.
struct Line {
    ahead: Edge,
    places: Places,
    /// The last point that was fixed.
    before: Option<(Number, Number)>,
    /// The next point that is fixed, and its place.
    after: Option<(usize, (Number, Number))>,
}

/// The place of a document, and the access to its neighbours.
struct Place<'s> {
    position: usize,
    count: usize,
    document: &'s DocumentBuf,
    path: &'s Path,
    bounds: &'s Bounds,
    variables: &'s Variables,
}

impl WindowFunction {
    /// The function's values for the documents of `spool`.
    pub(in crate::pipeline) fn stream(
        self: &Arc<WindowFunction>,
        spool: &Arc<Spool>,
        sort: Option<&SortPattern>,
        variables: &Variables,
        resources: &Resources,
    ) -> Result<Stream, QueryError> {
        let state = match &self.kind {
            Kind::Accumulator(accumulator) => State::Moving(Box::new(Moving {
                window: accumulator.start_window(Document::empty(), variables)?,
                leading: Edge::new(spool),
                trailing: Edge::new(spool),
                entered_bytes: 0,
                reservation: resources.reservation(),
            })),
            Kind::DocumentNumber => State::Number,
            Kind::Rank { .. } => State::Rank { before: None, rank: 0 },
            Kind::Shift { by, .. } => {
                let mut reader = spool.read();
                for _ in 0..*by {
                    reader.next_document()?;
                }
                State::Shift(reader)
            }
            Kind::MovingAverage { .. } => State::Average(MovingAverage::default()),
            Kind::LastFill(_) => State::Last(Evaluated::NULL),
            Kind::Derivative { .. } => {
                let (leading, trailing) = (Edge::new(spool), Edge::new(spool));
                State::Slope(Box::new(Slope { leading, trailing, last: None }))
            }
            Kind::Integral { .. } => {
                let (leading, trailing) = (Edge::new(spool), Edge::new(spool));
                let area = Area::default();
                State::Area(Box::new(MovingArea { leading, trailing, area, last: None }))
            }
            Kind::LinearFill(_) => State::Line(Box::new(Line {
                ahead: Edge::new(spool),
                places: Places::default(),
                before: None,
                after: None,
            })),
        };
        let field = sort.and_then(|sort| sort.fields.first());
        let path = Path::new(field.map_or("", |field| field.path.as_str()));
        let (function, variables) = (Arc::clone(self), variables.clone());
        Ok(Stream { function, variables, path, count: spool.count(), position: 0, state })
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
        let (count, path) = (self.count, &self.path);
        let bounds = &self.function.bounds;
        let place = Place { position, count, document, path, bounds, variables };
        match (&self.function.kind, &mut self.state) {
            (Kind::Accumulator(accumulator), State::Moving(moving)) => {
                moving.move_to(&place, accumulator)
            }
            (Kind::Derivative { input, unit }, State::Slope(slope)) => {
                slope.move_to(&place, input, *unit)
            }
            (Kind::Integral { input, unit }, State::Area(area)) => {
                area.move_to(&place, input, *unit)
            }
            (Kind::LinearFill(input), State::Line(line)) => line.next(&place, input),
            (Kind::DocumentNumber, _) => Ok(whole(position + 1)),
            (Kind::Rank { is_dense }, State::Rank { before, rank }) => {
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
                    None => Evaluated::copy(default.as_value(), variables.memory()),
                }
            }
            (Kind::MovingAverage { input, alpha }, State::Average(average)) => {
                average.add(&evaluate(input, document, variables)?, *alpha);
                Ok(average.value())
            }
            (Kind::LastFill(input), State::Last(last)) => {
                let value = evaluate(input, document, variables)?;
                if !value.is_nullish() {
                    *last = value;
                }
                last.borrow().detach(variables.memory())
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
    let value = expression.evaluate_in(&Scope::new(document.view(), variables))?;
    value.detach(variables.memory())
}

/// The error of a window that is too large.
fn too_large(bytes: usize, exceeded: Exceeded) -> QueryError {
    let message = format!(
        "Exceeded memory limit in DocumentSourceSetWindowFields, used {bytes} bytes but max allowed \
         is {exceeded}"
    );
    failure(5_414_201, message)
}

impl Moving {
    fn move_to(
        &mut self,
        place: &Place<'_>,
        accumulator: &Accumulator,
    ) -> Result<Evaluated<'static>, QueryError> {
        let Place { path, bounds, variables, .. } = *place;
        let window = bounds.window_of(
            place.position,
            place.count,
            bounds.sort_value(path, place.document)?,
        )?;
        loop {
            let position = self.leading.position();
            let Some(document) = self.leading.peek()? else { break };
            if !window.reaches(position, bounds.sort_value(path, document)?) {
                break;
            }
            let value = accumulator.value(&Scope::new(document.view(), variables))?;
            self.entered_bytes = self.entered_bytes.saturating_add(self.window.add(value)?);
            self.leading.pass()?;
            // Those that are in take their share.
            let end = self.leading.position();
            let bytes = self.entered_bytes / end * end.saturating_sub(self.trailing.position());
            self.reservation.hold(bytes).map_err(|exceeded| too_large(bytes, exceeded))?;
        }
        loop {
            let position = self.trailing.position();
            let Some(document) = self.trailing.peek()? else { break };
            if !window.is_behind(position, bounds.sort_value(path, document)?) {
                break;
            }
            self.window.remove(accumulator.value(&Scope::new(document.view(), variables))?);
            self.trailing.pass()?;
        }
        // Some accumulators go through all that is in.
        let entered = self.leading.position();
        variables.memory().work(entered.saturating_sub(self.trailing.position()))?;
        let value = self.window.current()?;
        variables.memory().read(value.bytes())?;
        Ok(value)
    }
}

impl Place<'_> {
    /// The window of the document.
    fn window(&self) -> Result<bounds::Window, QueryError> {
        let value = self.bounds.sort_value(self.path, self.document)?;
        self.bounds.window_of(self.position, self.count, value)
    }
}

impl Slope {
    fn move_to(
        &mut self,
        place: &Place<'_>,
        input: &Expression,
        unit: Option<TimeUnit>,
    ) -> Result<Evaluated<'static>, QueryError> {
        let Place { path, bounds, variables, .. } = *place;
        let window = place.window()?;
        loop {
            let position = self.leading.position();
            let Some(document) = self.leading.peek()? else { break };
            if !window.reaches(position, bounds.sort_value(path, document)?) {
                break;
            }
            self.last = Some(document.clone());
            self.leading.pass()?;
        }
        loop {
            let position = self.trailing.position();
            let Some(first) = self.trailing.peek()? else { return Ok(Evaluated::NULL) };
            if window.is_behind(position, bounds.sort_value(path, first)?) {
                self.trailing.pass()?;
                continue;
            }
            let last = self.last.as_ref().filter(|_| position < self.leading.position());
            let Some(last) = last else { return Ok(Evaluated::NULL) };
            let from = (path.get(first.view()), evaluate(input, first, variables)?);
            let to = (path.get(last.view()), evaluate(input, last, variables)?);
            return series::slope(from, to, unit);
        }
    }
}

impl MovingArea {
    fn move_to(
        &mut self,
        place: &Place<'_>,
        input: &Expression,
        unit: Option<TimeUnit>,
    ) -> Result<Evaluated<'static>, QueryError> {
        let Place { path, bounds, variables, .. } = *place;
        let window = place.window()?;
        let point = |document: &DocumentBuf| {
            let value = evaluate(input, document, variables)?;
            series::point(path.get(document.view()), &value, unit)
        };
        loop {
            let position = self.leading.position();
            let Some(document) = self.leading.peek()? else { break };
            if !window.reaches(position, bounds.sort_value(path, document)?) {
                break;
            }
            let entering = point(document)?;
            self.area.enter(self.last.replace(entering), entering);
            self.leading.pass()?;
        }
        while self.trailing.position() < self.leading.position() {
            let position = self.trailing.position();
            let Some(document) = self.trailing.peek()? else { break };
            if !window.is_behind(position, bounds.sort_value(path, document)?) {
                break;
            }
            let leaving = point(document)?;
            self.trailing.pass()?;
            let is_any = self.trailing.position() < self.leading.position();
            let next = self.trailing.peek()?.filter(|_| is_any).map(point).transpose()?;
            self.area.leave(leaving, next);
        }
        Ok(self.area.value(unit))
    }
}

impl Line {
    fn next(
        &mut self,
        place: &Place<'_>,
        input: &Expression,
    ) -> Result<Evaluated<'static>, QueryError> {
        let value = evaluate(input, place.document, place.variables)?;
        let fixed = series::fixed(&value)?;
        let x = self.places.next(place.path.get(place.document.view()))?;
        if let Some(fixed) = fixed {
            self.before = Some((x, fixed));
            return Ok(value);
        }
        let Some(before) = self.before else { return Ok(Evaluated::NULL) };
        self.look_ahead(place, input)?;
        match self.after {
            Some((_, after)) => series::between(before, after, x).map(Evaluated::from),
            None => Ok(Evaluated::NULL),
        }
    }

    /// Finds the next point that is fixed, behind the document.
    fn look_ahead(&mut self, place: &Place<'_>, input: &Expression) -> Result<(), QueryError> {
        if self.after.is_some_and(|(position, _)| place.position < position) {
            return Ok(());
        }
        self.after = None;
        while self.after.is_none() {
            let position = self.ahead.position();
            let Some(document) = self.ahead.peek()? else { break };
            let document = document.clone();
            self.ahead.pass()?;
            if position <= place.position {
                continue;
            }
            let value = evaluate(input, &document, place.variables)?;
            if let Some(fixed) = series::fixed(&value)? {
                let (x, _) = Places::place(place.path.get(document.view()))?;
                self.after = Some((position, (x, fixed)));
            }
        }
        Ok(())
    }
}
