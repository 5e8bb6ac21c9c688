//! Files that are not Frond's: no data directory is made where there are some.
//!
//! A directory may become a data directory if it is one, or is empty but for what a cut-off
//! beginning, the file system or hidden files of others have left there.

use std::path::Path;

use frond_db::inside::Error;
use frond_query::Code;

use crate::remote::is_data_directory;

/// The first file, by name, for which `directory` must not become a data directory.
pub fn foreign_file(directory: &Path) -> Option<String> {
    if is_data_directory(directory) {
        return None;
    }
    // One that can't be looked into is reported when it is opened.
    let entries = std::fs::read_dir(directory).ok()?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| is_foreign(name)).min()
}

/// Refuses to make a data directory where there are other files.
///
/// # Errors
/// `BadValue` (2), which names one of them.
pub(crate) fn refuse(directory: &Path) -> Result<(), Error> {
    let Some(file) = foreign_file(directory) else { return Ok(()) };
    let message = format!(
        "{} is not a data directory of Frond, and not empty (it holds {file}): name an empty or \
         new one",
        directory.display()
    );
    Err(Error::invalid(Code::BadValue, message))
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
    fn no_data_directory_is_made_of_what_holds_files_of_others() {
        let name = format!("frond-foreign-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).expect("it can be made");
        std::fs::write(directory.join("letter.txt"), "Dear").expect("it can be written");
        let Err(error) = crate::open(&directory, Default::default()) else {
            panic!("a data directory lies beside a letter")
        };
        assert!(error.message.contains("letter.txt"), "{}", error.message);
        let left = std::fs::read_dir(&directory).expect("it can be read").count();
        assert_eq!(left, 1, "nothing was added");
        std::fs::remove_file(directory.join("letter.txt")).expect("it is there");
        let opened = crate::open(&directory, Default::default()).expect("it is empty");
        opened.close().expect("it can be closed");
        drop(opened);
        std::fs::write(directory.join("letter.txt"), "Dear").expect("it can be written");
        crate::open(&directory, Default::default()).expect("it is a data directory");
        std::fs::remove_dir_all(&directory).expect("it can be removed");
    }

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
