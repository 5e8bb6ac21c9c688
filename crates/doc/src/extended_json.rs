//! Extended JSON (relaxed and canonical), both ways, as MongoDB's tools read and write it.
//!
//! Types that JSON doesn't have are objects whose first name begins with a dollar, such as `$oid`.
//! Reading makes such an object an ordinary document first and converts it when it ends, so that
//! wrappers nest and their fields come in any order. Other names with a dollar are operators and
//! stay documents.

pub mod base64;
mod date;
mod parse;
mod plain;
mod short;
mod transcode;
mod visit;
pub(crate) mod wrapper;
mod write;

pub use parse::{parse, parse_first};
pub(crate) use visit::{Element, Name};
pub use write::{append, write, write_value};
pub(crate) use write::{append_raw, append_text};

/// The epoch from which dates are counted. A [`jiff::Timestamp`] ends a day before the year 9999
/// does.
const EPOCH: jiff::civil::DateTime = jiff::civil::datetime(1970, 1, 1, 0, 0, 0, 0);

/// The form of Extended JSON to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Numbers and dates as people read them; integers may lose their width.
    Relaxed,
    /// Every type is kept exactly.
    Canonical,
}

#[cfg(test)]
mod tests;
