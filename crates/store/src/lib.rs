//! Content-addressed chunks on local disk, and the operating system behind three small traits.
//!
//! Reading order: [`io`] (disk, clock, chance), [`chunk`] (what is stored), [`ChunkStore`] (what a
//! store can do), then [`local`] (pack files; with it `pack`, `manifest` and `index`) and
//! [`memory`] (for tests and temporary trees). [`field`] is what every file format shares. This
//! crate doesn't know what a chunk's payload means.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod bucket;
pub mod budget;
pub mod chunk;
pub mod error;
pub mod field;
pub mod io;
pub mod local;
pub mod memory;
pub mod memory_queue;
mod read;
pub mod tiered;

mod cache;
mod chunk_store;
mod copies;
mod counters;
mod damage;
mod entry_name;
mod gc;
mod hash;
mod headroom;
mod index;
mod interpolation;
mod layer;
mod lifetime;
mod location;
mod manifest;
mod new_directory;
mod pack;
pub mod stripe;
mod unreadable;
mod unrelated_files;

pub use cache::admission::{Admission, EntryLookup};
pub use cache::budget::{CacheBudget, CacheReservation};
pub use chunk::{Chunk, ChunkHash, ChunkKind, WeakChunk};
pub use chunk_store::{ChunkStore, Maintenance, ReadCache, ReadOptions, SendFailure};
pub use copies::{Copies, NewCopies};
pub use counters::StoreCounters;
pub use damage::{Damage, ScrubReport};
pub use entry_name::EntryName;
pub use error::StoreError;
pub use gc::session::{Session, SessionMoment};
pub use gc::{GarbageCollection, GcOptions, GcReport};
pub use hash::NameHasherBuilder;
pub use headroom::{Headroom, HeadroomGuard, last_part};
pub use layer::{Layered, PutFor, StoreLayer};
pub use lifetime::Lifetime;
pub use manifest::{MANIFEST_NAMES, ROOT_NAME_BYTES_MAX};
pub use new_directory::{EMPTY_LOG_BYTES_MAX, NewDirectory};
pub use read::prefetch::Prefetched;
pub use unreadable::UnreadableRange;
pub use unrelated_files::unrelated_file;
