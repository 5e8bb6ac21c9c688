//! `$facet`: several pipelines over the same documents, their results side by side.

use std::sync::Arc;

use frond_doc::{DocumentBuf, DocumentBuilder, Value};

use super::parse::{StageParser, one};
use super::stage::{Context, Stage, lazily};
use super::{Documents, MEMORY_BYTES_MAX, Pipeline};
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::{check_bytes, check_depth, failure, parse_path};

/// `$facet`
#[derive(Debug)]
struct Facet(Vec<(String, Pipeline)>);

impl Stage for Facet {
    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        let context = Context { wanted: None, ..context.clone() };
        Ok(lazily(move || {
            let documents = self.apply(input, &context)?;
            Ok(Box::new(std::iter::once(Ok(documents))))
        }))
    }
}

impl Facet {
    fn apply(&self, input: Documents<'_>, context: &Context) -> Result<DocumentBuf, QueryError> {
        let mut documents = Vec::new();
        let mut bytes = 0;
        for document in input {
            let document = document?;
            bytes += size_of::<DocumentBuf>() + document.as_bytes().len();
            if MEMORY_BYTES_MAX < bytes {
                let message = format!("$facet exceeded memory limit of {MEMORY_BYTES_MAX} bytes");
                let code = Code::QueryExceededMemoryLimitNoDiskUseAllowed;
                return Err(QueryError::new(code, message));
            }
            documents.push(document);
        }
        let mut builder = DocumentBuilder::new();
        for (name, pipeline) in &self.0 {
            builder.begin_array(name);
            let input = Box::new(documents.iter().cloned().map(Ok));
            for document in pipeline.clone().run_in(input, context)? {
                builder.push(Value::Document(document?.view()));
                check_bytes(builder.bytes())?;
            }
            builder.end();
        }
        let made = builder.build();
        check_depth(Value::Document(made.view()), 1)?;
        Ok(made)
    }
}

pub(super) fn parse(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let Some(facets) = argument.as_document().filter(|facets| !facets.is_empty()) else {
        return Err(failure(40169, "the $facet specification must be a non-empty object"));
    };
    let mut parsed = Vec::new();
    for (name, stages) in facets.iter() {
        if name.contains('.') {
            let message = format!("the field name '{name}' of $facet cannot contain '.'");
            return Err(failure(40235, message));
        }
        parse_path(name)?;
        let Value::Array(stages) = stages else {
            let found = stages.element_type().alias();
            let message = format!("arguments to $facet must be arrays, {name} is type {found}");
            return Err(failure(40170, message));
        };
        if stages.is_empty() {
            let message = format!("sub-pipeline in $facet stage cannot be empty: {name}");
            return Err(failure(40601, message));
        }
        // Its variables are those of the pipeline around it.
        parsed.push((name.to_owned(), parser.nested("$facet", stages, &[])?));
    }
    one(Facet(parsed))
}
