//! Documents as Parquet.
//!
//! A Parquet file has one schema, and documents need none. So all documents are read once into a
//! temporary file, while the types of each field are collected (`kind`); their columns (`column`)
//! are made from that file then, a group of rows at a time.

mod column;
mod kind;
mod leaf;

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;
use std::sync::Arc;

use frond_doc::extended_json::{self, Form};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use crate::failure::Failure;
use crate::input::parquet::TYPES;
use column::Columns;
use kind::{Kind, Typing};

/// The approximate memory of a group of rows.
const GROUP_BYTES: usize = 32 << 20;
/// Rows of a group at most.
const GROUP_ROWS_MAX: usize = 100_000;

/// Documents on their way into a Parquet file.
pub struct ParquetExport {
    documents: BufWriter<File>,
    root: Kind,
    typing: Typing,
    count: u64,
}

impl ParquetExport {
    /// Begins. `beside` is where the documents may wait: they take about as much as the collection.
    /// With `canonical`, numbers of different types aren't made equal.
    ///
    /// # Errors
    /// [`Failure::Failed`] if there can be no temporary file.
    pub fn begin(beside: Option<&Path>, canonical: bool) -> Result<ParquetExport, Failure> {
        let made = beside.map_or_else(tempfile::tempfile, tempfile::tempfile_in);
        let documents =
            BufWriter::new(made.map_err(|error| Failure::file("a temporary file", &error))?);
        let form = if canonical { Form::Canonical } else { Form::Relaxed };
        Ok(ParquetExport { documents, root: Kind::Nothing, typing: Typing { form }, count: 0 })
    }

    /// Takes one more document.
    ///
    /// # Errors
    /// [`Failure::Failed`] if the temporary file can't take it, or two of its fields have one name.
    pub fn add(&mut self, document: Document<'_>) -> Result<(), Failure> {
        self.count += 1;
        self.typing.note(&mut self.root, Value::Document(document), 0);
        if matches!(self.root, Kind::Json) {
            return Err(Failure::failed(format!(
                "document {}: Parquet has no room for two fields of one name, or for more than {} \
                 fields: --fields says which to write",
                self.count,
                kind::NAMES_MAX
            )));
        }
        Ok(self.documents.write_all(document.as_bytes())?)
    }

    /// Writes the file; returns how many documents it has.
    ///
    /// # Errors
    /// [`Failure::Failed`] if the temporary file can't be read, or `out` not be written.
    pub fn finish(self, out: &mut dyn Write) -> Result<u64, Failure> {
        let mut file = self.documents.into_inner().map_err(|error| error.into_error())?;
        file.rewind()?;
        let mut columns = Columns::of(self.root, &self.typing);
        let mut properties =
            WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
        if let Some(types) = types(&columns.texts) {
            let noted = KeyValue::new(TYPES.to_owned(), types);
            properties = properties.set_key_value_metadata(Some(vec![noted]));
        }
        let schema = columns.schema().map_err(|error| failed(&error))?;
        let writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build()));
        let mut writer = writer.map_err(|error| failed(&error))?;
        let mut documents = BufReader::new(file);
        for _ in 0..self.count {
            columns.add(read_document(&mut documents)?.view());
            if GROUP_BYTES <= columns.bytes || GROUP_ROWS_MAX <= columns.rows {
                write_group(&mut columns, &mut writer, out)?;
            }
        }
        if 0 < columns.rows {
            write_group(&mut columns, &mut writer, out)?;
        }
        out.write_all(&writer.into_inner().map_err(|error| failed(&error))?)?;
        Ok(self.count)
    }
}

/// The next of the documents that wait in the temporary file.
fn read_document(documents: &mut impl Read) -> std::io::Result<DocumentBuf> {
    let mut length = [0; size_of::<u32>()];
    documents.read_exact(&mut length)?;
    let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
    bytes[..length.len()].copy_from_slice(&length);
    documents.read_exact(&mut bytes[length.len()..])?;
    Ok(DocumentBuf::from_validated(bytes.into()))
}

/// Writes what rows there are, and what is written so far on to `out`.
fn write_group(
    columns: &mut Columns,
    writer: &mut SerializedFileWriter<Vec<u8>>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    columns.write(writer).map_err(|error| failed(&error))?;
    writer.flush()?;
    out.write_all(&std::mem::take(writer.inner_mut()))?;
    Ok(())
}

fn failed(error: &ParquetError) -> Failure {
    Failure::failed(format!("Parquet: {error}"))
}

/// Returns the types that the texts of some columns stand for.
fn types(texts: &[(Vec<String>, &'static str)]) -> Option<String> {
    if texts.is_empty() {
        return None;
    }
    let mut types = DocumentBuilder::new();
    types.begin_array("columns");
    for (path, name) in texts {
        types.push_begin_document().begin_array("path");
        for part in path {
            types.push(Value::String(part));
        }
        types.end().append("type", Value::String(name)).end();
    }
    types.end();
    let mut text = String::new();
    extended_json::write(types.build().view(), Form::Relaxed, &mut text);
    Some(text)
}
