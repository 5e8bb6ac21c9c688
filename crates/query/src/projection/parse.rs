//! From BSON to the tree of a projection.

use frond_doc::{Array, Document, DocumentBuilder, Value};

use super::{Computed, Kind, Node, Projection, Slice, Tree};
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::{self, Expression, Parser, Variables};
use crate::feature::Feature;
use crate::filter::Filter;
use crate::sort::check_field_path;
use crate::text;

/// The state of the parser.
#[derive(Default)]
struct Parse {
    /// Decided by the first field other than `_id` that is included or excluded.
    kind: Option<Kind>,
    /// The kind that the projection gives `_id`.
    id: Option<Kind>,
    /// The array of the positional `$`.
    positional: Option<String>,
    has_element_match: bool,
    has_slice: bool,
    root: Tree,
    expressions: Parser,
}

fn error(code: i32, message: impl Into<String>) -> QueryError {
    QueryError::new(Code::Location(code), message)
}

/// Parses a whole projection.
pub(super) fn document(projection: Document<'_>) -> Result<Projection, QueryError> {
    let mut parse = Parse::default();
    for (path, value) in projection.iter() {
        field(&mut parse, path, value)?;
    }
    // The kind that MongoDB chooses where no field but `_id` is included, excluded or computed.
    let kind = parse.kind.unwrap_or(match parse.id {
        _ if parse.has_element_match && !parse.has_slice => Kind::Inclusion,
        Some(kind) => kind,
        None => Kind::Exclusion,
    });
    if kind == Kind::Inclusion && parse.id.is_none() && parse.root.get(b"_id").is_none() {
        parse.root.fields.prepend("_id", Node::Include);
    }
    Ok(Projection {
        kind,
        root: parse.root,
        positional: parse.positional,
        variables: Variables::default(),
        metadata: parse.expressions.metadata(),
        runs_scripts: parse.expressions.runs_scripts(),
        constants: parse.expressions.constants().to_vec(),
    })
}

/// Parses one field, whose path is the whole one from the root. Recursion follows the
/// projection's nesting, which validation has bounded.
fn field(parse: &mut Parse, path: &str, value: Value<'_>) -> Result<(), QueryError> {
    if let Some(array_path) = path.strip_suffix(".$") {
        return positional(parse, array_path, value);
    }
    if path.contains(".$.") {
        return Err(error(
            31394,
            format!("positional projection may only be used at the end of a path: '{path}'"),
        ));
    }
    check_field_path(path)?;
    let node = match value {
        Value::Document(inner) => match inner.iter().next() {
            None => {
                return Err(error(
                    51270,
                    format!(
                        "An empty sub-projection is not a valid value. Found empty object at path \
                         {path}"
                    ),
                ));
            }
            Some((name, operand)) if name.starts_with('$') => {
                operator(parse, path, name, operand, value)?
            }
            Some(_) => {
                for (name, value) in inner.iter() {
                    field(parse, &format!("{path}.{name}"), value)?;
                }
                return Ok(());
            }
        },
        Value::Boolean(_) => flag(parse, path, value)?,
        _ if value.is_number() => flag(parse, path, value)?,
        _ => computed(parse, path, value)?,
    };
    insert(&mut parse.root, path, node)
}

/// A field that is included or excluded.
fn flag(parse: &mut Parse, path: &str, value: Value<'_>) -> Result<Node, QueryError> {
    let kind = if value.is_truthy() { Kind::Inclusion } else { Kind::Exclusion };
    if path == "_id" {
        parse.id = Some(kind); // `_id` can be named either way in both kinds.
    } else {
        decide(parse, path, kind)?;
    }
    Ok(if kind == Kind::Inclusion { Node::Include } else { Node::Exclude })
}

fn decide(parse: &mut Parse, path: &str, kind: Kind) -> Result<(), QueryError> {
    match (parse.kind, kind) {
        (Some(Kind::Exclusion), Kind::Inclusion) => Err(error(
            31253,
            format!("Cannot do inclusion on field {path} in exclusion projection"),
        )),
        (Some(Kind::Inclusion), Kind::Exclusion) => Err(error(
            31254,
            format!("Cannot do exclusion on field {path} in inclusion projection"),
        )),
        _ => {
            parse.kind = Some(kind);
            Ok(())
        }
    }
}

fn positional(parse: &mut Parse, path: &str, value: Value<'_>) -> Result<(), QueryError> {
    match value {
        Value::Document(_) => {
            let message = "positional projection cannot be used with an expression or sub object";
            return Err(error(31271, message));
        }
        Value::Boolean(_) => {}
        _ if value.is_number() => {}
        _ => {
            return Err(error(31308, "positional projection cannot be used with a literal"));
        }
    }
    check_field_path(path)?;
    if parse.positional.is_some() {
        let message = "Cannot specify more than one positional projection per query.";
        return Err(error(31276, message));
    }
    if parse.has_element_match {
        return Err(error(31256, "Cannot specify positional operator and $elemMatch."));
    }
    if !value.is_truthy() {
        return Err(error(
            31395,
            format!("positional projection cannot be used with exclusion: '{path}.$'"),
        ));
    }
    parse.positional = Some(path.to_owned());
    decide(parse, path, Kind::Inclusion)?;
    insert(&mut parse.root, path, Node::Positional)
}

/// Returns the operators that a projection may have besides inclusion, exclusion and expressions,
/// for the list of supported features.
pub(crate) fn features() -> impl Iterator<Item = Feature> {
    ["$", "$elemMatch", "$slice", "$meta"].into_iter().map(Feature::works)
}

fn operator(
    parse: &mut Parse,
    path: &str,
    name: &str,
    operand: Value<'_>,
    whole: Value<'_>,
) -> Result<Node, QueryError> {
    if whole.as_document().is_some_and(|operators| operators.iter().count() > 1) {
        // Only one can be heard, and none may be ignored: the parser of expressions refuses this.
        return computed(parse, path, whole);
    }
    match (name, operand) {
        ("$elemMatch", Value::Document(condition)) => {
            if parse.positional.is_some() {
                return Err(error(31255, "Cannot specify positional operator and $elemMatch."));
            }
            if path.contains('.') {
                let message =
                    format!("Cannot use $elemMatch projection on a nested field: '{path}'");
                return Err(error(31275, message));
            }
            parse.has_element_match = true;
            element_match(condition)
        }
        ("$elemMatch", _) => Err(error(
            31274,
            format!(
                "elemMatch: Invalid argument, object required, but got {}",
                operand.element_type().alias()
            ),
        )),
        // It goes with inclusion and exclusion alike, and decides for neither.
        ("$meta", _) => {
            let expression = Expression::parse_with(whole, &mut parse.expressions)?;
            Ok(Node::Computed(Box::new(Computed::Expression(expression))))
        }
        ("$slice", _) => match slice(operand)? {
            Some(slice) => {
                parse.has_slice = true;
                Ok(Node::Slice(slice))
            }
            None => computed(parse, path, whole),
        },
        _ if !expression::is_operator(name) => {
            Err(error(31325, format!("Unknown expression {name}")))
        }
        _ => computed(parse, path, whole),
    }
}

/// The filter `{"": {$elemMatch: condition}}`, which is asked for one element at a time.
fn element_match(condition: Document<'_>) -> Result<Node, QueryError> {
    let mut filter = DocumentBuilder::new();
    filter.begin_document("").append("$elemMatch", Value::Document(condition)).end();
    Ok(Node::ElementMatch(Filter::parse_inner(filter.build().view())?))
}

/// `$slice: n` or `$slice: [skip, limit]`; `None` if it is the expression of that name.
fn slice(operand: Value<'_>) -> Result<Option<Slice>, QueryError> {
    let array: Array<'_> = match operand {
        Value::Array(array) => array,
        _ => {
            let Some(count) = whole(operand) else {
                return Err(error(
                    28667,
                    format!(
                        "Invalid $slice syntax. The given syntax did not match the find() syntax \
                         because :: $slice: {} is no number",
                        text::value(operand)
                    ),
                ));
            };
            let slice = match count < 0 {
                true => Slice { skip: count, limit: None },
                false => Slice { skip: 0, limit: Some(count) },
            };
            return Ok(Some(slice));
        }
    };
    let operands: Vec<Value<'_>> = array.iter().collect();
    match operands.as_slice() {
        [skip, limit] if skip.is_number() => match (whole(*skip), whole(*limit)) {
            (Some(skip), Some(limit)) if limit > 0 => Ok(Some(Slice { skip, limit: Some(limit) })),
            _ => Err(error(
                28724,
                format!("$slice limit must be positive, found {}", text::value(*limit)),
            )),
        },
        _ => Ok(None),
    }
}

fn whole(value: Value<'_>) -> Option<i64> {
    crate::number::rounded(value)
}

/// A field whose value is computed. A value that is no document, no array and no `"$path"` is a
/// literal.
fn computed(parse: &mut Parse, path: &str, value: Value<'_>) -> Result<Node, QueryError> {
    if parse.kind == Some(Kind::Exclusion) {
        let is_operator = matches!(value, Value::Document(_));
        return Err(error(
            if is_operator { 31252 } else { 31310 },
            format!(
                "Cannot use an expression {} in an exclusion projection",
                text::field(path, value)
            ),
        ));
    }
    parse.kind = Some(Kind::Inclusion);
    let computed = match value {
        Value::Document(_) | Value::Array(_) => {
            Computed::Expression(Expression::parse_with(value, &mut parse.expressions)?)
        }
        Value::String(text) if text.starts_with('$') => {
            Computed::Expression(Expression::parse_with(value, &mut parse.expressions)?)
        }
        _ => Computed::Literal(value.to_buf()),
    };
    Ok(Node::Computed(Box::new(computed)))
}

/// Puts a node at the end of a path.
fn insert(root: &mut Tree, path: &str, node: Node) -> Result<(), QueryError> {
    let mut tree = root;
    let mut rest = path;
    loop {
        let (part, after) = match rest.split_once('.') {
            Some((part, after)) => (part, Some(after)),
            None => (rest, None),
        };
        let Some(after) = after else {
            return match tree.fields.entry(part, || node) {
                (_, true) => Ok(()),
                (_, false) => Err(error(31250, format!("Path collision at {path}"))),
            };
        };
        tree = match tree.fields.entry(part, || Node::Inner(Tree::default())).0 {
            Node::Inner(inner) => inner,
            _ => {
                let message = format!("Path collision at {path} remaining portion {after}");
                return Err(error(31249, message));
            }
        };
        rest = after;
    }
}
