//! `frond bisect`: the first commit that changed something, found by halving.
//!
//! 1. In question are the commits that the bad version has and the good one hasn't.
//! 2. Each step tests the one that halves them best (`search`), by a command's exit code, as
//!    `git bisect run` does, or by how many documents match a filter.
//! 3. Nothing is checked out: each version is a database. A command opens the data directory
//!    itself, so that this process lets go of it meanwhile.

mod search;

use std::io::Write;
use std::process::Command as Process;

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, extended_json};

use crate::arguments::{Answer, Target};
use crate::backend::Backend;
use crate::commands::bisect::search::Search;
use crate::commands::log;
use crate::failure::{Failure, describe};
use crate::output::{answer_json, text_of};
use crate::output::{array_of, count_of, count_value, counted, documents_of, plain};
use crate::terminal::{Style, Terminal};

const EXAMPLES: &str = "\
Examples:
  frond bisect shop v1..main -c items -q '{\"price\": {\"$lt\": 0}}'    since when is a price negative?
  frond bisect shop v1 -c items                                      since when are there more, or fewer?
  frond bisect shop v1..main -- ./check.sh {}                        ./check.sh shop@<commit>
  frond bisect shop v1..main --uri 127.0.0.1:27017 -- \\
      mongosh --quiet mongodb://127.0.0.1:27017/{encoded} check.js

The command must exit with 0 for a good version, with 125 if it can't tell, and with another code up to \
127 for a bad one; any other code ends the search. {} stands for the version as a database, {encoded} for the \
same in a connection string. With a filter, a version is bad if the number of matching documents differs \
from that in the good one.";

/// The number of letters of a commit's id that are shown.
const SHORT_ID_LETTERS: usize = 10;
/// Commits that are listed at once.
const PAGE_COMMITS: i64 = 1_000;
/// The exit code of a command that can't tell, as for `git bisect run`.
const EXIT_SKIP: i32 = 125;
/// The largest exit code that says bad.
const BAD_MAX: i32 = 127;

/// Find the first commit that changed something
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(
    override_usage = "frond bisect [OPTIONS] <DATABASE> <GOOD..BAD> --collection <COLLECTION> [--query <JSON>]
       frond bisect [OPTIONS] <DATABASE> <GOOD..BAD> -- <COMMAND>..."
)]
#[command(group = clap::ArgGroup::new("test").required(true).args(["collection", "command"]))]
pub struct Bisect {
    /// Database, or DATABASE@BRANCH
    database: String,

    /// A version without the change, and after .. one with it; by default the last commit
    #[arg(value_name = "GOOD..BAD")]
    range: String,

    /// Test by the number of documents in this collection
    #[arg(short, long)]
    collection: Option<String>,

    /// Count only documents that match this filter
    #[arg(short, long, value_name = "JSON", requires = "collection")]
    query: Option<String>,

    /// Follow only the first parent of merges
    #[arg(long)]
    first_parent: bool,

    /// Test with this command's exit code
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,

    #[command(flatten)]
    as_json: Answer,

    #[command(flatten)]
    target: Target,
}

/// A test's verdict on a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Good,
    Bad,
    Unknown,
}

/// The commits in question: children first, as the log lists them.
struct Commits {
    rows: Vec<DocumentBuf>,
    good: String,
    bad: String,
}

impl Bisect {
    /// Searches, and prints the commit.
    ///
    /// # Errors
    /// [`Failure::Usage`] for a filter that is none, or a command without a place for the version;
    /// as [`Target::open`]; [`Failure::Failed`] if the two versions don't differ as they should, a
    /// command can't be run, or too many commits can't be tested.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let has_place = |word: &String| word.contains("{}") || word.contains("{encoded}");
        if !self.command.is_empty() && !self.command.iter().any(has_place) {
            return Err(Failure::Usage(
                "the command lacks {}, which stands for the version".to_owned(),
            ));
        }
        let mut backend = self.target.open()?;
        let commits = self.commits(&mut *backend)?;
        let mut test: Box<dyn Test> = match &self.collection {
            None => {
                backend.close()?;
                Box::new(ByCommand { bisect: self })
            }
            Some(collection) => {
                let query = match &self.query {
                    None => DocumentBuf::empty(),
                    Some(query) => extended_json::parse(query).map_err(|error| {
                        Failure::Usage(format!("--query is not a document: {error}"))
                    })?,
                };
                Box::new(ByCount { bisect: self, backend, collection, query, good: None })
            }
        };
        let done = self.search(terminal, &commits, &mut *test);
        let ended = test.end();
        done.and(ended)
    }

    fn search(
        &self,
        terminal: &mut Terminal,
        commits: &Commits,
        test: &mut dyn Test,
    ) -> Result<(), Failure> {
        for (version, expected) in [(&commits.good, Verdict::Good), (&commits.bad, Verdict::Bad)] {
            terminal.finish()?;
            if test.of(version)? != expected {
                let what = if expected == Verdict::Good { "isn't good" } else { "isn't bad" };
                return Err(Failure::failed(format!("{version} {what}, by this test")));
            }
        }
        let mut search = Search::new(parents_of(&commits.rows));
        let mut tested = 0_u64;
        while let Some(position) = search.next() {
            let row = commits.rows[position].view();
            terminal.finish()?;
            let verdict = test.of(text_of(row, "commitId"))?;
            tested += 1;
            match verdict {
                Verdict::Good => search.good(position),
                Verdict::Bad => search.bad(position),
                Verdict::Unknown => search.skip(position),
            }
            if !self.as_json.is_set() {
                let left = counted(search.left().len() as u64, "commit");
                print_step(terminal, row, verdict, &left)?;
            }
        }
        let left = search.left();
        let [found] = left[..] else {
            let ids = left.iter().map(|position| short_id(commits.rows[*position].view()));
            return Err(Failure::failed(format!(
                "the first bad commit is one of these, which could not be tested: {}",
                ids.collect::<Vec<_>>().join(" ")
            )));
        };
        let row = &commits.rows[found];
        if self.as_json.is_set() {
            let mut answer = DocumentBuilder::new();
            for (name, value) in row.iter().filter(|(name, _)| *name != "_id") {
                answer.append(name, value);
            }
            answer.append("tested", count_value(tested));
            writeln!(terminal, "{}", answer_json(&answer.build()))?;
            return Ok(());
        }
        let id = terminal.paint(Style::Changed, text_of(row.view(), "commitId"));
        writeln!(terminal, "\n{id} is the first bad commit\n")?;
        log::whole(terminal, row.view(), "")
    }

    /// The commits of the range.
    fn commits(&self, backend: &mut dyn Backend) -> Result<Commits, Failure> {
        let (good, bad) = self.range.split_once("..").unwrap_or((&self.range, ""));
        let bad = if bad.is_empty() { "HEAD" } else { bad };
        if good.is_empty() || bad.starts_with('.') {
            return Err(Failure::Usage(format!("{}: GOOD..BAD is expected", self.range)));
        }
        let range = format!("{good}..{bad}");
        let mut rows = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let mut command = DocumentBuilder::new();
            command.append("frondLog", Value::Int32(1)).append("range", Value::String(&range));
            command.append("limit", Value::Int64(PAGE_COMMITS));
            if let Some(after) = &after {
                command.append("after", Value::String(after));
            }
            if self.first_parent {
                command.append("firstParent", Value::Boolean(true));
            }
            let answer = backend.execute(&self.database, &command.build())?;
            rows.extend(documents_of(answer.view(), "commits").map(|commit| commit.to_buf()));
            match text_of(answer.view(), "next") {
                "" => break,
                next => after = Some(next.to_owned()),
            }
        }
        let Some(newest) = rows.first() else {
            return Err(Failure::failed(format!("{bad} has no commit that {good} lacks")));
        };
        let bad = text_of(newest.view(), "commitId").to_owned();
        let show = frond_doc::document! { "frondShow": 1_i32, "target": good };
        let shown = backend.execute(&self.database, &show)?;
        let good = text_of(shown.view(), "commitId").to_owned();
        Ok(Commits { rows, good, bad })
    }

    /// A version as a database's name.
    fn database_at(&self, commit: &str) -> String {
        let name = self.database.split('@').next().unwrap_or(&self.database);
        format!("{name}@{commit}")
    }
}

/// The parents of each commit, by position; those that aren't in question are left out.
fn parents_of(rows: &[DocumentBuf]) -> Vec<Vec<usize>> {
    let ids = rows.iter().enumerate();
    let positions: std::collections::HashMap<&str, usize> =
        ids.map(|(position, row)| (text_of(row.view(), "commitId"), position)).collect();
    let of_row = |row: &DocumentBuf| {
        let parents = array_of(row.view(), "parents");
        let known = parents.iter().filter_map(|id| positions.get(id.as_str()?).copied());
        known.collect()
    };
    rows.iter().map(of_row).collect()
}

/// Says of versions whether they are good.
trait Test {
    fn of(&mut self, commit: &str) -> Result<Verdict, Failure>;

    fn end(self: Box<Self>) -> Result<(), Failure>;
}

/// The test by a command's exit code.
struct ByCommand<'a> {
    bisect: &'a Bisect,
}

impl Test for ByCommand<'_> {
    fn of(&mut self, commit: &str) -> Result<Verdict, Failure> {
        let database = self.bisect.database_at(commit);
        let encoded = database.replace('%', "%25").replace('@', "%40");
        let mut words = self
            .bisect
            .command
            .iter()
            .map(|word| word.replace("{}", &database).replace("{encoded}", &encoded));
        let program = words.next().unwrap_or_default();
        let status = Process::new(&program).args(words).status();
        let status =
            status.map_err(|error| Failure::failed(format!("{program}: {}", describe(&error))))?;
        match status.code() {
            Some(0) => Ok(Verdict::Good),
            Some(EXIT_SKIP) => Ok(Verdict::Unknown),
            Some(code) if (1..=BAD_MAX).contains(&code) => Ok(Verdict::Bad),
            _ => Err(Failure::failed(format!("{program} at {commit}: {status}"))),
        }
    }

    fn end(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

/// The test by how many documents match.
struct ByCount<'a> {
    bisect: &'a Bisect,
    backend: Box<dyn Backend>,
    collection: &'a str,
    query: DocumentBuf,
    /// The number of matches in the first version that is tested, which is the good one.
    good: Option<u64>,
}

impl Test for ByCount<'_> {
    fn of(&mut self, commit: &str) -> Result<Verdict, Failure> {
        let mut command = DocumentBuilder::new();
        command.append("count", Value::String(self.collection));
        command.append("query", Value::Document(self.query.view()));
        let database = self.bisect.database_at(commit);
        let answer = self.backend.execute(&database, &command.build())?;
        let count = count_of(answer.view(), "n");
        let good = *self.good.get_or_insert(count);
        Ok(if count == good { Verdict::Good } else { Verdict::Bad })
    }

    fn end(self: Box<Self>) -> Result<(), Failure> {
        self.backend.close()
    }
}

fn short_id(commit: Document<'_>) -> String {
    text_of(commit, "commitId").chars().take(SHORT_ID_LETTERS).collect()
}

fn print_step(
    terminal: &mut Terminal,
    commit: Document<'_>,
    verdict: Verdict,
    left: &str,
) -> Result<(), Failure> {
    let (word, style) = match verdict {
        Verdict::Good => ("good", Style::Added),
        Verdict::Bad => ("bad", Style::Removed),
        Verdict::Unknown => ("can't tell", Style::Quiet),
    };
    let id = terminal.paint(Style::Changed, short_id(commit));
    let message = plain(text_of(commit, "message"));
    let first = message.lines().next().unwrap_or("");
    let word = terminal.paint(style, word);
    let left = terminal.paint(Style::Quiet, format!("({left} left)"));
    Ok(writeln!(terminal, "{id} {word}: {first}  {left}")?)
}
