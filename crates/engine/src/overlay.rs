//! Recent writes above the trees: [`memtable`] holds the youngest in memory, as they are [`stored`]
//! in the log's records, with the chunks [`pending`] with them, a [`run`] older ones of one tree in
//! the store, with a [`filter`] beside it; [`interleave`] reads several of them and a transaction's
//! own writes as one. What flushed memtables took in memory goes to the next: [`recycle`].

pub(crate) mod filter;
pub(crate) mod interleave;
pub(crate) mod memtable;
pub(crate) mod pending;
pub(crate) mod recycled;
pub(crate) mod run;
pub(crate) mod stored;
