//! `frond remote`, `clone` and `fetch`, and what `pull` and `push` have in common with them: the
//! same repository elsewhere.
//!
//! They work on a data directory that this process opens (`--data`), or have the server do it that
//! runs there (`served`). The other side may be a running server, too.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, document};
use frond_remote::RemoteUrl;
use frond_server::hooks::{Act, HookEvent};
use frond_vcs::Repository;
use frond_vcs::remote::{Depth, FetchReport, Moved, ORIGIN};

use crate::arguments::{Answer, Target};
use crate::backend::{Backend, Embedded, print_hook_message};
use crate::commands::served::{self, Served};
use crate::commands::transfer::{
    Connection, Progress, absolute, append_moved, check_place, failure, moved_text,
};
use crate::directory::check_there;
use crate::failure::Failure;
use crate::output::{
    append_texts, array_of, count_of, count_value, documents_of, json, plain, text_of,
};
use crate::terminal::{Style, Terminal};

const REMOTE_EXAMPLES: &str = "\
Examples:
  frond remote shop                                list them
  frond remote shop add origin /backup/shop        a plain directory: packs and refs, no server
  frond remote shop add bob /home/bob/frond-data   the database shop of another data directory
  frond remote shop add eve /srv/data#store        the same with its database store
  frond remote shop add live https://db.example.org:4224/shop      a running server
  frond remote shop add cloud s3://bucket/shop     a bucket, also az:// and gs://
  frond remote shop remove bob";
const CLONE_EXAMPLES: &str = "\
Examples:
  frond clone /backup/shop shop
  frond clone /home/bob/frond-data#store shop --data ./mine
  frond clone https://db.example.org:4224/shop shop --token-file token
  frond clone s3://bucket/shop shop
  frond clone /backup/shop shop --depth 1          the last commit only; more with frond fetch --depth

If a clone is interrupted, what has arrived stays: run it again, and it continues.";
const FETCH_EXAMPLES: &str = "\
Examples:
  frond fetch shop
  frond diff shop main origin/main       then: what is new there";
/// The advice where a server runs on the data directory that only those who log in may ask.
const SERVED: &str = "name it, and a user who may, with --uri, or stop it first";
/// Why a server refuses a directory, and what to do.
const NO_DIRECTORY: &str = "a server runs on the data directory, and opens no others: stop it first, or \
                            name http(s)://HOST:PORT/DATABASE, s3://, az:// or gs://";

/// The data directory to work on.
#[derive(Args, Clone, Debug)]
pub(super) struct Data {
    /// Data directory to open; if frond serve is running on it without logins, that server does it
    #[arg(long, global = true, value_name = "DIR", default_value = "./frond-data")]
    data: PathBuf,

    /// Running server that does it instead: 127.0.0.1:27017, or with a user
    /// mongodb://USER:PASSWORD@HOST:PORT (without a password, FROND_PASSWORD is used)
    #[arg(long, global = true, value_name = "HOST:PORT", conflicts_with = "data")]
    uri: Option<String>,
}

impl Data {
    /// Opens it.
    ///
    /// # Errors
    /// [`Failure::Failed`] if it isn't there, or a server runs on it.
    pub(super) fn open(&self) -> Result<Embedded, Failure> {
        check_there(&self.data, ": name one with --data")?;
        Embedded::open(&self.data, SERVED)
    }

    /// The server that has it, or is named.
    ///
    /// # Errors
    /// As [`Served::on`].
    pub(super) fn server(&self) -> Result<Option<Served>, Failure> {
        Served::on(&Target { data: self.data.clone(), uri: self.uri.clone() })
    }
}

/// List, add or remove a database's remotes
#[derive(Args)]
#[command(after_help = REMOTE_EXAMPLES, subcommand_required = false)]
pub struct Remotes {
    /// Database
    database: String,

    #[command(subcommand)]
    command: Option<RemoteCommand>,

    /// Print one line of JSON for each remote
    #[arg(long, global = true)]
    json: bool,

    #[command(flatten)]
    data: Data,
}

#[derive(Subcommand)]
enum RemoteCommand {
    /// List them
    List,
    /// Name another place
    Add {
        /// Its name
        name: String,
        /// A directory (of a data directory DIRECTORY#DATABASE if the database has another name),
        /// http(s)://HOST:PORT/DATABASE or s3://, az:// or gs://BUCKET/PREFIX
        place: String,
    },
    /// Forget one
    Remove {
        /// Its name
        name: String,
    },
}

impl Remotes {
    /// Does one of the three.
    ///
    /// # Errors
    /// [`Failure::Failed`] if there is no such database or remote, or the directory is in use.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        if let Some(mut server) = self.data.server()? {
            return self.by_server(terminal, &mut server);
        }
        let opened = self.data.open()?;
        let database = open_database(&opened, &self.database)?;
        database.check_exists().map_err(failure)?;
        match &self.command {
            None | Some(RemoteCommand::List) => {
                for remote in database.list_remotes().map_err(failure)? {
                    self.print_listed(terminal, &remote.name, &remote.url)?;
                }
            }
            Some(RemoteCommand::Add { name, place }) => {
                let url = absolute(place)?;
                database.add_remote(name, &url).map_err(failure)?;
                self.print_added(terminal, (name.as_str(), place.as_str()), &url)?;
            }
            Some(RemoteCommand::Remove { name }) => {
                database.remove_remote(name).map_err(failure)?;
                self.print_removed(terminal, name)?;
            }
        }
        Box::new(opened).close()
    }

    fn by_server(&self, terminal: &mut Terminal, server: &mut Served) -> Result<(), Failure> {
        match &self.command {
            None | Some(RemoteCommand::List) => {
                let answer = server.execute(&self.database, &document! { "frondRemote": 1_i32 })?;
                for remote in documents_of(answer.view(), "remotes") {
                    self.print_listed(terminal, text_of(remote, "name"), text_of(remote, "url"))?;
                }
            }
            Some(RemoteCommand::Add { name, place }) => {
                check_for_server(place)?;
                let command = document! { "frondRemote": 1_i32, "name": &**name, "url": &**place };
                server.execute(&self.database, &command)?;
                self.print_added(terminal, (name.as_str(), place.as_str()), place)?;
            }
            Some(RemoteCommand::Remove { name }) => {
                let command = document! { "frondRemote": 1_i32, "name": &**name, "remove": true };
                server.execute(&self.database, &command)?;
                self.print_removed(terminal, name)?;
            }
        }
        Ok(())
    }

    fn print_listed(&self, terminal: &mut Terminal, name: &str, url: &str) -> Result<(), Failure> {
        if self.json {
            return print_remote(terminal, name, url);
        }
        let name = terminal.paint(Style::Strong, format!("{:<16}", plain(name)));
        Ok(writeln!(terminal, "{name} {}", plain(url))?)
    }

    fn print_added(
        &self,
        terminal: &mut Terminal,
        (name, place): (&str, &str),
        url: &str,
    ) -> Result<(), Failure> {
        if self.json {
            return print_remote(terminal, name, url);
        }
        Ok(writeln!(terminal, "remote {name} is {}", plain(place))?)
    }

    fn print_removed(&self, terminal: &mut Terminal, name: &str) -> Result<(), Failure> {
        if self.json {
            let answer = document! { "removed": name };
            return Ok(writeln!(terminal, "{}", json(Value::from(&answer)))?);
        }
        Ok(writeln!(terminal, "removed remote {name}")?)
    }
}

/// Refuses a place that a server can't open for a client.
fn check_for_server(place: &str) -> Result<(), Failure> {
    match RemoteUrl::parse(place).map_err(failure)? {
        RemoteUrl::Directory(_) => Err(Failure::failed(NO_DIRECTORY)),
        _ => Ok(()),
    }
}

/// Copy a database from elsewhere, with its history
#[derive(Args)]
#[command(after_help = CLONE_EXAMPLES)]
pub struct Clone {
    /// A directory (of a data directory DIRECTORY#DATABASE if the database has another name),
    /// http(s)://HOST:PORT/DATABASE or s3://, az:// or gs://BUCKET/PREFIX
    place: String,

    /// Database to make
    database: String,

    /// Fetch only the last COMMITS commits of each branch
    #[arg(long, value_name = "COMMITS", value_parser = clap::value_parser!(u64).range(1..))]
    depth: Option<u64>,

    #[command(flatten)]
    as_json: Answer,

    #[command(flatten)]
    connection: Connection,

    #[command(flatten)]
    data: Data,
}

impl Clone {
    /// Clones.
    ///
    /// # Errors
    /// [`Failure::Failed`] if the place can't be read, or the database exists.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let place = absolute(&self.place)?;
        if let Some(mut server) = self.data.server()? {
            check_for_server(&self.place)?;
            let mut command = DocumentBuilder::new();
            command.append("frondClone", Value::Int32(1)).append("from", Value::String(&place));
            append_depth(&mut command, self.depth);
            let answer = server.transfer(&self.database, command, &self.connection)?;
            return self.print(terminal, &served::fetched(answer.view()).build());
        }
        check_place(&place)?;
        let opened = Embedded::open(&self.data.data, SERVED)?;
        let database = open_database(&opened, &self.database)?;
        let remote = self.connection.open(&place, &database)?;
        let progress = Progress::new();
        let report =
            database.clone_to(&place, &*remote, depth_of(self.depth), &mut |m| progress.show(m));
        let report = report.map_err(failure)?;
        progress.end();
        self.print(terminal, &fetched(&report).build())?;
        Box::new(opened).close()
    }

    fn print(&self, terminal: &mut Terminal, report: &DocumentBuf) -> Result<(), Failure> {
        if !self.as_json.print(terminal, report)? {
            print_fetched(terminal, report.view())?;
            writeln!(terminal, "cloned into {}", plain(&self.database))?;
        }
        Ok(())
    }
}

/// Download a remote's commits without changing any local branch
#[derive(Args)]
#[command(after_help = FETCH_EXAMPLES)]
pub struct Fetch {
    /// Database
    database: String,

    /// Remote
    #[arg(default_value = ORIGIN)]
    remote: String,

    /// Fetch COMMITS commits of each branch, even older ones than a shallow clone has
    #[arg(long, value_name = "COMMITS", value_parser = clap::value_parser!(u64).range(1..))]
    depth: Option<u64>,

    /// Fetch everything that a shallow clone left out
    #[arg(long, conflicts_with = "depth")]
    unshallow: bool,

    #[command(flatten)]
    as_json: Answer,

    #[command(flatten)]
    connection: Connection,

    #[command(flatten)]
    data: Data,
}

impl Fetch {
    /// Fetches.
    ///
    /// # Errors
    /// [`Failure::Failed`] if the remote is not known or can't be read.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        if let Some(mut server) = self.data.server()? {
            let mut command = DocumentBuilder::new();
            command.append("frondFetch", Value::Int32(1));
            command.append("remote", Value::String(&self.remote));
            append_depth(&mut command, self.depth);
            if self.unshallow {
                command.append("unshallow", Value::Boolean(true));
            }
            let answer = server.transfer(&self.database, command, &self.connection)?;
            return self.print(terminal, &served::fetched(answer.view()).build());
        }
        let opened = self.data.open()?;
        let database = open_database(&opened, &self.database)?;
        let remote = self.connection.open_to_read(&self.remote, &database)?;
        let progress = Progress::new();
        let depth = if self.unshallow { Depth::All } else { depth_of(self.depth) };
        let show = &mut |moved: &Moved| progress.show(moved);
        let report = database.fetch_to(&self.remote, &*remote, depth, show);
        let report = report.map_err(failure)?;
        progress.end();
        self.print(terminal, &fetched(&report).build())?;
        Box::new(opened).close()
    }

    fn print(&self, terminal: &mut Terminal, report: &DocumentBuf) -> Result<(), Failure> {
        if !self.as_json.print(terminal, report)? {
            print_fetched(terminal, report.view())?;
        }
        Ok(())
    }
}

fn append_depth(command: &mut DocumentBuilder, depth: Option<u64>) {
    if let Some(depth) = depth {
        command.append("depth", count_value(depth));
    }
}

fn depth_of(depth: Option<u64>) -> Depth {
    depth.map_or(Depth::Known, Depth::Commits)
}

pub(super) fn open_database(opened: &Embedded, name: &str) -> Result<Repository, Failure> {
    Repository::open(opened.frond(), name).map_err(failure)
}

fn print_remote(terminal: &mut Terminal, name: &str, url: &str) -> Result<(), Failure> {
    let answer = document! { "name": name, "place": url };
    Ok(writeln!(terminal, "{}", json(Value::from(&answer)))?)
}

/// Returns the branches that a fetch brought, as a document.
pub(super) fn fetched(report: &FetchReport) -> DocumentBuilder {
    let mut answer = DocumentBuilder::new();
    answer.begin_array("branches");
    for branch in &report.branches {
        answer.push_begin_document().append("branch", Value::String(&branch.name));
        if let Some(from) = &branch.from {
            answer.append("from", Value::String(&from.to_string()));
        }
        answer.append("to", Value::String(&branch.to.to_string())).end();
    }
    answer.end();
    append_texts(&mut answer, "tags", &report.tags);
    append_texts(&mut answer, "tagsKept", &report.tags_kept);
    append_moved(&mut answer, &report.moved);
    answer
}

/// Returns the event by which hooks see an operation.
pub(super) fn occasion<'n>(act: Act, name: &'n str, database: &Repository) -> HookEvent<'n> {
    let branch = database.branch().unwrap_or_default().to_owned();
    let (user, interrupt) = (String::new(), database.interrupt().clone());
    HookEvent { act, database: name, user, facts: vec![("branch", branch)], interrupt }
}

/// Runs the hook behind what was done, and says if it fails.
pub(super) fn run_post_hook(opened: &Embedded, occasion: &HookEvent<'_>) {
    let mut answer = DocumentBuilder::new();
    opened.hooks().after(occasion, &mut answer);
    print_hook_message(&answer.build());
}

/// Prints what a fetch brought.
pub(super) fn print_fetched(terminal: &mut Terminal, report: Document<'_>) -> Result<(), Failure> {
    let mut is_nothing = true;
    for branch in documents_of(report, "branches") {
        let name = terminal.paint(Style::Strong, plain(text_of(branch, "branch")));
        let to = terminal.paint(Style::Changed, text_of(branch, "to"));
        let new = if branch.get("from").is_none() { "  (new)" } else { "" };
        writeln!(terminal, "{name} is at {to}{new}")?;
        is_nothing = false;
    }
    let tags = |name| array_of(report, name).iter().filter_map(|tag| tag.as_str());
    for tag in tags("tags") {
        writeln!(terminal, "tag {}", plain(tag))?;
        is_nothing = false;
    }
    for tag in tags("tagsKept") {
        writeln!(
            terminal,
            "{}: the remote's tag names another commit; what is here stays",
            plain(tag)
        )?;
    }
    if count_of(report, "commits") > 0 {
        writeln!(terminal, "{}", moved_text(report))?;
    } else if is_nothing {
        writeln!(terminal, "nothing new")?;
    }
    Ok(())
}
