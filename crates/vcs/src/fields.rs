//! The fields of a document, found by name: what field by field comparison works on.
//!
//! BSON allows a name to occur twice. The second `a` of one document then belongs to the second `a`
//! of the other: a field's label is its name and how many of that name came before it.

use std::collections::HashMap;

use frond_doc::raw::RawElement;
use frond_doc::{Document, Value};

/// The identity of a field within its document.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Label<'a> {
    pub name: &'a [u8],
    /// Fields of the same name before this one.
    pub occurrence: u32,
}

/// The fields of a document, in their order and by label.
pub(crate) struct Fields<'a> {
    fields: Vec<(Label<'a>, RawElement<'a>)>,
    positions: HashMap<Label<'a>, usize>,
}

impl<'a> Fields<'a> {
    /// Looks through `document` once, not into nested ones.
    pub fn of(document: Document<'a>) -> Fields<'a> {
        let mut fields = Vec::new();
        let mut positions = HashMap::new();
        let mut repeated: HashMap<&[u8], u32> = HashMap::new();
        for element in document.elements() {
            let mut label = Label { name: element.name, occurrence: 0 };
            if positions.contains_key(&label) {
                let occurrence = repeated.entry(element.name).or_default();
                *occurrence += 1;
                label.occurrence = *occurrence;
            }
            positions.insert(label, fields.len());
            fields.push((label, element));
        }
        Fields { fields, positions }
    }

    /// The fields in their order.
    pub fn iter(&self) -> impl Iterator<Item = (Label<'a>, RawElement<'a>)> + '_ {
        self.fields.iter().copied()
    }

    /// The field of this label.
    pub fn get(&self, label: &Label<'a>) -> Option<RawElement<'a>> {
        self.positions.get(label).map(|position| self.fields[*position].1)
    }
}

/// Whether two values are the same, type and bytes.
pub(crate) fn same(left: &RawElement<'_>, right: &RawElement<'_>) -> bool {
    left.kind == right.kind && left.value == right.value
}

/// The value of an element of a document that was validated.
pub(crate) fn value<'a>(element: &RawElement<'a>) -> Value<'a> {
    element.decode().expect("a stored document was validated when it came in")
}

/// A field's name. Validated documents have names in UTF-8.
pub(crate) fn name<'a>(element: &RawElement<'a>) -> &'a str {
    element.name().expect("a stored document was validated when it came in")
}

/// Puts a dot between a path and a name below it.
pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
