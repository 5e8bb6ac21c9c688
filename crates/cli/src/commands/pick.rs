//! `frond cherry-pick` and `frond revert`: does again on this branch what one commit did elsewhere,
//! or undoes it, by a commit of its own.

use frond_doc::{DocumentBuilder, Value};

use crate::arguments::{Answer, Author, Target};
use crate::commands::merge::{self, OutcomeDisplay, Rules};
use crate::failure::Failure;
use crate::terminal::Terminal;

const PICK_EXAMPLES: &str = "\
Examples:
  frond cherry-pick shop sale~1             one commit of another branch
  frond cherry-pick shop 3k2j9q7t --on-conflict theirs
  frond cherry-pick shop --continue         when its conflicts are resolved; or --abort";

const REVERT_EXAMPLES: &str = "\
Examples:
  frond revert shop HEAD                    undo the last commit by a new one
  frond revert shop main~3 -m 'prices as they were'
  frond revert shop v2 --parent 1           a merge
  frond revert shop --abort                 give up after conflicts; or --continue";

/// Apply the changes of a commit to this branch
#[derive(clap::Args)]
#[command(after_help = PICK_EXAMPLES)]
pub struct CherryPick {
    #[command(flatten)]
    pick: Pick,
}

/// Undo what a commit changed, by a new commit
#[derive(clap::Args)]
#[command(after_help = REVERT_EXAMPLES)]
pub struct Revert {
    #[command(flatten)]
    pick: Pick,
}

/// Which commit, and how.
#[derive(clap::Args)]
struct Pick {
    /// Database, or DATABASE@BRANCH
    database: String,

    /// The commit: its id, a tag, main~2
    #[arg(value_name = "VERSION", required_unless_present_any = ["continue_", "abort"])]
    version: Option<String>,

    /// For a merge: the parent to compare it with; 1 is the branch that was merged into, 0 what the
    /// merge would be without what was decided in it
    #[arg(long, value_name = "NUMBER")]
    parent: Option<u32>,

    /// The new commit's message
    #[arg(short, long)]
    message: Option<String>,

    /// Don't begin while there are uncommitted changes; by default they become a commit of their
    /// own first
    #[arg(long)]
    refuse_dirty: bool,

    /// Finish one whose conflicts are all resolved, like frond merge --continue
    #[arg(long = "continue", conflicts_with_all = ["version", "abort"])]
    continue_: bool,

    /// Abort one in progress, like frond merge --abort
    #[arg(long, conflicts_with_all = ["version", "message"])]
    abort: bool,

    #[command(flatten)]
    rules: Rules,

    #[command(flatten)]
    author: Author,

    #[command(flatten)]
    as_json: Answer,

    #[command(flatten)]
    target: Target,
}

impl CherryPick {
    /// Makes the commit, or prints what conflicts.
    ///
    /// # Errors
    /// As [`Target::open`]; [`Failure::Reported`] if conflicts wait; [`Failure::Refused`] if there
    /// is no such commit.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        // The author stays the one who made the changes, unless one is named.
        self.pick.run("frondCherryPick", self.pick.author.given(), terminal)
    }
}

impl Revert {
    /// Makes the commit, or prints what conflicts.
    ///
    /// # Errors
    /// As [`Target::open`]; [`Failure::Reported`] if conflicts wait; [`Failure::Refused`] if there
    /// is no such commit.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        self.pick.run("frondRevert", self.pick.author.of(&self.pick.target).as_deref(), terminal)
    }
}

impl Pick {
    fn run(
        &self,
        name: &str,
        author: Option<&str>,
        terminal: &mut Terminal,
    ) -> Result<(), Failure> {
        if let Some(range) = self.version.as_deref().filter(|version| version.contains("..")) {
            return Err(Failure::Usage(format!(
                "{range} is a range, and this takes one commit: frond log {} {range} --oneline lists \
                 them",
                self.database
            )));
        }
        let mut command = DocumentBuilder::new();
        match &self.version {
            Some(version) => {
                command.append(name, Value::Int32(1)).append("target", Value::String(version));
            }
            // The operation that waits knows its kind.
            None => {
                let end = if self.abort { "abort" } else { "continue" };
                command.append("frondMerge", Value::Int32(1)).append(end, Value::Boolean(true));
            }
        }
        if let Some(parent) = self.parent {
            command.append("parent", Value::Int64(i64::from(parent)));
        }
        for (name, text) in [("message", self.message.as_deref()), ("author", author)] {
            if let Some(text) = text {
                command.append(name, Value::String(text));
            }
        }
        if self.refuse_dirty {
            command.append("refuseDirty", Value::Boolean(true));
        }
        self.rules.append_to(&mut command)?;
        let how = OutcomeDisplay { as_json: self.as_json, print: merge::print };
        let mut backend = self.target.open()?;
        if self.version.is_some() && !self.refuse_dirty {
            merge::print_dirty(&mut *backend, &self.database);
        }
        merge::run(backend, terminal, &self.database, &command.build(), how)
    }
}
