//! A file that lines are appended to, and that is renamed when another is to begin.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file that lines are appended to.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    file: File,
}

impl LogFile {
    /// Opens the end of a file, which is made, for its owner alone, if it isn't there.
    ///
    /// # Errors
    /// If it can't be opened.
    pub fn open(path: &Path) -> io::Result<LogFile> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        Ok(LogFile { path: path.to_owned(), file })
    }

    /// Appends a line, by one write.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn append(&mut self, line: &str) -> io::Result<()> {
        self.file.write_all(format!("{line}\n").as_bytes())
    }

    /// Renames the file, by appending the time in milliseconds, and begins another. Returns whether
    /// it was a file: devices and pipes stay what they are.
    ///
    /// # Errors
    /// If it can't be renamed, or no other made: lines go where they went.
    pub fn rotate(&mut self, now_millis: i64) -> io::Result<bool> {
        if !std::fs::symlink_metadata(&self.path)?.is_file() {
            return Ok(false);
        }
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{now_millis}"));
        std::fs::rename(&self.path, name)?;
        *self = LogFile::open(&self.path)?;
        Ok(true)
    }
}
