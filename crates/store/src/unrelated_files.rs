//! Recognises files that don't belong to Frond: no data directory is created among them.
//!
//! A directory may become a data directory if it is one, or is empty but for what a cut-off
//! beginning, the file system or hidden files of others have left there.

use std::path::Path;

use crate::MANIFEST_NAMES;

/// The first file, by name, for which `directory` must not become a data directory.
#[must_use]
pub fn unrelated_file(directory: &Path) -> Option<String> {
    if MANIFEST_NAMES.iter().any(|name| directory.join(name).is_file()) {
        return None;
    }
    // One that can't be looked into is reported when it is opened.
    let entries = std::fs::read_dir(directory).ok()?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| is_unrelated(name)).min()
}

/// The mark of a directory that is being begun ([`crate::new_directory`]). Stored.
pub(crate) const MARK_NAME: &str = "UNSYNCED";

/// Whether a file of this name holds data, or says where they are.
pub(crate) fn is_stored(name: &str) -> bool {
    const BEGINNINGS: [&str; 7] =
        ["MANIFEST", "COPIES", "DEPOT", "EXTENTS", "RESERVE", "log-", "spare-log-"];
    const ENDS: [&str; 3] = [".index", ".locations", ".pack"];
    BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || ENDS.iter().any(|end| name.ends_with(end))
}

/// Whether no file of a data directory has this name.
pub(crate) fn is_unrelated(name: &str) -> bool {
    let is_ours = is_stored(name)
        || name == "LOCK"
        || name == MARK_NAME
        // A server that listens says where.
        || name == "SOCKET"
        || name == "SOCKET.new"
        // A server that waits to become a member of a set, or becomes one, notes that.
        || name.starts_with("set-")
        || name == "KEYS"
        // Before the first write a request may already need more than its memory.
        || name.starts_with("spill-");
    !is_ours && name != "lost+found" && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_an_interrupted_creation_are_not_unrelated() {
        for (name, expected) in [
            ("LOCK", false),
            ("MANIFEST.new", false),
            ("MANIFEST.copy.new", false),
            ("COPIES.new", false),
            ("00000000.pack", false),
            ("log-0000000001", false),
            ("spare-log-0000000001", false),
            ("KEYS", false),
            ("set-waits", false),
            ("set-begins.new", false),
            ("UNSYNCED", false),
            ("SOCKET", false),
            ("SOCKET.new", false),
            ("spill-1", false),
            ("lost+found", false),
            (".DS_Store", false),
            ("letter.txt", true),
            ("log", true),
        ] {
            assert_eq!(is_unrelated(name), expected, "{name}");
        }
    }
}
