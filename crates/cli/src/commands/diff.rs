//! `frond diff`: how two versions differ, document by document and field by field.
//!
//! A line begins with `+` for what only the right side has, `-` for what only the left side has,
//! `~` for what both have and is different.

use std::io::Write;

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};

use crate::arguments::Target;
use crate::failure::Failure;
use crate::output::{
    answer_json, array_of, counted, documents_of, json, plain, short_json, text_of,
};
use crate::terminal::{Style, Terminal};

/// Columns after which a document that was added or removed is cut, unless all is asked for.
const DOCUMENT_COLUMNS: usize = 92;
/// The same for one side of a field.
const VALUE_COLUMNS: usize = 40;

const EXAMPLES: &str = "\
Examples:
  frond diff shop                    the last commit against what is there now
  frond diff shop main~1 main        two versions
  frond diff shop main sale --stat   two branches, counted
  frond diff shop main sale --json   for other programs

A version is a branch, a commit's id or the first letters of one, HEAD, or any of these followed by ~2
or ^.";

/// Show how two versions differ
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Diff {
    /// Database, or DATABASE@BRANCH
    database: String,

    /// Left side; otherwise the last commit
    from: Option<String>,

    /// Right side; otherwise the branch as it is now
    to: Option<String>,

    /// Only how many documents differ, a collection
    #[arg(long)]
    stat: bool,

    /// The answer as JSON
    #[arg(long, conflicts_with_all = ["stat", "full"])]
    json: bool,

    /// Don't shorten long values
    #[arg(long)]
    full: bool,

    #[command(flatten)]
    target: Target,
}

impl Diff {
    /// Shows the difference.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let mut backend = self.target.open()?;
        let command = command(self.from.as_deref(), self.to.as_deref());
        let answer = backend.execute(&self.database, &command)?;
        if self.json {
            writeln!(terminal, "{}", answer_json(&answer))?;
        } else if self.stat {
            tell_counts(terminal, &answer)?;
        } else {
            let printer =
                Printer { terminal, indent: "", is_full: self.full, modified_shown: None };
            printer.tell(&answer)?;
        }
        backend.close()
    }
}

/// The command that compares two versions.
pub fn command(from: Option<&str>, to: Option<&str>) -> DocumentBuf {
    let mut command = DocumentBuilder::new();
    command.append("frondDiff", Value::Int32(1));
    for (name, version) in [("from", from), ("to", to)] {
        if let Some(version) = version {
            command.append(name, Value::String(version));
        }
    }
    command.build()
}

/// Prints the answer of `frondDiff`.
pub struct Printer<'a> {
    /// Where to.
    pub terminal: &'a mut Terminal,
    /// What each line begins with.
    pub indent: &'a str,
    /// Whether long values are printed whole.
    pub is_full: bool,
    /// The text `_id`s of the modified documents that are printed; `None` is all. Of the others
    /// only the count is told.
    pub modified_shown: Option<&'static [&'static str]>,
}

impl Printer<'_> {
    /// Prints all collections.
    pub fn tell(mut self, answer: &DocumentBuf) -> Result<(), Failure> {
        let mut is_first = true;
        for collection in documents_of(answer.view(), "collections") {
            if !is_first {
                writeln!(self.terminal)?;
            }
            is_first = false;
            self.tell_collection(collection)?;
        }
        Ok(())
    }

    fn tell_collection(&mut self, collection: Document<'_>) -> Result<(), Failure> {
        let name = self.terminal.paint(Style::Strong, plain(text_of(collection, "collection")));
        let what = match text_of(collection, "change") {
            "added" => "  (new collection)",
            "removed" => "  (dropped)",
            _ => "",
        };
        writeln!(self.terminal, "{}{name}{what}", self.indent)?;
        for index in array_of(collection, "indexes").iter().filter_map(|index| index.as_str()) {
            let line = format!("~ index {}", plain(index));
            self.line(Style::Changed, 2, &line)?;
        }
        for document in documents_of(collection, "removed") {
            self.document(Style::Removed, '-', document)?;
        }
        for document in documents_of(collection, "added") {
            self.document(Style::Added, '+', document)?;
        }
        let mut passed_over = 0;
        for modified in documents_of(collection, "modified") {
            let id = modified.get("_id").unwrap_or(Value::Null);
            if !self.shows(id) {
                passed_over += 1;
                continue;
            }
            let line = format!("~ {}", self.shortened(id, DOCUMENT_COLUMNS));
            self.line(Style::Changed, 2, &line)?;
            for change in documents_of(modified, "changes") {
                self.field(change)?;
            }
        }
        if passed_over > 0 {
            self.line(Style::Quiet, 2, &format!("… and {passed_over} more"))?;
        }
        Ok(())
    }

    fn shows(&self, id: Value<'_>) -> bool {
        match (self.modified_shown, id.as_str()) {
            (Some(shown), Some(id)) => shown.contains(&id),
            (shown, _) => shown.is_none(),
        }
    }

    fn document(
        &mut self,
        style: Style,
        mark: char,
        document: Document<'_>,
    ) -> Result<(), Failure> {
        let text = self.shortened(Value::Document(document), DOCUMENT_COLUMNS);
        self.line(style, 2, &format!("{mark} {text}"))
    }

    fn field(&mut self, change: Document<'_>) -> Result<(), Failure> {
        let path = plain(text_of(change, "path"));
        let side = |name: &str| {
            let value = change.get(name).unwrap_or(Value::Null);
            self.shortened(value, VALUE_COLUMNS)
        };
        let (style, line) = match text_of(change, "type") {
            "added" => (Style::Added, format!("+ {path}: {}", side("to"))),
            "removed" => (Style::Removed, format!("- {path}: {}", side("from"))),
            _ => (Style::Changed, format!("~ {path}: {} → {}", side("from"), side("to"))),
        };
        self.line(style, 6, &line)
    }

    fn shortened(&self, value: Value<'_>, columns: usize) -> String {
        if self.is_full { json(value) } else { short_json(value, columns) }
    }

    fn line(&mut self, style: Style, inset: usize, line: &str) -> Result<(), Failure> {
        let line = self.terminal.paint(style, line);
        Ok(writeln!(self.terminal, "{}{:inset$}{line}", self.indent, "")?)
    }
}

/// Prints `countries | 1 added, 2 modified`, a collection.
fn tell_counts(terminal: &mut Terminal, answer: &DocumentBuf) -> Result<(), Failure> {
    let collections: Vec<Document<'_>> = documents_of(answer.view(), "collections").collect();
    let name_of = |collection: Document<'_>| plain(text_of(collection, "collection"));
    let width = collections.iter().map(|each| name_of(*each).chars().count()).max().unwrap_or(0);
    let mut total = 0;
    for collection in &collections {
        let mut counts = Vec::new();
        for (name, style) in
            [("added", Style::Added), ("removed", Style::Removed), ("modified", Style::Changed)]
        {
            let count = documents_of(*collection, name).count();
            total += count as u64;
            if count > 0 {
                counts.push(terminal.paint(style, format!("{count} {name}")));
            }
        }
        let indexes = array_of(*collection, "indexes").iter().count() as u64;
        if indexes > 0 {
            counts.push(counted(indexes, "index change"));
        }
        writeln!(terminal, " {:width$} | {}", name_of(*collection), counts.join(", "))?;
    }
    let collections = counted(collections.len() as u64, "collection");
    Ok(writeln!(terminal, " {collections}, {}", counted(total, "document"))?)
}
