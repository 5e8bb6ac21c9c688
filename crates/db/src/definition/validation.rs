//! Validators: filters that a collection's documents must pass when they are written.
//!
//! A validator is an option of its collection, and so a part of each version. Documents that were
//! there before it aren't looked at; `moderate` lets those that fail already go on failing.
//!
//! It is evaluated for the request that writes: it takes that request's memory, and stops with it.
//! Any other failure of an expression is a document that doesn't pass.

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::expression::Variables;
use frond_query::large::Large;
use frond_query::memory::RequestMemory;
use frond_query::{Code, Collation, Filter};

use crate::error::Error;

/// A collection's validator.
#[derive(Clone, Debug)]
pub struct Validator {
    filter: Filter,
    /// The memory for evaluating it, until the request is to stop.
    memory: RequestMemory,
    is_moderate: bool,
    /// Whether it only reports what it would refuse.
    warns: bool,
}

impl Validator {
    /// Checks the options of a collection that is made or changed.
    ///
    /// # Errors
    /// As [`Validator::of_options`]; a `$near`, which orders documents and so can't judge one.
    pub fn check_options(options: Document<'_>) -> Result<(), Error> {
        Validator::of_options(options, || Ok(Variables::default()))?;
        if let Some(Value::Document(validator)) = options.get("validator") {
            Filter::parse_test(validator)?;
        }
        Ok(())
    }

    /// Whether a document that fails is reported, and let through.
    pub fn warns(&self) -> bool {
        self.warns
    }

    /// The validator that a collection's options name, if it refuses anything or warns of it, for a
    /// request with these variables; they are asked for only if there is one.
    ///
    /// # Errors
    /// What is wrong with the filter, the level or the action; what `variables` fails with.
    pub fn of_options(
        options: Document<'_>,
        variables: impl FnOnce() -> Result<Variables, Error>,
    ) -> Result<Option<Validator>, Error> {
        let text = |name: &str, allowed: &[&str]| match options.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if allowed.contains(&text) => Ok(Some(text)),
            Some(Value::String(other)) => {
                let message =
                    format!("Enumeration value '{other}' for field '{name}' is not a valid value.");
                Err(Error::invalid(Code::BadValue, message))
            }
            Some(_) => {
                let message = format!("'{name}' must be a string");
                Err(Error::invalid(Code::TypeMismatch, message))
            }
        };
        let level = text("validationLevel", &["off", "strict", "moderate"])?;
        let action = text("validationAction", &["error", "warn"])?;
        let Some(validator) = options.get("validator") else { return Ok(None) };
        let Value::Document(validator) = validator else {
            return Err(Error::invalid(Code::TypeMismatch, "'validator' has to be a document."));
        };
        let collation = match options.get("collation") {
            Some(Value::Document(specification)) => Collation::parse(specification)?,
            _ => Collation::SIMPLE,
        };
        let filter = Filter::parse(validator)?;
        if filter.is_all() || level == Some("off") {
            return Ok(None);
        }
        let variables = variables()?.with_collation(collation);
        let memory = variables.memory().clone();
        let filter = filter.with_variables(variables);
        let (is_moderate, warns) = (level == Some("moderate"), action == Some("warn"));
        Ok(Some(Validator { filter, memory, is_moderate, warns }))
    }

    /// The outermost fields that decide; `None` if others may.
    pub fn outermost_names(&self) -> Option<Vec<&[u8]>> {
        Some(self.filter.deciding_names()?.into_iter().map(str::as_bytes).collect())
    }

    /// Whether it matters what a document was before.
    pub fn compares_before(&self) -> bool {
        self.is_moderate
    }

    /// Checks a document that takes the place of `before`.
    ///
    /// # Errors
    /// `DocumentValidationFailure` (121), with MongoDB's `errInfo`; `ExceededMemoryLimit` (146);
    /// what the request is to stop with.
    pub fn check(&self, before: Option<Document<'_>>, after: Document<'_>) -> Result<(), Error> {
        if self.passes(after)? {
            return Ok(());
        }
        if let Some(before) = before.filter(|_| self.is_moderate)
            && !self.passes(before)?
        {
            return Ok(());
        }
        let mut details = DocumentBuilder::new();
        details.begin_document("errInfo");
        details.append("failingDocumentId", after.get("_id").unwrap_or(Value::Null));
        let why: DocumentBuf = self.filter.failure_details(after);
        details.append("details", Value::Document(why.view())).end();
        let error = Error::invalid(Code::DocumentValidationFailure, "Document failed validation");
        Err(error.with_details(details.build()))
    }

    /// Whether it lets a document through whose references `large` reads: it opens what it looks
    /// at.
    ///
    /// # Errors
    /// The error of reading; as [`Validator::check`], but for a refusal.
    pub fn matches_in_pieces(&self, large: &Large, document: DocumentBuf) -> Result<bool, Error> {
        let filter = self.filter.clone().with_large(large);
        let document = large.open_document(&filter.needed_paths(), document)?;
        self.passes_filter(&filter, document.view())
    }

    fn passes(&self, document: Document<'_>) -> Result<bool, Error> {
        self.passes_filter(&self.filter, document)
    }

    fn passes_filter(&self, filter: &Filter, document: Document<'_>) -> Result<bool, Error> {
        let error = match filter.try_matches(document) {
            Ok(passes) => return Ok(passes),
            Err(error) => error,
        };
        // It may have failed with this itself: then it is the request that fails.
        self.memory.check()?;
        if error.code == Code::ExceededMemoryLimit { Err(error.into()) } else { Ok(false) }
    }
}
