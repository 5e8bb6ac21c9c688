//! An ordered map by name: a few names are searched linearly, many by their hashes.

use std::collections::HashMap;

/// The number of names that are looked for one after the other.
const LINEAR_COUNT_MAX: usize = 16;

/// Values by name.
///
/// *Invariants*: 1. names differ. 2. `positions` has each name's position in `entries`, once there
/// are more than [`LINEAR_COUNT_MAX`]; it is empty before.
#[derive(Clone, Debug)]
pub(crate) struct ByName<T> {
    entries: Vec<(String, T)>,
    positions: HashMap<Box<[u8]>, usize>,
}

impl<T> Default for ByName<T> {
    fn default() -> ByName<T> {
        ByName { entries: Vec::new(), positions: HashMap::new() }
    }
}

impl<T> ByName<T> {
    /// The value of a name.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&T> {
        self.position(name).map(|position| &self.entries[position].1)
    }

    /// As [`ByName::get`], to be changed.
    pub(crate) fn get_mut(&mut self, name: &[u8]) -> Option<&mut T> {
        self.position(name).map(|position| &mut self.entries[position].1)
    }

    /// The value of a name, made where there is none, and whether it was.
    pub(crate) fn entry(&mut self, name: &str, make: impl FnOnce() -> T) -> (&mut T, bool) {
        let found = self.position(name.as_bytes());
        let position = found.unwrap_or_else(|| self.append(name, make()));
        (&mut self.entries[position].1, found.is_none())
    }

    /// Puts a name that isn't there before all others.
    pub(crate) fn prepend(&mut self, name: &str, value: T) {
        self.entries.insert(0, (name.to_owned(), value));
        self.positions.clear();
        if LINEAR_COUNT_MAX < self.entries.len() {
            self.note_all();
        }
    }

    /// The names and values, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.entries.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The values, in the order of their names.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().map(|(_, value)| value)
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether there are so many that looking for each of them somewhere takes long.
    pub(crate) fn is_many(&self) -> bool {
        LINEAR_COUNT_MAX < self.entries.len()
    }

    fn position(&self, name: &[u8]) -> Option<usize> {
        match self.is_many() {
            true => self.positions.get(name).copied(),
            false => self.entries.iter().position(|(known, _)| known.as_bytes() == name),
        }
    }

    fn append(&mut self, name: &str, value: T) -> usize {
        let position = self.entries.len();
        self.entries.push((name.to_owned(), value));
        if position == LINEAR_COUNT_MAX {
            self.note_all();
        } else if self.is_many() {
            self.positions.insert(name.as_bytes().into(), position);
        }
        position
    }

    fn note_all(&mut self) {
        let names = self.entries.iter().enumerate();
        self.positions = names.map(|(at, (name, _))| (name.as_bytes().into(), at)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_however_many_there_are() {
        let mut values = ByName::default();
        for number in 0..40 {
            let name = format!("n{number}");
            assert!(values.get(name.as_bytes()).is_none());
            assert!(values.entry(&name, || number).1);
            assert!(!values.entry(&name, || -1).1);
            for before in 0..=number {
                assert_eq!(values.get(format!("n{before}").as_bytes()), Some(&before));
            }
        }
        values.prepend("first", -2);
        assert_eq!(values.get(b"first"), Some(&-2));
        assert_eq!(values.get(b"n39"), Some(&39));
        let order: Vec<i32> = values.iter().map(|(_, value)| *value).collect();
        assert_eq!(order, [-2].into_iter().chain(0..40).collect::<Vec<_>>());
    }
}
