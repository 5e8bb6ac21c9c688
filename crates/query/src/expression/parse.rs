//! From BSON to [`Node`]s.
//!
//! The parser keeps the names that operators around the place bind, so that it can tell which
//! variables must come from outside: a pipeline checks those before it runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use frond_doc::document::DEPTH_MAX;
use frond_doc::field_scan::ScannedNames;
use frond_doc::{Document, Value};

use super::constants::{self, Constant, Guard, NotedConstant};
use super::node::{Look, Many, ManyIn, Node, One, OneIn, Two, TwoCollated, TwoIn};
use super::{Expression, failure, path};
use crate::code::Code;
use crate::error::QueryError;
use crate::feature::{Feature, SupportLevel};
use crate::metadata::{Metadata, MetadataKind};

/// Parses the argument of the operator that is named.
pub(super) type Parse = fn(&str, Value<'_>, &mut Parser) -> Result<Node, QueryError>;

/// The arguments that an operator takes, and its function.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    One(One),
    Two(Two),
    /// At least, at most, and the function.
    Many(usize, usize, Many),
    /// As `Two`, of what compares strings.
    TwoCollated(TwoCollated),
    /// As `One`, of what makes more than a number.
    OneIn(OneIn),
    /// As `Two`, of what makes more than a number.
    TwoIn(TwoIn),
    /// As `Many`, of what makes more than a number.
    ManyIn(usize, usize, ManyIn),
    /// By rules of its own.
    Special(Parse),
}

/// One operator.
#[derive(Clone, Copy)]
pub(super) struct Operator {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
}

/// Finds an operator by its name, and how much of its arguments it looks at if it hands on what it
/// is given.
pub(super) type Find = fn(&str) -> Option<(&'static Operator, Option<Look>)>;

/// Parses expressions, and notes what they need.
#[derive(Debug)]
pub(crate) struct Parser {
    /// The table of all operators: handed in, since their own parsers get this one.
    find: Find,
    /// Names bound by the operators around the current place.
    bound: Vec<String>,
    /// Variables that must come from outside.
    free: BTreeSet<String>,
    /// Whether a field of the document is read.
    reads_document: bool,
    /// The paths of the fields that are read.
    paths: Vec<String>,
    /// Whether the document is read as a whole.
    reads_whole: bool,
    /// The first parts of fields' paths, numbered.
    names: ScannedNames,
    depth: usize,
    /// The metadata of the search that is read.
    metadata: Metadata,
    /// Whether a client's script is run.
    runs_scripts: bool,
    /// Whether one is run otherwise than by an expression: by a filter, or to accumulate.
    runs_other_scripts: bool,
    /// The constant parts that were found.
    constants: Vec<NotedConstant>,
    /// The guards around the current place.
    guards: Vec<Guard>,
    /// The mark of what the current operator has read so far: [`DOCUMENT`] if it reads the
    /// document, else one more than the place of the outermost name in `bound` that it reads;
    /// [`NOTHING`] if none.
    reads: usize,
}

/// The mark that a document is read.
const DOCUMENT: usize = 0;
/// The mark that nothing is read that differs between documents.
const NOTHING: usize = usize::MAX;

/// The variables that need no binding, for the list of what works.
pub(crate) fn variable_features() -> impl Iterator<Item = Feature> {
    let works = ["$$CLUSTER_TIME", "$$CURRENT", "$$DESCEND", "$$KEEP", "$$NOW", "$$PRUNE"];
    let more = ["$$REMOVE", "$$ROOT", "$$USER_ROLES"];
    let works = works.into_iter().chain(more).map(Feature::works);
    works.chain([Feature::new("$$SEARCH_META", SupportLevel::Elsewhere("51144"))])
}

impl Parser {
    /// A parser that knows the operators that `find` finds.
    pub(super) fn new(find: Find) -> Parser {
        Parser {
            find,
            bound: Vec::new(),
            free: BTreeSet::new(),
            reads_document: false,
            paths: Vec::new(),
            reads_whole: false,
            names: ScannedNames::default(),
            depth: 0,
            metadata: Metadata::default(),
            runs_scripts: false,
            runs_other_scripts: false,
            constants: Vec::new(),
            guards: Vec::new(),
            reads: NOTHING,
        }
    }

    /// Another parser of the same operators, for an expression that stands by itself.
    pub(crate) fn another(&self) -> Parser {
        Parser::new(self.find)
    }

    /// The variables that must come from outside.
    pub(crate) fn free(&self) -> &BTreeSet<String> {
        &self.free
    }

    /// Notes a variable that must come from outside.
    pub(crate) fn add_free(&mut self, name: &str) {
        if !self.bound.iter().any(|bound| bound == name) {
            self.free.insert(name.to_owned());
        }
    }

    /// Notes that a kind of metadata is read.
    pub(crate) fn note_metadata(&mut self, kind: MetadataKind) {
        self.reads_document = true;
        // No index has it, so that a planner that asks what is needed gets whole documents.
        self.paths.push(kind.field().to_owned());
        self.metadata.insert(kind);
    }

    /// Returns the metadata of the search that is read.
    pub(crate) fn metadata(&self) -> Metadata {
        self.metadata
    }

    /// Notes what a pipeline within reads of the search whose documents it gets.
    pub(crate) fn add_metadata(&mut self, metadata: Metadata) {
        self.metadata = self.metadata.union(metadata);
    }

    /// Notes that a client's script is run.
    pub(super) fn note_script(&mut self) {
        self.runs_scripts = true;
    }

    /// Whether a client's script is run.
    pub(crate) fn runs_scripts(&self) -> bool {
        self.runs_scripts
    }

    /// Returns the constant parts, in the order in which MongoDB evaluates them.
    pub(crate) fn constants(&self) -> &[NotedConstant] {
        &self.constants
    }

    /// Notes what a filter has of constants and scripts, or a pipeline within that gets the same
    /// documents.
    pub(crate) fn note_parsed(&mut self, constants: &[NotedConstant], runs_scripts: bool) {
        self.constants.extend_from_slice(constants);
        self.runs_other_scripts |= runs_scripts;
    }

    /// Notes that a client's script is run otherwise than by an expression.
    pub(crate) fn note_other_script(&mut self) {
        self.runs_other_scripts = true;
    }

    /// Whether a client's script is run, by an expression or otherwise.
    pub(crate) fn runs_any_scripts(&self) -> bool {
        self.runs_scripts || self.runs_other_scripts
    }

    /// Returns how many guards the current place stands behind.
    pub(super) fn guard_count(&self) -> usize {
        self.guards.len()
    }

    /// Has what follows stand behind a guard as well.
    pub(super) fn guard(&mut self, guard: Guard) {
        self.guards.push(guard);
    }

    /// Takes away the guards behind the first `count`.
    pub(super) fn unguard(&mut self, count: usize) {
        self.guards.truncate(count);
    }

    /// Notes that a name is read, which one of the operators around may have bound.
    fn note_variable(&mut self, name: &str) {
        let bound = self.bound.iter().rposition(|bound| bound == name);
        let place = match (bound, name) {
            (Some(place), _) => place + 1,
            (None, "ROOT" | "CURRENT" | "DESCEND" | "KEEP" | "PRUNE") => DOCUMENT,
            (None, _) => NOTHING,
        };
        self.reads = self.reads.min(place);
    }

    /// Parses an expression; returns whether it reads the document.
    pub(crate) fn parse_noting_reads(
        &mut self,
        value: Value<'_>,
    ) -> Result<(Expression, bool), QueryError> {
        let before = std::mem::take(&mut self.reads_document);
        let parsed = Expression::parse_with(value, self);
        let reads_document = std::mem::replace(&mut self.reads_document, before);
        self.reads_document |= reads_document;
        Ok((parsed?, reads_document))
    }

    /// Whether an expression reads the document.
    pub(crate) fn reads_document(&self) -> bool {
        self.reads_document
    }

    /// Notes that the document is read as a whole.
    pub(crate) fn note_whole(&mut self) {
        (self.reads_document, self.reads_whole) = (true, true);
    }

    /// The paths that were noted since the last call; `None` if documents are read as a whole.
    pub(crate) fn take_paths(&mut self) -> Option<Vec<String>> {
        let paths = std::mem::take(&mut self.paths);
        let reads_whole = std::mem::take(&mut self.reads_whole);
        (!reads_whole).then_some(paths)
    }

    /// The names that were noted since the last call: those of one stage's expressions.
    pub(crate) fn take_names(&mut self) -> ScannedNames {
        std::mem::take(&mut self.names)
    }

    /// Parses a part of the expression within which `names` are bound.
    pub(crate) fn with_bound<T>(
        &mut self,
        names: &[String],
        parse: impl FnOnce(&mut Parser) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        let before = self.bound.len();
        self.bound.extend_from_slice(names);
        let parsed = parse(self);
        self.bound.truncate(before);
        parsed
    }

    /// Parses any value as an expression.
    pub(crate) fn expression(&mut self, value: Value<'_>) -> Result<Node, QueryError> {
        // Documents that came in are bounded already; this holds for those that were made, too.
        if self.depth > DEPTH_MAX {
            let message = format!("expression is nested deeper than {DEPTH_MAX} levels");
            return Err(QueryError::new(Code::Overflow, message));
        }
        self.depth += 1;
        let node = match value {
            Value::String(text) => match text.strip_prefix('$') {
                Some(path) => self.path(path),
                None => Ok(Node::of_constant(value)),
            },
            Value::Array(array) => array
                .iter()
                .map(|element| self.expression(element))
                .collect::<Result<_, _>>()
                .map(Node::Array),
            Value::Document(document) => self.document(document),
            _ => Ok(Node::of_constant(value)),
        };
        self.depth -= 1;
        node
    }

    /// Parses what follows a first dollar: `a.b` or `$variable.a.b`.
    fn path(&mut self, text: &str) -> Result<Node, QueryError> {
        let Some(variable) = text.strip_prefix('$') else {
            if text.is_empty() {
                return Err(failure(16872, "'$' by itself is not a valid FieldPath"));
            }
            self.reads_document = true;
            self.paths.push(text.to_owned());
            let parts = path::parse(text)?;
            self.note_variable("CURRENT");
            // A path without a variable is in CURRENT, which the user may have bound.
            return Ok(if self.bound.iter().any(|name| name == "CURRENT") {
                Node::Variable("CURRENT".to_owned(), parts)
            } else {
                let number = self.names.add(&parts[0]);
                Node::Field(parts, number)
            });
        };
        if variable.is_empty() {
            let message = "empty variable names are not allowed";
            return Err(QueryError::new(Code::FailedToParse, message));
        }
        let (name, rest) = match variable.split_once('.') {
            Some((_, "")) => {
                return Err(failure(40353, "FieldPath must not end with a '.'."));
            }
            Some((name, rest)) => (name, path::parse(rest)?),
            None => (variable, Vec::new()),
        };
        match name {
            "ROOT" | "CURRENT" => self.note_whole(),
            "NOW" | "REMOVE" | "CLUSTER_TIME" | "USER_ROLES" => {}
            // Only `$redact` binds these.
            "DESCEND" | "KEEP" | "PRUNE" => self.add_free(name),
            "JS_SCOPE" | "IS_MR" | "SEARCH_META" => {
                let message = format!("Builtin variable '$${name}' is not available");
                return Err(failure(51144, message));
            }
            _ => {
                if name.starts_with(|letter: char| letter.is_ascii_uppercase()) {
                    return Err(super::scope::undefined(name));
                }
                self.add_free(name);
            }
        }
        self.note_variable(name);
        Ok(Node::Variable(name.to_owned(), rest))
    }

    /// Parses a document: an operator with its argument, or fields that are expressions.
    fn document(&mut self, document: Document<'_>) -> Result<Node, QueryError> {
        let mut fields = document.iter();
        let Some((first, argument)) = fields.next() else {
            return Ok(Node::of_constant(Value::Document(document)));
        };
        if first.starts_with('$') {
            if fields.next().is_some() {
                let message = format!(
                    "an object representing an expression must have exactly one field: {}",
                    crate::text::value(Value::Document(document))
                );
                return Err(failure(15983, message));
            }
            return self.operator(first, argument);
        }
        let (mut parsed, mut names) = (Vec::new(), BTreeSet::new());
        for (name, value) in document.iter() {
            if name.contains('.') {
                let message = "FieldPath field names may not contain '.'. \
                               Consider using $getField or $setField.";
                return Err(failure(16412, message));
            }
            path::check_name(name)?;
            if !names.insert(name) {
                let message = "duplicate field name specified in object literal";
                return Err(failure(16406, format!("{message}: {name}")));
            }
            parsed.push((name.to_owned(), self.expression(value)?));
        }
        Ok(Node::Document(parsed))
    }

    fn operator(&mut self, name: &str, argument: Value<'_>) -> Result<Node, QueryError> {
        let Some((operator, look)) = (self.find)(name) else {
            let message = format!("Unrecognized expression '{name}'");
            return Err(QueryError::new(Code::InvalidPipelineOperator, message));
        };
        let around = std::mem::replace(&mut self.reads, NOTHING);
        let node = self.shaped(operator, argument)?;
        let node = match look {
            Some(look) => node.carrying(look),
            None => node,
        };
        if constants::is_never(name) {
            self.reads = DOCUMENT;
        }
        // A variable that the operator itself binds to a constant is constant.
        let is_constant = self.bound.len() < self.reads;
        self.reads = if is_constant { around } else { around.min(self.reads) };
        Ok(if is_constant { self.note_constant(node) } else { node })
    }

    /// Notes an operator that gives the same for all documents.
    fn note_constant(&mut self, node: Node) -> Node {
        if matches!(node, Node::Constant(_) | Node::Computed(_)) {
            return node;
        }
        let constant = Constant::new(node);
        self.constants.push(NotedConstant::new(Arc::clone(&constant), self.guards.clone()));
        Node::Computed(constant)
    }

    /// A list of arguments, in which constants that stand together are noted as one.
    fn gathered(
        &mut self,
        operator: &str,
        arguments: Vec<Node>,
        make: impl Fn(Vec<Node>) -> Node,
    ) -> Node {
        let together = |constants| self.note_constant(make(constants));
        make(constants::gathered(operator, arguments, together))
    }

    fn shaped(&mut self, operator: &Operator, argument: Value<'_>) -> Result<Node, QueryError> {
        match operator.shape {
            Shape::One(function) => {
                let [node] = self.exactly(operator.name, argument)?;
                Ok(Node::One(function, Box::new(node)))
            }
            Shape::Two(function) => {
                let [first, second] = self.exactly(operator.name, argument)?;
                Ok(Node::Two(function, Box::new((first, second))))
            }
            Shape::Many(least, most, function) => {
                let nodes = self.arguments(argument)?;
                check_count(operator.name, nodes.len(), least, most)?;
                Ok(self.gathered(operator.name, nodes, |nodes| Node::Many(function, nodes)))
            }
            Shape::TwoCollated(function) => {
                let [first, second] = self.exactly(operator.name, argument)?;
                Ok(Node::TwoCollated(function, Box::new((first, second))))
            }
            Shape::OneIn(function) => {
                let [node] = self.exactly(operator.name, argument)?;
                Ok(Node::OneIn(function, Box::new(node)))
            }
            Shape::TwoIn(function) => {
                let [first, second] = self.exactly(operator.name, argument)?;
                Ok(Node::TwoIn(function, Box::new((first, second))))
            }
            Shape::ManyIn(least, most, function) => {
                let nodes = self.arguments(argument)?;
                check_count(operator.name, nodes.len(), least, most)?;
                Ok(self.gathered(operator.name, nodes, |nodes| Node::ManyIn(function, nodes)))
            }
            Shape::Special(parse) => parse(operator.name, argument, self),
        }
    }

    /// Parses positional arguments: an array of them, or the only one.
    pub(crate) fn arguments(&mut self, argument: Value<'_>) -> Result<Vec<Node>, QueryError> {
        match argument {
            Value::Array(array) => array.iter().map(|element| self.expression(element)).collect(),
            only => Ok(vec![self.expression(only)?]),
        }
    }

    /// Parses exactly `COUNT` positional arguments.
    pub(crate) fn exactly<const COUNT: usize>(
        &mut self,
        operator: &str,
        argument: Value<'_>,
    ) -> Result<[Node; COUNT], QueryError> {
        <[Node; COUNT]>::try_from(self.arguments(argument)?)
            .map_err(|nodes| wrong_count(operator, COUNT, nodes.len()))
    }

    /// Parses an argument that may be absent.
    pub(crate) fn optional(
        &mut self,
        argument: Option<Value<'_>>,
    ) -> Result<Option<Node>, QueryError> {
        argument.map(|value| self.expression(value)).transpose()
    }
}

fn wrong_count(operator: &str, wanted: usize, count: usize) -> QueryError {
    let plural = if wanted == 1 { "" } else { "s" };
    let message = format!(
        "Expression {operator} takes exactly {wanted} argument{plural}. {count} were passed in."
    );
    failure(16020, message)
}

/// Checks how many positional arguments there are.
pub(super) fn check_count(
    operator: &str,
    count: usize,
    least: usize,
    most: usize,
) -> Result<(), QueryError> {
    if (least..=most).contains(&count) {
        return Ok(());
    }
    if least == most {
        return Err(wrong_count(operator, least, count));
    }
    let message = if most == usize::MAX {
        format!(
            "Expression {operator} takes at least {least} arguments, but {count} were passed in."
        )
    } else {
        format!(
            "Expression {operator} takes at least {least} arguments, and at most {most}, \
             but {count} were passed in."
        )
    };
    Err(failure(28667, message))
}

/// Whether an argument is a document of named arguments, and no expression.
pub(crate) fn has_names(argument: Value<'_>) -> bool {
    let Value::Document(document) = argument else { return false };
    document.iter().next().is_none_or(|(name, _)| !name.starts_with('$'))
}

/// The arguments of an operator that takes them by name, in the order of `names`. `codes` are those
/// for an argument that is no document, and for a name that the operator doesn't know.
pub(crate) fn named<'v, const COUNT: usize>(
    operator: &str,
    argument: Value<'v>,
    names: [&str; COUNT],
    codes: (Code, Code),
) -> Result<[Option<Value<'v>>; COUNT], QueryError> {
    let Value::Document(document) = argument else {
        let message = format!(
            "{operator} requires an object as an argument, found: {}",
            argument.element_type().alias()
        );
        return Err(QueryError::new(codes.0, message));
    };
    let mut found = [None; COUNT];
    for (name, value) in document.iter() {
        let Some(position) = names.iter().position(|known| *known == name) else {
            let message = format!("{operator} found an unknown argument: {name}");
            return Err(QueryError::new(codes.1, message));
        };
        found[position] = Some(value);
    }
    Ok(found)
}

/// An argument that must be there.
pub(crate) fn required<'v>(
    operator: &str,
    name: &str,
    value: Option<Value<'v>>,
    code: Code,
) -> Result<Value<'v>, QueryError> {
    value.ok_or_else(|| QueryError::new(code, format!("Missing '{name}' parameter to {operator}")))
}
