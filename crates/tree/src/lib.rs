//! Prolly trees: a history-independent ordered map of bytes, and a history-independent sequence.
//!
//! Reading order: [`format`] (what is fixed for a repository's life), [`value`], [`map`] (get,
//! range, apply, build, diff, merge), [`sequence`]. A tree is a [`Tree`]: a root hash and a format,
//! copied freely; its nodes lie in a [`ChunkStore`](frond_store::ChunkStore). This crate doesn't
//! know what keys and values mean, and knows no log, no transaction and no disk.

pub mod error;
pub mod format;
pub mod map;
pub mod sequence;
pub mod value;

pub use error::TreeError;
pub use format::TreeFormat;
pub use map::{Bounds, Change, Cursor, Direction, Edit, Entry, Tree};
pub use sequence::Sequence;
pub use value::{Content, Value};
