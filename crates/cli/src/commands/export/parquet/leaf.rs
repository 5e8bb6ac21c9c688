//! One column of values, and the levels of each.

use frond_doc::extended_json::{self, Form};
use frond_doc::{Value, decimal};
use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
    Int32Type, Int64Type,
};
use parquet::errors::Result;
use parquet::file::writer::SerializedColumnWriter;
use parquet::schema::types::Type;

use crate::commands::export::parquet::kind::Kind;

const UUID_BYTES: i32 = 16;

/// A column that holds values.
pub struct Leaf {
    logical: Option<LogicalType>,
    values: Values,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
}

enum Values {
    Boolean(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Double(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Uuid(Vec<FixedLenByteArray>),
    /// Values of all types, as text.
    Json(Vec<ByteArray>),
}

/// The levels of a value.
#[derive(Clone, Copy, Default)]
pub struct Levels {
    /// Optional and repeated parts of its path that are there.
    definition: i16,
    /// The repeated part that began anew, counted from the outermost, 1; 0: the row.
    repetition: i16,
    /// The number of repeated parts above it.
    depth: i16,
}

impl Levels {
    /// Returns the levels of what is within an optional part that is there.
    pub fn there(self) -> Levels {
        Levels { definition: self.definition + 1, ..self }
    }

    /// Returns the levels of an array's first element.
    pub fn first_element(self) -> Levels {
        Levels { definition: self.definition + 1, depth: self.depth + 1, ..self }
    }

    /// Returns the levels of the elements behind it.
    pub fn next_element(self) -> Levels {
        Levels { repetition: self.depth, ..self }
    }
}

impl Leaf {
    /// An empty column for values of a kind.
    pub fn of(kind: &Kind) -> Leaf {
        let text = || (Some(LogicalType::String), Values::Bytes(Vec::new()));
        let (logical, values) = match kind {
            Kind::Nothing => (Some(LogicalType::Unknown), Values::Int32(Vec::new())),
            Kind::Boolean => (None, Values::Boolean(Vec::new())),
            Kind::Int32 => (None, Values::Int32(Vec::new())),
            Kind::Int64 { .. } => (None, Values::Int64(Vec::new())),
            Kind::Double => (None, Values::Double(Vec::new())),
            Kind::Date => {
                let logical = LogicalType::timestamp(true, TimeUnit::MILLIS);
                (Some(logical), Values::Int64(Vec::new()))
            }
            Kind::Bytes => (None, Values::Bytes(Vec::new())),
            Kind::Uuid => (Some(LogicalType::Uuid), Values::Uuid(Vec::new())),
            Kind::Text | Kind::ObjectId | Kind::Decimal => text(),
            Kind::Document(_) | Kind::Array(_) | Kind::Json => {
                (Some(LogicalType::Json), Values::Json(Vec::new()))
            }
        };
        Leaf { logical, values, definitions: Vec::new(), repetitions: Vec::new() }
    }

    /// The column in the schema.
    ///
    /// # Errors
    /// An error of the library.
    pub fn type_of(&self, name: &str) -> Result<Type> {
        let (physical, length) = match self.values {
            Values::Boolean(_) => (Physical::BOOLEAN, -1),
            Values::Int32(_) => (Physical::INT32, -1),
            Values::Int64(_) => (Physical::INT64, -1),
            Values::Double(_) => (Physical::DOUBLE, -1),
            Values::Bytes(_) | Values::Json(_) => (Physical::BYTE_ARRAY, -1),
            Values::Uuid(_) => (Physical::FIXED_LEN_BYTE_ARRAY, UUID_BYTES),
        };
        let built = Type::primitive_type_builder(name, physical).with_length(length);
        let built = built.with_repetition(Repetition::OPTIONAL);
        built.with_logical_type(self.logical.clone()).build()
    }

    /// Notes that nothing is there, below these levels.
    pub fn push_absent(&mut self, levels: Levels) {
        self.definitions.push(levels.definition);
        self.repetitions.push(levels.repetition);
    }

    /// Appends a value of the column's kind.
    pub fn push(&mut self, value: Value<'_>, levels: Levels, form: Form) {
        match (&mut self.values, value) {
            (Values::Json(all), value) => {
                let mut text = String::new();
                extended_json::write_value(value, form, &mut text);
                all.push(text.into_bytes().into());
            }
            (Values::Boolean(all), Value::Boolean(it)) => all.push(it),
            (Values::Int32(all), Value::Int32(it)) => all.push(it),
            (Values::Int64(all), Value::Int64(it) | Value::DateTime(it)) => all.push(it),
            (Values::Int64(all), Value::Int32(it)) => all.push(it.into()),
            (Values::Double(all), Value::Double(it)) => all.push(it),
            (Values::Double(all), Value::Int32(it)) => all.push(it.into()),
            (Values::Double(all), Value::Int64(it)) => all.push(it as f64),
            (Values::Bytes(all), Value::String(it)) => all.push(it.into()),
            (Values::Bytes(all), Value::Binary(it)) => all.push(it.bytes.to_vec().into()),
            (Values::Bytes(all), Value::ObjectId(it)) => all.push(it.to_string().as_str().into()),
            (Values::Bytes(all), Value::Decimal128(it)) => {
                all.push(decimal::to_string(it).as_str().into())
            }
            (Values::Uuid(all), Value::Binary(it)) => {
                all.push(ByteArray::from(it.bytes.to_vec()).into());
            }
            (_, other) => unreachable!("the kind was made from all values, {other:?} too"),
        }
        self.push_absent(levels);
    }

    /// Writes the values, and has none then.
    ///
    /// # Errors
    /// An error of the library; what writing fails with.
    pub fn write(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let definitions = std::mem::take(&mut self.definitions);
        let repetitions = std::mem::take(&mut self.repetitions);
        let (definitions, repetitions) = (Some(&definitions[..]), Some(&repetitions[..]));
        macro_rules! write {
            ($type:ty, $all:expr) => {
                column.typed::<$type>().write_batch(&std::mem::take($all), definitions, repetitions)
            };
        }
        let written = match &mut self.values {
            Values::Boolean(all) => write!(BoolType, all),
            Values::Int32(all) => write!(Int32Type, all),
            Values::Int64(all) => write!(Int64Type, all),
            Values::Double(all) => write!(DoubleType, all),
            Values::Bytes(all) | Values::Json(all) => write!(ByteArrayType, all),
            Values::Uuid(all) => write!(FixedLenByteArrayType, all),
        };
        written.map(|_| ())
    }
}
