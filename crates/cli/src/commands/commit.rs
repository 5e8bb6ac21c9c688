//! `frond commit`: records a branch's working state as a version.

use std::io::Write;

use frond_doc::{DocumentBuf, DocumentBuilder, Value};

use crate::arguments::{Answer, Author, Target};
use crate::commands::log::parse_date;
use crate::failure::Failure;
use crate::output::{plain, text_of};
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond commit shop -m 'first items'
  frond commit shop@sale -m 'half price' --author 'Ada <ada@example.org>'
  frond commit shop --amend                             add what changed to the last commit
  frond commit shop --amend -m 'better words'
  frond commit shop -m 'census of 1990' --date 1990-07-01
  frond commit shop -m 'nightly' --uri 127.0.0.1:27017";

/// Record a branch's working state as a version
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Commit {
    /// Database, or DATABASE@BRANCH
    database: String,

    /// Message: what this version is about, and why; each further one is a paragraph
    #[arg(short, long, required_unless_present = "amend")]
    message: Vec<String>,

    /// Replace the last commit with one that also has what changed since
    #[arg(long)]
    amend: bool,

    /// Commit even if nothing changed
    #[arg(long)]
    allow_empty: bool,

    /// The committer, if not the author
    #[arg(long, value_name = "COMMITTER")]
    committer: Option<String>,

    /// When the changes were made, if not now: YYYY-MM-DD or YYYY-MM-DDTHH:MM:SSZ
    #[arg(long, value_name = "DATE")]
    date: Option<String>,

    #[command(flatten)]
    author: Author,

    #[command(flatten)]
    as_json: Answer,

    #[command(flatten)]
    target: Target,
}

impl Commit {
    /// Makes the commit and prints its id.
    ///
    /// # Errors
    /// As [`Target::open`]; [`Failure::Refused`] if nothing has changed, a merge waits or a policy
    /// says no.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let command = self.command()?;
        let mut backend = self.target.open()?;
        let answer = backend.execute(&self.database, &command)?;
        if !self.as_json.print(terminal, &answer)? {
            print(terminal, &answer)?;
        }
        backend.close()
    }

    fn command(&self) -> Result<DocumentBuf, Failure> {
        let mut command = DocumentBuilder::new();
        command.append("frondCommit", Value::Int32(1));
        if !self.message.is_empty() {
            let message = self.message.join("\n\n");
            if message.trim().is_empty() && !self.amend {
                return Err(Failure::failed("an empty message: say what changed by -m"));
            }
            command.append("message", Value::String(&message));
        }
        // A user who amends keeps the author, unless one is named.
        let author = if self.amend {
            self.author.given().map(str::to_owned)
        } else {
            self.author.of(&self.target)
        };
        for (name, text) in [("author", &author), ("committer", &self.committer)] {
            if let Some(text) = text {
                command.append(name, Value::String(text));
            }
        }
        if let Some(date) = &self.date {
            command.append("time", Value::DateTime(parse_date(date)?));
        }
        for (name, is_set) in [("amend", self.amend), ("allowEmpty", self.allow_empty)] {
            if is_set {
                command.append(name, Value::Boolean(true));
            }
        }
        Ok(command.build())
    }
}

/// The command that makes a commit.
pub fn command(message: &str, author: Option<&str>) -> DocumentBuf {
    let mut command = DocumentBuilder::new();
    command.append("frondCommit", Value::Int32(1)).append("message", Value::String(message));
    if let Some(author) = author {
        command.append("author", Value::String(author));
    }
    command.build()
}

/// Prints a commit that was made: `[main 3k2j9q…] first items`.
///
/// # Errors
/// [`Failure::ReaderGone`] if nothing reads the output.
pub fn print(terminal: &mut Terminal, answer: &DocumentBuf) -> Result<(), Failure> {
    let answer = answer.view();
    let id = terminal.paint(Style::Changed, text_of(answer, "commitId"));
    let branch = plain(text_of(answer, "branch"));
    let message = plain(text_of(answer, "message"));
    Ok(writeln!(terminal, "[{branch} {id}] {message}")?)
}
