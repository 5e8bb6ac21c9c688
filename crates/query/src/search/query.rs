//! The parts of a `$text`: words one of which must be there, words that must not, and phrases.
//!
//! `$search` is read word by word. A minus behind white space (or at the beginning) negates what
//! follows up to the next white space; quotes enclose phrases. Words of a phrase are among the
//! words that are searched for, unless it is negated. A minus within a word divides it, and negates
//! nothing.

use frond_doc::{Document, Value};

use super::tokens::Sensitivity;
use crate::code::Code;
use crate::error::QueryError;

/// A parsed `$text`, which isn't asked of an index yet.
#[derive(Clone, PartialEq, Debug)]
pub struct TextSearch {
    pub(super) parsed: ParsedSearch,
    /// `$language`; `None`: the index's.
    pub(super) language: Option<String>,
    pub(super) sensitivity: Sensitivity,
}

/// A `$search`, taken apart.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct ParsedSearch {
    /// Words, divided by white space.
    pub(super) words: String,
    /// Words that must not be there.
    pub(super) negated_words: String,
    pub(super) phrases: Vec<String>,
    /// Phrases that must not be there.
    pub(super) negated_phrases: Vec<String>,
}

impl TextSearch {
    /// Parses the operand of `$text`.
    ///
    /// # Errors
    /// MongoDB's codes for what isn't one.
    pub(crate) fn parse(operand: Value<'_>) -> Result<TextSearch, QueryError> {
        let Value::Document(operand) = operand else {
            return Err(QueryError::new(Code::BadValue, "$text expects an object"));
        };
        let Some(search) = text(operand, "$search")? else {
            return Err(QueryError::new(Code::NoSuchKey, "Missing expected field \"$search\""));
        };
        let language = text(operand, "$language")?.filter(|name| !name.is_empty());
        let case = flag(operand, "$caseSensitive")?;
        let marks = flag(operand, "$diacriticSensitive")?;
        const KNOWN: [&str; 4] = ["$search", "$language", "$caseSensitive", "$diacriticSensitive"];
        let count = KNOWN.iter().filter(|name| operand.get(name).is_some()).count();
        if count != operand.iter().count() {
            return Err(QueryError::new(Code::BadValue, "extra fields in $text"));
        }
        Ok(TextSearch {
            parsed: ParsedSearch::parse(search),
            language: language.map(str::to_owned),
            sensitivity: Sensitivity { case, marks },
        })
    }
}

fn text<'v>(operand: Document<'v>, name: &str) -> Result<Option<&'v str>, QueryError> {
    match operand.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(wrong_type(name, "string", other)),
    }
}

fn flag(operand: Document<'_>, name: &str) -> Result<bool, QueryError> {
    match operand.get(name) {
        None => Ok(false),
        Some(Value::Boolean(flag)) => Ok(flag),
        Some(other) => Err(wrong_type(name, "bool", other)),
    }
}

fn wrong_type(name: &str, expected: &str, found: Value<'_>) -> QueryError {
    let found = found.element_type().alias();
    let message = format!("\"{name}\" had the wrong type. Expected {expected}, found {found}");
    QueryError::new(Code::TypeMismatch, message)
}

/// White space that ends a negation. A tab is none, in MongoDB neither.
fn is_space(letter: char) -> bool {
    matches!(letter, '\n' | '\u{b}' | '\u{c}' | '\r' | ' ')
}

impl ParsedSearch {
    fn parse(search: &str) -> ParsedSearch {
        let mut parsed = ParsedSearch::default();
        let mut is_negated = false;
        let mut phrase_start: Option<usize> = None;
        let mut is_behind_space = true;
        let mut rest = search;
        while let Some(letter) = rest.chars().next() {
            let at = search.len() - rest.len();
            let is_word = |letter: char| !is_space(letter) && letter != '-' && letter != '"';
            match letter {
                _ if is_space(letter) => {
                    is_behind_space = true;
                    rest = &rest[letter.len_utf8()..];
                    continue;
                }
                '-' => {
                    is_negated |= phrase_start.is_none() && is_behind_space;
                    rest = &rest[1..];
                }
                '"' => {
                    match phrase_start.take() {
                        Some(start) => {
                            let phrases = match is_negated {
                                true => &mut parsed.negated_phrases,
                                false => &mut parsed.phrases,
                            };
                            phrases.push(search[start..at].to_owned());
                        }
                        None => {
                            is_negated &= !is_behind_space;
                            phrase_start = Some(at + 1);
                        }
                    }
                    rest = &rest[1..];
                }
                _ => {
                    let end = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
                    if !(is_negated && phrase_start.is_some()) {
                        is_negated &= !is_behind_space;
                        let words = match is_negated {
                            true => &mut parsed.negated_words,
                            false => &mut parsed.words,
                        };
                        words.push_str(&rest[..end]);
                        words.push(' ');
                    }
                    rest = &rest[end..];
                }
            }
            is_behind_space = false;
        }
        parsed
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::extended_json;

    use super::*;

    /// Words, negated words, phrases, negated phrases: `a b | c | d e | f`.
    fn check(search: &str, expected: &str) {
        let ParsedSearch { words, negated_words, phrases, negated_phrases } =
            ParsedSearch::parse(search);
        let found = [
            words.trim_end().to_owned(),
            negated_words.trim_end().to_owned(),
            phrases.join(","),
            negated_phrases.join(","),
        ];
        assert_eq!(found.join("|"), expected, "{search:?}");
    }

    #[test]
    fn searches_are_taken_apart() {
        check("", "|||");
        check("  coffee shop ", "coffee shop|||");
        check("coffee -shop", "coffee|shop||");
        check("coffee - shop", "coffee shop|||");
        check("-foo-bar baz", "baz|foo bar||");
        check("pre-market", "pre market|||");
        check("--foo", "|foo||");
        check("\"ssl certificate\" key", "ssl certificate key||ssl certificate|");
        check("a -\"b c\" d", "a d|||b c");
        check("-\"b c\"-\"d\" e", "e|||b c,d");
        check("- \"b c\"", "b c||b c|");
        check("\"a -b\"", "a b||a -b|");
        check("\"open ended", "open ended|||");
        check("a\"b\"c", "a b c||b|");
        check("a\t-b", "a\t b|||");
        check("é -ü\"ö\"", "é|ü||ö");
    }

    #[test]
    fn operands_that_are_none() {
        for (operand, code) in [
            (r#"{}"#, 4),
            (r#"{"$search": 1}"#, 14),
            (r#"{"$search": "a", "$language": 1}"#, 14),
            (r#"{"$search": "a", "$caseSensitive": 1}"#, 14),
            (r#"{"$search": "a", "$diacriticSensitive": "x"}"#, 14),
            (r#"{"$search": "a", "x": 1}"#, 2),
        ] {
            let operand = extended_json::parse(operand).expect("a document");
            let error = TextSearch::parse(Value::from(&operand)).expect_err("refused");
            assert_eq!(error.code.number(), code, "{operand:?}");
        }
        assert_eq!(TextSearch::parse(Value::Int32(1)).expect_err("refused").code.number(), 2);
    }
}
