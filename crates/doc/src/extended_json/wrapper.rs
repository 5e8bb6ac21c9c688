//! Objects that stand for a value of a type that JSON doesn't have.

use data_encoding::HEXLOWER_PERMISSIVE;

use super::{EPOCH, base64};
use crate::decimal;
use crate::document::Document;
use crate::document::value::{Binary, ObjectId, Regex, Timestamp, Value, ValueBuf};

/// The value of a wrapper; `None` if the document is none after all; what is wrong with it.
type Converted = Result<Option<ValueBuf>, String>;

/// A wrapper's name, and how its document is converted.
type Wrapper = (&'static str, fn(Document<'_>) -> Converted);

/// Sorted by name. The legacy forms with two names are here twice, as either may come first.
const WRAPPERS: [Wrapper; 20] = [
    ("$binary", binary),
    ("$code", code),
    ("$date", date),
    ("$dbPointer", db_pointer),
    ("$maxKey", |it| only(it).and_then(|value| marker(value, Value::MaxKey))),
    ("$minKey", |it| only(it).and_then(|value| marker(value, Value::MinKey))),
    ("$numberDecimal", number_decimal),
    ("$numberDouble", number_double),
    ("$numberInt", number_int),
    ("$numberLong", number_long),
    ("$oid", object_id),
    ("$options", legacy_regex),
    ("$regex", legacy_regex),
    ("$regularExpression", regular_expression),
    ("$scope", code),
    ("$symbol", symbol),
    ("$timestamp", timestamp),
    ("$type", legacy_binary),
    ("$undefined", undefined),
    ("$uuid", uuid),
];

/// Whether an object with that first name may be a wrapper.
pub(crate) fn is_wrapper(name: &str) -> bool {
    name.starts_with('$') && find(name).is_some()
}

/// Converts a document whose first name is a wrapper's.
pub(crate) fn convert(document: Document<'_>) -> Converted {
    let Some((name, _)) = document.iter().next() else { return Ok(None) };
    let Some((name, convert)) = find(name) else { return Ok(None) };
    convert(document).map_err(|what| format!("{name}: {what}"))
}

fn find(name: &str) -> Option<Wrapper> {
    let position = WRAPPERS.binary_search_by_key(&name, |wrapper| wrapper.0).ok()?;
    Some(WRAPPERS[position])
}

/// The value of the document's only field.
fn only(document: Document<'_>) -> Result<Value<'_>, String> {
    let mut fields = document.iter();
    match (fields.next(), fields.next()) {
        (Some((_, value)), None) => Ok(value),
        (_, Some((name, _))) => Err(format!("unexpected field {name:?} beside it")),
        (None, None) => Err("expected a value".to_owned()),
    }
}

fn only_text(document: Document<'_>) -> Result<&str, String> {
    text(only(document)?)
}

fn text(value: Value<'_>) -> Result<&str, String> {
    value
        .as_str()
        .ok_or_else(|| format!("expected a string, found {}", value.element_type().alias()))
}

/// The values of exactly these fields.
fn fields<'a, const COUNT: usize>(
    document: Document<'a>,
    names: [&str; COUNT],
) -> Result<[Value<'a>; COUNT], String> {
    if let Some((name, _)) = document.iter().find(|(name, _)| !names.contains(name)) {
        return Err(format!("unexpected field {name:?}"));
    }
    let mut values = [Value::Null; COUNT];
    for (value, name) in values.iter_mut().zip(names) {
        *value = document.get(name).ok_or_else(|| format!("field {name:?} is missing"))?;
    }
    Ok(values)
}

fn nested(document: Document<'_>) -> Result<Document<'_>, String> {
    only(document)?.as_document().ok_or_else(|| "expected an object".to_owned())
}

fn done(value: Value<'_>) -> Converted {
    Ok(Some(value.to_buf()))
}

fn object_id(document: Document<'_>) -> Converted {
    let digits = only_text(document)?;
    let bytes = hexadecimal(digits).and_then(|bytes| bytes.try_into().ok());
    let bytes = bytes.ok_or_else(|| format!("expected 24 hexadecimal digits, found {digits:?}"))?;
    done(Value::ObjectId(ObjectId(bytes)))
}

fn number_int(document: Document<'_>) -> Converted {
    let digits = only_text(document)?;
    done(Value::Int32(digits.parse().map_err(|_| format!("{digits:?} is no 32-bit integer"))?))
}

fn number_long(document: Document<'_>) -> Converted {
    let digits = only_text(document)?;
    done(Value::Int64(digits.parse().map_err(|_| format!("{digits:?} is no 64-bit integer"))?))
}

fn number_double(document: Document<'_>) -> Converted {
    let digits = only_text(document)?;
    done(Value::Double(digits.parse().map_err(|_| format!("{digits:?} is no double"))?))
}

fn number_decimal(document: Document<'_>) -> Converted {
    let digits = only_text(document)?;
    let number = decimal::parse(digits).ok_or_else(|| format!("{digits:?} is no decimal"))?;
    done(Value::Decimal128(number))
}

fn symbol(document: Document<'_>) -> Converted {
    done(Value::Symbol(only_text(document)?))
}

/// The value of `$minKey` and `$maxKey` is 1, always.
fn marker(value: Value<'_>, key: Value<'_>) -> Converted {
    if value.as_integer() == Some(1) { done(key) } else { Err("expected 1".to_owned()) }
}

fn undefined(document: Document<'_>) -> Converted {
    match only(document)? {
        Value::Boolean(true) => done(Value::Undefined),
        _ => Err("expected true".to_owned()),
    }
}

/// `{"$date": {"$numberLong": "..."}}`, converted already, a number, or text.
fn date(document: Document<'_>) -> Converted {
    let millis = match only(document)? {
        Value::String(text) => written_date(text)
            .ok_or_else(|| format!("{text:?} is no date as in 2026-01-31T23:59:59.999Z"))?,
        value => value
            .as_integer()
            .ok_or_else(|| "expected a string or milliseconds since 1970".to_owned())?,
    };
    done(Value::DateTime(millis))
}

/// Milliseconds since 1970 of a date with a time and an offset.
fn written_date(text: &str) -> Option<i64> {
    if let Ok(timestamp) = text.parse::<jiff::Timestamp>() {
        return Some(timestamp.as_millisecond());
    }
    let pieces = jiff::fmt::temporal::Pieces::parse(text).ok()?;
    let (time, offset) = (pieces.time()?, pieces.to_numeric_offset()?);
    let since = pieces.date().to_datetime(time).duration_since(EPOCH);
    i64::try_from(since.as_millis()).ok()?.checked_sub(i64::from(offset.seconds()) * 1_000)
}

fn timestamp(document: Document<'_>) -> Converted {
    let [seconds, counter] = fields(nested(document)?, ["t", "i"])?;
    let part = |name: &str, value: Value<'_>| {
        let number = value.as_integer().and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| format!("field {name:?} is no unsigned 32-bit integer"))
    };
    let (seconds, counter) = (part("t", seconds)?, part("i", counter)?);
    done(Value::Timestamp(Timestamp(u64::from(seconds) << 32 | u64::from(counter))))
}

fn regular_expression(document: Document<'_>) -> Converted {
    let [pattern, options] = fields(nested(document)?, ["pattern", "options"])?;
    regex(text(pattern)?, text(options)?)
}

/// `{"$regex": "a", "$options": "i"}`. Anything else with these names is a query's operator.
fn legacy_regex(document: Document<'_>) -> Converted {
    let options = document.get("$options").unwrap_or(Value::String(""));
    let is_other = document.iter().any(|(name, _)| name != "$regex" && name != "$options");
    match (document.get("$regex"), options) {
        (Some(Value::String(pattern)), Value::String(options)) if !is_other => {
            regex(pattern, options)
        }
        _ => Ok(None),
    }
}

fn regex(pattern: &str, options: &str) -> Converted {
    if pattern.contains('\0') || options.contains('\0') {
        return Err("a regular expression can't hold a NUL".to_owned());
    }
    let mut sorted: Vec<char> = options.chars().collect();
    sorted.sort_unstable();
    let options: String = sorted.into_iter().collect();
    done(Value::Regex(Regex { pattern, options: &options }))
}

fn binary(document: Document<'_>) -> Converted {
    if document.get("$type").is_some() {
        return legacy_binary(document);
    }
    let [encoded, subtype] = fields(nested(document)?, ["base64", "subType"])?;
    let subtype = text(subtype)?;
    let is_short = subtype.len() <= 2 && subtype.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u8::from_str_radix(subtype, 16).ok().filter(|_| is_short);
    let number = number.ok_or_else(|| format!("subType {subtype:?} is no hexadecimal byte"))?;
    binary_of(text(encoded)?, number)
}

/// `{"$binary": "...", "$type": "00"}`. Anything else with `$type` is a query's operator.
fn legacy_binary(document: Document<'_>) -> Converted {
    if document.get("$binary").is_none() {
        return Ok(None);
    }
    let [encoded, subtype] = fields(document, ["$binary", "$type"])?;
    let number = match subtype {
        Value::String(digits) => u8::from_str_radix(digits, 16).ok(),
        number => number.as_integer().and_then(|number| u8::try_from(number).ok()),
    };
    binary_of(text(encoded)?, number.ok_or("$type is no byte")?)
}

/// The old subtype 2 has a length inside its bytes, which JSON doesn't show.
fn binary_of(encoded: &str, subtype: u8) -> Converted {
    let mut bytes = base64::decode(encoded).ok_or("the bytes are not base64")?;
    if subtype == 2 {
        let length = u32::try_from(bytes.len()).map_err(|_| "too long".to_owned())?;
        bytes.splice(0..0, length.to_le_bytes());
    }
    done(Value::Binary(Binary { subtype, bytes: &bytes }))
}

fn uuid(document: Document<'_>) -> Converted {
    let digits = only_text(document)?;
    let groups: Vec<usize> = digits.split('-').map(str::len).collect();
    let bytes = hexadecimal(&digits.replace('-', ""));
    match bytes {
        Some(bytes) if groups == [8, 4, 4, 4, 12] => {
            done(Value::Binary(Binary { subtype: 4, bytes: &bytes }))
        }
        _ => Err(format!("{digits:?} is no UUID")),
    }
}

fn code(document: Document<'_>) -> Converted {
    if document.get("$scope").is_none() {
        return done(Value::JavaScript(only_text(document)?));
    }
    let [code, scope] = fields(document, ["$code", "$scope"])?;
    let scope = scope.as_document().ok_or("$scope is no object")?;
    done(Value::JavaScriptWithScope { code: text(code)?, scope })
}

fn db_pointer(document: Document<'_>) -> Converted {
    let [namespace, id] = fields(nested(document)?, ["$ref", "$id"])?;
    match id {
        Value::ObjectId(id) => done(Value::DbPointer { namespace: text(namespace)?, id }),
        _ => Err("$id is no $oid".to_owned()),
    }
}

fn hexadecimal(digits: &str) -> Option<Vec<u8>> {
    HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok()
}
