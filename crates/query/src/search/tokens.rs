//! From text to terms.
//!
//! 1. Text is cut where a letter divides words.
//! 2. A word in small letters that is a stop word is dropped.
//! 3. It is stemmed, and its letters lose their marks: the stemmer knows marks.
//!
//! A search that distinguishes case or marks leaves out the folding that would lose them. A term
//! keeps no more than [`TERM_BYTES_MAX`]; longer ones are distinguished no further.

use super::language::Language;
use super::letters;

/// Bytes of a term at most.
const TERM_BYTES_MAX: usize = 256;

/// Whether terms distinguish case and diacritics.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Sensitivity {
    pub(super) case: bool,
    pub(super) marks: bool,
}

impl Sensitivity {
    /// Terms as indexes file them.
    pub(super) const FILED: Sensitivity = Sensitivity { case: false, marks: false };

    /// Whether terms are as indexes file them.
    pub(super) fn is_as_filed(self) -> bool {
        self == Sensitivity::FILED
    }
}

/// The treatment of stop words: whether they are among the terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StopWords {
    Dropped,
    Kept,
}

/// Calls `visit` with each term of `text`, in their order, until it answers false.
pub(super) fn for_each(
    text: &str,
    language: Language,
    stop_words: StopWords,
    sensitivity: Sensitivity,
    visit: &mut dyn FnMut(&str) -> bool,
) {
    let (mut small, mut term) = (String::new(), String::new());
    let is_end = |letter: char| letters::divides(letter, language);
    for word in text.split(is_end).filter(|word| !word.is_empty()) {
        small.clear();
        letters::append_small(&mut small, word, language);
        if stop_words == StopWords::Dropped && language.is_stop_word(&small) {
            continue;
        }
        let stem = language.stem(if sensitivity.case { word } else { &small });
        term.clear();
        if sensitivity.marks {
            term.push_str(&stem);
        } else {
            letters::append_unmarked(&mut term, &stem);
        }
        term.truncate(term.floor_char_boundary(TERM_BYTES_MAX));
        if !visit(&term) {
            return;
        }
    }
}

/// `text` as phrases are compared: in small letters unless case counts, without marks unless these
/// do.
pub(super) fn folded(text: &str, language: Language, sensitivity: Sensitivity) -> String {
    let mut small = String::with_capacity(text.len());
    match sensitivity.case {
        true => small.push_str(text),
        false => letters::append_small(&mut small, text, language),
    }
    if sensitivity.marks {
        return small;
    }
    let mut out = String::with_capacity(small.len());
    letters::append_unmarked(&mut out, &small);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(language: &str, text: &str, expected: &str) {
        let language = Language::named(language).expect("a language");
        let mut terms = Vec::new();
        for_each(text, language, StopWords::Dropped, Sensitivity::FILED, &mut |term| {
            terms.push(term.to_owned());
            true
        });
        assert_eq!(terms.join(" "), expected, "{text:?}");
    }

    #[test]
    fn terms() {
        check(
            "english",
            "The quick brown foxes jumped, over the lazy dogs!",
            "quick brown fox jump lazi dog",
        );
        check("english", "state-of-the-art e-mail", "state art e mail");
        check("english", "don't you'll dog's", "dog");
        check("english", "CAFÉ café cafe\u{301}", "cafe cafe cafe");
        check("french", "l'éléphant blanc", "eleph blanc");
        check("none", "The foxes", "the foxes");
        check("none", "  \"a\" -- b ", "a b");
        check("none", "", "");
        check("none", "snake_case a.b", "snake_case a b");
        check("russian", "Важнейшими", "важн");
        check("none", &"x".repeat(300), &"x".repeat(256));
    }

    #[test]
    fn sensitive_terms_keep_what_they_distinguish() {
        let language = Language::named("none").expect("a language");
        let first = |text: &str, sensitivity| {
            let mut first = String::new();
            for_each(text, language, StopWords::Kept, sensitivity, &mut |term| {
                term.clone_into(&mut first);
                false
            });
            first
        };
        assert_eq!(first("CAFÉ b", Sensitivity { case: true, marks: false }), "CAFE");
        assert_eq!(first("CAFÉ b", Sensitivity { case: false, marks: true }), "café");
        assert_eq!(first("CAFÉ b", Sensitivity { case: true, marks: true }), "CAFÉ");
        assert_eq!(folded("CAFÉ b", language, Sensitivity::FILED), "cafe b");
    }
}
