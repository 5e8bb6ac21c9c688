//! The least or the greatest of a field's values: of objects and arrays, field by field and place
//! by place, since MongoDB asks `control.min` and `control.max` for paths inside.

use std::cmp::Ordering;

use frond_doc::order::type_order;
use frond_doc::{DocumentBuilder, ElementType, Value, ValueBuf};
use frond_query::Collation;

/// The side of the values' range.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Least,
    Greatest,
}

/// The extreme of the values so far.
#[derive(Default)]
pub(super) enum Extreme {
    #[default]
    None,
    Value(ValueBuf),
    Object(Vec<(String, Extreme)>),
    Array(Vec<Extreme>),
}

impl Side {
    /// Returns how a value compares to the one in whose place it goes.
    fn ordering(self) -> Ordering {
        match self {
            Side::Least => Ordering::Less,
            Side::Greatest => Ordering::Greater,
        }
    }
}

impl Extreme {
    /// Takes one more value. Recursion follows its nesting, which validation has bounded.
    pub fn take(&mut self, value: Value<'_>, side: Side, collation: &Collation) {
        match value {
            Value::Document(document) => {
                if !matches!(self, Extreme::Object(_)) {
                    if !self.gives_way(ElementType::Document, side) {
                        return;
                    }
                    *self = Extreme::Object(Vec::new());
                }
                for (name, value) in document.iter() {
                    self.child(name).take(value, side, collation);
                }
            }
            Value::Array(array) => {
                if !matches!(self, Extreme::Array(_)) {
                    if !self.gives_way(ElementType::Array, side) {
                        return;
                    }
                    *self = Extreme::Array(Vec::new());
                }
                for (position, value) in array.iter().enumerate() {
                    self.item(position).take(value, side, collation);
                }
            }
            value => {
                let is_further = match self {
                    Extreme::Value(held) => {
                        collation.compare(value, held.as_value()) == side.ordering()
                    }
                    _ => self.gives_way(value.element_type(), side),
                };
                if is_further {
                    *self = Extreme::Value(value.to_buf());
                }
            }
        }
    }

    /// Whether a value of this type, and no other of it, goes in the place of what is held.
    fn gives_way(&self, kind: ElementType, side: Side) -> bool {
        let held = match self {
            Extreme::None => return true,
            Extreme::Value(held) => held.as_value().element_type(),
            Extreme::Object(_) => ElementType::Document,
            Extreme::Array(_) => ElementType::Array,
        };
        type_order(kind).cmp(&type_order(held)) == side.ordering()
    }

    fn child(&mut self, name: &str) -> &mut Extreme {
        let Extreme::Object(children) = self else { unreachable!("it was made an object") };
        let position = children.iter().position(|(known, _)| known == name);
        let position = position.unwrap_or_else(|| {
            children.push((name.to_owned(), Extreme::None));
            children.len() - 1
        });
        &mut children[position].1
    }

    fn item(&mut self, position: usize) -> &mut Extreme {
        let Extreme::Array(items) = self else { unreachable!("it was made an array") };
        if items.len() <= position {
            items.resize_with(position + 1, Extreme::default);
        }
        &mut items[position]
    }

    /// Appends it as a field.
    pub fn append_to(&self, name: &str, to: &mut DocumentBuilder) {
        match self {
            Extreme::None => {}
            Extreme::Value(value) => {
                to.append(name, value.as_value());
            }
            Extreme::Object(children) => {
                to.begin_document(name);
                children.iter().for_each(|(name, child)| child.append_to(name, to));
                to.end();
            }
            Extreme::Array(items) => {
                to.begin_array(name);
                let names = (0..).map(|position: usize| position.to_string());
                items.iter().zip(names).for_each(|(item, name)| item.append_to(&name, to));
                to.end();
            }
        }
    }
}
