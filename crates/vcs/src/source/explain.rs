//! Explains a pipeline that begins with history: `explain` of `$diff`, `$log` and their like.
//!
//! Such a stage has one way to go, so the answer says which versions its names stand for now, and,
//! if the stage is run for it, how many documents it made and how long that took.

use frond_db::inside::refs::format;
use frond_db::inside::{Effort, Error};
use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value, ValueBuf};

use crate::history;
use crate::repository::Repository;

/// Options that name a version, and what they mean if they aren't there.
const VERSIONS: &[(&str, &str)] = &[("from", history::HEAD), ("to", "")];

impl Repository {
    /// Explains the first stage of a pipeline, if it is one that shows history; also returns the
    /// stages after it. The stage's options are checked; it is only run where `effort` says so.
    ///
    /// # Errors
    /// Those of the stage.
    pub fn explain_source(
        &self,
        collection: Option<&str>,
        stages: Array<'_>,
        effort: Effort,
    ) -> Result<Option<(DocumentBuf, ValueBuf)>, Error> {
        let Some((first, rest)) = self.split_source(stages)? else { return Ok(None) };
        let Some((first, (name, options))) =
            first.as_value().as_document().and_then(|first| Some((first, first.iter().next()?)))
        else {
            return Err(Error::internal("a first stage has no name"));
        };
        let began = self.frond().steady_millis();
        let rows = self.source(collection, first)?;
        let mut answer = DocumentBuilder::new();
        answer.append(name, options).begin_document("plan");
        answer.append("stage", Value::String(&name.trim_start_matches('$').to_uppercase()));
        if let Some(collection) = collection {
            answer.append("namespace", Value::String(&self.namespace(collection)));
        }
        if name == "$diff" {
            self.append_versions(&mut answer, options.as_document().unwrap_or(Document::empty()))?;
        }
        answer.end();
        if effort != Effort::Plan {
            let mut returned = 0_i64;
            for row in rows {
                row?;
                returned += 1;
            }
            let millis = self.frond().steady_millis() - began;
            answer.append("nReturned", Value::Int64(returned));
            answer.append("executionTimeMillisEstimate", Value::Int64(millis));
        }
        Ok(Some((answer.build(), rest)))
    }

    /// Appends the commits that a diff compares; the working state is named by its branch.
    fn append_versions(
        &self,
        answer: &mut DocumentBuilder,
        options: Document<'_>,
    ) -> Result<(), Error> {
        let reader = self.reader();
        for (field, default) in VERSIONS {
            let named = options.get(field).and_then(|name| name.as_str()).unwrap_or(default);
            match (named, self.branch()) {
                ("", Some(branch)) => {
                    let working = format!("working state of {branch}");
                    answer.append(field, Value::String(&working));
                }
                ("", None) => {}
                // Nothing is committed yet: the diff itself takes that for an empty version.
                (named, _) => match self.revision(&reader, named) {
                    Ok(chunk) => {
                        answer.append(field, Value::String(&format::id_of(chunk).to_string()));
                    }
                    Err(_) => {
                        answer.append(field, Value::String(named));
                    }
                },
            }
        }
        Ok(())
    }
}
