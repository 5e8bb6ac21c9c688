//! An entry of the overlay: a key and what was written to it. Log, memtable and runs share the
//! form.

use bytes::Bytes;
use frond_tree::Value;

/// A key and what became of it: a value, or a deletion.
pub(crate) type OverlayEntry = (Bytes, Option<Value>);
