//! Decides whether a document is found by a search, and computes its score.
//!
//! A document passes if it has one of the words, none of the negated ones, all phrases and no
//! negated phrase.
//! - Words are asked as terms, in the language of the search; the document's in that of each text.
//!   Terms that an index files are without stop words; the negated ones are sought among all.
//! - A search that distinguishes case or marks finds by the terms that are filed, and then asks for
//!   one of its own terms among the document's.
//! - A phrase is a piece of a text, letter by letter, that may begin and end within words.

use std::collections::{BTreeMap, BTreeSet};

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};

use super::TextSpec;
use super::language::Language;
use super::query::{ParsedSearch, TextSearch};
use super::score;
use super::texts::{self, Text};
use super::tokens::{self, Sensitivity, StopWords};
use crate::code::Code;
use crate::error::QueryError;

/// A search, asked of what an index files.
#[derive(Clone, PartialEq, Debug)]
pub struct TextMatcher {
    spec: TextSpec,
    /// Terms as they are filed, one of which must be there.
    filed: BTreeSet<String>,
    /// Of these, too, if the search distinguishes more than the index.
    words: BTreeSet<String>,
    negated: BTreeSet<String>,
    phrases: Vec<String>,
    negated_phrases: Vec<String>,
    sensitivity: Sensitivity,
    /// Whether documents that are asked are known to have one of `filed`.
    is_found_by_index: bool,
}

impl TextMatcher {
    /// `search`, asked of what `spec` files.
    ///
    /// # Errors
    /// `BadValue` for a language that isn't known.
    pub fn new(search: &TextSearch, spec: &TextSpec) -> Result<TextMatcher, QueryError> {
        let language = match &search.language {
            None => spec.default_language,
            Some(name) => Language::named(name).ok_or_else(|| {
                let message = format!("unsupported language: \"{name}\" for text index version 3");
                QueryError::new(Code::BadValue, message)
            })?,
        };
        let ParsedSearch { words, negated_words, phrases, negated_phrases } = &search.parsed;
        let sensitivity = search.sensitivity;
        Ok(TextMatcher {
            spec: spec.clone(),
            filed: terms_of(words, language, Sensitivity::FILED),
            words: terms_of(words, language, sensitivity),
            negated: terms_of(negated_words, language, sensitivity),
            phrases: phrases.clone(),
            negated_phrases: negated_phrases.clone(),
            sensitivity,
            is_found_by_index: false,
        })
    }

    /// This, for documents that an index found by one of the terms.
    pub fn found_by_index(self) -> TextMatcher {
        TextMatcher { is_found_by_index: true, ..self }
    }

    /// The terms by which an index finds what is searched for: ascending.
    pub(crate) fn filed_terms(&self) -> impl Iterator<Item = &str> {
        self.filed.iter().map(String::as_str)
    }

    /// Returns how many terms may find a document.
    pub fn terms_count(&self) -> usize {
        self.filed.len()
    }

    /// Whether `document` is searched for. One whose language isn't known is not.
    pub(crate) fn matches(&self, document: Document<'_>) -> bool {
        self.try_matches(document).unwrap_or(false)
    }

    fn try_matches(&self, document: Document<'_>) -> Result<bool, QueryError> {
        let is_filed =
            |text: Text<'_>| has_term(text, &self.filed, StopWords::Dropped, Sensitivity::FILED);
        let has_word =
            |text: Text<'_>| has_term(text, &self.words, StopWords::Kept, self.sensitivity);
        let is_negated =
            |text: Text<'_>| has_term(text, &self.negated, StopWords::Kept, self.sensitivity);
        Ok((self.is_found_by_index || self.any_text(document, &is_filed)?)
            && (self.sensitivity.is_as_filed() || self.any_text(document, &has_word)?)
            && (self.negated.is_empty() || !self.any_text(document, &is_negated)?)
            && self.all_phrases(document, &self.phrases, true)?
            && self.all_phrases(document, &self.negated_phrases, false)?)
    }

    fn any_text(
        &self,
        document: Document<'_>,
        holds: &dyn Fn(Text<'_>) -> bool,
    ) -> Result<bool, QueryError> {
        let mut found = false;
        texts::for_each(&self.spec, document, &mut |text| {
            found = holds(text);
            !found
        })?;
        Ok(found)
    }

    /// Whether each of `phrases` is there, or each is not.
    fn all_phrases(
        &self,
        document: Document<'_>,
        phrases: &[String],
        is_there: bool,
    ) -> Result<bool, QueryError> {
        for phrase in phrases {
            let has_phrase = |text: Text<'_>| {
                let folded = |words: &str| tokens::folded(words, text.language, self.sensitivity);
                folded(text.text).contains(&folded(phrase))
            };
            if self.any_text(document, &has_phrase)? != is_there {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the sum of the scores in `document` of the terms that are searched for.
    pub fn score(&self, document: Document<'_>) -> f64 {
        let mut scores = BTreeMap::new();
        let walked = texts::for_each(&self.spec, document, &mut |text| {
            score::add_text(&mut scores, text, &|term| self.filed.contains(term));
            true
        });
        // A text that can't be filed has no score.
        walked.map_or(0.0, |()| scores.values().sum())
    }

    /// The search as MongoDB's `explain` shows it.
    pub fn parsed(&self) -> DocumentBuf {
        let mut out = DocumentBuilder::new();
        let mut list = |name: &str, items: &mut dyn Iterator<Item = &String>| {
            out.begin_array(name);
            items.for_each(|item| {
                out.push(Value::String(item));
            });
            out.end();
        };
        list("terms", &mut self.words.iter());
        list("negatedTerms", &mut self.negated.iter());
        list("phrases", &mut self.phrases.iter());
        list("negatedPhrases", &mut self.negated_phrases.iter());
        out.build()
    }
}

fn terms_of(words: &str, language: Language, sensitivity: Sensitivity) -> BTreeSet<String> {
    let mut terms = BTreeSet::new();
    tokens::for_each(words, language, StopWords::Dropped, sensitivity, &mut |term| {
        terms.insert(term.to_owned());
        true
    });
    terms
}

fn has_term(
    text: Text<'_>,
    wanted: &BTreeSet<String>,
    stop_words: StopWords,
    sensitivity: Sensitivity,
) -> bool {
    let mut found = false;
    tokens::for_each(text.text, text.language, stop_words, sensitivity, &mut |term| {
        found = wanted.contains(term);
        !found
    });
    found
}

#[cfg(test)]
mod tests {
    use frond_doc::extended_json;

    use super::*;

    fn matcher(operand: &str) -> TextMatcher {
        let operand = extended_json::parse(operand).expect("an operand");
        let weights = extended_json::parse(r#"{"a": 1, "b": 2}"#).expect("weights");
        let spec = TextSpec::new(weights.view(), "english", "language").expect("a spec");
        let search = TextSearch::parse(Value::from(&operand)).expect("a search");
        TextMatcher::new(&search, &spec).expect("a matcher")
    }

    fn check(operand: &str, passing: &[&str], failing: &[&str]) {
        let matcher = matcher(operand);
        for (documents, expected) in [(passing, true), (failing, false)] {
            for document in documents {
                let parsed = extended_json::parse(document).expect("a document");
                assert_eq!(matcher.matches(parsed.view()), expected, "{operand} {document}");
            }
        }
    }

    #[test]
    fn words_of_which_one_is_there() {
        check(
            r#"{"$search": "Coffee shops"}"#,
            &[r#"{"a": "coffee"}"#, r#"{"b": ["x", "a SHOP."]}"#],
            &[r#"{"a": "tea"}"#, r#"{"c": "coffee"}"#, r#"{"a": 1}"#, "{}"],
        );
        check(r#"{"$search": "the"}"#, &[], &[r#"{"a": "the"}"#]);
        check(r#"{"$search": ""}"#, &[], &[r#"{"a": "x"}"#, "{}"]);
        check(r#"{"$search": "CAFE"}"#, &[r#"{"a": "café"}"#], &[]);
    }

    #[test]
    fn negations_and_phrases() {
        check(
            r#"{"$search": "coffee -shop"}"#,
            &[r#"{"a": "coffee"}"#],
            &[r#"{"a": "coffee shop"}"#, r#"{"a": "coffee", "b": "shops"}"#, r#"{"a": "x"}"#],
        );
        check(r#"{"$search": "-shop"}"#, &[], &[r#"{"a": "coffee"}"#]);
        check(
            r#"{"$search": "\"coffee shop\""}"#,
            &[r#"{"a": "a COFFEE SHOP"}"#, r#"{"a": "coffee shopping"}"#],
            &[r#"{"a": "coffee, shop"}"#, r#"{"a": "coffee", "b": "shop"}"#],
        );
        check(
            r#"{"$search": "coffee -\"coffee shop\""}"#,
            &[r#"{"a": "coffee. shop"}"#],
            &[r#"{"a": "coffee shop"}"#],
        );
    }

    #[test]
    fn case_and_diacritics_are_distinguished_on_request() {
        check(
            r#"{"$search": "Coffee", "$caseSensitive": true}"#,
            &[r#"{"a": "Coffee"}"#],
            &[r#"{"a": "coffee"}"#, r#"{"a": "COFFEE"}"#],
        );
        check(
            r#"{"$search": "café", "$diacriticSensitive": true}"#,
            &[r#"{"a": "Café"}"#],
            &[r#"{"a": "cafe"}"#],
        );
        check(
            r#"{"$search": "\"Café\"", "$diacriticSensitive": true, "$caseSensitive": true}"#,
            &[r#"{"a": "Café"}"#],
            &[r#"{"a": "café"}"#, r#"{"a": "Cafe"}"#],
        );
    }

    #[test]
    fn the_languages_of_search_and_document() {
        check(
            r#"{"$search": "leche", "$language": "es"}"#,
            &[r#"{"a": "la leche", "language": "spanish"}"#],
            &[r#"{"a": "la"}"#, r#"{"a": "leche", "language": "x"}"#],
        );
    }

    #[test]
    fn scores_are_sums() {
        let document = extended_json::parse(r#"{"a": "red car", "b": "car"}"#).expect("a document");
        assert_eq!(matcher(r#"{"$search": "car"}"#).score(document.view()), 0.75 + 2.2);
        assert_eq!(matcher(r#"{"$search": "car red"}"#).score(document.view()), 0.75 + 2.2 + 0.75);
        assert_eq!(matcher(r#"{"$search": "blue"}"#).score(document.view()), 0.0);
    }
}
