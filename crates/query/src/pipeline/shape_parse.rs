//! From BSON to a [`Shape`].

use frond_doc::{Document, Value};

use super::parse::StageParser;
use super::shape::{Mode, Rule, Shape, Tree};
use crate::error::QueryError;
use crate::expression::{self, failure, parse_path};
use crate::outermost::OutermostNames;

/// Collects rules, and what kinds of them there are.
struct ShapeParser<'p> {
    stage: &'static str,
    parser: &'p mut StageParser,
    root: Tree,
    /// `$addFields`: numbers and booleans are values, not a choice.
    adds: bool,
    /// The first path that is included or computed, but for `_id`.
    included: Option<String>,
    /// The first path that is excluded, but for `_id`.
    excluded: Option<String>,
    /// Whether `_id` was included or excluded.
    id: Option<bool>,
    /// Whether a field shows what the search knows.
    has_metadata: bool,
}

/// Whether it is `{$meta: ...}`.
fn is_metadata(value: Value<'_>) -> bool {
    let names = value.as_document().map(|document| document.iter().map(|(name, _)| name));
    names.is_some_and(|names| names.eq(["$meta"]))
}

impl ShapeParser<'_> {
    fn invalid(&self, code: i32, message: String) -> QueryError {
        failure(code, format!("Invalid {} :: caused by :: {message}", self.stage))
    }

    /// Reads one field, whose value may be a document of more fields.
    fn field(&mut self, path: &str, value: Value<'_>) -> Result<(), QueryError> {
        if path.ends_with(".$") && !self.adds {
            let message = "Cannot use positional projection in aggregation projection";
            return Err(self.invalid(31324, message.to_owned()));
        }
        match value {
            Value::Document(document) => {
                let Some((first, _)) = document.iter().next() else {
                    let message = format!(
                        "An empty sub-projection is not a valid value. \
                         Found empty object at path {path}"
                    );
                    return Err(self.invalid(if self.adds { 40180 } else { 51270 }, message));
                };
                if first.starts_with('$') {
                    self.check_operator(first, document)?;
                    return self.compute(path, value);
                }
                for (name, value) in document.iter() {
                    if self.adds && name.contains('.') {
                        let message =
                            format!("cannot use dotted field name '{name}' in a sub object");
                        return Err(self.invalid(40183, message));
                    }
                    self.field(&format!("{path}.{name}"), value)?;
                }
                Ok(())
            }
            Value::Boolean(_)
            | Value::Int32(_)
            | Value::Int64(_)
            | Value::Double(_)
            | Value::Decimal128(_)
                if !self.adds =>
            {
                self.choice(path, value.is_truthy())
            }
            _ => self.compute(path, value),
        }
    }

    /// Refuses what is no expression, where the parser of expressions has another code for it.
    fn check_operator(&self, name: &str, operators: Document<'_>) -> Result<(), QueryError> {
        let count = operators.iter().count();
        if self.adds && count > 1 {
            let message = format!(
                "an expression specification must contain exactly one field, the name of the \
                 expression. Found {count} fields"
            );
            return Err(self.invalid(40182, message));
        }
        if !self.adds && count == 1 && !expression::is_operator(name) {
            return Err(self.invalid(31325, format!("Unknown expression {name}")));
        }
        Ok(())
    }

    fn compute(&mut self, path: &str, value: Value<'_>) -> Result<(), QueryError> {
        let parts = parse_path(path)?;
        if is_metadata(value) && !self.adds {
            // It goes with inclusion and exclusion alike.
            let expression = self.parser.expression(value)?;
            self.has_metadata = true;
            return self.add(path, &parts, Rule::Compute(expression));
        }
        if !self.adds && self.excluded.is_some() && path != "_id" {
            let code = if matches!(value, Value::Document(_)) { 31252 } else { 31310 };
            let shown = crate::text::field(path, value);
            let message = format!("Cannot use an expression {shown} in an exclusion projection");
            return Err(self.invalid(code, message));
        }
        let expression = self.parser.expression(value)?;
        self.note(path, true)?;
        self.add(path, &parts, Rule::Compute(expression))
    }

    fn choice(&mut self, path: &str, is_included: bool) -> Result<(), QueryError> {
        let parts = parse_path(path)?;
        if path == "_id" {
            self.id = Some(is_included);
        } else {
            self.note(path, is_included)?;
        }
        self.add(path, &parts, if is_included { Rule::Include } else { Rule::Exclude })
    }

    /// Refuses to include some fields and exclude others.
    fn note(&mut self, path: &str, is_included: bool) -> Result<(), QueryError> {
        if path == "_id" {
            self.id = Some(true);
            return Ok(());
        }
        let own = if is_included { &mut self.included } else { &mut self.excluded };
        own.get_or_insert_with(|| path.to_owned());
        match (&self.included, &self.excluded) {
            (Some(_), Some(_)) if is_included => Err(self.invalid(
                31253,
                format!("Cannot do inclusion on field {path} in exclusion projection"),
            )),
            (Some(_), Some(_)) => Err(self.invalid(
                31254,
                format!("Cannot do exclusion on field {path} in inclusion projection"),
            )),
            _ => Ok(()),
        }
    }

    fn add(&mut self, path: &str, parts: &[String], rule: Rule) -> Result<(), QueryError> {
        let (stage, adds) = (self.stage, self.adds);
        let collision = |code| {
            let message = format!("Invalid {stage} :: caused by :: Path collision at {path}");
            failure(if adds { 40176 } else { code }, message)
        };
        let computes = matches!(rule, Rule::Compute(_));
        let Some((last, before)) = parts.split_last() else { return Err(collision(31250)) };
        let mut tree = &mut self.root;
        for part in before {
            if computes {
                tree.mark_computing();
            }
            tree = match tree.entry(part, || Rule::Nested(Tree::default())).0 {
                Rule::Nested(inner) => inner,
                _ => return Err(collision(31249)),
            };
        }
        if computes {
            tree.mark_computing();
        }
        let (_, is_new) = tree.entry(last, || rule);
        if is_new { Ok(()) } else { Err(collision(31250)) }
    }

    fn mode(&self) -> Mode {
        if self.adds {
            return Mode::Add;
        }
        let is_inclusion = match (&self.included, &self.excluded) {
            (Some(_), _) => true,
            (None, Some(_)) => false,
            // Alone it includes; a find shows all other fields beside it.
            (None, None) => self.has_metadata || self.id == Some(true),
        };
        if is_inclusion { Mode::Include } else { Mode::Exclude }
    }
}

/// Parses what `$project` (or, with `adds`, `$addFields`) is given.
pub(super) fn parse(
    stage: &'static str,
    specification: Document<'_>,
    adds: bool,
    parser: &mut StageParser,
) -> Result<Shape, QueryError> {
    let mut shape = ShapeParser {
        stage,
        parser,
        root: Tree::default(),
        adds,
        included: None,
        excluded: None,
        id: None,
        has_metadata: false,
    };
    if specification.is_empty() && !adds {
        let message = "projection specification must have at least one field";
        return Err(shape.invalid(51272, message.to_owned()));
    }
    // The names and paths noted so far belong to other stages.
    shape.parser.expressions.take_names();
    shape.parser.expressions.take_paths();
    for (name, value) in specification.iter() {
        shape.field(name, value)?;
    }
    let mode = shape.mode();
    if mode == Mode::Include {
        shape.root.entry("_id", || Rule::Include); // Unless something was said of it.
    }
    let names = shape.parser.expressions.take_names();
    let paths = shape.parser.expressions.take_paths().filter(|_| mode == Mode::Include);
    let outermost = paths.map(|paths| {
        let read = paths.iter().map(String::as_str);
        OutermostNames::of(shape.root.kept_names().chain(read))
    });
    Ok(Shape { mode, root: shape.root, names, outermost })
}

/// The shape that drops some paths.
pub(super) fn without(paths: &[&str], parser: &mut StageParser) -> Result<Shape, QueryError> {
    let mut builder = frond_doc::DocumentBuilder::new();
    for path in paths {
        parse_path(path)?; // A name in BSON can't hold a NUL, a string can.
        builder.append(path, Value::Boolean(false));
    }
    parse("$unset", builder.build().view(), false, parser)
}
