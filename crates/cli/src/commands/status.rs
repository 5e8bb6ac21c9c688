//! `frond status`: how a branch's working state differs from its last commit.

use std::io::Write;

use frond_doc::{Document, document};

use crate::arguments::Target;
use crate::failure::Failure;
use crate::output::{answer_json, count_of, counted, documents_of, plain, text_of};
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond status shop
  frond status shop@sale --uri 127.0.0.1:27017";

/// Show what changed on a branch since its last commit
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Status {
    /// Database, or DATABASE@BRANCH
    database: String,

    /// The answer as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    target: Target,
}

impl Status {
    /// Shows the status.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let mut backend = self.target.open()?;
        let answer = backend.execute(&self.database, &document! { "frondStatus": 1_i32 })?;
        if self.json {
            writeln!(terminal, "{}", answer_json(&answer))?;
        } else {
            self.tell(terminal, answer.view())?;
        }
        backend.close()
    }

    fn tell(&self, terminal: &mut Terminal, status: Document<'_>) -> Result<(), Failure> {
        let branch = terminal.paint(Style::Strong, plain(text_of(status, "branch")));
        writeln!(terminal, "On branch {branch}")?;
        match text_of(status, "head") {
            "" => writeln!(terminal, "No commits yet")?,
            head => writeln!(terminal, "Last commit {}", terminal.paint(Style::Changed, head))?,
        }
        self.tell_merge(terminal, status)?;
        let mut is_dirty = false;
        for collection in documents_of(status, "collections") {
            if !is_dirty {
                writeln!(terminal, "\nChanges since the last commit:")?;
                is_dirty = true;
            }
            tell_collection(terminal, collection)?;
        }
        if is_dirty {
            let hint = format!("frond commit {} -m MESSAGE", self.database);
            writeln!(terminal, "\nRecord them with  {}", terminal.paint(Style::Accent, hint))?;
        } else {
            writeln!(terminal, "Nothing to commit: the working state is the last commit's")?;
        }
        Ok(())
    }

    fn tell_merge(&self, terminal: &mut Terminal, status: Document<'_>) -> Result<(), Failure> {
        let merging = text_of(status, "merging");
        if merging.is_empty() {
            return Ok(());
        }
        writeln!(terminal, "Merging {}", terminal.paint(Style::Changed, merging))?;
        let mut count = 0;
        for conflict in documents_of(status, "conflicts") {
            let collection = plain(text_of(conflict, "collection"));
            let conflicts = counted(count_of(conflict, "count"), "conflict");
            let line = format!("  {collection}: {conflicts}");
            writeln!(terminal, "{}", terminal.paint(Style::Removed, line))?;
            count += count_of(conflict, "count");
        }
        let (why, hint) = if count > 0 {
            ("List them with", format!("frond conflicts {}", self.database))
        } else {
            ("All resolved: end it with", format!("frond merge {} --continue", self.database))
        };
        Ok(writeln!(terminal, "{why}  {}", terminal.paint(Style::Accent, hint))?)
    }
}

fn tell_collection(terminal: &mut Terminal, collection: Document<'_>) -> Result<(), Failure> {
    let name = plain(text_of(collection, "collection"));
    let change = text_of(collection, "change");
    let (mark, style) = match change {
        "added" => ("new collection", Style::Added),
        "removed" => ("dropped", Style::Removed),
        _ => ("modified", Style::Changed),
    };
    let counts: Vec<String> = ["added", "removed", "modified"]
        .iter()
        .filter(|name| count_of(collection, name) > 0)
        .map(|name| format!("{} {name}", count_of(collection, name)))
        .collect();
    let line = format!("  {mark:<16}{name}");
    let counts =
        if counts.is_empty() { String::new() } else { format!("  ({})", counts.join(", ")) };
    Ok(writeln!(terminal, "{}{counts}", terminal.paint(style, line))?)
}
