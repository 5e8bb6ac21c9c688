//! Whether a view would read itself, through whichever views and stages.
//!
//! It is asked when a view is made or changed. A merge of two branches may still close a cycle, so
//! reading counts the views that it stands in, too.

use std::collections::BTreeSet;

use frond_engine::Transaction;
use frond_query::Code;

use crate::catalog::adopt;
use crate::database::Database;
use crate::definition::view::View;
use crate::error::Error;

/// Refuses `view` under `name` if something that it reads is a view that reads `name`.
///
/// # Errors
/// `GraphContainsCycle` (5).
pub(crate) fn refuse(
    transaction: &mut Transaction,
    database: &Database,
    branch: &str,
    name: &str,
    view: &View,
) -> Result<(), Error> {
    let mut waiting = vec![(view.sources(), name.to_owned())];
    let mut seen = BTreeSet::new();
    while let Some((sources, way)) = waiting.pop() {
        for source in sources {
            let way = format!("{way} => {source}");
            if source == name {
                let message = format!("View cycle detected: {way}");
                return Err(Error::invalid(Code::GraphContainsCycle, message));
            }
            if !seen.insert(source.clone()) {
                continue;
            }
            let found = adopt::find(transaction, database, branch, &source)?;
            let inner = found.map(|found| View::of_options(found.options.view())).transpose()?;
            if let Some(inner) = inner.flatten() {
                waiting.push((inner.sources(), way));
            }
        }
    }
    Ok(())
}
