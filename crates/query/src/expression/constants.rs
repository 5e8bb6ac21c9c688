//! Operators that give the same for all documents: computed once, before the first document.
//!
//! 1. The parser notes each operator that reads nothing but constants, `$$NOW`, `$$CLUSTER_TIME`
//!    and a command's `let`, innermost first ([`NotedConstant`]), and stands a [`Constant`] in its
//!    place.
//! 2. Before documents are read, all are computed ([`compute`]), those that no document would
//!    reach too (`$cond`, `$and`, `$ifNull`): MongoDB's optimizer evaluates them, and an error
//!    fails the request even if there is no document. Only `$switch` hides what is behind a
//!    constant case ([`Guard`]).
//! 3. Where nothing was computed ahead (validators, updates, the pipelines of `$lookup`, whose
//!    variables change from document to document), a constant is evaluated whenever it is reached.
//!
//! Some operators are never folded by MongoDB, whatever they are given ([`is_never`]).

use std::sync::{Arc, OnceLock};

use frond_doc::{Document, Value};

use super::evaluated::{Evaluated, check_depth};
use super::node::{Answer, Node};
use super::scope::{Scope, Variables};
use crate::collation::Collation;
use crate::error::QueryError;

/// An expression that gives the same for all documents.
#[derive(Debug)]
pub(crate) struct Constant {
    node: Node,
    /// The value under this collation, once it is computed, for one request.
    value: OnceLock<(Collation, Evaluated<'static>)>,
}

impl Constant {
    /// A constant that isn't computed yet.
    pub(super) fn new(node: Node) -> Arc<Constant> {
        Arc::new(Constant { node, value: OnceLock::new() })
    }

    /// The constant of this value.
    fn known(value: Value<'_>) -> Arc<Constant> {
        let value = OnceLock::from((Collation::SIMPLE, Evaluated::copy_uncounted(value)));
        Arc::new(Constant { node: Node::of_constant(Value::Null), value })
    }

    /// Returns the value.
    #[inline]
    pub(super) fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        match self.value.get() {
            Some((collation, value)) if collation == scope.collation() => Ok(value.borrow()),
            _ => self.node.evaluate(scope),
        }
    }

    fn compute(&self, scope: &Scope<'_>) -> Result<(), QueryError> {
        if self.value.get().is_some() {
            return Ok(());
        }
        let value = self.node.evaluate(scope)?.detach(scope.memory())?;
        if let Some(value) = value.value() {
            check_depth(value, 2)?;
        }
        // Whether this or another thread's value stays: they are equal.
        let _ = self.value.set((scope.collation().clone(), value));
        Ok(())
    }
}

/// A condition under which an expression is reached: that a constant case of a `$switch` counts as
/// true, or as false.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    case: Arc<Constant>,
    is_true: bool,
}

impl Guard {
    /// The guard that `case` counts as true; `None` if that depends on the document.
    pub(super) fn of(case: &Node) -> Option<Guard> {
        let case = match case {
            Node::Computed(constant) => Arc::clone(constant),
            other => Constant::known(other.constant()?),
        };
        Some(Guard { case, is_true: true })
    }

    /// The guard that the case counts as false.
    pub(super) fn negated(self) -> Guard {
        Guard { is_true: !self.is_true, ..self }
    }

    /// Whether what is guarded is reached. Behind a case that isn't reached itself nothing is.
    fn is_reached(&self) -> bool {
        self.case.value.get().is_some_and(|(_, value)| value.is_truthy() == self.is_true)
    }
}

/// A constant that the parser has noted.
#[derive(Clone, Debug)]
pub(crate) struct NotedConstant {
    constant: Arc<Constant>,
    guards: Vec<Guard>,
    is_of_filter: bool,
}

impl NotedConstant {
    /// A constant that is reached behind all of `guards`.
    pub(super) fn new(constant: Arc<Constant>, guards: Vec<Guard>) -> NotedConstant {
        NotedConstant { constant, guards, is_of_filter: false }
    }

    /// The same, in an `$expr`.
    pub(crate) fn of_filter(self) -> NotedConstant {
        NotedConstant { is_of_filter: true, ..self }
    }
}

/// Computes the constants, as `variables` are.
///
/// # Errors
/// That of the first one that has no value.
pub(crate) fn compute(
    constants: &[NotedConstant],
    variables: &Variables,
) -> Result<(), QueryError> {
    let scope = Scope::new(Document::empty(), variables);
    for noted in constants {
        if !noted.guards.iter().all(Guard::is_reached) {
            continue;
        }
        noted.constant.compute(&scope).map_err(|error| match noted.is_of_filter {
            true => error.within("Failed to optimize expression"),
            false => error,
        })?;
    }
    Ok(())
}

/// Whether MongoDB never folds an operator, even if all that it is given is constant: those that
/// bind variables for elements, those of fields, and what isn't the same each time.
pub(super) fn is_never(operator: &str) -> bool {
    const NEVER: [&str; 12] = [
        "$_internalJsEmit",
        "$filter",
        "$function",
        "$getField",
        "$map",
        "$meta",
        "$rand",
        "$reduce",
        "$setField",
        "$sortArray",
        "$unsetField",
        "$zip",
    ];
    NEVER.contains(&operator)
}

/// The arguments that MongoDB computes ahead though others aren't constant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Together {
    /// Those before the first that isn't.
    Leading,
    /// Each two or more.
    Neighbours,
}

fn together(operator: &str) -> Option<Together> {
    match operator {
        "$add" | "$multiply" => Some(Together::Leading),
        "$concat" | "$concatArrays" => Some(Together::Neighbours),
        _ => None,
    }
}

/// The arguments of an operator, with neighbouring constants joined into one by `make`.
pub(super) fn gathered(
    operator: &str,
    arguments: Vec<Node>,
    mut make: impl FnMut(Vec<Node>) -> Node,
) -> Vec<Node> {
    let Some(together) = together(operator) else { return arguments };
    if arguments.iter().all(Node::is_constant) {
        return arguments;
    }
    let (mut gathered, mut constants) = (Vec::with_capacity(arguments.len()), Vec::new());
    let mut is_over = false;
    let mut settle = |constants: &mut Vec<Node>, gathered: &mut Vec<Node>| match constants.len() {
        0 | 1 => gathered.append(constants),
        _ => gathered.push(make(std::mem::take(constants))),
    };
    for argument in arguments {
        if argument.is_constant() && !is_over {
            constants.push(argument);
            continue;
        }
        settle(&mut constants, &mut gathered);
        is_over |= together == Together::Leading;
        gathered.push(argument);
    }
    settle(&mut constants, &mut gathered);
    gathered
}
