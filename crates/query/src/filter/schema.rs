//! `$jsonSchema`: what a document, and every part of it, may be (draft 4 of JSON Schema, with
//! `bsonType`, as MongoDB has it).
//!
//! A schema is a list of rules, all of which a value must keep. A rule about one type of value is
//! kept by every value of another. Values in the store are opened as far as a rule looks at them
//! ([`Value::Reference`]). Reading order: this file (what a rule is, and whether a value keeps it),
//! `parse` (from BSON), `explain` (why a document failed, for `errInfo`).

mod explain;
mod parse;

use std::collections::HashSet;

use frond_doc::{
    Array, Document, DocumentBuilder, ElementType, Reference, Value, ValueBuf, key, order,
};

use super::evaluate::Run;
use super::pattern::Pattern;
use super::shape::TypeSet;
use crate::number::any_type::Number;

/// A parsed schema.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schema {
    title: Option<String>,
    description: Option<String>,
    rules: Vec<Rule>,
}

/// A keyword of a schema.
#[derive(Clone, Debug)]
struct Rule {
    keyword: String,
    /// Its operand as it was written.
    specified: ValueBuf,
    test: Test,
}

/// The requirement of a keyword.
#[derive(Clone, Debug)]
enum Test {
    Type(TypeSet),
    Enum(Vec<ValueBuf>),
    Properties(Vec<(String, Schema)>),
    PatternProperties(Vec<(Pattern, Schema)>),
    /// Of properties that neither of the two above names; `None`: there must be none.
    OtherProperties {
        names: Vec<String>,
        patterns: Vec<Pattern>,
        schema: Option<Box<Schema>>,
    },
    Required(Vec<String>),
    PropertyCount(Limit),
    Dependencies(Vec<(String, Dependency)>),
    Items(Box<Schema>),
    ItemsInOrder(Vec<Schema>),
    /// Of items after so many; `None`: there must be none.
    OtherItems(usize, Option<Box<Schema>>),
    ItemCount(Limit),
    UniqueItems,
    Bound {
        bound: ValueBuf,
        is_minimum: bool,
        is_exclusive: bool,
    },
    MultipleOf(ValueBuf),
    Length(Limit),
    Pattern(Pattern),
    All(Vec<Schema>),
    Any(Vec<Schema>),
    One(Vec<Schema>),
    Not(Box<Schema>),
}

/// A limit of a count.
#[derive(Clone, Copy, Debug)]
enum Limit {
    Min(u64),
    Max(u64),
}

impl Limit {
    fn allows(self, count: usize) -> bool {
        match self {
            Limit::Min(least) => least <= count as u64,
            Limit::Max(most) => count as u64 <= most,
        }
    }
}

/// The requirement that a property implies where it is present.
#[derive(Clone, Debug)]
enum Dependency {
    Properties(Vec<String>),
    Schema(Schema),
}

impl Schema {
    /// Whether a value keeps all rules. The recursion is as deep as the schema, which parsing has
    /// bounded.
    pub(crate) fn matches(&self, value: Value<'_>, run: &Run<'_>) -> bool {
        self.rules.iter().all(|rule| rule.test.is_kept(value, run))
    }

    /// Adds the properties that decide whether a document keeps all rules, and returns whether no
    /// others do.
    pub(crate) fn add_outermost<'n>(&'n self, names: &mut Vec<&'n str>) -> bool {
        self.rules.iter().all(|rule| rule.test.add_outermost(names))
    }
}

impl Test {
    fn add_outermost<'n>(&'n self, names: &mut Vec<&'n str>) -> bool {
        match self {
            Test::Properties(properties) => {
                names.extend(properties.iter().map(|(name, _)| &**name));
                true
            }
            Test::Required(required) => {
                names.extend(required.iter().map(|name| &**name));
                true
            }
            Test::Dependencies(dependencies) => dependencies.iter().all(|(name, dependency)| {
                names.push(name);
                match dependency {
                    Dependency::Properties(more) => {
                        names.extend(more.iter().map(|name| &**name));
                        true
                    }
                    Dependency::Schema(schema) => schema.add_outermost(names),
                }
            }),
            Test::All(schemas) | Test::Any(schemas) | Test::One(schemas) => {
                schemas.iter().all(|schema| schema.add_outermost(names))
            }
            Test::Not(schema) => schema.add_outermost(names),
            Test::Type(types) => types.matches(Value::Document(Document::empty())),
            Test::Enum(_)
            | Test::PatternProperties(_)
            | Test::OtherProperties { .. }
            | Test::PropertyCount(_) => false,
            // Of other values than documents.
            Test::Items(_)
            | Test::ItemsInOrder(_)
            | Test::OtherItems(..)
            | Test::ItemCount(_)
            | Test::UniqueItems
            | Test::Bound { .. }
            | Test::MultipleOf(_)
            | Test::Length(_)
            | Test::Pattern(_) => true,
        }
    }

    fn is_kept(&self, value: Value<'_>, run: &Run<'_>) -> bool {
        match self {
            Test::Type(types) => types.matches(value),
            Test::Enum(values) => run.on_whole(value, &|value| {
                let value = unordered(value);
                let is_it = |known: &&ValueBuf| order::equal(known.as_value(), value.as_value());
                values.iter().any(|known| is_it(&known))
            }),
            Test::All(schemas) => schemas.iter().all(|schema| schema.matches(value, run)),
            Test::Any(schemas) => schemas.iter().any(|schema| schema.matches(value, run)),
            Test::One(schemas) => {
                schemas.iter().filter(|schema| schema.matches(value, run)).take(2).count() == 1
            }
            Test::Not(schema) => !schema.matches(value, run),
            _ => match value {
                Value::Document(document) => self.is_kept_by_document(document, run),
                Value::Array(array) => self.is_kept_by_array(array, run),
                Value::Reference(reference) => self.is_kept_by_reference(reference, run),
                _ => self.is_kept_by_scalar(value, run),
            },
        }
    }

    /// Opens no more of what a reference stands for than the rule looks at.
    fn is_kept_by_reference(&self, reference: Reference<'_>, run: &Run<'_>) -> bool {
        match (self, reference.kind()) {
            (Test::ItemCount(limit), ElementType::Array) => {
                let count = run.element_count(reference).and_then(|count| count.try_into().ok());
                count.is_some_and(|count| limit.allows(count))
            }
            (Test::ItemCount(_), _) => true,
            _ => run.on_opened(reference, &|opened| self.is_kept(opened, run)),
        }
    }

    fn is_kept_by_scalar(&self, value: Value<'_>, run: &Run<'_>) -> bool {
        match self {
            Test::Bound { bound, is_minimum, is_exclusive } => {
                !value.is_number() || is_within(value, bound.as_value(), *is_minimum, *is_exclusive)
            }
            Test::MultipleOf(divisor) => {
                match (Number::of(value), Number::of(divisor.as_value())) {
                    (Some(number), Some(divisor)) => is_multiple(number, divisor),
                    _ => true,
                }
            }
            Test::Length(limit) => {
                value.as_str().is_none_or(|text| limit.allows(text.chars().count()))
            }
            Test::Pattern(pattern) => match value {
                Value::String(_) => run.matches(pattern, value),
                _ => true,
            },
            _ => true,
        }
    }

    fn is_kept_by_document(&self, document: Document<'_>, run: &Run<'_>) -> bool {
        match self {
            Test::Properties(properties) => properties.iter().all(|(name, schema)| {
                document.get(name).is_none_or(|value| schema.matches(value, run))
            }),
            Test::PatternProperties(patterns) => document.iter().all(|(name, value)| {
                patterns.iter().all(|(pattern, schema)| {
                    !names(pattern, name, run) || schema.matches(value, run)
                })
            }),
            Test::OtherProperties { schema, .. } => document
                .iter()
                .filter(|(name, _)| self.is_other(name, run))
                .all(|(_, value)| schema.as_ref().is_some_and(|schema| schema.matches(value, run))),
            Test::Required(names) => names.iter().all(|name| document.get(name).is_some()),
            Test::PropertyCount(limit) => limit.allows(document.iter().count()),
            Test::Dependencies(dependencies) => dependencies.iter().all(|(name, dependency)| {
                document.get(name).is_none() || dependency.is_kept(document, run)
            }),
            _ => true,
        }
    }

    /// Whether no other keyword speaks of a property.
    fn is_other(&self, name: &str, run: &Run<'_>) -> bool {
        match self {
            Test::OtherProperties { names: known, patterns, .. } => {
                !known.iter().any(|known| known == name)
                    && !patterns.iter().any(|pattern| names(pattern, name, run))
            }
            _ => false,
        }
    }

    fn is_kept_by_array(&self, array: Array<'_>, run: &Run<'_>) -> bool {
        match self {
            Test::Items(schema) => array.iter().all(|item| schema.matches(item, run)),
            Test::ItemsInOrder(schemas) => {
                array.iter().zip(schemas).all(|(item, schema)| schema.matches(item, run))
            }
            Test::OtherItems(after, schema) => array
                .iter()
                .skip(*after)
                .all(|item| schema.as_ref().is_some_and(|schema| schema.matches(item, run))),
            Test::ItemCount(limit) => limit.allows(array.iter().count()),
            Test::UniqueItems => run.on_whole(Value::Array(array), &|whole| {
                whole.as_array().is_none_or(|array| duplicate(array).is_none())
            }),
            _ => true,
        }
    }
}

impl Dependency {
    fn is_kept(&self, document: Document<'_>, run: &Run<'_>) -> bool {
        match self {
            Dependency::Properties(names) => names.iter().all(|name| document.get(name).is_some()),
            Dependency::Schema(schema) => schema.matches(Value::Document(document), run),
        }
    }
}

/// Whether a pattern is found in a name.
fn names(pattern: &Pattern, name: &str, run: &Run<'_>) -> bool {
    run.matches(pattern, Value::String(name))
}

/// NaN is only within a bound that is NaN itself.
fn is_within(value: Value<'_>, bound: Value<'_>, is_minimum: bool, is_exclusive: bool) -> bool {
    let is_nan = |value: Value<'_>| order::equal(value, Value::Double(f64::NAN));
    if is_nan(value) || is_nan(bound) {
        return !is_exclusive && is_nan(value) && is_nan(bound);
    }
    let ordering = order::compare(value, bound);
    match (is_minimum, is_exclusive) {
        (true, true) => ordering.is_gt(),
        (true, false) => ordering.is_ge(),
        (false, true) => ordering.is_lt(),
        (false, false) => ordering.is_le(),
    }
}

fn is_multiple(number: Number, divisor: Number) -> bool {
    match (number.integer(), divisor.integer()) {
        (Some(number), Some(divisor)) => number.wrapping_rem(divisor) == 0,
        _ => number.double() % divisor.double() == 0.0,
    }
}

/// The first item that is there twice.
fn duplicate(array: Array<'_>) -> Option<Value<'_>> {
    let mut seen = HashSet::new();
    array.iter().find(|item| !seen.insert(key::of_value(unordered(*item).as_value())))
}

/// The value with the fields of all its documents by name: those that differ in nothing but the
/// order of fields are equal to a schema.
fn unordered(value: Value<'_>) -> ValueBuf {
    let mut made = DocumentBuilder::new();
    made.begin_array("");
    push_unordered(&mut made, value);
    made.end();
    let made = made.build();
    let first = made.get("").and_then(|value| value.as_array()?.iter().next());
    first.unwrap_or(Value::Null).to_buf()
}

/// Recursion follows the value's nesting, which validation has bounded.
fn push_unordered(made: &mut DocumentBuilder, value: Value<'_>) {
    match value {
        Value::Document(document) => {
            made.push_begin_document();
            append_unordered(made, document);
            made.end();
        }
        Value::Array(array) => {
            made.push_begin_array();
            array.iter().for_each(|element| push_unordered(made, element));
            made.end();
        }
        _ => {
            made.push(value);
        }
    }
}

fn append_unordered(made: &mut DocumentBuilder, document: Document<'_>) {
    let mut fields: Vec<(&str, Value<'_>)> = document.iter().collect();
    fields.sort_by_key(|(name, _)| *name);
    for (name, value) in fields {
        match value {
            Value::Document(inner) => {
                made.begin_document(name);
                append_unordered(made, inner);
                made.end();
            }
            Value::Array(array) => {
                made.begin_array(name);
                array.iter().for_each(|element| push_unordered(made, element));
                made.end();
            }
            _ => {
                made.append(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
