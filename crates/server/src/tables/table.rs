//! A command's table: its fields, and the concerns and the API version that it takes.

use super::every;
use super::field::Field;
use super::kind::Kind;

/// A command's fields, and what it takes besides.
#[derive(Clone, Copy)]
pub struct Table {
    /// The command's name.
    pub command: &'static str,
    /// The prefix of field names in messages: mostly the command's name.
    pub path: &'static str,
    /// The kind of the command's own field, the first: mostly a collection's name or 1, which its
    /// reader checks in words of its own.
    pub own: Kind,
    /// The fields, in the order in which MongoDB looks for what is missing.
    pub fields: &'static [Field],
    /// The treatment of fields that the command doesn't know.
    pub others: UnknownFields,
    /// The read concerns that it takes.
    pub reads: Reads,
    /// Says when it takes a write concern.
    pub writes: Writes,
    /// Whether it belongs to version 1 of MongoDB's stable API.
    pub is_stable: bool,
}

/// The treatment of fields that a command doesn't know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnknownFields {
    /// They are refused (40415).
    Refused,
    /// They are passed over, as by MongoDB.
    Ignored,
    /// The command's reader says: its fields are names of parameters or sections, or a filter.
    Read,
}

/// The read concerns that a command takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reads {
    /// `local` alone.
    Local,
    /// Every level but `snapshot`.
    Latest,
    /// Every level.
    Moments,
}

/// Says when a command takes a write concern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writes {
    /// Never: it reads.
    Never,
    /// Always, also where it only reads: an `aggregate`, as in MongoDB.
    Always,
}

impl Table {
    /// A command that refuses what it doesn't know, reads what is there, and writes nothing.
    pub const fn of(command: &'static str, fields: &'static [Field]) -> Table {
        Table {
            command,
            path: command,
            own: Kind::Any,
            fields,
            others: UnknownFields::Refused,
            reads: Reads::Local,
            writes: Writes::Never,
            is_stable: false,
        }
    }

    /// Its own field takes this.
    pub const fn taking(self, own: Kind) -> Table {
        Table { own, ..self }
    }

    /// Messages name its fields so.
    pub const fn called(self, path: &'static str) -> Table {
        Table { path, ..self }
    }

    /// It passes over what it doesn't know.
    pub const fn lenient(self) -> Table {
        Table { others: UnknownFields::Ignored, ..self }
    }

    /// It takes these read concerns.
    pub const fn reading(self, reads: Reads) -> Table {
        Table { reads, ..self }
    }

    /// It takes a write concern.
    pub const fn writing(self) -> Table {
        Table { writes: Writes::Always, ..self }
    }

    /// It belongs to the stable API.
    pub const fn stable(self) -> Table {
        Table { is_stable: true, ..self }
    }

    /// Its reader knows which other fields there are.
    pub const fn open(self) -> Table {
        Table { others: UnknownFields::Read, ..self }
    }

    /// Its field of this name: its own, or one of every command.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        let own = self.fields.iter().find(|field| field.name == name);
        own.or_else(|| every::find(name))
    }

    /// Whether its reader may ask for this field.
    pub fn has(&self, name: &str) -> bool {
        self.others != UnknownFields::Refused || name == self.command || self.field(name).is_some()
    }

    /// Whether a field that its reader hasn't asked for is one of every command, or an unknown one
    /// that this command ignores.
    pub fn passes_over(&self, name: &str) -> bool {
        let is_own = self.fields.iter().any(|field| field.name == name);
        !is_own && (self.others == UnknownFields::Ignored || every::find(name).is_some())
    }
}
