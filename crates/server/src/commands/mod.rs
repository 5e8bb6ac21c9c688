//! The commands: one sorted table, supported or not, and one file a command or a few relatives.
//!
//! A handler reads its fields (and refuses those that it doesn't know), calls the database, and
//! returns the answer without `ok`. docs/commands.md tells what each does.

mod aggregate;
mod bulk_write;
mod catalog;
mod certificates;
mod clock;
mod collections;
mod count;
mod create;
mod cursor;
mod databases;
mod delete;
mod diagnostics;
mod distinct;
mod erase;
mod explain;
mod find;
mod find_and_modify;
mod gc;
pub mod handshake;
mod history;
mod indexes;
mod insert;
mod maintenance;
mod merge;
mod operation;
pub mod options;
mod parameters;
mod pick;
mod plan_cache;
mod policy;
mod reflog;
mod remote;
mod replica_set;
mod reply;
mod session_list;
mod sessions;
mod show;
mod shutdown;
pub mod sources;
mod stats;
mod status;
mod tag;
mod transaction;
mod update;
mod users;
mod validate;
mod write;

use std::collections::HashMap;
use std::sync::OnceLock;

pub use diagnostics::FAULT_ADVICE;

use crate::request::{Answer, Request};
use crate::shared::Counter;

/// How a command is answered.
#[derive(Clone, Copy)]
pub enum Run {
    /// By this function.
    Handler(fn(&Request<'_>) -> Answer),
    /// With `CommandNotSupported` and this reason.
    Refused(&'static str),
}

/// A command of the table.
#[derive(Clone, Copy)]
pub struct Command {
    /// Its name.
    pub name: &'static str,
    /// Other names that clients use.
    pub aliases: &'static [&'static str],
    /// What it counts as. Handlers of writes count for themselves, by document.
    pub counter: Counter,
    /// Whether it runs on `admin` alone.
    pub admin_only: bool,
    /// The names of the document sequences that it takes.
    pub sequences: &'static [&'static str],
    /// Whether it may be a write that is sent again.
    pub retryable: bool,
    /// Whether it may be part of a transaction.
    pub in_transaction: bool,
    /// Whether it ends one.
    pub ends_transaction: bool,
    /// How it is answered.
    pub run: Run,
}

impl Command {
    const fn new(name: &'static str, handler: fn(&Request<'_>) -> Answer) -> Command {
        Command::answered(name, Run::Handler(handler))
    }

    const fn refused(name: &'static str, why: &'static str) -> Command {
        Command::answered(name, Run::Refused(why))
    }

    const fn answered(name: &'static str, run: Run) -> Command {
        Command {
            name,
            aliases: &[],
            counter: Counter::Command,
            admin_only: false,
            sequences: &[],
            retryable: false,
            in_transaction: false,
            ends_transaction: false,
            run,
        }
    }

    /// May be part of a transaction.
    const fn in_transactions(self) -> Command {
        Command { in_transaction: true, ..self }
    }

    /// May be part of a transaction, or sent again outside of one.
    const fn retryable(self) -> Command {
        Command { retryable: true, in_transaction: true, ..self }
    }

    const fn ends_transactions(self) -> Command {
        Command { ends_transaction: true, ..self }
    }

    const fn also(self, aliases: &'static [&'static str]) -> Command {
        Command { aliases, ..self }
    }

    const fn on_admin(self) -> Command {
        Command { admin_only: true, ..self }
    }

    const fn counts_as(self, counter: Counter) -> Command {
        Command { counter, ..self }
    }

    const fn takes(self, sequences: &'static [&'static str]) -> Command {
        Command { sequences, ..self }
    }
}

/// Why commands of authentication are refused.
const NO_USERS: &str = "there are no users and no authentication yet: connect without a user";

/// Why commands of replica sets and clusters are refused.
const ONE_MEMBER: &str = "the replica set has one member, and there is no cluster";

/// All commands, by name.
#[rustfmt::skip]
pub static COMMANDS: &[Command] = &[
    Command::new("abortTransaction", transaction::abort).on_admin().ends_transactions(),
    Command::new("aggregate", aggregate::run).in_transactions(),
    Command::refused("appendOplogNote", ONE_MEMBER).on_admin(),
    Command::refused("authenticate", NO_USERS),
    Command::new("buildInfo", handshake::build_info).also(&["buildinfo"]),
    Command::new("bulkWrite", bulk_write::run).on_admin().takes(&["nsInfo", "ops"]).retryable(),
    Command::new("cloneCollectionAsCapped", create::clone),
    Command::new("collMod", create::modify),
    Command::new("collStats", stats::coll_stats).also(&["collstats"]),
    Command::new("commitTransaction", transaction::commit).on_admin().ends_transactions(),
    Command::new("compact", maintenance::compact),
    Command::new("connPoolStats", diagnostics::conn_pool_stats),
    Command::new("connectionStatus", handshake::connection_status),
    Command::new("convertToCapped", create::convert),
    Command::new("count", count::run).counts_as(Counter::Command),
    Command::new("create", create::run).in_transactions(),
    Command::new("createIndexes", indexes::create).in_transactions(),
    Command::refused("createRole", NO_USERS),
    Command::refused("createUser", NO_USERS),
    Command::new("currentOp", operation::current_op).also(&["currentop"]).on_admin(),
    Command::new("dataSize", stats::data_size).also(&["datasize"]),
    Command::refused("dbHash", "commits have ids: frondLog tells them"),
    Command::new("dbStats", stats::db_stats).also(&["dbstats"]),
    Command::new("delete", delete::run).counts_as(Counter::Delete).takes(&["deletes"]).retryable(),
    Command::new("distinct", distinct::run).in_transactions(),
    Command::new("drop", collections::drop),
    Command::refused("dropAllRolesFromDatabase", NO_USERS),
    Command::refused("dropAllUsersFromDatabase", NO_USERS),
    Command::new("dropDatabase", databases::drop),
    Command::new("dropIndexes", indexes::drop).also(&["deleteIndexes"]),
    Command::refused("dropRole", NO_USERS),
    Command::refused("dropUser", NO_USERS),
    Command::new("endSessions", sessions::end),
    Command::new("explain", explain::run),
    Command::new("find", find::run).counts_as(Counter::Query).in_transactions(),
    Command::new("findAndModify", find_and_modify::run).also(&["findandmodify"]).retryable(),
    Command::new("frondBlame", history::blame).also(&["doltBlame", "dumboBlame"]),
    Command::new("frondBranch", history::branch).also(&["doltBranch", "dumboBranch"]),
    Command::new("frondCherryPick", pick::cherry_pick).also(&["doltCherryPick", "dumboCherryPick"]),
    Command::new("frondClock", clock::run).on_admin(),
    Command::new("frondClone", remote::clone).also(&["doltClone", "dumboClone"]),
    Command::new("frondCommit", history::commit).also(&["doltCommit", "dumboCommit"]),
    Command::new("frondConflicts", merge::conflicts).also(&["doltConflicts", "dumboConflicts"]),
    Command::new("frondDiff", status::diff).also(&["doltDiff", "dumboDiff"]),
    Command::new("frondErase", erase::run),
    Command::new("frondFetch", remote::fetch).also(&["doltFetch", "dumboFetch"]),
    Command::new("frondGc", gc::run).on_admin(),
    Command::new("frondHistory", history::document_history).also(&["doltHistory", "dumboHistory"]),
    Command::new("frondLog", history::log).also(&["doltLog", "dumboLog"]),
    Command::new("frondMerge", merge::run).also(&["doltMerge", "dumboMerge"]),
    Command::new("frondMergeRules", merge::collection_rules),
    Command::new("frondPolicy", policy::run),
    Command::new("frondPull", remote::pull).also(&["doltPull", "dumboPull"]),
    Command::new("frondPush", remote::push).also(&["doltPush", "dumboPush"]),
    Command::new("frondRebase", pick::rebase).also(&["doltRebase", "dumboRebase"]),
    Command::new("frondReflog", reflog::run).also(&["doltReflog", "dumboReflog"]),
    Command::new("frondRemote", remote::remotes).also(&["doltRemote", "dumboRemote"]),
    Command::new("frondReset", history::reset).also(&["doltReset", "dumboReset"]),
    Command::new("frondResolveConflict", merge::resolve).also(&["doltResolveConflict", "dumboResolveConflict"]),
    Command::new("frondRestore", pick::restore).also(&["doltRestore", "dumboRestore"]),
    Command::new("frondRevert", pick::revert).also(&["doltRevert", "dumboRevert"]),
    Command::new("frondShow", show::run).also(&["doltShow", "dumboShow"]),
    Command::new("frondStatus", status::run).also(&["doltStatus", "dumboStatus"]),
    Command::new("frondTag", tag::run).also(&["doltTag", "dumboTag"]),
    Command::new("frondUndo", reflog::undo).also(&["doltUndo", "dumboUndo"]),
    Command::new("fsync", maintenance::fsync).on_admin(),
    Command::new("fsyncUnlock", maintenance::fsync_unlock).on_admin(),
    Command::refused("getClusterParameter", ONE_MEMBER).on_admin(),
    Command::new("getCmdLineOpts", parameters::get_cmd_line_opts).on_admin(),
    Command::new("getDefaultRWConcern", parameters::get_default_concerns).on_admin(),
    Command::new("getLog", diagnostics::get_log).on_admin(),
    Command::new("getMore", cursor::get_more).counts_as(Counter::GetMore).in_transactions(),
    Command::new("getParameter", parameters::get).on_admin(),
    Command::refused("grantPrivilegesToRole", NO_USERS),
    Command::refused("grantRolesToRole", NO_USERS),
    Command::refused("grantRolesToUser", NO_USERS),
    Command::new("hello", handshake::hello),
    Command::new("hostInfo", diagnostics::host_info).also(&["hostinfo"]).on_admin(),
    Command::new("insert", insert::run).counts_as(Counter::Insert).takes(&["documents"]).retryable(),
    Command::refused("invalidateUserCache", NO_USERS),
    Command::new("isMaster", handshake::is_master).also(&["ismaster"]),
    Command::new("killAllSessions", sessions::kill_all),
    Command::refused("killAllSessionsByPattern", "there are no users: use killAllSessions"),
    Command::new("killCursors", cursor::kill).in_transactions(),
    Command::new("killOp", operation::kill_op).on_admin(),
    Command::new("killSessions", sessions::kill),
    Command::new("listCollections", catalog::list_collections),
    Command::new("listCommands", diagnostics::list_commands),
    Command::new("listDatabases", databases::list).on_admin(),
    Command::new("listIndexes", catalog::list_indexes),
    Command::refused("lockInfo", "readers and writers take no locks").on_admin(),
    Command::new("logRotate", diagnostics::log_rotate).on_admin(),
    Command::new("logout", handshake::logout),
    Command::refused("mapReduce", "use aggregate").also(&["mapreduce"]),
    Command::new("ping", handshake::ping),
    Command::new("planCacheClear", plan_cache::clear),
    Command::new("planCacheClearFilters", plan_cache::clear),
    Command::new("planCacheListFilters", plan_cache::list_filters),
    Command::refused("planCacheSetFilter", "give a hint, or hide an index"),
    Command::new("profile", parameters::profile),
    Command::new("reIndex", maintenance::re_index),
    Command::new("refreshSessions", sessions::refresh),
    Command::refused("removeQuerySettings", "give a hint, or hide an index").on_admin(),
    Command::new("renameCollection", collections::rename).on_admin(),
    Command::refused("replSetAbortPrimaryCatchUp", ONE_MEMBER).on_admin(),
    Command::refused("replSetFreeze", ONE_MEMBER).on_admin(),
    Command::new("replSetGetConfig", replica_set::config).on_admin(),
    Command::new("replSetGetStatus", replica_set::status).on_admin(),
    Command::new("replSetInitiate", replica_set::initiate).on_admin(),
    Command::refused("replSetMaintenance", ONE_MEMBER).on_admin(),
    Command::refused("replSetReconfig", ONE_MEMBER).on_admin(),
    Command::refused("replSetResizeOplog", ONE_MEMBER).on_admin(),
    Command::refused("replSetStepDown", ONE_MEMBER).on_admin(),
    Command::refused("replSetSyncFrom", ONE_MEMBER).on_admin(),
    Command::refused("revokePrivilegesFromRole", NO_USERS),
    Command::refused("revokeRolesFromRole", NO_USERS),
    Command::refused("revokeRolesFromUser", NO_USERS),
    Command::new("rolesInfo", users::roles),
    Command::new("rotateCertificates", certificates::rotate).on_admin(),
    Command::refused("saslContinue", NO_USERS),
    Command::refused("saslStart", NO_USERS),
    Command::new("serverStatus", diagnostics::server_status),
    Command::refused("setClusterParameter", ONE_MEMBER).on_admin(),
    Command::refused("setDefaultRWConcern", "name the concerns in the client").on_admin(),
    Command::refused("setFeatureCompatibilityVersion", "there is one version").on_admin(),
    Command::refused("setIndexCommitQuorum", ONE_MEMBER),
    Command::new("setParameter", parameters::set).on_admin(),
    Command::refused("setQuerySettings", "give a hint, or hide an index").on_admin(),
    Command::refused("setUserWriteBlockMode", NO_USERS).on_admin(),
    Command::new("shutdown", shutdown::run).on_admin(),
    Command::new("startSession", sessions::start),
    Command::refused("top", "usage is not counted by collection").on_admin(),
    Command::new("update", update::run).counts_as(Counter::Update).takes(&["updates"]).retryable(),
    Command::refused("updateRole", NO_USERS),
    Command::refused("updateUser", NO_USERS),
    Command::new("usersInfo", users::users),
    Command::new("validate", validate::run),
    Command::refused("validateDBMetadata", "use validate"),
    Command::new("whatsmyuri", handshake::whatsmyuri),
];

/// Commands of MongoDB's stable API, version 1: what `apiStrict` lets through.
const STABLE_API: &[&str] = &[
    "abortTransaction",
    "aggregate",
    "bulkWrite",
    "collMod",
    "commitTransaction",
    "count",
    "create",
    "createIndexes",
    "delete",
    "drop",
    "dropDatabase",
    "dropIndexes",
    "endSessions",
    "explain",
    "find",
    "findAndModify",
    "getMore",
    "hello",
    "insert",
    "killCursors",
    "listCollections",
    "listDatabases",
    "listIndexes",
    "ping",
    "refreshSessions",
    "update",
];

/// The command that a client calls `name`.
pub fn find(name: &str) -> Option<&'static Command> {
    static BY_NAME: OnceLock<HashMap<&'static str, &'static Command>> = OnceLock::new();
    let by_name = BY_NAME.get_or_init(|| {
        let names = COMMANDS.iter().map(|command| (command.name, command));
        let aliases = COMMANDS
            .iter()
            .flat_map(|command| command.aliases.iter().map(move |alias| (*alias, command)));
        names.chain(aliases).collect()
    });
    by_name.get(name).copied()
}

/// Whether a command belongs to MongoDB's stable API.
pub fn is_in_stable_api(command: &Command) -> bool {
    STABLE_API.binary_search(&command.name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_names_are_unique() {
        let names: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        assert_eq!(names, sorted);
        assert!(STABLE_API.is_sorted());
        let mut all: Vec<&str> = names.clone();
        all.extend(COMMANDS.iter().flat_map(|command| command.aliases));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        for name in all {
            assert!(find(name).is_some(), "{name}");
        }
        assert!(find("Ping").is_none());
    }
}
