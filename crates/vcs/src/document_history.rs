//! The versions that a document had: one for each commit that changed it, newest first.
//!
//! The log by path finds the commits, so the cost follows the commits that there are, and reads the
//! document only where it changed. Where the working state has another version than HEAD, that
//! comes first, without a commit.

use frond_db::inside::Error;
use frond_doc::{DocumentBuf, ValueBuf};

use crate::diff::fields::diff_documents;
use crate::history::path_filter::PathFilter;
use crate::repository::Repository;
use crate::{CollectionChange, CommitInfo, FieldChange, Log, LogRequest, history};

/// A document as a commit left it.
#[derive(Clone, Debug)]
pub struct DocumentVersion {
    /// The commit; `None` for the working state.
    pub commit: Option<CommitInfo>,
    /// The change that it made to the document, against its first parent.
    pub change: CollectionChange,
    /// Field by field, where the document was there before and after.
    pub changes: Vec<FieldChange>,
    /// The document; `None` if it was removed.
    pub document: Option<DocumentBuf>,
}

/// The versions of a document, newest first, read as they are asked for. Ends after an error.
pub struct DocumentHistory {
    working: Option<DocumentVersion>,
    log: Option<Log>,
    store: std::sync::Arc<dyn frond_store::ChunkStore>,
}

impl Repository {
    /// The versions of the document with this `_id`; `request` may narrow the commits.
    ///
    /// # Errors
    /// `BadValue` if a revision names nothing.
    pub fn document_history(
        &self,
        collection: &str,
        id: &ValueBuf,
        request: LogRequest,
    ) -> Result<DocumentHistory, Error> {
        let reader = self.reader();
        let store = reader.store();
        let mut working = None;
        let is_paged = request.after.is_some() || request.skip > 0 || request.range.is_some();
        if self.branch().is_some()
            && !is_paged
            && frond_db::inside::refs::repository(&reader, self.repository_name())?.is_some()
        {
            let mut filter = PathFilter::new(store, collection, Some(id));
            let (head, now) = (self.catalog_of(&reader, history::HEAD)?, self.catalog(&reader)?);
            let (from, to) = (filter.find(&head)?, filter.find(&now)?);
            if from != to {
                working = Some(version(None, from.document(&**store)?, to.document(&**store)?));
            }
        }
        let request = LogRequest {
            collection: Some(collection.to_owned()),
            document: Some(id.clone()),
            ..request
        };
        let log = self.log_of(request)?;
        Ok(DocumentHistory { working, log: Some(log), store: store.clone() })
    }
}

fn version(
    commit: Option<CommitInfo>,
    before: Option<DocumentBuf>,
    document: Option<DocumentBuf>,
) -> DocumentVersion {
    let changes = match (&before, &document) {
        (Some(before), Some(document)) => diff_documents(before.view(), document.view()),
        _ => Vec::new(),
    };
    let change = CollectionChange::between(before.is_some(), document.is_some());
    DocumentVersion { commit, change, changes, document }
}

impl DocumentHistory {
    fn advance(&mut self) -> Result<Option<DocumentVersion>, Error> {
        if let Some(working) = self.working.take() {
            return Ok(Some(working));
        }
        let Some(log) = &mut self.log else { return Ok(None) };
        let Some((hash, commit)) = log.next_commit()? else { return Ok(None) };
        let filter = log.path();
        let filter = filter.ok_or_else(|| Error::internal("a document's log has no path"))?;
        let document = filter.find_in(hash)?.document(&*self.store)?;
        let before = match commit.parents.first() {
            Some(parent) => filter.find_in(*parent)?.document(&*self.store)?,
            None => None,
        };
        Ok(Some(version(Some(history::info(hash, &commit)), before, document)))
    }
}

impl Iterator for DocumentHistory {
    type Item = Result<DocumentVersion, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance();
        if next.is_err() {
            self.log = None;
        }
        next.transpose()
    }
}
