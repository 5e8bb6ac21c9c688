//! `$sortByCount`: short for a `$group` that counts and a `$sort`.

use std::sync::Arc;

use frond_doc::{DocumentBuilder, Value, document};

use super::group::group;
use super::parse::StageParser;
use super::sort::Sort;
use super::stage::Stage;
use crate::error::QueryError;
use crate::expression::failure;
use crate::sort::SortPattern;

pub(super) fn parse(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    match argument {
        Value::String(path) if path.starts_with('$') => {}
        Value::String(_) => {
            let message = "the sortByCount field must be defined as a $-prefixed path";
            return Err(failure(40148, message));
        }
        Value::Document(document)
            if document.iter().next().is_some_and(|(name, _)| name.starts_with('$')) => {}
        Value::Document(_) => {
            let message = "the sortByCount field must be defined as a $-prefixed path or an \
                           expression inside an object";
            return Err(failure(40147, message));
        }
        _ => {
            let message = "the sortByCount field must be specified as a string or as an object";
            return Err(failure(40149, message));
        }
    }
    let mut specification = DocumentBuilder::new();
    specification.append("_id", argument);
    specification.begin_document("count").append("$sum", Value::Int32(1)).end();
    let group = group(specification.build().view(), parser)?;
    let sort = Sort::of(SortPattern::parse(document! { "count": -1_i32 }.view())?);
    Ok(vec![Arc::new(group), Arc::new(sort)])
}
