//! Names of databases and their versions: `shop`, `shop@feature`, `shop@main~2`, `shop@<commit>`.
//!
//! Characters that drivers refuse in a database's name can be percent-encoded:
//! `shop@feature%2Flogin`. `db@branch` is read and written; anything else after the `@` (a commit,
//! an ancestor `~n` or `^n`) is read only. The first `@` separates, so a branch's name may hold
//! one.

use std::fmt;
use std::sync::Arc;

use frond_query::Code;
use frond_store::ChunkHash;
use percent_encoding::percent_decode_str;

use crate::commit_id::CommitId;
use crate::error::Error;

/// The longest name of a database, without its version.
pub const DATABASE_NAME_BYTES_MAX: usize = 63;
/// The longest `database.collection`.
pub const NAMESPACE_BYTES_MAX: usize = 255;
/// The longest version, decoded: a branch's name and steps to an ancestor.
const VERSION_BYTES_MAX: usize = 255;
/// The characters that MongoDB refuses in a database's name (on some platforms only: here on all).
const FORBIDDEN: &[char] = &['/', '\\', '.', ' ', '"', '$', '*', '<', '>', ':', '|', '?', '\0'];

/// Whether a database is the server's own: those that MongoDB keeps for itself.
pub fn is_internal(name: &str) -> bool {
    matches!(name, "admin" | "config" | "local")
}

/// A database's name, parsed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DatabaseName {
    /// The part before the `@`, decoded.
    pub name: String,
    /// The version of it.
    pub version: VersionName,
}

/// The part after the `@`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum VersionName {
    /// Nothing: the default branch's working state.
    Default,
    /// A branch's name or a revision, decoded: which one it is only the repository can say.
    Named(String),
}

impl fmt::Display for DatabaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            VersionName::Default => f.write_str(&self.name),
            VersionName::Named(version) => write!(f, "{}@{version}", self.name),
        }
    }
}

/// The meaning of a version's name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// The working state of a branch.
    Branch(Arc<str>),
    /// A commit: its id and its chunk.
    Commit(CommitId, ChunkHash),
}

impl DatabaseName {
    /// Parses and checks a name by MongoDB's rules (no `/\. "$*<>:|?`, no NUL, at most 63 bytes in
    /// the part before the `@`, not empty); nor may that part hold `@` or `%`, however encoded.
    ///
    /// # Errors
    /// `InvalidNamespace` (73).
    pub fn parse(text: &str) -> Result<DatabaseName, Error> {
        let invalid = |why: &str| {
            let message = format!("Invalid database name: '{text}': {why}");
            Error::invalid(Code::InvalidNamespace, message)
        };
        let (name, version) = match text.split_once('@') {
            Some((name, version)) => (name, Some(version)),
            None => (text, None),
        };
        let name = percent_decode(name).ok_or_else(|| invalid("wrong percent-encoding"))?;
        if name.is_empty() {
            return Err(invalid("it is empty"));
        }
        if name.len() > DATABASE_NAME_BYTES_MAX {
            return Err(invalid("it is longer than 63 bytes"));
        }
        if let Some(character) = name.chars().find(|character| FORBIDDEN.contains(character)) {
            return Err(invalid(&format!("{character:?} is not allowed")));
        }
        // No client could write such a name back: what lists it doesn't encode it.
        if let Some(character) = name.chars().find(|character| "@%".contains(*character)) {
            return Err(invalid(&format!("{character:?} is not allowed, encoded or not")));
        }
        let Some(version) = version else {
            return Ok(DatabaseName { name, version: VersionName::Default });
        };
        let version = percent_decode(version).ok_or_else(|| invalid("wrong percent-encoding"))?;
        if version.is_empty() {
            return Err(invalid("the version after the @ is empty"));
        }
        if version.len() > VERSION_BYTES_MAX || version.contains('\0') {
            return Err(invalid("the version after the @ is longer than 255 bytes or holds a NUL"));
        }
        Ok(DatabaseName { name, version: VersionName::Named(version) })
    }

    /// Checks the name of the database that a command is sent to, whatever the command: as
    /// [`DatabaseName::parse`], but that `$` may stand in it (`$external`), as in MongoDB. Commands
    /// that look for such a database refuse it themselves.
    ///
    /// # Errors
    /// `InvalidNamespace` (73).
    pub fn check_sent(text: &str) -> Result<(), Error> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if (1..=DATABASE_NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_plain) {
            return Ok(());
        }
        match DatabaseName::parse(&text.replace('$', "_")) {
            Ok(_) => Ok(()),
            // The error is that of the name as it was sent.
            Err(_) => DatabaseName::parse(text).map(|_| ()),
        }
    }
}

/// Checks a collection's name by MongoDB's rules.
///
/// # Errors
/// `InvalidNamespace` (73).
pub fn check_collection(database: &str, collection: &str) -> Result<(), Error> {
    let why = if collection.is_empty() {
        "it is empty"
    } else if collection.starts_with('.') {
        "it starts with '.'"
    } else if collection.contains('$') {
        "it holds '$'"
    } else if collection.contains('\0') {
        "it holds a NUL"
    } else if collection.starts_with("system.")
        && !matches!(collection, "system.js" | "system.profile")
    {
        "names that start with 'system.' are reserved"
    } else if database.len() + 1 + collection.len() > NAMESPACE_BYTES_MAX {
        "database and collection together are longer than 255 bytes"
    } else {
        return Ok(());
    };
    let message = format!("Invalid namespace specified '{database}.{collection}': {why}");
    Err(Error::invalid(Code::InvalidNamespace, message))
}

/// The time series whose buckets MongoDB keeps in a collection of this name, if it is one's.
pub fn of_buckets(name: &str) -> Option<&str> {
    name.strip_prefix("system.buckets.")
}

/// Replaces each `%` and two hexadecimal digits by their byte; `None` if a `%` is followed by
/// something else or the bytes aren't UTF-8.
pub fn percent_decode(text: &str) -> Option<String> {
    let is_escape = |after: &str| match after.as_bytes() {
        [high, low, ..] => high.is_ascii_hexdigit() && low.is_ascii_hexdigit(),
        _ => false,
    };
    // The crate leaves as it is what is no escape.
    if !text.split('%').skip(1).all(is_escape) {
        return None;
    }
    let decoded = percent_decode_str(text).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(&str, Option<&str>)>) {
        let expected = expected.map(|(name, version)| DatabaseName {
            name: name.to_owned(),
            version: version
                .map_or(VersionName::Default, |version| VersionName::Named(version.to_owned())),
        });
        match (DatabaseName::parse(text), expected) {
            (Ok(found), Some(expected)) => assert_eq!(found, expected, "{text}"),
            (Err(error), None) => assert_eq!(error.code, Code::InvalidNamespace, "{text}"),
            (found, expected) => panic!("{text}: {found:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn databases() {
        check("shop", Some(("shop", None)));
        check("Größe", Some(("Größe", None)));
        check("shop@feature", Some(("shop", Some("feature"))));
        check("shop@main~2", Some(("shop", Some("main~2"))));
        check("shop@feature%2Flogin", Some(("shop", Some("feature/login"))));
        check("shop@a@b", Some(("shop", Some("a@b"))));
        check("sh%6Fp", Some(("shop", None)));
        check("shop@100%25", Some(("shop", Some("100%"))));
        check(&"x".repeat(63), Some((&"x".repeat(63), None)));
        for wrong in ["", "@main", "shop@", "a.b", "a b", "a/b", "a\\b", "a\"b", "$a", "a*", "a\0b"]
        {
            check(wrong, None);
        }
        for wrong in ["a%40b", "a%25b", "a%40b@main"] {
            check(wrong, None);
        }
        for wrong in ["a%2Eb", "shop@%", "shop@%2", "shop@%zz", "shop@%+1", "shop@%ff", "shop@%00"]
        {
            check(wrong, None);
        }
        check(&"x".repeat(64), None);
        check(&format!("a@{}", "x".repeat(256)), None);
    }

    #[test]
    fn names_that_commands_are_sent_to() {
        for right in ["shop", "shop@main~2", "$external", "a$b", "Größe", &"x".repeat(63)] {
            assert!(DatabaseName::check_sent(right).is_ok(), "{right}");
        }
        for wrong in ["", "a.b", "a b", "a/b", "$a.b", "a\0", "@main", "shop@", &"x".repeat(64)] {
            let error = DatabaseName::check_sent(wrong).unwrap_err();
            assert_eq!(error.code, Code::InvalidNamespace, "{wrong}");
            assert!(error.message.contains(&format!("'{wrong}'")), "{}", error.message);
        }
    }

    #[test]
    fn collections() {
        for right in
            ["things", "a.b", "a b", "Größe", "system", "a.system.b", "system.js", "system.profile"]
        {
            assert!(check_collection("shop", right).is_ok(), "{right}");
        }
        let long = "x".repeat(251);
        for wrong in ["", ".a", "a$b", "a\0b", "system.users", &long] {
            let error = check_collection("shop", wrong).unwrap_err();
            assert_eq!(error.code, Code::InvalidNamespace, "{wrong}");
        }
    }
}
