//! Revisions: how people name a commit, `main~2^2`, `main@{yesterday}`.
//!
//! A revision begins with a branch's name, `HEAD`, the 32 letters of a commit's id or at least four
//! of them that begin no other id. A date may follow, `@{…}`: the commit on which the branch stood
//! then, as its reflog knows it ([`super::past_position`]). Where that doesn't reach back so far (a
//! clone has none, and it expires), and behind what is no branch, it is the last commit made by
//! then, going back through first parents; and always with `@{commit by …}`, which therefore names
//! the same commit as long as the history stays. A date alone goes back from `HEAD`. In the name of
//! a database a date at the end is a moment instead ([`super::moment`]); `@{commit by …}` is a
//! commit there, too. After that come any number of steps:
//!
//! | step | goes to |
//! |---|---|
//! | `~n` | the ancestor n generations back, through first parents; `~` is `~1` |
//! | `^n` | the n-th parent; `^` is `^1`, `^0` the commit itself |

use std::borrow::Cow;

use frond_query::Code;

use crate::date::WrittenDate;
use crate::error::Error;

/// The number of steps above which they are refused: no user means them.
const STEPS_MAX: usize = 64;

/// A revision, parsed: where to begin, and the steps from there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Revision {
    /// Empty where a date stands alone.
    pub start: String,
    /// The last millisecond at which a commit that counts was made, or the branch moved.
    pub by_millis: Option<i64>,
    /// Whether only commits' dates count.
    pub goes_by_commits: bool,
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

/// The beginning of a date.
const DATE_BEGINS: &str = "@{";

/// A revision's parts: what it begins with, the date in braces, and the steps.
fn split(text: &str) -> (&str, Option<&str>, &str) {
    let start_ends = text.find(['~', '^']).unwrap_or(text.len());
    // In a date there may be anything.
    if let Some((start, rest)) = text.split_once(DATE_BEGINS)
        && start.len() < start_ends
    {
        let (date, steps) = rest.split_once('}').unwrap_or((rest, "}"));
        return (start, Some(date), steps);
    }
    let (start, steps) = text.split_at(start_ends);
    (start, None, steps)
}

/// Returns the start of a revision: a branch, a tag, a commit's id, `HEAD`; empty where that is
/// left out.
pub fn start_of(text: &str) -> &str {
    split(text).0
}

/// Returns the start of a text and the date in its braces, if nothing follows them:
/// `main@{yesterday}`.
pub(crate) fn lone_date(text: &str) -> Option<(&str, &str)> {
    match split(text) {
        (start, Some(date), "") => Some((start, date)),
        _ => None,
    }
}

/// The date of `commit by DATE` (or `commit.by.DATE`, `commit-by-DATE`): in a database's name,
/// where a date alone is a moment, it asks for the last commit by then.
pub(crate) fn commit_by(date: &str) -> Option<&str> {
    let behind = |text: &'_ str, word: &str| {
        let (first, rest) = text.split_at_checked(word.len())?;
        let is_word = first.eq_ignore_ascii_case(word);
        let count = rest.chars().next().filter(|it| !it.is_alphanumeric())?.len_utf8();
        is_word.then_some(word.len() + count)
    };
    let rest = &date[behind(date, "commit")?..];
    Some(&rest[behind(rest, "by")?..])
}

/// The seconds and the number of an `operationTime`, `Timestamp(1764583203, 7)`.
pub(crate) fn timestamp(text: &str) -> Option<(u32, u32)> {
    let (word, numbers) = text.trim().strip_suffix(')')?.split_once('(')?;
    let (seconds, increment) = numbers.split_once(',')?;
    if !word.trim().eq_ignore_ascii_case("timestamp") {
        return None;
    }
    Some((seconds.trim().parse().ok()?, increment.trim().parse().ok()?))
}

/// Returns the part of a database's name after the `@`, as a revision: there a date may stand
/// without its own `@`, `shop@{yesterday}`.
pub fn of_version(version: &str) -> Cow<'_, str> {
    let date = version.strip_prefix('{').and_then(|rest| rest.split_once('}'));
    // A branch may be called `{x}`.
    let is_date = date.is_some_and(|(date, _)| {
        let date = commit_by(date).unwrap_or(date);
        WrittenDate::read(date, 0).is_some() || timestamp(date).is_some()
    });
    if is_date { Cow::Owned(format!("@{version}")) } else { Cow::Borrowed(version) }
}

impl Revision {
    /// Parses a revision; words for dates count from what `now_millis` says.
    ///
    /// # Errors
    /// `BadValue` if it is none.
    pub fn parse(text: &str, now_millis: impl FnOnce() -> i64) -> Result<Revision, Error> {
        let wrong = |why: &str| {
            Error::invalid(Code::BadValue, format!("'{text}' is not a revision: {why}"))
        };
        let (start, date, mut rest) = split(text);
        if start.is_empty() && date.is_none() {
            return Err(wrong("it names no branch or commit"));
        }
        let goes_by_commits = date.and_then(commit_by).is_some();
        let by_millis = match date {
            None => None,
            Some(date) => {
                let date = commit_by(date).unwrap_or(date);
                let date = match timestamp(date) {
                    Some((seconds, _)) => Some(WrittenDate::of_second(seconds)),
                    None => WrittenDate::read(date, now_millis()),
                };
                let no_date = "in @{...} stands a date: 2026-11-20, 2026-11-20T10:00:03Z, \
                               tuesday, 3.days.ago; the reflog can't be named so";
                Some(date.ok_or_else(|| wrong(no_date))?.last_millis)
            }
        };
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
        Ok(Revision { start: start.to_owned(), by_millis, goes_by_commits, steps })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, start: &str, steps: &[Step]) {
        let revision = Revision::parse(text, || 0).expect("a revision");
        assert_eq!((revision.start.as_str(), revision.steps.as_slice()), (start, steps), "{text}");
        assert_eq!(start_of(text), start, "{text}");
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
        check("@{1970-01-02}~2", "", &[Ancestor(2)]);
        check("a@b@{yesterday}^", "a@b", &[Parent(1)]);
        let many = format!("main{}", "^".repeat(65));
        for wrong in ["", "~1", "^", "main~x", "main~1x", "main~ä", "main~4294967296", &many] {
            assert!(Revision::parse(wrong, || 0).is_err(), "{wrong}");
        }
        for wrong in ["HEAD@{1}", "HEAD@{-1}", "main@{}", "main@{yesterday", "main~1@{yesterday}"] {
            assert!(Revision::parse(wrong, || 0).is_err(), "{wrong}");
        }
    }

    #[test]
    fn dates() {
        for (text, expected) in [
            ("main", None),
            ("main@{1970-01-02}", Some(86_400_000)),
            ("@{1970-01-01T00:00:01Z}~1", Some(1_999)),
            ("main@{2.seconds.ago}", Some(8_000)),
        ] {
            assert_eq!(Revision::parse(text, || 10_000).unwrap().by_millis, expected, "{text}");
        }
        for (date, expected) in [
            ("commit by yesterday", Some("yesterday")),
            ("Commit.by.3.days.ago", Some("3.days.ago")),
            ("commit-by-1970-01-02", Some("1970-01-02")),
            ("commit", None),
            ("commit by", None),
            ("commits by yesterday", None),
            ("yesterday", None),
        ] {
            assert_eq!(commit_by(date), expected, "{date}");
        }
        let by = Revision::parse("@{commit by 1970-01-02}", || 0).unwrap().by_millis;
        assert_eq!(by, Some(86_400_000));
        for (text, expected) in [
            ("Timestamp(7, 3)", Some((7, 3))),
            (" timestamp( 7,3 )", Some((7, 3))),
            ("Timestamp(7)", None),
            ("Timestamp(-7, 3)", None),
            ("Time(7, 3)", None),
        ] {
            assert_eq!(timestamp(text), expected, "{text}");
        }
        for (version, expected) in [
            ("{commit by yesterday}", "@{commit by yesterday}"),
            ("{Timestamp(1,2)}", "@{Timestamp(1,2)}"),
            ("main", "main"),
            ("{yesterday}~1", "@{yesterday}~1"),
            ("{x}", "{x}"),
            ("{x}~1", "{x}~1"),
            ("main@{yesterday}", "main@{yesterday}"),
        ] {
            assert_eq!(of_version(version), expected);
        }
    }
}
