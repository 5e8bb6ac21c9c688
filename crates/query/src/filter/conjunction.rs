//! Conditions that must all hold, asked in the order in which a document has their fields.
//!
//! A filter is mostly some conditions on outermost fields. The walk over a document shows them one by one, each is
//! compared where it lies, and the first that doesn't hold ends the walk. What can't be answered so (an absent
//! field, an array, a path with dots, a pattern, an expression) is asked afterwards, in the filter's order.

use frond_doc::field_scan::SCANNED_NAMES_MAX;
use frond_doc::{Document, ElementType};

use super::evaluate::{self, Run, on_value};
use super::tree::Node;

/// Nodes beyond are asked afterwards: the answers are bits of a number.
const NODES_MAX: usize = u64::BITS as usize;

/// Which nodes of a conjunction ask for an outermost field itself.
#[derive(Clone, Default, Debug)]
pub(super) struct Conjunction {
    /// Their positions, those that ask for the same field together.
    positions: Vec<u8>,
    /// Where those begin that ask for the field of that number; then the end.
    starts: [u8; SCANNED_NAMES_MAX + 1],
}

impl Conjunction {
    /// Sorts the nodes that must all hold for `root` to hold.
    pub(super) fn of(root: &Node) -> Conjunction {
        let mut made = Conjunction::default();
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

    /// Whether `document` passes `root`, of which this is made.
    pub(super) fn passes(&self, root: &Node, document: Document<'_>, run: &Run<'_>) -> bool {
        let nodes = nodes_of(root);
        let mut answered = 0_u64;
        let mut ask = |number: u8, kind: ElementType, value: &[u8]| {
            self.at(number).iter().any(|position| {
                let Some(Node::Field(field)) = nodes.get(usize::from(*position)) else {
                    return false;
                };
                let answer = on_value(&field.condition, kind, value);
                answered |= u64::from(answer.is_some()) << position;
                answer == Some(false)
            })
        };
        if !self.positions.is_empty() && run.meet_all(&mut ask) {
            return false;
        }
        nodes.iter().enumerate().all(|(position, node)| {
            let is_answered = position < NODES_MAX && answered >> position & 1 == 1;
            is_answered || evaluate::node(node, document, run)
        })
    }

    fn at(&self, number: u8) -> &[u8] {
        let number = usize::from(number);
        let bounds = (self.starts.get(number), self.starts.get(number + 1));
        let (Some(start), Some(end)) = bounds else { return &[] };
        self.positions.get(usize::from(*start)..usize::from(*end)).unwrap_or(&[])
    }
}

/// The nodes that must all hold.
fn nodes_of(root: &Node) -> &[Node] {
    match root {
        Node::And(nodes) => nodes,
        node => std::slice::from_ref(node),
    }
}
