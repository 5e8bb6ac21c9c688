//! `frond reflog`: what moved a branch, and what else can be undone.

use std::io::Write;

use frond_doc::{Document, DocumentBuilder, Value, document};

use crate::arguments::Target;
use crate::backend::Backend;
use crate::commands::log::{parse_date, stage};
use crate::failure::Failure;
use crate::json_list::JsonList;
use crate::output::{answer_json, array_of, count_of, counted, date, documents_of, plain, text_of};
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond reflog shop                 what moved the branch main, newest first
  frond reflog shop --branch old    a branch that may be gone
  frond reflog shop --all
  frond reflog shop --dropped       databases that were dropped and can come back
  frond reflog shop --expire 2026-10-01              forget what is older, which then can't be undone
  frond reflog shop --dropped --expire 2026-10-01    the same for dropped databases

What the reflog remembers stays on the disk: frond gc frees it only once it is forgotten. The number in \
front names a change: frond undo shop --change NUMBER undoes it.";

/// Show what moved a branch: commits, merges, resets, drops
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Reflog {
    /// Database, or DATABASE@BRANCH
    database: String,

    /// Branch or tag, even one that is gone
    #[arg(short, long, conflicts_with_all = ["all", "dropped"])]
    branch: Option<String>,

    /// Show all branches
    #[arg(long, conflicts_with = "dropped")]
    all: bool,

    /// Show databases that were dropped
    #[arg(long)]
    dropped: bool,

    /// At most this many changes
    #[arg(short = 'n', long = "limit", value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,

    /// Forget records older than this date, so that their space can be freed
    #[arg(long, value_name = "DATE")]
    expire: Option<String>,

    /// Print the answer as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    target: Target,
}

impl Reflog {
    /// Lists the changes.
    ///
    /// # Errors
    /// [`Failure::Usage`] for what is no date; as [`Target::open`]; [`Failure::Refused`] if there
    /// is no such branch.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let mut backend = self.target.open()?;
        if !self.dropped && self.expire.is_none() {
            self.print_changes(&mut *backend, terminal)?;
            return backend.close();
        }
        let mut command = DocumentBuilder::new();
        command.append("frondReflog", Value::Int32(1));
        command.append("dropped", Value::Boolean(self.dropped));
        if let Some(date) = &self.expire {
            command.append("expireBefore", Value::DateTime(parse_date(date)?));
        }
        let answer = backend.execute(&self.database, &command.build())?;
        if self.json {
            writeln!(terminal, "{}", answer_json(&answer))?;
            return backend.close();
        }
        if self.expire.is_some() {
            writeln!(
                terminal,
                "forgot {}",
                counted(count_of(answer.view(), "forgotten"), "change")
            )?;
        }
        for database in documents_of(answer.view(), "databases") {
            let name = terminal.paint(Style::Strong, plain(text_of(database, "database")));
            let branches = counted(array_of(database, "branches").iter().count() as u64, "branch");
            let branches = branches.replace("branchs", "branches");
            writeln!(terminal, "{name}  {branches}  {}", time(database))?;
        }
        backend.close()
    }

    /// Prints what moved branches, one by one.
    fn print_changes(
        &self,
        backend: &mut dyn Backend,
        terminal: &mut Terminal,
    ) -> Result<(), Failure> {
        let mut list = JsonList::new("changes");
        let branch = match &self.branch {
            _ if self.all => None,
            Some(branch) => Some(branch.clone()),
            None => {
                // Its own; the newest change names it.
                let newest = document! { "frondReflog": 1_i32, "limit": 1_i32 };
                let answer = backend.execute(&self.database, &newest)?;
                let mut changes = documents_of(answer.view(), "changes");
                let Some(newest) = changes.next() else {
                    return if self.json { list.end(terminal, None) } else { Ok(()) };
                };
                Some(text_of(newest, "branch").to_owned())
            }
        };
        let mut wanted = DocumentBuilder::new();
        if let Some(branch) = &branch {
            wanted.append("branch", Value::String(branch));
        }
        let command = stage("$reflog", &wanted.build(), self.limit);
        backend.for_each_document(&self.database, &command, &mut |change| match self.json {
            true => list.print(terminal, change),
            false => self.print_change(terminal, change),
        })?;
        if self.json { list.end(terminal, None) } else { Ok(()) }
    }

    fn print_change(&self, terminal: &mut Terminal, change: Document<'_>) -> Result<(), Failure> {
        let number = terminal.paint(Style::Quiet, count_of(change, "change"));
        let head: String = text_of(change, "to").chars().take(10).collect();
        let head = terminal.paint(Style::Changed, format!("{head:<10}"));
        let branch = if self.all {
            format!("{}  ", plain(text_of(change, "branch")))
        } else {
            String::new()
        };
        let why = plain(text_of(change, "why"));
        let when = terminal.paint(Style::Quiet, time(change));
        Ok(writeln!(terminal, "{number} {head} {branch}{why}  {when}")?)
    }
}

fn time(change: Document<'_>) -> String {
    match change.get("time") {
        Some(Value::DateTime(millis)) => date(millis),
        _ => String::new(),
    }
}
