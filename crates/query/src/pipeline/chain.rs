//! Stages one after the other, on one thread or on one of several.

use std::sync::Arc;

use super::division::Division;
use super::rows::Input;
use super::spill::Resources;
use super::stage::{Context, Stage};
use super::together::Together;
use crate::cores::Workers;
use crate::error::QueryError;

/// A stage, and how many documents those after it read at most.
pub(super) type Wanted = (Arc<dyn Stage>, Option<usize>);

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

/// Whether a stage looks at one document at a time.
pub(super) fn is_each(stage: &Arc<dyn Stage>) -> bool {
    matches!(Arc::clone(stage).division(), Division::Each)
}

/// Returns the contexts of `count` threads.
pub(super) fn contexts(context: &Context, workers: &Arc<Workers>, count: usize) -> Vec<Context> {
    // Without files one thread fails where it needs more, counted by what its lists have room for:
    // that is at most twice what is in them.
    let bytes_max = context.resources.memory_bytes_max / 2;
    let together = Together::new(context.resources.reservation_of(bytes_max));
    let of_place = |position| {
        let context = context_of(context, (workers, position), count);
        Context { together: Some(Arc::clone(&together)), ..context }
    };
    (0..count).map(of_place).collect()
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
    Context { variables, resources, is_part: true, together: None, ..context.clone() }
}
