//! A pin is held by a lease: its clone renews it, and its source lets go of one that isn't renewed.
//!
//! 1. A clone renews each of its pins at its openings and every three hours: it replaces the pin by
//!    one that has been silent for no time. So does a directory that reads the clone, if its key
//!    may.
//! 2. The leader of the source looks at its pins as it sends, once an hour at most. A pin that is
//!    what it was at the look before has been silent for so much longer, by that leader's own
//!    steady clock; it is replaced by one that says so. No two machines' clocks are compared, and
//!    time in which no leader looks doesn't count.
//! 3. One that has been silent for as long as its lease is replaced by one that says that it was
//!    let go. Then HEAD is swapped to one that doesn't list it.
//! 4. A clone that finds its pin let go, or removed by hand, makes another of what is kept there
//!    yet: what the source's HEAD lists, or another pin that counts. What isn't may go at any
//!    time, so its operator is told what to do.
//!
//! *Why a renewal that succeeds is worth a whole lease.* It replaces what it read, and so does 3:
//! one of both comes first, and the other reads again. No state of a pin is there twice. A time
//! that was counted in 2 is one in which nothing replaced the pin, so two that take themselves for
//! the leader don't count it twice.
//!
//! *Crash*: between the steps of 3, the next look finds a pin that was let go. In 4, a pin is left
//! on which no clone relies: nothing renews it. What the pin was stays as an object that says so,
//! until its clone comes back or its operator removes it.

use std::collections::{BTreeMap, BTreeSet};

use super::super::errors::store_error;
use super::super::format::{Head, NO_PIN, Nonce, Owner, hex};
use super::super::head::{load_head, nonce, refused};
use super::super::{DOOMED_MICROS, Line, Role, TieredDisk};
use super::format::Pinned;
use super::objects::{SWAPS_MAX, list, load, object_name};
use super::{Places, put, remove_pin};
use crate::bucket::{Bucket, create_until_known, swap_until_known};
use crate::error::StoreError;
use crate::io::Chance;

const HOUR_MICROS: i64 = 60 * 60 * 1_000_000;
const DAY_MICROS: i64 = 24 * HOUR_MICROS;
/// The lease of a clone that names none: for ever, as one that is switched off for a month isn't
/// gone.
const LEASE_MICROS: i64 = i64::MAX;
/// The shortest lease: eight renewals, of which any one is enough.
const LEASE_MICROS_MIN: i64 = DAY_MICROS;
/// The time between two renewals: three requests, $0.002 a month.
const RENEWED_MICROS: i64 = 3 * HOUR_MICROS;
/// The time between two looks of a source's leader.
const LOOKED_MICROS: i64 = HOUR_MICROS;
const _: () = assert!(DOOMED_MICROS < LEASE_MICROS_MIN && RENEWED_MICROS <= LEASE_MICROS_MIN / 8);

/// A line whose pins are renewed.
pub(in super::super) struct Holder<'a> {
    pub(in super::super) chance: &'a dyn Chance,
    pub(in super::super) now_micros: i64,
    /// Where it lies.
    pub(in super::super) place: &'a str,
    /// `None`: a pin keeps the lease that it has.
    pub(in super::super) lease_micros: Option<i64>,
}

/// When pins are renewed first, by the steady clock: an opening that leads has just done that.
pub(in super::super) fn first_renewal(reads: bool, now_micros: i64) -> i64 {
    if reads { now_micros } else { now_micros + RENEWED_MICROS }
}

/// What a renewal finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Renewed {
    Yes,
    /// It hadn't been renewed for its lease.
    LetGo,
    /// Its source doesn't list it any more.
    Removed,
}

impl Holder<'_> {
    /// The pin of a clone that relies on `names`, which was just made or renewed.
    pub(super) fn pinned(&self, names: BTreeSet<String>) -> Pinned {
        Pinned {
            since_micros: self.now_micros,
            nonce: nonce(self.chance),
            lease_micros: self.lease_micros.unwrap_or(LEASE_MICROS).max(LEASE_MICROS_MIN),
            silent_micros: 0,
            is_let_go: false,
            place: self.place.to_owned(),
            names,
        }
    }

    /// Renews the pins of the line whose HEAD is `head`, and makes others for those that are gone,
    /// which `head` names then. Returns what its operator is to read.
    pub(in super::super) fn renew_all(&self, places: &Places, head: &mut Head) -> Vec<String> {
        let mut notices = Vec::new();
        for position in 0..head.sources.len() {
            let owner = Owner::source(position);
            let names: BTreeSet<String> = head.names_of(owner).collect();
            if head.sources[position].pin == NO_PIN || names.is_empty() {
                continue;
            }
            let (bucket, source) = (&**places.bucket(owner), &mut head.sources[position]);
            let renewed = self.renew(bucket, &source.pin, &names);
            let notice = match renewed {
                Ok(Renewed::Yes) => continue,
                Ok(gone) => {
                    self.pin_anew(bucket, &mut source.pin, names).map(|kept| kept.notice(gone))
                }
                Err(error) => Err(error),
            };
            notices.push(match notice {
                Ok(notice) => format!("{}: {notice}", source.place),
                Err(error) => unrenewed(&source.place, &error),
            });
        }
        notices
    }

    /// As `renew_all` for a directory that only reads the line: it makes no other pin.
    fn renew_for_reader(&self, places: &Places, head: &Head) -> Vec<String> {
        let mut notices = Vec::new();
        for (position, source) in head.sources.iter().enumerate() {
            let owner = Owner::source(position);
            let names: BTreeSet<String> = head.names_of(owner).collect();
            if source.pin == NO_PIN || names.is_empty() {
                continue;
            }
            match self.renew(&**places.bucket(owner), &source.pin, &names) {
                Ok(Renewed::Yes) => {}
                Ok(_) => notices.push(format!(
                    "{}: the pin of the clone that is read here counts no more: start the \
                     server that leads the clone, which makes another",
                    source.place
                )),
                Err(error) => notices.push(unrenewed(&source.place, &error)),
            }
        }
        notices
    }

    fn renew(
        &self,
        bucket: &dyn Bucket,
        pin: &Nonce,
        names: &BTreeSet<String>,
    ) -> Result<Renewed, StoreError> {
        let name = object_name(&hex(pin));
        for _ in 0..SWAPS_MAX {
            let Some((bytes, version)) = bucket.load(&name).map_err(store_error)? else {
                // Its source keeps everything, if it lists a pin that it can't read.
                if !is_listed(bucket, pin)? {
                    return Ok(Renewed::Removed);
                }
                let again = self.pinned(names.clone()).encode();
                create_until_known(bucket, &name, &again).map_err(store_error)?;
                continue;
            };
            let next = match Pinned::parse(&bytes, &name) {
                Ok(pinned) if pinned.is_let_go => return Ok(Renewed::LetGo),
                Ok(pinned) => Pinned {
                    nonce: nonce(self.chance),
                    lease_micros: self.lease_micros.unwrap_or(pinned.lease_micros),
                    silent_micros: 0,
                    ..pinned
                },
                Err(StoreError::Damaged { .. }) => self.pinned(names.clone()),
                Err(other) => return Err(other),
            };
            let swapped = swap_until_known(bucket, &name, &version, &next.encode());
            if swapped.map_err(store_error)?.is_some() {
                let counts = is_listed(bucket, pin)?;
                return Ok(if counts { Renewed::Yes } else { Renewed::Removed });
            }
        }
        Err(refused(format!("{name} is replaced all the time")))
    }

    /// Makes a pin in place of one that counts no more, of those of `needed` that the source keeps.
    fn pin_anew(
        &self,
        bucket: &dyn Bucket,
        pin: &mut Nonce,
        needed: BTreeSet<String>,
    ) -> Result<KeptCount, StoreError> {
        for _ in 0..SWAPS_MAX {
            let Some((head, version)) = load_head(bucket)? else {
                return Ok(KeptCount { kept: 0, needed: needed.len() });
            };
            let kept_there = kept_there(bucket, &head);
            let names: BTreeSet<String> = needed.intersection(&kept_there).cloned().collect();
            let found = KeptCount { kept: names.len(), needed: needed.len() };
            if names.is_empty() {
                return Ok(found);
            }
            let other = put(bucket, self, names)?;
            let mut pins = head.pins.clone();
            pins.retain(|listed| listed != pin);
            pins.push(other);
            if list(self.chance, bucket, (&head, &version), (&other, pins))? {
                // What says that it was let go is of use no more.
                let _ = bucket.remove(&object_name(&hex(pin)));
                *pin = other;
                return Ok(found);
            }
            remove_pin(self.chance, bucket, &hex(&other))?;
        }
        Err(refused("its HEAD is swapped all the time".to_owned()))
    }
}

/// How much of what a clone needs its source keeps.
struct KeptCount {
    kept: usize,
    needed: usize,
}

impl KeptCount {
    fn notice(&self, gone: Renewed) -> String {
        let why = match gone {
            Renewed::LetGo => "it hadn't been renewed for as long as it asks for",
            _ => "it was removed",
        };
        let KeptCount { kept, needed } = *self;
        match needed - kept {
            0 => format!(
                "the pin of this clone counted no more ({why}); another one keeps all {needed} \
                 objects that this clone has there"
            ),
            unkept => format!(
                "the pin of this clone counted no more ({why}), and {unkept} of the {needed} \
                 objects that this clone has there aren't kept: they are gone, or go. Run frond \
                 gc --purge, which copies what is there, and frond fsck, which lists what is \
                 lost; frond repair brings that back from a backup, or a server that has it"
            ),
        }
    }
}

fn unrenewed(place: &str, error: &StoreError) -> String {
    format!(
        "{place}: the pin of this clone can't be renewed, and is let go if that goes on for as \
         long as it asks for: {error}"
    )
}

fn is_listed(bucket: &dyn Bucket, pin: &Nonce) -> Result<bool, StoreError> {
    Ok(load_head(bucket)?.is_some_and(|(head, _)| head.pins.contains(pin)))
}

/// The objects of a line that stay while its HEAD is this one.
fn kept_there(bucket: &dyn Bucket, head: &Head) -> BTreeSet<String> {
    let mut kept: BTreeSet<String> = head.names().collect();
    for pin in &head.pins {
        match load(bucket, pin) {
            Ok(pinned) if !pinned.is_let_go => kept.extend(pinned.names),
            _ => {}
        }
    }
    kept
}

/// What a source's leader has seen of its pins.
#[derive(Default)]
pub(in super::super) struct Watch {
    /// When it looked last, by the steady clock.
    looked: Option<i64>,
    /// The state of each pin, and when it was read.
    seen: BTreeMap<Nonce, (Nonce, i64)>,
    /// Those that HEAD is not to list any more.
    let_go: BTreeSet<Nonce>,
}

impl Watch {
    /// Those of `pins` that HEAD is to list.
    pub(in super::super) fn listed(&self, pins: &[Nonce]) -> Vec<Nonce> {
        pins.iter().filter(|pin| !self.let_go.contains(*pin)).copied().collect()
    }
}

impl TieredDisk {
    /// Looks at this line's pins, if that is due, and lets go of those whose lease is over. What
    /// can't be read or replaced now is looked at the next time.
    pub(in super::super) fn look_at_pins(&self, line: &mut Line) {
        let now = self.clock.steady_micros();
        let Line { head, watch, .. } = line;
        if head.pins.is_empty() || watch.looked.is_some_and(|at| now - at < LOOKED_MICROS) {
            return;
        }
        watch.looked = Some(now);
        watch.seen.retain(|pin, _| head.pins.contains(pin));
        for pin in watch.listed(&head.pins) {
            let Ok(Some(pinned)) = self.look_at_pin(watch, pin, now) else { continue };
            watch.let_go.insert(pin);
            self.notice(format!(
                "the clone at {} has lost its pin {}, which it hadn't renewed for {} days: what \
                 only that clone needed of this store goes with the next garbage collections",
                pinned.place,
                hex(&pin),
                pinned.lease_micros / DAY_MICROS
            ));
        }
    }

    /// Returns a pin that was let go, now or before.
    fn look_at_pin(
        &self,
        watch: &mut Watch,
        pin: Nonce,
        now: i64,
    ) -> Result<Option<Pinned>, StoreError> {
        let name = object_name(&hex(&pin));
        let Some((bytes, version)) = self.bucket.load(&name).map_err(store_error)? else {
            return Ok(None);
        };
        let pinned = Pinned::parse(&bytes, &name)?;
        if pinned.is_let_go {
            return Ok(Some(pinned));
        }
        let before = watch.seen.insert(pin, (pinned.nonce, now));
        let Some((_, at)) = before.filter(|(state, at)| *state == pinned.nonce && *at < now) else {
            return Ok(None);
        };
        let silent_micros = pinned.silent_micros.saturating_add(now - at);
        let is_let_go = pinned.lease_micros.max(LEASE_MICROS_MIN) <= silent_micros;
        let next = Pinned { nonce: nonce(&*self.chance), silent_micros, is_let_go, ..pinned };
        let swapped = swap_until_known(&*self.bucket, &name, &version, &next.encode());
        if swapped.map_err(store_error)?.is_none() {
            return Ok(None);
        }
        watch.seen.insert(pin, (next.nonce, now));
        Ok(is_let_go.then_some(next))
    }

    /// Renews this line's pins at its sources, if that is due.
    pub(in super::super) fn renew_pins(&self) {
        // A sending may take minutes, and is no reason for others to wait.
        let Ok(mut line) = self.line.try_lock() else { return };
        let now = self.clock.steady_micros();
        if line.head.sources.is_empty() || now < line.renew_at || line.is_deposed {
            return;
        }
        line.renew_at = now + RENEWED_MICROS;
        let holder = self.holder();
        let notices = match self.role {
            Role::Leads => holder.renew_all(&self.places, &mut line.head),
            Role::Reads => match load_head(&*self.bucket) {
                Ok(Some((head, _))) => holder.renew_for_reader(&self.places, &head),
                _ => Vec::new(),
            },
        };
        notices.into_iter().for_each(|notice| self.notice(notice));
    }

    fn holder(&self) -> Holder<'_> {
        Holder {
            chance: &*self.chance,
            now_micros: self.clock.now_micros(),
            place: &self.options.place,
            lease_micros: self.options.pin_lease_micros(),
        }
    }
}
