//! Commits by what they changed: `git log -S`, for documents.
//!
//! A commit is listed if, in a document that differs from its parent's, a text occurs more or less
//! often than before. It is looked for in the document's relaxed extended JSON, so that names of
//! fields count, and `"lamp"` with its quotes is a whole string. Merges are passed over, as by git:
//! what they bring together was changed by the commits that they merge.

use frond_db::inside::Error;
use frond_doc::DocumentBuf;
use frond_doc::extended_json::{self, Form};

use crate::diff::rows::{DiffDetail, DiffRequest};
use crate::history::NOTHING;
use crate::repository::Repository;
use crate::{CommitInfo, LogRequest};

impl Repository {
    /// The commits that `request` asks for, newest first, but only those that changed how often
    /// `text` occurs in some document; `request.collection` and `document` say in which. Costs the
    /// diff of every commit that is otherwise listed, and of those that are passed over.
    ///
    /// # Errors
    /// As [`Repository::log_of`]; a commit's own fail in its place.
    pub fn log_of_text(
        &self,
        request: LogRequest,
        text: &str,
    ) -> Result<impl Iterator<Item = Result<CommitInfo, Error>> + Send + use<>, Error> {
        let of_path = DiffRequest {
            collection: request.collection.clone(),
            document: request.document.clone(),
            ..DiffRequest::default()
        };
        let skip = usize::try_from(request.skip).unwrap_or(usize::MAX);
        let limit = request.limit.and_then(|limit| usize::try_from(limit).ok());
        let all = self.log_of(LogRequest { skip: 0, limit: None, ..request })?;
        let (repository, text) = (self.clone(), text.to_owned());
        let found = all.filter_map(move |commit| {
            let commit = match commit {
                Ok(commit) => commit,
                Err(error) => return Some(Err(error)),
            };
            match repository.changed_text(&commit, &of_path, &text) {
                Ok(true) => Some(Ok(commit)),
                Ok(false) => None,
                Err(error) => Some(Err(error)),
            }
        });
        Ok(found.skip(skip).take(limit.unwrap_or(usize::MAX)))
    }

    fn changed_text(
        &self,
        commit: &CommitInfo,
        of_path: &DiffRequest,
        text: &str,
    ) -> Result<bool, Error> {
        let from = match &commit.parents[..] {
            [] => NOTHING.to_owned(),
            [only] => only.to_string(),
            _ => return Ok(false),
        };
        let request =
            DiffRequest { from: Some(from), to: Some(commit.id.to_string()), ..of_path.clone() };
        for row in self.diff_rows(&request)? {
            let DiffDetail::Document { from, to } = row?.detail else { continue };
            if occurrences(from.as_ref(), text) != occurrences(to.as_ref(), text) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Returns how often `text` occurs in a document's JSON.
fn occurrences(document: Option<&DocumentBuf>, text: &str) -> usize {
    let Some(document) = document else { return 0 };
    let mut json = String::new();
    extended_json::write(document.view(), Form::Relaxed, &mut json);
    json.matches(text).count()
}

#[cfg(test)]
mod tests {
    use frond_doc::document;

    use super::*;

    #[test]
    fn texts_are_counted() {
        let document = document! { "name": "lamp", "kinds": "lamp lamps" };
        for (text, expected) in [("lamp", 3), ("\"lamp\"", 1), ("name", 1), ("desk", 0)] {
            assert_eq!(occurrences(Some(&document), text), expected, "{text}");
        }
        assert_eq!(occurrences(None, "lamp"), 0);
    }
}
