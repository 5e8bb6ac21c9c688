//! `serverStatus.frond`: what engine and store count, and how the server is.

use frond_doc::{DocumentBuilder, Value};

use crate::commands::handshake::FROND_VERSION;
use crate::commands::{clock, reply};
use crate::health::Health;
use crate::machine_memory::{self, MachineMemory};
use crate::shared::Shared;

/// Appends the section.
pub(super) fn append(answer: &mut DocumentBuilder, server: &Shared) {
    answer.begin_document("frond").append("version", Value::String(FROND_VERSION));
    append_health(answer, server);
    append_engine(answer, server);
    append_store(answer, server);
    append_disk(answer, server);
    answer.begin_document("clock");
    clock::append(answer, &server.frond.clock_state());
    answer.end();
    append_memory(answer, server);
    answer.end();
}

fn append_engine(answer: &mut DocumentBuilder, server: &Shared) {
    let (engine, _) = server.frond.counters();
    answer.begin_document("engine");
    for (name, count) in [
        ("commits", engine.commits),
        ("conflicts", engine.conflicts),
        ("keyLockWaits", engine.key_lock_waits),
        ("waiting", engine.waiting),
        ("deadlocks", engine.deadlocks),
        ("snapshotsRefreshed", engine.snapshots_refreshed),
        ("snapshotsKept", engine.snapshots_kept),
        ("logSyncs", engine.log_syncs),
        ("logBytes", engine.log_bytes),
        ("folds", engine.folds),
        ("memtableBytes", engine.memtable_bytes),
        ("backgroundFailures", engine.background_failures),
        ("faults", u64::from(server.frond.fault().is_some())),
    ] {
        answer.append(name, Value::Int64(reply::long(count)));
    }
    if let Some(failure) = server.frond.last_failure() {
        answer
            .begin_document("lastBackgroundFailure")
            .append("work", Value::String(failure.work))
            .append("message", Value::String(&failure.message))
            .append("at", Value::DateTime(failure.at_micros.div_euclid(1_000)))
            .end();
    }
    answer.end();
}

fn append_store(answer: &mut DocumentBuilder, server: &Shared) {
    let (engine, store) = server.frond.counters();
    answer.begin_document("store");
    for (name, count) in [
        ("chunksRead", store.chunks_read),
        ("chunksFetched", store.chunks_fetched),
        ("chunksWritten", store.chunks_written),
        ("bytesPut", store.bytes_put),
        ("bytesWritten", store.bytes_written),
        ("bytesBrief", store.bytes_brief),
        ("bytesMoved", store.bytes_moved),
        ("syncs", store.syncs),
        ("bytesStored", store.bytes_stored),
        ("bytesScrubbed", engine.scrubbed_bytes),
        ("logBitsTurnedBack", engine.log_bits_turned_back),
        ("damagesFound", store.damages_found),
        ("damagesNow", engine.damages),
    ] {
        answer.append(name, Value::Int64(reply::long(count)));
    }
    append_tier(answer, server);
    answer.end();
}

fn append_disk(answer: &mut DocumentBuilder, server: &Shared) {
    answer.begin_document("disk");
    if let Some(room) = server.frond.engine().disk_status() {
        for (name, bytes) in [
            ("bytes", room.disk),
            ("bytesFree", room.free),
            ("bytesReserve", room.reserve),
            ("bytesHeld", room.held),
        ] {
            answer.append(name, Value::Int64(reply::long(bytes)));
        }
        answer.append("refusesGrowth", Value::Boolean(room.is_short()));
    }
    answer.end();
}

fn append_memory(answer: &mut DocumentBuilder, server: &Shared) {
    answer.begin_document("memory");
    for (name, held) in [
        ("messagesBytes", server.messages.held()),
        ("answersBytes", server.answers.held()),
        ("stalledBytes", server.stalled_files.bytes()),
        ("keptDocumentsBytes", server.kept_documents.held()),
        ("keptDocumentsFileBytes", server.kept_files.bytes()),
    ] {
        answer.append(name, Value::Int64(reply::long(held as u64)));
    }
    for (name, bytes) in [
        ("processBytes", machine_memory::own_bytes()),
        ("machineBytes", MachineMemory::read().bytes()),
    ] {
        answer.append(name, Value::Int64(reply::long(bytes.unwrap_or(0))));
    }
    let pressure = f64::from(server.memory_pressure()) / f64::from(frond_db::PRESSURE_MAX);
    answer.append("pressure", Value::Double(pressure));
    let (_, writes) = server.frond.engine().write_memory_bytes();
    answer.append("writesBytes", Value::Int64(reply::long(writes)));
    let stages = server.frond.stages_memory_bytes() as u64;
    answer.append("stagesBytes", Value::Int64(reply::long(stages)));
    let temporary = server.frond.temporary_disk_bytes();
    answer.append("temporaryDiskBytes", Value::Int64(reply::long(temporary)));
    answer.end();
}

/// Appends what a store beyond the disk was asked, and what waits for it.
fn append_tier(answer: &mut DocumentBuilder, server: &Shared) {
    let Some(tier) = server.frond.engine().store().maintenance().tier_state() else { return };
    answer.append("bytesWaiting", Value::Int64(reply::long(tier.bytes_waiting)));
    answer.begin_document("requests");
    for (name, count) in [
        ("put", tier.requests.puts),
        ("get", tier.requests.gets),
        ("list", tier.requests.lists),
        ("delete", tier.requests.deletes),
        ("bytesPut", tier.requests.bytes_put),
        ("bytesGot", tier.requests.bytes_got),
    ] {
        answer.append(name, Value::Int64(reply::long(count)));
    }
    answer.end();
}

/// Appends whether writes are taken, and what keeps them from it, or will.
fn append_health(answer: &mut DocumentBuilder, server: &Shared) {
    let health = Health::of(server);
    answer
        .begin_document("health")
        .append("ok", Value::Boolean(matches!(health, Health::Well)))
        .append("state", Value::String(health.state()));
    let trouble = match &health {
        Health::Well => None,
        Health::ClosedForWriting(fault) => Some((&fault.message, fault.at_micros, FAULT_ADVICE)),
        Health::StoreIsAway(failure) => {
            Some((&failure.message, failure.since_micros, STORE_ADVICE))
        }
    };
    if let Some((reason, since_micros, advice)) = trouble {
        answer
            .append("reason", Value::String(reason))
            .append("since", Value::DateTime(since_micros.div_euclid(1_000)))
            .append("advice", Value::String(advice));
    }
    answer.end();
}

/// The advice about a fault: for the log, and for clients that ask.
pub const FAULT_ADVICE: &str = "reads go on, writes are refused; which of the transactions that were being committed were \
     kept is read from the log at the next start: check the disk, then stop this server and start it again (it doesn't \
     open the data directory again by itself)";

/// The advice for a store to which packs can't be sent.
const STORE_ADVICE: &str = "writes continue until too many new packs are on the disk, reads of \
                            what isn't on the disk fail: check that the store answers (frond \
                            doctor --store); what waits is then sent by itself";
