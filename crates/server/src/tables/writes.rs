//! `bulkWrite`, `delete`, `findAndModify`, `insert`, `update`.

use frond_doc::ElementType;

use super::field::Field;
use super::kind::{
    BOOL, FLAG, HINT, INT, Kind, NUMERIC, OBJECT, TEXT, TEXT_OR_OBJECT, UPDATE as WORDS,
};
use super::reads::CURSOR_OPTIONS;
use super::table::Table;

const fn field(name: &'static str, kind: Kind) -> Field {
    Field::new(name, kind)
}

const HINTED: Field = Field::new("hint", TEXT_OR_OBJECT).worded(HINT);
const ARRAY_FILTERS: Field = Field::new("arrayFilters", Kind::EachOf(ElementType::Document));
const BYPASS: Field = Field::new("bypassDocumentValidation", FLAG);
const EMPTY_TIMESTAMPS: Field = Field::new("bypassEmptyTsReplacement", FLAG).internal();
const ORDERED: Field = Field::new("ordered", BOOL);
const STATEMENT: Field = Field::new("stmtId", INT).internal();
const STATEMENTS: Field = Field::new("stmtIds", Kind::EachOf(ElementType::Int32)).internal();

/// An update: a document or a pipeline.
const fn update(name: &'static str) -> Field {
    Field::new(name, Kind::Of(&[ElementType::Document, ElementType::Array])).worded(WORDS)
}

/// An element of `nsInfo`.
pub static BULK_NAMESPACE: &[Field] = &[
    field("ns", TEXT).required(),
    field("collectionUUID", Kind::Uuid).refused(),
    field("encryptionInformation", OBJECT).internal(),
    field("isTimeseriesNamespace", BOOL).internal(),
];

/// An element of `ops`, by its first field.
pub static BULK_OPERATIONS: &[(&str, &[Field])] =
    &[("insert", BULK_INSERT), ("update", BULK_UPDATE), ("delete", BULK_DELETE)];

/// The position of a namespace in `nsInfo`.
const fn namespace(name: &'static str) -> Field {
    Field::new(name, NUMERIC).at_least(0).required()
}

static BULK_INSERT: &[Field] = &[namespace("insert"), field("document", OBJECT).required()];

static BULK_UPDATE: &[Field] = &[
    namespace("update"),
    field("filter", OBJECT).required(),
    field("sort", OBJECT),
    field("multi", BOOL),
    update("updateMods").required(),
    field("upsert", BOOL),
    field("upsertSupplied", BOOL).internal(),
    ARRAY_FILTERS,
    HINTED,
    field("constants", OBJECT),
    field("collation", OBJECT),
];

static BULK_DELETE: &[Field] = &[
    namespace("delete"),
    field("filter", OBJECT).required(),
    field("multi", BOOL),
    HINTED,
    field("collation", OBJECT),
];

pub static BULK_WRITE: Table = Table::of(
    "bulkWrite",
    &[
        field("nsInfo", Kind::Each(BULK_NAMESPACE)).required(),
        field("ops", Kind::EachKind(BULK_OPERATIONS)).required(),
        BYPASS,
        EMPTY_TIMESTAMPS,
        field("cursor", Kind::Part(CURSOR_OPTIONS)),
        field("errorsOnly", BOOL),
        field("let", OBJECT),
        ORDERED,
        STATEMENT,
        STATEMENTS,
    ],
)
.writing()
.stable();

/// An element of `delete.deletes`. `limit` is of any type: what is no number is 0.
pub static DELETES: &[Field] = &[
    field("q", OBJECT).required(),
    field("limit", Kind::Any).required(),
    field("collation", OBJECT),
    HINTED,
];

pub static DELETE: Table = Table::of(
    "delete",
    &[
        field("deletes", Kind::Each(DELETES)).required(),
        BYPASS.internal(),
        EMPTY_TIMESTAMPS,
        field("let", OBJECT),
        ORDERED,
        STATEMENT,
        STATEMENTS,
    ],
)
.writing()
.stable();

pub static FIND_AND_MODIFY: Table = Table::of(
    "findAndModify",
    &[
        ARRAY_FILTERS,
        BYPASS,
        EMPTY_TIMESTAMPS,
        field("collation", OBJECT),
        field("fields", OBJECT),
        HINTED,
        field("let", OBJECT),
        field("new", FLAG),
        field("ordered", BOOL).internal(),
        field("query", OBJECT),
        field("remove", FLAG),
        field("sort", OBJECT),
        STATEMENT,
        STATEMENTS,
        update("update"),
        field("upsert", FLAG),
    ],
)
.writing()
.stable();

pub static INSERT: Table = Table::of(
    "insert",
    &[
        field("documents", Kind::EachOf(ElementType::Document)).required(),
        BYPASS,
        EMPTY_TIMESTAMPS,
        ORDERED,
        STATEMENT,
        STATEMENTS,
    ],
)
.writing()
.stable();

/// An element of `update.updates`.
pub static UPDATES: &[Field] = &[
    field("q", OBJECT).required(),
    update("u").required(),
    ARRAY_FILTERS,
    field("c", OBJECT),
    field("collation", OBJECT),
    HINTED,
    field("multi", BOOL),
    field("sort", OBJECT),
    field("upsert", BOOL),
    field("upsertSupplied", BOOL).internal(),
];

pub static UPDATE: Table = Table::of(
    "update",
    &[
        field("updates", Kind::Each(UPDATES)).required(),
        BYPASS,
        EMPTY_TIMESTAMPS,
        field("let", OBJECT),
        ORDERED,
        STATEMENT,
        STATEMENTS,
    ],
)
.writing()
.stable();
