//! The roles that are always there, by MongoDB's names and with what MongoDB lets them do. What
//! Frond adds, versions of data, is distributed so:
//!
//! - who reads a database reads all its versions: `read` has `readVersions`;
//! - who writes it makes versions: `readWrite` commits, tags, merges;
//! - who administers it moves branches: `dbAdmin` makes, deletes, resets and protects them, and
//!   sets policies;
//! - who owns it may erase: `dbOwner`;
//! - what reaches other machines, or all databases, is the cluster's: `clusterAdmin`.

use super::Action::*;
use super::{Action, EXTERNAL, Privilege, Resource, RoleName};

const READ: &[Action] = &[
    ChangeStream,
    CollStats,
    DbHash,
    DbStats,
    Find,
    KillCursors,
    ListCollections,
    ListIndexes,
    PlanCacheRead,
    ReadVersions,
];

const WRITE: &[Action] = &[
    Commit,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    DropCollection,
    DropIndex,
    Insert,
    Merge,
    Remove,
    RenameCollectionSameDB,
    Tag,
    Update,
];

const DB_ADMIN: &[Action] = &[
    BypassDocumentValidation,
    CollMod,
    CollStats,
    Compact,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    DbStats,
    DropCollection,
    DropDatabase,
    DropIndex,
    EnableProfiler,
    ListCollections,
    ListIndexes,
    ManageBranches,
    PlanCacheIndexFilter,
    PlanCacheRead,
    PlanCacheWrite,
    ReIndex,
    RenameCollectionSameDB,
    ResetBranch,
    SetPolicy,
    StorageDetails,
    Validate,
];

/// What `dbAdmin` may do with `system.profile`.
const PROFILE_ADMIN: &[Action] = &[
    ChangeStream,
    CollStats,
    ConvertToCapped,
    CreateCollection,
    DbHash,
    DbStats,
    DropCollection,
    Find,
    KillCursors,
    ListCollections,
    ListIndexes,
    PlanCacheRead,
];

const USER_ADMIN: &[Action] = &[
    ChangeCustomData,
    ChangePassword,
    CreateRole,
    CreateUser,
    DropRole,
    DropUser,
    GrantRole,
    RevokeRole,
    SetAuthenticationRestriction,
    ViewRole,
    ViewUser,
];

const CLUSTER_MONITOR: &[Action] = &[
    CheckFreeMonitoringStatus,
    ConnPoolStats,
    GetClusterParameter,
    GetCmdLineOpts,
    GetDefaultRWConcern,
    GetLog,
    GetParameter,
    GetShardMap,
    HostInfo,
    Inprog,
    ListDatabases,
    ListSessions,
    ListShards,
    Netstat,
    ReplSetGetConfig,
    ReplSetGetStatus,
    ServerStatus,
    SetFreeMonitoring,
    ShardingState,
    Top,
];

const MONITOR_DATABASES: &[Action] =
    &[CollStats, DbStats, GetDatabaseVersion, GetShardVersion, IndexStats, UseUUID];

const CLUSTER_MANAGER: &[Action] = &[
    AddShard,
    AppendOplogNote,
    ApplicationMessage,
    AuthSchemaUpgrade,
    CleanupOrphaned,
    FlushRouterConfig,
    GetClusterParameter,
    GetDefaultRWConcern,
    ListSessions,
    ListShards,
    RemoveShard,
    ReplSetConfigure,
    ReplSetGetConfig,
    ReplSetGetStatus,
    ReplSetResizeOplog,
    ReplSetStateChange,
    Resync,
    SetClusterParameter,
    SetDefaultRWConcern,
    SetFeatureCompatibilityVersion,
    SetFreeMonitoring,
];

const MANAGE_DATABASES: &[Action] = &[
    ClearJumboFlag,
    EnableSharding,
    MoveChunk,
    RefineCollectionShardKey,
    ReshardCollection,
    SplitChunk,
    SplitVector,
];

const HOST_MANAGER: &[Action] = &[
    ApplicationMessage,
    CloseAllDatabases,
    ConnPoolSync,
    DropConnections,
    FlushRouterConfig,
    Fsync,
    GetDefaultRWConcern,
    InvalidateUserCache,
    KillAnyCursor,
    KillAnySession,
    Killop,
    LogRotate,
    ReplSetResizeOplog,
    Resync,
    RotateCertificates,
    SetDefaultRWConcern,
    SetParameter,
    SetUserWriteBlockMode,
    Shutdown,
    Touch,
    Unlock,
];

/// What `clusterAdmin` may do beside what it has of other roles.
const CLUSTER_ADMIN: &[Action] = &[CollectGarbage, QuerySettings, SetClock, UseRemotes];

const RESTORE_DATABASES: &[Action] = &[
    BypassDocumentValidation,
    CollMod,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    DropCollection,
    Insert,
];

/// Names of collections that tell of users.
const SYSTEM_USERS: [&str; 3] = ["system.roles", "system.users", "system.version"];

/// Roles of every database.
pub const OF_DATABASES: &[&str] = &["dbAdmin", "dbOwner", "read", "readWrite", "userAdmin"];

/// Roles of `admin` alone.
pub const OF_ADMIN: &[&str] = &[
    "backup",
    "clusterAdmin",
    "clusterManager",
    "clusterMonitor",
    "dbAdminAnyDatabase",
    "hostManager",
    "readAnyDatabase",
    "readWriteAnyDatabase",
    "restore",
    "root",
    "userAdminAnyDatabase",
];

/// The names of the built-in roles of a database; `$external` holds no data, and has none.
pub fn names(database: &str) -> impl Iterator<Item = &'static str> {
    let of_database = if database == EXTERNAL { &[] } else { OF_DATABASES };
    let of_admin = if database == "admin" { OF_ADMIN } else { &[] };
    of_database.iter().chain(of_admin).copied()
}

/// Whether a role is built in.
pub fn is_builtin(role: &RoleName) -> bool {
    names(&role.database).any(|name| name == role.role)
}

/// What a built-in role lets a user do; `None` if it is none.
pub fn privileges(role: &RoleName) -> Option<Vec<Privilege>> {
    if !is_builtin(role) {
        return None;
    }
    let mut privileges = Vec::new();
    add_role(&mut privileges, &role.role, &role.database);
    Some(privileges)
}

/// Adds what a role lets a user do. The roles for all databases are those of one, for the database
/// without a name.
fn add_role(privileges: &mut Vec<Privilege>, role: &str, database: &str) {
    if let Some(of_one) = role.strip_suffix("AnyDatabase") {
        add_role(privileges, of_one, "");
        add(privileges, Resource::Cluster, &[ListDatabases]);
        if of_one == "userAdmin" {
            add(privileges, Resource::Cluster, &[AuthSchemaUpgrade, InvalidateUserCache]);
            for name in SYSTEM_USERS {
                let resource = Resource::namespace("admin", name);
                add(privileges, resource, &[CollStats, DbHash, DbStats, Find, ListIndexes]);
            }
        }
        return;
    }
    let all = || Resource::namespace(database, "");
    match role {
        "read" => add(privileges, all(), READ),
        "readWrite" => {
            add_role(privileges, "read", database);
            add(privileges, all(), WRITE);
        }
        "dbAdmin" => {
            add(privileges, all(), DB_ADMIN);
            add(privileges, Resource::namespace(database, "system.profile"), PROFILE_ADMIN);
        }
        "userAdmin" => add(privileges, all(), USER_ADMIN),
        "dbOwner" => {
            for part in ["readWrite", "dbAdmin", "userAdmin"] {
                add_role(privileges, part, database);
            }
            add(privileges, all(), &[Erase]);
        }
        _ => add_cluster_role(privileges, role, database),
    }
}

/// Adds what a role lets a user do that is about all databases.
fn add_cluster_role(privileges: &mut Vec<Privilege>, role: &str, database: &str) {
    match role {
        "clusterMonitor" => {
            add(privileges, Resource::Cluster, CLUSTER_MONITOR);
            add(privileges, Resource::namespace("", ""), MONITOR_DATABASES);
            add(privileges, Resource::namespace("", "system.profile"), &[Find]);
            for local in ["config", "local"] {
                add(privileges, Resource::namespace(local, ""), MONITOR_DATABASES);
                add(privileges, Resource::namespace(local, ""), READ);
            }
        }
        "clusterManager" => {
            add(privileges, Resource::Cluster, CLUSTER_MANAGER);
            add(privileges, Resource::namespace("", ""), MANAGE_DATABASES);
            // By what routers know which line leads which database.
            for table in ["lines", "databases"] {
                add(privileges, Resource::namespace("config", table), READ);
                add(privileges, Resource::namespace("config", table), WRITE);
            }
        }
        "hostManager" => {
            add(privileges, Resource::Cluster, HOST_MANAGER);
            add(privileges, Resource::namespace("", ""), &[KillCursors, KillAnyCursor]);
        }
        "clusterAdmin" => {
            for part in ["clusterMonitor", "clusterManager", "hostManager"] {
                add_role(privileges, part, database);
            }
            add(privileges, Resource::Cluster, CLUSTER_ADMIN);
            add(privileges, Resource::namespace("", ""), &[DropDatabase]);
        }
        "backup" => add_backup(privileges),
        "restore" => {
            add(privileges, Resource::Cluster, &[GetParameter]);
            add(privileges, all_databases(), RESTORE_DATABASES);
            add(privileges, all_databases(), USER_ADMIN);
            add(privileges, all_databases(), &[ListCollections, ListIndexes, CollStats]);
            // The last two are those in which mongorestore brings users and roles.
            for name in SYSTEM_USERS.into_iter().chain(["tempusers", "temproles"]) {
                add(privileges, Resource::namespace("admin", name), &[Find, ListIndexes]);
            }
        }
        "root" => {
            let any = ["readWriteAnyDatabase", "dbAdminAnyDatabase", "userAdminAnyDatabase"];
            for part in any.into_iter().chain(["clusterAdmin", "backup", "restore"]) {
                add_role(privileges, part, database);
            }
            add(privileges, all_databases(), &[Erase, Validate]);
        }
        _ => {}
    }
}

fn add_backup(privileges: &mut Vec<Privilege>) {
    // `frond backup --uri` asks by which options it finds the server's remotes.
    let cluster = &[AppendOplogNote, GetCmdLineOpts, GetParameter, ListDatabases, ServerStatus];
    add(privileges, Resource::Cluster, cluster);
    let read = &[CollStats, DbStats, Find, ListCollections, ListIndexes, ReadVersions];
    add(privileges, all_databases(), read);
    for local in ["config", "local"] {
        add(privileges, Resource::namespace(local, ""), read);
    }
    for name in SYSTEM_USERS.into_iter().chain(["system.profile", "system.views"]) {
        add(privileges, Resource::namespace("", name), &[Find, ListIndexes]);
    }
}

fn all_databases() -> Resource {
    Resource::namespace("", "")
}

fn add(privileges: &mut Vec<Privilege>, resource: Resource, actions: &[Action]) {
    super::privilege::add(privileges, Privilege::new(resource, actions));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_role_has_privileges_where_it_belongs() {
        for database in ["admin", "shop"] {
            for role in names(database) {
                let name = RoleName { role: role.to_owned(), database: database.to_owned() };
                assert!(!privileges(&name).expect("built in").is_empty(), "{name}");
            }
        }
        let elsewhere = RoleName { role: "root".to_owned(), database: "shop".to_owned() };
        assert_eq!(privileges(&elsewhere), None);
        assert!(OF_ADMIN.is_sorted() && OF_DATABASES.is_sorted());
    }
}
