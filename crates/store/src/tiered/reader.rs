//! A directory that reads what another one leads, and changes nothing in the bucket.
//!
//! 1. It has nothing of its own: each opening removes all but the indexes of packs and the extents
//!    that it has, and begins with HEAD's manifest. What its engine writes since (runs, folds)
//!    stays on the disk until the next opening, which comes when that is much.
//! 2. It says so in the file that says which bucket it belongs to: its id is zeros, which no leader
//!    has. So neither is taken for the other.
//! 3. Where the log lies in the bucket, it is read on ([`Slots::read_on`](super::Slots::read_on)):
//!    what it has is always a beginning of what is acknowledged.
//! 4. What HEAD lists no more goes 75 minutes later, or at once where bytes must be gone. Then, and
//!    where the log begins behind what it has read, it is to be opened again
//!    ([`TieredDisk::is_outdated`]).

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::format::Membership;
use super::head::{DEPOT_NAME, load_head};
use super::index_file::{self, INDEX_SUFFIX};
use super::lead::{
    Lead, NOBODY, begin_with, fetch_indexes, has_manifest, outlines, read_membership,
    write_membership,
};
use super::pins::Places;
use super::{TieredDisk, TieredOptions, is_own};
use crate::bucket::Bucket;
use crate::error::StoreError;
use crate::io::{Disk, Machine};
use crate::unrelated_files::is_unrelated;

/// A reader whose engine has written more than so many times what a leader keeps on the disk, and
/// than its cache may take, begins anew where there is something newer: nothing is collected there.
const OWN_TIMES: u64 = 4;

/// What a directory of `machine`'s begins to read.
///
/// # Errors
/// [`StoreError::Io`]: the disk or the bucket doesn't answer, there is nothing to read, or the
/// directory has data of its own.
pub(super) fn begin(
    machine: &Machine,
    own: &Arc<dyn Bucket>,
    options: &TieredOptions,
) -> Result<Lead, StoreError> {
    let (disk, bucket) = (&*machine.disk, &**own);
    let refused = |what: String| StoreError::io(DEPOT_NAME, io::Error::other(what));
    let place = &options.place;
    match read_membership(disk)? {
        Some(member) if member.id != NOBODY => {
            return Err(refused(format!("this directory leads {}: name another", member.place)));
        }
        None if has_manifest(disk)? => {
            return Err(refused(
                "this directory has data of its own: name an empty one".to_owned(),
            ));
        }
        Some(member) if member.place == *place => {}
        member => {
            if let (None, Some(name)) = (member, unrelated_file_on(disk)?) {
                let what = format!("it holds {name}, which isn't Frond's: name an empty directory");
                return Err(refused(what));
            }
            write_membership(disk, &Membership { id: NOBODY, place: place.clone() })?;
        }
    }
    let found = load_head(bucket)?.filter(|(head, _)| !head.manifest.is_empty());
    let (head, version) = found.ok_or_else(|| {
        refused(format!("{place} has nothing whole yet: there is nothing to read"))
    })?;
    let io = |error| StoreError::io(".", error);
    let needed: BTreeSet<String> = head.packs.keys().copied().map(index_file::index_name).collect();
    for name in disk.list().map_err(io)? {
        let stays = match name.ends_with(INDEX_SUFFIX) {
            true => needed.contains(&name),
            false => is_own(&name) || name == "LOCK" || is_unrelated(&name),
        };
        if !stays {
            disk.remove(&name).map_err(io)?;
        }
    }
    let mut begun = Lead::new(head, version);
    let places = Places::of(own, &begun.head)?;
    begun.outlines = outlines(disk, &places, &begun.head, &[])?;
    fetch_indexes(disk, &places, &begun)?;
    begin_with(disk, &begun.head.manifest)?;
    Ok(begun)
}

/// A file that keeps a directory from becoming a reader's, which removes what it doesn't know.
fn unrelated_file_on(disk: &dyn Disk) -> Result<Option<String>, StoreError> {
    let names = disk.list().map_err(|error| StoreError::io(".", error))?;
    Ok(names.into_iter().filter(|name| is_unrelated(name)).min())
}

impl TieredDisk {
    /// Whether a reader is to be opened again: something that it may read is gone or goes soon, or
    /// there is something newer that it can't come to by reading on.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the bucket doesn't answer; [`StoreError::Damaged`] or
    /// [`StoreError::Version`] of HEAD.
    pub fn is_outdated(&self) -> Result<bool, StoreError> {
        let Some((head, _)) = load_head(&*self.bucket)? else { return Ok(true) };
        let line = self.line();
        let TieredOptions { cache_bytes, local_bytes_max, .. } = self.options;
        let own_bytes_max = cache_bytes.max(local_bytes_max.saturating_mul(OWN_TIMES));
        let is_full = own_bytes_max < self.written.load(Ordering::Relaxed);
        if is_full && head.generation != line.head.generation {
            return Ok(true);
        }
        let has_all = line.head.packs.iter().all(|(number, pack)| {
            head.packs.get(number).is_some_and(|other| other.own == pack.own)
        });
        Ok(match (&self.slots, head.slot) {
            (Some(slots), Some(first)) => !has_all || slots.position() < first,
            _ => head.manifest != line.head.manifest,
        })
    }
}
