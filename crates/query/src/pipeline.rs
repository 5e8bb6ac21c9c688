//! Aggregation pipelines.
//!
//! Reading order: [`stage`] (what a stage is), `parsed` (what a pipeline is), `parse` (from BSON),
//! `table` (every stage, supported or refused; handed to the parser, since some stages have
//! pipelines), `collections` (what stages want of the database), this file (how stages are chained
//! and run), `shape` and `shape_parse` (the documents that `$project`, `$addFields` and `$unset`
//! make), then one file a stage; what `$group` computes is in `crate::accumulator`.
//!
//! *Surprises*: stages are lazy, each pulls documents from the one before, except that `$out`
//! writes when the pipeline is started; the first stages may run on several cores ([`parallel`]); a
//! `$sort` that a `$limit` follows keeps no more documents than that, and of each no more fields
//! than are read behind it ([`narrow`]); a `$match` moves to the front ([`pushdown`]), and of two
//! `$sort`s in a row the first isn't done ([`needless_orders`]); what needs more memory than a
//! stage may use goes to files of the caller's ([`Spill`]), or is refused.

mod bucket;
mod bucket_auto;
mod carry_metadata;
mod chain;
mod collections;
mod count;
mod densify;
mod division;
mod documents;
mod explained;
mod facet;
mod field_positions;
mod fill;
mod geo_near;
mod geo_near_parse;
mod granularity;
mod graph_lookup;
mod group;
mod history;
mod limit;
mod lookup;
mod matching;
mod merge;
mod merge_parse;
mod narrow;
mod needless_orders;
mod no_collections;
mod out;
mod parallel;
mod parse;
mod parsed;
mod piece_rows;
mod project;
mod pushdown;
mod redact;
mod replace_root;
mod rounds;
mod rows;
mod sample;
mod set_path;
mod set_window_fields;
mod shape;
mod shape_parse;
mod skip;
mod sort;
mod sort_by_count;
mod sorter;
mod spill;
mod spool;
mod stage;
mod stream;
mod table;
mod time_unit;
mod together;
mod union_with;
mod unwind;
mod window;

pub(crate) use field_positions::TouchedPaths;
pub use history::history_stages;
pub(crate) use table::features;
pub(crate) use window::features as window_features;

use std::sync::Arc;

use frond_doc::{Array, Document, DocumentBuf};

use crate::collation::Collation;
use crate::error::QueryError;
use crate::expression::Variables;
use crate::filter::Filter;
use crate::large::NeededPaths;
use crate::metadata;
use chain::{Wanted, chain};
use division::PartialResult;
use parse::StageParser;
use parsed::wanted;
use stage::{Cardinality, Context};
use stream::{bounded, of_id, storable};

pub use crate::memory::KeepGoing;
pub use collections::Collections;
pub use explained::explained;
pub use geo_near::GeoNear;
pub use merge::{Merge, MergeAction};
pub use parsed::Pipeline;
pub use rows::{Input, Parts, Pieces, Rows as LentRows, Visit};
pub use sorter::{Sorted, Sorter};
pub use spill::{MEMORY_BYTES_MAX, Resources, Spill, SpillFile};
pub use stream::{Documents, RESULT_BYTES_MAX};
pub use table::NO_SEARCH_INDEXES;

/// Checks of stages that each has one field, with the name of a stage, and nothing else.
///
/// # Errors
/// 14, 40323, 40324: MongoDB's.
pub fn check_stage_names(stages: Array<'_>) -> Result<(), QueryError> {
    parse::check_names(stages, table::find)
}

impl Pipeline {
    /// Parses the stages.
    ///
    /// # Errors
    /// MongoDB's codes: 40323 and 40324 for what is no stage, and those of each stage.
    pub fn parse(stages: Array<'_>) -> Result<Pipeline, QueryError> {
        Pipeline::parse_collated(stages, &Collation::SIMPLE)
    }

    /// As [`Pipeline::parse`], for a pipeline that will run with this collation among its
    /// variables: what stages check of their constants depends on it.
    ///
    /// # Errors
    /// As [`Pipeline::parse`].
    pub fn parse_collated(
        stages: Array<'_>,
        collation: &Collation,
    ) -> Result<Pipeline, QueryError> {
        let mut parser = StageParser::new(table::find, collation);
        let mut stages = parser.stages(stages)?;
        pushdown::optimize(&mut stages);
        let pipeline = parser.pipeline(stages);
        pipeline.check_metadata()?;
        Ok(pipeline)
    }

    /// Parses the pipeline that an update is: only stages that make one document of one.
    ///
    /// # Errors
    /// As [`Pipeline::parse`], and `InvalidOptions` for other stages.
    pub(crate) fn parse_update(stages: Array<'_>) -> Result<Pipeline, QueryError> {
        let mut parser = StageParser::of_update(table::find);
        let stages = parser.stages(stages)?;
        parser.expressions.metadata().refuse()?;
        Ok(parser.pipeline(stages))
    }

    /// Makes one document of one: what the pipeline of an update does.
    pub(crate) fn transform(
        &self,
        document: Document<'_>,
        variables: &Variables,
    ) -> Result<DocumentBuf, QueryError> {
        let collections = Arc::new(no_collections::NoCollections);
        let resources = Resources::default();
        let variables = variables.clone();
        let (wanted, metadata, is_part, together) = (None, self.metadata, false, None);
        let context =
            Context { variables, collections, resources, wanted, metadata, is_part, together };
        let input: Documents<'_> = Box::new(std::iter::once(Ok(document.to_buf())));
        let mut made = self.clone().run_in(input, &context)?;
        let made = made.next().unwrap_or_else(|| Ok(DocumentBuf::empty()))?;
        // It is compared.
        context.variables.large().open_document(&of_id(), made)
    }

    /// Appends the conditions of `filter` that ask for paths alone, which then may move to the
    /// front, and gives back the others: they may see variables that this pipeline has not.
    pub fn append_filter(&mut self, filter: &Filter) -> Option<Filter> {
        let (movable, left): (Vec<Filter>, Vec<Filter>) =
            filter.conjuncts().into_iter().partition(|part| part.paths().is_some());
        if let Some(movable) = Filter::all_of(&movable) {
            self.stages.push(matching::stage(movable));
            pushdown::optimize(&mut self.stages);
        }
        Filter::all_of(&left)
    }

    /// Puts the stages of a `view` in front, so that both are planned as one. Answers whether it
    /// did: not where a first stage has to stay the first, or a search has to leave metadata.
    pub fn put_behind(&mut self, view: &Pipeline) -> bool {
        let is_plain = |pipeline: &Pipeline| {
            let is_near = pipeline.stages.first().is_some_and(|stage| stage.geo_near().is_some());
            let finds_by_itself = is_near || pipeline.is_text_search();
            let makes = pipeline.is_source() || pipeline.is_history();
            !finds_by_itself && !makes && pipeline.metadata.is_empty()
        };
        if !is_plain(self) || !is_plain(view) {
            return false;
        }
        self.stages.splice(..0, view.stages.iter().cloned());
        pushdown::optimize(&mut self.stages);
        true
    }

    /// Whether its first stages may run over parts of the documents at once.
    pub fn divides(&self) -> bool {
        0 < parallel::count(&self.stages)
    }

    /// Cuts off what finds the documents of `collection` that this pipeline, which stands within
    /// another, begins with, and finds them.
    fn find_first(
        &mut self,
        database: Option<&str>,
        collection: &str,
        context: &Context,
    ) -> Result<Documents<'static>, QueryError> {
        let variables = &context.variables;
        if let Some(near) = self.take_geo_near(variables)? {
            return context.collections.near(database, collection, near, variables);
        }
        let filter = self.take_filter().with_variables(variables.clone());
        context.collections.find(database, collection, &filter)
    }

    /// Runs the stages over `input`. The result is lazy where the stages allow it; it ends after
    /// its first error.
    ///
    /// # Errors
    /// An unbound variable, and what `$out` fails with; other errors come with the documents.
    pub fn run<'a>(
        self,
        input: Documents<'a>,
        variables: Variables,
        collections: Arc<dyn Collections>,
    ) -> Result<Documents<'a>, QueryError> {
        self.run_over(Input::Documents(input), variables, collections)
    }

    /// As [`run`](Self::run), of stages that ask for no other collection.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_alone<'a>(
        self,
        input: Documents<'a>,
        variables: Variables,
    ) -> Result<Documents<'a>, QueryError> {
        self.run(input, variables, Arc::new(no_collections::NoCollections))
    }

    /// As [`run`](Self::run), over documents that may be lent.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_over<'a>(
        self,
        input: Input<'a>,
        variables: Variables,
        collections: Arc<dyn Collections>,
    ) -> Result<Documents<'a>, QueryError> {
        let large = variables.large().clone();
        let documents = self.run_carrying(input, variables, collections)?;
        if !large.may_have_references() {
            return Ok(documents);
        }
        Ok(Box::new(
            documents.map(move |document| large.open_document(&NeededPaths::all(), document?)),
        ))
    }

    /// As [`run_over`](Self::run_over); documents that come out may have references.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_carrying<'a>(
        self,
        input: Input<'a>,
        variables: Variables,
        collections: Arc<dyn Collections>,
    ) -> Result<Documents<'a>, QueryError> {
        self.check_bound(&variables)?;
        let resources = collections.resources();
        let (wanted, metadata, is_part, together) = (None, self.metadata, false, None);
        let context =
            Context { variables, collections, resources, wanted, metadata, is_part, together };
        let large = context.variables.large().clone();
        Ok(bounded(self.run_in(input, &context)?, &large))
    }

    /// Runs the stages as a part of another pipeline.
    fn run_in<'a>(
        self,
        input: impl Into<Input<'a>>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        let mut input = input.into();
        let mut context = Context { metadata: self.metadata, ..context.clone() };
        if !self.metadata.is_empty() {
            context.variables = context.variables.with_metadata();
        }
        let carries = context.variables.carries_metadata();
        let mut done = 0;
        if let Input::Rows(rows) = &mut input
            && !carries
            && let Some((counted, made)) = self.count_first(&mut **rows, &context.variables)?
        {
            (done, input) = (counted, Input::Documents(Box::new(made.into_iter().map(Ok))));
        }
        let mut stages = self.wanted_stages();
        stages.drain(..done);
        if !carries {
            if let Input::Rows(rows) = input {
                (input, stages) = parallel::through(stages, rows, &context)?;
            }
            return Ok(chain(&stages, input, &context)?.into_documents());
        }
        for stage in stages {
            input = match stage.0.cardinality() {
                Cardinality::Same => {
                    let context = Context { wanted: stage.1, ..context.clone() };
                    input = input.with(stage.0.needed_paths(), context.variables.large());
                    Input::Documents(carry_metadata::through(
                        &stage.0,
                        input.into_documents(),
                        &context,
                    )?)
                }
                _ => chain(&[stage], input, &context)?,
            };
        }
        Ok(Box::new(input.into_documents().map(|made| Ok(metadata::strip(made?)))))
    }
}

impl Pipeline {
    /// The stages, and how many documents those after each read at most.
    fn wanted_stages(&self) -> Vec<Wanted> {
        let wanted = |position: usize| wanted(&self.stages[position + 1..]);
        let stages = self.stages.iter().cloned().enumerate();
        stages.map(|(position, stage)| (stage, wanted(position))).collect()
    }

    /// Has the first stages gather a part of the documents, as a part of another pipeline; `None`
    /// if they can't.
    fn gather_first(
        &self,
        input: Documents<'_>,
        context: &Context,
    ) -> Result<Option<Box<dyn PartialResult>>, QueryError> {
        if !self.metadata.is_empty() {
            return Ok(None);
        }
        let mut stages = self.wanted_stages();
        stages.truncate(parallel::count(&self.stages));
        parallel::gather(&stages, Input::Documents(input), context)
    }

    /// Runs the stages behind those that have gathered all parts.
    fn run_rest(
        &self,
        gathered: Box<dyn PartialResult>,
        context: &Context,
    ) -> Result<Documents<'static>, QueryError> {
        let rest = self.wanted_stages().split_off(parallel::count(&self.stages));
        let input = Input::Documents(gathered.documents(context)?);
        Ok(chain(&rest, input, context)?.into_documents())
    }

    /// Returns the result of the first stages on rows that they only count, if the rows know their
    /// number; and how many stages these are.
    fn count_first(
        &self,
        rows: &mut dyn LentRows,
        variables: &Variables,
    ) -> Result<Option<(usize, Option<DocumentBuf>)>, QueryError> {
        let Some((place, counter)) = self.counter() else { return Ok(None) };
        let enough = wanted(&self.stages[..place]).map_or(u64::MAX, |wanted| wanted as u64);
        let Some(mut count) = rows.remaining(enough)? else { return Ok(None) };
        for stage in &self.stages[..place] {
            count = match stage.cardinality() {
                Cardinality::Skip(skipped) => count.saturating_sub(skipped as u64),
                Cardinality::Limit(limit) => count.min(limit as u64),
                Cardinality::Same | Cardinality::Other => count,
            };
        }
        Ok(Some((place + 1, counter.of_count(count, variables)?)))
    }
}
