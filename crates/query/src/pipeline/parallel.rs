//! Runs the first stages of a pipeline on several cores: each part of the documents goes through
//! them by itself, and the partial results are combined.
//!
//! 1. Each stage declares how it may be divided ([`Division`]). Any number of stages that look at
//!    one document at a time can be, and one behind them that gathers all documents before it gives
//!    any ([`ParallelStage`](super::division::ParallelStage)). All stages after that run as ever.
//! 2. The documents' source cuts itself into parts that follow one another
//!    ([`Rows::parts`](super::LentRows::parts)), where it can and it is worth it.
//! 3. A thread takes a part through the stages; what the last one has gathered of a part is put
//!    behind that of those before ([`PartialResult::append`]) while others are still read.
//! 4. What a stage gives of it may come in pieces again ([`gives_pieces`]): then the stages behind
//!    it are run over these in the same way.
//! 5. Where no stage gathers, the stages that look at one document at a time are run over some
//!    pieces of the source at once, in their order ([`rounds`]).
//!
//! *Invariant*: the answer is, byte for byte, that of one thread, errors included. So each thread
//! may use only its share of a stage's memory, and where anything fails, in a part or in putting
//! parts together, what was done is forgotten: one thread does it all again, and meets the error
//! that comes first or the memory that is too small.
//!
//! [`gives_pieces`]: super::division::ParallelStage::gives_pieces

use std::sync::Arc;

use super::Documents;
use super::chain::{Wanted, chain, contexts, is_each};
use super::division::{Division, PartialResult};
use super::rounds;
use super::rows::{Input, Rows};
use super::stage::{Context, Stage, lazily};
use crate::code::Code;
use crate::cores::Workers;
use crate::error::QueryError;

/// Returns how many of the first stages can be run over parts; 0 if none are.
pub(super) fn count(stages: &[Arc<dyn Stage>]) -> usize {
    let division = |stage: &Arc<dyn Stage>| Arc::clone(stage).division();
    let each = stages.iter().take_while(|stage| matches!(division(stage), Division::Each)).count();
    match stages.get(each).map(division) {
        Some(Division::Gathers(_)) => each + 1,
        _ => 0,
    }
}

/// Puts stages after rows, the first of them on several cores where they can be. Returns what comes
/// out, and the stages that are left.
pub(super) fn through<'a>(
    mut stages: Vec<Wanted>,
    rows: Box<dyn Rows + 'a>,
    context: &Context,
) -> Result<(Input<'a>, Vec<Wanted>), QueryError> {
    let divided_count = divided_count(&stages);
    if 0 < divided_count {
        let rest = stages.split_off(divided_count);
        return Ok((Input::Documents(over(stages, rows, context)), rest));
    }
    let rest = stages.split_off(rounds::count(&stages));
    let input = match stages.is_empty() {
        true => Input::Rows(rows),
        false => rounds::over(stages, rows, context)?,
    };
    Ok((input, rest))
}

/// Returns how many of the first stages look at one document at a time.
fn each_count(stages: &[Wanted]) -> usize {
    stages.iter().take_while(|(stage, _)| is_each(stage)).count()
}

/// As [`count`], with the stages that are run over pieces of what the last of those gives.
fn divided_count(stages: &[Wanted]) -> usize {
    let each = each_count(stages);
    match stages.get(each).map(|(stage, _)| Arc::clone(stage).division()) {
        Some(Division::Gathers(stage)) if stage.gives_pieces() => {
            let rest = &stages[each + 1..];
            each + 1 + divided_count(rest).max(rounds::count(rest))
        }
        Some(Division::Gathers(_)) => each + 1,
        _ => 0,
    }
}

/// Puts stages that can be divided after rows that may be.
fn over<'a>(stages: Vec<Wanted>, rows: Box<dyn Rows + 'a>, context: &Context) -> Documents<'a> {
    let context = context.clone();
    lazily(move || {
        let gathering = each_count(&stages) + 1;
        let Some(made) = of_parts(&stages[..gathering], &*rows, &context) else {
            return Ok(chain(&stages, Input::Rows(rows), &context)?.into_documents());
        };
        let rest = stages[gathering..].to_vec();
        let made = match made {
            Input::Rows(rows) if divided_count(&rest) == 0 => rounds::over(rest, rows, &context)?,
            Input::Rows(rows) => Input::Documents(over(rest, rows, &context)),
            made => chain(&rest, made, &context)?,
        };
        Ok(made.into_documents())
    })
}

/// Runs the stages, of which the last gathers, on parts of the rows; `None` if there are none, or
/// one thread must do it.
fn of_parts(stages: &[Wanted], rows: &dyn Rows, context: &Context) -> Option<Input<'static>> {
    let cores = context.resources.cores.as_ref()?;
    let division = stages.last().map(|(last, _)| Arc::clone(last).division());
    let workers = match division {
        Some(Division::Gathers(stage)) if stage.shrinks() => Workers::find_for_small_parts(cores)?,
        _ => Workers::find(cores)?,
    };
    // An error of reading is reported when all is read.
    let parts = rows.parts(&workers).ok()??;
    let contexts = contexts(context, &workers, parts.len());
    let parts = parts.into_iter().zip(contexts).collect();
    let gather_part = |(rows, context): (Box<dyn Rows + '_>, Context)| {
        gather(stages, Input::Rows(rows), &context)?.ok_or_else(not_gathered)
    };
    let mut all: Option<Box<dyn PartialResult>> = None;
    workers.run_in_order(parts, gather_part, |next| {
        context.resources.check()?;
        match &mut all {
            Some(all) => all.append(next)?,
            None => all = Some(next),
        }
        Ok::<_, QueryError>(())
    })?;
    all?.input(context).ok()
}

/// Shown to no client: then one thread does it all.
fn not_gathered() -> QueryError {
    QueryError::new(Code::InternalError, "the last of the stages doesn't gather")
}

/// Takes documents through the stages, of which the last gathers them; `None` if it doesn't.
pub(super) fn gather(
    stages: &[Wanted],
    input: Input<'_>,
    context: &Context,
) -> Result<Option<Box<dyn PartialResult>>, QueryError> {
    let Some(((last, wanted), each)) = stages.split_last() else { return Ok(None) };
    let Division::Gathers(stage) = Arc::clone(last).division() else { return Ok(None) };
    let input = chain(each, input, context)?.with(last.needed_paths(), context.variables.large());
    stage.gather(input, &Context { wanted: *wanted, ..context.clone() }).map(Some)
}
