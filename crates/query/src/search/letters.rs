//! Letters: what divides words, small letters, letters without their marks.
//!
//! By properties of Unicode, letter by letter, as MongoDB's tables are made from them:
//! - Words are divided by what is `White_Space`, `Dash`, `Hyphen`, `Quotation_Mark`,
//!   `Terminal_Punctuation`, `Sentence_Terminal` or `Pattern_Syntax`; an ASCII apostrophe doesn't
//!   divide English words. `_` is none of these.
//! - Small letters are by simple case folding; Turkish has two pairs of i.
//! - A letter that decomposes into one letter and marks (`Diacritic`) loses these; a mark by itself
//!   vanishes; what would become several letters stays.

use icu_casemap::CaseMapper;
use icu_normalizer::properties::{CanonicalDecomposition, Decomposed};
use icu_normalizer::{ComposingNormalizer, DecomposingNormalizer};
use icu_properties::CodePointSetData;
use icu_properties::props::{
    Dash, Diacritic, Hyphen, PatternSyntax, QuotationMark, SentenceTerminal, TerminalPunctuation,
    WhiteSpace,
};

use super::language::Language;

/// Whether a letter divides words.
pub(super) fn divides(letter: char, language: Language) -> bool {
    if letter == '\'' && language.has_apostrophes() {
        return false;
    }
    if letter.is_alphanumeric() || letter == '_' {
        return false;
    }
    CodePointSetData::new::<PatternSyntax>().contains(letter)
        || CodePointSetData::new::<WhiteSpace>().contains(letter)
        || CodePointSetData::new::<TerminalPunctuation>().contains(letter)
        || CodePointSetData::new::<SentenceTerminal>().contains(letter)
        || CodePointSetData::new::<Dash>().contains(letter)
        || CodePointSetData::new::<Hyphen>().contains(letter)
        || CodePointSetData::new::<QuotationMark>().contains(letter)
}

/// Appends `text` in small letters.
pub(super) fn append_small(out: &mut String, text: &str, language: Language) {
    let folding = CaseMapper::new();
    for letter in text.chars() {
        out.push(match letter {
            _ if language.is_turkic() => folding.simple_fold_turkic(letter),
            letter if letter.is_ascii() => letter.to_ascii_lowercase(),
            letter => folding.simple_fold(letter),
        });
    }
}

/// Appends `text` without marks on letters.
pub(super) fn append_unmarked(out: &mut String, text: &str) {
    if text.is_ascii() && !text.contains(['^', '`']) {
        out.push_str(text);
        return;
    }
    out.extend(text.chars().filter_map(unmarked));
}

/// The letter without marks; `None` for a mark by itself.
fn unmarked(letter: char) -> Option<char> {
    let marks = CodePointSetData::new::<Diacritic>();
    if marks.contains(letter) {
        return None;
    }
    if letter.is_ascii() || CanonicalDecomposition::new().decompose(letter) == Decomposed::Default {
        return Some(letter);
    }
    let mut bytes = [0; 4];
    let decomposed = DecomposingNormalizer::new_nfd().normalize(letter.encode_utf8(&mut bytes));
    let bare: String = decomposed.chars().filter(|part| !marks.contains(*part)).collect();
    let composed = ComposingNormalizer::new_nfc().normalize(&bare).into_owned();
    let mut letters = composed.chars();
    match (letters.next(), letters.next()) {
        (Some(only), None) => Some(only),
        _ => Some(letter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_divide_words() {
        let english = Language::named("en").expect("a language");
        let french = Language::named("fr").expect("a language");
        for letter in
            " \t\n\u{a0}\u{3000}-\u{2010}\u{ad}\"“«.,;:!?。、()[]{}<>=+*/\\|~^`@#$%&".chars()
        {
            assert!(divides(letter, english), "{letter:?}");
        }
        for letter in "aZ0_éß中яא\u{301}ー".chars() {
            assert!(!divides(letter, english), "{letter:?}");
        }
        assert!(!divides('\'', english));
        assert!(divides('\'', french));
        assert!(divides('’', english), "only the ASCII apostrophe stands within words");
    }

    #[test]
    fn small_letters_and_letters_without_marks() {
        let english = Language::named("en").expect("a language");
        let turkish = Language::named("tr").expect("a language");
        let small = |text: &str, language| {
            let mut out = String::new();
            append_small(&mut out, text, language);
            out
        };
        assert_eq!(small("ÀÉ ΣΑΣ ẞ I", english), "àé σασ ß i");
        assert_eq!(small("Iİ", turkish), "ıi");
        let unmarked = |text: &str| {
            let mut out = String::new();
            append_unmarked(&mut out, text);
            out
        };
        assert_eq!(unmarked("éàç ñ ǖ e\u{301} ø ß"), "eac n u e ø ß");
        assert_eq!(unmarked("각"), "각", "a syllable is several letters");
        assert_eq!(unmarked("a^b`c"), "abc");
    }
}
