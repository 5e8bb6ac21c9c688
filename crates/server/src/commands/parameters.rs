//! `getParameter`, `setParameter`, the default concerns, `getCmdLineOpts` and `profile`.

use std::ops::RangeInclusive;

use frond_db::Error;
use frond_doc::{DocumentBuilder, Value, ValueBuf, order};
use frond_query::Code;

use crate::commands::{reply, users};
use crate::limits;
use crate::profiler::{self, Level, ProfileFilter};
use crate::request::{Answer, Request};
use crate::scram::Mechanism;
use crate::shared::Shared;
use crate::tables;

/// The parameter whether clients must name the version of the stable API.
const REQUIRE_API_VERSION: &str = "requireApiVersion";
/// The name of the time for which a moment can be read again.
const SNAPSHOT_WINDOW: &str = "minSnapshotHistoryWindowInSeconds";

/// The parameter for the log's verbosity, by component; components without a level have the
/// default.
const COMPONENT_LEVELS: &str = "logComponentVerbosity";
const LEVEL: &str = "logLevel";

/// The parameter whether the log leaves out clients that come and go.
const QUIET: &str = "quiet";

/// The parameter for the interval at which documents expire.
const EXPIRE_INTERVAL: &str = "ttlMonitorSleepSecs";

/// The name of the time after which a cursor that no client uses is closed.
const CURSOR_TIMEOUT: &str = "cursorTimeoutMillis";
/// The name of the time after which an open transaction is aborted.
const TRANSACTION_LIFETIME: &str = "transactionLifetimeLimitSeconds";

/// Appends a parameter's value.
type AppendParameter = fn(&mut DocumentBuilder, &Shared);

/// The parameters that clients ask for, sorted: what they are here. A parameter that [`change`]
/// doesn't take can't be changed while the server runs.
const PARAMETERS: &[(&str, AppendParameter)] = &[
    ("acceptApiVersion2", |answer, server| {
        answer.append("acceptApiVersion2", Value::Boolean(server.api_rules.accepts_second()));
    }),
    ("allowDiskUseByDefault", |answer, _| {
        answer.append("allowDiskUseByDefault", Value::Boolean(true));
    }),
    ("authSchemaVersion", |answer, _| {
        answer.append("authSchemaVersion", Value::Int32(users::AUTH_SCHEMA_VERSION));
    }),
    ("authenticationMechanisms", |answer, _| {
        answer.begin_array("authenticationMechanisms");
        for mechanism in Mechanism::ALL {
            answer.push(Value::String(mechanism.name()));
        }
        answer.end();
    }),
    (CURSOR_TIMEOUT, |answer, server| {
        let millis = u64::try_from(server.time_limits.cursor().as_millis()).unwrap_or(u64::MAX);
        answer.append(CURSOR_TIMEOUT, Value::Int64(reply::long(millis)));
    }),
    ("enableLocalhostAuthBypass", |answer, server| {
        answer.append("enableLocalhostAuthBypass", Value::Boolean(server.has_localhost_exception));
    }),
    ("enableTestCommands", |answer, server| {
        let is_enabled = server.fail_points.is_enabled();
        answer.append("enableTestCommands", Value::Boolean(is_enabled));
    }),
    ("featureCompatibilityVersion", |answer, _| {
        answer
            .begin_document("featureCompatibilityVersion")
            .append("version", Value::String("8.0"))
            .end();
    }),
    (COMPONENT_LEVELS, |answer, server| {
        answer.begin_document(COMPONENT_LEVELS);
        server.log.verbosity.append(answer);
        answer.end();
    }),
    (LEVEL, |answer, server| {
        let level = i32::try_from(server.log.verbosity.default_level()).unwrap_or(0);
        answer.append(LEVEL, Value::Int32(level));
    }),
    (SNAPSHOT_WINDOW, |answer, server| {
        let seconds = server.snapshot_window.get().as_secs();
        answer.append(SNAPSHOT_WINDOW, reply::number(seconds));
    }),
    ("notablescan", |answer, _| {
        answer.append("notablescan", Value::Boolean(false));
    }),
    (QUIET, |answer, server| {
        answer.append(QUIET, Value::Boolean(server.log.is_quiet()));
    }),
    (REQUIRE_API_VERSION, |answer, server| {
        answer.append(REQUIRE_API_VERSION, Value::Boolean(server.api_rules.requires_version()));
    }),
    (TRANSACTION_LIFETIME, |answer, server| {
        let seconds = server.time_limits.transaction().as_secs();
        answer.append(TRANSACTION_LIFETIME, reply::number(seconds));
    }),
    ("ttlMonitorEnabled", |answer, _| {
        answer.append("ttlMonitorEnabled", Value::Boolean(true));
    }),
    (EXPIRE_INTERVAL, |answer, server| {
        answer.append(EXPIRE_INTERVAL, reply::number(server.expire_seconds().into()));
    }),
];

/// Answers with parameters by name, or all: `getParameter: "*"` or `{allParameters: true}`.
pub fn get(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let lists_all = match request.argument() {
        Value::String("*") => true,
        Value::Document(options) => {
            options.get("allParameters").is_some_and(|value| value.is_truthy())
        }
        _ => false,
    };
    let mut answer = DocumentBuilder::new();
    let mut count = 0;
    for (name, append) in PARAMETERS {
        let is_named = fields.value_or_null(name).is_some();
        if lists_all || is_named {
            append(&mut answer, request.server);
            count += 1;
        }
    }
    // Unknown names are passed over if another one is known, as MongoDB does it.
    if count == 0 {
        let message = "no option found to get";
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    Ok(answer)
}

/// Sets a parameter to what it is, and refuses everything else.
pub fn set(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    for (name, _) in PARAMETERS {
        fields.ignore(&[name]);
    }
    let unknown = fields.finish().is_err();
    let requested = request.body.iter().skip(1);
    let requested = requested.filter(|(name, _)| !name.starts_with('$') && *name != "lsid");
    let mut first = None;
    for (name, wanted) in requested {
        match PARAMETERS.iter().find(|(known, _)| *known == name) {
            Some((_, append)) => {
                let was = set_one(request.server, (name, *append), wanted)?;
                first.get_or_insert(was);
            }
            None if unknown => {
                let message = format!(
                    "attempted to set unrecognized parameter [{name}], use help:true to see options "
                );
                return Err(Error::invalid(Code::InvalidOptions, message));
            }
            None => {}
        }
    }
    let Some(was) = first else {
        let message = "no option found to set, use help:true to see options ";
        return Err(Error::invalid(Code::InvalidOptions, message));
    };
    let mut answer = DocumentBuilder::new();
    answer.append("was", was.as_value());
    Ok(answer)
}

/// Sets a parameter; answers what it was.
fn set_one(
    server: &Shared,
    (name, append): (&str, AppendParameter),
    wanted: Value<'_>,
) -> Result<ValueBuf, Error> {
    let mut now = DocumentBuilder::new();
    append(&mut now, server);
    let now = now.build();
    let now = now.get(name).unwrap_or(Value::Null);
    let is_same = match now {
        Value::Boolean(now) => now == wanted.is_truthy(),
        now => order::equal(now, wanted),
    };
    if !is_same && !change(server, name, wanted)? {
        let message = format!("not allowed to change [{name}] at runtime");
        return Err(Error::invalid(Code::IllegalOperation, message));
    }
    Ok(now.to_buf())
}

/// Changes a parameter; false if it is none that can be changed.
fn change(server: &Shared, name: &str, wanted: Value<'_>) -> Result<bool, Error> {
    match name {
        QUIET => server.log.set_quiet(wanted.is_truthy()),
        REQUIRE_API_VERSION => server.api_rules.require_version(wanted.is_truthy()),
        SNAPSHOT_WINDOW => set_snapshot_window(server, wanted)?,
        EXPIRE_INTERVAL => set_expire_interval(server, wanted)?,
        TRANSACTION_LIFETIME => {
            let seconds = number_of(name, wanted, 1..=i32::MAX as u64)?;
            server.time_limits.set_transaction_seconds(seconds);
        }
        CURSOR_TIMEOUT => {
            let millis = number_of(name, wanted, 0..=i64::MAX as u64)?;
            server.time_limits.set_cursor_millis(millis);
        }
        LEVEL => server.log.verbosity.set_default_level(wanted)?,
        COMPONENT_LEVELS => match wanted.as_document() {
            Some(levels) => server.log.verbosity.set(levels)?,
            None => {
                let message = format!("{COMPONENT_LEVELS} must be a document");
                return Err(Error::invalid(Code::TypeMismatch, message));
            }
        },
        _ => return Ok(false),
    }
    Ok(true)
}

/// A parameter's value: a whole number of that range.
fn number_of(name: &str, wanted: Value<'_>, range: RangeInclusive<u64>) -> Result<u64, Error> {
    let number = wanted.as_integer().and_then(|number| u64::try_from(number).ok());
    number.filter(|number| range.contains(number)).ok_or_else(|| {
        let message = format!(
            "Invalid value for parameter {name}: {} is not from {} to {}",
            frond_query::text::value(wanted),
            range.start(),
            range.end()
        );
        Error::invalid(Code::BadValue, message)
    })
}

fn set_snapshot_window(server: &Shared, wanted: Value<'_>) -> Result<(), Error> {
    let seconds = wanted.as_integer().and_then(|seconds| u64::try_from(seconds).ok());
    let Some(seconds) = seconds.filter(|seconds| *seconds <= limits::SNAPSHOT_WINDOW_MAX) else {
        let message = format!(
            "{SNAPSHOT_WINDOW} must be a whole number of seconds from 0 to {}",
            limits::SNAPSHOT_WINDOW_MAX
        );
        return Err(Error::invalid(Code::BadValue, message));
    };
    server.snapshot_window.set_seconds(seconds);
    Ok(())
}

fn set_expire_interval(server: &Shared, wanted: Value<'_>) -> Result<(), Error> {
    let seconds = wanted.as_integer().and_then(|seconds| u32::try_from(seconds).ok());
    let Some(seconds) = seconds.filter(|seconds| (1..=i32::MAX as u32).contains(seconds)) else {
        let message = format!(
            "Invalid value for parameter {EXPIRE_INTERVAL}: {} is not greater than 0",
            frond_query::text::value(wanted)
        );
        return Err(Error::invalid(Code::BadValue, message));
    };
    server.set_expire_seconds(seconds);
    Ok(())
}

/// Answers with the concerns that hold where a client names none.
pub fn get_default_concerns(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let is_in_memory = fields.boolean("inMemory")?;
    fields.finish()?;
    let mut answer = DocumentBuilder::new();
    request.server.default_concerns.append(&request.server.frond, &mut answer)?;
    if is_in_memory {
        answer.append("inMemory", Value::Boolean(true));
    }
    Ok(answer)
}

/// Sets the concerns that hold where a client names none.
pub fn set_default_concerns(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let read = fields.document("defaultReadConcern")?;
    let write = fields.document("defaultWriteConcern")?;
    fields.finish()?;
    let Shared { default_concerns, frond, .. } = request.server;
    default_concerns.set(frond, read, write, request.server.operation_time())?;
    let mut answer = DocumentBuilder::new();
    default_concerns.append(frond, &mut answer)?;
    Ok(answer)
}

/// Answers with the command line.
pub fn get_cmd_line_opts(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    let server = request.server;
    let mut answer = DocumentBuilder::new();
    answer.begin_array("argv");
    for argument in &server.arguments {
        answer.push(Value::String(argument));
    }
    answer.end();
    answer.begin_document("parsed");
    let bind = server.address.ip().to_string();
    let port = Value::Int32(i32::from(server.address.port()));
    append_section(&mut answer, server, "net", &[("bindIp", Value::String(&bind)), ("port", port)]);
    let authorization = [("authorization", Value::String("enabled"))];
    if server.accounts.is_enforced() {
        append_section(&mut answer, server, "security", &authorization);
    }
    let path = Value::String(&server.data_directory);
    append_section(&mut answer, server, "storage", &[("dbPath", path)]);
    let known = |name: &str| answered_here(name, server.accounts.is_enforced());
    for (name, value) in server.parsed.view().iter().filter(|(name, _)| !known(name)) {
        answer.append(name, value);
    }
    answer.end();
    Ok(answer)
}

fn answered_here(section: &str, is_enforced: bool) -> bool {
    section == "net" || section == "storage" || section == "security" && is_enforced
}

/// Appends a section: what is so, and what else was said of it at the start.
fn append_section(
    answer: &mut DocumentBuilder,
    server: &Shared,
    name: &str,
    fields: &[(&str, Value<'_>)],
) {
    answer.begin_document(name);
    for (field, value) in fields {
        answer.append(field, *value);
    }
    let section_given = server.parsed.get(name).and_then(|section| section.as_document());
    for (field, value) in section_given.iter().flat_map(|section| section.iter()) {
        if !fields.iter().any(|(known, _)| *known == field) {
            answer.append(field, value);
        }
    }
    answer.end();
}

/// Shows and sets which operations of the database the profiler records (the level), and which are
/// slow (`slowms`, `sampleRate`): for it and the log, of all databases.
pub fn profile(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let level = request.argument().as_integer().unwrap_or(0);
    let filter = profile_filter(fields.value("filter"))?;
    let slow = fields.value("slowms");
    let sample = fields.value("sampleRate").and_then(tables::double);
    fields.finish()?;
    let (log, profiler) = (&request.server.log, &request.server.profiler);
    let (before, rate) = (log.slow_millis(), log.sample_rate());
    let filter_before = profiler.filter(request.database_name);
    // Any other number changes nothing, as -1.
    let was = match Level::of_number(level) {
        Some(level) => {
            if level != Level::Off {
                let database = request.database()?;
                profiler::make_collection(&database)?;
            }
            profiler.set(request.database_name, level)
        }
        None => profiler.level(request.database_name),
    };
    if let Some(filter) = filter {
        profiler.set_filter(request.database_name, filter);
    }
    if let Some(rate) = sample {
        log.set_sample_rate(rate);
    }
    if let Some(millis) = slow.and_then(|millis| millis.as_integer()) {
        log.set_slow_millis(millis);
    }
    let mut answer = DocumentBuilder::new();
    answer
        .append("was", Value::Int32(was.number()))
        .append("slowms", Value::Int32(i32::try_from(before).unwrap_or(i32::MAX)))
        .append("sampleRate", Value::Double(rate));
    if let Some(filter) = &filter_before {
        answer.append("filter", Value::from(&filter.text));
    }
    if filter_before.is_some() || profiler.filter(request.database_name).is_some() {
        answer.append("note", Value::String(FILTER_NOTE));
    }
    Ok(answer)
}

/// The note in the answer of `profile` where there is a filter.
const FILTER_NOTE: &str = "When a filter expression is set, slowms and sampleRate are not used for profiling and \
                           slow-query log lines.";

/// The filter that is to be set; `Some(None)` if there is to be none.
fn profile_filter(filter: Option<Value<'_>>) -> Result<Option<Option<ProfileFilter>>, Error> {
    match filter {
        None => Ok(None),
        Some(Value::String("unset")) => Ok(Some(None)),
        Some(Value::Document(filter)) => ProfileFilter::parse(filter).map(Some).map(Some),
        Some(_) => {
            let message = "Expected an object, or the string 'unset'.";
            Err(Error::invalid(Code::BadValue, message))
        }
    }
}
