//! A table at one version, and the document that a row of it becomes.
//!
//! The primary key is the document's `_id`: the value of its only column, or a document of its
//! columns. Other columns follow in their order. Rows of a table without a key are distinguished by
//! what they hold, and equal ones by their count ([`Unkeyed`]).

use std::collections::HashMap;

use frond_doc::{Binary, DocumentBuf, DocumentBuilder, Value};

use crate::commands::from_dolt::column::Column;
use crate::commands::from_dolt::connection::Row;
use crate::failure::Failure;

/// The number of bytes of a hash that are the `_id` of a row without a key.
const ID_BYTES: usize = 16;

/// A table at one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
}

/// Gives rows without a key an `_id`: equal rows are the same whichever comes first, so that a
/// version that has them still has the same documents.
#[derive(Default)]
pub struct Unkeyed {
    seen: HashMap<blake3::Hash, u64>,
}

impl Table {
    /// A table with these columns.
    ///
    /// # Errors
    /// [`Failure::Failed`] if a column has the name of what the key becomes.
    pub fn new(name: &str, columns: Vec<Column>) -> Result<Table, Failure> {
        let is_taken = |column: &Column| column.name == "_id" && !column.is_key;
        if columns.iter().any(is_taken) {
            let what = "is called _id and isn't the primary key: rename it in Dolt first";
            return Err(Failure::failed(format!("a column of {name} {what}")));
        }
        Ok(Table { name: name.to_owned(), columns })
    }

    /// The positions of the key's columns.
    pub fn keys(&self) -> impl Iterator<Item = usize> {
        let columns = self.columns.iter().enumerate();
        columns.filter(|(_, column)| column.is_key).map(|(position, _)| position)
    }

    /// Whether its rows have a key.
    pub fn is_keyed(&self) -> bool {
        self.columns.iter().any(|column| column.is_key)
    }

    /// The document `{_id}` of a row whose cells begin at `start`.
    ///
    /// # Errors
    /// [`Failure::Failed`] if a cell isn't what its column says.
    pub fn id(&self, row: &Row, start: usize) -> Result<DocumentBuf, Failure> {
        let mut document = DocumentBuilder::new();
        self.append_id(&mut document, row, start)?;
        Ok(document.build())
    }

    /// The document of a row whose cells begin at `start`. With `unkeyed`, the rows have no key.
    ///
    /// # Errors
    /// As [`Table::id`].
    pub fn document(
        &self,
        row: &Row,
        start: usize,
        unkeyed: &mut Unkeyed,
    ) -> Result<DocumentBuf, Failure> {
        let mut fields = DocumentBuilder::new();
        for (position, column) in self.columns.iter().enumerate() {
            if !column.is_key {
                self.append(column, &mut fields, row, start + position)?;
            }
        }
        let fields = fields.build();
        let mut document = DocumentBuilder::with_capacity(fields.as_bytes().len() + 64);
        if self.is_keyed() {
            self.append_id(&mut document, row, start)?;
        } else {
            let bytes = &unkeyed.id(&fields);
            document.append("_id", Value::Binary(Binary { subtype: 0, bytes }));
        }
        for (name, value) in fields.iter() {
            document.append(name, value);
        }
        Ok(document.build())
    }

    fn append_id(
        &self,
        document: &mut DocumentBuilder,
        row: &Row,
        start: usize,
    ) -> Result<(), Failure> {
        let mut keys = DocumentBuilder::new();
        for position in self.keys() {
            self.append(&self.columns[position], &mut keys, row, start + position)?;
        }
        let keys = keys.build();
        let mut values = keys.iter();
        match (values.next(), values.next()) {
            (Some((_, only)), None) => document.append("_id", only),
            _ => document.append("_id", Value::Document(keys.view())),
        };
        Ok(())
    }

    fn append(
        &self,
        column: &Column,
        document: &mut DocumentBuilder,
        row: &Row,
        position: usize,
    ) -> Result<(), Failure> {
        let done = column.append(document, row, position);
        done.map_err(|why| Failure::failed(format!("table {}: {why}", self.name)))
    }
}

impl Unkeyed {
    fn id(&mut self, fields: &DocumentBuf) -> [u8; ID_BYTES] {
        let count = self.seen.entry(blake3::hash(fields.as_bytes())).or_default();
        let mut hasher = blake3::Hasher::new();
        hasher.update(fields.as_bytes()).update(&count.to_le_bytes());
        *count += 1;
        let mut id = [0; ID_BYTES];
        id.copy_from_slice(&hasher.finalize().as_bytes()[..ID_BYTES]);
        id
    }
}
