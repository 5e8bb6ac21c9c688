//! A stage of a pipeline: a function from documents to documents.

use std::fmt;
use std::sync::Arc;

use frond_doc::DocumentBuf;

use super::division::Division;
use super::geo_near::GeoNearStage;
use super::rows::{Input, Rows};
use super::shape::Shape;
use super::together::Together;
use super::{Collections, Documents, Resources};
use crate::error::QueryError;
use crate::expression::Variables;
use crate::filter::Filter;
use crate::large::NeededPaths;
use crate::memory::RequestMemory;
use crate::metadata::Metadata;
use crate::outermost::OutermostNames;
use crate::script_batches::BatchReader;
use crate::sort::SortPattern;

/// The context in which a stage runs.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) variables: Variables,
    pub(super) collections: Arc<dyn Collections>,
    /// The memory it may use, and the place for the rest.
    pub(super) resources: Resources,
    /// The number of documents the stages after this one read at most.
    pub(super) wanted: Option<usize>,
    /// The metadata that the pipeline's stages want to be left in documents.
    pub(super) metadata: Metadata,
    /// Whether a thread reads all that comes of a part of the documents.
    pub(super) is_part: bool,
    /// The memory that the threads of parts hold together, where they may.
    pub(super) together: Option<Arc<Together>>,
}

impl Context {
    /// The documents of a collection that pass, with what is asked for.
    pub(super) fn find(
        &self,
        database: Option<&str>,
        collection: &str,
        filter: &Filter,
        needed: NeededPaths,
    ) -> Result<Documents<'static>, QueryError> {
        let documents = self.collections.find(database, collection, filter)?;
        let large = self.variables.large().clone();
        if !large.may_have_references() {
            return Ok(documents);
        }
        Ok(Box::new(documents.map(move |document| large.open_document(&needed, document?))))
    }
}

/// The number of documents a stage gives for those that it gets.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cardinality {
    /// One for each.
    Same,
    /// All but so many at the beginning.
    Skip(usize),
    /// So many at most.
    Limit(usize),
    /// It depends.
    Other,
}

impl Cardinality {
    /// Whether the stage only leaves out the first documents or the last.
    pub fn cuts(self) -> bool {
        matches!(self, Cardinality::Skip(_) | Cardinality::Limit(_))
    }
}

/// Where what comes out of a stage at some path was before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// At this path of the one document that it was made of.
    Document(String),
    /// At this path of each of the documents that it was made of, or that were looked at with it:
    /// all those that have equal values there. Null stands for what they hadn't.
    Group(String),
}

impl Origin {
    /// The path.
    pub(super) fn path(&self) -> &str {
        match self {
            Origin::Document(path) | Origin::Group(path) => path,
        }
    }
}

/// A parsed stage. *Thread safety*: immutable, so that any number of runs may share it.
pub(super) trait Stage: fmt::Debug + Send + Sync {
    /// Puts this stage after `input`.
    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError>;

    /// Puts this stage after documents that are lent. Stages that only look at documents do this
    /// themselves, the others get documents of their own.
    fn run_over<'a>(
        self: Arc<Self>,
        rows: Box<dyn Rows + 'a>,
        context: &Context,
    ) -> Result<Input<'a>, QueryError> {
        Ok(Input::Documents(self.run(Input::Rows(rows).into_documents(), context)?))
    }

    /// The filter, if this is a `$match`.
    fn filter(&self) -> Option<&Filter> {
        None
    }

    /// Whether each document that comes out has at `path` what the one that went in had, and
    /// whether nothing but the document itself decides what comes of it.
    fn keeps(&self, _path: &str) -> bool {
        false
    }

    /// Where a document that went in has what each that comes out has at `path`, if nothing but
    /// that document, or those of its group, decides what comes of it.
    fn origin(&self, path: &str) -> Option<Origin> {
        self.keeps(path).then(|| Origin::Document(path.to_owned()))
    }

    /// At what of documents the stage looks by itself: other values may be references. Its
    /// expressions open what they want.
    fn needed_paths(&self) -> NeededPaths {
        NeededPaths::all()
    }

    /// Returns the change it makes to each document's fields, if it does nothing else.
    fn shape(&self) -> Option<&Shape> {
        None
    }

    /// The stage itself, if it is a `$geoNear`.
    fn geo_near(&self) -> Option<&GeoNearStage> {
        None
    }

    /// The order, if this is a `$sort`.
    fn order(&self) -> Option<&SortPattern> {
        None
    }

    /// What this does of an order that may refuse documents, where they are only counted behind it.
    fn counted(&self) -> Option<Arc<dyn Stage>> {
        None
    }

    /// An order that keeps no other fields of documents than these; `None`: all.
    fn keeping(&self, _names: Option<&OutermostNames>) -> Option<Arc<dyn Stage>> {
        None
    }

    /// The outermost fields that all that comes out of the stage depends on, and its order; `None`:
    /// it depends on more.
    fn outermost_names(&self) -> Option<OutermostNames> {
        Some(OutermostNames::of(self.needs()?.iter().map(String::as_str)))
    }

    /// The paths that all that comes out of the stage depends on; `None`: it depends on more.
    fn needs(&self) -> Option<Vec<String>> {
        None
    }

    /// The collection that this stage writes: (database, collection).
    fn output(&self) -> Option<(Option<String>, String)> {
        None
    }

    /// Whether this stage makes its own documents.
    fn is_source(&self) -> bool {
        false
    }

    /// The stage as it was written, if it shows history.
    fn history(&self) -> Option<&DocumentBuf> {
        None
    }

    /// This stage passing over so many, if it is a `$skip`.
    fn skipping(&self, _count: usize) -> Option<Arc<dyn Stage>> {
        None
    }

    /// Returns how many documents come out.
    fn cardinality(&self) -> Cardinality {
        Cardinality::Other
    }

    /// Returns how it may run over parts of its documents at once.
    fn division(self: Arc<Self>) -> Division {
        Division::Whole
    }

    /// Whether a run begins with work that it does once: it is run over few parts, not over many
    /// pieces.
    fn begins_dearly(&self) -> bool {
        false
    }

    /// The stage itself, if all that it asks of documents is how many there are.
    fn counter(&self) -> Option<&dyn Counter> {
        None
    }
}

/// A stage that only counts.
pub(super) trait Counter {
    /// Returns the result for `count` documents.
    fn of_count(
        &self,
        count: u64,
        variables: &Variables,
    ) -> Result<Option<DocumentBuf>, QueryError>;
}

/// Applies `evaluate`, which runs scripts, to each of the documents, and returns the results it
/// gives: several are asked together.
pub(super) fn needed_ahead<'a>(
    mut input: Documents<'a>,
    memory: RequestMemory,
    evaluate: impl Fn(&DocumentBuf) -> Result<Option<DocumentBuf>, QueryError> + Send + 'a,
) -> Documents<'a> {
    let mut ahead: BatchReader<DocumentBuf, Option<DocumentBuf>, QueryError> =
        BatchReader::default();
    let mut read = move || {
        let document = input.next().transpose()?;
        Ok(document.map(|document| {
            let bytes = document.as_bytes().len();
            (document, bytes)
        }))
    };
    Box::new(std::iter::from_fn(move || {
        loop {
            match ahead.next(&memory, &mut read, &evaluate) {
                Ok(Some((_, Some(made)))) => return Some(Ok(made)),
                Ok(Some((_, None))) => {}
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }))
}

/// Documents that are made when the first of them is asked for.
pub(super) fn lazily<'a>(
    make: impl FnOnce() -> Result<Documents<'a>, QueryError> + Send + 'a,
) -> Documents<'a> {
    let mut make = Some(make);
    let mut made: Option<Documents<'a>> = None;
    Box::new(std::iter::from_fn(move || {
        if let Some(make) = make.take() {
            match make() {
                Ok(documents) => made = Some(documents),
                Err(error) => return Some(Err(error)),
            }
        }
        made.as_mut()?.next()
    }))
}
