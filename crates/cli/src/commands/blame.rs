//! `frond blame`: which commit each field of a document comes from.

use std::io::Write;

use frond_doc::{DocumentBuilder, Value};

use crate::arguments::{OneDocument, Target};
use crate::commands::log;
use crate::failure::Failure;
use crate::output::{answer_json, cut, documents_of, plain, short_json, text_of};
use crate::terminal::{Style, Terminal};

/// Columns for the author and for a value.
const AUTHOR_COLUMNS: usize = 20;
const VALUE_COLUMNS: usize = 48;

const EXAMPLES: &str = "\
Examples:
  frond blame shop items 17
  frond blame shop@v1 items lamp --json";

/// Show which commit each field of a document comes from
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Blame {
    /// Database, or DATABASE@VERSION
    database: String,

    #[command(flatten)]
    document: OneDocument,

    /// Print the answer as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    target: Target,
}

impl Blame {
    /// Shows the fields.
    ///
    /// # Errors
    /// As [`Target::open`]; [`Failure::Refused`] if there is no such collection or document.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let mut command = DocumentBuilder::new();
        command.append("frondBlame", Value::Int32(1));
        let (collection, id) = self.document.parts()?;
        command.append("collection", Value::String(collection));
        log::append_id(&mut command, "document", id);
        let mut backend = self.target.open()?;
        let answer = backend.execute(&self.database, &command.build())?;
        if self.json {
            writeln!(terminal, "{}", answer_json(&answer))?;
            return backend.close();
        }
        let fields = || documents_of(answer.view(), "fields");
        let width = fields().map(|field| plain(text_of(field, "path")).chars().count()).max();
        let width = width.unwrap_or(0);
        for field in fields() {
            let commit: String = text_of(field, "commitId").chars().take(10).collect();
            let commit = if commit.is_empty() { "not yet   ".to_owned() } else { commit };
            let commit = terminal.paint(Style::Changed, commit);
            let author = cut(&plain(text_of(field, "author")), AUTHOR_COLUMNS);
            let path = plain(text_of(field, "path"));
            let value = short_json(field.get("value").unwrap_or(Value::Null), VALUE_COLUMNS);
            writeln!(terminal, "{commit} {author:<AUTHOR_COLUMNS$} {path:<width$}  {value}")?;
        }
        backend.close()
    }
}
