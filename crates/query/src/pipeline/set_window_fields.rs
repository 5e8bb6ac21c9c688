//! `$setWindowFields`: fields that are computed over the documents around each.
//!
//! 1. Documents are sorted by their partition and then by `sortBy` (on disk where they are many).
//! 2. One partition after the other is read whole; each function of `output` makes its column
//!    ([`window`](super::window)), and the columns become fields.
//!
//! *Surprises*: a partition must fit into memory; those whose key is missing or null are one.

use std::iter::Peekable;
use std::sync::Arc;

use frond_doc::{Document, DocumentBuf, Value, key};

use super::Documents;
use super::parse::{StageParser, failed_to_parse, one};
use super::set_path::set_path;
use super::sorter::{Sorted, Sorter};
use super::stage::{Context, Stage, lazily};
use super::window::{Partition, WindowFunction};
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::{Evaluated, Expression, Scope, Variables, check_bytes, check_depth};
use crate::expression::{failure, parse_path};
use crate::sort::SortPattern;

/// `$setWindowFields`
#[derive(Debug)]
struct SetWindowFields {
    partition: Option<Expression>,
    sort: Option<SortPattern>,
    output: Vec<(Vec<String>, WindowFunction)>,
}

impl Stage for SetWindowFields {
    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        let variables = context.variables.clone();
        let resources = context.resources.clone();
        Ok(lazily(move || {
            let mut sorter = Sorter::new("$setWindowFields", &resources, usize::MAX);
            for document in input {
                let document = document?;
                let key = self.key(document.view(), &variables)?;
                sorter.add(key.into(), document)?;
            }
            let mut sorted = sorter.finish()?.peekable();
            let bytes_max = resources.memory_bytes_max;
            let mut ready = Vec::new().into_iter();
            let mut has_failed = false;
            Ok(Box::new(std::iter::from_fn(move || {
                loop {
                    if let Some(document) = ready.next() {
                        return Some(Ok(document));
                    }
                    if has_failed {
                        return None;
                    }
                    let next = next_partition(&mut sorted, bytes_max).transpose()?;
                    match next.and_then(|partition| self.compute(partition, &variables)) {
                        Ok(documents) => ready = documents.into_iter(),
                        Err(error) => {
                            has_failed = true;
                            return Some(Err(error));
                        }
                    }
                }
            })))
        }))
    }
}

/// Reads the documents of the next partition; `None` if there is none.
fn next_partition(
    sorted: &mut Peekable<Sorted>,
    bytes_max: usize,
) -> Result<Option<Vec<DocumentBuf>>, QueryError> {
    let Some(first) = sorted.next() else { return Ok(None) };
    let (first_key, first) = first?;
    let partition = partition_of(&first_key).to_vec();
    let mut bytes = first.as_bytes().len();
    let mut documents = vec![first];
    let is_of_it = |entry: &Result<(bytes::Bytes, _), QueryError>| {
        entry.as_ref().map_or(true, |(key, _)| partition_of(key) == partition)
    };
    while let Some(entry) = sorted.next_if(is_of_it) {
        let (_, document) = entry?;
        bytes += size_of::<DocumentBuf>() + document.as_bytes().len();
        if bytes_max < bytes {
            let message = format!(
                "Exceeded memory limit in DocumentSourceSetWindowFields, used {bytes} bytes but \
                 max allowed is {bytes_max}"
            );
            return Err(failure(5_414_201, message));
        }
        documents.push(document);
    }
    Ok(Some(documents))
}

/// The partition's part of a sort key.
fn partition_of(key: &[u8]) -> &[u8] {
    let mut rest = key;
    // The keys were made here: what begins them is a value's.
    key::skip(&mut rest, false).expect("a sort key begins with the partition's value");
    &key[..key.len() - rest.len()]
}

impl SetWindowFields {
    fn key(&self, document: Document<'_>, variables: &Variables) -> Result<Vec<u8>, QueryError> {
        let mut key = Vec::new();
        let scope = Scope::new(document, variables);
        let partition = match &self.partition {
            Some(expression) => expression.evaluate_in(&scope)?,
            None => Evaluated::NULL,
        };
        if let Value::Array(_) = partition.or_null() {
            let message = "An expression used to partition cannot evaluate to value of type array";
            return Err(QueryError::new(Code::TypeMismatch, message));
        }
        let collation = variables.collation();
        collation.append_key(&mut key, partition.or_null(), false);
        if let Some(sort) = &self.sort {
            key.extend_from_slice(&sort.key_by(document, collation));
        }
        Ok(key)
    }

    fn compute(
        &self,
        documents: Vec<DocumentBuf>,
        variables: &Variables,
    ) -> Result<Vec<DocumentBuf>, QueryError> {
        let mut partition = Partition::new(&documents, self.sort.as_ref(), variables);
        let mut columns = Vec::with_capacity(self.output.len());
        for (path, function) in &self.output {
            columns.push((path, function.column(&mut partition)?));
        }
        let mut made = documents.clone();
        for (path, column) in columns {
            for (document, value) in made.iter_mut().zip(column) {
                *document = set_path(document.view(), path, value.value());
                check_bytes(document.as_bytes().len())?;
            }
        }
        for document in &made {
            check_depth(Value::Document(document.view()), 1)?;
        }
        Ok(made)
    }
}

pub(super) fn parse(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let Value::Document(specification) = argument else {
        let found = argument.element_type().alias();
        return Err(failed_to_parse(format!(
            "the $setWindowFields stage specification must be an object, found {found}"
        )));
    };
    let known = ["partitionBy", "sortBy", "output"];
    if let Some((name, _)) = specification.iter().find(|(name, _)| !known.contains(name)) {
        let message = format!("BSON field '$setWindowFields.{name}' is an unknown field.");
        return Err(failure(40415, message));
    }
    let partition =
        specification.get("partitionBy").map(|value| parser.expression(value)).transpose()?;
    let sort = match specification.get("sortBy") {
        None => None,
        Some(Value::Document(sort)) if sort.is_empty() => None,
        Some(Value::Document(sort)) => Some(SortPattern::parse(sort)?),
        Some(other) => {
            let found = other.element_type().alias();
            let message = format!(
                "BSON field '$setWindowFields.sortBy' is the wrong type '{found}', expected type \
                 'object'"
            );
            return Err(QueryError::new(Code::TypeMismatch, message));
        }
    };
    let output = specification.get("output").ok_or_else(|| {
        failure(40414, "BSON field '$setWindowFields.output' is missing but a required field")
    })?;
    let Value::Document(fields) = output else {
        let found = output.element_type().alias();
        let message = format!(
            "BSON field '$setWindowFields.output' is the wrong type '{found}', expected type \
             'object'"
        );
        return Err(QueryError::new(Code::TypeMismatch, message));
    };
    let mut output = Vec::new();
    for (path, function) in fields.iter() {
        let Value::Document(function) = function else {
            return Err(failed_to_parse(format!(
                "The field '{path}' must be an object: a window function"
            )));
        };
        let function = WindowFunction::parse(function, sort.as_ref(), parser)?;
        output.push((parse_path(path)?, function));
    }
    one(SetWindowFields { partition, sort, output })
}
