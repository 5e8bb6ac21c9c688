//! The log of several machines: what a majority of a replica set holds.
//!
//! A [`Member`] of a set agrees with the others on one sequence of entries. An entry is committed
//! once a majority holds it durably; from then on it is never lost, and every member gets it at the
//! same place. This crate doesn't know what entries mean: to it they are bytes.
//!
//! The consensus is Raft's, by the crate `raft`; ours are the log on the disk ([`FileLog`]), the
//! bytes that travel ([`frame`]), and the rules about what leaves before it is durable
//! ([`member`]). docs/decisions/0010-raft-rs.md says why.
//!
//! It is tested by simulation: whole sets on one thread, with a network that loses, doubles, delays
//! and reorders, and disks that are slow and lose what wasn't synced (`simulation`).

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod configuration;
mod convert;
#[cfg(test)]
mod defect;
mod entry;
pub mod frame;
mod ids;
mod log;
mod log_view;
pub mod member;
pub mod running;
#[cfg(test)]
mod simulation;

pub use configuration::{Change, Configuration, MEMBERS_MAX, VOTERS_MAX};
pub use entry::{Content, ENTRY_BYTES_MAX, Entry};
pub use frame::{FRAME_BYTES_MAX, FrameError};
pub use ids::{EntryIndex, MemberId, SetId, Term};
pub use log::{Ballot, Batch, Beginning, Continuation, FileLog, Log, Recovered};
pub use member::{BatchNumber, Lack, Member, ReadId, Refused, Role, Status, Work};
pub use running::{Applier, Peers, Proposal, RequestError, Running};
