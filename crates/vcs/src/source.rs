//! History as the first stage of a pipeline: `$diff`, `$history`, `$log`, `$blame`, `$conflicts`
//! and `$reflog`.
//!
//! Such a stage makes its own documents, one at a time, so that the stages after it filter, join
//! and group them as they do anything else. On a collection (`aggregate: "things"`) the stage shows
//! that collection; on the database (`aggregate: 1`) all, or the one that its `collection` names. A
//! field that a stage doesn't know is refused.

pub(crate) mod explain;

use frond_db::inside::{Error, Rows};
use frond_doc::{Document, DocumentBuf, Value, ValueBuf};
use frond_query::Code;
use frond_query::pipeline::RESULT_BYTES_MAX;

use crate::repository::Repository;
use crate::rows::size_limit;
use crate::{CommitInfo, DiffRequest, LogRequest};

/// Stages of this kind.
pub(crate) const STAGES: &[&str] =
    &["$blame", "$conflicts", "$diff", "$history", "$log", "$reflog"];

/// The options of a stage, taken one by one; what is not taken is refused.
struct Options<'a> {
    stage: &'a str,
    fields: Vec<(&'a str, Value<'a>)>,
}

impl<'a> Options<'a> {
    fn new(stage: &'a str, options: Value<'a>) -> Result<Options<'a>, Error> {
        let Value::Document(options) = options else {
            let message = format!("the {stage} stage specification must be an object");
            return Err(Error::invalid(Code::FailedToParse, message));
        };
        Ok(Options { stage, fields: options.iter().collect() })
    }

    fn value(&mut self, name: &str) -> Option<Value<'a>> {
        let position = self.fields.iter().position(|(field, _)| *field == name)?;
        Some(self.fields.swap_remove(position).1)
    }

    fn wrong_type(&self, name: &str, expected: &str) -> Error {
        let message = format!("{}.{name} must be {expected}", self.stage);
        Error::invalid(Code::TypeMismatch, message)
    }

    fn string(&mut self, name: &str) -> Result<Option<String>, Error> {
        match self.value(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.to_owned())),
            Some(_) => Err(self.wrong_type(name, "a string")),
        }
    }

    fn count(&mut self, name: &str) -> Result<Option<u64>, Error> {
        match self.value(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let count = value.as_integer().and_then(|number| u64::try_from(number).ok());
                count
                    .map(Some)
                    .ok_or_else(|| self.wrong_type(name, "a number that is not negative"))
            }
        }
    }

    fn boolean(&mut self, name: &str, default: bool) -> Result<bool, Error> {
        match self.value(name) {
            None | Some(Value::Null) => Ok(default),
            Some(Value::Boolean(flag)) => Ok(flag),
            Some(_) => Err(self.wrong_type(name, "a boolean")),
        }
    }

    fn date(&mut self, name: &str) -> Result<Option<i64>, Error> {
        match self.value(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::DateTime(millis)) => Ok(Some(millis)),
            Some(_) => Err(self.wrong_type(name, "a date")),
        }
    }

    /// The collection that the stage shows: the aggregate's, or the one that is named.
    fn collection(&mut self, collection: Option<&str>) -> Result<Option<String>, Error> {
        let named = self.string("collection")?;
        match (collection, named) {
            (Some(collection), Some(named)) if collection != named => {
                let message = format!(
                    "{} tells of the collection {collection} that is aggregated: use aggregate: 1 \
                     to name another",
                    self.stage
                );
                Err(Error::invalid(Code::BadValue, message))
            }
            (Some(collection), _) => Ok(Some(collection.to_owned())),
            (None, named) => Ok(named),
        }
    }

    fn log(&mut self) -> Result<LogRequest, Error> {
        Ok(LogRequest {
            range: self.string("range")?,
            author: self.string("author")?,
            message: self.string("message")?,
            since_millis: self.date("since")?,
            until_millis: self.date("until")?,
            first_parent: self.boolean("firstParent", false)?,
            after: self.string("after")?,
            skip: self.count("skip")?.unwrap_or(0),
            limit: self.count("limit")?.filter(|limit| *limit > 0),
            collection: None,
            document: None,
        })
    }

    fn finish(self) -> Result<(), Error> {
        let Some((name, _)) = self.fields.first() else { return Ok(()) };
        let message = format!("BSON field '{}.{name}' is an unknown field.", self.stage);
        Err(Error::invalid(Code::Location(40415), message))
    }
}

impl Repository {
    /// The documents that such a stage makes.
    pub(crate) fn source(
        &self,
        collection: Option<&str>,
        stage: Document<'_>,
    ) -> Result<Rows, Error> {
        let Some((name, options)) = stage.iter().next() else {
            return Err(Error::internal("a first stage has no name"));
        };
        self.check_exists()?;
        let mut options = Options::new(name, options)?;
        match name {
            "$diff" => self.diff_source(collection, options),
            "$log" => {
                let mut request = options.log()?;
                request.collection = options.collection(collection)?;
                request.document = options.value("document").map(|id| id.to_buf());
                if request.document.is_some() && request.collection.is_none() {
                    return Err(needs_collection("$log with a document"));
                }
                let text = options.string("text")?;
                options.finish()?;
                let row = |commit: Result<CommitInfo, Error>| commit.map(|info| info.to_row());
                Ok(match text {
                    Some(text) => Box::new(self.log_of_text(request, &text)?.map(row)),
                    None => Box::new(self.log_of(request)?.map(row)),
                })
            }
            "$history" => {
                let request = options.log()?;
                let (collection, id) = named_document(&mut options, collection)?;
                options.finish()?;
                let history = self.document_history(&collection, &id, request)?;
                Ok(Box::new(history.map(|version| version.map(|version| fit(version.to_row())))))
            }
            "$blame" => {
                let (collection, id) = named_document(&mut options, collection)?;
                options.finish()?;
                let rows = self.blame(&collection, &id)?.to_rows();
                Ok(Box::new(rows.into_iter().map(Ok)))
            }
            "$conflicts" => {
                let collection = options.collection(collection)?;
                options.finish()?;
                let conflicts = self.conflicts(collection.as_deref())?;
                Ok(Box::new(conflicts.into_iter().map(|conflict| Ok(fit(conflict.to_row())))))
            }
            _ => {
                let branch = options.string("branch")?;
                options.finish()?;
                let changes = self.reflog(branch.as_deref())?;
                Ok(Box::new(changes.into_iter().map(|change| Ok(change.to_row()))))
            }
        }
    }

    fn diff_source(
        &self,
        collection: Option<&str>,
        mut options: Options<'_>,
    ) -> Result<Rows, Error> {
        let request = DiffRequest {
            from: options.string("from")?,
            to: options.string("to")?,
            collection: options.collection(collection)?,
            document: options.value("document").map(|id| id.to_buf()),
        };
        if request.document.is_some() && request.collection.is_none() {
            return Err(needs_collection("$diff with a document"));
        }
        let whole = options.boolean("whole", true)?;
        options.finish()?;
        let rows = self.diff_rows(&request)?;
        Ok(Box::new(rows.map(move |row| row.map(|row| fit(row.to_row(whole))))))
    }
}

/// A row as a stage may answer it: for values without room the row has their number of bytes.
fn fit(row: DocumentBuf) -> DocumentBuf {
    size_limit::fit(row, RESULT_BYTES_MAX)
}

fn needs_collection(what: &str) -> Error {
    Error::invalid(Code::BadValue, format!("{what} needs a collection"))
}

/// The collection and the `_id` of the document that a stage is about.
fn named_document(
    options: &mut Options<'_>,
    collection: Option<&str>,
) -> Result<(String, ValueBuf), Error> {
    let collection = options.collection(collection)?;
    let collection = collection.ok_or_else(|| needs_collection(options.stage))?;
    let id = options.value("_id").map(|id| id.to_buf());
    let id = id.ok_or_else(|| {
        Error::invalid(Code::BadValue, format!("{} needs the _id of a document", options.stage))
    })?;
    Ok((collection, id))
}
