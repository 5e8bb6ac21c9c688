//! The options that make a collection a view: which collection it reads, by which stages.

use frond_doc::{Array, Document, Value, ValueBuf};
use frond_query::pipeline::Pipeline;
use frond_query::{Code, Collation};

use crate::error::Error;

/// Views over views: MongoDB's limit.
pub(crate) const DEPTH_MAX: usize = 20;

/// The error of views that lie deeper than [`DEPTH_MAX`].
pub(crate) fn too_deep() -> Error {
    let message =
        format!("View depth too deep or view cycle detected; maximum depth is {DEPTH_MAX}");
    Error::invalid(Code::ViewDepthLimitExceeded, message)
}

/// The definition of a view.
pub(crate) struct View {
    /// The collection.
    pub on: String,
    /// The stages, an array.
    pub pipeline: ValueBuf,
    /// The rules by which strings compare in it: always so, whatever a request says.
    pub collation: Collation,
}

impl View {
    /// The view that a collection's options make it, if it is one.
    ///
    /// # Errors
    /// Options that aren't of a view's types; what is wrong with its pipeline.
    pub fn of_options(options: Document<'_>) -> Result<Option<View>, Error> {
        let refuse = |message: &str| Err(Error::invalid(Code::InvalidOptions, message));
        let pipeline = match options.get("pipeline") {
            None | Some(Value::Null) => None,
            Some(Value::Array(stages)) => Some(stages),
            Some(_) => {
                let message = "'pipeline' option must be specified as an array";
                return Err(Error::invalid(Code::TypeMismatch, message));
            }
        };
        let on = match options.get("viewOn") {
            None | Some(Value::Null) if pipeline.is_some() => {
                return refuse("'pipeline' requires 'viewOn' to also be specified");
            }
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String("")) => {
                return Err(Error::invalid(Code::BadValue, "'viewOn' cannot be empty"));
            }
            Some(Value::String(on)) => on.to_owned(),
            Some(_) => {
                return Err(Error::invalid(Code::TypeMismatch, "'viewOn' must be a string"));
            }
        };
        if options.get("validator").is_some() {
            return refuse("a view can't have a 'validator'");
        }
        let stages = pipeline.unwrap_or(Array::from_validated(&frond_doc::document::EMPTY));
        let begins_stream = |stage: Value<'_>| {
            stage.as_document().is_some_and(|stage| stage.get("$changeStream").is_some())
        };
        if stages.iter().any(begins_stream) {
            let message = "$changeStream cannot be used in a view definition";
            return Err(Error::invalid(Code::OptionNotSupportedOnView, message));
        }
        let parsed = Pipeline::parse(stages)?;
        if parsed.output().is_some() {
            let message = "$out and $merge can't stand in the pipeline of a view";
            return Err(Error::invalid(Code::OptionNotSupportedOnView, message));
        }
        let collation = match options.get("collation") {
            Some(Value::Document(specification)) => Collation::parse(specification)?,
            _ => Collation::SIMPLE,
        };
        Ok(Some(View { on, pipeline: Value::Array(stages).to_buf(), collation }))
    }

    /// The collections of its database that it reads: the one that it is on, and those of
    /// `$lookup`, `$graphLookup` and `$unionWith`, however deep they stand.
    pub fn sources(&self) -> Vec<String> {
        let mut sources = vec![self.on.clone()];
        add_sources(self.pipeline.as_value(), &mut sources);
        sources
    }

    /// The stages.
    pub fn stages(&self) -> Array<'_> {
        let stages = self.pipeline.as_value().as_array();
        stages.unwrap_or(Array::from_validated(&frond_doc::document::EMPTY))
    }

    /// Whether it shows the collection as it is.
    pub fn is_bare(&self) -> bool {
        let is_empty = |stage: Document<'_>| {
            stage.iter().all(|(name, of)| {
                name == "$match" && of.as_document().is_some_and(|filter| filter.is_empty())
            })
        };
        self.stages().iter().all(|stage| stage.as_document().is_some_and(is_empty))
    }
}

/// Recursion follows the pipeline's nesting, which validation has bounded.
fn add_sources(value: Value<'_>, sources: &mut Vec<String>) {
    match value {
        Value::Array(array) => array.iter().for_each(|element| add_sources(element, sources)),
        Value::Document(document) => {
            for (name, value) in document.iter() {
                let source = match (name, value) {
                    ("$unionWith", Value::String(source)) => Some(Value::String(source)),
                    ("$unionWith", Value::Document(stage)) if stage.get("db").is_none() => {
                        stage.get("coll")
                    }
                    ("$lookup" | "$graphLookup", Value::Document(stage)) => stage.get("from"),
                    _ => None,
                };
                sources.extend(source.and_then(|source| source.as_str()).map(str::to_owned));
                add_sources(value, sources);
            }
        }
        _ => {}
    }
}

/// Refuses what can't be done with a view.
pub(crate) fn refuse(options: Document<'_>, namespace: &str) -> Result<(), Error> {
    if options.get("viewOn").is_none() {
        return Ok(());
    }
    let message = format!("Namespace {namespace} is a view, not a collection");
    Err(Error::invalid(Code::CommandNotSupportedOnView, message))
}
