//! Patterns of branches' names, as those of git's protected branches: `release/*`.
//!
//! `*` stands for any letters but `/`, `**` for any at all, `?` for one letter but `/`; everything
//! else stands for itself. No branch's name holds a `*` or a `?`, so a name is a pattern that only
//! it matches.

use frond_db::inside::Error;
use frond_doc::Document;

use crate::policy::policy_fields::{list, wrong};

/// The longest pattern, in letters.
const LETTERS_MAX: usize = 400;

/// A pattern of branches' names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct BranchPattern(Vec<Token>);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Token {
    Letter(char),
    /// `?`.
    One,
    /// `*`.
    Part,
    /// `**`.
    Any,
}

impl Token {
    /// Whether it may go on behind a letter that it stood for.
    fn repeats(self) -> bool {
        matches!(self, Token::Part | Token::Any)
    }

    fn takes(self, letter: char) -> bool {
        match self {
            Token::Letter(own) => own == letter,
            Token::One | Token::Part => letter != '/',
            Token::Any => true,
        }
    }
}

/// The patterns that a policy or a rule has under `branches`.
///
/// # Errors
/// `BadValue` if they are none.
pub(super) fn list_of(document: Document<'_>) -> Result<Option<Vec<BranchPattern>>, Error> {
    let Some(given) = list(document, "branches")? else { return Ok(None) };
    let mut patterns = Vec::new();
    for pattern in given.iter() {
        let pattern = pattern.as_str().ok_or_else(|| wrong("branches must be strings"))?;
        patterns.push(BranchPattern::parse(pattern)?);
    }
    // None means all.
    Ok((!patterns.is_empty()).then_some(patterns))
}

impl BranchPattern {
    fn parse(text: &str) -> Result<BranchPattern, Error> {
        let (mut tokens, mut letters) = (Vec::new(), text.chars().peekable());
        while let Some(letter) = letters.next() {
            tokens.push(match letter {
                '*' if letters.next_if_eq(&'*').is_some() => Token::Any,
                '*' => Token::Part,
                '?' => Token::One,
                letter => Token::Letter(letter),
            });
        }
        if tokens.is_empty() || LETTERS_MAX < tokens.len() {
            let what = format!("branches: '{text}' must have 1 to {LETTERS_MAX} letters");
            return Err(wrong(what));
        }
        Ok(BranchPattern(tokens))
    }

    /// Whether a branch has such a name. All ways to match are followed at once: the cost is that
    /// of the name's letters times the pattern's.
    pub fn matches(&self, branch: &str) -> bool {
        let BranchPattern(tokens) = self;
        let mut reached = vec![false; tokens.len() + 1];
        reached[0] = true;
        self.pass_empty(&mut reached);
        for letter in branch.chars() {
            let mut next = vec![false; tokens.len() + 1];
            for (position, token) in tokens.iter().enumerate() {
                if reached[position] && token.takes(letter) {
                    next[if token.repeats() { position } else { position + 1 }] = true;
                }
            }
            self.pass_empty(&mut next);
            reached = next;
        }
        reached[tokens.len()]
    }

    /// What stands for no letter is passed.
    fn pass_empty(&self, reached: &mut [bool]) {
        for (position, token) in self.0.iter().enumerate() {
            if reached[position] && token.repeats() {
                reached[position + 1] = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, matching, others) in [
            ("main", &["main"][..], &["main2", "mai", "x/main"][..]),
            ("release/*", &["release/1", "release/x-2"], &["release/1/2", "release"]),
            ("release/**", &["release/1", "release/1/2"], &["release", "xrelease/1"]),
            ("*-fix", &["a-fix", "-fix-fix"], &["a/b-fix", "fix"]),
            ("**fix", &["fix", "a/b-fix"], &["fixed"]),
            ("v?.*", &["v1.2", "v1."], &["v/.2", "v.2", "v12.3"]),
            ("*a*a*b", &["aab", "xaxaxaxb"], &["ab", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaac"]),
            ("größe/?", &["größe/ß"], &["größe/ss"]),
        ] {
            let parsed = BranchPattern::parse(pattern).expect("a pattern");
            for branch in matching {
                assert!(parsed.matches(branch), "{pattern} {branch}");
            }
            for branch in others {
                assert!(!parsed.matches(branch), "{pattern} {branch}");
            }
        }
        assert!(BranchPattern::parse("").is_err());
        assert!(BranchPattern::parse(&"x".repeat(401)).is_err());
    }
}
