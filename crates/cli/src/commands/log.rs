//! `frond log`: the versions that a version comes from, newest first.

use std::io::Write;

use frond_doc::{Document, DocumentBuilder, Value, extended_json};

use crate::arguments::Target;
use crate::failure::Failure;
use crate::output::{answer_json, array_of, cut, date_of, documents_of, plain, text_of};
use crate::terminal::{Style, Terminal};

/// How many letters of a commit's id a short line shows: enough to name it.
const SHORT_ID_LETTERS: usize = 10;

const EXAMPLES: &str = "\
Examples:
  frond log shop
  frond log shop@sale --oneline -n 5
  frond log shop --collection items            commits that changed the collection
  frond log shop --collection items --id 17    commits that changed one document";

/// List the versions of a database, newest first
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Log {
    /// Database, or DATABASE@VERSION to begin there
    database: String,

    /// One line a commit
    #[arg(long)]
    oneline: bool,

    /// At most this many commits
    #[arg(short = 'n', long = "limit", value_name = "COUNT")]
    limit: Option<u32>,

    /// Only commits that changed this collection
    #[arg(short, long)]
    collection: Option<String>,

    /// Only commits that changed the document with this _id (JSON, or else plain text)
    #[arg(long, value_name = "ID", requires = "collection")]
    id: Option<String>,

    /// The answer as JSON
    #[arg(long, conflicts_with = "oneline")]
    json: bool,

    #[command(flatten)]
    target: Target,
}

impl Log {
    /// Lists the commits.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let mut command = DocumentBuilder::new();
        command.append("frondLog", Value::Int32(1));
        if let Some(limit) = self.limit {
            command.append("limit", Value::Int64(i64::from(limit)));
        }
        if let Some(collection) = &self.collection {
            command.append("collection", Value::String(collection));
        }
        if let Some(id) = &self.id {
            append_id(&mut command, id);
        }
        let mut backend = self.target.open()?;
        let answer = backend.execute(&self.database, &command.build())?;
        if self.json {
            writeln!(terminal, "{}", answer_json(&answer))?;
            return backend.close();
        }
        let mut is_first = true;
        for commit in documents_of(answer.view(), "commits") {
            if self.oneline {
                one_line(terminal, commit)?;
                continue;
            }
            if !is_first {
                writeln!(terminal)?;
            }
            is_first = false;
            whole(terminal, commit)?;
        }
        backend.close()
    }
}

/// A commit on one line: the beginning of its id, and the first line of its message.
pub fn one_line(terminal: &mut Terminal, commit: Document<'_>) -> Result<(), Failure> {
    let id: String = text_of(commit, "commitId").chars().take(SHORT_ID_LETTERS).collect();
    let message = plain(text_of(commit, "message"));
    let first = message.lines().next().unwrap_or("");
    Ok(writeln!(terminal, "{} {first}", terminal.paint(Style::Changed, id))?)
}

fn whole(terminal: &mut Terminal, commit: Document<'_>) -> Result<(), Failure> {
    let heading = format!("commit {}", text_of(commit, "commitId"));
    writeln!(terminal, "{}", terminal.paint(Style::Changed, heading))?;
    let parents: Vec<String> = array_of(commit, "parents")
        .iter()
        .filter_map(|parent| parent.as_str())
        .map(|parent| cut(parent, SHORT_ID_LETTERS).trim_end_matches('…').to_owned())
        .collect();
    if parents.len() > 1 {
        writeln!(terminal, "Merge:  {}", parents.join(" "))?;
    }
    writeln!(terminal, "Author: {}", plain(text_of(commit, "author")))?;
    writeln!(terminal, "Date:   {}", date_of(commit))?;
    writeln!(terminal)?;
    for line in plain(text_of(commit, "message")).lines() {
        writeln!(terminal, "    {line}")?;
    }
    Ok(())
}

/// Appends `_id` as JSON where it reads as JSON, otherwise as text: `17`, `"17"`, `DEU`.
fn append_id(command: &mut DocumentBuilder, id: &str) {
    let parsed = extended_json::parse(&format!("{{\"_id\":{id}}}")).ok();
    let parsed = parsed.filter(|parsed| parsed.iter().count() == 1);
    match parsed.as_ref().and_then(|parsed| parsed.get("_id")) {
        Some(value) => command.append("document", value),
        None => command.append("document", Value::String(id)),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_json_or_text() {
        for (id, expected) in [
            ("17", "Int32(17)"),
            ("\"17\"", "String(\"17\")"),
            ("DEU", "String(\"DEU\")"),
            ("{\"a\":1}", "Document({\"a\": Int32(1)})"),
            ("1,\"x\":2", "String(\"1,\\\"x\\\":2\")"),
        ] {
            let mut command = DocumentBuilder::new();
            append_id(&mut command, id);
            let command = command.build();
            assert_eq!(format!("{:?}", command.get("document").unwrap()), expected, "{id}");
        }
    }
}
