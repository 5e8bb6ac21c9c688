//! `$setWindowFields`: fields that are computed over the documents around each.
//!
//! 1. Documents are sorted by their partition and then by `sortBy` (on disk where they are many).
//! 2. One partition after the other is read whole; each function of `output` makes its column
//!    ([`window`](super::window)), and the columns become fields.
//!    Where cores are idle, several threads do so, each for a piece of whole partitions
//!    ([`WindowPieces`]).
//! 3. A partition that doesn't fit into memory waits in a file ([`Spool`]), and its functions go
//!    along it ([`Stream`]).
//!
//! *Surprise*: partitions whose key is missing or null are one.

use std::iter::Peekable;
use std::sync::Arc;

use frond_doc::{Document, DocumentBuf, Value, key};

use super::Documents;
use super::chain::context_of;
use super::division::{Division, ParallelStage, PartialResult, of_same_stage};
use super::group::outermost;
use super::parse::{StageParser, failed_to_parse, one, typed, wrong_type};
use super::piece_rows::{OwnRows, PieceRows};
use super::rows::{Input, Pieces, Rows};
use super::set_path::{add_on_way, set_path};
use super::sorter::{Sorted, SortedPieces, Sorter};
use super::spill::Resources;
use super::spool::Spool;
use super::stage::{Context, Origin, Stage, lazily};
use super::window::{Partition, PartitionError, Stream, WindowFunction, bytes_of};
use crate::code::Code;
use crate::cores::Workers;
use crate::error::QueryError;
use crate::expression::{Evaluated, Expression, Scope, Variables, check_bytes, check_depth};
use crate::expression::{failure, parse_path};
use crate::known_fields::check_fields;
use crate::large::{Depth, NeededPaths};
use crate::sort::SortPattern;
use frond_store::budget::{Exceeded, Reservation};

/// `$setWindowFields`
#[derive(Debug)]
struct SetWindowFields {
    partition: Option<Expression>,
    /// The outermost field whose value is the partition's.
    partition_field: Option<String>,
    sort: Option<SortPattern>,
    output: Vec<(Vec<String>, Arc<WindowFunction>)>,
}

/// A partition's documents, in their order.
enum Members {
    InMemory(Vec<DocumentBuf>, Reservation),
    OnDisk(Arc<Spool>),
}

impl Stage for SetWindowFields {
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

    fn origin(&self, path: &str) -> Option<Origin> {
        let field = self.partition_field.as_deref()?;
        let is_of_partition = path.split('.').next() == Some(field) && self.keeps_field_of(path);
        is_of_partition.then(|| Origin::Group(path.to_owned()))
    }

    fn needed_paths(&self) -> NeededPaths {
        let mut needed = self.sort.as_ref().map(SortPattern::needed_paths).unwrap_or_default();
        for (path, function) in &self.output {
            add_on_way(&mut needed, path.iter().map(String::as_str));
            function.sort_paths().for_each(|path| needed.add(&path, Depth::Whole));
        }
        needed
    }

    fn division(self: Arc<Self>) -> Division {
        Division::Gathers(self)
    }
}

/// Parts of the documents, each sorted.
struct SortedParts {
    stage: Arc<SetWindowFields>,
    parts: Vec<Sorted>,
}

impl ParallelStage for SetWindowFields {
    fn gather(
        self: Arc<Self>,
        input: Input<'_>,
        context: &Context,
    ) -> Result<Box<dyn PartialResult>, QueryError> {
        let parts = vec![self.sorted(input, context)?];
        Ok(Box::new(SortedParts { stage: self, parts }))
    }

    fn gives_pieces(&self) -> bool {
        true
    }
}

impl PartialResult for SortedParts {
    fn append(&mut self, next: Box<dyn PartialResult>) -> Result<(), QueryError> {
        self.parts.extend(of_same_stage::<SortedParts>(next).parts);
        Ok(())
    }

    fn documents(self: Box<Self>, context: &Context) -> Result<Documents<'static>, QueryError> {
        let sorted = Sorted::interleaved(self.parts, usize::MAX)?;
        Ok(self.stage.windows(sorted, context))
    }

    fn input(self: Box<Self>, context: &Context) -> Result<Input<'static>, QueryError> {
        let SortedParts { stage, parts } = *self;
        let count =
            |entries| context.resources.cores.as_ref().map_or(1, |it| it.piece_count(entries));
        match SortedPieces::cut(parts, partition_of, count) {
            Ok(sorted) => {
                let (sorted, context) = (Arc::new(sorted), context.clone());
                let pieces = WindowPieces { stage, sorted, context };
                Ok(Input::Rows(Box::new(PieceRows::of(Box::new(pieces)))))
            }
            Err(parts) => Box::new(SortedParts { stage, parts }).documents(context).map(Into::into),
        }
    }
}

/// Pieces of sorted documents, each of whole partitions, with their new fields.
struct WindowPieces {
    stage: Arc<SetWindowFields>,
    sorted: Arc<SortedPieces>,
    context: Context,
}

impl Pieces for WindowPieces {
    fn count(&self) -> usize {
        self.sorted.count()
    }

    fn check(&mut self) -> Result<(), QueryError> {
        Ok(())
    }

    fn rows(&self, position: usize, worker: Option<(&Arc<Workers>, usize)>) -> Box<dyn Rows> {
        let context = match worker {
            Some((workers, place)) => {
                let count = workers.count();
                let mut context = context_of(&self.context, (workers, place), count);
                // What is too large for a share of memory may have a place in all of it.
                context.resources.spill = None;
                context
            }
            None => self.context.clone(),
        };
        let (stage, sorted) = (Arc::clone(&self.stage), Arc::clone(&self.sorted));
        let documents = lazily(move || Ok(stage.windows(sorted.piece(position)?, &context)));
        Box::new(OwnRows(documents))
    }
}

impl SetWindowFields {
    /// Whether what is at `path` stays as it is.
    fn keeps_field_of(&self, path: &str) -> bool {
        let outer = path.split('.').next();
        self.output.iter().all(|(target, _)| target.first().map(String::as_str) != outer)
    }

    fn over<'a>(self: Arc<Self>, input: Input<'a>, context: &Context) -> Documents<'a> {
        let context = context.clone();
        lazily(move || {
            let sorted = self.sorted(input, &context)?;
            Ok(self.windows(sorted, &context))
        })
    }

    /// The documents, those of a partition side by side and in their order.
    fn sorted(&self, input: Input<'_>, context: &Context) -> Result<Sorted, QueryError> {
        let mut sorter = Sorter::new("$setWindowFields", &context.resources, usize::MAX);
        input.visit(&mut |document| {
            sorter.add_view(&self.key(document, &context.variables)?, document)?;
            Ok(true)
        })?;
        sorter.finish()
    }

    /// Sorted documents with their new fields.
    fn windows(self: Arc<Self>, sorted: Sorted, context: &Context) -> Documents<'static> {
        let (variables, resources) = (context.variables.clone(), context.resources.clone());
        let mut sorted = sorted.peekable();
        let mut ready: Documents<'static> = Box::new(std::iter::empty());
        let mut has_failed = false;
        Box::new(std::iter::from_fn(move || {
            loop {
                if has_failed {
                    return None;
                }
                if let Some(document) = ready.next() {
                    has_failed = document.is_err();
                    return Some(document);
                }
                let next = self.next_partition(&mut sorted, &resources).transpose()?;
                match next.and_then(|members| self.computed(members, &variables, &resources)) {
                    Ok(documents) => ready = documents,
                    Err(error) => {
                        has_failed = true;
                        return Some(Err(error));
                    }
                }
            }
        }))
    }

    /// Reads the documents of the next partition; `None` if there is none.
    fn next_partition(
        &self,
        sorted: &mut Peekable<Sorted>,
        resources: &Resources,
    ) -> Result<Option<Members>, QueryError> {
        let Some(first) = sorted.next() else { return Ok(None) };
        let (first_key, first) = first?;
        let partition = partition_of(&first_key).to_vec();
        // With what is made of them they take it twice; where nothing may go to disk, it has to do.
        let halves = if resources.spill.is_some() { 2 } else { 1 };
        let mut reservation = resources.reservation_of(resources.memory_bytes_max / halves);
        let mut bytes = first.as_bytes().len();
        let mut documents = vec![first];
        let mut spool: Option<Spool> = None;
        let is_of_it = |entry: &Result<(bytes::Bytes, _), QueryError>| {
            entry.as_ref().map_or(true, |(key, _)| partition_of(key) == partition)
        };
        while let Some(entry) = sorted.next_if(is_of_it) {
            let (_, document) = entry?;
            if let Some(spool) = &mut spool {
                spool.push(document.view())?;
                continue;
            }
            bytes += bytes_of(&document);
            documents.push(document);
            if let Err(exceeded) = reservation.hold(bytes) {
                let documents = std::mem::take(&mut documents);
                spool = Some(spooled(documents, resources, exceeded)?);
                reservation.release();
            }
        }
        Ok(Some(match spool {
            Some(spool) => Members::OnDisk(Arc::new(spool)),
            None => Members::InMemory(documents, reservation),
        }))
    }

    /// The documents with their new fields.
    fn computed<'a>(
        self: &Arc<Self>,
        members: Members,
        variables: &Variables,
        resources: &Resources,
    ) -> Result<Documents<'a>, QueryError> {
        let spool = match members {
            Members::InMemory(documents, mut reservation) => {
                resources.check()?;
                match self.compute(&documents, variables, resources, &mut reservation) {
                    Ok(made) => {
                        return Ok(Box::new(made.into_iter().map(move |document| {
                            // As long as there are documents, the memory is taken.
                            let _held = &reservation;
                            Ok(document)
                        })));
                    }
                    Err(PartitionError::Failed(error)) => return Err(error),
                    Err(PartitionError::Exceeded(exceeded)) => {
                        Arc::new(spooled(documents, resources, exceeded)?)
                    }
                }
            }
            Members::OnDisk(spool) => spool,
        };
        let mut streams: Vec<Stream> = Vec::with_capacity(self.output.len());
        for (_, function) in &self.output {
            streams.push(function.stream(&spool, self.sort.as_ref(), variables, resources)?);
        }
        let stage = Arc::clone(self);
        Ok(Box::new(spool.read().map(move |document| {
            let document = document?;
            let mut made = document.clone();
            for ((path, _), stream) in stage.output.iter().zip(&mut streams) {
                let value = stream.next(&document)?;
                made = set_path(made.view(), path, value.value());
                check_bytes(made.as_bytes().len())?;
            }
            check_depth(Value::Document(made.view()), 1)?;
            Ok(made)
        })))
    }
}

/// The documents of a partition that doesn't fit into memory.
fn spooled(
    documents: Vec<DocumentBuf>,
    resources: &Resources,
    exceeded: Exceeded,
) -> Result<Spool, QueryError> {
    let mut spool = Spool::on_disk("$setWindowFields", resources, exceeded)?;
    for document in documents {
        spool.push(document.view())?;
    }
    Ok(spool)
}

/// The partition's part of a sort key.
fn partition_of(key: &[u8]) -> &[u8] {
    let mut rest = key;
    // The keys were made here: what begins them is a value's.
    key::skip(&mut rest, false).expect("a sort key begins with the partition's value");
    &key[..key.len() - rest.len()]
}

impl SetWindowFields {
    fn key(&self, document: Document<'_>, variables: &Variables) -> Result<Vec<u8>, QueryError> {
        let mut key = Vec::new();
        let scope = Scope::new(document, variables);
        let partition = match &self.partition {
            Some(expression) => expression.evaluate_in(&scope)?,
            None => Evaluated::NULL,
        };
        if let Value::Array(_) = partition.or_null() {
            let message = "An expression used to partition cannot evaluate to value of type array";
            return Err(QueryError::new(Code::TypeMismatch, message));
        }
        let collation = variables.collation();
        collation.append_key(&mut key, partition.or_null(), false);
        if let Some(sort) = &self.sort {
            sort.append_key(&mut key, document, collation)?;
        }
        Ok(key)
    }

    fn compute(
        &self,
        documents: &[DocumentBuf],
        variables: &Variables,
        resources: &Resources,
        reservation: &mut Reservation,
    ) -> Result<Vec<DocumentBuf>, PartitionError> {
        let sort = self.sort.as_ref();
        let mut partition = Partition::new(documents, sort, variables, resources, reservation);
        let mut columns = Vec::with_capacity(self.output.len());
        for (path, function) in &self.output {
            columns.push((path, function.column(&mut partition)?));
        }
        let mut made = documents.to_vec();
        for (path, column) in columns {
            for (document, value) in made.iter_mut().zip(column) {
                *document = set_path(document.view(), path, value.value());
                check_bytes(document.as_bytes().len())?;
            }
        }
        for document in &made {
            check_depth(Value::Document(document.view()), 1)?;
        }
        Ok(made)
    }
}

pub(super) fn parse(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let Value::Document(specification) = argument else {
        let found = argument.element_type().alias();
        return Err(failed_to_parse(format!(
            "the $setWindowFields stage specification must be an object, found {found}"
        )));
    };
    check_fields("$setWindowFields", specification, &["partitionBy", "sortBy", "output"])?;
    let partition =
        specification.get("partitionBy").map(|value| parser.expression(value)).transpose()?;
    let sort = match typed(specification, "sortBy") {
        None => None,
        Some(Value::Document(sort)) if sort.is_empty() => None,
        Some(Value::Document(sort)) => Some(SortPattern::parse(sort)?),
        Some(other) => return Err(wrong_type("$setWindowFields.sortBy", other, "object")),
    };
    let output = typed(specification, "output").ok_or_else(|| {
        failure(40414, "BSON field '$setWindowFields.output' is missing but a required field")
    })?;
    let Value::Document(fields) = output else {
        return Err(wrong_type("$setWindowFields.output", output, "object"));
    };
    let mut output = Vec::new();
    for (path, function) in fields.iter() {
        let Value::Document(function) = function else {
            return Err(failed_to_parse(format!(
                "The field '{path}' must be an object: a window function"
            )));
        };
        let function = WindowFunction::parse(function, sort.as_ref(), parser)?;
        output.push((parse_path(path)?, Arc::new(function)));
    }
    let partition_field = specification.get("partitionBy").and_then(outermost);
    one(SetWindowFields { partition, partition_field, sort, output })
}
