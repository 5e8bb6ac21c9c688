//! A column of doubles, by their bits.
//!
//! Measured values have few decimals: such a number is a whole one divided by a power of ten, and
//! the whole ones are a column of [`numbers`] (ALP; Afroozeh et al., "ALP: adaptive lossless
//! floating-point compression", 2023). A number counts as one only if the division gives back its
//! very bits. A few others (NaN, -0.0, an infinity) are listed beside. If there are more, the bits
//! are a column of numbers themselves. Layout: docs/format/columns.md.

use super::column::Plan;
use super::cursor::{Reader, write_varint};
use super::numbers;

/// The mark, in place of a scale, that the numbers' bits follow. Stored: never renumber.
const BITS: u8 = 0xff;
/// One number in so many may be no decimal.
const OTHERS_SHARE: usize = 8;
/// Powers of ten that a double holds exactly, as far as measurements have decimals.
const POWERS: [f64; 13] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12];
/// Beyond this not every whole number is a double.
const WHOLE_MAX: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;

/// Appends the column of the doubles that have these bits, as `plan` has it if that serves; else
/// `plan` becomes what does.
pub(super) fn write(out: &mut Vec<u8>, bits: &[u64], plan: &mut Plan) {
    if bits.is_empty() {
        return;
    }
    let Some((scale, (wholes, others))) = decimals(bits, plan.first) else {
        out.push(plan.begin(BITS));
        let numbers: Vec<i64> = bits.iter().map(|bits| *bits as i64).collect();
        numbers::write(out, &numbers, &mut plan.numbers);
        return;
    };
    out.push(plan.begin(scale));
    write_varint(out, others.len() as u64);
    let mut next = 0;
    for position in &others {
        write_varint(out, (position - next) as u64);
        out.extend_from_slice(&bits[*position].to_le_bytes());
        next = position + 1;
    }
    numbers::write(out, &wholes, &mut plan.numbers);
}

/// Reads the column of `count` doubles: their bits.
pub(super) fn read(reader: &mut Reader<'_>, count: usize) -> Option<Vec<i64>> {
    if count == 0 {
        return Some(Vec::new());
    }
    let scale = reader.byte()?;
    if scale == BITS {
        return numbers::read(reader, count);
    }
    let power = *POWERS.get(usize::from(scale))?;
    let mut others = Vec::new();
    let mut next = 0;
    for _ in 0..reader.count(count)? {
        let position = reader.count(count)?.checked_add(next).filter(|at| *at < count)?;
        let bits = reader.take(size_of::<u64>())?.try_into().ok()?;
        others.push((position, i64::from_le_bytes(bits)));
        next = position + 1;
    }
    let mut bits = numbers::read(reader, count)?;
    for whole in &mut bits {
        *whole = (*whole as f64 / power).to_bits() as i64;
    }
    for (position, other) in others {
        bits[position] = other;
    }
    Some(bits)
}

/// Whole numbers, and the positions of what isn't one.
type Wholes = (Vec<i64>, Vec<usize>);

/// The power of ten that makes whole numbers of all, but for a few, and these: the one that is
/// known, if it does so for all. `None` if the bits are known to serve, or there is none.
fn decimals(bits: &[u64], known: Option<u8>) -> Option<(u8, Wholes)> {
    if known == Some(BITS) {
        return None;
    }
    let by_known = known.and_then(|known| Some((known, wholes(bits, usize::from(known))?)));
    if let Some((known, (wholes, others))) = by_known
        && others.is_empty()
    {
        return Some((known, (wholes, others)));
    }
    let scale = scale(bits)?;
    Some((scale as u8, wholes(bits, scale)?))
}

/// The least power of ten that makes whole numbers of all, but for a few.
fn scale(bits: &[u64]) -> Option<usize> {
    let (mut scale, mut other_count) = (0, 0);
    for number in bits {
        match (scale..POWERS.len()).find(|scale| whole(*number, *scale).is_some()) {
            Some(fitting) => scale = fitting,
            None => other_count += 1,
        }
        if bits.len() < other_count * OTHERS_SHARE {
            return None;
        }
    }
    Some(scale)
}

/// The whole numbers that a power of ten makes of all but a few, and the positions of the few, in
/// whose places stands what was before: it costs least. A number that a small power makes whole may
/// be none by a large one.
fn wholes(bits: &[u64], scale: usize) -> Option<Wholes> {
    let (mut wholes, mut others) = (Vec::with_capacity(bits.len()), Vec::new());
    let mut last = bits.iter().find_map(|bits| whole(*bits, scale)).unwrap_or(0);
    for (position, bits) in bits.iter().enumerate() {
        match whole(*bits, scale) {
            Some(whole) => last = whole,
            None => others.push(position),
        }
        wholes.push(last);
    }
    (others.len() * OTHERS_SHARE <= bits.len()).then_some((wholes, others))
}

/// The whole number that is the one of these bits times a power of ten, if dividing gives them
/// back.
fn whole(bits: u64, scale: usize) -> Option<i64> {
    let scaled = f64::from_bits(bits) * POWERS[scale];
    if WHOLE_MAX <= scaled.abs() {
        return None;
    }
    // To the nearest: a cast cuts off, and makes 0 of NaN.
    let whole = (scaled + 0.5f64.copysign(scaled)) as i64;
    ((whole as f64 / POWERS[scale]).to_bits() == bits).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A size above the content of any column here.
    const CONTENT_BYTES: usize = 1 << 10;

    /// Checks that the numbers come back, bit by bit, and how many bytes they take at most.
    fn check(doubles: &[f64], bytes_max: usize) {
        let bits: Vec<u64> = doubles.iter().map(|double| double.to_bits()).collect();
        let mut out = Vec::new();
        write(&mut out, &bits, &mut Plan::default());
        assert!(out.len() <= bytes_max, "{} bytes: {doubles:?}", out.len());
        let mut reader = Reader::new(&out, CONTENT_BYTES);
        let found = read(&mut reader, bits.len()).unwrap();
        assert!(found.iter().map(|found| *found as u64).eq(bits.iter().copied()));
        assert!(reader.is_empty());
        for bytes in 0..out.len() {
            assert_eq!(read(&mut Reader::new(&out[..bytes], CONTENT_BYTES), bits.len()), None);
        }
    }

    #[test]
    fn a_known_scale_serves_where_it_makes_all_whole() {
        let mut plan = Plan::default();
        let mut scale_of = |doubles: &[f64]| {
            let bits: Vec<u64> = doubles.iter().map(|double| double.to_bits()).collect();
            let mut out = Vec::new();
            write(&mut out, &bits, &mut plan);
            let found = read(&mut Reader::new(&out, CONTENT_BYTES), bits.len()).unwrap();
            assert!(found.iter().map(|found| *found as u64).eq(bits.iter().copied()));
            out[0]
        };
        assert_eq!(scale_of(&[0.25, 7.5, 3.0]), 2);
        assert_eq!(scale_of(&[1.5, 2.5, 4.0]), 2, "it serves them, too");
        assert_eq!(scale_of(&[1.5, 2.125, 4.0]), 3);
        assert_eq!(scale_of(&[1e13, 0.5, 4.0]), 1, "as thousandths it isn't whole");
        assert_eq!(scale_of(&[f64::NAN, 0.1f64.sin(), 4.0]), BITS);
        assert_eq!(scale_of(&[1.5, 2.5, 4.0]), BITS);
    }

    #[test]
    fn decimals_take_little_and_all_come_back() {
        let collect = |double: &dyn Fn(u32) -> f64| (0..48).map(double).collect::<Vec<f64>>();
        let drift = |n: u32| f64::from(2150 + n * 7 % 16) / 100.0;
        check(&collect(&drift), 32);
        check(&collect(&|n| -drift(n)), 32);
        check(&collect(&f64::from), 10);
        let odd = |n| match n {
            3 => f64::NAN,
            4 => f64::from_bits(0xfff8_0000_0000_1234),
            9 => -0.0,
            17 => f64::NEG_INFINITY,
            _ => drift(n),
        };
        check(&collect(&odd), 32 + 4 * 9);
        check(&collect(&|n| f64::from(n).sqrt().sin()), 48 * 8 + 20);
        check(&collect(&|n| f64::from(1 + n as u16).sqrt() * 1e300), 48 * 8 + 20);
        check(&[f64::MIN_POSITIVE / 3.0, f64::MAX, 1e15, 9_007_199_254_740_993.0], 48);
        check(&[], 0);
        check(&[f64::NAN], 12);
    }
}
