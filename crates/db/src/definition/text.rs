//! Text indexes as they are asked for, and as they are kept: MongoDB's rules for their keys and
//! options.
//!
//! A user names texts in the key (`{a: "text", b: "text", c: 1}`) or in `weights`. The stored form
//! has one place for the terms (`{_fts: "text", _ftsx: 1, c: 1}`) and all texts in `weights`; that
//! form may be given back, too.

use std::collections::BTreeMap;

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::Code;
use frond_query::index::{self, TERMS_FIRST, TERMS_SECOND};
use frond_query::search::language::Language;
use frond_query::search::{DATA_VERSION, WEIGHT_MAX, WILDCARD, weight_of};

use crate::error::Error;

/// Under which the version of the tables is stored that decided what an index files.
pub(super) const DATA: &str = "textData";
/// The only version.
const VERSION: i64 = 3;

/// The texts that a text index files.
#[derive(Clone, PartialEq, Debug)]
pub struct TextOptions {
    /// Paths, and what a term counts there: ascending; `$**` for all.
    pub weights: DocumentBuf,
    /// The language of documents that name none.
    pub default_language: String,
    /// The field in which they name it.
    pub language_override: String,
}

impl Default for TextOptions {
    fn default() -> TextOptions {
        TextOptions {
            weights: DocumentBuf::empty(),
            default_language: "english".to_owned(),
            language_override: "language".to_owned(),
        }
    }
}

impl TextOptions {
    /// As the query language takes it.
    pub(super) fn shape(&self) -> index::TextOptions<'_> {
        index::TextOptions {
            weights: self.weights.view(),
            default_language: &self.default_language,
            language_override: &self.language_override,
        }
    }

    /// Appends the options, as `listIndexes` shows them and as they are stored.
    pub(super) fn append(&self, builder: &mut DocumentBuilder) {
        builder.append("weights", Value::from(&self.weights));
        builder.append("default_language", Value::String(&self.default_language));
        builder.append("language_override", Value::String(&self.language_override));
        builder.append("textIndexVersion", Value::Int32(VERSION as i32));
    }
}

fn refused(message: impl Into<String>) -> Error {
    Error::invalid(Code::CannotCreateIndex, message)
}

/// Takes an option of text indexes; `false` if there is none of that name.
pub(super) fn take(
    text: &mut Option<TextOptions>,
    option: &str,
    value: Value<'_>,
) -> Result<bool, Error> {
    if !matches!(option, "weights" | "default_language" | "language_override" | "textIndexVersion")
    {
        return Ok(false);
    }
    let text = text.get_or_insert_default();
    match (option, value) {
        ("weights", Value::Document(weights)) => text.weights = weights.to_buf(),
        ("weights", Value::String(WILDCARD)) => {
            let mut weights = DocumentBuilder::new();
            weights.append(WILDCARD, Value::Int32(1));
            text.weights = weights.build();
        }
        ("weights", _) => return Err(refused("text index option 'weights' must be an object")),
        ("default_language", Value::String(name)) => {
            if Language::named(name).is_none() {
                return Err(refused("default_language is not valid"));
            }
            name.clone_into(&mut text.default_language);
        }
        ("default_language", _) => return Err(refused("default_language needs a string type")),
        ("language_override", Value::String(name)) => {
            if name.is_empty() || name.starts_with('$') || name.contains('.') {
                return Err(refused("language_override is not valid"));
            }
            name.clone_into(&mut text.language_override);
        }
        ("language_override", _) => return Err(refused("language_override must be a string")),
        (_, version) if !version.is_number() => {
            return Err(refused("text index option 'textIndexVersion' must be a number"));
        }
        (_, version) if version.as_integer() == Some(VERSION) => {}
        (_, version) => {
            let version = frond_query::text::value(version);
            return Err(refused(format!("bad textIndexVersion: {version}")));
        }
    }
    Ok(true)
}

/// The key and the options of a text index as they are kept; those of any other index as they are.
///
/// # Errors
/// `CannotCreateIndex` for keys and weights that are none, and for options of a text index without
/// text.
pub(super) fn settle(
    key: DocumentBuf,
    text: &mut Option<TextOptions>,
) -> Result<DocumentBuf, Error> {
    let is_text = |value: Value<'_>| value == Value::String("text");
    if !key.iter().any(|(_, kind)| is_text(kind)) {
        return match text {
            Some(_) => Err(refused("weights and languages are options of text indexes only")),
            None => Ok(key),
        };
    }
    let text = text.get_or_insert_default();
    let mut weights: BTreeMap<String, i64> = BTreeMap::new();
    let mut settled = DocumentBuilder::new();
    let mut terms_end = None;
    for (place, (path, kind)) in key.iter().enumerate() {
        let is_kept = matches!(path, TERMS_FIRST | TERMS_SECOND);
        if !is_text(kind) && !is_kept {
            if !matches!(kind.as_integer(), Some(1 | -1)) {
                let message = "expected value 1 or -1 for non-text key in compound index";
                return Err(refused(message));
            }
            settled.append(path, kind);
            continue;
        }
        match terms_end {
            Some(end) if end != place => {
                return Err(refused("'text' fields in index must all be adjacent"));
            }
            Some(_) => {}
            None => {
                settled.append(TERMS_FIRST, Value::String("text"));
                settled.append(TERMS_SECOND, Value::Int32(1));
            }
        }
        terms_end = Some(place + 1);
        if !is_kept {
            weights.insert(path.to_owned(), 1);
        }
    }
    check_kept(key.view())?;
    for (path, weight) in text.weights.iter() {
        let weight =
            weight_of(weight).ok_or_else(|| refused("weight for text index needs numeric type"))?;
        weights.insert(path.to_owned(), weight);
    }
    if weights.is_empty() {
        let message = "text index option 'weights' must specify fields or the wildcard";
        return Err(refused(message));
    }
    text.weights = checked_weights(&weights)?;
    Ok(settled.build())
}

/// Checks the names of the kept form, if the key has it.
fn check_kept(key: Document<'_>) -> Result<(), Error> {
    let mut names = key.iter().skip_while(|(name, _)| *name != TERMS_FIRST);
    let (first, second) = (names.next(), names.next());
    match (first, second) {
        (None, _) if key.get(TERMS_SECOND).is_none() => Ok(()),
        (
            Some((_, Value::String("text"))),
            Some((TERMS_SECOND, Value::Int32(1) | Value::Int64(1) | Value::Double(1.0))),
        ) => Ok(()),
        _ => Err(refused("text index with reserved fields _fts/_ftsx not allowed")),
    }
}

fn checked_weights(weights: &BTreeMap<String, i64>) -> Result<DocumentBuf, Error> {
    let mut checked = DocumentBuilder::new();
    for (path, weight) in weights {
        if !(1..WEIGHT_MAX).contains(weight) {
            return Err(refused(format!(
                "text index weight must be in the exclusive interval (0,{WEIGHT_MAX}) but found: \
                 {weight}"
            )));
        }
        if path != WILDCARD {
            if path.is_empty() {
                return Err(refused("weight cannot be on an empty field"));
            }
            if path.split('.').any(str::is_empty) {
                return Err(refused("weight cannot have empty path component"));
            }
            if path.split('.').any(|part| part.starts_with('$')) {
                return Err(refused("weight cannot have path component with $ prefix"));
            }
        }
        let short = i32::try_from(*weight).unwrap_or(i32::MAX);
        checked.append(path, Value::Int32(short));
    }
    Ok(checked.build())
}

/// Refuses a stored text index that other tables made.
pub(super) fn check_data(name: &str, stored: Document<'_>) -> Result<(), Error> {
    match stored.get(DATA) {
        None | Some(Value::String(DATA_VERSION)) => Ok(()),
        Some(_) => {
            let message = format!(
                "the text index '{name}' was made with other rules than this version has ({DATA_VERSION}): \
                 use the version that made it, drop the index there, and make it again"
            );
            Err(Error::invalid(Code::IncompatibleCollationVersion, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::extended_json;

    use crate::definition::IndexSpec;

    fn parse(spec: &str) -> Result<IndexSpec, crate::error::Error> {
        IndexSpec::parse(extended_json::parse(spec).expect("a document").view())
    }

    /// The index as `listIndexes` shows it.
    fn check(spec: &str, expected: &str) {
        let document = parse(spec).unwrap_or_else(|error| panic!("{spec}: {error}")).to_document();
        let expected = extended_json::parse(expected).expect("a document");
        assert_eq!(document, expected, "{spec}");
        // The shown form of an index is valid as a definition, and gives the same index.
        let again = IndexSpec::parse(document.view()).expect("it was told").to_document();
        assert_eq!(again, expected, "{spec}");
    }

    #[test]
    fn text_indexes_as_they_are_listed() {
        let english = r#""default_language": "english", "language_override": "language", "textIndexVersion": 3"#;
        check(
            r#"{"key": {"b": "text", "a": "text"}}"#,
            &format!(
                r#"{{"v": 2, "key": {{"_fts": "text", "_ftsx": 1}}, "name": "b_text_a_text",
                    "weights": {{"a": 1, "b": 1}}, {english}}}"#
            ),
        );
        check(
            r#"{"key": {"x": -1, "a": "text", "y": 1}, "name": "n", "weights": {"a": 5, "c.d": 2.7}}"#,
            &format!(
                r#"{{"v": 2, "key": {{"x": -1, "_fts": "text", "_ftsx": 1, "y": 1}}, "name": "n",
                    "weights": {{"a": 5, "c.d": 2}}, {english}}}"#
            ),
        );
        check(
            r#"{"key": {"$**": "text"}, "default_language": "FR", "language_override": "lang"}"#,
            r#"{"v": 2, "key": {"_fts": "text", "_ftsx": 1}, "name": "$**_text", "weights": {"$**": 1},
                "default_language": "FR", "language_override": "lang", "textIndexVersion": 3}"#,
        );
    }

    #[test]
    fn malformed_text_indexes_are_refused() {
        for spec in [
            r#"{"key": {"a": "text", "b": 2}}"#,
            r#"{"key": {"a": "text", "b": 1, "c": "text"}}"#,
            r#"{"key": {"a": "text", "b": "2dsphere"}}"#,
            r#"{"key": {"a": "text"}, "weights": {"a": 0}}"#,
            r#"{"key": {"a": "text"}, "weights": {"a": 100000}}"#,
            r#"{"key": {"a": "text"}, "weights": {"a": "x"}}"#,
            r#"{"key": {"a": "text"}, "weights": {"": 1}}"#,
            r#"{"key": {"a": "text"}, "weights": {"a..b": 1}}"#,
            r#"{"key": {"a": "text"}, "weights": {"$a": 1}}"#,
            r#"{"key": {"a": "text"}, "weights": 1}"#,
            r#"{"key": {"a": "text"}, "default_language": "x"}"#,
            r#"{"key": {"a": "text"}, "default_language": 1}"#,
            r#"{"key": {"a": "text"}, "language_override": ""}"#,
            r#"{"key": {"a": "text"}, "language_override": "a.b"}"#,
            r#"{"key": {"a": "text"}, "language_override": 1}"#,
            r#"{"key": {"a": "text"}, "textIndexVersion": 1}"#,
            r#"{"key": {"a": "text"}, "textIndexVersion": "3"}"#,
            r#"{"key": {"a": "text"}, "collation": {"locale": "fr"}}"#,
            r#"{"key": {"a": "text"}, "expireAfterSeconds": 1}"#,
            r#"{"key": {"_fts": "text"}}"#,
            r#"{"key": {"_ftsx": 1, "a": "text"}}"#,
            r#"{"key": {"_fts": "text", "_ftsx": 1}}"#,
            r#"{"key": {"a": 1}, "weights": {"a": 1}}"#,
        ] {
            let error = parse(spec).expect_err(spec);
            assert_eq!(error.code.number(), 67, "{spec}: {error}");
        }
    }
}
