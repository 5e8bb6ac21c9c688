//! Extended JSON from a reader into a large document's [`Writer`], never whole in memory.
//!
//! An object whose first name is a wrapper's (`$oid`, ...) is read as a document of its own and
//! converted, as [`parse`](crate::extended_json::parse) does; anything else goes to the writer as
//! it comes. So a document of any size needs the memory of its largest single value, whose text is
//! [`bounded`]. Recursion is bounded by the writer.

mod bounded;

use std::fmt;
use std::io::{BufReader, Read};

use serde::Deserializer as _;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};

use self::bounded::Bounded;
use crate::builder::{DocumentBuilder, position_name};
use crate::document::value::Value;
use crate::element_type::ElementType;
use crate::error::DocError;
use crate::extended_json::{Element, Name, wrapper};
use crate::pieces::{PiecesError, Writer};
use crate::validate::check_element;

/// The number of bytes read at a time.
const BUFFER_BYTES: usize = 64 << 10;

/// Reads one JSON object, and nothing behind it but white space, and writes its fields.
///
/// # Errors
/// [`DocError::Json`] with the line and the column, also of what the writer refuses; what the store
/// fails with.
pub fn read_json(input: &mut dyn Read, writer: &mut Writer<'_>) -> Result<(), PiecesError> {
    let mut failure = None;
    // It takes byte by byte.
    let input = BufReader::with_capacity(BUFFER_BYTES, Bounded::new(input));
    let mut deserializer = serde_json::Deserializer::from_reader(input);
    deserializer.disable_recursion_limit();
    let read = deserializer
        .deserialize_map(Outermost(&mut Sink { writer, failure: &mut failure }))
        .and_then(|()| deserializer.end());
    match (failure, read) {
        (Some(PiecesError::Document(error)), Err(place)) => {
            let place = format!("line {} column {}", place.line(), place.column());
            Err(DocError::Json(format!("{error} at {place}")).into())
        }
        (Some(failure), _) => Err(failure),
        (None, Err(error)) if error.is_io() => Err(PiecesError::Input(error.into())),
        (None, Err(error)) => Err(DocError::Json(error.to_string()).into()),
        (None, Ok(())) => Ok(()),
    }
}

/// The writer that elements go to, and its error: serde's errors are text.
struct Sink<'w, 'a> {
    writer: &'w mut Writer<'a>,
    failure: &'w mut Option<PiecesError>,
}

impl Sink<'_, '_> {
    fn done<E: Error>(&mut self, done: Result<(), PiecesError>) -> Result<(), E> {
        done.map_err(|failure| {
            let error = E::custom(&failure);
            *self.failure = Some(failure);
            error
        })
    }

    /// Writes the only element of a document that was built.
    fn element<E: Error>(&mut self, built: DocumentBuilder) -> Result<(), E> {
        let built = built.build();
        for element in built.view().elements() {
            let depth = self.writer.depth();
            let done = check_element(element.kind, element.value, depth).map_err(Into::into);
            let done = done.and_then(|()| self.writer.element(element));
            self.done(done)?;
        }
        Ok(())
    }
}

/// The outermost object, which is never a wrapper.
struct Outermost<'s, 'w, 'a>(&'s mut Sink<'w, 'a>);

impl<'de> Visitor<'de> for Outermost<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut name = String::new();
        while map.next_key_seed(Name { name: &mut name })?.is_some() {
            map.next_value_seed(Streamed { sink: self.0, name: &name })?;
        }
        Ok(())
    }
}

/// Reads one value and writes it under its name.
struct Streamed<'s, 'w, 'a> {
    sink: &'s mut Sink<'w, 'a>,
    name: &'s str,
}

impl<'de> DeserializeSeed<'de> for Streamed<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Streamed<'_, '_, '_> {
    /// Writes what [`parse`](crate::extended_json::parse) makes of a value that is neither an
    /// object nor an array.
    fn value<E: Error>(self, visit: impl FnOnce(Element<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut builder = DocumentBuilder::new();
        visit(Element { builder: &mut builder, name: self.name })?;
        self.sink.element(builder)
    }
}

impl<'de> Visitor<'de> for Streamed<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.value(|element| element.visit_unit())
    }

    fn visit_bool<E: Error>(self, boolean: bool) -> Result<(), E> {
        self.value(|element| element.visit_bool(boolean))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.value(|element| element.visit_i64(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.value(|element| element.visit_u64(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.value(|element| element.append(Value::Double(number)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.value(|element| element.append(Value::String(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        let Streamed { sink, name } = self;
        let begun = sink.writer.begin(ElementType::Array, name.as_bytes());
        sink.done(begun)?;
        let mut digits = [0; 20];
        for position in 0.. {
            let name = position_name(position, &mut digits);
            if sequence.next_element_seed(Streamed { sink, name })?.is_none() {
                break;
            }
        }
        let ended = sink.writer.end();
        sink.done(ended)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Streamed { sink, name } = self;
        let mut inner = String::new();
        let mut is_begun = map.next_key_seed(Name { name: &mut inner })?.is_some();
        if is_begun && wrapper::is_wrapper(&inner) {
            let mut builder = DocumentBuilder::new();
            let start = builder.bytes();
            builder.begin_document(name);
            while is_begun {
                map.next_value_seed(Element { builder: &mut builder, name: &inner })?;
                is_begun = map.next_key_seed(Name { name: &mut inner })?.is_some();
            }
            builder.end();
            let converted = builder.replace_last(start, name, wrapper::convert);
            converted.map_err(|what| A::Error::custom(format!("field {name:?}: {what}")))?;
            return sink.element(builder);
        }
        let begun = sink.writer.begin(ElementType::Document, name.as_bytes());
        sink.done(begun)?;
        while is_begun {
            map.next_value_seed(Streamed { sink, name: &inner })?;
            is_begun = map.next_key_seed(Name { name: &mut inner })?.is_some();
        }
        let ended = sink.writer.end();
        sink.done(ended)
    }
}
