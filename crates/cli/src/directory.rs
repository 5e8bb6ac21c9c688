//! Checks that a directory is a data directory, so that a wrong `--data` neither finds nothing
//! where there is something else, nor leaves files of ours beside other files.
//!
//! 1. Commands that read need one that was begun: it has a manifest.
//! 2. Commands that may make one need that, or a place that is empty except for what a beginning
//!    that was cut off, the file system or hidden files of others have left there.

use std::path::Path;

use frond_vcs::remote::MANIFEST_NAMES;
use frond_vcs::unrelated_file;

use crate::failure::{Failure, describe};

/// Refuses what is no data directory.
///
/// # Errors
/// The error says what is there instead, with `advice` if it is nothing.
pub fn check_there(directory: &Path, advice: &str) -> Result<(), Failure> {
    let name = directory.display();
    check_no_file(directory)?;
    if let Err(error) = directory.try_exists() {
        return Err(Failure::failed(format!("data directory {name}: {}", describe(&error))));
    }
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
    match unrelated_file(directory) {
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
