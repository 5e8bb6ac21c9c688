//! Converts a Parquet file's schema into the shape of each column.
//!
//! All that the rows' reader takes for granted is checked here, so that a schema that contradicts
//! itself is an error, not a panic.

use std::sync::Arc;

use frond_doc::{Document, DocumentBuf, Value};
use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::schema::types::Type;

use crate::input::parquet::{DECIMAL, OBJECT_ID};

/// The way a part of a row is read.
pub enum Shape {
    /// A document; these are its fields.
    Group(Vec<Shape>),
    /// An array of one.
    List(Box<Shape>),
    /// A document, where keys are texts; otherwise an array of keys and values.
    Map { by_text: bool, key: Box<Shape>, value: Box<Shape> },
    /// A value as it comes.
    Plain,
    /// Nanoseconds since 1970.
    Nanoseconds,
    /// Nanoseconds since midnight.
    NanosecondsOfDay,
    /// Sixteen bytes.
    Uuid,
    /// The text of a value in extended JSON.
    Json,
    /// The text of an identifier.
    ObjectId,
    /// The text of a decimal.
    Decimal,
}

/// A file's notes about its texts.
struct Noted<'a>(Option<Document<'a>>);

/// The columns of all rows.
///
/// # Errors
/// A column that can't be read, by its name.
pub fn columns(root: &Type, types: Option<&DocumentBuf>) -> Result<Vec<Shape>, String> {
    fields_of(root, &Noted(types.map(DocumentBuf::view)), &mut Vec::new())
}

fn fields_of(
    group: &Type,
    noted: &Noted<'_>,
    path: &mut Vec<String>,
) -> Result<Vec<Shape>, String> {
    let shape = |field: &Arc<Type>| {
        path.push(field.name().to_owned());
        let shape = repeated(field, noted, path);
        path.pop();
        shape
    };
    group.get_fields().iter().map(shape).collect()
}

/// A field that is repeated without being called a list is one all the same.
fn repeated(field: &Type, noted: &Noted<'_>, path: &mut Vec<String>) -> Result<Shape, String> {
    let shape = shape(field, noted, path)?;
    let is_repeated = field.get_basic_info().repetition() == Repetition::REPEATED;
    Ok(if is_repeated { Shape::List(Box::new(shape)) } else { shape })
}

fn shape(field: &Type, noted: &Noted<'_>, path: &mut Vec<String>) -> Result<Shape, String> {
    if field.is_primitive() {
        return leaf(field, noted, path);
    }
    match field.get_basic_info().converted_type() {
        ConvertedType::LIST => {
            let inner = only_repeated(field, path)?;
            Ok(Shape::List(Box::new(match is_element(inner) {
                true => shape(inner, noted, path)?,
                false => repeated(&inner.get_fields()[0], noted, path)?,
            })))
        }
        ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE => {
            let entry = only_repeated(field, path)?;
            match entry.is_group().then(|| entry.get_fields()) {
                Some([key]) => Ok(Shape::List(Box::new(repeated(key, noted, path)?))),
                Some([key, value]) => {
                    let of_key = key.get_basic_info().converted_type();
                    let by_text = matches!(of_key, ConvertedType::UTF8 | ConvertedType::ENUM);
                    let (key, value) = (repeated(key, noted, path)?, repeated(value, noted, path)?);
                    Ok(Shape::Map { by_text, key: Box::new(key), value: Box::new(value) })
                }
                _ => Err(format!("column {}: this is not a map", path.join("."))),
            }
        }
        _ => Ok(Shape::Group(fields_of(field, noted, path)?)),
    }
}

/// Returns the repeated field inside a list or map.
fn only_repeated<'a>(field: &'a Type, path: &[String]) -> Result<&'a Type, String> {
    match field.get_fields() {
        [inner] if inner.get_basic_info().repetition() == Repetition::REPEATED => Ok(inner),
        _ => Err(format!("column {}: this is neither a list nor a map", path.join("."))),
    }
}

/// Whether what a list repeats is the element, as old writers have it, and not what holds it.
fn is_element(repeated: &Type) -> bool {
    repeated.is_primitive()
        || repeated.get_fields().len() != 1
        || repeated.name() == "array"
        || repeated.name().ends_with("_tuple")
}

fn leaf(field: &Type, noted: &Noted<'_>, path: &[String]) -> Result<Shape, String> {
    let info = field.get_basic_info();
    let (physical, logical) = (field.get_physical_type(), info.logical_type_ref());
    match (info.converted_type(), logical) {
        (ConvertedType::JSON, _) | (_, Some(LogicalType::Json)) => Ok(Shape::Json),
        (ConvertedType::NONE, Some(LogicalType::Uuid)) => Ok(Shape::Uuid),
        (ConvertedType::NONE, Some(LogicalType::Timestamp(of))) if of.unit == TimeUnit::NANOS => {
            Ok(Shape::Nanoseconds)
        }
        (ConvertedType::NONE, Some(LogicalType::Time(of))) if of.unit == TimeUnit::NANOS => {
            Ok(Shape::NanosecondsOfDay)
        }
        (ConvertedType::UTF8, _) => Ok(noted.of(path)),
        (converted, _) if is_read(physical, converted) => Ok(Shape::Plain),
        (converted, _) => Err(format!("column {}: no document holds {converted}", path.join("."))),
    }
}

/// Whether the rows' reader knows the type.
fn is_read(physical: Physical, converted: ConvertedType) -> bool {
    use ConvertedType::{
        BSON, DATE, DECIMAL, ENUM, INT_8, INT_16, INT_32, INT_64, NONE, TIME_MICROS, TIME_MILLIS,
        TIMESTAMP_MICROS, TIMESTAMP_MILLIS, UINT_8, UINT_16, UINT_32, UINT_64, UTF8,
    };
    match physical {
        Physical::INT32 => matches!(
            converted,
            NONE | INT_8
                | INT_16
                | INT_32
                | UINT_8
                | UINT_16
                | UINT_32
                | DATE
                | TIME_MILLIS
                | DECIMAL
        ),
        Physical::INT64 => matches!(
            converted,
            NONE | INT_64 | UINT_64 | TIME_MICROS | TIMESTAMP_MILLIS | TIMESTAMP_MICROS | DECIMAL
        ),
        Physical::BYTE_ARRAY => matches!(converted, NONE | UTF8 | ENUM | BSON | DECIMAL),
        Physical::FIXED_LEN_BYTE_ARRAY => matches!(converted, NONE | DECIMAL),
        _ => true,
    }
}

impl Noted<'_> {
    /// Returns the shape of the values that a column's text stands for.
    fn of(&self, path: &[String]) -> Shape {
        let columns = self.0.and_then(|types| types.get("columns")?.as_array());
        let mut columns = columns.iter().flat_map(|columns| columns.iter());
        let column = columns.find_map(|column| {
            let column = column.as_document()?;
            let names = column.get("path")?.as_array()?;
            let is_it = names.iter().eq(path.iter().map(|name| Value::String(name)));
            is_it.then(|| column.get("type")?.as_str()).flatten()
        });
        match column {
            Some(OBJECT_ID) => Shape::ObjectId,
            Some(DECIMAL) => Shape::Decimal,
            _ => Shape::Plain,
        }
    }
}
