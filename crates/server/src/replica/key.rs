//! The cluster key: what only the members of a set know, or only routers and their lines' servers.

use std::fmt;
use std::fs;
use std::path::Path;

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};

/// The least number of letters: fewer could be guessed.
const KEY_BYTES_MIN: usize = 32;
const KEY_BYTES_MAX: usize = 1024;
/// mongod's.
const SECRET_BYTES_MIN: usize = 6;
/// Before the secret of a key that is derived, so that the key is of no other use.
const DERIVED: &[u8] = b"frond set key\0";

/// The key that members prove to one another.
#[derive(Clone)]
pub struct ClusterKey(Vec<u8>);

impl ClusterKey {
    /// Reads a key from a file that only its owner may read; blanks and line ends don't count.
    ///
    /// # Errors
    /// Says what of the file is wrong.
    pub fn read(path: &Path) -> Result<ClusterKey, String> {
        let shown = path.display();
        let text = fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
        check_permissions(path)?;
        ClusterKey::parse(&text).map_err(|what| format!("{shown}: {what}"))
    }

    /// The key that a file holds.
    ///
    /// # Errors
    /// If it is too short, or too long.
    pub fn parse(text: &str) -> Result<ClusterKey, String> {
        let key: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        match key.len() {
            ..KEY_BYTES_MIN => Err("a cluster key has at least 32 characters: openssl rand \
                                    -base64 48"),
            KEY_BYTES_MIN..=KEY_BYTES_MAX => return Ok(ClusterKey(key)),
            _ => Err("a cluster key has at most 1024 characters"),
        }
        .map_err(str::to_owned)
    }

    /// The key of servers that were started with the same secret, which may be shorter than a key.
    pub fn derived(secret: &[u8]) -> ClusterKey {
        let hash = digest(&SHA256, &[DERIVED, secret].concat());
        ClusterKey(HEXLOWER.encode(hash.as_ref()).into_bytes())
    }

    /// As [`ClusterKey::derived`], of a key file of mongod's.
    ///
    /// # Errors
    /// Says what of the file is wrong.
    pub fn derived_from(path: &Path) -> Result<ClusterKey, String> {
        let shown = path.display();
        let text = fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
        check_permissions(path)?;
        let secret: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        match secret.len() {
            ..SECRET_BYTES_MIN => Err(format!("{shown}: a key file has at least 6 characters")),
            _ => Ok(ClusterKey::derived(&secret)),
        }
    }

    /// As it stands in its file, without blanks.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for ClusterKey {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("ClusterKey")
    }
}

#[cfg(unix)]
fn check_permissions(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let shown = path.display();
    let metadata = fs::metadata(path).map_err(|error| format!("{shown}: {error}"))?;
    match metadata.permissions().mode() & 0o077 {
        0 => Ok(()),
        _ => Err(format!("{shown}: other users can read it: chmod 600 {shown}")),
    }
}

#[cfg(not(unix))]
fn check_permissions(_: &Path) -> Result<(), String> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_long_and_blanks_do_not_count() {
        let key = ClusterKey::parse("0123456789 0123456789\n0123456789 01\n").expect("long enough");
        assert_eq!(key.bytes(), b"01234567890123456789012345678901");
        assert!(ClusterKey::parse("0123456789 0123456789 0123456789 0").is_err());
        assert!(ClusterKey::parse(&"k".repeat(1025)).is_err());
        assert_eq!(format!("{key:?}"), "ClusterKey");
    }
}
