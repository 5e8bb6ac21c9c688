//! The score of a term in a document.
//!
//! Of each text of the document, with its weight w and n terms that aren't stop words, a term that
//! stands c times in it gets
//!
//! > w · (1 + 1/2 + 1/4 + ... , c summands) · (1/2 + c / 2n) · (1.1 if the text is but this term,
//! > else 1)
//!
//! so that repetition counts less each time, and a term counts more where it is a larger share of
//! the text. The document's score for a term is the sum over its texts; for a search, the sum over
//! the terms sought. This is MongoDB's formula, computed in the same order, so that scores are
//! equal to the last bit.

use std::collections::BTreeMap;

use frond_doc::Document;

use super::TextSpec;
use super::texts::{self, Text};
use super::tokens::{self, Sensitivity, StopWords};
use crate::code::Code;
use crate::error::QueryError;

/// Terms of a document at most, as MongoDB's.
const TERMS_MAX: usize = 400_000;
/// Bytes of a document's terms at most, as MongoDB's, but for what its keys have besides.
const TERMS_BYTES_MAX: usize = 4 << 20;

/// Counts of one term in one text.
#[derive(Clone, Copy, Default)]
struct Counted {
    count: f64,
    /// 2 to the power of the count less one.
    divisor: f64,
    frequency: f64,
}

/// The terms of a document, with what they count in it.
///
/// # Errors
/// As `texts::for_each`; 16732 and 16733 for too many terms.
pub(crate) fn terms(
    spec: &TextSpec,
    document: Document<'_>,
) -> Result<BTreeMap<String, f64>, QueryError> {
    let mut scores = BTreeMap::new();
    texts::for_each(spec, document, &mut |text| {
        add_text(&mut scores, text, &|_| true);
        true
    })?;
    if TERMS_MAX < scores.len() {
        let message = format!(
            "too many unique keys for a single document to have a text index, max is {TERMS_MAX}"
        );
        return Err(QueryError::new(Code::Location(16732), message));
    }
    if TERMS_BYTES_MAX < scores.keys().map(String::len).sum() {
        let message = "trying to index text where term list is too big, max is 4mb";
        return Err(QueryError::new(Code::Location(16733), message));
    }
    Ok(scores)
}

/// Adds what the terms of one text that are `wanted` count.
pub(super) fn add_text(
    scores: &mut BTreeMap<String, f64>,
    text: Text<'_>,
    wanted: &dyn Fn(&str) -> bool,
) {
    let mut counted: BTreeMap<String, Counted> = BTreeMap::new();
    let mut terms_count = 0.0;
    let Text { text, language, weight } = text;
    tokens::for_each(text, language, StopWords::Dropped, Sensitivity::FILED, &mut |term| {
        terms_count += 1.0;
        if wanted(term) {
            if !counted.contains_key(term) {
                counted.insert(term.to_owned(), Counted::default());
            }
            if let Some(of_term) = counted.get_mut(term) {
                of_term.divisor = if of_term.count == 0.0 { 1.0 } else { of_term.divisor * 2.0 };
                of_term.count += 1.0;
                of_term.frequency += 1.0 / of_term.divisor;
            }
        }
        true
    });
    for (term, Counted { count, frequency, .. }) in counted {
        let share = 0.5 * count / terms_count + 0.5;
        let is_all = text.len() == term.len() && text.eq_ignore_ascii_case(&term);
        let adjustment = if is_all { 1.0 + 0.1 } else { 1.0 };
        *scores.entry(term).or_default() += weight * frequency * share * adjustment;
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::extended_json;

    use super::*;

    fn check(weights: &str, source: &str, expected: &[(&str, f64)]) {
        let weights = extended_json::parse(weights).expect("weights");
        let spec = TextSpec::new(weights.view(), "english", "language").expect("a spec");
        let document = extended_json::parse(source).expect("a document");
        let found = terms(&spec, document.view()).expect("terms");
        let expected: Vec<(String, f64)> =
            expected.iter().map(|(term, score)| ((*term).to_owned(), *score)).collect();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected, "{source}");
    }

    /// The cases of MongoDB's manual and of its users' explains, recomputed by hand.
    #[test]
    fn scores() {
        check(r#"{"a": 1}"#, r#"{"a": "coffee"}"#, &[("coffe", 1.0)]);
        check(r#"{"a": 1}"#, r#"{"a": "cake"}"#, &[("cake", 1.1)]);
        check(r#"{"a": 1}"#, r#"{"a": "coffee shop"}"#, &[("coffe", 0.75), ("shop", 0.75)]);
        check(r#"{"a": 10}"#, r#"{"a": "the shop shop shop"}"#, &[("shop", 17.5)]);
        check(
            r#"{"a": 1, "b": 2}"#,
            r#"{"a": "red car", "b": ["red", "blue car"]}"#,
            &[("blue", 1.5), ("car", 0.75 + 1.5), ("red", 0.75 + 2.0 * 1.1)],
        );
        check(r#"{"a": 1}"#, r#"{"a": "the"}"#, &[]);
    }
}
