//! Whether a view would read itself, through whichever views and stages, or one of another
//! collation.
//!
//! It is called when a view is made or changed. A merge of two branches may still close a cycle, so
//! reading counts the views that it stands in, too.

use std::collections::BTreeSet;

use frond_engine::Transaction;
use frond_query::Code;

use crate::catalog::adopt;
use crate::database::Database;
use crate::definition::view::View;
use crate::error::Error;

/// Refuses `view` under `name` if something that it reads is a view that reads `name`, or if it
/// reads a view or a time series of another collation.
///
/// # Errors
/// `GraphContainsCycle` (5); `OptionNotSupportedOnView` (167).
pub(crate) fn refuse(
    transaction: &mut Transaction,
    database: &Database,
    branch: &str,
    name: &str,
    view: &View,
) -> Result<(), Error> {
    let mut waiting = vec![(view.sources(), name.to_owned(), true)];
    let mut seen = BTreeSet::new();
    while let Some((sources, way, is_direct)) = waiting.pop() {
        for source in sources {
            let way = format!("{way} => {source}");
            if source == name {
                let message = format!("View cycle detected: {way}");
                return Err(Error::invalid(Code::GraphContainsCycle, message));
            }
            if !seen.insert(source.clone()) {
                continue;
            }
            let Some(found) = adopt::find(transaction, database, branch, &source)? else {
                continue;
            };
            let inner = View::of_options(found.options.view())?;
            if is_direct
                && (inner.is_some() || found.series.is_some())
                && found.collation()? != view.collation
            {
                let message = format!(
                    "View {} has conflicting collation with view {}",
                    database.namespace(name),
                    database.namespace(&source)
                );
                return Err(Error::invalid(Code::OptionNotSupportedOnView, message));
            }
            if let Some(inner) = inner {
                waiting.push((inner.sources(), way, false));
            }
        }
    }
    Ok(())
}
