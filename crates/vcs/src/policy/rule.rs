//! The rules of a policy: validators of the difference that a commit makes.

use frond_db::inside::Error;
use frond_doc::{DocumentBuf, DocumentBuilder, Value, extended_json};
use frond_query::expression::Variables;
use frond_query::{Code, Filter};

use crate::policy::branch_pattern::{self, BranchPattern};
use crate::policy::policy_fields::{check_fields, text, wrong};
use crate::{DiffDetail, DiffRow};

/// Violations that one error names.
const VIOLATIONS_NAMED_MAX: usize = 20;

/// A validator of differences.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    name: String,
    pub(super) collection: String,
    /// Only on these; otherwise on every branch.
    branches: Option<Vec<BranchPattern>>,
    documents: Option<Filter>,
    changes: Option<Filter>,
}

impl Rule {
    /// Reads a rule, to be checked for a request with these variables.
    ///
    /// # Errors
    /// `BadValue` that names what is wrong; what is wrong with a filter.
    pub(super) fn parse(rule: Value<'_>, variables: &Variables) -> Result<Rule, Error> {
        let rule = rule.as_document().ok_or_else(|| wrong("rules must hold documents"))?;
        check_fields(rule, &["name", "collection", "branches", "documents", "changes"])?;
        let filter = |name: &str| match rule.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Document(filter)) => {
                Ok(Some(Filter::parse(filter)?.with_variables(variables.clone())))
            }
            Some(_) => Err(wrong(format_args!("{name} of a rule must be a filter"))),
        };
        let named = |name: &str| {
            text(rule, name)?.ok_or_else(|| wrong(format_args!("a rule needs a {name}")))
        };
        let rule = Rule {
            name: named("name")?,
            collection: named("collection")?,
            branches: branch_pattern::list_of(rule)?,
            documents: filter("documents")?,
            changes: filter("changes")?,
        };
        if rule.documents.is_none() && rule.changes.is_none() {
            return Err(wrong(format_args!("rule {} has no filter", rule.name)));
        }
        Ok(rule)
    }

    /// Refuses one that judges by chance: what passed once must pass again, wherever the same
    /// change comes from.
    ///
    /// # Errors
    /// `BadValue` that names the operator.
    pub(super) fn refuse_chance(rule: Value<'_>) -> Result<(), Error> {
        let Some(operator) = chance_in(rule) else { return Ok(()) };
        let rule = rule.as_document().and_then(|rule| rule.get("name"));
        let name = rule.as_ref().and_then(|name| name.as_str()).unwrap_or_default();
        Err(wrong(format_args!(
            "rule {name} asks {operator}, which depends on chance: a rule must judge the same \
             change the same way each time"
        )))
    }

    /// Whether it holds on a branch.
    pub(super) fn holds_on(&self, branch: &str) -> bool {
        self.branches.as_ref().is_none_or(|patterns| patterns.iter().any(|it| it.matches(branch)))
    }

    /// Whether it names the branches on which it holds.
    pub(super) fn names_branches(&self) -> bool {
        self.branches.is_some()
    }

    /// Checks a row of a difference.
    ///
    /// # Errors
    /// The failure of an expression.
    pub(super) fn check(&self, row: &DiffRow, violations: &mut Violations) -> Result<(), Error> {
        let DiffDetail::Document { from, to } = &row.detail else { return Ok(()) };
        if let (Some(filter), Some(to)) = (&self.documents, to)
            && !filter.try_matches(to.view())?
        {
            violations.add(self, to, Some(filter.failure_details(to.view())));
            return Ok(());
        }
        if let Some(filter) = &self.changes
            && !filter.try_matches(row.to_row(true).view())?
            && let Some(any) = to.as_ref().or(from.as_ref())
        {
            violations.add(self, any, None);
        }
        Ok(())
    }
}

/// Documents that broke rules.
#[derive(Default)]
pub(super) struct Violations {
    count: u64,
    /// The first of them: rule, document's `_id` and why.
    named: Vec<DocumentBuf>,
}

impl Violations {
    fn add(&mut self, rule: &Rule, document: &DocumentBuf, why: Option<DocumentBuf>) {
        self.count += 1;
        if VIOLATIONS_NAMED_MAX <= self.named.len() {
            return;
        }
        let mut violation = DocumentBuilder::new();
        violation.append("rule", Value::String(&rule.name));
        violation.append("failingDocumentId", document.get("_id").unwrap_or(Value::Null));
        if let Some(why) = &why {
            violation.append("details", Value::from(why));
        }
        self.named.push(violation.build());
    }

    /// Refuses `subject` if there are any.
    ///
    /// # Errors
    /// `DocumentValidationFailure` (121) that names the rule and documents.
    pub(super) fn refuse(&self, subject: &str, namespace: &str) -> Result<(), Error> {
        let Some(first) = self.named.first() else { return Ok(()) };
        let rule = first.get("rule").and_then(|rule| rule.as_str()).unwrap_or_default();
        let message = format!(
            "{subject} breaks rule {rule} of the commit policy: {} documents of {namespace}, the \
             first with _id {}",
            self.count,
            shown(first.get("failingDocumentId").unwrap_or(Value::Null))
        );
        let mut details = DocumentBuilder::new();
        details.begin_document("errInfo").begin_array("violations");
        for violation in &self.named {
            details.push(Value::from(violation));
        }
        details.end().end();
        let error = Error::invalid(Code::DocumentValidationFailure, message);
        Err(error.with_details(details.build()))
    }
}

/// A value as JSON shows it.
fn shown(value: Value<'_>) -> String {
    let mut text = String::new();
    extended_json::write_value(value, extended_json::Form::Relaxed, &mut text);
    text
}

/// An operator that gives something else each time, wherever it stands. Recursion follows the
/// nesting of BSON, which validation has bounded.
fn chance_in<'v>(value: Value<'v>) -> Option<&'v str> {
    match value {
        Value::Array(array) => array.iter().find_map(chance_in),
        Value::Document(document) => document.iter().find_map(|(name, value)| match name {
            "$rand" | "$sampleRate" => Some(name),
            "$literal" => None,
            _ => chance_in(value),
        }),
        _ => None,
    }
}
