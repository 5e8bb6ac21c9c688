//! The paths of an update as one tree of steps.
//!
//! *Invariants*
//! 1. A leaf has no steps below it: paths one of which lies within the other are refused.
//! 2. Steps are in the order in which MongoDB makes new fields: numbers first, by value, then
//!    names as strings.
//! 3. A branch has either array steps (`$[]`, `$[name]`) or others, never both.

use std::collections::BTreeMap;

use super::modifier::Modifier;
use crate::code::Code;
use crate::error::QueryError;

/// A part of an update's path. The order is invariant 2.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Step {
    /// A field, or an element of an array.
    Number(usize),
    /// A field.
    Name(String),
    /// `$`
    Positional,
    /// `$[]`
    Every,
    /// `$[name]`
    Filtered(String),
}

/// The branch or the modifier below a step.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// More steps.
    Branch(Branch),
    /// The value here is changed.
    Leaf(Modifier),
}

/// The steps from one place.
#[derive(Clone, Debug, Default)]
pub(super) struct Branch {
    steps: BTreeMap<Step, Node>,
}

impl Step {
    fn parse(part: &str) -> Step {
        if part == "$" {
            return Step::Positional;
        }
        if let Some(name) = part.strip_prefix("$[").and_then(|part| part.strip_suffix(']')) {
            return if name.is_empty() { Step::Every } else { Step::Filtered(name.to_owned()) };
        }
        match part.parse() {
            // `01` and `+1` are names: only what arrays would write is a position.
            Ok(number) if part.len() == 1 || !part.starts_with(['0', '+']) => Step::Number(number),
            _ => Step::Name(part.to_owned()),
        }
    }

    fn is_array_step(&self) -> bool {
        matches!(self, Step::Every | Step::Filtered(_))
    }
}

impl Branch {
    /// The steps in their order.
    pub(super) fn steps(&self) -> impl Iterator<Item = (&Step, &Node)> {
        self.steps.iter()
    }

    /// Changes each modifier.
    pub(super) fn for_each_modifier(&mut self, change: &mut dyn FnMut(&mut Modifier)) {
        for node in self.steps.values_mut() {
            match node {
                Node::Branch(branch) => branch.for_each_modifier(change),
                Node::Leaf(modifier) => change(modifier),
            }
        }
    }

    /// The outermost names that begin with `$`: a document may be inserted with them, but not get
    /// them.
    pub(super) fn dollar_names(&self) -> impl Iterator<Item = &str> {
        self.steps.keys().filter_map(|step| match step {
            Step::Name(name) if name.starts_with('$') => Some(name.as_str()),
            _ => None,
        })
    }

    /// Whether a `$` is somewhere in it.
    pub(super) fn has_positional(&self) -> bool {
        self.any_step(&mut |step| *step == Step::Positional)
    }

    /// The names of all `$[name]`, in the order of the steps.
    pub(super) fn filter_names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for (step, node) in &self.steps {
            if let Step::Filtered(name) = step {
                names.push(name.as_str());
            }
            if let Node::Branch(branch) = node {
                names.extend(branch.filter_names());
            }
        }
        names
    }

    /// Whether `wanted` says so of any step.
    fn any_step(&self, wanted: &mut dyn FnMut(&Step) -> bool) -> bool {
        self.steps.iter().any(|(step, node)| {
            wanted(step)
                || match node {
                    Node::Branch(branch) => branch.any_step(wanted),
                    Node::Leaf(_) => false,
                }
        })
    }

    /// Puts a modifier at the end of a path.
    ///
    /// # Errors
    /// For paths that can't be written (empty names, a positional `$` in front) and conflicts.
    pub(super) fn insert(&mut self, path: &str, modifier: Modifier) -> Result<(), QueryError> {
        check_path(path)?;
        let mut branch = self;
        let mut rest = path;
        let mut before_bytes = 0;
        loop {
            let (part, after) = match rest.split_once('.') {
                Some((part, after)) => (part, Some(after)),
                None => (rest, None),
            };
            let step = Step::parse(part);
            let mut others = branch.steps.keys();
            if others.next().is_some_and(|it| it.is_array_step() != step.is_array_step()) {
                return Err(conflict(path, path[..before_bytes].trim_end_matches('.')));
            }
            before_bytes += part.len() + usize::from(after.is_some());
            let here = path[..before_bytes].trim_end_matches('.');
            let Some(after) = after else {
                if branch.steps.contains_key(&step) {
                    return Err(conflict(path, here));
                }
                branch.steps.insert(step, Node::Leaf(modifier));
                return Ok(());
            };
            let node = branch.steps.entry(step).or_insert_with(|| Node::Branch(Branch::default()));
            branch = match node {
                Node::Branch(branch) => branch,
                Node::Leaf(_) => return Err(conflict(path, here)),
            };
            rest = after;
        }
    }
}

/// Two parts of an update change the same place.
pub(super) fn conflict(path: &str, place: &str) -> QueryError {
    QueryError::new(
        Code::ConflictingUpdateOperators,
        format!("Updating the path '{path}' would create a conflict at '{place}'"),
    )
}

fn check_path(path: &str) -> Result<(), QueryError> {
    if path.is_empty() {
        return Err(QueryError::new(Code::EmptyFieldName, "An empty update path is not valid."));
    }
    if path.split('.').count() > frond_doc::document::DEPTH_MAX {
        return Err(QueryError::new(Code::Overflow, "the update path has too many parts"));
    }
    let mut positional_count = 0;
    for (place, part) in path.split('.').enumerate() {
        if part.is_empty() {
            return Err(QueryError::new(
                Code::EmptyFieldName,
                format!(
                    "The update path '{path}' contains an empty field name, which is not allowed."
                ),
            ));
        }
        if !part.starts_with('$') {
            continue;
        }
        let is_filtered = part.starts_with("$[") && part.ends_with(']');
        if place == 0 && (part == "$" || is_filtered) {
            let what = match is_filtered {
                true => "array filter identifier (i.e. '$[<id>]')",
                false => "positional (i.e. '$')",
            };
            return Err(QueryError::new(
                Code::BadValue,
                format!("Cannot have {what} element in the first position in path '{path}'"),
            ));
        }
        positional_count += usize::from(part == "$");
    }
    if positional_count > 1 {
        return Err(QueryError::new(
            Code::BadValue,
            format!("Too many positional (i.e. '$') elements found in path '{path}'"),
        ));
    }
    Ok(())
}
