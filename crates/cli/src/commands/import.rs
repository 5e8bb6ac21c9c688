//! `frond import`: reads documents from files, or dumps, into collections.
//!
//! 1. One thread reads and parses, and hands over batches; this one writes them: both cores work.
//! 2. A wrong document is reported with its line, and the import goes on, or stops.
//! 3. A dump is imported collection by collection, as `dump` finds them; of an archive, block by
//!    block (`restore`).
//! 4. Whatever the size of the file, only a few batches are in memory; whatever the size of a
//!    document that is inserted into a data directory, only some megabytes of it.

mod batches;
mod dump;
pub mod progress;
mod restore;
pub mod writer;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use frond_doc::{DocumentBuf, document};

use crate::arguments::{Answer, Author, Target};
use crate::backend::Backend;
use crate::commands::commit;
use crate::commands::import::batches::{BatchLimits, read_batches};
use crate::commands::import::progress::Progress;
use crate::commands::import::writer::{Mode, Report, Writer};
use crate::failure::Failure;
use crate::input::csv::EmptyCells;
use crate::input::parquet::ParquetSource;
use crate::input::{self, Format, Source};
use crate::output::{counted, grouped, plain};
use crate::terminal::{Style, Terminal};

/// The code of a commit of what the last version has already.
const NOTHING_CHANGED: i64 = 2;
/// The code of a collection or database that isn't there.
const NAMESPACE_NOT_FOUND: i64 = 26;

const EXAMPLES: &str = "\
Examples:
  frond import -d shop -c items items.jsonl
  frond import -d shop -c items items.csv --drop --commit 'prices of May'
  frond import -d shop@sale -c items items.json --mode upsert
  frond import -d shop -c items items.jsonl --mode replace-all --commit 'version 2'
  frond import -d shop -c items items.jsonl.gz    gzip and zstd are recognised
  xz -dc items.jsonl.xz | frond import -d shop -c items --uri 127.0.0.1:27017
  frond import --dump ./dump --commit 'from MongoDB'    what mongodump wrote, indexes too
  mongodump --archive | frond import --dump -           the same without files

JSON is one object after another (mostly one a line) or one array, plain or extended ({\"$oid\": ...}). In CSV \
the first line names the fields, address.city makes nested documents, and a cell that reads as a \
number becomes one. The exit code is 1 if any document could not be imported.";

/// Import JSON, CSV, TSV, BSON or Parquet into a collection, or a dump of mongodump into databases
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(
    override_usage = "frond import [OPTIONS] --database <DATABASE> --collection <COLLECTION> [FILE]
       frond import [OPTIONS] --dump <DIR>"
)]
pub struct Import {
    /// File to read; - or nothing reads standard input
    file: Option<PathBuf>,

    /// Database, or DATABASE@BRANCH; with --dump, the name for its only database, or which one of
    /// several to import
    #[arg(short, long, value_name = "DATABASE", required_unless_present = "dump")]
    database: Option<String>,

    /// Collection; with --dump, only this one
    #[arg(short, long, required_unless_present = "dump")]
    collection: Option<String>,

    /// Import what mongodump wrote: collections with their options, indexes and views. A directory,
    /// or the file of mongodump --archive; - reads such a file from standard input
    #[arg(long, value_name = "DIR", conflicts_with_all = ["file", "format", "ignore_blanks"])]
    dump: Option<PathBuf>,

    /// Format of the file
    #[arg(long, value_enum, default_value = "auto")]
    format: Format,

    /// What to do with documents whose _id already exists
    #[arg(long, value_enum, default_value = "insert")]
    mode: Mode,

    /// Drop the collection and its indexes first
    #[arg(long)]
    drop: bool,

    /// Documents per transaction
    #[arg(long, value_name = "COUNT", default_value = "2000",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch: u32,

    /// Stop at the first document that can't be imported, instead of reporting it and continuing
    #[arg(long)]
    stop_on_error: bool,

    /// Leave out fields whose cell is empty (CSV), or that are null (Parquet)
    #[arg(long)]
    ignore_blanks: bool,

    /// Record a version with this message once everything is imported
    #[arg(long, value_name = "MESSAGE")]
    commit: Option<String>,

    #[command(flatten)]
    author: Author,

    #[command(flatten)]
    as_json: Answer,

    #[command(flatten)]
    target: Target,
}

impl Import {
    /// Imports the file.
    ///
    /// # Errors
    /// [`Failure::Usage`]; [`Failure::Failed`] if the file can't be read, or documents were
    /// refused.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        self.target.prepare_to_stream();
        if let Some(dump) = &self.dump {
            return self.import_dump(dump, terminal);
        }
        let (Some(database), Some(collection)) = (&self.database, &self.collection) else {
            return Err(Failure::Usage("--database and --collection are needed".to_owned()));
        };
        let goal = Goal { database, collection };
        let (source, progress) = self.open_source()?;
        let mut backend = self.target.open_or_make_to_stream()?;
        let begun = Instant::now();
        if self.drop {
            drop_collection(&mut *backend, goal)?;
        }
        let report = self.import(&mut *backend, goal, source, &progress)?;
        progress.finish();
        self.print(terminal, goal, &report, begun)?;
        let mut done = Ok(());
        if report.failed > 0 {
            done = Err(Failure::Failed(self.failures_text(&report)));
        } else if let Some(message) = &self.commit {
            self.commit(terminal, &mut *backend, database, message)?;
        }
        terminal.finish()?;
        backend.close()?;
        done
    }

    fn open_source(&self) -> Result<(Source, Progress), Failure> {
        if let Some(path) = self.path().filter(|path| self.is_parquet(path)) {
            return self.open_parquet(path);
        }
        let blanks = if self.ignore_blanks { EmptyCells::Ignored } else { EmptyCells::Kept };
        let (reader, progress) = match self.path() {
            None => {
                let progress = Progress::begin(None);
                let reader: Box<dyn Read + Send> = Box::new(progress.counting(io::stdin()));
                (reader, progress)
            }
            Some(path) => open_file(path)?,
        };
        let name = self.path().map(|path| path.to_string_lossy().into_owned());
        Ok((input::open(reader, name.as_deref(), self.format, blanks)?, progress))
    }

    /// Whether a file is one of Parquet: by the option, its name, or how it begins.
    fn is_parquet(&self, path: &Path) -> bool {
        let by_name = || path.extension().is_some_and(|it| it.eq_ignore_ascii_case("parquet"));
        let is_guessed = self.format == Format::Auto;
        self.format == Format::Parquet || (is_guessed && (by_name() || begins_as_parquet(path)))
    }

    fn open_parquet(&self, path: &Path) -> Result<(Source, Progress), Failure> {
        let (file, bytes) = open_plain(path)?;
        let progress = Progress::begin(bytes);
        let source = ParquetSource::open(file, progress.advancing(), self.ignore_blanks)?;
        Ok((Box::new(source), progress))
    }

    fn path(&self) -> Option<&Path> {
        self.file.as_deref().filter(|path| *path != Path::new("-"))
    }

    fn import(
        &self,
        backend: &mut dyn Backend,
        goal: Goal<'_>,
        source: Source,
        progress: &Progress,
    ) -> Result<Report, Failure> {
        let mut writer = Writer::new(goal.database, goal.collection, self.mode, self.stop_on_error);
        let limits = BatchLimits {
            documents_max: self.batch as usize,
            stops_on_problem: self.stop_on_error,
        };
        read_batches(source, limits, |batch| {
            let before = writer.report.failed;
            for (line, what) in batch.problems {
                writer.failed(line, &what, progress);
            }
            writer.write(backend, batch.documents, &batch.lines, progress)?;
            if let Some((line, text)) = batch.streamed {
                writer.stream(backend, text, line, progress)?;
            }
            Ok(!self.stop_on_error || writer.report.failed == before)
        })?;
        if self.mode == Mode::ReplaceAll && writer.report.failed == 0 {
            writer.remove_others(backend)?;
        }
        Ok(writer.report)
    }

    fn print(
        &self,
        terminal: &mut Terminal,
        goal: Goal<'_>,
        report: &Report,
        begun: Instant,
    ) -> Result<(), Failure> {
        if self.as_json.print(terminal, &report.as_document(goal.database, goal.collection))? {
            return Ok(());
        }
        let seconds = begun.elapsed().as_secs_f64();
        let written = report.inserted + report.replaced + report.unchanged;
        let rate = grouped((written as f64 / seconds.max(1e-6)) as u64);
        let name = plain(&format!("{}.{}", goal.database, goal.collection));
        let what = terminal.paint(Style::Strong, counted(written, "document"));
        let cost = format!("{seconds:.2} s, {rate} documents/s");
        let cost = terminal.paint(Style::Quiet, cost);
        writeln!(terminal, "imported {what} into {name}  {cost}")?;
        if self.mode != Mode::Insert {
            writeln!(
                terminal,
                "  {} inserted, {} replaced, {} unchanged, {} removed",
                grouped(report.inserted),
                grouped(report.replaced),
                grouped(report.unchanged),
                grouped(report.removed),
            )?;
        }
        Ok(())
    }

    fn failures_text(&self, report: &Report) -> String {
        let mut text = format!("{} could not be imported", counted(report.failed, "document"));
        if self.stop_on_error {
            text.push_str(": stopped there (--stop-on-error)");
        }
        if self.mode == Mode::Insert && report.duplicates > 0 {
            text.push_str("; --mode upsert replaces those that are there");
        }
        if self.mode == Mode::ReplaceAll {
            text.push_str("; nothing was removed");
        }
        if self.commit.is_some() {
            text.push_str("; no version was recorded");
        }
        text
    }

    fn commit(
        &self,
        terminal: &mut Terminal,
        backend: &mut dyn Backend,
        database: &str,
        message: &str,
    ) -> Result<(), Failure> {
        let command = commit::command(message, self.author.of(&self.target).as_deref());
        match backend.execute(database, &command) {
            Ok(answer) => match self.as_json.print(terminal, &answer)? {
                true => Ok(()),
                false => commit::print(terminal, &answer),
            },
            Err(Failure::Refused { code: NOTHING_CHANGED, .. }) => {
                self.print_no_commit(terminal, "the last version holds the same")
            }
            // There is no such database yet.
            Err(Failure::Refused { code: NAMESPACE_NOT_FOUND, .. }) => {
                self.print_no_commit(terminal, "no document was imported")
            }
            Err(failure) => Err(failure),
        }
    }

    fn print_no_commit(&self, terminal: &mut Terminal, why: &str) -> Result<(), Failure> {
        if !self.as_json.is_set() {
            writeln!(terminal, "nothing to commit: {why}")?;
        }
        Ok(())
    }
}

/// The collection to fill.
#[derive(Clone, Copy)]
struct Goal<'a> {
    database: &'a str,
    collection: &'a str,
}

/// Opens a file, to be counted as it is read.
fn open_file(path: &Path) -> Result<(Box<dyn Read + Send>, Progress), Failure> {
    let (file, bytes) = open_plain(path)?;
    let progress = Progress::begin(bytes);
    Ok((Box::new(progress.counting(file)), progress))
}

/// Whether a file begins with Parquet's magic bytes.
fn begins_as_parquet(path: &Path) -> bool {
    const MAGIC: [u8; 4] = *b"PAR1";
    let mut first = [0; MAGIC.len()];
    // An input that is no file can't be read twice.
    path.is_file()
        && File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok()
        && first == MAGIC
}

/// Opens what is no directory, and returns its size where it has one.
fn open_plain(path: &Path) -> Result<(File, Option<u64>), Failure> {
    let in_file = |error| Failure::file(&path.display().to_string(), &error);
    let file = File::open(path).map_err(in_file)?;
    let metadata = file.metadata().map_err(in_file)?;
    if metadata.is_dir() {
        let what = format!("{} is a directory, not a file", path.display());
        return Err(Failure::failed(what));
    }
    // A pipe has no size that could be known.
    Ok((file, metadata.is_file().then_some(metadata.len())))
}

/// Drops a collection, if it is there.
fn drop_collection(backend: &mut dyn Backend, goal: Goal<'_>) -> Result<(), Failure> {
    let command: DocumentBuf = document! { "drop": goal.collection };
    match backend.execute(goal.database, &command) {
        Err(Failure::Refused { code: NAMESPACE_NOT_FOUND, .. }) => Ok(()),
        other => other.map(|_| ()),
    }
}
