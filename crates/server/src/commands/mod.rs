//! The commands: one sorted table, supported or not, and one file a command or a few relatives.
//!
//! A handler reads its fields (and refuses those that it doesn't know), calls the database, and
//! returns the answer without `ok`. docs/commands.md describes each.

pub(crate) mod aggregate;
mod api_versions;
mod bulk_write;
mod catalog;
mod certificate_login;
mod certificates;
mod change_stream;
mod clock;
mod cluster_parameters;
mod collections;
pub(crate) mod count;
mod create;
mod cursor;
mod databases;
mod db_hash;
mod delete;
mod diagnostic_data;
mod diagnostics;
mod distinct;
mod erase;
pub(crate) mod explain;
mod fail_point;
pub(crate) mod find;
mod find_and_modify;
mod gc;
mod hand_over;
pub mod handshake;
mod help;
mod history;
mod indexes;
mod insert;
pub mod latches;
mod latencies;
pub mod login;
mod maintenance;
mod map_reduce;
mod merge;
mod merge_accounts;
mod nested_sources;
mod operation;
mod parameters;
mod pick;
mod plan_cache;
mod policy;
mod reflog;
mod remote;
mod replica_set;
mod reply;
mod roles;
mod server_status;
mod session_list;
mod sessions;
mod set_configuration;
pub(crate) mod set_initiation;
mod show;
mod shutdown;
pub mod sources;
mod stats;
mod status;
pub mod suggestion;
mod tag;
mod transaction;
mod update;
mod users;
mod validate;
mod write;

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::RandomState;

pub use fail_point::NAME as CONFIGURE_FAIL_POINT;
pub use server_status::FAULT_ADVICE;

use crate::access::Action::*;
use crate::authorization::RequiredRights::{self, *};
use crate::authorization::{pipelines, users as rights_of_users, versions, writes};
use crate::request::{Answer, Request};
use crate::shared::Counter;

/// The way a command is answered: by a handler, or by a refusal.
#[derive(Clone, Copy)]
pub enum Run {
    /// By this function.
    Handler(fn(&Request<'_>) -> Answer),
    /// With `CommandNotSupported` and this reason.
    Refused(&'static str),
    /// As by a MongoDB that has no search server: with `SearchNotEnabled`.
    NoSearch,
}

/// A command of the table.
#[derive(Clone, Copy)]
pub struct Command {
    /// Its name.
    pub name: &'static str,
    /// The rights that a client needs to run it.
    pub needs: RequiredRights,
    /// Other names that clients use.
    pub aliases: &'static [&'static str],
    /// The counter in which it is counted. Handlers of writes count for themselves, by document.
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
    /// Whether it is there only with `--enable-test-commands`.
    pub is_for_tests: bool,
    /// The way it is answered.
    pub run: Run,
}

impl Command {
    const fn new(
        name: &'static str,
        needs: RequiredRights,
        handler: fn(&Request<'_>) -> Answer,
    ) -> Command {
        Command::answered(name, needs, Run::Handler(handler))
    }

    const fn refused(name: &'static str, needs: RequiredRights, why: &'static str) -> Command {
        Command::answered(name, needs, Run::Refused(why))
    }

    const fn search(name: &'static str, needs: RequiredRights) -> Command {
        Command::answered(name, needs, Run::NoSearch)
    }

    const fn answered(name: &'static str, needs: RequiredRights, run: Run) -> Command {
        Command {
            name,
            needs,
            aliases: &[],
            counter: Counter::Command,
            admin_only: false,
            sequences: &[],
            retryable: false,
            in_transaction: false,
            ends_transaction: false,
            is_for_tests: false,
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

    const fn for_tests(self) -> Command {
        Command { is_for_tests: true, ..self }
    }

    const fn takes(self, sequences: &'static [&'static str]) -> Command {
        Command { sequences, ..self }
    }
}

/// The reason why commands of replica sets and clusters are refused.
const ONE_MEMBER: &str = "the replica set has one member, and there is no cluster";

/// All commands, by name.
#[rustfmt::skip]
pub static COMMANDS: &[Command] = &[
    Command::new("_mergeAuthzCollections", Found(rights_of_users::merge_accounts), merge_accounts::run).on_admin(),
    Command::new("abortTransaction", Login, transaction::abort).on_admin().ends_transactions(),
    Command::new("aggregate", Found(pipelines::aggregate), aggregate::run).in_transactions(),
    Command::refused("appendOplogNote", Cluster(&[AppendOplogNote]), ONE_MEMBER).on_admin(),
    Command::new("authenticate", Nothing, certificate_login::run),
    Command::new("buildInfo", Nothing, handshake::build_info).also(&["buildinfo"]),
    Command::new("bulkWrite", Found(bulk_write::needs), bulk_write::run).on_admin().takes(&["nsInfo", "ops"]).retryable(),
    Command::new("cloneCollectionAsCapped", Found(writes::clone_capped), create::clone),
    Command::new("collMod", Found(writes::coll_mod), create::modify),
    Command::new("collStats", Collection(&[CollStats]), stats::coll_stats).also(&["collstats"]),
    Command::new("commitTransaction", Login, transaction::commit).on_admin().ends_transactions(),
    Command::new("compact", Collection(&[Compact]), maintenance::compact),
    Command::new(fail_point::NAME, Cluster(&[SetParameter]), fail_point::configure).on_admin().for_tests(),
    Command::new("connPoolStats", Cluster(&[ConnPoolStats]), diagnostics::conn_pool_stats),
    Command::new("connectionStatus", Nothing, login::connection_status),
    Command::new("convertToCapped", Collection(&[ConvertToCapped]), create::convert),
    Command::new("count", Collection(&[Find]), count::run).counts_as(Counter::Command),
    Command::new("create", Found(writes::create), create::run).in_transactions(),
    Command::new("createIndexes", Collection(&[CreateIndex]), indexes::create).in_transactions(),
    Command::new("createRole", Found(rights_of_users::create_role), roles::create),
    Command::search("createSearchIndexes", Collection(&[CreateSearchIndexes])),
    Command::new("createUser", Found(rights_of_users::create_user), users::create),
    Command::new("currentOp", Found(operation::needs), operation::current_op).also(&["currentop"]).on_admin(),
    Command::new("dataSize", Found(writes::data_size), stats::data_size).also(&["datasize"]),
    Command::new("dbHash", Database(&[DbHash]), db_hash::run).also(&["dbhash"]),
    Command::new("dbStats", Database(&[DbStats]), stats::db_stats).also(&["dbstats"]),
    Command::new("delete", Collection(&[Remove]), delete::run).counts_as(Counter::Delete).takes(&["deletes"]).retryable(),
    Command::new("distinct", Collection(&[Find]), distinct::run).in_transactions(),
    Command::new("drop", Collection(&[DropCollection]), collections::drop),
    Command::new("dropAllRolesFromDatabase", Found(rights_of_users::drop_role), roles::drop_all),
    Command::new("dropAllUsersFromDatabase", Found(rights_of_users::drop_user), users::drop_all),
    Command::new("dropDatabase", Found(versions::drop_database), databases::drop),
    Command::new("dropIndexes", Collection(&[DropIndex]), indexes::drop).also(&["deleteIndexes"]),
    Command::new("dropRole", Found(rights_of_users::drop_role), roles::drop),
    Command::search("dropSearchIndex", Collection(&[DropSearchIndex])),
    Command::new("dropUser", Found(rights_of_users::drop_user), users::drop),
    Command::new("endSessions", Login, sessions::end),
    Command::new("explain", Found(explain::needs), explain::run),
    Command::new("find", Collection(&[Find]), find::run).counts_as(Counter::Query).in_transactions(),
    Command::new("findAndModify", Found(writes::find_and_modify), find_and_modify::run).also(&["findandmodify"]).retryable(),
    Command::new("frondBlame", Found(versions::reading), history::blame).also(&["doltBlame", "dumboBlame"]),
    Command::new("frondBranch", Found(versions::branch), history::branch).also(&["doltBranch", "dumboBranch"]),
    Command::new("frondCherryPick", Found(versions::merging), pick::cherry_pick).also(&["doltCherryPick", "dumboCherryPick"]),
    Command::new("frondClock", Cluster(&[SetClock]), clock::run).on_admin(),
    Command::new("frondClone", Found(versions::fetch), remote::clone).also(&["doltClone", "dumboClone"]),
    Command::new("frondCommit", Found(versions::commit), history::commit).also(&["doltCommit", "dumboCommit"]),
    Command::new("frondConflicts", Found(versions::reading), merge::conflicts).also(&["doltConflicts", "dumboConflicts"]),
    Command::new("frondDiff", Found(versions::reading), status::diff).also(&["doltDiff", "dumboDiff"]),
    Command::new("frondErase", Found(versions::erase), erase::run),
    Command::new("frondFetch", Found(versions::fetch), remote::fetch).also(&["doltFetch", "dumboFetch"]),
    Command::new("frondGc", Cluster(&[CollectGarbage]), gc::run).on_admin(),
    Command::new("frondHandOver", Found(versions::hand_over), hand_over::run).on_admin(),
    Command::new("frondHelp", Nothing, help::run),
    Command::new("frondHistory", Found(versions::reading), history::document_history).also(&["doltHistory", "dumboHistory"]),
    Command::new("frondLog", Found(versions::reading), history::log).also(&["doltLog", "dumboLog"]),
    Command::new("frondMerge", Found(versions::merge), merge::run).also(&["doltMerge", "dumboMerge"]),
    Command::new("frondMergeRules", Found(versions::merge_rules), merge::collection_rules),
    Command::new("frondPolicy", Found(versions::policy), policy::run),
    Command::new("frondPull", Found(versions::fetch), remote::pull).also(&["doltPull", "dumboPull"]),
    Command::new("frondPush", Found(versions::push), remote::push).also(&["doltPush", "dumboPush"]),
    Command::new("frondRebase", Found(versions::merging), pick::rebase).also(&["doltRebase", "dumboRebase"]),
    Command::new("frondReflog", Found(versions::reflog), reflog::run).also(&["doltReflog", "dumboReflog"]),
    Command::new("frondRemote", Found(versions::remotes), remote::remotes).also(&["doltRemote", "dumboRemote"]),
    Command::new("frondReset", Found(versions::reset), history::reset).also(&["doltReset", "dumboReset"]),
    Command::new("frondResolveConflict", Database(&[Merge]), merge::resolve).also(&["doltResolveConflict", "dumboResolveConflict"]),
    Command::new("frondRestore", Found(versions::restore), pick::restore).also(&["doltRestore", "dumboRestore"]),
    Command::new("frondRevert", Found(versions::merging), pick::revert).also(&["doltRevert", "dumboRevert"]),
    Command::new("frondShow", Found(versions::reading), show::run).also(&["doltShow", "dumboShow"]),
    Command::new("frondStatus", Database(&[Find]), status::run).also(&["doltStatus", "dumboStatus"]),
    Command::new("frondTag", Found(versions::tag), tag::run).also(&["doltTag", "dumboTag"]),
    Command::new("frondUndo", Found(versions::undo), reflog::undo).also(&["doltUndo", "dumboUndo"]),
    Command::new("fsync", Cluster(&[Fsync]), maintenance::fsync).on_admin(),
    Command::new("fsyncUnlock", Cluster(&[Unlock]), maintenance::fsync_unlock).on_admin(),
    Command::new("getClusterParameter", Cluster(&[GetClusterParameter]), cluster_parameters::get).on_admin(),
    Command::new("getCmdLineOpts", Cluster(&[GetCmdLineOpts]), parameters::get_cmd_line_opts).on_admin(),
    Command::new("getDefaultRWConcern", Cluster(&[GetDefaultRWConcern]), parameters::get_default_concerns).on_admin(),
    Command::new("getDiagnosticData", Cluster(&[ServerStatus, ReplSetGetStatus, ConnPoolStats]), diagnostic_data::run).on_admin(),
    Command::new("getLog", Cluster(&[GetLog]), diagnostics::get_log).on_admin(),
    Command::new("getMore", Login, cursor::get_more).counts_as(Counter::GetMore).in_transactions(),
    Command::new("getParameter", Cluster(&[GetParameter]), parameters::get).on_admin(),
    Command::new("grantPrivilegesToRole", Found(rights_of_users::grant_privileges), roles::grant_privileges),
    Command::new("grantRolesToRole", Found(rights_of_users::grant_roles), roles::grant_roles),
    Command::new("grantRolesToUser", Found(rights_of_users::grant_roles), users::grant_roles),
    Command::new("hello", Nothing, handshake::hello),
    Command::new("hostInfo", Cluster(&[HostInfo]), diagnostics::host_info).also(&["hostinfo"]),
    Command::new("insert", Found(writes::insert), insert::run).counts_as(Counter::Insert).takes(&["documents"]).retryable(),
    Command::new("invalidateUserCache", Cluster(&[InvalidateUserCache]), users::invalidate_cache),
    Command::new("isMaster", Nothing, handshake::is_master).also(&["ismaster"]),
    Command::new("killAllSessions", Found(writes::kill_all_sessions), sessions::kill_all),
    Command::refused("killAllSessionsByPattern", Found(writes::kill_all_sessions), "use killAllSessions, which takes users"),
    Command::new("killCursors", Login, cursor::kill).in_transactions(),
    Command::new("killOp", Login, operation::kill_op).on_admin(),
    Command::new("killSessions", Login, sessions::kill),
    Command::new("listCollections", Found(writes::list_collections), catalog::list_collections),
    Command::new("listCommands", Nothing, diagnostics::list_commands),
    Command::new("listDatabases", Found(writes::list_databases), databases::list).on_admin(),
    Command::new("listIndexes", Collection(&[ListIndexes]), catalog::list_indexes),
    Command::search("listSearchIndexes", Collection(&[ListSearchIndexes])),
    Command::refused("lockInfo", Cluster(&[ServerStatus]), "readers and writers take no locks").on_admin(),
    Command::new("logRotate", Cluster(&[LogRotate]), diagnostics::log_rotate).on_admin(),
    Command::new("logout", Nothing, login::log_out),
    Command::new("mapReduce", Found(pipelines::map_reduce), map_reduce::run).also(&["mapreduce"]),
    Command::new("ping", Nothing, handshake::ping),
    Command::new("planCacheClear", Collection(&[PlanCacheWrite]), plan_cache::clear),
    Command::new("planCacheClearFilters", Collection(&[PlanCacheIndexFilter]), plan_cache::clear_filters),
    Command::new("planCacheListFilters", Collection(&[PlanCacheIndexFilter]), plan_cache::list_filters),
    Command::new("planCacheSetFilter", Collection(&[PlanCacheIndexFilter]), plan_cache::set_filter),
    Command::new("profile", Found(writes::profile), parameters::profile),
    Command::new("reIndex", Collection(&[ReIndex]), maintenance::re_index),
    Command::new("refreshSessions", Login, sessions::refresh),
    Command::refused("removeQuerySettings", Cluster(&[QuerySettings]), "give a hint, or hide an index").on_admin(),
    Command::new("renameCollection", Found(writes::rename), collections::rename).on_admin(),
    Command::refused("replSetAbortPrimaryCatchUp", Cluster(&[ReplSetStateChange]), ONE_MEMBER).on_admin(),
    Command::refused("replSetFreeze", Cluster(&[ReplSetStateChange]), ONE_MEMBER).on_admin(),
    Command::new("replSetGetConfig", Cluster(&[ReplSetGetConfig]), set_configuration::config).on_admin(),
    Command::new("replSetGetStatus", Cluster(&[ReplSetGetStatus]), replica_set::status).on_admin(),
    Command::new("replSetInitiate", Cluster(&[ReplSetConfigure]), set_initiation::initiate).on_admin(),
    Command::refused("replSetMaintenance", Cluster(&[ReplSetStateChange]), ONE_MEMBER).on_admin(),
    Command::new("replSetReconfig", Cluster(&[ReplSetConfigure]), set_configuration::reconfigure).on_admin(),
    Command::refused("replSetResizeOplog", Cluster(&[ReplSetResizeOplog]), ONE_MEMBER).on_admin(),
    Command::new("replSetStepDown", Cluster(&[ReplSetStateChange]), replica_set::step_down).on_admin(),
    Command::refused("replSetSyncFrom", Cluster(&[ReplSetStateChange]), ONE_MEMBER).on_admin(),
    Command::new("revokePrivilegesFromRole", Found(rights_of_users::revoke_privileges), roles::revoke_privileges),
    Command::new("revokeRolesFromRole", Found(rights_of_users::revoke_roles), roles::revoke_roles),
    Command::new("revokeRolesFromUser", Found(rights_of_users::revoke_roles), users::revoke_roles),
    Command::new("rolesInfo", Found(rights_of_users::roles_info), roles::roles),
    Command::new("rotateCertificates", Cluster(&[RotateCertificates]), certificates::rotate).on_admin(),
    Command::new("saslContinue", Nothing, login::go_on),
    Command::new("saslStart", Nothing, login::start),
    Command::new("serverStatus", Cluster(&[ServerStatus]), server_status::run),
    Command::new("setClusterParameter", Cluster(&[SetClusterParameter]), cluster_parameters::set).on_admin(),
    Command::new("setDefaultRWConcern", Cluster(&[SetDefaultRWConcern]), parameters::set_default_concerns).on_admin(),
    Command::refused("setFeatureCompatibilityVersion", Cluster(&[SetFeatureCompatibilityVersion]), "there is one version").on_admin(),
    Command::refused("setIndexCommitQuorum", Collection(&[CreateIndex]), ONE_MEMBER),
    Command::new("setParameter", Cluster(&[SetParameter]), parameters::set).on_admin(),
    Command::refused("setQuerySettings", Cluster(&[QuerySettings]), "give a hint, or hide an index").on_admin(),
    Command::refused("setUserWriteBlockMode", Cluster(&[SetUserWriteBlockMode]), "close branches instead: frondBranch").on_admin(),
    Command::new("shutdown", Cluster(&[Shutdown]), shutdown::run).on_admin(),
    Command::new("startSession", Login, sessions::start),
    Command::new("testDeprecation", Nothing, api_versions::run).for_tests(),
    Command::new("testDeprecationInVersion2", Login, api_versions::run).for_tests(),
    Command::new("testRemoval", Login, api_versions::run).for_tests(),
    Command::new("testVersion2", Login, api_versions::run).for_tests(),
    Command::new("testVersions1And2", Login, api_versions::run).for_tests(),
    Command::new("top", Cluster(&[Top]), latencies::top).on_admin(),
    Command::new("update", Found(writes::update), update::run).counts_as(Counter::Update).takes(&["updates"]).retryable(),
    Command::new("updateRole", Found(rights_of_users::update_role), roles::update),
    Command::search("updateSearchIndex", Collection(&[UpdateSearchIndex])),
    Command::new("updateUser", Found(rights_of_users::update_user), users::update),
    Command::new("usersInfo", Found(rights_of_users::users_info), users::users),
    Command::new("validate", Collection(&[Validate]), validate::run),
    Command::refused("validateDBMetadata", Database(&[Validate]), "use validate"),
    Command::new("whatsmyuri", Nothing, handshake::whatsmyuri),
];

/// The names of the commands that are there.
pub fn names() -> impl Iterator<Item = &'static str> {
    let is_there =
        |command: &&Command| matches!(command.run, Run::Handler(_)) && !command.is_for_tests;
    COMMANDS.iter().filter(is_there).map(|command| command.name)
}

/// The command that a client calls `name`.
pub fn find(name: &str) -> Option<&'static Command> {
    static BY_NAME: LazyLock<HashMap<&str, &Command, RandomState>> = LazyLock::new(|| {
        let names = COMMANDS.iter().map(|command| (command.name, command));
        let aliases = COMMANDS
            .iter()
            .flat_map(|command| command.aliases.iter().map(move |alias| (*alias, command)));
        names.chain(aliases).collect()
    });
    BY_NAME.get(name).copied()
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
