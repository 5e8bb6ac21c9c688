//! `serverStatus.wiredTiger`: the fields of the storage engine that tools read there (mongostat's
//! `dirty`, `used`, `flushes`, `qrw`, `arw`; agents' `cache` and `log`), filled with Frond's own.

use frond_doc::{DocumentBuilder, Value};

use super::activity::readers_and_writers;
use crate::commands::reply;
use crate::shared::Shared;

/// Appends a document of counts.
fn append_counts(answer: &mut DocumentBuilder, name: &str, counts: &[(&str, u64)]) {
    answer.begin_document(name);
    for (name, count) in counts {
        answer.append(name, Value::Int64(reply::long(*count)));
    }
    answer.end();
}

/// Appends the section. Chunks stand for pages, memtables for what is dirty, flushes for
/// checkpoints.
pub(super) fn append_cache(answer: &mut DocumentBuilder, server: &Shared) {
    let (engine, store) = server.frond.counters();
    answer.begin_document("wiredTiger");
    append_counts(
        answer,
        "cache",
        &[
            ("bytes currently in the cache", store.cache_bytes),
            ("maximum bytes configured", store.cache_bytes_max),
            ("pages read into cache", store.chunks_fetched),
            ("pages requested from the cache", store.chunks_read),
            ("pages written from cache", store.chunks_written),
            ("tracked dirty bytes in the cache", engine.memtable_bytes),
        ],
    );
    let (readers, writers) = readers_and_writers(server);
    answer.begin_document("concurrentTransactions");
    for (name, running) in [("read", readers), ("write", writers)] {
        append_counts(answer, name, &[("out", running)]);
    }
    answer.end();
    append_counts(
        answer,
        "log",
        &[("log bytes written", engine.log_bytes), ("log sync operations", engine.log_syncs)],
    );
    append_counts(
        answer,
        "transaction",
        &[("transaction checkpoints", engine.flushes), ("transactions committed", engine.commits)],
    );
    answer.end();
}
