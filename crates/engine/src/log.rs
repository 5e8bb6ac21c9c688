//! The write-ahead log: segments of chained records ([`format`]), one [`writer`], [`recovery`], and the files of
//! old segments for new ones ([`spares`]).

pub(crate) mod decode;
pub(crate) mod format;
pub(crate) mod patch;
pub(crate) mod record;
pub(crate) mod recovery;
pub(crate) mod repeat;
pub(crate) mod spares;
pub(crate) mod writer;
