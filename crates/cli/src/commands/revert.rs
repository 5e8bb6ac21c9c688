//! `frond revert`: undoes what one commit did, by a commit of its own.

use frond_doc::{DocumentBuilder, Value};

use crate::arguments::{Author, Target};
use crate::commands::merge::{self, Rules};
use crate::failure::Failure;
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  frond revert shop HEAD                    take the last commit back, in public
  frond revert shop main~3 -m 'prices as they were'
  frond revert shop v2 --parent 1           a merge";

/// Undo what one commit did, by a new commit
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Revert {
    /// Database, or DATABASE@BRANCH
    database: String,

    /// The commit: its id, a tag, main~2
    #[arg(value_name = "VERSION")]
    version: String,

    /// Of a merge: the parent that it is compared with, 1 being the branch it was merged into
    #[arg(long, value_name = "NUMBER")]
    parent: Option<u32>,

    /// The new commit's message
    #[arg(short, long)]
    message: Option<String>,

    #[command(flatten)]
    rules: Rules,

    #[command(flatten)]
    author: Author,

    #[command(flatten)]
    target: Target,
}

impl Revert {
    /// Makes the commit, or tells what conflicts.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let mut command = DocumentBuilder::new();
        command.append("frondRevert", Value::Int32(1));
        command.append("target", Value::String(&self.version));
        if let Some(parent) = self.parent {
            command.append("parent", Value::Int64(i64::from(parent)));
        }
        if let Some(message) = &self.message {
            command.append("message", Value::String(message));
        }
        command.append("author", Value::String(&self.author.name()));
        self.rules.append_to(&mut command)?;
        merge::run(self.target.open()?, terminal, &self.database, &command.build())
    }
}
