//! Checks a wildcard index when it is made, in MongoDB's order and with its codes.
//!
//! Existing indexes aren't checked: those that an older build has made against these rules can
//! still be read and dropped.

use frond_doc::{Document, DocumentBuf, Value};
use frond_query::{Code, Projection};

use super::IndexSpec;
use super::refusal::refused;
use crate::error::Error;

/// The last part of a wildcard's path.
const WILDCARD: &str = "$**";

impl IndexSpec {
    pub(super) fn has_wildcard(&self) -> bool {
        self.key.view().iter().any(|(path, _)| root(path).is_some())
    }

    /// Refuses a wildcard that stands beside what it may not.
    pub(super) fn check_wildcard(&self) -> Result<(), Error> {
        let key = self.key.view();
        let mut roots = key.iter().filter_map(|(path, _)| root(path));
        let Some(root_path) = roots.next() else { return Ok(()) };
        if roots.next().is_some() {
            return Err(fault(7_246_201, "Index Key can contain only one wildcard index field"));
        }
        let others = || key.iter().map(|(path, _)| path).filter(|path| root(path).is_none());
        if let Some(path) = others().find(|path| is_at_or_below(path, root_path)) {
            let message = format!(
                "A wildcard index field should not overlap with and index key fields if wildcard \
                 projection is empty, however '{path}' is overlapping with the wildcard index field."
            );
            return Err(fault(7_246_204, message));
        }
        if key.iter().any(|(_, kind)| kind.as_str().is_some()) {
            let message = "Can't use more than one index plugin for a single index.";
            return Err(refused(message.to_owned()));
        }
        let mut others: Vec<&str> = others().collect();
        let projection = self.wildcard_projection.as_ref().map(DocumentBuf::view);
        if !others.is_empty() && root_path.is_empty() && projection.is_none() {
            let message = "Compound wildcard indexes on all fields must also specify \
                           'wildcardProjection' option";
            return Err(refused(message.to_owned()));
        }
        // `IndexSpec::shape` refuses projections that are never right.
        let Some(projection) =
            projection.filter(|projection| root_path.is_empty() && !projection.is_empty())
        else {
            return Ok(());
        };
        if !others.is_empty() {
            others.sort_by(|left, right| left.split('.').cmp(right.split('.')));
            check_beside(&others, projection)?;
        }
        self.shape()?;
        Ok(Projection::parse(projection).map(|_| ())?)
    }
}

/// Refuses a projection that doesn't go with the index's `other` fields, which ascend by the parts
/// of their paths. As in MongoDB only the outermost names of the projection are looked at.
fn check_beside(other: &[&str], projection: Document<'_>) -> Result<(), Error> {
    let sorted = |takes: bool| {
        let is_taken = |value: Value<'_>| value.is_truthy() == takes;
        let mut paths: Vec<&str> =
            projection.iter().filter_map(|(path, value)| is_taken(value).then_some(path)).collect();
        paths.sort_by(|left, right| left.split('.').cmp(right.split('.')));
        paths
    };
    let (taken, left_out) = (sorted(true), sorted(false));
    for pair in taken.windows(2).chain(left_out.windows(2)) {
        if is_at_or_below(pair[1], pair[0]) {
            let message = format!(
                "Fields in Wildcard Projection cannot overlap, however '{}' is overlapped with '{}'",
                pair[0], pair[1]
            );
            return Err(fault(7_246_200, message));
        }
    }
    let is_below = |path: &str, outer: &[&str]| outer.iter().any(|one| is_at_or_below(path, one));
    if let Some(path) = other.iter().find(|path| is_below(path, &taken)) {
        let message = format!(
            "Index Key and Wildcard Projection cannot contain overlapping fields, however '{path}' \
             is among those of the projection"
        );
        return Err(fault(7_246_208, message));
    }
    let leaves_out_id = left_out == ["_id"];
    let uncovered = other.iter().find(|path| !is_below(path, &left_out));
    if let (false, false, Some(path)) = (left_out.is_empty(), leaves_out_id, uncovered) {
        let message = format!(
            "wildcardProjection paths must exclude all regular index fields, however '{path}' is \
             not excluded."
        );
        // MongoDB walks both lists at once, and shows by the code which of them ended first.
        let is_before_one = left_out.iter().any(|one| one.split('.').gt(path.split('.')));
        return Err(fault(if is_before_one { 7_246_209 } else { 7_246_210 }, message));
    }
    if !taken.is_empty() && !left_out.is_empty() && !leaves_out_id && taken != ["_id"] {
        let message = "Inclusion and exclusion statements cannot combine in the wildcardProjection \
                       with an exception of explicitly including _id field";
        return Err(fault(7_246_211, message));
    }
    Ok(())
}

/// Returns the beginning of a wildcard's path (nothing, if it takes all leaves); `None` if it is
/// none.
fn root(path: &str) -> Option<&str> {
    let outer = path.strip_suffix(WILDCARD)?;
    if outer.is_empty() { Some("") } else { outer.strip_suffix('.') }
}

/// Whether `path` is `outer` or lies below it; nothing lies below no path.
fn is_at_or_below(path: &str, outer: &str) -> bool {
    let rest = path.strip_prefix(outer).filter(|_| !outer.is_empty());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn fault(code: i32, message: impl Into<String>) -> Error {
    Error::invalid(Code::Location(code), message)
}
