//! Patterns as PCRE2 reads them, as far as that is needed to search in linear time and to bound
//! what is searched by trying.
//!
//! 1. A part that only matches characters, repeats, groups, chooses and looks at the next character
//!    is read in full: [`super::linear`] makes an automaton of it.
//! 2. A part that looks around, refers back, is possessive or belongs to Unicode's tables is read
//!    as a node that says only what it may be at most ([`Node::Opaque`]).
//! 3. A part that may not stand within another pattern (verbs, recursion into the whole, `\G`), or
//!    that isn't known here, isn't read: [`parse`] answers `None`.
//!
//! Whether a pattern is one at all is for PCRE2 to say, except of those that are [`Parsed::plain`].
//!
//! Options as MongoDB sets them: UTF, but no Unicode properties, so that `\d`, `\s`, `\w`, `\b` and
//! the classes such as `[:alpha:]` know ASCII only, while letters match caselessly by Unicode.
//!
//! The source: pcre2pattern(3) of PCRE2 10.46.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange, Look};

mod class;

/// Groups within groups, as PCRE2 allows.
const DEPTH_MAX: usize = 250;
/// The number of repetitions that PCRE2 allows.
const REPEAT_MAX: u32 = 65_535;
/// The number of repetitions from which on it is as if there were no end.
pub(super) const MANY: u32 = 256;
/// The size up to which a pattern needn't be given to PCRE2: its code must stay below 64 KB, and
/// this is far below that.
const PLAIN_BYTES_MAX: usize = 16 << 10;

/// A part of a pattern.
#[derive(Debug)]
pub(super) enum Node {
    /// Nothing.
    Empty,
    /// One character.
    Letter(char),
    /// One character out of several.
    Set(ClassUnicode),
    /// A place that both engines know.
    Look(Look),
    /// `$` of one line: the end, or before the line feed that ends the text.
    LineEnd,
    Group(Kind, Box<Node>),
    Repeat(Box<Repeat>),
    Sequence(Vec<Node>),
    Choice(Vec<Node>),
    /// A part that only PCRE2 knows.
    Opaque(Opaque),
}

/// The known facts about a part that isn't parsed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Opaque {
    /// Takes no characters.
    Place,
    /// Takes any, a few at a time.
    Few,
    /// May run through the text.
    Many,
}

/// The kind of a group.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Plain,
    /// The number of the group.
    Capture(u32),
    /// `(?>...)`
    Atomic,
    /// A group that looks around.
    Lookaround(Lookaround),
}

/// The kind of a lookaround.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Lookaround {
    /// `(?=...)`
    Ahead,
    /// `(?!...)`
    NotAhead,
    /// `(?<=...)`
    Behind,
    /// `(?<!...)`
    NotBehind,
}

#[derive(Debug)]
pub(super) struct Repeat {
    pub(super) node: Node,
    pub(super) min: u32,
    pub(super) max: Option<u32>,
    pub(super) greedy: bool,
    pub(super) possessive: bool,
}

/// A pattern that was read.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) node: Node,
    /// Whether PCRE2 surely takes it.
    pub(super) plain: bool,
    /// The text that must follow before it can be closed in a group: the end of a comment or
    /// quotation.
    pub(super) tail: &'static str,
}

/// The options with which a pattern is read.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Flags {
    pub(super) caseless: bool,
    pub(super) multiline: bool,
    pub(super) dotall: bool,
    pub(super) extended: bool,
}

/// Reads a pattern, behind the items at its beginning ([`super::backtracking::beginning`]); `None`
/// if it can't stand within another, or isn't known here.
pub(super) fn parse(source: &str, flags: Flags) -> Option<Parsed> {
    let mut parser = Parser {
        rest: source,
        flags,
        depth: 0,
        groups: 0,
        odd: false,
        is_odd_class: false,
        tail: "",
    };
    let node = parser.choice()?;
    if !parser.rest.is_empty() {
        return None;
    }
    let plain = !parser.odd && bytes(&node) <= PLAIN_BYTES_MAX;
    Some(Parsed { node, plain, tail: parser.tail })
}

/// Returns the approximate bytes of PCRE2's code for a node, or more.
fn bytes(node: &Node) -> usize {
    match node {
        Node::Empty | Node::Look(_) | Node::LineEnd => 2,
        Node::Letter(_) => 8,
        Node::Set(set) => 48 + 10 * set.ranges().len(),
        Node::Group(_, inner) => 12 + bytes(inner),
        Node::Sequence(parts) => parts.iter().map(bytes).fold(0, usize::saturating_add),
        Node::Choice(parts) => {
            parts.iter().map(|part| 4 + bytes(part)).fold(4, usize::saturating_add)
        }
        Node::Repeat(repeat) => {
            let times = repeat.max.unwrap_or(repeat.min).max(repeat.min).max(1) as usize;
            (8 + bytes(&repeat.node)).saturating_mul(times + 1)
        }
        Node::Opaque(_) => usize::MAX,
    }
}

struct Parser<'s> {
    rest: &'s str,
    flags: Flags,
    depth: usize,
    /// The number of groups that began so far.
    groups: u32,
    /// Whether something was seen that PCRE2 might refuse.
    odd: bool,
    /// Whether the class that is being read has a part that isn't known here.
    is_odd_class: bool,
    tail: &'static str,
}

impl Parser<'_> {
    fn next(&mut self) -> Option<char> {
        let letter = self.rest.chars().next()?;
        self.rest = &self.rest[letter.len_utf8()..];
        Some(letter)
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Takes what comes before `end`, and that.
    fn up_to(&mut self, end: char) -> Option<&str> {
        let (taken, rest) = self.rest.split_once(end)?;
        self.rest = rest;
        Some(taken)
    }

    fn opaque(&mut self, opaque: Opaque) -> Node {
        self.odd = true;
        Node::Opaque(opaque)
    }

    /// Alternatives, up to the end or a closing bracket. A change by `(?i)` in one also holds for
    /// those behind it.
    fn choice(&mut self) -> Option<Node> {
        self.depth += 1;
        if DEPTH_MAX < self.depth {
            return None;
        }
        let mut parts = vec![self.sequence()?];
        while self.take("|") {
            parts.push(self.sequence()?);
        }
        self.depth -= 1;
        match parts.len() {
            1 => parts.pop(),
            _ => Some(Node::Choice(parts)),
        }
    }

    fn sequence(&mut self) -> Option<Node> {
        let mut parts: Vec<Node> = Vec::new();
        // Whether the last of `parts` may be repeated.
        let mut may_repeat = false;
        loop {
            if self.flags.extended && self.skip_space() {
                continue;
            }
            let Some(letter) = self.peek() else { break };
            if matches!(letter, '|' | ')') {
                break;
            }
            if let Some((min, max)) = self.quantifier()? {
                if !may_repeat {
                    return None;
                }
                let repeated = parts.pop()?;
                parts.push(self.repeat(repeated, min, max));
                may_repeat = false;
                continue;
            }
            self.next();
            may_repeat = true;
            match letter {
                '\\' => match self.peek()? {
                    'Q' => {
                        self.next();
                        may_repeat = self.quoted(&mut parts);
                    }
                    'E' => {
                        self.next();
                        may_repeat = !parts.is_empty();
                        self.odd = true;
                    }
                    _ => parts.push(self.escape()?),
                },
                '[' => parts.push(self.class()?),
                '(' => match self.group()? {
                    Some(node) => parts.push(node),
                    None => may_repeat = false,
                },
                '.' if self.flags.dotall => parts.push(Node::Set(any())),
                '.' => parts.push(Node::Set(any_of_line())),
                '^' if self.flags.multiline => parts.push(Node::Look(Look::StartLF)),
                '^' => parts.push(Node::Look(Look::Start)),
                '$' if self.flags.multiline => parts.push(Node::Look(Look::EndLF)),
                '$' => parts.push(Node::LineEnd),
                _ => {
                    let letter = self.letter(letter);
                    parts.push(letter);
                }
            }
        }
        Some(match parts.len() {
            0 => Node::Empty,
            1 => parts.pop()?,
            _ => Node::Sequence(parts),
        })
    }

    /// A node as often as a quantifier says, which may be followed by how it tries.
    fn repeat(&mut self, node: Node, min: u32, max: Option<u32>) -> Node {
        let possessive = self.take("+");
        let greedy = possessive || !self.take("?");
        self.odd |= possessive || REPEAT_MAX < max.unwrap_or(min).max(min);
        self.odd |= max.is_some_and(|max| max < min);
        // PCRE2 repeats places in its own way.
        self.odd |= matches!(node, Node::Look(_) | Node::LineEnd);
        Node::Repeat(Box::new(Repeat { node, min, max, greedy, possessive }))
    }

    /// Skips one space or comment of `x`; whether there was one.
    fn skip_space(&mut self) -> bool {
        const SPACES: &[char] = &[
            ' ', '\t', '\n', '\u{b}', '\u{c}', '\r', '\u{85}', '\u{200e}', '\u{200f}', '\u{2028}',
            '\u{2029}',
        ];
        match self.peek() {
            Some('#') => match self.rest.split_once('\n') {
                Some((_, rest)) => self.rest = rest,
                None => {
                    self.rest = "";
                    self.tail = "\n";
                }
            },
            Some(letter) if SPACES.contains(&letter) => {
                self.next();
            }
            _ => return false,
        }
        true
    }

    /// The quantifier that stands here; a brace that begins none is a letter.
    fn quantifier(&mut self) -> Option<Option<(u32, Option<u32>)>> {
        let simple = match self.peek()? {
            '*' => (0, None),
            '+' => (1, None),
            '?' => (0, Some(1)),
            '{' => return self.braces(),
            _ => return Some(None),
        };
        self.next();
        Some(Some(simple))
    }

    fn braces(&mut self) -> Option<Option<(u32, Option<u32>)>> {
        let Some((inside, rest)) = self.rest[1..].split_once('}') else { return Some(None) };
        let is_odd = inside.contains([' ', '\t']) || inside.starts_with(',');
        let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse::<u32>().ok(),
            false => None,
        };
        let (min, max) = match inside.split_once(',') {
            None => (number(inside), number(inside).map(Some)),
            Some((min, "")) => (number(min), Some(None)),
            Some((min, max)) => (number(min), number(max).map(Some)),
        };
        match (min, max) {
            (Some(min), Some(max)) => {
                self.rest = rest;
                Some(Some((min, max)))
            }
            // Today's PCRE2 reads `{,3}` and spaces, others don't.
            _ if is_odd => None,
            _ => Some(None),
        }
    }

    /// `\Q...\E`: letters. Whether there was one.
    fn quoted(&mut self, parts: &mut Vec<Node>) -> bool {
        self.odd = true;
        let (letters, rest) = match self.rest.split_once("\\E") {
            Some(split) => split,
            None => {
                self.tail = "\\E";
                (self.rest, "")
            }
        };
        self.rest = rest;
        for letter in letters.chars() {
            let letter = self.letter(letter);
            parts.push(letter);
        }
        !letters.is_empty()
    }

    /// A letter as the options have it.
    fn letter(&mut self, letter: char) -> Node {
        if !self.flags.caseless {
            return Node::Letter(letter);
        }
        let mut set = ClassUnicode::new([ClassUnicodeRange::new(letter, letter)]);
        match class::fold(&mut set) {
            true if set.ranges().len() == 1 && set.ranges()[0].len() == 1 => Node::Letter(letter),
            true => Node::Set(set),
            false => Node::Opaque(Opaque::Few),
        }
    }

    /// Parses the rest of an escape, behind the backslash.
    fn escape(&mut self) -> Option<Node> {
        let letter = self.next()?;
        Some(match letter {
            'b' => Node::Look(Look::WordAscii),
            'B' => Node::Look(Look::WordAsciiNegate),
            'A' => Node::Look(Look::Start),
            'z' => Node::Look(Look::End),
            'Z' => Node::LineEnd,
            'K' => self.opaque(Opaque::Place),
            'G' => return None,
            'p' | 'P' => {
                if self.next()? == '{' {
                    self.up_to('}')?;
                }
                self.opaque(Opaque::Few)
            }
            'N' if self.take("{U+") => {
                self.up_to('}')?;
                self.opaque(Opaque::Few)
            }
            'c' => {
                self.next()?;
                self.opaque(Opaque::Few)
            }
            'o' => {
                self.up_to('}')?;
                self.opaque(Opaque::Few)
            }
            'h' | 'H' | 'v' | 'V' | 'R' | 'N' | 'C' => self.opaque(Opaque::Few),
            'k' | 'g' => self.reference()?,
            '0'..='9' => {
                self.rest = self.rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
                self.opaque(Opaque::Many)
            }
            'x' => match self.hexadecimal()? {
                Some(letter) => self.letter(letter),
                None => self.opaque(Opaque::Few),
            },
            _ => match class::letter_or_set(letter) {
                Some(class::Item::Letter(letter)) => self.letter(letter),
                Some(class::Item::Set(set)) => Node::Set(set),
                None => self.opaque(Opaque::Many),
            },
        })
    }

    /// The number of `\x`; `None` where PCRE2 reads it otherwise.
    fn hexadecimal(&mut self) -> Option<Option<char>> {
        let digits = match self.take("{") {
            true => self.up_to('}')?,
            false => {
                let is_digit = |byte: &u8| byte.is_ascii_hexdigit();
                let count = self.rest.bytes().take(2).take_while(|byte| is_digit(byte)).count();
                let (digits, rest) = self.rest.split_at(count);
                self.rest = rest;
                digits
            }
        };
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u32::from_str_radix(digits, 16).ok().filter(|_| is_plain);
        Some(number.and_then(char::from_u32))
    }

    /// `\k` and `\g`; `None` if it is the whole pattern.
    fn reference(&mut self) -> Option<Node> {
        let name = match self.next()? {
            '{' => self.up_to('}')?,
            '<' => self.up_to('>')?,
            '\'' => self.up_to('\'')?,
            _ => {
                self.rest = self.rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
                "1"
            }
        };
        if is_zero(name) {
            return None;
        }
        Some(self.opaque(Opaque::Many))
    }

    /// Parses the rest of a group, behind the opening bracket; nothing, if it is a comment or sets
    /// options.
    fn group(&mut self) -> Option<Option<Node>> {
        if self.take("*") {
            return None;
        }
        let outer = self.flags;
        let kind = if self.take("?") {
            if self.begins_call() {
                let name = self.up_to(')')?;
                return if is_zero(name) { None } else { Some(Some(self.opaque(Opaque::Many))) };
            }
            match self.kind()? {
                Some(kind) => kind,
                None => return Some(None),
            }
        } else {
            self.groups += 1;
            Kind::Capture(self.groups)
        };
        let inner = self.choice()?;
        self.flags = outer;
        if !self.take(")") {
            return None;
        }
        Some(Some(Node::Group(kind, Box::new(inner))))
    }

    /// Whether `(?` refers to a group or calls one: `(?P=name)`, `(?&name)`, `(?-1)`.
    fn begins_call(&self) -> bool {
        let named = ["P=", "P>", "&"].iter().any(|begin| self.rest.starts_with(begin));
        let number = self.rest.trim_start_matches(['+', '-']);
        named || number.starts_with(|letter: char| letter.is_ascii_digit())
    }

    /// Parses the kind of a group, behind `(?`; `None` within if it is no group.
    fn kind(&mut self) -> Option<Option<Kind>> {
        for (text, kind) in [
            (":", Kind::Plain),
            (">", Kind::Atomic),
            // Its groups have other numbers.
            ("|", Kind::Atomic),
            ("=", Kind::Lookaround(Lookaround::Ahead)),
            ("!", Kind::Lookaround(Lookaround::NotAhead)),
            ("<=", Kind::Lookaround(Lookaround::Behind)),
            ("<!", Kind::Lookaround(Lookaround::NotBehind)),
        ] {
            if self.take(text) {
                self.odd |= kind != Kind::Plain;
                return Some(Some(kind));
            }
        }
        if self.take("#") {
            self.up_to(')')?;
            self.odd = true;
            return Some(None);
        }
        for (begin, end) in [("P<", '>'), ("<", '>'), ("'", '\'')] {
            if self.take(begin) {
                self.up_to(end)?;
                self.odd = true;
                self.groups += 1;
                return Some(Some(Kind::Capture(self.groups)));
            }
        }
        self.options()
    }

    /// `(?i)`, and `(?i:` whose options hold for its group alone.
    fn options(&mut self) -> Option<Option<Kind>> {
        let (mut flags, mut on, mut spaces) = (self.flags, true, 0);
        if self.take("^") {
            flags = Flags::default();
            self.odd = true;
        }
        loop {
            match self.next()? {
                'i' => flags.caseless = on,
                'm' => flags.multiline = on,
                's' => flags.dotall = on,
                'x' => {
                    spaces += 1;
                    flags.extended = on;
                }
                '-' if on => on = false,
                ')' if spaces < 2 => {
                    self.flags = flags;
                    return Some(None);
                }
                ':' if spaces < 2 => break,
                _ => return None,
            }
        }
        self.flags = flags;
        Some(Some(Kind::Plain))
    }
}

/// Whether a group is the whole pattern, by its number.
fn is_zero(name: &str) -> bool {
    let number = name.trim_start_matches(['+', '-']);
    !number.is_empty() && number.bytes().all(|byte| byte == b'0')
}

/// Returns the class of any character.
fn any() -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)])
}

/// Returns the class of any character but a line feed.
fn any_of_line() -> ClassUnicode {
    let mut set = ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]);
    set.negate();
    set
}
