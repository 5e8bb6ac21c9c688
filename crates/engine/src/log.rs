//! The write-ahead log: segments of chained records ([`format`]), one [`writer`], [`recovery`], and
//! the files of old segments for new ones ([`recycled`]). Segments are [`retained`] for change
//! streams ([`follow`]).

mod bit_flip;
pub(crate) mod decode;
pub(crate) mod follow;
pub(crate) mod format;
pub(crate) mod omit_record;
pub(crate) mod patch;
pub(crate) mod record;
pub(crate) mod recovery;
pub(crate) mod recycled;
pub(crate) mod repeat;
pub(crate) mod retained;
mod segment;
pub(crate) mod writer;

/// The most that a transaction may hold; what is larger replaces a tree's base.
pub const TRANSACTION_BYTES_MAX: u64 = 1 << 30;
