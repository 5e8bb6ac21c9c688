//! Updates: operators, replacements, pipelines, upserts.
//!
//! 1. `parse`: every path of every operator goes into one tree of steps ([`tree`]); two paths one
//!    of which lies within the other conflict there.
//! 2. `apply`: one pass ([`walk`]) copies the document's bytes and edits where the tree has a
//!    step; what no step names is copied as it lies. Fields that are new come after the others, in
//!    the order of their paths.
//! 3. Nothing changed if the bytes are the same, those of a replacement as it was sent.
//!
//! Reading order: `tree`, `operators` (the one table), the families (`assign`, `arithmetic`,
//! `push`, `pull`), `scope`, `walk`, `array_filters`, `pipeline` (updates by aggregation stages).

mod arithmetic;
mod array_filters;
mod assign;
mod modifier;
mod operators;
mod pipeline;
mod pull;
mod push;
mod scope;
mod tree;
mod value_set;
mod walk;

pub(crate) use operators::features;
pub use pull::Pull;
pub use push::{AddToSet, OrderedPush};
pub use scope::UpdateContext;
pub use value_set::Missing;

use frond_doc::document::DEPTH_MAX;
use frond_doc::pieces::Lying;
use frond_doc::raw::RawElement;
use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, ObjectId, Value, normalise, order};

use crate::code::Code;
use crate::collation::Collation;
use crate::error::QueryError;
use crate::expression::Variables;
use crate::filter::Filter;
use crate::large::Large;
use crate::replacement::{replaced_whole, replaced_whole_if_other, with_id};
use crate::text;
use array_filters::ArrayFilters;
use assign::Rename;
use modifier::Modifier;
use pipeline::PipelineUpdate;
use scope::{Occasion, Scope};
use tree::{Branch, Node, Step};

/// A parsed update: operators, a replacement document, or a pipeline.
#[derive(Clone, Debug)]
pub struct Update {
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Operators(Operators),
    Replacement(DocumentBuf),
    Pipeline(Box<PipelineUpdate>),
}

/// The requests of an update's operators.
#[derive(Clone, Debug, Default)]
struct Operators {
    root: Branch,
    renames: Vec<Rename>,
    filters: ArrayFilters,
    /// The collation, and the variables that the update may take.
    variables: Variables,
    /// Whether a `$` stands in a path.
    has_positional: bool,
    /// Whether the result could be nested deeper than a document may be, so that it is checked.
    may_be_deep: bool,
}

impl Operators {
    fn bind(&mut self, variables: Variables) {
        self.filters.bind(&variables);
        self.root.for_each_modifier(&mut |modifier| modifier.bind(&variables));
        self.variables = variables;
    }

    fn collate(&mut self, collation: &Collation) {
        if collation != self.variables.collation() {
            self.bind(self.variables.clone().with_collation(collation.clone()));
        }
    }
}

impl Update {
    /// Parses the `u` of an update statement. `array_filters` must be used up by `$[name]`.
    ///
    /// # Errors
    /// MongoDB's codes: unknown operators, operands of the wrong type, paths in conflict.
    pub fn parse(
        update: Value<'_>,
        array_filters: Option<Array<'_>>,
    ) -> Result<Update, QueryError> {
        let document = match update {
            Value::Document(document) => document,
            Value::Array(stages) => {
                let pipeline = Box::new(PipelineUpdate::parse(stages, array_filters)?);
                return Ok(Update { form: Form::Pipeline(pipeline) });
            }
            _ => {
                let message = "Update argument must be either an object or an array";
                return Err(QueryError::new(Code::FailedToParse, message));
            }
        };
        let first = document.iter().next().map(|(name, _)| name);
        let form = if first.is_some_and(|name| name.starts_with('$')) {
            let filters = ArrayFilters::parse(array_filters)?;
            let mut operators = operators::parse(document, filters)?;
            operators.filters.check_used(&operators.root.filter_names(), document)?;
            operators.has_positional = operators.root.has_positional();
            Form::Operators(operators)
        } else {
            if array_filters.is_some_and(|filters| !filters.is_empty()) {
                let message = "Cannot specify arrayFilters with a replacement update";
                return Err(QueryError::new(Code::FailedToParse, message));
            }
            Form::Replacement(replacement(document)?)
        };
        Ok(Update { form })
    }

    /// Gives the expressions of a pipeline their variables: those of the command, and the
    /// statement's `constants`. Operators get the collation that comes with the variables.
    ///
    /// # Errors
    /// Unbound variables; constants for an update that is no pipeline (51198);
    /// `ExceededMemoryLimit`.
    pub fn bind(
        &mut self,
        variables: &Variables,
        constants: Option<Document<'_>>,
    ) -> Result<(), QueryError> {
        match &mut self.form {
            Form::Pipeline(pipeline) => pipeline.bind(variables, constants),
            _ if constants.is_some() => {
                let message = "Constant values may only be specified for pipeline updates";
                Err(QueryError::new(Code::Location(51198), message))
            }
            Form::Operators(operators) => {
                let mut bytes = 0;
                operators.root.for_each_modifier(&mut |modifier| bytes += modifier.bytes());
                variables.memory().hold_kept(bytes)?;
                operators.bind(variables.clone());
                Ok(())
            }
            Form::Replacement(_) => Ok(()),
        }
    }

    /// Gives what is a part of an update that was bound the same variables.
    pub fn with_variables(mut self, variables: &Variables) -> Update {
        if let Form::Operators(operators) = &mut self.form {
            operators.bind(variables.clone());
        }
        self
    }

    /// The same for documents whose references `large` reads: an update by stages looks at them
    /// through it.
    pub fn with_large(mut self, large: &Large) -> Update {
        if let Form::Pipeline(pipeline) = &mut self.form {
            pipeline.read_by(large);
        }
        self
    }

    /// Returns the variables of the operators; `None` of updates of other kinds.
    pub fn variables(&self) -> Option<&Variables> {
        match &self.form {
            Form::Operators(operators) => Some(&operators.variables),
            Form::Replacement(_) | Form::Pipeline(_) => None,
        }
    }

    /// Compares strings by `collation`.
    pub fn with_collation(mut self, collation: &Collation) -> Update {
        match &mut self.form {
            Form::Operators(operators) => operators.collate(collation),
            Form::Pipeline(pipeline) => pipeline.collate(collation),
            Form::Replacement(_) => {}
        }
        self
    }

    /// Whether the array filter of that name takes an element; `None` if it can't be asked, or only
    /// the element itself decides, put together.
    pub fn takes_element(&self, filter: &str, element: Lying<'_>) -> Option<bool> {
        let Form::Operators(Operators { filters, .. }) = &self.form else { return None };
        filters.takes(filter, element)
    }

    /// Whether an element of the outermost array called `array` surely stays as it is: the steps
    /// that lead into that array are all `$[x]` whose filters don't take it.
    pub fn leaves_element(&self, array: &str, element: Lying<'_>) -> bool {
        let Form::Operators(Operators { root, filters, .. }) = &self.form else { return false };
        root.steps().all(|(step, node)| match (step, node) {
            (Step::Name(name), Node::Branch(branch)) if name == array => {
                branch.steps().all(|(step, _)| match step {
                    // An error must come where the filter is applied.
                    Step::Filtered(name) => filters.takes(name, element) == Some(false),
                    _ => false,
                })
            }
            _ => false,
        })
    }

    /// Whether this is a replacement document (which `multi` forbids).
    pub fn is_replacement(&self) -> bool {
        matches!(self.form, Form::Replacement(_))
    }

    /// Whether operators name outermost fields that begin with `$`.
    pub fn names_dollar_fields(&self) -> bool {
        match &self.form {
            Form::Operators(operators) => operators.root.dollar_names().next().is_some(),
            Form::Replacement(_) | Form::Pipeline(_) => false,
        }
    }

    /// Whether a positional `$` is used, so that the position that the filter matched is wanted.
    pub fn needs_position(&self) -> bool {
        match &self.form {
            Form::Operators(operators) => operators.has_positional,
            Form::Replacement(_) | Form::Pipeline(_) => false,
        }
    }

    /// Returns the changed document, or `None` if nothing changes. `_id` stays as it is.
    ///
    /// # Errors
    /// MongoDB's codes: values of the wrong type, paths that can't be made, a changed `_id`.
    pub fn apply(
        &self,
        document: Document<'_>,
        context: &UpdateContext,
    ) -> Result<Option<DocumentBuf>, QueryError> {
        let changed = match &self.form {
            Form::Operators(operators) => {
                let changed = operators.apply(document, context, Occasion::Update)?;
                refuse_changed_id(document, changed)?
            }
            Form::Replacement(made) => return replaced_whole_if_other(document, made),
            Form::Pipeline(pipeline) => {
                return replaced_whole_if_other(document, &pipeline.apply(document)?);
            }
        };
        Ok((changed.as_bytes() != document.as_bytes()).then_some(changed))
    }

    /// Returns the document that an upsert inserts: the equalities of `filter`, then this update
    /// (with `$setOnInsert`), `_id` first and made by `new_id` where neither gives one.
    ///
    /// # Errors
    /// As [`Update::apply`], and if the filter's equalities contradict each other.
    pub fn upsert(
        &self,
        filter: &Filter,
        context: &UpdateContext,
        new_id: &mut dyn FnMut() -> ObjectId,
    ) -> Result<DocumentBuf, QueryError> {
        let made = match &self.form {
            Form::Operators(operators) => {
                let base = equalities_document(filter, context)?;
                let made = operators.apply(base.view(), context, Occasion::Insert)?;
                refuse_changed_id(base.view(), made)?
            }
            Form::Replacement(replacement) => match (filter.id_equality()?, replacement.get("_id"))
            {
                (Some(id), None) => with_id(Some(id), replacement.view()),
                (Some(id), Some(other)) if !order::equal(id, other) => {
                    return Err(QueryError::new(
                        Code::ImmutableField,
                        format!(
                            "After applying the update, the (immutable) field '_id' was found to \
                             have been altered to {}",
                            text::field("_id", other)
                        ),
                    ));
                }
                _ => replacement.clone(),
            },
            Form::Pipeline(pipeline) => {
                let base = equalities_document(filter, context)?;
                let made = pipeline.apply(base.view())?;
                replaced_whole(base.view(), &made)?
            }
        };
        let made = normalise::for_insert(&made, new_id)
            .map_err(|error| QueryError::new(Code::BadValue, error.to_string()))?;
        normalise::check_id(made.view()).map_err(|reason| {
            let code = match made.get("_id") {
                Some(Value::Document(_)) => Code::DollarPrefixedFieldName,
                _ => Code::InvalidIdField,
            };
            QueryError::new(code, reason)
        })?;
        Ok(made)
    }
}

impl Operators {
    fn apply(
        &self,
        document: Document<'_>,
        context: &UpdateContext,
        occasion: Occasion,
    ) -> Result<DocumentBuf, QueryError> {
        for rename in &self.renames {
            rename.check(document)?;
        }
        let mut out = DocumentBuilder::with_capacity(document.as_bytes().len() + 64);
        let (filters, variables) = (&self.filters, &self.variables);
        let _charge = variables.memory().charge_of(document.as_bytes().len())?;
        let scope = Scope { document, context, filters, occasion, variables };
        if self.has_positional {
            walk::position(&scope)?; // Also where the walk meets no `$`.
        }
        walk::root(&mut out, &self.root, &scope)?;
        let changed = out.build();
        if occasion == Occasion::Update {
            self.refuse_dollar_names(document, changed.view())?;
        }
        if self.may_be_deep && !is_within_depth(changed.view(), DEPTH_MAX) {
            let message = format!("the updated document is nested deeper than {DEPTH_MAX}");
            return Err(QueryError::new(Code::Overflow, message));
        }
        Ok(changed)
    }

    /// An insert may bring outermost names with `$`, but no update adds or changes such a field.
    fn refuse_dollar_names(
        &self,
        before: Document<'_>,
        after: Document<'_>,
    ) -> Result<(), QueryError> {
        let is_changed = |name: &&str| {
            let value = after.get(name);
            value.is_some() && value != before.get(name)
        };
        let Some(name) = self.root.dollar_names().find(is_changed) else { return Ok(()) };
        let message =
            format!("The dollar ($) prefixed field '{name}' in '{name}' is not valid for storage.");
        Err(QueryError::new(Code::DollarPrefixedFieldName, message))
    }
}

/// Whether documents and arrays are nested at most `depth` deep, `document` counted.
fn is_within_depth(document: Document<'_>, depth: usize) -> bool {
    depth > 0
        && document.iter().all(|(_, value)| match value {
            Value::Document(inner) => is_within_depth(inner, depth - 1),
            Value::Array(inner) => is_within_depth(inner.as_document(), depth - 1),
            Value::JavaScriptWithScope { scope, .. } => is_within_depth(scope, depth - 1),
            _ => true,
        })
}

/// Checks a replacement document's names.
fn replacement(document: Document<'_>) -> Result<DocumentBuf, QueryError> {
    if let Some((name, _)) = document.iter().find(|(name, _)| name.starts_with('$')) {
        return Err(QueryError::new(
            Code::DollarPrefixedFieldName,
            format!(
                "The dollar ($) prefixed field '{name}' in '{name}' is not allowed in the context \
                 of an update's replacement document. Consider using an aggregation pipeline with \
                 $replaceWith."
            ),
        ));
    }
    Ok(document.to_buf())
}

/// The document that the equalities of an upsert's filter make.
fn equalities_document(
    filter: &Filter,
    context: &UpdateContext,
) -> Result<DocumentBuf, QueryError> {
    let mut base = Operators::default();
    for (path, value) in filter.equalities()? {
        base.root.insert(path, Modifier::Set(value.to_buf()))?;
    }
    base.apply(Document::empty(), context, Occasion::Insert)
}

/// Refuses an `_id` that operators have changed, were it only to a number of another type.
fn refuse_changed_id(before: Document<'_>, after: DocumentBuf) -> Result<DocumentBuf, QueryError> {
    // Compares bytes: NaN is what it was, 1.0 isn't 1.
    let is_id = |element: &RawElement<'_>| element.name == b"_id";
    let new = after.view().elements().find(is_id).map(|id| (id.kind, id.value));
    match before.elements().find(is_id) {
        Some(old) if new != Some((old.kind, old.value)) => Err(QueryError::new(
            Code::ImmutableField,
            "Performing an update on the path '_id' would modify the immutable field '_id'",
        )),
        _ => Ok(after),
    }
}

#[cfg(test)]
mod tests;
