//! `frond conflicts`: what a merge could not decide.

use std::io::Write;

use frond_doc::path::Path;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};

use crate::arguments::Target;
use crate::failure::Failure;
use crate::output::{array_of, json, plain, short_json, shown_json, text_of};
use crate::terminal::{Style, Terminal};

/// Columns after which one side is cut.
const VALUE_COLUMNS: usize = 80;

const EXAMPLES: &str = "\
Examples:
  frond conflicts shop
  frond conflicts shop --collection items --json";

/// List the conflicts of a merge: fields that both sides changed
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Conflicts {
    /// Database, or DATABASE@BRANCH, whose merge waits
    database: String,

    /// Only those in this collection
    #[arg(short, long)]
    collection: Option<String>,

    /// Print the answer as JSON, with all three versions of each document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    target: Target,
}

impl Conflicts {
    /// Lists them, as many as there are: they are streamed.
    ///
    /// # Errors
    /// As [`Target::open`]; [`Failure::Refused`] if there is no such database.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let mut backend = self.target.open()?;
        let mut count = 0;
        backend.for_each_document(&self.database, &self.command(), &mut |conflict| {
            match self.json {
                true => write!(terminal, "{}{}", before(count), json(Value::Document(conflict)))?,
                false => print(terminal, "", conflict)?,
            }
            count += 1;
            Ok(())
        })?;
        if self.json {
            writeln!(terminal, "{}]}}", if count == 0 { before(0) } else { "" })?;
        } else if count == 0 {
            writeln!(terminal, "no conflicts")?;
        } else {
            let hint = format!("frond resolve {} ID --ours|--theirs|--value JSON", self.database);
            writeln!(terminal, "\nResolve each with  {}", terminal.paint(Style::Accent, hint))?;
        }
        backend.close()
    }

    fn command(&self) -> DocumentBuf {
        let mut command = DocumentBuilder::new();
        command.append("aggregate", Value::Int32(1)).begin_array("pipeline").push_begin_document();
        command.begin_document("$conflicts");
        if let Some(collection) = &self.collection {
            command.append("collection", Value::String(collection));
        }
        command.end().end().end().begin_document("cursor").end();
        command.build()
    }
}

/// Returns the text before a conflict in a list that has `count` already.
fn before(count: usize) -> &'static str {
    if count == 0 { "{\"conflicts\":[" } else { "," }
}

/// Prints one conflict: its id, its document, and each path as the three versions have it.
///
/// # Errors
/// [`Failure::ReaderGone`] if nothing reads the output.
pub fn print(terminal: &mut Terminal, indent: &str, conflict: Document<'_>) -> Result<(), Failure> {
    let id = terminal.paint(Style::Changed, text_of(conflict, "id"));
    let collection = plain(text_of(conflict, "collection"));
    let what = match (text_of(conflict, "kind"), conflict.get("_id")) {
        ("collection", _) => "was dropped on one side and changed on the other".to_owned(),
        ("options", _) => "options".to_owned(),
        ("index", Some(Value::String(name))) => format!("index {}", plain(name)),
        ("unique", Some(id)) => format!("{}  a unique index has it already", shown_json(id)),
        ("validator", Some(id)) => format!("{}  fails its validator", shown_json(id)),
        (_, id) => shown_json(id.unwrap_or(Value::Null)),
    };
    writeln!(terminal, "{indent}{id}  {collection} {what}")?;
    let mut has_paths = false;
    for path in array_of(conflict, "paths").iter().filter_map(|path| path.as_str()) {
        has_paths = true;
        writeln!(terminal, "{indent}  {}", terminal.paint(Style::Strong, plain(path)))?;
        print_sides(terminal, indent, |side| field(conflict.get(side), path))?;
    }
    if !has_paths {
        print_sides(terminal, indent, |side| match conflict.get(side) {
            Some(Value::Document(document)) => short_json(Value::Document(document), VALUE_COLUMNS),
            _ => "(no document)".to_owned(),
        })?;
    }
    Ok(())
}

fn print_sides(
    terminal: &mut Terminal,
    indent: &str,
    text: impl Fn(&str) -> String,
) -> Result<(), Failure> {
    for (side, style) in
        [("base", Style::Quiet), ("ours", Style::Removed), ("theirs", Style::Added)]
    {
        let line = format!("{side:<7} {}", text(side));
        writeln!(terminal, "{indent}    {}", terminal.paint(style, line))?;
    }
    Ok(())
}

/// The value at a dotted path of one side's document.
fn field(side: Option<Value<'_>>, path: &str) -> String {
    let document = side.and_then(|side| side.as_document());
    match document.and_then(|document| Path::new(path).get(document)) {
        Some(value) => short_json(value, VALUE_COLUMNS),
        None => "(no such field)".to_owned(),
    }
}
