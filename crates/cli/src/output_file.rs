//! A file that is there whole, or not at all.
//!
//! 1. The content is written to a file of its own beside the file, `.NAME.PROCESS-COUNT.partial`.
//!    It is synced, its length is compared with what was written, and it takes the file's name:
//!    what was there before stays until then, and stays after a failure.
//! 2. A target that isn't a plain file, a pipe or `/dev/stdout`, is written as it is.
//!
//! The writer that finishes last wins. A process that is killed leaves its partial file.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// What goes to the system at once: a call for each 8 KB takes a tenth of an export.
const BUFFER_BYTES: usize = 64 << 10;

/// A file that is being written. Dropped before it is finished it leaves nothing.
pub struct WholeFile {
    out: BufWriter<File>,
    written: u64,
    /// The name of the file until it is whole, and its final name; `None`: it is written in place.
    renaming: Option<(PathBuf, PathBuf)>,
    failure: Option<io::Error>,
}

impl WholeFile {
    /// Begins to write the file `path`.
    ///
    /// # Errors
    /// An error of the system: the file, or its sibling that becomes it, can't be opened.
    pub fn begin(path: &Path) -> io::Result<WholeFile> {
        // The target of a link is replaced, not the link.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let is_plain = fs::metadata(&path).map_or(true, |metadata| metadata.is_file());
        let (file, renaming) = match (is_plain, path.file_name()) {
            (true, Some(name)) => {
                let (file, partial) = create_beside(&path, name)?;
                (file, Some((partial, path.clone())))
            }
            _ => (File::options().write(true).open(&path)?, None),
        };
        let out = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(WholeFile { out, written: 0, renaming, failure: None })
    }

    /// Returns the error of writing, if there was one.
    pub fn failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// All is written: the file is there.
    ///
    /// # Errors
    /// An error of the system; that other bytes are there than were written. The file is as it was
    /// then.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()?;
        let Some((partial, path)) = &self.renaming else { return Ok(()) };
        let file = self.out.get_ref();
        file.sync_all()?;
        let found = file.metadata()?.len();
        if found != self.written {
            let what = format!("{found} bytes are there of {} that were written", self.written);
            return Err(io::Error::other(what));
        }
        if let Ok(before) = fs::metadata(path) {
            file.set_permissions(before.permissions())?;
        }
        fs::rename(partial, path)?;
        self.renaming = None;
        Ok(())
    }

    /// Remembers why writing failed: the caller may report it in other words.
    fn noting<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &done {
            self.failure = Some(match error.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code),
                None => io::Error::other(error.to_string()),
            });
        }
        done
    }
}

/// Makes a file beside `path`, which no other writer uses.
fn create_beside(path: &Path, name: &OsStr) -> io::Result<(File, PathBuf)> {
    for count in 0_u64.. {
        let mut partial = OsString::from(".");
        partial.push(name);
        partial.push(format!(".{}-{count}.partial", std::process::id()));
        let partial = path.with_file_name(partial);
        match File::create_new(&partial) {
            // Another thread's, or left by a process that had this number.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.map(|file| (file, partial)),
        }
    }
    unreachable!("numbers don't end")
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.out.write(bytes);
        let count = self.noting(done)?;
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.out.flush();
        self.noting(done)
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let Some((partial, _)) = &self.renaming {
            // Nothing of it may be taken for the file; more can't be done where this fails.
            let _ = fs::remove_file(partial);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_whole_or_as_it_was() {
        let directory = std::env::temp_dir().join(format!("frond-whole-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("made");
        let path = directory.join("a.json");
        let names = || {
            let mut names: Vec<String> = fs::read_dir(&directory)
                .expect("there")
                .map(|entry| entry.expect("read").file_name().to_string_lossy().into_owned())
                .collect();
            names.sort();
            names
        };
        let mut file = WholeFile::begin(&path).expect("begun");
        file.write_all(b"first").expect("written");
        assert!(!path.exists());
        file.finish().expect("finished");
        let mut file = WholeFile::begin(&path).expect("begun");
        file.write_all(&[b'x'; 100_000]).expect("written");
        drop(file);
        assert_eq!(fs::read(&path).expect("there"), b"first");
        assert_eq!(names(), ["a.json"]);
        let mut file = WholeFile::begin(&path).expect("begun");
        file.write_all(b"second").expect("written");
        file.finish().expect("finished");
        assert_eq!(fs::read(&path).expect("there"), b"second");
        assert_eq!(names(), ["a.json"]);
        fs::remove_dir_all(&directory).expect("removed");
    }

    #[test]
    fn two_who_write_one_file_write_beside_each_other() {
        let directory = std::env::temp_dir().join(format!("frond-two-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("made");
        let path = directory.join("a.json");
        let mut files = ["first", "other"].map(|_| WholeFile::begin(&path).expect("begun"));
        for (file, content) in files.iter_mut().zip([b"first", b"other"]) {
            file.write_all(content).expect("written");
            file.flush().expect("written");
        }
        for (file, content) in files.into_iter().zip([b"first", b"other"]) {
            file.finish().expect("finished");
            assert_eq!(fs::read(&path).expect("there"), content);
        }
        assert_eq!(fs::read_dir(&directory).expect("there").count(), 1);
        fs::remove_dir_all(&directory).expect("removed");
    }

    #[test]
    fn devices_and_pipes_are_written_in_place() {
        let mut full = WholeFile::begin(Path::new("/dev/full")).expect("opened");
        full.write_all(b"a").expect("buffered");
        assert_eq!(full.finish().expect_err("full").kind(), io::ErrorKind::StorageFull);
        let mut none = WholeFile::begin(Path::new("/dev/null")).expect("opened");
        none.write_all(b"a").expect("written");
        none.finish().expect("finished");
        assert!(WholeFile::begin(Path::new("/nonexistent/file")).is_err());
    }
}
