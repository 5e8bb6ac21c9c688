//! Fields of every command: session, transaction, deadline, concerns, stable API, and what servers
//! of a cluster say to one another.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::RandomState;
use frond_query::Code;

use super::field::Field;
use super::kind::{BOOL, BYTES, FLAG, Kind, LONG, MOMENT, NUMERIC, OBJECT, TEXT};

const fn field(name: &'static str, kind: Kind) -> Field {
    Field::new(name, kind)
}

/// Makes a field for use between servers, or by old drivers: taken, and without meaning here.
const fn internal(name: &'static str) -> Field {
    Field::new(name, Kind::Any).internal()
}

/// The prefix of the API's fields in messages.
const API: &str = "APIParametersFromClient";
const SESSION: &str = "OperationSessionInfo";

/// Sorted by name.
pub static EVERY: &[Field] = &[
    internal("$audit"),
    internal("$client"),
    field("$clusterTime", OBJECT),
    internal("$configServerState"),
    internal("$configTime"),
    internal("$db"),
    internal("$oplogQueryData"),
    internal("$queryOptions"),
    field("$readPreference", OBJECT).differs("checked; there is one member to read from"),
    internal("$replData"),
    internal("$topologyTime"),
    field("apiDeprecationErrors", BOOL).called(API).idle(),
    field("apiStrict", BOOL).called(API),
    field("apiVersion", TEXT).called(API),
    field("autocommit", BOOL).called(SESSION),
    field("clientOperationKey", Kind::Uuid).internal(),
    field("comment", Kind::Any).idle(),
    internal("coordinator"),
    internal("databaseVersion"),
    field("lsid", Kind::Part(LSID)).called("OperationSessionInfo.lsid"),
    field("maxTimeMS", Kind::Whole).at_least(0).at_most(i32::MAX as i64),
    field("maxTimeMSOpOnly", Kind::Whole).at_least(0).internal(),
    internal("mayBypassWriteBlocking"),
    field("readConcern", Kind::Part(READ_CONCERN)).called("readConcern"),
    internal("serialization"),
    internal("shardVersion"),
    field("startTransaction", BOOL).called(SESSION),
    internal("stmtId"),
    internal("tracking_info"),
    field("txnNumber", LONG).called(SESSION),
    internal("txnRetryCounter"),
    field("writeConcern", Kind::Part(WRITE_CONCERN)).called("writeConcern"),
];

/// The fields of a session's id.
pub static LSID: &[Field] = &[
    field("id", Kind::Uuid).required(),
    field("txnNumber", LONG).internal(),
    field("txnUUID", Kind::Uuid).internal(),
    field("uid", BYTES).internal(),
];

pub(super) static READ_CONCERN: &[Field] = &[
    field("afterClusterTime", MOMENT),
    internal("afterOpTime"),
    field("atClusterTime", MOMENT),
    field("level", Kind::Word(&["local", "available", "majority", "linearizable", "snapshot"])),
    field("provenance", TEXT).internal(),
];

pub(super) static WRITE_CONCERN: &[Field] = &[
    field("fsync", FLAG).internal(),
    field("j", FLAG),
    field("provenance", TEXT).internal(),
    field("w", Kind::Any),
    field("wtimeout", NUMERIC)
        .at_least(i32::MIN as i64)
        .at_most(i32::MAX as i64)
        .range_worded(Code::FailedToParse, "wtimeout must be a 32-bit integer"),
];

/// A field of every command.
pub fn find(name: &str) -> Option<&'static Field> {
    static BY_NAME: LazyLock<HashMap<&str, &Field, RandomState>> =
        LazyLock::new(|| EVERY.iter().map(|field| (field.name, field)).collect());
    BY_NAME.get(name).copied()
}
