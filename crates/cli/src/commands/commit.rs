//! `frond commit`: records a branch's working state as a version.

use std::io::Write;

use frond_doc::{DocumentBuf, document};

use crate::arguments::{Author, Target};
use crate::failure::Failure;
use crate::output::{plain, text_of};
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond commit shop -m 'first items'
  frond commit shop@sale -m 'half price' --author 'Ada <ada@example.org>'
  frond commit shop -m 'nightly' --uri 127.0.0.1:27017";

/// Record a branch's working state as a version
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Commit {
    /// Database, or DATABASE@BRANCH
    database: String,

    /// Why: what this version is about
    #[arg(short, long)]
    message: String,

    #[command(flatten)]
    author: Author,

    #[command(flatten)]
    target: Target,
}

impl Commit {
    /// Makes the commit and tells its id.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let mut backend = self.target.open()?;
        let answer =
            backend.execute(&self.database, &command(&self.message, &self.author.name()))?;
        tell(terminal, &answer)?;
        backend.close()
    }
}

/// The command that makes a commit.
pub fn command(message: &str, author: &str) -> DocumentBuf {
    document! { "frondCommit": 1_i32, "message": message, "author": author }
}

/// Tells a commit that was made: `[main 3k2j9q…] first items`.
pub fn tell(terminal: &mut Terminal, answer: &DocumentBuf) -> Result<(), Failure> {
    let answer = answer.view();
    let id = terminal.paint(Style::Changed, text_of(answer, "commitId"));
    let branch = plain(text_of(answer, "branch"));
    let message = plain(text_of(answer, "message"));
    Ok(writeln!(terminal, "[{branch} {id}] {message}")?)
}
