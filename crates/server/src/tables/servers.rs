//! The server: its state, its parameters, its log, its care.

use frond_query::Code;

use super::every;
use super::field::Field;
use super::kind::{ARRAY, FLAG, Kind, MismatchMessage, NUMERIC, OBJECT, TEXT, TEXT_OR_OBJECT};
use super::table::Table;

const fn field(name: &'static str, kind: Kind) -> Field {
    Field::new(name, kind)
}

/// A command without fields of its own.
const fn bare(command: &'static str) -> Table {
    Table::of(command, &[])
}

/// The number by which sizes are divided.
const SCALE: Field = Field::new("scale", NUMERIC).at_least(1);

pub static BUILD_INFO: Table = bare("buildInfo");

pub static COLL_STATS: Table =
    Table::of("collStats", &[SCALE, field("verbose", Kind::Any).internal()]);

pub static COMPACT: Table = Table::of(
    "compact",
    &[
        field("dryRun", FLAG).refused(),
        field("force", FLAG).idle(),
        field("freeSpaceTargetMB", NUMERIC).at_least(1).idle(),
    ],
);

/// The fail point itself checks the content of `data`.
pub static CONFIGURE_FAIL_POINT: Table =
    Table::of("configureFailPoint", &[field("mode", Kind::Any).required(), field("data", OBJECT)])
        .taking(TEXT);

pub static CONN_POOL_STATS: Table = bare("connPoolStats").lenient();

/// Its fields are a filter.
pub static CURRENT_OP: Table =
    Table::of("currentOp", &[field("$all", Kind::Any), field("$ownOps", Kind::Any)]).open();

pub static DATA_SIZE: Table = Table::of(
    "dataSize",
    &[
        field("estimate", FLAG).idle(),
        field("keyPattern", OBJECT),
        field("max", OBJECT),
        field("min", OBJECT),
    ],
)
.taking(TEXT);

/// An old command, which reads what it knows.
pub static DB_HASH: Table = Table::of("dbHash", &[field("collections", Kind::Any)]).lenient();

pub static DB_STATS: Table = Table::of("dbStats", &[field("freeStorage", NUMERIC), SCALE]);

pub static FSYNC: Table = Table::of(
    "fsync",
    &[
        field("async", Kind::Any).internal(),
        field("fsyncLockAcquisitionTimeoutMillis", NUMERIC).internal(),
        field("lock", FLAG).refused(),
    ],
);

pub static FSYNC_UNLOCK: Table = bare("fsyncUnlock").lenient();
/// Its own field is a name or names.
pub static GET_CLUSTER_PARAMETER: Table =
    Table::of("getClusterParameter", &[field("omitInFTDC", FLAG).internal()]);

pub static GET_CMD_LINE_OPTS: Table = bare("getCmdLineOpts").lenient();

pub static GET_DEFAULT_RW_CONCERN: Table =
    Table::of("getDefaultRWConcern", &[field("inMemory", FLAG)]).lenient();

pub static GET_DIAGNOSTIC_DATA: Table = bare("getDiagnosticData").lenient();

pub static GET_LOG: Table = bare("getLog").taking(TEXT).lenient();

/// Its fields are the names of parameters.
pub static GET_PARAMETER: Table = bare("getParameter").open();

pub static HOST_INFO: Table = bare("hostInfo").lenient();

pub static KILL_OP: Table = Table::of(
    "killOp",
    &[field("op", NUMERIC)
        .required_worded(Code::NoSuchKey, "Missing expected field \"op\"")
        .at_least(i32::MIN as i64)
        .at_most(i32::MAX as i64)
        .range_worded(Code::Location(26823), "Op ID cannot be represented with 32 bits")],
)
.lenient();

pub static LIST_COMMANDS: Table = bare("listCommands").lenient();

pub static LOG_ROTATE: Table = Table::of("logRotate", &[field("comment", TEXT).internal()]);

pub static PING: Table = bare("ping").stable();

/// The message for the fields of a shape of queries.
const OF_SHAPE: &MismatchMessage = &MismatchMessage {
    code: Code::BadValue,
    message: |name, _| {
        let kind = if name == "query" { "required" } else { "optional" };
        format!("{kind} field {name} must be an object")
    },
    refuses_null: true,
};
/// The message for the indexes that a shape may use.
const OF_INDEXES: &MismatchMessage = &MismatchMessage {
    code: Code::BadValue,
    message: |name, _| format!("required field {name} must be an array"),
    refuses_null: true,
};

/// A shape of queries whose plans are to be forgotten.
static CLEARED_SHAPE: &[Field] = &[
    field("collation", OBJECT).worded(OF_SHAPE).idle(),
    field("projection", OBJECT).worded(OF_SHAPE).idle(),
    field("query", OBJECT).worded(OF_SHAPE).idle(),
    field("sort", OBJECT).worded(OF_SHAPE).idle(),
];
static SHAPE: &[Field] = &[
    field("collation", OBJECT).worded(OF_SHAPE),
    field("projection", OBJECT).worded(OF_SHAPE),
    field("query", OBJECT).worded(OF_SHAPE),
    field("sort", OBJECT).worded(OF_SHAPE),
];

pub static PLAN_CACHE_CLEAR: Table = Table::of("planCacheClear", CLEARED_SHAPE).lenient();
pub static PLAN_CACHE_CLEAR_FILTERS: Table = Table::of("planCacheClearFilters", SHAPE).lenient();
pub static PLAN_CACHE_LIST_FILTERS: Table = bare("planCacheListFilters").lenient();
pub static PLAN_CACHE_SET_FILTER: Table = Table::of(
    "planCacheSetFilter",
    &[
        field("collation", OBJECT).worded(OF_SHAPE),
        field("indexes", ARRAY).worded(OF_INDEXES),
        field("projection", OBJECT).worded(OF_SHAPE),
        field("query", OBJECT).worded(OF_SHAPE),
        field("sort", OBJECT).worded(OF_SHAPE),
    ],
)
.lenient();

pub static PROFILE: Table = Table::of(
    "profile",
    &[field("filter", TEXT_OR_OBJECT), field("sampleRate", Kind::Share), field("slowms", NUMERIC)],
)
.taking(NUMERIC)
.lenient();

pub static RE_INDEX: Table = bare("reIndex").lenient();

pub static REPL_SET_GET_CONFIG: Table =
    Table::of("replSetGetConfig", &[field("commitmentStatus", Kind::Any).idle()]).lenient();
pub static REPL_SET_GET_STATUS: Table =
    Table::of("replSetGetStatus", &[field("initialSync", Kind::Any).idle()]).lenient();
pub static REPL_SET_INITIATE: Table = bare("replSetInitiate").lenient();
pub static REPL_SET_RECONFIG: Table = Table::of("replSetReconfig", &[field("force", FLAG)]);
pub static REPL_SET_STEP_DOWN: Table = Table::of(
    "replSetStepDown",
    &[field("force", FLAG).idle(), field("secondaryCatchUpPeriodSecs", NUMERIC).idle()],
)
.taking(NUMERIC);

pub static ROTATE_CERTIFICATES: Table = Table::of("rotateCertificates", &[field("message", TEXT)]);

/// Its fields are the names of sections.
pub static SERVER_STATUS: Table = bare("serverStatus").open();

/// Its own field has the parameter's name.
pub static SET_CLUSTER_PARAMETER: Table = bare("setClusterParameter").taking(OBJECT).writing();

pub static SET_DEFAULT_RW_CONCERN: Table = Table::of(
    "setDefaultRWConcern",
    &[
        field("defaultReadConcern", Kind::Part(every::READ_CONCERN)),
        field("defaultWriteConcern", Kind::Part(every::WRITE_CONCERN)),
    ],
)
.writing();

/// Its fields are the names of parameters.
pub static SET_PARAMETER: Table = bare("setParameter").open();

pub static SHUTDOWN: Table =
    Table::of("shutdown", &[field("force", FLAG), field("timeoutSecs", NUMERIC).at_least(0)]);

pub static TEST_DEPRECATION: Table = bare("testDeprecation").lenient();
pub static TEST_DEPRECATION_IN_VERSION_2: Table = bare("testDeprecationInVersion2").lenient();
pub static TEST_REMOVAL: Table = bare("testRemoval").lenient();
pub static TEST_VERSION_2: Table = bare("testVersion2").lenient();
pub static TEST_VERSIONS_1_AND_2: Table = bare("testVersions1And2").lenient();

pub static TOP: Table = bare("top").lenient();

pub static VALIDATE: Table = Table::of(
    "validate",
    &[
        field("background", FLAG).idle(),
        field("checkBSONConformance", FLAG).idle(),
        field("enforceFastCount", FLAG).internal(),
        field("fixMultikey", FLAG).refused(),
        field("full", FLAG).idle(),
        field("metadata", FLAG).idle(),
        field("repair", FLAG).refused(),
        // PyMongo sends it, as servers of long ago wanted.
        field("scandata", FLAG).internal(),
    ],
)
.lenient();
