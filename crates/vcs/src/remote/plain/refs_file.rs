//! The file of refs, and its copy.
//!
//! 1. `REFS` alone is in force, and swapped if it is what was read. Once it is, the same bytes are
//!    written to `REFS.copy`, unless that holds a later change already: refs count their changes.
//! 2. A reader that finds no `REFS`, or neither of the two records in it whole, takes the copy, and
//!    reports that. The next change writes both.
//!
//! A writer that is cut between the two leaves a copy that lacks the last change; so does one whose
//! copy can't be written: the change stands, and the next one writes the copy.

use bytes::Bytes;
use frond_db::inside::{Error, ErrorKind};

use super::PlainRemote;
use super::format::{REFS_BYTES_MAX, Refs, decode_refs, encode_refs};
use super::storage::FileVersion;

/// The file of refs.
pub(super) const REFS_NAME: &str = "REFS";
/// Its copy.
const COPY_NAME: &str = "REFS.copy";
/// The number of attempts at swapping the refs when others were faster.
const SWAP_ATTEMPTS_MAX: u32 = 1_000;
/// The number of attempts at swapping the copy: a writer that was faster has written a later one,
/// mostly.
const COPY_ATTEMPTS_MAX: u32 = 8;

impl PlainRemote {
    /// The refs, and what the file is now.
    pub(super) fn read_refs(&self) -> Result<(Refs, Option<FileVersion>), Error> {
        let found = self.place.load(REFS_NAME, REFS_BYTES_MAX)?;
        let (read, version) = match found {
            Some((bytes, version)) => (decode_refs(&bytes).map(Some), Some(version)),
            None => (Ok(None), None),
        };
        let why = match read {
            Ok(Some((refs, damage))) => {
                damage.into_iter().for_each(|error| self.note_refs(REFS_NAME, error));
                return Ok((refs, version));
            }
            Err(error) if error.kind != ErrorKind::Damaged => return Err(error),
            Err(error) => Some(error),
            Ok(None) => None,
        };
        match (self.read_copy(), why) {
            (Ok(Some((refs, _))), why) => {
                let why = why.map_or_else(|| "remote: REFS: is gone".to_owned(), |why| why.message);
                let error = Error::damaged(format!("{why}; {COPY_NAME} is in force"));
                self.note_refs(REFS_NAME, error);
                Ok((refs, version))
            }
            (_, Some(why)) => Err(why),
            (Ok(None), None) => Ok((Refs::default(), None)),
            (Err(error), None) => Err(error),
        }
    }

    /// Reads the copy, if there is one.
    fn read_copy(&self) -> Result<Option<(Refs, FileVersion)>, Error> {
        let Some((bytes, version)) = self.place.load(COPY_NAME, REFS_BYTES_MAX)? else {
            return Ok(None);
        };
        Ok(Some((decode_refs(&bytes)?.0, version)))
    }

    /// Notes whether the copy of `refs` is damaged, or gone.
    pub(super) fn check_copy(&self, refs: &Refs) -> Result<(), Error> {
        let damage = match self.place.load(COPY_NAME, REFS_BYTES_MAX)? {
            Some((bytes, _)) => decode_refs(&bytes).map_or_else(Some, |(_, damage)| damage),
            // The first change may have been cut before.
            None if refs.changes <= 1 => None,
            None => Some(Error::damaged("remote: is gone")),
        };
        if let Some(error) = damage {
            let what = error.message.replacen(REFS_NAME, COPY_NAME, 1);
            self.note_refs(COPY_NAME, Error::damaged(what));
        }
        Ok(())
    }

    /// Changes the refs by `change`, which is called again if another writer changed them
    /// meanwhile.
    pub(super) fn change_refs(
        &self,
        change: &mut dyn FnMut(&mut Refs) -> Result<(), Error>,
    ) -> Result<Refs, Error> {
        for _ in 0..SWAP_ATTEMPTS_MAX {
            let (mut refs, version) = self.read_refs()?;
            change(&mut refs)?;
            if self.swap_refs(version.as_ref(), &mut refs)? {
                return Ok(refs);
            }
        }
        Err(Error::unavailable("the remote's refs are being changed by many others: try again"))
    }

    /// Replaces the refs, if the file is what it was. Returns whether it was.
    pub(super) fn swap_refs(
        &self,
        version: Option<&FileVersion>,
        refs: &mut Refs,
    ) -> Result<bool, Error> {
        refs.changes += 1;
        let bytes = Bytes::from(encode_refs(refs));
        let mut is_done = self.place.swap(REFS_NAME, version, bytes.clone())?;
        if !is_done {
            // Or it was swapped, and the answer was lost on its way.
            let now = self.place.load(REFS_NAME, REFS_BYTES_MAX)?;
            is_done = now.is_some_and(|(now, _)| now == bytes);
        }
        if is_done {
            // The change stands in any case.
            let _ = self.write_copy(refs.changes, &bytes);
        }
        Ok(is_done)
    }

    /// Writes the copy, unless it holds a later change.
    fn write_copy(&self, changes: u64, bytes: &Bytes) -> Result<(), Error> {
        for _ in 0..COPY_ATTEMPTS_MAX {
            let found = self.place.load(COPY_NAME, REFS_BYTES_MAX)?;
            if let Some((found, _)) = &found
                && decode_refs(found).is_ok_and(|(found, _)| changes <= found.changes)
            {
                break;
            }
            let version = found.as_ref().map(|(_, version)| version);
            if self.place.swap(COPY_NAME, version, bytes.clone())? {
                break;
            }
        }
        Ok(())
    }
}
