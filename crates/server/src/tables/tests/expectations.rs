//! MongoDB's answers, written by hand: the tables are not their own oracle. Each expectation is
//! shown to bite: it fails with a table whose row of that field takes everything.

use super::*;

/// A command, the field that it is about, and the code; 0 where the command may pass.
const EXPECTED: &[(&str, &str, i32)] = &[
    (r#"{"find": "c", "filter": 1}"#, "filter", 14),
    (r#"{"find": "c", "filter": null}"#, "filter", 14),
    (r#"{"find": "c", "limit": -1}"#, "limit", 2),
    (r#"{"find": "c", "limit": true}"#, "limit", 14),
    (r#"{"find": "c", "singleBatch": 1}"#, "singleBatch", 14),
    (r#"{"find": "c", "hint": 1}"#, "hint", 9),
    (r#"{"find": "c", "maxTimeMS": 1.5}"#, "maxTimeMS", 9),
    (r#"{"find": "c", "maxTimeMS": -1}"#, "maxTimeMS", 2),
    (r#"{"find": "c", "maxTimeMS": {"$numberLong": "2147483648"}}"#, "maxTimeMS", 2),
    (r#"{"find": "c", "maxTimeMS": "1"}"#, "maxTimeMS", 14),
    (r#"{"count": "c", "limit": "x"}"#, "limit", 2),
    (r#"{"count": "c", "limit": 1.5}"#, "limit", 9),
    (r#"{"count": "c", "skip": "x"}"#, "skip", 14),
    (r#"{"distinct": "c"}"#, "key", 40414),
    (r#"{"aggregate": "c", "pipeline": 1, "cursor": {}}"#, "pipeline", 14),
    (r#"{"aggregate": "c", "pipeline": [], "cursor": {"batchSize": -1}}"#, "cursor", 2),
    (r#"{"aggregate": "c", "pipeline": [], "cursor": {"x": 1}}"#, "cursor", 40415),
    (r#"{"insert": "c", "documents": [1]}"#, "documents", 14),
    (r#"{"insert": "c", "documents": [{}], "ordered": 1}"#, "ordered", 14),
    (r#"{"insert": "c", "documents": [{}], "writeConcern": {"j": "x"}}"#, "writeConcern", 14),
    (
        r#"{"insert": "c", "documents": [{}], "writeConcern": {"wtimeout": {"$numberLong": "2147483648"}}}"#,
        "writeConcern",
        9,
    ),
    (r#"{"update": "c", "updates": [{"q": {}, "u": {}, "multi": 1}]}"#, "updates", 14),
    (r#"{"update": "c", "updates": [{"q": {}, "u": 1}]}"#, "updates", 9),
    (r#"{"update": "c", "updates": [{"q": {}}]}"#, "updates", 40414),
    (r#"{"delete": "c", "deletes": [{"q": {}}]}"#, "deletes", 40414),
    (r#"{"delete": "c", "deletes": [{"q": {}, "limit": 0, "zz": 1}]}"#, "deletes", 40415),
    (r#"{"findAndModify": "c", "update": 1}"#, "update", 9),
    (r#"{"findAndModify": "c", "upsert": "x"}"#, "upsert", 14),
    (r#"{"getMore": {"$numberLong": "1"}, "collection": null}"#, "collection", 40414),
    (r#"{"killCursors": "c", "cursors": [1]}"#, "cursors", 14),
    (r#"{"create": "c", "size": 0}"#, "size", 2),
    (r#"{"create": "c", "validationLevel": "x"}"#, "validationLevel", 2),
    (r#"{"create": "c", "viewOn": 1}"#, "viewOn", 14),
    (r#"{"createIndexes": "c", "indexes": {}}"#, "indexes", 14),
    (r#"{"renameCollection": "a.b", "to": "a.c", "dropTarget": null}"#, "dropTarget", 14),
    (r#"{"explain": {"find": "c"}, "verbosity": "x"}"#, "verbosity", 2),
    (r#"{"ping": 1, "lsid": {"id": 1}}"#, "lsid", 14),
    (r#"{"ping": 1, "lsid": {}}"#, "lsid", 40414),
    (r#"{"ping": 1, "readConcern": {"level": "x"}}"#, "readConcern", 2),
    (r#"{"ping": 1, "txnNumber": 1}"#, "txnNumber", 14),
    (r#"{"ping": 1, "apiStrict": 1}"#, "apiStrict", 14),
    (r#"{"collStats": "c", "scale": 0}"#, "scale", 2),
    (r#"{"bulkWrite": 1, "ops": [{"insert": -1, "document": {}}], "nsInfo": []}"#, "ops", 2),
    (r#"{"bulkWrite": 1, "ops": [{"insert": 0}], "nsInfo": []}"#, "ops", 40414),
    (
        r#"{"bulkWrite": 1, "ops": [{"delete": 0, "filter": {}, "multi": 1}], "nsInfo": []}"#,
        "ops",
        14,
    ),
    (
        r#"{"bulkWrite": 1, "ops": [{"delete": 0, "filter": {}, "hint": 5}], "nsInfo": []}"#,
        "ops",
        9,
    ),
    (r#"{"bulkWrite": 1, "ops": [], "nsInfo": [{"ns": 1}]}"#, "nsInfo", 14),
    (r#"{"bulkWrite": 1, "ops": [], "nsInfo": [], "errorsOnly": 1}"#, "errorsOnly", 14),
];

/// Commands that MongoDB accepts, whatever their outcome.
const TAKEN: &[&str] = &[
    r#"{"find": "c", "limit": {"$numberDecimal": "1.5"}, "let": null}"#,
    r#"{"count": "c", "skip": null, "query": null}"#,
    r#"{"delete": "c", "deletes": [{"q": {}, "limit": "x"}]}"#,
    r#"{"findAndModify": "c", "upsert": 1.5, "update": {}}"#,
    r#"{"createIndexes": "c", "indexes": []}"#,
    r#"{"startSession": 1, "zzz": 1}"#,
    r#"{"connPoolStats": 1, "zzz": 1}"#,
    r#"{"whatsmyuri": 1, "zzz": 1}"#,
    r#"{"killAllSessions": [], "zzz": 1}"#,
    r#"{"create": "c", "capped": true, "size": 1, "max": -1}"#,
];

fn code_of(table: &Table, command: &DocumentBuf) -> i32 {
    let checked = check(table, command.view(), &[]);
    checked.map_or_else(|error| error.code.number(), |()| 0)
}

fn table_of(command: &DocumentBuf) -> &'static Table {
    find(command.iter().next().expect("a name").0).expect("a table")
}

/// The table with another row for the field `name`, which takes everything.
fn planted(table: &Table, name: &'static str) -> Table {
    let mut fields: Vec<Field> =
        table.fields.iter().filter(|field| field.name != name).copied().collect();
    fields.push(Field::new(name, Kind::Any));
    Table { fields: fields.leak(), ..*table }
}

#[test]
fn the_tables_say_what_mongodb_does() {
    for (command, _, expected) in EXPECTED {
        let command = extended_json::parse(command).expect("JSON");
        assert_eq!(code_of(table_of(&command), &command), *expected, "{command:?}");
    }
    for command in TAKEN {
        let command = extended_json::parse(command).expect("JSON");
        assert_eq!(code_of(table_of(&command), &command), 0, "{command:?}");
    }
}

#[test]
fn a_wrong_row_is_noticed() {
    for (command, field, expected) in EXPECTED {
        let command = extended_json::parse(command).expect("JSON");
        let wrong = planted(table_of(&command), field);
        assert_ne!(code_of(&wrong, &command), *expected, "{command:?}");
    }
}
