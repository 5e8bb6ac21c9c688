//! Accumulators: what `$group` computes for each group, and `$setWindowFields` for each window.
//!
//! Reading order: this file (what an accumulator is), `state` (the two traits), `table` (every
//! accumulator, supported or refused, and where it may stand), `parse`, then the families:
//! `numbers`, `spread`, `ends`, `extremes`, `sorted`, `lists`, `percentile` (and `digest`),
//! `scripted`.
//!
//! How it runs:
//! 1. [`Accumulator::parse`] once a stage.
//! 2. For each group [`Accumulator::start`], for each window [`Accumulator::start_window`]; `n` and
//!    `p` are evaluated then.
//! 3. For each document [`Accumulator::value`], and what it gives goes into [`State::add`]. That is
//!    one value, whatever the accumulator, so that a caller may keep it or write it to a file and
//!    add it later.
//! 4. A window's values leave by [`Window::remove`], in the order in which they came; the result
//!    is asked for as often as one likes by [`Window::current`]. A group ends by [`State::finish`].
//!
//! *Surprises*: a group's and a window's state are different types where a group needs less: a
//! group's `$min` keeps one value, a window's keeps all of them.

mod digest;
mod ends;
mod extremes;
mod lists;
mod numbers;
mod parse;
mod percentile;
mod scripted;
mod sorted;
mod spread;
mod state;
mod table;
#[cfg(test)]
mod tests;

use frond_doc::Document;

use crate::error::QueryError;
use crate::expression::parameters::{count_from, percentiles_from};
use crate::expression::{Evaluated, Expression, Extreme, Scope, Variables};
use crate::sort::SortPattern;
use scripted::Functions;
use spread::{Measure, Spreading};

pub(crate) use state::{State, Window, cost};
pub(crate) use table::{Place, features};

/// The kind of an accumulator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    AddToSet,
    Avg,
    Bottom,
    BottomN,
    Count,
    CovariancePop,
    CovarianceSamp,
    First,
    FirstN,
    Last,
    LastN,
    Max,
    MaxN,
    Median,
    MergeObjects,
    Min,
    MinN,
    Percentile,
    Push,
    /// `$accumulator` and `$_internalJsReduce`.
    Scripted,
    StdDevPop,
    StdDevSamp,
    Sum,
    Top,
    TopN,
}

impl Kind {
    /// Whether what parts of the values give can be put together. The others say something else of
    /// other parts, by which of equal values they keep.
    fn divides(self) -> bool {
        match self {
            Kind::AddToSet | Kind::Avg | Kind::Count | Kind::Max | Kind::MergeObjects => true,
            Kind::First | Kind::FirstN | Kind::Last | Kind::LastN => true,
            Kind::Min | Kind::MinN | Kind::Push | Kind::Sum | Kind::Top | Kind::TopN => true,
            Kind::Bottom | Kind::BottomN | Kind::MaxN | Kind::Scripted => false,
            Kind::CovariancePop | Kind::CovarianceSamp | Kind::Median | Kind::Percentile => true,
            Kind::StdDevPop | Kind::StdDevSamp => true,
        }
    }

    /// Whether values are kept as they are, and not looked at.
    fn carries(self) -> bool {
        matches!(self, Kind::First | Kind::FirstN | Kind::Last | Kind::LastN | Kind::Push)
    }
}

/// The input of an accumulator, evaluated over each document.
#[derive(Clone, Debug)]
enum Input {
    /// `$count` wants nothing.
    Nothing,
    One(Expression),
    /// The value to keep and the order to keep it by: together an array of the sort key's bytes and
    /// the value.
    Sorted(Expression, SortPattern),
    /// The arguments of clients' functions, and the functions.
    Scripted(Expression, Functions),
}

/// A parsed accumulator. *Thread safety*: immutable, so that any number of runs may share it.
#[derive(Clone, Debug)]
pub(crate) struct Accumulator {
    kind: Kind,
    input: Input,
    /// `n` or `p`.
    parameter: Option<Expression>,
}

impl Accumulator {
    /// Whether both are given the same value of each document, which is a field's.
    pub(crate) fn has_value_of(&self, other: &Accumulator) -> bool {
        let other_kind = other.kind;
        match (&self.input, &other.input) {
            (Input::One(own), Input::One(other)) => {
                let is_same = own.field().is_some() && own.field() == other.field();
                is_same && self.kind.carries() == other_kind.carries()
            }
            _ => false,
        }
    }

    /// The result over `count` documents, if nothing else of them matters: of `$count`, and of
    /// `$sum` of a constant that any number of times adds up to exactly.
    pub(crate) fn of_count(&self, count: u64) -> Option<Evaluated<'static>> {
        match (self.kind, &self.input) {
            (Kind::Count, Input::Nothing) => Some(numbers::Count::of(count)),
            (Kind::Sum, Input::One(summed)) => numbers::Total::times(summed.constant()?, count),
            _ => None,
        }
    }

    /// Whether parts of a group's values may be gathered apart, and put together
    /// ([`State::append`]).
    pub(crate) fn divides(&self) -> bool {
        let parameter = self.parameter.as_ref();
        self.kind.divides() && parameter.is_none_or(|it| it.constant().is_some())
    }

    /// Whether what the state of a part takes of memory is for what it keeps until it is settled
    /// or appended.
    pub(crate) fn shrinks(&self) -> bool {
        let is_sum = matches!(self.kind, Kind::Avg | Kind::Sum);
        let is_covariance = matches!(self.kind, Kind::CovariancePop | Kind::CovarianceSamp);
        is_sum || is_covariance || matches!(self.kind, Kind::StdDevPop | Kind::StdDevSamp)
    }

    /// As [`start`](Self::start), for a part of the group's values.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub(crate) fn start_part(
        &self,
        group: Document<'_>,
        variables: &Variables,
    ) -> Result<Box<dyn State>, QueryError> {
        Ok(match self.kind {
            Kind::Avg => Box::new(numbers::Avg::of_part()),
            Kind::Sum => Box::new(numbers::Total::of_part()),
            Kind::CovariancePop => Box::new(Spreading::of_part(Measure::Covariance, false)),
            Kind::CovarianceSamp => Box::new(Spreading::of_part(Measure::Covariance, true)),
            Kind::StdDevPop => Box::new(Spreading::of_part(Measure::Deviation, false)),
            Kind::StdDevSamp => Box::new(Spreading::of_part(Measure::Deviation, true)),
            Kind::Median | Kind::Percentile => {
                let (_, percentiles) = self.parameters(group, variables)?;
                Box::new(percentile::Numbers::of_part(percentiles))
            }
            _ => self.start(group, variables)?,
        })
    }

    /// Whether clients' scripts make the result.
    pub(crate) fn runs_scripts(&self) -> bool {
        matches!(self.input, Input::Scripted(..))
    }

    /// The order of the documents, if it looks at them in one of its own.
    pub(crate) fn order(&self) -> Option<&SortPattern> {
        match &self.input {
            Input::Sorted(_, by) => Some(by),
            Input::Nothing | Input::One(_) | Input::Scripted(..) => None,
        }
    }

    /// The value of one document, for [`State::add`].
    pub(crate) fn value<'a>(&'a self, scope: &Scope<'a>) -> Result<Evaluated<'a>, QueryError> {
        match &self.input {
            Input::Nothing => Ok(Evaluated::NULL),
            Input::One(expression) if self.kind.carries() => expression.carry_in(scope),
            Input::One(expression) | Input::Scripted(expression, _) => {
                expression.evaluate_in(scope)
            }
            Input::Sorted(output, by) => {
                let output = output.evaluate_in(scope)?;
                let key = by.key_by(scope.root, scope.collation())?;
                sorted::entry(&key, output.or_null())
            }
        }
    }

    /// The state of a group without documents. `group` is its `_id` if that is a document, on
    /// which `n` may depend, otherwise an empty one.
    ///
    /// # Errors
    /// For an `n` or `p` that isn't one.
    pub(crate) fn start(
        &self,
        group: Document<'_>,
        variables: &Variables,
    ) -> Result<Box<dyn State>, QueryError> {
        if let Input::Scripted(_, functions) = &self.input {
            return functions.start(group, variables);
        }
        let (n, p) = self.parameters(group, variables)?;
        let by = variables.collation();
        Ok(match self.kind {
            Kind::AddToSet => Box::new(lists::Set::new(by)),
            Kind::First => Box::new(ends::First::default()),
            Kind::FirstN => Box::new(ends::FirstN::new(n.unwrap_or(1))),
            Kind::Last => Box::new(ends::Last::default()),
            Kind::LastN => Box::new(ends::LastN::new(n.unwrap_or(1))),
            Kind::Max => Box::new(extremes::One::new(Extreme::Max, by)),
            Kind::MaxN => Box::new(extremes::Several::new(Extreme::Max, n.unwrap_or(1), by)),
            Kind::Min => Box::new(extremes::One::new(Extreme::Min, by)),
            Kind::MinN => Box::new(extremes::Several::new(Extreme::Min, n.unwrap_or(1), by)),
            Kind::MergeObjects => Box::new(lists::Merged::default()),
            Kind::Median | Kind::Percentile => Box::new(percentile::Numbers::new(p)),
            Kind::Push => Box::new(lists::List::default()),
            Kind::Bottom | Kind::BottomN => Box::new(sorted::Best::new(sorted::End::Bottom, n)),
            Kind::Top | Kind::TopN => Box::new(sorted::Best::new(sorted::End::Top, n)),
            Kind::StdDevPop => Box::new(Spreading::of_group(Measure::Deviation, false)),
            Kind::StdDevSamp => Box::new(Spreading::of_group(Measure::Deviation, true)),
            // These accumulators need no more for a window than for a group.
            Kind::Avg | Kind::Count | Kind::CovariancePop | Kind::CovarianceSamp | Kind::Sum => {
                self.start_window(group, variables)?
            }
            Kind::Scripted => return Err(scripted::misplaced()),
        })
    }

    /// The state of an empty window. `partition` is as `group` of [`start`](Self::start).
    ///
    /// # Errors
    /// For an `n` or `p` that isn't one.
    pub(crate) fn start_window(
        &self,
        partition: Document<'_>,
        variables: &Variables,
    ) -> Result<Box<dyn Window>, QueryError> {
        let (n, p) = self.parameters(partition, variables)?;
        let by = variables.collation();
        Ok(match self.kind {
            Kind::AddToSet => Box::new(lists::WindowSet::new(by)),
            Kind::Avg => Box::new(numbers::Avg::default()),
            Kind::Count => Box::new(numbers::Count::default()),
            Kind::CovariancePop => Box::new(Spreading::of_window(Measure::Covariance, false)),
            Kind::CovarianceSamp => Box::new(Spreading::of_window(Measure::Covariance, true)),
            Kind::First | Kind::FirstN => Box::new(ends::WindowEnd::new(ends::Side::First, n)),
            Kind::Last | Kind::LastN => Box::new(ends::WindowEnd::new(ends::Side::Last, n)),
            Kind::Max | Kind::MaxN => Box::new(extremes::WindowExtreme::new(Extreme::Max, n, by)),
            Kind::Min | Kind::MinN => Box::new(extremes::WindowExtreme::new(Extreme::Min, n, by)),
            Kind::MergeObjects => Box::new(lists::WindowMerged::default()),
            Kind::Median | Kind::Percentile => Box::new(percentile::WindowNumbers::new(p)),
            Kind::Push => Box::new(lists::WindowList::default()),
            Kind::StdDevPop => Box::new(Spreading::of_window(Measure::Deviation, false)),
            Kind::StdDevSamp => Box::new(Spreading::of_window(Measure::Deviation, true)),
            Kind::Sum => Box::new(numbers::Total::default()),
            Kind::Bottom | Kind::BottomN => {
                Box::new(sorted::WindowBest::new(sorted::End::Bottom, n))
            }
            Kind::Top | Kind::TopN => Box::new(sorted::WindowBest::new(sorted::End::Top, n)),
            // It stands in groups only.
            Kind::Scripted => return Err(scripted::misplaced()),
        })
    }

    /// `n` and `p`.
    fn parameters(
        &self,
        group: Document<'_>,
        variables: &Variables,
    ) -> Result<(Option<usize>, Option<Vec<f64>>), QueryError> {
        let Some(expression) = &self.parameter else { return Ok((None, None)) };
        let scope = Scope::new(group, variables);
        let value = expression.evaluate_in(&scope)?;
        Ok(match self.kind {
            Kind::Median | Kind::Percentile => (None, Some(percentiles_from(&value)?)),
            Kind::BottomN | Kind::FirstN | Kind::LastN | Kind::MaxN | Kind::MinN | Kind::TopN => {
                (Some(count_from(&value)?), None)
            }
            // These have none, which was answered above.
            Kind::AddToSet
            | Kind::Avg
            | Kind::Bottom
            | Kind::Count
            | Kind::CovariancePop
            | Kind::CovarianceSamp
            | Kind::First
            | Kind::Last
            | Kind::Max
            | Kind::MergeObjects
            | Kind::Min
            | Kind::Push
            | Kind::Scripted
            | Kind::StdDevPop
            | Kind::StdDevSamp
            | Kind::Sum
            | Kind::Top => (None, None),
        })
    }
}
