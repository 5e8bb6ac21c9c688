//! Writes documents.

use frond_doc::pieces::{PiecesError, Writer};
use frond_doc::{DocumentBuf, ValueBuf};
use frond_engine::Durability;

use crate::collection::{
    DeleteStatement, FindAndModify, FindAndModifyReport, UpdateReport, UpdateStatement,
    WriteReport, delete, find_and_modify, insert, stream, update,
};
use crate::database::Database;
use crate::error::Error;

impl Database {
    /// Inserts documents in their order, `_id` made where absent. With `ordered`, stops at the
    /// first that fails; the others before it stay.
    ///
    /// Large requests are several transactions, one after the other.
    ///
    /// # Errors
    /// Errors of the request as a whole; those of a document are in the report.
    pub fn insert(
        &self,
        collection: &str,
        documents: &[DocumentBuf],
        ordered: bool,
        durability: Durability,
    ) -> Result<WriteReport, Error> {
        insert::insert(self, collection, documents, ordered, durability)
    }

    /// Inserts the document whose elements `fill` writes, and returns its `_id`. It is never whole
    /// in memory, unless it is short or the collection has a validator.
    ///
    /// # Errors
    /// As [`Database::insert`] of that document; what `fill` fails with.
    pub fn insert_streamed(
        &self,
        collection: &str,
        fill: &mut dyn FnMut(&mut Writer<'_>) -> Result<(), PiecesError>,
        durability: Durability,
    ) -> Result<ValueBuf, Error> {
        stream::insert_streamed(self, collection, fill, durability)
    }

    /// Updates by each of `statements`, in their order.
    ///
    /// A statement that fails after it changed some documents leaves them changed, as MongoDB does;
    /// one that changes many does so in several transactions.
    ///
    /// # Errors
    /// Errors of the request as a whole; those of a statement are in the report.
    pub fn update(
        &self,
        collection: &str,
        statements: &[UpdateStatement],
        ordered: bool,
        durability: Durability,
    ) -> Result<UpdateReport, Error> {
        update::update(self, collection, statements, ordered, durability)
    }

    /// Deletes by each of `statements`, in their order; one that deletes many documents does so in
    /// several transactions.
    ///
    /// # Errors
    /// Errors of the request as a whole; those of a statement are in the report.
    pub fn delete(
        &self,
        collection: &str,
        statements: &[DeleteStatement],
        ordered: bool,
        durability: Durability,
    ) -> Result<WriteReport, Error> {
        delete::delete(self, collection, statements, ordered, durability)
    }

    /// Changes or removes one document and answers with it.
    ///
    /// # Errors
    /// `UserWritesBlocked` if this is a commit; `InvalidNamespace` (73); as [`Database::find`];
    /// what the update, a validator or a unique index refuses; as a commit.
    pub fn find_and_modify(
        &self,
        collection: &str,
        request: &FindAndModify,
        durability: Durability,
    ) -> Result<FindAndModifyReport, Error> {
        find_and_modify::find_and_modify(self, collection, request, durability)
    }
}
