//! Keeps fields in place that an update's pipeline removes and sets again.
//!
//! MongoDB's stages change one document in memory, in which a field that was taken away leaves its
//! place empty. Here each stage makes a document, so that such fields are put back into their
//! places at the end. (In other pipelines MongoDB says that it depends on what carries out the
//! stages: the leading ones are the query's, whose documents have no empty places.)
//!
//! *Surprise*: the fields of documents in arrays have their places too, as long as the array keeps
//! its length.

use std::collections::HashMap;

use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value};

use super::shape::{Leaf, Mode, Shape};
use crate::by_name::ByName;

/// The fields that were taken away and set again, by name; and those below fields.
#[derive(Clone, Debug, Default)]
pub(crate) struct TouchedPaths {
    fields: ByName<TouchedPaths>,
    /// Whether this field itself was.
    is_set_again: bool,
}

/// The fields that stages took away so far, by name; and those below fields.
#[derive(Default)]
struct Removed {
    fields: ByName<Removed>,
    /// Whether this field itself was.
    is_removed: bool,
}

impl Removed {
    /// The field at `path`; `visit` is shown how many of its parts lead to each that was taken
    /// away.
    fn at(&mut self, path: &[&str], visit: &mut dyn FnMut(usize)) -> &mut Removed {
        let mut place = self;
        for (position, part) in path.iter().enumerate() {
            place = place.fields.entry(part, Removed::default).0;
            if place.is_removed {
                visit(position + 1);
            }
        }
        place
    }
}

impl TouchedPaths {
    /// The positions of stages that all change the fields of one document; `None` if none is set
    /// again.
    pub(super) fn of<'s>(stages: impl Iterator<Item = Option<&'s Shape>>) -> Option<TouchedPaths> {
        let mut places = TouchedPaths::default();
        let mut removed = Removed::default();
        for shape in stages {
            let shape = shape.filter(|shape| shape.mode != Mode::Include)?;
            shape.visit_leaves(&mut |path, leaf| match leaf {
                Leaf::Removed => removed.at(path, &mut |_| {}).is_removed = true,
                Leaf::Set => {
                    let at = removed.at(path, &mut |count| places.insert(&path[..count]));
                    // The fields in a new value have the value's own order; it may have been set to
                    // nothing.
                    *at = Removed { fields: ByName::default(), is_removed: true };
                    places.forget_below(path);
                }
            });
        }
        (!places.fields.is_empty()).then_some(places)
    }

    fn insert(&mut self, path: &[&str]) {
        match path.split_first() {
            None => self.is_set_again = true,
            Some((first, rest)) => self.fields.entry(first, TouchedPaths::default).0.insert(rest),
        }
    }

    /// Forgets what is below the field at `path`.
    fn forget_below(&mut self, path: &[&str]) {
        match path.split_first() {
            None => self.fields = ByName::default(),
            Some((first, rest)) => {
                if let Some(below) = self.fields.get_mut(first.as_bytes()) {
                    below.forget_below(rest);
                }
            }
        }
    }

    /// `after` with the fields in the places that they have in `before`.
    pub(crate) fn restore(&self, before: Document<'_>, after: Document<'_>) -> DocumentBuf {
        let mut builder = DocumentBuilder::with_capacity(after.as_bytes().len());
        self.write(&mut builder, before, after);
        builder.build()
    }

    /// Recurses once a part of a path.
    fn write(&self, builder: &mut DocumentBuilder, before: Document<'_>, after: Document<'_>) {
        let mut old: HashMap<&str, (usize, Value<'_>)> = HashMap::new();
        for (place, (name, value)) in before.iter().enumerate() {
            old.entry(name).or_insert((place, value));
        }
        let mut fields: Vec<(&str, Value<'_>)> = after.iter().collect();
        // The others stand in the order of `before` anyway, so that only those are moved.
        let is_moved =
            |name: &str| self.fields.get(name.as_bytes()).is_some_and(|below| below.is_set_again);
        if fields.iter().any(|(name, _)| is_moved(name)) {
            fields.sort_by_cached_key(|(name, _)| {
                old.get(name).map_or(usize::MAX, |(place, _)| *place)
            });
        }
        for (name, value) in fields {
            let below = self.fields.get(name.as_bytes());
            match below.filter(|below| !below.fields.is_empty()) {
                Some(below) => {
                    let before = old.get(name).map(|(_, value)| *value);
                    below.value(builder, name, before, value);
                }
                None => {
                    builder.append(name, value);
                }
            }
        }
    }

    fn value(
        &self,
        builder: &mut DocumentBuilder,
        name: &str,
        before: Option<Value<'_>>,
        after: Value<'_>,
    ) {
        match (before, after) {
            (Some(Value::Document(before)), Value::Document(after)) => {
                builder.begin_document(name);
                self.write(builder, before, after);
                builder.end();
            }
            (Some(Value::Array(before)), Value::Array(after))
                if before.iter().count() == after.iter().count() =>
            {
                builder.begin_array(name);
                self.elements(builder, before, after);
                builder.end();
            }
            _ => {
                builder.append(name, after);
            }
        }
    }

    fn elements(&self, builder: &mut DocumentBuilder, before: Array<'_>, after: Array<'_>) {
        for (before, after) in before.iter().zip(after.iter()) {
            match (before, after) {
                (Value::Document(before), Value::Document(after)) => {
                    builder.push_begin_document();
                    self.write(builder, before, after);
                    builder.end();
                }
                _ => {
                    builder.push(after);
                }
            }
        }
    }
}
