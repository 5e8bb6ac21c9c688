//! Reads JSON into a document through serde's parser, field by field as the text comes: order and
//! duplicates are kept.
//!
//! Recursion is bounded here, by the documents' own limit and the levels that wrappers add to it,
//! so that every written document can be read.

use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};

use super::wrapper;
use crate::builder::{DocumentBuilder, position_name};
use crate::document::DEPTH_MAX;
use crate::document::value::Value;
use crate::error::DocError;

/// Levels of JSON: in the innermost document a wrapper may have three, as the id of a DBPointer.
const JSON_DEPTH_MAX: usize = DEPTH_MAX + 3;

/// The outermost object, which is never a wrapper.
pub(super) struct Outermost<'b> {
    pub(super) builder: &'b mut DocumentBuilder,
}

impl<'de> Visitor<'de> for Outermost<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut name = String::new();
        while map.next_key_seed(Name { name: &mut name })?.is_some() {
            map.next_value_seed(Element { builder: self.builder, name: &name })?;
        }
        Ok(())
    }
}

/// Reads a name into a buffer that is used again.
pub(crate) struct Name<'b> {
    pub(crate) name: &'b mut String,
}

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<(), E> {
        if name.contains('\0') {
            return Err(E::custom(format!("field {name:?}: a name can't hold a NUL")));
        }
        self.name.clear();
        self.name.push_str(name);
        Ok(())
    }
}

/// Reads one value and appends it under its name.
pub(crate) struct Element<'b> {
    pub(crate) builder: &'b mut DocumentBuilder,
    pub(crate) name: &'b str,
}

impl<'de> DeserializeSeed<'de> for Element<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Element<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.append(Value::Null)
    }

    fn visit_bool<E: Error>(self, boolean: bool) -> Result<(), E> {
        self.append(Value::Boolean(boolean))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.append(i32::try_from(number).map_or(Value::Int64(number), Value::Int32))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        match i64::try_from(number) {
            Ok(number) => self.visit_i64(number),
            Err(_) => self.append(Value::Double(number as f64)),
        }
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.append(Value::Double(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.append(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        self.check_depth()?;
        self.builder.begin_array(self.name);
        let mut digits = [0; 20];
        for position in 0.. {
            let name = position_name(position, &mut digits);
            if sequence.next_element_seed(Element { builder: self.builder, name })?.is_none() {
                break;
            }
        }
        self.builder.end();
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.check_depth()?;
        let start = self.builder.bytes();
        let mut name = String::new();
        let mut may_be_wrapper = false;
        let mut is_first = true;
        self.builder.begin_document(self.name);
        while map.next_key_seed(Name { name: &mut name })?.is_some() {
            if is_first {
                may_be_wrapper = wrapper::is_wrapper(&name);
                is_first = false;
            }
            map.next_value_seed(Element { builder: self.builder, name: &name })?;
        }
        self.builder.end();
        if may_be_wrapper {
            let converted = self.builder.replace_last(start, self.name, wrapper::convert);
            converted.map_err(|what| A::Error::custom(format!("field {:?}: {what}", self.name)))?;
        }
        Ok(())
    }
}

impl Element<'_> {
    fn check_depth<E: Error>(&self) -> Result<(), E> {
        match self.builder.depth() < JSON_DEPTH_MAX {
            true => Ok(()),
            false => Err(E::custom(DocError::TooDeep { max: DEPTH_MAX })),
        }
    }

    pub(crate) fn append<E>(self, value: Value<'_>) -> Result<(), E> {
        self.builder.append(self.name, value);
        Ok(())
    }
}
