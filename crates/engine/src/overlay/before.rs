//! What a transaction knows of the keys that it writes: whether each had a value before.
//!
//! A layer above often knows: it has looked for a new document's `_id`, and the entries of a
//! document that it changes are in its indexes. Counts need it of each entry of a memtable, and
//! would have to look it up. It isn't stored: what a restart finds in the log is looked up once.

/// Two bits an entry of a transaction, in the order of its record; nothing if nothing is known.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Befores(Vec<u8>);

const ENTRIES_PER_BYTE: usize = 4;
const KNOWN: u8 = 0b01;
const HAD_VALUE: u8 = 0b10;

impl Befores {
    /// Notes whether the key of the entry at `position` had a value; once for each.
    pub fn note(&mut self, position: usize, had_value: bool) {
        let (byte, shift) = place(position);
        if self.0.len() <= byte {
            self.0.resize(byte + 1, 0);
        }
        self.0[byte] |= (KNOWN | if had_value { HAD_VALUE } else { 0 }) << shift;
    }

    /// Whether the key of the entry at `position` had a value, if that is known.
    pub fn of(&self, position: usize) -> Option<bool> {
        let (byte, shift) = place(position);
        let bits = self.0.get(byte)? >> shift;
        (bits & KNOWN != 0).then_some(bits & HAD_VALUE != 0)
    }
}

fn place(position: usize) -> (usize, usize) {
    (position / ENTRIES_PER_BYTE, position % ENTRIES_PER_BYTE * 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_has_its_own_bits() {
        let known = [None, Some(true), Some(false), Some(true), None, Some(false), None];
        let mut befores = Befores::default();
        for (position, had_value) in known.iter().enumerate() {
            if let Some(had_value) = had_value {
                befores.note(position, *had_value);
            }
        }
        let found: Vec<Option<bool>> = (0..9).map(|position| befores.of(position)).collect();
        assert_eq!(found[..7], known);
        assert_eq!(found[7..], [None, None]);
    }
}
