//! `aggregate`, `count`, `distinct`, `explain`, `find`.

use super::field::Field;
use super::kind::{
    BOOL, CURSOR, EXPECTED_BOOL, EXPECTED_OBJECT, FLAG, HINT, Kind, LIMIT, NUMERIC, OBJECT,
    PIPELINE, TEXT, TEXT_OR_OBJECT,
};
use super::table::{Reads, Table};

const fn field(name: &'static str, kind: Kind) -> Field {
    Field::new(name, kind)
}

/// A document that null is none of.
const fn object(name: &'static str) -> Field {
    Field::new(name, OBJECT).worded(EXPECTED_OBJECT)
}

/// A boolean that neither a number nor null is one of.
const fn flag(name: &'static str) -> Field {
    Field::new(name, BOOL).worded(EXPECTED_BOOL)
}

const HINTED: Field = Field::new("hint", TEXT_OR_OBJECT).worded(HINT);

/// The fields of `cursor`.
pub static CURSOR_OPTIONS: &[Field] = &[Field::new("batchSize", NUMERIC).at_least(0)];

pub static AGGREGATE: Table = Table::of(
    "aggregate",
    &[
        field("pipeline", Kind::Of(&[frond_doc::ElementType::Array])).worded(PIPELINE).required(),
        flag("allowDiskUse"),
        field("bypassDocumentValidation", FLAG),
        field("collation", OBJECT),
        field("cursor", Kind::Part(CURSOR_OPTIONS)).worded(CURSOR),
        field("explain", FLAG).unstable(),
        flag("fromMongos").internal(),
        HINTED,
        field("let", OBJECT),
        flag("needsMerge").internal(),
    ],
)
.reading(Reads::Moments)
.writing()
.stable();

/// A function.
const CODE: Kind = Kind::Of(&[
    frond_doc::ElementType::String,
    frond_doc::ElementType::JavaScript,
    frond_doc::ElementType::JavaScriptWithScope,
]);

pub static MAP_REDUCE: Table = Table::of(
    "mapReduce",
    &[
        field("map", CODE).required(),
        field("out", TEXT_OR_OBJECT).required(),
        field("reduce", CODE).required(),
        field("bypassDocumentValidation", FLAG),
        field("collation", OBJECT),
        field("finalize", CODE),
        flag("jsMode"),
        field("let", OBJECT),
        field("limit", NUMERIC).at_least(0),
        field("query", OBJECT),
        field("scope", OBJECT),
        field("sort", OBJECT),
        field("verbose", FLAG),
    ],
)
.writing();

pub static COUNT: Table = Table::of(
    "count",
    &[
        field("collation", OBJECT),
        field("fields", OBJECT).internal().unstable(),
        HINTED,
        field("limit", Kind::Whole).worded(LIMIT),
        field("query", OBJECT),
        field("skip", NUMERIC).at_least(0),
    ],
)
.reading(Reads::Latest)
.stable();

pub static DISTINCT: Table = Table::of(
    "distinct",
    &[field("key", TEXT).required(), field("collation", OBJECT), HINTED, field("query", OBJECT)],
)
.reading(Reads::Moments);

pub static EXPLAIN: Table = Table::of(
    "explain",
    &[field("verbosity", Kind::Word(&["queryPlanner", "executionStats", "allPlansExecution"]))],
)
.taking(OBJECT)
.reading(Reads::Latest)
.stable();

pub static FIND: Table = Table::of(
    "find",
    &[
        flag("allowDiskUse"),
        flag("allowPartialResults").idle(),
        flag("awaitData").unstable(),
        field("batchSize", NUMERIC).at_least(0),
        object("collation"),
        object("filter"),
        HINTED,
        field("let", OBJECT),
        field("limit", NUMERIC).at_least(0),
        object("max").unstable(),
        object("min").unstable(),
        flag("noCursorTimeout").unstable(),
        field("ntoreturn", NUMERIC).at_least(0).internal().unstable(),
        flag("oplogReplay").idle().unstable(),
        object("projection"),
        flag("returnKey").unstable(),
        flag("showRecordId").differs("the key of `_id`, as in clustered collections").unstable(),
        flag("singleBatch"),
        field("skip", NUMERIC).at_least(0),
        object("sort"),
        flag("tailable").unstable(),
    ],
)
.called("FindCommandRequest")
.reading(Reads::Moments)
.stable();
