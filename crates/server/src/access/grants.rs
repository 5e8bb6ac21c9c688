//! The rights of a user, as they follow from all roles together.

use frond_db::name;

use super::{Action, Privilege, Resource};

/// Databases that roles for all databases leave out: the server keeps its own things there.
const NOT_NORMAL: [&str; 2] = ["config", "local"];

/// The part of a database's history that an action is done on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Branch<'a> {
    /// A branch, or what is named by it: `main~2` is `main`'s.
    Named(&'a str),
    /// All of them: only a user who isn't limited to some may do it.
    All,
    /// A version that is named by no branch of the database: an id, a tag, where a remote's branch
    /// was. It may be any branch's, so it needs `readVersions` too.
    Version,
}

/// The target of an action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target<'a> {
    /// The server.
    Cluster,
    /// A database, or a collection of it.
    Namespace {
        /// The database, without a version.
        database: &'a str,
        /// `None`: the database itself.
        collection: Option<&'a str>,
        /// The part of its history.
        branch: Branch<'a>,
    },
}

/// The rights of a user.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Grants {
    privileges: Vec<Privilege>,
    /// Whether a privilege is for some branches only.
    limits_branches: bool,
}

impl Grants {
    /// Returns the rights that these privileges give together.
    pub fn new(privileges: Vec<Privilege>) -> Grants {
        let is_limited = |privilege: &Privilege| {
            matches!(privilege.resource, Resource::Namespace { branch: Some(_), .. })
        };
        Grants { limits_branches: privileges.iter().any(is_limited), privileges }
    }

    /// The privileges.
    pub fn privileges(&self) -> &[Privilege] {
        &self.privileges
    }

    /// Whether it matters on which branch something is done.
    pub fn limits_branches(&self) -> bool {
        self.limits_branches
    }

    /// Whether `action` may be done on `target`.
    pub fn allow(&self, action: Action, target: Target<'_>) -> bool {
        let allows = |privilege: &&Privilege| privilege.actions.allows(action);
        let mut allowing = self.privileges.iter().filter(allows);
        match target {
            Target::Cluster => allowing
                .any(|privilege| matches!(privilege.resource, Resource::Cluster | Resource::Any)),
            Target::Namespace { database, collection, branch } => {
                let is_allowed =
                    allowing.any(|privilege| covers(privilege, database, collection, branch));
                is_allowed
                    && (branch != Branch::Version
                        || action == Action::ReadVersions
                        || self.allow_all_versions(database))
            }
        }
    }

    /// Whether `action` may be done on some collection of `database`, or on the database itself:
    /// then its name is no secret.
    pub fn allow_somewhere(&self, action: Action, database: &str) -> bool {
        let is_normal = !NOT_NORMAL.contains(&database);
        self.privileges.iter().any(|privilege| {
            privilege.actions.allows(action)
                && match &privilege.resource {
                    Resource::Any => true,
                    Resource::Cluster => false,
                    Resource::Namespace { database: of, .. } if of.is_empty() => is_normal,
                    Resource::Namespace { database: of, .. } => of == database,
                }
        })
    }

    /// Whether `action` may be done on every collection of every database, whatever comes.
    pub fn allow_everywhere(&self, action: Action) -> bool {
        self.privileges.iter().any(|privilege| {
            let is_all = match &privilege.resource {
                Resource::Any => true,
                Resource::Cluster => false,
                Resource::Namespace { database, collection, branch } => {
                    database.is_empty() && collection.is_empty() && branch.is_none()
                }
            };
            is_all && privilege.actions.allows(action)
        })
    }

    fn allow_all_versions(&self, database: &str) -> bool {
        self.privileges.iter().any(|privilege| {
            privilege.actions.allows(Action::ReadVersions)
                && covers(privilege, database, None, Branch::All)
        })
    }
}

/// Checks whether a privilege's resource covers a namespace.
fn covers(
    privilege: &Privilege,
    in_database: &str,
    in_collection: Option<&str>,
    in_branch: Branch<'_>,
) -> bool {
    let (database, collection, branch) = match &privilege.resource {
        Resource::Any => return true,
        Resource::Cluster => return false,
        Resource::Namespace { database, collection, branch } => (database, collection, branch),
    };
    let covers_branch = match (branch, in_branch) {
        // Other rights that a version needs are checked separately.
        (None, _) | (Some(_), Branch::Version) => true,
        (Some(_), Branch::All) => false,
        (Some(pattern), Branch::Named(name)) => pattern.matches(name),
    };
    // Buckets are the points of a collection that is none of the system's.
    let is_system = in_collection
        .is_some_and(|name| name.starts_with("system.") && name::of_buckets(name).is_none());
    let covers_name = match (database.as_str(), collection.as_str()) {
        ("", "") => !is_system && !NOT_NORMAL.contains(&in_database),
        (database, "") => !is_system && database == in_database,
        ("", collection) => in_collection == Some(collection),
        (database, collection) => database == in_database && in_collection == Some(collection),
    };
    covers_branch && covers_name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{BranchPattern, RoleName, builtin_roles};

    fn of_role(role: &str, database: &str) -> Grants {
        let name = RoleName { role: role.to_owned(), database: database.to_owned() };
        Grants::new(builtin_roles::privileges(&name).expect("built in"))
    }

    fn on<'a>(database: &'a str, collection: &'a str, branch: Branch<'a>) -> Target<'a> {
        Target::Namespace { database, collection: Some(collection), branch }
    }

    #[test]
    fn built_in_roles_allow_what_they_should() {
        let main = Branch::Named("main");
        for (role, of, action, target, expected) in [
            ("read", "shop", Action::Find, on("shop", "a", main), true),
            ("read", "shop", Action::Find, on("shop", "a", Branch::Version), true),
            ("read", "shop", Action::Find, on("shop", "system.users", main), false),
            ("read", "shop", Action::Find, on("shop", "system.buckets.a", main), true),
            ("read", "shop", Action::Insert, on("shop", "system.buckets.a", main), false),
            ("backup", "admin", Action::Find, on("shop", "system.buckets.a", main), true),
            ("restore", "admin", Action::Insert, on("shop", "system.buckets.a", main), true),
            ("read", "shop", Action::Find, on("shop2", "a", main), false),
            ("read", "shop", Action::Insert, on("shop", "a", main), false),
            ("readWrite", "shop", Action::Insert, on("shop", "a", main), true),
            ("dbAdmin", "shop", Action::Find, on("shop", "a", main), false),
            ("dbAdmin", "shop", Action::ManageBranches, on("shop", "a", Branch::All), true),
            ("dbAdmin", "shop", Action::Erase, on("shop", "a", Branch::All), false),
            ("dbOwner", "shop", Action::Erase, on("shop", "a", Branch::All), true),
            ("readAnyDatabase", "admin", Action::Find, on("shop", "a", main), true),
            ("readAnyDatabase", "admin", Action::Find, on("local", "a", main), false),
            ("readAnyDatabase", "admin", Action::ListDatabases, Target::Cluster, true),
            ("clusterMonitor", "admin", Action::Shutdown, Target::Cluster, false),
            ("clusterMonitor", "admin", Action::Find, on("shop", "a", main), false),
            ("clusterAdmin", "admin", Action::Shutdown, Target::Cluster, true),
            ("clusterAdmin", "admin", Action::CollectGarbage, Target::Cluster, true),
            (
                "userAdminAnyDatabase",
                "admin",
                Action::Find,
                on("admin", "system.users", main),
                true,
            ),
            ("userAdminAnyDatabase", "admin", Action::Find, on("admin", "a", main), false),
            ("backup", "admin", Action::Find, on("admin", "system.users", main), true),
            // As in MongoDB, of `restore`: that commands alone do it is for these to refuse.
            ("root", "admin", Action::Insert, on("admin", "system.users", main), true),
            ("root", "admin", Action::Erase, on("shop", "a", Branch::All), true),
        ] {
            let found = of_role(role, of).allow(action, target);
            assert_eq!(found, expected, "{role}@{of} {action:?} {target:?}");
        }
    }

    #[test]
    fn branches_limit() {
        let limited = |actions: &[Action]| {
            let branch = BranchPattern::new("dev/*");
            let (database, collection) = ("shop".to_owned(), String::new());
            Privilege::new(Resource::Namespace { database, collection, branch }, actions)
        };
        let grants = Grants::new(vec![limited(&[Action::Find, Action::ReadVersions])]);
        assert!(grants.limits_branches() && !of_role("root", "admin").limits_branches());
        for (branch, expected) in [
            (Branch::Named("dev/a"), true),
            (Branch::Named("main"), false),
            (Branch::All, false),
            (Branch::Version, false),
        ] {
            assert_eq!(grants.allow(Action::Find, on("shop", "a", branch)), expected);
        }
        let all_versions = Privilege::new(Resource::namespace("shop", ""), &[Action::ReadVersions]);
        let grants = Grants::new(vec![limited(&[Action::Find]), all_versions]);
        assert!(grants.allow(Action::Find, on("shop", "a", Branch::Version)));
        assert!(!grants.allow(Action::Insert, on("shop", "a", Branch::Version)));
        assert!(!grants.allow(Action::Find, on("shop", "a", Branch::Named("main"))));
        assert!(grants.allow_somewhere(Action::Find, "shop"));
        assert!(!grants.allow_somewhere(Action::Find, "shop2"));
    }

    #[test]
    fn the_database_itself_needs_a_privilege_for_all_of_it() {
        let of_one = Privilege::new(Resource::namespace("shop", "a"), &[Action::Find]);
        let database =
            Target::Namespace { database: "shop", collection: None, branch: Branch::All };
        assert!(!Grants::new(vec![of_one]).allow(Action::Find, database));
        assert!(of_role("read", "shop").allow(Action::Find, database));
    }
}
