//! The file that holds the number of the process that serves.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The file, until the server has ended.
pub struct PidFile(PathBuf);

impl PidFile {
    /// Writes it.
    ///
    /// # Errors
    /// [`Failure::Failed`] if it can't be written.
    pub fn write(path: &Path) -> Result<PidFile, Failure> {
        let written = fs::write(path, format!("{}\n", std::process::id()));
        written.map_err(|error| Failure::file(&path.display().to_string(), &error))?;
        Ok(PidFile(path.to_owned()))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let own = format!("{}\n", std::process::id());
        if fs::read_to_string(&self.0).is_ok_and(|found| found == own) {
            // A file that stays names a process that has ended: the next server replaces it.
            let _ = fs::remove_file(&self.0);
        }
    }
}
