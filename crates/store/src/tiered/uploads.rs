//! Uploads packs: put into the bucket, listed by HEAD, and then removed from the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::sync::Weak;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::errors::{deposed, store_error};
use super::format::{HEAD_NAME, Head, Locations, Owner, PackObject, SlotId};
use super::head::{load_head, nonce};
use super::index_file;
use super::locations;
use super::{DOOMED_MICROS, Line, TieredDisk};
use crate::bucket::{Bucket, create_until_known, swap_until_known};
use crate::error::StoreError;
use crate::location::PackNumber;
use crate::manifest;
use crate::pack::table::format::{TRAILER_BYTES, parse_trailer};

/// What HEAD is to list.
struct Listed {
    packs: BTreeMap<PackNumber, PackObject>,
    locations: Vec<Locations>,
    manifest: Bytes,
    slot: Option<SlotId>,
}

impl TieredDisk {
    /// See [`Tier::take`](crate::io::Tier::take).
    pub(super) fn put_all(
        &self,
        files: &[(String, u64)],
        manifest: &[u8],
    ) -> Result<(), StoreError> {
        let mut line = self.line();
        if line.is_deposed {
            return Err(deposed());
        }
        let written = self.written.load(Ordering::Relaxed);
        // Before packs are put: while these are on their way, flushes note newer roots.
        let slot = self.needed_slot(manifest)?;
        let mut packs = BTreeMap::new();
        for (name, bytes) in files {
            let number = PackNumber::from_file_name(name).expect("what is put is a pack");
            let known = line.head.packs.get(&number).or_else(|| line.put.get(&number)).copied();
            let pack = match known.filter(|pack| pack.bytes == *bytes) {
                Some(pack) => pack,
                None => self.put_pack(&line, name, *bytes)?,
            };
            line.put.insert(number, pack);
            packs.insert(number, pack);
        }
        self.look_at_pins(&mut line);
        let locations = self.locate(&line, &packs)?;
        let listed = Listed { packs, locations, manifest: Bytes::copy_from_slice(manifest), slot };
        self.swap_head(&mut line, &listed)?;
        line.put.clear();
        if let (Some(slots), Some(first)) = (&self.slots, line.head.slot) {
            let keep_micros = i64::try_from(self.options.keep_slots.as_micros());
            let now_micros = self.clock.steady_micros();
            slots.remove_below(first, now_micros, keep_micros.unwrap_or(i64::MAX));
        }
        self.written.fetch_sub(written, Ordering::Relaxed);
        self.remove_doomed(&mut line);
        self.give_pins_back(&mut line, DOOMED_MICROS);
        self.move_down(&line.head)
    }

    /// Puts a sealed pack, under a name of its own.
    fn put_pack(&self, line: &Line, name: &str, bytes: u64) -> Result<PackObject, StoreError> {
        let io = |error| StoreError::io(name, error);
        let file = self.disk.open(name).map_err(io)?;
        let length = usize::try_from(bytes).map_err(|_| io(ErrorKind::FileTooLarge.into()))?;
        let mut whole = vec![0; length];
        file.read_exact_at(0, &mut whole).map_err(io)?;
        let trailer = &whole[length.saturating_sub(TRAILER_BYTES)..];
        let index = parse_trailer(trailer, bytes).map(|(offset, _)| offset);
        let index = index.ok_or_else(|| StoreError::damaged(name, bytes, "it has no index"))?;
        let (epoch, own) = (line.head.epoch, nonce(&*self.chance));
        let pack = PackObject { epoch, own, bytes, index, owner: Owner::THIS };
        let put = create_until_known(&*self.bucket, &pack.name(), &Bytes::from(whole));
        let taken = || io(io::Error::other("its object's name is taken"));
        put.map_err(store_error)?.ok_or_else(taken)?;
        Ok(pack)
    }

    /// Swaps HEAD to one that lists this. A state of this directory's whose swap had no answer
    /// may lie there: it goes on from that.
    fn swap_head(&self, line: &mut Line, listed: &Listed) -> Result<(), StoreError> {
        loop {
            let head = Head {
                generation: line.head.generation + 1,
                epoch: line.head.epoch,
                nonce: nonce(&*self.chance),
                leader: line.head.leader,
                packs: listed.packs.clone(),
                locations: listed.locations.clone(),
                manifest: listed.manifest.clone(),
                slot: listed.slot.or(line.head.slot),
                pins: line.watch.listed(&line.head.pins),
                sources: line.head.sources.clone(),
            };
            let swapped = swap_until_known(&*self.bucket, HEAD_NAME, &line.version, &head.encode());
            let now = self.clock.steady_micros();
            if let Some(version) = swapped.map_err(store_error)? {
                let stay: BTreeSet<String> = head.names().collect();
                let gone = line.head.names().filter(|name| !stay.contains(name));
                line.doomed.extend(gone.map(|name| (now, name)));
                locations::remove_files(&*self.disk, &line.head, &head);
                (line.head, line.version) = (head, version);
                return Ok(());
            }
            let own = load_head(&*self.bucket)?;
            let is_own = |(found, _): &(Head, _)| {
                found.leader == line.head.leader && found.epoch == line.head.epoch
            };
            let Some((found, version)) = own.filter(is_own) else {
                line.is_deposed = true;
                return Err(deposed());
            };
            // No other changes the sources; this directory may have, since.
            let sources = std::mem::take(&mut line.head.sources);
            (line.head, line.version) = (Head { sources, ..found }, version);
        }
    }

    /// The first slot of the log that is needed besides a manifest, if there is one and it isn't as
    /// before.
    fn needed_slot(&self, manifest: &[u8]) -> Result<Option<SlotId>, StoreError> {
        let Some(slots) = self.slots.as_ref().filter(|_| !manifest.is_empty()) else {
            return Ok(None);
        };
        Ok(slots.needed_with(&manifest::parse(manifest, HEAD_NAME)?.roots))
    }

    /// Removes objects that readers have had time to leave.
    fn remove_doomed(&self, line: &mut Line) {
        let now = self.clock.steady_micros();
        let is_due = |(since, _): &(i64, String)| DOOMED_MICROS <= now - since;
        if !line.doomed.iter().any(is_due) {
            return;
        }
        let kept = self.kept_by_pins(line);
        line.doomed.retain(|doomed| {
            !is_due(doomed) || kept.has(&doomed.1) || self.bucket.remove(&doomed.1).is_err()
        });
    }

    /// Lets packs that HEAD lists leave the disk, but for their indexes.
    fn move_down(&self, head: &Head) -> Result<(), StoreError> {
        self.forget_dropped(head);
        let mut moved = Vec::new();
        for (number, pack) in &head.packs {
            let name = number.to_string();
            let local = match self.disk.open(&name) {
                Ok(local) => local,
                // It left before, or a collection dropped it meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(StoreError::io(name, error)),
            };
            let mut index = vec![0; (pack.bytes - u64::from(pack.index)) as usize];
            let read = local.read_exact_at(u64::from(pack.index), &mut index);
            let written = read.and_then(|()| index_file::write_index(&*self.disk, *number, &index));
            written.map_err(|error| StoreError::io(name, error))?;
            moved.push((*number, *pack));
        }
        if moved.is_empty() {
            return Ok(());
        }
        self.disk.sync_directory().map_err(|error| StoreError::io(".", error))?;
        for (number, pack) in moved {
            let name = number.to_string();
            let remote = self.remote(number, pack).map_err(|error| StoreError::io(&name, error))?;
            // In this order: a reader that opens it finds it there or here.
            self.packs().insert(number, pack);
            if let Some(file) = self.files().get(&number).and_then(Weak::upgrade) {
                file.move_to(remote);
            }
            match self.disk.remove(&name) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(StoreError::io(name, error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Forgets packs that HEAD doesn't list any more.
    fn forget_dropped(&self, head: &Head) {
        let mut dropped = Vec::new();
        self.packs().retain(|number, _| {
            let stays = head.packs.contains_key(number);
            if !stays {
                dropped.push(*number);
            }
            stays
        });
        for number in dropped {
            self.extents.forget(number);
            let _ = self.disk.remove(&index_file::index_name(number));
        }
    }
}
