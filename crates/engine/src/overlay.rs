//! Recent writes above the trees: [`memtable`] holds the youngest in memory, as they are [`stored`]
//! in the log's records, with the chunks [`pending`] with them, a [`run`] older ones of one tree in
//! the store, with a [`filter`] beside it; [`interleave`] reads several of them and a transaction's
//! own writes as one. The memory of flushed memtables goes to the next ones: [`recycle`]. Whether
//! a key had a value before it was written: [`before`].

pub(crate) mod before;
pub(crate) mod filter;
pub(crate) mod interleave;
pub(crate) mod memtable;
pub(crate) mod pending;
pub(crate) mod recycled;
pub(crate) mod run;
pub(crate) mod stored;
