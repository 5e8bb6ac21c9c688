//! Comparisons of fields that hold wherever an expression is true: `{$gt: ["$a", 3]}`, alone or
//! within an `$and`; and of which one of several holds: those of an `$or`'s branches, or that the
//! field is one of the values of an `$in`. By them an index finds the documents for an `$expr`.
//!
//! Only values are noted that are equal to no array: an expression makes an array of `"$a.b"` where
//! `a` is one, which no filter compares with.

use std::cmp::Ordering;

use frond_doc::{Array, Value, ValueBuf};

use super::scope::Variables;
use crate::collation::Collation;

/// The relation that must hold between a value and the operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Relation {
    /// `$eq`
    Equal,
    /// `$gt`
    Greater,
    /// `$gte`
    GreaterOrEqual,
    /// `$lt`
    Less,
    /// `$lte`
    LessOrEqual,
}

impl Relation {
    fn of_operator(name: &str) -> Option<Relation> {
        Some(match name {
            "$eq" => Relation::Equal,
            "$gt" => Relation::Greater,
            "$gte" => Relation::GreaterOrEqual,
            "$lt" => Relation::Less,
            "$lte" => Relation::LessOrEqual,
            _ => return None,
        })
    }

    /// The relation of the operand to the value.
    fn mirrored(self) -> Relation {
        match self {
            Relation::Equal => Relation::Equal,
            Relation::Greater => Relation::Less,
            Relation::GreaterOrEqual => Relation::LessOrEqual,
            Relation::Less => Relation::Greater,
            Relation::LessOrEqual => Relation::GreaterOrEqual,
        }
    }

    /// Whether it holds for what compares so.
    pub(crate) fn holds(self, ordering: Ordering) -> bool {
        match self {
            Relation::Equal => ordering.is_eq(),
            Relation::Greater => ordering.is_gt(),
            Relation::GreaterOrEqual => ordering.is_ge(),
            Relation::Less => ordering.is_lt(),
            Relation::LessOrEqual => ordering.is_le(),
        }
    }
}

/// A field, and what it is compared with.
#[derive(Clone, Debug)]
pub(crate) struct NotedComparison {
    path: String,
    relation: Relation,
    operand: Operand,
}

#[derive(Clone, Debug)]
enum Operand {
    Value(ValueBuf),
    /// A variable of a command's `let` or of a `$lookup`.
    Variable(String),
}

/// A field, and the value it is compared with, in the order of all types: a number is below each
/// string, and above what is absent.
#[derive(Clone, Debug)]
pub(crate) struct KnownComparison {
    /// The dotted path.
    pub(crate) path: String,
    pub(crate) relation: Relation,
    pub(crate) value: ValueBuf,
    /// The way in which strings compare.
    pub(crate) collation: Collation,
}

impl NotedComparison {
    /// The comparison with the value that its operand has, if documents can be found by it.
    pub(crate) fn known(&self, variables: &Variables) -> Option<KnownComparison> {
        let value = match &self.operand {
            Operand::Value(value) => Some(value.as_value()),
            Operand::Variable(name) => variables.value(name),
        };
        let value = value.filter(|value| is_sought(*value))?.to_buf();
        let (path, collation) = (self.path.clone(), variables.collation().clone());
        Some(KnownComparison { path, relation: self.relation, value, collation })
    }
}

/// What holds wherever an expression is true.
#[derive(Clone, Debug, Default)]
pub(crate) struct Implied {
    /// All of these.
    pub(crate) comparisons: Vec<NotedComparison>,
    /// Of each of these one at least, and each of them says something.
    pub(crate) alternatives: Vec<Vec<Implied>>,
}

impl Implied {
    fn add_alternatives(&mut self, branches: Vec<Implied>) {
        if !branches.is_empty() && !branches.iter().any(Implied::is_nothing) {
            self.alternatives.push(branches);
        }
    }

    fn is_nothing(&self) -> bool {
        self.comparisons.is_empty() && self.alternatives.is_empty()
    }
}

/// Returns what a parsed expression implies.
pub(super) fn of(expression: Value<'_>) -> Implied {
    let mut found = Implied::default();
    let mut rest = vec![expression];
    while let Some(expression) = rest.pop() {
        let Some((operator, Value::Array(arguments))) = only_operator(expression) else { continue };
        if operator == "$and" {
            rest.extend(arguments.iter());
        } else if operator == "$or" {
            let branches: Vec<Implied> = arguments.iter().map(of).collect();
            found.add_alternatives(branches);
        } else if operator == "$in" {
            found.add_alternatives(one_of(arguments));
        } else if let Some(relation) = Relation::of_operator(operator) {
            let mut pair = arguments.iter();
            if let (Some(left), Some(right)) = (pair.next(), pair.next()) {
                let compared = comparison(left, relation, right);
                let compared = compared.or_else(|| comparison(right, relation.mirrored(), left));
                found.comparisons.extend(compared);
            }
        }
    }
    found
}

/// What an `$in` with these arguments says for each value of its list.
fn one_of(arguments: Array<'_>) -> Vec<Implied> {
    let mut pair = arguments.iter();
    let (Some(field), Some(Value::Array(values))) = (pair.next(), pair.next()) else {
        return Vec::new();
    };
    let is_value = |value| Implied {
        comparisons: comparison(field, Relation::Equal, value).into_iter().collect(),
        alternatives: Vec::new(),
    };
    values.iter().map(is_value).collect()
}

fn only_operator(expression: Value<'_>) -> Option<(&str, Value<'_>)> {
    let Value::Document(document) = expression else { return None };
    let mut fields = document.iter();
    fields.next().filter(|_| fields.next().is_none())
}

fn comparison(field: Value<'_>, relation: Relation, operand: Value<'_>) -> Option<NotedComparison> {
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
    Some(NotedComparison { path, relation, operand })
}

/// Whether whatever is equal to `value` in an expression is so in a filter, too, and what is absent
/// is below it.
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
