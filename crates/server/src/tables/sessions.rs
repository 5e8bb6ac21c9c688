//! Handshake, login, sessions, transactions.

use frond_doc::ElementType;
use frond_query::Code;

use super::every::LSID;
use super::field::Field;
use super::kind::{ARRAY, FLAG, Kind, MismatchMessage, NUMERIC, OBJECT, TEXT};
use super::table::Table;

const fn field(name: &'static str, kind: Kind) -> Field {
    Field::new(name, kind)
}

const RECOVERY: Field = Field::new("recoveryToken", OBJECT).internal();

pub static ABORT_TRANSACTION: Table = Table::of("abortTransaction", &[RECOVERY]).writing().stable();

pub static COMMIT_TRANSACTION: Table =
    Table::of("commitTransaction", &[RECOVERY]).writing().stable();

pub static CONNECTION_STATUS: Table =
    Table::of("connectionStatus", &[field("showPrivileges", FLAG)]);

/// Sessions, by their ids.
const SESSIONS: Kind = Kind::Each(LSID);

pub static END_SESSIONS: Table = Table::of("endSessions", &[]).taking(SESSIONS).stable();

pub static KILL_SESSIONS: Table = Table::of("killSessions", &[]).taking(SESSIONS);

pub static REFRESH_SESSIONS: Table = Table::of("refreshSessions", &[]).taking(SESSIONS).stable();

pub static KILL_ALL_SESSIONS: Table = Table::of("killAllSessions", &[]).taking(ARRAY).lenient();

pub static START_SESSION: Table = Table::of("startSession", &[]).lenient();

pub static WHATSMYURI: Table = Table::of("whatsmyuri", &[]).lenient();

/// A newer driver may offer what an older server has never heard of. A feature that isn't in the
/// answer isn't agreed on.
static GREETING: &[Field] = &[
    field("client", OBJECT).internal(),
    field("compression", Kind::EachOf(ElementType::String)).internal(),
    field("helloOk", FLAG).internal(),
    field("hostInfo", Kind::Any).internal(),
    field("loadBalanced", FLAG).internal(),
    field("maxAwaitTimeMS", NUMERIC).internal(),
    field("saslSupportedMechs", TEXT),
    field("speculativeAuthenticate", OBJECT).internal(),
    field("topologyVersion", OBJECT).internal(),
];

pub static HELLO: Table = Table::of("hello", GREETING).lenient().stable();

pub static IS_MASTER: Table = Table::of("isMaster", GREETING).lenient();

pub static LOGOUT: Table = Table::of("logout", &[]);

static SASL_OPTIONS: &[Field] = &[field("skipEmptyExchange", FLAG)];

/// `speculativeAuthenticate` of a greeting is one, too.
pub static AUTHENTICATE: Table = Table::of(
    "authenticate",
    &[field("mechanism", TEXT).required(), field("db", Kind::Any).internal(), field("user", TEXT)],
)
.lenient()
.stable();

/// As [`AUTHENTICATE`].
pub static SASL_START: Table = Table::of(
    "saslStart",
    &[
        field("mechanism", TEXT).required(),
        field("payload", PAYLOAD).required().worded(PAYLOAD_TYPE),
        field("autoAuthorize", Kind::Any).internal(),
        field("db", Kind::Any).internal(),
        field("options", Kind::Part(SASL_OPTIONS)),
    ],
)
.stable();

pub static SASL_CONTINUE: Table = Table::of(
    "saslContinue",
    &[
        field("conversationId", NUMERIC).required(),
        field("payload", PAYLOAD).required().worded(PAYLOAD_TYPE),
    ],
)
.stable();

/// Bytes, or base64 of them.
const PAYLOAD: Kind = Kind::Of(&[ElementType::Binary, ElementType::String]);
/// The message for other types.
const PAYLOAD_TYPE: &MismatchMessage = &MismatchMessage {
    code: Code::BadValue,
    message: |_, found| {
        format!("Invalid SASLPayload type. Expected Base64 or BinData, got: {found}")
    },
    refuses_null: true,
};
