//! Takes the lead of a line: of what is stored under one place in a bucket, and written by one
//! directory at a time.
//!
//! 1. The directory says who it is, in a file of its own; HEAD says who leads. A directory that
//!    leads goes on. One that holds data, while another leads, has lost the line, and is refused;
//!    so is one that is older than what it sent.
//!    An empty one may take over if its operator says so.
//! 2. HEAD is swapped to this directory and an epoch that is higher by one. From then on no other
//!    swaps it: its condition is broken. Where the leader that is deposed was faster, what it has
//!    put there is taken over.
//! 3. A directory without a manifest gets HEAD's.
//! 4. Objects of earlier epochs that HEAD doesn't list count as dropped: their writers can't list
//!    them any more, and readers may hold them yet. Slots of the log that it doesn't need go at
//!    once. Packs that HEAD lists and the bucket has lost are noted.
//!
//! *Crash*: before 2, nothing has changed but that the directory has a name. Between 2 and 3 HEAD
//! says that this directory leads, which goes on with 3.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::Arc;

use bytes::Bytes;

use super::errors::store_error;
use super::format::{
    HEAD_NAME, Head, LOCATIONS_PREFIX, Membership, Nonce, Owner, PACKS_PREFIX, PackObject, epoch_of,
};
use super::head::{DEPOT_NAME, load_head, nonce, refused};
use super::locations::{self, Outlines};
use super::pins::{self, Holder, Places};
use super::slots;
use super::{DEPOT_NEW_NAME, LogPlace, TieredOptions, index_file};
use crate::bucket::{Bucket, ObjectPart, ObjectVersion, create_until_known, swap_until_known};
use crate::error::StoreError;
use crate::io::{Chance, Disk, Machine};
use crate::location::PackNumber;
use crate::manifest::{self, MANIFEST_NAMES, PublishError};

/// The id of a directory that reads, and leads nothing.
pub(super) const NOBODY: Nonce = [0; 16];
/// How often HEAD is swapped that its leader swaps meanwhile: it does so once a second at most.
const SWAPS_MAX: u32 = 16;

/// A line that is led.
pub(super) struct Lead {
    pub(super) head: Head,
    pub(super) version: ObjectVersion,
    /// Packs of `head` that the bucket has lost.
    pub(super) lost: Vec<PackNumber>,
    /// Objects that earlier epochs put, and that HEAD doesn't list.
    pub(super) left: Vec<String>,
    /// The outlines of packs of `head`.
    pub(super) outlines: Outlines,
    /// What the operator is to read.
    pub(super) notices: Vec<String>,
}

impl Lead {
    /// One of which nothing more is known.
    pub(super) fn new(head: Head, version: ObjectVersion) -> Lead {
        let (lost, left, notices) = (Vec::new(), Vec::new(), Vec::new());
        Lead { head, version, lost, left, outlines: Outlines::new(), notices }
    }
}

/// See the module.
///
/// # Errors
/// As [`TieredDisk::open`](super::TieredDisk::open).
pub(super) fn take(
    machine: &Machine,
    own: &Arc<dyn Bucket>,
    options: &TieredOptions,
) -> Result<Lead, StoreError> {
    let (disk, bucket) = (&*machine.disk, &**own);
    let member = read_membership(disk)?;
    if let Some(member) = member.as_ref().filter(|member| member.place != options.place) {
        let what = format!("its packs lie in {}, not in {}", member.place, options.place);
        return Err(refused(what));
    }
    let found = load_head(bucket)?;
    let has_manifest = has_manifest(disk)?;
    if has_manifest && member.as_ref().is_some_and(|member| member.id == NOBODY) {
        let what = "this directory reads what another one leads (--store-read-only): name another";
        return Err(refused(what.to_owned()));
    }
    // One that was to read, and has read nothing yet, may lead.
    let member = member.filter(|member| member.id != NOBODY);
    let head = found.as_ref().map(|(head, _)| head);
    check(disk, member.as_ref(), has_manifest, (head, options))?;
    let id = match &member {
        Some(member) => member.id,
        None => {
            let id = nonce(&*machine.chance);
            write_membership(disk, &Membership { id, place: options.place.clone() })?;
            id
        }
    };
    let holder = Holder {
        chance: &*machine.chance,
        now_micros: machine.clock.now_micros(),
        place: &options.place,
        lease_micros: options.pin_lease_micros(),
    };
    let mut taken = match (&options.clone_of, found) {
        (Some(source), None) => pins::begin_clone(holder, bucket, source, id)?,
        (_, found) => depose(&holder, own, (found, id), |head| {
            check(disk, member.as_ref(), has_manifest, (head, options))
        })?,
    };
    let places = Places::of(own, &taken.head)?;
    (taken.lost, taken.left) = compare_with_list(&places, &taken.head);
    taken.outlines = outlines(disk, &places, &taken.head, &taken.lost)?;
    if !has_manifest && !taken.head.manifest.is_empty() {
        // The manifest last: what is cut off here begins again.
        fetch_indexes(disk, &places, &taken)?;
        begin_with(disk, &taken.head.manifest)?;
    }
    Ok(taken)
}

/// Swaps HEAD to the directory `id`, if `check` allows that for each HEAD that is found. Until then
/// its leader swaps it, too, whenever it sends packs; and the last swap of a process that was
/// killed may come late.
fn depose(
    holder: &Holder<'_>,
    own: &Arc<dyn Bucket>,
    (mut found, id): (Option<(Head, ObjectVersion)>, Nonce),
    check: impl Fn(Option<&Head>) -> Result<(), StoreError>,
) -> Result<Lead, StoreError> {
    let led_by = |found: &Option<(Head, ObjectVersion)>| {
        found.as_ref().map(|(head, _)| (head.leader, head.epoch))
    };
    for _ in 0..SWAPS_MAX {
        let notices = renew_pins(holder, own, found.as_mut().map(|(head, _)| head))?;
        let was_led_by = led_by(&found);
        if let Some(lead) = swap(holder.chance, &**own, found, id)? {
            return Ok(Lead { notices, ..lead });
        }
        found = load_head(&**own)?;
        if was_led_by.is_none() || led_by(&found) != was_led_by {
            return Err(refused("another directory took the lead just now".to_owned()));
        }
        check(found.as_ref().map(|(head, _)| head))?;
    }
    Err(refused(format!("{} is sent to all the time: try again", holder.place)))
}

/// Renews the pins of a line, before it is swapped. Returns what the operator is to read.
fn renew_pins(
    holder: &Holder<'_>,
    own: &Arc<dyn Bucket>,
    head: Option<&mut Head>,
) -> Result<Vec<String>, StoreError> {
    let Some(head) = head else { return Ok(Vec::new()) };
    Ok(holder.renew_all(&Places::of(own, head)?, head))
}

/// The outlines of packs that `head` lists and that aren't `lost`.
pub(super) fn outlines(
    disk: &dyn Disk,
    places: &Places,
    head: &Head,
    lost: &[PackNumber],
) -> Result<Outlines, StoreError> {
    locations::open(disk, places, head, lost).map_err(|error| StoreError::io(".", error))
}

/// Fetches the indexes of packs of which no outline is known.
pub(super) fn fetch_indexes(
    disk: &dyn Disk,
    places: &Places,
    taken: &Lead,
) -> Result<(), StoreError> {
    let owners: BTreeSet<Owner> = taken.head.packs.values().map(|pack| pack.owner).collect();
    for owner in owners {
        let mut packs = taken.head.packs.clone();
        packs.retain(|number, pack| pack.owner == owner && !taken.outlines.contains_key(number));
        index_file::fetch_indexes(disk, &**places.bucket(owner), &packs)
            .map_err(|error| StoreError::io("the bucket", error))?;
    }
    Ok(())
}

/// Refuses a directory that can't have the line.
fn check(
    disk: &dyn Disk,
    member: Option<&Membership>,
    has_manifest: bool,
    (head, options): (Option<&Head>, &TieredOptions),
) -> Result<(), StoreError> {
    let place = &options.place;
    if let Some(source) = &options.clone_of {
        check_clone(head, has_manifest, (source, place))?;
    }
    let Some(head) = head else {
        let is_whole = member.is_none() || !has_manifest || has_all_packs(disk)?;
        let what = format!("{place} has no HEAD any more, and this directory not all of its packs");
        return if is_whole { Ok(()) } else { Err(refused(what)) };
    };
    if head.slot.is_some() && options.log == LogPlace::Local {
        let what = format!("the log of {place} lies there, too: --store-log bucket");
        return Err(refused(what));
    }
    if member.is_some_and(|member| member.id == head.leader) {
        return check_not_older(disk, head, place);
    }
    let epoch = head.epoch;
    if has_manifest {
        let what = format!(
            "another directory leads {place}, since epoch {epoch}: this one has data of its own \
             and can't continue there; start with an empty directory"
        );
        return Err(refused(what));
    }
    if !options.take_over {
        let what = format!(
            "another directory leads {place}, since epoch {epoch}. If that one is lost{}, let \
             this one take over with --store-take-over",
            match head.slot {
                Some(_) => "",
                None => ", with all that it acknowledged and hadn't sent yet",
            }
        );
        return Err(refused(what));
    }
    if head.manifest.is_empty() {
        return Err(refused(format!(
            "{place} has nothing whole yet: there is nothing to take over"
        )));
    }
    Ok(())
}

/// Refuses to begin a clone where there is something else.
fn check_clone(
    head: Option<&Head>,
    has_manifest: bool,
    (source, place): (&str, &str),
) -> Result<(), StoreError> {
    match head {
        None if has_manifest => {
            Err(refused("this directory has data of its own: a clone begins with none".to_owned()))
        }
        Some(head) if head.sources.first().is_none_or(|own| own.place != source) => {
            Err(refused(format!("{place} has data, and isn't a clone of {source}")))
        }
        _ => Ok(()),
    }
}

/// Refuses a directory that was put back to an earlier state, as from a snapshot of its disk: it
/// lacks what it sent since, and the log there begins behind that. A directory publishes its
/// manifest before HEAD.
fn check_not_older(disk: &dyn Disk, head: &Head, place: &str) -> Result<(), StoreError> {
    let Some(own) = manifest::read(disk)?.filter(|_| !head.manifest.is_empty()) else {
        return Ok(());
    };
    let sent = manifest::parse(&head.manifest, HEAD_NAME)?;
    if sent.generation <= own.manifest.generation {
        return Ok(());
    }
    Err(refused(format!(
        "this directory is in an earlier state than {place}, which has what it sent later: let an \
         empty directory take over (--store-take-over)"
    )))
}

/// Swaps HEAD to this directory, in the next epoch. `None` if it isn't what was found any more.
///
/// # Errors
/// [`StoreError::Io`] if the bucket doesn't answer.
pub(super) fn swap(
    chance: &dyn Chance,
    bucket: &dyn Bucket,
    found: Option<(Head, ObjectVersion)>,
    id: Nonce,
) -> Result<Option<Lead>, StoreError> {
    let (head, was) = match found {
        Some((head, was)) => (head, Some(was)),
        None => (Head::default(), None),
    };
    let head = Head {
        generation: head.generation + 1,
        epoch: head.epoch + 1,
        nonce: nonce(chance),
        leader: id,
        ..head
    };
    let bytes = head.encode();
    let swapped = match was {
        Some(was) => swap_until_known(bucket, HEAD_NAME, &was, &bytes),
        None => create_until_known(bucket, HEAD_NAME, &bytes),
    };
    Ok(swapped.map_err(store_error)?.map(|version| Lead::new(head, version)))
}

pub(super) fn has_manifest(disk: &dyn Disk) -> Result<bool, StoreError> {
    for name in MANIFEST_NAMES {
        match disk.open(name) {
            Ok(_) => return Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(StoreError::io(name, error)),
        }
    }
    Ok(false)
}

/// Whether each pack of the manifest has its file.
fn has_all_packs(disk: &dyn Disk) -> Result<bool, StoreError> {
    let names = disk.list().map_err(|error| StoreError::io(".", error))?;
    let manifest = manifest::read(disk)?.map(|found| found.manifest).unwrap_or_default();
    Ok(manifest.packs.iter().all(|pack| names.contains(&pack.number.to_string())))
}

/// Gives a directory the manifest that lay in HEAD.
pub(super) fn begin_with(disk: &dyn Disk, bytes: &Bytes) -> Result<(), StoreError> {
    let manifest = manifest::parse(bytes, HEAD_NAME)?;
    manifest::publish(disk, &manifest).map(drop).map_err(|error| match error {
        PublishError::Unchanged(error) | PublishError::Unknown(error) => error,
    })
}

/// Removes slots that nothing needs. Returns packs that the bucket has lost, as far as can be seen,
/// and objects that are left of earlier epochs.
fn compare_with_list(places: &Places, head: &Head) -> (Vec<PackNumber>, Vec<String>) {
    let own = &**places.bucket(Owner::THIS);
    // What can't be listed or removed now is found by a later opening.
    let Ok(packs) = own.list(PACKS_PREFIX) else { return Default::default() };
    let mut lost = lost_among(own, head, Owner::THIS, &packs);
    for owner in (0..head.sources.len()).map(Owner::source) {
        if head.names_of(owner).next().is_some() {
            let source = &**places.bucket(owner);
            let there = source.list(PACKS_PREFIX);
            lost.extend(
                there.map_or_else(|_| Vec::new(), |there| lost_among(source, head, owner, &there)),
            );
        }
    }
    let mut left: BTreeSet<String> = packs.into_iter().collect();
    left.extend(own.list(LOCATIONS_PREFIX).unwrap_or_default());
    let listed: BTreeSet<String> = head.names().collect();
    left.retain(|name| !listed.contains(name));
    left.retain(|name| epoch_of(name).is_some_and(|epoch| epoch < head.epoch));
    if let Some(first) = head.slot {
        slots::remove_left(own, first);
    }
    (lost, left.into_iter().collect())
}

/// The packs of `owner`'s that can't be read, of those that a list lacks: it may be old.
fn lost_among(bucket: &dyn Bucket, head: &Head, owner: Owner, there: &[String]) -> Vec<PackNumber> {
    let there: BTreeSet<&String> = there.iter().collect();
    let own = head.packs.iter().filter(|(_, pack)| pack.owner == owner);
    let absent: Vec<_> = own.filter(|(_, pack)| !there.contains(&pack.name())).collect();
    let first_byte =
        |(_, pack): &(&PackNumber, &PackObject)| ObjectPart { name: pack.name(), range: 0..1 };
    let parts: Vec<ObjectPart> = absent.iter().map(first_byte).collect();
    let Ok(read) = bucket.read_many(&parts) else { return Vec::new() };
    let lost = absent.iter().zip(read).filter(|(_, part)| part.is_none());
    lost.map(|((number, _), _)| **number).collect()
}

/// Reads a directory's record of its bucket, if its packs lie in one.
///
/// # Errors
/// [`StoreError::Io`]; [`StoreError::Damaged`] or [`StoreError::Version`] of the file.
pub(super) fn read_membership(disk: &dyn Disk) -> Result<Option<Membership>, StoreError> {
    let io = |error| StoreError::io(DEPOT_NAME, error);
    let file = match disk.open(DEPOT_NAME) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(io)?,
    };
    let bytes = usize::try_from(file.bytes().map_err(io)?);
    let mut bytes = vec![0; bytes.map_err(|_| StoreError::damaged(DEPOT_NAME, 0, "too large"))?];
    file.read_exact_at(0, &mut bytes).map_err(io)?;
    Membership::parse(&bytes, DEPOT_NAME).map(Some)
}

pub(super) fn write_membership(disk: &dyn Disk, member: &Membership) -> Result<(), StoreError> {
    let write = || {
        let file = match disk.create(DEPOT_NEW_NAME) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                disk.remove(DEPOT_NEW_NAME)?;
                disk.create(DEPOT_NEW_NAME)
            }
            created => created,
        }?;
        file.write_all_at(0, &member.encode())?;
        file.sync()?;
        disk.rename(DEPOT_NEW_NAME, DEPOT_NAME)?;
        disk.sync_directory()
    };
    write().map_err(|error| StoreError::io(DEPOT_NAME, error))
}
