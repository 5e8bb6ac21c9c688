//! `$group`: documents with equal keys become one.
//!
//! Groups are found by the key bytes of their `_id`, under which equal values are the same. They
//! come out in the order in which they were first met.
//!
//! When they take half of the memory that is allowed, they stay as they are: what documents after
//! that have for them is sorted by the groups' keys, on disk where it takes much ([`Sorter`], which
//! is stable). In the end each key's values are added to its group, one group after the other, so
//! that no more than one group grows at a time.
//!
//! Where memory is short for all queries, the groups are finished at once and go to disk, in their
//! order: their reader may take long.

mod scripted;

use std::collections::HashMap;
use std::iter::Peekable;
use std::sync::Arc;

use bytes::Bytes;
use frond_doc::builder::position_name;
use frond_doc::field_scan::ScannedNames;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, ValueBuf};

use scripted::Made;

use super::division::{Division, ParallelStage, PartialResult, of_same_stage};
use super::parse::{StageParser, one};
use super::rows::{Input, Rows};
use super::sorter::{RESTING_BYTES_MIN, Sorted, Sorter};
use super::spill::Resources;
use super::stage::{Context, Counter, Origin, Stage, lazily};
use super::together::{Share, Together};
use super::{Documents, MEMORY_BYTES_MAX};
use crate::accumulator::{self, Accumulator, Place, State};
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::{
    Evaluated, Expression, Scope, Variables, check_bytes, check_depth, failure,
};
use crate::large::{Depth, NeededPaths};
use frond_store::budget::{Exceeded, Reservation};

/// About what a group takes besides its values.
const GROUP_BYTES: usize = 128;
/// About what a state takes before it has seen a value.
const STATE_BYTES: usize = 160;

/// `$group`
#[derive(Debug)]
pub(super) struct Group {
    id: Expression,
    fields: Vec<Field>,
    /// The names of all fields that these read, looked up in one walk over a document.
    names: ScannedNames,
    /// Their paths; `None` if documents are read as a whole.
    needs: Option<Vec<String>>,
    /// The paths of the key that are an outermost field's value, and that field.
    origins: Vec<(String, String)>,
}

#[derive(Debug)]
struct Field {
    name: String,
    accumulator: Accumulator,
    /// Whether it is given the same value as the one before.
    repeats: bool,
}

/// The groups so far.
struct Groups {
    positions: HashMap<Bytes, usize>,
    /// A group that was given out is `None`.
    groups: Vec<Option<OneGroup>>,
    bytes: usize,
    reservation: Reservation,
    /// The key of the document that is added; kept for its memory.
    key: Vec<u8>,
    /// Where they are of a part of the documents: what that takes.
    part: Option<Part>,
}

/// The memory of the groups of a part.
struct Part {
    share: Share,
    /// The bytes of those that are counted which will be given back when the part is settled.
    shrinking_bytes: usize,
    is_settled: bool,
}

/// A group and the states of its fields.
pub(super) struct OneGroup {
    pub(super) id: ValueBuf,
    states: Vec<Box<dyn State>>,
}

impl Stage for Group {
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

    fn needed_paths(&self) -> NeededPaths {
        let mut needed = NeededPaths::default();
        let orders = self.fields.iter().filter_map(|field| field.accumulator.order());
        let fields = orders.flat_map(|order| &order.fields);
        fields.for_each(|field| needed.add(&field.path, Depth::Whole));
        needed
    }

    fn needs(&self) -> Option<Vec<String>> {
        self.needs.clone()
    }

    fn origin(&self, path: &str) -> Option<Origin> {
        self.origins.iter().find_map(|(key, field)| {
            let rest = path.strip_prefix(key.as_str())?;
            let is_within = rest.is_empty() || rest.starts_with('.');
            is_within.then(|| Origin::Group(format!("{field}{rest}")))
        })
    }

    fn counter(&self) -> Option<&dyn Counter> {
        let counts = |field: &Field| field.accumulator.of_count(0).is_some();
        let is_counter = self.id.is_constant() && self.fields.iter().all(counts);
        is_counter.then_some(self)
    }

    fn division(self: Arc<Self>) -> Division {
        match self.fields.iter().all(|field| field.accumulator.divides()) {
            true => Division::Gathers(self),
            false => Division::Whole,
        }
    }
}

/// The groups of a part of the documents.
struct GroupsOfPart {
    stage: Arc<Group>,
    groups: Groups,
}

impl ParallelStage for Group {
    fn gather(
        self: Arc<Self>,
        input: Input<'_>,
        context: &Context,
    ) -> Result<Box<dyn PartialResult>, QueryError> {
        let reservation = of_groups(&context.resources).reservation();
        let together = context.together.clone().unwrap_or_else(|| Together::new(reservation));
        let part = Part { share: together.share(), shrinking_bytes: 0, is_settled: false };
        let reservation = context.resources.reservation_of(0);
        let mut groups = Groups { part: Some(part), ..Groups::new(reservation) };
        input.visit(&mut |document| {
            self.add(&mut groups, document, &context.variables)?;
            groups.hold_part()?;
            Ok(true)
        })?;
        Ok(Box::new(GroupsOfPart { stage: self, groups }))
    }

    fn shrinks(&self) -> bool {
        true
    }
}

impl PartialResult for GroupsOfPart {
    fn append(&mut self, next: Box<dyn PartialResult>) -> Result<(), QueryError> {
        let next = of_same_stage::<GroupsOfPart>(next).groups;
        self.groups.settle();
        // Both are counted until the others are dropped.
        let Groups { positions, mut groups, bytes, part, .. } = next;
        self.groups.bytes += bytes - part.as_ref().map_or(0, |part| part.shrinking_bytes);
        let mut keys: Vec<(Bytes, usize)> = positions.into_iter().collect();
        keys.sort_unstable_by_key(|(_, position)| *position);
        for (key, position) in keys {
            let Some(group) = groups[position].take() else { continue };
            self.groups.append(key, group)?;
        }
        drop(part);
        self.groups.hold_part()
    }

    fn documents(self: Box<Self>, context: &Context) -> Result<Documents<'static>, QueryError> {
        self.stage.documents(self.groups, &of_groups(&context.resources))
    }
}

/// About what a group takes before it has seen a value.
fn bytes_of(key: &[u8], group: &OneGroup) -> usize {
    let states = group.states.len() * STATE_BYTES;
    GROUP_BYTES + 2 * key.len() + accumulator::cost(group.id.as_value()) + states
}

/// Returns the resources of groups: one half of the stage's; the other is for sorting what comes
/// after, where there is anything to sort.
fn of_groups(resources: &Resources) -> Resources {
    let mut resources = resources.clone();
    if resources.spill.is_some() {
        resources.memory_bytes_max /= 2;
    }
    resources
}

impl Counter for Group {
    fn of_count(
        &self,
        count: u64,
        variables: &Variables,
    ) -> Result<Option<DocumentBuf>, QueryError> {
        if count == 0 {
            return Ok(None);
        }
        let scope = Scope::new(Document::empty(), variables);
        let mut builder = DocumentBuilder::new();
        builder.append("_id", self.id.evaluate_in(&scope)?.or_null());
        for field in &self.fields {
            let total = field.accumulator.of_count(count);
            builder.append(&field.name, total.as_ref().map_or(Value::Null, Evaluated::or_null));
        }
        Ok(Some(builder.build()))
    }
}

impl Groups {
    fn new(reservation: Reservation) -> Groups {
        let (positions, groups) = (HashMap::new(), Vec::new());
        Groups { positions, groups, bytes: 0, reservation, key: Vec::new(), part: None }
    }

    /// Says what a part takes.
    fn hold_part(&mut self) -> Result<(), QueryError> {
        let bytes = self.bytes;
        self.part.as_mut().map_or(Ok(()), |part| part.share.hold(bytes)).map_err(too_large)
    }

    /// Works in what the part kept.
    fn settle(&mut self) {
        let Some(part) = self.part.as_mut().filter(|part| !part.is_settled) else { return };
        part.is_settled = true;
        self.bytes -= std::mem::take(&mut part.shrinking_bytes);
        let states = self.groups.iter_mut().flatten().flat_map(|group| &mut group.states);
        states.for_each(|state| state.settle());
    }

    /// Takes a group of the documents that follow.
    fn append(&mut self, key: Bytes, group: OneGroup) -> Result<(), QueryError> {
        match self.positions.get(&key).and_then(|position| self.groups[*position].as_mut()) {
            Some(own) => {
                self.bytes -= bytes_of(&key, &group);
                for (state, next) in own.states.iter_mut().zip(group.states) {
                    state.append(next)?;
                }
            }
            None => {
                let mut group = group;
                group.states.iter_mut().for_each(|state| state.settle());
                self.positions.insert(key, self.groups.len());
                self.groups.push(Some(group));
            }
        }
        Ok(())
    }
}

fn too_large(exceeded: Exceeded) -> QueryError {
    let message = format!(
        "Exceeded memory limit for $group of {exceeded}, but didn't allow external sort. Pass \
         allowDiskUse:true to opt in."
    );
    QueryError::new(Code::QueryExceededMemoryLimitNoDiskUseAllowed, message)
}

/// The same documents, sorted by when they came: a sort knows how to keep them without memory.
fn in_their_order<'a>(
    documents: impl Iterator<Item = Result<DocumentBuf, QueryError>>,
    resources: &Resources,
) -> Result<Documents<'a>, QueryError> {
    let mut sorter = Sorter::new("$group", resources, usize::MAX);
    for (position, document) in documents.enumerate() {
        sorter.add_view(&position.to_be_bytes(), document?.view())?;
    }
    let sorted = sorter.finish()?;
    Ok(Box::new(sorted.map(|entry| entry.map(|(_, document)| document))))
}

/// Returns the resources by which the groups are kept, if not in memory.
fn rests(groups: &Groups, resources: &Resources) -> Option<Resources> {
    let is_large = RESTING_BYTES_MIN <= groups.bytes;
    let rests = is_large && resources.is_strained() && resources.spill.is_some();
    rests.then(|| resources.clone())
}

impl Group {
    fn over<'a>(self: Arc<Self>, input: Input<'a>, context: &Context) -> Documents<'a> {
        let variables = context.variables.clone();
        let resources = of_groups(&context.resources);
        lazily(move || {
            let mut groups = Groups::new(resources.reservation());
            let mut sorter = Sorter::new("$group", &resources, usize::MAX);
            let mut is_full = false;
            input.visit(&mut |document| {
                if is_full {
                    let (key, entry) = self.entry(document, &variables)?;
                    sorter.add(key, entry)?;
                } else {
                    self.add(&mut groups, document, &variables)?;
                    let exceeded = groups.reservation.hold(groups.bytes).err();
                    is_full = exceeded.is_some();
                    if let (Some(exceeded), None) = (exceeded, &resources.spill) {
                        return Err(too_large(exceeded));
                    }
                }
                Ok(true)
            })?;
            let mut entries = sorter.finish()?.peekable();
            if entries.peek().is_none() {
                return match self.runs_scripts() {
                    true => Ok(self.together(groups, variables.memory().clone())),
                    false => self.documents(groups, &resources),
                };
            }
            let rests = rests(&groups, &resources);
            let mut position = 0;
            let finished = std::iter::from_fn(move || {
                if entries.peek().is_some() {
                    let reservation = resources.reservation_of(MEMORY_BYTES_MAX);
                    let next =
                        self.next_of_entries(&mut entries, &mut groups, &variables, reservation);
                    return Some(next);
                }
                groups.positions = HashMap::new();
                self.next_of(&mut groups, &mut position)
            });
            match rests {
                Some(resources) => in_their_order(finished, &resources),
                None => Ok(Box::new(finished)),
            }
        })
    }

    /// The documents that groups become.
    fn documents(
        self: Arc<Self>,
        mut groups: Groups,
        resources: &Resources,
    ) -> Result<Documents<'static>, QueryError> {
        let rests = rests(&groups, resources);
        groups.positions = HashMap::new();
        let mut position = 0;
        let finished = std::iter::from_fn(move || self.next_of(&mut groups, &mut position));
        match rests {
            Some(resources) => in_their_order(finished, &resources),
            None => Ok(Box::new(finished)),
        }
    }

    /// Returns the result of the next group from `position` on that wasn't given out.
    fn next_of(
        &self,
        groups: &mut Groups,
        position: &mut usize,
    ) -> Option<Result<DocumentBuf, QueryError>> {
        while let Some(group) = groups.groups.get_mut(*position) {
            *position += 1;
            if let Some(group) = group.take() {
                return Some(self.finish(group));
            }
        }
        None
    }

    fn add(
        &self,
        groups: &mut Groups,
        document: Document<'_>,
        variables: &Variables,
    ) -> Result<(), QueryError> {
        let fields = self.names.places(document);
        let scope = Scope::new(document, variables).with_fields(fields.as_ref());
        let id = self.id.evaluate_in(&scope)?;
        groups.key.clear();
        variables.collation().append_key(&mut groups.key, id.or_null(), false);
        let position = match groups.positions.get(&groups.key[..]) {
            Some(position) => *position,
            None => {
                let group = match &groups.part {
                    Some(_) => self.start_part(id.or_null(), variables)?,
                    None => self.start(id.or_null(), variables)?,
                };
                groups.bytes += bytes_of(&groups.key, &group);
                groups.groups.push(Some(group));
                let key = Bytes::copy_from_slice(&groups.key);
                groups.positions.insert(key, groups.groups.len() - 1);
                groups.groups.len() - 1
            }
        };
        let group = groups.groups[position].as_mut().expect("none was given out yet");
        let (bytes, shrinking_bytes) = self.add_to(group, &scope)?;
        groups.bytes += bytes;
        if let Some(part) = &mut groups.part {
            part.shrinking_bytes += shrinking_bytes;
        }
        Ok(())
    }

    /// The value by which a document is grouped.
    pub(super) fn id<'s>(&'s self, scope: &Scope<'s>) -> Result<Evaluated<'s>, QueryError> {
        self.id.evaluate_in(scope)
    }

    /// Adds a document to a group; returns about how many bytes that took, and how many of them a
    /// part gives back when it is settled.
    pub(super) fn add_to<'s>(
        &'s self,
        group: &mut OneGroup,
        scope: &Scope<'s>,
    ) -> Result<(usize, usize), QueryError> {
        let (mut bytes, mut shrinking_bytes) = (0, 0);
        let mut value = Evaluated::Missing;
        for (field, state) in self.fields.iter().zip(&mut group.states) {
            if !field.repeats {
                value = field.accumulator.value(scope)?;
            }
            // A copy of what is borrowed costs nothing.
            let added = state.add(value.clone())?;
            bytes += added;
            shrinking_bytes += if field.accumulator.shrinks() { added } else { 0 };
        }
        Ok((bytes, shrinking_bytes))
    }

    /// A group without documents.
    pub(super) fn start(
        &self,
        id: Value<'_>,
        variables: &Variables,
    ) -> Result<OneGroup, QueryError> {
        // `n` may depend on the fields of the group's `_id`.
        let group = id.as_document().unwrap_or(Document::empty());
        let mut states = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            states.push(field.accumulator.start(group, variables)?);
        }
        Ok(OneGroup { id: id.to_buf(), states })
    }

    /// A group without documents, of a part of them.
    fn start_part(&self, id: Value<'_>, variables: &Variables) -> Result<OneGroup, QueryError> {
        let start = |field: &Field| field.accumulator.start_part(Document::empty(), variables);
        let states: Result<_, _> = self.fields.iter().map(start).collect();
        Ok(OneGroup { id: id.to_buf(), states: states? })
    }

    /// Returns a document's entry for its group: `{"": id, "0": value, ...}`, missing values left
    /// out.
    fn entry(
        &self,
        document: Document<'_>,
        variables: &Variables,
    ) -> Result<(Bytes, DocumentBuf), QueryError> {
        let fields = self.names.places(document);
        let scope = Scope::new(document, variables).with_fields(fields.as_ref());
        let id = self.id.evaluate_in(&scope)?;
        let mut entry = DocumentBuilder::new();
        entry.append("", id.or_null());
        let mut digits = [0; 20];
        for (position, field) in self.fields.iter().enumerate() {
            if let Some(value) = field.accumulator.value(&scope)?.value() {
                entry.append(position_name(position, &mut digits), value);
            }
        }
        Ok((variables.collation().key_of(id.or_null()), entry.build()))
    }

    /// The group of the next key among those that were sorted; there is one, and it may grow as
    /// `reservation` allows.
    fn next_of_entries(
        &self,
        entries: &mut Peekable<Sorted>,
        groups: &mut Groups,
        variables: &Variables,
        mut reservation: Reservation,
    ) -> Result<DocumentBuf, QueryError> {
        let (key, mut entry) = entries.next().expect("the caller saw one")?;
        let begun = groups.positions.get(&key).and_then(|position| groups.groups[*position].take());
        let mut group = match begun {
            Some(group) => group,
            None => self.start(entry.get("").unwrap_or(Value::Null), variables)?,
        };
        let mut bytes = 0;
        loop {
            let mut digits = [0; 20];
            for (position, state) in group.states.iter_mut().enumerate() {
                let value = entry.get(position_name(position, &mut digits));
                bytes += state.add(value.map_or(Evaluated::Missing, Evaluated::Borrowed))?;
            }
            reservation.hold(bytes).map_err(|exceeded| {
                let message = format!(
                    "one group used too much memory and cannot spill to disk. Memory limit: {exceeded}"
                );
                QueryError::new(Code::ExceededMemoryLimit, message)
            })?;
            let is_of_group =
                |next: &Result<(Bytes, _), _>| next.as_ref().map_or(true, |(next, _)| *next == key);
            match entries.next_if(is_of_group) {
                Some(next) => entry = next?.1,
                None => return self.finish(group),
            }
        }
    }

    /// The document that a group becomes.
    pub(super) fn finish(&self, group: OneGroup) -> Result<DocumentBuf, QueryError> {
        let nothing_made = group.states.iter().map(|_| None).collect();
        self.finish_with(group, nothing_made)
    }

    /// As [`finish`](Self::finish), of whose states scripts have `made` something.
    fn finish_with(&self, group: OneGroup, made: Made) -> Result<DocumentBuf, QueryError> {
        let mut builder = DocumentBuilder::new();
        builder.append("_id", group.id.as_value());
        for ((field, state), made) in self.fields.iter().zip(group.states).zip(made) {
            let value = match made {
                Some(value) => value,
                None => state.finish()?,
            };
            builder.append(&field.name, value.or_null());
            check_bytes(builder.bytes())?;
        }
        let document = builder.build();
        check_depth(Value::Document(document.view()), 1)?;
        Ok(document)
    }
}

/// Parses the argument of `$group`.
pub(super) fn group(
    specification: Document<'_>,
    parser: &mut StageParser,
) -> Result<Group, QueryError> {
    let mut id = None;
    let mut origins = Vec::new();
    let mut fields = Vec::new();
    // The names and paths noted so far belong to other stages.
    parser.expressions.take_names();
    parser.expressions.take_paths();
    for (name, value) in specification.iter() {
        if name == "_id" {
            if id.is_some() {
                return Err(failure(15948, "a group's _id may only be specified once"));
            }
            id = Some(Expression::parse_key(value, &mut parser.expressions)?);
            origins = origins_of(value);
            continue;
        }
        let mut field = field(name, value, parser)?;
        field.repeats = fields
            .last()
            .is_some_and(|before: &Field| field.accumulator.has_value_of(&before.accumulator));
        fields.push(field);
    }
    let id = id.ok_or_else(|| failure(15955, "a group specification must include an _id"))?;
    let needs = parser.expressions.take_paths().map(|mut paths| {
        let orders = fields.iter().filter_map(|field| field.accumulator.order());
        paths.extend(orders.flat_map(|order| order.deciding_names()));
        paths
    });
    Ok(Group { id, fields, names: parser.expressions.take_names(), needs, origins })
}

/// Which paths of a group's key are the value of an outermost field, and of which.
fn origins_of(key: Value<'_>) -> Vec<(String, String)> {
    match key {
        Value::Document(fields) => {
            let fields =
                fields.iter().filter(|(name, _)| !name.starts_with('$') && !name.contains('.'));
            fields
                .filter_map(|(name, value)| Some((format!("_id.{name}"), outermost(value)?)))
                .collect()
        }
        value => outermost(value).map(|field| ("_id".to_owned(), field)).into_iter().collect(),
    }
}

/// The field, if an expression is the path of an outermost one.
pub(super) fn outermost(expression: Value<'_>) -> Option<String> {
    let field = expression.as_str()?.strip_prefix('$')?;
    (!field.starts_with('$') && !field.contains('.')).then(|| field.to_owned())
}

fn field(name: &str, value: Value<'_>, parser: &mut StageParser) -> Result<Field, QueryError> {
    if name.contains('.') {
        return Err(failure(40235, format!("The field name '{name}' cannot contain '.'")));
    }
    if name.starts_with('$') {
        let message = format!("The field name '{name}' cannot be an operator name");
        return Err(failure(40236, message));
    }
    let Value::Document(document) = value else {
        return Err(failure(40234, format!("The field '{name}' must be an accumulator object")));
    };
    let mut operators = document.iter();
    let (Some((operator, argument)), None) = (operators.next(), operators.next()) else {
        let message = format!("The field '{name}' must specify one accumulator");
        return Err(failure(40238, message));
    };
    if !operator.starts_with('$') {
        return Err(failure(40234, format!("The field '{name}' must be an accumulator object")));
    }
    let accumulator =
        Accumulator::parse(operator, argument, Place::Group, &mut parser.expressions)?;
    Ok(Field { name: name.to_owned(), accumulator, repeats: false })
}

pub(super) fn parse(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let Value::Document(specification) = argument else {
        return Err(failure(15947, "a group's fields must be specified in an object"));
    };
    one(group(specification, parser)?)
}
