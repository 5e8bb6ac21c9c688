//! `frond undo`: takes back what moved a branch, and brings back what was dropped.

mod of_author;

use std::io::Write;

use frond_doc::{Document, DocumentBuilder, Value, document};

use crate::arguments::{Answer, Author, Target};
use crate::backend::Backend;
use crate::commands::merge::print_set_aside;
use crate::failure::{Failure, NAMESPACE_NOT_FOUND};
use crate::output::{documents_of, json, plain, text_of};
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
Nothing is lost: an undo can be undone. Writes that were never committed aren't undone by this: frond \
restore and frond reset --hard take them back.

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

    /// Only commits since then: YYYY-MM-DD, YYYY-MM-DDTHH:MM:SSZ, today, tuesday, 3 days ago
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
        if self.branch.is_none() && self.change.is_none() && self.dropped.is_none() {
            self.check_committed(&mut *backend)?;
        }
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

    /// Refuses to undo a commit behind which something was written: what was done last are these
    /// writes, which no change of the branch has, and an undo would leave them.
    fn check_committed(&self, backend: &mut dyn Backend) -> Result<(), Failure> {
        let database = &self.database;
        let status = document! { "frondStatus": 1_i32 };
        let status = match backend.execute(database, &status) {
            // It was dropped, perhaps: that is to be undone.
            Err(Failure::Refused { code: NAMESPACE_NOT_FOUND, .. }) => return Ok(()),
            status => status?,
        };
        if !status.get("dirty").is_some_and(|dirty| dirty.is_truthy()) {
            return Ok(());
        }
        let reflog = document! { "frondReflog": 1_i32, "limit": 1_i32 };
        let reflog = backend.execute(database, &reflog)?;
        let newest = documents_of(reflog.view(), "changes").next();
        let is_commit = |change: &Document<'_>| {
            change.get("undid").is_none() && text_of(*change, "why").starts_with("commit")
        };
        let Some(newest) = newest.filter(is_commit) else { return Ok(()) };
        let why = plain(text_of(newest, "why"));
        let number = newest.get("change").map(json).unwrap_or_default();
        Err(Failure::failed(format!(
            "nothing is undone: {database} has changes that are not committed (frond diff \
             {database}), and this would undo the commit before them ({why}). frond restore \
             {database} COLLECTION and frond reset {database} --hard take the changes back; frond \
             undo {database} --change {number} undoes the commit and keeps them"
        )))
    }
}
