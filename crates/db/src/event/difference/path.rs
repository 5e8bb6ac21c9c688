//! A path to a changed value: its text, and its parts where the text could be read in two ways.
//!
//! It is a list from its last part to its first, so that going down costs no allocation.

use frond_doc::{Value, ValueBuf};

/// See the module.
pub enum Path<'a> {
    /// The document itself.
    Root,
    /// A field of a document.
    Field(&'a Path<'a>, &'a str),
    /// An element of an array.
    Element(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    /// The path of a field; `None` if its name is no text.
    pub fn field(&'a self, name: &'a [u8]) -> Option<Path<'a>> {
        Some(Path::Field(self, std::str::from_utf8(name).ok()?))
    }

    /// The path of an array's element.
    pub fn element(&'a self, position: usize) -> Path<'a> {
        Path::Element(self, position)
    }

    /// Whether its text could be read in two ways. An outermost name of digits is no position: no
    /// document is an array.
    pub fn is_ambiguous(&self) -> bool {
        match self {
            Path::Root => false,
            Path::Field(above, name) => {
                let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
                name.contains('.')
                    || is_number && !matches!(above, Path::Root)
                    || above.is_ambiguous()
            }
            Path::Element(above, _) => above.is_ambiguous(),
        }
    }

    /// The names and positions, joined by dots.
    pub fn text(&self) -> String {
        match self {
            Path::Root => String::new(),
            Path::Field(Path::Root, name) => (*name).to_owned(),
            Path::Field(above, name) => format!("{}.{name}", above.text()),
            Path::Element(above, position) => format!("{}.{position}", above.text()),
        }
    }

    /// The names, as strings, and the positions, as integers of 32 bits.
    pub fn parts(&self) -> Vec<ValueBuf> {
        let (above, part) = match self {
            Path::Root => return Vec::new(),
            Path::Field(above, name) => (above, Value::String(name)),
            Path::Element(above, position) => {
                (above, Value::Int32(i32::try_from(*position).unwrap_or(i32::MAX)))
            }
        };
        let mut parts = above.parts();
        parts.push(part.to_buf());
        parts
    }
}
