//! `$push`, `$addToSet`, `$mergeObjects`: what keeps all values.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use bytes::Bytes;
use frond_doc::{Document, DocumentBuf, Value, ValueBuf};

use super::state::{State, Window, array_of, cost, of_same_kind};
use crate::collation::Collation;
use crate::error::QueryError;
use crate::expression::{Elements, Evaluated, Fields, not_mergeable};

/// `$push` of a group. Missing values are left out.
pub(super) struct List(Elements);

impl Default for List {
    fn default() -> List {
        List(Elements::uncounted())
    }
}

impl State for List {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        let Some(value) = value.value() else { return Ok(0) };
        self.0.push(value)?;
        Ok(cost(value))
    }

    fn append(&mut self, next: Box<dyn State>) -> Result<(), QueryError> {
        let next = of_same_kind::<Self>(next).0.finish()?;
        let Some(Value::Array(array)) = next.value() else { return Ok(()) };
        array.iter().try_for_each(|value| self.0.push(value))
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        self.0.finish()
    }
}

/// `$push` of a window.
#[derive(Default)]
pub(super) struct WindowList(VecDeque<ValueBuf>);

impl State for WindowList {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        let cost = value.value().map_or(0, cost);
        self.0.extend(value.into_buf());
        Ok(cost)
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        self.current()
    }
}

impl Window for WindowList {
    fn remove(&mut self, value: Evaluated<'_>) {
        if value.value().is_some() {
            self.0.pop_front();
        }
    }

    fn current(&self) -> Result<Evaluated<'static>, QueryError> {
        array_of(&self.0)
    }
}

/// `$addToSet` of a group, in the order in which values first came.
pub(super) struct Set {
    collation: Collation,
    keys: HashSet<Bytes>,
    values: Vec<ValueBuf>,
}

impl Set {
    pub(super) fn new(collation: &Collation) -> Set {
        Set { collation: collation.clone(), keys: HashSet::new(), values: Vec::new() }
    }
}

impl State for Set {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        let Some(borrowed) = value.value() else { return Ok(0) };
        let key = self.collation.key_of(borrowed);
        let cost = key.len() + cost(borrowed);
        if !self.keys.insert(key) {
            return Ok(0);
        }
        self.values.extend(value.into_buf());
        Ok(cost)
    }

    fn append(&mut self, next: Box<dyn State>) -> Result<(), QueryError> {
        for value in of_same_kind::<Self>(next).values {
            self.add(Evaluated::kept(value))?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        array_of(&self.values)
    }
}

/// `$addToSet` of a window: each value and how often it is in, in the order of the values.
pub(super) struct WindowSet {
    collation: Collation,
    values: BTreeMap<Bytes, (usize, ValueBuf)>,
}

impl WindowSet {
    pub(super) fn new(collation: &Collation) -> WindowSet {
        WindowSet { collation: collation.clone(), values: BTreeMap::new() }
    }
}

impl State for WindowSet {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        let Some(borrowed) = value.value() else { return Ok(0) };
        let key = self.collation.key_of(borrowed);
        if let Some((count, _)) = self.values.get_mut(&key) {
            *count += 1;
            return Ok(0);
        }
        let cost = key.len() + cost(borrowed);
        self.values.insert(key, (1, borrowed.to_buf()));
        Ok(cost)
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        self.current()
    }
}

impl Window for WindowSet {
    fn remove(&mut self, value: Evaluated<'_>) {
        let Some(value) = value.value() else { return };
        let key = self.collation.key_of(value);
        if let Some((count, _)) = self.values.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.values.remove(&key);
            }
        }
    }

    fn current(&self) -> Result<Evaluated<'static>, QueryError> {
        array_of(self.values.values().map(|(_, value)| value))
    }
}

/// `$mergeObjects` of a group: fields in the order in which their names came first, each with its
/// latest value.
#[derive(Default)]
pub(super) struct Merged {
    positions: HashMap<String, usize>,
    fields: Vec<(String, ValueBuf)>,
}

impl Merged {
    /// Sets the fields of one document more; returns about how many bytes that took.
    fn merge(&mut self, document: Document<'_>) -> usize {
        document.iter().map(|(name, value)| self.set(name, value)).sum()
    }

    fn set(&mut self, name: &str, value: Value<'_>) -> usize {
        match self.positions.get(name) {
            Some(position) => {
                let old = &mut self.fields[*position].1;
                let more = cost(value).saturating_sub(cost(old.as_value()));
                *old = value.to_buf();
                more
            }
            None => {
                self.positions.insert(name.to_owned(), self.fields.len());
                self.fields.push((name.to_owned(), value.to_buf()));
                name.len() * 2 + cost(value)
            }
        }
    }

    fn document(&self) -> Result<Evaluated<'static>, QueryError> {
        let mut made = Fields::uncounted();
        for (name, value) in &self.fields {
            made.append(name, value.as_value())?;
        }
        made.finish()
    }
}

/// The document to be merged; `None` where the value is null or missing.
fn mergeable<'v>(value: &'v Evaluated<'_>) -> Result<Option<Document<'v>>, QueryError> {
    match value.value() {
        _ if value.is_nullish() => Ok(None),
        Some(Value::Document(document)) => Ok(Some(document)),
        _ => Err(not_mergeable(value)),
    }
}

impl State for Merged {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        Ok(mergeable(&value)?.map_or(0, |document| self.merge(document)))
    }

    fn append(&mut self, next: Box<dyn State>) -> Result<(), QueryError> {
        for (name, value) in of_same_kind::<Self>(next).fields {
            self.set(&name, value.as_value());
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        self.document()
    }
}

/// `$mergeObjects` of a window. Documents that enter are merged as they come. Once a document has
/// left, each result is merged anew, since a field's earlier value can't be recovered from the
/// merged document.
#[derive(Default)]
pub(super) struct WindowMerged {
    documents: VecDeque<DocumentBuf>,
    merged: Merged,
    has_lost_any: bool,
}

impl State for WindowMerged {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        let Some(document) = mergeable(&value)? else { return Ok(0) };
        self.has_lost_any &= !self.documents.is_empty();
        let merged_bytes = if self.has_lost_any { 0 } else { self.merged.merge(document) };
        self.documents.push_back(document.to_buf());
        Ok(cost(Value::Document(document)) + merged_bytes)
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        self.current()
    }
}

impl Window for WindowMerged {
    fn remove(&mut self, value: Evaluated<'_>) {
        if matches!(value.value(), Some(Value::Document(_))) {
            self.documents.pop_front();
            self.has_lost_any = true;
            self.merged = Merged::default();
        }
    }

    fn current(&self) -> Result<Evaluated<'static>, QueryError> {
        if !self.has_lost_any {
            return self.merged.document();
        }
        let mut merged = Merged::default();
        for document in &self.documents {
            merged.merge(document.view());
        }
        merged.document()
    }
}
