//! `$[]` and `$[x]` on a large document: the elements of one array, each by itself.
//!
//! The steps of an update that go through the same array become an update of `{e: [element]}`, which
//! is applied to each element; those that come out changed take their places. So `$[x]` means what
//! it means elsewhere, whatever its filter and however many steps there are, as long as all of them
//! go through one array that is a container.

use frond_doc::pieces::{Edited, Element, LargeDocument, PiecesError};
use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::Update;
use frond_query::update::UpdateContext;
use frond_store::ChunkStore;

/// The name of an array with one element, which is looked at by itself.
const ARRAY: &str = "e";
/// More elements that change are left to the update of the whole document, which costs less then.
const CHANGED_COUNT_MAX: usize = 10_000;

/// The path before the first `$[]` or `$[x]`, and the path from there on; `None` if it has neither.
pub(crate) fn prefix(path: &str) -> Option<(&str, &str)> {
    let start = path.find(".$[")?;
    Some((&path[..start], &path[start + 1..]))
}

/// The steps of an update through the elements of one array.
pub(crate) struct EveryElement<'u> {
    array: Vec<&'u str>,
    update: Update,
}

impl<'u> EveryElement<'u> {
    /// Cuts such steps out of an update: `Some(None)` if there are none, `None` if they go through
    /// several arrays, or the path to it is none that can be followed.
    pub(crate) fn cut(
        update: Document<'u>,
        array_filters: Option<Array<'_>>,
    ) -> Option<Option<EveryElement<'u>>> {
        let mut array: Option<&str> = None;
        let mut inner = DocumentBuilder::new();
        for (operator, paths) in update.iter() {
            let Value::Document(paths) = paths else { return None };
            let mut own = DocumentBuilder::new();
            for (path, operand) in paths.iter() {
                let Some((before, after)) = prefix(path) else { continue };
                if array.is_some_and(|array| array != before) {
                    return None;
                }
                array = Some(before);
                own.append(&format!("{ARRAY}.{after}"), operand);
            }
            let own = own.build();
            if !own.view().is_empty() {
                inner.append(operator, Value::Document(own.view()));
            }
        }
        let Some(array) = array else { return Some(None) };
        let array: Vec<&str> = array.split('.').collect();
        if array.iter().any(|part| part.is_empty() || part.starts_with('$')) {
            return None;
        }
        let inner = inner.build();
        let update = Update::parse(Value::Document(inner.view()), array_filters).ok()?;
        Some(Some(EveryElement { array, update }))
    }

    /// Whether a path lies at, above or below the array.
    pub(crate) fn is_under<P: AsRef<str>>(&self, parts: &[P]) -> bool {
        self.array.iter().zip(parts).all(|(own, other)| *own == other.as_ref())
    }

    /// Changes the elements; `None` if the whole document is needed.
    pub(crate) fn apply(
        &self,
        store: &dyn ChunkStore,
        document: &LargeDocument,
        context: &UpdateContext,
    ) -> Result<Option<LargeDocument>, PiecesError> {
        let mut parts = self.array.clone();
        parts.push(""); // Names nothing in an array.
        let inside = document.find(store, &parts)?;
        if inside.part_count != self.array.len() || !inside.is_in_array() {
            return Ok(None);
        }
        let mut changed: Vec<(u64, DocumentBuf)> = Vec::new();
        let mut is_refused = false;
        document.visit_values(store, &inside, &mut |position, value| {
            let mut before = DocumentBuilder::new();
            before.begin_array(ARRAY).push(value).end();
            match self.update.apply(before.build().view(), context) {
                Ok(Some(after)) => changed.push((position, after)),
                Ok(None) => {}
                Err(_) => is_refused = true,
            }
            is_refused |= CHANGED_COUNT_MAX < changed.len();
            is_refused
        })?;
        if is_refused {
            return Ok(None);
        }
        let mut current = *document;
        for (position, after) in &changed {
            let Some(Value::Array(after)) = after.get(ARRAY) else { return Ok(None) };
            let elements: Vec<Element<'_>> = after.elements().collect();
            let inside = current.find(store, &parts)?;
            current = match current.splice(store, &inside, *position, 1, &elements)? {
                Some(Edited::Large(changed)) if elements.len() == 1 => changed,
                _ => return Ok(None),
            };
        }
        Ok(Some(current))
    }
}
