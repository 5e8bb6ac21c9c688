//! `arrayFilters`: which elements `$[name]` stands for.

use std::collections::BTreeMap;
use std::convert::Infallible;

use frond_doc::path::{Path, Reached};
use frond_doc::pieces::{Lying, ReachedPart, VisitPart};
use frond_doc::{Array, Document, DocumentBuilder, Value};

use super::value_set::count_lookup;
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::Variables;
use crate::filter::Filter;
use crate::text;

/// The filters by their names.
///
/// Each is a filter on a document whose one field, called as the filter, is the array's element.
#[derive(Clone, Debug, Default)]
pub(super) struct ArrayFilters(BTreeMap<String, Filter>);

impl ArrayFilters {
    /// Parses `[{"x.a": {$gt: 5}}, ...]`.
    pub(super) fn parse(filters: Option<Array<'_>>) -> Result<ArrayFilters, QueryError> {
        let mut parsed = BTreeMap::new();
        for value in filters.iter().flat_map(|filters| filters.iter()) {
            let Some(document) = value.as_document() else {
                return Err(QueryError::new(
                    Code::TypeMismatch,
                    "each of the arrayFilters must be a document",
                ));
            };
            let filter = Filter::parse_inner(document)?;
            let mut name = None;
            find_name(document, &mut name)?;
            let Some(name) = name else {
                return Err(failed(
                    "Cannot use an expression without a top-level field name in arrayFilters",
                ));
            };
            if !is_identifier(name) {
                return Err(QueryError::new(
                    Code::BadValue,
                    format!(
                        "The top-level field name must be an alphanumeric string beginning with a \
                         lowercase letter, found '{name}'"
                    ),
                ));
            }
            if parsed.insert(name.to_owned(), filter).is_some() {
                return Err(failed(format!(
                    "Found multiple array filters with the same top-level field name {name}"
                )));
            }
        }
        Ok(ArrayFilters(parsed))
    }

    /// Checks that each filter is among the names that the update uses, and each of these a filter.
    pub(super) fn check_used(&self, used: &[&str], update: Document<'_>) -> Result<(), QueryError> {
        if let Some(name) = used.iter().find(|name| !self.0.contains_key(**name)) {
            return Err(QueryError::new(
                Code::BadValue,
                format!("No array filter found for identifier '{name}'"),
            ));
        }
        match self.0.keys().find(|name| !used.contains(&name.as_str())) {
            Some(name) => Err(failed(format!(
                "The array filter for identifier '{name}' was not used in the update {}",
                text::value(Value::Document(update))
            ))),
            None => Ok(()),
        }
    }

    /// Compares strings as `variables` say, and takes what they allow.
    pub(super) fn bind(&mut self, variables: &Variables) {
        for filter in self.0.values_mut() {
            *filter = filter.clone().with_variables(variables.clone());
        }
    }

    /// Whether `$[name]` stands for `element`, if it can be asked and that can be decided where the
    /// element lies.
    pub(super) fn takes(&self, name: &str, element: Lying<'_>) -> Option<bool> {
        let long = match element {
            Lying::Here(value) => return self.matches(name, value).ok(),
            Lying::Elsewhere(long) => long,
        };
        let filter = self.0.get(name)?;
        filter.memory().work(1).ok()?;
        let reach = &mut |path: &Path, visit: &mut VisitPart<'_>| Ok(long.reach(path, 1, visit));
        let Ok(answer) = filter.matches_in_pieces::<Infallible>(reach);
        answer
    }

    /// Whether `$[name]` stands for `element`.
    ///
    /// # Errors
    /// An error of evaluating the filter; the request's own error, if it must stop.
    pub(super) fn matches(&self, name: &str, element: Value<'_>) -> Result<bool, QueryError> {
        let Some(filter) = self.0.get(name) else { return Ok(false) };
        count_lookup(element, filter.memory())?;
        // All paths of the filter begin with the name.
        let Ok(known) = filter.matches_in_pieces::<Infallible>(&mut |path, visit| {
            let visit =
                &mut |reached: Reached<'_>| visit(ReachedPart::Value(reached)) == Some(true);
            Ok(Some(path.visit_reached_from(Some(element), visit)))
        });
        if let Some(answer) = known {
            return Ok(answer);
        }
        let mut wrapper = DocumentBuilder::new();
        wrapper.append(name, element);
        filter.try_matches(wrapper.build().view())
    }
}

fn failed(message: impl Into<String>) -> QueryError {
    QueryError::new(Code::FailedToParse, message)
}

/// Finds the one name with which all paths of a filter begin. The filter was parsed before, so
/// that the recursion is bounded.
fn find_name<'a>(filter: Document<'a>, found: &mut Option<&'a str>) -> Result<(), QueryError> {
    for (path, value) in filter.iter() {
        if path.starts_with('$') {
            for branch in value.as_array().iter().flat_map(|branches| branches.iter()) {
                if let Some(branch) = branch.as_document() {
                    find_name(branch, found)?;
                }
            }
            continue;
        }
        let name = path.split('.').next().unwrap_or(path);
        match *found {
            Some(known) if known != name => {
                return Err(failed(format!(
                    "Error parsing array filter :: caused by :: Expected a single top-level field \
                     name, found '{known}' and '{name}'"
                )));
            }
            _ => *found = Some(name),
        }
    }
    Ok(())
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|letter: char| letter.is_ascii_lowercase())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric())
}
