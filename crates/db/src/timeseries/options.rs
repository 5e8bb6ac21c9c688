//! The options of `create` and `collMod` for a time series: `{timeseries: {timeField, metaField,
//! granularity, bucketMaxSpanSeconds, bucketRoundingSeconds}}`.
//!
//! MongoDB cuts time into buckets by the last three. Frond stores no buckets: the options are
//! checked and shown as MongoDB does, so that applications find what they asked for, and only
//! decide where a bucket that is read begins and ends.

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::Code;
use frond_query::known_fields::check_fields;

use crate::error::Error;

/// The option of `create`.
pub(crate) const OPTION: &str = "timeseries";
/// The field with each point's time.
pub(crate) const TIME: &str = "timeField";
/// The field with each point's source.
pub(crate) const META: &str = "metaField";
const GRANULARITY: &str = "granularity";
const SPAN: &str = "bucketMaxSpanSeconds";
const ROUNDING: &str = "bucketRoundingSeconds";
/// MongoDB's greatest bucket: a year.
const SPAN_MAX: i64 = 365 * 24 * 60 * 60;

/// Each granularity with the greatest span of its buckets, in seconds; the finest first.
const GRANULARITIES: [(&str, i64); 3] =
    [("seconds", 60 * 60), ("minutes", 24 * 60 * 60), ("hours", 30 * 24 * 60 * 60)];
/// The seconds between the times at which a bucket may begin.
const ROUNDINGS: [(&str, i64); 3] =
    [("seconds", 60), ("minutes", 60 * 60), ("hours", 24 * 60 * 60)];

/// Options that no time series has.
const OTHERS: [&str; 10] = [
    "capped",
    "size",
    "max",
    "clusteredIndex",
    "validator",
    "validationLevel",
    "validationAction",
    "viewOn",
    "pipeline",
    "changeStreamPreAndPostImages",
];

/// Checks the option, if a collection is created with it, and the others beside it.
///
/// # Errors
/// MongoDB's: `TypeMismatch` (14), `IDLUnknownField` (40415), `InvalidOptions` (72), `BadValue`
/// (2).
pub(crate) fn check(options: Document<'_>) -> Result<(), Error> {
    let Some(series) = options.get(OPTION) else { return Ok(()) };
    let Value::Document(series) = series else {
        return Err(wrong_type("create.timeseries", "object"));
    };
    if let Some(other) = OTHERS.iter().find(|name| options.get(name).is_some()) {
        return refuse(format!("time-series collections do not support the option '{other}'"));
    }
    check_fields("create.timeseries", series, &[TIME, META, GRANULARITY, SPAN, ROUNDING])?;
    for (name, value) in series.iter() {
        check_field("create", name, value)?;
    }
    let Some(time) = series.get(TIME).and_then(|time| time.as_str()) else {
        let message = "BSON field 'create.timeseries.timeField' is missing but a required field";
        return Err(Error::invalid(Code::Location(40414), message));
    };
    check_name(TIME, time)?;
    if let Some(meta) = series.get(META).and_then(|meta| meta.as_str()) {
        check_name(META, meta)?;
        if meta == "_id" || meta == time {
            return refuse("The 'metaField' cannot be \"_id\" or the same as the 'timeField'");
        }
    }
    buckets_of(series, None).map(|_| ())
}

/// The option as it is stored and shown: with how MongoDB would cut time.
///
/// # Errors
/// As [`check`].
pub(crate) fn kept(series: Document<'_>) -> Result<DocumentBuf, Error> {
    let mut kept = DocumentBuilder::new();
    for name in [TIME, META] {
        if let Some(field) = series.get(name) {
            kept.append(name, field);
        }
    }
    buckets_of(series, None)?.append_to(&mut kept);
    Ok(kept.build())
}

/// The option of a time series, changed as `collMod` says.
///
/// # Errors
/// `InvalidOptions` (72) for buckets that are smaller than before.
pub(crate) fn changed(was: Document<'_>, changes: Document<'_>) -> Result<DocumentBuf, Error> {
    check_fields("collMod.timeseries", changes, &[GRANULARITY, SPAN, ROUNDING])?;
    for (name, value) in changes.iter() {
        check_field("collMod", name, value)?;
    }
    if changes.is_empty() {
        return Ok(was.to_buf());
    }
    let before = buckets_of(was, None)?;
    let after = buckets_of(changes, Some(&before))?;
    if after.span < before.span {
        return refuse(
            "Invalid transition for timeseries.granularity: buckets can only become larger",
        );
    }
    let mut kept = DocumentBuilder::new();
    for name in [TIME, META] {
        if let Some(field) = was.get(name) {
            kept.append(name, field);
        }
    }
    after.append_to(&mut kept);
    Ok(kept.build())
}

/// The changes that `collMod` asks for, those of a time series as the option becomes by them.
///
/// # Errors
/// `InvalidOptions` (72) for what a time series, or any other collection, can't have.
pub(crate) fn of_change(was: Document<'_>, changes: Document<'_>) -> Result<DocumentBuf, Error> {
    let (was, change) = (was.get(OPTION), changes.get(OPTION));
    let Some(Value::Document(was)) = was else {
        return match change {
            Some(_) => {
                refuse("collMod: the option 'timeseries' is only for time-series collections")
            }
            None => Ok(changes.to_buf()),
        };
    };
    // Limits of a capped collection are taken, and change nothing.
    let is_limit = |name: &str| ["size", "max"].contains(&name);
    let mut others = OTHERS.iter().filter(|name| !is_limit(name));
    if let Some(other) = others.find(|name| changes.get(name).is_some()) {
        return refuse(format!("time-series collections do not support the option '{other}'"));
    }
    let mut made = DocumentBuilder::new();
    for (name, value) in changes.iter().filter(|(name, _)| !is_limit(name)) {
        match (name, value) {
            (OPTION, Value::Document(change)) => {
                made.append(name, Value::Document(changed(was, change)?.view()));
            }
            (OPTION, _) => return Err(wrong_type("collMod.timeseries", "object")),
            _ => {
                made.append(name, value);
            }
        }
    }
    Ok(made.build())
}

/// The longest stretch of time of a bucket, and how far apart the times are at which one may begin,
/// both in seconds.
pub(crate) fn bucket_seconds(series: Document<'_>) -> (i64, i64) {
    let Ok(buckets) = buckets_of(series, None) else { return (GRANULARITIES[0].1, ROUNDINGS[0].1) };
    let rounding = ROUNDINGS.iter().find(|(name, _)| Some(*name) == buckets.granularity);
    (buckets.span, rounding.map_or(buckets.span, |(_, seconds)| *seconds).max(1))
}

/// The way in which MongoDB would cut time.
struct Buckets<'a> {
    granularity: Option<&'a str>,
    span: i64,
}

impl Buckets<'_> {
    fn append_to(&self, kept: &mut DocumentBuilder) {
        let number = |seconds: i64| match i32::try_from(seconds) {
            Ok(seconds) => Value::Int32(seconds),
            Err(_) => Value::Int64(seconds),
        };
        match self.granularity {
            Some(granularity) => {
                kept.append(GRANULARITY, Value::String(granularity));
                kept.append(SPAN, number(self.span));
            }
            None => {
                kept.append(SPAN, number(self.span)).append(ROUNDING, number(self.span));
            }
        }
    }
}

/// Reads how time is to be cut; `before` is what a `collMod` finds.
fn buckets_of<'a>(
    series: Document<'a>,
    before: Option<&Buckets<'_>>,
) -> Result<Buckets<'a>, Error> {
    let seconds = |name| series.get(name).and_then(|seconds| seconds.as_integer());
    let (span, rounding) = (seconds(SPAN), seconds(ROUNDING));
    let granularity = series.get(GRANULARITY).and_then(|name| name.as_str());
    let named = |name: &str| GRANULARITIES.iter().find(|(known, _)| *known == name);
    if let Some(name) = granularity {
        let Some((_, usual)) = named(name) else {
            let message = format!(
                "Enumeration value '{name}' for field 'timeseries.granularity' is not a valid value."
            );
            return Err(Error::invalid(Code::BadValue, message));
        };
        if rounding.is_some() || span.is_some_and(|span| span != *usual) {
            return refuse(format!(
                "Timeseries 'granularity' {name} has buckets of {usual} seconds: '{SPAN}' can't be \
                 another, and '{ROUNDING}' can't be given"
            ));
        }
        return Ok(Buckets { granularity, span: *usual });
    }
    match (span, rounding) {
        (Some(span), Some(rounding)) if span == rounding => Ok(Buckets { granularity: None, span }),
        (None, None) => Ok(Buckets { granularity: Some("seconds"), span: GRANULARITIES[0].1 }),
        // As it is shown where nothing was asked for.
        (Some(span), None) if before.is_none() && span == GRANULARITIES[0].1 => {
            Ok(Buckets { granularity: Some("seconds"), span })
        }
        _ => {
            refuse(format!("Timeseries '{SPAN}' and '{ROUNDING}' must be given both, and be equal"))
        }
    }
}

fn check_field(command: &str, name: &str, value: Value<'_>) -> Result<(), Error> {
    let path = format!("{command}.timeseries.{name}");
    match name {
        TIME | META | GRANULARITY => match value {
            Value::String(_) => Ok(()),
            _ => Err(wrong_type(&path, "string")),
        },
        // Unknown names were refused.
        _ => match value.as_integer() {
            None => Err(wrong_type(&path, "int")),
            Some(seconds) if (1..=SPAN_MAX).contains(&seconds) => Ok(()),
            Some(seconds) => {
                let message = format!(
                    "BSON field '{name}' value must be >= 1 and <= {SPAN_MAX}, actual value \
                     '{seconds}'"
                );
                Err(Error::invalid(Code::BadValue, message))
            }
        },
    }
}

fn check_name(option: &str, field: &str) -> Result<(), Error> {
    if field.contains('\0') {
        let message = format!("'{option}' must not contain null bytes");
        return Err(Error::invalid(Code::BadValue, message));
    }
    if field.is_empty() || field.contains('.') || field.starts_with('$') {
        return refuse(format!("'{option}' must be a top-level field and not contain a '.'"));
    }
    Ok(())
}

fn wrong_type(path: &str, wanted: &str) -> Error {
    let message = format!("BSON field '{path}' is the wrong type, expected type '{wanted}'");
    Error::invalid(Code::TypeMismatch, message)
}

fn refuse<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(Error::invalid(Code::InvalidOptions, message.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use frond_doc::document;

    #[test]
    fn options_are_checked() {
        let series = |options: DocumentBuf| {
            let options = document! { "timeseries": &options };
            check(options.view()).map_or_else(|error| error.code.number(), |()| 0)
        };
        for (options, code) in [
            (document! { "timeField": "t" }, 0),
            (document! { "timeField": "t", "metaField": "m", "granularity": "hours" }, 0),
            (
                document! { "timeField": "t", "granularity": "minutes", "bucketMaxSpanSeconds": 86_400 },
                0,
            ),
            (
                document! { "timeField": "t", "bucketMaxSpanSeconds": 300, "bucketRoundingSeconds": 300 },
                0,
            ),
            (
                document! { "timeField": "t", "bucketMaxSpanSeconds": 300, "bucketRoundingSeconds": 60 },
                72,
            ),
            (document! { "timeField": "t", "bucketMaxSpanSeconds": 10 }, 72),
            (
                document! { "timeField": "t", "granularity": "minutes", "bucketMaxSpanSeconds": 3_600 },
                72,
            ),
            (
                document! { "timeField": "t", "granularity": "seconds", "bucketRoundingSeconds": 60 },
                72,
            ),
            (document! { "timeField": "t", "granularity": "years" }, 2),
            (
                document! { "timeField": "t", "bucketMaxSpanSeconds": 0, "bucketRoundingSeconds": 0 },
                2,
            ),
            (document! { "timeField": "a.t" }, 72),
            (document! { "timeField": "t", "metaField": "t" }, 72),
            (document! { "timeField": "t", "metaField": "_id" }, 72),
            (document! { "timeField": "t", "metaField": "a.m" }, 72),
            (document! { "timeField": 1 }, 14),
            (document! { "timeField": "t", "other": 1 }, 40415),
            (document! { "metaField": "m" }, 40414),
        ] {
            assert_eq!(series(options.clone()), code, "{options:?}");
        }
        let series = document! { "timeField": "t" };
        for name in OTHERS {
            let mut options = DocumentBuilder::new();
            options.append("timeseries", Value::from(&series)).append(name, Value::Int32(1));
            let options = options.build();
            assert_eq!(check(options.view()).unwrap_err().code, Code::InvalidOptions, "{name}");
        }
    }

    #[test]
    fn buckets_only_become_larger() {
        let change = |was: &DocumentBuf, changes: DocumentBuf| {
            changed(was.view(), changes.view()).map_err(|error| error.code.number())
        };
        let was = kept(document! { "timeField": "t", "metaField": "m" }.view()).expect("kept");
        let described = document! {
            "timeField": "t", "metaField": "m", "granularity": "seconds", "bucketMaxSpanSeconds": 3_600
        };
        assert_eq!(was, described);
        let hours = change(&was, document! { "granularity": "hours" }).expect("larger");
        assert_eq!(change(&hours, document! { "granularity": "minutes" }), Err(72));
        assert_eq!(change(&hours, document! { "granularity": "hours" }).as_ref(), Ok(&hours));
        assert_eq!(change(&hours, document! {}).as_ref(), Ok(&hours));
        assert_eq!(change(&hours, document! { "bucketMaxSpanSeconds": 2_592_001 }), Err(72));
        let larger = change(
            &hours,
            document! { "bucketMaxSpanSeconds": 2_592_001, "bucketRoundingSeconds": 2_592_001 },
        );
        assert_eq!(larger.expect("larger").get("granularity"), None);
        assert_eq!(change(&hours, document! { "timeField": "x" }), Err(40415));
    }
}
