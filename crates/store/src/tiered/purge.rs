//! What was dropped goes from the bucket at once, since its bytes must be gone.
//!
//! The caller has sent what is there now, so HEAD lists only what stays, and needs no slot of the
//! log from before. Then go
//! 1. objects that HEAD listed and doesn't any more, whose time for readers isn't over;
//! 2. packs and locations that no HEAD listed, of this epoch (a put whose answer was lost, say) and
//!    of earlier ones;
//! 3. slots of the log that HEAD needs no more, and that readers may come to yet;
//! 4. what lies in the file of extents.
//!
//! What clones rely on stays ([`pins`](super::pins)), and the purge fails in the end and says so. A
//! clone that has nothing of its source any more gives its pin back, so that this goes there.
//!
//! A reader that holds a pack of 1 finds nothing there, looks the chunk up again, and finds it in
//! the pack that it was moved to.
//!
//! *What stays*: a list may be old, so an object of 2 may be missed that was put a moment ago. It
//! goes after the next opening. What a bucket keeps of removed objects by itself (versions) is its
//! operator's.

use std::collections::BTreeSet;
use std::io;

use super::TieredDisk;
use super::errors::{deposed, store_error};
use super::extents::EXTENTS_NAME;
use super::format::{LOCATIONS_PREFIX, PACKS_PREFIX, PackObject, epoch_of};
use crate::bucket::Bucket;
use crate::error::StoreError;

/// So many objects are removed together.
const REMOVED_TOGETHER: usize = 64;

impl TieredDisk {
    /// See the module.
    ///
    /// # Errors
    /// [`StoreError::Io`]: the bucket doesn't answer, or another directory leads; some of it may
    /// still be there.
    pub(super) fn remove_all_dropped(&self) -> Result<(), StoreError> {
        let mut line = self.line();
        if line.is_deposed {
            return Err(deposed());
        }
        let kept = self.kept_by_pins(&mut line);
        let is_kept = |(_, name): &(i64, String)| kept.has(name);
        let (pinned, mut gone): (Vec<_>, Vec<_>) =
            std::mem::take(&mut line.doomed).into_iter().partition(is_kept);
        // What fails halfway goes on there when it is tried again.
        let mut removed = Ok(());
        while !gone.is_empty() && removed.is_ok() {
            let some = gone.iter().take(REMOVED_TOGETHER);
            let names: Vec<String> = some.map(|(_, name)| name.clone()).collect();
            removed = self.bucket.remove_many(&names).map_err(store_error);
            if removed.is_ok() {
                gone.drain(..names.len());
            }
        }
        let mut pinned_count = pinned.len();
        line.doomed = pinned;
        line.doomed.append(&mut gone);
        removed?;
        let put = line.put.values().map(PackObject::name);
        let stay: BTreeSet<String> = line.head.names().chain(put).collect();
        let is_left = |name: &String| {
            epoch_of(name).is_some_and(|epoch| epoch <= line.head.epoch) && !stay.contains(name)
        };
        let mut left = self.bucket.list(PACKS_PREFIX).map_err(store_error)?;
        left.extend(self.bucket.list(LOCATIONS_PREFIX).map_err(store_error)?);
        left.retain(is_left);
        let doomed: BTreeSet<&String> = line.doomed.iter().map(|(_, name)| name).collect();
        pinned_count += left.iter().filter(|it| kept.has(it) && !doomed.contains(it)).count();
        left.retain(|name| !kept.has(name));
        self.bucket.remove_many(&left).map_err(store_error)?;
        if let (Some(slots), Some(first)) = (&self.slots, line.head.slot) {
            let is_gone = slots.remove_below(first, self.clock.steady_micros(), 0);
            let what = "slots of the log that nothing needs can't be removed";
            is_gone
                .then_some(())
                .ok_or_else(|| StoreError::io("the bucket", io::Error::other(what)))?;
        }
        self.give_pins_back(&mut line, 0);
        self.extents.clear().map_err(|error| StoreError::io(EXTENTS_NAME, error))?;
        match pinned_count {
            0 => Ok(()),
            count => Err(TieredDisk::kept_error(&line, count)),
        }
    }
}
