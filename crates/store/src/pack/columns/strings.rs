//! A column of strings of bytes: one for all; a dictionary and which one stands in each place; for
//! numbered names (`/cart/17`, `order-000123`) a column of their [`numbers`], and one of what
//! stands around each; or one after the other without what they begin and end with alike. Layout:
//! docs/format/columns.md.

use super::column::Plan;
use super::cursor::{Reader, write_string};
use super::numbers;

// The first bytes of a column. Stored: never renumber.
const FORM_SAME: u8 = 0;
const FORM_DICTIONARY: u8 = 1;
const FORM_PLAIN: u8 = 2;
const FORM_NUMBERED: u8 = 3;

/// One string in so many may be new in a dictionary, and at most `DIFFERENT_MAX`.
const DICTIONARY_SHARE: usize = 2;
const DIFFERENT_MAX: usize = 64;
/// The number of digits above which there is no number of 64 bits for sure.
const DIGITS_MAX: usize = 18;

/// A column that was read.
pub(super) enum Strings<'a> {
    Same(&'a [u8]),
    Dictionary { different: Different, places: Vec<i64> },
    Plain { around: Affixes<'a>, bytes: &'a [u8], ends: Vec<usize> },
    Numbered { around: Box<[Strings<'a>; 2]>, digits: usize, numbers: Vec<i64> },
}

/// The strings of a dictionary, one after the other.
pub(super) struct Different {
    bytes: Vec<u8>,
    /// The beginning of each, and the end of the last one.
    bounds: Vec<usize>,
}

/// The prefix and suffix that all strings share.
#[derive(Clone, Copy)]
pub(super) struct Affixes<'a> {
    before: &'a [u8],
    behind: &'a [u8],
}

impl<'a> Affixes<'a> {
    fn of(strings: &[&'a [u8]]) -> Affixes<'a> {
        let first = strings[0];
        let (mut before, mut behind) = (first.len(), first.len());
        for string in &strings[1..] {
            before = alike(first.iter().take(before), string.iter());
            behind = alike(first.iter().rev().take(behind), string.iter().rev());
        }
        let shortest = strings.iter().map(|string| string.len()).min().unwrap_or(0);
        let behind = behind.min(shortest - before);
        Affixes { before: &first[..before], behind: &first[first.len() - behind..] }
    }

    fn middle<'b>(&self, string: &'b [u8]) -> &'b [u8] {
        &string[self.before.len()..string.len() - self.behind.len()]
    }

    fn write(&self, out: &mut Vec<u8>) {
        write_string(out, self.before);
        write_string(out, self.behind);
    }

    fn read(reader: &mut Reader<'a>) -> Option<Affixes<'a>> {
        Some(Affixes { before: reader.string()?, behind: reader.string()? })
    }
}

fn alike<'b>(one: impl Iterator<Item = &'b u8>, other: impl Iterator<Item = &'b u8>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

/// Appends the column of `strings`, in the form that `plan` has if that serves; else `plan` becomes
/// what does.
pub(super) fn write(out: &mut Vec<u8>, strings: &[&[u8]], plan: &mut Plan) {
    if strings.is_empty() || write_same(out, strings) {
        return;
    }
    let is_written = match plan.first {
        Some(FORM_PLAIN) => false,
        Some(FORM_NUMBERED) => {
            write_numbered(out, strings, plan) || write_dictionary(out, strings, plan)
        }
        _ => write_dictionary(out, strings, plan) || write_numbered(out, strings, plan),
    };
    if !is_written {
        write_plain(out, strings, plan);
    }
}

/// Appends the column of `strings` if all are the same; returns whether that is so.
fn write_same(out: &mut Vec<u8>, strings: &[&[u8]]) -> bool {
    let are_same = strings.iter().all(|string| *string == strings[0]);
    if are_same {
        out.push(FORM_SAME);
        write_string(out, strings[0]);
    }
    are_same
}

/// Appends the column of `strings` if few of them are different; returns whether that is so.
fn write_dictionary(out: &mut Vec<u8>, strings: &[&[u8]], plan: &mut Plan) -> bool {
    let Some((different, places)) = dictionary(strings) else { return false };
    out.push(plan.begin(FORM_DICTIONARY));
    numbers::write(out, &[different.len() as i64], &mut numbers::Plan::Unknown);
    let around = Affixes::of(&different);
    around.write(out);
    different.iter().for_each(|string| write_string(out, around.middle(string)));
    numbers::write_codes(out, &places, &mut plan.numbers);
    true
}

/// Appends the column of `strings` if they are numbers with little around them; returns whether
/// that is so.
fn write_numbered(out: &mut Vec<u8>, strings: &[&[u8]], plan: &mut Plan) -> bool {
    let Some(numbered) = Numbered::of(strings) else { return false };
    let start = out.len();
    out.push(FORM_NUMBERED);
    for around in [&numbered.before, &numbered.behind] {
        if !write_same(out, around) && !write_dictionary(out, around, &mut Plan::default()) {
            out.truncate(start);
            return false;
        }
    }
    plan.begin(FORM_NUMBERED);
    out.push(numbered.digits as u8);
    numbers::write(out, &numbered.numbers, &mut plan.numbers);
    true
}

fn write_plain(out: &mut Vec<u8>, strings: &[&[u8]], plan: &mut Plan) {
    out.push(plan.begin(FORM_PLAIN));
    let around = Affixes::of(strings);
    around.write(out);
    let middles = strings.iter().map(|string| around.middle(string));
    let lengths: Vec<i64> = middles.clone().map(|middle| middle.len() as i64).collect();
    numbers::write(out, &lengths, &mut plan.numbers);
    middles.for_each(|middle| out.extend_from_slice(middle));
}

/// The different strings in the order in which they come, and which stands in each place.
fn dictionary<'a>(strings: &[&'a [u8]]) -> Option<(Vec<&'a [u8]>, Vec<i64>)> {
    let different_max = (strings.len() / DICTIONARY_SHARE).min(DIFFERENT_MAX);
    let (mut different, mut places) = (Vec::new(), Vec::with_capacity(strings.len()));
    // The ends of those, which differ in almost all that aren't equal.
    let mut ends: Vec<u64> = Vec::new();
    let mut last = 0;
    for string in strings {
        let end = end_of(string);
        let is_it = |at: usize| ends[at] == end && different[at] == *string;
        if different.len() <= last || !is_it(last) {
            last = (0..ends.len()).find(|at| is_it(*at)).unwrap_or(ends.len());
        }
        if last == different.len() {
            if different.len() == different_max {
                return None;
            }
            ends.push(end);
            different.push(*string);
        }
        places.push(last as i64);
    }
    Some((different, places))
}

/// The last eight bytes, or as many as there are, as a number.
fn end_of(string: &[u8]) -> u64 {
    match string.last_chunk() {
        Some(last) => u64::from_le_bytes(*last),
        None => string.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
    }
}

/// Strings as numbers and what stands around them.
struct Numbered<'a> {
    before: Vec<&'a [u8]>,
    behind: Vec<&'a [u8]>,
    /// As many digits as each number has; or 0, if they have no leading zeros.
    digits: usize,
    numbers: Vec<i64>,
}

impl<'a> Numbered<'a> {
    /// Takes the numbers of the last digits of each, if all have some, and those can be made of
    /// numbers again.
    fn of(strings: &[&'a [u8]]) -> Option<Numbered<'a>> {
        let count = strings.len();
        let (mut before, mut behind) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let (mut numbers, mut digits) = (Vec::with_capacity(count), None);
        let (mut is_even, mut has_zeros) = (true, false);
        for string in strings {
            let end = string.iter().rposition(u8::is_ascii_digit)? + 1;
            let is_other = |byte: &u8| !byte.is_ascii_digit();
            let start = string[..end].iter().rposition(is_other).map_or(0, |other| other + 1);
            let start = start.max(end.saturating_sub(DIGITS_MAX));
            let number = &string[start..end];
            is_even &= *digits.get_or_insert(number.len()) == number.len();
            has_zeros |= number.len() > 1 && number[0] == b'0';
            before.push(&string[..start]);
            behind.push(&string[end..]);
            let digit = |number: i64, digit: &u8| number * 10 + i64::from(digit - b'0');
            numbers.push(number.iter().fold(0, digit));
        }
        let digits = if is_even { digits? } else { 0 };
        (is_even || !has_zeros).then_some(Numbered { before, behind, digits, numbers })
    }
}

impl<'a> Strings<'a> {
    /// Reads the column of `count` strings.
    pub(super) fn read(reader: &mut Reader<'a>, count: usize) -> Option<Strings<'a>> {
        if count == 0 {
            return Some(Strings::Same(&[]));
        }
        match reader.byte()? {
            FORM_PLAIN => {
                let around = Affixes::read(reader)?;
                let mut end = 0usize;
                let mut ends = Vec::with_capacity(count);
                for bytes in numbers::read(reader, count)? {
                    end = end.checked_add(usize::try_from(bytes).ok()?)?;
                    ends.push(end);
                }
                Some(Strings::Plain { around, bytes: reader.take(end)?, ends })
            }
            FORM_NUMBERED => {
                let before = Strings::read_repeated(reader.byte()?, reader, count)?;
                let behind = Strings::read_repeated(reader.byte()?, reader, count)?;
                let digits = usize::from(reader.byte()?);
                let numbers = numbers::read(reader, count)?;
                let around = Box::new([before, behind]);
                (digits <= DIGITS_MAX).then_some(Strings::Numbered { around, digits, numbers })
            }
            form => Strings::read_repeated(form, reader, count),
        }
    }

    /// Reads a column of few different strings, behind its form.
    fn read_repeated(form: u8, reader: &mut Reader<'a>, count: usize) -> Option<Strings<'a>> {
        match form {
            FORM_SAME => Some(Strings::Same(reader.string()?)),
            FORM_DICTIONARY => {
                let different_count = usize::try_from(numbers::read(reader, 1)?[0]).ok()?;
                if count < different_count {
                    return None;
                }
                let different = Different::read(reader, different_count)?;
                let places = numbers::read(reader, count)?;
                let known = 0..different_count as i64;
                let all_known = places.iter().all(|place| known.contains(place));
                all_known.then_some(Strings::Dictionary { different, places })
            }
            _ => None,
        }
    }

    /// Appends the string at `position`, which is less than the column's count.
    pub(super) fn append(&self, position: usize, out: &mut Vec<u8>) {
        match self {
            Strings::Same(string) => out.extend_from_slice(string),
            Strings::Dictionary { different, places } => {
                let bounds = &different.bounds[places[position] as usize..];
                out.extend_from_slice(&different.bytes[bounds[0]..bounds[1]]);
            }
            Strings::Plain { around, bytes, ends } => {
                let start = position.checked_sub(1).map_or(0, |before| ends[before]);
                out.extend_from_slice(around.before);
                out.extend_from_slice(&bytes[start..ends[position]]);
                out.extend_from_slice(around.behind);
            }
            Strings::Numbered { around, digits, numbers } => {
                around[0].append(position, out);
                append_digits(numbers[position], *digits, out);
                around[1].append(position, out);
            }
        }
    }
}

impl Different {
    /// Reads so many strings behind what all begin and end with.
    fn read(reader: &mut Reader<'_>, count: usize) -> Option<Different> {
        let around = Affixes::read(reader)?;
        let (mut bytes, mut bounds) = (Vec::new(), Vec::with_capacity(count + 1));
        bounds.push(0);
        for _ in 0..count {
            for part in [around.before, reader.string()?, around.behind] {
                bytes.extend_from_slice(part);
            }
            if reader.content_bytes < bytes.len() {
                return None;
            }
            bounds.push(bytes.len());
        }
        reader.content_bytes -= bytes.len();
        Some(Different { bytes, bounds })
    }
}

fn append_digits(number: i64, digits_min: usize, out: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let mut start = digits.len();
    let mut rest = number.unsigned_abs();
    while rest > 0 {
        start -= 1;
        digits[start] += (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&digits[start.min(digits.len() - digits_min.max(1))..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A size above the content of any column here.
    const CONTENT_BYTES: usize = 1 << 13;

    /// Checks that `strings` come back, and how many bytes they take at most, also by the plan that
    /// served them before.
    fn check(strings: &[&str], bytes_max: usize) {
        let mut plan = Plan::default();
        for _ in 0..2 {
            check_planned(strings, &mut plan, bytes_max);
        }
    }

    fn check_planned(strings: &[&str], plan: &mut Plan, bytes_max: usize) {
        let strings: Vec<&[u8]> = strings.iter().map(|string| string.as_bytes()).collect();
        let mut out = Vec::new();
        write(&mut out, &strings, plan);
        assert!(out.len() <= bytes_max, "{} bytes: {strings:?}", out.len());
        let mut reader = Reader::new(&out, CONTENT_BYTES);
        let found = Strings::read(&mut reader, strings.len()).unwrap();
        assert!(reader.is_empty());
        for (position, string) in strings.iter().enumerate() {
            let mut bytes = Vec::new();
            found.append(position, &mut bytes);
            assert_eq!(bytes, *string);
        }
        for bytes in 0..out.len() {
            assert!(
                Strings::read(&mut Reader::new(&out[..bytes], CONTENT_BYTES), strings.len())
                    .is_none()
            );
        }
    }

    fn check_all(string: impl Fn(u32) -> String, bytes_max: usize) {
        let strings: Vec<String> = (0..48).map(string).collect();
        check(&strings.iter().map(String::as_str).collect::<Vec<_>>(), bytes_max);
    }

    #[test]
    fn each_kind_of_column_takes_little() {
        check(&[], 0);
        check(&["a", ""], 12);
        check(&["aba", "aba-aba", "ab"], 24);
        check_all(|_| "the same".to_owned(), 10);
        check_all(|n| ["GET", "PUT", "DELETE"][(n * n % 3) as usize].to_owned(), 32);
        check_all(|n| format!("order-{:06}.json", 990 + n * 3), 25);
        check_all(|n| format!("order-{}", 97 + n), 18);
        let word = |n: u32| ["cart", "item", "search"][(n * n % 7 % 3) as usize];
        check_all(|n| format!("/{}/{}?q", word(n), n * 7919 % 5000), 40 + 48 * 15 / 8);
        check_all(|n| format!("{}{:020}", word(n), n), 60 + 48 * 2);
        check_all(|n| format!("order-0{}", 97 + n * n % 61), 60 + 48 * 3);
        check_all(|n| format!("{}-x", "y".repeat(n as usize)), 48 * 24 + 20);
    }

    #[test]
    fn a_known_form_is_left_where_it_does_not_serve() {
        let mut plan = Plan::default();
        let mut check = |string: &dyn Fn(u32) -> String, bytes_max, form| {
            let strings: Vec<String> = (0..48).map(string).collect();
            let strings: Vec<&str> = strings.iter().map(String::as_str).collect();
            check_planned(&strings, &mut plan, bytes_max);
            assert_eq!(plan.first, form, "{:?}", &strings[..3]);
        };
        check(&|_| "all".to_owned(), 5, None);
        check(&|n| format!("tide {}", n * n % 9973), 60 + 48 * 2, Some(FORM_NUMBERED));
        check(&|_| "all".to_owned(), 5, Some(FORM_NUMBERED));
        check(&|n| ["plum", "pear"][(n % 2) as usize].to_owned(), 32, Some(FORM_DICTIONARY));
        check(&|n| "ab".repeat(n as usize), 48 * 48 + 60, Some(FORM_PLAIN));
        // It isn't looked at what would be shorter, for some leaves.
        check(&|n| format!("tide {}", n * n % 9973), 48 * 5 + 20, Some(FORM_PLAIN));
    }

    #[test]
    fn hostile_bytes_are_refused() {
        // No form; a dictionary of more than there are, a place beyond it; a length beyond the end.
        for bytes in [
            &[9, 0, 0, 0, 0][..],
            &[FORM_DICTIONARY, 16, 8, 0, 0, 0, 0],
            &[FORM_DICTIONARY, 16, 2, 0, 0, 1, b'a', 16, 2],
            &[FORM_PLAIN, 0, 0, 16, 6, b'a'],
            &[FORM_PLAIN, 0, 0, 16, 1, b'a'],
            // Numbers with numbers around them, which might go on for ever.
            &[FORM_NUMBERED, FORM_NUMBERED, 0, 0, 0, 0, 0, 0, 16, 5, 16, 5],
        ] {
            assert!(
                Strings::read(&mut Reader::new(bytes, CONTENT_BYTES), 2).is_none(),
                "{bytes:?}"
            );
        }
        // Numbers that no writer makes are digits all the same.
        let negative = Strings::read(
            &mut Reader::new(&[FORM_NUMBERED, 0, 0, 0, 0, 0, 16, 5], CONTENT_BYTES),
            2,
        );
        let mut out = Vec::new();
        negative.unwrap().append(1, &mut out);
        assert_eq!(out, b"3");
    }
}
