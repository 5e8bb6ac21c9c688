//! `frond mongod`: `frond serve` by mongod's command line, for what starts `mongod` itself
//! (mongodb-memory-server, test suites of drivers and applications, containers' entry points). A
//! link to the program that is called `mongod` does the same.
//!
//! 1. Each of mongod's options becomes the one of `frond serve`, or nothing where it says what is
//!    the case anyway ([`options`]).
//! 2. All others are refused: what isn't enforced isn't accepted.
//! 3. The log goes to standard output, as mongod's does, with the lines that such programs wait
//!    for.

mod fork;
mod ini;
mod options;
mod shutdown;

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use frond_server::commands::handshake::MONGODB_VERSION;

use self::options::{Meaning, meaning_of};
use crate::commands::serve::configuration::value_of;
use crate::failure::Failure;

const NAME: &str = "mongod";
const PORT: &str = "27017";
const BIND: &str = "127.0.0.1";
/// mongod's.
const DATA: &str = "/data/db";
const HELP: &str = "\
Serve a data directory with mongod's options

Usage: frond mongod [OPTIONS]

Options:
  --port PORT                  port to listen on [default: 27017]
  --bind_ip ADDRESS,...        addresses, and Unix sockets' paths [default: 127.0.0.1]
  --bind_ip_all                all addresses, with --ipv6 those of IPv6, too
  --unixSocketPrefix DIR       directory of a Unix socket, mongodb-PORT.sock, to listen on as well
  --filePermissions MODE       its permissions [default: 0700]
  --dbpath DIR                 data directory [default: /data/db]
  --replSet NAME               name of the replica set: a new data directory waits for
                               replSetInitiate, which makes it the only member, or one of several;
                               without a name it is rs0's only member at once
  --auth, --noauth             whether clients have to log in; without either it listens on this
                               machine's own addresses only
  --keyFile FILE               like --auth; the secret that the members of a set share
  --tlsMode MODE               disabled, allowTLS, preferTLS or requireTLS
  --tlsCertificateKeyFile FILE, --tlsCertificateKeyFilePassword PASSWORD, --tlsCAFile FILE,
  --tlsCRLFile FILE, --tlsAllowConnectionsWithoutCertificates
  --noscripting                refuse clients' JavaScript
  --maxConns COUNT             connections at one time
  --networkMessageCompressors NAMES
  --wiredTigerCacheSizeGB GB   size of the cache
  --oplogSize MB               how much of the log to keep, for change streams
  --logpath FILE               file to append the log to, instead of standard output
  --logRotate rename|reopen    what rotating it is; reopen where logrotate renames it
  --profile 0|1|2              whether the profiler records slow operations, or all
  --quiet                      leave clients that come and go out of the log
  --verbose, -v to -vvvvv      from -v on the log has every operation
  --slowms MILLIS, --slowOpSampleRate RATE
                               which operations are slow, and how many of them are logged
  --auditDestination file, --auditFormat JSON, --auditPath FILE, --auditFilter JSON
  --config FILE, -f FILE       settings file in YAML, or with a line NAME = VALUE per option
  --setParameter NAME=VALUE    enableTestCommands, ttlMonitorSleepSecs, requireApiVersion,
                               minSnapshotHistoryWindowInSeconds, logLevel, acceptApiVersion2
  --pidfilepath FILE           file for the number of the process
  --fork                       go on in the background once clients are served; needs --logpath
  --shutdown                   stop the server of --dbpath (with --auth or TLS: of --pidfilepath)
  --help, -h                   print this
  --version                    print MongoDB's version that Frond offers, and its own

Without effect: --logappend, --nounixsocket, --objcheck, --timeZoneInfo, and options whose value
says what is the case: --clusterAuthMode keyFile, --enableMajorityReadConcern true,
--storageEngine wiredTiger or ephemeralForTest, --timeStampFormat iso8601-utc,
--tlsDisabledProtocols TLS1_0,TLS1_1.
All other options of mongod are refused. A link to frond that is called mongod is this command.

Example:
  MONGOMS_SYSTEM_BINARY=/usr/local/bin/mongod npm test     mongodb-memory-server starts Frond";

/// The meaning of one of mongod's command lines.
#[derive(PartialEq, Debug)]
pub enum Invocation {
    /// To run `frond serve` with these arguments, the program's name first.
    Serve(Vec<OsString>),
    /// To print this.
    Print(String),
}

/// The arguments of a command line that is mongod's: `frond mongod ...`, or by a link of that name.
pub fn arguments_of(command_line: &[OsString]) -> Option<&[OsString]> {
    let (program, arguments) = command_line.split_first()?;
    if Path::new(program).file_name() == Some(OsStr::new(NAME)) {
        return Some(arguments);
    }
    arguments.split_first().filter(|(first, _)| *first == NAME).map(|(_, rest)| rest)
}

/// Reads mongod's arguments. With `--fork` and `--shutdown` all is done that is asked for.
///
/// # Errors
/// [`Failure::Usage`] for an option that Frond hasn't, in mongod's words.
pub fn read(arguments: &[OsString]) -> Result<Invocation, Failure> {
    let mut parsed = CommandLine::default();
    parsed.read(arguments)?;
    parsed.complete_by_file();
    if let Some(text) = parsed.prints {
        return Ok(Invocation::Print(text));
    }
    if parsed.shuts_down {
        let data = parsed.data.unwrap_or_else(|| DATA.into());
        let result = shutdown::run(Path::new(&data), parsed.pid_file.as_deref())?;
        return Ok(Invocation::Print(result));
    }
    if parsed.forks {
        if !parsed.has_log {
            let message = "--fork has to be used with --logpath";
            return Err(Failure::Usage(message.to_owned()));
        }
        parsed.serve()?;
        let others = arguments.iter().filter(|word| *word != "--fork");
        let words: Vec<OsString> = std::iter::once(NAME.into()).chain(others.cloned()).collect();
        return fork::run(&words).map(Invocation::Print);
    }
    parsed.serve().map(Invocation::Serve)
}

/// The options that a command line has set.
#[derive(Default)]
struct CommandLine {
    port: Option<OsString>,
    bind: Option<OsString>,
    binds_all: bool,
    ipv6: bool,
    socket_directory: Option<OsString>,
    data: Option<OsString>,
    /// The text of a file of settings, in YAML.
    file: Option<String>,
    /// Options of `frond serve` that were said, with their values.
    others: Vec<OsString>,
    auth: bool,
    noauth: bool,
    level: usize,
    has_log: bool,
    pid_file: Option<PathBuf>,
    forks: bool,
    shuts_down: bool,
    prints: Option<String>,
}

impl CommandLine {
    fn read(&mut self, arguments: &[OsString]) -> Result<(), Failure> {
        let mut words: VecDeque<&OsString> = arguments.iter().collect();
        while let Some(word) = words.pop_front() {
            let text = word.to_str().ok_or_else(|| unrecognised(word))?;
            let (name, given) = match text.split_once('=') {
                Some((name, value)) => (name, Some(OsString::from(value))),
                None => (text, None),
            };
            let name = name_of(name).ok_or_else(|| unrecognised(word))?;
            if name.starts_with('v') && name.bytes().all(|letter| letter == b'v') {
                self.level = name.len();
                continue;
            }
            let meaning = meaning_of(name).ok_or_else(|| unrecognised(word))?;
            let mut value = || {
                let missing = || {
                    let message = format!("the required argument for option '{text}' is missing");
                    Failure::Usage(message)
                };
                given.clone().or_else(|| words.pop_front().cloned()).ok_or_else(missing)
            };
            self.take(name, meaning, &mut value)?;
        }
        Ok(())
    }

    fn take(
        &mut self,
        name: &str,
        meaning: Meaning,
        value: &mut dyn FnMut() -> Result<OsString, Failure>,
    ) -> Result<(), Failure> {
        match meaning {
            Meaning::Moot => {}
            Meaning::MootValue => drop(value()?),
            Meaning::Switch(flag) => self.others.push(flag.into()),
            Meaning::Pass(flag) => {
                let value = value()?;
                match name {
                    "logpath" => self.has_log = true,
                    "pidfilepath" => self.pid_file = Some(PathBuf::from(&value)),
                    _ => {}
                }
                self.others.extend([flag.into(), value]);
            }
            Meaning::Gigabytes(flag) => {
                let megabytes = number(name, &value()?)? * 1_024.0;
                self.others.extend([flag.into(), format!("{}", megabytes.round().max(1.0)).into()]);
            }
            Meaning::Megabytes(flag) => {
                let megabytes = number(name, &value()?)?;
                self.others.extend([flag.into(), format!("{}MB", megabytes.round()).into()]);
            }
            Meaning::Only(values, why) => {
                let value = value()?;
                if !values.iter().any(|known| value == *known) {
                    let what = format!("--{name} {}: not supported: {why}", value.display());
                    return Err(Failure::Usage(what));
                }
            }
            Meaning::Refused(why) => {
                return Err(Failure::Usage(format!("--{name}: not supported: {why}")));
            }
            Meaning::Own => self.take_own(name, value)?,
        }
        Ok(())
    }

    fn take_own(
        &mut self,
        name: &str,
        value: &mut dyn FnMut() -> Result<OsString, Failure>,
    ) -> Result<(), Failure> {
        match name {
            "auth" => self.auth = true,
            "noauth" => self.noauth = true,
            "keyFile" => {
                let file = value()?;
                check_key_file(&file)?;
                self.others.extend(["--key-file".into(), file]);
                self.auth = true;
            }
            "port" => self.port = Some(value()?),
            "bind_ip" => self.bind = Some(value()?),
            "bind_ip_all" => self.binds_all = true,
            "ipv6" => self.ipv6 = true,
            "unixSocketPrefix" => self.socket_directory = Some(value()?),
            "dbpath" => self.data = Some(value()?),
            "verbose" => self.level = self.level.max(1),
            "fork" => self.forks = true,
            "shutdown" => self.shuts_down = true,
            "config" => {
                let file = value()?;
                let text = std::fs::read_to_string(&file).ok();
                match text.as_deref().and_then(ini::words) {
                    Some(words) => self.read(&words)?,
                    None => {
                        self.file = text;
                        self.others.extend(["--config".into(), file]);
                    }
                }
            }
            "version" => self.prints = Some(version()),
            _ => self.prints = Some(HELP.to_owned()),
        }
        Ok(())
    }

    /// Takes from the file what is put together here, the addresses and the data directory, where
    /// the command line doesn't say it: what it says holds before what the file says.
    fn complete_by_file(&mut self) {
        let Some(text) = self.file.take() else { return };
        let value = |key: &str| value_of(&text, key).map(OsString::from);
        let is_on = |key: &str| value_of(&text, key).is_some_and(|value| value == "true");
        if self.bind.is_none() && !self.binds_all {
            self.bind = value("net.bindIp");
            self.binds_all = is_on("net.bindIpAll");
        }
        self.port = self.port.take().or_else(|| value("net.port"));
        self.ipv6 |= is_on("net.ipv6");
        self.data = self.data.take().or_else(|| value("storage.dbPath"));
        let has_socket = value_of(&text, "net.unixDomainSocket.enabled");
        if self.socket_directory.is_none() && has_socket.is_none_or(|is_on| is_on == "true") {
            self.socket_directory = value("net.unixDomainSocket.pathPrefix");
        }
    }

    /// The command line of `frond serve`.
    fn serve(&self) -> Result<Vec<OsString>, Failure> {
        if self.auth && self.noauth {
            let message = "noauth is not allowed when auth is specified";
            return Err(Failure::Usage(message.to_owned()));
        }
        if self.bind.is_some() && self.binds_all {
            let message = "Cannot specify both --bind_ip and --bind_ip_all";
            return Err(Failure::Usage(message.to_owned()));
        }
        let data = self.data.clone().unwrap_or_else(|| DATA.into());
        let mut serve: Vec<OsString> = vec!["frond".into(), "serve".into(), "--data".into(), data];
        let port = self.port.as_ref().map_or(PORT.into(), |port| port.to_string_lossy());
        let bind = match (&self.bind, self.binds_all) {
            (Some(bind), _) => bind.to_str().ok_or_else(|| unrecognised(bind))?,
            (None, true) if self.ipv6 => "::",
            (None, true) => "0.0.0.0",
            (None, false) => BIND,
        };
        for address in bind.split(',') {
            serve.push("--listen".into());
            serve.push(match address.trim() {
                path if path.starts_with('/') => format!("unix:{path}").into(),
                address if address.contains(':') => format!("[{address}]:{port}").into(),
                "*" => format!("0.0.0.0:{port}").into(),
                address => format!("{address}:{port}").into(),
            });
        }
        if let Some(directory) = &self.socket_directory {
            let path = Path::new(directory).join(format!("mongodb-{port}.sock"));
            serve.extend(["--listen".into(), format!("unix:{}", path.display()).into()]);
        }
        serve.extend(self.others.iter().cloned());
        // mongod listens everywhere without logins, too; here it has to be said.
        if self.noauth && !bind.split(',').all(|address| is_of_this_machine(address.trim())) {
            serve.push("--insecure-no-auth".into());
        }
        if self.auth {
            serve.push("--auth".into());
        }
        if self.level > 0 {
            let level = format!("logLevel={}", self.level.min(5));
            serve.extend(["--setParameter".into(), level.into()]);
        }
        Ok(serve)
    }
}

/// The name of an option, as mongod spells it; `None` if the word is none.
fn name_of(word: &str) -> Option<&str> {
    let is_verbose = |letters: &str| letters.bytes().all(|letter| letter == b'v');
    match (word.strip_prefix("--"), word.strip_prefix('-')) {
        (Some(name), _) => Some(name).filter(|name| !is_verbose(name)),
        (None, Some("f")) => Some("config"),
        (None, Some("h")) => Some("help"),
        (None, Some(letters)) => {
            Some(letters).filter(|letters| !letters.is_empty() && is_verbose(letters))
        }
        (None, None) => None,
    }
}

/// Whether only this machine reaches what listens there.
fn is_of_this_machine(address: &str) -> bool {
    let ip = address.parse::<IpAddr>();
    address == "localhost" || address.starts_with('/') || ip.is_ok_and(|ip| ip.is_loopback())
}

fn number(name: &str, value: &OsStr) -> Result<f64, Failure> {
    let number = value.to_str().and_then(|value| value.parse::<f64>().ok());
    number
        .filter(|number| 0.0 < *number && *number < 1e9)
        .ok_or_else(|| Failure::Usage(format!("--{name}: {} is not a size", value.display())))
}

/// Refuses the path of no file: a server that is to be safe by it isn't started without.
fn check_key_file(path: &OsStr) -> Result<(), Failure> {
    match Path::new(path).is_file() {
        true => Ok(()),
        false => {
            Err(Failure::Usage(format!("--keyFile {}: there is no such file", path.display())))
        }
    }
}

fn unrecognised(word: &OsStr) -> Failure {
    let message =
        format!("unrecognised option '{}'; frond mongod --help lists them", word.display());
    Failure::Usage(message)
}

/// Returns the text that programs look for: `db version v8.0.0`.
fn version() -> String {
    format!("db version v{MONGODB_VERSION}\nfrond {}", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    fn serve(text: &str) -> String {
        match read(&words(text)) {
            Ok(Invocation::Serve(arguments)) => {
                let arguments: Vec<_> =
                    arguments.iter().map(|word| word.to_string_lossy()).collect();
                arguments.join(" ")
            }
            Ok(Invocation::Print(text)) => text,
            Err(failure) => format!("refused: {failure}"),
        }
    }

    #[test]
    fn mongods_options_become_those_of_serve() {
        let start = "frond serve --data /data/db --listen 127.0.0.1:27017";
        let cases = [
            ("", String::new()),
            ("--noscripting", " --noscripting".to_owned()),
            ("--nounixsocket --objcheck --logappend --ipv6", String::new()),
            ("--profile 0 --logRotate reopen", " --profile 0 --log-rotate reopen".to_owned()),
            ("--clusterAuthMode keyFile --timeZoneInfo /usr/share/zoneinfo", String::new()),
            ("--storageEngine ephemeralForTest", String::new()),
            (
                "--wiredTigerCacheSizeGB 0.25 --oplogSize 128",
                " --cache 256 --changes-bytes 128MB".to_owned(),
            ),
            (
                "--slowms=200 --slowOpSampleRate 0.5",
                " --slow-ms 200 --slow-sample-rate 0.5".to_owned(),
            ),
            ("--quiet -vv", " --quiet --setParameter logLevel=2".to_owned()),
            ("--verbose", " --setParameter logLevel=1".to_owned()),
            (
                "--tlsMode requireTLS --tlsCertificateKeyFile a.pem --tlsCAFile b.pem",
                " --tls-mode requireTLS --tls-certificate-key-file a.pem --tls-ca-file b.pem"
                    .to_owned(),
            ),
            ("--pidfilepath p --maxConns 7", " --pid-file p --max-connections 7".to_owned()),
            (
                "--unixSocketPrefix /tmp --filePermissions 0777",
                " --listen unix:/tmp/mongodb-27017.sock --unix-socket-permissions 0777".to_owned(),
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(serve(text), format!("{start}{expected}"), "{text}");
        }
    }

    #[test]
    fn addresses_are_listened_on() {
        for (text, expected) in [
            (
                "--port 4 --dbpath /tmp/x --storageEngine wiredTiger --bind_ip 127.0.0.1 --noauth",
                "frond serve --data /tmp/x --listen 127.0.0.1:4",
            ),
            (
                "--replSet=testset --keyFile /proc/self/stat --bind_ip ::1,/tmp/m.sock --logpath \
                 l --logappend",
                "frond serve --data /data/db --listen [::1]:27017 --listen unix:/tmp/m.sock \
                 --replica-set testset --key-file /proc/self/stat --log-path l --auth",
            ),
            (
                "-f c.yaml --bind_ip_all --setParameter enableTestCommands=1",
                "frond serve --data /data/db --listen 0.0.0.0:27017 --config c.yaml \
                 --setParameter enableTestCommands=1",
            ),
            ("--bind_ip_all --ipv6", "frond serve --data /data/db --listen [::]:27017"),
            (
                "--bind_ip_all --noauth",
                "frond serve --data /data/db --listen 0.0.0.0:27017 --insecure-no-auth",
            ),
            (
                "--bind_ip localhost,/run/m.sock,::1 --noauth",
                "frond serve --data /data/db --listen localhost:27017 --listen unix:/run/m.sock \
                 --listen [::1]:27017",
            ),
            (
                "--bind_ip 127.0.0.1,::1 --port 5",
                "frond serve --data /data/db --listen 127.0.0.1:5 --listen [::1]:5",
            ),
        ] {
            assert_eq!(serve(text), expected, "{text}");
        }
        assert!(serve("--port 1 --version").starts_with("db version v8.0."));
    }

    #[test]
    fn a_file_says_where_to_listen_and_where_the_data_are() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("mongod.conf");
        let text = "net: {port: 3, bindIp: '127.0.0.1,/run/x'}\nstorage: {dbPath: /d}\n";
        std::fs::write(&file, text).expect("room");
        let name = file.display();
        for (line, expected) in [
            (format!("-f {name}"), "--data /d --listen 127.0.0.1:3 --listen unix:/run/x"),
            (
                format!("--port 4 -f {name} --dbpath e"),
                "--data e --listen 127.0.0.1:4 --listen unix:/run/x",
            ),
            (format!("--bind_ip_all -f {name}"), "--data /d --listen 0.0.0.0:3"),
        ] {
            let expected = format!("frond serve {expected} --config {name}");
            assert_eq!(serve(&line), expected, "{line}");
        }
    }

    #[test]
    fn unenforced_options_are_refused() {
        for text in [
            "--shardsvr",
            "--storageEngine inMemory",
            "--port",
            "data",
            "-x",
            "-",
            "--vv",
            "--fork",
            "--auth --noauth",
            "--bind_ip ::1 --bind_ip_all",
            "--keyFile /no/such/file",
            "--noauth --keyFile /proc/self/stat",
            "--directoryperdb",
            "--tlsDisabledProtocols TLS1_3",
            "--journal",
            "--nojournal",
            "--syslog",
            "--wiredTigerCacheSizeGB some",
            "--wiredTigerCacheSizeGB -1",
            "--tlsAllowInvalidCertificates",
            "--listen 127.0.0.1:1",
        ] {
            assert!(serve(text).starts_with("refused: "), "{text}: {}", serve(text));
        }
    }

    #[test]
    fn the_help_has_every_option_that_is_taken() {
        for (name, meaning) in options::names() {
            let is_taken = !matches!(meaning, Meaning::Refused(_));
            let is_listed = HELP.contains(&format!("--{name}"));
            assert_eq!(is_listed, is_taken, "--{name}");
        }
    }

    #[test]
    fn it_is_recognised_by_the_first_word_or_by_the_programs_name() {
        let of = |text| arguments_of(&words(text)).map(<[OsString]>::len);
        assert_eq!(of("frond mongod --port 1"), Some(2));
        assert_eq!(of("/opt/x/mongod --port 1"), Some(2));
        assert_eq!(of("frond serve mongod"), None);
        assert_eq!(of("frond"), None);
    }
}
