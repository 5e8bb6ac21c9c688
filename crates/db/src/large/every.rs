//! `$[]` and `$[x]` on a large document: the elements of one array, each by itself.
//!
//! The steps of an update that go through the same array become an update of `{e: [element]}`,
//! which is applied to each element that a filter takes; those that come out changed take their
//! places. So `$[x]` means what it means elsewhere, whatever its filter and however many steps
//! there are, in as many arrays as there are, as long as these are containers and none lies in
//! another.

use frond_doc::pieces::{Edited, Element, LargeDocument, Part, PiecesError};
use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value, ValueBuf};
use frond_query::Update;
use frond_query::expression::Variables;
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
    /// Cuts such steps out of an update, by array; `None` if one array lies in another, or the path
    /// to it is none that can be followed.
    pub(crate) fn cut(
        update: Document<'u>,
        array_filters: Option<Array<'_>>,
        variables: &Variables,
    ) -> Option<Vec<EveryElement<'u>>> {
        let mut arrays: Vec<&str> = Vec::new();
        for (_, paths) in update.iter() {
            for (path, _) in paths.as_document()?.iter() {
                if let Some((array, _)) = prefix(path)
                    && !arrays.contains(&array)
                {
                    arrays.push(array);
                }
            }
        }
        let mut every: Vec<EveryElement<'u>> = Vec::new();
        for array in arrays {
            let through = EveryElement::through(array, update, array_filters, variables)?;
            if every.iter().any(|other| other.is_under(&through.array)) {
                return None;
            }
            every.push(through);
        }
        Some(every)
    }

    /// The steps through one array.
    fn through(
        array: &'u str,
        update: Document<'u>,
        array_filters: Option<Array<'_>>,
        variables: &Variables,
    ) -> Option<EveryElement<'u>> {
        let mut inner = DocumentBuilder::new();
        let mut filters_used = String::new();
        for (operator, paths) in update.iter() {
            let mut own = DocumentBuilder::new();
            for (path, operand) in paths.as_document()?.iter() {
                let Some((_, after)) = prefix(path).filter(|(before, _)| *before == array) else {
                    continue;
                };
                filters_used.push_str(after);
                own.append(&format!("{ARRAY}.{after}"), operand);
            }
            let own = own.build();
            if !own.view().is_empty() {
                inner.append(operator, Value::Document(own.view()));
            }
        }
        let array: Vec<&str> = array.split('.').collect();
        if array.iter().any(|part| part.is_empty() || part.starts_with('$')) {
            return None;
        }
        let filters = array_filters.map(|filters| used_by(filters, &filters_used));
        let filters = filters.as_ref().and_then(|filters| filters.as_value().as_array());
        let inner = inner.build();
        let update = Update::parse(Value::Document(inner.view()), filters).ok()?;
        Some(EveryElement { array, update: update.with_variables(variables) })
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
        document.visit_values(store, &inside, Part::All, &mut |position, value| {
            if self.update.leaves_element(ARRAY, value) {
                return false;
            }
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
        let mut splices = Vec::with_capacity(changed.len());
        for (position, after) in &changed {
            let Some(Value::Array(after)) = after.get(ARRAY) else { return Ok(None) };
            let elements: Vec<Element<'_>> = after.elements().collect();
            let splice = document.prepare(store, &inside, *position, 1, &elements)?;
            let Some(splice) = splice.filter(|_| elements.len() == 1) else { return Ok(None) };
            splices.push(splice);
        }
        if splices.is_empty() {
            return Ok(Some(*document));
        }
        match document.splice_all(store, splices)? {
            Edited::Large(changed) => Ok(Some(changed)),
            Edited::Small(_) => Ok(None),
        }
    }
}

/// The array filters whose names stand in `paths`: others would be refused as unused.
fn used_by(filters: Array<'_>, paths: &str) -> ValueBuf {
    let mut out = DocumentBuilder::new();
    out.begin_array("");
    for filter in filters.iter() {
        let name = filter.as_document().and_then(|filter| Some(filter.iter().next()?.0.to_owned()));
        let name = name.as_deref().and_then(|name| name.split('.').next()).unwrap_or_default();
        // A filter that begins otherwise (`$or`) is kept: it is parsed as it would be with all
        // others.
        if name.starts_with('$') || paths.contains(&format!("$[{name}]")) {
            out.push(filter);
        }
    }
    out.end();
    ValueBuf::from_only_field(out.build())
}
