//! Applies `$merge` to two documents ([`Merge::apply`]). Finding and writing them is the
//! database's; the stage is in `merge_parse`.

use frond_doc::path::Path;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};

use super::parsed::Pipeline;
use crate::collation::Collation;
use crate::error::QueryError;
use crate::expression::{Expression, Scope, Variables, failure};
use crate::filter::Filter;
use crate::large::Large;
use crate::replacement::replaced_whole;

/// The option `whenMatched`: what happens to a document that is there already.
#[derive(Clone, Debug)]
pub(super) enum WhenMatched {
    Replace,
    Keep,
    Merge,
    Fail,
    /// A faulty pipeline is an error only when the first document comes.
    Pipeline {
        pipeline: Result<Pipeline, QueryError>,
        variables: Vec<(String, Expression)>,
    },
}

/// The option `whenNotMatched`: what happens to a document that isn't there yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WhenNotMatched {
    Insert,
    Discard,
    Fail,
}

/// The options of `$merge`.
#[derive(Clone, Debug)]
pub struct Merge {
    pub(super) on: Vec<String>,
    /// Whether these were given.
    pub(super) has_on: bool,
    pub(super) when_matched: WhenMatched,
    pub(super) when_not_matched: WhenNotMatched,
    /// The variables of the whole pipeline.
    pub(super) variables: Variables,
}

/// The write that a merge of two documents results in.
#[derive(Clone, PartialEq, Debug)]
pub enum MergeAction {
    /// Nothing.
    Nothing,
    /// This document is new.
    Insert(DocumentBuf),
    /// This document takes the place of the one that is there.
    Replace(DocumentBuf),
}

impl Merge {
    /// The paths by which documents are about the same: a unique index must have them.
    pub fn on(&self) -> &[String] {
        &self.on
    }

    /// Whether the request names these paths: then they need a unique index of its collation.
    pub fn has_on(&self) -> bool {
        self.has_on
    }

    /// Returns the collation by which documents count as the same.
    pub fn collation(&self) -> &Collation {
        self.variables.collation()
    }

    /// Returns the reader of values that documents have references for.
    pub fn large(&self) -> &Large {
        self.variables.large()
    }

    /// The filter that finds the document that `new` is about.
    ///
    /// # Errors
    /// 51185 if one of the fields is an array or lies in one, 51132 if it is missing or null, other
    /// than an absent `_id`, for which there is nothing to find: `None`.
    pub fn filter(&self, new: Document<'_>) -> Result<Option<Filter>, QueryError> {
        let mut builder = DocumentBuilder::new();
        for path in &self.on {
            refuse_arrays(path, new)?;
            match Path::new(path).get(new) {
                None if path == "_id" => return Ok(None),
                None | Some(Value::Null | Value::Undefined) => {
                    let message = format!(
                        "$merge write error: 'on' field '{path}' cannot be missing, null or \
                         undefined"
                    );
                    return Err(failure(51132, message));
                }
                Some(value) => builder.begin_document(path).append("$eq", value).end(),
            };
        }
        let filter = Filter::parse(builder.build().view())?;
        Ok(Some(filter.with_collation(self.collation())))
    }

    /// Returns the action for `new`, where `existing` is there already. Either may have references;
    /// a result is written again even where it equals the existing document.
    ///
    /// # Errors
    /// 13113 where there is no document and that must fail; an error of the pipeline. Where a match
    /// must fail, the insertion fails.
    pub fn apply(
        &self,
        existing: Option<Document<'_>>,
        new: Document<'_>,
    ) -> Result<MergeAction, QueryError> {
        if let (None, WhenMatched::Pipeline { pipeline: Err(error), .. }) =
            (existing, &self.when_matched)
        {
            return Err(error.clone());
        }
        let Some(existing) = existing else {
            return match self.when_not_matched {
                WhenNotMatched::Insert => Ok(MergeAction::Insert(new.to_buf())),
                WhenNotMatched::Discard => Ok(MergeAction::Nothing),
                WhenNotMatched::Fail => {
                    let message = "$merge could not find a matching document in the target \
                                   collection for at least one document in the source collection";
                    Err(failure(13113, message))
                }
            };
        };
        let made = match &self.when_matched {
            WhenMatched::Keep => return Ok(MergeAction::Nothing),
            // The unique index by which it was found reports what is there already.
            WhenMatched::Fail => return Ok(MergeAction::Insert(new.to_buf())),
            WhenMatched::Replace => new.to_buf(),
            WhenMatched::Merge => merged(existing, new),
            WhenMatched::Pipeline { pipeline: Err(error), .. } => return Err(error.clone()),
            WhenMatched::Pipeline { pipeline: Ok(pipeline), variables } => {
                let scope = Scope::new(new, &self.variables);
                let mut values = Vec::with_capacity(variables.len());
                for (name, expression) in variables {
                    values.push((name.clone(), expression.carry_in(&scope)?.into_buf()));
                }
                pipeline.transform(existing, &self.variables.with(values))?
            }
        };
        let made = replaced_whole(existing, &made).map_err(|error| {
            let message = format!(
                "$merge failed to update the matching document, did you attempt to modify the _id \
                 or the shard key? :: caused by :: {}",
                error.message
            );
            QueryError::new(error.code, message)
        })?;
        if made.as_bytes() == existing.as_bytes() {
            return Ok(MergeAction::Nothing);
        }
        Ok(MergeAction::Replace(made))
    }
}

/// Refuses an array at a path by which documents are found, or on the way there.
fn refuse_arrays(path: &str, document: Document<'_>) -> Result<(), QueryError> {
    let mut inner = document;
    for name in path.split('.') {
        match inner.get(name) {
            Some(Value::Array(_)) => {
                let message = format!("$merge write error: 'on' field '{path}' is an array");
                return Err(failure(51185, message));
            }
            Some(Value::Document(next)) => inner = next,
            _ => break,
        }
    }
    Ok(())
}

/// The fields of `existing`, those of `new` in their place or after them.
fn merged(existing: Document<'_>, new: Document<'_>) -> DocumentBuf {
    let mut out = DocumentBuilder::with_capacity(existing.as_bytes().len() + new.as_bytes().len());
    for (name, value) in existing.iter() {
        out.append(name, new.get(name).unwrap_or(value));
    }
    for (name, value) in new.iter().filter(|(name, _)| existing.get(name).is_none()) {
        out.append(name, value);
    }
    out.build()
}
