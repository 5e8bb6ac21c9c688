//! The names of outermost fields that are wanted: few are compared one after the other, many are
//! hashed.

use std::collections::HashSet;

/// The number of names that are compared one after the other.
const LINEAR_COUNT_MAX: usize = 16;

/// Names, each once.
pub(super) enum Names<'n> {
    Few(&'n [&'n [u8]]),
    Many(HashSet<&'n [u8]>),
}

impl<'n> Names<'n> {
    pub(super) fn of(names: &'n [&'n [u8]]) -> Names<'n> {
        match names.len() <= LINEAR_COUNT_MAX {
            true => Names::Few(names),
            false => Names::Many(names.iter().copied().collect()),
        }
    }

    pub(super) fn contains(&self, name: &[u8]) -> bool {
        match self {
            Names::Few(names) => names.contains(&name),
            Names::Many(names) => names.contains(name),
        }
    }

    pub(super) fn count(&self) -> usize {
        match self {
            Names::Few(names) => names.len(),
            Names::Many(names) => names.len(),
        }
    }
}
