//! `frond push`: sends commits to a remote.

use std::io::Write;

use clap::Args;
use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_server::hooks::Act;
use frond_vcs::remote::{ORIGIN, PushReport, PushRequest};

use crate::arguments::Answer;
use crate::backend::{Backend, Embedded};
use crate::commands::backup::print_damages;
use crate::commands::remote::{Data, occasion, open_database, run_post_hook};
use crate::commands::transfer::{Connection, Progress, append_moved, failure, moved_text};
use crate::failure::Failure;
use crate::output::{append_texts, count_value, counted, plain};
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
        let opened = self.data.open()?;
        let mut refused = Vec::new();
        let mut mended = None;
        if self.all {
            let database = open_database(&opened, &self.database)?;
            database.check_exists().map_err(failure)?;
            let mut branches = database.list_branches().map_err(failure)?;
            branches.retain(|branch| branch.head.is_some());
            if branches.is_empty() {
                let name = &database.name().name;
                return Err(Failure::failed(format!("no branch of {name} has a commit to push")));
            }
            for branch in branches {
                let name = format!("{}@{}", database.name().name, branch.name.replace('%', "%25"));
                match self.push(terminal, &opened, &name) {
                    Ok(count) => {
                        mended = mended.into_iter().chain(count).reduce(|left, right| left + right);
                    }
                    Err(failure) => refused.push(format!("{}: {failure}", plain(&branch.name))),
                }
            }
        } else {
            mended = self.push(terminal, &opened, &self.database)?;
        }
        terminal.finish()?;
        Box::new(opened).close()?;
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
        let mended = (!report.damages.is_empty()).then_some(report.mended);
        if self.as_json.print(terminal, &pushed(&report))? {
            return Ok(mended);
        }
        let to = terminal.paint(Style::Changed, report.to);
        let branch = plain(&report.branch);
        if report.from == Some(report.to) && report.tags.is_empty() {
            writeln!(terminal, "{branch} of {} is at {to} already", self.remote)?;
        } else {
            writeln!(
                terminal,
                "{branch} of {} is at {to} now ({})",
                self.remote,
                moved_text(&report.moved)
            )?;
        }
        for tag in &report.tags {
            writeln!(terminal, "tag {}", plain(tag))?;
        }
        print_damages(terminal, &report.damages)?;
        Ok(mended)
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
