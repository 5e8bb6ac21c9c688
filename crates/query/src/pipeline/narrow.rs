//! What stages behind a `$sort` don't read isn't kept for it.
//!
//! A `$sort` holds all documents at once, in memory or on the disk. From the end to the front it is
//! noted which outermost fields of what comes to a stage decide all that comes out in the end; each
//! `$sort` keeps these.

use std::sync::Arc;

use super::stage::Stage;
use crate::outermost::OutermostNames;

/// Tells each order what it has to keep.
pub(super) fn narrow(stages: &mut [Arc<dyn Stage>]) {
    let mut wanted: Option<OutermostNames> = None;
    for stage in stages.iter_mut().rev() {
        if let Some(order) = stage.order() {
            if let Some(wanted) = &mut wanted {
                wanted.extend(order.fields.iter().map(|field| &*field.path));
            }
            if let Some(narrowed) = stage.keeping(wanted.as_ref()) {
                *stage = narrowed;
            }
        } else if let Some(filter) = stage.filter() {
            wanted = wanted.zip(filter.paths()).map(|(mut wanted, paths)| {
                wanted.extend(paths);
                wanted
            });
        } else if !stage.cardinality().cuts() {
            wanted = stage.outermost_names();
        }
    }
}
