//! Parses an index of `createIndexes`, option by option.

use frond_doc::{Document, DocumentBuf, Value};
use frond_query::{Code, Collation};

use super::refusal::{
    ID_INDEX_OPTIONS, REFERENCE_NAMES, check_key, is_of_id_alone, no_id_option, refused,
};
use super::{GRID_OPTIONS, IndexSpec};
use crate::definition::text;
use crate::error::Error;

/// Included fields at most.
const INCLUDED_MAX: usize = 32;
/// `expireAfterSeconds` at most, as MongoDB's.
const EXPIRE_SECONDS_MAX: f64 = 2_147_483_647.0;
/// Options that MongoDB has and we don't yet: asking for one is an error that names it.
const UNSUPPORTED_OPTIONS: &[&str] = &["bucketSize", "clustered", "storageEngine"];

/// The treatment of options that no index has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnknownOptions {
    /// They are an error.
    Refused,
    /// They say nothing: `ignoreUnknownIndexOptions`.
    Ignored,
}

impl IndexSpec {
    /// Parses one element of `createIndexes`' `indexes`; options and index types that aren't
    /// supported are refused by name.
    ///
    /// # Errors
    /// `InvalidIndexSpecificationOption` (197), `FailedToParse` (9), `TypeMismatch` (14),
    /// `CannotCreateIndex` (67), each naming the option.
    pub fn parse(spec: Document<'_>) -> Result<IndexSpec, Error> {
        IndexSpec::parse_with(spec, UnknownOptions::Refused)
    }

    /// As [`IndexSpec::parse`], and what no index has is refused or passed over.
    ///
    /// # Errors
    /// As [`IndexSpec::parse`].
    pub fn parse_with(spec: Document<'_>, unknown: UnknownOptions) -> Result<IndexSpec, Error> {
        let mut parsed = IndexSpec::plain(String::new(), DocumentBuf::empty());
        let mut has_key = false;
        let mut taken = Vec::new();
        for (option, value) in spec.iter() {
            if option == "key" {
                let key = value.as_document().ok_or_else(|| wrong_type("key", value, "object"))?;
                check_key(key)?;
                parsed.key = key.to_buf();
                has_key = true;
            } else if parsed.take_option(option, value)? {
                taken.push(option);
            } else if unknown == UnknownOptions::Refused {
                let message = format!(
                    "The field '{option}' is not valid for an index specification. Specification: {}",
                    frond_query::text::value(Value::Document(spec))
                );
                return Err(Error::invalid(Code::InvalidIndexSpecificationOption, message));
            }
        }
        if !has_key {
            let message = "The 'key' field is a required property of an index specification";
            return Err(Error::invalid(Code::FailedToParse, message));
        }
        if spec.get("name").is_none() {
            parsed.name = default_name(parsed.key.view());
        }
        parsed.key = text::settle(parsed.key, &mut parsed.text)?;
        parsed.check_name()?;
        let other = taken.into_iter().find(|option| !ID_INDEX_OPTIONS.contains(option));
        if is_of_id_alone(parsed.key.view()) {
            if let Some(option) = other {
                return Err(no_id_option(option));
            }
            if !parsed.is_id() {
                let message = format!(
                    "The field 'key' for an _id index must be {{_id: 1}}, but got {}",
                    frond_query::text::value(Value::from(&parsed.key))
                );
                return Err(Error::invalid(Code::BadValue, message));
            }
        }
        let is_old = spec.get("v").and_then(|version| version.as_integer()) == Some(1);
        if is_old && parsed.has_wildcard() {
            return Err(refused("wildcard indexes are of version 2".to_owned()));
        }
        parsed.check()?;
        Ok(parsed)
    }

    /// Takes one option but the key; `false` if there is none of that name.
    pub(super) fn take_option(&mut self, option: &str, value: Value<'_>) -> Result<bool, Error> {
        let document = || {
            let document = value.as_document().ok_or_else(|| wrong_type(option, value, "object"));
            document.map(|document| Some(document.to_buf()))
        };
        match option {
            "name" => {
                let name = value.as_str().ok_or_else(|| wrong_type("name", value, "string"))?;
                name.clone_into(&mut self.name);
            }
            "unique" => self.unique = boolean(option, value)?,
            "sparse" => self.sparse = boolean(option, value)?,
            "hidden" => self.hidden = boolean(option, value)?,
            "prepareUnique" => self.prepare_unique = boolean(option, value)?,
            "clustering" => self.clustering = boolean(option, value)?,
            "expireAfterSeconds" => self.expire_after_seconds = Some(expire_after(value)?),
            "partialFilterExpression" => self.partial = document()?,
            "wildcardProjection" => self.wildcard_projection = document()?,
            "include" => self.include = included(value)?,
            "v" if matches!(value.as_integer(), Some(1 | 2)) => {}
            "v" => {
                return Err(refused(format!(
                    "index version {} is not supported",
                    frond_query::text::value(value)
                )));
            }
            "2dsphereIndexVersion" if matches!(value.as_integer(), Some(1..=3)) => {}
            "2dsphereIndexVersion" => {
                let shown = frond_query::text::field(option, value);
                return Err(refused(format!(
                    "unsupported geo index version {{ {shown} }}, only support versions: [1,2,3]"
                )));
            }
            _ if let Some(place) = GRID_OPTIONS.iter().position(|name| *name == option) => {
                let number = number(value).ok_or_else(|| wrong_type(option, value, "numeric"))?;
                self.grid[place] = Some(number);
            }
            "background" => self.background = Some(boolean(option, value)?),
            "ns" | "dropDups" => {}
            "collation" => {
                let specification =
                    value.as_document().ok_or_else(|| wrong_type(option, value, "object"))?;
                if specification.is_empty() {
                    let message = "The field 'collation' cannot be an empty object.";
                    return Err(Error::invalid(Code::BadValue, message));
                }
                self.collation = Some(Collation::parse(specification)?);
            }
            _ if text::take(&mut self.text, option, value)? => {}
            _ if UNSUPPORTED_OPTIONS.contains(&option) => return Err(unsupported(option)),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Reads `expireAfterSeconds`.
///
/// # Errors
/// `TypeMismatch` (14) if it is no number; `CannotCreateIndex` (67) if it is out of range.
pub fn expire_after(value: Value<'_>) -> Result<i64, Error> {
    let Some(seconds) = number(value) else {
        return Err(wrong_type("expireAfterSeconds", value, "numeric"));
    };
    if !(0.0..=EXPIRE_SECONDS_MAX).contains(&seconds) {
        let message = format!(
            "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a different \
             number than {seconds}"
        );
        return Err(refused(message));
    }
    Ok(seconds as i64)
}

fn included(value: Value<'_>) -> Result<Vec<String>, Error> {
    let array = value.as_array().ok_or_else(|| wrong_type("include", value, "array"))?;
    let mut paths: Vec<String> = Vec::new();
    for value in array.iter() {
        let path =
            value.as_str().ok_or_else(|| wrong_type("include", value, "array of strings"))?;
        let is_illegal = |part: &str| {
            part.is_empty() || part.starts_with('$') && !REFERENCE_NAMES.contains(&part)
        };
        if path.split('.').any(is_illegal) {
            return Err(refused(format!("'{path}' can't be included: it is no field's path")));
        }
        let meets = |other: &String| {
            let below = |inner: &str, outer: &str| {
                inner
                    .strip_prefix(outer)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            below(path, other) || below(other, path)
        };
        if paths.iter().any(meets) {
            return Err(refused(format!("'include' names '{path}' twice")));
        }
        paths.push(path.to_owned());
    }
    if paths.len() > INCLUDED_MAX {
        return Err(refused(format!("at most {INCLUDED_MAX} fields can be included")));
    }
    Ok(paths)
}

fn unsupported(option: &str) -> Error {
    refused(format!("index option '{option}' is not supported yet"))
}

fn wrong_type(option: &str, value: Value<'_>, expected: &str) -> Error {
    let found = value.element_type().alias();
    let message =
        format!("The field '{option}' must be of type {expected}, but found {found} instead");
    Error::invalid(Code::TypeMismatch, message)
}

fn boolean(option: &str, value: Value<'_>) -> Result<bool, Error> {
    match value {
        Value::Boolean(flag) => Ok(flag),
        number if number.is_number() => Ok(number.is_truthy()),
        _ => Err(wrong_type(option, value, "bool")),
    }
}

fn number(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Double(number) => Some(number),
        _ => value.as_integer().map(|number| number as f64),
    }
}

/// `a_1_b_-1`, as drivers make it.
fn default_name(key: Document<'_>) -> String {
    let part = |(path, direction): (&str, Value<'_>)| match (number(direction), direction) {
        (Some(number), _) => format!("{path}_{number}"),
        (None, Value::String(kind)) => format!("{path}_{kind}"),
        (None, _) => path.to_owned(),
    };
    key.iter().map(part).collect::<Vec<_>>().join("_")
}
