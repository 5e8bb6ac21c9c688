//! `aggregate`.
//!
//! The pipeline's stages are `frond_query`'s. Here they get their documents: those of a leading
//! `$match` by the planner, those of other collections (`$lookup`) at the same snapshot, of other
//! branches too (`shop@feature`). Large documents come with references for their long values
//! ([`crate::collection::handles`]), unless the stage that gets them needs them whole.

mod by_ids;
pub(super) mod near;
mod rows;

use std::sync::Arc;

use frond_doc::{Array, Document, DocumentBuf, Value, ValueBuf};
use frond_engine::Durability;
use frond_query::expression::Variables;
use frond_query::large::Large;
use frond_query::pipeline::{Collections, Documents, GeoNear, Input, Merge, Pipeline, Resources};
use frond_query::{Code, Filter, QueryError};

use crate::catalog::Catalog;
use crate::collection::aggregate::near::{geo_path, near_input};
use crate::collection::aggregate::rows::ScannedRows;
use crate::collection::cursor_validity::CursorValidity;
use crate::collection::deferred_errors::DeferredErrors;
use crate::collection::handles::{LazyLargeDocuments, handles};
use crate::collection::merge::MergeInto;
use crate::collection::parse::{collation_of, variables_in};
use crate::collection::plan::Order;
use crate::collection::reference_translator::Referring;
use crate::collection::replace::replace_collection;
use crate::collection::scan::Scan;
use crate::collection::search::Search;
use crate::collection::skip::pass_over;
use crate::collection::{AggregateRequest, Cursor, buckets};
use crate::database::Database;
use crate::definition::view::{DEPTH_MAX, View, too_deep};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::name;
use crate::reader::Reader;
use crate::refs::erased::{self, EraseCount};
use crate::transaction::not_in_transaction;

/// The database as a pipeline's stages see it.
#[derive(Clone)]
struct Stages {
    database: Database,
    reader: Reader<'static>,
    deferred: DeferredErrors,
    resources: Resources,
    interrupt: Interrupt,
    /// Reads the references of documents.
    large: Large,
    /// Whether what comes out is stored.
    stores: bool,
    /// The number of views the stages stand in.
    view_depth: usize,
}

/// Runs a pipeline over a collection (`None`: `{aggregate: 1}`).
pub(crate) fn aggregate(
    database: &Database,
    collection: Option<&str>,
    request: &AggregateRequest,
) -> Result<Cursor, Error> {
    let stages = match request.pipeline.as_value() {
        Value::Array(stages) => stages,
        _ => {
            let message = "'pipeline' option must be specified as an array";
            return Err(Error::invalid(Code::TypeMismatch, message));
        }
    };
    let reader = database.reader();
    if let Some(found) = by_ids::find(database, &reader, collection, stages, request)? {
        return Ok(found);
    }
    let variables = variables_in(database, request.variables.as_ref(), &request.interrupt)?;
    variables.memory().hold_parsed(stages.as_bytes().len())?;
    let deferred = DeferredErrors::default();
    let context = Arc::new(Stages {
        database: database.clone(),
        reader: reader.clone(),
        deferred: deferred.clone(),
        resources: resources_of(database, request, &deferred),
        interrupt: request.interrupt.clone(),
        large: handles(&reader, &deferred),
        stores: ends_in_output(stages),
        view_depth: 0,
    });
    let documents =
        run_pipeline(database, &reader, collection, stages, request, variables, context);
    let documents = documents.map_err(|error| deferred.restore(error))?;
    Ok(Cursor::new(
        documents.map(move |document| document.map_err(|error| deferred.restore(error.into()))),
    ))
}

fn run_pipeline(
    database: &Database,
    reader: &Reader<'static>,
    collection: Option<&str>,
    stages: Array<'_>,
    request: &AggregateRequest,
    variables: Variables,
    context: Arc<Stages>,
) -> Result<Documents<'static>, Error> {
    let source = database.split_source(stages)?;
    let stages = match source.as_ref().and_then(|(_, rest)| rest.as_value().as_array()) {
        Some(rest) => rest,
        None => stages,
    };
    let found = match collection {
        Some(collection) => Catalog::of(reader, database).compared(collection)?,
        None => None,
    };
    let collation = collation_of(request.collation.as_ref(), found.as_deref())?;
    let mut pipeline = Pipeline::parse_collated(stages, &collation)?;
    let variables = variables.with_collation(collation).with_large(context.large.clone());
    pipeline.compute_constants(&variables)?;
    if let Some((output, _)) = pipeline.output() {
        check_output(database, reader, output.as_deref(), stages)?;
    }
    let first = source.as_ref().and_then(|(first, _)| first.as_value().as_document());
    if pipeline.is_source() {
        check_documents_stage(first.is_some(), collection)?;
    }
    let behind_views;
    let collection = match collection {
        Some(name) if first.is_none() => {
            behind_views = put_behind_views(database, reader, name, &mut pipeline, &variables)?;
            Some(behind_views.as_str())
        }
        other => other,
    };
    let input: Input<'static> = match collection {
        _ if let Some(first) = first => history_input(database, collection, first, &context)?,
        _ if pipeline.is_source() => Input::Documents(Box::new(std::iter::empty())),
        Some(collection) if let Some(near) = pipeline.take_geo_near(&variables)? => {
            let wanted = match pipeline.leading_order() {
                (None, limit) => limit.and_then(|limit| u64::try_from(limit).ok()),
                (Some(_), _) => None,
            };
            let search = (near, request.hint.as_ref(), wanted);
            near_input(database, reader, collection, search, &variables, &context)?
        }
        Some(collection) => {
            let hint = request.hint.as_ref();
            searched_input(database, reader, collection, &mut pipeline, hint, &variables, &context)?
        }
        None => {
            let message =
                "{aggregate: 1} is not valid for a pipeline that reads a collection's documents";
            return Err(Error::invalid(Code::InvalidNamespace, message));
        }
    };
    Ok(pipeline.run_over(input, variables, context)?)
}

/// Puts the stages of the views that `name` and those below it are in front of the pipeline, where
/// both can be planned as one. Returns the collection that it reads then.
fn put_behind_views(
    database: &Database,
    reader: &Reader<'static>,
    name: &str,
    pipeline: &mut Pipeline,
    variables: &Variables,
) -> Result<String, Error> {
    let mut name = name.to_owned();
    let catalog = Catalog::of(reader, database);
    if catalog.series_of_buckets(&name)?.is_some() {
        return Ok(name);
    }
    for _ in 0..DEPTH_MAX {
        let Some(view) = catalog.view(&name)? else { return Ok(name) };
        let of_view = Pipeline::parse_collated(view.stages(), &view.collation)?;
        of_view.compute_constants(variables)?;
        if view.collation != *variables.collation() || !pipeline.put_behind(&of_view) {
            return Ok(name);
        }
        name = view.on;
    }
    match catalog.view(&name)? {
        Some(_) => Err(too_deep()),
        None => Ok(name),
    }
}

/// Refuses a `$documents` that doesn't begin a pipeline of no collection.
fn check_documents_stage(is_behind_history: bool, collection: Option<&str>) -> Result<(), Error> {
    if is_behind_history {
        let message = "$documents is only valid as the first stage in a pipeline";
        return Err(Error::invalid(Code::Location(40602), message));
    }
    if collection.is_some() {
        let message = "'$documents' can only be run with {aggregate: 1}";
        return Err(Error::invalid(Code::InvalidNamespace, message));
    }
    Ok(())
}

/// The rows of a stage that reads history: `$diff`, `$log` and the like.
fn history_input(
    database: &Database,
    collection: Option<&str>,
    stage: Document<'_>,
    context: &Stages,
) -> Result<Input<'static>, Error> {
    if database.is_past() {
        return Err(not_at_moment("a stage that reads history"));
    }
    let deferred = context.deferred.clone();
    let rows = database.versions()?.source(database, collection, stage)?;
    let rows = rows.map(move |row| row.map_err(|error| deferred.keep(error)));
    Ok(Input::Documents(Box::new(rows)))
}

/// Documents for stages.
struct Streamed {
    input: Input<'static>,
    /// Whether they come in the order that was asked for.
    gives_order: bool,
    /// The number of documents that were passed over, of those that may be.
    passed: u64,
}

/// The documents of a collection for a pipeline, whose leading filter and order the planner
/// takes over.
fn searched_input(
    database: &Database,
    reader: &Reader<'static>,
    collection: &str,
    pipeline: &mut Pipeline,
    hint: Option<&ValueBuf>,
    variables: &Variables,
    context: &Stages,
) -> Result<Input<'static>, Error> {
    let filter = pipeline.take_filter().with_variables(variables.clone());
    let collection = match filter.text() {
        Some(_) => &Catalog::of(reader, database).behind_bare_views(collection)?,
        None => collection,
    };
    let (order, limit) = pipeline.leading_order();
    let order = order.map_or(Order::Any, |order| Order::By(order.clone()));
    let order = order.with_collation(variables.collation());
    let search = Search {
        order: &order,
        limit: limit.and_then(|limit| u64::try_from(limit).ok()),
        skip: pipeline.leading_skip(),
        needs: pipeline.needs(),
        ..Search::of(&filter, hint)
    };
    let lazily = match pipeline.output() {
        None if pipeline.chooses_only() => None,
        _ => Some(LazyLargeDocuments::new(&context.large, !context.stores)),
    };
    let lazily = match (lazily, pipeline.needs()) {
        (Some(lazily), Some(paths)) => Some(lazily.only(&paths)),
        (lazily, _) => lazily,
    };
    let Streamed { input, gives_order, passed } =
        stream(database, reader, collection, search, lazily, context)?;
    if gives_order {
        pipeline.drop_order();
    }
    pipeline.skip_fewer(passed);
    Ok(input)
}

/// Refuses a pipeline that writes its output where it can't be written.
fn check_output(
    database: &Database,
    reader: &Reader<'_>,
    name: Option<&str>,
    stages: Array<'_>,
) -> Result<(), Error> {
    erased::refuse_gone(reader, database.repository_name(), database.target())?;
    if database.transaction().is_some() {
        return Err(not_in_transaction("a pipeline that writes its output"));
    }
    if database.is_past() {
        return Err(not_at_moment("a pipeline that writes its output"));
    }
    let target = named_database(database, name)?;
    refuse_internal(target.repository_name(), stages)?;
    target.writable_branch()?;
    Ok(())
}

/// The documents of a collection that are looked for, for stages. Large ones come `lazily` if their
/// receiver reads references, which must be of the request's own repository, where they may be
/// stored again, and of its own moment, which keeps them.
fn stream(
    database: &Database,
    reader: &Reader<'static>,
    collection: &str,
    search: Search<'_>,
    lazily: Option<LazyLargeDocuments>,
    context: &Stages,
) -> Result<Streamed, Error> {
    let (filter, order, skip) = (search.filter.clone(), search.order.clone(), search.skip);
    let unordered = |input| Streamed { input, gives_order: false, passed: 0 };
    let is_hinted = search.hint.is_some();
    let needs_nothing = search.needs.as_ref().is_some_and(Vec::is_empty);
    let reads_all = search.limit.is_none() || order.pattern().is_some();
    let is_own = database.repository_name() == context.database.repository_name()
        && (!database.is_past() || database.name() == context.database.name());
    let lazily = lazily.filter(|_| is_own && context.large.may_have_references());
    if let Some(series) = Catalog::of(reader, database).series_of_buckets(collection)? {
        let name = name::of_buckets(collection).unwrap_or(collection);
        let all = Filter::all();
        let points = stream(database, reader, name, Search::of(&all, None), None, context)?.input;
        let buckets = buckets::buckets_of(&series, points.into_documents(), filter)?;
        return Ok(unordered(buckets.into()));
    }
    if let Some(view) = Catalog::of(reader, database).view(collection)? {
        let carries = lazily.is_some();
        let is_sorted = order.pattern().is_some();
        let read = ReadView { view: &view, filter: &filter, is_sorted, carries };
        let documents = stream_view(database, reader, &read, context)?;
        return Ok(unordered(documents.into()));
    }
    let (name, found) = (collection, Catalog::of(reader, database).collection(collection)?);
    let Some((collection, mut access)) = search.access(database.frond(), reader, found)? else {
        return Ok(unordered(Input::Documents(Box::new(std::iter::empty()))));
    };
    let gives_order = access.gives_order && order.pattern().is_some();
    let passed = match gives_order || order.pattern().is_none() {
        true => skip - pass_over(reader, &collection, &mut access, skip)?,
        false => 0,
    };
    let counts = needs_nothing && access.is_exact && filter.metadata().is_empty();
    let ending = CursorValidity::of(database, name, &collection, &access);
    let mut scan = Scan::new(reader.clone(), &collection, access, filter, &order)
        .interrupted_by(&context.interrupt)
        .ended_by(ending);
    if let Some(lazily) = lazily {
        scan = scan.lazily(lazily);
    }
    if counts {
        scan = scan.counting();
    } else if !is_hinted && scan.is_of_one_id() {
        scan.note_express();
    }
    // The scores of a few are computed faster than all are read.
    if reads_all {
        scan = scan.scored_by_entries(context.resources.reservation());
    }
    let cores = context.resources.cores.clone();
    let rows = ScannedRows::of(scan, cores, context.deferred.clone());
    Ok(Streamed { input: Input::Rows(Box::new(rows)), gives_order, passed })
}

/// What a caller wants of a view.
struct ReadView<'a> {
    view: &'a View,
    /// Of its documents those that pass.
    filter: &'a Filter,
    /// Whether the caller sorts them.
    is_sorted: bool,
    /// Whether large ones may have references.
    carries: bool,
}

/// The documents of a view: those that its pipeline makes.
fn stream_view(
    database: &Database,
    reader: &Reader<'static>,
    &ReadView { view, filter, is_sorted, carries }: &ReadView<'_>,
    context: &Stages,
) -> Result<Documents<'static>, Error> {
    if DEPTH_MAX <= context.view_depth {
        return Err(too_deep());
    }
    let context = Stages {
        database: database.clone(),
        reader: reader.clone(),
        view_depth: context.view_depth + 1,
        ..context.clone()
    };
    if *filter.collation() != view.collation {
        let message = "Cannot override a view's default collation";
        return Err(Error::invalid(Code::OptionNotSupportedOnView, message));
    }
    if filter.text().is_some() {
        let message = "$match with $text is only allowed as the first pipeline stage";
        return Err(Error::invalid(Code::Location(17313), message));
    }
    let variables = variables_in(database, None, &context.interrupt)?;
    let variables = variables.with_collation(view.collation.clone());
    let variables = variables.with_large(context.large.clone());
    let mut pipeline = Pipeline::parse_collated(view.stages(), &view.collation)?;
    pipeline.compute_constants(&variables)?;
    let near = pipeline.take_geo_near(&variables)?;
    let left = pipeline.append_filter(filter);
    if is_sorted {
        pipeline.drop_last_order();
    }
    let input = if pipeline.is_source() {
        Input::Documents(Box::new(std::iter::empty()))
    } else if let Some(near) = near {
        near_input(database, reader, &view.on, (near, None, None), &variables, &context)?
    } else {
        let own = pipeline.take_filter().with_variables(variables.clone());
        let is_read = carries || !pipeline.chooses_only();
        let takes_kept = !carries || !context.stores;
        let lazily = is_read.then(|| LazyLargeDocuments::new(&context.large, takes_kept));
        stream(database, reader, &view.on, Search::of(&own, None), lazily, &context)?.input
    };
    let large = context.large.clone();
    let documents = match carries {
        true => pipeline.run_carrying(input, variables, Arc::new(context))?,
        false => pipeline.run_over(input, variables, Arc::new(context))?,
    };
    Ok(match left {
        Some(filter) => passing(documents, filter.with_large(&large), large),
        None => documents,
    })
}

/// The documents that pass `filter`, for which `large` opens what they hold references to.
fn passing(documents: Documents<'static>, filter: Filter, large: Large) -> Documents<'static> {
    let needed = filter.needed_paths();
    let passes = move |document: &DocumentBuf| match large.opened(&needed, document.view())? {
        Some(opened) => filter.try_matches(opened.view()),
        None => filter.try_matches(document.view()),
    };
    Box::new(documents.filter_map(move |document| match document {
        Ok(document) => match passes(&document) {
            Ok(passes) => passes.then_some(Ok(document)),
            Err(error) => Some(Err(error)),
        },
        Err(error) => Some(Err(error)),
    }))
}

/// Returns the resources of a request's stages, which stop when its scans do.
fn resources_of(
    database: &Database,
    request: &AggregateRequest,
    deferred: &DeferredErrors,
) -> Resources {
    let (interrupt, deferred) = (request.interrupt.clone(), deferred.clone());
    let go_on = move || interrupt.check().map_err(|error| deferred.keep(error));
    Resources { go_on: Some(Arc::new(go_on)), ..database.frond().resources(request.in_memory_only) }
}

/// The database that a stage names, or the pipeline's own.
fn named_database(database: &Database, name: Option<&str>) -> Result<Database, Error> {
    match name {
        Some(name) => database.sibling(name),
        None => Ok(database.clone()),
    }
}

fn not_at_moment(what: &str) -> Error {
    let message = format!("{what} is not supported by Frond with readConcern level 'snapshot'");
    Error::invalid(Code::InvalidOptions, message)
}

/// Refuses to store what comes out in a database that is the server's own.
fn refuse_internal(database: &str, stages: Array<'_>) -> Result<(), Error> {
    if !name::is_internal(database) {
        return Ok(());
    }
    let last = stages.iter().last().and_then(|stage| stage.as_document());
    let (code, message) = match last.and_then(|stage| stage.iter().next()) {
        Some(("$out", _)) => (31321, format!("Can't $out to internal database: {database}")),
        _ => (31320, format!("Cannot $merge to internal database: {database}")),
    };
    Err(Error::invalid(Code::Location(code), message))
}

/// Whether the last stage stores what comes to it.
fn ends_in_output(stages: Array<'_>) -> bool {
    let last = stages.iter().last().and_then(|stage| stage.as_document());
    last.is_some_and(|stage| stage.iter().any(|(name, _)| matches!(name, "$merge" | "$out")))
}

impl Stages {
    /// Returns the kind of references that documents have which are to be stored in `target`.
    fn referring(&self, target: &Database) -> Referring {
        match target.repository_name() == self.database.repository_name() {
            true => Referring::Here,
            false => Referring::Elsewhere,
        }
    }
}

impl Stages {
    /// Returns the reader of a database that a stage names: the same as for all else, unless it is
    /// named at a moment of its own.
    fn reader_of(&self, database: &Database) -> Reader<'static> {
        match database.is_past() {
            true => database.reader(),
            false => self.reader.clone(),
        }
    }
}

impl Collections for Stages {
    fn find(
        &self,
        database: Option<&str>,
        collection: &str,
        filter: &Filter,
    ) -> Result<Documents<'static>, QueryError> {
        let database = named_database(&self.database, database);
        database
            .and_then(|database| {
                let search = Search::of(filter, None);
                // A caller that looks for documents by a value reads it in those that are found.
                let lazily = LazyLargeDocuments::new(&self.large, !self.stores);
                let lazily = Some(lazily.with_needed(&filter.needed_paths_by_element()));
                let reader = self.reader_of(&database);
                let found = stream(&database, &reader, collection, search, lazily, self)?;
                Ok(found.input.into_documents())
            })
            .map_err(|error| self.deferred.keep(error))
    }

    fn near(
        &self,
        database: Option<&str>,
        collection: &str,
        near: GeoNear,
        variables: &Variables,
    ) -> Result<Documents<'static>, QueryError> {
        let found = named_database(&self.database, database).and_then(|database| {
            let reader = self.reader_of(&database);
            let found = Catalog::of(&reader, &database).collection(collection)?;
            let path = geo_path(found.as_deref(), &near, &database.namespace(collection))?;
            let filter = near.filter(&path, variables);
            let search = Search::of(&filter, None);
            let places = stream(&database, &reader, collection, search, None, self)?.input;
            Ok(near.run(&path, places.into_documents(), &self.resources))
        });
        found.map_err(|error| self.deferred.keep(error))
    }

    fn history(
        &self,
        database: Option<&str>,
        collection: Option<&str>,
        stage: &DocumentBuf,
    ) -> Result<Documents<'static>, QueryError> {
        let database = named_database(&self.database, database);
        let rows = database
            .and_then(|database| database.versions()?.source(&database, collection, stage.view()));
        let rows = rows.map_err(|error| self.deferred.keep(error))?;
        let deferred = self.deferred.clone();
        Ok(Box::new(rows.map(move |row| row.map_err(|error| deferred.keep(error)))))
    }

    fn replace(
        &self,
        database: Option<&str>,
        collection: &str,
        series: Option<Document<'_>>,
        documents: Documents<'_>,
    ) -> Result<(), QueryError> {
        let database = named_database(&self.database, database);
        database
            .and_then(|database| {
                let erases = EraseCount::at(&self.reader)?;
                let documents = (documents, self.referring(&database), erases);
                replace_collection(&database, collection, series, documents, Durability::Synced)
            })
            .map_err(|error| self.deferred.keep(error))
    }

    fn merge(
        &self,
        database: Option<&str>,
        collection: &str,
        merge: &Merge,
        documents: Documents<'_>,
    ) -> Result<(), QueryError> {
        let database = named_database(&self.database, database);
        database
            .and_then(|database| {
                let documents = (documents, self.referring(&database));
                let (erases, durability) = (EraseCount::at(&self.reader)?, Durability::Synced);
                MergeInto { database: &database, collection, merge, durability, erases }
                    .run(documents)
            })
            .map_err(|error| self.deferred.keep(error))
    }

    fn resources(&self) -> Resources {
        self.resources.clone()
    }
}
