//! Runs the first stages of a pipeline on several cores: each part of the documents goes through
//! them by itself, and the partial results are combined.
//!
//! 1. Each stage declares how it may be divided ([`Division`]). Any number of stages that look at
//!    one document at a time can be, and one behind them that gathers all documents before it gives
//!    any ([`ParallelStage`]). All stages after that run as ever.
//! 2. The documents' source cuts itself into parts that follow one another
//!    ([`Rows::parts`](super::LentRows::parts)), where it can and it is worth it.
//! 3. A thread takes a part through the stages; what the last one has gathered of the parts is put
//!    together in their order ([`PartialResult::append`]).
//! 4. What a stage gives of it may come in pieces again ([`ParallelStage::gives_pieces`]): then the
//!    stages behind it are run over these in the same way.
//! 5. Where no stage gathers, the stages that look at one document at a time are run over some
//!    pieces of the source at once, in their order ([`rounds`]).
//!
//! *Invariant*: the answer is, byte for byte, that of one thread, errors included. So each thread
//! may use only its share of a stage's memory, and where anything fails, in a part or in putting
//! parts together, what was done is forgotten: one thread does it all again, and meets the error
//! that comes first or the memory that is too small.

use std::any::Any;
use std::sync::Arc;

use super::Documents;
use super::rounds;
use super::rows::{Input, Rows};
use super::spill::Resources;
use super::stage::{Context, Stage, lazily};
use crate::cores::Workers;
use crate::error::QueryError;

/// The way a stage may run over parts of its documents.
pub(super) enum Division {
    /// It makes something of one document after the other, whatever the others are.
    Each,
    /// It gathers all of them; what it gathers of parts can be put together.
    Gathers(Arc<dyn ParallelStage>),
    /// It doesn't.
    Whole,
}

/// A stage, parts of whose input can be gathered apart.
pub(super) trait ParallelStage: Send + Sync {
    /// Gathers a part of the documents.
    ///
    /// # Errors
    /// An error of a document; if the part needs more than its share of memory.
    fn gather(
        self: Arc<Self>,
        input: Input<'_>,
        context: &Context,
    ) -> Result<Box<dyn PartialResult>, QueryError>;

    /// Whether what it gives of all parts may come in pieces, which are dear to make.
    fn gives_pieces(&self) -> bool {
        false
    }
}

/// The result of a stage over a part of the documents.
pub(super) trait PartialResult: Any + Send {
    /// Takes what the same stage has gathered of the documents that follow.
    ///
    /// # Errors
    /// If both together aren't known to be what it would have gathered of all of them.
    fn append(&mut self, next: Box<dyn PartialResult>) -> Result<(), QueryError>;

    /// Returns the stage's results.
    ///
    /// # Errors
    /// An error of the stage.
    fn documents(self: Box<Self>, context: &Context) -> Result<Documents<'static>, QueryError>;

    /// Returns the stage's results, in pieces if they can be made apart.
    ///
    /// # Errors
    /// An error of the stage.
    fn input(self: Box<Self>, context: &Context) -> Result<Input<'static>, QueryError> {
        self.documents(context).map(Input::Documents)
    }
}

/// Takes the partial result of the same stage on other documents.
pub(super) fn of_same_stage<G: PartialResult>(next: Box<dyn PartialResult>) -> Box<G> {
    let next: Box<dyn Any> = next;
    next.downcast().expect("both are of one stage")
}

/// A stage, and how many documents those after it read at most.
pub(super) type Wanted = (Arc<dyn Stage>, Option<usize>);

/// Returns how many of the first stages can be run over parts; 0 if none are.
pub(super) fn count(stages: &[Arc<dyn Stage>]) -> usize {
    let division = |stage: &Arc<dyn Stage>| Arc::clone(stage).division();
    let each = stages.iter().take_while(|stage| matches!(division(stage), Division::Each)).count();
    match stages.get(each).map(division) {
        Some(Division::Gathers(_)) => each + 1,
        _ => 0,
    }
}

/// Puts stages after `input`.
pub(super) fn chain<'a>(
    stages: &[Wanted],
    mut input: Input<'a>,
    context: &Context,
) -> Result<Input<'a>, QueryError> {
    for (stage, wanted) in stages {
        let context = Context { wanted: *wanted, ..context.clone() };
        input = input.with(stage.needed_paths(), context.variables.large());
        input = match input {
            Input::Documents(documents) => {
                Input::Documents(Arc::clone(stage).run(documents, &context)?)
            }
            Input::Rows(rows) => Arc::clone(stage).run_over(rows, &context)?,
        };
    }
    Ok(input)
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

/// Whether a stage looks at one document at a time.
pub(super) fn is_each(stage: &Arc<dyn Stage>) -> bool {
    matches!(Arc::clone(stage).division(), Division::Each)
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
    let workers = Workers::find(context.resources.cores.as_ref()?)?;
    // An error of reading is reported when all is read.
    let parts = rows.parts(&workers).ok()??;
    let contexts = contexts(context, &workers, parts.len());
    let parts = parts.into_iter().zip(contexts).collect();
    let gathered = workers.run(parts, |(rows, context): (Box<dyn Rows + '_>, Context)| {
        gather(stages, Input::Rows(rows), &context)
    })?;
    let mut gathered = gathered.into_iter();
    let mut all = gathered.next()??;
    for next in gathered {
        let next = next?;
        context.resources.check().and_then(|()| all.append(next)).ok()?;
    }
    all.input(context).ok()
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

/// Returns the contexts of `count` threads.
pub(super) fn contexts(context: &Context, workers: &Arc<Workers>, count: usize) -> Vec<Context> {
    (0..count).map(|position| context_of(context, (workers, position), count)).collect()
}

/// Returns the context of one of `count` threads, which works at a place among `workers`: it has
/// its share of memory, and asks whether it may go on wherever one thread asks.
pub(super) fn context_of(
    context: &Context,
    (workers, position): (&Arc<Workers>, usize),
    count: usize,
) -> Context {
    let may_go_on = {
        let workers = Arc::clone(workers);
        move || workers.go_on(position)
    };
    let (whole, own) = (context.resources.clone(), may_go_on.clone());
    let go_on = move || {
        whole.check()?;
        own()
    };
    let resources = Resources { go_on: Some(Arc::new(go_on)), ..context.resources.of_part(count) };
    let memory = context.variables.memory().of_part(may_go_on);
    let variables = context.variables.clone().with_memory(memory);
    Context { variables, resources, is_part: true, ..context.clone() }
}
