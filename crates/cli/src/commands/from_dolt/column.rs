//! Converts a cell to a value of BSON, by its column's type.

use frond_doc::{Binary, DocumentBuilder, Value, decimal, extended_json};
use jiff::civil::DateTime;

use crate::commands::from_dolt::connection::Row;
use crate::failure::Failure;

/// The number of digits that a Decimal128 holds at most.
const DECIMAL_DIGITS_MAX: u32 = 34;

/// A column of a table, at one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Whether it belongs to the primary key.
    pub is_key: bool,
    kind: Kind,
}

/// The kind of value that a column's cells become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `tinyint(1)`, which `boolean` is another name of: 0 and 1 are booleans.
    Boolean,
    /// A number that always fits 32 bits.
    Int32,
    /// Any other whole number; above 63 bits a decimal.
    Int64,
    /// `float`, `double`.
    Double,
    /// `decimal` that a Decimal128 can hold.
    Decimal,
    /// A date or moment, in UTC.
    Date,
    /// Text, and what BSON has no type for: `time`, and decimals that are too long.
    Text,
    Binary,
    /// `bit(1)`.
    Flag,
    /// Any other `bit`: the number that its bits make.
    Bits,
    Json,
    /// An array of the set's members.
    Set,
    /// GeoJSON.
    Geometry,
}

impl Column {
    /// A column as `SHOW COLUMNS` describes it.
    ///
    /// # Errors
    /// [`Failure::Failed`] if documents have no place for its type.
    pub fn of(table: &str, name: &str, sql_type: &str, key: &str) -> Result<Column, Failure> {
        let Some(kind) = Kind::of(sql_type) else {
            return Err(Failure::failed(format!(
                "the column {table}.{name} has the type {sql_type}, for which there is no BSON type"
            )));
        };
        Ok(Column { name: name.to_owned(), is_key: key == "PRI", kind })
    }

    /// Returns the expression by which a query gets its cells.
    pub fn selected(&self, prefix: &str) -> String {
        let name = quoted(&format!("{prefix}{}", self.name));
        match self.kind {
            Kind::Geometry => format!("ST_AsGeoJSON({name})"),
            // As bits they would come as bytes.
            Kind::Flag | Kind::Bits => format!("CAST({name} AS UNSIGNED)"),
            _ => name,
        }
    }

    /// Appends the value of a row's cell.
    ///
    /// # Errors
    /// A message, if the cell isn't what the type says.
    pub fn append(
        &self,
        document: &mut DocumentBuilder,
        row: &Row,
        position: usize,
    ) -> Result<(), String> {
        let Some(bytes) = row.bytes(position) else {
            document.append(&self.name, Value::Null);
            return Ok(());
        };
        if self.kind == Kind::Binary {
            document.append(&self.name, Value::Binary(Binary { subtype: 0, bytes }));
            return Ok(());
        }
        let text = std::str::from_utf8(bytes)
            .map_err(|_| format!("{} holds what isn't UTF-8", self.name))?;
        match self.kind {
            Kind::Json | Kind::Geometry => self.append_json(document, text)?,
            // Arrays can be no part of an `_id`.
            Kind::Set if !self.is_key => {
                document.begin_array(&self.name);
                for member in text.split(',').filter(|member| !member.is_empty()) {
                    document.push(Value::String(member));
                }
                document.end();
            }
            _ => {
                let value = self.value(text).ok_or_else(|| {
                    format!("{} holds {text:?}, which isn't of its type", self.name)
                })?;
                document.append(&self.name, value);
            }
        }
        Ok(())
    }

    fn append_json(&self, document: &mut DocumentBuilder, text: &str) -> Result<(), String> {
        let whole = format!("{{\"value\":{text}}}");
        let whole = extended_json::parse(&whole).map_err(|error| error.to_string())?;
        document.append(&self.name, whole.get("value").unwrap_or(Value::Null));
        Ok(())
    }

    /// A value that is no container.
    fn value<'t>(&self, text: &'t str) -> Option<Value<'t>> {
        Some(match self.kind {
            Kind::Boolean => match text {
                "0" => Value::Boolean(false),
                "1" => Value::Boolean(true),
                other => Value::Int32(other.parse().ok()?),
            },
            Kind::Flag => Value::Boolean(text != "0"),
            Kind::Int32 => Value::Int32(text.parse().ok()?),
            Kind::Int64 | Kind::Bits => match text.parse() {
                Ok(number) => Value::Int64(number),
                Err(_) => Value::Decimal128(decimal::parse(text)?),
            },
            Kind::Double => Value::Double(text.parse().ok()?),
            Kind::Decimal => Value::Decimal128(decimal::parse(text)?),
            Kind::Date => match date(text) {
                Some(millis) => Value::DateTime(millis),
                // MySQL's date that is none: 0000-00-00.
                None if text.starts_with("0000-00-00") => Value::String(text),
                None => return None,
            },
            _ => Value::String(text),
        })
    }
}

impl Kind {
    fn of(sql_type: &str) -> Option<Kind> {
        let lower = sql_type.to_ascii_lowercase();
        let name = lower.split(['(', ' ']).next().unwrap_or_default();
        let length = || lower.split(['(', ')', ',']).nth(1)?.trim().parse::<u32>().ok();
        let is_unsigned = lower.contains(" unsigned");
        Some(match name {
            "boolean" | "bool" => Kind::Boolean,
            "tinyint" if length() == Some(1) => Kind::Boolean,
            "tinyint" | "smallint" | "mediumint" | "year" => Kind::Int32,
            "int" | "integer" if !is_unsigned => Kind::Int32,
            "int" | "integer" | "bigint" => Kind::Int64,
            "bit" if length().unwrap_or(1) == 1 => Kind::Flag,
            "bit" => Kind::Bits,
            "float" | "double" | "real" => Kind::Double,
            "decimal" | "numeric" if DECIMAL_DIGITS_MAX < length().unwrap_or(10) => Kind::Text,
            "decimal" | "numeric" => Kind::Decimal,
            "date" | "datetime" | "timestamp" => Kind::Date,
            "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum"
            | "time" => Kind::Text,
            "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => {
                Kind::Binary
            }
            "json" => Kind::Json,
            "set" => Kind::Set,
            "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring"
            | "multipolygon" | "geometrycollection" | "geomcollection" => Kind::Geometry,
            _ => return None,
        })
    }
}

/// `2026-01-02 03:04:05.678`, or only a day, in UTC, in milliseconds since 1970; what is finer is
/// cut off.
pub fn date(text: &str) -> Option<i64> {
    let moment: DateTime = match text.len() {
        10 => text.parse::<jiff::civil::Date>().ok()?.to_datetime(jiff::civil::Time::midnight()),
        _ => text.parse().ok()?,
    };
    let nanoseconds = moment.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_nanosecond();
    i64::try_from(nanoseconds.div_euclid(1_000_000)).ok()
}

/// A name as SQL quotes it.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types() {
        for (sql_type, expected) in [
            ("tinyint(1)", Some(Kind::Boolean)),
            ("tinyint", Some(Kind::Int32)),
            ("int unsigned", Some(Kind::Int64)),
            ("decimal(34,2)", Some(Kind::Decimal)),
            ("decimal(35,2)", Some(Kind::Text)),
            ("decimal", Some(Kind::Decimal)),
            ("bit(1)", Some(Kind::Flag)),
            ("bit(64)", Some(Kind::Bits)),
            ("datetime(6)", Some(Kind::Date)),
            ("enum('int','x')", Some(Kind::Text)),
            ("varchar(20) CHARACTER SET latin1", Some(Kind::Text)),
            ("POINT SRID 4326", Some(Kind::Geometry)),
            ("vector(3)", None),
        ] {
            assert_eq!(Kind::of(sql_type), expected, "{sql_type}");
        }
    }

    #[test]
    fn values() {
        for (sql_type, text, expected) in [
            ("tinyint(1)", "2", Some(Value::Int32(2))),
            ("bigint", "-9223372036854775808", Some(Value::Int64(i64::MIN))),
            (
                "bigint unsigned",
                "18446744073709551615",
                decimal::parse("18446744073709551615").map(Value::Decimal128),
            ),
            ("decimal(5,2)", "1.20", decimal::parse("1.20").map(Value::Decimal128)),
            ("float", "1.1", Some(Value::Double(1.1))),
            ("date", "1969-12-31", Some(Value::DateTime(-86_400_000))),
            ("datetime(6)", "1969-12-31 23:59:59.999999", Some(Value::DateTime(-1))),
            ("datetime", "0000-00-00 00:00:00", Some(Value::String("0000-00-00 00:00:00"))),
            ("date", "soon", None),
            ("int", "x", None),
        ] {
            let column = Column::of("t", "c", sql_type, "").expect("it is known");
            assert_eq!(column.value(text), expected, "{sql_type} {text}");
        }
    }
}
