//! `$lookup`: documents of another collection, as an array in each document.
//!
//! By equality of a local and a foreign field, by a sub-pipeline with variables, or both. Equality
//! joins in batches: the local values of many documents are asked for at once, and what is found is
//! handed out by its keys, so that the other collection is read once a batch (or its index is asked
//! once a value), never once a document. Batches begin with one document and double, so that a
//! `$limit` after the stage costs little.
//!
//! *Surprises*: a missing or null local value, and an empty local array, join foreign documents
//! where the field is null or missing; a local array joins by each of its elements. A sub-pipeline
//! that has no variables is run once, unless chance is in it.

mod batch;

use std::sync::{Arc, OnceLock};

use frond_doc::path::Path;
use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value};

use super::division::Division;
use super::parse::{StageParser, failed_to_parse, one};
use super::set_path::{add_on_way, set_path};
use super::stage::{Cardinality, Context, Stage};
use super::{Documents, Pipeline};
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::{
    Elements, Evaluated, Expression, Scope, check_depth, check_name, failure, parse_path,
};
use crate::filter::Filter;
use crate::large::{Depth, NeededPaths};
use crate::memory::RequestMemory;
use batch::BatchRun;

/// `$lookup`
#[derive(Debug)]
struct Lookup {
    database: Option<String>,
    /// The collection; none if the pipeline makes its own documents.
    collection: Option<String>,
    equality: Option<Equality>,
    variables: Vec<(String, Expression)>,
    pipeline: Option<Pipeline>,
    /// The field that gets the array.
    target: Vec<String>,
    /// The array of a sub-pipeline that depends on no document.
    constant: bool,
}

/// The fields that must be equal.
#[derive(Debug)]
struct Equality {
    local: Path,
    foreign: Path,
    foreign_name: String,
    /// The filter that null joins by.
    null: Filter,
}

impl Equality {
    fn local_name(&self) -> String {
        self.local.parts().iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(".")
    }
}

impl Stage for Lookup {
    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        let context = Context { wanted: None, ..context.clone() };
        if self.equality.is_some() {
            let mut run = BatchRun::new(self, input, context);
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

    fn division(self: Arc<Self>) -> Division {
        Division::Each
    }

    fn begins_dearly(&self) -> bool {
        self.constant && self.equality.is_none()
    }

    fn keeps(&self, path: &str) -> bool {
        path.split('.').next() != self.target.first().map(String::as_str)
    }

    fn needed_paths(&self) -> NeededPaths {
        let mut needed = NeededPaths::default();
        add_on_way(&mut needed, self.target.iter().map(String::as_str));
        if let Some(equality) = &self.equality {
            needed.add(&equality.local_name(), Depth::Whole);
        }
        needed
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Same
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

    /// Returns the result of the sub-pipeline for a document, over the whole collection.
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
            (None, Some(collection)) => match &mut pipeline {
                Some(pipeline) => pipeline.find_first(database, collection, &inner)?,
                None => context.collections.find(database, collection, &Filter::all())?,
            },
            (None, None) => Box::new(std::iter::empty()),
        };
        let documents = match pipeline {
            Some(pipeline) => pipeline.run_in(documents, &inner)?,
            None => documents,
        };
        collect(documents, context.variables.memory())
    }

    /// Returns the sub-pipeline's context: the variables bound to this document's values.
    fn inner(&self, document: &DocumentBuf, context: &Context) -> Result<Context, QueryError> {
        let scope = Scope::new(document.view(), &context.variables);
        let mut values = Vec::with_capacity(self.variables.len());
        for (name, expression) in &self.variables {
            values.push((name.clone(), expression.evaluate_in(&scope)?.into_buf()));
        }
        let variables = context.variables.with(values);
        Ok(Context { variables, is_part: false, together: None, ..context.clone() })
    }
}

fn collect(
    documents: Documents<'_>,
    memory: &RequestMemory,
) -> Result<Evaluated<'static>, QueryError> {
    let mut elements = Elements::new(memory);
    for document in documents {
        elements.push(Value::Document(document?.view()))?;
    }
    elements.finish()
}

/// The options of `$lookup`.
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
        Some((_, "")) => {
            let message = "invalid $lookup namespace: the collection's name is empty";
            return Err(QueryError::new(Code::InvalidNamespace, message));
        }
        Some((database, collection)) => (database.map(str::to_owned), Some(collection.to_owned())),
        None => (None, None),
    };
    let is_random = options.stages.is_some_and(|stages| is_random(Value::Array(stages)));
    let constant = variables.is_empty() && !is_random;
    let target = parse_path(target)?;
    one(Lookup { database, collection, equality, variables, pipeline, target, constant })
}

/// Whether stages may give something else each time: the names alone decide, wherever they stand.
/// Recursion follows the pipeline's nesting, which validation has bounded.
fn is_random(value: Value<'_>) -> bool {
    match value {
        Value::Array(array) => array.iter().any(is_random),
        Value::Document(document) => document.iter().any(|(name, value)| {
            matches!(name, "$rand" | "$sample" | "$sampleRate") || is_random(value)
        }),
        _ => false,
    }
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
