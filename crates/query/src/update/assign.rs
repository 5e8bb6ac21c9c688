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

/// The end of a path in a document.
enum End {
    /// At a value; whether it is an array's element, or below one, and of which field.
    Value { array: Option<String> },
    /// Nothing is there, but could be.
    Absent { array: Option<String> },
    /// A value without parts, or an array without such an element, is in the way of this part.
    Blocked { part: String, array: Option<String> },
}

impl End {
    fn of(path: &Path, document: Document<'_>) -> End {
        let mut current = Value::Document(document);
        let mut array = None;
        let mut before = "";
        for part in path.parts() {
            let next = match current {
                Value::Document(inner) => inner.get(part),
                Value::Array(inner) => {
                    array.get_or_insert_with(|| before.to_owned());
                    match part.parse() {
                        Ok(position) => inner.get(position),
                        Err(_) => return End::Blocked { part: before.to_owned(), array },
                    }
                }
                _ => return End::Blocked { part: before.to_owned(), array },
            };
            match next {
                Some(value) => current = value,
                None => return End::Absent { array },
            }
            before = part;
        }
        End::Value { array }
    }
}

impl Rename {
    /// Refuses to rename in or out of an array's elements, and what can't be there.
    pub(super) fn check(&self, document: Document<'_>) -> Result<(), QueryError> {
        match End::of(&self.source, document) {
            End::Absent { .. } => return Ok(()),
            End::Value { array: None } => {}
            End::Value { array: Some(array) } => {
                return Err(in_array("source", &self.source, &array, document));
            }
            End::Blocked { part, .. } => {
                let path = self.source.parts().join(".");
                let message =
                    format!("cannot use the part ({part} of {path}) to traverse the element");
                return Err(QueryError::new(Code::PathNotViable, message));
            }
        }
        match End::of(&self.target, document) {
            End::Value { array: Some(array) }
            | End::Absent { array: Some(array) }
            | End::Blocked { array: Some(array), .. } => {
                Err(in_array("destination", &self.target, &array, document))
            }
            _ => Ok(()),
        }
    }
}

fn in_array(side: &str, path: &Path, array: &str, document: Document<'_>) -> QueryError {
    let path = path.parts().join(".");
    let id = document.get("_id").map_or("no id".to_owned(), |id| text::field("_id", id));
    QueryError::new(
        Code::BadValue,
        format!(
            "The {side} field cannot be an array element, '{path}' in doc with {id} has an array \
             field called '{array}'"
        ),
    )
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
    let lies_within = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'))
    };
    if !target.is_empty() && (lies_within(target, source) || lies_within(source, target)) {
        let shown = text::field(source, operand);
        return refuse(format!(
            "The source and target field for $rename must not be on the same path: {shown}"
        ));
    }
    operators.root.insert(target, Modifier::RenamedFrom(Path::new(source)))?;
    // The value may be as deep as a document can be, and lie deeper than before.
    operators.may_be_deep |= target.split('.').count() > source.split('.').count();
    operators.renames.push(Rename { source: Path::new(source), target: Path::new(target) });
    Ok(())
}
