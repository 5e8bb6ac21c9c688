//! `frond reset`: moves a branch to another version.

use std::io::Write;

use frond_doc::{DocumentBuilder, Value};

use crate::arguments::{Answer, Target};
use crate::failure::Failure;
use crate::output::{plain, text_of};
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond reset shop --hard           throw away uncommitted changes
  frond reset shop main~1           undo the last commit, keep its changes as uncommitted
  frond reset shop main~1 --hard    undo the last commit and its changes
  frond reset shop 'WORKING@{2026-11-20T10:00:03Z}' --hard    everything as it was then, committed or not

Versions that no branch has any more can still be read, as shop@<commit>.";

/// Move a branch to another version
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Reset {
    /// Database, or DATABASE@BRANCH
    database: String,

    /// Version to move to; by default the branch's last commit
    #[arg(value_name = "VERSION")]
    to: Option<String>,

    /// Reset the working state, too: uncommitted changes are lost
    #[arg(long, conflicts_with = "soft")]
    hard: bool,

    /// Keep the working state (the default)
    #[arg(long)]
    soft: bool,

    #[command(flatten)]
    as_json: Answer,

    #[command(flatten)]
    target: Target,
}

impl Reset {
    /// Moves the branch.
    ///
    /// # Errors
    /// As [`Target::open`]; [`Failure::Refused`] if there is no such version, or the branch is
    /// protected.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let mut command = DocumentBuilder::new();
        command.append("frondReset", Value::Int32(1));
        if let Some(to) = &self.to {
            command.append("target", Value::String(to));
        }
        command.append("mode", Value::String(if self.hard { "hard" } else { "soft" }));
        let mut backend = self.target.open()?;
        let answer = backend.execute(&self.database, &command.build())?;
        if self.as_json.print(terminal, &answer)? {
            return backend.close();
        }
        let answer = answer.view();
        let branch = plain(text_of(answer, "branch"));
        let id = match text_of(answer, "commitId") {
            "" => "its beginning".to_owned(),
            id => terminal.paint(Style::Changed, id),
        };
        let kept =
            if self.hard { "and so is its working state" } else { "its working state stays" };
        writeln!(terminal, "{branch} is at {id} now, {kept}")?;
        backend.close()
    }
}
