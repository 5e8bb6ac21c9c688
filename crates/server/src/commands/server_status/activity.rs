//! Sections about what clients do.

use frond_doc::{DocumentBuilder, Value};

use crate::commands::{handshake, reply};
use crate::shared::{COUNTER_NAMES, Shared};
use crate::usage::{Class, Latency};
use crate::wire::Compressor;

/// Counts of any size.
pub(super) fn long(count: u64) -> Value<'static> {
    Value::Int64(reply::long(count))
}

/// Appends how commands failed: `regular` panicked, `msg` met a defect that was noticed, `user` is
/// all else.
pub(super) fn append_asserts(answer: &mut DocumentBuilder, server: &Shared) {
    let failures = server.usage.failures();
    answer
        .begin_document("asserts")
        .append("regular", long(failures.panics))
        // MongoDB has had none of these either since 4.0.
        .append("warning", Value::Int32(0))
        .append("msg", long(failures.internal))
        .append("user", long(failures.user))
        // No counter begins again.
        .append("rollovers", Value::Int32(0))
        .end();
}

/// Appends how many clients there are.
pub(super) fn append_connections(answer: &mut DocumentBuilder, server: &Shared) {
    let (open, made) = server.connection_counts();
    let available = server.connections_max.saturating_sub(open);
    answer
        .begin_document("connections")
        .append("current", reply::number(open as u64))
        .append("available", reply::number(available as u64))
        .append("totalCreated", Value::Int32(made))
        .append("rejected", long(server.connections_refused()))
        .append("active", reply::number(server.operations.list().len() as u64))
        .append("threaded", reply::number(server.workers.counts().0 as u64))
        // Only clients whose `hello` waits for news listen for them.
        .append("awaitingTopologyChanges", reply::number(server.topology.receiver_count() as u64))
        .end();
}

/// Returns how many operations run that read, and that write.
pub(super) fn readers_and_writers(server: &Shared) -> (u64, u64) {
    let running = server.operations.list();
    let count = |latency| {
        let is = |command: &str| Class::of(command).latency == latency;
        running.iter().filter(|operation| is(operation.command)).count() as u64
    };
    (count(Latency::Read), count(Latency::Write))
}

/// Appends the counts of running and waiting operations: writers for another's transaction, and
/// clients for a thread.
pub(super) fn append_global_lock(answer: &mut DocumentBuilder, server: &Shared) {
    let running = server.operations.list();
    let (readers, writers) = readers_and_writers(server);
    let waiting = server.frond.counters().0.waiting;
    let without_thread = server.workers.counts().1 as u64;
    let micros = u64::try_from(server.started.elapsed().as_micros()).unwrap_or(u64::MAX);
    answer
        .begin_document("globalLock")
        .append("totalTime", long(micros))
        .begin_document("currentQueue")
        .append("total", reply::number(waiting + without_thread))
        // Whether the messages of clients without a thread read or write isn't known before they
        // are read.
        .append("readers", reply::number(without_thread))
        .append("writers", reply::number(waiting))
        .end()
        .begin_document("activeClients")
        .append("total", reply::number(running.len() as u64))
        .append("readers", reply::number(readers))
        .append("writers", reply::number(writers))
        .end()
        .end();
}

/// Appends how many sessions there are.
pub(super) fn append_sessions(answer: &mut DocumentBuilder, server: &Shared) {
    answer
        .begin_document("logicalSessionRecordCache")
        .append("activeSessionsCount", reply::number(server.sessions.counts().sessions as u64))
        .end();
}

/// Appends what went over the wire.
pub(super) fn append_network(answer: &mut DocumentBuilder, server: &Shared) {
    let traffic = server.usage.traffic();
    answer
        .begin_document("network")
        .append("bytesIn", long(traffic.bytes_in))
        .append("bytesOut", long(traffic.bytes_out))
        .append("physicalBytesIn", long(traffic.physical_bytes_in))
        .append("physicalBytesOut", long(traffic.physical_bytes_out))
        .append("numRequests", long(traffic.requests))
        .begin_document("compression");
    for compressor in Compressor::ALL {
        let (compressed, inflated) = server.usage.compression().of(compressor);
        answer.begin_document(compressor.name());
        for (name, through) in [("compressor", compressed), ("decompressor", inflated)] {
            answer
                .begin_document(name)
                .append("bytesIn", long(through.bytes_in))
                .append("bytesOut", long(through.bytes_out))
                .end();
        }
        answer.end();
    }
    answer.end().end();
}

/// Appends how many operations there were.
pub(super) fn append_counters(answer: &mut DocumentBuilder, server: &Shared) {
    answer.begin_document("opcounters");
    for (name, count) in COUNTER_NAMES.iter().zip(server.counts()) {
        answer.append(name, long(count));
    }
    answer.end();
}

/// Appends how many operations a server by itself got from another: none. A member of a set applies
/// entries of the set's log, which aren't counted by clients' operations.
pub(super) fn append_replicated(answer: &mut DocumentBuilder, server: &Shared) {
    if server.replica.is_none() {
        answer.begin_document("opcountersRepl");
        for name in COUNTER_NAMES {
            answer.append(name, long(0));
        }
        answer.end();
    }
}

/// Appends the server's role in its set, as in `hello`.
pub(super) fn append_member(answer: &mut DocumentBuilder, server: &Shared) {
    answer.begin_document("repl");
    handshake::append_member(answer, server);
    // mongostat reads this name.
    answer.append("ismaster", Value::Boolean(server.is_primary())).end();
}

/// Appends what became of transactions.
pub(super) fn append_transactions(answer: &mut DocumentBuilder, server: &Shared) {
    let counts = server.sessions.counts();
    answer
        .begin_document("transactions")
        .append("currentOpen", long(counts.open as u64))
        .append("totalStarted", long(counts.started))
        .append("totalCommitted", long(counts.committed))
        .append("totalAborted", long(counts.aborted))
        .end();
}
