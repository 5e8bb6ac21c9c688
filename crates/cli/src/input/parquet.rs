//! Parquet: rows to documents, one a row.
//!
//! Groups become documents, lists arrays, and maps with texts as keys documents (other maps arrays
//! of `{key, value}`). Integers keep their width; unsigned ones take the next wider, above 2^63 a
//! decimal. Decimals stay decimals, times become dates in milliseconds (what is finer is cut off),
//! a time of the day its text. A column of JSON (`LogicalType::Json`) is read as extended JSON. The
//! file says what the text of a column of ours stood for ([`TYPES`]).

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use frond_doc::DocumentBuilder;
use frond_doc::extended_json;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, Length};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::record::reader::RowIter;

use crate::failure::Failure;
use crate::input::{Parsed, Record};
use crate::panics;

mod fields;
mod shape;

use fields::DocumentMaker;
use shape::{Shape, columns};

/// The file's own note of what the text of a column stands for, as extended JSON:
/// `{"columns": [{"path": ["_id"], "type": "objectId"}]}`.
pub const TYPES: &str = "frond.types";
/// A column whose texts are identifiers.
pub const OBJECT_ID: &str = "objectId";
/// A column whose texts are decimals.
pub const DECIMAL: &str = "decimal";

/// Rows of a Parquet file.
pub struct ParquetSource {
    rows: RowIter<'static>,
    columns: Vec<Shape>,
    maker: DocumentMaker,
    number: u64,
    is_over: bool,
}

impl ParquetSource {
    /// Reads the head of a file. `read` hears of each read how many bytes it was; with
    /// `without_nulls` fields that are null are left out.
    ///
    /// # Errors
    /// [`Failure::Failed`] if it is no Parquet file, or a column has a type that no document has.
    pub fn open(
        file: File,
        read: Arc<dyn Fn(usize) + Send + Sync>,
        without_nulls: bool,
    ) -> Result<ParquetSource, Failure> {
        let file = Positioned { file: Arc::new(file), read };
        let reader = guarded(|| SerializedFileReader::new(file))?;
        let head = reader.metadata().file_metadata();
        let noted = head.key_value_metadata().into_iter().flatten();
        let noted = noted.filter(|noted| noted.key == TYPES).find_map(|noted| noted.value.as_ref());
        let types = noted.and_then(|text| extended_json::parse(text).ok());
        let columns = columns(head.schema_descr().root_schema(), types.as_ref());
        let columns = columns.map_err(|what| Failure::failed(format!("Parquet: {what}")))?;
        let rows = RowIter::from_file_into(Box::new(reader));
        Ok(ParquetSource {
            rows,
            columns,
            maker: DocumentMaker { without_nulls },
            number: 0,
            is_over: false,
        })
    }

    fn next_record(&mut self) -> Option<Result<Record, Failure>> {
        let row = match guarded(|| self.rows.next().transpose()).transpose()? {
            Ok(row) => row,
            Err(failure) => return Some(Err(failure)),
        };
        self.number += 1;
        let mut document = DocumentBuilder::new();
        let made = self.maker.append_row(&mut document, &row, &self.columns);
        let document = made.map(|()| Parsed::Whole(document.build()));
        Some(Ok(Record { line: self.number, document }))
    }
}

impl Iterator for ParquetSource {
    type Item = Result<Record, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let record = self.next_record();
        self.is_over = !matches!(record, Some(Ok(_)));
        record
    }
}

/// Asks the library, which panics over some damaged files.
fn guarded<T>(ask: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, Failure> {
    match panics::caught(ask) {
        Some(Ok(answer)) => Ok(answer),
        Some(Err(error)) => Err(Failure::failed(format!("Parquet: {error}"))),
        None => Err(Failure::failed("Parquet: the file is damaged")),
    }
}

/// A file that is read at places, from several of them at once.
struct Positioned {
    file: Arc<File>,
    read: Arc<dyn Fn(usize) + Send + Sync>,
}

/// A reader of a file from one place on.
struct From {
    file: Arc<File>,
    offset: u64,
    read: Arc<dyn Fn(usize) + Send + Sync>,
}

impl Read for From {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(bytes, self.offset)?;
        self.offset += count as u64;
        (self.read)(count);
        Ok(count)
    }
}

impl Length for Positioned {
    fn len(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }
}

impl ChunkReader for Positioned {
    type T = io::BufReader<From>;

    fn get_read(&self, offset: u64) -> Result<Self::T, ParquetError> {
        let from = From { file: Arc::clone(&self.file), offset, read: Arc::clone(&self.read) };
        Ok(io::BufReader::new(from))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<bytes::Bytes, ParquetError> {
        let end = start.checked_add(length as u64).filter(|end| *end <= self.len());
        end.ok_or_else(|| ParquetError::EOF("the file is shorter than its end says".to_owned()))?;
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        (self.read)(length);
        Ok(bytes.into())
    }
}
