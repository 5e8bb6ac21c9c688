//! `getMore` and `killCursors`.

use frond_doc::ElementType;

use super::field::Field;
use super::kind::{Kind, LONG, NUMERIC, TEXT};
use super::table::Table;

pub static GET_MORE: Table = Table::of(
    "getMore",
    &[
        Field::new("collection", TEXT).required(),
        Field::new("batchSize", NUMERIC).at_least(0),
        Field::new("lastKnownCommittedOpTime", Kind::Any).internal().unstable(),
        Field::new("term", NUMERIC).internal().unstable(),
    ],
)
.taking(LONG)
.stable();

pub static KILL_CURSORS: Table =
    Table::of("killCursors", &[Field::new("cursors", Kind::EachOf(ElementType::Int64)).required()])
        .stable();
