//! `frond export`: a collection, at any version, as JSON lines, one JSON array, CSV, or Parquet.

mod parquet;

use std::io::{self, Write};
use std::path::PathBuf;

use frond_doc::extended_json::{self, Form};
use frond_doc::path::Path;
use frond_doc::pieces::JsonWriter;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, decimal, document};

use crate::arguments::Target;
use crate::backend::Backend;
use crate::commands::export::parquet::ParquetExport;
use crate::commands::log::without_moment;
use crate::failure::Failure;
use crate::notice::print;
use crate::output::{counted, json};
use crate::output_file::WholeFile;
use crate::terminal::{Terminal, is_output_closed};

const EXAMPLES: &str = "\
Examples:
  frond export -d shop -c items > items.jsonl
  frond export -d shop@main~2 -c items --format array -o items.json
  frond export -d shop -c items --format csv --fields _id,name,address.city
  frond export -d shop@main~2 -c items -o items.parquet
  frond export -d shop -c items --query '{\"price\": {\"$gt\": 100}}'

Relaxed JSON reads well, but an integer may come back with another width; --canonical keeps every type \
exactly. In Parquet a field with values of several types becomes a column of JSON; without --canonical, \
numbers of several types become one type if that changes none of them.";

/// The code of what can't be done with a view.
const COMMAND_NOT_SUPPORTED_ON_VIEW: i64 = 166;

/// What names of compressed files end in, and the program that compresses so.
const COMPRESSORS: [(&str, &str); 4] =
    [("bz2", "bzip2"), ("gz", "gzip"), ("xz", "xz"), ("zst", "zstd")];

/// How the documents are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Format {
    /// One document per line
    Json,
    /// One JSON array
    Array,
    /// Comma-separated values; needs --fields
    Csv,
    /// Columns, for data tools
    Parquet,
}

/// Write a collection as JSON, CSV or Parquet
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Export {
    /// Database, or DATABASE@VERSION
    #[arg(short, long, value_name = "DATABASE")]
    database: String,

    /// Collection
    #[arg(short, long)]
    collection: String,

    /// File to write; - or nothing writes standard output
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Format of the output; by default what the file's name ends in, or else json
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// Only these fields (dotted paths), separated by commas; the columns of CSV
    #[arg(short, long, value_delimiter = ',', value_name = "FIELD,...")]
    fields: Vec<String>,

    /// Only documents that match this filter
    #[arg(short, long, value_name = "JSON")]
    query: Option<String>,

    /// Write canonical extended JSON, which keeps every type exactly
    #[arg(long)]
    canonical: bool,

    #[command(flatten)]
    target: Target,
}

impl Export {
    /// Writes the documents as they come, a batch at a time.
    ///
    /// # Errors
    /// [`Failure::Usage`] for CSV without columns; as [`Target::open`]; [`Failure::Failed`] if the
    /// file can't be written.
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        self.target.prepare_to_stream();
        let format = self.format()?;
        if format == Format::Csv && self.fields.is_empty() {
            return Err(Failure::Usage(
                "CSV needs --fields: which columns, in which order".to_owned(),
            ));
        }
        if self.file().is_none() && is_output_closed() {
            return Err(Failure::failed("output: it is closed: --out names a file"));
        }
        let command = self.command(format)?;
        let mut backend = self.target.open_to_stream()?;
        let count = match self.file() {
            None => {
                let written = self.write(&mut *backend, &command, format, terminal);
                let written = written.and_then(|count| terminal.finish().map(|()| count));
                written.map_err(cut_short)?
            }
            Some(path) => {
                let in_file = |error| Failure::file(&path.display().to_string(), &error);
                let mut file = WholeFile::begin(path).map_err(in_file)?;
                let count = self.write(&mut *backend, &command, format, &mut file);
                let count = count.map_err(|failure| file.failure().map_or(failure, in_file))?;
                if count == 0 {
                    self.check_database(&mut *backend)?;
                }
                file.finish().map_err(in_file)?;
                count
            }
        };
        if count == 0 && self.file().is_none() {
            self.check_database(&mut *backend)?;
        }
        let why = match count == 0 && !self.collection_exists(&mut *backend)? {
            true => format!(": {} has no collection {}", self.database, self.collection),
            false => String::new(),
        };
        print(format_args!("exported {}{why}", counted(count, "document")));
        backend.close()
    }

    /// The file to write; `None`: standard output.
    fn file(&self) -> Option<&std::path::Path> {
        self.out.as_deref().filter(|path| path.as_os_str() != "-")
    }

    /// The format that was named, or else that of the file's name.
    fn format(&self) -> Result<Format, Failure> {
        if let Some(format) = self.format {
            return Ok(format);
        }
        let extension = self.file().and_then(|path| path.extension());
        let extension = extension.unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        if let Some((_, program)) = COMPRESSORS.iter().find(|(named, _)| *named == extension) {
            let (database, collection) = (&self.database, &self.collection);
            return Err(Failure::Usage(format!(
                "frond export compresses nothing: pipe it, as in  frond export -d {database} \
                 -c {collection} | {program} > FILE.{extension}"
            )));
        }
        match extension.as_str() {
            "csv" => Ok(Format::Csv),
            "parquet" => Ok(Format::Parquet),
            "tsv" | "bson" | "xlsx" => Err(Failure::Usage(format!(
                "{extension} isn't written: --format json, array, csv or parquet says what is"
            ))),
            _ => Ok(Format::Json),
        }
    }

    /// Fails if there is no such database: it has no collections and is no error to a reader, but
    /// its history says so.
    fn check_database(&self, backend: &mut dyn Backend) -> Result<(), Failure> {
        let command = document! { "frondLog": 1_i32, "limit": 1_i32 };
        backend.execute(without_moment(&self.database), &command).map(drop)
    }

    /// Whether there is such a collection.
    fn collection_exists(&self, backend: &mut dyn Backend) -> Result<bool, Failure> {
        let filter = document! { "name": &*self.collection };
        let command = document! { "listCollections": 1, "nameOnly": true, "filter": &filter };
        let mut is_there = false;
        backend.for_each_document(&self.database, &command, &mut |_| {
            is_there = true;
            Ok(())
        })?;
        Ok(is_there)
    }

    fn command(&self, format: Format) -> Result<DocumentBuf, Failure> {
        let mut command = DocumentBuilder::new();
        command.append("find", Value::String(&self.collection));
        if let Some(query) = &self.query {
            let filter = extended_json::parse(query)
                .map_err(|error| Failure::Usage(format!("--query is not a document: {error}")))?;
            command.append("filter", Value::Document(filter.view()));
        }
        if !self.fields.is_empty() {
            command.begin_document("projection");
            if !self.fields.iter().any(|field| field == "_id") && format == Format::Csv {
                command.append("_id", Value::Int32(0));
            }
            for field in &self.fields {
                command.append(field, Value::Int32(1));
            }
            command.end();
        }
        command.append("batchSize", Value::Int32(10_000));
        Ok(command.build())
    }

    fn write(
        &self,
        backend: &mut dyn Backend,
        command: &DocumentBuf,
        format: Format,
        out: &mut dyn Write,
    ) -> Result<u64, Failure> {
        match format {
            Format::Json => self.write_json(backend, command, out, ["", "\n", "\n", ""]),
            Format::Array => self.write_json(backend, command, out, ["[", "\n", ",\n", "]\n"]),
            Format::Csv => self.write_csv(backend, command, out),
            Format::Parquet => self.write_parquet(backend, command, out),
        }
    }

    /// Writes JSON between the four separators: what comes first, behind the last document, between
    /// two documents, and at the end.
    fn write_json(
        &self,
        backend: &mut dyn Backend,
        command: &DocumentBuf,
        out: &mut dyn Write,
        [first, behind, between, end]: [&str; 4],
    ) -> Result<u64, Failure> {
        let form = if self.canonical { Form::Canonical } else { Form::Relaxed };
        let mut json = JsonWriter::new(form);
        json.push(first);
        let mut count = 0;
        let mut between = |json: &mut JsonWriter| {
            count += 1;
            if count > 1 {
                json.push(between);
            }
        };
        let mut done = self.export_stored(backend, &mut json, out, &mut between);
        if let Ok(false) = done {
            let visited = backend.for_each_document(&self.database, command, &mut |document| {
                between(&mut json);
                Ok(json.write(document, out)?)
            });
            done = visited.map(|()| true);
        }
        if done.is_ok() {
            json.push(if count > 0 { behind } else { "" });
            json.push(end);
        }
        // What came before a failure is there, too.
        let finished = json.finish(out);
        done?;
        finished?;
        Ok(count)
    }

    /// Writes whole documents as they are stored, however large; `false` if a command must be
    /// asked: of a server, a view, or some fields.
    fn export_stored(
        &self,
        backend: &mut dyn Backend,
        json: &mut JsonWriter,
        out: &mut dyn Write,
        between: &mut dyn FnMut(&mut JsonWriter),
    ) -> Result<bool, Failure> {
        let Some(frond) = backend.embedded().filter(|_| self.fields.is_empty()) else {
            return Ok(false);
        };
        let filter = self.query.as_deref().map(extended_json::parse).transpose();
        let filter = filter.map_err(|error| Failure::Usage(format!("--query: {error}")))?;
        let filter = filter.as_ref().map(DocumentBuf::view);
        let database = frond.database(&self.database)?;
        let mut out = NotingOutput { out, failure: None };
        let done = database.export(&self.collection, filter, &mut |document| {
            between(json);
            let written = document.write_json(json, &mut out);
            written.map_err(|error| out.failure.take().unwrap_or_else(|| error.into()))
        });
        match done {
            Ok(()) => Ok(true),
            Err(Failure::Refused { code: COMMAND_NOT_SUPPORTED_ON_VIEW, .. }) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    fn write_parquet(
        &self,
        backend: &mut dyn Backend,
        command: &DocumentBuf,
        out: &mut dyn Write,
    ) -> Result<u64, Failure> {
        let beside = self.file().and_then(|path| path.parent());
        let beside = beside.map(|directory| match directory.as_os_str().is_empty() {
            true => std::path::Path::new("."),
            false => directory,
        });
        let mut export = ParquetExport::begin(beside, self.canonical)?;
        backend.for_each_document(&self.database, command, &mut |document| export.add(document))?;
        export.finish(out)
    }

    fn write_csv(
        &self,
        backend: &mut dyn Backend,
        command: &DocumentBuf,
        out: &mut dyn Write,
    ) -> Result<u64, Failure> {
        let paths: Vec<Path> = self.fields.iter().map(|field| Path::new(field)).collect();
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(&self.fields).map_err(csv_failure)?;
        let mut count = 0;
        backend.for_each_document(&self.database, command, &mut |document| {
            for path in &paths {
                writer.write_field(cell(path, document)).map_err(csv_failure)?;
            }
            count += 1;
            writer.write_record(None::<&[u8]>).map_err(csv_failure)
        })?;
        writer.flush()?;
        Ok(count)
    }
}

/// Output that remembers why it can't be written: a database's error has no more than its words.
struct NotingOutput<'a> {
    out: &'a mut dyn Write,
    failure: Option<Failure>,
}

impl NotingOutput<'_> {
    fn note<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &done {
            let same = match error.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code),
                None => io::Error::new(error.kind(), error.to_string()),
            };
            self.failure = Some(same.into());
        }
        done
    }
}

impl Write for NotingOutput<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.out.write(bytes);
        self.note(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.out.flush();
        self.note(done)
    }
}

/// The reader of an export wants all of it: that it is gone is a failure.
fn cut_short(failure: Failure) -> Failure {
    match failure {
        Failure::ReaderGone => {
            Failure::failed("output: its reader is gone: the export is not complete")
        }
        other => other,
    }
}

fn csv_failure(error: csv::Error) -> Failure {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error.into(),
        other => Failure::failed(format!("{other:?}")),
    }
}

/// A value as mongoexport writes it into a cell: text as it is, numbers in decimal, nothing where
/// there is none, and JSON for what CSV has no form for.
fn cell(path: &Path, document: Document<'_>) -> String {
    match path.get(document) {
        None | Some(Value::Null | Value::Undefined) => String::new(),
        Some(Value::String(text) | Value::Symbol(text)) => text.to_owned(),
        Some(Value::Int32(number)) => number.to_string(),
        Some(Value::Int64(number)) => number.to_string(),
        Some(Value::Double(number)) => number.to_string(),
        Some(Value::Decimal128(number)) => decimal::to_string(number),
        Some(Value::Boolean(boolean)) => boolean.to_string(),
        Some(Value::ObjectId(id)) => format!("ObjectId({id})"),
        Some(Value::DateTime(millis)) => date(millis),
        Some(other) => json(other),
    }
}

/// `2026-11-21T02:46:10.000Z`.
fn date(millis: i64) -> String {
    match jiff::Timestamp::from_millisecond(millis) {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        Err(_) => json(Value::DateTime(millis)),
    }
}
