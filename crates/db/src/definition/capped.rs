//! The options that make a collection capped: of a bounded size, its oldest documents removed.

use frond_doc::{Document, Value as BsonValue};
use frond_query::Code;

use crate::definition::VERSIONED;
use crate::error::Error;

/// MongoDB's greatest size of a capped collection: a pebibyte.
const BYTES_MAX: i64 = 1 << 50;

/// The limits of a capped collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// Bytes of documents.
    pub bytes: u64,
    /// Documents.
    pub documents: u64,
}

/// Whether a collection with these options is capped.
pub(crate) fn is_capped(options: Document<'_>) -> bool {
    options.get("capped").is_some_and(|capped| capped.is_truthy())
}

/// The limits of a collection with these options; `None` if it isn't capped.
pub(crate) fn limits(options: Document<'_>) -> Option<Limits> {
    let number = |name| options.get(name).and_then(whole);
    let positive = |number: i64| u64::try_from(number).ok().filter(|number| *number > 0);
    is_capped(options).then(|| Limits {
        bytes: number("size").and_then(positive).unwrap_or(u64::MAX),
        documents: number("max").and_then(positive).unwrap_or(u64::MAX),
    })
}

/// Checks what the options say of limits.
///
/// # Errors
/// MongoDB's, for limits without `capped`, `capped` without a size, and limits out of range.
pub(crate) fn check(options: Document<'_>) -> Result<(), Error> {
    let refuse = |message: &str| Err(Error::invalid(Code::InvalidOptions, message));
    let (size, max) = (options.get("size"), options.get("max"));
    if !is_capped(options) {
        if size.or(max).is_some() {
            return refuse(
                "the 'capped' field needs to be true when either the 'size' or 'max' fields are present",
            );
        }
        return Ok(());
    }
    if options.get("viewOn").is_some() {
        return refuse("options not allowed with a view: capped");
    }
    if options.get("clusteredIndex").is_some() {
        return refuse("A capped collection cannot be clustered");
    }
    if options.get(VERSIONED) == Some(BsonValue::Boolean(true)) {
        return refuse("a capped collection is in no version: 'versioned' can't be true");
    }
    let Some(size) = size.and_then(whole) else {
        return refuse("the 'size' field is required when 'capped' is true");
    };
    if !(1..=BYTES_MAX).contains(&size) {
        let message = format!(
            "BSON field 'size' value must be >= 1 and <= {BYTES_MAX}, actual value '{size}'"
        );
        return Err(Error::invalid(Code::BadValue, message));
    }
    match max.and_then(whole) {
        Some(max) if max >= 1 << 31 => {
            let message = "max in a capped collection has to be < 2^31 or not set";
            Err(Error::invalid(Code::BadValue, message))
        }
        _ => Ok(()),
    }
}

/// A number without its fraction, as MongoDB reads it here.
fn whole(value: BsonValue<'_>) -> Option<i64> {
    match value {
        BsonValue::Double(number) => BsonValue::Double(number.trunc()).as_integer(),
        other => other.as_integer(),
    }
}

/// A size as it is kept: a multiple of 256.
pub(crate) fn rounded(size: i64) -> i64 {
    size.saturating_add(0xff) & !0xff
}

#[cfg(test)]
mod tests {
    use super::*;
    use frond_doc::document;

    #[test]
    fn options_are_checked() {
        for (options, code) in [
            (document! {}, 0),
            (document! { "capped": true, "size": 1_i32 }, 0),
            (document! { "capped": true, "size": 4096.5, "max": 0_i32 }, 0),
            (document! { "capped": true }, 72),
            (document! { "size": 1_i32 }, 72),
            (document! { "capped": false, "max": 1_i32 }, 72),
            (document! { "capped": true, "size": 0_i32 }, 2),
            (document! { "capped": true, "size": 1_i32, "max": 1_i64 << 31 }, 2),
            (document! { "capped": true, "size": 1_i32, "viewOn": "a" }, 72),
            (document! { "capped": true, "size": 1_i32, "versioned": true }, 72),
        ] {
            let found = check(options.view()).map_or_else(|error| error.code.number(), |()| 0);
            assert_eq!(found, code, "{options:?}");
        }
        assert_eq!([1, 256, 257].map(rounded), [256, 256, 512]);
    }
}
