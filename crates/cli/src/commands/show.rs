//! `frond show`: a commit and what it changed.

use std::io::Write;

use frond_doc::{Document, DocumentBuilder, Value};

use crate::arguments::Target;
use crate::commands::{diff, log};
use crate::failure::Failure;
use crate::output::{answer_json, documents_of, plain, text_of};
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  frond show shop                 the last commit and what it changed
  frond show shop main~2 --stat   an older one, counted
  frond show shop v1 --json";

/// Show a commit and what it changed
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Show {
    /// Database, or DATABASE@BRANCH
    database: String,

    /// Version to show; by default the last commit
    #[arg(value_name = "VERSION")]
    version: Option<String>,

    /// Only count the documents that it changed in each collection
    #[arg(long)]
    stat: bool,

    /// Don't shorten long values
    #[arg(long)]
    full: bool,

    /// Print the answer as JSON: the commit, and counts per collection
    #[arg(long, conflicts_with_all = ["stat", "full"])]
    json: bool,

    #[command(flatten)]
    target: Target,
}

impl Show {
    /// Shows the commit.
    ///
    /// # Errors
    /// As [`Target::open`]; [`Failure::Refused`] if there is no such version.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let mut command = DocumentBuilder::new();
        command.append("frondShow", Value::Int32(1));
        if let Some(version) = &self.version {
            command.append("target", Value::String(version));
        }
        let mut backend = self.target.open()?;
        let answer = backend.execute(&self.database, &command.build())?;
        if self.json {
            writeln!(terminal, "{}", answer_json(&answer))?;
            return backend.close();
        }
        let commit: Document<'_> = answer.view();
        log::whole(terminal, commit, "")?;
        for tag in documents_of(commit, "tags") {
            let message = plain(text_of(tag, "message"));
            let line = format!("tag {}  {message}", plain(text_of(tag, "tag")));
            writeln!(terminal, "\n{}", line.trim_end())?;
        }
        let shown =
            diff::DiffDisplay { counts: self.stat, is_full: self.full, ..Default::default() };
        log::changes(&mut *backend, terminal, &self.database, commit, &shown)?;
        backend.close()
    }
}
