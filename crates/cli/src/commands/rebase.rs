//! `frond rebase`: makes a branch's own commits again on top of another version.

use std::io::Write;

use frond_doc::{DocumentBuf, DocumentBuilder, Value};

use crate::arguments::{Answer, Target};
use crate::commands::log;
use crate::commands::merge::{self, OutcomeDisplay, Rules};
use crate::failure::Failure;
use crate::output::{documents_of, plain, text_of};
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond rebase shop@sale main      sale's commits on top of main, for a straight history

  frond rebase shop@sale --continue   when the conflicts of a commit are resolved
  frond rebase shop@sale --skip       leave out the commit that conflicts
  frond rebase shop@sale --abort      give up

A commit that conflicts stops the rebase (exit code 1): frond conflicts lists the conflicts, frond resolve \
resolves them. The branch moves when everything is done. frond undo undoes a rebase.";

/// Replay a branch's own commits on top of another version
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(override_usage = "frond rebase [OPTIONS] <DATABASE> <VERSION>
       frond rebase [OPTIONS] <DATABASE> --continue | --skip | --abort")]
#[command(group = clap::ArgGroup::new("what").required(true).args(["onto", "continue_", "skip", "abort"]))]
pub struct Rebase {
    /// Database, or DATABASE@BRANCH: the branch that moves
    database: String,

    /// Version on top of which the commits are replayed
    #[arg(value_name = "VERSION")]
    onto: Option<String>,

    /// Continue: the conflicts of the current commit are resolved
    #[arg(long = "continue")]
    continue_: bool,

    /// Continue without the commit that conflicts
    #[arg(long)]
    skip: bool,

    /// Give up; what was written since it began stays
    #[arg(long)]
    abort: bool,

    #[command(flatten)]
    rules: Rules,

    #[command(flatten)]
    as_json: Answer,

    #[command(flatten)]
    target: Target,
}

impl Rebase {
    /// Rebases the branch.
    ///
    /// # Errors
    /// As [`Target::open`]; [`Failure::Reported`] if conflicts wait; [`Failure::Refused`] if
    /// something isn't committed.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let mut command = DocumentBuilder::new();
        command.append("frondRebase", Value::Int32(1));
        self.rules.append_to(&mut command)?;
        let Some(onto) = &self.onto else {
            let flags = [("continue", self.continue_), ("skip", self.skip), ("abort", self.abort)];
            for (name, _) in flags.iter().filter(|(_, is_set)| *is_set) {
                command.append(name, Value::Boolean(true));
            }
            let how = OutcomeDisplay { as_json: self.as_json, print: merge::print };
            let backend = self.target.open()?;
            return merge::run(backend, terminal, &self.database, &command.build(), how);
        };
        command.append("onto", Value::String(onto));
        let backend = self.target.open()?;
        let how = OutcomeDisplay { as_json: self.as_json, print };
        merge::run(backend, terminal, &self.database, &command.build(), how)
    }
}

fn print(terminal: &mut Terminal, answer: &DocumentBuf) -> Result<(), Failure> {
    let answer = answer.view();
    for commit in documents_of(answer, "commits") {
        log::one_line(terminal, commit, "")?;
    }
    let branch = plain(text_of(answer, "branch"));
    let head = terminal.paint(Style::Changed, text_of(answer, "commitId"));
    Ok(writeln!(terminal, "{branch} is at {head} now")?)
}
