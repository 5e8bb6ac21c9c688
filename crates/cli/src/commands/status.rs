//! `frond status`: how a branch's working state differs from its last commit.

use std::io::Write;

use frond_doc::{Document, Value, document};

use crate::arguments::Target;
use crate::failure::Failure;
use crate::output::{answer_json, count_of, counted, documents_of, plain, short_json, text_of};
use crate::terminal::{Style, Terminal};

/// Columns after which an `_id` is cut.
const ID_COLUMNS: usize = 80;

const EXAMPLES: &str = "\
Examples:
  frond status shop
  frond status shop --documents 20    with the documents that changed, at most 20 per collection
  frond status shop@sale --uri 127.0.0.1:27017";

/// Show what changed on a branch since its last commit
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Status {
    /// Database, or DATABASE@BRANCH
    database: String,

    /// Name the documents that changed, at most this many per collection
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    documents: u32,

    /// Print the answer as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    target: Target,
}

impl Status {
    /// Shows the status.
    ///
    /// # Errors
    /// As [`Target::open`]; [`Failure::Refused`] if there is no such database or branch.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let documents = i64::from(self.documents);
        let command = document! { "frondStatus": 1_i32, "documents": documents };
        let mut backend = self.target.open()?;
        let answer = backend.execute(&self.database, &command)?;
        if self.json {
            writeln!(terminal, "{}", answer_json(&answer))?;
        } else {
            self.print(terminal, answer.view())?;
        }
        backend.close()
    }

    fn print(&self, terminal: &mut Terminal, status: Document<'_>) -> Result<(), Failure> {
        let branch = terminal.paint(Style::Strong, plain(text_of(status, "branch")));
        writeln!(terminal, "On branch {branch}")?;
        match text_of(status, "head") {
            "" => writeln!(terminal, "No commits yet")?,
            head => writeln!(terminal, "Last commit {}", terminal.paint(Style::Changed, head))?,
        }
        let merging = text_of(status, "merging");
        if !merging.is_empty() {
            self.print_merge(terminal, status, merging)?;
        }
        let mut is_dirty = false;
        for collection in documents_of(status, "collections") {
            if !is_dirty {
                writeln!(terminal, "\nChanges since the last commit:")?;
                is_dirty = true;
            }
            print_collection(terminal, collection)?;
        }
        if !merging.is_empty() {
            return Ok(());
        }
        if is_dirty {
            let hint = format!("frond commit {} -m MESSAGE", self.database);
            writeln!(terminal, "\nRecord them with  {}", terminal.paint(Style::Accent, hint))?;
        } else {
            writeln!(terminal, "Nothing to commit: the working state is the last commit's")?;
        }
        Ok(())
    }

    /// What waits: a commit isn't possible then, so its end is shown instead.
    fn print_merge(
        &self,
        terminal: &mut Terminal,
        status: Document<'_>,
        merging: &str,
    ) -> Result<(), Failure> {
        let operation = match text_of(status, "operation") {
            "cherry-pick" => "Cherry-picking",
            "revert" => "Reverting",
            "rebase" => "Rebasing",
            _ => "Merging",
        };
        writeln!(terminal, "{operation} {}", terminal.paint(Style::Changed, merging))?;
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
            ("All resolved: finish it with", format!("frond merge {} --continue", self.database))
        };
        writeln!(terminal, "{why}  {}", terminal.paint(Style::Accent, hint))?;
        let hint = format!("frond merge {} --abort", self.database);
        Ok(writeln!(terminal, "Give it up with  {}", terminal.paint(Style::Accent, hint))?)
    }
}

fn print_collection(terminal: &mut Terminal, collection: Document<'_>) -> Result<(), Failure> {
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
    writeln!(terminal, "{}{counts}", terminal.paint(style, line))?;
    for document in documents_of(collection, "documents") {
        let (mark, style) = match text_of(document, "change") {
            "added" => ('+', Style::Added),
            "removed" => ('-', Style::Removed),
            _ => ('~', Style::Changed),
        };
        let id = short_json(document.get("_id").unwrap_or(Value::Null), ID_COLUMNS);
        writeln!(terminal, "      {}", terminal.paint(style, format!("{mark} {id}")))?;
    }
    if collection.get("more").is_some() {
        writeln!(terminal, "      {}", terminal.paint(Style::Quiet, "…"))?;
    }
    Ok(())
}
