//! The roles that are always there: MongoDB's, each with what MongoDB 8.0 lets it do, action by
//! action ([`ROLES`]), and what Frond adds to them ([`ADDED`]), versions of data:
//!
//! - a user who reads a database reads all its versions: `read` has `readVersions`;
//! - a user who writes it makes versions: `readWrite` commits, tags, merges;
//! - a user who administers it moves branches: `dbAdmin` makes, deletes, resets and protects them,
//!   and sets policies;
//! - a user who owns it may erase: `dbOwner`;
//! - what reaches other machines, or all databases, is the cluster's: `clusterAdmin`.
//!
//! MongoDB names the buckets of time series apart; here they are collections like others
//! ([`super::Grants`]).

mod actions;

use self::actions::*;
use super::Action::*;
use super::{Action, EXTERNAL, Privilege, Resource, RoleName};

/// The things on which a role lets a user do something.
#[derive(Clone, Copy)]
enum On {
    /// Everything.
    Any,
    /// The server.
    Cluster,
    /// All databases but `local` and `config`, and all their collections but `system.*`.
    Normal,
    /// The role's own database.
    Own,
    /// A collection of the role's own database.
    OwnCollection(&'static str),
    /// A database.
    Database(&'static str),
    /// A collection of every database.
    Collection(&'static str),
    /// A collection of a database.
    Exact(&'static str, &'static str),
}

use On::{Any, Cluster, Collection, Database, Exact, Normal, Own, OwnCollection};

/// A role.
struct Builtin {
    name: &'static str,
    /// Whether it is one of `admin` alone; others are of every database.
    is_of_admin: bool,
    /// The roles that it includes: of its own database, or of that which is named.
    included: &'static [(&'static str, Option<&'static str>)],
    privileges: &'static [(On, &'static [Action])],
}

const fn of_database(
    name: &'static str,
    privileges: &'static [(On, &'static [Action])],
) -> Builtin {
    Builtin { name, is_of_admin: false, included: &[], privileges }
}

const fn of_admin(name: &'static str, privileges: &'static [(On, &'static [Action])]) -> Builtin {
    Builtin { name, is_of_admin: true, included: &[], privileges }
}

impl Builtin {
    const fn with(self, included: &'static [(&'static str, Option<&'static str>)]) -> Builtin {
        Builtin { included, ..self }
    }
}

/// All of them, sorted.
const ROLES: &[Builtin] = &[
    of_admin(
        "backup",
        &[
            (Any, &[CollStats, ListCollections, ListIndexes, ListSearchIndexes]),
            (
                Cluster,
                &[
                    AppendOplogNote,
                    GetParameter,
                    ListDatabases,
                    ServerStatus,
                    SetUserWriteBlockMode,
                    UseUUID,
                ],
            ),
            (Normal, &[Find]),
            (Database("config"), &[Find]),
            (Database("local"), &[Find]),
            (Collection("system.js"), &[Find]),
            (Collection("system.profile"), &[Find]),
            (Collection("system.users"), &[Find]),
            (Exact("admin", "system.backup_users"), &[Find]),
            (Exact("admin", "system.roles"), &[Find]),
            (Exact("admin", "system.version"), &[Find]),
            (Exact("config", "settings"), &[Find, Insert, Update]),
        ],
    ),
    of_admin(
        "clusterAdmin",
        &[(Normal, &[DropDatabase]), (Any, &[ExportCollection, ImportCollection])],
    )
    .with(&[("clusterMonitor", None), ("hostManager", None), ("clusterManager", None)]),
    of_admin(
        "clusterManager",
        &[
            (Cluster, CLUSTER_MANAGER),
            (Any, &[DbCheck]),
            (Normal, MANAGE_SHARDS),
            (Database("config"), MANAGE_SHARDS),
            (Database("config"), CHANGE),
            (Database("local"), MANAGE_SHARDS),
            (Database("local"), CHANGE),
            (Exact("local", "system.healthlog"), READ),
            (Exact("local", "system.replset"), READ),
        ],
    )
    .with(&[("read", Some("config"))]),
    of_admin(
        "clusterMonitor",
        &[
            (Cluster, CLUSTER_MONITOR),
            (Normal, MONITOR),
            (Database("config"), MONITOR),
            (Database("local"), MONITOR),
            (Collection("system.profile"), &[Find]),
            (Exact("config", "system.sessions"), MONITOR),
            (Exact("local", "system.replset"), &[Find]),
        ],
    )
    .with(&[("read", Some("config")), ("read", Some("local"))]),
    of_database(
        "dbAdmin",
        &[
            (Own, DB_ADMIN),
            (OwnCollection("system.profile"), READ),
            (OwnCollection("system.profile"), PROFILE_ADMIN),
        ],
    ),
    of_admin(
        "dbAdminAnyDatabase",
        &[
            (Cluster, &[ApplyOps, ListDatabases]),
            (Normal, DB_ADMIN),
            (Collection("system.profile"), READ),
            (Collection("system.profile"), PROFILE_ADMIN),
        ],
    ),
    of_database("dbOwner", &[]).with(&[
        ("readWrite", None),
        ("dbAdmin", None),
        ("userAdmin", None),
    ]),
    of_admin("directShardOperations", &[(Cluster, &[IssueDirectShardOperations])]),
    of_database("enableSharding", &[(Normal, ENABLE_SHARDING)]),
    of_admin("hostManager", &[(Cluster, HOST_MANAGER), (Normal, &[KillCursors])]),
    of_database("read", &[(Own, READ), (OwnCollection("system.js"), READ)]),
    of_admin(
        "readAnyDatabase",
        &[(Cluster, &[ListDatabases]), (Normal, READ), (Collection("system.js"), READ)],
    ),
    of_database("readWrite", &[(Own, WRITE), (OwnCollection("system.js"), WRITE)])
        .with(&[("read", None)]),
    of_admin("readWriteAnyDatabase", &[(Normal, WRITE), (Collection("system.js"), WRITE)])
        .with(&[("readAnyDatabase", None)]),
    of_admin(
        "restore",
        &[
            (
                Cluster,
                &[
                    ApplyOps,
                    BypassWriteBlockingMode,
                    ForceUUID,
                    GetParameter,
                    SetUserWriteBlockMode,
                    UseUUID,
                ],
            ),
            (Any, &[ListCollections]),
            (Normal, RESTORE),
            (Normal, USER_ADMIN),
            (Database("config"), RESTORE),
            (Database("local"), RESTORE),
            (Collection("system.js"), RESTORE),
            (Collection("system.users"), RESTORE),
            (Collection("system.users"), &[Find, Remove, Update]),
            (Exact("admin", "system.backup_users"), RESTORE),
            (Exact("admin", "system.roles"), &[CreateIndex]),
            (Exact("admin", "system.version"), RESTORE),
            (Exact("admin", "system.version"), &[Find]),
            // The collections in which mongorestore brings users and roles.
            (Exact("admin", "temproles"), &[Find]),
            (Exact("admin", "tempusers"), &[Find]),
            (Exact("local", "system.replset"), RESTORE),
        ],
    ),
    of_admin(
        "root",
        &[
            (Any, &[Validate]),
            (Cluster, &[UseTenant]),
            (Exact("config", "system.change_collection"), &[Find, Insert, Remove, Update]),
            (Exact("config", "system.preimages"), &[Find, Remove]),
        ],
    )
    .with(&[
        ("clusterAdmin", None),
        ("userAdminAnyDatabase", None),
        ("dbAdminAnyDatabase", None),
        ("readWriteAnyDatabase", None),
        ("backup", None),
        ("restore", None),
        ("directShardOperations", None),
    ]),
    of_database("userAdmin", &[(Own, USER_ADMIN)]),
    of_admin(
        "userAdminAnyDatabase",
        &[
            (Cluster, &[AuthSchemaUpgrade, InvalidateUserCache, ListDatabases, ViewUser]),
            (Normal, USER_ADMIN),
            (Normal, &[ListCachedAndActiveUsers]),
            (Database("config"), USER_ADMIN),
            (Database("local"), USER_ADMIN),
            (Collection("system.users"), READ),
            (Exact("admin", "system.backup_users"), READ),
            (Exact("admin", "system.roles"), READ),
            (Exact("admin", "system.roles"), INDEXES),
            (Exact("admin", "system.users"), READ),
            (Exact("admin", "system.users"), INDEXES),
            (Exact("admin", "system.version"), READ),
        ],
    ),
];

/// The privileges that Frond adds to roles, to some more than once.
const ADDED: &[(&str, On, &[Action])] = &[
    ("backup", Normal, &[ReadVersions]),
    ("backup", Database("config"), &[ReadVersions]),
    ("backup", Database("local"), &[ReadVersions]),
    // `frond backup --uri` asks by which options it finds the server's remotes.
    ("backup", Cluster, &[GetCmdLineOpts]),
    ("clusterAdmin", Cluster, &[CollectGarbage, SetClock, UseRemotes]),
    ("dbAdmin", Own, MOVE_BRANCHES),
    ("dbAdminAnyDatabase", Normal, MOVE_BRANCHES),
    ("dbOwner", Own, &[Erase]),
    ("read", Own, &[ReadVersions]),
    ("readAnyDatabase", Normal, &[ReadVersions]),
    ("readWrite", Own, MAKE_VERSIONS),
    ("readWriteAnyDatabase", Normal, MAKE_VERSIONS),
    ("root", Normal, &[Erase]),
];

/// The names of the built-in roles of a database; `$external` holds no data, and has none.
pub fn names(database: &str) -> impl Iterator<Item = &'static str> {
    let (has_any, is_admin) = (database != EXTERNAL, database == "admin");
    let roles = ROLES.iter().filter(move |role| has_any && (is_admin || !role.is_of_admin));
    roles.map(|role| role.name)
}

/// Whether a role is built in.
pub fn is_builtin(role: &RoleName) -> bool {
    names(&role.database).any(|name| name == role.role)
}

/// Returns the privileges of a built-in role; `None` if it is none.
pub fn privileges(role: &RoleName) -> Option<Vec<Privilege>> {
    if !is_builtin(role) {
        return None;
    }
    let mut privileges = Vec::new();
    add_role(&mut privileges, &role.role, &role.database);
    Some(privileges)
}

/// Adds what a role lets a user do, and what those do that it includes.
fn add_role(privileges: &mut Vec<Privilege>, name: &str, database: &str) {
    for role in ROLES.iter().filter(|role| role.name == name) {
        for (included, of) in role.included {
            add_role(privileges, included, of.unwrap_or(database));
        }
        for (on, actions) in role.privileges {
            super::privilege::add(privileges, Privilege::new(on.resource(database), actions));
        }
    }
    for (_, on, actions) in ADDED.iter().filter(|(role, ..)| *role == name) {
        super::privilege::add(privileges, Privilege::new(on.resource(database), actions));
    }
}

impl On {
    /// The resource, for a role of `own`.
    fn resource(self, own: &str) -> Resource {
        match self {
            Any => Resource::Any,
            Cluster => Resource::Cluster,
            Normal => Resource::namespace("", ""),
            Own => Resource::namespace(own, ""),
            OwnCollection(collection) => Resource::namespace(own, collection),
            Database(database) => Resource::namespace(database, ""),
            Collection(collection) => Resource::namespace("", collection),
            Exact(database, collection) => Resource::namespace(database, collection),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    /// The privileges of each role, which people have compared with MongoDB's own definition.
    const EXPECTED: &str = include_str!("builtin_roles/expected.txt");

    #[test]
    fn every_builtin_role_has_the_actions_that_the_table_lists() {
        let mut found = String::new();
        for role in ROLES {
            let database = if role.is_of_admin { "admin" } else { "shop" };
            let name = RoleName { role: role.name.to_owned(), database: database.to_owned() };
            let mut all = privileges(&name).expect("built in");
            all.sort();
            for Privilege { resource, actions } in all {
                let on = match resource {
                    Resource::Any => "anything".to_owned(),
                    Resource::Cluster => "cluster".to_owned(),
                    Resource::Namespace { database, collection, .. } => {
                        let name =
                            |name: String| if name.is_empty() { "*".to_owned() } else { name };
                        format!("{}.{}", name(database), name(collection))
                    }
                };
                let actions: Vec<&str> = actions.iter().map(Action::name).collect();
                let _ = writeln!(found, "{} {on}: {}", role.name, actions.join(" "));
            }
        }
        assert_eq!(found, EXPECTED, "found:\n{found}");
    }

    #[test]
    fn roles_are_where_they_belong() {
        assert!(ROLES.is_sorted_by(|left, right| left.name < right.name));
        let elsewhere = RoleName { role: "root".to_owned(), database: "shop".to_owned() };
        assert_eq!(privileges(&elsewhere), None);
        assert_eq!(names(EXTERNAL).count(), 0);
        let of_shop: Vec<&str> = names("shop").collect();
        assert_eq!(
            of_shop,
            ["dbAdmin", "dbOwner", "enableSharding", "read", "readWrite", "userAdmin"]
        );
    }
}
