//! The keys of the system tree.

use bytes::Bytes;
use frond_engine::{Transaction, TreeId};
use frond_tree::Bounds;

use crate::error::Error;

const SEPARATOR: u8 = 0;

/// The kind of thing that a document of users and roles describes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AccessKind {
    /// A user.
    User,
    /// A role.
    Role,
    /// A record that the server needs beside them, and shows no client; it belongs to no database.
    Secret,
    /// A setting of clients for the whole server; it belongs to no database.
    Setting,
}

fn key(kind: u8, parts: &[&[u8]]) -> Bytes {
    // The exact size: a key that has grown is copied, or counted apart, when it is shared.
    let bytes = 1 + parts.iter().map(|part| 1 + part.len()).sum::<usize>();
    let mut key = Vec::with_capacity(bytes);
    key.push(kind);
    for part in parts {
        key.push(SEPARATOR);
        key.extend_from_slice(part);
    }
    key.into()
}

/// The key of a [`RepositoryRecord`](super::RepositoryRecord).
pub fn repository_key(database: &str) -> Bytes {
    key(b'd', &[database.as_bytes()])
}

/// Returns the prefix of the keys of all repositories.
pub(crate) fn repositories_prefix() -> Bytes {
    key(b'd', &[b""])
}

/// The key of a [`BranchRef`](super::BranchRef).
pub fn branch_key(database: &str, branch: &str) -> Bytes {
    key(b'r', &[database.as_bytes(), branch.as_bytes()])
}

/// Returns the prefix of the keys of a database's branches.
pub fn branches_prefix(database: &str) -> Bytes {
    key(b'r', &[database.as_bytes(), b""])
}

/// The key of a commit's chunk hash; with fewer than 20 bytes of the id, a prefix of such keys.
pub fn commit_key(database: &str, id: &[u8]) -> Bytes {
    key(b'c', &[database.as_bytes(), id])
}

/// The key of a [`WorkingEntry`](super::WorkingEntry).
pub fn working_key(database: &str, branch: &str, collection: &str) -> Bytes {
    key(b'w', &[database.as_bytes(), branch.as_bytes(), collection.as_bytes()])
}

/// Returns the prefix of the keys of a branch's working entries.
pub fn working_prefix(database: &str, branch: &str) -> Bytes {
    key(b'w', &[database.as_bytes(), branch.as_bytes(), b""])
}

/// Returns the prefix of the keys of all working entries of a database, on every branch.
pub(crate) fn working_of_database_prefix(database: &str) -> Bytes {
    key(b'w', &[database.as_bytes(), b""])
}

/// The key of what moved a branch's ref at `sequence`; they ascend in time.
pub fn reflog_key(database: &str, branch: &str, sequence: u64) -> Bytes {
    key(b'l', &[database.as_bytes(), branch.as_bytes(), &sequence.to_be_bytes()])
}

/// The key of a branch's merge that waits.
pub fn merge_key(database: &str, branch: &str) -> Bytes {
    key(b'm', &[database.as_bytes(), branch.as_bytes()])
}

/// The key of a conflict that waits.
pub fn conflict_key(database: &str, branch: &str, collection: &str, id: &[u8]) -> Bytes {
    key(b'x', &[database.as_bytes(), branch.as_bytes(), collection.as_bytes(), id])
}

/// Returns the prefix of the keys of a branch's conflicts.
pub fn conflicts_prefix(database: &str, branch: &str) -> Bytes {
    key(b'x', &[database.as_bytes(), branch.as_bytes(), b""])
}

/// The key of a part of what is remembered of a session's last write; part 0 is its record.
pub(crate) fn session_key(session: [u8; 16], part: i32) -> Bytes {
    let part = part.to_be_bytes();
    key(b's', &[&[&session[..], if part == [0; 4] { &[] } else { &part }].concat()])
}

/// Returns the prefix of the keys of all sessions' records.
pub(crate) fn sessions_prefix() -> Bytes {
    key(b's', &[b""])
}

/// Returns the prefix of the keys of a branch's reflog.
pub fn reflog_prefix(database: &str, branch: &str) -> Bytes {
    key(b'l', &[database.as_bytes(), branch.as_bytes(), b""])
}

/// Returns the prefix of the keys of all reflogs of a database.
pub fn reflogs_prefix(database: &str) -> Bytes {
    key(b'l', &[database.as_bytes(), b""])
}

/// The key of the record that leads from a conflict's id to its key; with no id, what all of a
/// branch's begin with.
pub fn conflict_id_key(database: &str, branch: &str, id: &[u8]) -> Bytes {
    key(b'y', &[database.as_bytes(), branch.as_bytes(), id])
}

/// The key of a tag.
pub fn tag_key(database: &str, tag: &str) -> Bytes {
    key(b'g', &[database.as_bytes(), tag.as_bytes()])
}

/// The key of a remote.
pub fn remote_key(database: &str, remote: &str) -> Bytes {
    key(b'n', &[database.as_bytes(), remote.as_bytes()])
}

/// The key of where a remote's branch was; `name` is `origin/main`.
pub fn tracking_key(database: &str, name: &str) -> Bytes {
    key(b'o', &[database.as_bytes(), name.as_bytes()])
}

/// The key of a database's [`Fence`](crate::fence::Fence).
pub fn fence_key(database: &str) -> Bytes {
    key(b'f', &[database.as_bytes()])
}

/// Returns the prefix of the keys of all fences.
pub(crate) fn fences_prefix() -> Bytes {
    key(b'f', &[b""])
}

/// The key of a branch's policy.
pub fn policy_key(database: &str, branch: &str) -> Bytes {
    key(b'p', &[database.as_bytes(), branch.as_bytes()])
}

/// Returns the prefix of the keys of the policies of all branches.
pub fn all_policies_prefix() -> Bytes {
    key(b'p', &[b""])
}

/// Database and branch of a policy's key.
///
/// # Errors
/// `Damaged` if the key has another prefix or other parts.
pub fn database_and_branch(prefix: &[u8], key: &[u8]) -> Result<(String, String), Error> {
    let damaged = || Error::damaged("a key of the system tree names no database and branch");
    let rest = key.strip_prefix(prefix).and_then(|rest| std::str::from_utf8(rest).ok());
    let (database, branch) = rest.and_then(|rest| rest.split_once('\0')).ok_or_else(damaged)?;
    Ok((database.to_owned(), branch.to_owned()))
}

/// The key of the record that says when and how commits of a database are made.
pub fn commit_policy_key(database: &str) -> Bytes {
    key(b'q', &[database.as_bytes(), b"commit"])
}

/// Returns the prefix of the keys of all such records.
pub fn all_commit_policies_prefix() -> Bytes {
    key(b'q', &[b""])
}

/// The key under which the commit stands that took the place of an erased one; with no id, what
/// all of a database's begin with.
pub fn erased_key(database: &str, id: &[u8]) -> Bytes {
    key(b'e', &[database.as_bytes(), id])
}

/// The key of how often something was erased in the data directory.
pub(crate) fn erase_count_key() -> Bytes {
    key(b'z', &[])
}

/// The key of a database that was dropped at `sequence`.
pub fn dropped_key(database: &str, sequence: u64) -> Bytes {
    key(b't', &[database.as_bytes(), &sequence.to_be_bytes()])
}

/// Returns the prefix of the keys of the drops of a database.
pub fn dropped_prefix(database: &str) -> Bytes {
    key(b't', &[database.as_bytes(), b""])
}

/// Returns the prefix of the keys of all drops.
pub fn all_dropped_prefix() -> Bytes {
    key(b't', &[b""])
}

/// The key of what time it was.
pub(crate) fn clock_key() -> Bytes {
    key(b'k', &[])
}

/// The key of a user, a role, or (with empty names) of a secret.
pub(crate) fn access_key(kind: AccessKind, database: &str, name: &str) -> Bytes {
    key(access_letter(kind), &[database.as_bytes(), name.as_bytes()])
}

/// Returns the prefix of the keys of all users, or all roles.
pub(crate) fn access_prefix(kind: AccessKind) -> Bytes {
    key(access_letter(kind), &[b""])
}

fn access_letter(kind: AccessKind) -> u8 {
    match kind {
        AccessKind::User => b'u',
        AccessKind::Role => b'a',
        AccessKind::Secret => b'h',
        AccessKind::Setting => b'v',
    }
}

/// Cuts what follows `prefix` in a key that ends with a name and a Sequence.
///
/// # Errors
/// `Damaged` if the key has another prefix or other parts.
pub fn name_and_sequence(prefix: &[u8], key: &[u8]) -> Result<(String, u64), Error> {
    let damaged = || Error::damaged("a key of the system tree has no name and Sequence");
    let rest = key.strip_prefix(prefix).ok_or_else(damaged)?;
    let (name, sequence) = rest.split_last_chunk::<8>().ok_or_else(damaged)?;
    let name = name.strip_suffix(&[SEPARATOR]).ok_or_else(damaged)?;
    let name = std::str::from_utf8(name).map_err(|_| damaged())?;
    Ok((name.to_owned(), u64::from_be_bytes(*sequence)))
}

/// The Sequence that ends a key.
///
/// # Errors
/// `Damaged` if the key is shorter.
pub fn sequence_at_end(key: &[u8]) -> Result<u64, Error> {
    let sequence = key.last_chunk::<8>();
    let sequence = sequence.ok_or_else(|| Error::damaged("a key ends with no Sequence"))?;
    Ok(u64::from_be_bytes(*sequence))
}

/// Whether a transaction has written a record by which databases and collections are found: any but
/// those of sessions.
pub(crate) fn changes_catalog(transaction: &Transaction) -> bool {
    let before = Bounds { start: None, end: Some(Bytes::from_static(b"s\0")) };
    let after = Bounds { start: Some(Bytes::from_static(b"s\x01")), end: None };
    transaction.wrote(TreeId::SYSTEM, &before) || transaction.wrote(TreeId::SYSTEM, &after)
}

/// Whether a key is that of a session's record.
pub(crate) fn is_of_session(key: &[u8]) -> bool {
    key.starts_with(b"s\0")
}

/// Whether a key is that of a user, a role, or what the server needs to know beside them.
pub(crate) fn is_of_access(key: &[u8]) -> bool {
    [b"u\0", b"a\0", b"h\0"].iter().any(|kind| key.starts_with(*kind))
}

/// Whether a key is that of a setting.
pub(crate) fn is_setting(key: &[u8]) -> bool {
    key.starts_with(b"v\0")
}

/// Returns the prefixes of the keys of everything else that a database has: refs, commits, working
/// entries, reflog, merges, conflicts and their ids, tags, remotes and the records of them,
/// policies, the replacements of erased commits. Records that would bring back a dropped database
/// of that name are not its own.
pub(crate) fn database_prefixes(database: &str) -> [Bytes; 13] {
    [b'r', b'c', b'w', b'l', b'm', b'x', b'y', b'g', b'n', b'o', b'p', b'q', b'e']
        .map(|kind| key(kind, &[database.as_bytes(), b""]))
}

/// The name that ends a key which begins with `prefix`.
///
/// # Errors
/// `Damaged` if it begins otherwise, or the name isn't UTF-8.
pub fn name_after(prefix: &[u8], key: &[u8]) -> Result<String, Error> {
    let name = key.strip_prefix(prefix).and_then(|name| std::str::from_utf8(name).ok());
    name.map(str::to_owned).ok_or_else(|| Error::damaged("a key of the system tree has no name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_one_database_or_branch_share_no_prefix_with_anothers() {
        let prefix = working_prefix("shop", "main");
        assert!(working_key("shop", "main", "things").starts_with(&prefix));
        assert!(!working_key("shop", "main2", "things").starts_with(&prefix));
        assert!(!working_key("shop2", "main", "things").starts_with(&prefix));
        assert_eq!(
            name_after(&prefix, &working_key("shop", "main", "a.b")).expect("a name"),
            "a.b"
        );
        let prefixes = database_prefixes("shop");
        let keys = [
            branch_key("shop", "x"),
            commit_key("shop", &[0; 20]),
            working_key("shop", "x", "y"),
            reflog_key("shop", "x", 7),
            merge_key("shop", "x"),
            conflict_key("shop", "x", "y", &[0, 1]),
            conflict_id_key("shop", "x", &[0; 10]),
            tag_key("shop", "v1"),
            remote_key("shop", "origin"),
            tracking_key("shop", "origin/main"),
            policy_key("shop", "main"),
            commit_policy_key("shop"),
            erased_key("shop", &[0; 20]),
        ];
        for (key, prefix) in keys.iter().zip(&prefixes) {
            assert!(key.starts_with(prefix));
        }
    }
}
