//! Where fields stand that the pipeline of an update takes away and sets again: where they were.
//!
//! MongoDB's stages change one document in memory, in which a field that was taken away leaves its
//! place empty. Here each stage makes a document, so that such fields are put back into their
//! places at the end. (In other pipelines MongoDB says that it depends on who carries out the
//! stages: the leading ones are the query's, whose documents have no empty places.)
//!
//! *Surprise*: the fields of documents in arrays have their places too, as long as the array keeps
//! its length.

use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value};

use super::shape::{Leaf, Mode, Shape};

/// The fields that were taken away and set again, by name; and those below fields.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    fields: Vec<(String, Places)>,
    /// Whether this field itself was.
    is_set_again: bool,
}

impl Places {
    /// Of stages that all change the fields of one document; `None` if none is set again.
    pub(super) fn of<'s>(stages: impl Iterator<Item = Option<&'s Shape>>) -> Option<Places> {
        let mut places = Places::default();
        let mut removed: Vec<Vec<&str>> = Vec::new();
        for shape in stages {
            let shape = shape.filter(|shape| shape.mode != Mode::Include)?;
            shape.visit_leaves(&mut |path, leaf| match leaf {
                Leaf::Removed => removed.push(path.to_vec()),
                Leaf::Set => {
                    for again in removed.iter().filter(|it| path.starts_with(it)) {
                        places.insert(again);
                    }
                    // What is in a new value has the value's own order.
                    removed.retain(|it| it.len() <= path.len() || !it.starts_with(path));
                    places.forget_below(path);
                    // It may have been set to nothing.
                    removed.push(path.to_vec());
                }
            });
        }
        (!places.fields.is_empty()).then_some(places)
    }

    fn insert(&mut self, path: &[&str]) {
        let Some((first, rest)) = path.split_first() else {
            self.is_set_again = true;
            return;
        };
        let position = match self.fields.iter().position(|(name, _)| name == first) {
            Some(position) => position,
            None => {
                self.fields.push(((*first).to_owned(), Places::default()));
                self.fields.len() - 1
            }
        };
        self.fields[position].1.insert(rest);
    }

    /// Forgets what is below the field at `path`.
    fn forget_below(&mut self, path: &[&str]) {
        match path.split_first() {
            None => self.fields.clear(),
            Some((first, rest)) => {
                if let Some((_, below)) = self.fields.iter_mut().find(|(name, _)| name == first) {
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
        let old: Vec<&str> = before.iter().map(|(name, _)| name).collect();
        let mut fields: Vec<(usize, &str, Value<'_>)> = Vec::new();
        for (name, value) in after.iter() {
            let place = old.iter().position(|known| *known == name).unwrap_or(old.len());
            fields.push((place, name, value));
        }
        // The others stand in the order of `before` anyway, so that only those are moved.
        let is_moved = |name: &str| {
            self.fields.iter().any(|(field, below)| field == name && below.is_set_again)
        };
        if fields.iter().any(|(_, name, _)| is_moved(name)) {
            fields.sort_by_key(|(place, ..)| *place);
        }
        for (_, name, value) in fields {
            let below = self.fields.iter().find(|(field, _)| field == name).map(|(_, below)| below);
            match below.filter(|below| !below.fields.is_empty()) {
                Some(below) => below.value(builder, name, before.get(name), value),
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
