//! `$graphLookup`: what can be reached from a document through another collection's documents.
//!
//! Breadth first: each round asks for all documents whose `connectToField` is one of the values
//! that the last round found, so many in one query, so that an index is asked once a value. A
//! document is visited once, whatever the paths to it, which ends cycles. The results are in the
//! order of their discovery.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use frond_doc::path::Path;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, ValueBuf, key};
use frond_store::budget::Reservation;

use super::Documents;
use super::division::Division;
use super::parse::{StageParser, failed_to_parse, one};
use super::set_path::{add_on_way, set_path};
use super::stage::{Cardinality, Context, Stage};
use crate::code::Code;
use crate::collation::Collation;
use crate::error::QueryError;
use crate::expression::{Elements, Expression, Scope, check_depth, failure, parse_path};
use crate::filter::{Filter, near_not_allowed};
use crate::large::{Depth, NeededPaths};
use crate::memory::bytes_of;

/// `$graphLookup`
#[derive(Debug)]
struct GraphLookup {
    collection: String,
    start: Expression,
    from: Path,
    to: String,
    target: Vec<String>,
    depth_max: Option<u64>,
    depth_path: Option<Vec<String>>,
    restriction: Option<DocumentBuf>,
}

/// Values to look for, each once.
type Frontier = BTreeMap<Bytes, ValueBuf>;

/// The memory of a value in a filter and in the bounds that are made of it.
const QUERY_BYTES: usize = 512;
/// The part of the stage's memory that values may take which are looked for at once.
const QUERY_SHARE: usize = 16;
/// The memory of a value in a set, besides its bytes.
const ENTRY_BYTES: usize = 192;

/// The documents that a search has seen, with their memory reserved.
struct Search<'c> {
    by: &'c Collation,
    /// The values that the last round found.
    frontier: Frontier,
    /// The values that were looked for.
    searched: HashSet<Bytes>,
    /// The documents that were found, by their `_id`.
    visited: HashSet<Bytes>,
    /// The memory of all of these.
    bytes: usize,
    reservation: Reservation,
    failed: Option<QueryError>,
}

impl<'c> Search<'c> {
    fn new(context: &'c Context) -> Search<'c> {
        Search {
            by: context.variables.collation(),
            frontier: Frontier::new(),
            searched: HashSet::new(),
            visited: HashSet::new(),
            bytes: 0,
            reservation: context.resources.reservation(),
            failed: None,
        }
    }

    fn hold(&mut self, bytes: usize) -> Result<(), QueryError> {
        self.bytes += bytes;
        let allowed = self.reservation.hold(self.bytes);
        allowed.map_err(|_| failure(40099, "$graphLookup reached maximum memory consumption"))
    }

    /// Adds a value to look for; whether that failed.
    fn add(&mut self, value: Value<'_>) -> bool {
        let value = if value == Value::Undefined { Value::Null } else { value };
        let key = self.by.key_of(value);
        if self.searched.contains(&key) || self.frontier.contains_key(&key) {
            return false;
        }
        self.failed = self.hold(ENTRY_BYTES + key.len() + bytes_of(value)).err();
        self.frontier.insert(key, value.to_buf());
        self.failed.is_some()
    }

    /// Adds a value, or the elements of an array; whether that failed.
    fn add_all(&mut self, value: Option<Value<'_>>) -> bool {
        match value {
            Some(Value::Array(array)) => array.iter().any(|value| self.add(value)),
            Some(value) => self.add(value),
            None => false,
        }
    }

    /// Whether the document of this `_id` wasn't found before.
    fn visit(&mut self, id: Bytes) -> Result<bool, QueryError> {
        if self.visited.contains(&id) {
            return Ok(false);
        }
        self.hold(ENTRY_BYTES + id.len())?;
        self.visited.insert(id);
        Ok(true)
    }

    fn check(&mut self) -> Result<(), QueryError> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

impl Stage for GraphLookup {
    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        let context = Context { wanted: None, ..context.clone() };
        Ok(Box::new(input.map(move |document| self.apply(&document?, &context))))
    }

    fn division(self: Arc<Self>) -> Division {
        Division::Each
    }

    fn keeps(&self, path: &str) -> bool {
        path.split('.').next() != self.target.first().map(String::as_str)
    }

    fn needed_paths(&self) -> NeededPaths {
        let mut needed = NeededPaths::default();
        add_on_way(&mut needed, self.target.iter().map(String::as_str));
        needed
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Same
    }
}

impl GraphLookup {
    fn apply(&self, document: &DocumentBuf, context: &Context) -> Result<DocumentBuf, QueryError> {
        let scope = Scope::new(document.view(), &context.variables);
        let mut search = Search::new(context);
        search.add_all(Some(self.start.evaluate_in(&scope)?.or_null()));
        search.check()?;
        let mut found = Elements::new(context.variables.memory());
        let memory_bytes_max = context.resources.memory_bytes_max;
        let count_max = (memory_bytes_max / QUERY_SHARE / QUERY_BYTES).max(64);
        let mut depth: u64 = 0;
        while !search.frontier.is_empty() && self.depth_max.is_none_or(|most| depth <= most) {
            let round = std::mem::take(&mut search.frontier);
            search.searched.extend(round.keys().cloned());
            let mut round = round.into_iter().peekable();
            while round.peek().is_some() {
                let batch: Frontier = round.by_ref().take(count_max).collect();
                self.find_next(&batch, depth, context, &mut search, &mut found)?;
                let values = batch.values().map(|value| bytes_of(value.as_value()));
                search.bytes -= values.sum::<usize>();
            }
            depth += 1;
        }
        drop(search);
        let found = found.finish()?;
        let bytes = document.as_bytes().len() + found.bytes();
        let _charge = context.variables.memory().charge_of(bytes)?;
        let made = set_path(document.view(), &self.target, Some(found.or_null()));
        check_depth(Value::Document(made.view()), 1)?;
        Ok(made)
    }

    /// Looks for a batch of values.
    fn find_next(
        &self,
        batch: &Frontier,
        depth: u64,
        context: &Context,
        search: &mut Search<'_>,
        found: &mut Elements,
    ) -> Result<(), QueryError> {
        context.resources.check()?;
        let filter = self.filter(batch)?.with_variables(context.variables.clone());
        let mut needed = NeededPaths::default();
        needed.add("_id", Depth::Whole);
        needed.add(&self.from.parts().join("."), Depth::Whole);
        let depth_path = self.depth_path.iter().flatten();
        add_on_way(&mut needed, depth_path.map(String::as_str));
        for foreign in context.find(None, &self.collection, &filter, needed)? {
            let foreign = foreign?;
            let id = foreign.get("_id").map_or_else(Bytes::new, key::of_value);
            if !search.visit(id)? {
                continue;
            }
            self.from.visit(foreign.view(), &mut |value| search.add_all(value));
            search.check()?;
            let shown = match &self.depth_path {
                Some(path) => {
                    let depth = Value::Int64(i64::try_from(depth).unwrap_or(i64::MAX));
                    set_path(foreign.view(), path, Some(depth))
                }
                None => foreign,
            };
            found.push(Value::Document(shown.view()))?;
        }
        Ok(())
    }

    /// `{$and: [{to: {$in: values}}, restriction]}`; patterns are compared, not matched.
    fn filter(&self, frontier: &Frontier) -> Result<Filter, QueryError> {
        let is_pattern = |value: &&ValueBuf| matches!(value.as_value(), Value::Regex(_));
        let patterns: Vec<&ValueBuf> = frontier.values().filter(is_pattern).collect();
        let mut builder = DocumentBuilder::new();
        builder.begin_array("$and").push_begin_document();
        // A plain `$in` can be asked of an index, a `$or` can't.
        if !patterns.is_empty() {
            builder.begin_array("$or");
            for pattern in &patterns {
                builder.push_begin_document().begin_document(&self.to);
                builder.append("$eq", pattern.as_value()).end().end();
            }
            builder.push_begin_document();
        }
        builder.begin_document(&self.to).begin_array("$in");
        for value in frontier.values().filter(|value| !is_pattern(value)) {
            builder.push(value.as_value());
        }
        builder.end().end();
        if !patterns.is_empty() {
            builder.end().end();
        }
        builder.end();
        if let Some(restriction) = &self.restriction {
            builder.push(Value::Document(restriction.view()));
        }
        builder.end();
        Filter::parse_with_functions(builder.build().view())
    }
}

/// The options of the stage.
#[derive(Default)]
struct Options<'v> {
    collection: Option<&'v str>,
    start: Option<Value<'v>>,
    from: Option<&'v str>,
    to: Option<&'v str>,
    target: Option<&'v str>,
    depth_max: Option<u64>,
    depth_path: Option<&'v str>,
    restriction: Option<Document<'v>>,
}

fn depth_max(value: Value<'_>) -> Result<u64, QueryError> {
    if !value.is_number() {
        let found = value.element_type().alias();
        let message = format!("maxDepth requires numeric argument, found type: {found}");
        return Err(failure(40100, message));
    }
    let whole = value.as_integer().ok_or_else(|| {
        let shown = crate::text::value(value);
        failure(40102, format!("maxDepth must be representable as a long, found: {shown}"))
    })?;
    u64::try_from(whole).map_err(|_| {
        failure(40101, format!("maxDepth requires a nonnegative argument, found: {whole}"))
    })
}

fn options(specification: Document<'_>) -> Result<Options<'_>, QueryError> {
    let mut options = Options::default();
    for (name, value) in specification.iter() {
        match (name, value) {
            ("startWith", value) => options.start = Some(value),
            ("maxDepth", value) => options.depth_max = Some(depth_max(value)?),
            ("restrictSearchWithMatch", Value::Document(filter)) => {
                options.restriction = Some(filter);
            }
            ("restrictSearchWithMatch", other) => {
                let found = other.element_type().alias();
                let message = format!("restrictSearchWithMatch must be an object, found {found}");
                return Err(failure(40185, message));
            }
            ("from", Value::String("")) => {
                let message = "invalid $graphLookup namespace: the collection's name is empty";
                return Err(QueryError::new(Code::InvalidNamespace, message));
            }
            ("from", Value::String(collection)) => options.collection = Some(collection),
            ("from", other) => {
                let found = other.element_type().alias();
                return Err(failed_to_parse(format!(
                    "$graphLookup 'from' field must be a string, but found {found}"
                )));
            }
            ("as" | "connectFromField" | "connectToField" | "depthField", value) => {
                let Value::String(text) = value else {
                    let found = value.element_type().alias();
                    let message = format!("expected string as argument for {name}, found: {found}");
                    return Err(failure(40103, message));
                };
                match name {
                    "as" => options.target = Some(text),
                    "connectFromField" => options.from = Some(text),
                    "connectToField" => options.to = Some(text),
                    _ => options.depth_path = Some(text),
                }
            }
            _ => {
                let message = format!("Unknown argument to $graphLookup: {name}");
                return Err(failure(40104, message));
            }
        }
    }
    Ok(options)
}

pub(super) fn parse(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let Value::Document(specification) = argument else {
        let found = argument.element_type().alias();
        let message =
            format!("the $graphLookup stage specification must be an object, but found {found}");
        return Err(failed_to_parse(message));
    };
    let options = options(specification)?;
    let (Some(collection), Some(start), Some(from), Some(to), Some(target)) =
        (options.collection, options.start, options.from, options.to, options.target)
    else {
        let message = "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and \
                       'connectToField' to be specified.";
        return Err(failure(40105, message));
    };
    if let Some(restriction) = options.restriction {
        let restriction = Filter::parse_with_functions(restriction)?;
        if restriction.near().is_some() {
            return Err(near_not_allowed());
        }
    }
    parse_path(from)?;
    parse_path(to)?;
    one(GraphLookup {
        collection: collection.to_owned(),
        start: parser.expression(start)?,
        from: Path::new(from),
        to: to.to_owned(),
        target: parse_path(target)?,
        depth_max: options.depth_max,
        depth_path: options.depth_path.map(parse_path).transpose()?,
        restriction: options.restriction.map(|restriction| restriction.to_buf()),
    })
}
