//! Text search: what a text index files of a document, and what `$text` asks.
//!
//! Reading order: [`language`] (whose stop words and stemmer), [`letters`] (what divides words,
//! what becomes of letters), [`tokens`] (from text to terms), [`texts`] (which texts of a document
//! are filed, in which language and with which weight), [`score`] (what a term counts in a
//! document), [`query`] (what a search asks for), [`matcher`] (whether a document is one that is
//! searched for, and its score).
//!
//! *Invariants*
//! 1. Documents and searches go through the same tokens, so that a search by index finds the same
//!    as a scan with [`TextMatcher::matches`].
//! 2. Terms and scores are a function of the index's definition and the document. They rest on
//!    tables of others (Snowball's stemmers and stop words, Unicode's properties): [`DATA_VERSION`]
//!    names them.
//!
//! The rules are those of MongoDB's text indexes of version 3.

pub mod language;
mod letters;
mod matcher;
mod query;
mod score;
mod stop_words;
mod texts;
mod tokens;

use std::collections::BTreeMap;

use frond_doc::{Document, Value};

pub use matcher::TextMatcher;
pub use query::TextSearch;
pub(crate) use score::terms;

use crate::code::Code;
use crate::error::QueryError;
use language::Language;

/// The version of the tables that decide what is filed. An index that was made by others is
/// refused.
pub const DATA_VERSION: &str = "snowball-1.2 unicode-2.4 1";
/// A weight where none is given.
const WEIGHT_DEFAULT: f64 = 1.0;
/// Weights are less than this.
pub const WEIGHT_MAX: i64 = 100_000;
/// All strings of a document, as a key or a weight.
pub const WILDCARD: &str = "$**";

/// The definition of a text index.
#[derive(Clone, PartialEq, Debug)]
pub struct TextSpec {
    /// The weights by path. Ordered by their bytes: see [`texts`].
    weights: BTreeMap<String, f64>,
    /// Whether strings at other paths are filed, too.
    is_wildcard: bool,
    default_language: Language,
    /// The field that names the language of a document, and of those within it.
    language_override: String,
}

/// A weight as a whole number, as which it counts.
pub fn weight_of(value: Value<'_>) -> Option<i64> {
    crate::number::truncate(value)
}

impl TextSpec {
    /// A definition from the options of an index, checked when it was made.
    ///
    /// # Errors
    /// `CannotCreateIndex` for weights that are none, and for an unknown language.
    pub fn new(
        weights: Document<'_>,
        default_language: &str,
        language_override: &str,
    ) -> Result<TextSpec, QueryError> {
        let refuse = |message: &str| QueryError::new(Code::CannotCreateIndex, message);
        let mut is_wildcard = false;
        let mut by_path = BTreeMap::new();
        for (path, weight) in weights.iter() {
            let weight = weight_of(weight)
                .ok_or_else(|| refuse("weight for text index needs numeric type"))?;
            if path == WILDCARD {
                is_wildcard = true;
            } else {
                by_path.insert(path.to_owned(), weight as f64);
            }
        }
        let default_language = Language::named(default_language)
            .ok_or_else(|| refuse("default_language is not valid"))?;
        let language_override = language_override.to_owned();
        Ok(TextSpec { weights: by_path, is_wildcard, default_language, language_override })
    }

    /// The outermost fields that decide what is filed; `None` if all may.
    pub(crate) fn outermost_names(&self) -> Option<impl Iterator<Item = &[u8]>> {
        let first = |path: &'_ String| path.find('.').unwrap_or(path.len());
        let names = self.weights.keys().map(move |path| &path.as_bytes()[..first(path)]);
        (!self.is_wildcard).then(|| names.chain([self.language_override.as_bytes()]))
    }
}
