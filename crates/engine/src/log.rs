//! The write-ahead log: segments of chained records ([`format`]), one [`writer`], and [`recovery`].

pub(crate) mod format;
pub(crate) mod record;
pub(crate) mod recovery;
pub(crate) mod writer;
