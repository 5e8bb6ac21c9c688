//! Functions that clients store in `system.js`, which `$where` and `mapReduce` know by their names.
//!
//! They are read before a request begins with its own documents: a statement of a transaction can't
//! read in the midst of another. `$function` and `$accumulator` don't know them.

use std::sync::Arc;

use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_query::{Code, Filter};
use frond_tree::{Bounds, Direction};

use crate::catalog::Catalog;
use crate::database::Database;
use crate::error::Error;

/// Where they are stored.
const SYSTEM_JS: &str = "system.js";
/// All that are stored have to go through a script's memory.
const BYTES_MAX: usize = 16 << 20;

/// The values that are stored, by their names; `None` if there are none.
///
/// # Errors
/// 10209 for a name that is no string, 10210 for a document without a value;
/// `ExceededMemoryLimit`.
pub(crate) fn stored_functions(database: &Database) -> Result<Option<DocumentBuf>, Error> {
    let reader = database.reader();
    let Some(found) = Catalog::of(&reader, database).collection(SYSTEM_JS)? else {
        return Ok(None);
    };
    let mut functions = DocumentBuilder::new();
    for entry in reader.range(found.documents, Bounds::all(), Direction::Ascending)? {
        database.interrupt().check()?;
        let document = reader.document(&entry?.value)?;
        let Some(Value::String(name)) = document.get("_id") else {
            let name = document.get("_id").map(frond_query::text::value).unwrap_or_default();
            let message = format!("name has to be a string: {name}");
            return Err(Error::invalid(Code::Location(10_209), message));
        };
        let Some(value) = document.get("value") else {
            return Err(Error::invalid(Code::Location(10_210), "value has to be set"));
        };
        // What no script can name is as good as absent, and no field has such a name.
        if name.contains('\0') {
            continue;
        }
        functions.append(name, value);
        if BYTES_MAX < functions.bytes() {
            let message = format!("the functions in {SYSTEM_JS} take more than {BYTES_MAX} bytes");
            return Err(Error::invalid(Code::ExceededMemoryLimit, message));
        }
    }
    let functions = functions.build();
    Ok(Some(functions).filter(|functions| !functions.view().is_empty()))
}

/// Checks that the scripts of a filter may be run, and gives its `$where` what is stored.
///
/// # Errors
/// As [`Filter::check_scripts`] and [`stored_functions`].
pub(crate) fn prepare_scripts(database: &Database, filter: &Filter) -> Result<(), Error> {
    filter.check_scripts()?;
    if filter.has_where()
        && let Some(functions) = stored_functions(database)?
    {
        filter.memory().set_stored_functions(Arc::new(functions));
    }
    Ok(())
}
