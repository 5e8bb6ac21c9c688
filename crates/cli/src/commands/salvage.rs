//! `frond salvage`: what can be read of a damaged data directory, in a new one.

use std::io::Write;
use std::path::PathBuf;

use frond_doc::{DocumentBuilder, Value};
use frond_remote::tiered;
use frond_vcs::{LostPart, SalvageReport, SalvagedCollection};

use crate::arguments::Answer;
use crate::backend::{STOP_IT, is_in_use, open_failure};
use crate::commands::transfer::{Progress, failure};
use crate::directory::check_usable;
use crate::failure::Failure;
use crate::output::{append_texts, count_value, counted, plain};
use crate::terminal::{Style, Terminal};

/// The number of lost parts of a collection, and of damages of files, that are shown; the rest is
/// counted.
const SHOWN_MAX: usize = 20;

const EXAMPLES: &str = "\
Examples:
  frond salvage --data ./frond-data --to ./saved
  frond fsck --data ./saved                         check the new directory

Reads every chunk of a damaged directory, whatever its manifest and indexes say, and its log, and writes everything that can be read to \
a new directory: complete commits, with their ids, and every document of each branch's working state, \
with indexes built anew. Lost documents are listed. The damaged directory is only read: keep it, since a \
later version may be able to read more of it. This temporarily needs twice the space of the data.

  0   everything is there
  1   something is lost, or nothing could be saved; the output says what";

/// Write what can be read of a damaged data directory into a new one
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Salvage {
    /// Damaged data directory; no server may be using it
    #[arg(long, value_name = "DIR", default_value = "./frond-data")]
    data: PathBuf,

    /// New directory to write to
    #[arg(long, value_name = "NEWDIR")]
    to: PathBuf,

    #[command(flatten)]
    as_json: Answer,
}

impl Salvage {
    /// Salvages.
    ///
    /// # Errors
    /// [`Failure::Failed`] if one of the directories can't be used, or something is lost.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let (from, to) = (self.data.display(), self.to.display());
        // It may lack its manifest.
        if !self.data.is_dir() {
            return Err(Failure::failed(format!(
                "there is no directory {from}: name it with --data"
            )));
        }
        check_usable(&self.to)?;
        let progress = Progress::new();
        let report = tiered::salvage(&self.data, &self.to, &mut |chunks| progress.look(chunks));
        progress.end();
        let report = report.map_err(|error| match is_in_use(&error) {
            true => open_failure(&self.data, &error, STOP_IT),
            false => failure(error),
        })?;
        if !self.as_json.print(terminal, &described(&report).build())? {
            print(terminal, &report)?;
        }
        terminal.finish()?;
        if report.is_whole() {
            return Ok(());
        }
        Err(Failure::failed(format!("not all of {from} could be read: {to} has the rest")))
    }
}

/// Prints what was saved and what is lost.
///
/// # Errors
/// [`Failure::ReaderGone`] if nothing reads the output.
pub fn print(terminal: &mut Terminal, report: &SalvageReport) -> Result<(), Failure> {
    show(terminal, "damaged: ", &report.damages)?;
    for collection in &report.collections {
        print_collection(terminal, collection)?;
    }
    print_rest(terminal, report)?;
    let (chunks, commits) = (counted(report.chunks, "chunk"), counted(report.commits, "commit"));
    writeln!(terminal, "{chunks} read, {commits} saved")?;
    Ok(())
}

/// Returns the saved and the lost things, as a document.
pub fn described(report: &SalvageReport) -> DocumentBuilder {
    let mut answer = DocumentBuilder::new();
    answer.append("whole", Value::Boolean(report.is_whole()));
    answer.append("chunks", count_value(report.chunks));
    answer.append("commits", count_value(report.commits));
    append_texts(&mut answer, "damages", &report.damages);
    answer.begin_array("collections");
    for collection in &report.collections {
        let SalvagedCollection { database, name, documents, from_commit, lost, indexes } =
            collection;
        answer.push_begin_document().append("database", Value::String(database));
        answer.append("collection", Value::String(name));
        answer.append("documents", count_value(*documents));
        answer.append("fromCommit", count_value(*from_commit));
        answer.begin_array("lost");
        for part in lost {
            append_lost(answer.push_begin_document(), part);
            answer.end();
        }
        answer.end();
        append_texts(&mut answer, "indexes", indexes);
        answer.end();
    }
    answer.end().begin_array("commitsLost");
    for (database, id) in &report.commits_lost {
        answer.push_begin_document().append("database", Value::String(database));
        answer.append("commitId", Value::String(&id.to_string())).end();
    }
    answer.end();
    append_texts(&mut answer, "notes", &report.notes);
    answer
}

/// Appends a part that is lost; an `_id` is shown as JSON, a bound that is missing by no field.
fn append_lost(answer: &mut DocumentBuilder, part: &LostPart) {
    match part {
        LostPart::Document(id) => {
            answer.append("_id", Value::String(id));
        }
        LostPart::Range(after, up_to, count) => {
            for (name, bound) in [("after", after), ("upTo", up_to)] {
                if let Some(bound) = bound {
                    answer.append(name, Value::String(bound));
                }
            }
            if let Some(count) = count {
                answer.append("documents", count_value(*count));
            }
        }
        LostPart::Whole(why) => {
            answer.append("all", Value::String(why));
        }
    }
}

/// Prints what is lost.
///
/// # Errors
/// [`Failure::ReaderGone`] if nothing reads the output.
pub fn print_lost(terminal: &mut Terminal, report: &SalvageReport) -> Result<(), Failure> {
    for SalvagedCollection { database, name, documents, lost, .. } in &report.collections {
        let strong = terminal.paint(Style::Strong, format!("{}.{}", plain(database), plain(name)));
        let documents = counted(*documents, "document");
        writeln!(terminal, "  {strong}: {documents} can be read")?;
        show(terminal, "    lost: ", &lost.iter().map(lost_text).collect::<Vec<_>>())?;
    }
    print_rest(terminal, report)
}

/// Prints which commits are lost, and what else.
fn print_rest(terminal: &mut Terminal, report: &SalvageReport) -> Result<(), Failure> {
    let lost: Vec<String> = report
        .commits_lost
        .iter()
        .map(|(database, id)| format!("{}: commit {id} isn't whole", plain(database)))
        .collect();
    show(terminal, "lost: ", &lost)?;
    show(terminal, "", &report.notes)
}

fn print_collection(
    terminal: &mut Terminal,
    collection: &SalvagedCollection,
) -> Result<(), Failure> {
    let SalvagedCollection { database, name, documents, from_commit, lost, indexes } = collection;
    let name = format!("{}.{}", plain(database), plain(name));
    let strong = terminal.paint(Style::Strong, &name);
    let older = match from_commit {
        0 => String::new(),
        count => format!(", {} of them as the last commit has them", counted(*count, "document")),
    };
    writeln!(terminal, "{strong}: {} saved{older}", counted(*documents, "document"))?;
    let lost: Vec<String> = lost.iter().map(lost_text).collect();
    show(terminal, "  lost: ", &lost)?;
    show(terminal, "  ", indexes)
}

fn lost_text(part: &LostPart) -> String {
    let bound = |id: &Option<String>, none: &str| id.clone().unwrap_or_else(|| none.to_owned());
    match part {
        LostPart::Document(id) => format!("the document with _id {id}"),
        LostPart::Range(after, up_to, count) => {
            let count = match count {
                Some(count) => counted(*count, "document"),
                None => "documents".to_owned(),
            };
            let (after, up_to) = (bound(after, "the first"), bound(up_to, "the last"));
            format!("{count}, _id from {after} (not it) to {up_to}")
        }
        LostPart::Whole(why) => format!("all of it: {why}"),
    }
}

fn show(terminal: &mut Terminal, before: &str, lines: &[String]) -> Result<(), Failure> {
    for line in lines.iter().take(SHOWN_MAX) {
        writeln!(terminal, "{before}{}", terminal.paint(Style::Removed, plain(line)))?;
    }
    if SHOWN_MAX < lines.len() {
        writeln!(terminal, "{before}and {} more", lines.len() - SHOWN_MAX)?;
    }
    Ok(())
}
