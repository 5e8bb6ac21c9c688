//! Random choice of a share of all cases.

use crate::scram::random_bytes;

/// Whether it happens now: in `share` of the cases, between none (0.0) and all (1.0).
pub fn is_by_chance(share: f64) -> bool {
    if 1.0 <= share {
        return true;
    }
    let bytes = random_bytes(4).unwrap_or_else(|_| vec![0; 4]);
    let number = bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
    f64::from(number) < share * (f64::from(u32::MAX) + 1.0)
}
