//! Commands about the server itself: hostInfo, getLog, listCommands, connPoolStats.

use std::io;

use frond_db::Error;
use frond_doc::{DocumentBuilder, Value};
use frond_query::Code;

use crate::commands::{COMMANDS, Run, help, reply};
use crate::log::{self, Lines};
use crate::machine_memory::MachineMemory;
use crate::request::{Answer, Request};
use crate::stable_api;

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
    match request.own_text() {
        "*" => {
            answer
                .begin_array("names")
                .push(Value::String("global"))
                .push(Value::String("startupWarnings"))
                .end();
        }
        name @ ("global" | "startupWarnings") => {
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
        other => {
            let message = format!("No log named '{other}'");
            return Err(Error::invalid(Code::OperationFailed, message));
        }
    }
    fields.finish()?;
    Ok(answer)
}

/// Runs a `logRotate`: begins another file of the log.
pub fn log_rotate(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let server = request.server;
    let (rotates_log, rotates_audit) = match request.argument() {
        Value::String("server") => (true, false),
        Value::String("audit") => (false, true),
        argument if argument.is_number() || argument == Value::Boolean(true) => {
            (true, server.audit_log.is_on())
        }
        _ => (false, false),
    };
    fields.string("comment")?;
    fields.finish()?;
    if !rotates_log && !rotates_audit {
        let message = "logRotate takes 1, 'server' or 'audit'";
        return Err(Error::invalid(Code::BadValue, message));
    }
    let audit = || server.audit_log.rotate(server.frond.wall_clock()());
    // With both, either may be none.
    let mut is_done = false;
    if rotates_audit {
        is_done |= log::rotate(&server.log, audit).map_err(not_rotated)?;
    }
    if rotates_log {
        is_done |= log::rotate(&server.log, || server.log.rotate()).map_err(not_rotated)?;
    }
    if is_done {
        return Ok(DocumentBuilder::new());
    }
    let message = "there is no log file: start the server with --log-path or --audit-path";
    Err(Error::invalid(Code::IllegalOperation, message))
}

fn not_rotated(error: io::Error) -> Error {
    Error::invalid(Code::FileRenameFailed, format!("Failed to rotate log: {error}"))
}

/// Runs a `listCommands`.
pub fn list_commands(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    let mut answer = DocumentBuilder::new();
    answer.begin_document("commands");
    let has_tests = request.server.fail_points.is_enabled();
    for command in COMMANDS.iter().filter(|command| has_tests || !command.is_for_tests) {
        let about = help::about(command.name);
        let help = match command.run {
            Run::Handler(_) => about.as_deref().unwrap_or("see docs/commands.md"),
            Run::Refused(why) => why,
            Run::NoSearch => "there is no search server",
        };
        answer
            .begin_document(command.name)
            .append("help", Value::String(help))
            .append("supported", Value::Boolean(matches!(command.run, Run::Handler(_))))
            .append("adminOnly", Value::Boolean(command.admin_only))
            .append("requiresAuth", Value::Boolean(false))
            .begin_array("apiVersions");
        for version in stable_api::versions_of(command.name) {
            answer.push(Value::String(version.name()));
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
