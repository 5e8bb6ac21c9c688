//! Writes the samples of `/metrics`: the counters of `serverStatus`, by Prometheus' conventions
//! (seconds and bytes, `_total` for counters that only rise).

use crate::commands::handshake::{FROND_VERSION, MONGODB_VERSION};
use crate::machine_memory;
use crate::metrics::readiness;
use crate::metrics::text::{Kind, Text};
use crate::process_counts::ProcessCounts;
use crate::shared::{COUNTER_NAMES, Shared};
use crate::usage::Latency;

use Kind::{Counter, Gauge, Histogram};

/// All samples.
pub fn write(server: &Shared) -> String {
    let mut text = Text::default();
    write_server(&mut text, server);
    write_process(&mut text, server);
    write_clients(&mut text, server);
    write_sessions(&mut text, server);
    write_network(&mut text, server);
    write_commands(&mut text, server);
    write_engine(&mut text, server);
    write_store(&mut text, server);
    write_memory(&mut text, server);
    text.finish()
}

fn write_server(text: &mut Text, server: &Shared) {
    text.family(
        "frond_info",
        Gauge,
        "The server's version, and the MongoDB version that it offers.",
    );
    let labels = [("version", FROND_VERSION), ("mongodb_version", MONGODB_VERSION)];
    text.sample("frond_info", &labels, 1);
    let ready = u8::from(readiness(server).is_ok());
    text.one(
        "frond_ready",
        Gauge,
        "1 if clients may be sent here: it takes writes and isn't stopping.",
        ready,
    );
    let draining = u8::from(server.drain.is_begun());
    text.one("frond_draining", Gauge, "1 while the server stops.", draining);
    let fault = u8::from(server.frond.fault().is_some());
    text.one(
        "frond_closed_for_writing",
        Gauge,
        "1 once a fault has closed the databases for writing.",
        fault,
    );
}

/// Names that exporters of all programs share.
fn write_process(text: &mut Text, server: &Shared) {
    let started = server.frond.now_millis() as f64 / 1e3 - server.started.elapsed().as_secs_f64();
    text.one(
        "process_start_time_seconds",
        Gauge,
        "When the server started, in seconds since 1970.",
        started,
    );
    if let Some(counts) = ProcessCounts::read() {
        let seconds = (counts.user_micros + counts.system_micros) as f64 / 1e6;
        text.one("process_cpu_seconds_total", Counter, "Processor time used.", seconds);
        text.one("process_threads", Gauge, "Threads.", counts.threads);
    }
    if let Some((resident, addressed)) = machine_memory::resident_and_virtual_bytes() {
        text.one(
            "process_resident_memory_bytes",
            Gauge,
            "Resident memory of the process.",
            resident,
        );
        text.one(
            "process_virtual_memory_bytes",
            Gauge,
            "Virtual memory of the process.",
            addressed,
        );
    }
}

fn write_clients(text: &mut Text, server: &Shared) {
    let (open, made) = server.connection_counts();
    let (threads, waiting) = server.workers.counts();
    let cursors = server.cursors.counts();
    for (name, kind, help, count) in [
        ("frond_connections", Gauge, "Connections.", open as u64),
        (
            "frond_connections_max",
            Gauge,
            "Connections that are allowed.",
            server.connections_max as u64,
        ),
        (
            "frond_connections_accepted_total",
            Counter,
            "Connections that were accepted.",
            u64::from(made.unsigned_abs()),
        ),
        (
            "frond_connections_refused_total",
            Counter,
            "Connections that were closed as they came.",
            server.connections_refused(),
        ),
        ("frond_client_threads", Gauge, "Threads that talk to clients.", threads as u64),
        (
            "frond_clients_waiting_for_thread",
            Gauge,
            "Clients that are waiting for a thread.",
            waiting as u64,
        ),
        (
            "frond_operations_running",
            Gauge,
            "Commands that are running.",
            server.operations.list().len() as u64,
        ),
        ("frond_cursors", Gauge, "Open cursors.", cursors.open as u64),
        (
            "frond_cursors_pinned",
            Gauge,
            "Cursors that a command is reading.",
            cursors.pinned as u64,
        ),
        ("frond_cursors_timed_out_total", Counter, "Cursors that timed out.", cursors.timed_out),
    ] {
        text.one(name, kind, help, count);
    }
}

fn write_sessions(text: &mut Text, server: &Shared) {
    let sessions = server.sessions.counts();
    for (name, kind, help, count) in [
        ("frond_sessions", Gauge, "Sessions that are open.", sessions.sessions as u64),
        (
            "frond_transactions_open",
            Gauge,
            "Transactions of several commands that are open.",
            sessions.open as u64,
        ),
        (
            "frond_transactions_started_total",
            Counter,
            "Transactions of several commands that \
                                                       were begun.",
            sessions.started,
        ),
        (
            "frond_transactions_committed_total",
            Counter,
            "Transactions of several commands that were committed.",
            sessions.committed,
        ),
        (
            "frond_transactions_aborted_total",
            Counter,
            "Transactions of several commands that \
                                                       were aborted.",
            sessions.aborted,
        ),
    ] {
        text.one(name, kind, help, count);
    }
}

fn write_network(text: &mut Text, server: &Shared) {
    let traffic = server.usage.traffic();
    let requests = "frond_network_requests_total";
    text.one(requests, Counter, "Messages from clients.", traffic.requests);
    for (name, help, bytes_in, bytes_out) in [
        (
            "frond_network_bytes_total",
            "Bytes of messages, decompressed.",
            traffic.bytes_in,
            traffic.bytes_out,
        ),
        (
            "frond_network_physical_bytes_total",
            "Bytes of messages as they go over the wire.",
            traffic.physical_bytes_in,
            traffic.physical_bytes_out,
        ),
    ] {
        text.family(name, Counter, help);
        text.sample(name, &[("direction", "in")], bytes_in);
        text.sample(name, &[("direction", "out")], bytes_out);
    }
}

fn write_commands(text: &mut Text, server: &Shared) {
    let name = "frond_operations_total";
    text.family(
        name,
        Counter,
        "Operations, as opcounters has them: inserts, updates and deletes by document.",
    );
    for (kind, count) in COUNTER_NAMES.iter().zip(server.counts()) {
        text.sample(name, &[("type", kind)], count);
    }
    let failures = server.usage.failures();
    let name = "frond_command_failures_total";
    text.family(name, Counter, "Commands that failed: by what was asked, by a defect, by a panic.");
    for (kind, count) in
        [("user", failures.user), ("internal", failures.internal), ("panic", failures.panics)]
    {
        text.sample(name, &[("kind", kind)], count);
    }
    let name = "frond_command_duration_seconds";
    text.family(name, Histogram, "How long commands took, by kind.");
    let (bucket, sum, count) =
        (format!("{name}_bucket"), format!("{name}_sum"), format!("{name}_count"));
    // The commands of a transaction are counted already.
    for kind in Latency::ALL.into_iter().filter(|kind| *kind != Latency::Transaction) {
        let label = ("kind", kind.name());
        let (below, all) = server.usage.latencies().below_powers(kind);
        for (micros, count) in below {
            let bound = format!("{}", micros as f64 / 1e6);
            text.sample(&bucket, &[label, ("le", &bound)], count);
        }
        text.sample(&bucket, &[label, ("le", "+Inf")], all);
        let micros = server.usage.latencies().spent(kind).micros;
        text.sample(&sum, &[label], micros as f64 / 1e6);
        text.sample(&count, &[label], all);
    }
}

fn write_engine(text: &mut Text, server: &Shared) {
    let (engine, _) = server.frond.counters();
    for (name, kind, help, count) in [
        ("frond_engine_commits_total", Counter, "Transactions committed.", engine.commits),
        (
            "frond_engine_conflicts_total",
            Counter,
            "Transactions refused because another was first.",
            engine.conflicts,
        ),
        (
            "frond_engine_key_lock_waits_total",
            Counter,
            "Waits for another transaction.",
            engine.key_lock_waits,
        ),
        (
            "frond_engine_waiting",
            Gauge,
            "Transactions that are waiting for another.",
            engine.waiting,
        ),
        (
            "frond_engine_deadlocks_total",
            Counter,
            "Transactions aborted in a deadlock.",
            engine.deadlocks,
        ),
        ("frond_engine_log_syncs_total", Counter, "Syncs of the log.", engine.log_syncs),
        ("frond_engine_log_bytes_total", Counter, "Bytes written to the log.", engine.log_bytes),
        ("frond_engine_flushes_total", Counter, "Flushes of memtables.", engine.flushes),
        ("frond_engine_folds_total", Counter, "Folds of trees.", engine.folds),
        ("frond_engine_merges_total", Counter, "Merges of runs.", engine.merges),
        ("frond_engine_runs", Gauge, "Runs above trees.", engine.runs),
        ("frond_engine_memtable_bytes", Gauge, "Bytes in memtables.", engine.memtable_bytes),
        (
            "frond_engine_background_failures_total",
            Counter,
            "Background work that failed.",
            engine.background_failures,
        ),
        (
            "frond_engine_scrubbed_bytes_total",
            Counter,
            "Bytes reread to find damage.",
            engine.scrubbed_bytes,
        ),
        ("frond_engine_damages", Gauge, "Places that are damaged now.", engine.damages),
    ] {
        text.one(name, kind, help, count);
    }
}

fn write_store(text: &mut Text, server: &Shared) {
    let (_, store) = server.frond.counters();
    for (name, kind, help, count) in [
        ("frond_store_chunks_read_total", Counter, "Chunks asked for.", store.chunks_read),
        (
            "frond_store_chunks_fetched_total",
            Counter,
            "Of these, those read from the disk.",
            store.chunks_fetched,
        ),
        ("frond_store_chunks_written_total", Counter, "Chunks written.", store.chunks_written),
        (
            "frond_store_written_bytes_total",
            Counter,
            "Bytes written to files.",
            store.bytes_written,
        ),
        ("frond_store_syncs_total", Counter, "Syncs of files.", store.syncs),
        ("frond_store_bytes", Gauge, "Bytes of all packs.", store.bytes_stored),
        (
            "frond_store_damages_found_total",
            Counter,
            "Chunks that were found damaged.",
            store.damages_found,
        ),
    ] {
        text.one(name, kind, help, count);
    }
    write_tier(text, server);
    let Some(room) = server.frond.engine().disk_status() else { return };
    for (name, help, bytes) in [
        ("frond_disk_bytes", "The disk's size.", room.disk),
        ("frond_disk_free_bytes", "Free space on the disk.", room.free),
        ("frond_disk_reserve_bytes", "Disk space held in reserve.", room.reserve),
    ] {
        text.one(name, Gauge, help, bytes);
    }
    let refuses = u8::from(room.is_short());
    text.one(
        "frond_disk_refuses_growth",
        Gauge,
        "1 while the disk is too full for data to grow.",
        refuses,
    );
}

/// The store beyond the disk.
fn write_tier(text: &mut Text, server: &Shared) {
    let store = server.frond.engine().store().maintenance();
    let Some(tier) = store.tier_state() else { return };
    let requests = tier.requests;
    let name = "frond_store_requests_total";
    text.family(name, Counter, "Requests to the store in which packs live.");
    for (kind, count) in [
        ("put", requests.puts),
        ("get", requests.gets),
        ("list", requests.lists),
        ("delete", requests.deletes),
    ] {
        text.sample(name, &[("kind", kind)], count);
    }
    let name = "frond_store_request_bytes_total";
    text.family(name, Counter, "Bytes of packs sent to the store, and fetched from it.");
    text.sample(name, &[("direction", "put")], requests.bytes_put);
    text.sample(name, &[("direction", "got")], requests.bytes_got);
    let name = "frond_store_waiting_bytes";
    text.one(
        name,
        Gauge,
        "Bytes of new packs that the store hasn't taken yet.",
        tier.bytes_waiting,
    );
    let since = store.send_failure().map_or(0.0, |failure| failure.since_micros as f64 / 1e6);
    let name = "frond_store_failing_since_seconds";
    text.one(
        name,
        Gauge,
        "Since when the store has taken no packs, in seconds since 1970; 0 if it takes them.",
        since,
    );
}

fn write_memory(text: &mut Text, server: &Shared) {
    let (_, writes) = server.frond.engine().write_memory_bytes();
    for (name, help, bytes) in [
        ("frond_messages_bytes", "Memory of large messages.", server.messages.held() as u64),
        ("frond_answers_bytes", "Memory of large answers.", server.answers.held() as u64),
        (
            "frond_kept_documents_bytes",
            "Memory of what cursors keep.",
            server.kept_documents.held() as u64,
        ),
        ("frond_writes_bytes", "Memory of running writes.", writes),
        ("frond_stages_bytes", "Memory of stages.", server.frond.stages_memory_bytes() as u64),
        ("frond_temporary_disk_bytes", "Temporary files.", server.frond.temporary_disk_bytes()),
    ] {
        text.one(name, Gauge, help, bytes);
    }
    let pressure = f64::from(server.memory_pressure()) / f64::from(frond_db::PRESSURE_MAX);
    text.one(
        "frond_memory_pressure",
        Gauge,
        "How short of memory the process is, from 0 to 1.",
        pressure,
    );
}
