//! `frond history`: the versions that a document had.

use std::io::Write;

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};

use crate::arguments::{OneDocument, Target};
use crate::commands::{diff, log};
use crate::failure::Failure;
use crate::output::{json, short_json, shown_json, text_of};
use crate::terminal::{Style, Terminal};

/// Columns after which a document is cut.
const DOCUMENT_COLUMNS: usize = 92;

const EXAMPLES: &str = "\
Examples:
  frond history shop items 17             what each commit changed in the document, newest first
  frond history shop items 17 --full      with long values
  frond history shop items lamp --json    one version per line, with the whole document";

/// Show the versions of a document, newest first
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct History {
    /// Database, or DATABASE@VERSION to begin there
    database: String,

    #[command(flatten)]
    document: OneDocument,

    /// At most this many versions
    #[arg(short = 'n', long = "limit", value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,

    /// Don't shorten long values
    #[arg(long)]
    full: bool,

    /// Print one version per line, as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    target: Target,
}

impl History {
    /// Shows the versions.
    ///
    /// # Errors
    /// As [`Target::open`]; [`Failure::Refused`] if there is no such collection.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let (collection, id) = self.document.parts()?;
        let command = self.command(collection, id);
        let mut backend = self.target.open()?;
        let mut is_first = true;
        backend.for_each_document(&self.database, &command, &mut |version| {
            if self.json {
                return Ok(writeln!(terminal, "{}", json(Value::Document(version)))?);
            }
            if !is_first {
                writeln!(terminal)?;
            }
            is_first = false;
            self.print_version(terminal, version)
        })?;
        if is_first && !self.json {
            return Err(Failure::failed(format!(
                "no version of {collection} {id} is known in {}",
                self.database
            )));
        }
        backend.close()
    }

    fn command(&self, collection: &str, id: &str) -> DocumentBuf {
        let mut command = DocumentBuilder::new();
        command.append("aggregate", Value::String(collection));
        command.begin_array("pipeline").push_begin_document().begin_document("$history");
        log::append_id(&mut command, "_id", id);
        if let Some(limit) = self.limit {
            command.append("limit", Value::Int64(i64::from(limit)));
        }
        command.end().end().end();
        command.begin_document("cursor").end();
        command.build()
    }

    fn print_version(&self, terminal: &mut Terminal, version: Document<'_>) -> Result<(), Failure> {
        if text_of(version, "commitId").is_empty() {
            writeln!(terminal, "{}", terminal.paint(Style::Changed, "not committed yet"))?;
        } else {
            log::one_line(terminal, version, "")?;
        }
        let document = version.get("document").unwrap_or(Value::Null);
        let text = match diff::left_out(version, "document") {
            Some(size) => size,
            None if self.full => shown_json(document),
            None => short_json(document, DOCUMENT_COLUMNS),
        };
        match text_of(version, "change") {
            "added" => {
                writeln!(terminal, "  {}", terminal.paint(Style::Added, format!("+ {text}")))?;
            }
            "removed" => writeln!(terminal, "  {}", terminal.paint(Style::Removed, "- removed"))?,
            _ => diff::print_fields(terminal, version, 2, self.full)?,
        }
        Ok(())
    }
}
