//! Every command by each built-in role, and by a client that hasn't logged in: the answers are
//! compared with a table that people have read, `auth_matrix.txt`. A new command has to be written
//! into it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use frond_server::commands::COMMANDS;
use frond_testkit::SimDisk;

use crate::running::Running;

const EXPECTED: &str = include_str!("auth_matrix.txt");

/// The roles, and the database that they belong to.
const ROLES: &[(&str, &str)] = &[
    ("read", "shop"),
    ("readWrite", "shop"),
    ("dbAdmin", "shop"),
    ("userAdmin", "shop"),
    ("dbOwner", "shop"),
    ("readAnyDatabase", "admin"),
    ("readWriteAnyDatabase", "admin"),
    ("dbAdminAnyDatabase", "admin"),
    ("userAdminAnyDatabase", "admin"),
    ("clusterMonitor", "admin"),
    ("clusterManager", "admin"),
    ("hostManager", "admin"),
    ("clusterAdmin", "admin"),
    ("backup", "admin"),
    ("restore", "admin"),
    ("root", "admin"),
];

/// A command as a client would send it: what isn't here takes `1`, or the name of a collection.
pub fn body(name: &str) -> String {
    let fields = match name {
        "_mergeAuthzCollections" => {
            r#""_mergeAuthzCollections": 1, "tempUsersCollection": "admin.tempusers", "db": "",
               "drop": false"#
        }
        "aggregate" => r#""aggregate": "things", "pipeline": [], "cursor": {}"#,
        "bulkWrite" => {
            r#""bulkWrite": 1, "ops": [{"insert": 0, "document": {"a": 1}}],
               "nsInfo": [{"ns": "shop.things"}]"#
        }
        "cloneCollectionAsCapped" => {
            r#""cloneCollectionAsCapped": "things", "toCollection": "capped", "size": 4096"#
        }
        "configureFailPoint" => r#""configureFailPoint": "failCommand", "mode": "off""#,
        "convertToCapped" => r#""convertToCapped": "nothing", "size": 4096"#,
        "createIndexes" => {
            r#""createIndexes": "things", "indexes": [{"key": {"a": 1}, "name": "a_1"}]"#
        }
        "createRole" => r#""createRole": "some", "privileges": [], "roles": []"#,
        "createUser" => r#""createUser": "some", "pwd": "x", "roles": []"#,
        "dataSize" => r#""dataSize": "shop.things""#,
        "delete" => r#""delete": "things", "deletes": [{"q": {"_id": 0}, "limit": 1}]"#,
        "distinct" => r#""distinct": "things", "key": "a""#,
        "drop" => r#""drop": "nothing""#,
        "dropIndexes" => r#""dropIndexes": "things", "index": "none""#,
        "explain" => r#""explain": {"find": "things"}"#,
        "findAndModify" => {
            r#""findAndModify": "things", "query": {"_id": 0}, "update": {"$set": {"a": 1}}"#
        }
        "frondBlame" => r#""frondBlame": 1, "collection": "things", "document": 1"#,
        "frondBranch" => r#""frondBranch": 1, "branch": "new""#,
        "frondCherryPick" | "frondRevert" => r#""NAME": 1, "target": "main""#,
        "frondHandOver" => r#""frondHandOver": "shop", "step": "look""#,
        "frondClone" => r#""frondClone": 1, "from": "/nowhere""#,
        "frondCommit" => r#""frondCommit": 1, "message": "m", "allowEmpty": true"#,
        "frondErase" => r#""frondErase": 1, "collection": "things", "document": 7, "dryRun": true"#,
        "frondHistory" => r#""frondHistory": 1, "collection": "things", "document": 1"#,
        "frondMerge" => r#""frondMerge": 1, "merge_in": "main""#,
        "frondMergeRules" => r#""frondMergeRules": 1, "collection": "things""#,
        "frondPolicy" => r#""frondPolicy": 1, "set": {}"#,
        "frondRebase" => r#""frondRebase": 1, "onto": "main""#,
        "frondResolveConflict" => r#""frondResolveConflict": 1, "all": true"#,
        "frondRestore" => r#""frondRestore": 1, "collection": "things", "from": "main""#,
        "frondTag" => r#""frondTag": 1, "tag": "t", "force": true"#,
        "getLog" => r#""getLog": "global""#,
        "getMore" => r#""getMore": {"$numberLong": "1"}, "collection": "things""#,
        "grantPrivilegesToRole" | "revokePrivilegesFromRole" => {
            r#""NAME": "none", "privileges": [
               {"resource": {"db": "shop", "collection": ""}, "actions": ["find"]}]"#
        }
        "grantRolesToRole" | "grantRolesToUser" | "revokeRolesFromRole" | "revokeRolesFromUser" => {
            r#""NAME": "none", "roles": [{"role": "read", "db": "shop"}]"#
        }
        "insert" => r#""insert": "things", "documents": [{"a": 1}]"#,
        "killCursors" => r#""killCursors": "things", "cursors": [{"$numberLong": "1"}]"#,
        "killOp" => r#""killOp": 1, "op": 2147483000"#,
        "killAllSessions" | "killSessions" | "endSessions" | "refreshSessions" => r#""NAME": []"#,
        "listDatabases" => r#""listDatabases": 1, "authorizedDatabases": false"#,
        "renameCollection" => r#""renameCollection": "shop.nothing", "to": "shop.something""#,
        // Refused as part of a transaction, by roles that it wouldn't be refused to for lack of
        // rights.
        "setClusterParameter" => {
            r#""setClusterParameter":
               {"changeStreamOptions": {"preAndPostImages": {"expireAfterSeconds": "off"}}}"#
        }
        "shutdown" => {
            r#""shutdown": 1, "txnNumber": {"$numberLong": "1"},
               "lsid": {"id": {"$uuid": "00112233-4455-4677-8899-aabbccddeeff"}}"#
        }
        "update" => {
            r#""update": "things", "updates": [{"q": {"_id": 0}, "u": {"$set": {"a": 1}}}]"#
        }
        "updateRole" => r#""updateRole": "none", "roles": []"#,
        "updateUser" => r#""updateUser": "none", "roles": []"#,
        "collMod"
        | "collStats"
        | "compact"
        | "count"
        | "create"
        | "find"
        | "listIndexes"
        | "planCacheClear"
        | "planCacheClearFilters"
        | "planCacheListFilters"
        | "planCacheSetFilter"
        | "reIndex"
        | "setIndexCommitQuorum"
        | "validate" => r#""NAME": "things""#,
        "mapReduce" => r#""NAME": "things", "map": "1", "reduce": "1", "out": {"inline": 1}"#,
        "dropRole" | "dropUser" => r#""NAME": "none""#,
        _ => r#""NAME": 1"#,
    };
    format!("{{{}}}", fields.replace("NAME", name))
}

/// Checks whether a command ends a login, so that it must come last.
pub fn ends_login(name: &str) -> bool {
    ["logout", "saslStart", "saslContinue"].contains(&name)
}

#[test]
fn each_role_may_run_what_the_table_says() {
    let server = Running::with_auth(&SimDisk::new(1));
    let create = r#"{"createUser": "root", "pwd": "secret", "roles": ["root"]}"#;
    server.client().ok("admin", create);
    let mut root = server.client();
    root.0.log_in("admin", "root", "secret").expect("the password is right");
    let mut allowed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (role, database) in [("nobody", "")].iter().chain(ROLES) {
        let mut client = server.client();
        if *role != "nobody" {
            // In `admin`, so that no command drops them.
            let create = format!(
                r#"{{"createUser": "of_{role}", "pwd": "x",
                     "roles": [{{"role": "{role}", "db": "{database}"}}]}}"#
            );
            root.ok("admin", &create);
            let user = format!("of_{role}");
            client.0.log_in("admin", &user, "x").expect("the password is right");
        }
        let lasting = COMMANDS.iter().filter(|command| !ends_login(command.name));
        let ending = COMMANDS.iter().filter(|command| ends_login(command.name));
        for command in lasting.chain(ending) {
            let database = if command.admin_only { "admin" } else { "shop" };
            // A client that may drop it does: it is there again for the next command.
            root.code("shop", r#"{"insert": "things", "documents": [{"_id": 1, "a": 1}]}"#);
            let code = client.code(database, &body(command.name));
            let is_allowed = allowed.entry(command.name).or_default();
            if code != 13 {
                is_allowed.push(role);
            }
        }
    }
    let mut found = String::new();
    for (command, roles) in &allowed {
        let answer = match roles.len() {
            count if count == ROLES.len() + 1 => "everybody".to_owned(),
            count if count == ROLES.len() && roles[0] != "nobody" => "who has logged in".to_owned(),
            _ => roles.join(" "),
        };
        let _ = writeln!(found, "{command}: {answer}");
    }
    assert_eq!(found, EXPECTED, "found:\n{found}");
}
