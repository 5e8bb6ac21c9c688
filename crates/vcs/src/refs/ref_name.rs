//! The rules for names of branches, tags and remotes.

use frond_db::inside::{CommitId, Error};
use frond_query::Code;

use crate::history;

/// The longest name of a branch.
const NAME_BYTES_MAX: usize = 200;
/// Characters that revisions, globs and refspecs give a meaning to.
const FORBIDDEN: &[char] = &[' ', '~', '^', ':', '?', '*', '[', '\\'];

/// Checks the name of a new branch, by git's rules.
///
/// # Errors
/// `BadValue` that names the rule.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    check_name_of("branch", name)
}

/// Checks the name of a new `thing` (a branch, a tag), by git's rules.
///
/// # Errors
/// As [`check_name`].
pub(crate) fn check_name_of(thing: &str, name: &str) -> Result<(), Error> {
    let part_is = |wrong: fn(&str) -> bool| name.split('/').any(wrong);
    let why = if name.is_empty() {
        "it is empty"
    } else if name.len() > NAME_BYTES_MAX {
        "it is longer than 200 bytes"
    } else if [history::HEAD, history::WORKING, history::NOTHING].contains(&name) {
        "the word is taken"
    } else if CommitId::parse(name).is_some() {
        // Otherwise `shop@<commit>` would lead to whatever the branch holds.
        "it could be a commit's id"
    } else if name.contains(FORBIDDEN) {
        "it holds a space or one of ~ ^ : ? * [ \\"
    } else if name.chars().any(char::is_control) {
        "it holds a control character"
    } else if name.contains("..") || name.contains("@{") || name == "@" {
        "it is @ or holds .. or @{"
    } else if name.starts_with('-') || name.ends_with('.') {
        "it starts with - or ends with ."
    } else if part_is(str::is_empty) {
        "it starts or ends with / or holds //"
    } else if part_is(|part| part.starts_with('.') || part.ends_with(".lock")) {
        "a part of it starts with . or ends with .lock"
    } else {
        return Ok(());
    };
    Err(Error::invalid(Code::BadValue, format!("'{name}' can't be a {thing}'s name: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for right in ["main", "feature/login", "größe", "v1.2", "a@b", "HEADS", "main-2"] {
            assert!(check_name(right).is_ok(), "{right}");
        }
        let long = "x".repeat(201);
        let wrong = [
            "",
            "a b",
            "a~1",
            "a^",
            "a:b",
            "a?",
            "*",
            "a[0]",
            "a\\b",
            "a..b",
            "a@{1}",
            "@",
            "HEAD",
            "WORKING",
            "/a",
            "a/",
            "a//b",
            ".a",
            "a/.b",
            "a.lock",
            "a.",
            "-a",
            "a\0b",
            "a\nb",
            "vg4gp0ttalceb7g8aegu3rcelvjp77en",
            &long,
        ];
        for wrong in wrong {
            assert!(check_name(wrong).is_err(), "{wrong}");
        }
    }
}
