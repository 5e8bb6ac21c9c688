//! `frond branch`: lists, makes and deletes branches.

use std::io::Write;

use frond_doc::{Document, DocumentBuilder, Value};

use crate::arguments::Target;
use crate::failure::Failure;
use crate::output::{documents_of, plain, text_of};
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond branch shop                     list the branches
  frond branch shop sale                make one at the last commit
  frond branch shop old main~5          make one at an older version
  frond branch shop --delete sale       delete one that was merged
  frond branch shop --delete sale -f    delete it in any case

A branch is one small record, however large the database is. shop@sale then is a database that is
read and written like any other.";

/// List, make or delete branches
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Branch {
    /// Database, or DATABASE@BRANCH to start from there
    database: String,

    /// Branch to make; without it, the branches are listed
    branch: Option<String>,

    /// Version at which it starts: a branch, a commit's id, main~2; otherwise the last commit
    #[arg(requires = "branch")]
    start: Option<String>,

    /// Delete this branch
    #[arg(short, long, value_name = "BRANCH", conflicts_with = "branch")]
    delete: Option<String>,

    /// Delete it though it was not merged, or has changes that were not committed
    #[arg(short, long, requires = "delete")]
    force: bool,

    #[command(flatten)]
    target: Target,
}

impl Branch {
    /// Does one of the three.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let mut command = DocumentBuilder::new();
        command.append("frondBranch", Value::Int32(1));
        if let Some(branch) = self.branch.as_ref().or(self.delete.as_ref()) {
            command.append("branch", Value::String(branch));
        }
        if let Some(start) = &self.start {
            command.append("start", Value::String(start));
        }
        if self.delete.is_some() {
            command.append("delete", Value::Boolean(true));
            command.append("forceDelete", Value::Boolean(self.force));
        }
        let mut backend = self.target.open()?;
        let answer = backend.execute(&self.database, &command.build())?;
        let answer = answer.view();
        if self.delete.is_some() {
            writeln!(terminal, "deleted branch {}", plain(text_of(answer, "deleted")))?;
        } else if self.branch.is_some() {
            self.tell_made(terminal, answer)?;
        } else {
            for branch in documents_of(answer, "branches") {
                let name = format!("{:<24}", plain(text_of(branch, "branch")));
                let head = match text_of(branch, "commitId") {
                    "" => "no commits yet".to_owned(),
                    head => terminal.paint(Style::Changed, head),
                };
                writeln!(terminal, "{} {head}", terminal.paint(Style::Strong, name))?;
            }
        }
        backend.close()
    }

    fn tell_made(&self, terminal: &mut Terminal, answer: Document<'_>) -> Result<(), Failure> {
        let repository = self.database.split('@').next().unwrap_or(&self.database);
        let branch = plain(text_of(answer, "branch"));
        let name = terminal.paint(Style::Strong, format!("{repository}@{branch}"));
        let head = terminal.paint(Style::Changed, text_of(answer, "commitId"));
        Ok(writeln!(terminal, "made branch {branch} at {head}: use it as database {name}")?)
    }
}
