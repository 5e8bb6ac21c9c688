//! Classes of characters: `[a-z]`, `[^[:alpha:]\d]`, `\w`.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::{Node, Opaque, Parser};

/// The letter below which, and in [`UNCASED`], what matches caselessly is the same in every version
/// of Unicode.
const SETTLED: char = '\u{530}';
/// Scripts without cases.
const UNCASED: [(char, char); 3] =
    [('\u{590}', '\u{109f}'), ('\u{2e80}', '\u{a63f}'), ('\u{ac00}', '\u{d7ff}')];

/// The classes that have names, in ASCII.
const NAMED: &[(&str, &[(char, char)])] = &[
    ("alnum", &[('0', '9'), ('A', 'Z'), ('a', 'z')]),
    ("alpha", &[('A', 'Z'), ('a', 'z')]),
    ("ascii", &[('\0', '\x7f')]),
    ("blank", &[('\t', '\t'), (' ', ' ')]),
    ("cntrl", &[('\0', '\x1f'), ('\x7f', '\x7f')]),
    ("digit", &[('0', '9')]),
    ("graph", &[('!', '~')]),
    ("lower", &[('a', 'z')]),
    ("print", &[(' ', '~')]),
    ("punct", &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')]),
    ("space", &[('\t', '\r'), (' ', ' ')]),
    ("upper", &[('A', 'Z')]),
    ("word", &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]),
    ("xdigit", &[('0', '9'), ('A', 'F'), ('a', 'f')]),
];

/// The meaning of an escape.
pub(super) enum Item {
    Letter(char),
    Set(ClassUnicode),
}

/// The letter that a backslash before `letter` makes.
fn letter(letter: char) -> Option<Item> {
    let letter = match letter {
        'a' => '\x07',
        'e' => '\x1b',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        _ if letter.is_ascii_alphanumeric() => return None,
        _ => letter,
    };
    Some(Item::Letter(letter))
}

/// `\d`, `\s`, `\w` and what they exclude.
fn of_type(letter: char) -> Option<Item> {
    let name = match letter.to_ascii_lowercase() {
        'd' => "digit",
        's' => "space",
        'w' => "word",
        _ => return None,
    };
    let mut set = named(name)?;
    if letter.is_ascii_uppercase() {
        set.negate();
    }
    Some(Item::Set(set))
}

fn named(name: &str) -> Option<ClassUnicode> {
    let (_, ranges) = NAMED.iter().find(|(known, _)| *known == name)?;
    Some(ClassUnicode::new(ranges.iter().map(|(from, to)| ClassUnicodeRange::new(*from, *to))))
}

/// Adds the other cases of letters; `false` if they depend on the version of Unicode.
pub(super) fn fold(set: &mut ClassUnicode) -> bool {
    let is_settled = |range: &ClassUnicodeRange| {
        range.end() < SETTLED
            || UNCASED.iter().any(|(from, to)| *from <= range.start() && range.end() <= *to)
    };
    set.iter().all(is_settled) && set.try_case_fold_simple().is_ok()
}

impl Parser<'_> {
    /// A class, behind its opening bracket.
    pub(super) fn class(&mut self) -> Option<Node> {
        // Word boundaries, in the place of a class.
        if self.rest.starts_with("[:<:]]") || self.rest.starts_with("[:>:]]") {
            return None;
        }
        let is_negated = self.take("^");
        // Letters that may be folded, and types that may not.
        let (mut letters, mut types) = (ClassUnicode::empty(), ClassUnicode::empty());
        let mut is_opaque = false;
        let mut is_first = true;
        while is_first || self.peek()? != ']' {
            is_first = false;
            let from = match self.item(&mut types)? {
                Some(letter) => letter,
                // A set; a hyphen behind it is a letter, or an error.
                None => {
                    is_opaque |= self.rest.starts_with('-') && !self.rest.starts_with("-]");
                    continue;
                }
            };
            let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]");
            let to = match is_range {
                true => {
                    self.next();
                    match self.item(&mut types)? {
                        Some(letter) => letter,
                        None => {
                            is_opaque = true;
                            from
                        }
                    }
                }
                false => from,
            };
            // Out of order: an error.
            is_opaque |= to < from;
            letters.push(ClassUnicodeRange::new(from.min(to), from.max(to)));
        }
        self.next();
        is_opaque |= self.flags.caseless && !fold(&mut letters);
        if is_opaque || self.is_odd_class {
            self.is_odd_class = false;
            return Some(self.opaque(Opaque::Few));
        }
        letters.union(&types);
        if is_negated {
            letters.negate();
        }
        // An empty one would be `[^\d\D]`.
        match letters.ranges().is_empty() {
            true => Some(self.opaque(Opaque::Few)),
            false => Some(Node::Set(letters)),
        }
    }

    /// A letter of a class, or a set of letters (`None`), which is added to `types`.
    fn item(&mut self, types: &mut ClassUnicode) -> Option<Option<char>> {
        let letter = self.next()?;
        if letter == '[' && self.rest.starts_with([':', '.', '=']) {
            return self.named_class(types);
        }
        if letter != '\\' {
            return Some(Some(letter));
        }
        let escaped = self.next()?;
        match escaped {
            'b' => return Some(Some('\x08')),
            'x' => {
                if let Some(letter) = self.hexadecimal()? {
                    return Some(Some(letter));
                }
            }
            // They would have to be read as they end the class.
            'Q' | 'E' => return None,
            'p' | 'P' => {
                if self.next()? == '{' {
                    self.up_to('}')?;
                }
            }
            'N' if self.take("{") => {
                self.up_to('}')?;
            }
            'o' => {
                self.up_to('}')?;
            }
            'c' => {
                self.next()?;
            }
            _ => match letter_or_set(escaped) {
                Some(Item::Letter(letter)) => return Some(Some(letter)),
                Some(Item::Set(set)) => {
                    types.union(&set);
                    return Some(None);
                }
                None => {}
            },
        }
        self.is_odd_class = true;
        Some(None)
    }

    /// `[:alpha:]`, behind its first bracket.
    fn named_class(&mut self, types: &mut ClassUnicode) -> Option<Option<char>> {
        let inside = self.rest.strip_prefix(':')?;
        let (name, rest) = inside.split_once(":]")?;
        let (name, is_negated) = match name.strip_prefix('^') {
            Some(name) => (name, true),
            None => (name, false),
        };
        let mut set = match name {
            "upper" | "lower" if self.flags.caseless => named("alpha")?,
            _ => named(name)?,
        };
        if is_negated {
            set.negate();
        }
        types.union(&set);
        self.rest = rest;
        Some(None)
    }
}

pub(super) fn letter_or_set(escaped: char) -> Option<Item> {
    letter(escaped).or_else(|| of_type(escaped))
}
