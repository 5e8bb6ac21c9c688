//! The scope of an expression: the document, and variables.
//!
//! Variables that operators bind (`$let`, `$map`, ...) are a chain of [`Binding`]s on the stack,
//! innermost first. Those that hold for a whole command or sub-pipeline are [`Variables`].

use std::sync::Arc;

use frond_doc::document::EMPTY;
use frond_doc::field_scan::FieldPlaces;
use frond_doc::{Array, Document, DocumentBuf, Timestamp, Value, ValueBuf};

use super::failure;
use super::{Elements, Evaluated};
use crate::code::Code;
use crate::collation::Collation;
use crate::error::QueryError;
use crate::large::Large;
use crate::memory::{RequestMemory, bytes_of};
use crate::metadata;

/// The variable of the user's roles, which no operator can bind.
pub(super) const USER_ROLES: &str = "USER_ROLES";

/// What holds for a whole command: variables (`$$NOW`, those of its `let` and of `$lookup`), and
/// the collation by which strings are compared. Cloning is cheap.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    now_millis: i64,
    /// `$$CLUSTER_TIME`; `None` where there is no cluster, as in an embedded database.
    cluster_time: Option<Timestamp>,
    /// Later ones hide earlier ones; `None` is a variable whose value is "missing".
    values: Arc<Vec<(String, Option<ValueBuf>)>>,
    collation: Collation,
    memory: RequestMemory,
    /// Reads the values that documents have references for.
    large: Large,
    /// Whether documents carry metadata, which no variable shows.
    carries_metadata: bool,
}

impl Variables {
    /// The system variables of a request that may use `memory`; `cluster_time` where it runs in a
    /// cluster.
    pub(super) fn of_system(
        now_millis: i64,
        cluster_time: Option<Timestamp>,
        memory: RequestMemory,
    ) -> Variables {
        Variables { now_millis, cluster_time, memory, ..Variables::default() }
    }

    /// These variables and `more`, which hide those of the same names.
    pub(crate) fn with(&self, more: Vec<(String, Option<ValueBuf>)>) -> Variables {
        let values = self.values.iter().cloned().chain(more).collect();
        Variables { values: Arc::new(values), ..self.clone() }
    }

    /// These variables, and strings compared by `collation`.
    pub fn with_collation(self, collation: Collation) -> Variables {
        Variables { collation, ..self }
    }

    /// These variables, for a request that may use so much.
    pub fn with_memory(self, memory: RequestMemory) -> Variables {
        Variables { memory, ..self }
    }

    /// Returns the memory of the values that are made.
    pub fn memory(&self) -> &RequestMemory {
        &self.memory
    }

    /// These variables, for documents whose references `large` reads.
    pub fn with_large(self, large: Large) -> Variables {
        Variables { large, ..self }
    }

    /// Returns the reader of values that documents have references for.
    pub fn large(&self) -> &Large {
        &self.large
    }

    /// The value without references.
    #[inline]
    pub(crate) fn whole<'a>(&self, value: Evaluated<'a>) -> Result<Evaluated<'a>, QueryError> {
        if !self.large.has_references() {
            return Ok(value);
        }
        let whole = match value.value() {
            Some(value) => self.large.whole_value(value)?,
            None => None,
        };
        whole.map_or(Ok(value), |whole| self.charged(whole))
    }

    /// The value, of which only elements may be references; with `elements`, of an array only those
    /// of its elements.
    pub(crate) fn opened<'a>(
        &self,
        value: Evaluated<'a>,
        elements: bool,
    ) -> Result<Evaluated<'a>, QueryError> {
        let value = match value.value() {
            Some(Value::Reference(reference)) => self.charged(self.large.open(reference)?)?,
            _ => value,
        };
        let is_reference = |element: &Value<'_>| matches!(element, Value::Reference(_));
        let Some(Value::Array(array)) =
            value.value().filter(|_| elements && self.large.has_references())
        else {
            return Ok(value);
        };
        if !array.iter().any(|element| is_reference(&element)) {
            return Ok(value);
        }
        let mut opened = Elements::new(&self.memory);
        for element in array.iter() {
            match element {
                Value::Reference(reference) => {
                    opened.push(self.large.open(reference)?.as_value())?;
                }
                other => opened.push(other)?,
            }
        }
        opened.finish()
    }

    /// A value that was read.
    pub(crate) fn charged<'a>(&self, value: ValueBuf) -> Result<Evaluated<'a>, QueryError> {
        let charge = self.memory.charge_of(bytes_of(value.as_value()))?;
        Ok(Evaluated::charged(value, charge))
    }

    /// Returns how strings compare.
    pub fn collation(&self) -> &Collation {
        &self.collation
    }

    /// These variables, for documents that carry metadata.
    pub fn with_metadata(self) -> Variables {
        Variables { carries_metadata: true, ..self }
    }

    /// Whether documents carry metadata.
    pub(crate) fn carries_metadata(&self) -> bool {
        self.carries_metadata
    }

    /// The document without the metadata that it carries; `None` if it carries none.
    pub(crate) fn bare(&self, document: Document<'_>) -> Option<DocumentBuf> {
        self.carries_metadata.then(|| metadata::strip(document.to_buf()))
    }

    /// Whether `name` is bound.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.values.iter().any(|(bound, _)| bound == name)
    }

    /// The value of a variable that a command or a stage has bound, if it has one.
    pub(super) fn value(&self, name: &str) -> Option<Value<'_>> {
        let (_, value) = self.values.iter().rev().find(|(bound, _)| bound == name)?;
        value.as_ref().map(ValueBuf::as_value)
    }

    fn get(&self, name: &str) -> Result<Evaluated<'_>, QueryError> {
        match self.values.iter().rev().find(|(bound, _)| bound == name) {
            Some((_, Some(value))) => Ok(Evaluated::Borrowed(value.as_value())),
            Some((_, None)) => Ok(Evaluated::Missing),
            None => Err(undefined(name)),
        }
    }
}

/// The error for an unbound variable.
pub(crate) fn undefined(name: &str) -> QueryError {
    failure(17276, format!("Use of undefined variable: {name}"))
}

/// Checks the name of a variable that a user binds: a lower-case letter, then letters, digits and
/// underscores; or `CURRENT`.
pub(crate) fn check_name(name: &str) -> Result<(), QueryError> {
    let refuse = |message: String| Err(QueryError::new(Code::FailedToParse, message));
    let Some(first) = name.chars().next() else {
        return refuse("empty variable names are not allowed".to_owned());
    };
    if name == "CURRENT" {
        return Ok(());
    }
    if !first.is_ascii_lowercase() && first.is_ascii() {
        return refuse(format!(
            "'{name}' starts with an invalid character for a user variable name"
        ));
    }
    let allowed =
        |letter: char| !letter.is_ascii() || letter.is_ascii_alphanumeric() || letter == '_';
    if let Some(wrong) = name.chars().find(|letter| !allowed(*letter)) {
        return refuse(format!(
            "'{name}' contains an invalid character for a variable name: '{wrong}'"
        ));
    }
    Ok(())
}

/// The variables that one operator bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding<'a> {
    pub(crate) names: &'a [String],
    /// As many as names.
    pub(crate) values: &'a [Evaluated<'a>],
    /// The binding outside this one.
    pub(crate) outer: Option<&'a Binding<'a>>,
}

/// The scope in which an expression is evaluated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope<'a> {
    /// `$$ROOT`.
    pub(crate) root: Document<'a>,
    pub(crate) variables: &'a Variables,
    pub(crate) bindings: Option<&'a Binding<'a>>,
    /// The places of the fields that the parser of the expressions noted, if they were looked up.
    pub(crate) fields: Option<&'a FieldPlaces<'a>>,
}

impl<'a> Scope<'a> {
    /// The outermost scope.
    pub(crate) fn new(root: Document<'a>, variables: &'a Variables) -> Scope<'a> {
        Scope { root, variables, bindings: None, fields: None }
    }

    /// The outermost scope of expressions whose parser noted the names that `fields` has of `root`.
    pub(crate) fn with_fields(self, fields: Option<&'a FieldPlaces<'a>>) -> Scope<'a> {
        Scope { fields, ..self }
    }

    /// This scope with more variables.
    pub(crate) fn bind(&self, binding: &'a Binding<'a>) -> Scope<'a> {
        Scope { bindings: Some(binding), ..*self }
    }

    /// Returns how strings compare.
    pub(crate) fn collation(&self) -> &'a Collation {
        &self.variables.collation
    }

    /// The value without references.
    #[inline]
    pub(crate) fn whole(&self, value: Evaluated<'a>) -> Result<Evaluated<'a>, QueryError> {
        self.variables.whole(value)
    }

    /// Returns the memory of the values that are made.
    pub(crate) fn memory(&self) -> &'a RequestMemory {
        &self.variables.memory
    }

    /// The value of a variable, for as long as the scope lives.
    pub(crate) fn variable(&self, name: &str) -> Result<Evaluated<'a>, QueryError> {
        let mut next = self.bindings;
        while let Some(binding) = next {
            let position = binding.names.iter().rposition(|bound| bound == name);
            if let Some(value) = position.and_then(|position| binding.values.get(position)) {
                return Ok(value.borrow());
            }
            next = binding.outer;
        }
        match name {
            "ROOT" | "CURRENT" => match self.variables.bare(self.root) {
                Some(bare) => Evaluated::copy(Value::Document(bare.view()), self.memory()),
                None => Ok(Evaluated::Borrowed(Value::Document(self.root))),
            },
            "NOW" => Ok(Evaluated::Borrowed(Value::DateTime(self.variables.now_millis))),
            "REMOVE" => Ok(Evaluated::Missing),
            "CLUSTER_TIME" => match self.variables.cluster_time {
                Some(time) => Ok(Evaluated::Borrowed(Value::Timestamp(time))),
                None => Err(failure(51144, "Builtin variable '$$CLUSTER_TIME' is not available")),
            },
            USER_ROLES if !self.variables.contains(USER_ROLES) => {
                Ok(Evaluated::Borrowed(Value::Array(Array::from_validated(&EMPTY))))
            }
            _ => self.variables.get(name),
        }
    }
}
