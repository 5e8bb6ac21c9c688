//! Numbers that repeat: a small generator, and the skewed choice of YCSB.

/// Xorshift with a multiplication (Vigna, 2014): the same numbers for the same seed.
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    /// `seed` may be any number.
    pub fn new(seed: u64) -> Random {
        Random(scramble(seed) | 1)
    }

    /// Returns any number.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// A number from 0 to 1.
    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Small letters.
    pub fn letters(&mut self, count: usize, out: &mut Vec<u8>) {
        let end = out.len() + count;
        while out.len() < end {
            let mut bits = self.next();
            for _ in 0..(end - out.len()).min(12) {
                out.push(b'a' + (bits % 26) as u8);
                bits /= 26;
            }
        }
    }
}

/// Spreads neighbouring numbers over all bits (the finaliser of MurmurHash3).
pub fn scramble(number: u64) -> u64 {
    let mut number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Zipf's distribution as YCSB has it (Gray et al., SIGMOD 1994): 0 is the most frequent.
#[derive(Clone)]
pub struct Zipf {
    count: u64,
    alpha: f64,
    eta: f64,
    zeta: f64,
}

/// YCSB's constant.
const THETA: f64 = 0.99;

impl Zipf {
    /// Numbers below `count`.
    pub fn new(count: u64) -> Zipf {
        let zeta = |end: u64| (1..=end).map(|rank| (rank as f64).powf(-THETA)).sum::<f64>();
        let all = zeta(count);
        let eta = (1.0 - (2.0 / count as f64).powf(1.0 - THETA)) / (1.0 - zeta(2) / all);
        Zipf { count, alpha: 1.0 / (1.0 - THETA), eta, zeta: all }
    }

    /// One of them.
    pub fn next(&self, random: &mut Random) -> u64 {
        let fraction = random.fraction();
        let scaled = fraction * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5f64.powf(THETA) {
            return 1;
        }
        let rank = (self.eta * fraction - self.eta + 1.0).powf(self.alpha) * self.count as f64;
        (rank as u64).min(self.count - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ranks_take_their_share() {
        let (zipf, mut random) = (Zipf::new(1000), Random::new(7));
        let mut counts = [0u32; 1000];
        for _ in 0..100_000 {
            counts[zipf.next(&mut random) as usize] += 1;
        }
        // 1 / zeta(1000) at 0.99 is 0.129.
        assert!((12_000..14_000).contains(&counts[0]), "{}", counts[0]);
        assert!(counts[0] > counts[1] && counts[1] > counts[10] && counts[10] > counts[500]);
    }
}
