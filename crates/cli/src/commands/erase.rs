//! `frond erase`: takes a document, or a field, out of all history, and off the disk.

use std::io::{BufRead, Write};

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, document};

use crate::arguments::{Answer, Target};
use crate::commands::log::append_id;
use crate::failure::Failure;
use crate::output::{array_of, count_of, counted, documents_of, plain, text_of};
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = concat!(
    r#"Examples:
  frond erase shop people --id 7                     a document, in every version
  frond erase shop people --id 7 --field mail        a field of it
  frond erase shop people --field mail --field 'addresses.$[].street'   fields of all documents
  frond erase shop people --id 7 --dry-run           report what would happen
  frond erase shop --commits                         which commits replaced which

"#,
    "Every commit that held the data is rewritten without it and gets another id; branches, tags \
     and uncommitted changes follow, and an old id leads to the new commit. What could be undone, \
     the reflog, and dropped databases of that name are forgotten. Then every pack is rewritten \
     without garbage. This can't be undone. Clones, backups and remotes have copies of their own: \
     erase there, too, and push with --force-with-lease."
);

/// Remove a document or a field from all of history, for good
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(override_usage = "frond erase [OPTIONS] <DATABASE> <COLLECTION>
       frond erase [OPTIONS] <DATABASE> --commits")]
pub struct Erase {
    /// Database
    database: String,

    /// Collection
    #[arg(required_unless_present = "commits")]
    collection: Option<String>,

    /// The document's _id (JSON or plain text); may be repeated
    #[arg(long, value_name = "ID")]
    id: Vec<String>,

    /// A field, as $unset takes it; may be repeated. By default, whole documents
    #[arg(long, value_name = "PATH")]
    field: Vec<String>,

    /// Only report what would happen
    #[arg(long)]
    dry_run: bool,

    /// Don't ask for confirmation; --json never asks, and needs this or --dry-run
    #[arg(short, long)]
    yes: bool,

    /// List which commits replaced which
    #[arg(long, conflicts_with_all = ["collection", "id", "field", "dry_run"])]
    commits: bool,

    #[command(flatten)]
    as_json: Answer,

    #[command(flatten)]
    target: Target,
}

impl Erase {
    /// Asks, and erases.
    ///
    /// # Errors
    /// As [`Target::open`]; [`Failure::Refused`] if there is nothing to erase, or a merge waits.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let mut backend = self.target.open()?;
        if self.commits {
            let command = document! { "frondErase": 1_i32, "commits": true };
            let answer = backend.execute(&self.database, &command)?;
            if !self.as_json.print(terminal, &answer)? {
                print_commits(terminal, answer.view())?;
            }
            return backend.close();
        }
        if self.as_json.is_set() && !self.yes && !self.dry_run {
            return Err(Failure::Usage("--json needs --yes or --dry-run".to_owned()));
        }
        let dry = backend.execute(&self.database, &self.command(true)?)?;
        if self.dry_run {
            if !self.as_json.print(terminal, &dry)? {
                print(terminal, "would be", dry.view())?;
            }
            return backend.close();
        }
        if !self.yes {
            print(terminal, "would be", dry.view())?;
            if !self.confirmed(terminal)? {
                backend.close()?;
                return Err(Failure::failed(
                    "nothing was erased: the name wasn't typed; --yes goes on without asking",
                ));
            }
        }
        let answer = backend.execute(&self.database, &self.command(false)?)?;
        if self.as_json.print(terminal, &answer)? {
            return backend.close();
        }
        print(terminal, "were", answer.view())?;
        print_left(terminal, answer.view())?;
        backend.close()
    }

    fn command(&self, dry_run: bool) -> Result<DocumentBuf, Failure> {
        let mut command = DocumentBuilder::new();
        command.append("frondErase", Value::Int32(1));
        command.append("collection", Value::String(self.collection.as_deref().unwrap_or_default()));
        if !self.id.is_empty() {
            command.begin_array("documents");
            for id in &self.id {
                let mut one = DocumentBuilder::new();
                append_id(&mut one, "_id", id);
                command.push(one.build().get("_id").unwrap_or(Value::Null));
            }
            command.end();
        }
        if !self.field.is_empty() {
            command.begin_array("fields");
            for field in &self.field {
                command.push(Value::String(field));
            }
            command.end();
        }
        let flag = if dry_run { "dryRun" } else { "confirm" };
        command.append(flag, Value::Boolean(true));
        Ok(command.build())
    }

    fn confirmed(&self, terminal: &mut Terminal) -> Result<bool, Failure> {
        let name = plain(&self.database);
        write!(terminal, "This can't be undone. Type the database's name ({name}) to go on: ")?;
        terminal.flush()?;
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line)?;
        Ok(line.trim() == self.database)
    }
}

fn print(terminal: &mut Terminal, were: &str, answer: Document<'_>) -> Result<(), Failure> {
    let commits = documents_of(answer, "commits").count() as u64;
    let documents = count_of(answer, "documents");
    let versions = counted(documents, "version");
    let made = counted(commits, "commit");
    writeln!(terminal, "{versions} of documents {were} erased, {made} {were} made again")?;
    for (name, what) in [("branches", "branch"), ("tags", "tag"), ("remotes", "forgotten:")] {
        for each in array_of(answer, name).iter().filter_map(|each| each.as_str()) {
            writeln!(terminal, "  {what} {}", plain(each))?;
        }
    }
    Ok(())
}

/// Says what is left of it on the disk, and for how long.
fn print_left(terminal: &mut Terminal, answer: Document<'_>) -> Result<(), Failure> {
    let hint = terminal.paint(Style::Accent, "frond gc --purge");
    match (count_of(answer, "chunksLeft"), count_of(answer, "underWay")) {
        (0, 0) => writeln!(terminal, "nothing of it is left on the disk")?,
        (0, count) => {
            let count = counted(count, "operation");
            let what = "that began before may hold it until they end; then run";
            writeln!(terminal, "{count} {what}  {hint}")?;
        }
        (left, _) => {
            let left = counted(left, "chunk");
            writeln!(terminal, "{left} are still read by a client; later run  {hint}")?;
        }
    }
    Ok(())
}

fn print_commits(terminal: &mut Terminal, answer: Document<'_>) -> Result<(), Failure> {
    for commit in documents_of(answer, "commits") {
        let new = terminal.paint(Style::Changed, text_of(commit, "new"));
        writeln!(terminal, "{} is {new} now", plain(text_of(commit, "old")))?;
    }
    Ok(())
}
