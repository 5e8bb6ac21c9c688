//! Conditions that must all hold, asked in the order in which a document has their fields.
//!
//! A filter is mostly some conditions on outermost fields. The walk over a document shows them one
//! by one, each is compared where it lies, and the first that doesn't hold ends the walk.
//! Conditions that can't be answered so (an absent field, an array, a path with dots, a pattern, an
//! expression) are asked afterwards, in the filter's order.

use frond_doc::field_scan::{FieldScan, SCANNED_NAMES_MAX, ScannedNames};
use frond_doc::{Document, ElementType};

use super::evaluate::{self, Run, on_value};
use super::tree::Node;
use crate::error::QueryError;
use crate::expression::Variables;

/// Nodes beyond are asked afterwards: the answers are bits of a number.
const NODES_MAX: usize = u64::BITS as usize;

/// The nodes of a conjunction that test an outermost field itself.
#[derive(Clone, Default, Debug)]
pub(super) struct Conjunction {
    /// Their positions, those that ask for the same field together.
    positions: Vec<u8>,
    /// The beginning of the nodes that ask for the field of that number; then the end.
    starts: [u8; SCANNED_NAMES_MAX + 1],
    /// A bit for each node, if there are no more than that.
    all: Option<u64>,
}

impl Conjunction {
    /// Sorts the nodes that must all hold for `root` to hold.
    pub(super) fn of(root: &Node) -> Conjunction {
        let count = nodes_of(root).len();
        let all = (count <= NODES_MAX).then(|| ((1_u128 << count) - 1) as u64);
        let mut made = Conjunction { all, ..Conjunction::default() };
        for number in 0..SCANNED_NAMES_MAX {
            for (position, node) in nodes_of(root).iter().enumerate().take(NODES_MAX) {
                if let Node::Field(field) = node
                    && field.scanned == Some(number as u8)
                    && field.path.parts().len() == 1
                {
                    made.positions.push(position as u8);
                }
            }
            made.starts[number + 1] = made.positions.len() as u8;
        }
        made
    }

    /// Checks whether `document` passes `root`, the filter that this was made of, and whose names
    /// are `names`.
    ///
    /// # Errors
    /// An error of an expression or a pattern.
    pub(super) fn passes(
        &self,
        root: &Node,
        names: &ScannedNames,
        document: Document<'_>,
        variables: &Variables,
    ) -> Result<bool, QueryError> {
        let nodes = nodes_of(root);
        if self.positions.is_empty() || document.is_indexed() {
            return test_others(nodes, 0, document, Run::over(document, names, variables));
        }
        let mut answered = 0_u64;
        let test = |number: u8, kind: ElementType, value: &[u8]| {
            self.at(number).iter().any(|position| {
                let Some(Node::Field(field)) = nodes.get(usize::from(*position)) else {
                    return false;
                };
                let answer = on_value(&field.condition, kind, value);
                answered |= u64::from(answer.is_some()) << position;
                answer == Some(false)
            })
        };
        let mut scan = FieldScan::new(document, names);
        if scan.visit_all(test) {
            return Ok(false);
        }
        match self.all == Some(answered) {
            true => Ok(true),
            false => test_others(nodes, answered, document, Run::after(scan, variables)),
        }
    }

    fn at(&self, number: u8) -> &[u8] {
        let number = usize::from(number);
        let bounds = (self.starts.get(number), self.starts.get(number + 1));
        let (Some(start), Some(end)) = bounds else { return &[] };
        self.positions.get(usize::from(*start)..usize::from(*end)).unwrap_or(&[])
    }
}

/// Asks the nodes whose bit in `answered` isn't set.
#[inline(never)]
fn test_others(
    nodes: &[Node],
    answered: u64,
    document: Document<'_>,
    run: Run<'_>,
) -> Result<bool, QueryError> {
    let passes = nodes.iter().enumerate().all(|(position, node)| {
        let is_answered = position < NODES_MAX && answered >> position & 1 == 1;
        is_answered || evaluate::node(node, document, &run)
    });
    run.finish(passes)
}

/// The nodes that must all hold.
fn nodes_of(root: &Node) -> &[Node] {
    match root {
        Node::And(nodes) => nodes,
        node => std::slice::from_ref(node),
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::{DocumentBuf, extended_json};

    use crate::filter::{Filter, Run, evaluate};

    fn parsed(json: &str) -> DocumentBuf {
        extended_json::parse(json).expect("extended JSON")
    }

    /// In the order of the document's fields the answer is the same as in the filter's, also when
    /// the walk has learnt what to expect.
    #[test]
    fn the_order_of_asking_changes_no_answer() {
        let many: Vec<String> = (0..70).map(|at| format!(r#"{{"a": {{"$ne": {at}}}}}"#)).collect();
        let many = format!(r#"{{"$and": [{}, {{"b": 1}}]}}"#, many.join(", "));
        let filters = [
            r#"{}"#,
            r#"{"a": 1}"#,
            r#"{"b": 1, "a": 1}"#,
            r#"{"a": {"$gt": 0, "$lt": 2}, "a.b": null}"#,
            r#"{"$and": [{"a": 1}, {"a": {"$ne": 2}}, {"c": {"$exists": false}}]}"#,
            r#"{"c": null, "b": {"$in": [1, 2]}, "a": {"$not": {"$eq": "x"}}}"#,
            r#"{"a": 1, "$or": [{"b": 1}, {"c": 1}]}"#,
            r#"{"a": {"$regex": "^x"}, "b": 1, "$expr": {"$eq": ["$b", 1]}}"#,
            &many,
        ];
        let documents = [
            r#"{}"#,
            r#"{"a": 1, "b": 1}"#,
            r#"{"b": 1, "a": 1, "c": 1}"#,
            r#"{"a": [1, 2], "b": [1]}"#,
            r#"{"a": "xy", "b": 1}"#,
            r#"{"a": {"b": 1}, "b": 1, "a": 1}"#,
            r#"{"c": null, "a": 2, "b": 2}"#,
            r#"{"a": 100, "b": 1}"#,
        ];
        for filter in filters {
            let filter = Filter::parse(parsed(filter).view()).expect("a filter");
            for turn in 0..3 {
                for document in documents.map(parsed) {
                    let run = Run::new(&filter.variables);
                    let expected = evaluate::node(&filter.root, document.view(), &run);
                    let found = filter.try_matches(document.view()).expect("nothing fails");
                    assert_eq!(found, expected, "{filter:?} of {document:?} in turn {turn}");
                }
            }
        }
    }
}
