//! The indexes that are refused, for their keys, names and options, with MongoDB's words.

use frond_doc::{Document, Value};
use frond_query::index::FieldKind;
use frond_query::{Code, text};

use super::{ID_INDEX_NAME, IndexSpec};
use crate::error::Error;

/// Fields of an index at most.
const FIELDS_MAX: usize = 32;
/// The options that the index of `_id` may have, besides its key: not even `unique: true`.
pub(super) const ID_INDEX_OPTIONS: &[&str] = &["collation", "name", "ns", "v"];
/// The names in a DBRef, which paths may have.
pub(super) const REFERENCE_NAMES: [&str; 3] = ["$ref", "$id", "$db"];
/// Kinds of index that MongoDB has and we don't yet.
const UNSUPPORTED_KINDS: &[&str] = &["columnstore", "geoHaystack"];

impl IndexSpec {
    /// Refuses options that don't go together.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.check_wildcard()?;
        let shape = self.shape()?;
        let is_wildcard = shape.has_kind(FieldKind::Wildcard);
        let is_hashed = shape.has_kind(FieldKind::Hashed);
        if self.partial.is_some() && self.sparse {
            return Err(refused(
                "cannot mix \"partialFilterExpression\" and \"sparse\" options".to_owned(),
            ));
        }
        if is_hashed && (self.unique || self.prepare_unique) {
            let message =
                "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.";
            return Err(Error::invalid(Code::Location(16764), message));
        }
        for (option, is_there) in [
            ("unique", self.unique),
            ("prepareUnique", self.prepare_unique),
            ("sparse", self.sparse),
            ("expireAfterSeconds", self.expire_after_seconds.is_some()),
        ] {
            if is_wildcard && is_there {
                let message = format!("Index type 'wildcard' does not support the {option} option");
                return Err(refused(message));
            }
        }
        if self.expire_after_seconds.is_some() && self.key.iter().count() > 1 {
            let message =
                "TTL indexes are single-field indexes, compound indexes do not support TTL";
            return Err(refused(message.to_owned()));
        }
        if self.expire_after_seconds.is_some() && is_hashed {
            return Err(refused("a hashed index can't have expireAfterSeconds".to_owned()));
        }
        if self.clustering && !self.include.is_empty() {
            let message = "an index with 'clustering' holds all fields and can't 'include' some";
            return Err(refused(message.to_owned()));
        }
        Ok(())
    }

    /// Refuses a name that no index may have, and what the index of `_id` may not be.
    pub(super) fn check_name(&self) -> Result<(), Error> {
        if self.name.is_empty() {
            return Err(refused("The index name cannot be empty".to_owned()));
        }
        if self.name == "*" {
            return Err(Error::invalid(Code::BadValue, "The index name '*' is not valid."));
        }
        if self.name.contains('\0') {
            return Err(refused("The index name holds a NUL".to_owned()));
        }
        if self.name == ID_INDEX_NAME && !self.is_id() {
            let message = format!(
                "The index name '_id_' is reserved for the _id index, which must have key pattern \
                 {{_id: 1}}, found key: {}",
                text::value(Value::from(&self.key))
            );
            return Err(Error::invalid(Code::BadValue, message));
        }
        let options = [
            ("sparse", self.sparse),
            ("hidden", self.hidden),
            ("prepareUnique", self.prepare_unique),
            ("expireAfterSeconds", self.expire_after_seconds.is_some()),
            ("partialFilterExpression", self.partial.is_some()),
            ("include", !self.include.is_empty()),
            ("clustering", self.clustering),
        ];
        let option = options.into_iter().find(|(_, is_there)| *is_there);
        if let (true, Some((option, _))) = (self.is_id(), option) {
            return Err(no_id_option(option));
        }
        Ok(())
    }
}

/// Whether the key is one of `_id` alone, as MongoDB sees it: of any number that is 1 or -1 without
/// its fraction.
pub(super) fn is_of_id_alone(key: Document<'_>) -> bool {
    let mut fields = key.iter();
    let (Some(("_id", direction)), None) = (fields.next(), fields.next()) else { return false };
    let number = match direction {
        Value::Double(number) => Some(number.trunc()),
        _ => direction.as_integer().map(|number| number as f64),
    };
    number.is_some_and(|number| number.abs() == 1.0)
}

/// Refuses a key that no index may have.
pub(super) fn check_key(key: Document<'_>) -> Result<(), Error> {
    if key.is_empty() {
        return Err(refused("Index keys cannot be empty.".to_owned()));
    }
    if key.iter().count() > FIELDS_MAX {
        return Err(Error::invalid(Code::Location(13103), "too many compound keys"));
    }
    for (position, (path, direction)) in key.iter().enumerate() {
        if key.iter().take(position).any(|(before, _)| before == path) {
            let key = text::value(Value::Document(key));
            let message =
                format!("The field '{path}' appears multiple times in the index key pattern {key}");
            return Err(Error::invalid(Code::BadValue, message));
        }
        // A wildcard is asked for by a number, but for the wildcard of a text index.
        let may_be_wildcard = match direction.as_str() {
            None => true,
            Some(kind) => kind == "text" && path == "$**",
        };
        let path = match path.strip_suffix("$**").filter(|_| may_be_wildcard) {
            Some("") => continue,
            Some(outer) => outer.strip_suffix('.').unwrap_or(path),
            None => path,
        };
        if path.split('.').any(str::is_empty) {
            return Err(refused("Index keys cannot contain an empty field.".to_owned()));
        }
        let is_illegal = |part: &str| part.starts_with('$') && !REFERENCE_NAMES.contains(&part);
        if path.split('.').any(is_illegal) {
            let message = "Index key contains an illegal field name: field name starts with '$'.";
            return Err(refused(message.to_owned()));
        }
        if let Some(kind) = direction.as_str().filter(|kind| UNSUPPORTED_KINDS.contains(kind)) {
            return Err(refused(format!("'{kind}' indexes are not supported yet")));
        }
    }
    Ok(())
}

pub(super) fn no_id_option(option: &str) -> Error {
    let message = format!("The field '{option}' is not valid for an _id index specification");
    let code = match option {
        "hidden" => Code::BadValue,
        _ => Code::InvalidIndexSpecificationOption,
    };
    Error::invalid(code, message)
}

pub(super) fn refused(message: String) -> Error {
    Error::invalid(Code::CannotCreateIndex, message)
}
