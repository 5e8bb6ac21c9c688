//! What the server tells of itself: serverStatus, hostInfo, getLog, listCommands, connPoolStats.

use frond_db::Error;
use frond_doc::{DocumentBuilder, Value};
use frond_query::Code;

use crate::commands::handshake::{FROND_VERSION, MONGODB_VERSION};
use crate::commands::{COMMANDS, Run, clock, is_in_stable_api, reply};
use crate::log::{self, Lines};
use crate::machine_memory::{self, MachineMemory};
use crate::request::{Answer, Request};
use crate::shared::{COUNTER_NAMES, Shared};

/// Runs a `serverStatus`. Sections can't be chosen: there are few.
pub fn server_status(request: &Request<'_>) -> Answer {
    // Clients name the sections that they want or don't want; all are given.
    let server = request.server;
    let uptime = server.started.elapsed();
    let mut answer = DocumentBuilder::new();
    answer
        .append("host", Value::String(&server.address.to_string()))
        .append("version", Value::String(MONGODB_VERSION))
        .append("process", Value::String("frond"))
        .append("pid", Value::Int64(i64::from(std::process::id())))
        .append("uptime", Value::Double(uptime.as_secs() as f64))
        .append("uptimeMillis", Value::Int64(millis(uptime)))
        .append("uptimeEstimate", Value::Int64(reply::long(uptime.as_secs())))
        .append("localTime", Value::DateTime(server.frond.now_millis()));
    append_activity(&mut answer, server);
    append_sessions(&mut answer, server);
    append_storage(&mut answer, server);
    Ok(answer)
}

fn millis(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn append_activity(answer: &mut DocumentBuilder, server: &Shared) {
    let (open, made) = server.connection_counts();
    let available = server.connections_max.saturating_sub(open);
    answer
        .begin_document("connections")
        .append("current", reply::number(open as u64))
        .append("available", reply::number(available as u64))
        .append("totalCreated", Value::Int32(made))
        .append("active", reply::number(server.operations.list().len() as u64))
        // Only clients whose `hello` waits for news listen for them.
        .append("awaitingTopologyChanges", reply::number(server.topology.receiver_count() as u64))
        .end();
    answer.begin_document("opcounters");
    for (name, count) in COUNTER_NAMES.iter().zip(server.counts()) {
        answer.append(name, Value::Int64(reply::long(count)));
    }
    answer.end();
    let cursors = server.cursors.counts();
    answer
        .begin_document("metrics")
        .begin_document("cursor")
        .append("timedOut", Value::Int64(reply::long(cursors.timed_out)))
        .begin_document("open")
        .append("noTimeout", Value::Int64(reply::long(cursors.no_timeout as u64)))
        .append("pinned", Value::Int64(reply::long(cursors.pinned as u64)))
        .append("total", Value::Int64(reply::long(cursors.open as u64)))
        .end()
        .end()
        .end();
}

fn append_sessions(answer: &mut DocumentBuilder, server: &Shared) {
    let counts = server.sessions.counts();
    answer
        .begin_document("repl")
        .append("setName", Value::String(&server.member.set))
        .append("isWritablePrimary", Value::Boolean(server.is_primary()))
        .append("secondary", Value::Boolean(!server.is_primary()))
        .append("me", Value::String(&server.member.host))
        .begin_array("hosts")
        .push(Value::String(&server.member.host))
        .end()
        .end();
    answer
        .begin_document("logicalSessionRecordCache")
        .append("activeSessionsCount", reply::number(counts.sessions as u64))
        .end();
    answer
        .begin_document("transactions")
        .append("currentOpen", Value::Int64(reply::long(counts.open as u64)))
        .append("totalStarted", Value::Int64(reply::long(counts.started)))
        .append("totalCommitted", Value::Int64(reply::long(counts.committed)))
        .append("totalAborted", Value::Int64(reply::long(counts.aborted)))
        .end();
}

fn append_storage(answer: &mut DocumentBuilder, server: &Shared) {
    let (engine, store) = server.frond.counters();
    answer
        .begin_document("storageEngine")
        .append("name", Value::String("frond"))
        .append("supportsCommittedReads", Value::Boolean(true))
        .append("persistent", Value::Boolean(true))
        .end();
    answer.begin_document("frond").append("version", Value::String(FROND_VERSION));
    append_health(answer, server);
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
    answer.end().begin_document("store");
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
        ("damagesFound", store.damages_found),
        ("damagesNow", engine.damages),
    ] {
        answer.append(name, Value::Int64(reply::long(count)));
    }
    answer.end().begin_document("disk");
    if let Some(room) = server.frond.engine().room() {
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
    answer.end().begin_document("clock");
    clock::append(answer, &server.frond.clock_state());
    answer.end().begin_document("memory");
    for (name, held) in [
        ("messagesBytes", server.messages.held()),
        ("answersBytes", server.answers.held()),
        ("keptDocumentsBytes", server.kept_documents.held()),
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
    answer.end().end();
}

/// Appends whether writes are taken, and why not.
fn append_health(answer: &mut DocumentBuilder, server: &Shared) {
    let fault = server.frond.fault();
    let state = if fault.is_some() { "closedForWriting" } else { "writable" };
    answer
        .begin_document("health")
        .append("ok", Value::Boolean(fault.is_none()))
        .append("state", Value::String(state));
    if let Some(fault) = fault {
        answer
            .append("reason", Value::String(&fault.message))
            .append("since", Value::DateTime(fault.at_micros.div_euclid(1_000)))
            .append("advice", Value::String(FAULT_ADVICE));
    }
    answer.end();
}

/// What to do about a fault: the log says it, and whoever asks.
pub const FAULT_ADVICE: &str = "reads go on, writes are refused; which of the transactions that were being committed were \
     kept is read from the log at the next start: check the disk, then stop this server and start it again (it doesn't \
     open the data directory again by itself)";

/// Runs a `hostInfo`: what the standard library knows of the machine, and how much memory there is.
pub fn host_info(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    let cores = std::thread::available_parallelism().map_or(1, |count| count.get());
    let memory = MachineMemory::read();
    let megabytes = |bytes: Option<u64>| Value::Int64(reply::long(bytes.unwrap_or(0) >> 20));
    let mut answer = DocumentBuilder::new();
    answer
        .begin_document("system")
        .append("currentTime", Value::DateTime(request.server.frond.now_millis()))
        .append("hostname", Value::String(&request.server.address.to_string()))
        .append("cpuAddrSize", Value::Int32(usize::BITS as i32))
        .append("numCores", reply::number(cores as u64))
        .append("memSizeMB", megabytes(memory.physical_bytes))
        .append("memLimitMB", megabytes(memory.bytes()))
        .append("cpuArch", Value::String(std::env::consts::ARCH))
        .end()
        .begin_document("os")
        .append("type", Value::String(std::env::consts::OS))
        .append("name", Value::String(std::env::consts::OS))
        .append("version", Value::String(""))
        .end()
        .begin_document("extra")
        .end();
    Ok(answer)
}

/// Runs a `getLog`: the last lines, or what was wrong at the start.
pub fn get_log(request: &Request<'_>) -> Answer {
    let fields = request.fields()?;
    let mut answer = DocumentBuilder::new();
    match request.argument() {
        Value::String("*") => {
            answer
                .begin_array("names")
                .push(Value::String("global"))
                .push(Value::String("startupWarnings"))
                .end();
        }
        Value::String(name @ ("global" | "startupWarnings")) => {
            let log = &request.server.log;
            let Lines { written, lines } = match name {
                "global" => log.lines(),
                _ => log.shown(),
            };
            answer
                .append(
                    "totalLinesWritten",
                    Value::Int32(i32::try_from(written).unwrap_or(i32::MAX)),
                )
                .begin_array("log");
            for line in &lines {
                answer.push(Value::String(line));
            }
            answer.end();
        }
        Value::String(other) => {
            let message = format!("No log named '{other}'");
            return Err(Error::invalid(Code::OperationFailed, message));
        }
        other => return Err(fields.wrong_type("getLog", other, "type 'string'")),
    }
    fields.finish()?;
    Ok(answer)
}

/// Runs a `logRotate`: begins another file of the log.
pub fn log_rotate(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let is_server_log = match request.argument() {
        Value::String("server") => true,
        argument => argument.is_number() || argument == Value::Boolean(true),
    };
    fields.string("comment")?;
    fields.finish()?;
    if !is_server_log {
        let message = "logRotate takes 1 or 'server': there is no other log";
        return Err(Error::invalid(Code::BadValue, message));
    }
    match log::rotate(&request.server.log) {
        Ok(true) => Ok(DocumentBuilder::new()),
        Ok(false) => {
            let message = "the log goes to no file: start the server with --log-path";
            Err(Error::invalid(Code::IllegalOperation, message))
        }
        Err(error) => {
            Err(Error::invalid(Code::FileRenameFailed, format!("Failed to rotate log: {error}")))
        }
    }
}

/// Runs a `listCommands`.
pub fn list_commands(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    let mut answer = DocumentBuilder::new();
    answer.begin_document("commands");
    for command in COMMANDS {
        let help = match command.run {
            Run::Handler(_) => "see docs/commands.md",
            Run::Refused(why) => why,
        };
        answer
            .begin_document(command.name)
            .append("help", Value::String(help))
            .append("supported", Value::Boolean(matches!(command.run, Run::Handler(_))))
            .append("adminOnly", Value::Boolean(command.admin_only))
            .append("requiresAuth", Value::Boolean(false))
            .begin_array("apiVersions");
        if is_in_stable_api(command) {
            answer.push(Value::String("1"));
        }
        answer.end().end();
    }
    answer.end();
    Ok(answer)
}

/// Runs a `connPoolStats`: the server has no connections of its own to other servers.
pub fn conn_pool_stats(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    let mut answer = DocumentBuilder::new();
    for name in ["totalInUse", "totalAvailable", "totalCreated", "totalRefreshing"] {
        answer.append(name, Value::Int32(0));
    }
    answer.begin_document("hosts").end();
    Ok(answer)
}
