//! `frond diff`: how two versions differ, document by document and field by field.
//!
//! A line begins with `+` for what only the right side has, `-` for what only the left side has,
//! `~` for what both have and is different. The rows come from the `$diff` stage, in batches, so
//! that a diff of any size is printed as it is read.

use std::io::Write;

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};

use crate::arguments::{Subject, Target};
use crate::backend::Backend;
use crate::commands::log;
use crate::failure::Failure;
use crate::output::{bytes, counted, documents_of, json, plain, short_json, shown_json, text_of};
use crate::terminal::{Style, Terminal};

/// Columns after which a document that was added or removed is cut, unless all is asked for.
const DOCUMENT_COLUMNS: usize = 92;
/// The same for one side of a field.
const VALUE_COLUMNS: usize = 40;

const EXAMPLES: &str = "\
Examples:
  frond diff shop                          the last commit against what is there now
  frond diff shop main~1 main              two versions
  frond diff shop main sale --stat         two branches, counted
  frond diff shop main...sale              what sale did since it parted from main
  frond diff shop main@{yesterday} main    what changed in a day, commit to commit
  frond diff shop 'WORKING@{1 hour ago}' WORKING      what changed in an hour, committed or not
  frond diff shop main sale -c items       only one collection
  frond diff shop -- items/17              only one document
  frond diff shop main sale --json         one difference per line, for other programs

A version is a branch (its last commit), a tag, a commit's id or the first letters of one, HEAD, or any of \
these followed by @{DATE}, ~2 or ^; WORKING is what is there now, \
WORKING@{TIME} is what was there then, and NOTHING is the empty database.";

/// Show how two versions differ
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Diff {
    /// Database, or DATABASE@BRANCH
    database: String,

    /// Left side; by default the last commit. A..B names both sides, A...B goes from where A and B
    /// parted to B
    from: Option<String>,

    /// Right side; by default the branch as it is now
    to: Option<String>,

    #[command(flatten)]
    subject: Subject,

    /// Only count the documents that differ in each collection
    #[arg(long)]
    stat: bool,

    /// Print one difference per line, as JSON
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
    ///
    /// # Errors
    /// As [`Target::open`]; [`Failure::Refused`] if there is no such version or collection.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let mut backend = self.target.open()?;
        let shown = DiffDisplay {
            collection: self.subject.collection().map(str::to_owned),
            id: self.subject.id().map(str::to_owned),
            counts: self.stat,
            json: self.json,
            is_full: self.full,
        };
        let versions = (self.from.as_deref(), self.to.as_deref());
        show(&mut *backend, terminal, &self.database, versions, &shown)?;
        backend.close()
    }
}

/// The part of a diff that is shown, and its form.
#[derive(Default)]
pub struct DiffDisplay {
    /// Only this collection.
    pub collection: Option<String>,
    /// Only this document in it.
    pub id: Option<String>,
    /// Counts only.
    pub counts: bool,
    /// Rows as JSON.
    pub json: bool,
    /// Whether long values are printed whole.
    pub is_full: bool,
}

/// Shows how two versions differ.
///
/// # Errors
/// As [`Backend::for_each_document`](crate::backend::Backend).
pub fn show(
    backend: &mut dyn Backend,
    terminal: &mut Terminal,
    database: &str,
    versions: (Option<&str>, Option<&str>),
    shown: &DiffDisplay,
) -> Result<(), Failure> {
    let command = command(versions, shown);
    if shown.json {
        return backend.for_each_document(database, &command, &mut |row| {
            Ok(writeln!(terminal, "{}", json(Value::Document(row)))?)
        });
    }
    if shown.counts {
        let mut counts: Vec<Counts> = Vec::new();
        backend.for_each_document(database, &command, &mut |row| {
            count(&mut counts, row);
            Ok(())
        })?;
        return print_counts(terminal, &counts);
    }
    let mut printer = Printer::new(terminal, "", shown.is_full, None);
    backend.for_each_document(database, &command, &mut |row| printer.row(row))?;
    printer.finish()
}

fn command((from, to): (Option<&str>, Option<&str>), shown: &DiffDisplay) -> DocumentBuf {
    let mut command = DocumentBuilder::new();
    command.append("aggregate", Value::Int32(1));
    command.begin_array("pipeline").push_begin_document().begin_document("$diff");
    for (name, text) in [("from", from), ("to", to), ("collection", shown.collection.as_deref())] {
        if let Some(text) = text {
            command.append(name, Value::String(text));
        }
    }
    if let Some(id) = &shown.id {
        log::append_id(&mut command, "document", id);
    }
    command.append("whole", Value::Boolean(!shown.counts));
    command.end().end().end();
    command.begin_document("cursor").end();
    command.build()
}

/// Prints the rows of a diff as they come.
pub struct Printer<'a> {
    terminal: &'a mut Terminal,
    /// The beginning of each line.
    indent: &'a str,
    /// Whether long values are printed whole.
    is_full: bool,
    /// The text `_id`s of the modified documents that are printed; `None` is all. Of the others
    /// only the count is printed.
    modified_shown: Option<&'static [&'static str]>,
    /// The collection whose rows come.
    collection: Option<String>,
    passed_over: u64,
}

impl<'a> Printer<'a> {
    /// A printer that has printed nothing yet.
    pub fn new(
        terminal: &'a mut Terminal,
        indent: &'a str,
        is_full: bool,
        modified_shown: Option<&'static [&'static str]>,
    ) -> Printer<'a> {
        Printer { terminal, indent, is_full, modified_shown, collection: None, passed_over: 0 }
    }

    /// Prints one row.
    ///
    /// # Errors
    /// [`Failure::ReaderGone`] if nothing reads the output.
    pub fn row(&mut self, row: Document<'_>) -> Result<(), Failure> {
        let collection = text_of(row, "collection");
        let change = text_of(row, "change");
        let is_new = self.collection.as_deref() != Some(collection);
        if is_new {
            self.print_passed_over()?;
            if self.collection.is_some() {
                writeln!(self.terminal)?;
            }
            self.collection = Some(collection.to_owned());
            let name = self.terminal.paint(Style::Strong, plain(collection));
            let what = match (text_of(row, "kind"), change) {
                ("collection", "added") => "  (new collection)",
                ("collection", _) => "  (dropped)",
                _ => "",
            };
            writeln!(self.terminal, "{}{name}{what}", self.indent)?;
        }
        let (style, mark) = match change {
            "added" => (Style::Added, '+'),
            "removed" => (Style::Removed, '-'),
            _ => (Style::Changed, '~'),
        };
        match text_of(row, "kind") {
            "document" => self.document(row, style, mark),
            "index" => {
                let line = format!("{mark} index {}", plain(text_of(row, "name")));
                self.line(style, 2, &line)
            }
            "options" => self.line(style, 2, "~ options"),
            _ => Ok(()),
        }
    }

    /// Prints what is left to say.
    ///
    /// # Errors
    /// [`Failure::ReaderGone`] if nothing reads the output.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.print_passed_over()
    }

    fn print_passed_over(&mut self) -> Result<(), Failure> {
        let passed_over = std::mem::take(&mut self.passed_over);
        if passed_over == 0 {
            return Ok(());
        }
        self.line(Style::Quiet, 2, &format!("… and {passed_over} more"))
    }

    fn document(&mut self, row: Document<'_>, style: Style, mark: char) -> Result<(), Failure> {
        let id = row.get("_id").unwrap_or(Value::Null);
        let side = match mark {
            '+' => row.get("after"),
            '-' => row.get("before"),
            _ if !self.shows(id) => {
                self.passed_over += 1;
                return Ok(());
            }
            _ => None,
        };
        let left_out = ["before", "after"].map(|name| left_out(row, name));
        let size = match mark {
            '+' | '-' => left_out.into_iter().flatten().next().unwrap_or_default(),
            _ => String::new(),
        };
        let shown = side.unwrap_or(id);
        let text =
            if self.is_full { shown_json(shown) } else { short_json(shown, DOCUMENT_COLUMNS) };
        self.line(style, 2, format!("{mark} {text} {size}").trim_end())?;
        print_indented_fields(self.terminal, self.indent, row, 6, self.is_full)
    }

    fn shows(&self, id: Value<'_>) -> bool {
        match (self.modified_shown, id.as_str()) {
            (Some(shown), Some(id)) => shown.contains(&id),
            (shown, _) => shown.is_none(),
        }
    }

    fn line(&mut self, style: Style, inset: usize, line: &str) -> Result<(), Failure> {
        let line = self.terminal.paint(style, line);
        Ok(writeln!(self.terminal, "{}{:inset$}{line}", self.indent, "")?)
    }
}

/// Prints the `changes` of a row, a field on each line.
///
/// # Errors
/// [`Failure::ReaderGone`] if nothing reads the output.
pub fn print_fields(
    terminal: &mut Terminal,
    row: Document<'_>,
    inset: usize,
    is_full: bool,
) -> Result<(), Failure> {
    print_indented_fields(terminal, "", row, inset, is_full)
}

fn print_indented_fields(
    terminal: &mut Terminal,
    indent: &str,
    row: Document<'_>,
    inset: usize,
    is_full: bool,
) -> Result<(), Failure> {
    for change in documents_of(row, "changes") {
        let path = plain(text_of(change, "path"));
        let side = |name: &str| {
            left_out(change, name).unwrap_or_else(|| {
                let value = change.get(name).unwrap_or(Value::Null);
                if is_full { shown_json(value) } else { short_json(value, VALUE_COLUMNS) }
            })
        };
        let (style, line) = match text_of(change, "type") {
            "added" => (Style::Added, format!("+ {path}: {}", side("to"))),
            "removed" => (Style::Removed, format!("- {path}: {}", side("from"))),
            "reordered" => {
                let place = if path.is_empty() { path } else { format!("{path}: ") };
                let (from, to) = (side("from"), side("to"));
                (Style::Changed, format!("~ {place}other order of fields: {from} → {to}"))
            }
            _ => (Style::Changed, format!("~ {path}: {} → {}", side("from"), side("to"))),
        };
        let line = terminal.paint(style, line);
        writeln!(terminal, "{indent}{:inset$}{line}", "")?;
    }
    if let Some(size) = left_out(row, "changes") {
        let line = terminal.paint(Style::Changed, format!("~ too many changes to show {size}"));
        writeln!(terminal, "{indent}{:inset$}{line}", "")?;
    }
    Ok(())
}

/// `(4.2 MB)`, for a value of a row that was too large to be sent; `None` if it is there.
pub fn left_out(row: Document<'_>, name: &str) -> Option<String> {
    let size = row.get(&format!("{name}Bytes"))?.as_integer()?;
    Some(format!("({})", bytes(u64::try_from(size).unwrap_or_default())))
}

/// The differences in one collection.
struct Counts {
    collection: String,
    /// What happened to the collection itself: `added`, `removed`, or nothing.
    itself: &'static str,
    added: u64,
    removed: u64,
    modified: u64,
    /// Indexes and options.
    others: u64,
}

fn count(counts: &mut Vec<Counts>, row: Document<'_>) {
    let collection = text_of(row, "collection");
    if counts.last().is_none_or(|last| last.collection != collection) {
        let collection = collection.to_owned();
        let (added, removed, modified) = (0, 0, 0);
        counts.push(Counts { collection, itself: "", added, removed, modified, others: 0 });
    }
    let Some(last) = counts.last_mut() else { return };
    match (text_of(row, "kind"), text_of(row, "change")) {
        ("document", "added") => last.added += 1,
        ("document", "removed") => last.removed += 1,
        ("document", _) => last.modified += 1,
        ("index" | "options", _) => last.others += 1,
        ("collection", "added") => last.itself = "new collection",
        ("collection", "removed") => last.itself = "dropped",
        _ => {}
    }
}

/// Prints `countries | 1 added, 2 modified`, a collection.
fn print_counts(terminal: &mut Terminal, counts: &[Counts]) -> Result<(), Failure> {
    let name_of = |counts: &Counts| plain(&counts.collection);
    let width = counts.iter().map(|each| name_of(each).chars().count()).max().unwrap_or(0);
    let mut total = 0;
    for each in counts {
        let mut parts = Vec::new();
        for (count, name, style) in [
            (each.added, "added", Style::Added),
            (each.removed, "removed", Style::Removed),
            (each.modified, "modified", Style::Changed),
        ] {
            total += count;
            if count > 0 {
                parts.push(terminal.paint(style, format!("{count} {name}")));
            }
        }
        if each.others > 0 {
            parts.push(counted(each.others, "index change"));
        }
        if parts.is_empty() {
            parts.push(each.itself.to_owned());
        }
        writeln!(terminal, " {:width$} | {}", name_of(each), parts.join(", "))?;
    }
    let collections = counted(counts.len() as u64, "collection");
    Ok(writeln!(terminal, " {collections}, {}", counted(total, "document"))?)
}
