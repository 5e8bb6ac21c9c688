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

use super::bounds::Bounds;
use super::edge::{Edge, Trail};
use super::{Kind, WindowFunction, series, whole};
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
    /// Of the sort's first field.
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
    Rank {
        before: Option<ValueBuf>,
        rank: usize,
    },
    Shift(SpoolReader),
    Average(Option<Number>),
    Last(Evaluated<'static>),
    /// The line to the end of the window, and that to its beginning.
    Trails(Box<(Trail, Trail)>),
    Line(Box<Line>),
}

/// An accumulator whose window moves along.
struct Moving {
    window: Box<dyn Window>,
    leading: Edge,
    trailing: Edge,
    /// What all values took that ever entered.
    entered_bytes: usize,
    reservation: Reservation,
}

/// Where a `$linearFill` is.
struct Line {
    ahead: Edge,
    /// Where the document before this one lies, and whether the first lies at a date.
    abscissa: Option<f64>,
    is_of_dates: Option<bool>,
    /// The last point that was fixed.
    before: Option<(f64, f64)>,
    /// The next point that is fixed, and its place.
    after: Option<(usize, (f64, f64))>,
}

/// Where a document stands, and how its neighbours are looked at.
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
            Kind::MovingAverage { .. } => State::Average(None),
            Kind::LastFill(_) => State::Last(Evaluated::NULL),
            Kind::Derivative { .. } | Kind::Integral { .. } => {
                State::Trails(Box::new((Trail::new(spool), Trail::new(spool))))
            }
            Kind::LinearFill(_) => State::Line(Box::new(Line {
                ahead: Edge::new(spool),
                abscissa: None,
                is_of_dates: None,
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
            (Kind::Derivative { input, unit }, State::Trails(trails)) => {
                place.derivative(trails, input, *unit)
            }
            (Kind::Integral { input, unit }, State::Trails(trails)) => {
                place.integral(trails, input, *unit)
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
        let value = self.window.current()?;
        variables.memory().read(value.bytes())?;
        Ok(value)
    }
}

/// The points of a window's first and last document.
type Ends = ((f64, f64), (f64, f64));

impl Place<'_> {
    /// The point of a document.
    fn point(
        &self,
        document: &DocumentBuf,
        input: &Expression,
        unit: Option<TimeUnit>,
    ) -> Result<(f64, f64), QueryError> {
        let x = series::abscissa(self.path.get(document.view()), unit)?;
        Ok((x, series::ordinate(&evaluate(input, document, self.variables)?)?))
    }

    /// The slope of the line from the first to the last point of the document's window.
    fn derivative(
        &self,
        (leading, trailing): &mut (Trail, Trail),
        input: &Expression,
        unit: Option<TimeUnit>,
    ) -> Result<Evaluated<'static>, QueryError> {
        let ends = self.move_trails(leading, trailing, input, unit)?;
        let slope = ends.and_then(|(from, to)| {
            let is_two = trailing.edge.position() + 2 <= leading.edge.position();
            is_two.then(|| series::slope(from, to)).flatten()
        });
        Ok(slope.map_or(Evaluated::NULL, Evaluated::from))
    }

    /// The area below the points of the document's window.
    fn integral(
        &self,
        (leading, trailing): &mut (Trail, Trail),
        input: &Expression,
        unit: Option<TimeUnit>,
    ) -> Result<Evaluated<'static>, QueryError> {
        let ends = self.move_trails(leading, trailing, input, unit);
        let ends = ends.map_err(series::of_integral)?;
        let area = ends.map(|(from, _)| leading.area() - trailing.area_to(from));
        Ok(area.map_or(Evaluated::NULL, Evaluated::from))
    }

    /// Moves the ends of a line on to the document's window; the points of its first and last
    /// document, if any is in it.
    fn move_trails(
        &self,
        leading: &mut Trail,
        trailing: &mut Trail,
        input: &Expression,
        unit: Option<TimeUnit>,
    ) -> Result<Option<Ends>, QueryError> {
        let (bounds, path) = (self.bounds, self.path);
        // Also documents that are in no window must be such that they could be.
        self.point(self.document, input, unit)?;
        let value = bounds.sort_value(path, self.document)?;
        let window = bounds.window_of(self.position, self.count, value)?;
        loop {
            let position = leading.edge.position();
            let Some(document) = leading.edge.peek()? else { break };
            if !window.reaches(position, bounds.sort_value(path, document)?) {
                break;
            }
            let point = self.point(document, input, unit)?;
            leading.pass(point)?;
        }
        loop {
            let position = trailing.edge.position();
            let Some(document) = trailing.edge.peek()? else { return Ok(None) };
            let point = self.point(document, input, unit)?;
            if !window.is_behind(position, bounds.sort_value(path, document)?) {
                let is_any = position < leading.edge.position();
                return Ok(leading.last().filter(|_| is_any).map(|last| (point, last)));
            }
            trailing.pass(point)?;
        }
    }
}

impl Line {
    fn next(
        &mut self,
        place: &Place<'_>,
        input: &Expression,
    ) -> Result<Evaluated<'static>, QueryError> {
        let x = self.abscissa_of(place, place.document)?;
        if self.abscissa.replace(x) == Some(x) {
            return Err(series::repeated());
        }
        let value = evaluate(input, place.document, place.variables)?;
        if let Some(fixed) = series::fixed(&value)? {
            self.before = Some((x, fixed));
            return Ok(value);
        }
        let Some(before) = self.before else { return Ok(Evaluated::NULL) };
        self.look_ahead(place, input)?;
        Ok(match self.after {
            Some((_, after)) => Evaluated::from(series::between(before, after, x)),
            None => Evaluated::NULL,
        })
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
                self.after = Some((position, (self.abscissa_of(place, &document)?, fixed)));
            }
        }
        Ok(())
    }

    fn abscissa_of(
        &mut self,
        place: &Place<'_>,
        document: &DocumentBuf,
    ) -> Result<f64, QueryError> {
        let value = place.path.get(document.view());
        let is_date = matches!(value, Some(Value::DateTime(_)));
        let is_of_dates = *self.is_of_dates.get_or_insert(is_date);
        // Numbers before dates are as wrong as dates before what is none.
        let unit = (is_of_dates || is_date).then_some(TimeUnit::Millis(1));
        series::abscissa(value.filter(|_| is_of_dates == is_date), unit)
    }
}
