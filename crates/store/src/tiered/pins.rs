//! Clones of a line in the same store, by pins: no pack is copied.
//!
//! 1. A clone is a line of its own, under a prefix of its own. Its HEAD begins as its source's, and
//!    says of each object whose it is. What it puts is its own; what is its source's it only reads.
//! 2. A *pin* is an object of the source that names what the clone relies on. It counts from the
//!    moment at which the source's HEAD lists it. HEAD is swapped for that, if it is what the names
//!    were read from: so all that a pin names was listed when it began to count.
//! 3. *A clone of a clone* has a pin at each line that has objects of its. Those at the further
//!    sources come first: what they name is kept by the pins of the line that is cloned, whose HEAD
//!    is then swapped, if it still lists that.
//! 4. The source removes no object that a pin names, for whichever reason it would go
//!    ([`uploads`](super::uploads), [`purge`](super::purge)). Its own swaps prove that it knows all
//!    pins: what it dropped before can be in no later one. A pin that can't be read keeps
//!    everything.
//! 5. Swapping a pin in doesn't depose the leader, which goes on from any HEAD of its own epoch.
//! 6. A clone gives its pin back when its HEAD has listed nothing of the source for as long as
//!    readers may hold that; at once where bytes must be gone. Its operator may say so, too
//!    ([`remove_pin`]).
//! 7. A pin that its clone hasn't renewed for long is let go ([`lease`]).
//!
//! *Crash*: a clone that is cut off may leave a pin that counts, and no HEAD of its own. That pin
//! is listed with the others ([`pins`]), as one that nothing relies on.

mod format;
mod lease;
mod listed;
mod objects;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use self::format::Pinned;
pub(super) use self::lease::{Holder, Watch, first_renewal};
pub use self::listed::{Pin, PinState, pins, remove_pin};
use self::objects::{SWAPS_MAX, list, load, object_name};
use super::errors::store_error;
use super::format::{HEAD_NAME, Head, NO_PIN, Nonce, Owner, Source, hex};
use super::head::{load_head, nonce, refused};
use super::lead::Lead;
use super::{Line, TieredDisk};
use crate::bucket::{Bucket, ObjectVersion, create_until_known};
use crate::error::StoreError;

/// The buckets that a line's objects lie in.
#[derive(Clone)]
pub(super) struct Places {
    own: Arc<dyn Bucket>,
    /// `None`: nothing of the line lies there any more.
    sources: Vec<Option<Arc<dyn Bucket>>>,
}

impl Places {
    /// Those of a line whose HEAD is `head`, below `own`.
    ///
    /// # Errors
    /// [`StoreError::Io`]: its source can't be reached from there.
    pub(super) fn of(own: &Arc<dyn Bucket>, head: &Head) -> Result<Places, StoreError> {
        let beside = |source: &Source| match source.pin {
            NO_PIN => Ok(None),
            _ => beside(&**own, &source.place).map(Some),
        };
        let sources = head.sources.iter().map(beside).collect::<Result<_, _>>()?;
        Ok(Places { own: Arc::clone(own), sources })
    }

    /// Where the objects of `owner` lie.
    pub(super) fn bucket(&self, owner: Owner) -> &Arc<dyn Bucket> {
        let source = owner.position().and_then(|position| self.sources.get(position)?.as_ref());
        source.unwrap_or(&self.own)
    }

    /// Waits for no answer any more.
    pub(super) fn hang_up(&self) {
        self.own.hang_up();
        self.sources.iter().flatten().for_each(|source| source.hang_up());
    }
}

fn beside(bucket: &dyn Bucket, place: &str) -> Result<Arc<dyn Bucket>, StoreError> {
    bucket.beside(place).ok_or_else(|| refused(format!("{place} can't be reached from here")))
}

/// Pins that were made for a clone, and where.
type Made = Vec<(Arc<dyn Bucket>, Nonce)>;

/// A clone that is to be: the line of which, and where it is to lie.
struct NewClone<'a> {
    holder: Holder<'a>,
    source: Arc<dyn Bucket>,
    source_place: &'a str,
}

/// Makes the line below `bucket`, which has none, a clone of the one that lies at `place`; led by
/// the directory `leader`. `holder` is who will renew its pins.
///
/// # Errors
/// [`StoreError::Io`]: the bucket doesn't answer; there is nothing whole at `place`; another
/// directory has made a line below `bucket` meanwhile.
pub(super) fn begin_clone(
    holder: Holder<'_>,
    bucket: &dyn Bucket,
    place: &str,
    leader: Nonce,
) -> Result<Lead, StoreError> {
    let clone = NewClone { holder, source: beside(bucket, place)?, source_place: place };
    for _ in 0..SWAPS_MAX {
        let mut made = Made::new();
        let Some((head, sources)) = clone.pin(&mut made)? else {
            clone.give_back(&made)?;
            continue;
        };
        let mut own = Head {
            generation: 1,
            epoch: 1,
            nonce: nonce(clone.holder.chance),
            leader,
            pins: Vec::new(),
            sources,
            slot: None,
            ..head
        };
        own.packs.values_mut().for_each(|pack| pack.owner = pack.owner.of_clone());
        own.locations.iter_mut().for_each(|locations| locations.owner = locations.owner.of_clone());
        let version = create_until_known(bucket, HEAD_NAME, &own.encode()).map_err(store_error)?;
        let Some(version) = version else {
            clone.give_back(&made)?;
            return Err(refused(format!("{} has data by now", clone.holder.place)));
        };
        return Ok(Lead::new(own, version));
    }
    Err(refused(format!("{place} is sent to all the time: try again")))
}

impl NewClone<'_> {
    /// Pins what the source's HEAD lists, its sources' objects included. Returns that HEAD, and the
    /// clone's sources; `None` if HEAD has changed meanwhile.
    fn pin(&self, made: &mut Made) -> Result<Option<(Head, Vec<Source>)>, StoreError> {
        let place = self.source_place;
        let found = load_head(&*self.source)?.filter(|(head, _)| !head.manifest.is_empty());
        let (head, version) = found.ok_or_else(|| {
            refused(format!("{place} has nothing whole yet: there is nothing to clone"))
        })?;
        let mut sources = vec![Source { place: place.to_owned(), pin: NO_PIN }];
        for (position, further) in head.sources.iter().enumerate() {
            let names: BTreeSet<String> = head.names_of(Owner::source(position)).collect();
            let pin = match names.is_empty() {
                true => NO_PIN,
                false => self.pin_further(&further.place, names, made)?,
            };
            sources.push(Source { place: further.place.clone(), pin });
        }
        sources[0].pin = self.put(&self.source, head.names().collect(), made)?;
        let is_listed = self.list(&self.source, (&head, &version), &sources[0].pin)?;
        Ok(is_listed.then_some((head, sources)))
    }

    /// Pins objects at a source of the source, whatever its HEAD is by now.
    fn pin_further(
        &self,
        place: &str,
        names: BTreeSet<String>,
        made: &mut Made,
    ) -> Result<Nonce, StoreError> {
        let bucket = beside(&*self.source, place)?;
        let pin = self.put(&bucket, names, made)?;
        for _ in 0..SWAPS_MAX {
            let found = load_head(&*bucket)?;
            let (head, version) = found.ok_or_else(|| refused(format!("{place} has no HEAD")))?;
            if self.list(&bucket, (&head, &version), &pin)? {
                return Ok(pin);
            }
        }
        Err(refused(format!("{place} is sent to all the time: try again")))
    }

    /// Puts the object of a pin, which doesn't count yet.
    fn put(
        &self,
        bucket: &Arc<dyn Bucket>,
        names: BTreeSet<String>,
        made: &mut Made,
    ) -> Result<Nonce, StoreError> {
        let id = put(&**bucket, &self.holder, names)?;
        made.push((Arc::clone(bucket), id));
        Ok(id)
    }

    /// Has HEAD list a pin besides its others, if it is what was read. Returns whether it does.
    fn list(
        &self,
        bucket: &Arc<dyn Bucket>,
        read: (&Head, &ObjectVersion),
        pin: &Nonce,
    ) -> Result<bool, StoreError> {
        let mut pins = read.0.pins.clone();
        pins.push(*pin);
        list(self.holder.chance, &**bucket, read, (pin, pins))
    }

    /// Gives back pins on which nothing relies.
    fn give_back(&self, made: &Made) -> Result<(), StoreError> {
        made.iter().try_for_each(|(bucket, pin)| {
            remove_pin(self.holder.chance, &**bucket, &hex(pin)).map(drop)
        })
    }
}

/// Puts the object of a pin of `holder`'s, which doesn't count yet.
fn put(
    bucket: &dyn Bucket,
    holder: &Holder<'_>,
    names: BTreeSet<String>,
) -> Result<Nonce, StoreError> {
    let id = nonce(holder.chance);
    let object = object_name(&hex(&id));
    let pinned = holder.pinned(names).encode();
    let put = create_until_known(bucket, &object, &pinned).map_err(store_error)?;
    put.ok_or_else(|| refused(format!("{object} is taken")))?;
    Ok(id)
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

    /// Gives back the pins at sources of which HEAD has listed nothing for `wait_micros`, as far as
    /// these can be reached.
    pub(super) fn give_pins_back(&self, line: &mut Line, wait_micros: i64) {
        let now = self.clock.steady_micros();
        let Line { head, unneeded, .. } = line;
        for position in 0..head.sources.len() {
            let (owner, pin) = (Owner::source(position), head.sources[position].pin);
            if pin == NO_PIN || head.names_of(owner).next().is_some() {
                unneeded.remove(&position);
                continue;
            }
            let since = unneeded.entry(position).or_insert(now);
            if now - *since < wait_micros {
                continue;
            }
            match remove_pin(&*self.chance, &**self.places.bucket(owner), &hex(&pin)) {
                // The next HEAD says so. Where it doesn't come to that, there is no pin to remove.
                Ok(_) => head.sources[position].pin = NO_PIN,
                // It is tried again as much later.
                Err(_) => *since = now,
            }
        }
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
