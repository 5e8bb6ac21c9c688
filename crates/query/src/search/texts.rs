//! The texts of a document that a text index files, each with its language and weight.
//!
//! 1. The document is walked into. A field's path is its names, joined with dots; positions in
//!    arrays don't count. Arrays in arrays are walked into by wildcards only.
//! 2. A string is taken if its path has a weight, or by a wildcard.
//! 3. A document that names its language in the override field changes it for itself and all within
//!    it. The override field itself isn't filed by a wildcard.
//!
//! *Surprise*: under a wildcard a path without a weight gets that of the first weighted path that
//! comes after it in the order of bytes, and 1 only if none does. So it is in MongoDB, and scores
//! are to be the same.

use std::ops::Bound;

use frond_doc::{Array, Document, Value};

use super::language::Language;
use super::{TextSpec, WEIGHT_DEFAULT};
use crate::code::Code;
use crate::error::QueryError;

/// A text that is filed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'d> {
    pub(super) text: &'d str,
    pub(super) language: Language,
    pub(super) weight: f64,
}

/// Calls `visit` with each text that is filed, in the document's order, until it answers false.
///
/// # Errors
/// 17261 and 17262 for an override field that names no language.
pub(super) fn for_each<'d>(
    spec: &TextSpec,
    document: Document<'d>,
    visit: &mut dyn FnMut(Text<'d>) -> bool,
) -> Result<(), QueryError> {
    let mut walk = Walk { spec, visit, path: String::new() };
    walk.document(document, spec.default_language).map(|_| ())
}

struct Walk<'s, 'v, 'd> {
    spec: &'s TextSpec,
    visit: &'v mut dyn FnMut(Text<'d>) -> bool,
    /// The path where the walk is.
    path: String,
}

impl<'d> Walk<'_, '_, 'd> {
    /// Walks into a document; answers whether to go on. Recursion follows the document's nesting,
    /// which validation has bounded.
    fn document(&mut self, document: Document<'d>, outer: Language) -> Result<bool, QueryError> {
        let language = language_of(self.spec, document, outer)?;
        for (name, value) in document.iter() {
            if self.spec.is_wildcard && name == self.spec.language_override {
                continue;
            }
            let end = self.path.len();
            if end > 0 {
                self.path.push('.');
            }
            self.path.push_str(name);
            let keep_going = self.value(value, language, false)?;
            self.path.truncate(end);
            if !keep_going {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn array(&mut self, array: Array<'d>, language: Language) -> Result<bool, QueryError> {
        for element in array.iter() {
            if !self.value(element, language, true)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A value at the walk's path.
    fn value(
        &mut self,
        value: Value<'d>,
        language: Language,
        is_element: bool,
    ) -> Result<bool, QueryError> {
        let is_wildcard = self.spec.is_wildcard;
        match value {
            Value::String(text) => match self.weight() {
                Some(weight) => Ok((self.visit)(Text { text, language, weight })),
                None => Ok(true),
            },
            Value::Document(inner) if is_wildcard || self.has_weights_within() => {
                self.document(inner, language)
            }
            Value::Array(inner) => {
                let is_entered = !is_element && (self.is_weighted() || self.has_weights_within());
                if is_wildcard || is_entered { self.array(inner, language) } else { Ok(true) }
            }
            _ => Ok(true),
        }
    }

    fn is_weighted(&self) -> bool {
        self.spec.weights.contains_key(&self.path)
    }

    /// The weight of a string at the walk's path; `None` if it isn't filed.
    fn weight(&self) -> Option<f64> {
        if !self.spec.is_wildcard {
            return self.spec.weights.get(&self.path).copied();
        }
        let from = (Bound::Included(self.path.as_str()), Bound::Unbounded);
        let next = self.spec.weights.range::<str, _>(from).next();
        Some(next.map_or(WEIGHT_DEFAULT, |(_, weight)| *weight))
    }

    /// Whether a path within the walk's has a weight.
    fn has_weights_within(&self) -> bool {
        let from = (Bound::Excluded(self.path.as_str()), Bound::Unbounded);
        let within =
            |path: &str| path.strip_prefix(&self.path).is_some_and(|it| it.starts_with('.'));
        let paths = self.spec.weights.range::<str, _>(from).map(|(path, _)| path);
        // Paths that begin with the same letters and go on otherwise may come before.
        paths.take_while(|path| path.starts_with(&self.path)).any(|path| within(path))
    }
}

fn language_of(
    spec: &TextSpec,
    document: Document<'_>,
    outer: Language,
) -> Result<Language, QueryError> {
    match document.get(&spec.language_override) {
        None => Ok(outer),
        Some(Value::String(name)) => Language::named(name).ok_or_else(|| {
            let message = format!("language override unsupported: {name}");
            QueryError::new(Code::Location(17262), message)
        }),
        Some(_) => {
            let message = "found language override field in document with non-string type";
            Err(QueryError::new(Code::Location(17261), message))
        }
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::{DocumentBuf, extended_json};

    use super::*;

    fn document(text: &str) -> DocumentBuf {
        extended_json::parse(text).expect("a document")
    }

    /// The texts as `language weight text`.
    fn check(weights: &str, source: &str, expected: &[&str]) {
        let spec = TextSpec::new(document(weights).view(), "english", "language").expect("a spec");
        let mut found = Vec::new();
        for_each(&spec, document(source).view(), &mut |text| {
            let language = format!("{:?}", text.language);
            let name = language.split('"').nth(1).expect("its name").to_owned();
            found.push(format!("{name} {} {}", text.weight, text.text));
            true
        })
        .expect("languages are known");
        assert_eq!(found, expected, "{weights} {source}");
    }

    #[test]
    fn texts() {
        check(r#"{"a": 1}"#, r#"{"a": "x", "b": "y"}"#, &["english 1 x"]);
        check(r#"{"a": 2}"#, r#"{"a": ["x", 1, ["y"], "z"]}"#, &["english 2 x", "english 2 z"]);
        check(
            r#"{"a.b": 3}"#,
            r#"{"a": [{"b": "x"}, {"b": ["y"]}, "z"]}"#,
            &["english 3 x", "english 3 y"],
        );
        check(r#"{"a.b": 3, "a!": 1}"#, r#"{"a": {"b": "x"}}"#, &["english 3 x"]);
        check(r#"{"a": 1}"#, r#"{"a": {"b": "x"}}"#, &[]);
        check(
            r#"{"$**": 1}"#,
            r#"{"a": {"b": [["x"]]}, "language": "french", "c": "y"}"#,
            &["french 1 x", "french 1 y"],
        );
        // The next weighted path counts for those before it.
        check(
            r#"{"$**": 9, "b": 5}"#,
            r#"{"a": "x", "b": "y", "c": "z"}"#,
            &["english 5 x", "english 5 y", "english 1 z"],
        );
        check(
            r#"{"a": 1, "t.a": 1}"#,
            r#"{"language": "pt", "a": "x", "t": [{"language": "es", "a": "y"}, {"a": "z"}]}"#,
            &["portuguese 1 x", "spanish 1 y", "portuguese 1 z"],
        );
    }

    #[test]
    fn languages_that_are_none() {
        for (source, code) in [(r#"{"language": 1}"#, 17261), (r#"{"language": "x"}"#, 17262)] {
            let weights = document(r#"{"a": 1}"#);
            let spec = TextSpec::new(weights.view(), "english", "language").expect("a spec");
            let error =
                for_each(&spec, document(source).view(), &mut |_| true).expect_err("refused");
            assert_eq!(error.code.number(), code);
        }
    }
}
