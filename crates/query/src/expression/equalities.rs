//! Equalities that hold wherever an expression is true: `{$eq: ["$a", 3]}`, alone or within an
//! `$and`. By them an index finds the documents for an `$expr`.
//!
//! Only values that are equal to no array are noted: an expression makes an array of `"$a.b"` where
//! `a` is one, which no filter compares with.

use frond_doc::{Value, ValueBuf};

use super::scope::Variables;

/// A field, and what it is equal to.
#[derive(Clone, Debug)]
pub(crate) struct Equality {
    /// The dotted path.
    pub(crate) path: String,
    operand: Operand,
}

#[derive(Clone, Debug)]
enum Operand {
    Value(ValueBuf),
    /// A variable of a command's `let` or of a `$lookup`.
    Variable(String),
}

impl Equality {
    /// The value, if it is one by which documents can be found.
    pub(crate) fn value<'v>(&'v self, variables: &'v Variables) -> Option<Value<'v>> {
        let value = match &self.operand {
            Operand::Value(value) => Some(value.as_value()),
            Operand::Variable(name) => variables.value(name),
        };
        value.filter(|value| is_sought(*value))
    }
}

/// Returns the equalities that a parsed expression implies.
pub(super) fn of(expression: Value<'_>) -> Vec<Equality> {
    let mut found = Vec::new();
    let mut rest = vec![expression];
    while let Some(expression) = rest.pop() {
        match only_operator(expression) {
            Some(("$and", Value::Array(all))) => rest.extend(all.iter()),
            Some(("$eq", Value::Array(pair))) => {
                let mut pair = pair.iter();
                if let (Some(left), Some(right)) = (pair.next(), pair.next()) {
                    found.extend(equality(left, right).or_else(|| equality(right, left)));
                }
            }
            _ => {}
        }
    }
    found
}

fn only_operator(expression: Value<'_>) -> Option<(&str, Value<'_>)> {
    let Value::Document(document) = expression else { return None };
    let mut fields = document.iter();
    fields.next().filter(|_| fields.next().is_none())
}

fn equality(field: Value<'_>, operand: Value<'_>) -> Option<Equality> {
    let Value::String(field) = field else { return None };
    let path = field.strip_prefix('$').filter(|path| !path.starts_with('$'))?.to_owned();
    let operand = match operand {
        Value::String(text) => match text.strip_prefix("$$") {
            // The names of system variables are in capitals.
            Some(name) if name.starts_with(|letter: char| letter.is_ascii_lowercase()) => {
                (!name.contains('.')).then(|| Operand::Variable(name.to_owned()))?
            }
            Some(_) => return None,
            None if text.starts_with('$') => return None,
            None => Operand::Value(operand.to_buf()),
        },
        Value::Document(_) => match only_operator(operand)? {
            ("$literal", value) => Operand::Value(value.to_buf()),
            _ => return None,
        },
        Value::Array(_) => return None,
        value => Operand::Value(value.to_buf()),
    };
    Some(Equality { path, operand })
}

/// Whether whatever is equal to `value` in an expression is so in a filter, too.
fn is_sought(value: Value<'_>) -> bool {
    value.is_number()
        || matches!(
            value,
            Value::String(_)
                | Value::ObjectId(_)
                | Value::Boolean(_)
                | Value::DateTime(_)
                | Value::Timestamp(_)
                | Value::Binary(_)
        )
}
