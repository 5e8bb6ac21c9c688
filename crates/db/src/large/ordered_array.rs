//! `$push` with `$sort` into an array of a large document that is in that order: the places of what
//! is pushed are searched for, and nothing else is touched.
//!
//! Whether an array is in order is nowhere stored, since a document's content alone decides its
//! bytes. But it is a fact of the content, which the container's name stands for: so it is
//! remembered in memory, and never wrong.
//! 1. An array about which this isn't known is walked once.
//! 2. One that isn't in order is left to the update of the whole document, which sorts it: the next
//!    push walks it.
//! 3. A push into an array that is in order leaves it in order.
//!
//! *Order*: the sort is stable. A pushed value goes behind those of its equals that lie before
//! `$position`, and before the others.

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, PoisonError};

use frond_doc::pieces::{LargeDocument, LocatedElement, Part, PiecesError};
use frond_doc::{DocumentBuilder, Value, ValueBuf};
use frond_query::Collation;
use frond_query::update::OrderedPush;
use frond_store::ChunkStore;

/// The number of arrays that are remembered at least; twice as many are at most.
const KNOWN_COUNT: usize = 4096;
/// An order that takes more bytes to write isn't remembered.
const ORDER_BYTES_MAX: usize = 256;

/// Arrays that are in order: those that were seen last, and those before.
static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

/// A container's name and an order, each.
type Known = [HashSet<Box<[u8]>>; 2];

/// A push into an array in order.
pub(super) struct OrderedArray {
    push: OrderedPush,
    /// The order, as it came.
    order: Vec<u8>,
}

impl OrderedArray {
    /// Returns the order in the operand of a `$push`; `None` if it doesn't sort.
    pub fn of(operand: Value<'_>, collation: &Collation) -> Option<OrderedArray> {
        let sort = operand.as_document()?.get("$sort")?;
        let push = OrderedPush::parse(operand, collation)?;
        let mut order = DocumentBuilder::new();
        order.append("", sort);
        let mut order = order.build().into_bytes().to_vec();
        order.extend(collation.specification().iter().flat_map(|it| it.as_bytes()));
        Some(OrderedArray { push, order })
    }

    /// Returns how many elements stay, as in the operator.
    pub fn slice(&self) -> Option<i64> {
        self.push.slice()
    }

    /// Returns how many values are pushed.
    pub fn count(&self) -> usize {
        self.push.values().count()
    }

    /// The places of the values that are pushed, ascending; `None` if the array isn't in order.
    ///
    /// # Errors
    /// As a read of the document's pieces.
    pub fn places(
        &self,
        store: &dyn ChunkStore,
        document: &LargeDocument,
        array: &LocatedElement,
        count: u64,
    ) -> Result<Option<Vec<(u64, Value<'_>)>>, PiecesError> {
        let names = self.push.names_in_documents();
        let part = names.as_ref().map_or(Part::All, |names| Part::AllWithFields(names));
        if !self.is_known(array) && !self.is_in_order(store, document, array, part)? {
            return Ok(None);
        }
        let (mut places, mut from) = (Vec::new(), 0);
        for value in self.push.values() {
            let mut end = count;
            while from < end {
                let middle = from + (end - from) / 2;
                let mut is_before = false;
                document.visit_value(store, array, middle, part, &mut |element| {
                    is_before = self.push.is_before(element, middle, count, value);
                })?;
                if is_before {
                    from = middle + 1;
                } else {
                    end = middle;
                }
            }
            places.push((from, value));
        }
        debug_assert!(places.is_sorted_by_key(|(place, _)| *place), "what is pushed is in order");
        Ok(Some(places))
    }

    /// Passes over the array.
    fn is_in_order(
        &self,
        store: &dyn ChunkStore,
        document: &LargeDocument,
        array: &LocatedElement,
        part: Part<'_>,
    ) -> Result<bool, PiecesError> {
        let (mut before, mut is_in_order): (Option<ValueBuf>, _) = (None, true);
        document.visit_values(store, array, part, &mut |_, value| {
            let before = before.replace(value.to_buf());
            let is_greater = |before: ValueBuf| self.push.compare(before.as_value(), value).is_gt();
            is_in_order = !before.is_some_and(is_greater);
            !is_in_order
        })?;
        Ok(is_in_order)
    }

    fn is_known(&self, array: &LocatedElement) -> bool {
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let key = self.key(array);
        known.iter().any(|known| known.contains(&*key))
    }

    /// Remembers that the array is in order.
    pub fn note(&self, array: &LocatedElement) {
        if ORDER_BYTES_MAX < self.order.len() {
            return;
        }
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if KNOWN_COUNT <= known[0].len() {
            known[1] = std::mem::take(&mut known[0]);
        }
        known[0].insert(self.key(array));
    }

    fn key(&self, array: &LocatedElement) -> Box<[u8]> {
        [&array.container_hash().0[..], &self.order].concat().into()
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::pieces::build;
    use frond_store::memory::MemoryStore;
    use frond_tree::TreeFormat;

    use super::*;

    /// `{n: [{title, body}, ...]}` with titles that are numbers: of two neighbours the same one.
    fn document(titles: impl Iterator<Item = i32>) -> frond_doc::DocumentBuf {
        let mut out = DocumentBuilder::new();
        out.begin_array("n");
        for title in titles {
            let mut element = DocumentBuilder::new();
            element.append("title", Value::Int32(title));
            element.append("body", Value::String(&"words ".repeat(100)));
            out.push(Value::from(&element.build()));
        }
        out.end();
        out.build()
    }

    /// Returns where values with such titles go, by these clauses; `None` if the array isn't in
    /// order.
    fn places(titles: impl Iterator<Item = i32>, clauses: &str) -> Option<Vec<u64>> {
        let store = MemoryStore::new();
        let large = build(&*store, TreeFormat::new(1), document(titles).view());
        let large = large.expect("stored").expect("it is large");
        let array = large.find(&*store, &["n", ""]).expect("whole");
        let count = array.count(&*store).expect("whole");
        let operand = frond_doc::extended_json::parse(clauses).expect("JSON");
        let operand = Value::Document(operand.view());
        let in_order = OrderedArray::of(operand, &Collation::default()).expect("it sorts");
        let places = in_order.places(&*store, &large, &array, count).expect("whole");
        places.map(|places| {
            in_order.note(&array);
            assert!(in_order.is_known(&array));
            places.into_iter().map(|(place, _)| place).collect()
        })
    }

    #[test]
    fn places_are_searched_for_in_arrays_in_order() {
        let up = || (0..200).map(|at| at / 2);
        let each = r#""$each": [{"title": 7}, {"title": 3}, {"title": 1000}, 5, {"title": -1}]"#;
        let by = |sort: &str| format!("{{{each}, \"$sort\": {{\"title\": {sort}}}}}");
        // An element that is no document has no title, which is as null.
        assert_eq!(places(up(), &by("1")), Some(vec![0, 0, 8, 16, 200]));
        assert_eq!(places(up(), &by("-1")), None);
        assert_eq!(places((0..200).map(|at| at % 9), &by("1")), None);
        let down = || up().collect::<Vec<_>>().into_iter().rev();
        assert_eq!(places(down(), &by("-1")), Some(vec![0, 186, 194, 200, 200]));
        // Among its equals: behind those before the position.
        for (position, place) in [(0, 14), (15, 15), (90, 16), (-185, 15), (-300, 14)] {
            let clauses = format!(
                r#"{{"$each": [{{"title": 7}}], "$position": {position}, "$sort": {{"title": 1}}}}"#
            );
            assert_eq!(places(up(), &clauses), Some(vec![place]), "{position}");
        }
    }
}
