//! The target of a `$convert`.

use frond_doc::{ElementType, Value};

use super::super::evaluated::Evaluated;
use super::super::failure;
use super::binary::{ByteOrder, Format};
use crate::code::Code;
use crate::error::QueryError;
use crate::number::any_type::as_i32;

/// The types that something is converted to.
const CONVERTIBLE: [ElementType; 9] = [
    ElementType::Binary,
    ElementType::Double,
    ElementType::String,
    ElementType::ObjectId,
    ElementType::Boolean,
    ElementType::DateTime,
    ElementType::Int32,
    ElementType::Int64,
    ElementType::Decimal128,
];

/// The target type of a conversion.
pub(super) struct Target {
    /// `None` is "missing", which `$type` answers and nothing is converted to.
    pub(super) kind: Option<ElementType>,
    /// The subtype of binary data.
    pub(super) subtype: Subtype,
    pub(super) format: Option<Format>,
    pub(super) order: ByteOrder,
}

impl Target {
    /// The type, if anything is converted to it.
    pub(super) fn convertible(&self) -> Option<ElementType> {
        self.kind.filter(|kind| CONVERTIBLE.contains(kind))
    }

    /// The format, which conversions between strings and binary data must have.
    pub(super) fn format(&self) -> Result<Format, QueryError> {
        self.format.ok_or_else(|| {
            let message = "Format must be specified when converting between string and binData";
            failure(4_341_115, message)
        })
    }
}

/// The `subtype` that was asked for. A wrong one is an error only where it is needed.
#[derive(Clone, Copy)]
pub(super) enum Subtype {
    Known(u8),
    /// The code of the error.
    Wrong(i32),
}

impl Subtype {
    fn of(value: Value<'_>) -> Subtype {
        if !value.is_number() {
            return Subtype::Wrong(4_341_108);
        }
        match as_i32(value).map(u8::try_from) {
            None => Subtype::Wrong(4_341_106),
            Some(Ok(subtype @ (0..=8 | 128..))) => Subtype::Known(subtype),
            Some(_) => Subtype::Wrong(4_341_107),
        }
    }

    /// The number.
    ///
    /// # Errors
    /// 4341106 to 4341108 for what is no subtype.
    pub(super) fn number(self) -> Result<u8, QueryError> {
        match self {
            Subtype::Known(subtype) => Ok(subtype),
            Subtype::Wrong(code) => {
                let message = "In $convert, 'subtype' must be the number of a BinData type";
                Err(failure(code, message))
            }
        }
    }
}

/// The type, and the subtype of binary data, that `to` asks for: a type, or
/// `{type: "binData", subtype: 4}`. `None` where it is null; the type is `None` for "missing".
pub(super) fn destination(
    to: &Evaluated<'_>,
) -> Result<Option<(Option<ElementType>, Subtype)>, QueryError> {
    let Some(Value::Document(document)) = to.value() else {
        let subtype = Subtype::Known(0);
        return Ok(if to.is_nullish() { None } else { Some((kind(to)?, subtype)) });
    };
    let subtype = document.get("subtype").map_or(Subtype::Known(0), Subtype::of);
    let found = document.get("type").map_or(Evaluated::Missing, Evaluated::Borrowed);
    Ok(Some((kind(&found)?, subtype)))
}

/// The type that is given by name or number.
fn kind(to: &Evaluated<'_>) -> Result<Option<ElementType>, QueryError> {
    let refuse = |message: String| Err(QueryError::new(Code::FailedToParse, message));
    match to.value() {
        Some(Value::String("missing")) => Ok(None),
        Some(Value::String(name)) => {
            let mut known = (0..=u8::MAX).filter_map(ElementType::from_byte);
            known.find(|kind| kind.alias() == name).map(Some).ok_or_else(|| {
                QueryError::new(Code::BadValue, format!("Unknown type name: {name}"))
            })
        }
        Some(value) if value.is_number() => {
            let Some(number) = as_i32(value) else {
                return refuse("In $convert, numeric 'to' argument is not an integer".to_owned());
            };
            let byte = i8::try_from(number).map(|number| number as u8);
            match byte.ok().and_then(ElementType::from_byte) {
                // 0 is "missing".
                None if number != 0 => refuse(format!(
                    "In $convert, numeric value for 'to' does not correspond to a BSON type: {number}"
                )),
                found => Ok(found),
            }
        }
        _ => {
            let name = to.type_name();
            refuse(format!("$convert's 'to' argument must be a string or number, but is {name}"))
        }
    }
}
