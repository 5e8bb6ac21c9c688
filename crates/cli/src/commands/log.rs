//! `frond log`: the versions that a version comes from, newest first.

use std::io::{IsTerminal, Write};

use frond_db::date::WrittenDate;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, extended_json};

use crate::arguments::{Subject, Target};
use crate::backend::{Backend, visit_batch};
use crate::commands::decorations::Decorations;
use crate::commands::diff;
use crate::commands::graph::Graph;
use crate::failure::Failure;
use crate::json_list::JsonList;
use crate::notice::print;
use crate::output::{array_of, date, date_of, plain, text_of};
use crate::terminal::{Style, Terminal};

/// The number of letters of a commit's id that a short line shows: enough to name it.
const SHORT_ID_LETTERS: usize = 10;

const EXAMPLES: &str = "\
Examples:
  frond log shop
  frond log shop@sale --oneline -n 5
  frond log shop main..sale                    commits that sale has and main hasn't
  frond log shop --graph                       with the graph of commits beside it
  frond log shop -p -n 1                       with what changed; --stat counts it
  frond log shop --collection items            commits that changed the collection
  frond log shop -- items/17                   commits that changed one document
  frond log shop -5 main@{yesterday}           five, from where main was a day ago
  frond log shop -S '\"lamp\"'                  commits that added or removed that string
  frond log shop --author ada --since '2 weeks ago'

Dates are YYYY-MM-DD or YYYY-MM-DDTHH:MM:SSZ, in UTC, today, tuesday, or '3 days ago'.";

/// List the versions of a database, newest first
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Log {
    /// Database, or DATABASE@VERSION to begin there
    database: String,

    /// Version to begin at, or FROM..TO: what TO has and FROM doesn't, or A...B: what only one of
    /// them has
    range: Option<String>,

    /// Print one line per commit
    #[arg(long)]
    oneline: bool,

    /// Draw the graph of commits; one line per commit
    #[arg(long, conflicts_with_all = ["json", "skip", "after"])]
    graph: bool,

    /// Show what each commit changed
    #[arg(short, long, conflicts_with_all = ["json", "graph", "oneline"])]
    patch: bool,

    /// Count the documents that each commit changed in each collection
    #[arg(long, conflicts_with_all = ["json", "graph", "oneline", "patch"])]
    stat: bool,

    /// Show the branches and tags of each commit, as on a terminal
    #[arg(long, conflicts_with = "json")]
    decorate: bool,

    /// At most this many commits; -5 means -n 5
    #[arg(short = 'n', long = "limit", value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,

    /// Skip this many first
    #[arg(long, value_name = "COUNT")]
    skip: Option<u32>,

    /// Only commits listed after this one: the next page
    #[arg(long, value_name = "COMMIT")]
    after: Option<String>,

    #[command(flatten)]
    subject: Subject,

    /// Only commits whose author contains this text
    #[arg(long, value_name = "TEXT")]
    author: Option<String>,

    /// Only commits whose message contains this text
    #[arg(long, value_name = "TEXT")]
    grep: Option<String>,

    /// Only commits that changed how often this text occurs in a document's JSON: name, or "lamp"
    /// with its quotes
    #[arg(short = 'S', value_name = "TEXT")]
    changed_text: Option<String>,

    /// Only commits made at this time or later
    #[arg(long, value_name = "DATE")]
    since: Option<String>,

    /// Only commits made at this time or before
    #[arg(long, value_name = "DATE")]
    until: Option<String>,

    /// Follow only the first parent of merges
    #[arg(long)]
    first_parent: bool,

    /// Print the answer as JSON
    #[arg(long, conflicts_with = "oneline")]
    json: bool,

    #[command(flatten)]
    target: Target,
}

impl Log {
    /// Lists the commits.
    ///
    /// # Errors
    /// As [`Target::open`]; [`Failure::Refused`] if there is no such version or collection.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let command = stage("$log", &self.wanted()?, None);
        let mut backend = self.target.open()?;
        if self.json {
            self.print_json(&mut *backend, terminal, &command)?;
            return backend.close();
        }
        let decorations = match self.decorate || std::io::stdout().is_terminal() {
            true => Decorations::read(&mut *backend, &self.database)?,
            false => Decorations::default(),
        };
        let (mut count, mut graph) = (0, Graph::default());
        let mut answer = backend.execute(&self.database, &command)?;
        while let Some(more) = visit_batch(&answer, &mut |commit| {
            count += 1;
            let names = decorations.of(terminal, commit);
            if self.graph {
                return draw(terminal, &mut graph, commit, &names);
            }
            if self.oneline {
                return one_line(terminal, commit, &names);
            }
            if count > 1 {
                writeln!(terminal)?;
            }
            whole(terminal, commit, &names)?;
            if self.patch || self.stat {
                let shown = diff::DiffDisplay { counts: self.stat, ..Default::default() };
                changes(&mut *backend, terminal, &self.database, commit, &shown)?;
            }
            Ok(())
        })? {
            answer = backend.execute(&self.database, &more)?;
        }
        if count == 0 && !self.is_narrowed() {
            let database = &self.database;
            print(format_args!(
                "no commits yet: frond commit {database} -m MESSAGE records the first"
            ));
        }
        backend.close()
    }

    /// Prints what `frondLog` answers, commit by commit.
    fn print_json(
        &self,
        backend: &mut dyn Backend,
        terminal: &mut Terminal,
        command: &DocumentBuf,
    ) -> Result<(), Failure> {
        let limit = self.limit.map_or(u64::MAX, u64::from);
        let mut list = JsonList::new("commits");
        let (mut last, mut has_more) = (String::new(), false);
        backend.for_each_document(&self.database, command, &mut |commit| {
            has_more = list.count() == limit;
            if !has_more {
                text_of(commit, "commitId").clone_into(&mut last);
                list.print(terminal, commit)?;
            }
            Ok(())
        })?;
        list.end(terminal, has_more.then_some(&*last))
    }

    /// Whether some of the commits may have been left out.
    fn is_narrowed(&self) -> bool {
        let texts = [&self.range, &self.after, &self.author, &self.grep, &self.since, &self.until];
        texts.into_iter().any(Option::is_some)
            || self.changed_text.is_some()
            || self.skip.is_some()
            || self.subject.collection().is_some()
    }

    /// The fields that say which commits are wanted.
    fn wanted(&self) -> Result<DocumentBuf, Failure> {
        let mut command = DocumentBuilder::new();
        let texts = [
            ("range", self.range.as_deref()),
            ("after", self.after.as_deref()),
            ("collection", self.subject.collection()),
            ("author", self.author.as_deref()),
            ("message", self.grep.as_deref()),
            ("text", self.changed_text.as_deref()),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                command.append(name, Value::String(text));
            }
        }
        // One more shows whether there are more.
        let limit = self.limit.map(|limit| i64::from(limit) + i64::from(self.json));
        for (name, count) in [("limit", limit), ("skip", self.skip.map(i64::from))] {
            if let Some(count) = count {
                command.append(name, Value::Int64(count));
            }
        }
        if let Some(since) = &self.since {
            command.append("since", Value::DateTime(written_date(since)?.first_millis));
        }
        if let Some(until) = &self.until {
            command.append("until", Value::DateTime(written_date(until)?.last_millis));
        }
        if let Some(id) = self.subject.id() {
            append_id(&mut command, "document", id);
        }
        if self.first_parent {
            command.append("firstParent", Value::Boolean(true));
        }
        Ok(command.build())
    }
}

/// The command that reads what a stage such as `$log` tells of a database, at most `limit`.
pub fn stage(name: &str, options: &DocumentBuf, limit: Option<u32>) -> DocumentBuf {
    let mut command = DocumentBuilder::new();
    command.append("aggregate", Value::Int32(1)).begin_array("pipeline");
    command.push_begin_document().append(name, Value::from(options)).end();
    if let Some(limit) = limit {
        command.push_begin_document().append("$limit", Value::Int64(i64::from(limit))).end();
    }
    command.end().begin_document("cursor").end();
    command.build()
}

/// Draws a commit beside its line of descent, and the lines to its parents.
fn draw(
    terminal: &mut Terminal,
    graph: &mut Graph,
    commit: Document<'_>,
    names: &str,
) -> Result<(), Failure> {
    let parents: Vec<&str> =
        array_of(commit, "parents").iter().filter_map(|parent| parent.as_str()).collect();
    let drawn = graph.commit(text_of(commit, "commitId"), &parents);
    write!(terminal, "{} ", terminal.paint(Style::Quiet, drawn.commit))?;
    one_line(terminal, commit, names)?;
    for line in drawn.below {
        writeln!(terminal, "{}", terminal.paint(Style::Quiet, line))?;
    }
    Ok(())
}

/// A date as milliseconds since 1970, its beginning: a day, a second, or words such as `yesterday`.
///
/// # Errors
/// [`Failure::Usage`] if it is none.
pub fn parse_date(text: &str) -> Result<i64, Failure> {
    Ok(written_date(text)?.first_millis)
}

fn written_date(text: &str) -> Result<WrittenDate, Failure> {
    WrittenDate::read(text, jiff::Timestamp::now().as_millisecond()).ok_or_else(|| {
        Failure::Usage(format!(
            "{text} is not a date: use YYYY-MM-DD, YYYY-MM-DDTHH:MM:SSZ, today, tuesday or '3 days ago'"
        ))
    })
}

/// A commit on one line: the beginning of its id, what names it, and the first line of its message.
///
/// # Errors
/// [`Failure::ReaderGone`] if nothing reads the output.
pub fn one_line(terminal: &mut Terminal, commit: Document<'_>, names: &str) -> Result<(), Failure> {
    let id: String = text_of(commit, "commitId").chars().take(SHORT_ID_LETTERS).collect();
    let message = plain(text_of(commit, "message"));
    let first = message.lines().next().unwrap_or("");
    Ok(writeln!(terminal, "{}{names} {first}", terminal.paint(Style::Changed, id))?)
}

/// A commit as a paragraph: its id, what names it, its author and date, and its message.
///
/// # Errors
/// [`Failure::ReaderGone`] if nothing reads the output.
pub fn whole(terminal: &mut Terminal, commit: Document<'_>, names: &str) -> Result<(), Failure> {
    let heading = format!("commit {}", text_of(commit, "commitId"));
    writeln!(terminal, "{}{names}", terminal.paint(Style::Changed, heading))?;
    let parents: Vec<String> = array_of(commit, "parents")
        .iter()
        .filter_map(|parent| parent.as_str())
        .map(|parent| parent.chars().take(SHORT_ID_LETTERS).collect())
        .collect();
    if parents.len() > 1 {
        writeln!(terminal, "Merge:  {}", parents.join(" "))?;
    }
    // On one line, whatever it says.
    let author = plain(text_of(commit, "author")).replace('\n', "\\n");
    writeln!(terminal, "Author: {author}")?;
    if !text_of(commit, "committer").is_empty() {
        writeln!(terminal, "Commit: {}", plain(text_of(commit, "committer")))?;
    }
    writeln!(terminal, "Date:   {}", date_of(commit))?;
    if let Some(Value::DateTime(millis)) = commit.get("authored") {
        writeln!(terminal, "Made:   {}", date(millis))?;
    }
    writeln!(terminal)?;
    for line in plain(text_of(commit, "message")).lines() {
        writeln!(terminal, "    {line}")?;
    }
    Ok(())
}

/// Prints below a commit what it changed since its first parent.
///
/// # Errors
/// As [`diff::show`].
pub fn changes(
    backend: &mut dyn Backend,
    terminal: &mut Terminal,
    database: &str,
    commit: Document<'_>,
    shown: &diff::DiffDisplay,
) -> Result<(), Failure> {
    writeln!(terminal)?;
    let parent = array_of(commit, "parents").iter().next();
    let parent = parent.and_then(|parent| parent.as_str()).unwrap_or("NOTHING");
    let versions = (Some(parent), Some(text_of(commit, "commitId")));
    diff::show(backend, terminal, without_moment(database), versions, shown)
}

/// The branch of `shop@sale@{TIME}`: commits are the same there, and a moment has no history to
/// compare.
pub fn without_moment(database: &str) -> &str {
    match database.rsplit_once("@{") {
        Some((branch, moment)) if moment.ends_with('}') => branch,
        _ => database,
    }
}

/// Appends an `_id` as `name`: as JSON where it reads as JSON, otherwise as text: `17`, `"17"`,
/// `DEU`.
pub fn append_id(command: &mut DocumentBuilder, name: &str, id: &str) {
    let parsed = extended_json::parse(&format!("{{\"_id\":{id}}}")).ok();
    let parsed = parsed.filter(|parsed| parsed.iter().count() == 1);
    match parsed.as_ref().and_then(|parsed| parsed.get("_id")) {
        Some(value) => command.append(name, value),
        None => command.append(name, Value::String(id)),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_left_out() {
        for (database, expected) in [
            ("shop", "shop"),
            ("shop@sale", "shop@sale"),
            ("shop@{now}", "shop"),
            ("shop@sale@{1 hour ago}", "shop@sale"),
            ("shop@main@{now}~1", "shop@main@{now}~1"),
        ] {
            assert_eq!(without_moment(database), expected);
        }
    }

    #[test]
    fn dates() {
        assert_eq!(parse_date("1970-01-02").ok(), Some(86_400_000));
        assert_eq!(parse_date("1970-01-01T00:00:01Z").ok(), Some(1_000));
        assert!(parse_date("yesterday").is_ok());
        assert!(parse_date("tomorrow").is_err() && parse_date("").is_err());
    }

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
            append_id(&mut command, "document", id);
            let command = command.build();
            assert_eq!(format!("{:?}", command.get("document").unwrap()), expected, "{id}");
        }
    }
}
