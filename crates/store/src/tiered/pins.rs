//! Clones of a line in the same store, by pins: no pack is copied.
//!
//! 1. A clone is a line of its own, under a prefix of its own. Its HEAD begins as its source's, and
//!    says of each object whose it is. What it puts is its own; what is its source's it only reads.
//! 2. A *pin* is an object of the source that names what the clone relies on. It counts from the
//!    moment at which the source's HEAD lists it. HEAD is swapped for that, if it is what the names
//!    were read from: so all that a pin names was listed when it began to count.
//! 3. The source removes no object that a pin names, for whichever reason it would go
//!    ([`uploads`](super::uploads), [`purge`](super::purge)). Its own swaps prove that it knows all
//!    pins: what it dropped before can be in no later one. A pin that can't be read keeps
//!    everything.
//! 4. Swapping a pin in doesn't depose the leader, which goes on from any HEAD of its own epoch.
//! 5. A pin goes when its operator says so ([`remove_pin`]); nothing shows that a clone is gone for
//!    good.
//!
//! *Crash*: a clone that is cut off may leave a pin that counts, and no HEAD of its own. That pin
//! is listed with the others ([`pins`]), as one that nothing relies on.

mod format;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use self::format::Pinned;
use super::errors::store_error;
use super::format::{HEAD_NAME, Head, Nonce, Owner, PINS_PREFIX, Source, hex};
use super::lead::{Lead, load_head, nonce, refused};
use super::{Line, TieredDisk};
use crate::bucket::{Bucket, ObjectVersion, create_until_known, swap_until_known};
use crate::error::StoreError;
use crate::io::{Chance, Machine};

/// HEAD may be swapped by its leader meanwhile: so often it is tried again.
const SWAPS_MAX: u32 = 32;

/// A pin of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pin {
    /// Distinguishes it from all others.
    pub id: String,
    /// Where the clone lies; empty if the pin can't be read.
    pub place: String,
    /// When it was made, by the clock of the machine that did; microseconds since 1970.
    pub since_micros: i64,
    /// The number of objects that it names.
    pub objects: usize,
    /// Whether a clone that lies there relies on it; `None` if that can't be found out.
    pub is_used: Option<bool>,
}

/// The buckets that a line's objects lie in.
#[derive(Clone)]
pub(super) struct Places {
    own: Arc<dyn Bucket>,
    source: Option<Arc<dyn Bucket>>,
}

impl Places {
    /// Those of a line whose HEAD is `head`, below `own`.
    ///
    /// # Errors
    /// [`StoreError::Io`]: its source can't be reached from there.
    pub(super) fn of(own: &Arc<dyn Bucket>, head: &Head) -> Result<Places, StoreError> {
        let beside = |source: &Source| beside(&**own, &source.place);
        let source = head.source.as_ref().map(beside).transpose()?;
        Ok(Places { own: Arc::clone(own), source })
    }

    /// Where the objects of `owner` lie.
    pub(super) fn bucket(&self, owner: Owner) -> &Arc<dyn Bucket> {
        match (owner, &self.source) {
            (Owner::Source, Some(source)) => source,
            _ => &self.own,
        }
    }

    /// Waits for no answer any more.
    pub(super) fn hang_up(&self) {
        self.own.hang_up();
        self.source.iter().for_each(|source| source.hang_up());
    }
}

fn beside(bucket: &dyn Bucket, place: &str) -> Result<Arc<dyn Bucket>, StoreError> {
    bucket.beside(place).ok_or_else(|| refused(format!("{place} can't be reached from here")))
}

fn object_name(id: &str) -> String {
    format!("{PINS_PREFIX}{id}")
}

/// Makes the line below `bucket`, which has none, a clone of the one that lies at `place`; led by
/// the directory `leader`.
///
/// # Errors
/// [`StoreError::Io`]: the bucket doesn't answer; there is nothing whole at `place`, or it is a
/// clone itself; another directory has made a line below `bucket` meanwhile.
pub(super) fn begin_clone(
    machine: &Machine,
    bucket: &dyn Bucket,
    (place, own_place): (&str, &str),
    leader: Nonce,
) -> Result<Lead, StoreError> {
    let chance = &*machine.chance;
    let source = beside(bucket, place)?;
    let (head, pin) = pin(machine, &*source, place, own_place)?;
    let mut own = Head {
        generation: 1,
        epoch: 1,
        nonce: nonce(chance),
        leader,
        pins: Vec::new(),
        source: Some(Source { place: place.to_owned(), pin }),
        slot: None,
        ..head
    };
    own.packs.values_mut().for_each(|pack| pack.owner = Owner::Source);
    own.locations.iter_mut().for_each(|locations| locations.owner = Owner::Source);
    let made = create_until_known(bucket, HEAD_NAME, &own.encode()).map_err(store_error)?;
    let Some(version) = made else {
        remove_pin(chance, &*source, &hex(&pin))?;
        return Err(refused(format!("{own_place} has data by now")));
    };
    Ok(Lead::new(own, version))
}

/// Pins what the HEAD of `source` lists, for a clone at `clone_place`. Returns that HEAD, and the
/// pin's id.
fn pin(
    machine: &Machine,
    source: &dyn Bucket,
    place: &str,
    clone_place: &str,
) -> Result<(Head, Nonce), StoreError> {
    for _ in 0..SWAPS_MAX {
        let found = load_head(source)?.filter(|(head, _)| !head.manifest.is_empty());
        let (head, version) = found.ok_or_else(|| {
            refused(format!("{place} has nothing whole yet: there is nothing to clone"))
        })?;
        if let Some(further) = &head.source {
            let what = format!("{place} is a clone itself: clone {}", further.place);
            return Err(refused(what));
        }
        let id = nonce(&*machine.chance);
        let (since_micros, names) = (machine.clock.now_micros(), head.names().collect());
        let pinned = Pinned { since_micros, place: clone_place.to_owned(), names };
        let object = object_name(&hex(&id));
        let put = create_until_known(source, &object, &pinned.encode()).map_err(store_error)?;
        put.ok_or_else(|| refused(format!("{object} is taken")))?;
        let mut pins = head.pins.clone();
        pins.push(id);
        if swap_pins(&*machine.chance, source, (&head, &version), pins)? {
            return Ok((head, id));
        }
        // The leader was faster, or came since, and goes on from what it finds.
        if load_head(source)?.is_some_and(|(now, _)| now.pins.contains(&id)) {
            return Ok((head, id));
        }
        source.remove(&object).map_err(store_error)?;
    }
    Err(refused(format!("{place} is sent to all the time: try again")))
}

/// Swaps HEAD to one with `pins`. Returns whether it did; it may have, if not.
fn swap_pins(
    chance: &dyn Chance,
    bucket: &dyn Bucket,
    (head, version): (&Head, &ObjectVersion),
    pins: Vec<Nonce>,
) -> Result<bool, StoreError> {
    let (generation, nonce) = (head.generation + 1, nonce(chance));
    let next = Head { generation, nonce, pins, ..head.clone() };
    let swapped = swap_until_known(bucket, HEAD_NAME, version, &next.encode());
    Ok(swapped.map_err(store_error)?.is_some())
}

/// The pins of a line.
///
/// # Errors
/// [`StoreError::Io`] if the bucket doesn't answer; [`StoreError::Damaged`] or
/// [`StoreError::Version`] of HEAD.
pub fn pins(bucket: &dyn Bucket) -> Result<Vec<Pin>, StoreError> {
    let Some((head, _)) = load_head(bucket)? else { return Ok(Vec::new()) };
    let mut found = Vec::with_capacity(head.pins.len());
    for pin in head.pins {
        let id = hex(&pin);
        let pinned = load(bucket, &pin).ok();
        let is_used = pinned.as_ref().and_then(|pinned| is_used(bucket, &pinned.place, &pin));
        let since_micros = pinned.as_ref().map_or(0, |pinned| pinned.since_micros);
        let objects = pinned.as_ref().map_or(0, |pinned| pinned.names.len());
        let place = pinned.map(|pinned| pinned.place).unwrap_or_default();
        found.push(Pin { id, place, since_micros, objects, is_used });
    }
    Ok(found)
}

/// Whether the line at `place` relies on a pin.
fn is_used(bucket: &dyn Bucket, place: &str, pin: &Nonce) -> Option<bool> {
    let head = load_head(&*bucket.beside(place)?).ok()?;
    Some(head.is_some_and(|(head, _)| {
        let mut packs = head.packs.values();
        head.source.is_some_and(|source| source.pin == *pin)
            && packs.any(|pack| pack.owner == Owner::Source)
    }))
}

fn load(bucket: &dyn Bucket, pin: &Nonce) -> Result<Pinned, StoreError> {
    let name = object_name(&hex(pin));
    let found = bucket.load(&name).map_err(store_error)?;
    let (bytes, _) = found.ok_or_else(|| StoreError::damaged(&name, 0, "missing"))?;
    Pinned::parse(&bytes, &name)
}

/// Removes a pin: a clone that relies on it loses data. Returns whether there was one of this id.
///
/// # Errors
/// As [`pins`].
pub fn remove_pin(chance: &dyn Chance, bucket: &dyn Bucket, id: &str) -> Result<bool, StoreError> {
    for attempt in 0..SWAPS_MAX {
        let Some((head, version)) = load_head(bucket)? else { return Ok(false) };
        let mut pins = head.pins.clone();
        pins.retain(|pin| hex(pin) != id);
        if pins.len() == head.pins.len() {
            // An earlier attempt may have been done.
            return Ok(attempt > 0);
        }
        if swap_pins(chance, bucket, (&head, &version), pins)? {
            bucket.remove(&object_name(id)).map_err(store_error)?;
            return Ok(true);
        }
    }
    Err(refused("HEAD is swapped by its leader all the time: try again".to_owned()))
}

/// What the pins of a line keep, as far as it is known.
#[derive(Default)]
pub(super) struct PinnedLines {
    pins: BTreeMap<Nonce, Pinned>,
}

/// What pins keep of some objects.
pub(super) enum Keeps {
    /// These, and no others.
    These(BTreeSet<String>),
    /// Perhaps any: a pin can't be read.
    Any,
}

impl Keeps {
    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Keeps::These(names) => names.contains(name),
            Keeps::Any => true,
        }
    }
}

impl TieredDisk {
    /// What pins keep, by the HEAD that this directory swapped last.
    pub(super) fn kept_by_pins(&self, line: &mut Line) -> Keeps {
        let Line { head, kept, .. } = line;
        kept.pins.retain(|pin, _| head.pins.contains(pin));
        let mut names = BTreeSet::new();
        for pin in &head.pins {
            if !kept.pins.contains_key(pin) {
                let Ok(pinned) = load(&*self.bucket, pin) else { return Keeps::Any };
                kept.pins.insert(*pin, pinned);
            }
            names.extend(kept.pins[pin].names.iter().cloned());
        }
        Keeps::These(names)
    }

    /// Returns the error that objects which were to go are kept by pins.
    pub(super) fn kept_error(line: &Line, count: usize) -> StoreError {
        let places: Vec<&str> =
            line.kept.pins.values().map(|pinned| pinned.place.as_str()).collect();
        let what = format!(
            "{count} objects stay, since clones rely on them ({}): erase there, too, or remove \
             the pin (frond doctor --store URL --remove-pin ID), and run frond gc --purge",
            places.join(", ")
        );
        StoreError::io("the bucket", io::Error::other(what))
    }
}
