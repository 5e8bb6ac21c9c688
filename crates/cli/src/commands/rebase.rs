//! `frond rebase`: makes a branch's own commits again on top of another version.

use std::io::Write;

use frond_doc::{DocumentBuilder, Value};

use crate::arguments::Target;
use crate::commands::log;
use crate::commands::merge::Rules;
use crate::failure::Failure;
use crate::output::{documents_of, plain, text_of};
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond rebase shop@sale main      sale's commits on top of main, for a straight history

A commit that conflicts stops it, and nothing has changed: merge instead, or say --on-conflict.
frond undo takes a rebase back.";

/// Make a branch's own commits again on top of another version
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Rebase {
    /// Database, or DATABASE@BRANCH: the branch that moves
    database: String,

    /// Version to go on top of
    #[arg(value_name = "VERSION")]
    onto: String,

    #[command(flatten)]
    rules: Rules,

    #[command(flatten)]
    target: Target,
}

impl Rebase {
    /// Rebases the branch.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let mut command = DocumentBuilder::new();
        command.append("frondRebase", Value::Int32(1));
        command.append("onto", Value::String(&self.onto));
        self.rules.append_to(&mut command)?;
        let mut backend = self.target.open()?;
        let answer = backend.execute(&self.database, &command.build())?;
        let answer = answer.view();
        for commit in documents_of(answer, "commits") {
            log::one_line(terminal, commit)?;
        }
        let branch = plain(text_of(answer, "branch"));
        let head = terminal.paint(Style::Changed, text_of(answer, "commitId"));
        writeln!(terminal, "{branch} is at {head} now")?;
        backend.close()
    }
}
