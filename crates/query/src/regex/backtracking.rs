//! Searches patterns that only PCRE2 can search: by trying, in steps that are bounded.
//!
//! PCRE2 counts a *step* for each place to which it may have to come back, and ends a search with
//! an error after so many (`(*LIMIT_MATCH=)`). Between two steps it may still run through the whole
//! text, and it counts anew for each place where a match could begin. So that a call takes a tenth
//! of a second at most, and whether to go on is asked between calls:
//!
//! 1. The pattern is put in a group that may begin at some dozens or thousands of characters from
//!    where the call begins: `\G(?s).{0,126}?(?-s)\K(?:...)`. Their steps are counted together.
//! 2. So many steps are allowed as there may be, by the length of the text and by whether the
//!    pattern may run through it within a step ([`Cost`]).
//! 3. A call that exceeds its steps is made again with fewer beginnings. One that exceeds them with
//!    a single one is an error.
//! 4. A pattern that can't stand within another (verbs, recursion into the whole, `\G`) is searched
//!    at once, with so few steps that all beginnings together keep the bound. In a text that is too
//!    long for that it isn't searched at all.
//!
//! Never with PCRE2's compiler to machine code: it counts differently, and a sandbox may forbid it.

use std::sync::{Arc, Mutex, PoisonError};

use pcre2::bytes::{Regex, RegexBuilder};

use super::syntax::{Flags, Kind, MANY, Node, Opaque, Parsed, Repeat};
use crate::error::QueryError;
use crate::memory::RequestMemory;

/// The number of characters a call may pass by, or steps of 64 characters' worth it may take.
const CALL_CHARACTERS: u64 = 1 << 27;
/// The characters that a step counts for if it passes by no text.
const STEP_CHARACTERS: u64 = 64;
/// Steps of a call, at most and at least.
const STEPS_MAX: u64 = CALL_CHARACTERS / STEP_CHARACTERS;
const STEPS_MIN: u64 = 64;
/// The characters that a pattern which can't be put in a group may pass at once.
const WHOLE_CHARACTERS: u64 = 1 << 30;
/// The number of steps below which a search isn't worth it.
const WHOLE_STEPS_MIN: u64 = 16;
/// The number of beginnings that a call may try: fewer each time that it fails.
const BEGINNINGS: [u64; 5] = [65_534, 8_190, 1_022, 126, 14];
/// The bytes that a search may remember of the places to come back to.
const HEAP_BYTES_MAX: usize = 4 << 20;
/// The number of forms of a pattern that are kept: for texts of other lengths.
pub(super) const FORMS_MAX: usize = 4;
/// The most bytes of PCRE2's code for a pattern, with the names of its groups.
const CODE_BYTES_MAX: usize = 96 << 10;
/// Units of work of a call: whether to go on is asked before each.
const CALL_UNITS: usize = 1 << 13;

/// The groups of a match, the whole first: where they begin and end.
pub(crate) type Groups = Vec<Option<(usize, usize)>>;

/// The reason why a search has no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The pattern exceeds what it may take in this text; as PCRE2 says it.
    Limit(String),
    /// The error of the request.
    Request(QueryError),
}

/// The cost of a step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Cost {
    /// A few characters; before them, at each beginning, so many times the whole text.
    Few { ahead: u64 },
    /// The whole text.
    Text,
}

/// A pattern that PCRE2 searches.
#[derive(Debug)]
pub(super) struct Backtracker {
    /// The items at its beginning, such as `(*UTF)`.
    items: String,
    body: String,
    flags: Flags,
    /// The text that ends the body, if it may be put in a group.
    tail: Option<&'static str>,
    cost: Cost,
    /// The limit that the pattern itself sets.
    steps_max: u64,
    forms: Mutex<Vec<(Form, Arc<Regex>)>>,
}

/// The form in which a pattern is given to PCRE2.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Form {
    steps: u64,
    /// `None`: as it is, for all beginnings.
    beginnings: Option<u64>,
}

/// The items at the beginning of a pattern, and what follows them.
pub(super) struct Beginning<'s> {
    pub(super) items: String,
    pub(super) body: &'s str,
    /// The least number of steps that it allows.
    steps_max: u64,
    /// Whether it changes what the pattern means.
    pub(super) changes: bool,
}

/// Reads the items at the beginning of a pattern.
pub(super) fn beginning(source: &str) -> Beginning<'_> {
    const LIMITS: [&str; 4] = ["LIMIT_MATCH=", "LIMIT_DEPTH=", "LIMIT_RECURSION=", "LIMIT_HEAP="];
    const KEEP: [&str; 4] = ["UTF", "NO_AUTO_POSSESS", "NO_JIT", "NO_START_OPT"];
    const CHANGE: [&str; 14] = [
        "UCP",
        "NOTEMPTY",
        "NOTEMPTY_ATSTART",
        "NO_DOTSTAR_ANCHOR",
        "CASELESS_RESTRICT",
        "TURKISH_CASING",
        "CR",
        "LF",
        "CRLF",
        "ANY",
        "NUL",
        "ANYCRLF",
        "BSR_ANYCRLF",
        "BSR_UNICODE",
    ];
    let mut found =
        Beginning { items: String::new(), body: source, steps_max: u64::MAX, changes: false };
    while let Some((item, rest)) =
        found.body.strip_prefix("(*").and_then(|inside| inside.split_once(')'))
    {
        if let Some(limit) = LIMITS.iter().find(|limit| item.starts_with(**limit)) {
            let Ok(number) = item[limit.len()..].parse::<u64>() else { break };
            if *limit == "LIMIT_MATCH=" {
                found.steps_max = found.steps_max.min(number);
            }
        } else if CHANGE.contains(&item) {
            found.changes = true;
        } else if !KEEP.contains(&item) {
            break;
        }
        found.items.push_str(&format!("(*{item})"));
        found.body = rest;
    }
    found
}

/// Whether PCRE2 takes a pattern.
///
/// # Errors
/// PCRE2's message.
pub(super) fn check(source: &str, flags: Flags) -> Result<(), String> {
    build(source, flags).map(drop)
}

fn build(source: &str, flags: Flags) -> Result<Regex, String> {
    RegexBuilder::new()
        .utf(true)
        .caseless(flags.caseless)
        .multi_line(flags.multiline)
        .dotall(flags.dotall)
        .extended(flags.extended)
        .build(source)
        .map_err(|error| reason(&error))
}

/// Returns PCRE2's own message.
fn reason(error: &pcre2::Error) -> String {
    let text = error.to_string();
    let beginning = match error.offset() {
        Some(offset) => format!("PCRE2: error compiling pattern at offset {offset}: "),
        None => "PCRE2: error matching: ".to_owned(),
    };
    text.strip_prefix(&beginning).unwrap_or(&text).to_owned()
}

impl Backtracker {
    /// A pattern that PCRE2 takes; `parsed` is its body.
    pub(super) fn new(
        beginning: &Beginning<'_>,
        flags: Flags,
        parsed: Option<&Parsed>,
    ) -> Backtracker {
        let parsed = parsed.filter(|_| !beginning.changes);
        Backtracker {
            items: beginning.items.clone(),
            body: beginning.body.to_owned(),
            flags,
            tail: parsed.map(|parsed| parsed.tail),
            cost: parsed.map_or(Cost::Text, |parsed| cost(&parsed.node)),
            steps_max: beginning.steps_max,
            forms: Mutex::new(Vec::new()),
        }
    }

    /// About what one of its forms takes at most.
    pub(super) fn bytes(&self) -> usize {
        let code = match self.body.contains('{') {
            true => CODE_BYTES_MAX,
            false => CODE_BYTES_MAX.min(1024 + 48 * self.body.len()),
        };
        code + self.body.len()
    }

    /// Whether it may run through the text from each place where a match could begin.
    pub(super) fn looks_far(&self) -> bool {
        !matches!(self.cost, Cost::Few { ahead: 0 })
    }

    /// Finds the first match that begins at `from` or behind it: its place, and those of its
    /// groups. `next` returns where one may begin at or behind a place.
    ///
    /// # Errors
    /// That it exceeds its steps, or what the request is to fail with.
    pub(super) fn find(
        &self,
        text: &str,
        from: usize,
        memory: &RequestMemory,
        next: impl Fn(usize) -> Option<usize>,
    ) -> Result<Option<Groups>, Failure> {
        let Some(mut from) = next(from) else { return Ok(None) };
        let _heap = memory.charge_of(HEAP_BYTES_MAX).map_err(Failure::Request)?;
        let length = text.len() as u64;
        if self.tail.is_none() {
            return self.call(self.whole(length)?, text, from, memory);
        }
        let steps = self.steps(length);
        let beginnings = self.beginnings(length, steps);
        let mut tried = 0;
        loop {
            let count = beginnings.get(tried).copied().unwrap_or_default();
            let form = Form { steps, beginnings: Some(count) };
            match self.call(form, text, from, memory) {
                Ok(None) => {
                    let Some(behind) = nth(text, from, count + 1) else { return Ok(None) };
                    let Some(place) = next(behind) else { return Ok(None) };
                    from = place;
                    tried = tried.saturating_sub(1);
                }
                Err(Failure::Limit(_)) if 0 < count => tried += 1,
                answer => return answer,
            }
        }
    }

    /// Returns how many steps a call may take that begins with the pattern.
    fn steps(&self, length: u64) -> u64 {
        let step = self.step_characters()
            + match self.cost {
                Cost::Few { .. } => 0,
                Cost::Text => length,
            };
        // Few numbers, so that few forms are compiled.
        let steps = (CALL_CHARACTERS / step).clamp(STEPS_MIN, STEPS_MAX);
        (1 << steps.ilog2()).min(self.steps_max)
    }

    /// Returns the characters that a step counts for if it passes by no more of the text than the
    /// pattern's own letters.
    fn step_characters(&self) -> u64 {
        STEP_CHARACTERS.max(self.body.len() as u64)
    }

    /// Returns how many beginnings a call may try, falling; then one alone.
    fn beginnings(&self, length: u64, steps: u64) -> Vec<u64> {
        let ahead = match self.cost {
            Cost::Few { ahead } => ahead * length,
            Cost::Text => 0,
        };
        let most = (steps / 8).min(CALL_CHARACTERS.checked_div(ahead).unwrap_or(u64::MAX));
        let needed =
            BEGINNINGS.iter().position(|count| *count < length).unwrap_or(BEGINNINGS.len());
        let first = needed.saturating_sub(1);
        BEGINNINGS[first..].iter().copied().filter(|count| *count <= most).collect()
    }

    /// The form of a pattern that can't be put in a group.
    fn whole(&self, length: u64) -> Result<Form, Failure> {
        let characters = self.step_characters() + length;
        let steps = WHOLE_CHARACTERS / characters.saturating_mul(characters);
        if steps < WHOLE_STEPS_MIN {
            return Err(Failure::Limit("match limit exceeded".to_owned()));
        }
        let steps = (1 << steps.min(STEPS_MAX).ilog2()).min(self.steps_max);
        Ok(Form { steps, beginnings: None })
    }

    fn call(
        &self,
        form: Form,
        text: &str,
        from: usize,
        memory: &RequestMemory,
    ) -> Result<Option<Groups>, Failure> {
        memory.work(CALL_UNITS).map_err(Failure::Request)?;
        let regex = self.form(form)?;
        let mut groups = regex.capture_locations();
        let found = regex.captures_read_at(&mut groups, text.as_bytes(), from);
        match found {
            Ok(Some(_)) => Ok(Some((0..groups.len()).map(|group| groups.get(group)).collect())),
            Ok(None) => Ok(None),
            Err(error) => Err(Failure::Limit(reason(&error))),
        }
    }

    /// The pattern in a form, compiled when it is needed first.
    fn form(&self, form: Form) -> Result<Arc<Regex>, Failure> {
        let mut forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, regex)) = forms.iter().find(|(known, _)| *known == form) {
            return Ok(Arc::clone(regex));
        }
        let limits = format!(
            "(*LIMIT_MATCH={})(*LIMIT_HEAP={})(*NO_AUTO_POSSESS)",
            form.steps,
            HEAP_BYTES_MAX >> 10,
        );
        let (items, body, tail) = (&self.items, &self.body, self.tail.unwrap_or_default());
        let (on, off) = if self.flags.dotall { ("", "") } else { ("(?s)", "(?-s)") };
        let source = match form.beginnings {
            None => format!("{items}{limits}{body}"),
            Some(0) => format!("{items}{limits}\\G(?:{body}{tail})"),
            Some(count) => {
                format!("{items}{limits}\\G{on}.{{0,{count}}}?{off}\\K(?:{body}{tail})")
            }
        };
        let regex = Arc::new(build(&source, self.flags).map_err(Failure::Limit)?);
        if FORMS_MAX <= forms.len() {
            forms.remove(0);
        }
        forms.push((form, Arc::clone(&regex)));
        Ok(regex)
    }
}

/// The place `count` characters behind `from`; `None` if that is behind the end.
fn nth(text: &str, from: usize, count: u64) -> Option<usize> {
    let rest = text.get(from..)?;
    let count = usize::try_from(count).ok()?;
    let mut places = rest.char_indices().map(|(place, _)| from + place).chain([text.len()]);
    places.nth(count)
}

/// Returns the cost of a step of a pattern, without the possessive repetitions that PCRE2 would
/// make of others: they are off.
///
/// Repetitions are undone one by one, unless these steps end first: where a group that looks
/// around, or that is atomic, was passed. Such groups that repeat without an end are free at a
/// pattern's beginning: they are passed once for each.
fn cost(node: &Node) -> Cost {
    let parts = match node {
        Node::Sequence(parts) => parts.as_slice(),
        node => std::slice::from_ref(node),
    };
    let mut ahead = 0;
    for (position, part) in parts.iter().enumerate() {
        match part {
            Node::Look(_) => {}
            Node::Group(Kind::Lookaround(_), inner) if is_cheap(inner) => {
                ahead += u64::from(!is_short(inner));
            }
            _ => {
                return match parts[position..].iter().all(is_cheap) {
                    true => Cost::Few { ahead },
                    false => Cost::Text,
                };
            }
        }
    }
    Cost::Few { ahead }
}

/// Whether all that a part passes by is counted as steps.
fn is_cheap(node: &Node) -> bool {
    match node {
        Node::Empty | Node::Letter(_) | Node::Set(_) | Node::Look(_) | Node::LineEnd => true,
        Node::Opaque(opaque) => *opaque != Opaque::Many,
        Node::Group(Kind::Plain | Kind::Capture(_), inner) => is_cheap(inner),
        Node::Group(Kind::Atomic | Kind::Lookaround(_), inner) => {
            is_cheap(inner) && is_short(inner)
        }
        Node::Repeat(repeat) => !(repeat.possessive && runs(repeat)) && is_cheap(&repeat.node),
        Node::Sequence(parts) | Node::Choice(parts) => parts.iter().all(is_cheap),
    }
}

/// Whether a part can't run through a text within a step.
fn is_short(node: &Node) -> bool {
    match node {
        Node::Repeat(repeat) => !runs(repeat) && is_short(&repeat.node),
        Node::Group(_, inner) => is_short(inner),
        Node::Sequence(parts) | Node::Choice(parts) => parts.iter().all(is_short),
        Node::Opaque(opaque) => *opaque != Opaque::Many,
        _ => true,
    }
}

/// Whether a repetition may run through a text within a step: that of a character. Of groups each
/// repetition is a step.
fn runs(repeat: &Repeat) -> bool {
    let is_character = !matches!(repeat.node, Node::Group(..) | Node::Look(_) | Node::LineEnd);
    is_character && repeat.max.is_none_or(|max| MANY < max)
}

#[cfg(test)]
mod tests {
    use super::super::syntax;
    use super::*;

    fn of(source: &str) -> Backtracker {
        let flags = Flags::default();
        let beginning = beginning(source);
        let parsed = syntax::parse(beginning.body, flags);
        Backtracker::new(&beginning, flags, parsed.as_ref())
    }

    #[test]
    fn the_cost_of_a_step_is_known() {
        let few = |ahead| Cost::Few { ahead };
        for (source, expected) in [
            ("a(?!b)", few(0)),
            ("(?<=a)b*c", few(0)),
            (r"^(?=.*a)(?!.*b)[^c]*c", few(2)),
            (r"^((?!a).)*$", few(0)),
            ("a(?=.*b)", Cost::Text),
            ("(?=(?=a*)b)c", Cost::Text),
            ("(?>a*)b", Cost::Text),
            ("(?>a{0,9})b", few(0)),
            ("a*+b", Cost::Text),
            ("(?:ab)*+b", few(0)),
            (r"(a)\1", Cost::Text),
            (r"\p{L}+(?=a)", few(0)),
            ("a(*SKIP)b", Cost::Text),
        ] {
            assert_eq!(of(source).cost, expected, "{source}");
        }
    }

    #[test]
    fn no_call_takes_more_than_it_may() {
        for source in ["a(?!b)", "(?=.*a)b", r"(a)\1", "(?=a*b)c", "a*+b"] {
            let trying = of(source);
            for length in [0, 1, 63, 1000, 70_000, 200_000, 1 << 20, 16 << 20] {
                let steps = trying.steps(length);
                assert!(steps.is_power_of_two() && (STEPS_MIN..=STEPS_MAX).contains(&steps));
                let (step, ahead) = match trying.cost {
                    Cost::Few { ahead } => (STEP_CHARACTERS, ahead * length),
                    Cost::Text => (STEP_CHARACTERS + length, 0),
                };
                for beginnings in trying.beginnings(length, steps) {
                    assert!(beginnings * 8 <= steps);
                    assert!(beginnings * ahead <= CALL_CHARACTERS);
                }
                // In texts of megabytes so few steps are too few for a pattern of some letters.
                assert!(steps * step <= CALL_CHARACTERS.max(STEPS_MIN * step), "{source} {length}");
            }
        }
    }

    #[test]
    fn a_pattern_that_is_searched_at_once_keeps_the_bound() {
        for (source, in_a_group) in [
            ("a(*SKIP)b", false),
            ("(a(?R)?b)", false),
            (r"\Ga(?=b)", false),
            (r"(a\g<0>?b)", false),
            ("(*UCP)a(?=b)", false),
            ("(*UTF)a(?=b)", true),
            ("(a(?1)?b)", true),
            ("(?x)a(?=b) # c", true),
            (r"a(?=b)\Q)", true),
        ] {
            let trying = of(source);
            assert_eq!(trying.tail.is_some(), in_a_group, "{source}");
            let beginnings = in_a_group.then_some(9);
            assert!(trying.form(Form { steps: 64, beginnings }).is_ok(), "{source}");
        }
        let trying = of("a(*SKIP)b");
        for length in [0, 100, 1000, 5000] {
            let steps = trying.whole(length).unwrap().steps;
            assert!(steps * (length + 64) * (length + 64) <= WHOLE_CHARACTERS);
        }
        assert!(trying.whole(20_000).is_err());
    }

    #[test]
    fn the_items_of_a_pattern_stay_at_its_beginning() {
        for (source, items, body, steps_max) in [
            ("a", "", "a", u64::MAX),
            ("(*UTF)(*LIMIT_MATCH=7)a", "(*UTF)(*LIMIT_MATCH=7)", "a", 7),
            ("(*LIMIT_MATCH=4000000000)a", "(*LIMIT_MATCH=4000000000)", "a", 4_000_000_000),
            ("(*COMMIT)a", "", "(*COMMIT)a", u64::MAX),
            ("(*UTF", "", "(*UTF", u64::MAX),
        ] {
            let found = beginning(source);
            assert_eq!((found.items.as_str(), found.body), (items, body), "{source}");
            assert_eq!(found.steps_max, steps_max, "{source}");
        }
    }
}
