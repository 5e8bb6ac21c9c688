//! Languages: their names, stemmers and stop words.
//!
//! Stemmers and stop words are Snowball's. The data of a language are made when it is first asked
//! for.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::OnceLock;

use rust_stemmers::{Algorithm, Stemmer};

use super::stop_words;

/// A language, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Language(&'static Row);

/// One language.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    name: &'static str,
    /// The name by ISO 639-1; `none` has no other name.
    short_name: &'static str,
    /// Its place in the lists of what was made.
    place: usize,
    algorithm: Option<Algorithm>,
}

const fn row(
    place: usize,
    name: &'static str,
    short_name: &'static str,
    algorithm: Algorithm,
) -> Row {
    Row { name, short_name, place, algorithm: Some(algorithm) }
}

static LANGUAGES: [Row; 16] = [
    row(0, "danish", "da", Algorithm::Danish),
    row(1, "dutch", "nl", Algorithm::Dutch),
    row(2, "english", "en", Algorithm::English),
    row(3, "finnish", "fi", Algorithm::Finnish),
    row(4, "french", "fr", Algorithm::French),
    row(5, "german", "de", Algorithm::German),
    row(6, "hungarian", "hu", Algorithm::Hungarian),
    row(7, "italian", "it", Algorithm::Italian),
    row(8, "norwegian", "nb", Algorithm::Norwegian),
    row(9, "portuguese", "pt", Algorithm::Portuguese),
    row(10, "romanian", "ro", Algorithm::Romanian),
    row(11, "russian", "ru", Algorithm::Russian),
    row(12, "spanish", "es", Algorithm::Spanish),
    row(13, "swedish", "sv", Algorithm::Swedish),
    row(14, "turkish", "tr", Algorithm::Turkish),
    Row { name: "none", short_name: "none", place: 15, algorithm: None },
];

impl Language {
    /// The language of this name, in full or by ISO 639-1; letters' case doesn't matter.
    pub fn named(name: &str) -> Option<Language> {
        let is_named = |row: &&Row| {
            row.name.eq_ignore_ascii_case(name) || row.short_name.eq_ignore_ascii_case(name)
        };
        LANGUAGES.iter().find(is_named).map(Language)
    }

    /// Whether an apostrophe stands within words.
    pub(super) fn has_apostrophes(self) -> bool {
        self.0.algorithm == Some(Algorithm::English)
    }

    /// Whether letters with and without a dot are two letters.
    pub(super) fn is_turkic(self) -> bool {
        self.0.algorithm == Some(Algorithm::Turkish)
    }

    /// Whether a word in lower case says nothing by itself.
    pub(super) fn is_stop_word(self, word: &str) -> bool {
        static SETS: [OnceLock<HashSet<&'static str>>; LANGUAGES.len()] =
            [const { OnceLock::new() }; LANGUAGES.len()];
        let make = || stop_words::of(self.0.name, self.0.short_name).collect();
        SETS[self.0.place].get_or_init(make).contains(word)
    }

    /// The stem of a word.
    pub(super) fn stem(self, word: &str) -> Cow<'_, str> {
        match self.0.algorithm {
            // The stemmers assert that they are not given nothing.
            Some(_) if word.is_empty() => Cow::Borrowed(word),
            Some(algorithm) => Stemmer::create(algorithm).stem(word),
            None => Cow::Borrowed(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_stand_where_they_say_and_are_found_by_both_names() {
        for (place, row) in LANGUAGES.iter().enumerate() {
            assert_eq!(row.place, place, "{}", row.name);
            let by_name = Language::named(&row.name.to_uppercase()).expect("a name");
            assert_eq!(Language::named(row.short_name), Some(by_name), "{}", row.name);
        }
        assert_eq!(Language::named("klingon"), None);
        assert_eq!(Language::named(""), None);
    }

    #[test]
    fn each_language_drops_its_stop_words_and_stems() {
        let cases = [
            ("danish", "og", "bøgerne", "bøg"),
            ("dutch", "het", "lichamelijk", "licham"),
            ("english", "the", "running", "run"),
            ("finnish", "ja", "taloissa", "talo"),
            ("french", "avec", "continuellement", "continuel"),
            ("german", "nicht", "häuser", "haus"),
            ("hungarian", "hogy", "házak", "ház"),
            ("italian", "della", "abbandonata", "abbandon"),
            ("norwegian", "ikke", "bilene", "bil"),
            ("portuguese", "para", "quilométricas", "quilométr"),
            ("romanian", "este", "copiilor", "cop"),
            ("russian", "что", "важнейшими", "важн"),
            ("spanish", "para", "cheques", "chequ"),
            ("swedish", "och", "flickorna", "flick"),
            ("turkish", "ve", "kitaplar", "kitap"),
        ];
        for (name, stop_word, word, stem) in cases {
            let language = Language::named(name).expect("a language");
            assert!(language.is_stop_word(stop_word), "{name} {stop_word}");
            assert!(!language.is_stop_word(word), "{name} {word}");
            assert_eq!(language.stem(word), stem, "{name} {word}");
        }
        let none = Language::named("none").expect("a language");
        assert!(!none.is_stop_word("the"));
        assert_eq!(none.stem("running"), "running");
    }
}
