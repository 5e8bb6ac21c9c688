//! A command of each name that is right by itself, and on which database it runs.

use super::*;

/// The rest of a command after its own field, where there is something, and what that field is
/// where it isn't a collection's name.
const RIGHT: &[(&str, &str, &str)] = &[
    (
        "_mergeAuthzCollections",
        "admin",
        r#"{"_mergeAuthzCollections": 1, "tempUsersCollection": "admin.tempusers", "db": "", "drop": false}"#,
    ),
    ("abortTransaction", "admin", r#"{"abortTransaction": 1}"#),
    ("aggregate", "test", r#"{"aggregate": "c", "pipeline": [], "cursor": {}}"#),
    (
        "bulkWrite",
        "admin",
        r#"{"bulkWrite": 1, "ops": [{"delete": 0, "filter": {"_id": 9}}], "nsInfo": [{"ns": "test.c"}]}"#,
    ),
    (
        "cloneCollectionAsCapped",
        "test",
        r#"{"cloneCollectionAsCapped": "nowhere", "toCollection": "z", "size": 1}"#,
    ),
    ("commitTransaction", "admin", r#"{"commitTransaction": 1}"#),
    ("configureFailPoint", "admin", r#"{"configureFailPoint": "failCommand", "mode": "off"}"#),
    ("convertToCapped", "test", r#"{"convertToCapped": "nowhere", "size": 1}"#),
    ("create", "test", r#"{"create": "c"}"#),
    (
        "createIndexes",
        "test",
        r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}]}"#,
    ),
    ("createRole", "test", r#"{"createRole": "r", "privileges": [], "roles": []}"#),
    ("authenticate", "$external", r#"{"authenticate": 1, "mechanism": "MONGODB-X509"}"#),
    ("createUser", "test", r#"{"createUser": "u", "roles": [], "pwd": "p"}"#),
    ("dataSize", "test", r#"{"dataSize": "test.c"}"#),
    ("delete", "test", r#"{"delete": "c", "deletes": [{"q": {"_id": 9}, "limit": 1}]}"#),
    ("distinct", "test", r#"{"distinct": "c", "key": "a"}"#),
    ("dropDatabase", "nowhere", r#"{"dropDatabase": 1}"#),
    ("drop", "test", r#"{"drop": "nowhere"}"#),
    ("dropIndexes", "test", r#"{"dropIndexes": "c", "index": "*"}"#),
    ("endSessions", "test", r#"{"endSessions": []}"#),
    ("explain", "test", r#"{"explain": {"find": "c"}}"#),
    ("findAndModify", "test", r#"{"findAndModify": "c", "update": {"$set": {"a": 1}}}"#),
    ("frondBlame", "test", r#"{"frondBlame": 1, "collection": "c", "document": 1}"#),
    ("frondBranch", "test", r#"{"frondBranch": 1}"#),
    ("frondCherryPick", "test", r#"{"frondCherryPick": 1, "target": "nowhere"}"#),
    ("frondClone", "test", r#"{"frondClone": 1, "from": "nowhere"}"#),
    ("frondGc", "admin", r#"{"frondGc": 1, "quick": true}"#),
    ("frondHandOver", "admin", r#"{"frondHandOver": "test", "step": "look"}"#),
    ("frondMergeRules", "test", r#"{"frondMergeRules": 1, "collection": "c"}"#),
    ("frondRestore", "test", r#"{"frondRestore": 1, "collection": "c"}"#),
    ("frondRevert", "test", r#"{"frondRevert": 1, "target": "nowhere"}"#),
    ("getClusterParameter", "admin", r#"{"getClusterParameter": "*"}"#),
    ("getLog", "admin", r#"{"getLog": "global"}"#),
    ("getMore", "test", r#"{"getMore": {"$numberLong": "1"}, "collection": "c"}"#),
    ("getParameter", "admin", r#"{"getParameter": "*"}"#),
    ("grantPrivilegesToRole", "test", r#"{"grantPrivilegesToRole": "r", "privileges": []}"#),
    ("grantRolesToRole", "test", r#"{"grantRolesToRole": "r", "roles": []}"#),
    ("grantRolesToUser", "test", r#"{"grantRolesToUser": "u", "roles": []}"#),
    ("insert", "test", r#"{"insert": "c", "documents": [{}]}"#),
    ("killAllSessions", "test", r#"{"killAllSessions": []}"#),
    ("killCursors", "test", r#"{"killCursors": "c", "cursors": []}"#),
    ("killOp", "admin", r#"{"killOp": 1, "op": 999}"#),
    ("killSessions", "test", r#"{"killSessions": []}"#),
    (
        "mapReduce",
        "test",
        r#"{"mapReduce": "c", "map": "emit(1, 1)", "reduce": "1", "out": {"inline": 1}}"#,
    ),
    (
        "planCacheSetFilter",
        "test",
        r#"{"planCacheSetFilter": "c", "query": {"a": 1}, "indexes": ["a"]}"#,
    ),
    ("profile", "test", r#"{"profile": 0}"#),
    ("refreshSessions", "test", r#"{"refreshSessions": []}"#),
    ("renameCollection", "admin", r#"{"renameCollection": "test.nowhere", "to": "test.e"}"#),
    ("revokePrivilegesFromRole", "test", r#"{"revokePrivilegesFromRole": "r", "privileges": []}"#),
    ("revokeRolesFromRole", "test", r#"{"revokeRolesFromRole": "r", "roles": []}"#),
    ("revokeRolesFromUser", "test", r#"{"revokeRolesFromUser": "u", "roles": []}"#),
    (
        "saslContinue",
        "test",
        r#"{"saslContinue": 1, "conversationId": 1, "payload": {"$binary": {"base64": "", "subType": "00"}}}"#,
    ),
    (
        "saslStart",
        "test",
        r#"{"saslStart": 1, "mechanism": "PLAIN", "payload": {"$binary": {"base64": "", "subType": "00"}}}"#,
    ),
    (
        "setClusterParameter",
        "admin",
        r#"{"setClusterParameter": {"changeStreamOptions": {"preAndPostImages": {"expireAfterSeconds": 9}}}}"#,
    ),
    (
        "update",
        "test",
        r#"{"update": "c", "updates": [{"q": {"_id": 9}, "u": {"$set": {"a": 1}}}]}"#,
    ),
];

/// Commands whose own field is a name, and which need nothing more.
const OF_NAMES: &[&str] = &[
    "collMod",
    "collStats",
    "compact",
    "count",
    "dropRole",
    "dropUser",
    "find",
    "listIndexes",
    "planCacheClear",
    "planCacheClearFilters",
    "planCacheListFilters",
    "reIndex",
    "updateRole",
    "updateUser",
    "validate",
];

/// The command, and its database.
pub fn of(command: &str) -> (&'static str, DocumentBuf) {
    if let Some((_, database, right)) = RIGHT.iter().find(|(name, ..)| *name == command) {
        return (database, extended_json::parse(right).expect("JSON"));
    }
    let is_of_admin = crate::commands::find(command).expect("a command").admin_only;
    let database = if is_of_admin { "admin" } else { "test" };
    let own = match OF_NAMES.contains(&command) {
        true => Value::String("c"),
        false => Value::Int32(1),
    };
    let mut right = DocumentBuilder::new();
    right.append(command, own);
    (database, right.build())
}

/// A document inside a command: `update.updates`; of the kind, where there are several.
pub fn part(path: &str, kind: &str) -> DocumentBuf {
    let part = match (path, kind) {
        ("bulkWrite.nsInfo", _) => r#"{"ns": "test.c"}"#,
        (_, "insert") => r#"{"insert": 0, "document": {}}"#,
        (_, "update") => r#"{"update": 0, "filter": {"_id": 9}, "updateMods": {"$set": {"a": 1}}}"#,
        (_, "delete") => r#"{"delete": 0, "filter": {"_id": 9}}"#,
        ("update.updates", _) => r#"{"q": {"_id": 9}, "u": {"$set": {"a": 1}}}"#,
        ("delete.deletes", _) => r#"{"q": {"_id": 9}, "limit": 1}"#,
        ("collMod.index", _) => r#"{"name": "nowhere"}"#,
        _ => "{}",
    };
    extended_json::parse(part).expect("JSON")
}
