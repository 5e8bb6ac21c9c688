//! Recent writes, in memory, above the trees: [`memtable`] holds them, [`interleave`] reads several
//! memtables and a transaction's own writes as one.

pub(crate) mod interleave;
pub(crate) mod memtable;
