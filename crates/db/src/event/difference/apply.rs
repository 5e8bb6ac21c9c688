//! Making the document that a description describes, of the one before.

use std::borrow::Cow;

use frond_doc::raw::RawElement;
use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value};

use super::PARTS;

/// The change to one element, or to elements within it.
#[derive(Default)]
struct Change<'a> {
    set: Option<RawElement<'a>>,
    is_removed: bool,
    /// The number of elements of an array that are left.
    count: Option<usize>,
    /// The changes by name, in the order of the description.
    inside: Vec<(Cow<'a, str>, Change<'a>)>,
}

/// The document after what `description` says; `None` if it doesn't fit `before`.
pub fn applied(before: Document<'_>, description: Document<'_>) -> Option<DocumentBuf> {
    let mut change = Change::default();
    let parts = description.get(PARTS).and_then(|parts| parts.as_document());
    for path in description.get("removedFields")?.as_array()?.iter() {
        change.at(path.as_str()?, parts)?.is_removed = true;
    }
    for cut in description.get("truncatedArrays")?.as_array()?.iter() {
        let cut = cut.as_document()?;
        let count = usize::try_from(cut.get("newSize")?.as_integer()?).ok()?;
        let Some(Value::String(path)) = cut.get("field") else { return None };
        change.at(path, parts)?.count = Some(count);
    }
    let updated = description.get("updatedFields")?.as_document()?;
    for element in updated.elements() {
        change.at(element.name()?, parts)?.set = Some(element);
    }
    let mut out = DocumentBuilder::new();
    change.of_document(before, &mut out)?;
    Some(out.build())
}

impl<'a> Change<'a> {
    /// The change at a path, whose parts stand in `parts` if its text could be read in two ways.
    fn at(&mut self, path: &'a str, parts: Option<Document<'a>>) -> Option<&mut Change<'a>> {
        let Some(parts) = parts.and_then(|parts| parts.get(path)) else {
            return Some(path.split('.').map(Cow::Borrowed).fold(self, Change::below));
        };
        let name = |part: Value<'a>| match part {
            Value::String(name) => Some(Cow::Borrowed(name)),
            Value::Int32(position) => Some(Cow::Owned(position.to_string())),
            _ => None,
        };
        let names: Option<Vec<Cow<'a, str>>> = parts.as_array()?.iter().map(name).collect();
        Some(names?.into_iter().fold(self, Change::below))
    }

    fn below(&mut self, name: Cow<'a, str>) -> &mut Change<'a> {
        let known = self.inside.iter().position(|(other, _)| *other == name);
        let place = known.unwrap_or_else(|| {
            self.inside.push((name, Change::default()));
            self.inside.len() - 1
        });
        &mut self.inside[place].1
    }

    fn inside(&self, name: &[u8]) -> Option<&Change<'a>> {
        let found = self.inside.iter().find(|(other, _)| other.as_bytes() == name);
        found.map(|(_, change)| change)
    }

    fn of_document(&self, before: Document<'_>, out: &mut DocumentBuilder) -> Option<()> {
        let mut applied_count = 0;
        for element in before.elements() {
            let Some(change) = self.inside(element.name) else {
                out.append_element(&element);
                continue;
            };
            applied_count += 1;
            change.of_element(&element, element.name, out)?;
        }
        let is_new = |name: &str| before.field(name.as_bytes()).is_none();
        for (name, change) in self.inside.iter().filter(|(name, _)| is_new(name)) {
            out.append_element(&RawElement { name: name.as_bytes(), ..change.set? });
            applied_count += 1;
        }
        (applied_count == self.inside.len()).then_some(())
    }

    fn of_array(&self, before: Array<'_>, out: &mut DocumentBuilder) -> Option<()> {
        let before: Vec<RawElement<'_>> = before.elements().collect();
        let kept = self.count.unwrap_or(before.len()).min(before.len());
        for (position, element) in before[..kept].iter().enumerate() {
            let name = position.to_string();
            match self.inside(name.as_bytes()) {
                None => {
                    out.append_element(&RawElement { name: name.as_bytes(), ..*element });
                }
                Some(change) => change.of_element(element, name.as_bytes(), out)?,
            }
        }
        for position in kept.. {
            let name = position.to_string();
            let Some(change) = self.inside(name.as_bytes()) else { break };
            out.append_element(&RawElement { name: name.as_bytes(), ..change.set? });
        }
        Some(())
    }

    fn of_element(
        &self,
        before: &RawElement<'_>,
        name: &[u8],
        out: &mut DocumentBuilder,
    ) -> Option<()> {
        if self.is_removed {
            return Some(());
        }
        if let Some(set) = &self.set {
            out.append_element(&RawElement { name, ..*set });
            return Some(());
        }
        let name = std::str::from_utf8(name).ok()?;
        match before.decode()? {
            Value::Document(inner) => {
                out.begin_document(name);
                self.of_document(inner, out)?;
            }
            Value::Array(inner) => {
                out.begin_array(name);
                self.of_array(inner, out)?;
            }
            _ => return None,
        }
        out.end();
        Some(())
    }
}
