//! Puts a dump into databases: collections are made, then filled, then indexed; views come last;
//! then all is committed, if that is asked for.
//!
//! A directory is read file by file. In an archive the collections lie in blocks, so that they are
//! filled in turns: what waits of one is written before the next one's block begins.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use std::time::Instant;

use frond_doc::DocumentBuf;

use crate::backend::Backend;
use crate::commands::import::dump::{self, Dump, DumpedCollection};
use crate::commands::import::progress::Progress;
use crate::commands::import::writer::{Report, Writer};
use crate::commands::import::{Goal, Import, drop_collection, open_file};
use crate::failure::Failure;
use crate::input::archive::{Archive, Archived, Namespace};
use crate::input::csv::EmptyCells;
use crate::input::{self, Format, compressed};
use crate::notice::print;
use crate::terminal::Terminal;

/// The code of a collection that is there already.
const NAMESPACE_EXISTS: i64 = 48;
/// Documents of an archive that are written together take so many bytes.
const BATCH_BYTES: usize = 8 << 20;
/// The bytes that are read of an archive at once.
const READ_BYTES: usize = 1 << 20;

type OpenArchive = (Archive<BufReader<Box<dyn Read + Send>>>, Progress);

impl Import {
    /// Imports what mongodump wrote to `place`.
    ///
    /// # Errors
    /// [`Failure::Failed`] if the dump can't be read, or documents were refused;
    /// [`Failure::Failed`] with the collection's name if its options or indexes were.
    pub fn import_dump(&self, place: &Path, terminal: &mut Terminal) -> Result<(), Failure> {
        let (database, collection) = (self.database.as_deref(), self.collection.as_deref());
        let (dump, archive) = if place.is_dir() {
            (dump::find(place, database, collection)?, None)
        } else {
            let (reader, progress) = open_archive(place)?;
            let (archive, archived) = Archive::open(reader)?;
            (dump::of_archive(archived, database, collection)?, Some((archive, progress)))
        };
        for name in &dump.left_out {
            print(format_args!("{name} is left out: it is the server's own"));
        }
        let mut series = dump.collections.iter().filter(|dumped| dumped.is_series());
        if self.mode == super::Mode::ReplaceAll
            && let Some(dumped) = series.next()
        {
            return Err(Failure::Usage(format!(
                "{}.{} is a time series, whose points can't be replaced: --drop instead of --mode \
                 replace-all",
                dumped.database, dumped.name
            )));
        }
        let mut backend = self.target.open_or_make_to_stream()?;
        let views = |dumped: &&DumpedCollection| dumped.is_view();
        for dumped in dump.collections.iter().filter(|dumped| !dumped.is_view()) {
            self.make(&mut *backend, dumped)?;
        }
        let total = match archive {
            Some(opened) => self.fill_from_archive(terminal, &mut *backend, &dump, opened)?,
            None => self.fill_from_files(terminal, &mut *backend, &dump)?,
        };
        for dumped in &dump.collections {
            if let Some(command) = dumped.create_indexes() {
                let made = backend.execute(&dumped.database, &command);
                made.map_err(|failure| refused(dumped, failure))?;
            }
        }
        for dumped in dump.collections.iter().filter(views) {
            self.make(&mut *backend, dumped)?;
            if !self.as_json.is_set() {
                writeln!(terminal, "made the view {}.{}", dumped.database, dumped.name)?;
            }
        }
        let mut done = Ok(());
        if total.failed > 0 {
            done = Err(Failure::Failed(self.failures_text(&total)));
        } else if let Some(message) = &self.commit {
            let names = dump.collections.iter().map(|dumped| dumped.database.as_str());
            for database in names.collect::<BTreeSet<_>>() {
                self.commit(terminal, &mut *backend, database, message)?;
            }
        }
        terminal.finish()?;
        backend.close()?;
        done
    }

    fn make(&self, backend: &mut dyn Backend, dumped: &DumpedCollection) -> Result<(), Failure> {
        if self.drop {
            drop_collection(backend, goal_of(dumped))?;
        }
        match backend.execute(&dumped.database, &dumped.create()) {
            // As mongorestore: what is there keeps its options.
            Err(Failure::Refused { code: NAMESPACE_EXISTS, .. }) => Ok(()),
            Err(failure) => Err(refused(dumped, failure)),
            Ok(_) => Ok(()),
        }
    }

    fn fill_from_files(
        &self,
        terminal: &mut Terminal,
        backend: &mut dyn Backend,
        dump: &Dump,
    ) -> Result<Report, Failure> {
        let mut total = Report::default();
        for dumped in &dump.collections {
            let Some(path) = &dumped.documents else { continue };
            let begun = Instant::now();
            let (reader, progress) = open_file(path)?;
            let source = input::open(reader, None, Format::Bson, EmptyCells::Kept)?;
            let report = self.import(backend, filled(dumped), source, &progress)?;
            progress.finish();
            self.print(terminal, filled(dumped), &report, begun)?;
            add(&mut total, &report);
            if self.stop_on_error && total.failed > 0 {
                break;
            }
        }
        Ok(total)
    }

    fn fill_from_archive(
        &self,
        terminal: &mut Terminal,
        backend: &mut dyn Backend,
        dump: &Dump,
        (mut archive, progress): OpenArchive,
    ) -> Result<Report, Failure> {
        let begun = Instant::now();
        let mut positions: HashMap<&Namespace, usize> = HashMap::new();
        let mut writers = Vec::new();
        for (position, dumped) in dump.collections.iter().enumerate() {
            positions.insert(&dumped.dumped_as, position);
            let Goal { database, collection } = filled(dumped);
            writers.push(Writer::new(database, collection, self.mode, self.stop_on_error));
        }
        let mut waiting = Waiting::default();
        while let Some(Archived { namespace, number, document }) = archive.next()? {
            let Some(position) = positions.get(&namespace).copied() else { continue };
            if waiting.position != position || self.is_full(&waiting) {
                waiting.write(&mut writers, backend, &progress)?;
                waiting.position = position;
            }
            match document {
                Ok(document) => waiting.add(document, number),
                Err(what) => writers[position].failed(number, &what, &progress),
            }
            if self.stop_on_error && writers[position].report.failed > 0 {
                break;
            }
        }
        waiting.write(&mut writers, backend, &progress)?;
        progress.finish();
        let mut total = Report::default();
        for (dumped, mut writer) in dump.collections.iter().zip(writers) {
            if dumped.is_view() {
                continue;
            }
            if self.mode == super::Mode::ReplaceAll && writer.report.failed == 0 {
                writer.remove_others(backend)?;
            }
            self.print(terminal, filled(dumped), &writer.report, begun)?;
            add(&mut total, &writer.report);
        }
        Ok(total)
    }

    fn is_full(&self, waiting: &Waiting) -> bool {
        waiting.documents.len() >= self.batch as usize || waiting.bytes >= BATCH_BYTES
    }
}

/// Documents of one collection that will be written together.
#[derive(Default)]
struct Waiting {
    /// The collection's place in the dump.
    position: usize,
    documents: Vec<DocumentBuf>,
    /// Their numbers in the archive.
    numbers: Vec<u64>,
    bytes: usize,
}

impl Waiting {
    fn add(&mut self, document: DocumentBuf, number: u64) {
        self.bytes += document.as_bytes().len();
        self.documents.push(document);
        self.numbers.push(number);
    }

    fn write(
        &mut self,
        writers: &mut [Writer<'_>],
        backend: &mut dyn Backend,
        progress: &Progress,
    ) -> Result<(), Failure> {
        if self.documents.is_empty() {
            return Ok(());
        }
        let Waiting { position, documents, numbers, .. } = std::mem::take(self);
        writers[position].write(backend, documents, &numbers, progress)
    }
}

fn goal_of(dumped: &DumpedCollection) -> Goal<'_> {
    Goal { database: &dumped.database, collection: &dumped.name }
}

/// Returns where a collection's documents are inserted.
fn filled(dumped: &DumpedCollection) -> Goal<'_> {
    Goal { database: &dumped.database, collection: &dumped.dumped_as.1 }
}

fn add(total: &mut Report, report: &Report) {
    total.failed += report.failed;
    total.duplicates += report.duplicates;
}

/// A refusal with the name of the collection whose options or indexes were refused.
fn refused(dumped: &DumpedCollection, failure: Failure) -> Failure {
    let Failure::Refused { message, .. } = &failure else { return failure };
    Failure::Failed(format!("{}.{}: {message}", dumped.database, dumped.name))
}

/// Opens an archive, compressed or not, to be counted as it is read.
fn open_archive(place: &Path) -> Result<(BufReader<Box<dyn Read + Send>>, Progress), Failure> {
    let (reader, progress): (Box<dyn Read + Send>, Progress) = if place == Path::new("-") {
        let progress = Progress::begin(None);
        (Box::new(progress.counting(io::stdin())), progress)
    } else {
        open_file(place)?
    };
    let plain = compressed::plain(reader).map_err(|error| Failure::file("archive", &error))?;
    Ok((BufReader::with_capacity(READ_BYTES, plain), progress))
}
