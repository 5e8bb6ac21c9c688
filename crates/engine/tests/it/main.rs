//! The engine from outside: over the store in memory and over the simulated disk.

#![allow(clippy::disallowed_methods)]

mod background_errors;
mod basics;
mod change_events;
mod concurrency;
mod counts;
mod crashes;
mod differences;
mod doubts;
mod free_keys;
mod hot_keys;
mod interactive;
mod large;
mod marked;
mod model;
mod new_directory;
mod pending;
mod rebuilt_snapshots;
mod recent_snapshots;
mod reclaim;
mod recycling;
mod rig;
mod rot;
mod sets;
mod single_entries;
mod slots;
mod stale;
mod unchanged;
