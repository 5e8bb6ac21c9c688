//! The state of a simulated disk: for each file and for the directory, what is durable, what is
//! visible now, and the pending steps between the two.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::random::Random;

/// A disk promises to write this much at once or not at all; some do, so half of the tears keep to
/// it.
const SECTOR_BYTES: usize = 512;

/// What Linux says where a process has as many open files as it may (`EMFILE`).
const NO_MORE_FILES: i32 = 24;

/// A file, whatever it is called now.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct FileId(u64);

/// A change of the directory.
#[derive(Clone)]
pub(super) enum NameChange {
    Create { name: String, file: FileId },
    Rename { from: String, to: String },
    Remove { name: String },
}

impl NameChange {
    /// The name that is there afterwards, or isn't any more.
    fn name(&self) -> &str {
        match self {
            NameChange::Create { name, .. } | NameChange::Remove { name } => name,
            NameChange::Rename { to, .. } => to,
        }
    }

    fn apply(&self, names: &mut BTreeMap<String, FileId>) {
        match self {
            NameChange::Create { name, file } => {
                names.insert(name.clone(), *file);
            }
            NameChange::Rename { from, to } => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
            NameChange::Remove { name } => {
                names.remove(name);
            }
        }
    }
}

#[derive(Clone)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    SetBytes(usize),
}

impl Change {
    fn apply(&self, contents: &mut Vec<u8>) {
        match self {
            Change::Write { offset, bytes } => write_at(contents, *offset, bytes),
            Change::SetBytes(bytes) => contents.resize(*bytes, 0),
        }
    }

    /// Applies as much of this change as a power cut leaves.
    fn apply_by_chance(&self, contents: &mut Vec<u8>, random: &mut Random) {
        let (offset, bytes) = match self {
            Change::Write { offset, bytes } => (*offset, bytes),
            Change::SetBytes(_) if random.one_in(2) => return,
            Change::SetBytes(_) => return self.apply(contents),
        };
        match random.below(8) {
            0..=2 => (),
            3 => lengthen(contents, offset + bytes.len()),
            4 => write_at(contents, offset, &bytes[..random.below(bytes.len() + 1)]),
            5 => {
                // Sectors reach the disk in any order: each is there or not.
                lengthen(contents, offset + bytes.len());
                for (position, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
                    if random.one_in(2) {
                        write_at(contents, offset + position * SECTOR_BYTES, sector);
                    }
                }
            }
            _ => self.apply(contents),
        }
    }
}

fn lengthen(contents: &mut Vec<u8>, bytes: usize) {
    contents.resize(contents.len().max(bytes), 0);
}

fn write_at(contents: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    lengthen(contents, offset + bytes.len());
    contents[offset..offset + bytes.len()].copy_from_slice(bytes);
}

#[derive(Clone, Default)]
pub(super) struct FileState {
    /// The content that every read sees.
    pub(super) now: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
}

impl FileState {
    fn change(&mut self, change: Change) {
        change.apply(&mut self.now);
        self.pending.push(change);
    }

    /// Whether one of the pending writes has these bytes.
    fn has_pending(&self, sought: &[u8]) -> bool {
        self.pending.iter().any(|change| match change {
            Change::Write { bytes, .. } => bytes.windows(sought.len()).any(|some| some == sought),
            Change::SetBytes(_) => false,
        })
    }

    fn make_durable(&mut self) {
        self.pending.drain(..).for_each(|change| change.apply(&mut self.durable));
    }

    fn settle_by_chance(&mut self, random: &mut Random) {
        for change in self.pending.drain(..) {
            change.apply_by_chance(&mut self.durable, random);
        }
    }

    pub(super) fn damage(&mut self, byte: usize, mask: u8) {
        self.now[byte] ^= mask;
        if let Some(byte) = self.durable.get_mut(byte) {
            *byte ^= mask;
        }
    }
}

/// Everything behind a [`super::SimDisk`].
pub(super) struct State {
    files: BTreeMap<FileId, FileState>,
    files_made: u64,
    /// Files that the disk doesn't give back.
    unreadable: BTreeSet<FileId>,
    /// The names that every look-up sees.
    pub(super) names: BTreeMap<String, FileId>,
    /// The files that are open, each as often as it is.
    pub(super) open: Vec<FileId>,
    names_durable: BTreeMap<String, FileId>,
    names_pending: Vec<NameChange>,
    pub(super) random: Random,
    pub(super) operations: u64,
    pub(super) power_fails_at: Option<u64>,
    pub(super) writes_until_failure: Option<u64>,
    pub(super) syncs_until_failure: Option<u64>,
    /// The sync of a file to which these bytes are pending fails.
    pub(super) sync_fails_of: Option<Vec<u8>>,
    pub(super) name_changes_until_failure: Option<u64>,
    pub(super) bytes_free: Option<u64>,
    /// The most bytes of all files together; freed bytes can be written again.
    pub(super) capacity: Option<u64>,
    /// The number of files that may be open at once.
    pub(super) open_max: Option<usize>,
    pub(super) dead: bool,
    /// The file of the operation during which the power failed.
    pub(super) lost_power_at: Option<String>,
    pub(super) locked: bool,
}

impl State {
    pub(super) fn new(seed: u64) -> State {
        State {
            files: BTreeMap::new(),
            files_made: 0,
            unreadable: BTreeSet::new(),
            names: BTreeMap::new(),
            open: Vec::new(),
            names_durable: BTreeMap::new(),
            names_pending: Vec::new(),
            random: Random::new(seed),
            operations: 0,
            power_fails_at: None,
            writes_until_failure: None,
            syncs_until_failure: None,
            sync_fails_of: None,
            name_changes_until_failure: None,
            bytes_free: None,
            capacity: None,
            open_max: None,
            dead: false,
            lost_power_at: None,
            locked: false,
        }
    }

    pub(super) fn file(&mut self, file: FileId) -> &mut FileState {
        self.files.get_mut(&file).expect("files are never forgotten while a disk lives")
    }

    pub(super) fn new_file(&mut self) -> FileId {
        let file = FileId(self.files_made);
        self.files_made += 1;
        self.files.insert(file, FileState::default());
        file
    }

    pub(super) fn set_contents(&mut self, name: &str, contents: &[u8]) {
        let file = self.new_file();
        let (now, durable) = (contents.to_vec(), contents.to_vec());
        self.files.insert(file, FileState { now, durable, pending: Vec::new() });
        self.names.insert(name.to_owned(), file);
        self.names_durable.insert(name.to_owned(), file);
    }

    pub(super) fn make_unreadable(&mut self, name: &str) {
        self.unreadable.insert(self.names[name]);
    }

    pub(super) fn check_readable(&self, file: FileId) -> io::Result<()> {
        self.check_alive()?;
        match self.unreadable.contains(&file) {
            true => Err(io::Error::other("simulated unreadable sector")),
            false => Ok(()),
        }
    }

    pub(super) fn check_alive(&self) -> io::Result<()> {
        if self.dead { Err(no_power()) } else { Ok(()) }
    }

    /// Fails where no more files may be open.
    pub(super) fn check_may_open(&self) -> io::Result<()> {
        self.check_alive()?;
        match self.open_max {
            Some(max) if max <= self.open.len() => Err(io::Error::from_raw_os_error(NO_MORE_FILES)),
            _ => Ok(()),
        }
    }

    /// Counts an operation. Returns whether the power fails during it: then its effect is still to
    /// be made pending, and the caller gets the error.
    fn begin_operation(&mut self, name: impl FnOnce(&State) -> String) -> io::Result<bool> {
        self.check_alive()?;
        self.dead = self.power_fails_at.is_some_and(|last| last <= self.operations);
        self.operations += 1;
        if self.dead {
            self.lost_power_at = Some(name(self));
        }
        Ok(self.dead)
    }

    fn name_of(&self, file: FileId) -> String {
        let named = self.names.iter().find(|(_, other)| **other == file);
        named.map(|(name, _)| name.clone()).unwrap_or_default()
    }

    pub(super) fn change_name(&mut self, change: NameChange) -> io::Result<()> {
        let power_fails = self.begin_operation(|_| change.name().to_owned())?;
        if countdown(&mut self.name_changes_until_failure) {
            return Err(io::Error::other("simulated failure of a change of names"));
        }
        change.apply(&mut self.names);
        self.names_pending.push(change);
        if power_fails { Err(no_power()) } else { Ok(()) }
    }

    pub(super) fn write(&mut self, file: FileId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let power_fails = self.begin_operation(|state| state.name_of(file))?;
        let offset = usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let mut written = bytes.len();
        let mut result = if power_fails { Err(no_power()) } else { Ok(()) };
        if countdown(&mut self.writes_until_failure) {
            written = self.random.below(written + 1);
            result = Err(io::Error::other("simulated failure of a write"));
        }
        let bytes_before = self.file(file).now.len();
        if let Some(room) = self.room() {
            let room = usize::try_from(room).unwrap_or(usize::MAX);
            if (offset + written).saturating_sub(bytes_before) > room {
                written = (bytes_before + room).saturating_sub(offset);
                result = Err(io::ErrorKind::StorageFull.into());
            }
        }
        if let Some(free) = &mut self.bytes_free {
            let growth = |written: usize| (offset + written).saturating_sub(bytes_before);
            let room = usize::try_from(*free).unwrap_or(usize::MAX);
            if growth(written) > room {
                written = (bytes_before + room).saturating_sub(offset);
                result = Err(io::ErrorKind::StorageFull.into());
            }
            *free -= if written > 0 { growth(written) as u64 } else { 0 };
        }
        if written > 0 {
            let bytes = bytes[..written].to_vec();
            self.file(file).change(Change::Write { offset, bytes });
        }
        result
    }

    /// The bytes by which files may still grow, if the disk has a capacity. A file without a name
    /// takes no space: no caller holds such a file for long.
    pub(super) fn room(&self) -> Option<u64> {
        let taken = |file: &FileId| self.files[file].now.len() as u64;
        let capacity = self.capacity?;
        Some(capacity.saturating_sub(self.names.values().map(taken).sum()))
    }

    pub(super) fn set_bytes(&mut self, file: FileId, bytes: u64) -> io::Result<()> {
        let power_fails = self.begin_operation(|state| state.name_of(file))?;
        let bytes = usize::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.file(file).change(Change::SetBytes(bytes));
        if power_fails { Err(no_power()) } else { Ok(()) }
    }

    pub(super) fn sync_file(&mut self, file: FileId) -> io::Result<()> {
        if self.begin_operation(|state| state.name_of(file))? {
            return Err(no_power());
        }
        let sought = self.sync_fails_of.take();
        let is_sought = sought.as_ref().is_some_and(|bytes| self.file(file).has_pending(bytes));
        if !is_sought {
            self.sync_fails_of = sought;
        }
        if countdown(&mut self.syncs_until_failure) || is_sought {
            let mut random = Random::new(self.random.next());
            self.file(file).settle_by_chance(&mut random);
            return Err(io::Error::other("simulated failure of a sync"));
        }
        self.file(file).make_durable();
        Ok(())
    }

    pub(super) fn sync_names(&mut self) -> io::Result<()> {
        let last = |state: &State| state.names_pending.last().map(|it| it.name().to_owned());
        if self.begin_operation(|state| last(state).unwrap_or_default())? {
            return Err(no_power());
        }
        if countdown(&mut self.syncs_until_failure) {
            return Err(io::Error::other("simulated failure of a sync"));
        }
        let changes = std::mem::take(&mut self.names_pending);
        changes.iter().for_each(|change| change.apply(&mut self.names_durable));
        Ok(())
    }

    pub(super) fn after_power_cut(&mut self) -> State {
        let mut after = State::new(self.random.next());
        let mut names = self.names_durable.clone();
        let kept = self.random.below(self.names_pending.len() + 1);
        self.names_pending[..kept].iter().for_each(|change| change.apply(&mut names));
        for (name, id) in names {
            let mut file = self.file(id).clone();
            let mut random = Random::new(self.random.next());
            file.settle_by_chance(&mut random);
            after.set_contents(&name, &file.durable);
            if self.unreadable.contains(&id) {
                after.make_unreadable(&name);
            }
        }
        after.capacity = self.capacity;
        after
    }

    pub(super) fn after_kill(&mut self) -> State {
        let mut after = State::new(self.random.next());
        after.files = self.files.clone();
        after.files_made = self.files_made;
        after.unreadable = self.unreadable.clone();
        after.names = self.names.clone();
        after.names_durable = self.names_durable.clone();
        after.names_pending = self.names_pending.clone();
        after.capacity = self.capacity;
        after
    }
}

/// Counts down; true once, when the count was used up before this call.
fn countdown(left: &mut Option<u64>) -> bool {
    match left {
        Some(0) => {
            *left = None;
            true
        }
        Some(count) => {
            *count -= 1;
            false
        }
        None => false,
    }
}

fn no_power() -> io::Error {
    io::Error::other("simulated power cut")
}
