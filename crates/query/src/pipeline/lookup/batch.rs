//! The equality join of a `$lookup`, batch by batch.
//!
//! 1. The local values of a batch are asked for at once, and what is found is handed out by its
//!    keys.
//! 2. All that a batch holds (its documents, their values, what was found) is charged to a
//!    reservation. A batch that may hold no more is cut in two, and the second half waits until the
//!    first was read; one document's join that takes too much is an error.
//! 3. A document is joined when it is asked for: what was found is shared until then.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, ValueBuf};
use frond_store::budget::{Exceeded, Reservation};

use super::{Equality, Lookup, collect};
use crate::code::Code;
use crate::collation::Collation;
use crate::error::QueryError;
use crate::filter::Filter;
use crate::large::{Depth, NeededPaths};
use crate::memory::bytes_of;
use crate::pipeline::stage::Context;
use crate::pipeline::{Documents, MEMORY_BYTES_MAX};

/// The largest batch of an equality join.
const BATCH_MAX: usize = 1024;
/// The memory of a value that is looked for, besides its bytes: here, in the filter, and in the
/// parts that the filter is made of.
const VALUE_BYTES: usize = 512;
/// The number of copies of each byte of a value.
const VALUE_COPIES: usize = 4;

/// An equality join on its way.
pub(super) struct BatchRun<'a> {
    stage: Arc<Lookup>,
    input: Documents<'a>,
    context: Context,
    /// Parts of batches that were cut, the next one last.
    waiting: Vec<Vec<DocumentBuf>>,
    /// Documents with what was found for them.
    found: VecDeque<(DocumentBuf, Vec<DocumentBuf>)>,
    /// The memory of those that are found.
    reservation: Reservation,
    /// The memory of those that wait.
    waiting_reservation: Reservation,
    /// The error that comes after those that are found.
    failed: Option<QueryError>,
    batch: usize,
}

/// The reason why a batch was not joined.
enum Failed {
    Exceeded(Exceeded),
    Query(QueryError),
}

impl From<QueryError> for Failed {
    fn from(error: QueryError) -> Failed {
        Failed::Query(error)
    }
}

impl From<Exceeded> for Failed {
    fn from(exceeded: Exceeded) -> Failed {
        Failed::Exceeded(exceeded)
    }
}

impl<'a> BatchRun<'a> {
    pub(super) fn new(stage: Arc<Lookup>, input: Documents<'a>, context: Context) -> BatchRun<'a> {
        BatchRun {
            stage,
            input,
            waiting: Vec::new(),
            found: VecDeque::new(),
            reservation: context.resources.reservation_of(MEMORY_BYTES_MAX),
            waiting_reservation: context.resources.reservation_of(MEMORY_BYTES_MAX),
            // What comes of a part is wanted.
            batch: if context.is_part { BATCH_MAX } else { 1 },
            context,
            failed: None,
        }
    }

    pub(super) fn next(&mut self) -> Option<Result<DocumentBuf, QueryError>> {
        if self.found.is_empty() && (!self.waiting.is_empty() || self.failed.is_none()) {
            self.reservation.release();
            self.fill();
        }
        if let Some((document, found)) = self.found.pop_front() {
            return Some(self.join(&document, found));
        }
        self.failed.take().map(Err)
    }

    fn join(
        &self,
        document: &DocumentBuf,
        found: Vec<DocumentBuf>,
    ) -> Result<DocumentBuf, QueryError> {
        let found: Documents<'_> = Box::new(found.into_iter().map(Ok));
        let found = match &self.stage.pipeline {
            None => found,
            Some(pipeline) => {
                let inner = self.stage.inner(document, &self.context)?;
                pipeline.clone().run_in(found, &inner)?
            }
        };
        let found = collect(found, self.context.variables.memory())?;
        self.stage.join(document, &found)
    }

    /// Finds for the next batch, or for as much of it as memory allows.
    fn fill(&mut self) {
        if self.waiting.is_empty() {
            self.waiting_reservation.release();
            self.read_batch();
        }
        while let Some(mut documents) = self.waiting.pop() {
            match self.find(&documents) {
                Ok(found) => {
                    self.found = documents.into_iter().zip(found).collect();
                    return;
                }
                Err(Failed::Exceeded(_)) if 1 < documents.len() => {
                    self.reservation.release();
                    let second = documents.split_off(documents.len() / 2);
                    self.waiting.extend([second, documents]);
                }
                Err(Failed::Exceeded(exceeded)) => {
                    let message = format!("$lookup exceeded memory limit of {exceeded}");
                    self.fail(QueryError::new(Code::ExceededMemoryLimit, message));
                }
                Err(Failed::Query(error)) => self.fail(error),
            }
        }
    }

    /// Fails; nothing comes after an error.
    fn fail(&mut self, error: QueryError) {
        self.waiting.clear();
        self.failed = Some(error);
    }

    fn read_batch(&mut self) {
        let bytes_max = self.context.resources.memory_bytes_max.min(MEMORY_BYTES_MAX) / 4;
        let (mut documents, mut bytes) = (Vec::new(), 0);
        while documents.len() < self.batch && bytes < bytes_max {
            match self.input.next() {
                Some(Ok(document)) => {
                    bytes += size_of::<DocumentBuf>() + document.as_bytes().len();
                    documents.push(document);
                }
                Some(Err(error)) => {
                    self.failed = Some(error);
                    break;
                }
                None => break,
            }
            // One document more is there in any case.
            if self.waiting_reservation.hold(bytes).is_err() {
                break;
            }
        }
        self.batch = (self.batch * 2).min(BATCH_MAX);
        if !documents.is_empty() {
            self.waiting.push(documents);
        }
    }

    /// Returns the documents found for each of `documents`.
    fn find(&mut self, documents: &[DocumentBuf]) -> Result<Vec<Vec<DocumentBuf>>, Failed> {
        let stage = Arc::clone(&self.stage);
        let Some(equality) = &stage.equality else { return Ok(Vec::new()) };
        let context = &self.context;
        let collation = context.variables.collation();
        let wanted = Wanted::new(equality, documents, collation, &mut self.reservation)?;
        let filter = wanted.filter(equality)?;
        let mut found: Vec<Vec<DocumentBuf>> = vec![Vec::new(); documents.len()];
        let mut bytes = wanted.bytes;
        let (database, collection) = (stage.database.as_deref(), stage.collection.as_deref());
        let collection = collection.unwrap_or_default();
        let mut needed = NeededPaths::default();
        needed.add(&equality.foreign_name, Depth::Whole);
        for foreign in context.find(database, collection, &filter, needed)? {
            let foreign = foreign?;
            let positions = wanted.positions(equality, foreign.view());
            if positions.is_empty() {
                continue;
            }
            // A copy: what was read may be a small part of what it keeps in memory.
            let kept = foreign.view().to_buf();
            bytes += kept.as_bytes().len() + positions.len() * 2 * size_of::<DocumentBuf>();
            self.reservation.hold(bytes)?;
            for position in positions {
                found[position].push(kept.clone());
            }
        }
        Ok(found)
    }
}

/// The local values of a batch, and which documents have them.
struct Wanted {
    collation: Collation,
    /// The values by key, so that the filter doesn't depend on chance.
    values: BTreeMap<Bytes, ValueBuf>,
    positions: HashMap<Bytes, Vec<usize>>,
    /// The documents that join null.
    nulls: Vec<usize>,
    /// About how much memory all that takes.
    bytes: usize,
}

impl Wanted {
    fn new(
        equality: &Equality,
        documents: &[DocumentBuf],
        collation: &Collation,
        reservation: &mut Reservation,
    ) -> Result<Wanted, Exceeded> {
        let mut wanted = Wanted {
            collation: collation.clone(),
            values: BTreeMap::new(),
            positions: HashMap::new(),
            nulls: Vec::new(),
            bytes: 0,
        };
        for (position, document) in documents.iter().enumerate() {
            let mut is_empty = true;
            let mut allowed = Ok(());
            equality.local.visit(document.view(), &mut |value| {
                let mut add = |value: Value<'_>| {
                    is_empty = false;
                    wanted.add(position, value);
                    allowed = reservation.hold(wanted.bytes);
                    allowed.is_err()
                };
                match value {
                    Some(Value::Array(array)) => array.iter().any(add),
                    Some(value) => add(value),
                    None => false,
                }
            });
            allowed?;
            if is_empty {
                wanted.add(position, Value::Null);
            }
        }
        Ok(wanted)
    }

    fn add(&mut self, position: usize, value: Value<'_>) {
        if matches!(value, Value::Null | Value::Undefined) {
            if self.nulls.last() != Some(&position) {
                self.nulls.push(position);
            }
            return;
        }
        let key = self.collation.key_of(value);
        if !self.values.contains_key(&key) {
            self.bytes += VALUE_BYTES + VALUE_COPIES * (key.len() + bytes_of(value));
            self.values.insert(key.clone(), value.to_buf());
        }
        let positions = self.positions.entry(key).or_default();
        if positions.last() != Some(&position) {
            self.bytes += 2 * size_of::<usize>();
            positions.push(position);
        }
    }

    /// The filter that every wanted document passes: `{foreign: {$in: [...]}}`, with patterns,
    /// which `$in` would search by, compared instead.
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
