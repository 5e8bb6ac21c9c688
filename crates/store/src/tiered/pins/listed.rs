//! The pins of a line, as its operator sees and removes them.

use std::collections::BTreeSet;

use super::super::errors::store_error;
use super::super::format::{Nonce, Owner, PINS_PREFIX, hex};
use super::super::head::{load_head, refused};
use super::format::Pinned;
use super::objects::{SWAPS_MAX, load, object_name, swap_pins};
use crate::bucket::Bucket;
use crate::error::StoreError;
use crate::io::Chance;

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
    /// Whether it keeps them.
    pub state: PinState,
    /// The time without a renewal after which it is let go.
    pub lease_micros: i64,
    /// The time for which this line has seen no renewal, in days and hours of a leader that sends.
    pub silent_micros: i64,
    /// Whether a clone that lies there relies on it; `None` if that can't be found out.
    pub is_used: Option<bool>,
}

/// Whether a pin keeps what it names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PinState {
    /// It does.
    Counts,
    /// Its clone hadn't renewed it for its lease: it keeps nothing.
    LetGo,
    /// Its clone was cut off while it began, or the pin was while it was removed: it keeps nothing.
    Unlisted,
}

/// The pins of a line, those that keep nothing any more included.
///
/// # Errors
/// [`StoreError::Io`] if the bucket doesn't answer; [`StoreError::Damaged`] or
/// [`StoreError::Version`] of HEAD.
pub fn pins(bucket: &dyn Bucket) -> Result<Vec<Pin>, StoreError> {
    let Some((head, _)) = load_head(bucket)? else { return Ok(Vec::new()) };
    let mut found = Vec::with_capacity(head.pins.len());
    for pin in &head.pins {
        let pinned = load(bucket, pin).ok();
        let is_used = pinned.as_ref().and_then(|pinned| is_used(bucket, &pinned.place, pin));
        found.push(match pinned {
            Some(pinned) => described(hex(pin), pinned, PinState::Counts, is_used),
            None => unreadable(hex(pin)),
        });
    }
    let listed: BTreeSet<String> = head.pins.iter().map(|pin| object_name(&hex(pin))).collect();
    for name in bucket.list(PINS_PREFIX).map_err(store_error)? {
        // A list may be old.
        let Some((bytes, _)) = bucket.load(&name).map_err(store_error)? else { continue };
        let id = name.strip_prefix(PINS_PREFIX).unwrap_or(&name).to_owned();
        if !listed.contains(&name) {
            found.push(match Pinned::parse(&bytes, &name) {
                Ok(pinned) => described(id, pinned, PinState::Unlisted, Some(false)),
                Err(_) => Pin { state: PinState::Unlisted, ..unreadable(id) },
            });
        }
    }
    Ok(found)
}

fn described(id: String, pinned: Pinned, state: PinState, is_used: Option<bool>) -> Pin {
    let Pinned { since_micros, lease_micros, silent_micros, is_let_go, place, names, .. } = pinned;
    let state = if is_let_go { PinState::LetGo } else { state };
    let objects = names.len();
    Pin { id, place, since_micros, objects, state, lease_micros, silent_micros, is_used }
}

/// One that can't be read keeps everything.
fn unreadable(id: String) -> Pin {
    Pin {
        id,
        place: String::new(),
        since_micros: 0,
        objects: 0,
        state: PinState::Counts,
        lease_micros: 0,
        silent_micros: 0,
        is_used: None,
    }
}

/// Whether the line at `place` relies on a pin.
fn is_used(bucket: &dyn Bucket, place: &str, pin: &Nonce) -> Option<bool> {
    let Some((head, _)) = load_head(&*bucket.beside(place)?).ok()? else { return Some(false) };
    let position = head.sources.iter().position(|source| source.pin == *pin);
    Some(position.is_some_and(|it| head.names_of(Owner::source(it)).next().is_some()))
}

/// Removes a pin: a clone that relies on it loses data. Returns whether there was one of this id.
///
/// # Errors
/// As [`pins`].
pub fn remove_pin(chance: &dyn Chance, bucket: &dyn Bucket, id: &str) -> Result<bool, StoreError> {
    let name = object_name(id);
    for attempt in 0..SWAPS_MAX {
        let Some((head, version)) = load_head(bucket)? else { return Ok(false) };
        let mut pins = head.pins.clone();
        pins.retain(|pin| hex(pin) != id);
        let is_listed = pins.len() < head.pins.len();
        if is_listed && !swap_pins(chance, bucket, (&head, &version), pins)? {
            continue;
        }
        // An earlier attempt may have been done; and it is there also where HEAD doesn't list it.
        let was_there = is_listed || 0 < attempt || {
            let is_id = id.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_id && bucket.load(&name).map_err(store_error)?.is_some()
        };
        if was_there {
            bucket.remove(&name).map_err(store_error)?;
        }
        return Ok(was_there);
    }
    Err(refused("HEAD is swapped by its leader all the time: try again".to_owned()))
}
