//! `frond undo`: takes back what moved a branch, and brings back what was dropped.

mod of_author;

use std::io::Write;

use frond_doc::{DocumentBuilder, Value};

use crate::arguments::{Answer, Author, Target};
use crate::commands::merge::print_set_aside;
use crate::failure::Failure;
use crate::output::{plain, text_of};
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond undo shop                       the last commit, merge, reset or dropped collection
  frond undo shop                       again: the one before it
  frond undo shop --change 48123        a change that frond reflog names; even an undo
  frond undo shop --branch sale         bring a deleted branch back, or a tag that was moved or deleted
  frond undo shop                       if shop was dropped: bring it back
  frond undo shop2 --dropped shop       under another name
  frond undo shop --user agent --since '2 hours ago'    everything that agent committed since then

Undoing a commit leaves its changes uncommitted; what a merge or a reset replaced comes back as it was. \
Nothing is lost: an undo can be undone.

With --user each of the author's commits is reverted, newest first, by a commit of its own. What others \
have changed since is a conflict: once it is resolved, the same command continues.";

/// Undo a commit, merge or reset; restore what was dropped
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Undo {
    /// Database, or DATABASE@BRANCH
    database: String,

    /// Branch or tag, even one that was deleted
    #[arg(short, long)]
    branch: Option<String>,

    /// The change to undo, by its number in the reflog
    #[arg(long, value_name = "NUMBER")]
    change: Option<i64>,

    /// Bring back the database that was dropped under this name, as DATABASE
    #[arg(long, value_name = "NAME", conflicts_with_all = ["branch", "change"])]
    dropped: Option<String>,

    /// Revert what this author committed: a name, a mail address, or both, as the log shows them
    #[arg(long, value_name = "NAME", requires = "since")]
    #[arg(conflicts_with_all = ["branch", "change", "dropped"])]
    user: Option<String>,

    /// Only commits since then: YYYY-MM-DD, YYYY-MM-DDTHH:MM:SSZ, yesterday, 3 days ago
    #[arg(long, value_name = "TIME", requires = "user")]
    since: Option<String>,

    #[command(flatten)]
    author: Author,

    #[command(flatten)]
    as_json: Answer,

    #[command(flatten)]
    target: Target,
}

impl Undo {
    /// Undoes a change.
    ///
    /// # Errors
    /// As [`Target::open`]; [`Failure::Refused`] if there is no such change, or the branch has
    /// moved on.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        if let (Some(user), Some(since)) = (&self.user, &self.since) {
            return self.of_author(terminal, user, since);
        }
        let mut command = DocumentBuilder::new();
        command.append("frondUndo", Value::Int32(1));
        for (name, text) in [("branch", &self.branch), ("dropped", &self.dropped)] {
            if let Some(text) = text {
                command.append(name, Value::String(text));
            }
        }
        if let Some(change) = self.change {
            command.append("change", Value::Int64(change));
        }
        let mut backend = self.target.open()?;
        let answer = backend.execute(&self.database, &command.build())?;
        if self.as_json.print(terminal, &answer)? {
            return backend.close();
        }
        let answer = answer.view();
        match answer.get("undone").and_then(|undone| undone.as_document()) {
            Some(undone) => {
                let why = plain(text_of(undone, "why"));
                let branch = plain(text_of(answer, "branch"));
                let head = match text_of(answer, "commitId") {
                    "" => "before its first commit".to_owned(),
                    head => format!("at {}", terminal.paint(Style::Changed, head)),
                };
                writeln!(terminal, "undone: {why}\n{branch} is {head} now")?;
                print_set_aside(terminal, answer, "naming this undo brings it back")?;
            }
            None => {
                let database = plain(text_of(answer, "database"));
                writeln!(terminal, "database {database} is back")?;
            }
        }
        backend.close()
    }
}
