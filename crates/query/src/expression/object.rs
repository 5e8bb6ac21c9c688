//! Documents: `$mergeObjects`, `$getField`, `$setField`, `$unsetField`, `$bsonSize`.

use std::collections::HashMap;

use frond_doc::pieces::whole_bytes;
use frond_doc::{Document, Value};

use super::evaluated::{Evaluated, Fields};
use super::failure;
use super::node::{Answer, Node, Operation};
use super::parse::{Parser, has_names, named, required};
use super::scope::{Scope, Variables};
use crate::code::Code;
use crate::error::QueryError;
use crate::memory::{Charge, RequestMemory};

/// Fields in the order in which their names came first, each with its latest value.
pub(super) struct Merged<'v, 'm> {
    fields: Vec<(&'v str, Value<'v>)>,
    positions: HashMap<&'v str, usize>,
    memory: &'m RequestMemory,
    charge: Charge,
}

/// The memory of a field in the list and in the table, half of which may be empty.
const FIELD_BYTES: usize =
    2 * (size_of::<(&str, Value<'_>)>() + size_of::<(&str, usize)>() + size_of::<u8>());

impl<'v, 'm> Merged<'v, 'm> {
    /// Begins with no fields.
    pub(super) fn new(memory: &'m RequestMemory) -> Merged<'v, 'm> {
        let (fields, positions) = (Vec::new(), HashMap::new());
        Merged { fields, positions, memory, charge: memory.charge() }
    }

    /// Sets a field, in its place if there is one of the name.
    ///
    /// # Errors
    /// `ExceededMemoryLimit`, what the request is to fail with.
    pub(super) fn set(&mut self, name: &'v str, value: Value<'v>) -> Result<(), QueryError> {
        self.charge.work(2)?;
        match self.positions.get(name) {
            Some(position) => self.fields[*position].1 = value,
            None => {
                self.charge.cover((self.fields.len() + 1) * FIELD_BYTES)?;
                self.positions.insert(name, self.fields.len());
                self.fields.push((name, value));
            }
        }
        Ok(())
    }

    /// Sets all fields of a document.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub(super) fn set_all(&mut self, document: Document<'v>) -> Result<(), QueryError> {
        document.iter().try_for_each(|(name, value)| self.set(name, value))
    }

    /// The document of the fields.
    pub(super) fn finish(self) -> Answer<'static> {
        let mut made = Fields::new(self.memory);
        for (name, value) in self.fields {
            made.append(name, value)?;
        }
        made.finish()
    }
}

/// The error for what `$mergeObjects` can't merge.
pub(crate) fn not_mergeable(value: &Evaluated<'_>) -> QueryError {
    let (text, name) = (value.text(), value.type_name());
    failure(
        40400,
        format!("$mergeObjects requires object inputs, but input {text} is of type {name}"),
    )
}

/// `$mergeObjects`
pub(super) fn merge_objects<'a>(
    arguments: Vec<Evaluated<'a>>,
    variables: &Variables,
) -> Answer<'a> {
    let mut merged = Merged::new(variables.memory());
    for argument in &arguments {
        match argument.value() {
            None | Some(Value::Null | Value::Undefined) => {}
            Some(Value::Document(document)) => {
                merged.set_all(document)?;
            }
            // A single argument that is an array stands for its elements.
            Some(Value::Array(array)) if arguments.len() == 1 => {
                for element in array.iter() {
                    match element {
                        Value::Document(document) => merged.set_all(document)?,
                        Value::Null | Value::Undefined => {}
                        other => return Err(not_mergeable(&Evaluated::Borrowed(other))),
                    }
                }
            }
            Some(_) => return Err(not_mergeable(argument)),
        }
    }
    merged.finish()
}

/// `$bsonSize`
pub(super) fn bson_size<'a>(argument: Evaluated<'a>, variables: &Variables) -> Answer<'a> {
    match argument.value() {
        None | Some(Value::Null | Value::Undefined) => Ok(Evaluated::NULL),
        Some(Value::Document(document)) => {
            // Values that references stand for are counted, and not read.
            let bytes = match variables.large().may_have_references() {
                true => whole_bytes(document),
                false => document.as_bytes().len() as u64,
            };
            Ok(i32::try_from(bytes).unwrap_or(i32::MAX).into())
        }
        Some(_) => {
            let name = argument.type_name();
            Err(failure(31393, format!("$bsonSize requires a document input, found: {name}")))
        }
    }
}

/// `$getField`
#[derive(Debug)]
struct GetField {
    field: Node,
    input: Node,
}

impl Operation for GetField {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        scope.whole(self.carry(scope)?)
    }

    fn carry<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let field = self.field.evaluate(scope)?;
        let Some(Value::String(name)) = field.value() else {
            let found = field.type_name();
            let message =
                format!("$getField requires 'field' to evaluate to type String, but got {found}");
            return Err(failure(3_041_704, message));
        };
        let input = scope.variables.opened(self.input.carry(scope)?, false)?;
        if matches!(input.value(), Some(Value::Null | Value::Undefined)) {
            return Ok(Evaluated::NULL);
        }
        // There are no fields in what is no document.
        input.part(|value| value.as_document()?.get(name))
    }
}

/// `$getField`, as a field's name or with names.
pub(super) fn get_field(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    if !has_names(argument) {
        parser.note_whole();
        let input = Node::Variable("CURRENT".to_owned(), Vec::new());
        return Ok(Node::special(GetField { field: parser.expression(argument)?, input }));
    }
    let codes = (Code::Location(3_041_701), Code::Location(3_041_701));
    let [field, input] = named(operator, argument, ["field", "input"], codes)?;
    let field = required(operator, "field", field, Code::Location(3_041_702))?;
    let input = required(operator, "input", input, Code::Location(3_041_703))?;
    let (field, input) = (parser.expression(field)?, parser.expression(input)?);
    Ok(Node::special(GetField { field, input }))
}

/// `$setField`, `$unsetField`
#[derive(Debug)]
struct SetField {
    field: String,
    input: Node,
    /// `None` removes the field.
    value: Option<Node>,
}

impl Operation for SetField {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        scope.whole(self.carry(scope)?)
    }

    fn carry<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let input = scope.variables.opened(self.input.carry(scope)?, false)?;
        if input.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let Some(Value::Document(document)) = input.value() else {
            let name = input.type_name();
            let message =
                format!("$setField requires 'input' to evaluate to type Object, but got {name}");
            return Err(failure(4_161_105, message));
        };
        let value = match &self.value {
            Some(value) => value.carry(scope)?,
            None => Evaluated::Missing,
        };
        let mut made = Fields::new(scope.memory());
        let mut is_set = false;
        for (name, old) in document.iter() {
            if name != self.field {
                made.append(name, old)?;
            } else if let Some(value) = value.value().filter(|_| !is_set) {
                made.append(name, value)?;
                is_set = true;
            }
        }
        if let Some(value) = value.value().filter(|_| !is_set) {
            made.append(&self.field, value)?;
        }
        made.finish()
    }
}

/// `$setField`
pub(super) fn set_field(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let codes = (Code::Location(4_161_100), Code::Location(4_161_101));
    let [field, input, value] = named(operator, argument, ["field", "input", "value"], codes)?;
    required(operator, "field", field, Code::Location(4_161_102))?;
    let value = required(operator, "value", value, Code::Location(4_161_103))?;
    let value = Some(parser.expression(value)?);
    changed(operator, field, input, value, parser)
}

/// `$unsetField`
pub(super) fn unset_field(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let codes = (Code::Location(4_161_100), Code::Location(4_161_101));
    let [field, input] = named(operator, argument, ["field", "input"], codes)?;
    changed(operator, field, input, None, parser)
}

fn changed(
    operator: &str,
    field: Option<Value<'_>>,
    input: Option<Value<'_>>,
    value: Option<Node>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let field = required(operator, "field", field, Code::Location(4_161_102))?;
    let input = required(operator, "input", input, Code::Location(4_161_109))?;
    let node = parser.expression(field)?;
    if let Value::String(path) = field
        && path.starts_with('$')
    {
        let message = format!("'{path}' is a field path reference, which is not allowed here");
        return Err(failure(4_161_108, message));
    }
    let Some(constant) = node.constant() else {
        let message = format!("{operator} requires 'field' to evaluate to a constant");
        return Err(failure(4_161_106, message));
    };
    let Value::String(field) = constant else {
        let found = constant.element_type().alias();
        let message =
            format!("{operator} requires 'field' to evaluate to type String, but got {found}");
        return Err(failure(4_161_107, message));
    };
    if field.contains('\0') {
        let message = format!("{operator}: 'field' holds a null byte");
        return Err(failure(9_534_700, message));
    }
    Ok(Node::special(SetField { field: field.to_owned(), input: parser.expression(input)?, value }))
}
