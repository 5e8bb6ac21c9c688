//! Interpolation search among sorted hashes, which are evenly distributed.
//!
//! A binary search goes to one distant place after the other, each in another line of the
//! processor's cache. From a guess it is a step or two, mostly within the line: it doubles its
//! steps away from the guess until it has passed the place, and cuts what lies between in halves.
//! So it stays logarithmic where a client has chosen names that begin alike.

/// Returns how many of `count` places, from the first, lie before what is searched: those for which
/// `is_before` says so. `guess` is about how many.
pub(crate) fn count_before(count: usize, guess: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let guess = guess.min(count);
    let (mut low, mut high) = (guess, guess);
    let mut step = 1;
    while 0 < low && !is_before(low - 1) {
        high = low - 1;
        low = high.saturating_sub(step - 1);
        step *= 2;
    }
    if low == guess {
        step = 1;
        while high < count && is_before(high) {
            low = high + 1;
            high = count.min(low + step - 1);
            step *= 2;
        }
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

/// Returns where in `count` places `key` lies, if all from `from` to `to` are as frequent.
pub(crate) fn guess(key: u64, from: u64, to: u64, count: usize) -> usize {
    let (within, all) = (key.saturating_sub(from), to.saturating_sub(from));
    (u128::from(within) * count as u128 / (u128::from(all) + 1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_places_are_found_from_all_guesses() {
        for count in 0..40 {
            for place in 0..=count {
                for from in 0..count + 3 {
                    let found = count_before(count, from, |position| {
                        assert!(position < count);
                        position < place
                    });
                    assert_eq!(found, place, "{count} places, from {from}");
                }
            }
        }
    }

    #[test]
    fn a_search_is_logarithmic_from_any_guess() {
        for (guess, place) in [(0, 1 << 20), (1 << 20, 0), (5, 6), (1 << 19, 77)] {
            let probes = std::cell::Cell::new(0);
            let found = count_before(1 << 20, guess, |position| {
                probes.set(probes.get() + 1);
                position < place
            });
            assert!(found == place && probes.get() <= 45, "{} steps", probes.get());
        }
    }

    #[test]
    fn guesses_lie_within() {
        let check = |key, from, to, expected| assert_eq!(guess(key, from, to, 100), expected);
        check(0, 0, u64::MAX, 0);
        check(u64::MAX, 0, u64::MAX, 99);
        check(150, 100, 199, 50);
        check(7, 7, 7, 0);
        check(3, 7, 5, 0);
    }
}
