//! `frond repair`: a damaged data directory, made whole from its log, and from places that have the
//! same data.

use std::io::Write;
use std::path::PathBuf;

use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_remote::{HttpImage, RemoteUrl, tiered};
use frond_vcs::{ChunkSource, RepairReport};

use crate::arguments::Answer;
use crate::backend::{STOP_IT, is_in_use, open_failure};
use crate::commands::salvage;
use crate::commands::transfer::{Connection, Progress, absolute, check_place, failure};
use crate::directory::check_there;
use crate::failure::Failure;
use crate::output::{append_texts, count_value, counted, plain};
use crate::terminal::{Style, Terminal};

/// The number of damages that are shown; the rest is counted.
const SHOWN_MAX: usize = 20;
/// The name for a database that is only asked for chunks.
const ANY_DATABASE: &str = "repair";

const EXAMPLES: &str = "\
Examples:
  frond repair                                      from its own log alone: what was written last
  frond repair --from /mnt/backup                   a place of backups, or a plain remote
  frond repair ./frond-data --from s3://bucket/frond
  frond repair --from /home/bob/frond-data          another data directory: a clone, or a copy
  frond repair --from https://db.example.org:4224/shop --token-file token
                                                    a running server, of which shop is a database
  frond repair --from /mnt/backup --from ../clone   the first place; what it lacks, from the second

Reads everything, as frond fsck does, and fetches exactly the chunks that are damaged or missing from the \
places given, in their order, and from the directory's log, as far back as that goes. Chunks are named by their content: each is hashed before it is stored, and any place that \
has it will do. Damaged packs are removed once nothing in them is needed. Nothing else changes: branches, \
commits and documents stay where they are, what was written since the last backup included. \
What no place has is listed by branch, collection and _id, and stays lost.

  0   the directory is whole
  1   something is still lost; the output lists it
  3   the directory was damaged, and is whole again";

/// Repair a damaged data directory from its log, a backup, remote or clone
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Repair {
    /// Damaged data directory; no server may be using it
    #[arg(value_name = "DIR", conflicts_with = "data")]
    directory: Option<PathBuf>,

    /// The same directory, as an option like that of other commands
    #[arg(long, value_name = "DIR", default_value = "./frond-data")]
    data: PathBuf,

    /// Where intact copies are: a place of backups or a remote, as for frond backup and frond
    /// clone; may be repeated
    #[arg(long, value_name = "PLACE")]
    from: Vec<String>,

    #[command(flatten)]
    as_json: Answer,

    #[command(flatten)]
    connection: Connection,
}

impl Repair {
    /// Repairs.
    ///
    /// # Errors
    /// [`Failure::Failed`] if the directory or a place can't be read, or something stays lost;
    /// [`Failure::Warned`] if there was damage, and all of it is repaired.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let data = self.directory.as_ref().unwrap_or(&self.data);
        let shown = data.display();
        check_there(data, ": name one with --data")?;
        let sources = self.from.iter().map(|place| self.source(place));
        let sources: Vec<ChunkSource> = sources.collect::<Result<_, Failure>>()?;
        let progress = Progress::new();
        let report = tiered::repair(data, &sources, &mut |chunks| progress.look(chunks));
        progress.end();
        let report = report.map_err(|error| match is_in_use(&error) {
            true => open_failure(data, &error, STOP_IT),
            false => failure(error),
        })?;
        let is_json = self.as_json.print(terminal, &self.described(&report))?;
        if !is_json {
            self.print(terminal, &report)?;
        }
        if report.left.damages.is_empty() {
            if !is_json {
                let whole = terminal.paint(Style::Added, "whole");
                let chunks = counted(report.left.chunks, "chunk");
                writeln!(terminal, "{shown} is {whole}: {chunks}")?;
            }
            if report.damages.is_empty() {
                return Ok(());
            }
            terminal.finish()?;
            let places = counted(report.damages.len() as u64, "place");
            return Err(Failure::Warned(format!(
                "{shown} was damaged in {places}, and is whole again; check its disk"
            )));
        }
        terminal.finish()?;
        Err(Failure::failed(format!(
            "{shown} is still damaged in {}: repair it from another place too (--from), or delete or replace \
             what is listed; frond salvage writes all that can be read to a new directory",
            counted(report.left.damages.len() as u64, "place"),
        )))
    }

    fn print(&self, terminal: &mut Terminal, report: &RepairReport) -> Result<(), Failure> {
        for damage in report.damages.iter().take(SHOWN_MAX) {
            writeln!(terminal, "damaged: {}", terminal.paint(Style::Removed, plain(damage)))?;
        }
        if SHOWN_MAX < report.damages.len() {
            writeln!(terminal, "damaged: and {} more", report.damages.len() - SHOWN_MAX)?;
        }
        for (place, brought) in self.from.iter().zip(&report.brought) {
            writeln!(terminal, "{} from {}", counted(*brought, "chunk"), plain(place))?;
        }
        if 0 < report.from_log || self.from.is_empty() {
            writeln!(terminal, "{} from the log", counted(report.from_log, "chunk"))?;
        }
        for damage in report.left.damages.iter().take(SHOWN_MAX) {
            writeln!(terminal, "left: {}", terminal.paint(Style::Removed, plain(damage)))?;
        }
        if let Some(lost) = &report.left.lost {
            salvage::print_lost(terminal, lost)?;
        }
        Ok(())
    }

    fn described(&self, report: &RepairReport) -> DocumentBuf {
        let mut answer = DocumentBuilder::new();
        answer.append("whole", Value::Boolean(report.left.damages.is_empty()));
        answer.append("chunks", count_value(report.left.chunks));
        append_texts(&mut answer, "damages", &report.damages);
        answer.begin_array("brought");
        for (place, brought) in self.from.iter().zip(&report.brought) {
            answer.push_begin_document().append("from", Value::String(place));
            answer.append("chunks", count_value(*brought)).end();
        }
        answer.end();
        answer.append("fromLog", count_value(report.from_log));
        append_texts(&mut answer, "left", &report.left.damages);
        if let Some(lost) = &report.left.lost {
            answer.append("lost", Value::Document(salvage::described(lost).build().view()));
        }
        answer.build()
    }

    /// Returns the source of chunks from `place`.
    fn source(&self, place: &str) -> Result<ChunkSource, Failure> {
        let place = absolute(place)?;
        check_place(&place)?;
        let options = self.connection.options()?;
        if let RemoteUrl::Http(url) = RemoteUrl::parse(&place).map_err(failure)?
            && is_server_alone(&url)
        {
            let image = HttpImage::take(&url, &options).map_err(failure)?;
            return Ok(Box::new(move |hashes| {
                frond_vcs::remote::ImageSource::get_many(&image, hashes)
            }));
        }
        let remote = frond_remote::open(&place, ANY_DATABASE, &options).map_err(|error| {
            match is_in_use(&error) {
                true => Failure::failed(format!(
                    "{place} is in use by another process: if a server runs on it, have that serve it \
                     (frond serve --remote-listen HOST:PORT) and use http://HOST:PORT"
                )),
                false => Failure::failed(format!("{place}: {}", error.message)),
            }
        })?;
        Ok(Box::new(move |hashes| remote.get_many(hashes)))
    }
}

/// Whether an address names no database: then everything is asked, as for a backup.
fn is_server_alone(url: &str) -> bool {
    url.split_once("://").is_some_and(|(_, rest)| !rest.trim_end_matches('/').contains('/'))
}
