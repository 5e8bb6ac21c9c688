//! Aggregation pipelines.
//!
//! Reading order: [`stage`] (what a stage is, how stages are chained), `parse` (from BSON), `table`
//! (every stage, supported or refused), `shape` and `shape_parse` (the documents that `$project`,
//! `$addFields` and `$unset` make), then one file a stage; what `$group` computes is in
//! `crate::accumulator`.
//!
//! *Surprises*: stages are lazy, each pulls documents from the one before, except that `$out`
//! writes when the pipeline is started; the first stages may run on several cores ([`divided`]); a
//! `$sort` that a `$limit` follows keeps no more documents than that; a `$match` moves to the front
//! ([`forward`]); what needs more memory than a stage may use goes to files of the caller's
//! ([`Spill`]), or is refused.

mod bucket;
mod bucket_auto;
mod carried;
mod count;
mod densify;
mod divided;
mod documents;
mod explained;
mod facet;
mod fill;
mod forward;
mod geo_near;
mod granularity;
mod graph_lookup;
mod group;
mod history;
mod limit;
mod lookup;
mod matching;
mod merge;
mod nothing;
mod out;
mod parse;
mod places;
mod project;
mod redact;
mod replace_root;
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
mod table;
mod time_unit;
mod union_with;
mod unwind;
mod window;

pub use history::history_stages;
pub(crate) use places::Places;
pub(crate) use table::features;
pub(crate) use window::features as window_features;

use std::collections::BTreeSet;
use std::sync::Arc;

use frond_doc::document::DOCUMENT_BYTES_MAX;
use frond_doc::pieces::{has_deepened, whole_bytes};
use frond_doc::{Array, Document, DocumentBuf, Value};

use crate::code::Code;
use crate::collation::Collation;
use crate::error::QueryError;
use crate::expression::{Variables, check_depth, undefined};
use crate::filter::Filter;
use crate::large::{Asked, Depth, Large};
use crate::metadata::{self, Metadata, MetadataKind};
use crate::sort::SortPattern;
use divided::Wanted;
use stage::{Context, Counter, Rows, Stage};

pub use geo_near::GeoNear;

pub use crate::memory::GoOn;
pub use explained::explained;
pub use merge::{Merge, MergeAction};
pub use rows::{Input, Parts, Rows as LentRows, Visit};
pub use sorter::{Sorted, Sorter};
pub use spill::{MEMORY_BYTES_MAX, Resources, Spill, SpillFile};
pub use table::NO_SEARCH_INDEXES;

/// A stream of documents.
pub type Documents<'a> = Box<dyn Iterator<Item = Result<DocumentBuf, QueryError>> + Send + 'a>;

/// A result may be this much larger than a stored document: MongoDB's allowance for what a command
/// adds to it.
const RESULT_BYTES_MAX: usize = DOCUMENT_BYTES_MAX + (16 << 10);

/// What stages want of the database: other collections, by reading or writing.
pub trait Collections: Send + Sync {
    /// The documents of `collection` (in database `database`, where given) that pass `filter`; an
    /// absent collection has none. May use an index. They may have references for long values that
    /// the request's variables read ([`crate::large`]).
    ///
    /// # Errors
    /// As the stage says it: the collection, or what its search asks for, isn't there or can't be
    /// read.
    fn find(
        &self,
        database: Option<&str>,
        collection: &str,
        filter: &Filter,
    ) -> Result<Documents<'static>, QueryError>;

    /// Replaces `collection` by `documents`: `$out`. They may have references for long values,
    /// which are stored again as they are.
    ///
    /// # Errors
    /// What a document or the collection is refused for, by MongoDB's codes; what `documents` fails
    /// with.
    fn replace(
        &self,
        database: Option<&str>,
        collection: &str,
        documents: Documents<'_>,
    ) -> Result<(), QueryError>;

    /// Writes `documents` into `collection` as `merge` says: `$merge`.
    ///
    /// # Errors
    /// What a document is refused for, by MongoDB's codes; what `documents` fails with.
    fn merge(
        &self,
        database: Option<&str>,
        collection: &str,
        merge: &Merge,
        documents: Documents<'_>,
    ) -> Result<(), QueryError>;

    /// The documents of `collection` by their distance, as the `$geoNear` that begins a pipeline
    /// over it says.
    ///
    /// # Errors
    /// That there is no index to find them by; that there is nothing to search here.
    fn near(
        &self,
        _database: Option<&str>,
        _collection: &str,
        _near: GeoNear,
        _variables: &Variables,
    ) -> Result<Documents<'static>, QueryError> {
        let message = "$geoNear is only valid as the first stage in a pipeline";
        Err(crate::expression::failure(40602, message))
    }

    /// The documents of a stage that tells of history (`$diff` and so on), of a database or a
    /// collection of it.
    ///
    /// # Errors
    /// What is wrong with the stage; that there is no history here.
    fn history(
        &self,
        _database: Option<&str>,
        _collection: Option<&str>,
        stage: &DocumentBuf,
    ) -> Result<Documents<'static>, QueryError> {
        let name = stage.iter().next().map_or("", |(name, _)| name);
        let message = format!("Unrecognized pipeline stage name: '{name}'");
        Err(crate::expression::failure(40324, message))
    }

    /// How much memory stages may use, and where the rest goes.
    fn resources(&self) -> Resources {
        Resources::default()
    }
}

/// A parsed pipeline.
#[derive(Clone, Debug)]
pub struct Pipeline {
    stages: Vec<Arc<dyn Stage>>,
    /// The variables that must come from outside.
    free: BTreeSet<String>,
    /// What its stages ask of the search that finds its documents.
    metadata: Metadata,
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
        let mut parser = parse::StageParser::with_collation(collation);
        let mut stages = parser.stages(stages)?;
        forward::settle(&mut stages);
        let pipeline = Pipeline::of_parsed(stages, &parser);
        pipeline.check_metadata()?;
        Ok(pipeline)
    }

    /// Parses the pipeline that an update is: only stages that make one document of one.
    ///
    /// # Errors
    /// As [`Pipeline::parse`], and `InvalidOptions` for other stages.
    pub(crate) fn parse_update(stages: Array<'_>) -> Result<Pipeline, QueryError> {
        let mut parser = parse::StageParser::of_update();
        let stages = parser.stages(stages)?;
        parser.expressions.metadata().refuse()?;
        Ok(Pipeline::of_parsed(stages, &parser))
    }

    fn of_parsed(stages: Vec<Arc<dyn Stage>>, parser: &parse::StageParser) -> Pipeline {
        let free = parser.expressions.free().clone();
        Pipeline { stages, free, metadata: parser.expressions.metadata() }
    }

    /// Refuses what the first stage's search doesn't know of the documents.
    fn check_metadata(&self) -> Result<(), QueryError> {
        let first = self.stages.first();
        let has_text = self.is_text_search();
        let has_near = first.is_some_and(|stage| stage.geo_near().is_some());
        for (kind, is_there) in [
            (MetadataKind::TextScore, has_text),
            (MetadataKind::GeoNearDistance, has_near),
            (MetadataKind::GeoNearPoint, has_near),
        ] {
            if self.metadata.contains(kind) && !is_there {
                return Err(kind.unavailable());
            }
        }
        Ok(())
    }

    /// Makes one document of one: what the pipeline of an update does.
    pub(crate) fn transform(
        &self,
        document: Document<'_>,
        variables: &Variables,
    ) -> Result<DocumentBuf, QueryError> {
        let collections = Arc::new(nothing::Nothing);
        let resources = Resources::default();
        let variables = variables.clone();
        let (wanted, metadata) = (None, self.metadata);
        let context = Context { variables, collections, resources, wanted, metadata };
        let input: Documents<'_> = Box::new(std::iter::once(Ok(document.to_buf())));
        let mut made = self.clone().run_in(input, &context)?;
        let made = made.next().unwrap_or_else(|| Ok(DocumentBuf::empty()))?;
        // It is compared.
        context.variables.large().open_document(&of_id(), made)
    }

    /// The places of fields that its stages take away and set again, if they only change fields.
    pub(crate) fn places(&self) -> Option<Places> {
        Places::of(self.stages.iter().map(|stage| stage.shape()))
    }

    /// Refuses unbound variables.
    pub(crate) fn check_bound(&self, variables: &Variables) -> Result<(), QueryError> {
        match self.free.iter().find(|name| !variables.contains(name)) {
            Some(name) => Err(undefined(name)),
            None => Ok(()),
        }
    }

    /// Cuts off the leading `$match` stages, for the planner to do; the filter that everything
    /// passes if there is none. Who evaluates it gives it the pipeline's variables
    /// ([`Filter::with_variables`]), which its `$expr` may use.
    pub fn take_filter(&mut self) -> Filter {
        let leading = self.stages.iter().map_while(|stage| stage.filter().cloned());
        let leading: Vec<Filter> = leading.collect();
        self.stages.drain(..leading.len());
        let filter = match &leading[..] {
            [only] => only.clone(),
            several => Filter::all_of(several).unwrap_or_else(Filter::all),
        };
        filter.with_metadata(self.metadata.of_search())
    }

    /// Appends the conditions of `filter` that ask for paths alone, which then may move to the
    /// front, and gives back the others: they may see variables that this pipeline has not.
    pub fn append_filter(&mut self, filter: &Filter) -> Option<Filter> {
        let (asked, left): (Vec<Filter>, Vec<Filter>) =
            filter.conjuncts().into_iter().partition(|part| part.paths().is_some());
        if let Some(asked) = Filter::all_of(&asked) {
            self.stages.push(matching::stage(asked));
            forward::settle(&mut self.stages);
        }
        Filter::all_of(&left)
    }

    /// Cuts off a leading `$geoNear`, for its documents to be found by an index: see [`GeoNear`].
    pub fn take_geo_near(&mut self) -> Option<GeoNear> {
        let found = self.stages.first().and_then(|stage| stage.geo_near()).cloned()?;
        self.stages.remove(0);
        Some(found.with_metadata(self.metadata))
    }

    /// Whether documents come out as they went in, or not at all: who needs them needs them whole.
    pub fn chooses_only(&self) -> bool {
        let passes = |stage: &Arc<dyn Stage>| {
            stage.filter().is_some() || matches!(stage.rows(), Rows::Skip(_) | Rows::Limit(_))
        };
        self.stages.iter().all(passes)
    }

    /// The order of a leading `$sort`, and how many documents the stages after it read at most, if
    /// they tell; of a pipeline that begins otherwise no order, and how many documents all stages
    /// read.
    pub fn leading_order(&self) -> (Option<&SortPattern>, Option<usize>) {
        // Who asks for sort keys has documents sorted, which makes them.
        let is_asked = self.metadata.contains(MetadataKind::SortKey);
        match self.stages.first().and_then(|stage| stage.order()).filter(|_| !is_asked) {
            Some(order) => (Some(order), wanted(&self.stages[1..])),
            None => (None, wanted(&self.stages)),
        }
    }

    /// Whether all that the pipeline asks of documents is how many there are.
    pub fn counts_only(&self) -> bool {
        self.counter().is_some()
    }

    /// Whether its first stages may run over parts of the documents at once.
    pub fn divides(&self) -> bool {
        0 < divided::count(&self.stages)
    }

    /// The first stage that does more than choose, if it only counts, and how many are before it.
    fn counter(&self) -> Option<(usize, &dyn Counter)> {
        let only_chooses = |stage: &&Arc<dyn Stage>| {
            stage.order().is_some() || matches!(stage.rows(), Rows::Skip(_) | Rows::Limit(_))
        };
        let place = self.stages.iter().take_while(only_chooses).count();
        Some((place, self.stages.get(place)?.counter()?))
    }

    /// The paths of what the pipeline needs of documents; `None`: it needs them whole.
    pub fn needs(&self) -> Option<Vec<String>> {
        let mut needs = Vec::new();
        for stage in &self.stages {
            if let Some(order) = stage.order() {
                needs.extend(order.fields.iter().map(|field| field.path.clone()));
            } else if let Some(filter) = stage.filter() {
                needs.extend(filter.paths()?.into_iter().map(str::to_owned));
            } else if !matches!(stage.rows(), Rows::Skip(_) | Rows::Limit(_)) {
                needs.extend(stage.needs()?);
                return Some(needs);
            }
        }
        None
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
        if let Some(near) = self.take_geo_near() {
            return context.collections.near(database, collection, near, variables);
        }
        let filter = self.take_filter().with_variables(variables.clone());
        context.collections.find(database, collection, &filter)
    }

    /// Cuts off a leading `$sort`: the documents come in its order.
    pub fn drop_order(&mut self) {
        if self.stages.first().is_some_and(|stage| stage.order().is_some()) {
            self.stages.remove(0);
        }
    }

    /// Cuts off a first stage that tells of history, for [`Collections::history`].
    pub fn take_history(&mut self) -> Option<DocumentBuf> {
        let stage = self.stages.first()?.history()?.clone();
        self.stages.remove(0);
        Some(stage)
    }

    /// Whether the first stage tells of history.
    pub(crate) fn is_history(&self) -> bool {
        self.stages.first().is_some_and(|stage| stage.history().is_some())
    }

    /// Whether the first stage searches for texts.
    pub(crate) fn is_text_search(&self) -> bool {
        let filter = self.stages.first().and_then(|stage| stage.filter());
        filter.is_some_and(|filter| filter.text().is_some())
    }

    /// The collection that the last stage writes, if there is one: (database, collection).
    pub fn output(&self) -> Option<(Option<String>, String)> {
        self.stages.last().and_then(|stage| stage.output())
    }

    /// Whether the first stage makes its own documents, so that no collection is read.
    pub fn is_source(&self) -> bool {
        self.stages.first().is_some_and(|stage| stage.is_source())
    }

    /// The variables that the pipeline uses and must be given.
    pub(crate) fn free(&self) -> &BTreeSet<String> {
        &self.free
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
        self.run(input, variables, Arc::new(nothing::Nothing))
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
        self.check_bound(&variables)?;
        let resources = collections.resources();
        let (wanted, metadata) = (None, self.metadata);
        let context = Context { variables, collections, resources, wanted, metadata };
        let large = context.variables.large().clone();
        let documents = self.run_in(input, &context)?;
        let documents = bounded(documents, &large);
        if !large.is_met() {
            return Ok(documents);
        }
        Ok(Box::new(documents.map(move |document| large.open_document(&Asked::all(), document?))))
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
        let wanted = |position: usize| wanted(&self.stages[position + 1..]);
        let stages = self.stages.iter().cloned().enumerate();
        let mut stages: Vec<Wanted> =
            stages.map(|(position, stage)| (stage, wanted(position))).skip(done).collect();
        let divided_count = if carries { 0 } else { divided::count(&self.stages) };
        input = match input {
            Input::Rows(rows) if 0 < divided_count => {
                let rest = stages.split_off(divided_count);
                let first = std::mem::replace(&mut stages, rest);
                Input::Documents(divided::over(first, rows, &context))
            }
            input => input,
        };
        if !carries {
            return Ok(divided::chain(&stages, input, &context)?.into_documents());
        }
        for stage in stages {
            input = match stage.0.rows() {
                Rows::Same => {
                    let context = Context { wanted: stage.1, ..context.clone() };
                    input = input.with(stage.0.asked(), context.variables.large());
                    Input::Documents(carried::through(&stage.0, input.into_documents(), &context)?)
                }
                _ => divided::chain(&[stage], input, &context)?,
            };
        }
        Ok(Box::new(input.into_documents().map(|made| Ok(metadata::strip(made?)))))
    }
}

impl Pipeline {
    /// What the first stages make of rows of which they ask only how many there are, if the rows
    /// can tell; and how many stages these are.
    fn count_first(
        &self,
        rows: &mut dyn LentRows,
        variables: &Variables,
    ) -> Result<Option<(usize, Option<DocumentBuf>)>, QueryError> {
        let Some((place, counter)) = self.counter() else { return Ok(None) };
        let enough = wanted(&self.stages[..place]).map_or(u64::MAX, |wanted| wanted as u64);
        let Some(mut count) = rows.remaining(enough)? else { return Ok(None) };
        for stage in &self.stages[..place] {
            count = match stage.rows() {
                Rows::Skip(skipped) => count.saturating_sub(skipped as u64),
                Rows::Limit(limit) => count.min(limit as u64),
                Rows::Same | Rows::Other => count,
            };
        }
        Ok(Some((place + 1, counter.of_count(count, variables)?)))
    }
}

/// The `_id` alone.
fn of_id() -> Asked {
    let mut asked = Asked::default();
    asked.add("_id", Depth::Whole);
    asked
}

/// Documents that are to be stored: none is nested too deep once it is whole.
fn storable<'a>(documents: Documents<'a>, large: &Large) -> Documents<'a> {
    let bounded = bounded(documents, large);
    if !large.is_met() {
        return bounded;
    }
    let large = large.clone();
    Box::new(bounded.map(move |document| {
        let document = document?;
        if !has_deepened(document.view()) {
            return Ok(document);
        }
        let whole = large.open_document(&Asked::all(), document)?;
        check_depth(Value::Document(whole.view()), 1)?;
        Ok(whole)
    }))
}

/// How many documents `stages` read at most, if they tell.
fn wanted(stages: &[Arc<dyn Stage>]) -> Option<usize> {
    let mut skipped: usize = 0;
    for stage in stages {
        match stage.rows() {
            Rows::Same => {}
            Rows::Skip(count) => skipped = skipped.saturating_add(count),
            Rows::Limit(count) => return Some(skipped.saturating_add(count)),
            Rows::Other => return None,
        }
    }
    None
}

/// Refuses results that are too large, and ends after the first error. What references stand for is
/// counted, and not read.
fn bounded<'a>(documents: Documents<'a>, large: &Large) -> Documents<'a> {
    let may_refer = large.is_met();
    let checked = documents.map(move |document| {
        let document = document?;
        let bytes = match may_refer {
            true => whole_bytes(document.view()),
            false => document.as_bytes().len() as u64,
        };
        if bytes <= RESULT_BYTES_MAX as u64 {
            return Ok(document);
        }
        let message = format!(
            "BSONObj size: {bytes} (0x{bytes:X}) is invalid. \
             Size must be between 0 and {RESULT_BYTES_MAX}"
        );
        Err(QueryError::new(Code::BSONObjectTooLarge, message))
    });
    let mut has_failed = false;
    Box::new(checked.take_while(move |document| {
        let goes_on = !has_failed;
        has_failed |= document.is_err();
        goes_on
    }))
}
