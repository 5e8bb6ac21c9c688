//! Reads a directory that can't be opened, and lists all damage in it: for `frond fsck`.
//!
//! Opening stops at the first damage, as it must. This goes on: a pack whose index is damaged is
//! scanned frame by frame; behind a damaged frame, the next whole one is searched for byte by byte.
//! Without a manifest, every pack in the directory is looked at. Nothing is changed.

use std::collections::{BTreeMap, HashSet};

use crate::chunk::{Chunk, ChunkHash};
use crate::copies;
use crate::error::StoreError;
use crate::hash::NameHasherBuilder;
use crate::io::{Disk, Machine};
use crate::location::FrameOffset;
use crate::location::{PackNumber, Purpose};
use crate::manifest::{self, LoadedManifest, MANIFEST_NAME, Manifest, PackEntry, PackState};
use crate::pack::Pack;
use crate::pack::reader::{Naming, Window, check_header, read_frame, read_index, scan_frames};

/// The contents of a directory.
#[derive(Debug, Default)]
pub struct ExamineReport {
    /// Chunks that are whole.
    pub chunks: u64,
    /// The faults.
    pub damages: Vec<StoreError>,
}

struct Examiner<'a> {
    disk: &'a dyn Disk,
    /// Takes chunks that are whole, if a rescue is wanted; then packs are read beyond their durable
    /// ends, too.
    rescue: Option<&'a mut dyn FnMut(Chunk) -> Result<(), StoreError>>,
    roots: Option<BTreeMap<String, ChunkHash>>,
    may_be_older: bool,
    progress: &'a mut dyn FnMut(u64),
    found: HashSet<ChunkHash, NameHasherBuilder>,
    damages: Vec<StoreError>,
}

/// Lists all damage in `machine`'s disk, which no process may have open. `progress` is called with
/// how many chunks are done, again and again.
///
/// # Errors
/// [`StoreError::Io`] if the disk does not answer; [`StoreError::Version`] if another version wrote
/// the manifest.
pub fn examine(
    machine: &Machine,
    progress: &mut dyn FnMut(u64),
) -> Result<ExamineReport, StoreError> {
    let disk = &*machine.disk;
    disk.lock().map_err(StoreError::of_lock)?;
    let found = HashSet::default();
    let damages = Vec::new();
    let mut examiner =
        Examiner { disk, rescue: None, roots: None, may_be_older: false, progress, found, damages };
    let result = examiner.directory();
    disk.unlock();
    result?;
    Ok(ExamineReport { chunks: examiner.found.len() as u64, damages: examiner.damages })
}

/// The result of a rescue.
#[derive(Debug, Default)]
pub struct Rescue {
    /// Chunks that are whole, and what isn't.
    pub examined: ExamineReport,
    /// The roots that the manifest has, if it can be read.
    pub roots: Option<BTreeMap<String, ChunkHash>>,
    /// Whether a later manifest may have had others: the copies that a directory has of it can't
    /// both be read.
    pub may_be_older: bool,
}

/// As [`examine`]; `take` gets every chunk that is whole, some more than once.
///
/// # Errors
/// As there, and what `take` says.
pub fn rescue(
    machine: &Machine,
    take: &mut dyn FnMut(Chunk) -> Result<(), StoreError>,
    progress: &mut dyn FnMut(u64),
) -> Result<Rescue, StoreError> {
    let disk = &*machine.disk;
    disk.lock().map_err(StoreError::of_lock)?;
    let (found, damages) = (HashSet::default(), Vec::new());
    let mut examiner = Examiner {
        disk,
        rescue: Some(take),
        roots: None,
        may_be_older: false,
        progress,
        found,
        damages,
    };
    let result = examiner.directory();
    disk.unlock();
    result?;
    let examined = ExamineReport { chunks: examiner.found.len() as u64, damages: examiner.damages };
    Ok(Rescue { examined, roots: examiner.roots, may_be_older: examiner.may_be_older })
}

impl Examiner<'_> {
    fn directory(&mut self) -> Result<(), StoreError> {
        self.copies()?;
        let manifest = match manifest::read(self.disk) {
            Ok(Some(LoadedManifest { manifest, damages, is_alone })) => {
                self.damages.extend(damages);
                self.may_be_older = is_alone;
                Some(manifest)
            }
            Ok(None) => None,
            Err(error) => {
                self.note(Err(error))?;
                None
            }
        };
        let Some(manifest) = manifest else {
            let names = self.disk.list().map_err(|error| StoreError::io(".", error))?;
            if self.damages.is_empty() && names.iter().any(|name| name.ends_with(".pack")) {
                let what = "missing, though there are packs";
                self.damages.push(StoreError::damaged(MANIFEST_NAME, 0, what));
            }
            for number in names.iter().filter_map(|name| PackNumber::from_file_name(name)) {
                self.unlisted_pack(number)?;
            }
            return Ok(());
        };
        self.roots = Some(manifest.roots.clone());
        for entry in &manifest.packs {
            let result = self.pack(entry, &manifest);
            self.note(result)?;
        }
        if self.may_be_older && self.rescue.is_some() {
            let names = self.disk.list().map_err(|error| StoreError::io(".", error))?;
            let numbers = names.iter().filter_map(|name| PackNumber::from_file_name(name));
            let is_listed =
                |number: &PackNumber| manifest.packs.iter().any(|it| it.number == *number);
            for number in numbers.filter(|number| !is_listed(number)) {
                self.unlisted_pack(number)?;
            }
        }
        for (name, hash) in manifest.roots.iter().filter(|(_, hash)| !self.found.contains(hash)) {
            let what = format!("root {name:?} names chunk {hash}, which is not whole");
            self.damages.push(StoreError::damaged(MANIFEST_NAME, 0, &what));
        }
        Ok(())
    }

    /// The second copies of chunks. Bytes behind the last whole one are no damage: a crash may
    /// have left them.
    fn copies(&mut self) -> Result<(), StoreError> {
        let Some(found) = copies::find(self.disk)? else { return Ok(()) };
        let end = found.places.iter().map(|(_, place)| place.end()).max().unwrap_or(0);
        for (_, place) in &found.places {
            self.frame(&found.pack, *place)?;
        }
        let is_inside = |damage: &StoreError| matches!(damage, StoreError::Damaged { offset, .. } if *offset < end);
        self.damages.extend(found.damages.into_iter().filter(is_inside));
        Ok(())
    }

    /// Keeps damage, and passes on anything else.
    fn note(&mut self, result: Result<(), StoreError>) -> Result<(), StoreError> {
        match result {
            Err(error @ StoreError::Damaged { .. }) => {
                self.damages.push(error);
                Ok(())
            }
            other => other,
        }
    }

    /// As `note`; what the disk doesn't give back of a pack is damage, too.
    fn note_read(
        &mut self,
        pack: &Pack,
        offset: u64,
        result: Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        match result {
            Err(StoreError::Io { source, .. }) => {
                self.damages.push(pack.damaged(offset, &format!("can't be read: {source}")));
                Ok(())
            }
            other => self.note(other),
        }
    }

    fn pack(&mut self, entry: &PackEntry, manifest: &Manifest) -> Result<(), StoreError> {
        let name = entry.number.to_string();
        let file = self.disk.open(&name).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => StoreError::damaged(&name, 0, "missing"),
            _ => StoreError::io(&name, error),
        })?;
        let pack = Pack::new(entry.number, entry.purpose, file);
        let aside = manifest.aside_in(entry.number);
        aside.for_each(|(_, aside)| pack.note_gap_end(u64::from(aside.end)));
        let bytes = pack.file.bytes().map_err(|error| pack.io(error))?;
        if bytes < entry.bytes {
            let what = format!("the file ends here, but {} bytes of it were durable", entry.bytes);
            self.damages.push(StoreError::damaged(&name, bytes, &what));
        }
        self.note_read(&pack, 0, check_header(&pack))?;
        if entry.state == PackState::Open || bytes < entry.bytes {
            let end = if self.rescue.is_some() { bytes } else { bytes.min(entry.bytes) };
            return self.frames(&pack, end);
        }
        match read_index(&pack, entry.bytes) {
            Ok(entries) => {
                let mut places: Vec<FrameOffset> =
                    entries.iter().map(|chunk| chunk.place).collect();
                places.sort_unstable();
                places.dedup();
                places.into_iter().try_for_each(|place| self.frame(&pack, place))
            }
            Err(error) => {
                self.note_read(&pack, 0, Err(error))?;
                self.frames(&pack, entry.bytes)
            }
        }
    }

    /// A pack about which nothing is known but its file: what follows its last frame may be an
    /// index.
    fn unlisted_pack(&mut self, number: PackNumber) -> Result<(), StoreError> {
        let name = number.to_string();
        let file = self.disk.open(&name).map_err(|error| StoreError::io(&name, error))?;
        let pack = Pack::new(number, Purpose::Working, file);
        let bytes = pack.file.bytes().map_err(|error| pack.io(error))?;
        self.note_read(&pack, 0, check_header(&pack))?;
        if let Ok(entries) = read_index(&pack, bytes) {
            let end = entries.iter().map(|chunk| chunk.place.end()).max().unwrap_or(0);
            return self.frames(&pack, end);
        }
        self.frames(&pack, bytes)
    }

    fn frame(&mut self, pack: &Pack, place: FrameOffset) -> Result<(), StoreError> {
        match read_frame(pack, place, Naming::ByHash) {
            Ok(chunks) => {
                for chunk in chunks {
                    let is_new = self.found.insert(chunk.hash());
                    if let Some(take) = self.rescue.as_mut().filter(|_| is_new) {
                        take(chunk)?;
                    }
                }
            }
            Err(error) => self.note_read(pack, u64::from(place.offset), Err(error))?,
        }
        (self.progress)(self.found.len() as u64);
        Ok(())
    }

    /// Looks at all frames of the pack's first `bytes_max` bytes, whatever lies between them.
    fn frames(&mut self, pack: &Pack, bytes_max: u64) -> Result<(), StoreError> {
        let mut offset = 0;
        for end in pack.part_ends(bytes_max) {
            self.frames_of_part(pack, offset, end)?;
            offset = end;
        }
        Ok(())
    }

    fn frames_of_part(
        &mut self,
        pack: &Pack,
        mut offset: u64,
        bytes_max: u64,
    ) -> Result<(), StoreError> {
        let mut window = Window::new(pack, bytes_max);
        loop {
            let scan = match scan_frames(&mut window, offset) {
                Ok(scan) => scan,
                Err(error) => return self.note_read(pack, offset, Err(error)),
            };
            let places: HashSet<FrameOffset> =
                scan.entries.iter().map(|chunk| chunk.place).collect();
            let mut places: Vec<FrameOffset> = places.into_iter().collect();
            places.sort_unstable();
            for place in places {
                self.frame(pack, place)?;
            }
            let Some(what) = scan.rest else { return Ok(()) };
            if window.is_index(scan.end)? {
                return Ok(());
            }
            self.damages.push(pack.damaged(scan.end, what));
            let Some(next) = window.next_frame(scan.end)? else { return Ok(()) };
            offset = next;
        }
    }
}
