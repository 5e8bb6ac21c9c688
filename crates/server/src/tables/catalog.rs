//! Collections, views, indexes, databases.

use frond_doc::ElementType;

use super::field::Field;
use super::kind::{BOOL, FLAG, Kind, MismatchMessage, NUMERIC, OBJECT, TEXT};
use super::reads::CURSOR_OPTIONS;
use super::table::Table;

const fn field(name: &'static str, kind: Kind) -> Field {
    Field::new(name, kind)
}

const CURSOR: Field = Field::new("cursor", Kind::Part(CURSOR_OPTIONS));
const LEVEL: Field = Field::new("validationLevel", Kind::Word(&["off", "moderate", "strict"]));
const ACTION: Field = Field::new("validationAction", Kind::Word(&["error", "warn"]));
const VERSIONED: Field = Field::new("versioned", FLAG).own();
/// Seconds, or `"off"`.
const EXPIRES: Field = Field::new(
    "expireAfterSeconds",
    Kind::Of(&[
        ElementType::String,
        ElementType::Int64,
        ElementType::Int32,
        ElementType::Decimal128,
        ElementType::Double,
    ]),
);
const PIPELINE: Field = Field::new("pipeline", Kind::EachOf(ElementType::Document));
/// A petabyte.
const SIZE_MAX: i64 = 1 << 50;

/// The message for `dropTarget`, which may be a UUID between servers.
const DROP_TARGET: &MismatchMessage = &MismatchMessage {
    code: frond_query::Code::TypeMismatch,
    message: |_, found| {
        format!(
            "BSON field 'renameCollection.dropTarget' is the wrong type '{found}', expected types \
             '[bool, binData]'"
        )
    },
    refuses_null: true,
};

/// An old command, which reads what it knows.
pub static CLONE_COLLECTION_AS_CAPPED: Table = Table::of(
    "cloneCollectionAsCapped",
    &[
        field("toCollection", TEXT).required(),
        field("size", NUMERIC).required(),
        field("temp", FLAG).internal(),
    ],
)
.lenient()
.writing();

static INDEX_CHANGE: &[Field] = &[
    field("name", TEXT),
    field("keyPattern", OBJECT),
    field("expireAfterSeconds", NUMERIC),
    field("hidden", FLAG),
    field("newName", TEXT).own(),
    field("prepareUnique", FLAG).unstable(),
    field("unique", FLAG).unstable(),
];

const IMAGES: &[Field] = &[field("enabled", BOOL).required()];

pub static COLL_MOD: Table = Table::of(
    "collMod",
    &[
        field("cappedMax", NUMERIC).unstable(),
        field("cappedSize", NUMERIC).unstable(),
        field("changeStreamPreAndPostImages", Kind::Part(IMAGES)),
        field("dryRun", FLAG).unstable(),
        EXPIRES,
        field("index", Kind::Part(INDEX_CHANGE)),
        PIPELINE,
        field("timeseries", OBJECT),
        ACTION,
        LEVEL,
        field("validator", OBJECT),
        field("viewOn", TEXT),
        VERSIONED,
    ],
)
.writing()
.stable();

pub static CONVERT_TO_CAPPED: Table = Table::of(
    "convertToCapped",
    &[field("size", NUMERIC).required(), field("temp", FLAG).internal()],
)
.writing();

pub static CREATE: Table = Table::of(
    "create",
    &[
        field("autoIndexId", FLAG).unstable(),
        field("capped", FLAG).unstable(),
        field("changeStreamPreAndPostImages", Kind::Part(IMAGES)),
        field("clusteredIndex", Kind::Of(&[ElementType::Boolean, ElementType::Document])),
        field("collation", OBJECT),
        field("encryptedFields", OBJECT).elsewhere(),
        EXPIRES,
        field("flags", NUMERIC).internal().unstable(),
        field("idIndex", OBJECT).unstable(),
        field("indexOptionDefaults", OBJECT).refused().unstable(),
        field("max", NUMERIC).at_most(i32::MAX as i64).unstable(),
        field("mergeRules", OBJECT).own(),
        PIPELINE,
        field("size", NUMERIC).at_least(1).at_most(SIZE_MAX).unstable(),
        field("storageEngine", OBJECT).refused().unstable(),
        field("temp", FLAG).internal().unstable(),
        field("timeseries", OBJECT),
        ACTION,
        LEVEL,
        field("validator", OBJECT),
        field("viewOn", TEXT),
        VERSIONED,
    ],
)
.writing()
.stable();

pub static CREATE_INDEXES: Table = Table::of(
    "createIndexes",
    &[
        field("indexes", Kind::EachOf(ElementType::Document)).required(),
        field("commitQuorum", Kind::Any).unstable(),
        field("ignoreUnknownIndexOptions", FLAG).internal().unstable(),
    ],
)
.writing()
.stable();

pub static DROP: Table = Table::of("drop", &[]).writing().stable();

pub static DROP_DATABASE: Table = Table::of("dropDatabase", &[]).writing().stable();

pub static DROP_INDEXES: Table = Table::of(
    "dropIndexes",
    &[field("index", Kind::Of(&[ElementType::String, ElementType::Document, ElementType::Array]))
        .required()],
)
.writing()
.stable();

pub static LIST_COLLECTIONS: Table = Table::of(
    "listCollections",
    &[
        field("authorizedCollections", FLAG).idle(),
        CURSOR,
        field("filter", OBJECT),
        field("nameOnly", FLAG),
    ],
)
.stable();

pub static LIST_DATABASES: Table = Table::of(
    "listDatabases",
    &[field("authorizedDatabases", FLAG).idle(), field("filter", OBJECT), field("nameOnly", FLAG)],
)
.stable();

pub static LIST_INDEXES: Table = Table::of(
    "listIndexes",
    &[
        CURSOR,
        field("includeBuildUUIDs", FLAG).internal().unstable(),
        field("includeIndexBuildInfo", FLAG).internal().unstable(),
    ],
)
.stable();

pub static RENAME_COLLECTION: Table = Table::of(
    "renameCollection",
    &[
        field("to", TEXT).required(),
        field("dropTarget", Kind::Of(&[ElementType::Boolean, ElementType::Binary]))
            .worded(DROP_TARGET),
        field("stayTemp", FLAG).internal(),
    ],
)
.taking(TEXT)
.writing();
