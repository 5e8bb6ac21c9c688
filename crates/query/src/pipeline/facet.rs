//! `$facet`: several pipelines over the same documents, their results side by side. Documents that
//! take more memory than is allowed wait in a file ([`Spool`]), which each pipeline reads from its
//! beginning.

use std::sync::Arc;

use frond_doc::{DocumentBuf, DocumentBuilder, Value};

use super::parse::{StageParser, one};
use super::rows::{Input, Rows};
use super::spool::Spool;
use super::stage::{Context, Stage, lazily};
use super::{Documents, Pipeline};
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::{check_bytes, check_depth, failure, parse_path};
use crate::large::NeededPaths;

/// `$facet`
#[derive(Debug)]
struct Facet(Vec<(String, Pipeline)>);

impl Stage for Facet {
    fn needed_paths(&self) -> NeededPaths {
        NeededPaths::default()
    }

    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        Ok(self.over(input.into(), context))
    }

    fn run_over<'a>(
        self: Arc<Self>,
        rows: Box<dyn Rows + 'a>,
        context: &Context,
    ) -> Result<Input<'a>, QueryError> {
        Ok(Input::Documents(self.over(Input::Rows(rows), context)))
    }
}

impl Facet {
    fn over<'a>(self: Arc<Self>, input: Input<'a>, context: &Context) -> Documents<'a> {
        let context = Context { wanted: None, ..context.clone() };
        lazily(move || {
            let made = self.apply(input, &context)?;
            Ok(Box::new(std::iter::once(Ok(made))))
        })
    }

    fn apply(&self, input: Input<'_>, context: &Context) -> Result<DocumentBuf, QueryError> {
        let mut spool = Spool::new("$facet", &context.resources);
        input.visit(&mut |document| spool.push(document).map(|()| true))?;
        let spool = Arc::new(spool);
        let mut builder = DocumentBuilder::new();
        let mut charge = context.variables.memory().charge();
        for (name, pipeline) in &self.0 {
            builder.begin_array(name);
            let input: Documents<'_> = Box::new(spool.read());
            for document in pipeline.clone().run_in(input, context)? {
                let document = document?;
                let bytes = builder.bytes() + document.as_bytes().len();
                check_bytes(bytes)?;
                charge.cover(bytes * 2)?;
                builder.push(Value::Document(document.view()));
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
        if name.is_empty() {
            // A name, not a path: those have a code of their own.
            return Err(failure(15998, "FieldPath field names may not be empty strings."));
        }
        parse_path(name)?;
        let Value::Array(stages) = stages else {
            let found = stages.element_type().alias();
            let message = format!("arguments to $facet must be arrays, {name} is type {found}");
            return Err(failure(40170, message));
        };
        if stages.is_empty() {
            let message = format!("sub-pipeline in $facet stage cannot be empty: {name}");
            return Err(QueryError::new(Code::BadValue, message));
        }
        // Its variables are those of the pipeline around it.
        parsed.push((name.to_owned(), parser.nested("$facet", stages, &[])?));
    }
    one(Facet(parsed))
}
