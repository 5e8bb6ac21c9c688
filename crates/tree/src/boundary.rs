//! The boundary rule: after which items a chunk ends. Part of the format; integer arithmetic only.
//!
//! The authority is docs/format/boundary.md. A chunk of `s` bytes ends with a hazard that grows as
//! `(s / L)^4` (Weibull, k = 4), so that sizes lie close around the target; `L = target / Γ(5/4)`
//! makes the target the mean. An item that takes the chunk from `before` to `after` bytes:
//!
//! 1. doesn't end it if `after < target / 8`,
//! 2. ends it if `after >= 2 * target`,
//! 3. otherwise ends it if `threshold(hash) <= (after^4 - before^4) / L^4`, where `threshold` turns
//!    a uniform hash into an exponential variate: `-ln(1 - u)`, from a table, interpolated
//!    linearly.
//!
//! An interior node has two entries at least, so that each level has fewer nodes than the one
//! below; while it has fewer than four it ends only if the hash's lowest bit is zero too: where
//! keys are as long as a node, rules 2 and 3 alone would end every node after two entries, and an
//! insertion would shift all pairs behind it.
//!
//! *Invariants*: 1. Whether a chunk ends depends on its own items alone, never on what follows: an
//! edit never reaches back into the chunk before it. This is why rule 2 ends a chunk early instead
//! of looking at the next item; one more item always fits under four times the target.
//! 2. No floating point: the functions differ between platforms, and then so would root hashes.

mod table;

use twox_hash::XxHash3_64;

use crate::format::{INTERIOR_ENTRIES_FREE, TreeFormat};
use table::{PATIENCE, STEPS};

/// `1 / Γ(5/4)^4` in units of 2^-16: turns `target^4` into `L^4`.
const SCALE_FOURTH: u128 = 97_095;
const SCALE_FOURTH_SHIFT: u32 = 16;
const PATIENCE_SHIFT: u32 = 32;
/// Fewest entries of an interior node.
const INTERIOR_ENTRIES_MIN: usize = 2;
const STEP_BITS: u32 = STEPS.trailing_zeros();
const _: () = assert!(STEPS.is_power_of_two());
/// Spreads seeds of neighbouring levels over all bits (2^64 divided by the golden ratio).
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The kind of tree that a hash is for: keys of a map, items of a sequence, bytes of a long value.
/// Part of the seed: never renumber.
#[derive(Clone, Copy)]
pub(crate) enum Seeded {
    Map = 0,
    Sequence = 1,
    Slice = 2,
}

/// Returns the seed of the hashes that decide boundaries at `level`.
pub(crate) fn seed(format: &TreeFormat, kind: Seeded, level: u8) -> u64 {
    let place = (kind as u64) << 8 | u64::from(level);
    format.salt ^ SEED_STEP.wrapping_mul(place + 1)
}

/// Hashes the key or item that decides a boundary.
pub(crate) fn hash(bytes: &[u8], seed: u64) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, bytes)
}

/// The rule for the nodes of one level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoundaryRule {
    is_leaf: bool,
    bytes_min: u64,
    bytes_forced: u64,
    window_bytes: u64,
    /// `L^4`.
    scale: u128,
}

impl BoundaryRule {
    /// The rule of `format` for `level`.
    pub(crate) fn new(format: &TreeFormat, level: u8) -> BoundaryRule {
        let is_leaf = level == 0;
        let target = u64::from(if is_leaf { format.target() } else { format.interior_target() });
        BoundaryRule {
            is_leaf,
            bytes_min: target / 8,
            bytes_forced: target * 2,
            window_bytes: target / 4,
            scale: (u128::from(target).pow(4) * SCALE_FOURTH) >> SCALE_FOURTH_SHIFT,
        }
    }

    /// Returns whether an item with this `hash`, the `entry_count`th of a node, ends the node,
    /// which it takes from `before` to `after` bytes.
    pub(crate) fn ends_node(&self, entry_count: usize, hash: u64, before: u64, after: u64) -> bool {
        let may_end = self.is_leaf
            || entry_count >= INTERIOR_ENTRIES_FREE
            || entry_count >= INTERIOR_ENTRIES_MIN && hash & 1 == 0;
        may_end && self.ends(hash, before, after)
    }

    /// Returns how many bytes of items a window takes in a sequence.
    pub(crate) fn window_bytes(&self) -> u64 {
        self.window_bytes
    }

    /// Whether a node of so many bytes may end at all, whatever the hash: saves hashing.
    pub(crate) fn may_end(&self, after: u64) -> bool {
        self.bytes_min <= after
    }

    fn ends(&self, hash: u64, before: u64, after: u64) -> bool {
        if !self.may_end(after) {
            return false;
        }
        if after >= self.bytes_forced {
            return true;
        }
        let fourth = |bytes: u64| u128::from(bytes).pow(4);
        u128::from(threshold(hash)) * self.scale
            <= (fourth(after) - fourth(before)) << PATIENCE_SHIFT
    }
}

/// Turns a uniform hash into an exponential variate of mean 1, in units of 2^-32.
fn threshold(hash: u64) -> u64 {
    let step = (hash >> (u64::BITS - STEP_BITS)) as usize;
    let fraction = (hash << STEP_BITS) >> PATIENCE_SHIFT;
    let (from, to) = (PATIENCE[step], PATIENCE[step + 1]);
    // At most 2^33 times less than 2^32: no overflow.
    from + ((u128::from(to - from) * u128::from(fraction)) >> PATIENCE_SHIFT) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checked-in table is what its formula gives.
    #[test]
    fn table_follows_formula() {
        let unit = (1u64 << PATIENCE_SHIFT) as f64;
        for (position, entry) in PATIENCE[..STEPS].iter().enumerate() {
            let expected = -(1.0 - position as f64 / STEPS as f64).ln() * unit;
            assert!((expected - *entry as f64).abs() <= 1.0, "entry {position}");
        }
        assert_eq!(PATIENCE[STEPS], PATIENCE[STEPS - 1] + (2 << PATIENCE_SHIFT));
    }

    /// Sizes have the target as their mean, a spread near 0.28 of it, and keep the limits.
    #[test]
    fn sizes_lie_around_target() {
        for item_bytes in [1u64, 20, 137, 1000] {
            let format = TreeFormat::new(7);
            let rule = BoundaryRule::new(&format, 0);
            let (mut bytes, mut sizes) = (0, Vec::new());
            let mut item = 0u64;
            while sizes.len() < 2000 {
                item += 1;
                let ends = rule.ends(hash(&item.to_le_bytes(), 3), bytes, bytes + item_bytes);
                bytes += item_bytes;
                if ends {
                    sizes.push(bytes as f64);
                    bytes = 0;
                }
            }
            let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
            let square = sizes.iter().map(|size| (size - mean).powi(2)).sum::<f64>();
            let spread = (square / sizes.len() as f64).sqrt() / mean;
            let target = f64::from(format.chunk_bytes_target);
            // Whole items only: the mean of large items lies up to half an item higher.
            let slack = target * 0.02 + item_bytes as f64 / 2.0;
            assert!((mean - target).abs() < slack, "{item_bytes}: mean {mean}");
            assert!((0.25..0.31).contains(&spread), "{item_bytes}: spread {spread}");
            assert!(sizes.iter().all(|size| (target / 8.0..target * 4.0).contains(size)));
        }
    }
}
