//! `frond mongod`: `frond serve` by mongod's command line, for what starts `mongod` itself
//! (mongodb-memory-server, test suites of drivers and applications). A link to the program that is
//! called `mongod` does the same.
//!
//! 1. Each of mongod's options becomes the one of `frond serve`, or nothing where it says what is
//!    the case anyway.
//! 2. All others are refused: what isn't enforced isn't accepted.
//! 3. The log goes to standard output, as mongod's does, with the lines that such programs wait
//!    for.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use frond_server::commands::handshake::MONGODB_VERSION;

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
  --port PORT             port to listen on [default: 27017]
  --bind_ip ADDRESS,...   an address, and optionally a Unix socket's path [default: 127.0.0.1]
  --dbpath DIR            data directory [default: /data/db]
  --replSet NAME          name of the replica set, whose only member the server is [default: rs0]
  --auth, --noauth        whether clients have to log in
  --keyFile FILE          like --auth; the key isn't used, since there is one member
  --noscripting           refuse clients' JavaScript
  --logpath FILE          file to append the log to, instead of standard output
  --config FILE, -f FILE  settings file in YAML
  --setParameter NAME=VALUE
                          enableTestCommands, ttlMonitorSleepSecs, requireApiVersion,
                          minSnapshotHistoryWindowInSeconds
  --version               print MongoDB's version that Frond offers, and its own

Without effect: --storageEngine wiredTiger, --logappend, --quiet.
All other options of mongod are refused. A link to frond that is called mongod is this command.

Example:
  MONGOMS_SYSTEM_BINARY=/usr/local/bin/mongod npm test     mongodb-memory-server starts Frond";

/// What a command line of mongod's asks for.
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

/// Reads mongod's arguments.
///
/// # Errors
/// [`Failure::Usage`] for an option that Frond hasn't, in mongod's words.
pub fn read(arguments: &[OsString]) -> Result<Invocation, Failure> {
    let mut words = arguments.iter();
    let (mut port, mut bind) = (OsString::from(PORT), OsString::from(BIND));
    let mut data = OsString::from(DATA);
    let mut others: Vec<OsString> = Vec::new();
    let (mut auth, mut noauth) = (false, false);
    while let Some(word) = words.next() {
        let text = word.to_str().ok_or_else(|| unrecognised(word))?;
        let (name, given) = match text.split_once('=') {
            Some((name, value)) => (name, Some(OsString::from(value))),
            None => (text, None),
        };
        let mut value = || {
            let missing = || {
                let message = format!("the required argument for option '{name}' is missing");
                Failure::Usage(message)
            };
            given.clone().or_else(|| words.next().cloned()).ok_or_else(missing)
        };
        let mut pass_on = |flag: &str, value: OsString| others.extend([flag.into(), value]);
        match name {
            "--port" => port = value()?,
            "--bind_ip" => bind = value()?,
            "--bind_ip_all" => bind = "0.0.0.0".into(),
            "--dbpath" => data = value()?,
            "--replSet" => pass_on("--replica-set", value()?),
            "--logpath" => pass_on("--log-path", value()?),
            "--config" | "-f" => pass_on("--config", value()?),
            "--setParameter" => pass_on("--setParameter", value()?),
            "--auth" => auth = true,
            "--noauth" => noauth = true,
            "--noscripting" => others.push(name.into()),
            "--storageEngine" => check_engine(&value()?)?,
            "--keyFile" => {
                check_key_file(&value()?)?;
                auth = true;
            }
            "--logappend" | "--quiet" => {}
            "--version" => return Ok(Invocation::Print(version())),
            "--help" | "-h" => return Ok(Invocation::Print(HELP.to_owned())),
            _ => return Err(unrecognised(word)),
        }
    }
    if auth && noauth {
        let message = "noauth is not allowed when auth is specified";
        return Err(Failure::Usage(message.to_owned()));
    }
    if auth {
        others.push("--auth".into());
    }
    let mut serve: Vec<OsString> = vec!["frond".into(), "serve".into(), "--data".into(), data];
    for address in bind.to_str().ok_or_else(|| unrecognised(&bind))?.split(',') {
        let (address, port) = (address.trim(), port.to_string_lossy());
        serve.push("--listen".into());
        serve.push(match address {
            path if path.starts_with('/') => format!("unix:{path}").into(),
            address if address.contains(':') => format!("[{address}]:{port}").into(),
            address => format!("{address}:{port}").into(),
        });
    }
    serve.extend(others);
    Ok(Invocation::Serve(serve))
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

/// Refuses a storage engine that behaves in another way: Frond's own is on the disk and has
/// transactions, as WiredTiger.
fn check_engine(name: &OsStr) -> Result<(), Failure> {
    if name == "wiredTiger" {
        return Ok(());
    }
    let message = format!("unknown storage engine {}: there is Frond's own", name.display());
    Err(Failure::Usage(message))
}

fn unrecognised(word: &OsStr) -> Failure {
    let message =
        format!("unrecognised option '{}'; frond mongod --help lists them", word.display());
    Failure::Usage(message)
}

/// What programs look for: `db version v8.0.0`.
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
        let cases = [
            ("", "frond serve --data /data/db --listen 127.0.0.1:27017"),
            ("--noscripting", "frond serve --data /data/db --listen 127.0.0.1:27017 --noscripting"),
            (
                "--port 4 --dbpath /tmp/x --storageEngine wiredTiger --bind_ip 127.0.0.1 --noauth",
                "frond serve --data /tmp/x --listen 127.0.0.1:4",
            ),
            (
                "--replSet=testset --keyFile /proc/self/stat --bind_ip ::1,/tmp/m.sock --logpath \
                 l --logappend",
                "frond serve --data /data/db --listen [::1]:27017 --listen unix:/tmp/m.sock \
                 --replica-set testset --log-path l --auth",
            ),
            (
                "-f c.yaml --bind_ip_all --setParameter enableTestCommands=1",
                "frond serve --data /data/db --listen 0.0.0.0:27017 --config c.yaml \
                 --setParameter enableTestCommands=1",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(serve(text), expected, "{text}");
        }
        assert!(serve("--port 1 --version").starts_with("db version v8.0."));
    }

    #[test]
    fn unenforced_options_are_refused() {
        for text in [
            "--shardsvr",
            "--storageEngine inMemory",
            "--port",
            "data",
            "--fork",
            "--auth --noauth",
            "--keyFile /no/such/file",
            "--noauth --keyFile /proc/self/stat",
        ] {
            assert!(serve(text).starts_with("refused: "), "{text}");
        }
    }

    #[test]
    fn it_is_told_by_the_first_word_or_by_the_programs_name() {
        let of = |text| arguments_of(&words(text)).map(<[OsString]>::len);
        assert_eq!(of("frond mongod --port 1"), Some(2));
        assert_eq!(of("/opt/x/mongod --port 1"), Some(2));
        assert_eq!(of("frond serve mongod"), None);
        assert_eq!(of("frond"), None);
    }
}
