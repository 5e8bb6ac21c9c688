//! Patterns as automata, which search in time that is linear in the text.
//!
//! 1. [`exact`]: where PCRE2's search and the automaton's find the same ([`Meaning`]). Both prefer
//!    the first place, then the first alternative, then more repetitions (or fewer). They differ
//!    in where empty repetitions end, which moves what is found but not whether it is.
//! 2. [`possible`]: all that PCRE2 might find, and more: without what looks around, with anything
//!    for what isn't known. Where this finds nothing, there is nothing.
//!
//! A search follows all states of an automaton that are possible at a byte, which may be many
//! thousands. In a long text it is made in parts, and whether to go on is asked between them.
//!
//! Three places differ and are put otherwise, or left to PCRE2: `$` also stands before the line
//! feed that ends a text; `^` of `m` doesn't stand behind that; `\B` isn't within a character.

use std::sync::OnceLock;

use regex_automata::hybrid::dfa::{self, DFA};
use regex_automata::nfa::thompson;
use regex_automata::{Input, meta};
use regex_syntax::hir::{
    self, Capture, Class, ClassUnicode, ClassUnicodeRange, Hir, Look, Repetition,
};

use super::backtracking::{Failure, Groups};
use super::syntax::{Kind, Node, Opaque};
use crate::memory::RequestMemory;

/// The sizes of automata; the last is the engine's own limit.
const SIZES: [usize; 9] =
    [2 << 10, 4 << 10, 8 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20, 5 << 20, 10 << 20];
/// The most bytes that a search remembers of an automaton's states.
const SEARCH_BYTES_MAX: usize = 128 << 10;
/// The table of a pattern with groups, at most.
const TABLE_BYTES_MAX: usize = 1 << 20;
/// Units of work of a search, and so many bytes that are searched are one.
const SEARCH_UNITS: usize = 8;
const BYTES_OF_UNIT: usize = 16;
/// Alternatives and sequences within each other, as an automaton is made of them by recursion.
const SIZE_MAX: usize = 1 << 16;

/// The least bytes of a state of an automaton.
const STATE_BYTES: usize = 32;
/// A search that takes more than so many states of an automaton with so many bytes of a text in the
/// worst case is made in parts.
const SEARCH_STATES_MAX: usize = 1 << 25;
/// The number of states that make a part.
const PART_STATES: usize = 1 << 20;

/// An automaton.
#[derive(Debug)]
pub(super) struct Linear {
    regex: meta::Regex,
    /// The greatest size.
    size: usize,
    has_groups: bool,
    hir: Hir,
    /// The automaton for long texts, made when it is needed first.
    dfa: OnceLock<DFA>,
}

impl Linear {
    /// Compiles it within the least of [`SIZES`] that it fits; `None` if it fits none.
    pub(super) fn compile(hir: Hir) -> Option<Linear> {
        SIZES.into_iter().find_map(|size| {
            let config = meta::Config::new()
                .nfa_size_limit(Some(size))
                .onepass_size_limit(Some(TABLE_BYTES_MAX.min(size * 8)))
                .dfa_size_limit(Some(SEARCH_BYTES_MAX.min(size)))
                .hybrid_cache_capacity(SEARCH_BYTES_MAX);
            let regex = meta::Regex::builder().configure(config).build_from_hir(&hir).ok()?;
            let has_groups = hir.properties().explicit_captures_len() != 0;
            Some(Linear { regex, size, has_groups, hir: hir.clone(), dfa: OnceLock::new() })
        })
    }

    /// About what it takes at most: one forward, one backward, and what a search remembers.
    pub(super) fn bytes(&self) -> usize {
        let table = if self.has_groups { TABLE_BYTES_MAX.min(self.size * 8) } else { 0 };
        3 * self.size + SEARCH_BYTES_MAX + table
    }

    /// Whether so many bytes are searched in short time, whatever they are.
    pub(super) fn is_quick(&self, bytes: usize) -> bool {
        bytes.saturating_mul(self.size / STATE_BYTES) <= SEARCH_STATES_MAX
    }

    /// Returns where the first match begins, in what [is quick](Self::is_quick).
    pub(super) fn start(&self, text: &str, from: usize) -> Option<usize> {
        self.regex.find(Input::new(text).range(from..)).map(|found| found.start())
    }

    /// The first match with its groups, in what [is quick](Self::is_quick).
    pub(super) fn find(&self, text: &str, from: usize) -> Option<Groups> {
        let mut captures = self.regex.create_captures();
        self.regex.search_captures(&Input::new(text).range(from..), &mut captures);
        captures.is_match().then(|| {
            captures.iter().map(|group| group.map(|span| (span.start, span.end))).collect()
        })
    }

    /// Checks whether there is a match in `text` from `from` on. It checks meanwhile whether to go
    /// on.
    ///
    /// # Errors
    /// See [`Failure`].
    pub(super) fn is_match(
        &self,
        text: &str,
        from: usize,
        memory: &RequestMemory,
    ) -> Result<bool, Failure> {
        let bytes = text.len() - from;
        memory.work(SEARCH_UNITS + bytes / BYTES_OF_UNIT).map_err(Failure::Request)?;
        if self.is_quick(bytes) {
            return Ok(self.regex.is_match(Input::new(text).range(from..)));
        }
        let too_large = || Failure::Limit("internal error".to_owned());
        let dfa = self.dfa().ok_or_else(too_large)?;
        let mut cache = dfa.create_cache();
        let input = Input::new(text).range(from..);
        let started = dfa.start_state_forward(&mut cache, &input);
        let mut state = started.map_err(|_| too_large())?;
        let part = (PART_STATES * STATE_BYTES / self.size).max(1);
        for part in text.as_bytes()[from..].chunks(part) {
            memory.check().map_err(Failure::Request)?;
            for byte in part {
                state = dfa.next_state(&mut cache, state, *byte).map_err(|_| too_large())?;
                if state.is_tagged() {
                    if state.is_match() {
                        return Ok(true);
                    }
                    if state.is_dead() || state.is_quit() {
                        return Ok(false);
                    }
                }
            }
        }
        let end = dfa.next_eoi_state(&mut cache, state).map_err(|_| too_large())?;
        Ok(end.is_match())
    }

    fn dfa(&self) -> Option<&DFA> {
        if self.dfa.get().is_none() {
            let thompson = thompson::Config::new()
                .nfa_size_limit(Some(self.size))
                .which_captures(thompson::WhichCaptures::None);
            let nfa = thompson::Compiler::new().configure(thompson).build_from_hir(&self.hir);
            let config =
                dfa::Config::new().cache_capacity(SEARCH_BYTES_MAX).skip_cache_capacity_check(true);
            let made = DFA::builder().configure(config).build_from_nfa(nfa.ok()?).ok()?;
            self.dfa.get_or_init(|| made);
        }
        self.dfa.get()
    }
}

/// The degree to which an automaton agrees with PCRE2.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Meaning {
    /// It agrees on whether there is a match.
    Whether,
    /// It also agrees on the place, with its groups.
    Where,
}

/// A pattern as it is; `None` if it has parts that only PCRE2 knows.
pub(super) fn exact(node: &Node) -> Option<(Hir, Meaning)> {
    let mut maker = Maker { is_exact: true, meaning: Meaning::Where, has_between: false, size: 0 };
    let hir = maker.make(node, true)?;
    // Within a character an empty match could be.
    let may_be_empty = hir.properties().minimum_len() == Some(0);
    (!(maker.has_between && may_be_empty)).then_some((hir, maker.meaning))
}

/// Returns an upper bound of the texts that a pattern may find; `None` if it says nothing.
pub(super) fn possible(node: &Node) -> Option<Hir> {
    let mut maker =
        Maker { is_exact: false, meaning: Meaning::Whether, has_between: false, size: 0 };
    let hir = maker.make(node, true)?;
    let properties = hir.properties();
    let narrows = properties.minimum_len().is_some_and(|bytes| 0 < bytes)
        || properties.look_set_prefix().contains(Look::Start);
    narrows.then_some(hir)
}

struct Maker {
    is_exact: bool,
    meaning: Meaning,
    /// Whether there is a `\B`.
    has_between: bool,
    size: usize,
}

impl Maker {
    /// `is_tail`: nothing follows the node.
    fn make(&mut self, node: &Node, is_tail: bool) -> Option<Hir> {
        self.size += 1;
        if SIZE_MAX < self.size {
            return None;
        }
        Some(match node {
            Node::Empty => Hir::empty(),
            Node::Letter(letter) => Hir::literal(letter.encode_utf8(&mut [0; 4]).as_bytes()),
            Node::Set(set) => Hir::class(Class::Unicode(set.clone())),
            Node::Look(Look::WordAsciiNegate) if !self.is_exact => Hir::empty(),
            Node::Look(look) => {
                self.has_between |= *look == Look::WordAsciiNegate;
                // Behind it nothing may be left: see `sequence`.
                if self.is_exact && *look == Look::StartLF {
                    return None;
                }
                Hir::look(*look)
            }
            Node::LineEnd => self.line_end(is_tail)?,
            Node::Group(kind, inner) => self.group(*kind, inner, is_tail)?,
            Node::Repeat(repeat) => {
                let is_changed = repeat.possessive || repeat.max == Some(0);
                if self.is_exact && is_changed {
                    return None;
                }
                let inner = self.make(&repeat.node, false)?;
                let may_be_empty = inner.properties().minimum_len() == Some(0);
                if may_be_empty && repeat.max != Some(1) {
                    self.meaning = Meaning::Whether;
                }
                Hir::repetition(Repetition {
                    min: repeat.min,
                    max: repeat.max,
                    greedy: repeat.greedy,
                    sub: Box::new(inner),
                })
            }
            Node::Sequence(parts) => self.sequence(parts, is_tail)?,
            Node::Choice(parts) => {
                let made: Option<Vec<Hir>> =
                    parts.iter().map(|part| self.make(part, is_tail)).collect();
                Hir::alternation(made?)
            }
            Node::Opaque(opaque) => match (self.is_exact, opaque) {
                (true, _) => return None,
                (false, Opaque::Place) => Hir::empty(),
                (false, Opaque::Few | Opaque::Many) => anything(),
            },
        })
    }

    fn sequence(&mut self, parts: &[Node], is_tail: bool) -> Option<Hir> {
        let mut made = Vec::with_capacity(parts.len());
        for (position, part) in parts.iter().enumerate() {
            // The parts behind it take a character, so that it isn't at the end.
            let starts_line = matches!(part, Node::Look(Look::StartLF));
            if starts_line && takes_characters(&parts[position + 1..]) {
                made.push(Hir::look(Look::StartLF));
                continue;
            }
            made.push(self.make(part, is_tail && position + 1 == parts.len())?);
        }
        Some(Hir::concat(made))
    }

    fn group(&mut self, kind: Kind, inner: &Node, is_tail: bool) -> Option<Hir> {
        match (kind, self.is_exact) {
            (Kind::Plain, _) => self.make(inner, is_tail),
            (Kind::Capture(index), true) => {
                let sub = Box::new(self.make(inner, is_tail)?);
                Some(Hir::capture(Capture { index, name: None, sub }))
            }
            (Kind::Capture(_) | Kind::Atomic, false) => self.make(inner, is_tail),
            (Kind::Lookaround(_), false) => Some(Hir::empty()),
            (Kind::Atomic | Kind::Lookaround(_), true) => None,
        }
    }

    /// `$`: at the end of a pattern, with the line feed that may follow it in the match.
    fn line_end(&mut self, is_tail: bool) -> Option<Hir> {
        if is_tail {
            self.meaning = Meaning::Whether;
            let before = Hir::concat(vec![Hir::literal(*b"\n"), Hir::look(Look::End)]);
            return Some(Hir::alternation(vec![Hir::look(Look::End), before]));
        }
        (!self.is_exact).then(Hir::empty)
    }
}

/// Whether what matches `parts` has at least one character.
fn takes_characters(parts: &[Node]) -> bool {
    parts.iter().any(|part| match part {
        Node::Letter(_) | Node::Set(_) => true,
        Node::Repeat(repeat) => {
            1 <= repeat.min && takes_characters(std::slice::from_ref(&repeat.node))
        }
        Node::Group(Kind::Plain | Kind::Capture(_), inner) => {
            takes_characters(std::slice::from_ref(inner))
        }
        Node::Sequence(parts) => takes_characters(parts),
        Node::Choice(parts) => {
            parts.iter().all(|part| takes_characters(std::slice::from_ref(part)))
        }
        _ => false,
    })
}

fn anything() -> Hir {
    let any = ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)]);
    let sub = Box::new(Hir::class(Class::Unicode(any)));
    Hir::repetition(hir::Repetition { min: 0, max: None, greedy: true, sub })
}
