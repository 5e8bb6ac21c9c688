//! Values of Parquet's rows, put into documents.
//!
//! The values themselves decide; the shape says only what a plain value stands for.

use frond_doc::builder::position_name;
use frond_doc::{Binary, DocumentBuf, DocumentBuilder, Value, decimal, extended_json};
use parquet::data_type::Decimal;
use parquet::record::{Field, Row};

use crate::input::parquet::shape::Shape;

const MILLISECONDS_A_DAY: i64 = 86_400_000;
const MICROSECONDS_A_SECOND: i64 = 1_000_000;
/// The subtype of a UUID.
const UUID: u8 = 4;
/// A decimal of a document has at most so many digits.
const DIGITS_MAX: u32 = 34;

/// Makes documents of rows.
pub struct DocumentMaker {
    /// Fields that are null are left out.
    pub without_nulls: bool,
}

impl DocumentMaker {
    /// Appends the parts of a row or group.
    ///
    /// # Errors
    /// A part of them that can't be in a document.
    pub fn append_row(
        &self,
        document: &mut DocumentBuilder,
        row: &Row,
        shapes: &[Shape],
    ) -> Result<(), String> {
        for (position, (name, field)) in row.get_column_iter().enumerate() {
            if self.without_nulls && matches!(field, Field::Null) {
                continue;
            }
            let shape = shapes.get(position).unwrap_or(&Shape::Plain);
            self.append(document, name, field, shape).map_err(|what| match what.contains(':') {
                true => format!("{name}.{what}"),
                false => format!("{name}: {what}"),
            })?;
        }
        Ok(())
    }

    fn append(
        &self,
        document: &mut DocumentBuilder,
        name: &str,
        field: &Field,
        shape: &Shape,
    ) -> Result<(), String> {
        if name.contains('\0') {
            return Err("a name has no null byte".to_owned());
        }
        match field {
            Field::Group(row) => {
                let shapes = if let Shape::Group(shapes) = shape { &shapes[..] } else { &[] };
                document.begin_document(name);
                self.append_row(document, row, shapes)?;
                document.end();
            }
            Field::ListInternal(list) => {
                let inner = if let Shape::List(inner) = shape { inner } else { &Shape::Plain };
                document.begin_array(name);
                let mut digits = [0; 20];
                for (position, element) in list.elements().iter().enumerate() {
                    self.append(document, position_name(position, &mut digits), element, inner)?;
                }
                document.end();
            }
            Field::MapInternal(map) => self.append_map(document, name, map.entries(), shape)?,
            plain => append_plain(document, name, plain, shape)?,
        }
        Ok(())
    }

    /// A map whose keys are texts is a document.
    fn append_map(
        &self,
        document: &mut DocumentBuilder,
        name: &str,
        entries: &[(Field, Field)],
        shape: &Shape,
    ) -> Result<(), String> {
        let (by_text, of_key, of_value) = match shape {
            Shape::Map { by_text, key, value } => (*by_text, &**key, &**value),
            _ => (false, &Shape::Plain, &Shape::Plain),
        };
        if by_text {
            document.begin_document(name);
            for (key, value) in entries {
                let Field::Str(key) = key else { return Err("a key is none".to_owned()) };
                self.append(document, key, value, of_value)?;
            }
        } else {
            document.begin_array(name);
            for (key, value) in entries {
                document.push_begin_document();
                self.append(document, "key", key, of_key)?;
                self.append(document, "value", value, of_value)?;
                document.end();
            }
        }
        document.end();
        Ok(())
    }
}

fn append_plain(
    document: &mut DocumentBuilder,
    name: &str,
    field: &Field,
    shape: &Shape,
) -> Result<(), String> {
    let text;
    let parsed;
    let value = match (field, shape) {
        (Field::Str(json), Shape::Json) => {
            parsed = one_of(&format!("{{\"v\": {json}}}"))?;
            only(&parsed)?
        }
        (Field::Str(id), Shape::ObjectId) => {
            parsed = one_of(&format!("{{\"v\": {{\"$oid\": \"{id}\"}}}}"))?;
            only(&parsed)?
        }
        (Field::Str(number), Shape::Decimal) => {
            parsed = one_of(&format!("{{\"v\": {{\"$numberDecimal\": \"{number}\"}}}}"))?;
            only(&parsed)?
        }
        (Field::Bytes(bytes), Shape::Uuid) => {
            Value::Binary(Binary { subtype: UUID, bytes: bytes.data() })
        }
        (Field::Long(nanoseconds), Shape::Nanoseconds) => {
            Value::DateTime(nanoseconds.div_euclid(1_000_000))
        }
        (Field::Long(nanoseconds), Shape::NanosecondsOfDay) => {
            text = time_of_day(nanoseconds.div_euclid(1000));
            Value::String(&text)
        }
        (Field::Str(text), _) => Value::String(text),
        (Field::Bytes(bytes), _) => Value::Binary(Binary { subtype: 0, bytes: bytes.data() }),
        (Field::TimeMillis(time), _) => {
            text = time_of_day(i64::from(*time) * 1000);
            Value::String(&text)
        }
        (Field::TimeMicros(time), _) => {
            text = time_of_day(*time);
            Value::String(&text)
        }
        (Field::Decimal(number), _) => Value::Decimal128(decimal_of(number)?),
        (other, _) => number_or_date(other).ok_or("a value of an unknown kind")?,
    };
    document.append(name, value);
    Ok(())
}

fn number_or_date(field: &Field) -> Option<Value<'static>> {
    Some(match *field {
        Field::Null => Value::Null,
        Field::Bool(boolean) => Value::Boolean(boolean),
        Field::Byte(number) => Value::Int32(number.into()),
        Field::Short(number) => Value::Int32(number.into()),
        Field::Int(number) => Value::Int32(number),
        Field::Long(number) => Value::Int64(number),
        Field::UByte(number) => Value::Int32(number.into()),
        Field::UShort(number) => Value::Int32(number.into()),
        Field::UInt(number) => Value::Int64(number.into()),
        Field::ULong(number) => i64::try_from(number).map_or_else(
            |_| Value::Decimal128(decimal::from_parts(false, number.into(), 0)),
            Value::Int64,
        ),
        Field::Float16(number) => Value::Double(number.into()),
        Field::Float(number) => Value::Double(number.into()),
        Field::Double(number) => Value::Double(number),
        Field::Date(days) => Value::DateTime(i64::from(days) * MILLISECONDS_A_DAY),
        Field::TimestampMillis(milliseconds) => Value::DateTime(milliseconds),
        Field::TimestampMicros(microseconds) => Value::DateTime(microseconds.div_euclid(1000)),
        _ => return None,
    })
}

fn one_of(text: &str) -> Result<DocumentBuf, String> {
    extended_json::parse(text).map_err(|error| error.to_string())
}

/// The value of a document of one field.
fn only(document: &DocumentBuf) -> Result<Value<'_>, String> {
    let mut fields = document.iter();
    let value = fields.next().map(|(_, value)| value);
    value.filter(|_| fields.next().is_none()).ok_or_else(|| "this is not one value".to_owned())
}

/// `13:05:09.250000`, of microseconds since midnight.
fn time_of_day(microseconds: i64) -> String {
    let (seconds, rest) = (
        microseconds.div_euclid(MICROSECONDS_A_SECOND),
        microseconds.rem_euclid(MICROSECONDS_A_SECOND),
    );
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    format!("{hours:02}:{:02}:{:02}.{rest:06}", minutes % 60, seconds % 60)
}

/// Its bytes are a signed number, the highest first.
fn decimal_of(number: &Decimal) -> Result<frond_doc::Decimal128, String> {
    let bytes = number.data();
    let too_long = || format!("a decimal has at most {DIGITS_MAX} digits");
    let sign = if bytes.first().is_some_and(|first| 0x80 <= *first) { 0xff } else { 0 };
    let skipped = bytes.iter().take_while(|byte| **byte == sign).count();
    let kept = &bytes[skipped.min(bytes.len().saturating_sub(16))..];
    let mut wide = [sign; 16];
    wide.get_mut(16_usize.wrapping_sub(kept.len())..).ok_or_else(too_long)?.copy_from_slice(kept);
    let whole = i128::from_be_bytes(wide);
    let is_kept = (whole < 0) == (sign != 0) && whole.unsigned_abs() < 10_u128.pow(DIGITS_MAX);
    is_kept
        .then(|| decimal::from_parts(whole < 0, whole.unsigned_abs(), -number.scale()))
        .ok_or_else(too_long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_signed_numbers_of_any_length() {
        let of = |bytes: &[u8], scale| {
            let number = Decimal::from_bytes(bytes.to_vec().into(), 38, scale);
            decimal_of(&number).map(decimal::to_string)
        };
        assert_eq!(of(&[0x30, 0x39], 2).as_deref(), Ok("123.45"));
        assert_eq!(of(&[0xcf, 0xc7], 2).as_deref(), Ok("-123.45"));
        assert_eq!(of(&[0; 40], 0).as_deref(), Ok("0"));
        assert_eq!(
            of(&[[0xff; 30].as_slice(), &[0xcf, 0xc7]].concat(), 0).as_deref(),
            Ok("-12345")
        );
        assert_eq!(of(&[0x80, 0], 0).as_deref(), Ok("-32768"));
        assert!(of(&[1; 16], 0).is_err());
        assert!(of(&[1; 17], 0).is_err());
        assert!(of(&[&[0, 0x80][..], &[0; 15]].concat(), 0).is_err());
    }

    #[test]
    fn times_of_the_day_are_texts() {
        assert_eq!(time_of_day(47_109_250_000), "13:05:09.250000");
    }

    #[test]
    fn times_of_the_day_are_text_whatever_their_unit() {
        for (kind, field, expected) in [
            ("int32 t (TIME(MILLIS, false))", Field::TimeMillis(1_500), "00:00:01.500000"),
            ("int64 t (TIME(MICROS, true))", Field::TimeMicros(61_000_001), "00:01:01.000001"),
            ("int64 t (TIME(NANOS, true))", Field::Long(86_399_999_999_999), "23:59:59.999999"),
        ] {
            let schema = format!("message m {{ optional {kind}; }}");
            let schema = parquet::schema::parser::parse_message_type(&schema).unwrap();
            let shapes = super::super::shape::columns(&schema, None).unwrap();
            let mut document = DocumentBuilder::new();
            append_plain(&mut document, "t", &field, &shapes[0]).unwrap();
            assert_eq!(document.build().get("t"), Some(Value::String(expected)), "{kind}");
        }
    }
}
