//! Ranges of revisions: `a..b` and `a...b`, as git writes them.

use crate::history;

/// Two revisions, and what is meant by them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Range<'a> {
    /// `HEAD` where it is left out.
    pub left: &'a str,
    /// `HEAD` where it is left out.
    pub right: &'a str,
    /// Whether it has three dots: what counts is where the two parted.
    pub is_from_base: bool,
}

impl Range<'_> {
    /// Reads a range; `None` if `text` is none: no revision holds two dots.
    pub fn of(text: &str) -> Option<Range<'_>> {
        let (left, right) = text.split_once("..")?;
        let (right, is_from_base) = match right.strip_prefix('.') {
            Some(right) => (right, true),
            None => (right, false),
        };
        Some(Range { left: or_head(left), right: or_head(right), is_from_base })
    }
}

/// A side of a range; one that is left out is HEAD.
fn or_head(side: &str) -> &str {
    if side.is_empty() { history::HEAD } else { side }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        for (text, expected) in [
            ("main", None),
            ("main@{2.days.ago}", None),
            ("a..b", Some(("a", "b", false))),
            ("a...b", Some(("a", "b", true))),
            ("..b", Some(("HEAD", "b", false))),
            ("a...", Some(("a", "HEAD", true))),
        ] {
            let expected =
                expected.map(|(left, right, is_from_base)| Range { left, right, is_from_base });
            assert_eq!(Range::of(text), expected, "{text}");
        }
    }
}
