//! The objects of pins, and HEAD's list of them.

use super::super::errors::store_error;
use super::super::format::{HEAD_NAME, Head, Nonce, PINS_PREFIX, hex};
use super::super::head::{load_head, nonce};
use super::format::Pinned;
use crate::bucket::{Bucket, ObjectVersion, swap_until_known};
use crate::error::StoreError;
use crate::io::Chance;

/// HEAD may be swapped by its leader meanwhile: so often it is tried again.
pub(super) const SWAPS_MAX: u32 = 32;

pub(super) fn object_name(id: &str) -> String {
    format!("{PINS_PREFIX}{id}")
}

/// Swaps HEAD, if it is what was read, to one with `pins`, of which `pin` is one. Returns whether
/// HEAD lists that.
pub(super) fn list(
    chance: &dyn Chance,
    bucket: &dyn Bucket,
    read: (&Head, &ObjectVersion),
    (pin, pins): (&Nonce, Vec<Nonce>),
) -> Result<bool, StoreError> {
    if swap_pins(chance, bucket, read, pins)? {
        return Ok(true);
    }
    // The leader was faster, or came since, and goes on from what it finds.
    Ok(load_head(bucket)?.is_some_and(|(now, _)| now.pins.contains(pin)))
}

/// Swaps HEAD to one with `pins`. Returns whether it did; it may have, if not.
pub(super) fn swap_pins(
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

pub(super) fn load(bucket: &dyn Bucket, pin: &Nonce) -> Result<Pinned, StoreError> {
    let name = object_name(&hex(pin));
    let found = bucket.load(&name).map_err(store_error)?;
    let (bytes, _) = found.ok_or_else(|| StoreError::damaged(&name, 0, "missing"))?;
    Pinned::parse(&bytes, &name)
}
