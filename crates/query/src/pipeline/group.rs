//! `$group`: documents with equal keys become one.
//!
//! Groups are found by the key bytes of their `_id`, under which equal values are the same. They
//! come out in the order in which they were first met.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, ValueBuf, key};

use super::parse::{StageParser, one};
use super::stage::{Context, Stage, lazily};
use super::{Documents, MEMORY_BYTES_MAX};
use crate::accumulator::{self, Accumulator, Place, State};
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::{Expression, Scope, Variables, check_bytes, check_depth, failure};

/// About what a group takes besides its values.
const GROUP_BYTES: usize = 128;
/// About what a state takes before it has seen a value.
const STATE_BYTES: usize = 160;

/// `$group`
#[derive(Debug)]
pub(super) struct Group {
    id: Expression,
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    name: String,
    accumulator: Accumulator,
}

/// The groups so far.
struct Groups {
    positions: HashMap<Bytes, usize>,
    groups: Vec<(ValueBuf, Vec<Box<dyn State>>)>,
    bytes: usize,
}

impl Stage for Group {
    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        let variables = context.variables.clone();
        Ok(lazily(move || {
            let mut groups = Groups { positions: HashMap::new(), groups: Vec::new(), bytes: 0 };
            for document in input {
                self.add(&mut groups, document?.view(), &variables)?;
            }
            let groups = groups.groups.into_iter();
            Ok(Box::new(groups.map(move |(id, states)| self.finish(&id, states))))
        }))
    }
}

impl Group {
    fn add(
        &self,
        groups: &mut Groups,
        document: Document<'_>,
        variables: &Variables,
    ) -> Result<(), QueryError> {
        let scope = Scope::new(document, variables);
        let id = self.id.evaluate_in(&scope)?;
        let key = key::of_value(id.or_null());
        let position = match groups.positions.get(&key) {
            Some(position) => *position,
            None => {
                // `n` may depend on the fields of the group's `_id`.
                let group = id.or_null().as_document().unwrap_or(Document::empty());
                let mut states = Vec::with_capacity(self.fields.len());
                for field in &self.fields {
                    states.push(field.accumulator.start(group, variables)?);
                }
                groups.bytes += GROUP_BYTES
                    + 2 * key.len()
                    + accumulator::cost(id.or_null())
                    + states.len() * STATE_BYTES;
                groups.groups.push((id.or_null().to_buf(), states));
                groups.positions.insert(key, groups.groups.len() - 1);
                groups.groups.len() - 1
            }
        };
        for (field, state) in self.fields.iter().zip(&mut groups.groups[position].1) {
            groups.bytes += state.add(field.accumulator.value(&scope)?)?;
        }
        if MEMORY_BYTES_MAX < groups.bytes {
            let code = Code::QueryExceededMemoryLimitNoDiskUseAllowed;
            let message = format!(
                "Exceeded memory limit of {MEMORY_BYTES_MAX} bytes for $group, \
                 but didn't allow external sort."
            );
            return Err(QueryError::new(code, message));
        }
        Ok(())
    }

    fn finish(
        &self,
        id: &ValueBuf,
        states: Vec<Box<dyn State>>,
    ) -> Result<DocumentBuf, QueryError> {
        let mut builder = DocumentBuilder::new();
        builder.append("_id", id.as_value());
        for (field, state) in self.fields.iter().zip(states) {
            builder.append(&field.name, state.finish()?.or_null());
            check_bytes(builder.bytes())?;
        }
        let document = builder.build();
        check_depth(Value::Document(document.view()), 1)?;
        Ok(document)
    }
}

/// Parses the argument of `$group`.
pub(super) fn group(
    specification: Document<'_>,
    parser: &mut StageParser,
) -> Result<Group, QueryError> {
    let mut id = None;
    let mut fields = Vec::new();
    for (name, value) in specification.iter() {
        if name == "_id" {
            if id.is_some() {
                return Err(failure(15948, "a group's _id may only be specified once"));
            }
            id = Some(parser.expression(value)?);
            continue;
        }
        fields.push(field(name, value, parser)?);
    }
    let id = id.ok_or_else(|| failure(15955, "a group specification must include an _id"))?;
    Ok(Group { id, fields })
}

fn field(name: &str, value: Value<'_>, parser: &mut StageParser) -> Result<Field, QueryError> {
    if name.contains('.') {
        return Err(failure(40235, format!("The field name '{name}' cannot contain '.'")));
    }
    if name.starts_with('$') {
        let message = format!("The field name '{name}' cannot be an operator name");
        return Err(failure(40236, message));
    }
    let Value::Document(document) = value else {
        return Err(failure(40234, format!("The field '{name}' must be an accumulator object")));
    };
    let mut operators = document.iter();
    let (Some((operator, argument)), None) = (operators.next(), operators.next()) else {
        let message = format!("The field '{name}' must specify one accumulator");
        return Err(failure(40238, message));
    };
    if !operator.starts_with('$') {
        return Err(failure(40234, format!("The field '{name}' must be an accumulator object")));
    }
    let accumulator =
        Accumulator::parse(operator, argument, Place::Group, &mut parser.expressions)?;
    Ok(Field { name: name.to_owned(), accumulator })
}

pub(super) fn parse(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let Value::Document(specification) = argument else {
        return Err(failure(15947, "a group's fields must be specified in an object"));
    };
    one(group(specification, parser)?)
}
