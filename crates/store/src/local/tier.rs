//! Sends sealed packs to the disk's tier, if it has one.
//!
//! One state is sent: the roots as they are, and packs that hold all chunks that these reach.
//! 1. Under the publisher's lock, seal the open packs and publish the manifest. No root can be
//!    swapped meanwhile, so what each root reaches was put before and lies in a sealed pack; no
//!    pack can be dropped, so what a collection moves after the sealing still lies where it was.
//! 2. Send the packs that aren't there, and the manifest, of these packs and roots alone. One pack
//!    at a time is in memory meanwhile: the cache gives way to it before.
//!
//! *Roots*. One may be of use only together with a log that the tier doesn't have. A root of the
//! same name and [`SELF_CONTAINED_SUFFIX`] names what a directory without the log gets instead;
//! where there is none yet, the packs are sent, and no manifest.

use std::collections::BTreeMap;

use super::LocalStore;
use crate::chunk::ChunkHash;
use crate::error::StoreError;
use crate::io::{Due, Tier};
use crate::manifest::{self, Manifest, PackState};
use crate::pack::writer::Written;

/// See the module.
pub const SELF_CONTAINED_SUFFIX: &str = ".whole";

impl LocalStore {
    /// Sends packs if so much was written, or has them sent.
    ///
    /// # Errors
    /// As `send_sealed`, where nothing more may be written before.
    pub(super) fn send_when_due(&self) -> Result<(), StoreError> {
        let due = self.disk.tier().map_or(Due::No, Tier::due);
        if due == Due::No || self.sending.want() {
            return Ok(());
        }
        match due {
            Due::Now => self.send_sealed(),
            _ => {
                // A failed attempt is repeated by the next thread that puts.
                if let Ok(_one) = self.sender.try_lock() {
                    let _ = self.send();
                }
                Ok(())
            }
        }
    }

    /// Sends all packs, or has them sent.
    ///
    /// # Errors
    /// As `send_sealed`, where no thread sends.
    pub(super) fn send_soon(&self) -> Result<(), StoreError> {
        if self.sending.want() { Ok(()) } else { self.send_sealed() }
    }

    /// Sends all packs.
    ///
    /// # Errors
    /// [`StoreError`]; if another directory has the place now, nothing is written here any more.
    pub(super) fn send_sealed(&self) -> Result<(), StoreError> {
        let _one = self.sender.lock().expect("no panic while the lock is held");
        self.send()
    }

    fn send(&self) -> Result<(), StoreError> {
        let Some(tier) = self.disk.tier() else { return Ok(()) };
        let mut manifest = self.seal_and_publish()?;
        let files: Vec<(String, u64)> =
            manifest.packs.iter().map(|pack| (pack.number.to_string(), pack.bytes)).collect();
        let mut bytes = Vec::new();
        if let Some(roots) = whole_roots(&manifest.roots) {
            manifest.roots = roots;
            bytes = manifest::encode(&manifest);
        }
        let _in_memory = self.cache.reserve(tier.state().bytes_waiting.min(self.pack_bytes_target));
        let taken = tier.take(&files, &bytes);
        taken.map_err(|error| if tier.is_deposed() { self.poison(error) } else { error })
    }

    /// Step 1: the state that is to be sent.
    fn seal_and_publish(&self) -> Result<Manifest, StoreError> {
        let mut publisher = self.publisher();
        self.check_poison()?;
        {
            let mut writer = self.writer();
            let mut written = Written::default();
            let sealed = writer.seal_all(&mut written);
            self.note_written(written);
            sealed?;
        }
        self.sync_packs(&mut publisher)?;
        if publisher.packs != publisher.manifest.packs {
            let roots = publisher.manifest.roots.clone();
            self.publish(&mut publisher, roots)?;
        }
        let mut manifest = publisher.manifest.clone();
        manifest.packs.retain(|pack| pack.state == PackState::Sealed);
        let packs = &manifest.packs;
        manifest.aside.retain(|(pack, _), _| packs.iter().any(|entry| entry.number == *pack));
        Ok(manifest)
    }
}

/// Returns the roots for a directory without the log; `None`: there are none of this kind yet.
fn whole_roots(roots: &BTreeMap<String, ChunkHash>) -> Option<BTreeMap<String, ChunkHash>> {
    let is_whole = |name: &String| name.ends_with(SELF_CONTAINED_SUFFIX);
    roots.keys().any(is_whole).then(|| {
        let instead = |(name, hash): (&String, &ChunkHash)| {
            let whole = roots.get(&format!("{name}{SELF_CONTAINED_SUFFIX}"));
            (name.clone(), *whole.unwrap_or(hash))
        };
        roots.iter().map(instead).collect()
    })
}
