//! `$readPreference`: from which members of a replica set a client reads. There is one here, so it
//! only has to be one that there is.
//!
//! MongoDB's rules: `src/mongo/client/read_preference.cpp` of its public source.

use frond_db::Error;
use frond_doc::{Document, Value};
use frond_query::Code;

use crate::tables;

const PRIMARY: &str = "primary";
const MODES: &[&str] = &[PRIMARY, "primaryPreferred", "secondary", "secondaryPreferred", "nearest"];
/// A member is asked how far it is only so often.
const STALENESS_SECONDS_MIN: i64 = 90;
const PATH: &str = "readPreference";

/// Checks a read preference.
///
/// # Errors
/// A part that is missing, of a wrong type, out of range, or contradicts `mode: "primary"`.
pub fn check(preference: Document<'_>) -> Result<(), Error> {
    let invalid = |code, message: &str| Err(Error::invalid(code, message.to_owned()));
    let field = |name| preference.get(name).filter(|value| !is_nothing(*value));
    let wrong_type = |name: &str, value, expected: &str| {
        Err(tables::wrong_type(&format!("{PATH}.{name}"), value, expected))
    };
    let mode = match field("mode") {
        None => return Err(tables::missing_field(PATH, "mode")),
        Some(Value::String(mode)) => mode,
        Some(other) => return wrong_type("mode", other, "type 'string'"),
    };
    if !MODES.contains(&mode) {
        let message =
            format!("Enumeration value '{mode}' for field '{PATH}.mode' is not a valid value.");
        return invalid(Code::BadValue, &message);
    }
    let is_primary = mode == PRIMARY;
    match field("tags") {
        None => {}
        Some(Value::Array(tags)) => {
            let is_any = |tag: Value<'_>| tag.as_document().is_some_and(|tag| tag.is_empty());
            // `[{}]` is every member, as no tags are.
            let mut tags = tags.iter();
            let names_some = tags.next().is_some_and(|tag| !is_any(tag) || tags.next().is_some());
            if is_primary && names_some {
                let message = "Only empty tags are allowed with primary read preference";
                return invalid(Code::BadValue, message);
            }
        }
        Some(other) => return wrong_type("tags", other, "type 'array'"),
    }
    match field("hedge") {
        None => {}
        Some(Value::Document(hedge))
            if is_primary && hedge.get("enabled").is_none_or(|enabled| enabled.is_truthy()) =>
        {
            let message = "cannot enable hedging for $readPreference mode \"primaryOnly\"";
            return invalid(Code::InvalidOptions, message);
        }
        Some(Value::Document(_)) => {}
        Some(other) => return wrong_type("hedge", other, "type 'object'"),
    }
    match field("maxStalenessSeconds") {
        None => Ok(()),
        Some(value) if value.is_number() => {
            check_staleness(tables::integer(value).unwrap_or(0), is_primary)
        }
        Some(other) => {
            let expected = "types '[long, int, decimal, double]'";
            wrong_type("maxStalenessSeconds", other, expected)
        }
    }
}

fn check_staleness(seconds: i64, is_primary: bool) -> Result<(), Error> {
    let (code, message) = match seconds {
        0 => return Ok(()),
        ..0 => (Code::BadValue, "maxStalenessSeconds must be a non-negative integer"),
        1..STALENESS_SECONDS_MIN => {
            (Code::Location(160), "maxStalenessSeconds value cannot be less than 90")
        }
        _ if is_primary => {
            (Code::BadValue, "maxStalenessSeconds can not be set for the primary mode")
        }
        _ => return Ok(()),
    };
    Err(Error::invalid(code, message))
}

fn is_nothing(value: Value<'_>) -> bool {
    matches!(value, Value::Null | Value::Undefined)
}

#[cfg(test)]
mod tests {
    use frond_doc::extended_json;

    use super::*;

    #[test]
    fn as_mongodb_takes_them() {
        for (preference, expected) in [
            (r#"{"mode": "primary"}"#, Ok(())),
            (r#"{"mode": "primary", "tags": []}"#, Ok(())),
            (r#"{"mode": "primary", "tags": [{}]}"#, Ok(())),
            (r#"{"mode": "primary", "hedge": {"enabled": false}}"#, Ok(())),
            (r#"{"mode": "primary", "maxStalenessSeconds": 0}"#, Ok(())),
            (r#"{"mode": "nearest", "tags": [{"a": "b"}], "maxStalenessSeconds": 90}"#, Ok(())),
            (r#"{"mode": "secondaryPreferred", "hedge": {}}"#, Ok(())),
            (r#"{"mode": "secondary", "other": 1}"#, Ok(())),
            (r#"{"mode": "x"}"#, Err(2)),
            (r#"{"mode": "Primary"}"#, Err(2)),
            (r#"{"mode": 1}"#, Err(14)),
            (r#"{"mode": null}"#, Err(40414)),
            (r#"{}"#, Err(40414)),
            (r#"{"mode": "primary", "tags": [{"a": "b"}]}"#, Err(2)),
            (r#"{"mode": "primary", "tags": [{}, {}]}"#, Err(2)),
            (r#"{"mode": "nearest", "tags": "a"}"#, Err(14)),
            (r#"{"mode": "primary", "hedge": {}}"#, Err(72)),
            (r#"{"mode": "nearest", "hedge": 1}"#, Err(14)),
            (r#"{"mode": "primary", "maxStalenessSeconds": 90}"#, Err(2)),
            (r#"{"mode": "primary", "maxStalenessSeconds": 89}"#, Err(160)),
            (r#"{"mode": "nearest", "maxStalenessSeconds": -1}"#, Err(2)),
            (r#"{"mode": "nearest", "maxStalenessSeconds": "1"}"#, Err(14)),
        ] {
            let parsed = extended_json::parse(preference).expect("JSON");
            let checked = check(parsed.view()).map_err(|error| error.code.number());
            assert_eq!(checked, expected, "{preference}");
        }
    }
}
