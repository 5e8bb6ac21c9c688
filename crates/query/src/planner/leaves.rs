//! Finds where a wildcard index has what a filter demands of a path.
//!
//! 1. A leaf is filed under its path without the positions of elements, so a part of the path that
//!    is a number may name a field or a position: each stands in the leaf's path or doesn't.
//! 2. The value that such a number reaches may lie in an array within an array, which is filed as a
//!    whole under the path before the number.
//! 3. A value that is there, whatever it is, has leaves at the path or below it; only an empty
//!    document and what is no document has one at the path itself.

use frond_doc::document::{Array, EMPTY};
use frond_doc::{Document, Value, key};

use super::conditions::PathBounds;
use super::defect::{Defect, is_planted};
use super::interval::{Interval, Intervals};
use crate::index::IndexShape;

/// The number of parts that are numbers above which no more are looked for: each doubles the paths.
const NUMBERS_MAX: usize = 3;

/// The leaves that are looked at for one path.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Leaves {
    /// The paths at which a leaf with the path's value may be filed.
    at: Vec<String>,
    /// The paths of arrays that may hold it.
    arrays: Vec<String>,
    /// Whether all below these paths are looked at, whatever their values.
    pub(super) is_subtree: bool,
}

impl Leaves {
    /// The leaves of `path`; `None` if `shape` may lack some.
    pub(super) fn of(path: &str, shape: &IndexShape) -> Option<Leaves> {
        let (mut at, mut arrays): (Vec<String>, Vec<String>) = (vec![String::new()], Vec::new());
        let mut numbers = 0;
        for part in path.split('.') {
            let longer = |outer: &String| match outer.is_empty() {
                true => part.to_owned(),
                false => format!("{outer}.{part}"),
            };
            let mut next: Vec<String> = at.iter().map(longer).collect();
            if is_number(part) && at != [""] {
                numbers += 1;
                arrays.extend(at.iter().cloned());
                next.extend(at);
            }
            at = next;
        }
        let is_filed = |path: &String| shape.wildcard_takes(path);
        let are_filed = at.iter().chain(&arrays).all(is_filed) && numbers <= NUMBERS_MAX;
        are_filed.then_some(Leaves { at, arrays, is_subtree: false })
    }

    /// These, and all below them; `None` if `shape` may lack some.
    pub(super) fn subtree(&self, shape: &IndexShape) -> Option<Leaves> {
        let is_filed = self.at.iter().all(|path| shape.wildcard_takes_all_below(path));
        is_filed.then(|| Leaves { is_subtree: true, ..self.clone() })
    }

    /// Whether a document may have several of them, in no order of its values.
    pub(super) fn are_several(&self) -> bool {
        self.is_subtree || self.at.len() > 1
    }

    /// Their paths.
    pub(super) fn paths(&self) -> Intervals {
        let points = self.at.iter().chain(&self.arrays);
        let mut paths: Vec<Interval> =
            points.map(|path| Interval::point(Value::String(path))).collect();
        if self.is_subtree {
            paths.extend(self.at.iter().map(|path| {
                let mut below = key::of_value(Value::String(&format!("{path}."))).to_vec();
                below.pop(); // The end of the text: what follows is free.
                Interval::beginning_with(below)
            }));
        }
        Intervals::union_of(paths)
    }

    /// The values that are looked for, of those that a filter demands at the path.
    pub(super) fn values(&self, demand: PathBounds) -> PathBounds {
        let mut intervals = demand.intervals;
        if self.is_subtree {
            intervals = Intervals::all();
        } else if !self.arrays.is_empty() {
            let empty = Array::from_validated(&EMPTY);
            let mut wider = intervals.into_vec();
            wider.push(Interval::bracket(Value::Array(empty)));
            intervals = Intervals::union_of(wider);
        }
        // A field's own name may have a dot.
        let is_top_level =
            matches!(&self.at[..], [path] if !path.contains('.')) && !self.is_subtree;
        PathBounds { intervals, is_exact: demand.is_exact && is_top_level, ..demand }
    }

    /// Whether these leaves are all that may fulfil `demand`; `is_multikey`: some leaf is in an
    /// array.
    pub(super) fn answer(&self, demand: &PathBounds, is_multikey: bool) -> bool {
        if self.is_subtree || !demand.is_present {
            return demand.is_present;
        }
        // A field that is absent in one element and there in another has only the other's leaf.
        let may_be_absent = is_multikey && demand.intervals.has_type(Value::Null);
        let may_be_whole = demand.intervals.is_all() || has_documents(&demand.intervals);
        (!may_be_absent || is_planted(Defect::AbsentElement))
            && (!may_be_whole || is_planted(Defect::WholeDocuments))
    }
}

/// Whether a document that isn't empty lies within: such documents are no leaves.
fn has_documents(intervals: &Intervals) -> bool {
    let empty = Interval::point(Value::Document(Document::empty()));
    let others = Intervals::union_of(vec![Interval::bracket(Value::Document(Document::empty()))])
        .intersection(&Intervals::union_of(vec![empty]).complement());
    !intervals.intersection(&others).as_slice().is_empty()
}

fn is_number(part: &str) -> bool {
    part.bytes().all(|byte| byte.is_ascii_digit())
}
