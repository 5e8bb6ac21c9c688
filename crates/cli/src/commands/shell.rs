//! `frond shell`: mongosh, connected to a running server, with methods for versions.
//!
//! mongosh takes the place of this process. The script goes to it as `--eval`, before those of the
//! user: so there is no file that another user could put something else into, and `~/.mongoshrc.js`
//! stays the user's.
//!
//! A command line can be read by every user of the machine, an environment cannot: a password goes
//! by the latter, and mongosh connects by our script then.

use std::io::{ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use frond_doc::{Value, document};
use frond_server::announced::socket_of;
use frond_server::{Client, MONGOSH_SCRIPT};

use crate::arguments::login_name;
use crate::backend::ServerUri;
use crate::commands::branch::driver_name;
use crate::failure::Failure;
use crate::output::shown_json;
use crate::terminal::Terminal;

/// The variable with the connection string for our script, if it has a password.
const URI_VARIABLE: &str = "FROND_SHELL_URI";
/// The variable with the committer's name, for the script, where no user has logged in.
const LOGIN_NAME_VARIABLE: &str = "FROND_LOGIN_NAME";
/// Connects to it.
const CONNECT_SCRIPT: &str =
    "db = connect(process.env.FROND_SHELL_URI); delete process.env.FROND_SHELL_URI; undefined";
/// The server where neither a data directory nor an address leads to one.
const DEFAULT_SERVER: &str = "127.0.0.1:27017";
/// The shell's command.
const MONGOSH: &str = "mongosh";
const HOW_TO_GET_IT: &str = "npm install --global mongosh, or https://www.mongodb.com/try/download/shell; frond shell \
     --print-script prints the script alone";

const EXAMPLES: &str = "\
Examples:
  frond shell                              the server of ./frond-data, or on 127.0.0.1:27017
  frond shell shop@sale --uri 127.0.0.1:27117
  frond shell shop --eval 'db.log(5)'      print that, and exit
  frond shell -- --tls --tlsCAFile ca.pem  with options of mongosh
  frond shell --print-script > frond.mongosh.js    then, in mongosh: load(\"frond.mongosh.js\")

In the shell: db.status(), db.commit(\"first items\"), db.log(), db.branch(\"sale\"), use shop@sale, \
db.branches(), db.diff(\"sale\"), db.merge(\"sale\"), db.undo(); db.frondHelp() lists them all.";

/// Start mongosh on a running server, with db.commit(), db.diff(), db.merge() and more
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Shell {
    /// Database to begin with, or DATABASE@VERSION; otherwise what the URI names, or test
    database: Option<String>,

    /// Data directory whose server to talk to, if one runs there without logins
    #[arg(long, value_name = "DIR", default_value = "./frond-data", conflicts_with = "uri")]
    data: PathBuf,

    /// The server, as HOST:PORT or as any connection string that mongosh takes; by default that of
    /// --data, or else 127.0.0.1:27017. With a user, FROND_PASSWORD may hold the password; with a
    /// password, mongosh's options for the connection have no effect
    #[arg(long, value_name = "HOST:PORT")]
    uri: Option<String>,

    /// Run this and exit; may be repeated, and the value of the last one is printed
    #[arg(long, value_name = "JAVASCRIPT")]
    eval: Vec<String>,

    /// Run this file and exit
    #[arg(short, long, value_name = "FILE")]
    file: Vec<String>,

    /// Print the script that defines the methods, for load() in mongosh
    #[arg(long, exclusive = true)]
    print_script: bool,

    /// Options of mongosh, after --
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

impl Shell {
    /// Becomes mongosh; or prints the script.
    ///
    /// # Errors
    /// [`Failure::Failed`] if there is no mongosh, or no server of Frond at the address.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        if self.print_script {
            return Ok(write!(terminal, "{MONGOSH_SCRIPT}")?);
        }
        let uri = self.uri();
        self.check_server(&uri)?;
        let mut mongosh = self.command(uri);
        // Returns only if it didn't become mongosh.
        let error = mongosh.exec();
        Err(match error.kind() {
            ErrorKind::NotFound => {
                Failure::failed(format!("there is no {MONGOSH} on PATH: {HOW_TO_GET_IT}"))
            }
            _ => Failure::file(MONGOSH, &error),
        })
    }

    /// The server that was named, or the one that the other commands would ask.
    fn uri(&self) -> String {
        self.uri.clone().unwrap_or_else(|| match socket_of(&self.data) {
            Some(socket) => format!("mongodb://{}/", percent_encoded(&socket.to_string_lossy())),
            None => DEFAULT_SERVER.to_owned(),
        })
    }

    fn command(&self, uri: String) -> Command {
        let mut mongosh = Command::new(MONGOSH);
        let is_whole = uri.starts_with("mongodb:") || uri.starts_with("mongodb+srv:");
        // A bare HOST:PORT would do, but one with a user would be taken for a file.
        let uri = if is_whole { uri } else { format!("mongodb://{uri}") };
        match with_password(&uri, std::env::var("FROND_PASSWORD").ok()) {
            Some(whole) => {
                mongosh.env(URI_VARIABLE, whole).args(["--nodb", "--eval", CONNECT_SCRIPT]);
            }
            None => drop(mongosh.arg(uri)),
        }
        mongosh.args(["--eval", MONGOSH_SCRIPT]).env_remove("FROND_PASSWORD");
        mongosh.env(LOGIN_NAME_VARIABLE, login_name());
        if let Some(database) = &self.database {
            // Not in the URI: there it would also say where the user belongs.
            let name = shown_json(Value::String(&for_drivers(database)));
            mongosh.args(["--eval", &format!("db = db.getSiblingDB({name}); undefined")]);
        }
        for script in &self.eval {
            mongosh.args(["--eval", script]);
        }
        for file in &self.file {
            mongosh.args(["--file", file]);
        }
        if self.eval.is_empty() && self.file.is_empty() {
            mongosh.arg("--shell");
        }
        mongosh.args(&self.options);
        mongosh
    }

    /// Asks the server what it is, where that can be done without a login and without TLS; else
    /// mongosh finds out.
    fn check_server(&self, uri: &str) -> Result<(), Failure> {
        if uri.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Failure::Usage(format!("--uri: {uri} is a port alone: 127.0.0.1:{uri}")));
        }
        // No password is needed to ask.
        let Ok(server) = ServerUri::parse(uri, Some(String::new())) else { return Ok(()) };
        let is_plain = server.tls.is_none() && server.others.is_empty();
        if !self.options.is_empty() || !is_plain {
            return Ok(());
        }
        let address = &server.address;
        let mut client = Client::connect(address).map_err(|error| {
            Failure::failed(format!(
                "{error}: is a server running there? frond serve --listen {address} starts one, \
                 and --uri names another"
            ))
        })?;
        let answer = client.command("admin", document! { "buildInfo": 1_i32 }.view());
        match answer {
            Ok(answer) if answer.get("frond").is_none() => {
                Err(Failure::failed(format!("the server at {address} isn't Frond")))
            }
            _ => Ok(()),
        }
    }
}

/// The connection string with its password, or with `password` where it names a user alone. `None`
/// without either.
fn with_password(uri: &str, password: Option<String>) -> Option<String> {
    let (scheme, rest) = uri.split_once("://")?;
    let hosts_end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (login, _) = rest[..hosts_end].rsplit_once('@')?;
    if login.contains(':') {
        return Some(uri.to_owned());
    }
    let password = percent_encoded(&password.filter(|password| !password.is_empty())?);
    Some(format!("{scheme}://{login}:{password}{}", &rest[login.len()..]))
}

/// What needs no encoding stays: mongosh knows a socket by `.sock` at the end.
fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                encoded.push(char::from(byte));
            }
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
        encoded
    })
}

/// `shop@agent/prices` as drivers take it; a name that is encoded already stays as it is.
fn for_drivers(database: &str) -> String {
    match database.split_once('@') {
        Some((repository, branch)) if !branch.contains('%') => {
            format!("{repository}@{}", driver_name(branch))
        }
        _ => database.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_named_as_drivers_take_it() {
        for (database, expected) in [
            ("shop", "shop"),
            ("shop@agent/prices", "shop@agent%2Fprices"),
            ("shop@agent%2Fprices", "shop@agent%2Fprices"),
        ] {
            assert_eq!(for_drivers(database), expected);
        }
    }

    #[test]
    fn a_password_is_found_or_put_in() {
        let given = || Some("p/@ä".to_owned());
        for (uri, password, expected) in [
            ("mongodb://127.0.0.1:1/x?y=a@b", given(), None),
            ("mongodb://ada@127.0.0.1:1/x", None, None),
            ("mongodb://ada@127.0.0.1:1/x", Some(String::new()), None),
            ("mongodb://ada:secret@h", given(), Some("mongodb://ada:secret@h")),
            ("mongodb+srv://ada@h/x", given(), Some("mongodb+srv://ada:p%2F%40%C3%A4@h/x")),
        ] {
            assert_eq!(with_password(uri, password).as_deref(), expected, "{uri}");
        }
    }
}
