//! Values of scripts to BSON, as MongoDB writes them.
//!
//! `describe` of `scripts/types.js` describes an object: its type's name and parts, or for a
//! document the names of fields that were integers of 32 bits. The result's size and depth are
//! bounded, so that neither cycles nor an array of four billion holes go far. Getters run as
//! scripts do.

use data_encoding::BASE64;
use frond_doc::{Binary, DocumentBuf, DocumentBuilder, ObjectId, Regex, Timestamp};
use frond_doc::{Value, ValueBuf, decimal};
use rquickjs::{Array, Function, Object};

use crate::ScriptError;
use crate::read::OLD_SUBTYPE;

/// As deep as MongoDB lets values be nested.
const DEPTH_MAX: usize = 150;

type Written<T> = Result<T, Refused>;

/// The reason why a value can't be written.
pub(crate) enum Refused {
    /// A script that was asked for it failed.
    Engine(rquickjs::Error),
    Script(ScriptError),
}

impl From<rquickjs::Error> for Refused {
    fn from(error: rquickjs::Error) -> Refused {
        Refused::Engine(error)
    }
}

/// Writes values of scripts.
pub(crate) struct Writer<'js> {
    host: Object<'js>,
    made: DocumentBuilder,
    bytes_max: usize,
}

/// The fields of an object that are to be integers again.
struct Integers(Vec<String>);

impl Integers {
    fn has(&self, name: &str) -> bool {
        self.0.binary_search_by(|known| known.as_str().cmp(name)).is_ok()
    }
}

fn no_bson<T>(code: i32, message: impl Into<String>) -> Written<T> {
    Err(Refused::Script(ScriptError::NoBson(code, message.into())))
}

impl<'js> Writer<'js> {
    /// One of at most so many bytes.
    pub(crate) fn new(host: Object<'js>, bytes_max: usize) -> Writer<'js> {
        Writer { host, made: DocumentBuilder::new(), bytes_max }
    }

    /// Returns the value that a function returned; `undefined` becomes null.
    pub(crate) fn result(&mut self, value: rquickjs::Value<'js>) -> Written<ValueBuf> {
        if value.is_undefined() {
            return Ok(Value::Null.to_buf());
        }
        self.append("", value, &Integers(Vec::new()), 0)?;
        self.check_size()?;
        Ok(ValueBuf::from_only_field(std::mem::take(&mut self.made).build()))
    }

    /// A key, which may not be undefined, and a value.
    pub(crate) fn pair(
        &mut self,
        key: rquickjs::Value<'js>,
        value: rquickjs::Value<'js>,
    ) -> Written<DocumentBuf> {
        let none = Integers(Vec::new());
        match key.is_undefined() {
            true => drop(self.made.append("k", Value::Null)),
            false => self.append("k", key, &none, 0)?,
        }
        self.append("v", value, &none, 0)?;
        Ok(std::mem::take(&mut self.made).build())
    }

    fn append(
        &mut self,
        name: &str,
        value: rquickjs::Value<'js>,
        integers: &Integers,
        depth: usize,
    ) -> Written<()> {
        self.check(name, depth)?;
        if let Some(number) = value.as_number() {
            let integer = number as i32;
            let is_integer = f64::from(integer) == number && integers.has(name);
            self.made.append(
                name,
                match is_integer {
                    true => Value::Int32(integer),
                    false => Value::Double(number),
                },
            );
        } else if let Some(text) = value.as_string() {
            let text = self.text(text)?;
            self.made.append(name, Value::String(&text));
        } else if let Some(boolean) = value.as_bool() {
            self.made.append(name, Value::Boolean(boolean));
        } else if value.is_null() {
            self.made.append(name, Value::Null);
        } else if value.is_undefined() {
            self.made.append(name, Value::Undefined);
        } else if value.is_object() || value.is_big_int() {
            return self.object(name, value, depth);
        } else {
            let message = format!("unable to convert JavaScript property to mongo element {name}");
            return no_bson(16662, message);
        }
        Ok(())
    }

    fn check(&self, name: &str, depth: usize) -> Written<()> {
        if DEPTH_MAX <= depth {
            let message = format!(
                "Exceeded depth limit of {DEPTH_MAX} when converting js object to BSON. Do you \
                 have a cycle?"
            );
            return no_bson(17279, message);
        }
        if name.contains('\0') {
            let message = "JavaScript property (name) contains a null char which is not allowed \
                           in BSON.";
            return no_bson(16985, message);
        }
        self.check_size()
    }

    fn check_size(&self) -> Written<()> {
        match self.made.bytes() <= self.bytes_max {
            true => Ok(()),
            false => Err(Refused::Script(ScriptError::TooLarge(self.bytes_max))),
        }
    }

    /// A string's text; half a surrogate pair is no character.
    fn text(&self, text: &rquickjs::String<'js>) -> Written<String> {
        match text.to_string() {
            Err(rquickjs::Error::Utf8(_)) => {
                let well_formed: Function<'js> = self.host.get("wellFormed")?;
                Ok(well_formed.call((text.clone(),))?)
            }
            read => Ok(read?),
        }
    }

    fn object(&mut self, name: &str, value: rquickjs::Value<'js>, depth: usize) -> Written<()> {
        let described: Option<Array<'js>> =
            self.host.get::<_, Function<'js>>("describe")?.call((value.clone(),))?;
        let described = match described {
            None => Integers(Vec::new()),
            Some(described) => match described.get::<Option<String>>(0)? {
                Some(kind) => return self.described(name, &kind, &described, depth),
                None => {
                    let mut names: Vec<String> = described.get(1)?;
                    names.sort_unstable();
                    Integers(names)
                }
            },
        };
        let Some(object) = value.as_object() else {
            return no_bson(16662, format!("unable to convert JavaScript property {name}"));
        };
        match object.as_array() {
            Some(array) => {
                self.made.begin_array(name);
                self.elements(array, &described, depth)?;
            }
            None => {
                self.made.begin_document(name);
                self.fields(object, &described, depth)?;
            }
        }
        self.made.end();
        self.check_size()
    }

    fn elements(&mut self, array: &Array<'js>, integers: &Integers, depth: usize) -> Written<()> {
        // `Array::len` panics beyond 2^31.
        let count: f64 = array.as_object().get("length")?;
        let mut position = 0;
        while (position as f64) < count {
            self.append(&position.to_string(), array.get(position)?, integers, depth + 1)?;
            position += 1;
        }
        Ok(())
    }

    fn fields(&mut self, object: &Object<'js>, integers: &Integers, depth: usize) -> Written<()> {
        for name in object.keys::<rquickjs::String<'js>>() {
            let name = name?;
            let value = object.get(name.clone().into_value())?;
            let name = self.text(&name)?;
            self.append(&name, value, integers, depth + 1)?;
        }
        Ok(())
    }

    /// A value of one of MongoDB's types.
    fn described(
        &mut self,
        name: &str,
        kind: &str,
        described: &Array<'js>,
        depth: usize,
    ) -> Written<()> {
        let text = |position: usize| self.text_at(described, position);
        let wrong = |what: &str| made_wrongly(kind, what);
        match kind {
            "Date" | "NumberInt" | "NumberLong" | "NumberDecimal" | "Timestamp" => {
                self.number(name, kind, described)?;
            }
            "MinKey" => drop(self.made.append(name, Value::MinKey)),
            "MaxKey" => drop(self.made.append(name, Value::MaxKey)),
            "ObjectId" => {
                let digits = text(1)?;
                let Some(id) = object_id(&digits) else { return wrong(&digits) };
                self.made.append(name, Value::ObjectId(id));
            }
            "DBPointer" => {
                let (namespace, digits) = (text(1)?, text(2)?);
                let Some(id) = object_id(&digits) else { return wrong(&digits) };
                self.made.append(name, Value::DbPointer { namespace: &namespace, id });
            }
            "BinData" => self.binary(name, described)?,
            "RegExp" => {
                let (pattern, options) = (text(1)?, text(2)?);
                if [&pattern, &options].iter().any(|text| text.contains('\0')) {
                    return wrong("a null byte in a pattern");
                }
                let regex = Regex { pattern: &pattern, options: &options };
                self.made.append(name, Value::Regex(regex));
            }
            "Function" => {
                let code = text(1)?;
                self.made.append(name, Value::JavaScript(&code));
            }
            "Code" => {
                let code = text(1)?;
                let mut inner = Writer::new(self.host.clone(), self.bytes_max);
                let scope: Object<'js> = described.get(2)?;
                inner.fields(&scope, &Integers(Vec::new()), depth)?;
                let scope = inner.made.build();
                let value = Value::JavaScriptWithScope { code: &code, scope: scope.view() };
                self.made.append(name, value);
            }
            // A wrapped string, number or truth value.
            _ => {
                let value = described.get::<rquickjs::Value<'js>>(1)?;
                return match value.is_object() || value.is_big_int() {
                    true => wrong("an object"),
                    false => self.append(name, value, &Integers(Vec::new()), depth + 1),
                };
            }
        }
        self.check_size()
    }

    fn number(&mut self, name: &str, kind: &str, described: &Array<'js>) -> Written<()> {
        let number = |position: usize| described.get::<f64>(position);
        let wrong = |what: &str| made_wrongly(kind, what);
        match kind {
            "Date" => {
                let millis = number(1)?;
                if millis.is_nan() {
                    return wrong("an invalid date");
                }
                self.made.append(name, Value::DateTime(millis as i64));
            }
            "NumberInt" => drop(self.made.append(name, Value::Int32(number(1)? as i32))),
            "Timestamp" => {
                let time = u64::from(number(1)? as u32) << 32 | u64::from(number(2)? as u32);
                self.made.append(name, Value::Timestamp(Timestamp(time)));
            }
            "NumberLong" => {
                let digits = self.text_at(described, 1)?;
                let Ok(long) = digits.parse() else { return wrong(&digits) };
                self.made.append(name, Value::Int64(long));
            }
            _ => {
                let digits = self.text_at(described, 1)?;
                let Some(decimal) = decimal::parse(&digits) else { return wrong(&digits) };
                self.made.append(name, Value::Decimal128(decimal));
            }
        }
        Ok(())
    }

    fn binary(&mut self, name: &str, described: &Array<'js>) -> Written<()> {
        let (subtype, digits) = (described.get::<f64>(1)? as u8, self.text_at(described, 2)?);
        let Ok(mut bytes) = BASE64.decode(digits.as_bytes()) else {
            return made_wrongly("BinData", "no base64");
        };
        if subtype == OLD_SUBTYPE {
            let length = (bytes.len() as i32).to_le_bytes();
            bytes.splice(..0, length);
        }
        self.made.append(name, Value::Binary(Binary { subtype, bytes: &bytes }));
        Ok(())
    }

    fn text_at(&self, described: &Array<'js>, position: usize) -> Written<String> {
        self.text(&described.get::<rquickjs::String<'js>>(position)?)
    }
}

fn made_wrongly<T>(kind: &str, what: &str) -> Written<T> {
    no_bson(2, format!("a script made a {kind} of {what}"))
}

fn object_id(digits: &str) -> Option<ObjectId> {
    let bytes = data_encoding::HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok()?;
    bytes.try_into().ok().map(ObjectId)
}
