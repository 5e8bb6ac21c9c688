//! Keys back into values. Keys come from disk, so nothing here trusts them.

use super::{END, ESCAPE, SIGN, number, number::Number, tag, type_bits};
use crate::builder::DocumentBuilder;
use crate::builder::position_name;
use crate::decimal;
use crate::document::value::{Binary, Decimal128, ObjectId, Regex, Timestamp, Value, ValueBuf};
use crate::document::{DEPTH_MAX, DocumentBuf};
use crate::error::DocError;

/// Reads one value back from the front of `key` and its type bits, and cuts both. Type bits that
/// end early count as zeros.
///
/// # Errors
/// [`DocError::Key`] if these are not bytes that [`super::append`] and its type bits wrote.
pub fn decode(
    key: &mut &[u8],
    type_bits: &mut &[u8],
    descending: bool,
) -> Result<ValueBuf, DocError> {
    let mut decoder = Decoder {
        reader: Reader::new(key, descending),
        bits: type_bits,
        builder: DocumentBuilder::with_capacity(32),
        depth: 0,
    };
    decoder.value("")?;
    (*key, *type_bits) = (decoder.reader.bytes, decoder.bits);
    Ok(ValueBuf::from_only_field(decoder.builder.build()))
}

/// Cuts the bytes of one value from the front of `key` without decoding it.
///
/// # Errors
/// [`DocError::Key`] if no whole value is there.
pub fn skip<'a>(key: &mut &'a [u8], descending: bool) -> Result<&'a [u8], DocError> {
    let mut reader = Reader::new(key, descending);
    reader.skip(0)?;
    let (value, rest) = key.split_at(key.len() - reader.bytes.len());
    *key = rest;
    Ok(value)
}

/// The bytes of a key, inverted back if it is descending.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    mask: u8,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8], descending: bool) -> Reader<'a> {
        Reader { bytes, mask: if descending { 0xff } else { 0 } }
    }

    pub(super) fn byte(&mut self) -> Result<u8, DocError> {
        let (byte, rest) = self.bytes.split_first().ok_or_else(ends_early)?;
        self.bytes = rest;
        Ok(byte ^ self.mask)
    }

    fn cut(&mut self, count: usize) -> Result<&'a [u8], DocError> {
        let (cut, rest) = self.bytes.split_at_checked(count).ok_or_else(ends_early)?;
        self.bytes = rest;
        Ok(cut)
    }

    fn bytes(&mut self, count: usize) -> Result<Vec<u8>, DocError> {
        let mask = self.mask;
        Ok(self.cut(count)?.iter().map(|byte| byte ^ mask).collect())
    }

    fn array<const COUNT: usize>(&mut self) -> Result<[u8; COUNT], DocError> {
        let mut array = [0; COUNT];
        for (byte, stored) in array.iter_mut().zip(self.cut(COUNT)?) {
            *byte = stored ^ self.mask;
        }
        Ok(array)
    }

    fn length(&mut self) -> Result<usize, DocError> {
        Ok(u32::from_be_bytes(self.array()?) as usize)
    }

    fn text(&mut self) -> Result<String, DocError> {
        let mut text = Vec::new();
        loop {
            match self.byte()? {
                END => break,
                ESCAPE => match self.byte()? {
                    escaped @ 1..=2 => text.push(escaped - 1),
                    other => return Err(damaged(format!("escape 0x{other:02x}"))),
                },
                byte => text.push(byte),
            }
        }
        utf8(text)
    }

    /// Text that BSON ends with a zero, so that it can't hold one.
    fn name(&mut self) -> Result<String, DocError> {
        let name = self.text()?;
        if name.contains('\0') { Err(damaged("a name with a NUL")) } else { Ok(name) }
    }

    fn skip_text(&mut self) -> Result<(), DocError> {
        let end = self.bytes.iter().position(|byte| byte ^ self.mask == END);
        self.cut(end.ok_or_else(ends_early)? + 1)?;
        Ok(())
    }

    /// Whether a document or array goes on; cuts its end otherwise.
    fn goes_on(&mut self) -> Result<bool, DocError> {
        let next = *self.bytes.first().ok_or_else(ends_early)? ^ self.mask;
        if next == END {
            self.byte()?;
        }
        Ok(next != END)
    }

    fn skip(&mut self, depth: usize) -> Result<(), DocError> {
        check_depth(depth)?;
        match self.byte()? {
            tag @ tag::NUMBER_FIRST..=tag::NUMBER_LAST => number::read(tag, self).map(drop),
            tag::STRING | tag::JAVASCRIPT => self.skip_text(),
            tag::DOCUMENT => self.skip_fields(depth),
            tag::ARRAY => {
                while self.goes_on()? {
                    self.skip(depth + 1)?;
                }
                Ok(())
            }
            tag::BINARY => {
                let length = self.length()?;
                self.cut(length.saturating_add(1)).map(drop)
            }
            tag::OBJECT_ID => self.cut(12).map(drop),
            tag::DATE_TIME | tag::TIMESTAMP => self.cut(8).map(drop),
            tag::REGEX => {
                self.skip_text()?;
                self.skip_text()
            }
            tag::DB_POINTER => {
                let length = self.length()?;
                self.cut(length.saturating_add(12)).map(drop)
            }
            tag::JAVASCRIPT_WITH_SCOPE => {
                self.skip_text()?;
                self.skip_fields(depth)
            }
            tag::MIN_KEY | tag::UNDEFINED | tag::NULL | tag::FALSE | tag::TRUE | tag::MAX_KEY => {
                Ok(())
            }
            other => Err(damaged(format!("tag 0x{other:02x}"))),
        }
    }

    fn skip_fields(&mut self, depth: usize) -> Result<(), DocError> {
        while self.goes_on()? {
            self.byte()?;
            self.skip_text()?;
            self.skip(depth + 1)?;
        }
        Ok(())
    }
}

/// Reads a key and its type bits together and builds the value.
struct Decoder<'key, 'bits> {
    reader: Reader<'key>,
    bits: &'bits [u8],
    builder: DocumentBuilder,
    depth: usize,
}

impl Decoder<'_, '_> {
    fn value(&mut self, name: &str) -> Result<(), DocError> {
        check_depth(self.depth)?;
        let tag = self.reader.byte()?;
        match tag {
            tag::NUMBER_FIRST..=tag::NUMBER_LAST => return self.number(name, tag),
            tag::STRING => return self.string(name),
            tag::DOCUMENT => {
                self.builder.begin_document(name);
                return self.fields();
            }
            tag::ARRAY => {
                self.builder.begin_array(name);
                return self.elements();
            }
            tag::BINARY => {
                let length = self.reader.length()?;
                let subtype = self.reader.byte()?;
                let bytes = self.reader.bytes(length)?;
                self.builder.append(name, Value::Binary(Binary { subtype, bytes: &bytes }));
                return Ok(());
            }
            tag::REGEX => {
                let (pattern, options) = (self.reader.name()?, self.reader.name()?);
                let regex = Regex { pattern: &pattern, options: &options };
                self.builder.append(name, Value::Regex(regex));
                return Ok(());
            }
            tag::DB_POINTER => {
                let length = self.reader.length()?;
                let namespace = utf8(self.reader.bytes(length)?)?;
                let id = ObjectId(self.reader.array()?);
                self.builder.append(name, Value::DbPointer { namespace: &namespace, id });
                return Ok(());
            }
            tag::JAVASCRIPT => {
                let code = self.reader.text()?;
                self.builder.append(name, Value::JavaScript(&code));
                return Ok(());
            }
            tag::JAVASCRIPT_WITH_SCOPE => return self.code_with_scope(name),
            _ => {}
        }
        let value = match tag {
            tag::MIN_KEY => Value::MinKey,
            tag::UNDEFINED => Value::Undefined,
            tag::NULL => Value::Null,
            tag::OBJECT_ID => Value::ObjectId(ObjectId(self.reader.array()?)),
            tag::FALSE => Value::Boolean(false),
            tag::TRUE => Value::Boolean(true),
            tag::DATE_TIME => {
                Value::DateTime((u64::from_be_bytes(self.reader.array()?) ^ SIGN) as i64)
            }
            tag::TIMESTAMP => Value::Timestamp(Timestamp(u64::from_be_bytes(self.reader.array()?))),
            tag::MAX_KEY => Value::MaxKey,
            other => return Err(damaged(format!("tag 0x{other:02x}"))),
        };
        self.builder.append(name, value);
        Ok(())
    }

    fn number(&mut self, name: &str, tag: u8) -> Result<(), DocError> {
        let number = number::read(tag, &mut self.reader)?;
        let value = match self.code() {
            type_bits::INT32 => {
                number.to_integer().and_then(|it| i32::try_from(it).ok()).map(Value::Int32)
            }
            type_bits::DOUBLE => number.to_double().map(Value::Double),
            type_bits::INT64 => number.to_integer().map(Value::Int64),
            type_bits::DECIMAL => {
                let exponent = self.exponent();
                number.to_decimal(exponent).map(Value::Decimal128)
            }
            type_bits::DOUBLE_NEGATIVE_ZERO => {
                matches!(number, Number::Zero).then_some(Value::Double(-0.0))
            }
            type_bits::DECIMAL_NEGATIVE_ZERO => {
                let exponent = self.exponent();
                let zero = number.to_decimal(exponent).filter(|_| matches!(number, Number::Zero));
                zero.map(|_| Value::Decimal128(decimal::from_parts(true, 0, exponent)))
            }
            type_bits::DOUBLE_RAW => Some(Value::Double(f64::from_le_bytes(self.bits_array())))
                .filter(|value| matches!(value, Value::Double(double) if double.is_nan())),
            type_bits::DECIMAL_RAW => Some(Value::Decimal128(Decimal128(self.bits_array()))),
            _ => None,
        };
        let value = value.ok_or_else(|| damaged("type bits that don't fit their number"))?;
        self.builder.append(name, value);
        Ok(())
    }

    fn string(&mut self, name: &str) -> Result<(), DocError> {
        let text = self.reader.text()?;
        let value = match self.code() {
            type_bits::STRING => Value::String(&text),
            type_bits::SYMBOL => Value::Symbol(&text),
            other => return Err(damaged(format!("type bits 0x{other:02x} of text"))),
        };
        self.builder.append(name, value);
        Ok(())
    }

    /// The fields of the document that was opened, and its end.
    fn fields(&mut self) -> Result<(), DocError> {
        self.depth += 1;
        while self.reader.goes_on()? {
            let kind = self.reader.byte()?;
            let name = self.reader.name()?;
            let value_tag = *self.reader.bytes.first().ok_or_else(ends_early)? ^ self.reader.mask;
            if !is_of_bracket(value_tag, kind) {
                return Err(damaged(format!("tag 0x{value_tag:02x} in bracket 0x{kind:02x}")));
            }
            self.value(&name)?;
        }
        self.depth -= 1;
        self.builder.end();
        Ok(())
    }

    /// The elements of the array that was opened, and its end.
    fn elements(&mut self) -> Result<(), DocError> {
        self.depth += 1;
        let code = self.code();
        let mut names = Vec::new().into_iter();
        if code == type_bits::NAMED {
            names = self.names()?.into_iter();
        } else if code != type_bits::NAMED_BY_POSITION {
            return Err(damaged(format!("type bits 0x{code:02x} of an array")));
        }
        let mut position = 0;
        while self.reader.goes_on()? {
            if code == type_bits::NAMED {
                let name = names.next().ok_or_else(|| damaged("too few names of an array"))?;
                self.value(&name)?;
            } else {
                self.value(position_name(position, &mut [0; 20]))?;
            }
            position += 1;
        }
        self.depth -= 1;
        self.builder.end();
        Ok(())
    }

    /// The names of the elements of the array at the front of the key, from the type bits.
    fn names(&mut self) -> Result<Vec<String>, DocError> {
        let mut ahead = Reader { bytes: self.reader.bytes, mask: self.reader.mask };
        let mut names = Vec::new();
        while ahead.goes_on()? {
            ahead.skip(self.depth)?;
            let end = self.bits.iter().position(|byte| *byte == 0).unwrap_or(self.bits.len());
            let (name, rest) = self.bits.split_at(end);
            self.bits = rest.get(1..).unwrap_or(&[]);
            names.push(utf8(name.to_vec())?);
        }
        Ok(names)
    }

    fn code_with_scope(&mut self, name: &str) -> Result<(), DocError> {
        let code = self.reader.text()?;
        // The scope is built apart: its length is part of the value's.
        let outer = std::mem::take(&mut self.builder);
        self.builder.begin_document("");
        self.fields()?;
        let scope: DocumentBuf = std::mem::replace(&mut self.builder, outer).build();
        let scope = scope.get("").and_then(|scope| scope.as_document());
        let scope = scope.ok_or_else(|| damaged("a scope"))?;
        self.builder.append(name, Value::JavaScriptWithScope { code: &code, scope });
        Ok(())
    }

    /// The next byte of the type bits.
    fn code(&mut self) -> u8 {
        let Some((code, rest)) = self.bits.split_first() else { return 0 };
        self.bits = rest;
        *code
    }

    fn bits_array<const COUNT: usize>(&mut self) -> [u8; COUNT] {
        std::array::from_fn(|_| self.code())
    }

    fn exponent(&mut self) -> i32 {
        i32::from(u16::from_le_bytes(self.bits_array())) - decimal::EXPONENT_BIAS
    }
}

/// Whether a value's tag lies in the bracket that begins with the tag before the field's name.
fn is_of_bracket(value: u8, bracket: u8) -> bool {
    match bracket {
        tag::NUMBER_FIRST => (tag::NUMBER_FIRST..=tag::NUMBER_LAST).contains(&value),
        tag::FALSE => (tag::FALSE..=tag::TRUE).contains(&value),
        _ => value == bracket,
    }
}

fn check_depth(depth: usize) -> Result<(), DocError> {
    if depth > DEPTH_MAX { Err(DocError::TooDeep { max: DEPTH_MAX }) } else { Ok(()) }
}

fn utf8(bytes: Vec<u8>) -> Result<String, DocError> {
    String::from_utf8(bytes).map_err(|_| damaged("text that is not UTF-8"))
}

fn ends_early() -> DocError {
    damaged("ends early")
}

fn damaged(what: impl Into<String>) -> DocError {
    DocError::Key(what.into())
}
