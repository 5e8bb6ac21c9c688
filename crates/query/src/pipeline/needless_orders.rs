//! Orders that nothing sees.
//!
//! 1. Of two `$sort`s next to each other the second alone decides, so the first isn't done: what it
//!    would refuse isn't refused, as in MongoDB.
//! 2. Where documents are only counted behind a `$sort`, perhaps after a `$skip` or a `$limit`, it
//!    orders nothing. But MongoDB does it all the same, and refuses documents without a place in
//!    it, so they are looked at here, too ([`Stage::counted`]). An order that has a place for every
//!    document is passed over when the count is known ([`Pipeline::counter`]).
//!
//! [`Pipeline::counter`]: super::Pipeline::counter

use std::sync::Arc;

use super::stage::Stage;

/// Takes away the orders that the next stage replaces, and has the last one before a count, if it
/// may refuse documents, do only that. Conditions were moved to the front before.
pub(super) fn drop_needless(stages: &mut Vec<Arc<dyn Stage>>) {
    let mut position = 1;
    while position < stages.len() {
        match is_replaced(stages[position - 1].as_ref(), stages[position].as_ref()) {
            true => drop(stages.remove(position - 1)),
            false => position += 1,
        }
    }
    let counter = stages.iter().position(|stage| stage.counter().is_some()).unwrap_or(0);
    for position in (0..counter).rev() {
        let stage = &stages[position];
        if let Some(counted) = stage.counted() {
            stages[position] = counted;
            break;
        }
        if stage.order().is_none() && !stage.cardinality().cuts() {
            break;
        }
    }
}

/// Whether `next` sorts all that `stage` sorts.
pub(super) fn is_replaced(stage: &dyn Stage, next: &dyn Stage) -> bool {
    stage.order().is_some() && next.order().is_some()
}
