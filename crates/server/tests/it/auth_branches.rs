//! A user who may do everything on the branches `dev/*`, and nothing elsewhere, against `main`:
//! by every command, and by every field that names a database, a collection or a version. Nothing
//! gets in.
//!
//! Each attack is sent with each name that leads to main's data. The same commands with names of
//! one's own branches must not be refused: so the attacks are refused for where they lead, and not
//! for how they are written.

use frond_doc::DocumentBuf;
use frond_server::access::Action;
use frond_testkit::SimDisk;

use crate::running::{Running, TestClient, json, text};

/// Commands on a database, whose name is put in: on `main`, however it is named.
pub const ON_DATABASE: &[&str] = &[
    r#"{"find": "things"}"#,
    r#"{"aggregate": "things", "pipeline": [], "cursor": {}}"#,
    r#"{"aggregate": "things", "pipeline": [{"$collStats": {"count": {}}}], "cursor": {}}"#,
    r#"{"aggregate": "things", "pipeline": [{"$indexStats": {}}], "cursor": {}}"#,
    r#"{"aggregate": "things", "pipeline": [{"$diff": {}}], "cursor": {}}"#,
    r#"{"aggregate": 1, "pipeline": [{"$diff": {"from": "NOTHING"}}], "cursor": {}}"#,
    r#"{"aggregate": 1, "pipeline": [{"$log": {}}], "cursor": {}}"#,
    r#"{"aggregate": 1, "pipeline": [{"$history": {"collection": "things", "_id": 1}}], "cursor": {}}"#,
    r#"{"aggregate": "things", "pipeline": [{"$blame": {"_id": 1}}], "cursor": {}}"#,
    r#"{"aggregate": 1, "pipeline": [{"$conflicts": {}}], "cursor": {}}"#,
    r#"{"aggregate": 1, "pipeline": [{"$reflog": {}}], "cursor": {}}"#,
    r#"{"cloneCollectionAsCapped": "things", "toCollection": "c", "size": 4096}"#,
    r#"{"collMod": "things", "validator": {}}"#,
    r#"{"collStats": "things"}"#,
    r#"{"compact": "things"}"#,
    r#"{"convertToCapped": "things", "size": 4096}"#,
    r#"{"count": "things"}"#,
    r#"{"create": "new"}"#,
    r#"{"create": "view", "viewOn": "things", "pipeline": []}"#,
    r#"{"createIndexes": "things", "indexes": [{"key": {"a": 1}, "name": "a_1"}]}"#,
    r#"{"dbHash": 1}"#,
    r#"{"dbStats": 1}"#,
    r#"{"delete": "things", "deletes": [{"q": {}, "limit": 0}]}"#,
    r#"{"distinct": "things", "key": "a"}"#,
    r#"{"drop": "things"}"#,
    r#"{"dropDatabase": 1}"#,
    r#"{"dropIndexes": "things", "index": "*"}"#,
    r#"{"explain": {"find": "things"}}"#,
    r#"{"explain": {"aggregate": "things", "pipeline": [], "cursor": {}}}"#,
    r#"{"explain": {"delete": "things", "deletes": [{"q": {}, "limit": 0}]}}"#,
    r#"{"findAndModify": "things", "query": {}, "update": {"$set": {"a": 2}}}"#,
    r#"{"frondBlame": 1, "collection": "things", "document": 1}"#,
    r#"{"frondBranch": 1}"#,
    r#"{"frondBranch": 1, "branch": "dev/stolen"}"#,
    r#"{"frondBranch": 1, "removeExpired": true}"#,
    r#"{"frondCherryPick": 1, "target": "dev/a"}"#,
    r#"{"frondClone": 1, "from": "/nowhere"}"#,
    r#"{"frondCommit": 1, "message": "m"}"#,
    r#"{"frondConflicts": 1}"#,
    r#"{"frondDiff": 1}"#,
    r#"{"frondErase": 1, "collection": "things", "document": 1, "confirm": true}"#,
    r#"{"frondErase": 1, "commits": true}"#,
    r#"{"frondFetch": 1}"#,
    r#"{"frondHistory": 1, "collection": "things", "document": 1}"#,
    r#"{"frondLog": 1}"#,
    r#"{"frondLog": 1, "collection": "things"}"#,
    r#"{"frondMerge": 1, "merge_in": "dev/a"}"#,
    r#"{"frondMerge": 1, "continue": true}"#,
    r#"{"frondMerge": 1, "abort": true}"#,
    r#"{"frondMergeRules": 1, "collection": "things", "rules": {}}"#,
    r#"{"frondPolicy": 1}"#,
    r#"{"frondPolicy": 1, "set": {}}"#,
    r#"{"frondPull": 1}"#,
    r#"{"frondPush": 1}"#,
    r#"{"frondRebase": 1, "onto": "dev/a"}"#,
    r#"{"frondReflog": 1}"#,
    r#"{"frondRemote": 1}"#,
    r#"{"frondReset": 1, "target": "dev/a", "hard": true}"#,
    r#"{"frondResolveConflict": 1, "all": true, "resolution": "ours"}"#,
    r#"{"frondRestore": 1, "collection": "things", "from": "dev/a"}"#,
    r#"{"frondRevert": 1, "target": "dev/a"}"#,
    r#"{"frondShow": 1}"#,
    r#"{"frondStatus": 1}"#,
    r#"{"frondTag": 1}"#,
    r#"{"frondTag": 1, "tag": "t"}"#,
    r#"{"frondUndo": 1}"#,
    r#"{"insert": "things", "documents": [{"a": 1}]}"#,
    r#"{"listCollections": 1}"#,
    r#"{"listIndexes": "things"}"#,
    r#"{"mapReduce": "things", "map": "1", "reduce": "1", "out": {"inline": 1}}"#,
    r#"{"planCacheClear": "things"}"#,
    r#"{"planCacheClearFilters": "things"}"#,
    r#"{"planCacheListFilters": "things"}"#,
    r#"{"planCacheSetFilter": "things"}"#,
    r#"{"profile": 2}"#,
    r#"{"profile": -1}"#,
    r#"{"reIndex": "things"}"#,
    r#"{"setIndexCommitQuorum": "things"}"#,
    r#"{"update": "things", "updates": [{"q": {}, "u": {"$set": {"a": 2}}, "multi": true}]}"#,
    r#"{"validate": "things"}"#,
    r#"{"validateDBMetadata": 1}"#,
    r#"{"usersInfo": 1}"#,
    r#"{"rolesInfo": 1}"#,
    r#"{"createUser": "me", "pwd": "x", "roles": ["dbOwner"]}"#,
    r#"{"createRole": "me", "privileges": [], "roles": ["dbOwner"]}"#,
    r#"{"grantRolesToUser": "dev", "roles": ["dbOwner"]}"#,
    r#"{"grantRolesToRole": "dev", "roles": ["dbOwner"]}"#,
    r#"{"updateUser": "dev", "roles": ["dbOwner"]}"#,
    r#"{"updateRole": "dev", "roles": ["dbOwner"]}"#,
    r#"{"dropUser": "dev"}"#,
    r#"{"dropRole": "dev"}"#,
    r#"{"dropAllUsersFromDatabase": 1}"#,
    r#"{"dropAllRolesFromDatabase": 1}"#,
    r#"{"revokeRolesFromUser": "dev", "roles": ["read"]}"#,
    r#"{"revokeRolesFromRole": "dev", "roles": ["read"]}"#,
];

/// Commands that need more than rights on branches: they are refused on one's own branch, too.
const REFUSED_EVERYWHERE: &[&str] = &[
    "$reflog",
    "User",
    "Role",
    "dropDatabase",
    "frondClone",
    "frondErase",
    "frondFetch",
    "frondPolicy\": 1, \"set",
    "frondPull",
    "frondPush",
    "frondRemote",
    "profile\": -1",
    "removeExpired",
    "rolesInfo",
    "usersInfo",
];

/// Commands sent to one's own branch, in which `REV` is a version, and `DB` the name of a database
/// at it.
pub const IN_FIELDS: &[&str] = &[
    r#"{"frondDiff": 1, "from": "REV"}"#,
    r#"{"frondDiff": 1, "to": "REV"}"#,
    r#"{"frondDiff": 1, "from": "HEAD...REV"}"#,
    r#"{"frondDiff": 1, "from": "REV..HEAD"}"#,
    r#"{"frondLog": 1, "range": "REV"}"#,
    r#"{"frondLog": 1, "range": "HEAD..REV"}"#,
    r#"{"frondLog": 1, "range": "REV..HEAD"}"#,
    r#"{"frondLog": 1, "range": "HEAD...REV"}"#,
    r#"{"frondLog": 1, "range": "REV...", "text": "a"}"#,
    r#"{"frondLog": 1, "collection": "things", "range": "REV"}"#,
    r#"{"frondHistory": 1, "collection": "things", "document": 1, "range": "REV"}"#,
    r#"{"frondShow": 1, "target": "REV"}"#,
    r#"{"frondCommit": 1, "message": "m", "merges": ["HEAD", "REV"]}"#,
    r#"{"frondMerge": 1, "merge_in": "REV"}"#,
    r#"{"frondMerge": 1, "merge_in": "REV", "squash": true}"#,
    r#"{"frondCherryPick": 1, "target": "REV"}"#,
    r#"{"frondRevert": 1, "target": "REV"}"#,
    r#"{"frondRebase": 1, "onto": "REV"}"#,
    r#"{"frondReset": 1, "target": "REV"}"#,
    r#"{"frondReset": 1, "target": "REV", "hard": true}"#,
    r#"{"frondRestore": 1, "collection": "things", "from": "REV"}"#,
    r#"{"frondRestore": 1, "collection": "things", "document": 1, "from": "REV"}"#,
    r#"{"frondBranch": 1, "branch": "dev/stolen", "start": "REV"}"#,
    r#"{"doltBranch": 1, "branch": "dev/stolen", "start": "REV"}"#,
    r#"{"frondTag": 1, "tag": "stolen", "target": "REV"}"#,
    r#"{"aggregate": 1, "pipeline": [{"$diff": {"from": "REV"}}], "cursor": {}}"#,
    r#"{"aggregate": 1, "pipeline": [{"$diff": {"from": "REV...HEAD"}}], "cursor": {}}"#,
    r#"{"aggregate": "things", "pipeline": [{"$diff": {"to": "REV"}}], "cursor": {}}"#,
    r#"{"aggregate": 1, "pipeline": [{"$log": {"range": "REV"}}], "cursor": {}}"#,
    r#"{"aggregate": "things", "pipeline": [{"$history": {"_id": 1, "range": "REV"}}], "cursor": {}}"#,
    r#"{"aggregate": "things", "pipeline": [{"$lookup": {"from": {"db": "DB", "coll": "things"}, "localField": "_id", "foreignField": "_id", "as": "x"}}], "cursor": {}}"#,
    r#"{"aggregate": "things", "pipeline": [{"$lookup": {"from": {"db": "DB", "coll": "things"}, "pipeline": [], "as": "x"}}], "cursor": {}}"#,
    r#"{"aggregate": "things", "pipeline": [{"$lookup": {"from": {"db": "DB", "coll": "things"}, "pipeline": [{"$diff": {}}], "as": "x"}}], "cursor": {}}"#,
    r#"{"aggregate": "things", "pipeline": [{"$lookup": {"pipeline": [{"$diff": {"from": "REV"}}], "as": "x"}}], "cursor": {}}"#,
    r#"{"aggregate": "things", "pipeline": [{"$lookup": {"from": "things", "pipeline": [{"$lookup": {"from": {"db": "DB", "coll": "things"}, "pipeline": [], "as": "y"}}], "as": "x"}}], "cursor": {}}"#,
    r#"{"aggregate": "things", "pipeline": [{"$facet": {"a": [{"$lookup": {"from": {"db": "DB", "coll": "things"}, "pipeline": [], "as": "y"}}]}}], "cursor": {}}"#,
    r#"{"aggregate": "things", "pipeline": [{"$unionWith": {"db": "DB", "coll": "things"}}], "cursor": {}}"#,
    r#"{"aggregate": "things", "pipeline": [{"$unionWith": {"db": "DB", "coll": "things", "pipeline": [{"$log": {}}]}}], "cursor": {}}"#,
    r#"{"aggregate": "things", "pipeline": [{"$unionWith": {"coll": "things", "pipeline": [{"$unionWith": {"db": "DB", "coll": "things"}}]}}], "cursor": {}}"#,
    r#"{"explain": {"aggregate": "things", "pipeline": [{"$unionWith": {"db": "DB", "coll": "things"}}], "cursor": {}}}"#,
    r#"{"create": "view", "viewOn": "things", "pipeline": [{"$unionWith": {"db": "DB", "coll": "things"}}]}"#,
    r#"{"collMod": "own_view", "viewOn": "things", "pipeline": [{"$lookup": {"from": {"db": "DB", "coll": "things"}, "pipeline": [], "as": "y"}}]}"#,
];

/// The same, where what is named is written.
pub const IN_FIELDS_WRITTEN: &[&str] = &[
    r#"{"aggregate": "things", "pipeline": [{"$merge": {"into": {"db": "DB", "coll": "things"}}}], "cursor": {}}"#,
    r#"{"aggregate": "things", "pipeline": [{"$merge": {"into": {"db": "DB", "coll": "new"}, "whenMatched": "keepExisting"}}], "cursor": {}}"#,
    r#"{"aggregate": "things", "pipeline": [{"$merge": {"into": {"db": "DB", "coll": "things"}, "whenMatched": "fail", "whenNotMatched": "discard"}}], "cursor": {}}"#,
    r#"{"aggregate": "things", "pipeline": [{"$out": {"db": "DB", "coll": "things"}}], "cursor": {}}"#,
    r#"{"aggregate": "things", "pipeline": [{"$out": {"db": "DB", "coll": "new"}}], "cursor": {}}"#,
];

/// Commands of `admin` that name a database in a field.
pub const ON_ADMIN: &[&str] = &[
    r#"{"bulkWrite": 1, "ops": [{"insert": 0, "document": {"a": 1}}], "nsInfo": [{"ns": "DB.things"}]}"#,
    r#"{"bulkWrite": 1, "ops": [{"update": 0, "filter": {}, "updateMods": {"$set": {"a": 2}}}], "nsInfo": [{"ns": "DB.things"}]}"#,
    r#"{"bulkWrite": 1, "ops": [{"delete": 0, "filter": {}}], "nsInfo": [{"ns": "DB.things"}]}"#,
    r#"{"bulkWrite": 1, "ops": [{"insert": 0, "document": {"a": 1}}, {"delete": 1, "filter": {}}], "nsInfo": [{"ns": "shop@dev/a.things"}, {"ns": "DB.things"}]}"#,
    r#"{"renameCollection": "DB.things", "to": "DB.renamed"}"#,
    r#"{"renameCollection": "shop@dev/a.things", "to": "DB.renamed"}"#,
    r#"{"renameCollection": "DB.things", "to": "shop@dev/a.renamed"}"#,
    r#"{"dataSize": "DB.things"}"#,
];

/// Fields that name a branch.
pub const BRANCHES: &[&str] = &[
    r#"{"frondBranch": 1, "branch": "main", "protected": true}"#,
    r#"{"frondBranch": 1, "branch": "main", "closed": true}"#,
    r#"{"frondBranch": 1, "branch": "main", "expireAfterSeconds": 1}"#,
    r#"{"frondBranch": 1, "branch": "main", "delete": true}"#,
    r#"{"frondBranch": 1, "delete": "main", "forceDelete": true}"#,
    r#"{"frondBranch": 1, "branch": "other", "start": "dev/a"}"#,
    r#"{"frondBranch": 1, "branch": "main", "rename": "dev/stolen"}"#,
    r#"{"frondBranch": 1, "branch": "dev/a", "rename": "other"}"#,
    r#"{"frondReflog": 1, "branch": "main"}"#,
    r#"{"frondReflog": 1, "all": true}"#,
    r#"{"frondReflog": 1, "dropped": true}"#,
    r#"{"frondReflog": 1, "expireBefore": {"$date": "2030-01-01T00:00:00Z"}}"#,
    r#"{"frondUndo": 1, "branch": "main"}"#,
    r#"{"frondUndo": 1, "branch": "dev/moved"}"#,
    r#"{"frondReflog": 1, "branch": "dev/moved"}"#,
    r#"{"aggregate": 1, "pipeline": [{"$reflog": {"branch": "dev/moved"}}], "cursor": {}}"#,
    r#"{"frondMerge": 1, "merge_in": "main", "dryRun": true}"#,
    r#"{"frondUndo": 1, "dropped": "secrets"}"#,
    r#"{"aggregate": 1, "pipeline": [{"$reflog": {"branch": "main"}}], "cursor": {}}"#,
    r#"{"aggregate": 1, "pipeline": [{"$reflog": {}}], "cursor": {}}"#,
    r#"{"aggregate": 1, "pipeline": [{"$reflog": {"branch": "dev/a", "branch": "main"}}], "cursor": {}}"#,
    r#"{"frondTag": 1, "tag": "v1", "delete": true}"#,
    r#"{"frondTag": 1, "tag": "v1", "force": true}"#,
];

/// Makes the role `dev`, which may do everything on `dev/*`.
pub fn role_for_all_on_dev() -> String {
    let actions: Vec<String> = Action::ALL
        .iter()
        .filter(|action| **action != Action::AnyAction)
        .map(|action| format!("\"{}\"", action.name()))
        .collect();
    format!(
        r#"{{"createRole": "dev", "roles": [], "privileges": [{{"actions": [{}],
            "resource": {{"db": "shop", "collection": "", "branch": "dev/*"}}}}]}}"#,
        actions.join(", ")
    )
}

fn id_of(answer: &DocumentBuf) -> String {
    let id = answer.get("commitId").and_then(|id| id.as_str());
    id.unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

/// Everything that `main` and the repository have.
fn state(root: &mut TestClient) -> String {
    let mut state = String::new();
    for (database, command) in [
        ("shop", r#"{"find": "things"}"#),
        ("shop", r#"{"frondLog": 1}"#),
        ("shop", r#"{"frondTag": 1}"#),
        ("shop", r#"{"listCollections": 1, "nameOnly": true}"#),
        ("shop", r#"{"listIndexes": "things"}"#),
        ("shop", r#"{"frondReflog": 1}"#),
        ("admin", r#"{"usersInfo": {"forAllDBs": true}}"#),
        ("shop", r#"{"rolesInfo": 1, "showPrivileges": true}"#),
    ] {
        let answer = crate::running::without_time(&root.ok(database, command));
        state.push_str(&text(&answer));
    }
    state
}

#[test]
fn all_rights_on_dev_are_none_on_main() {
    let server = Running::with_auth(&SimDisk::new(1));
    server.client().ok("admin", r#"{"createUser": "root", "pwd": "x", "roles": ["root"]}"#);
    let mut root = server.client();
    root.0.log_in("admin", "root", "x").expect("the password is right");
    root.ok("shop", r#"{"insert": "things", "documents": [{"_id": 1, "a": "public"}]}"#);
    root.ok("shop", r#"{"frondCommit": 1, "message": "first"}"#);
    root.ok("shop", r#"{"frondBranch": 1, "branch": "dev/a"}"#);
    root.ok("shop", r#"{"insert": "things", "documents": [{"_id": 2, "a": "secret"}]}"#);
    let second = id_of(&root.ok("shop", r#"{"frondCommit": 1, "message": "second"}"#));
    root.ok("shop", r#"{"frondTag": 1, "tag": "v1"}"#);
    root.ok("shop", r#"{"frondTag": 1, "tag": "dev/tag"}"#);
    root.ok("shop", r#"{"frondTag": 1, "tag": "dev/moved", "target": "main~1"}"#);
    root.ok("shop", r#"{"frondTag": 1, "tag": "dev/moved", "force": true}"#);
    root.ok("shop@dev/a", r#"{"create": "own_view", "viewOn": "things", "pipeline": []}"#);
    root.ok("secrets", r#"{"insert": "things", "documents": [{"_id": 1}]}"#);
    root.ok("shop", &role_for_all_on_dev());
    root.ok("shop", r#"{"createUser": "dev", "pwd": "x", "roles": ["dev"]}"#);
    let mut dev = server.client();
    dev.0.log_in("shop", "dev", "x").expect("the password is right");
    let before = state(&mut root);
    let revisions =
        ["main", "main~1", "main^0", "main@{now}", "v1", "dev/tag", &second, &second[..12]]
            .map(str::to_owned);
    let others = revisions.iter().map(|revision| format!("shop@{revision}"));
    let databases: Vec<String> = others
        .chain(["shop", "shop@{now}", "sh%6Fp", "secrets", "admin"].map(str::to_owned))
        .collect();
    let mut count = 0;
    let mut refused = |dev: &mut TestClient, database: &str, command: &str| {
        count += 1;
        let code = dev.code(database, command);
        assert_eq!(code, 13, "{database}: {command}");
    };
    for database in &databases {
        for command in ON_DATABASE {
            refused(&mut dev, database, command);
        }
        for command in IN_FIELDS.iter().chain(IN_FIELDS_WRITTEN) {
            if command.contains("DB") {
                refused(&mut dev, "shop@dev/a", &command.replace("DB", database));
            }
        }
        for command in ON_ADMIN {
            refused(&mut dev, "admin", &command.replace("DB", database));
        }
    }
    for revision in &revisions {
        for command in IN_FIELDS.iter().filter(|command| command.contains("REV")) {
            refused(&mut dev, "shop@dev/a", &command.replace("REV", revision));
        }
    }
    for command in BRANCHES {
        refused(&mut dev, "shop@dev/a", command);
        refused(&mut dev, "shop", command);
    }
    assert!(count > 1_000, "{count}");
    assert_eq!(state(&mut root), before, "nothing got in");
    // The other commands of the server, which name nothing: all are refused except those that every
    // client may run.
    for command in frond_server::commands::COMMANDS.iter().filter(|command| command.admin_only) {
        let is_of_anybody = ["abortTransaction", "commitTransaction", "killOp", "listDatabases"];
        let sent = match command.name {
            name if is_of_anybody.contains(&name) => continue,
            "bulkWrite" | "renameCollection" => continue,
            name @ ("configureFailPoint" | "getLog") => {
                format!(r#"{{"{name}": "global", "mode": "off"}}"#)
            }
            "_mergeAuthzCollections" => {
                r#"{"_mergeAuthzCollections": 1, "db": "", "drop": false}"#.to_owned()
            }
            "frondHandOver" => r#"{"frondHandOver": "shop", "step": "look"}"#.to_owned(),
            "setClusterParameter" => r#"{"setClusterParameter": {}}"#.to_owned(),
            name => format!(r#"{{"{name}": 1}}"#),
        };
        assert_eq!(dev.code("admin", &sent), 13, "{sent}");
    }
    let listed = text(&dev.ok("admin", r#"{"listDatabases": 1}"#));
    assert!(listed.contains("shop") && !listed.contains("secrets"), "{listed}");
    on_its_own_branch(&mut dev, &mut root);
}

/// The same commands on branches of one's own.
fn on_its_own_branch(dev: &mut TestClient, root: &mut TestClient) {
    root.ok("shop", r#"{"frondBranch": 1, "branch": "dev/b", "start": "dev/a"}"#);
    for command in ON_DATABASE {
        let code = dev.code("shop@dev/b", command);
        let is_expected = REFUSED_EVERYWHERE.iter().any(|part| command.contains(part));
        assert!(is_expected || code != 13, "{command}");
    }
    for command in IN_FIELDS.iter().chain(IN_FIELDS_WRITTEN) {
        let command = command.replace("REV", "dev/b~0").replace("DB", "shop@dev/b");
        assert_ne!(dev.code("shop@dev/a", &command), 13, "{command}");
    }
    for command in ON_ADMIN {
        let command = command.replace("DB", "shop@dev/b");
        assert_ne!(dev.code("admin", &command), 13, "{command}");
    }
    let known = json(r#"{"_id": 9}"#);
    dev.ok("shop@dev/a", &format!(r#"{{"insert": "things", "documents": [{}]}}"#, text(&known)));
    dev.ok("shop@dev/a", r#"{"frondCommit": 1, "message": "own"}"#);
    // A user who names others as author and committer stands in the commit all the same.
    let forged = r#"{"frondCommit": 1, "message": "x", "author": "root", "committer": "root", "allowEmpty": true}"#;
    let listed = dev.ok("shop@dev/a", forged);
    assert!(text(&listed).contains(r#""committer":"root, by dev""#), "{}", text(&listed));
}
