//! `$set`, `$setOnInsert`, `$unset`, `$currentDate`, `$rename`.

use frond_doc::path::Path;
use frond_doc::{Document, Value};

use super::Operators;
use super::modifier::Modifier;
use crate::code::Code;
use crate::error::QueryError;
use crate::text;

/// `$set`
pub(super) fn set(_path: &str, operand: Value<'_>) -> Result<Modifier, QueryError> {
    Ok(Modifier::Set(operand.to_buf()))
}

/// `$setOnInsert`
pub(super) fn set_on_insert(_path: &str, operand: Value<'_>) -> Result<Modifier, QueryError> {
    Ok(Modifier::SetOnInsert(operand.to_buf()))
}

/// `$unset`; the operand says nothing.
pub(super) fn unset(_path: &str, _operand: Value<'_>) -> Result<Modifier, QueryError> {
    Ok(Modifier::Unset)
}

/// `$currentDate: {path: true | {$type: "date" | "timestamp"}}`
pub(super) fn current_date(_path: &str, operand: Value<'_>) -> Result<Modifier, QueryError> {
    let bad_value = |message: String| Err(QueryError::new(Code::BadValue, message));
    match operand {
        Value::Boolean(_) => Ok(Modifier::CurrentDate),
        Value::Document(document) => {
            if let Some((name, _)) = document.iter().find(|(name, _)| *name != "$type") {
                return bad_value(format!("Unrecognized $currentDate option: {name}"));
            }
            match document.get("$type") {
                Some(Value::String("date")) => Ok(Modifier::CurrentDate),
                Some(Value::String("timestamp")) => Ok(Modifier::CurrentTimestamp),
                _ => bad_value(
                    "The '$type' string field is required to be 'date' or 'timestamp': \
                     {$currentDate: {field : {$type: 'date'}}}"
                        .to_owned(),
                ),
            }
        }
        other => bad_value(format!(
            "{} is not valid type for $currentDate. Please use a boolean ('true') or a $type \
             expression ({{$type: 'timestamp/date'}}).",
            other.element_type().alias()
        )),
    }
}

/// A `$rename`: two paths, neither of which leads through an array.
#[derive(Clone, Debug)]
pub(super) struct Rename {
    source: Path,
    target: Path,
}

impl Rename {
    /// Refuses to rename in or out of an array's elements.
    pub(super) fn check(&self, document: Document<'_>) -> Result<(), QueryError> {
        if self.source.get(document).is_none() {
            self.check_side("source", &self.source, document)
        } else {
            self.check_side("destination", &self.target, document)
        }
    }

    fn check_side(
        &self,
        side: &str,
        path: &Path,
        document: Document<'_>,
    ) -> Result<(), QueryError> {
        let mut current = document;
        let (_, outer) = path.parts().split_last().expect("a path has at least one part");
        for part in outer {
            match current.get(part) {
                Some(Value::Document(inner)) => current = inner,
                Some(Value::Array(_)) => {
                    return Err(QueryError::new(
                        Code::BadValue,
                        format!(
                            "The {side} field cannot be an array element, '{path}' in doc with \
                             {id} has an array field called '{part}'",
                            path = path.parts().join("."),
                            id = document
                                .get("_id")
                                .map_or("no id".to_owned(), |id| text::field("_id", id)),
                        ),
                    ));
                }
                _ => break,
            }
        }
        Ok(())
    }
}

/// `$rename: {source: "target"}`: an `$unset` and a modifier that finds the old value.
pub(super) fn rename(
    operators: &mut Operators,
    source: &str,
    operand: Value<'_>,
) -> Result<(), QueryError> {
    let refuse = |message: String| Err(QueryError::new(Code::BadValue, message));
    let Some(target) = operand.as_str() else {
        let shown = text::field(source, operand);
        return refuse(format!("The 'to' field for $rename must be a string: {shown}"));
    };
    if source == target {
        let shown = text::field(source, operand);
        return refuse(format!("The source and target field for $rename must differ: {shown}"));
    }
    // A string may hold one, a field's name can't.
    if target.contains('\0') {
        return refuse(
            "The 'to' field for $rename cannot contain an embedded null byte".to_owned(),
        );
    }
    for (side, path) in [("source", source), ("destination", target)] {
        if path.split('.').any(|part| part == "$" || part.starts_with("$[")) {
            return refuse(format!("The {side} field for $rename may not be dynamic: {path}"));
        }
    }
    operators.root.insert(source, Modifier::Unset)?;
    operators.root.insert(target, Modifier::RenamedFrom(Path::new(source)))?;
    // The value may be as deep as a document can be, and lie deeper than before.
    operators.may_be_deep |= target.split('.').count() > source.split('.').count();
    operators.renames.push(Rename { source: Path::new(source), target: Path::new(target) });
    Ok(())
}
