//! A column of integers, in whichever encoding takes the fewest bytes.
//!
//! - *Frame of reference*: the numbers, or what each adds to the one before, or what that adds to
//!   the step before (delta of delta: nothing is left of a regular clock), as multiples of their
//!   greatest common divisor above a base, in as many bits as the largest needs. A few outliers
//!   are listed beside, so that one gap in a clock doesn't widen all steps (PFOR; Zukowski et al.,
//!   "Super-scalar RAM-CPU cache compression", 2006).
//! - *Dictionary*: the different numbers, and for each place which one.
//!
//! To find which one takes the fewest bytes is most of the work, and the same one does so for the
//! column of the next leaf, mostly: it is tried first ([`Plan`]), and taken if it needs no more
//! bits than it did.
//!
//! Arithmetic wraps, so that every column of 64-bit numbers has a form. Layout:
//! docs/format/columns.md.

use std::borrow::Cow;

use super::bit_packing::{pack, packed_bytes, unpack, width};
use super::cursor::{Reader, signed_bytes, write_signed, write_varint};

// The first bytes of a column. Stored: never renumber.
const ORDER_BITS: u8 = 0b11;
const ORDER_DICTIONARY: u8 = 3;
const HAS_DIVISOR: u8 = 1 << 2;
const HAS_OUTLIERS: u8 = 1 << 3;
const IS_CONSTANT: u8 = 1 << 4;

/// The width below which outliers and dictionaries win too little for the search.
const WIDTH_SEARCHED_MIN: u32 = 3;
/// One number in so many may be an outlier, and at most `OUTLIERS_MAX`.
const OUTLIERS_SHARE: usize = 8;
const OUTLIERS_MAX: usize = 12;
/// One number in so many may be new in a dictionary.
const DICTIONARY_SHARE: usize = 2;
const SAMPLE_COUNT: usize = 24;

/// What a column of the leaf before was packed as.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Plan {
    /// Not known, or nothing that others can be packed as.
    #[default]
    Unknown,
    /// Residues without outliers, in so many bits or fewer.
    Residues { order: usize, divisor: u64, width: u32 },
    /// A dictionary of so many numbers or fewer.
    Dictionary { count: usize },
}

/// The packing of numbers above a base.
struct Packing {
    base: i64,
    divisor: u64,
    width: u32,
    /// The positions of those that aren't.
    outliers: Vec<usize>,
    bytes: usize,
}

/// The facts that decide how numbers are packed.
#[derive(Clone, Copy)]
struct Summary {
    first: i64,
    least: i64,
    most: i64,
    /// About how many bits the numbers need above the first, in all, so that an outlier counts
    /// once.
    spread: u32,
}

impl Summary {
    fn of(first: i64) -> Summary {
        Summary { first, least: first, most: first, spread: 0 }
    }

    fn note(&mut self, number: i64) {
        self.least = self.least.min(number);
        self.most = self.most.max(number);
        let above = number.wrapping_sub(self.first);
        self.spread += width((above << 1 ^ above >> 63) as u64);
    }

    /// Returns how many bits the greatest needs above the least.
    fn width(&self) -> u32 {
        width(self.most.wrapping_sub(self.least) as u64)
    }
}

/// The summary of `numbers`, of what each adds to the one before, and of what that adds to the step
/// before; `None` of what there are none of.
fn summaries(numbers: &[i64]) -> [Option<Summary>; 3] {
    let [first, rest @ ..] = numbers else { return [None; 3] };
    let mut all = Summary::of(*first);
    let [second, rest @ ..] = rest else { return [Some(all), None, None] };
    all.note(*second);
    let (mut last, mut last_step) = (*second, second.wrapping_sub(*first));
    let mut steps = Summary::of(last_step);
    let [third, ..] = rest else { return [Some(all), Some(steps), None] };
    let mut steps_of_steps = Summary::of(third.wrapping_sub(last).wrapping_sub(last_step));
    for number in rest {
        let step = number.wrapping_sub(last);
        all.note(*number);
        steps.note(step);
        steps_of_steps.note(step.wrapping_sub(last_step));
        (last, last_step) = (*number, step);
    }
    [all, steps, steps_of_steps].map(Some)
}

/// The numbers, their steps, or the steps of these.
fn residues(numbers: &[i64], order: usize) -> Cow<'_, [i64]> {
    let step = |pair: &[i64]| pair[1].wrapping_sub(pair[0]);
    match order {
        0 => Cow::Borrowed(numbers),
        1 => Cow::Owned(numbers.windows(2).map(step).collect()),
        _ => Cow::Owned(
            numbers.windows(3).map(|three| step(&three[1..]).wrapping_sub(step(three))).collect(),
        ),
    }
}

/// Appends the column of `numbers`, as `plan` has it if that serves; else `plan` becomes what does.
pub(super) fn write(out: &mut Vec<u8>, numbers: &[i64], plan: &mut Plan) {
    write_in(out, numbers, dictionary, plan);
}

/// As [`write`], where the numbers are codes, from 0 on without a gap: what another dictionary
/// would make of them.
pub(super) fn write_codes(out: &mut Vec<u8>, codes: &[i64], plan: &mut Plan) {
    write_in(out, codes, |_| None, plan);
}

fn write_in(
    out: &mut Vec<u8>,
    numbers: &[i64],
    dictionary: fn(&[i64]) -> Option<Dictionary>,
    plan: &mut Plan,
) {
    let [first, rest @ ..] = numbers else { return };
    if rest.iter().all(|number| number == first) {
        out.push(IS_CONSTANT);
        write_signed(out, *first);
    } else if !plan.write(out, numbers) {
        *plan = search(out, numbers, dictionary);
    }
}

impl Plan {
    /// Appends the column of `numbers` as it was for other numbers, if it takes no more bits a
    /// number than it did; returns whether it does.
    fn write(self, out: &mut Vec<u8>, numbers: &[i64]) -> bool {
        match self {
            Plan::Unknown => false,
            Plan::Dictionary { count } => {
                let found = dictionary(numbers).filter(|found| found.count <= count);
                found.inspect(|found| out.extend_from_slice(&found.bytes)).is_some()
            }
            Plan::Residues { order, divisor, width } => {
                let residues = residues(numbers, order);
                let packing = Packing::of_multiples(&residues, divisor);
                let serves = packing.filter(|packing| packing.width <= width);
                serves.inspect(|packing| packing.append(out, numbers, order, &residues)).is_some()
            }
        }
    }
}

/// Appends the column of `numbers`, which aren't all the same, in the encoding of the fewest bytes;
/// returns which.
fn search(
    out: &mut Vec<u8>,
    numbers: &[i64],
    dictionary: fn(&[i64]) -> Option<Dictionary>,
) -> Plan {
    let summaries = summaries(numbers);
    // The search for outliers is dear, so only what may be the cheapest is looked at: without them,
    // and if most numbers are near each other and some aren't.
    let least = |bits: fn(&Summary) -> u32| {
        let known = summaries.iter().enumerate().filter_map(|(order, it)| Some((order, (*it)?)));
        known.min_by_key(|(_, summary)| bits(summary))
    };
    let (narrow, near) = (least(Summary::width), least(|summary| summary.spread));
    let near = near.filter(|near| narrow.is_none_or(|narrow| narrow.0 != near.0));
    let packings = narrow.into_iter().chain(near).map(|(order, summary)| {
        let residues = residues(numbers, order);
        let packing = Packing::of(&residues, &summary);
        (order, residues, packing)
    });
    let cheapest = packings.min_by_key(|(order, _, packing)| {
        packing.bytes + firsts(numbers, *order).map(signed_bytes).sum::<usize>()
    });
    let Some((order, residues, packing)) = cheapest else { return Plan::Unknown };
    if WIDTH_SEARCHED_MIN <= packing.width
        && let Some(found) = dictionary(numbers)
        && found.bytes.len() < packing.bytes
    {
        out.extend_from_slice(&found.bytes);
        return Plan::Dictionary { count: found.count };
    }
    packing.append(out, numbers, order, &residues);
    let Packing { divisor, width, .. } = packing;
    match packing.outliers.is_empty() {
        true => Plan::Residues { order, divisor, width },
        false => Plan::Unknown,
    }
}

/// The numbers that stand before the residues of an order: the first number, and its step.
fn firsts(numbers: &[i64], order: usize) -> impl Iterator<Item = i64> {
    let step = |pair: &[i64]| pair[1].wrapping_sub(pair[0]);
    numbers.first().copied().into_iter().chain(numbers.windows(2).map(step).take(1)).take(order)
}

/// Reads the column of `count` numbers.
pub(super) fn read(reader: &mut Reader<'_>, count: usize) -> Option<Vec<i64>> {
    let mut numbers = Vec::with_capacity(count);
    if count == 0 {
        return Some(numbers);
    }
    let mode = reader.byte()?;
    if mode & !(ORDER_BITS | HAS_DIVISOR | HAS_OUTLIERS | IS_CONSTANT) != 0 {
        return None;
    }
    if mode & ORDER_BITS == ORDER_DICTIONARY {
        read_dictionary(reader, mode, count, &mut numbers)?;
        return Some(numbers);
    }
    let order = usize::from(mode & ORDER_BITS);
    if count <= order {
        return None;
    }
    let mut firsts = [0; 2];
    for first in &mut firsts[..order] {
        *first = reader.signed()?;
    }
    read_packed(reader, mode, count - order, &mut numbers)?;
    for first in firsts[..order].iter().rev() {
        sum_up(&mut numbers, *first);
    }
    Some(numbers)
}

/// Makes of `first` and steps the numbers that they lead to.
fn sum_up(steps: &mut Vec<i64>, first: i64) {
    let mut sum = first;
    for step in &mut *steps {
        let next = sum.wrapping_add(*step);
        *step = sum;
        sum = next;
    }
    steps.push(sum);
}

impl Packing {
    /// The one of the fewest bytes for `numbers`, whose summary this is.
    fn of(numbers: &[i64], summary: &Summary) -> Packing {
        let all = summary.width();
        let count_max = (numbers.len() / OUTLIERS_SHARE).min(OUTLIERS_MAX);
        let are_outliers_sought = WIDTH_SEARCHED_MIN <= all
            && count_max > 0
            && may_narrow(numbers, summary.least, all, count_max);
        let (least, most) = if are_outliers_sought {
            without_outliers(numbers, all, count_max)
        } else {
            (summary.least, summary.most)
        };
        let is_inside = |number: i64| least <= number && number <= most;
        let above = |number: i64| number.wrapping_sub(least) as u64;
        let mut divisor = 0;
        for number in numbers.iter().filter(|number| is_inside(**number)) {
            let above = above(*number);
            if divisor == 0 || !above.is_multiple_of(divisor) {
                divisor = greatest_common_divisor(divisor, above);
            }
            if divisor == 1 {
                break;
            }
        }
        let divisor = divisor.max(1);
        let width = width(above(most) / divisor);
        let outside = numbers.iter().enumerate().filter(|(_, number)| !is_inside(**number));
        let (mut outliers, mut outlier_bytes) = (Vec::new(), 0);
        if (least, most) != (summary.least, summary.most) {
            for (position, number) in outside {
                outliers.push(position);
                outlier_bytes += 1 + signed_bytes(*number);
            }
        }
        let head = 1 + signed_bytes(least) + usize::from(width > 0);
        let bytes = head + outlier_bytes + (numbers.len() * width as usize).div_ceil(8);
        Packing { base: least, divisor, width, outliers, bytes }
    }

    /// The one of these numbers as multiples of `divisor`, without outliers; `None` if they are
    /// none, or there are no numbers.
    fn of_multiples(numbers: &[i64], divisor: u64) -> Option<Packing> {
        let base = *numbers.iter().min()?;
        let above = |number: i64| number.wrapping_sub(base) as u64;
        if divisor > 1 && !numbers.iter().all(|number| above(*number).is_multiple_of(divisor)) {
            return None;
        }
        let width = width(above(*numbers.iter().max()?) / divisor);
        let bytes = (numbers.len() * width as usize).div_ceil(8);
        Some(Packing { base, divisor, width, outliers: Vec::new(), bytes })
    }

    /// Appends the column of `numbers`, whose `residues` of that order this packs.
    fn append(&self, out: &mut Vec<u8>, numbers: &[i64], order: usize, residues: &[i64]) {
        let mode = out.len();
        out.push(order as u8);
        firsts(numbers, order).for_each(|first| write_signed(out, first));
        let flags = self.write(out, residues);
        out[mode] |= flags;
    }

    /// Appends `numbers`, whose packing this is; returns what the column's first byte says of it.
    fn write(&self, out: &mut Vec<u8>, numbers: &[i64]) -> u8 {
        let mut flags = 0;
        write_signed(out, self.base);
        if self.outliers.is_empty() && self.width == 0 {
            return IS_CONSTANT;
        }
        if self.divisor > 1 {
            flags |= HAS_DIVISOR;
            write_varint(out, self.divisor);
        }
        if !self.outliers.is_empty() {
            flags |= HAS_OUTLIERS;
            write_varint(out, self.outliers.len() as u64);
            let mut next = 0;
            for position in &self.outliers {
                write_varint(out, (position - next) as u64);
                write_signed(out, numbers[*position]);
                next = position + 1;
            }
        }
        out.push(self.width as u8);
        let mut outliers = self.outliers.iter().copied().peekable();
        let packed = numbers.iter().enumerate().map(|(position, number)| {
            if outliers.next_if_eq(&position).is_some() {
                return 0;
            }
            let above = number.wrapping_sub(self.base) as u64;
            // Most have no divisor, and a division takes longer than all else.
            if self.divisor == 1 { above } else { above / self.divisor }
        });
        pack(out, self.width, packed);
        flags
    }
}

/// About how many bits an outlier takes: its place, and the number itself, which is about as long
/// as it is far off.
fn outlier_bits(all: u32) -> usize {
    8 + 8 + all as usize
}

/// Whether it may pay to list up to `count_max` numbers beside the others, which need `all` bits
/// above `least`, the least of all: a sum that costs much less than to look for them.
fn may_narrow(numbers: &[i64], least: i64, all: u32, count_max: usize) -> bool {
    let mut eighths = [0; 8];
    for number in numbers {
        eighths[(number.wrapping_sub(least) as u64 >> (all - 3)) as usize & 7] += 1;
    }
    // Half of the range lies in five eighths, a quarter in three, an eighth or less in two. So many
    // bits are saved by each number at most then, and outliers may not take more.
    [(1, 5), (2, 3), (all as usize, 2)].into_iter().any(|(saved, eighth_count)| {
        let near = eighths.windows(eighth_count).map(|near| near.iter().sum::<usize>()).max();
        let count = (saved * numbers.len() / outlier_bits(all)).min(count_max);
        count > 0 && near.is_some_and(|near| numbers.len() <= near + count)
    })
}

/// The least and the most of `numbers`, which need `all` bits, without up to `count_max` that make
/// the others wide.
fn without_outliers(numbers: &[i64], all: u32, count_max: usize) -> (i64, i64) {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    let last = sorted.len() - 1;
    let outlier_bits = outlier_bits(all);
    let mut best = (all as usize * numbers.len(), 0, last);
    for count in 1..=count_max {
        for below in 0..=count {
            let (low, high) = (below, last - (count - below));
            let range = sorted[high].wrapping_sub(sorted[low]) as u64;
            let bits = width(range) as usize * numbers.len() + count * outlier_bits;
            best = best.min((bits, low, high));
        }
    }
    (sorted[best.1], sorted[best.2])
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn read_packed(
    reader: &mut Reader<'_>,
    mode: u8,
    count: usize,
    numbers: &mut Vec<i64>,
) -> Option<()> {
    let base = reader.signed()?;
    if mode & IS_CONSTANT != 0 {
        numbers.resize(count, base);
        return (mode & (HAS_DIVISOR | HAS_OUTLIERS) == 0).then_some(());
    }
    let divisor = if mode & HAS_DIVISOR != 0 { reader.varint()? } else { 1 };
    let mut outliers = Vec::new();
    if mode & HAS_OUTLIERS != 0 {
        let mut next = 0;
        for _ in 0..reader.count(count)? {
            let position = reader.count(count)?.checked_add(next).filter(|at| *at < count)?;
            outliers.push((position, reader.signed()?));
            next = position + 1;
        }
    }
    let width = u32::from(reader.byte()?);
    if u64::BITS < width {
        return None;
    }
    let packed = reader.take(packed_bytes(count, width)?)?;
    let number = |packed: u64| base.wrapping_add(packed.wrapping_mul(divisor) as i64);
    unpack(packed, width, count, numbers, number);
    for (position, number) in outliers {
        numbers[position] = number;
    }
    Some(())
}

/// A column as a dictionary.
struct Dictionary {
    /// How many numbers are different.
    count: usize,
    bytes: Vec<u8>,
}

/// The column as a dictionary, if few numbers are different.
fn dictionary(numbers: &[i64]) -> Option<Dictionary> {
    // Most columns that have none show it at their beginning.
    let sample = &numbers[..numbers.len().min(SAMPLE_COUNT)];
    let is_new = |position: &usize| !sample[..*position].contains(&sample[*position]);
    if sample.len() < (0..sample.len()).filter(is_new).count() * DICTIONARY_SHARE
        && sample.len() == SAMPLE_COUNT
    {
        return None;
    }
    let mut different = numbers.to_vec();
    different.sort_unstable();
    different.dedup();
    if numbers.len() < different.len() * DICTIONARY_SHARE {
        return None;
    }
    let mut bytes = vec![ORDER_DICTIONARY];
    write_varint(&mut bytes, different.len() as u64);
    let mut last = 0i64;
    for number in &different {
        write_signed(&mut bytes, number.wrapping_sub(last));
        last = *number;
    }
    let position = |number: &i64| different.binary_search(number).map_or(0, |at| at as u64);
    pack(&mut bytes, width(different.len() as u64 - 1), numbers.iter().map(position));
    Some(Dictionary { count: different.len(), bytes })
}

fn read_dictionary(
    reader: &mut Reader<'_>,
    mode: u8,
    count: usize,
    numbers: &mut Vec<i64>,
) -> Option<()> {
    let different_count = reader.count(count)?;
    if mode != ORDER_DICTIONARY || different_count == 0 {
        return None;
    }
    let mut different = Vec::with_capacity(different_count);
    let mut last = 0i64;
    for _ in 0..different_count {
        last = last.wrapping_add(reader.signed()?);
        different.push(last);
    }
    let width = width(different_count as u64 - 1);
    unpack(reader.take(packed_bytes(count, width)?)?, width, count, numbers, |at| at as i64);
    for number in numbers {
        *number = *different.get(usize::try_from(*number).ok()?)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A size above the content of any column here.
    const CONTENT_BYTES: usize = 1 << 10;

    /// Checks that `numbers` come back, and how many bytes they take at most.
    fn check(numbers: &[i64], bytes_max: usize) {
        let mut plan = Plan::default();
        check_planned(numbers, &mut plan, bytes_max);
        // What one column was packed as serves the same one.
        let known = plan;
        let again = check_planned(numbers, &mut plan, bytes_max);
        assert!(plan == known, "{plan:?}, {known:?}: {again} bytes of {numbers:?}");
    }

    /// The same by a plan; returns how many bytes they take.
    fn check_planned(numbers: &[i64], plan: &mut Plan, bytes_max: usize) -> usize {
        let mut out = Vec::new();
        write(&mut out, numbers, plan);
        assert!(out.len() <= bytes_max, "{} bytes: {numbers:?}", out.len());
        let mut reader = Reader::new(&out, CONTENT_BYTES);
        assert_eq!(read(&mut reader, numbers.len()).as_deref(), Some(numbers));
        assert!(reader.is_empty());
        for bytes in 0..out.len() {
            assert_eq!(read(&mut Reader::new(&out[..bytes], CONTENT_BYTES), numbers.len()), None);
        }
        out.len()
    }

    fn noise(position: i64, below: i64) -> i64 {
        let number = (position as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        (number % below as u64) as i64
    }

    #[test]
    fn each_kind_of_column_takes_little() {
        check(&[], 0);
        check(&[7], 2);
        check(&[7; 50], 2);
        check(&[i64::MIN, i64::MAX, 0, -1], 40);
        let collect = |number: &dyn Fn(i64) -> i64| (0..48).map(number).collect::<Vec<i64>>();
        // A clock that ticks, one that ticks by whole seconds, and one with a gap.
        check(&collect(&|n| 1_767_000_000_000 + 1000 * n), 12);
        check(&collect(&|n| 1_767_000_000_000 + 1000 * (noise(n, 2) + 2 * n)), 30);
        check(
            &collect(&|n| 1_767_000_000_000 + 1000 * n + if n > 20 { 86_400_000 } else { 0 }),
            30,
        );
        // Noise of five bits, and of five bits but for one.
        check(&collect(&|n| noise(n, 32)), 34);
        check(&collect(&|n| if n == 9 { 1 << 40 } else { noise(n, 32) }), 44);
        // A few codes.
        check(&collect(&|n| [200, 404, 500, 70_000][noise(n, 4) as usize]), 12 + 12);
    }

    #[test]
    fn arbitrary_numbers_come_back() {
        for seed in 0..2000i64 {
            let count = noise(seed, 70);
            let bits = noise(seed * 3, 64) as u32;
            let numbers: Vec<i64> = (0..count)
                .map(|n| {
                    let number = (seed * 71 + n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15u64 as i64);
                    if noise(n ^ seed, 9) == 0 { number } else { number >> bits }
                })
                .collect();
            check(&numbers, 30 + 10 * numbers.len());
        }
    }

    #[test]
    fn a_plan_serves_like_columns_and_no_others() {
        let collect = |number: &dyn Fn(i64) -> i64| (0..48).map(number).collect::<Vec<i64>>();
        let clock = |start: i64| {
            let mut at = start;
            collect(&|n| 1000 * (1 + noise(n + start, 30)))
                .into_iter()
                .map(|step| {
                    at += step;
                    at
                })
                .collect::<Vec<i64>>()
        };
        let mut plan = Plan::default();
        let first = check_planned(&clock(7_000_000), &mut plan, 48);
        let known = plan;
        assert!(matches!(known, Plan::Residues { order: 1, divisor: 1000, width: 5 }), "{known:?}");
        let second = check_planned(&clock(9_313_000), &mut plan, first + 2);
        assert!(plan == known && first.abs_diff(second) <= 2);
        // Narrower ones are packed alike, wider ones and other multiples are looked at anew.
        check_planned(&collect(&|n| 1000 * n + 1000 * (n & 1)), &mut plan, 20);
        assert_eq!(plan, known);
        check_planned(&collect(&|n| 1000 * n * noise(n, 5)), &mut plan, 150);
        assert_ne!(plan, known);
        plan = known;
        check_planned(&collect(&|n| 250 * (n + (n & 1))), &mut plan, 20);
        assert_eq!(plan, Plan::Residues { order: 1, divisor: 500, width: 1 });
        check_planned(&collect(&|n| [3, 900, 70_000][noise(n, 3) as usize]), &mut plan, 24);
        let known = plan;
        assert_eq!(known, Plan::Dictionary { count: 3 });
        check_planned(&collect(&|n| [5, 1 << 40][noise(n, 2) as usize]), &mut plan, 24);
        assert_eq!(plan, known);
        check_planned(&collect(&|n| noise(n, 1 << 30)), &mut plan, 200);
        assert_ne!(plan, known);
        // One number, which has no step.
        check_planned(&[44], &mut plan, 3);
        check_planned(&[], &mut plan, 0);
    }

    #[test]
    fn hostile_bytes_are_refused() {
        for bytes in [
            &[0xe0, 0][..],
            // A constant that has outliers, a width of 65 bits, an outlier beyond the end.
            &[IS_CONSTANT | HAS_OUTLIERS, 0],
            &[0, 0, 65, 0],
            &[HAS_OUTLIERS, 0, 1, 9, 0, 0],
            // An empty dictionary, and a place beyond it.
            &[ORDER_DICTIONARY, 0],
            &[ORDER_DICTIONARY, 3, 0, 0, 0, 0xff, 0xff],
        ] {
            assert_eq!(read(&mut Reader::new(bytes, CONTENT_BYTES), 4), None, "{bytes:?}");
        }
    }
}
