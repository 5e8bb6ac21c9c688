//! `frond push`: sends commits to a remote.

use std::io::Write;

use clap::Args;
use frond_doc::{DocumentBuf, DocumentBuilder, Value, document};
use frond_server::hooks::Act;
use frond_vcs::remote::{ORIGIN, PushReport, PushRequest};

use crate::arguments::Answer;
use crate::backend::{Backend, Embedded};
use crate::commands::backup::print_damages;
use crate::commands::remote::{Data, occasion, open_database, run_post_hook};
use crate::commands::served::{self, Served};
use crate::commands::transfer::{Connection, Progress, append_moved, failure, moved_text};
use crate::failure::Failure;
use crate::output::{append_texts, array_of, count_value, counted, documents_of, plain, text_of};
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond push shop
  frond push shop@sale --tags
  frond push shop --all
  frond push shop --force-with-lease     after a rebase, if no other client pushed meanwhile";

/// Send a branch's commits to a remote, and move its branch there
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Push {
    /// Database, or DATABASE@BRANCH: what is pushed
    database: String,

    /// Remote
    #[arg(default_value = ORIGIN)]
    remote: String,

    /// Branch of the remote; by default the one of the same name
    #[arg(long)]
    branch: Option<String>,

    /// Move the remote's branch even if that loses commits, if it is where it was last seen
    #[arg(long)]
    force_with_lease: bool,

    /// Also send tags
    #[arg(long)]
    tags: bool,

    /// Push every branch that has a commit, each to the branch of the same name
    #[arg(long, conflicts_with = "branch")]
    all: bool,

    #[command(flatten)]
    as_json: Answer,

    #[command(flatten)]
    connection: Connection,

    #[command(flatten)]
    data: Data,
}

impl Push {
    /// Pushes. Of all branches, one that is refused doesn't keep the others from being pushed.
    ///
    /// # Errors
    /// [`Failure::Failed`] if the remote is not known, can't be written, or has commits that are
    /// not here.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let mut place = match self.data.server()? {
            Some(server) => Place::Server(server),
            None => Place::Opened(Box::new(self.data.open()?)),
        };
        let mut refused = Vec::new();
        let mut mended = None;
        if self.all {
            let (repository, branches) = place.branches(&self.database)?;
            if branches.is_empty() {
                return Err(Failure::failed(format!(
                    "no branch of {repository} has a commit to push"
                )));
            }
            for branch in branches {
                let name = format!("{repository}@{}", branch.replace('%', "%25"));
                match self.push(terminal, &mut place, &name) {
                    Ok(count) => {
                        mended = mended.into_iter().chain(count).reduce(|left, right| left + right);
                    }
                    Err(failure) => refused.push(format!("{}: {failure}", plain(&branch))),
                }
            }
        } else {
            mended = self.push(terminal, &mut place, &self.database)?;
        }
        terminal.finish()?;
        place.close()?;
        if !refused.is_empty() {
            return Err(Failure::failed(refused.join("\nfrond: ")));
        }
        let Some(mended) = mended else { return Ok(()) };
        Err(Failure::Warned(format!(
            "{} was damaged: {} transferred again, what was pushed is intact there; check its disk",
            self.remote,
            counted(mended, "chunk")
        )))
    }

    /// Pushes one branch. Returns how many chunks were brought again, where damage was found.
    fn push(
        &self,
        terminal: &mut Terminal,
        place: &mut Place,
        name: &str,
    ) -> Result<Option<u64>, Failure> {
        match place {
            Place::Opened(opened) => self.push_from(terminal, opened, name),
            Place::Server(server) => self.push_by(terminal, server, name),
        }
    }

    fn push_by(
        &self,
        terminal: &mut Terminal,
        server: &mut Served,
        name: &str,
    ) -> Result<Option<u64>, Failure> {
        let mut command = DocumentBuilder::new();
        command.append("frondPush", Value::Int32(1));
        command.append("remote", Value::String(&self.remote));
        if let Some(branch) = &self.branch {
            command.append("branch", Value::String(branch));
        }
        command.append("forceWithLease", Value::Boolean(self.force_with_lease));
        command.append("tags", Value::Boolean(self.tags));
        let answer = server.transfer(name, command, &self.connection)?;
        self.print(terminal, &served::pushed(answer.view()))?;
        let mended = answer.get("mended").and_then(|mended| mended.as_integer());
        Ok(mended.and_then(|mended| u64::try_from(mended).ok()))
    }

    fn push_from(
        &self,
        terminal: &mut Terminal,
        opened: &Embedded,
        name: &str,
    ) -> Result<Option<u64>, Failure> {
        let database = open_database(opened, name)?;
        let remote = self.connection.open_named(&self.remote, &database)?;
        let mut occasion = occasion(Act::Push, name, &database);
        occasion.facts.push(("remote", self.remote.clone()));
        opened.hooks().before(&occasion)?;
        let progress = Progress::new();
        let request = PushRequest {
            branch: self.branch.clone(),
            force_with_lease: self.force_with_lease,
            tags: self.tags,
        };
        let report = database
            .push(&self.remote, &*remote, &request, &mut |moved| progress.show(moved))
            .map_err(failure)?;
        progress.end();
        occasion.facts.push(("commitId", report.to.to_string()));
        run_post_hook(opened, &occasion);
        if !self.print(terminal, &pushed(&report))? {
            print_damages(terminal, &report.damages)?;
        }
        Ok((!report.damages.is_empty()).then_some(report.mended))
    }

    /// Prints the report of a push; returns whether that was as JSON.
    fn print(&self, terminal: &mut Terminal, report: &DocumentBuf) -> Result<bool, Failure> {
        if self.as_json.print(terminal, report)? {
            return Ok(true);
        }
        let report = report.view();
        let to = terminal.paint(Style::Changed, text_of(report, "to"));
        let branch = plain(text_of(report, "branch"));
        let tags = array_of(report, "tags");
        let has_moved = text_of(report, "from") != text_of(report, "to");
        if has_moved || tags.iter().next().is_some() {
            let moved = moved_text(report);
            writeln!(terminal, "{branch} of {} is at {to} now ({moved})", self.remote)?;
        } else {
            writeln!(terminal, "{branch} of {} is at {to} already", self.remote)?;
        }
        for tag in tags.iter().filter_map(|tag| tag.as_str()) {
            writeln!(terminal, "tag {}", plain(tag))?;
        }
        Ok(false)
    }
}

/// What does the pushing.
enum Place {
    /// This process, which has opened the data directory.
    Opened(Box<Embedded>),
    /// The server that has it.
    Server(Served),
}

impl Place {
    /// The database without its version, and its branches that have a commit.
    fn branches(&mut self, database: &str) -> Result<(String, Vec<String>), Failure> {
        match self {
            Place::Opened(opened) => {
                let database = open_database(opened, database)?;
                database.check_exists().map_err(failure)?;
                let mut branches = database.list_branches().map_err(failure)?;
                branches.retain(|branch| branch.head.is_some());
                let names = branches.into_iter().map(|branch| branch.name).collect();
                Ok((database.name().name.clone(), names))
            }
            Place::Server(server) => {
                let name = database.split('@').next().unwrap_or_default().to_owned();
                let answer = server.execute(&name, &document! { "frondBranch": 1_i32 })?;
                let listed = documents_of(answer.view(), "branches");
                let with_commit = listed.filter(|branch| !text_of(*branch, "commitId").is_empty());
                let names = with_commit.map(|branch| text_of(branch, "branch").to_owned());
                Ok((name, names.collect()))
            }
        }
    }

    fn close(self) -> Result<(), Failure> {
        match self {
            Place::Opened(opened) => opened.close(),
            Place::Server(server) => server.into_backend().close(),
        }
    }
}

/// Returns the result of a push, as a document.
fn pushed(report: &PushReport) -> DocumentBuf {
    let mut answer = DocumentBuilder::new();
    answer.append("branch", Value::String(&report.branch));
    if let Some(from) = &report.from {
        answer.append("from", Value::String(&from.to_string()));
    }
    answer.append("to", Value::String(&report.to.to_string()));
    append_texts(&mut answer, "tags", &report.tags);
    append_moved(&mut answer, &report.moved);
    answer.append("mended", count_value(report.mended));
    answer.build()
}
