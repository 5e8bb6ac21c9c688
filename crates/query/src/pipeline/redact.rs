//! `$redact`: what a document may show, decided by an expression for each level of it.
//!
//! The expression answers `$$KEEP` (the level stays as it is), `$$PRUNE` (it goes) or `$$DESCEND`
//! (its fields stay, and each document among them is asked in turn, those in arrays too). It sees
//! the level as `$$CURRENT`, the whole document as `$$ROOT`.

use std::sync::Arc;

use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, ElementType, Value, ValueBuf};

use super::Documents;
use super::division::Division;
use super::parse::{StageParser, one};
use super::stage::{Context, Stage};
use crate::error::QueryError;
use crate::expression::{Binding, Evaluated, Expression, Scope, Variables, failure};
use crate::large::NeededPaths;

/// The values of the variables that decide.
const DECISIONS: [(&str, &str); 3] = [("DESCEND", "descend"), ("KEEP", "keep"), ("PRUNE", "prune")];

/// `$redact`
#[derive(Debug)]
struct Redact {
    expression: Expression,
    /// `CURRENT`
    names: [String; 1],
}

impl Stage for Redact {
    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        let decisions = DECISIONS
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Some(ValueBuf::from(Value::String(value)))));
        let variables = context.variables.with(decisions.collect());
        Ok(Box::new(input.filter_map(move |document| {
            document.and_then(|document| self.redacted(&document, &variables)).transpose()
        })))
    }

    fn division(self: Arc<Self>) -> Division {
        Division::Each
    }

    fn needed_paths(&self) -> NeededPaths {
        NeededPaths::default()
    }
}

impl Redact {
    fn redacted(
        &self,
        document: &DocumentBuf,
        variables: &Variables,
    ) -> Result<Option<DocumentBuf>, QueryError> {
        let mut out = DocumentBuilder::with_capacity(document.as_bytes().len());
        let stays = self.level(&mut out, document.view(), document.view(), variables)?;
        Ok(stays.then(|| out.build()))
    }

    /// Writes what stays of a level into the document that is open; whether it stays at all. The
    /// recursion is as deep as the document, which validation has bounded.
    fn level(
        &self,
        out: &mut DocumentBuilder,
        level: Document<'_>,
        root: Document<'_>,
        variables: &Variables,
    ) -> Result<bool, QueryError> {
        match self.decide(level, root, variables)? {
            Decision::Prune => return Ok(false),
            Decision::Keep => level.elements().for_each(|element| {
                out.append_element(&element);
            }),
            Decision::Descend => {
                for (name, value) in level.iter() {
                    let opened = opened(value, variables)?;
                    match opened.as_ref().map_or(value, ValueBuf::as_value) {
                        Value::Document(inner) => {
                            let mut made = DocumentBuilder::new();
                            if self.level(&mut made, inner, root, variables)? {
                                out.append(name, Value::Document(made.build().view()));
                            }
                        }
                        Value::Array(array) => {
                            out.begin_array(name);
                            self.elements(out, array, root, variables)?;
                            out.end();
                        }
                        other => {
                            out.append(name, other);
                        }
                    }
                }
            }
        }
        Ok(true)
    }

    fn elements(
        &self,
        out: &mut DocumentBuilder,
        array: Array<'_>,
        root: Document<'_>,
        variables: &Variables,
    ) -> Result<(), QueryError> {
        for element in array.iter() {
            let opened = opened(element, variables)?;
            match opened.as_ref().map_or(element, ValueBuf::as_value) {
                Value::Document(inner) => {
                    let mut made = DocumentBuilder::new();
                    if self.level(&mut made, inner, root, variables)? {
                        out.push(Value::Document(made.build().view()));
                    }
                }
                Value::Array(inner) => {
                    out.push_begin_array();
                    self.elements(out, inner, root, variables)?;
                    out.end();
                }
                other => {
                    out.push(other);
                }
            }
        }
        Ok(())
    }

    fn decide(
        &self,
        level: Document<'_>,
        root: Document<'_>,
        variables: &Variables,
    ) -> Result<Decision, QueryError> {
        let values = [Evaluated::Borrowed(Value::Document(level))];
        let binding = Binding { names: &self.names, values: &values, outer: None };
        let scope = Scope::new(root, variables).bind(&binding);
        let decision = self.expression.evaluate_in(&scope)?;
        match decision.value() {
            Some(Value::String("descend")) => Ok(Decision::Descend),
            Some(Value::String("keep")) => Ok(Decision::Keep),
            Some(Value::String("prune")) => Ok(Decision::Prune),
            _ => {
                let message = format!(
                    "$redact's expression should not return anything aside from the variables \
                     $$KEEP, $$DESCEND, and $$PRUNE, but returned {}",
                    decision.text()
                );
                Err(failure(17053, message))
            }
        }
    }
}

/// One level of a document or array that lies elsewhere.
fn opened(value: Value<'_>, variables: &Variables) -> Result<Option<ValueBuf>, QueryError> {
    match value {
        Value::Reference(reference)
            if matches!(reference.kind(), ElementType::Document | ElementType::Array) =>
        {
            variables.large().open(reference).map(Some)
        }
        _ => Ok(None),
    }
}

/// The decision about a level.
enum Decision {
    Descend,
    Keep,
    Prune,
}

pub(super) fn parse(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let names = ["CURRENT", "DESCEND", "KEEP", "PRUNE"].map(str::to_owned);
    let expression =
        parser.expressions.with_bound(&names, |parser| Expression::parse_with(argument, parser))?;
    one(Redact { expression, names: ["CURRENT".to_owned()] })
}
