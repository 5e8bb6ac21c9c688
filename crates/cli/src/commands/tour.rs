//! `frond tour`: the main job, from an import to a merge with a conflict, on real data.
//!
//! Every step runs the commands that a driver would send, on an embedded database, and prints what
//! they did, how long they took, how many chunks they wrote and how much lies on the disk then.
//!
//! The story: `main` holds the world's countries. A branch `census` corrects populations while
//! `main` corrects names; both touch the Ivory Coast, in different fields, which merges. Then both
//! change Germany's population, which doesn't.

mod stage;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use frond_doc::{Document, DocumentBuf};

use crate::commands::diff::Printer;
use crate::commands::tour::stage::{INDENT, Stage, first_batch};
use crate::commands::{conflicts, log};
use crate::failure::Failure;
use crate::output::{bytes, count_of, documents_of, grouped, text_of};
use crate::terminal::{Style, Terminal};

/// The countries of the world, gathered for this project: one a line.
const COUNTRIES: &str = include_str!("../../data/countries.jsonl");
/// The author of the tour's commits.
const AUTHOR: &str = "Ada <ada@example.org>";

const EXAMPLES: &str = "\
Examples:
  frond tour
  frond tour --keep ./frond-data && frond serve --data ./frond-data";

/// Show what Frond does, in a second: import, branch, diff, merge, a conflict, and the cost of each
/// step
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Tour {
    /// Directory to keep the database in (missing or empty); by default a temporary one
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

impl Tour {
    /// Walks through all steps.
    ///
    /// # Errors
    /// [`Failure::Failed`] if the directory can't be made, isn't empty or can't be written.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let directory = match &self.keep {
            Some(directory) => empty_directory(directory)?,
            None => temporary_directory()?,
        };
        let begun = Instant::now();
        introduce(terminal, &directory)?;
        let mut stage = Stage::open(&directory, terminal)?;
        import(&mut stage)?;
        query(&mut stage)?;
        first_version(&mut stage)?;
        branch(&mut stage)?;
        change_both_sides(&mut stage)?;
        show_difference(&mut stage)?;
        merge(&mut stage)?;
        make_conflict(&mut stage)?;
        resolve_conflict(&mut stage)?;
        show_history(&mut stage)?;
        let disk = stage.disk_bytes()?;
        stage.close()?;
        conclude(terminal, &directory, disk, begun)
    }
}

fn introduce(terminal: &mut Terminal, directory: &Path) -> Result<(), Failure> {
    let title = terminal.paint(Style::Strong, "Frond");
    let place = terminal.paint(Style::Strong, directory.display());
    writeln!(terminal, "\n{title}: a document database with versions, in ten steps.")?;
    writeln!(terminal, "Each step runs the commands that any MongoDB driver would send, on")?;
    writeln!(terminal, "{place}")?;
    let legend = "At the right: time, chunks written, bytes on the disk after the step.";
    Ok(writeln!(terminal, "{}", terminal.paint(Style::Quiet, legend))?)
}

fn import(stage: &mut Stage<'_>) -> Result<(), Failure> {
    let documents: Vec<&str> = COUNTRIES.lines().filter(|line| !line.is_empty()).collect();
    let insert = format!("{{\"insert\": \"countries\", \"documents\": [{}]}}", documents.join(","));
    let answer = stage.run("world", &insert)?;
    stage.run(
        "world",
        r#"{"createIndexes": "countries", "indexes": [
            {"name": "by_population", "key": {"region": 1, "population": -1}}]}"#,
    )?;
    let count = count_of(answer.view(), "n");
    stage.heading(&format!("Import {count} countries, and index them"))?;
    stage.typed("world", "db.countries.insertMany([...])")?;
    stage.typed("world", "db.countries.createIndex({region: 1, population: -1})")
}

fn query(stage: &mut Stage<'_>) -> Result<(), Failure> {
    let answer = stage.run(
        "world",
        r#"{"find": "countries", "filter": {"region": "Americas"}, "sort": {"population": -1},
            "limit": 3}"#,
    )?;
    let plan = stage.look(
        "world",
        r#"{"explain": {"find": "countries", "filter": {"region": "Americas"},
            "sort": {"population": -1}, "limit": 3}, "verbosity": "executionStats"}"#,
    )?;
    stage.heading("Ask by the index")?;
    stage.typed("world", "db.countries.find({region: \"Americas\"})")?;
    stage.typed("...", ".sort({population: -1}).limit(3)")?;
    for country in first_batch(&answer) {
        let (name, capital) = (text_of(country.view(), "name"), text_of(country.view(), "capital"));
        let population = grouped(count_of(country.view(), "population"));
        stage.text(&format!("{name:<16} {capital:<20} {population:>13}"))?;
    }
    let statistics = plan.get("executionStats").and_then(|value| value.as_document());
    let examined = statistics.map_or(0, |statistics| count_of(statistics, "totalDocsExamined"));
    let line = format!("the index has them in this order: {examined} documents were read");
    let line = stage.terminal.paint(Style::Quiet, line);
    stage.text(&line)
}

fn first_version(stage: &mut Stage<'_>) -> Result<(), Failure> {
    let id = commit(stage, "world", "the countries of the world")?;
    stage.heading("Record a version")?;
    stage.typed("world", "db.runCommand({frondCommit: 1, message: \"...\"})")?;
    print_commit(stage, &id, "the countries of the world")
}

fn branch(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.run("world", r#"{"frondBranch": 1, "branch": "census"}"#)?;
    stage.heading("Make a branch: one small record")?;
    stage.typed("world", "db.runCommand({frondBranch: 1, branch: \"census\"})")?;
    stage.typed("world", "use world@census")
}

fn change_both_sides(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.run(
        "world@census",
        r#"{"update": "countries", "updates": [{"q": {"region": "Africa"}, "multi": true,
            "u": {"$mul": {"population": 1.02}, "$set": {"census": 2026}}}]}"#,
    )?;
    let on_census = commit(stage, "world@census", "Africa grew by two percent")?;
    stage.run(
        "world",
        r#"{"update": "countries", "updates": [
            {"q": {"_id": "CIV"}, "u": {"$set": {"name": "Côte d’Ivoire"}}},
            {"q": {"_id": "TUR"}, "u": {"$set": {"name": "Türkiye"}}}]}"#,
    )?;
    let on_main = commit(stage, "world", "names as the countries write them")?;
    stage.heading("Change both sides")?;
    stage.typed("world@census", "db.countries.updateMany({region: \"Africa\"},")?;
    stage.typed("...", "{$mul: {population: 1.02}, $set: {census: 2026}})")?;
    print_commit(stage, &on_census, "Africa grew by two percent")?;
    stage.typed("world", "db.countries.updateOne({_id: \"CIV\"},")?;
    stage.typed("...", "{$set: {name: \"Côte d’Ivoire\"}})  // and Türkiye")?;
    print_commit(stage, &on_main, "names as the countries write them")
}

fn show_difference(stage: &mut Stage<'_>) -> Result<(), Failure> {
    let diff = r#"{"aggregate": 1, "pipeline": [{"$diff": {"from": "main", "to": "census"}}], "cursor": {}}"#;
    let answer = stage.run("world", diff)?;
    stage.heading("Compare, field by field")?;
    stage.typed("world", "db.aggregate([{$diff: {from: \"main\", to: \"census\"}}])")?;
    let mut printer = Printer::new(stage.terminal, INDENT, false, Some(&["CIV", "TUR"]));
    for row in first_batch(&answer) {
        printer.row(row.view())?;
    }
    printer.finish()
}

fn merge(stage: &mut Stage<'_>) -> Result<(), Failure> {
    let answer = stage.run("world", &merge_command("census: Africa"))?;
    let both = country(stage, "world", "CIV")?;
    stage.heading("Merge: field by field, too")?;
    stage.typed("world", "db.runCommand({frondMerge: 1, merge_in: \"census\"})")?;
    print_commit(stage, text_of(answer.view(), "commitId"), "census: Africa")?;
    stage.typed("world", "db.countries.findOne({_id: \"CIV\"})")?;
    let name = stage.terminal.paint(Style::Added, text_of(both.view(), "name"));
    let population = grouped(count_of(both.view(), "population"));
    let population = stage.terminal.paint(Style::Added, population);
    stage.text(&format!("{name} (from main), population {population} (from census)"))
}

fn make_conflict(stage: &mut Stage<'_>) -> Result<(), Failure> {
    set_population(stage, "world@census", 83_600_000)?;
    commit(stage, "world@census", "Germany, counted")?;
    set_population(stage, "world", 84_700_000)?;
    commit(stage, "world", "Germany, estimated")?;
    // The answer is ok: 0, since the merge waits: that is what this step shows.
    let refused = match stage.run("world", &merge_command("census: Germany")) {
        Err(Failure::Refused { answer, .. }) if text_of(answer.view(), "result") == "conflicts" => {
            answer
        }
        Err(failure) => return Err(failure),
        Ok(_) => return Err(Failure::failed("the tour expected a conflict")),
    };
    let answer = stage.run("world", r#"{"frondConflicts": 1}"#)?;
    let count: u64 =
        documents_of(refused.view(), "conflicts").map(|each| count_of(each, "count")).sum();
    stage.heading("The same field on both sides: a conflict")?;
    stage.typed("world", "db.runCommand({frondMerge: 1, merge_in: \"census\"})")?;
    let line = format!("ok: 0, conflicts: {count}");
    let line = stage.terminal.paint(Style::Removed, line);
    stage.text(&line)?;
    stage.typed("world", "db.runCommand({frondConflicts: 1})")?;
    for conflict in documents_of(answer.view(), "conflicts") {
        conflicts::print(stage.terminal, INDENT, conflict)?;
    }
    Ok(())
}

fn resolve_conflict(stage: &mut Stage<'_>) -> Result<(), Failure> {
    let answer = stage.run("world", r#"{"frondConflicts": 1}"#)?;
    let ids = documents_of(answer.view(), "conflicts").map(|each| text_of(each, "id").to_owned());
    for id in ids.collect::<Vec<String>>() {
        let command =
            format!(r#"{{"frondResolveConflict": 1, "id": "{id}", "resolution": "theirs"}}"#);
        stage.run("world", &command)?;
    }
    let message = "census: Germany, as counted";
    let command = format!(
        r#"{{"frondMerge": 1, "continue": true, "message": "{message}", "author": "{AUTHOR}"}}"#
    );
    let answer = stage.run("world", &command)?;
    let germany = country(stage, "world", "DEU")?;
    stage.heading("Decide, and end the merge")?;
    stage.typed("world", "db.runCommand({frondResolveConflict: 1, id: \"...\",")?;
    stage.typed("...", "resolution: \"theirs\"})")?;
    stage.typed("world", "db.runCommand({frondMerge: 1, continue: true})")?;
    print_commit(stage, text_of(answer.view(), "commitId"), message)?;
    let population = grouped(count_of(germany.view(), "population"));
    let population = stage.terminal.paint(Style::Added, population);
    stage.text(&format!("Germany's population is {population}"))
}

fn show_history(stage: &mut Stage<'_>) -> Result<(), Failure> {
    let answer = stage.run("world", r#"{"frondLog": 1}"#)?;
    let before = country(stage, "world@main~2", "DEU")?;
    let commits: Vec<Document<'_>> = documents_of(answer.view(), "commits").collect();
    stage.heading("Look back: versions are databases")?;
    stage.typed("world", "db.runCommand({frondLog: 1})")?;
    for commit in commits {
        write!(stage.terminal, "{INDENT}")?;
        log::one_line(stage.terminal, commit, "")?;
    }
    stage.typed("world", "use world@main~2")?;
    stage.typed("world@main~2", "db.countries.findOne({_id: \"DEU\"})")?;
    let population = grouped(count_of(before.view(), "population"));
    let population = stage.terminal.paint(Style::Strong, population);
    stage.text(&format!("Germany's population was {population}"))
}

fn conclude(
    terminal: &mut Terminal,
    directory: &Path,
    disk: u64,
    begun: Instant,
) -> Result<(), Failure> {
    let seconds = begun.elapsed().as_secs_f64();
    let summary = format!(
        "All of it, log and versions: {} on the disk, {seconds:.2} s with the printing.",
        bytes(disk)
    );
    writeln!(terminal, "\n{summary}")?;
    writeln!(
        terminal,
        "\n{}",
        terminal.paint(Style::Strong, "Now serve it, and use what you have:")
    )?;
    let serve = format!("frond serve --data {}", directory.display());
    writeln!(terminal, "{INDENT}{}", terminal.paint(Style::Accent, serve))?;
    for (program, lines) in [
        (
            "mongosh mongodb://127.0.0.1/world",
            [
                "db.countries.find({borders: \"CHE\"})",
                "db.getSiblingDB(\"world@main~4\").countries.findOne({_id: \"CIV\"})",
            ],
        ),
        (
            "python3  # pip install pymongo",
            [
                "from pymongo import MongoClient; world = MongoClient()[\"world\"]",
                "world.command(\"frondLog\", collection=\"countries\", document=\"DEU\")",
            ],
        ),
    ] {
        writeln!(terminal, "{INDENT}{}", terminal.paint(Style::Accent, program))?;
        for line in lines {
            writeln!(terminal, "{INDENT}  {line}")?;
        }
    }
    Ok(writeln!(terminal)?)
}

/// Commits, and returns the commit's id.
fn commit(stage: &mut Stage<'_>, database: &str, message: &str) -> Result<String, Failure> {
    let command = format!(r#"{{"frondCommit": 1, "message": "{message}", "author": "{AUTHOR}"}}"#);
    let answer = stage.run(database, &command)?;
    Ok(text_of(answer.view(), "commitId").to_owned())
}

fn merge_command(message: &str) -> String {
    format!(
        r#"{{"frondMerge": 1, "merge_in": "census", "message": "{message}", "author": "{AUTHOR}"}}"#
    )
}

fn set_population(stage: &mut Stage<'_>, database: &str, population: u64) -> Result<(), Failure> {
    let command = format!(
        r#"{{"update": "countries", "updates": [
            {{"q": {{"_id": "DEU"}}, "u": {{"$set": {{"population": {population}}}}}}}]}}"#
    );
    stage.run(database, &command).map(|_| ())
}

fn country(stage: &mut Stage<'_>, database: &str, id: &str) -> Result<DocumentBuf, Failure> {
    let command = format!(r#"{{"find": "countries", "filter": {{"_id": "{id}"}}, "limit": 1}}"#);
    let found = first_batch(&stage.look(database, &command)?);
    found.into_iter().next().ok_or_else(|| Failure::failed(format!("{database} has no {id}")))
}

fn print_commit(stage: &mut Stage<'_>, id: &str, message: &str) -> Result<(), Failure> {
    let id = stage.terminal.paint(Style::Changed, id);
    stage.text(&format!("{id} {message}"))
}

/// Makes `directory`, or takes it if it is empty.
fn empty_directory(directory: &Path) -> Result<PathBuf, Failure> {
    let in_directory = |error: io::Error| Failure::file(&directory.display().to_string(), &error);
    fs::create_dir_all(directory).map_err(in_directory)?;
    if fs::read_dir(directory).map_err(in_directory)?.next().is_some() {
        return Err(Failure::failed(format!(
            "{} is not empty: name a new directory for the tour",
            directory.display()
        )));
    }
    Ok(directory.to_owned())
}

/// A new directory among the system's temporary ones. It stays, so that it can be served.
fn temporary_directory() -> Result<PathBuf, Failure> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let name = format!("frond-tour-{}-{}", std::process::id(), now.subsec_micros());
    let directory = std::env::temp_dir().join(name);
    fs::create_dir(&directory)
        .map_err(|error| Failure::file(&directory.display().to_string(), &error))?;
    Ok(directory)
}
