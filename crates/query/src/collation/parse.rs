//! A collation's specification: from what a client sends to the form with every option.

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};

use super::locale;
use crate::code::Code;
use crate::error::QueryError;
use crate::known_fields::check_fields;
use crate::number;
use crate::text;

/// The version of the rules that MongoDB has; dumps of its collections name it.
const VERSION: &str = "57.1";

/// The options as they were given.
#[derive(Default)]
struct Options<'a> {
    locale: Option<&'a str>,
    case_level: Option<bool>,
    case_first: Option<&'a str>,
    strength: Option<i32>,
    numeric_ordering: Option<bool>,
    alternate: Option<&'a str>,
    max_variable: Option<&'a str>,
    normalization: Option<bool>,
    backwards: Option<bool>,
    version: Option<&'a str>,
}

/// Checks a specification and fills in what it leaves out; `None` of the simple collation.
pub(super) fn specification(given: Document<'_>) -> Result<Option<DocumentBuf>, QueryError> {
    let options = Options::read(given)?;
    let Some(locale) = options.locale else {
        let message = "BSON field 'collation.locale' is missing but a required field";
        return Err(QueryError::new(Code::Location(40414), message));
    };
    if locale == "simple" {
        return Ok(None);
    }
    options.check(locale, given)?;
    Ok(Some(options.filled_in(locale)))
}

impl<'a> Options<'a> {
    fn read(given: Document<'a>) -> Result<Options<'a>, QueryError> {
        let mut options = Options::default();
        check_fields("collation", given, NAMES)?;
        for (name, value) in given.iter() {
            if matches!(value, Value::Null | Value::Undefined) {
                continue;
            }
            match name {
                "locale" => options.locale = Some(string(name, value)?),
                "caseLevel" => options.case_level = Some(boolean(name, value)?),
                "caseFirst" => {
                    options.case_first = Some(one_of(name, value, &["upper", "lower", "off"])?);
                }
                "strength" => options.strength = Some(strength(value)?),
                "numericOrdering" => options.numeric_ordering = Some(boolean(name, value)?),
                "alternate" => {
                    options.alternate = Some(one_of(name, value, &["non-ignorable", "shifted"])?);
                }
                "maxVariable" => {
                    options.max_variable = Some(one_of(name, value, &["punct", "space"])?);
                }
                "normalization" => options.normalization = Some(boolean(name, value)?),
                "backwards" => {
                    let Value::Boolean(flag) = value else {
                        let found = value.element_type().alias();
                        let message = format!(
                            "Field 'backwards' should be a boolean value, but found: {found}"
                        );
                        return Err(QueryError::new(Code::TypeMismatch, message));
                    };
                    options.backwards = Some(flag);
                }
                "version" => options.version = Some(string(name, value)?),
                // Unknown names were refused.
                _ => {}
            }
        }
        Ok(options)
    }

    /// Checks combinations of options that are each right.
    fn check(&self, locale: &str, given: Document<'_>) -> Result<(), QueryError> {
        let shown = || text::value(Value::Document(given));
        let refuse = |message: String| Err(QueryError::new(Code::BadValue, message));
        if locale.contains('\0') {
            let what = "Field 'locale' cannot contain null byte. Collation spec";
            return refuse(format!("{what}: {}", shown()));
        }
        if locale.is_empty() {
            return refuse(format!("Field 'locale' cannot be the empty string in: {}", shown()));
        }
        if locale::tag(locale).is_none() {
            let nearest = locale::nearest(locale).filter(|nearest| nearest != locale);
            let hint = nearest.map(|nearest| format!(". Did you mean '{nearest}'?"));
            let hint = hint.unwrap_or_default();
            return refuse(format!("Field 'locale' is invalid in: {}{hint}", shown()));
        }
        if let Some(version) = self.version.filter(|version| *version != VERSION) {
            let message = format!(
                "Requested collation version {version} but the only available collator version \
                 was {VERSION}. Requested collation spec: {}",
                shown()
            );
            return Err(QueryError::new(Code::IncompatibleCollationVersion, message));
        }
        let strength = self.strength.unwrap_or(3);
        let sorts_case = self.case_first.is_some_and(|first| first != "off");
        if sorts_case && strength < 3 && self.case_level != Some(true) {
            let message = "'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is \
                           greater than 2 in: ";
            return refuse(format!("{message}{}", shown()));
        }
        if self.backwards == Some(true) && strength == 1 {
            let message = "'backwards' is invalid with 'strength' of 1 in: ";
            return refuse(format!("{message}{}", shown()));
        }
        Ok(())
    }

    fn filled_in(&self, locale: &str) -> DocumentBuf {
        let backwards = self.backwards.unwrap_or(locale.split('@').next() == Some("fr_CA"));
        let mut builder = DocumentBuilder::new();
        let flag = |flag: Option<bool>| Value::Boolean(flag.unwrap_or(false));
        builder.append("locale", Value::String(locale));
        builder.append("caseLevel", flag(self.case_level));
        builder.append("caseFirst", Value::String(self.case_first.unwrap_or("off")));
        builder.append("strength", Value::Int32(self.strength.unwrap_or(3)));
        builder.append("numericOrdering", flag(self.numeric_ordering));
        builder.append("alternate", Value::String(self.alternate.unwrap_or("non-ignorable")));
        builder.append("maxVariable", Value::String(self.max_variable.unwrap_or("punct")));
        builder.append("normalization", flag(self.normalization));
        builder.append("backwards", Value::Boolean(backwards));
        builder.append("version", Value::String(VERSION));
        builder.build()
    }
}

const NAMES: &[&str] = &[
    "alternate",
    "backwards",
    "caseFirst",
    "caseLevel",
    "locale",
    "maxVariable",
    "normalization",
    "numericOrdering",
    "strength",
    "version",
];

fn wrong_type(name: &str, value: Value<'_>, expected: &str) -> QueryError {
    let found = value.element_type().alias();
    let message =
        format!("BSON field 'collation.{name}' is the wrong type '{found}', expected {expected}");
    QueryError::new(Code::TypeMismatch, message)
}

fn string<'a>(name: &str, value: Value<'a>) -> Result<&'a str, QueryError> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err(wrong_type(name, value, "type 'string'")),
    }
}

fn boolean(name: &str, value: Value<'_>) -> Result<bool, QueryError> {
    match value {
        Value::Boolean(flag) => Ok(flag),
        _ => Err(wrong_type(name, value, "type 'bool'")),
    }
}

fn one_of<'a>(name: &str, value: Value<'a>, known: &[&str]) -> Result<&'a str, QueryError> {
    let text = string(name, value)?;
    if known.contains(&text) {
        return Ok(text);
    }
    Err(not_valid(name, text))
}

fn not_valid(name: &str, value: &str) -> QueryError {
    let message =
        format!("Enumeration value '{value}' for field 'collation.{name}' is not a valid value.");
    QueryError::new(Code::BadValue, message)
}

/// Reads the strength: any number counts, cut to its whole part.
fn strength(value: Value<'_>) -> Result<i32, QueryError> {
    if !value.is_number() {
        return Err(wrong_type("strength", value, "types '[int, decimal, double, long']"));
    }
    let is_negative =
        crate::number::any_type::Number::of(value).is_some_and(|number| number.double() < 0.0);
    // Beyond 64 bits, and infinite; NaN counts as zero.
    let beyond = match value {
        Value::Double(number) if number.is_nan() => 0,
        _ if is_negative => i64::MIN,
        _ => i64::MAX,
    };
    let whole = number::truncate(value).unwrap_or(beyond);
    let whole = whole.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
    let refuse = |limit: &str| {
        let message =
            format!("BSON field 'strength' value must be {limit}, actual value '{whole}'");
        Err(QueryError::new(Code::BadValue, message))
    };
    match whole {
        1..=5 => Ok(whole as i32),
        0 => Err(not_valid("strength", "0")),
        6.. => refuse("<= 5"),
        _ => refuse(">= 0"),
    }
}
