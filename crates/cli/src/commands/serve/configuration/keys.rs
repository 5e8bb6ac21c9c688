//! The keys of a configuration file: mongod's names, and which flag each stands for.
//!
//! A key that mongod has and Frond hasn't is refused with the reason, unless the value says that it
//! is off. `frond.NAME` is a flag that mongod has no name for.

use std::ffi::OsString;

use crate::commands::serve::configuration::yaml::{Entry, Value};
use crate::commands::serve::configuration::{Flag, Given, OWN, Setting, boolean};

/// The meaning of a key.
enum Meaning {
    /// This flag's value.
    Flag(&'static str),
    /// This flag, in gigabytes where the flag takes megabytes.
    Gigabytes(&'static str),
    /// This flag, in megabytes where the flag takes bytes.
    Megabytes(&'static str),
    /// This flag if the value is the first word, its absence if it is the second.
    Switch(&'static str, &'static str, &'static str),
    /// Whatever the value is, nothing changes.
    Moot,
    /// The start value of this parameter.
    Parameter(&'static str),
    /// One of these values changes nothing; others are refused for this reason.
    Only(&'static [&'static str], &'static str),
    /// A part of the server's address: read together.
    Address,
    /// The secret of a set's members, which has clients log in, too.
    KeyFile,
}

use Meaning::{Address, Flag as Of, Gigabytes, KeyFile, Megabytes, Moot, Only, Parameter, Switch};

const FILE_ONLY: &str = "the log goes to a file or to standard error";
const NO_FORK: &str =
    "frond serve stays in the foreground: have systemd or another supervisor run it";
const NO_SHARDS: &str =
    "there are no shards: frond router serves several servers by one address (docs/router.md)";
const BY_KEY: &str = "members of a set authenticate each other by security.keyFile";
const BY_DATABASE: &str = "db.setProfilingLevel() takes a filter, for one database";
const CHECKED: &str = "certificates are always checked";
const OLD_TLS: &str = "TLS 1.2 and 1.3 are spoken, and no older one";
const BY_ZSTD: &str = "documents and indexes are compressed by zstd, and the log by itself";
const ALWAYS: &str = "it can't be turned off";

/// All keys, sorted.
const KEYS: &[(&str, Meaning)] = &[
    ("auditLog.destination", Only(&["file"], "the audit log goes to a file")),
    ("auditLog.filter", Of("audit-filter")),
    ("auditLog.format", Only(&["JSON"], "the audit log is JSON")),
    ("auditLog.path", Of("audit-path")),
    ("net.bindIp", Address),
    ("net.bindIpAll", Address),
    ("net.compression.compressors", Of("network-compressors")),
    ("net.ipv6", Address),
    ("net.maxIncomingConnections", Of("max-connections")),
    ("net.port", Address),
    ("net.tls.CAFile", Of("tls-ca-file")),
    ("net.tls.CRLFile", Of("tls-crl-file")),
    ("net.tls.FIPSMode", Only(&["false"], "the cryptography isn't certified")),
    (
        "net.tls.allowConnectionsWithoutCertificates",
        Switch("tls-allow-connections-without-certificates", "true", "false"),
    ),
    ("net.tls.allowInvalidCertificates", Only(&["false"], CHECKED)),
    ("net.tls.allowInvalidHostnames", Only(&["false"], CHECKED)),
    ("net.tls.certificateKeyFile", Of("tls-certificate-key-file")),
    ("net.tls.certificateKeyFilePassword", Of("tls-certificate-key-file-password")),
    ("net.tls.clusterCAFile", Only(&[], BY_KEY)),
    ("net.tls.clusterFile", Only(&[], BY_KEY)),
    ("net.tls.clusterPassword", Only(&[], BY_KEY)),
    ("net.tls.disabledProtocols", Only(&["none", "TLS1_0", "TLS1_1", "TLS1_0,TLS1_1"], OLD_TLS)),
    ("net.tls.mode", Of("tls-mode")),
    ("net.unixDomainSocket.enabled", Address),
    ("net.unixDomainSocket.filePermissions", Of("unix-socket-permissions")),
    ("net.unixDomainSocket.pathPrefix", Address),
    ("net.wireObjectCheck", Only(&["true"], ALWAYS)),
    ("operationProfiling.filter", Only(&[], BY_DATABASE)),
    ("operationProfiling.mode", Of("profile")),
    ("operationProfiling.slowOpSampleRate", Of("slow-sample-rate")),
    ("operationProfiling.slowOpThresholdMs", Of("slow-ms")),
    ("processManagement.fork", Only(&["false"], NO_FORK)),
    ("processManagement.pidFilePath", Of("pid-file")),
    // Time zones are built in.
    ("processManagement.timeZoneInfo", Moot),
    ("replication.enableMajorityReadConcern", Only(&["true"], ALWAYS)),
    ("replication.oplogSizeMB", Megabytes("changes-bytes")),
    ("replication.replSetName", Of("replica-set")),
    ("security.authorization", Switch("auth", "enabled", "disabled")),
    ("security.clusterAuthMode", Only(&["keyFile"], BY_KEY)),
    ("security.enableEncryption", Only(&["false"], "data aren't encrypted: encrypt the disk")),
    ("security.javascriptEnabled", Switch("noscripting", "false", "true")),
    ("security.keyFile", KeyFile),
    ("security.redactClientLogData", Only(&["false"], "the log shows commands as they are")),
    ("security.transitionToAuth", Only(&["false"], "clients log in, or they don't")),
    ("sharding.clusterRole", Only(&[], NO_SHARDS)),
    ("storage.dbPath", Of("data")),
    ("storage.directoryPerDB", Only(&["false"], "all databases lie in one store")),
    ("storage.engine", Only(&["wiredTiger"], "there is one engine")),
    (
        "storage.journal.commitIntervalMs",
        Only(&[], "a write that isn't synced itself is synced soon"),
    ),
    ("storage.journal.enabled", Only(&["true"], ALWAYS)),
    (
        "storage.oplogMinRetentionHours",
        Only(&["0"], "frond.changesHours says for how long at most"),
    ),
    ("storage.syncPeriodSecs", Only(&[], "flushes follow the memory that writes take")),
    ("storage.wiredTiger.collectionConfig.blockCompressor", Only(&["zstd"], BY_ZSTD)),
    ("storage.wiredTiger.engineConfig.cacheSizeGB", Gigabytes("cache")),
    (
        "storage.wiredTiger.engineConfig.directoryForIndexes",
        Only(&["false"], "all databases lie in one store"),
    ),
    ("storage.wiredTiger.engineConfig.journalCompressor", Only(&[], BY_ZSTD)),
    ("storage.wiredTiger.indexConfig.prefixCompression", Only(&[], BY_ZSTD)),
    ("systemLog.destination", Only(&["file"], FILE_ONLY)),
    ("systemLog.logAppend", Only(&["true"], "the log is always appended to")),
    ("systemLog.logRotate", Of("log-rotate")),
    ("systemLog.path", Of("log-path")),
    ("systemLog.quiet", Switch("quiet", "true", "false")),
    ("systemLog.timeStampFormat", Only(&["iso8601-utc"], "times are in UTC")),
    ("systemLog.traceAllExceptions", Only(&["false"], "there is one level")),
    ("systemLog.verbosity", Parameter("logLevel")),
];

/// Sections of mongod's files: each may be there and empty.
const SECTIONS: &[&str] = &[
    "auditLog",
    "frond",
    "net",
    "operationProfiling",
    "processManagement",
    "replication",
    "security",
    "setParameter",
    "sharding",
    "storage",
    "systemLog",
];

const PARAMETERS: &str = "setParameter.";
/// The levels of the log's components.
const COMPONENT: &str = "systemLog.component.";
const BY_PARAMETER: &str =
    "setParameter sets logComponentVerbosity while the server runs, and systemLog.verbosity all";
const PARAMETER_FLAG: &str = "setParameter";
const ADDRESS_FLAG: &str = "listen";

/// The key of a flag.
pub fn key_of(flag: &str) -> String {
    let known = KEYS.iter().find(|(_, meaning)| match meaning {
        Of(name) | Gigabytes(name) | Megabytes(name) | Switch(name, ..) => *name == flag,
        KeyFile => flag == "key-file",
        Only(..) | Address | Moot | Parameter(_) => false,
    });
    known.map_or_else(|| format!("{OWN}{}", camel(flag)), |(key, _)| (*key).to_owned())
}

/// Whether the last name of a key stands for a number.
pub fn is_number(name: &str) -> bool {
    !matches!(
        name,
        "dbPath" | "path" | "pathPrefix" | "pidFilePath" | "replSetName" | "filePermissions"
    )
}

/// Whether the last name of a key stands for what is never shown.
pub fn is_secret(name: &str) -> bool {
    name == "certificateKeyFilePassword"
}

/// Returns the settings of a file's keys. `file` names it.
///
/// # Errors
/// The line and the key that is unknown, that Frond doesn't have, or whose value is wrong.
pub fn settings(
    entries: &[Entry],
    file: &str,
    flags: &[Flag],
) -> Result<Vec<Setting>, (usize, String)> {
    let mut settings = Vec::new();
    let mut addresses = Addresses::default();
    for entry in entries {
        let known = KEYS.iter().find(|(key, _)| *key == entry.key).map(|(_, meaning)| meaning);
        let given = given(entry, known, flags, &mut addresses);
        for (flag, value) in given.map_err(|what| (entry.line, format!("{}: {what}", entry.key)))? {
            let origin = Some(format!("{file}:{}, {}", entry.line, entry.key));
            let key = match known {
                Some(KeyFile) => key_of(&flag),
                _ => entry.key.clone(),
            };
            settings.push(Setting { flag, value, key, origin });
        }
    }
    if settings.iter().any(|setting| setting.flag == "key-file") {
        // It has clients log in, whatever else the file says about that.
        let mut is_said = false;
        settings.retain(|setting| {
            let is_auth = setting.flag == "auth";
            !is_auth
                || setting.value == Given::Switch(true) && !std::mem::replace(&mut is_said, true)
        });
    }
    if let Some(line) = addresses.line {
        let listen = addresses.listen().map_err(|what| (line, what))?;
        for value in listen {
            let origin = Some(format!("{file}:{line}, net"));
            let (flag, value) = (ADDRESS_FLAG.to_owned(), Given::Text(value.into()));
            settings.push(Setting { flag, value, key: key_of(ADDRESS_FLAG), origin });
        }
    }
    if let Some(entry) = entries.iter().find(|entry| entry.key == "systemLog.destination")
        && !entries.iter().any(|entry| entry.key == "systemLog.path")
    {
        return Err((entry.line, "systemLog.destination: it needs systemLog.path".to_owned()));
    }
    Ok(settings)
}

/// The flags that a key stands for, with their values.
fn given(
    entry: &Entry,
    known: Option<&Meaning>,
    flags: &[Flag],
    addresses: &mut Addresses,
) -> Result<Vec<(String, Given)>, String> {
    let Entry { key, value, .. } = entry;
    if *value == Value::Nothing {
        let is_section = SECTIONS.contains(&key.as_str())
            || KEYS.iter().any(|(known, _)| known.starts_with(&format!("{key}.")));
        return match is_section {
            true => Ok(Vec::new()),
            false if known.is_some() => Err("it has no value".to_owned()),
            false => Err("there is no such key".to_owned()),
        };
    }
    let one = |flag: &str, value| Ok(vec![(flag.to_owned(), value)]);
    match known {
        Some(Of(flag)) => one(flag, Given::Text(OsString::from(text(value)?))),
        Some(Gigabytes(flag)) => {
            one(flag, Given::Text(format!("{}", megabytes(text(value)?)?).into()))
        }
        Some(Megabytes(flag)) => {
            let count: u64 = text(value)?.parse().map_err(|_| "not a number".to_owned())?;
            one(flag, Given::Text(format!("{count}MB").into()))
        }
        Some(Switch(flag, on, off)) => one(flag, Given::Switch(is_on(text(value)?, on, off)?)),
        Some(Only(values, why)) => {
            let text = text(value)?;
            match values.iter().any(|word| means(text, word)) {
                true => Ok(Vec::new()),
                false => Err(format!("not supported: {why}")),
            }
        }
        Some(Moot) => Ok(Vec::new()),
        Some(KeyFile) => Ok(vec![
            ("key-file".to_owned(), Given::Text(OsString::from(text(value)?))),
            ("auth".to_owned(), Given::Switch(true)),
        ]),
        Some(Parameter(name)) => {
            one(PARAMETER_FLAG, Given::Text(format!("{name}={}", text(value)?).into()))
        }
        Some(Address) => {
            addresses.take(key, entry.line, text(value)?)?;
            Ok(Vec::new())
        }
        None if key.starts_with(COMPONENT) => match text(value)? {
            "0" | "-1" => Ok(Vec::new()),
            _ => Err(format!("not supported: {BY_PARAMETER}")),
        },
        None => match (key.strip_prefix(PARAMETERS), key.strip_prefix(OWN)) {
            (Some(name), _) => {
                one(PARAMETER_FLAG, Given::Text(format!("{name}={}", text(value)?).into()))
            }
            (_, Some(name)) => own(name, value, flags),
            _ => Err("there is no such key".to_owned()),
        },
    }
}

/// Whether a switch is on, by the words for that and for off.
fn is_on(text: &str, on: &str, off: &str) -> Result<bool, String> {
    match (means(text, on), means(text, off)) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => Err(format!("it must be {on} or {off}")),
    }
}

/// Returns how many megabytes a count of gigabytes is.
fn megabytes(gigabytes: &str) -> Result<f64, String> {
    let count: f64 = gigabytes.parse().map_err(|_| "not a number".to_owned())?;
    let megabytes = (count * 1_024.0).round();
    match (1.0..1e9).contains(&megabytes) {
        true => Ok(megabytes),
        false => Err("not a size in gigabytes".to_owned()),
    }
}

/// Whether a value is `word`, or means the same switch.
fn means(text: &str, word: &str) -> bool {
    text == word || boolean(word).is_some() && boolean(text) == boolean(word)
}

/// A flag that mongod has no name for.
fn own(name: &str, value: &Value, flags: &[Flag]) -> Result<Vec<(String, Given)>, String> {
    let is_named = |flag: &&Flag| camel(&flag.name) == name && flag.name != "config";
    let flag = flags.iter().find(is_named).ok_or("there is no such key")?;
    let key = key_of(&flag.name);
    if key != format!("{OWN}{name}") {
        return Err(format!("its name is {key}"));
    }
    if !flag.takes_value {
        let is_on = boolean(text(value)?).ok_or("it must be true or false")?;
        return Ok(vec![(flag.name.clone(), Given::Switch(is_on))]);
    }
    let values = match value {
        Value::List(values) if flag.is_list => values.as_slice(),
        Value::List(_) => return Err("one value, not a list".to_owned()),
        Value::Text(text) => std::slice::from_ref(text),
        Value::Nothing => &[],
    };
    Ok(values.iter().map(|it| (flag.name.clone(), Given::Text(it.into()))).collect())
}

fn text(value: &Value) -> Result<&str, String> {
    match value {
        Value::Text(text) => Ok(text),
        Value::List(_) => Err("one value, not a list".to_owned()),
        Value::Nothing => Err("it has no value".to_owned()),
    }
}

/// The address to listen on, made up of several keys.
#[derive(Default)]
struct Addresses {
    /// The line of the first of them.
    line: Option<usize>,
    address: Option<String>,
    all: bool,
    ipv6: bool,
    port: Option<String>,
    socket: Option<bool>,
    directory: Option<String>,
}

impl Addresses {
    fn take(&mut self, key: &str, line: usize, text: &str) -> Result<(), String> {
        self.line.get_or_insert(line);
        let boolean = || boolean(text).ok_or_else(|| "it must be true or false".to_owned());
        match key {
            "net.bindIp" => self.address = Some(text.to_owned()),
            "net.bindIpAll" => self.all = boolean()?,
            "net.ipv6" => self.ipv6 = boolean()?,
            "net.port" => {
                text.parse::<u16>().map_err(|_| "not a port".to_owned())?;
                self.port = Some(text.to_owned());
            }
            "net.unixDomainSocket.enabled" => self.socket = Some(boolean()?),
            _ => self.directory = Some(text.to_owned()),
        }
        Ok(())
    }

    /// The values of `--listen`.
    fn listen(&self) -> Result<Vec<String>, String> {
        let port = self.port.as_deref().unwrap_or("27017");
        let addresses = match (&self.address, self.all) {
            (Some(_), true) => {
                return Err("net.bindIp and net.bindIpAll exclude each other".to_owned());
            }
            (Some(addresses), false) => addresses.as_str(),
            (None, true) if self.ipv6 => "::",
            (None, true) => "0.0.0.0",
            (None, false) => "127.0.0.1",
        };
        let listened_on = |address: &str| match address.trim() {
            "*" => format!("0.0.0.0:{port}"),
            path if path.starts_with('/') => format!("unix:{path}"),
            address if address.contains(':') => format!("[{address}]:{port}"),
            address => format!("{address}:{port}"),
        };
        let mut listen: Vec<String> = addresses.split(',').map(listened_on).collect();
        if self.socket.unwrap_or(self.directory.is_some()) {
            let directory = self.directory.as_deref().unwrap_or("/tmp");
            listen.push(format!("unix:{}/mongodb-{port}.sock", directory.trim_end_matches('/')));
        }
        Ok(listen)
    }
}

/// `logPath` for `log-path`.
fn camel(flag: &str) -> String {
    let mut name = String::new();
    let mut is_first = false;
    for letter in flag.chars() {
        match letter {
            '-' => is_first = true,
            _ if is_first => {
                name.push(letter.to_ascii_uppercase());
                is_first = false;
            }
            _ => name.push(letter),
        }
    }
    name
}
