//! Goal: the last source of an option counts, and unknown options are refused by name. Method:
//! command lines, environments and files, and the command line that comes of them.

use frond_doc::document;

use super::*;
use crate::commands::serve::configuration::yaml::Entry;

fn words(text: &str) -> Vec<OsString> {
    text.split_whitespace().map(OsString::from).collect()
}

fn variables(text: &str) -> impl Iterator<Item = (OsString, OsString)> {
    let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.into(), value.into())).collect::<Vec<_>>().into_iter()
}

/// Returns the settings of a file, as flags.
fn of_text(text: &str) -> Result<String, String> {
    let entries: Vec<Entry> = yaml::read(text).expect("it is YAML");
    let settings = keys::settings(&entries, "f", &flags())
        .map_err(|(line, what)| format!("{line}: {what}"))?;
    let shown = settings.iter().filter_map(Setting::as_argument);
    Ok(shown.map(|it| it.into_string().expect("text")).collect::<Vec<_>>().join(" "))
}

#[test]
fn the_last_source_holds() {
    let read = |line: &str, environment: &str| {
        let read = Configuration::read(words(line), variables(environment)).expect("it is right");
        let shown: Vec<_> = read.arguments.iter().map(|it| it.to_string_lossy()).collect();
        (shown.join(" "), read.parsed)
    };
    let (line, parsed) = read("frond serve --data a", "FROND_DATA=b FROND_MEMORY=1GB HOME=/root");
    assert_eq!(line, "frond serve --memory=1GB --data a");
    let frond = document! { "memory": "1GB" };
    let storage = document! { "dbPath": "a" };
    assert_eq!(parsed, document! { "frond": &frond, "storage": &storage });
    let (line, _) = read("frond serve", "FROND_AUTH=true FROND_LISTEN=127.0.0.1:1,unix:/x");
    assert_eq!(line, "frond serve --auth --listen=127.0.0.1:1 --listen=unix:/x");
    let (line, parsed) =
        read("frond serve --listen=127.0.0.1:2 --auth", "FROND_AUTH=0 FROND_LISTEN=x");
    assert_eq!(line, "frond serve --listen=127.0.0.1:2 --auth");
    let security = document! { "authorization": "enabled" };
    assert_eq!(parsed.get("security"), Some(Value::from(&security)));
    let (line, parsed) = read("frond serve", "FROND_TLS_CERTIFICATE_KEY_FILE_PASSWORD=secret");
    assert_eq!(line, "frond serve --tls-certificate-key-file-password=secret");
    assert!(!format!("{parsed:?}").contains("secret"), "{parsed:?}");
    let tls = document! { "certificateKeyFilePassword": "<password>" };
    assert_eq!(parsed, document! { "net": &document! { "tls": &tls } });
    let (line, _) =
        read("frond serve", "FROND_PORT_27017_TCP=x FROND_SERVICE_HOST=y FROND_AUTHOR=z");
    assert_eq!(line, "frond serve");
}

#[test]
fn unknown_variables_are_refused() {
    for (environment, named) in [
        ("FROND_AUHT=1", "FROND_AUHT"),
        ("FROND_AUTH=perhaps", "FROND_AUTH: it must be true or false"),
    ] {
        let read = Configuration::read(words("frond serve"), variables(environment));
        let Err(Failure::Usage(what)) = read else { panic!("{environment} was taken") };
        assert!(what.contains(named), "{what}");
    }
}

#[test]
fn keys_of_mongod_are_read() {
    for (file, expected) in [
        ("storage: {dbPath: /d}\nreplication: {replSetName: s}", "--data=/d --replica-set=s"),
        ("net: {port: 1}", "--listen=127.0.0.1:1"),
        ("net: {bindIp: '::1'}", "--listen=[::1]:27017"),
        (
            "net: {bindIp: 'localhost, ::1,/run/a.sock', port: 3}",
            "--listen=localhost:3 --listen=[::1]:3 --listen=unix:/run/a.sock",
        ),
        ("processManagement: {pidFilePath: 1}", "--pid-file=1"),
        ("replication: {oplogSizeMB: 512}", "--changes-bytes=512MB"),
        ("systemLog: {quiet: true}", "--quiet"),
        ("net: {bindIpAll: true, port: 2}", "--listen=0.0.0.0:2"),
        ("net: {bindIpAll: true, ipv6: true}", "--listen=[::]:27017"),
        (
            "net: {unixDomainSocket: {pathPrefix: /run/, filePermissions: 0700}}",
            "--unix-socket-permissions=0700 --listen=127.0.0.1:27017 \
             --listen=unix:/run/mongodb-27017.sock",
        ),
        ("net: {unixDomainSocket: {enabled: false, pathPrefix: /run}}", "--listen=127.0.0.1:27017"),
        ("security: {authorization: enabled}", "--auth"),
        ("security: {authorization: disabled}", ""),
        ("security: {keyFile: k, clusterAuthMode: keyFile}", "--key-file=k --auth"),
        ("security: {authorization: enabled, keyFile: k}", "--auth --key-file=k"),
        ("security: {keyFile: k, authorization: disabled}", "--key-file=k --auth"),
        ("net: {tls: {disabledProtocols: 'TLS1_0,TLS1_1', FIPSMode: false}}", ""),
        ("systemLog: {component: {accessControl: {verbosity: 0}}}", ""),
        ("systemLog: {path: l, logRotate: reopen}", "--log-path=l --log-rotate=reopen"),
        ("setParameter: {enableTestCommands: 1}", "--setParameter=enableTestCommands=1"),
        ("storage.wiredTiger.engineConfig.cacheSizeGB: 1.5", "--cache=1536"),
        ("systemLog: {destination: file, path: l, logAppend: true}", "--log-path=l"),
        ("auditLog: {destination: file, format: JSON, path: a}", "--audit-path=a"),
        (
            "auditLog: {path: a, filter: '{\"result\": 0}'}",
            "--audit-path=a --audit-filter={\"result\": 0}",
        ),
        ("processManagement: {fork: false}\nnet: {wireObjectCheck: yes}", ""),
        (
            "net: {tls: {mode: requireTLS, certificateKeyFile: a, certificateKeyFilePassword: 'p w'}}",
            "--tls-mode=requireTLS --tls-certificate-key-file=a \
             --tls-certificate-key-file-password=p w",
        ),
        ("net: {tls: {CAFile: b, CRLFile: c}}", "--tls-ca-file=b --tls-crl-file=c"),
        ("systemLog: {verbosity: 1}", "--setParameter=logLevel=1"),
        (
            "operationProfiling: {mode: slowOp, slowOpThresholdMs: 20, slowOpSampleRate: 0.5}",
            "--profile=slowOp --slow-ms=20 --slow-sample-rate=0.5",
        ),
        (
            "processManagement: {timeZoneInfo: /usr/share/zoneinfo}\nstorage: {engine: wiredTiger}",
            "",
        ),
        (
            "frond: {memory: 1GB, remoteHost: [a, b]}",
            "--memory=1GB --remote-host=a --remote-host=b",
        ),
        ("security:\nnet:\n  tls:\nsharding:\n", ""),
        ("\u{feff}security:\nnet:\n", ""),
    ] {
        assert_eq!(of_text(file).as_deref(), Ok(expected), "{file}");
    }
}

#[test]
fn unknown_and_unsupported_keys_are_refused_by_name() {
    for (file, named) in [
        ("net:\n  prot: 1", "2: net.prot: there is no such key"),
        ("nets:\n", "1: nets: there is no such key"),
        ("frond: {memroy: 1GB}", "frond.memroy: there is no such key"),
        ("frond: {data: x}", "its name is storage.dbPath"),
        ("frond: {config: x}", "frond.config: there is no such key"),
        (
            "processManagement: {fork: true}",
            "processManagement.fork: not supported: frond serve stays",
        ),
        ("systemLog: {destination: syslog, path: x}", "systemLog.destination: not supported"),
        ("systemLog: {destination: file}", "it needs systemLog.path"),
        ("systemLog: {path: x, logAppend: false}", "not supported: the log is always appended to"),
        ("security: {authorization: maybe}", "it must be enabled or disabled"),
        ("net: {port: 99999}", "net.port: not a port"),
        ("net: {bindIp: a, bindIpAll: true}", "exclude each other"),
        ("net: {port:}", "net.port: it has no value"),
        ("storage: {dbPath: [a]}", "storage.dbPath: one value, not a list"),
        ("security: {clusterAuthMode: x509}", "not supported: members of a set authenticate each"),
        ("systemLog: {component: {query: {verbosity: 2}}}", "logComponentVerbosity"),
        ("net: {tls: {disabledProtocols: 'TLS1_2'}}", "TLS 1.2 and 1.3 are spoken"),
    ] {
        let refused = of_text(file).expect_err(file);
        assert!(refused.contains(named), "{file}: {refused}");
    }
}
