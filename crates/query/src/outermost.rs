//! Documents that are kept for long are cut down to the outermost fields that are read of them.

use std::collections::BTreeSet;

use frond_doc::{Document, DocumentBuf, DocumentBuilder};

use crate::metadata;

/// Shorter documents are as soon copied whole.
const CUT_BYTES_MIN: usize = 1 << 10;

/// Names of outermost fields.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct OutermostNames(BTreeSet<Box<[u8]>>);

impl OutermostNames {
    /// The names that these paths begin with.
    pub fn of<'p>(paths: impl IntoIterator<Item = &'p str>) -> OutermostNames {
        let mut names = OutermostNames::default();
        names.extend(paths);
        names
    }

    /// Adds the names that these paths begin with.
    pub fn extend<'p>(&mut self, paths: impl IntoIterator<Item = &'p str>) {
        let first = |path: &'p str| path.split('.').next().unwrap_or_default().as_bytes().into();
        self.0.extend(paths.into_iter().map(first));
    }

    /// Returns a copy of the document that has no other fields, and what metadata it carries;
    /// `None` if it is too short to be worth it.
    pub fn cut(&self, document: Document<'_>) -> Option<DocumentBuf> {
        if document.as_bytes().len() < CUT_BYTES_MIN {
            return None;
        }
        let mut cut = DocumentBuilder::new();
        for element in document.elements() {
            if self.0.contains(element.name) || metadata::is_mark(element.name) {
                cut.append_element(&element);
            }
        }
        Some(cut.build())
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::Value;

    use super::*;

    #[test]
    fn long_documents_keep_their_order_what_is_twice_and_metadata() {
        let names = OutermostNames::of(["b.c", "a", "b", "absent.x"]);
        for bytes in [CUT_BYTES_MIN - 100, CUT_BYTES_MIN, CUT_BYTES_MIN * 70] {
            let mut builder = DocumentBuilder::new();
            let long = "long ".repeat(bytes / 5);
            builder.append("b", Value::Int32(1)).append("x", Value::String(&long));
            builder.append("a", Value::Int32(2)).append("b", Value::Int32(3));
            builder.append("\u{1}textScore", Value::Double(1.5));
            let document = builder.build();
            let cut = names.cut(document.view());
            assert_eq!(cut.is_some(), CUT_BYTES_MIN <= document.as_bytes().len());
            let Some(cut) = cut else { continue };
            let shown: Vec<&str> = cut.view().iter().map(|(name, _)| name).collect();
            assert_eq!(shown, ["b", "a", "b", "\u{1}textScore"]);
        }
    }
}
