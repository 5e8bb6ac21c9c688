//! `$facet`: several pipelines over the same documents, their results side by side. Documents that
//! take more memory than is allowed wait in a file ([`Spool`]), which each pipeline reads from its
//! beginning.
//!
//! Where the documents come in parts, a pipeline whose first stages may run over parts
//! ([`parallel`](super::parallel)) gathers from each part's spool; the others read all spools, one
//! after the other.

use std::sync::Arc;

use frond_doc::{DocumentBuf, DocumentBuilder, Value};

use super::division::{Division, ParallelStage, PartialResult, of_same_stage};
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

    fn division(self: Arc<Self>) -> Division {
        Division::Gathers(self)
    }
}

/// Parts of the documents.
struct FacetParts {
    stage: Arc<Facet>,
    /// What each pipeline has gathered, if it does.
    gathered: Vec<Option<Box<dyn PartialResult>>>,
    /// The documents, if a pipeline doesn't.
    spools: Vec<Arc<Spool>>,
}

impl ParallelStage for Facet {
    fn gather(
        self: Arc<Self>,
        input: Input<'_>,
        context: &Context,
    ) -> Result<Box<dyn PartialResult>, QueryError> {
        let spool = spooled(input, context)?;
        // What all of them gather is kept at once.
        let resources = context.resources.of_part(self.0.len());
        let context = Context { resources, wanted: None, together: None, ..context.clone() };
        let gather =
            |(_, pipeline): &(_, Pipeline)| pipeline.gather_first(Box::new(spool.read()), &context);
        let gathered: Vec<_> = self.0.iter().map(gather).collect::<Result<_, _>>()?;
        let is_read_again = gathered.iter().any(Option::is_none);
        let spools = is_read_again.then_some(spool).into_iter().collect();
        Ok(Box::new(FacetParts { stage: self, gathered, spools }))
    }
}

impl PartialResult for FacetParts {
    fn append(&mut self, next: Box<dyn PartialResult>) -> Result<(), QueryError> {
        let next = of_same_stage::<FacetParts>(next);
        for (gathered, next) in self.gathered.iter_mut().zip(next.gathered) {
            if let (Some(gathered), Some(next)) = (gathered, next) {
                gathered.append(next)?;
            }
        }
        self.spools.extend(next.spools);
        Ok(())
    }

    fn documents(self: Box<Self>, context: &Context) -> Result<Documents<'static>, QueryError> {
        let FacetParts { stage, gathered, spools } = *self;
        let context = Context { wanted: None, ..context.clone() };
        let mut gathered = gathered.into_iter();
        let made = stage.side_by_side(&context, |pipeline| match gathered.next().flatten() {
            Some(gathered) => pipeline.run_rest(gathered, &context),
            None => {
                let all: Vec<_> = spools.iter().map(Spool::read).collect();
                let all: Documents<'_> = Box::new(all.into_iter().flatten());
                pipeline.clone().run_in(all, &context)
            }
        })?;
        Ok(Box::new(std::iter::once(Ok(made))))
    }
}

/// All the documents.
fn spooled(input: Input<'_>, context: &Context) -> Result<Arc<Spool>, QueryError> {
    let mut spool = Spool::new("$facet", &context.resources);
    input.visit(&mut |document| spool.push(document).map(|()| true))?;
    Ok(Arc::new(spool))
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
        let spool = spooled(input, context)?;
        self.side_by_side(context, |pipeline| {
            let input: Documents<'_> = Box::new(spool.read());
            pipeline.clone().run_in(input, context)
        })
    }

    /// The document with the results that `run` gives of each pipeline.
    fn side_by_side<'d>(
        &self,
        context: &Context,
        mut run: impl FnMut(&Pipeline) -> Result<Documents<'d>, QueryError>,
    ) -> Result<DocumentBuf, QueryError> {
        let mut builder = DocumentBuilder::new();
        let mut charge = context.variables.memory().charge();
        for (name, pipeline) in &self.0 {
            builder.begin_array(name);
            for document in run(pipeline)? {
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
