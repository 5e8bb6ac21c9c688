//! `$out`: the documents become a collection's.

use std::sync::Arc;

use frond_doc::{DocumentBuf, Value};

use super::parse::{StageParser, one, wrong_type};
use super::stage::{Context, Stage};
use super::{Documents, of_id, storable};
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::failure;
use crate::known_fields::check_fields;
use crate::large::NeededPaths;

/// `$out`
#[derive(Debug)]
struct Out {
    database: Option<String>,
    collection: String,
    /// The options of the time series that is made if there is none.
    series: Option<DocumentBuf>,
}

impl Stage for Out {
    /// Writes at once, so that the caller needs not pull on a stream that gives nothing.
    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        let database = self.database.as_deref();
        let documents = storable(input, context.variables.large());
        let series = self.series.as_ref().map(DocumentBuf::view);
        context.collections.replace(database, &self.collection, series, documents)?;
        Ok(Box::new(std::iter::empty()))
    }

    fn needed_paths(&self) -> NeededPaths {
        of_id()
    }

    fn output(&self) -> Option<(Option<String>, String)> {
        Some((self.database.clone(), self.collection.clone()))
    }
}

pub(super) fn parse(
    argument: Value<'_>,
    _: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let mut series = None;
    let (database, collection) = match argument {
        Value::String(collection) => (None, collection),
        Value::Document(target) => {
            let (mut database, mut collection) = (None, None);
            check_fields("$out", target, &["db", "coll", "timeseries"])?;
            for (name, value) in target.iter() {
                match (name, value) {
                    ("db", Value::String(name)) => database = Some(name),
                    ("coll", Value::String(name)) => collection = Some(name),
                    ("timeseries", Value::Document(options)) => series = Some(options.to_buf()),
                    ("db" | "coll" | "timeseries", Value::Null | Value::Undefined) => {}
                    ("timeseries", _) => {
                        return Err(wrong_type("$out.timeseries", value, "object"));
                    }
                    _ => return Err(wrong_type(&format!("$out.{name}"), value, "string")),
                }
            }
            let missing = |name: &str| {
                let message = format!("BSON field '$out.{name}' is missing but a required field");
                failure(40414, message)
            };
            (
                Some(database.ok_or_else(|| missing("db"))?),
                collection.ok_or_else(|| missing("coll"))?,
            )
        }
        other => {
            let name = other.element_type().alias();
            let message =
                format!("$out only supports a string or object argument, but found {name}");
            return Err(failure(16990, message));
        }
    };
    if collection.starts_with("system.") {
        let message = format!("Can't $out to special collection: {collection}");
        return Err(failure(17385, message));
    }
    let is_named = |name: &str| !name.is_empty() && !name.contains('\0');
    if !is_named(collection) || !database.is_none_or(is_named) {
        let message = format!("Invalid $out target namespace: {collection}");
        return Err(QueryError::new(Code::InvalidNamespace, message));
    }
    let database = database.map(str::to_owned);
    one(Out { database, collection: collection.to_owned(), series })
}
