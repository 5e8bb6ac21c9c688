//! Predicate push-down: moves a `$match` before stages that don't change what it tests.
//!
//! 1. A filter is taken apart into the conditions that all must hold ([`Filter::conjuncts`]).
//! 2. A condition goes before a `$sort`, and before a `$project`, `$addFields`, `$unset`,
//!    `$unwind`, `$lookup` or `$graphLookup` that gives each of its paths as it was
//!    ([`Stage::keeps`]).
//! 3. What a `$project` or `$addFields` has renamed is asked for by its name of before
//!    ([`Stage::origin`]). So is the key of a `$group`, or of the partitions of a
//!    `$setWindowFields`, if the condition only compares: values that make one group pass alike.
//! 4. What comes to the front is the planner's, so that an index serves it. A view's reader's
//!    filter goes the same way, through the view's stages.
//!
//! *Surprise*: a document that is left out early isn't computed, so an error of its computation
//! isn't reported; in MongoDB neither.

use std::sync::Arc;

use super::matching;
use super::narrow::narrow;
use super::needless_orders::drop_needless;
use super::stage::{Origin, Stage};
use crate::filter::Filter;

/// A filter of more conditions stays where it is: moving them costs more than it saves.
pub(super) const CONDITIONS_MAX: usize = 1_000;

/// Moves conditions to the front, drops those that everything passes, and the orders that nothing
/// sees then, and has the others keep no more than what is read behind them.
pub(super) fn optimize(stages: &mut Vec<Arc<dyn Stage>>) {
    stages.retain(|stage| !stage.filter().is_some_and(Filter::is_all));
    push_down(stages);
    drop_needless(stages);
    narrow(stages);
}

/// Moves conditions as far to the front as they may go.
fn push_down(stages: &mut Vec<Arc<dyn Stage>>) {
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
        let (mut passing, mut staying) = (Vec::new(), Vec::new());
        for condition in moving {
            match condition_before(stage, &condition) {
                Some(passes) => passing.push(passes),
                None => staying.push(condition),
            }
        }
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

/// What holds of the documents that go into a stage if and only if `condition` holds of what comes
/// of them.
pub(super) fn condition_before(stage: &dyn Stage, condition: &Filter) -> Option<Filter> {
    if stage.order().is_some() {
        return Some(condition.clone());
    }
    // What asks for nothing would go in front of stages that make documents of none, too.
    let paths = condition.paths().filter(|paths| !paths.is_empty())?;
    let mut is_same = true;
    for path in paths {
        let origin = stage.origin(path)?;
        if matches!(origin, Origin::Group(_)) && !condition.only_compares() {
            return None;
        }
        is_same &= origin.path() == path;
    }
    Some(if is_same { condition.clone() } else { condition.renamed(&|path| before(stage, path)) })
}

/// Where a stage has what comes out at `path` from.
pub(super) fn before(stage: &dyn Stage, path: &str) -> String {
    stage.origin(path).map_or_else(|| path.to_owned(), |origin| origin.path().to_owned())
}
