//! Prolly trees: a history-independent ordered map of bytes, and a history-independent sequence.
//!
//! Reading order: [`mod@format`] (what is fixed for a repository's life), `boundary` (where chunks
//! end), `levels` (how nodes become a tree), [`value`], [`map`] (get, range, apply, build, diff,
//! merge), [`sequence`]. A tree is a [`Tree`]: a root hash and a format, copied freely; its nodes
//! lie in a [`ChunkStore`](frond_store::ChunkStore). This crate doesn't know what keys and values
//! mean, and knows no log, no transaction and no disk.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod error;
pub mod format;

mod boundary;
mod levels;

pub mod value;

pub mod map;
pub mod sequence;

pub use error::TreeError;
pub use format::TreeFormat;
pub use map::{
    Bounds, CachedLevels, Change, Cursor, Diff, Direction, Edit, Edits, Entry, EntryRef,
    MergeConflict, MergeNote, Summary, Tree,
};
pub use sequence::{GrowingSequence, Hunk, Refers, Replacement, Sequence};
pub use value::{Content, ContentRef, OWN_LENGTH_FLAG, Value};
