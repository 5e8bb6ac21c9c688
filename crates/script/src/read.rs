//! BSON values to values of scripts.
//!
//! Scalars that ECMAScript lacks are made by the function `make` of `scripts/types.js`. A document
//! remembers which of its fields were integers of 32 bits, so that a script that changes others
//! gives them back as such. The recursion is as deep as documents may be nested.

use data_encoding::BASE64;
use frond_doc::raw::RawElement;
use frond_doc::{Array, Binary, Document, ElementType, Value, decimal};
use rquickjs::{Ctx, Function, IntoJs, Object};

/// The subtype of binaries that begin with the length of the rest.
pub(crate) const OLD_SUBTYPE: u8 = 2;

type Read<'js> = rquickjs::Result<rquickjs::Value<'js>>;

/// A binary's bytes, as scripts see them: without the length that those of the old subtype begin
/// with.
fn content(binary: Binary<'_>) -> &[u8] {
    match binary.bytes.split_first_chunk() {
        Some((length, rest))
            if binary.subtype == OLD_SUBTYPE
                && i64::from(i32::from_le_bytes(*length)) == rest.len() as i64 =>
        {
            rest
        }
        _ => binary.bytes,
    }
}

/// Makes values of scripts.
pub(crate) struct Reader<'js> {
    host: Object<'js>,
}

impl<'js> Reader<'js> {
    pub(crate) fn new(host: Object<'js>) -> Reader<'js> {
        Reader { host }
    }

    /// The value of a script that stands for `value`.
    pub(crate) fn value(&self, ctx: &Ctx<'js>, value: Value<'_>) -> Read<'js> {
        match value {
            Value::Double(number) => number.into_js(ctx),
            Value::String(text) | Value::Symbol(text) => text.into_js(ctx),
            Value::Document(document) => self.document(ctx, document),
            Value::Array(array) => self.array(ctx, array),
            Value::Boolean(boolean) => boolean.into_js(ctx),
            Value::Int32(number) => number.into_js(ctx),
            Value::Null => Ok(rquickjs::Value::new_null(ctx.clone())),
            // A reference was read before; what stands for it is no value.
            Value::Undefined | Value::Reference(_) => {
                Ok(rquickjs::Value::new_undefined(ctx.clone()))
            }
            Value::ObjectId(id) => self.make("ObjectId", id.to_string(), ()),
            Value::Binary(binary) => {
                self.make("BinData", binary.subtype, BASE64.encode(content(binary)))
            }
            Value::DateTime(millis) => self.make("Date", millis as f64, ()),
            Value::Regex(regex) => self.make("RegExp", regex.pattern, regex.options),
            Value::DbPointer { namespace, id } => self.make("DBPointer", namespace, id.to_string()),
            Value::JavaScript(code) => self.make("Function", code, ()),
            Value::JavaScriptWithScope { code, scope } => {
                self.make("Code", code, self.document(ctx, scope)?)
            }
            Value::Timestamp(time) => {
                let (seconds, count) = (time.0 >> 32, time.0 & u64::from(u32::MAX));
                self.make("Timestamp", seconds as f64, count as f64)
            }
            Value::Int64(number) => self.make("NumberLong", number.to_string(), ()),
            Value::Decimal128(number) => self.make("NumberDecimal", decimal::to_string(number), ()),
            Value::MinKey => self.make("MinKey", (), ()),
            Value::MaxKey => self.make("MaxKey", (), ()),
        }
    }

    fn make(&self, kind: &str, first: impl IntoJs<'js>, second: impl IntoJs<'js>) -> Read<'js> {
        self.host.get::<_, Function<'js>>("make")?.call((kind, first, second))
    }

    fn document(&self, ctx: &Ctx<'js>, document: Document<'_>) -> Read<'js> {
        let object = Object::new(ctx.clone())?;
        for (name, value) in document.iter() {
            let value = self.value(ctx, value)?;
            if name == "__proto__" {
                // To set it would set the prototype.
                let define: Function<'js> = self.host.get("define")?;
                define.call::<_, ()>((object.clone(), name, value))?;
            } else {
                object.set(name, value)?;
            }
        }
        self.remember(&object, document.elements())?;
        Ok(object.into_value())
    }

    fn array(&self, ctx: &Ctx<'js>, array: Array<'_>) -> Read<'js> {
        let made = rquickjs::Array::new(ctx.clone())?;
        for (position, value) in array.iter().enumerate() {
            made.set(position, self.value(ctx, value)?)?;
        }
        self.remember(made.as_object(), array.elements())?;
        Ok(made.into_value())
    }

    /// Notes which of an object's fields were integers of 32 bits.
    fn remember<'d>(
        &self,
        object: &Object<'js>,
        elements: impl Iterator<Item = RawElement<'d>>,
    ) -> rquickjs::Result<()> {
        let integers = elements.filter(|element| element.kind == ElementType::Int32);
        let names: Vec<String> =
            integers.map(|it| String::from_utf8_lossy(it.name).into_owned()).collect();
        if names.is_empty() {
            return Ok(());
        }
        self.host.get::<_, Function<'js>>("remember")?.call((object.clone(), names))
    }
}
