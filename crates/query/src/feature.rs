//! The extent to which a feature of the query language is supported, compared with MongoDB's: an
//! entry of the parsers' tables.

/// The degree to which a feature is supported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SupportLevel {
    /// It works as MongoDB documents it.
    Works,
    /// It works, but for what is said.
    Differs(&'static str),
    /// It is refused, with this code.
    Refused(&'static str),
    /// It is refused with this code, by a MongoDB of one server without Atlas and Enterprise too.
    Elsewhere(&'static str),
    /// It is Frond's own.
    Own,
}

/// One operator, stage, option and so on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feature {
    /// Its name, as a client writes it.
    pub name: &'static str,
    /// Its support.
    pub standing: SupportLevel,
}

impl Feature {
    /// A feature that stands so.
    pub const fn new(name: &'static str, standing: SupportLevel) -> Feature {
        Feature { name, standing }
    }

    /// A feature that works.
    pub const fn works(name: &'static str) -> Feature {
        Feature::new(name, SupportLevel::Works)
    }
}
