//! Sends each option of each command a wrong type, null, undefined, and a field that nobody knows.

use frond_db::FrondOptions;
use frond_doc::{DocumentBuf, DocumentBuilder, Value, document, extended_json};
use frond_testkit::SimDisk;

use super::*;
use crate::InProcess;

/// Commands that are right by themselves, and on which database they run.
const RIGHT: &[(&str, &str, &str)] = &[
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
    ("collMod", "test", r#"{"collMod": "c"}"#),
    ("collMod.index", "test", r#"{"collMod": "c", "index": {"name": "nowhere"}}"#),
    ("collStats", "test", r#"{"collStats": "c"}"#),
    ("convertToCapped", "test", r#"{"convertToCapped": "nowhere", "size": 1}"#),
    ("count", "test", r#"{"count": "c"}"#),
    ("create", "test", r#"{"create": "d"}"#),
    (
        "createIndexes",
        "test",
        r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}]}"#,
    ),
    ("dataSize", "test", r#"{"dataSize": "test.c"}"#),
    ("dbStats", "test", r#"{"dbStats": 1}"#),
    ("delete.deletes", "test", r#"{"delete": "c", "deletes": [{"q": {"_id": 9}, "limit": 1}]}"#),
    ("delete", "test", r#"{"delete": "c", "deletes": [{"q": {"_id": 9}, "limit": 1}]}"#),
    ("distinct", "test", r#"{"distinct": "c", "key": "a"}"#),
    ("dropIndexes", "test", r#"{"dropIndexes": "c", "index": "*"}"#),
    ("explain", "test", r#"{"explain": {"find": "c"}}"#),
    ("find", "test", r#"{"find": "c"}"#),
    ("findAndModify", "test", r#"{"findAndModify": "c", "update": {"$set": {"a": 1}}}"#),
    ("getMore", "test", r#"{"getMore": {"$numberLong": "1"}, "collection": "c"}"#),
    ("insert", "test", r#"{"insert": "c", "documents": [{}]}"#),
    ("killCursors", "test", r#"{"killCursors": "c", "cursors": []}"#),
    ("killOp", "admin", r#"{"killOp": 1, "op": 999}"#),
    ("listCollections", "test", r#"{"listCollections": 1}"#),
    ("listDatabases", "admin", r#"{"listDatabases": 1}"#),
    ("listIndexes", "test", r#"{"listIndexes": "c"}"#),
    ("renameCollection", "admin", r#"{"renameCollection": "test.nowhere", "to": "test.e"}"#),
    (
        "update.updates",
        "test",
        r#"{"update": "c", "updates": [{"q": {"_id": 9}, "u": {"$set": {"a": 1}}}]}"#,
    ),
    (
        "update",
        "test",
        r#"{"update": "c", "updates": [{"q": {"_id": 9}, "u": {"$set": {"a": 1}}}]}"#,
    ),
    ("validate", "test", r#"{"validate": "c"}"#),
];

/// A wrong value of a kind, and what MongoDB says that it should have been.
fn wrong(kind: Kind) -> Option<(Value<'static>, &'static str, &'static str)> {
    Some(match kind {
        Kind::Boolean => {
            (Value::String("x"), "string", "types '[bool, long, int, decimal, double]'")
        }
        Kind::Number => (Value::String("x"), "string", "types '[long, int, decimal, double]'"),
        Kind::Document => (Value::Int32(1), "int", "type 'object'"),
        Kind::Array => (Value::Boolean(true), "bool", "type 'array'"),
        Kind::Text => (Value::Double(1.0), "double", "type 'string'"),
        Kind::Any => return None,
    })
}

struct Server(InProcess);

impl Server {
    fn start() -> Server {
        let disk = SimDisk::new(1);
        let frond = frond_vcs::open_on(&disk.machine(), FrondOptions::default()).expect("opens");
        let server = Server(InProcess::new(frond));
        server.run("test", &document! { "create": "c" });
        server
    }

    /// The code and the message of an answer; code 0 where it is well.
    fn run(&self, database: &str, command: &DocumentBuf) -> (i32, String) {
        let answer = self.0.execute(database, command.view(), &[]);
        let code = answer.get("code").and_then(|code| code.as_integer()).unwrap_or(0);
        let message = answer.get("errmsg").and_then(|message| message.as_str()).unwrap_or_default();
        (code as i32, message.to_owned())
    }
}

/// `command` with `value` in the field `name`: of the command, or of what `path` names within it.
fn with(path: &str, command: &DocumentBuf, name: &str, value: Value<'_>) -> DocumentBuf {
    if let Some((_, part)) = path.split_once('.') {
        let inner = command.get(part).expect("it has the part");
        let is_array = inner.as_array().is_some();
        let inner = inner.as_array().and_then(|array| array.get(0)).unwrap_or(inner);
        let inner = inner.as_document().expect("a document").to_buf();
        let changed = with("", &inner, name, value);
        let mut array = DocumentBuilder::new();
        array.begin_array("v").push(Value::from(&changed)).end();
        let array = array.build();
        let listed = array.get("v").expect("it is there");
        let changed = if is_array { listed } else { Value::from(&changed) };
        return with("", command, part, changed);
    }
    let mut builder = DocumentBuilder::new();
    for (other, before) in command.iter().filter(|(other, _)| *other != name) {
        builder.append(other, before);
    }
    builder.append(name, value);
    builder.build()
}

#[test]
fn every_option_is_what_the_table_says() {
    let server = Server::start();
    assert_eq!(RIGHT.len(), COMMANDS.len());
    for (command, (name, database, right)) in COMMANDS.iter().zip(RIGHT) {
        assert_eq!(command.title.trim_matches('`'), *name);
        let right = extended_json::parse(right).expect("JSON");
        let (code, message) = server.run(database, &with(name, &right, "zzz", Value::Int32(1)));
        let expected = format!("BSON field '{name}.zzz' is an unknown field.");
        assert_eq!((code, message), (40415, expected));
        for CommandOption { kind, feature: Feature { name: option, standing } } in command.options {
            if let Standing::Refused(code) | Standing::Elsewhere(code) = standing {
                let yes = match kind {
                    Kind::Document => document! { "v": &document! { "a": 1_i32 } },
                    _ => document! { "v": 5_i32 },
                };
                let command = with(name, &right, option, yes.get("v").expect("it is there"));
                let (found, message) = server.run(database, &command);
                assert_eq!(found.to_string(), *code, "{name}.{option}: {message}");
                continue;
            }
            for nothing in [Value::Null, Value::Undefined] {
                let (code, message) = server.run(database, &with(name, &right, option, nothing));
                let is_required = right.get(option).is_some() || name.contains('.');
                let is_fine =
                    if is_required { code != 40415 } else { ![14, 40415].contains(&code) };
                assert!(is_fine, "{name}.{option}: null: {code} {message}");
            }
            let Some((value, found_type, expected)) = wrong(*kind) else {
                let (code, message) =
                    server.run(database, &with(name, &right, option, Value::MinKey));
                assert!(![115, 40415].contains(&code), "{name}.{option}: {message}");
                continue;
            };
            let found = server.run(database, &with(name, &right, option, value));
            let message = format!(
                "BSON field '{name}.{option}' is the wrong type '{found_type}', expected {expected}"
            );
            assert_eq!(found, (14, message));
        }
    }
}
