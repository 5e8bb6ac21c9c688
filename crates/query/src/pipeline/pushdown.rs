//! Predicate push-down: moves a `$match` before stages that don't change what it tests.
//!
//! 1. A filter is taken apart into the conditions that all must hold ([`Filter::conjuncts`]).
//! 2. A condition goes before a `$sort`, and before a `$project`, `$addFields`, `$unset` or
//!    `$unwind` that gives each of its paths as it was ([`Stage::keeps`]).
//! 3. What comes to the front is the planner's, so that an index serves it. A view's reader's
//!    filter goes the same way, through the view's stages.
//!
//! *Surprise*: a document that is left out early isn't computed, so an error of its computation
//! isn't told; in MongoDB neither.

use std::sync::Arc;

use super::matching;
use super::stage::Stage;
use crate::filter::Filter;

/// A filter of more conditions stays where it is: moving them costs more than it saves.
pub(super) const CONDITIONS_MAX: usize = 1_000;

/// Moves conditions as far to the front as they may go.
pub(super) fn push_down(stages: &mut Vec<Arc<dyn Stage>>) {
    let mut position = 1;
    while position < stages.len() {
        position += advance(stages, position);
    }
}

/// Moves the conditions of the stage at `position`; answers how many stages it has become.
fn advance(stages: &mut Vec<Arc<dyn Stage>>, position: usize) -> usize {
    let Some(filter) = stages[position].filter() else { return 1 };
    let mut moving = filter.conjuncts();
    if CONDITIONS_MAX < moving.len() {
        return 1;
    }
    let mut placed: Vec<(usize, Filter)> = Vec::new();
    let mut place = position;
    for before in (0..position).rev() {
        let stage = stages[before].as_ref();
        if stage.filter().is_some() {
            continue;
        }
        let (passing, staying): (Vec<Filter>, Vec<Filter>) =
            moving.into_iter().partition(|condition| may_pass(stage, condition));
        placed.extend(Filter::all_of(&staying).map(|staying| (place, staying)));
        moving = passing;
        if moving.is_empty() {
            break;
        }
        place = before;
    }
    placed.extend(Filter::all_of(&moving).map(|moving| (place, moving)));
    if placed.iter().any(|(place, _)| *place < position) {
        stages.remove(position);
        for (place, filter) in &placed {
            stages.insert(*place, matching::stage(filter.clone()));
        }
        return placed.len();
    }
    1
}

/// Whether a condition holds of what comes out of a stage whenever it holds of what goes in.
pub(super) fn may_pass(stage: &dyn Stage, condition: &Filter) -> bool {
    let Some(paths) = condition.paths() else { return false };
    stage.order().is_some() || paths.into_iter().all(|path| stage.keeps(path))
}
