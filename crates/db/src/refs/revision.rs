//! Revisions: how people name a commit, `main~2^2`.
//!
//! A revision begins with a branch's name, `HEAD`, the 32 letters of a commit's id or at least four
//! of them that begin no other id; after that come any number of steps:
//!
//! | step | goes to |
//! |---|---|
//! | `~n` | the ancestor n generations back, through first parents; `~` is `~1` |
//! | `^n` | the n-th parent; `^` is `^1`, `^0` the commit itself |

use frond_query::Code;

use crate::error::Error;

/// More steps than this are refused: no user means them.
const STEPS_MAX: usize = 64;

/// A revision, parsed: where to begin, and the steps from there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Revision {
    pub start: String,
    pub steps: Vec<Step>,
}

/// One step back in history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// So many generations back, through first parents.
    Ancestor(u32),
    /// To this parent, counted from 1; 0 stays.
    Parent(u32),
}

impl Revision {
    /// Parses a revision.
    ///
    /// # Errors
    /// `BadValue` if it is none.
    pub fn parse(text: &str) -> Result<Revision, Error> {
        let wrong = |why: &str| {
            Error::invalid(Code::BadValue, format!("'{text}' is not a revision: {why}"))
        };
        let end = text.find(['~', '^']).unwrap_or(text.len());
        let (start, mut rest) = text.split_at(end);
        if start.is_empty() {
            return Err(wrong("it names no branch or commit"));
        }
        if start.contains("@{") {
            return Err(wrong("the reflog can't be named by @{...}"));
        }
        let mut steps = Vec::new();
        while let Some(kind) = rest.chars().next() {
            let behind = &rest[kind.len_utf8()..];
            let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
            let (number, behind) = behind.split_at(digits);
            let number = if number.is_empty() {
                1
            } else {
                number.parse::<u32>().map_err(|_| wrong("a number is too large"))?
            };
            steps.push(match kind {
                '~' => Step::Ancestor(number),
                '^' => Step::Parent(number),
                _ => return Err(wrong("after the name come ~n and ^n only")),
            });
            if steps.len() > STEPS_MAX {
                return Err(wrong("too many steps"));
            }
            rest = behind;
        }
        Ok(Revision { start: start.to_owned(), steps })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, start: &str, steps: &[Step]) {
        let revision = Revision::parse(text).expect("a revision");
        assert_eq!((revision.start.as_str(), revision.steps.as_slice()), (start, steps), "{text}");
    }

    #[test]
    fn revisions() {
        use Step::{Ancestor, Parent};
        check("main", "main", &[]);
        check("main~2", "main", &[Ancestor(2)]);
        check("feature/x^", "feature/x", &[Parent(1)]);
        check("HEAD~^2~10^0", "HEAD", &[Ancestor(1), Parent(2), Ancestor(10), Parent(0)]);
        check("HEAD^^", "HEAD", &[Parent(1), Parent(1)]);
        check("größe~0", "größe", &[Ancestor(0)]);
        let many = format!("main{}", "^".repeat(65));
        for wrong in ["", "~1", "^", "main~x", "main~1x", "main~ä", "main~4294967296", "HEAD@{1}"]
        {
            assert!(Revision::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Revision::parse(&many).is_err());
    }
}
