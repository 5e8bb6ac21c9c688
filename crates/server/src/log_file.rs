//! A file that lines are appended to, and that is renamed when another is to begin; or opened
//! again, where another program (logrotate) has renamed it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What rotating a file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LogRotation {
    /// It is renamed, and another begins.
    #[default]
    Rename,
    /// It is opened again by its name: what has that name now, or another.
    Reopen,
}

/// A file that lines are appended to.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    file: File,
    rotation: LogRotation,
}

impl LogFile {
    /// Opens the end of a file, which is made, for its owner alone, if it isn't there.
    ///
    /// # Errors
    /// If it can't be opened.
    pub fn open(path: &Path) -> io::Result<LogFile> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        Ok(LogFile { path: path.to_owned(), file, rotation: LogRotation::default() })
    }

    /// Says what rotating it is.
    pub fn set_rotation(&mut self, rotation: LogRotation) {
        self.rotation = rotation;
    }

    /// Appends a line, by one write.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn append(&mut self, line: &str) -> io::Result<()> {
        self.file.write_all(format!("{line}\n").as_bytes())
    }

    /// Renames the file, by appending the time in milliseconds, and begins another; or only opens
    /// it again. Returns whether it was a file: devices and pipes stay what they are.
    ///
    /// # Errors
    /// If it can't be renamed, or no other made: lines go where they went.
    pub fn rotate(&mut self, now_millis: i64) -> io::Result<bool> {
        let rotation = self.rotation;
        let path = self.path.clone();
        let open = || -> io::Result<LogFile> {
            let opened = LogFile::open(&path)?;
            Ok(LogFile { rotation, ..opened })
        };
        if rotation == LogRotation::Reopen {
            if std::fs::metadata(&self.path).is_ok_and(|found| !found.is_file()) {
                return Ok(false);
            }
            *self = open()?;
            return Ok(true);
        }
        if !std::fs::symlink_metadata(&self.path)?.is_file() {
            return Ok(false);
        }
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{now_millis}"));
        std::fs::rename(&self.path, name)?;
        *self = open()?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_another_program_renamed_is_opened_again() {
        let directory = std::env::temp_dir().join(format!("frond-log-file-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("room");
        let (path, moved) = (directory.join("log"), directory.join("log.1"));
        let read = |path: &Path| std::fs::read_to_string(path).expect("it is there");
        let mut file = LogFile::open(&path).expect("it opens");
        file.set_rotation(LogRotation::Reopen);
        file.append("one").expect("room");
        // Nothing has renamed it.
        assert!(file.rotate(7).expect("it opens"));
        file.append("two").expect("room");
        std::fs::rename(&path, &moved).expect("it is there");
        file.append("three").expect("it goes where the file is");
        assert!(file.rotate(8).expect("another begins"));
        file.append("four").expect("room");
        assert_eq!((read(&moved), read(&path)), ("one\ntwo\nthree\n".into(), "four\n".into()));
        std::fs::rename(&path, &moved).expect("it is there");
        assert!(file.rotate(9).expect("it is reopened by the next one, too"));
        file.append("five").expect("room");
        assert_eq!(read(&path), "five\n");
        assert_eq!(std::fs::read_dir(&directory).expect("listed").count(), 2);
        std::fs::remove_dir_all(&directory).expect("it is there");
    }
}
