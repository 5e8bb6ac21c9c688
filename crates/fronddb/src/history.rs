//! The history of a document, and bringing back old versions.

use std::fmt;
use std::marker::PhantomData;

use bson::Bson;
use frond_vcs::{DocumentHistory, DocumentVersion as InnerVersion, LogRequest, Restored};
use serde::de::DeserializeOwned;

use crate::diff::fields;
use crate::{ChangeKind, Collection, Commit, FieldChange, Result, convert};

/// A document as a commit left it.
#[derive(Clone, PartialEq, Debug)]
pub struct DocumentVersion<T> {
    /// The commit; `None` for a change that isn't committed.
    pub commit: Option<Commit>,
    /// How it changed the document.
    pub kind: ChangeKind,
    /// The changed fields, if the document was there before and after.
    pub fields: Vec<FieldChange>,
    /// The document; `None` if it was removed.
    pub document: Option<T>,
}

/// The versions of a document, newest first, read as they are asked for. Ends after an error.
pub struct History<T>(DocumentHistory, PhantomData<fn() -> T>);

impl<T> Collection<T> {
    /// Makes the collection what `version` has, documents and indexes, whatever its size; if that
    /// has no such collection, it is dropped. Other collections, and the branch's commits, stay as
    /// they are. Answers whether anything changed.
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_one(doc! { "_id": 1 })?;
    /// shop.commit("first items")?;
    /// items.delete_many(doc! {})?;
    /// assert!(items.restore("HEAD")?);
    /// assert_eq!(items.count(doc! {})?, 1);
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// `BadValue` if there is no such version; `NamespaceNotFound` if neither has the collection.
    pub fn restore(&self, version: impl fmt::Display) -> Result<bool> {
        let version = version.to_string();
        let restored = self.inner().restore_collection(&self.name, Some(&version))?;
        Ok(restored != Restored::Unchanged)
    }

    /// Makes the document with this `_id` what `version` has, which may be nothing. Answers whether
    /// anything changed.
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_one(doc! { "_id": 1, "price": 30 })?;
    /// shop.commit("first items")?;
    /// items.delete_many(doc! {})?;
    /// assert!(items.restore_document(1, "HEAD")?);
    /// assert_eq!(items.get(1)?, Some(doc! { "_id": 1, "price": 30 }));
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// `BadValue` if there is no such version; `DuplicateKey` if a unique index refuses the
    /// document.
    pub fn restore_document(
        &self,
        id: impl Into<Bson>,
        version: impl fmt::Display,
    ) -> Result<bool> {
        let (id, version) = (convert::value(id)?, version.to_string());
        let restored = self.inner().restore_document(&self.name, &id, Some(&version))?;
        Ok(restored != Restored::Unchanged)
    }
}

impl<T: DeserializeOwned> Collection<T> {
    /// The versions of the document with this `_id`, one for each commit that changed it, newest
    /// first. A change that isn't committed comes first.
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_one(doc! { "_id": 1, "price": 30 })?;
    /// shop.commit("a lamp")?;
    /// items.update_one(doc! { "_id": 1 }, doc! { "$set": { "price": 15 } })?;
    /// shop.commit("half price")?;
    ///
    /// for version in items.history(1)? {
    ///     let version = version?;
    ///     println!("{}: {:?}", version.commit.unwrap().message, version.document);
    /// }
    /// let latest = items.history(1)?.next().unwrap()?;
    /// assert_eq!(latest.fields[0].to_string(), "price 30 -> 15");
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the disk fails, or damage.
    pub fn history(&self, id: impl Into<Bson>) -> Result<History<T>> {
        let id = convert::value(id)?;
        let history = self.inner().document_history(&self.name, &id, LogRequest::default())?;
        Ok(History(history, PhantomData))
    }
}

impl<T: DeserializeOwned> Iterator for History<T> {
    type Item = Result<DocumentVersion<T>>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(match self.0.next()? {
            Ok(version) => DocumentVersion::of(version),
            Err(error) => Err(error.into()),
        })
    }
}

impl<T: DeserializeOwned> DocumentVersion<T> {
    fn of(version: InnerVersion) -> Result<DocumentVersion<T>> {
        Ok(DocumentVersion {
            document: convert::decode_any(version.document.as_ref())?,
            fields: fields(version.changes)?,
            commit: version.commit.map(Commit::from),
            kind: version.change.into(),
        })
    }
}
