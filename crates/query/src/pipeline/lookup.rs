//! `$lookup`: documents of another collection, as an array in each document.
//!
//! By equality of a local and a foreign field, by a sub-pipeline with variables, or both. Equality
//! joins in batches: the local values of many documents are asked for at once, and what is found
//! is handed out by its keys, so that the other collection is read once a batch (or its index is
//! asked once a value), never once a document. Batches begin with one document and double, so that a
//! `$limit` after the stage costs little.
//!
//! *Surprises*: a missing or null local value, and an empty local array, join foreign documents
//! where the field is null or missing; a local array joins by each of its elements. A sub-pipeline
//! that has no variables is run once.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use frond_doc::path::Path;
use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value, ValueBuf};

use super::memory::Exceeded;
use super::parse::{StageParser, failed_to_parse, one};
use super::set_path::set_path;
use super::stage::{Context, Rows, Stage};
use super::{Documents, MEMORY_BYTES_MAX, Pipeline};
use crate::code::Code;
use crate::collation::Collation;
use crate::error::QueryError;
use crate::expression::{
    Elements, Evaluated, Expression, Scope, check_depth, check_name, failure, parse_path,
};
use crate::filter::Filter;

/// The largest batch of an equality join.
const BATCH_MAX: usize = 1024;

/// `$lookup`
#[derive(Debug)]
struct Lookup {
    database: Option<String>,
    /// None if the pipeline makes its own documents.
    collection: Option<String>,
    equality: Option<Equality>,
    variables: Vec<(String, Expression)>,
    pipeline: Option<Pipeline>,
    /// Where the array goes.
    target: Vec<String>,
    /// The array of a sub-pipeline that depends on no document.
    constant: bool,
}

/// Which fields must be equal.
#[derive(Debug)]
struct Equality {
    local: Path,
    foreign: Path,
    foreign_name: String,
    /// What null joins.
    null: Filter,
}

impl Stage for Lookup {
    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        let context = Context { wanted: None, ..context.clone() };
        if self.equality.is_some() {
            let mut run = BatchRun {
                stage: self,
                input,
                context,
                ready: VecDeque::new(),
                failed: None,
                batch: 1,
            };
            return Ok(Box::new(std::iter::from_fn(move || run.next())));
        }
        let constant = OnceLock::new();
        Ok(Box::new(input.map(move |document| {
            let document = document?;
            if !self.constant {
                let found = self.find(&document, &context)?;
                return self.join(&document, &found);
            }
            let found = match constant.get() {
                Some(found) => found,
                None => {
                    let found = self.find(&document, &context)?;
                    constant.get_or_init(|| found)
                }
            };
            self.join(&document, found)
        })))
    }

    fn rows(&self) -> Rows {
        Rows::Same
    }
}

/// Puts an array into a document.
fn joined(
    document: &DocumentBuf,
    target: &[String],
    array: Value<'_>,
) -> Result<DocumentBuf, QueryError> {
    let made = set_path(document.view(), target, Some(array));
    check_depth(Value::Document(made.view()), 1)?;
    Ok(made)
}

impl Lookup {
    fn join(
        &self,
        document: &DocumentBuf,
        found: &Evaluated<'_>,
    ) -> Result<DocumentBuf, QueryError> {
        joined(document, &self.target, found.or_null())
    }

    /// What the sub-pipeline gives for a document, over the whole collection.
    fn find(
        &self,
        document: &DocumentBuf,
        context: &Context,
    ) -> Result<Evaluated<'static>, QueryError> {
        let inner = self.inner(document, context)?;
        let mut pipeline = self.pipeline.clone();
        let (database, collection) = (self.database.as_deref(), self.collection.as_deref());
        let history = pipeline.as_mut().and_then(Pipeline::take_history);
        let documents: Documents<'static> = match (history, collection) {
            (Some(stage), _) => context.collections.history(database, collection, &stage)?,
            (None, Some(collection)) => {
                let filter = pipeline.as_mut().map_or_else(Filter::all, Pipeline::take_filter);
                let filter = filter.with_variables(inner.variables.clone());
                context.collections.find(database, collection, &filter)?
            }
            (None, None) => Box::new(std::iter::empty()),
        };
        collect(match pipeline {
            Some(pipeline) => pipeline.run_in(documents, &inner)?,
            None => documents,
        })
    }

    /// What the sub-pipeline sees: the variables bound to this document's values.
    fn inner(&self, document: &DocumentBuf, context: &Context) -> Result<Context, QueryError> {
        let scope = Scope::new(document.view(), &context.variables);
        let mut values = Vec::with_capacity(self.variables.len());
        for (name, expression) in &self.variables {
            values.push((name.clone(), expression.evaluate_in(&scope)?.into_buf()));
        }
        Ok(Context { variables: context.variables.with(values), ..context.clone() })
    }

    /// Joins a batch of documents by equality.
    fn batch(
        &self,
        equality: &Equality,
        documents: &[DocumentBuf],
        context: &Context,
        out: &mut VecDeque<DocumentBuf>,
    ) -> Result<(), QueryError> {
        let wanted = Wanted::new(equality, documents, context.variables.collation());
        let collection = self.collection.as_deref().unwrap_or_default();
        let filter = wanted.filter(equality)?;
        let mut found: Vec<Vec<DocumentBuf>> = vec![Vec::new(); documents.len()];
        let mut bytes = 0;
        let mut lease = context.resources.lease_of(MEMORY_BYTES_MAX);
        for foreign in context.collections.find(self.database.as_deref(), collection, &filter)? {
            let foreign = foreign?;
            for position in wanted.positions(equality, foreign.view()) {
                bytes += size_of::<DocumentBuf>() + foreign.as_bytes().len();
                found[position].push(foreign.clone());
            }
            if let Err(exceeded) = lease.hold(bytes) {
                drop((found, lease));
                return self.halves(equality, documents, context, out, exceeded);
            }
        }
        for (document, found) in documents.iter().zip(found) {
            let found: Documents<'_> = Box::new(found.into_iter().map(Ok));
            let found = match &self.pipeline {
                None => collect(found)?,
                Some(pipeline) => {
                    let inner = self.inner(document, context)?;
                    collect(pipeline.clone().run_in(found, &inner)?)?
                }
            };
            out.push_back(self.join(document, &found)?);
        }
        Ok(())
    }

    /// Joins a batch that found too much for memory in two parts.
    fn halves(
        &self,
        equality: &Equality,
        documents: &[DocumentBuf],
        context: &Context,
        out: &mut VecDeque<DocumentBuf>,
        exceeded: Exceeded,
    ) -> Result<(), QueryError> {
        if documents.len() < 2 {
            let message = format!("$lookup exceeded memory limit of {exceeded}");
            return Err(QueryError::new(Code::ExceededMemoryLimit, message));
        }
        let (left, right) = documents.split_at(documents.len() / 2);
        self.batch(equality, left, context, out)?;
        self.batch(equality, right, context, out)
    }
}

/// An equality join on its way.
struct BatchRun<'a> {
    stage: Arc<Lookup>,
    input: Documents<'a>,
    context: Context,
    ready: VecDeque<DocumentBuf>,
    /// What comes after those that are ready.
    failed: Option<QueryError>,
    batch: usize,
}

impl BatchRun<'_> {
    fn next(&mut self) -> Option<Result<DocumentBuf, QueryError>> {
        if self.ready.is_empty() && self.failed.is_none() {
            self.fill();
        }
        if let Some(document) = self.ready.pop_front() {
            return Some(Ok(document));
        }
        self.failed.take().map(Err)
    }

    fn fill(&mut self) {
        let mut documents = Vec::new();
        let mut bytes = 0;
        while documents.len() < self.batch && bytes < MEMORY_BYTES_MAX / 4 {
            match self.input.next() {
                Some(Ok(document)) => {
                    bytes += document.as_bytes().len();
                    documents.push(document);
                }
                Some(Err(error)) => {
                    self.failed = Some(error);
                    break;
                }
                None => break,
            }
        }
        self.batch = (self.batch * 2).min(BATCH_MAX);
        let Some(equality) = self.stage.equality.as_ref() else { return };
        if documents.is_empty() {
            return;
        }
        if let Err(error) = self.stage.batch(equality, &documents, &self.context, &mut self.ready) {
            self.failed = Some(error);
        }
    }
}

/// The local values of a batch, and which documents have them.
struct Wanted {
    collation: Collation,
    /// By key, so that the filter doesn't depend on chance.
    values: BTreeMap<Bytes, ValueBuf>,
    positions: HashMap<Bytes, Vec<usize>>,
    /// The documents that join null.
    nulls: Vec<usize>,
}

impl Wanted {
    fn new(equality: &Equality, documents: &[DocumentBuf], collation: &Collation) -> Wanted {
        let mut wanted = Wanted {
            collation: collation.clone(),
            values: BTreeMap::new(),
            positions: HashMap::new(),
            nulls: Vec::new(),
        };
        for (position, document) in documents.iter().enumerate() {
            let mut is_empty = true;
            equality.local.visit(document.view(), &mut |value| {
                match value {
                    Some(Value::Array(array)) => {
                        for element in array.iter() {
                            is_empty = false;
                            wanted.add(position, element);
                        }
                    }
                    Some(value) => {
                        is_empty = false;
                        wanted.add(position, value);
                    }
                    None => {}
                }
                false
            });
            if is_empty {
                wanted.add(position, Value::Null);
            }
        }
        wanted
    }

    fn add(&mut self, position: usize, value: Value<'_>) {
        if matches!(value, Value::Null | Value::Undefined) {
            if self.nulls.last() != Some(&position) {
                self.nulls.push(position);
            }
            return;
        }
        let key = self.collation.key_of(value);
        self.values.entry(key.clone()).or_insert_with(|| value.to_buf());
        let positions = self.positions.entry(key).or_default();
        if positions.last() != Some(&position) {
            positions.push(position);
        }
    }

    /// The filter that every wanted document passes: `{foreign: {$in: [...]}}`, with patterns, which
    /// `$in` would search by, compared instead.
    fn filter(&self, equality: &Equality) -> Result<Filter, QueryError> {
        let mut builder = DocumentBuilder::new();
        let name = &equality.foreign_name;
        let is_pattern = |value: &&ValueBuf| matches!(value.as_value(), Value::Regex(_));
        let patterns: Vec<&ValueBuf> = self.values.values().filter(is_pattern).collect();
        let is_alone = patterns.is_empty();
        if !is_alone {
            builder.begin_array("$or");
            for pattern in &patterns {
                builder.push_begin_document().begin_document(name);
                builder.append("$eq", pattern.as_value()).end().end();
            }
            builder.push_begin_document();
        }
        builder.begin_document(name).begin_array("$in");
        if !self.nulls.is_empty() {
            builder.push(Value::Null);
        }
        for value in self.values.values().filter(|value| !is_pattern(value)) {
            builder.push(value.as_value());
        }
        builder.end().end();
        if !is_alone {
            builder.end().end();
        }
        Ok(Filter::parse(builder.build().view())?.with_collation(&self.collation))
    }

    /// The documents that join a foreign one.
    fn positions(&self, equality: &Equality, foreign: Document<'_>) -> Vec<usize> {
        let mut found = Vec::new();
        let mut add = |value: Value<'_>| {
            if let Some(positions) = self.positions.get(&self.collation.key_of(value)) {
                found.extend_from_slice(positions);
            }
        };
        equality.foreign.visit(foreign, &mut |value| {
            if let Some(value) = value {
                add(value);
                value.as_array().into_iter().flat_map(|array| array.iter()).for_each(&mut add);
            }
            false
        });
        if !self.nulls.is_empty() && equality.null.matches(foreign) {
            found.extend_from_slice(&self.nulls);
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

fn collect(documents: Documents<'_>) -> Result<Evaluated<'static>, QueryError> {
    let mut elements = Elements::new();
    for document in documents {
        elements.push(Value::Document(document?.view()))?;
    }
    Ok(elements.finish())
}

/// What `$lookup` is told.
#[derive(Default)]
struct Options<'v> {
    from: Option<(Option<&'v str>, &'v str)>,
    local: Option<&'v str>,
    foreign: Option<&'v str>,
    target: Option<&'v str>,
    variables: Option<Document<'v>>,
    stages: Option<Array<'v>>,
}

fn options(specification: Document<'_>) -> Result<Options<'_>, QueryError> {
    let mut options = Options::default();
    for (name, value) in specification.iter() {
        match (name, value) {
            ("from", Value::String(from)) => options.from = Some((None, from)),
            ("from", Value::Document(from)) => options.from = Some(namespace(from)?),
            ("localField", Value::String(path)) => options.local = Some(path),
            ("foreignField", Value::String(path)) => options.foreign = Some(path),
            ("as", Value::String(path)) => options.target = Some(path),
            ("let", Value::Document(variables)) => options.variables = Some(variables),
            ("pipeline", Value::Array(stages)) => options.stages = Some(stages),
            ("pipeline", _) => {
                return Err(failed_to_parse("'pipeline' option must be specified as an array"));
            }
            ("from" | "localField" | "foreignField" | "as" | "let", other) => {
                let expected = if name == "let" { "an object" } else { "a string" };
                return Err(failed_to_parse(format!(
                    "$lookup argument '{}' must be {expected}, is type {}",
                    crate::text::field(name, other),
                    other.element_type().alias()
                )));
            }
            _ => return Err(failed_to_parse(format!("unknown argument to $lookup: {name}"))),
        }
    }
    Ok(options)
}

/// `{db, coll}`
fn namespace(from: Document<'_>) -> Result<(Option<&str>, &str), QueryError> {
    match (from.get("db"), from.get("coll"), from.iter().count()) {
        (Some(Value::String(database)), Some(Value::String(collection)), 2) => {
            Ok((Some(database), collection))
        }
        _ => {
            Err(failed_to_parse("$lookup argument 'from' must have string fields 'db' and 'coll'"))
        }
    }
}

pub(super) fn parse(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let Value::Document(specification) = argument else {
        let name = argument.element_type().alias();
        let message =
            format!("the $lookup stage specification must be an object, but found {name}");
        return Err(failed_to_parse(message));
    };
    let options = options(specification)?;
    let target =
        options.target.ok_or_else(|| failed_to_parse("must specify 'as' field for a $lookup"))?;
    let equality = equality(options.local, options.foreign)?;
    if equality.is_none() && options.stages.is_none() {
        return Err(failed_to_parse(
            "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be \
             specified",
        ));
    }
    if options.variables.is_some() && options.stages.is_none() {
        return Err(failed_to_parse("$lookup with a 'let' argument must also specify 'pipeline'"));
    }
    let mut variables = Vec::new();
    for (name, value) in options.variables.iter().flat_map(|variables| variables.iter()) {
        check_name(name)?;
        variables.push((name.to_owned(), parser.expression(value)?));
    }
    let names: Vec<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
    let pipeline = match options.stages {
        Some(stages) => Some(parser.nested("$lookup", stages, &names)?),
        None => None,
    };
    if equality.is_some() && pipeline.as_ref().is_some_and(Pipeline::is_history) {
        return Err(failed_to_parse(
            "$lookup with a pipeline that tells of history takes no 'localField' and 'foreignField'",
        ));
    }
    if equality.is_some() && pipeline.as_ref().is_some_and(Pipeline::is_text_search) {
        let message = "$match with $text is only allowed as the first pipeline stage";
        return Err(failure(17313, message));
    }
    let is_source = equality.is_none() && pipeline.as_ref().is_some_and(Pipeline::is_source);
    if options.from.is_none() && !is_source {
        return Err(failed_to_parse("must specify 'from' field for a $lookup"));
    }
    let (database, collection) = match options.from {
        Some((_, "")) => return Err(failed_to_parse("$lookup argument 'from' must not be empty")),
        Some((database, collection)) => (database.map(str::to_owned), Some(collection.to_owned())),
        None => (None, None),
    };
    let constant = variables.is_empty();
    let target = parse_path(target)?;
    one(Lookup { database, collection, equality, variables, pipeline, target, constant })
}

fn equality(local: Option<&str>, foreign: Option<&str>) -> Result<Option<Equality>, QueryError> {
    let (local, foreign) = match (local, foreign) {
        (None, None) => return Ok(None),
        (Some(local), Some(foreign)) => (local, foreign),
        _ => {
            return Err(failed_to_parse(
                "$lookup requires both or neither of 'localField' and 'foreignField' to be \
                 specified",
            ));
        }
    };
    for path in [local, foreign] {
        if path.starts_with('$') {
            let message = "FieldPath field names may not start with '$'. \
                           Consider using $getField or $setField.";
            return Err(failure(16410, message));
        }
        parse_path(path)?;
    }
    let mut null = DocumentBuilder::new();
    null.begin_document(foreign).append("$eq", Value::Null).end();
    Ok(Some(Equality {
        local: Path::new(local),
        foreign: Path::new(foreign),
        foreign_name: foreign.to_owned(),
        null: Filter::parse(null.build().view())?,
    }))
}
