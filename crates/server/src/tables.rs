//! One table a command: its fields, with what each takes and how it stands beside MongoDB's.
//!
//! From these tables come
//! - the checks at the server's door ([`check`]): a command of a wrong field, type or range is
//!   refused before anything else is done with it;
//! - what a command takes besides: read concerns, a write concern, the stable API;
//! - the tables of fields of COMPATIBILITY.md;
//! - tests that send every field of every command each type of BSON, and what lies at the bounds.
//!
//! The facts about MongoDB are from its manual, the definitions of its commands (IDL), and
//! measurements that other projects have published. A command of MongoDB that was defined by hand
//! ignores what it doesn't know ([`UnknownFields::Ignored`]); the others refuse it (40415).

mod catalog;
mod check;
mod cursors;
mod every;
mod field;
mod kind;
mod printed;
mod reads;
mod servers;
mod sessions;
mod table;
mod users;
mod versions;
mod writes;

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::RandomState;

pub use self::check::{
    check, check_part, double, inner_path, integer, missing_field, out_of_range, unknown,
    wrong_type,
};
pub use self::every::{EVERY, LSID};
pub use self::field::Field;
pub use self::kind::{Kind, MismatchMessage};
pub use self::printed::{FIELDS, family, page};
pub use self::table::{Reads, Table, UnknownFields, Writes};
pub use self::writes::{BULK_NAMESPACE, BULK_OPERATIONS, DELETES, UPDATES};

/// Every table, sorted by command.
pub static TABLES: &[&Table] = &[
    &users::MERGE_ACCOUNTS,
    &sessions::ABORT_TRANSACTION,
    &reads::AGGREGATE,
    &sessions::AUTHENTICATE,
    &servers::BUILD_INFO,
    &writes::BULK_WRITE,
    &catalog::CLONE_COLLECTION_AS_CAPPED,
    &catalog::COLL_MOD,
    &servers::COLL_STATS,
    &sessions::COMMIT_TRANSACTION,
    &servers::COMPACT,
    &servers::CONFIGURE_FAIL_POINT,
    &servers::CONN_POOL_STATS,
    &sessions::CONNECTION_STATUS,
    &catalog::CONVERT_TO_CAPPED,
    &reads::COUNT,
    &catalog::CREATE,
    &catalog::CREATE_INDEXES,
    &users::CREATE_ROLE,
    &users::CREATE_USER,
    &servers::CURRENT_OP,
    &servers::DATA_SIZE,
    &servers::DB_HASH,
    &servers::DB_STATS,
    &writes::DELETE,
    &reads::DISTINCT,
    &catalog::DROP,
    &users::DROP_ALL_ROLES,
    &users::DROP_ALL_USERS,
    &catalog::DROP_DATABASE,
    &catalog::DROP_INDEXES,
    &users::DROP_ROLE,
    &users::DROP_USER,
    &sessions::END_SESSIONS,
    &reads::EXPLAIN,
    &reads::FIND,
    &writes::FIND_AND_MODIFY,
    &versions::BLAME,
    &versions::BRANCH,
    &versions::CHERRY_PICK,
    &versions::CLOCK,
    &versions::CLONE,
    &versions::COMMIT,
    &versions::CONFLICTS,
    &versions::DIFF,
    &versions::ERASE,
    &versions::FETCH,
    &versions::GC,
    &versions::HAND_OVER,
    &versions::HELP,
    &versions::HISTORY,
    &versions::LOG,
    &versions::MERGE,
    &versions::MERGE_RULES,
    &versions::POLICY,
    &versions::PULL,
    &versions::PUSH,
    &versions::REBASE,
    &versions::REFLOG,
    &versions::REMOTE,
    &versions::RESET,
    &versions::RESOLVE_CONFLICT,
    &versions::RESTORE,
    &versions::REVERT,
    &versions::SHOW,
    &versions::STATUS,
    &versions::TAG,
    &versions::UNDO,
    &servers::FSYNC,
    &servers::FSYNC_UNLOCK,
    &servers::GET_CLUSTER_PARAMETER,
    &servers::GET_CMD_LINE_OPTS,
    &servers::GET_DEFAULT_RW_CONCERN,
    &servers::GET_DIAGNOSTIC_DATA,
    &servers::GET_LOG,
    &cursors::GET_MORE,
    &servers::GET_PARAMETER,
    &users::GRANT_PRIVILEGES_TO_ROLE,
    &users::GRANT_ROLES_TO_ROLE,
    &users::GRANT_ROLES_TO_USER,
    &sessions::HELLO,
    &servers::HOST_INFO,
    &writes::INSERT,
    &users::INVALIDATE_USER_CACHE,
    &sessions::IS_MASTER,
    &sessions::KILL_ALL_SESSIONS,
    &cursors::KILL_CURSORS,
    &servers::KILL_OP,
    &sessions::KILL_SESSIONS,
    &catalog::LIST_COLLECTIONS,
    &servers::LIST_COMMANDS,
    &catalog::LIST_DATABASES,
    &catalog::LIST_INDEXES,
    &servers::LOG_ROTATE,
    &sessions::LOGOUT,
    &reads::MAP_REDUCE,
    &servers::PING,
    &servers::PLAN_CACHE_CLEAR,
    &servers::PLAN_CACHE_CLEAR_FILTERS,
    &servers::PLAN_CACHE_LIST_FILTERS,
    &servers::PLAN_CACHE_SET_FILTER,
    &servers::PROFILE,
    &servers::RE_INDEX,
    &sessions::REFRESH_SESSIONS,
    &catalog::RENAME_COLLECTION,
    &servers::REPL_SET_GET_CONFIG,
    &servers::REPL_SET_GET_STATUS,
    &servers::REPL_SET_INITIATE,
    &servers::REPL_SET_RECONFIG,
    &servers::REPL_SET_STEP_DOWN,
    &users::REVOKE_PRIVILEGES_FROM_ROLE,
    &users::REVOKE_ROLES_FROM_ROLE,
    &users::REVOKE_ROLES_FROM_USER,
    &users::ROLES_INFO,
    &servers::ROTATE_CERTIFICATES,
    &sessions::SASL_CONTINUE,
    &sessions::SASL_START,
    &servers::SERVER_STATUS,
    &servers::SET_CLUSTER_PARAMETER,
    &servers::SET_DEFAULT_RW_CONCERN,
    &servers::SET_PARAMETER,
    &servers::SHUTDOWN,
    &sessions::START_SESSION,
    &servers::TEST_DEPRECATION,
    &servers::TEST_DEPRECATION_IN_VERSION_2,
    &servers::TEST_REMOVAL,
    &servers::TEST_VERSION_2,
    &servers::TEST_VERSIONS_1_AND_2,
    &servers::TOP,
    &writes::UPDATE,
    &users::UPDATE_ROLE,
    &users::UPDATE_USER,
    &users::USERS_INFO,
    &servers::VALIDATE,
    &sessions::WHATSMYURI,
];

/// The table of a command that is refused whatever it says: what every command takes is checked.
pub static UNSUPPORTED: Table = Table::of("", &[]).lenient();

/// The table of a command.
pub fn find(command: &str) -> Option<&'static Table> {
    static BY_COMMAND: LazyLock<HashMap<&str, &Table, RandomState>> =
        LazyLock::new(|| TABLES.iter().map(|table| (table.command, *table)).collect());
    BY_COMMAND.get(command).copied()
}

#[cfg(test)]
mod tests;
