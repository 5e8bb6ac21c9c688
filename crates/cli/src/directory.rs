//! Which directories are data directories, so that a wrong `--data` neither finds nothing where
//! there is something else, nor leaves files of ours beside what is not ours.
//!
//! 1. What reads wants one that was begun: it has a manifest.
//! 2. What may make one wants that, or a place that is empty but for what a cut-off beginning, the
//!    file system or hidden files of others have left there.

use std::path::Path;

use frond_vcs::remote::{MANIFEST_NAMES, is_data_directory};

use crate::failure::Failure;

/// Refuses what is no data directory.
///
/// # Errors
/// What is there instead, with `advice` if it is nothing.
pub fn check_there(directory: &Path, advice: &str) -> Result<(), Failure> {
    let name = directory.display();
    check_no_file(directory)?;
    if !directory.is_dir() {
        return Err(Failure::failed(format!("there is no data directory {name}{advice}")));
    }
    // One that can't be looked into is reported when it is opened.
    let is_absent = |manifest| matches!(directory.join(manifest).try_exists(), Ok(false));
    match MANIFEST_NAMES.into_iter().all(is_absent) {
        true => Err(Failure::failed(format!("{name} is not a data directory of Frond"))),
        false => Ok(()),
    }
}

/// Refuses to make a data directory of one that holds something else.
///
/// # Errors
/// One of the files that are there.
pub fn check_usable(directory: &Path) -> Result<(), Failure> {
    check_no_file(directory)?;
    if is_data_directory(directory) {
        return Ok(());
    }
    let Ok(entries) = std::fs::read_dir(directory) else { return Ok(()) };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    match names.filter(|name| is_foreign(name)).min() {
        None => Ok(()),
        Some(file) => Err(Failure::failed(format!(
            "{} is not a data directory of Frond, and not empty (it holds {file}): name an empty or new \
             one with --data",
            directory.display()
        ))),
    }
}

/// Refuses a file where a directory belongs.
fn check_no_file(path: &Path) -> Result<(), Failure> {
    if path.exists() && !path.is_dir() {
        let name = path.display();
        let message = format!(
            "{name} is a file, not a data directory: name a directory with \
                               --data"
        );
        return Err(Failure::failed(message));
    }
    Ok(())
}

fn is_foreign(name: &str) -> bool {
    let is_ours = name == "LOCK"
        || name == "RESERVE"
        || name.starts_with("MANIFEST")
        || name.starts_with("COPIES")
        || name.starts_with("DEPOT")
        || name == "EXTENTS"
        || name.ends_with(".index")
        || name.ends_with(".pack")
        || name.starts_with("log-")
        || name.starts_with("spare-log-");
    !is_ours && name != "lost+found" && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_cut_off_beginning_leaves_is_not_foreign() {
        for (name, expected) in [
            ("LOCK", false),
            ("MANIFEST.new", false),
            ("MANIFEST.copy.new", false),
            ("COPIES.new", false),
            ("00000000.pack", false),
            ("log-0000000001", false),
            ("spare-log-0000000001", false),
            ("lost+found", false),
            (".DS_Store", false),
            ("letter.txt", true),
            ("log", true),
        ] {
            assert_eq!(is_foreign(name), expected, "{name}");
        }
    }
}
