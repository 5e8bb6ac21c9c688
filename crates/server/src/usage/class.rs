//! The kinds of work that commands are, as `opLatencies` and `top` distinguish them.

use crate::usage::Latency;

/// The event of `top` in which a command is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// `find`
    Query,
    /// `getMore`
    GetMore,
    /// `insert`
    Insert,
    /// `update`
    Update,
    /// `delete`
    Remove,
    /// Any other command on a collection.
    Command,
}

impl Event {
    /// All, in the order of `top`.
    pub const ALL: [Event; 6] =
        [Event::Query, Event::GetMore, Event::Insert, Event::Update, Event::Remove, Event::Command];

    /// Its name in `top`.
    pub fn name(self) -> &'static str {
        match self {
            Event::Query => "queries",
            Event::GetMore => "getmore",
            Event::Insert => "insert",
            Event::Update => "update",
            Event::Remove => "remove",
            Event::Command => "commands",
        }
    }
}

/// The kind of work that a command is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Class {
    /// Its place in `opLatencies`.
    pub latency: Latency,
    /// Its place in `top`.
    pub event: Event,
    /// Whether it changes the collection that it names.
    pub writes: bool,
    /// Whether it names a collection to work on.
    pub is_of_collection: bool,
}

impl Class {
    /// Returns the class of a command, by its name in the table.
    pub fn of(command: &str) -> Class {
        let of = |latency, event, writes| Class { latency, event, writes, is_of_collection: true };
        match command {
            "find" => of(Latency::Read, Event::Query, false),
            "getMore" => of(Latency::Read, Event::GetMore, false),
            "aggregate" | "count" | "distinct" => of(Latency::Read, Event::Command, false),
            "insert" => of(Latency::Write, Event::Insert, true),
            "update" => of(Latency::Write, Event::Update, true),
            "delete" => of(Latency::Write, Event::Remove, true),
            "findAndModify" => of(Latency::Write, Event::Command, true),
            "collStats" | "listIndexes" | "validate" => of(Latency::Command, Event::Command, false),
            "cloneCollectionAsCapped"
            | "collMod"
            | "compact"
            | "convertToCapped"
            | "create"
            | "createIndexes"
            | "dropIndexes"
            | "reIndex" => of(Latency::Command, Event::Command, true),
            _ => {
                let latency =
                    if command == "bulkWrite" { Latency::Write } else { Latency::Command };
                Class { latency, event: Event::Command, writes: false, is_of_collection: false }
            }
        }
    }
}
