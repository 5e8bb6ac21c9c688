//! Requests of workloads to a database, in no database's language.
//!
//! Paths are names joined by dots; a number is a position in an array. Values are BSON's, of these
//! types only, so that JSON can say them too: null, boolean, 64-bit integer, double, text, array,
//! document.

use bson::Bson;

/// The type of an `_id` or of an indexed field: SQL needs to know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// 64-bit integer.
    Integer,
    /// Text of at most 180 letters.
    Text,
}

/// A collection to make.
#[derive(Clone, Debug)]
pub struct CollectionSpec {
    /// Its name: letters and underscores.
    pub name: String,
    /// The type of each `_id`.
    pub id: Kind,
    /// Its secondary indexes.
    pub indexes: Vec<IndexSpec>,
}

impl CollectionSpec {
    /// A collection without indexes.
    pub fn new(name: &str, id: Kind) -> CollectionSpec {
        CollectionSpec { name: name.into(), id, indexes: Vec::new() }
    }

    /// Adds an index on `fields`, ascending; its name is made from them.
    pub fn index(mut self, fields: &[(&str, Kind)]) -> CollectionSpec {
        self.indexes.push(IndexSpec::new(fields));
        self
    }
}

/// A secondary index, ascending.
#[derive(Clone, Debug)]
pub struct IndexSpec {
    /// Its name: letters and underscores.
    pub name: String,
    /// Path and type of each field.
    pub fields: Vec<(String, Kind)>,
    /// Holds the whole document, where the database has that; elsewhere a plain index.
    pub clustered: bool,
}

impl IndexSpec {
    /// An index whose name is made from its fields.
    pub fn new(fields: &[(&str, Kind)]) -> IndexSpec {
        let paths: Vec<_> = fields.iter().map(|(path, _)| path.replace('.', "_")).collect();
        IndexSpec {
            name: format!("by_{}", paths.join("_and_")),
            fields: fields.iter().map(|(path, kind)| ((*path).into(), *kind)).collect(),
            clustered: false,
        }
    }
}

/// The comparison of a field with a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// Equal.
    Equal,
    /// At least.
    AtLeast,
    /// Less.
    Less,
    /// Equal to one of an array's.
    AnyOf,
}

/// A condition on a field; all of a query's hold together.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The path; `_id` is the key.
    pub path: String,
    /// The comparison.
    pub comparison: Comparison,
    /// The value to compare with.
    pub value: Bson,
}

/// The kind of answer to a query.
#[derive(Clone, Debug, Default)]
pub enum Answer {
    /// Whole documents.
    #[default]
    Documents,
    /// Only these fields.
    Fields(Vec<String>),
    /// Only how many.
    Count,
}

/// A query on one collection.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// The collection.
    pub collection: String,
    /// The conditions that documents must meet.
    pub conditions: Vec<Condition>,
    /// The order.
    pub sort: Option<Sort>,
    /// The greatest number of answers.
    pub limit: Option<u64>,
    /// The part of them to return.
    pub answer: Answer,
}

/// The order of the documents.
#[derive(Clone, Debug)]
pub struct Sort {
    /// The field.
    pub path: String,
    /// Its type.
    pub kind: Kind,
    /// The direction.
    pub direction: Direction,
}

/// An order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The least first.
    Ascending,
    /// The greatest first.
    Descending,
}

impl Query {
    /// All documents of a collection.
    pub fn all(collection: &str) -> Query {
        Query { collection: collection.into(), ..Query::default() }
    }

    /// Adds a condition.
    pub fn filter(mut self, path: &str, comparison: Comparison, value: impl Into<Bson>) -> Query {
        self.conditions.push(Condition { path: path.into(), comparison, value: value.into() });
        self
    }

    /// Adds an equality.
    pub fn equal(self, path: &str, value: impl Into<Bson>) -> Query {
        self.filter(path, Comparison::Equal, value)
    }

    /// Sets the order; `kind` is the field's type.
    pub fn sort(mut self, path: &str, kind: Kind, direction: Direction) -> Query {
        self.sort = Some(Sort { path: path.into(), kind, direction });
        self
    }

    /// Sets the limit.
    pub fn limit(mut self, limit: u64) -> Query {
        self.limit = Some(limit);
        self
    }

    /// Asks for these fields only.
    pub fn fields(mut self, paths: &[&str]) -> Query {
        self.answer = Answer::Fields(paths.iter().map(|path| (*path).into()).collect());
        self
    }

    /// Asks for the count only.
    pub fn count(mut self) -> Query {
        self.answer = Answer::Count;
        self
    }
}

/// A change inside one document.
#[derive(Clone, Debug)]
pub enum Change {
    /// Sets a field, or an element of an array.
    Set(String, Bson),
    /// Adds to a number.
    Add(String, i64),
    /// Inserts an element into the array at `path`, before `position`; at the end if `position` is
    /// its length.
    InsertAt {
        /// The array.
        path: String,
        /// The position in it.
        position: u64,
        /// The new element.
        value: Bson,
    },
    /// Removes the element at `position` of the array at `path`. `value` is the element itself,
    /// which no other one equals, for databases that remove by value.
    RemoveAt {
        /// The array.
        path: String,
        /// The position in it.
        position: u64,
        /// The element that is there now.
        value: Bson,
    },
}
