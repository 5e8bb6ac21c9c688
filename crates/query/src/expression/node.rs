//! The tree of a parsed expression, and its evaluation.

use std::fmt;
use std::sync::Arc;

use frond_doc::Value;

use super::constants::Constant;
use super::evaluated::{Elements, Evaluated, Fields};
use super::path;
use super::scope::{Scope, Variables};
use crate::collation::Collation;
use crate::error::QueryError;

/// The result of an operator's function.
pub(crate) type Answer<'a> = Result<Evaluated<'a>, QueryError>;
/// An operator with one argument.
pub(crate) type One = for<'a> fn(Evaluated<'a>) -> Answer<'a>;
/// An operator with two arguments.
pub(crate) type Two = for<'a> fn(Evaluated<'a>, Evaluated<'a>) -> Answer<'a>;
/// An operator with a list of arguments.
pub(crate) type Many = for<'a> fn(Vec<Evaluated<'a>>) -> Answer<'a>;

/// An operator with two arguments that compares strings.
pub(crate) type TwoCollated = for<'a> fn(Evaluated<'a>, Evaluated<'a>, &Collation) -> Answer<'a>;
/// An operator with a list of arguments that compares strings.
pub(crate) type ManyCollated = for<'a> fn(Vec<Evaluated<'a>>, &Collation) -> Answer<'a>;

/// An operator with one argument that makes more of it than a number.
pub(crate) type OneIn = for<'a> fn(Evaluated<'a>, &Variables) -> Answer<'a>;
/// An operator with two arguments that makes more of them than a number.
pub(crate) type TwoIn = for<'a> fn(Evaluated<'a>, Evaluated<'a>, &Variables) -> Answer<'a>;
/// An operator with a list of arguments that makes more of them than a number.
pub(crate) type ManyIn = for<'a> fn(Vec<Evaluated<'a>>, &Variables) -> Answer<'a>;

/// An operator that doesn't evaluate all its arguments first, or takes them by name.
pub(crate) trait Operation: fmt::Debug + Send + Sync {
    /// Evaluates in a scope.
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a>;

    /// As `evaluate`, where what comes out may be a reference, or hold some: of operators that but
    /// hand on what they are given.
    fn carry<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        self.evaluate(scope)
    }
}

/// An expression.
pub(crate) enum Node {
    /// A value that stands for itself.
    Constant(Evaluated<'static>),
    /// `"$a.b"`: the path's parts, in `$$ROOT`, and the first one's number among the names that
    /// the parser noted.
    Field(Vec<String>, Option<u8>),
    /// `"$$name.a.b"`
    Variable(String, Vec<String>),
    /// A document whose fields are expressions.
    Document(Vec<(String, Node)>),
    /// An array whose elements are expressions.
    Array(Vec<Node>),
    /// An operator with one argument.
    One(One, Box<Node>),
    /// An operator with two arguments.
    Two(Two, Box<(Node, Node)>),
    /// An operator with a list of arguments.
    Many(Many, Vec<Node>),
    /// An operator with two arguments that compares strings.
    TwoCollated(TwoCollated, Box<(Node, Node)>),
    /// An operator with a list of arguments that compares strings.
    ManyCollated(ManyCollated, Vec<Node>),
    /// An operator with one argument that makes more of it than a number.
    OneIn(OneIn, Box<Node>),
    /// An operator with two arguments that makes more of them than a number.
    TwoIn(TwoIn, Box<(Node, Node)>),
    /// An operator with a list of arguments that makes more of them than a number.
    ManyIn(ManyIn, Vec<Node>),
    /// An operator with rules of its own.
    Special(Arc<dyn Operation>),
    /// An operator that hands on what it is given, as it is given by [`Node::Given`].
    Carrying(Box<Node>),
    /// An argument of such an operator.
    Given(Box<Node>, Look),
    /// An operator that gives the same for all documents.
    Computed(Arc<Constant>),
}

/// The part of its arguments that an operator looks at, if it hands on what it is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Look {
    /// At their type; they may be references.
    Type,
    /// At which elements they have.
    Level,
    /// Of arrays, at which elements their elements have.
    Elements,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Constant(value) => write!(f, "{:?}", value.or_null()),
            Node::Field(parts, _) => write!(f, "${}", parts.join(".")),
            Node::Variable(name, parts) => write!(f, "$${name}.{}", parts.join(".")),
            Node::Document(fields) => {
                f.debug_map().entries(fields.iter().map(|(name, node)| (name, node))).finish()
            }
            Node::Array(nodes) => f.debug_list().entries(nodes).finish(),
            Node::One(_, node) => f.debug_tuple("One").field(node).finish(),
            Node::Two(_, nodes) => f.debug_tuple("Two").field(nodes).finish(),
            Node::Many(_, nodes) => f.debug_tuple("Many").field(nodes).finish(),
            Node::TwoCollated(_, nodes) => f.debug_tuple("TwoCollated").field(nodes).finish(),
            Node::ManyCollated(_, nodes) => f.debug_tuple("ManyCollated").field(nodes).finish(),
            Node::OneIn(_, node) => f.debug_tuple("One").field(node).finish(),
            Node::TwoIn(_, nodes) => f.debug_tuple("Two").field(nodes).finish(),
            Node::ManyIn(_, nodes) => f.debug_tuple("Many").field(nodes).finish(),
            Node::Special(operation) => operation.fmt(f),
            Node::Carrying(node) | Node::Given(node, _) => node.fmt(f),
            Node::Computed(constant) => constant.fmt(f),
        }
    }
}

impl Node {
    /// A value that stands for itself.
    pub(crate) fn of_constant(value: Value<'_>) -> Node {
        Node::Constant(Evaluated::copy_uncounted(value))
    }

    /// The path's parts, if this is a field's.
    pub(crate) fn field(&self) -> Option<&[String]> {
        if let Node::Field(parts, _) = self { Some(parts) } else { None }
    }

    /// An operator with rules of its own.
    pub(crate) fn special(operation: impl Operation + 'static) -> Node {
        Node::Special(Arc::new(operation))
    }

    /// The value, if this is a constant.
    pub(crate) fn constant(&self) -> Option<Value<'_>> {
        if let Node::Constant(value) = self { value.value() } else { None }
    }

    /// Whether it is the same for all documents, as far as that can be seen: operators with rules
    /// of their own aren't looked into.
    pub(crate) fn is_constant(&self) -> bool {
        match self {
            Node::Constant(_) | Node::Computed(_) => true,
            Node::Field(..) | Node::Variable(..) | Node::Special(_) => false,
            Node::Document(fields) => fields.iter().all(|(_, node)| node.is_constant()),
            Node::One(_, node)
            | Node::OneIn(_, node)
            | Node::Carrying(node)
            | Node::Given(node, _) => node.is_constant(),
            Node::Two(_, nodes) | Node::TwoCollated(_, nodes) | Node::TwoIn(_, nodes) => {
                nodes.0.is_constant() && nodes.1.is_constant()
            }
            Node::Array(nodes)
            | Node::Many(_, nodes)
            | Node::ManyCollated(_, nodes)
            | Node::ManyIn(_, nodes) => nodes.iter().all(Node::is_constant),
        }
    }

    /// An operator that hands on what it is given, and looks at no more of it than that.
    pub(crate) fn carrying(self, look: Look) -> Node {
        let given = |node: Node| Node::Given(Box::new(node), look);
        let all = |nodes: Vec<Node>| nodes.into_iter().map(given).collect();
        Node::Carrying(Box::new(match self {
            Node::One(function, node) => Node::One(function, Box::new(given(*node))),
            Node::OneIn(function, node) => Node::OneIn(function, Box::new(given(*node))),
            Node::Two(function, nodes) => {
                Node::Two(function, Box::new((given(nodes.0), given(nodes.1))))
            }
            Node::TwoIn(function, nodes) => {
                Node::TwoIn(function, Box::new((given(nodes.0), given(nodes.1))))
            }
            Node::Many(function, nodes) => Node::Many(function, all(nodes)),
            Node::ManyIn(function, nodes) => Node::ManyIn(function, all(nodes)),
            other => return other,
        }))
    }

    /// Evaluates where the value is but handed on: it may be a reference, or hold some.
    pub(crate) fn carry<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        match self {
            Node::Field(..) | Node::Variable(..) => self.found(scope),
            Node::Document(fields) => {
                let mut made = Fields::new(scope.memory());
                append_fields(&mut made, fields, scope, Node::carry)?;
                made.finish()
            }
            Node::Array(nodes) => {
                let mut elements = Elements::new(scope.memory());
                for node in nodes {
                    elements.push_evaluated(&node.carry(scope)?)?;
                }
                elements.finish()
            }
            Node::Special(operation) => operation.carry(scope),
            Node::Carrying(node) => node.evaluate(scope),
            other => other.evaluate(scope),
        }
    }

    /// Evaluates in a scope. The recursion is as deep as the expression, which came in a document
    /// and so is bounded by how deep documents may be nested.
    pub(crate) fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        // Each node: the body of a `$map` may have thousands of them.
        scope.memory().work(1)?;
        match self {
            Node::Field(..) | Node::Variable(..) => scope.whole(self.found(scope)?),
            Node::Carrying(node) => scope.whole(node.evaluate(scope)?),
            Node::Given(node, Look::Type) => node.carry(scope),
            Node::Given(node, look) => {
                scope.variables.opened(node.carry(scope)?, *look == Look::Elements)
            }
            Node::Constant(value) => Ok(Evaluated::Borrowed(value.or_null())),
            Node::Computed(constant) => constant.evaluate(scope),
            Node::Document(fields) => {
                let mut made = Fields::new(scope.memory());
                append_fields(&mut made, fields, scope, Node::evaluate)?;
                made.finish()
            }
            Node::Array(nodes) => {
                let mut elements = Elements::new(scope.memory());
                for node in nodes {
                    elements.push_evaluated(&node.evaluate(scope)?)?;
                }
                elements.finish()
            }
            Node::One(function, argument) => function(one(argument, scope)?),
            Node::Two(function, arguments) => {
                function(one(&arguments.0, scope)?, one(&arguments.1, scope)?)
            }
            Node::Many(function, arguments) => function(evaluated(arguments, scope)?),
            Node::TwoCollated(function, arguments) => {
                let first = one(&arguments.0, scope)?;
                function(first, one(&arguments.1, scope)?, scope.collation())
            }
            Node::ManyCollated(function, arguments) => {
                function(evaluated(arguments, scope)?, scope.collation())
            }
            Node::OneIn(function, argument) => function(one(argument, scope)?, scope.variables),
            Node::TwoIn(function, arguments) => {
                let first = one(&arguments.0, scope)?;
                function(first, one(&arguments.1, scope)?, scope.variables)
            }
            Node::ManyIn(function, arguments) => {
                function(evaluated(arguments, scope)?, scope.variables)
            }
            Node::Special(operation) => operation.evaluate(scope),
        }
    }

    /// Returns the value at the path of a field or variable: it may be a reference, or hold some.
    #[inline]
    fn found<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        match self {
            Node::Field(parts, number) => match (scope.fields, number) {
                (Some(fields), Some(number)) => {
                    path::from_first(fields.get(*number), &parts[1..], scope.variables)
                }
                _ => {
                    // Fields are passed over ten times faster than they are read.
                    scope.memory().read(scope.root.as_bytes().len() / 16)?;
                    path::in_document(scope.root, parts, scope.variables)
                }
            },
            Node::Variable(name, parts) => {
                let value = scope.variable(name)?;
                if !parts.is_empty() {
                    scope.memory().read(value.bytes() / 16)?;
                }
                path::in_value(value, parts, scope.variables)
            }
            other => other.evaluate(scope),
        }
    }
}

/// An argument, which its operator will read.
#[inline]
fn one<'a>(argument: &'a Node, scope: &Scope<'a>) -> Answer<'a> {
    let value = argument.evaluate(scope)?;
    scope.memory().read(value.bytes())?;
    Ok(value)
}

fn evaluated<'a>(
    arguments: &'a [Node],
    scope: &Scope<'a>,
) -> Result<Vec<Evaluated<'a>>, QueryError> {
    let mut values = Vec::with_capacity(arguments.len());
    for argument in arguments {
        values.push(one(argument, scope)?);
    }
    Ok(values)
}

/// Appends the fields of a document of expressions; those that are missing are left out.
fn append_fields<'a>(
    made: &mut Fields,
    fields: &'a [(String, Node)],
    scope: &Scope<'a>,
    evaluate: for<'n> fn(&'n Node, &Scope<'n>) -> Answer<'n>,
) -> Result<(), QueryError> {
    for (name, node) in fields {
        if let Node::Document(inner) = node {
            made.begin(name);
            append_fields(made, inner, scope, evaluate)?;
            made.end();
        } else if let Some(value) = evaluate(node, scope)?.value() {
            made.append(name, value)?;
        }
    }
    Ok(())
}
