//! What a transaction writes, one entry a key, as the log, the memtable and runs have it.

use bytes::Bytes;
use frond_tree::Value;

/// A key and what became of it: a value, or a deletion.
pub(crate) type OverlayEntry = (Bytes, Option<Value>);
