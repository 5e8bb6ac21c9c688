//! The types that BSON has, by their bytes.

/// BSON's type byte. Stored: never renumber.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum ElementType {
    Double = 0x01,
    String = 0x02,
    Document = 0x03,
    Array = 0x04,
    Binary = 0x05,
    Undefined = 0x06,
    ObjectId = 0x07,
    Boolean = 0x08,
    DateTime = 0x09,
    Null = 0x0a,
    Regex = 0x0b,
    DbPointer = 0x0c,
    JavaScript = 0x0d,
    Symbol = 0x0e,
    JavaScriptWithScope = 0x0f,
    Int32 = 0x10,
    Timestamp = 0x11,
    Int64 = 0x12,
    Decimal128 = 0x13,
    /// No BSON: a value that lies in the store ([`crate::reference`]). Never stored or sent.
    Reference = 0x14,
    MinKey = 0xff,
    MaxKey = 0x7f,
}

impl ElementType {
    /// The type of a type byte.
    pub const fn from_byte(byte: u8) -> Option<ElementType> {
        use ElementType::*;
        Some(match byte {
            0x01 => Double,
            0x02 => String,
            0x03 => Document,
            0x04 => Array,
            0x05 => Binary,
            0x06 => Undefined,
            0x07 => ObjectId,
            0x08 => Boolean,
            0x09 => DateTime,
            0x0a => Null,
            0x0b => Regex,
            0x0c => DbPointer,
            0x0d => JavaScript,
            0x0e => Symbol,
            0x0f => JavaScriptWithScope,
            0x10 => Int32,
            0x11 => Timestamp,
            0x12 => Int64,
            0x13 => Decimal128,
            0x14 => Reference,
            0xff => MinKey,
            0x7f => MaxKey,
            _ => return None,
        })
    }

    /// MongoDB's name of the type, as `$type` takes it and error messages print it.
    pub fn alias(self) -> &'static str {
        use ElementType::*;
        match self {
            Double => "double",
            String => "string",
            Document => "object",
            Array => "array",
            Binary => "binData",
            Undefined => "undefined",
            ObjectId => "objectId",
            Boolean => "bool",
            DateTime => "date",
            Null => "null",
            Regex => "regex",
            DbPointer => "dbPointer",
            JavaScript => "javascript",
            Symbol => "symbol",
            JavaScriptWithScope => "javascriptWithScope",
            Int32 => "int",
            Timestamp => "timestamp",
            Int64 => "long",
            Decimal128 => "decimal",
            Reference => "reference",
            MinKey => "minKey",
            MaxKey => "maxKey",
        }
    }
}

/// [`ElementType::from_byte`] by one load.
#[inline]
pub(crate) fn kind_of(byte: u8) -> Option<ElementType> {
    KINDS[usize::from(byte)]
}

static KINDS: [Option<ElementType>; 256] = kinds();

const fn kinds() -> [Option<ElementType>; 256] {
    let mut kinds = [None; 256];
    let mut byte = 0;
    while byte < kinds.len() {
        kinds[byte] = ElementType::from_byte(byte as u8);
        byte += 1;
    }
    kinds
}
