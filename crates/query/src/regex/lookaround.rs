//! Patterns that look around, in time that is linear in the text.
//!
//! A group that looks around asks something of one place, whatever is matched there. So what it
//! asks can be found out for all places before the pattern is searched, which then only looks it
//! up. PCRE2 asks anew at each place that it tries, and comes back to it:
//! `(?=.*a)(?=.*b)c` takes it the square of the text's length.
//!
//! 1. Each group that looks around, the inner ones first, and at last the pattern itself is an
//!    automaton of its own ([`Program`]).
//! 2. A group that looks ahead is run from the end of the text to its beginning, and reads its
//!    pattern backwards; one that looks behind is run forwards. A run begins at every place: where
//!    it arrives at its end, the other end of a match is.
//! 3. A run follows all states that are possible. It goes through a step that asks for a place only
//!    where that is so: `^`, `\b`, or what an earlier run has found out.
//!
//! Only whether and where a match begins is found so: the first such place is PCRE2's, too.
//! Patterns with references back, or with parts that keep a match from being tried otherwise,
//! aren't searched so.
//!
//! The source: Barrière and Pit-Claudel, *Linear Matching of JavaScript Regular Expressions*
//! (PLDI 2024), section 4.

use regex_syntax::hir::{ClassUnicode, Look};

use super::backtracking::Failure;
use super::syntax::{Kind, Lookaround, Node, Repeat};
use crate::memory::RequestMemory;

/// States of all automata together, at most.
const STATES_MAX: usize = 1024;
/// Groups that look around, at most.
const GROUPS_MAX: usize = 16;
/// Parts within each other, as automata are made of them by recursion.
const DEPTH_MAX: usize = 250;
/// The number of steps after which it is asked whether to go on, and that are a unit of work.
const STEPS_OF_CHECK: usize = 1 << 14;
const STEPS_OF_UNIT: usize = 16;

/// A pattern that looks around.
#[derive(Debug)]
pub(super) struct Lookarounds {
    /// The programs, each asking only what those before it have found out; the last is the pattern
    /// itself.
    programs: Vec<Program>,
}

/// An automaton, which is run over a text in one direction.
#[derive(Debug)]
struct Program {
    states: Vec<State>,
    start: usize,
    direction: Direction,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Direction {
    Forwards,
    Backwards,
}

#[derive(Debug)]
enum State {
    Letter(char, usize),
    Set(ClassUnicode, usize),
    Either(usize, usize),
    Place(Place, usize),
    End,
}

/// The condition on a position in the text.
#[derive(Clone, Copy, Debug)]
enum Place {
    Look(Look),
    /// `$` of one line.
    LineEnd,
    /// That a program has found it, or that it hasn't.
    Found(usize),
    NotFound(usize),
}

/// Positions in a text, a bit for each byte.
#[derive(Debug)]
pub(super) struct Positions(Vec<u64>);

impl Positions {
    fn new(count: usize) -> Positions {
        Positions(vec![0; count.div_ceil(64)])
    }

    fn add(&mut self, place: usize) {
        self.0[place / 64] |= 1 << (place % 64);
    }

    fn has(&self, place: usize) -> bool {
        self.0[place / 64] & (1 << (place % 64)) != 0
    }

    /// The first from `from` on.
    pub(super) fn next(&self, from: usize) -> Option<usize> {
        let first = self.0.get(from / 64)? & (u64::MAX << (from % 64));
        let rest = self.0.iter().copied().enumerate().skip(from / 64 + 1);
        let mut words = std::iter::once((from / 64, first)).chain(rest);
        let (position, word) = words.find(|(_, word)| *word != 0)?;
        Some(position * 64 + word.trailing_zeros() as usize)
    }
}

impl Lookarounds {
    /// A pattern; `None` if it looks around nowhere, or has parts that only PCRE2 knows.
    pub(super) fn compile(node: &Node) -> Option<Lookarounds> {
        let mut maker = Maker { programs: Vec::new(), known: Vec::new(), states: 0 };
        let whole = maker.program(node, Direction::Backwards, 0)?;
        maker.programs.push(whole);
        let looks_around = 1 < maker.programs.len();
        looks_around.then_some(Lookarounds { programs: maker.programs })
    }

    /// About what it takes.
    pub(super) fn bytes(&self) -> usize {
        let states = self.programs.iter().flat_map(|program| &program.states);
        let bytes = states.map(|state| match state {
            State::Set(set, _) => size_of::<State>() + 8 * set.ranges().len(),
            _ => size_of::<State>(),
        });
        bytes.sum()
    }

    /// Returns where matches begin.
    ///
    /// # Errors
    /// The error of the request.
    pub(super) fn places(&self, text: &str, memory: &RequestMemory) -> Result<Positions, Failure> {
        let bytes = self.programs.len() * (text.len() / 8 + 64);
        let _charge = memory.charge_of(bytes).map_err(Failure::Request)?;
        let mut found: Vec<Positions> = Vec::with_capacity(self.programs.len());
        for program in &self.programs {
            let places = program.run(text, &found, memory)?;
            found.push(places);
        }
        Ok(found.pop().unwrap_or(Positions(Vec::new())))
    }
}

/// The states that are possible at a place.
struct Possible {
    /// Those that read a character.
    reading: Vec<usize>,
    /// The number of the place at which a state was seen last.
    seen: Vec<usize>,
    waiting: Vec<usize>,
    has_end: bool,
}

impl Program {
    fn run(
        &self,
        text: &str,
        found: &[Positions],
        memory: &RequestMemory,
    ) -> Result<Positions, Failure> {
        let mut places = Positions::new(text.len() + 1);
        let mut letters = text.char_indices();
        let mut at = if self.direction == Direction::Forwards { 0 } else { text.len() };
        let (mut now, mut next) = (self.nothing(), self.nothing());
        let (mut number, mut steps) = (1, 0);
        self.enter(&mut now, (self.start, number), (text, at), found);
        loop {
            if now.has_end {
                places.add(at);
            }
            let letter = match self.direction {
                Direction::Forwards => letters.next().map(|(from, it)| (from + it.len_utf8(), it)),
                Direction::Backwards => letters.next_back(),
            };
            let Some((beyond, letter)) = letter else { return Ok(places) };
            steps += 1 + now.reading.len();
            if STEPS_OF_CHECK <= steps {
                memory.work(steps / STEPS_OF_UNIT).map_err(Failure::Request)?;
                steps = 0;
            }
            (at, number) = (beyond, number + 1);
            next.reading.clear();
            next.has_end = false;
            for state in &now.reading {
                let (reads, to) = match &self.states[*state] {
                    State::Letter(wanted, to) => (*wanted == letter, *to),
                    State::Set(set, to) => (has(set, letter), *to),
                    _ => continue,
                };
                if reads {
                    self.enter(&mut next, (to, number), (text, at), found);
                }
            }
            // A run begins here.
            self.enter(&mut next, (self.start, number), (text, at), found);
            std::mem::swap(&mut now, &mut next);
        }
    }

    fn nothing(&self) -> Possible {
        let seen = vec![0; self.states.len()];
        Possible { reading: Vec::new(), seen, waiting: Vec::new(), has_end: false }
    }

    /// Adds a state, and all to which it leads without a character.
    fn enter(
        &self,
        possible: &mut Possible,
        (state, number): (usize, usize),
        (text, at): (&str, usize),
        found: &[Positions],
    ) {
        possible.waiting.push(state);
        while let Some(state) = possible.waiting.pop() {
            if possible.seen[state] == number {
                continue;
            }
            possible.seen[state] = number;
            match &self.states[state] {
                State::Letter(..) | State::Set(..) => possible.reading.push(state),
                State::Either(one, other) => possible.waiting.extend([*one, *other]),
                State::Place(place, to) if place.is_so(text.as_bytes(), at, found) => {
                    possible.waiting.push(*to);
                }
                State::Place(..) => {}
                State::End => possible.has_end = true,
            }
        }
    }
}

impl Place {
    fn is_so(self, text: &[u8], at: usize, found: &[Positions]) -> bool {
        let is_word = |place: Option<usize>| {
            let byte = place.and_then(|place| text.get(place));
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        };
        let is_feed = |place: usize| text.get(place) == Some(&b'\n');
        let is_bound = || is_word(at.checked_sub(1)) != is_word(Some(at));
        match self {
            Place::Found(program) => found[program].has(at),
            Place::NotFound(program) => !found[program].has(at),
            Place::LineEnd => at == text.len() || at + 1 == text.len() && is_feed(at),
            Place::Look(Look::Start) => at == 0,
            Place::Look(Look::End) => at == text.len(),
            // Not behind the line feed that ends a text.
            Place::Look(Look::StartLF) => at == 0 || is_feed(at - 1) && at < text.len(),
            Place::Look(Look::EndLF) => at == text.len() || is_feed(at),
            Place::Look(Look::WordAscii) => is_bound(),
            Place::Look(_) => !is_bound(),
        }
    }
}

fn has(set: &ClassUnicode, letter: char) -> bool {
    let ranges = set.ranges();
    let place = ranges.partition_point(|range| range.end() < letter);
    ranges.get(place).is_some_and(|range| range.start() <= letter)
}

struct Maker {
    programs: Vec<Program>,
    /// The groups that have a program, by where they lie: a repetition makes its part several
    /// times.
    known: Vec<(*const Node, usize)>,
    states: usize,
}

/// A program that is made.
struct Making {
    states: Vec<State>,
    direction: Direction,
}

impl Maker {
    fn program(&mut self, node: &Node, direction: Direction, depth: usize) -> Option<Program> {
        let mut making = Making { states: vec![State::End], direction };
        let start = self.make(&mut making, node, 0, depth)?;
        let states = making.states;
        Some(Program { states, start, direction })
    }

    /// Counts a state, or a repetition that has none.
    fn count(&mut self) -> Option<()> {
        self.states += 1;
        (self.states <= STATES_MAX).then_some(())
    }

    fn push(&mut self, making: &mut Making, state: State) -> Option<usize> {
        self.count()?;
        making.states.push(state);
        Some(making.states.len() - 1)
    }

    /// The state at which `node` begins, which leads to `next`.
    fn make(
        &mut self,
        making: &mut Making,
        node: &Node,
        next: usize,
        depth: usize,
    ) -> Option<usize> {
        if DEPTH_MAX < depth {
            return None;
        }
        let depth = depth + 1;
        match node {
            Node::Empty => Some(next),
            Node::Letter(letter) => self.push(making, State::Letter(*letter, next)),
            Node::Set(set) => self.push(making, State::Set(set.clone(), next)),
            Node::Look(look) => {
                let known = [Look::Start, Look::End, Look::StartLF, Look::EndLF];
                let words = [Look::WordAscii, Look::WordAsciiNegate];
                let is_known = known.contains(look) || words.contains(look);
                let place = Some(Place::Look(*look)).filter(|_| is_known)?;
                self.push(making, State::Place(place, next))
            }
            Node::LineEnd => self.push(making, State::Place(Place::LineEnd, next)),
            Node::Group(Kind::Plain | Kind::Capture(_), inner) => {
                self.make(making, inner, next, depth)
            }
            Node::Group(Kind::Lookaround(around), inner) => {
                let program = self.around(*around, inner, depth)?;
                let place = match around {
                    Lookaround::Ahead | Lookaround::Behind => Place::Found(program),
                    Lookaround::NotAhead | Lookaround::NotBehind => Place::NotFound(program),
                };
                self.push(making, State::Place(place, next))
            }
            Node::Repeat(repeat) => self.repeat(making, repeat, next, depth),
            Node::Sequence(parts) => self.sequence(making, parts, next, depth),
            Node::Choice(parts) => self.choice(making, parts, next, depth),
            Node::Group(Kind::Atomic, _) | Node::Opaque(_) => None,
        }
    }

    fn sequence(
        &mut self,
        making: &mut Making,
        parts: &[Node],
        next: usize,
        depth: usize,
    ) -> Option<usize> {
        let mut made = next;
        match making.direction {
            Direction::Forwards => {
                for part in parts.iter().rev() {
                    made = self.make(making, part, made, depth)?;
                }
            }
            Direction::Backwards => {
                for part in parts {
                    made = self.make(making, part, made, depth)?;
                }
            }
        }
        Some(made)
    }

    fn choice(
        &mut self,
        making: &mut Making,
        parts: &[Node],
        next: usize,
        depth: usize,
    ) -> Option<usize> {
        let mut made: Option<usize> = None;
        for part in parts {
            let one = self.make(making, part, next, depth)?;
            made = Some(match made {
                Some(others) => self.push(making, State::Either(others, one))?,
                None => one,
            });
        }
        made
    }

    /// The program of a group that looks around.
    fn around(&mut self, around: Lookaround, inner: &Node, depth: usize) -> Option<usize> {
        let lies_at = std::ptr::from_ref(inner);
        if let Some((_, program)) = self.known.iter().find(|(known, _)| *known == lies_at) {
            return Some(*program);
        }
        let direction = match around {
            Lookaround::Ahead | Lookaround::NotAhead => Direction::Backwards,
            Lookaround::Behind | Lookaround::NotBehind => Direction::Forwards,
        };
        let made = self.program(inner, direction, depth)?;
        if GROUPS_MAX <= self.programs.len() {
            return None;
        }
        self.programs.push(made);
        self.known.push((lies_at, self.programs.len() - 1));
        Some(self.programs.len() - 1)
    }

    fn repeat(
        &mut self,
        making: &mut Making,
        repeat: &Repeat,
        next: usize,
        depth: usize,
    ) -> Option<usize> {
        let Repeat { node, min, max, possessive, .. } = repeat;
        if *possessive {
            return None;
        }
        let mut made = match max {
            None => {
                let again = self.push(making, State::Either(next, next))?;
                let inner = self.make(making, node, again, depth)?;
                making.states[again] = State::Either(inner, next);
                again
            }
            Some(max) => {
                let mut made = next;
                for _ in *min..*max {
                    self.count()?;
                    let inner = self.make(making, node, made, depth)?;
                    made = self.push(making, State::Either(inner, next))?;
                }
                made
            }
        };
        for _ in 0..*min {
            self.count()?;
            made = self.make(making, node, made, depth)?;
        }
        Some(made)
    }
}
