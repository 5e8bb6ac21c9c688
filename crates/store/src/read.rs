//! Ways of reading from a disk: ahead of a scan, past the system's cache, into pooled buffers.

pub(crate) mod buffers;
pub(crate) mod direct_policy;
pub(crate) mod latency;
pub(crate) mod prefetch;
