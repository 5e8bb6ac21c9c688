//! Sends every field of every command a value of each type of BSON, and numbers at its bounds, and
//! compares what the server answers with the tables. That the tables say what MongoDB does is
//! compared with expectations that were written by hand, each of which must notice a wrong row.

use frond_db::FrondOptions;
use frond_doc::document::EMPTY;
use frond_doc::{Array, DocumentBuf, DocumentBuilder, Value, ValueBuf, document, extended_json};
use frond_testkit::SimDisk;

use super::*;
use crate::InProcess;
use crate::commands::{COMMANDS, Command, Run};

mod expectations;
mod right;

/// The code and the message of an answer; code 0 where it is well.
fn run(server: &InProcess, database: &str, command: &DocumentBuf) -> (i32, String) {
    let answer = server.execute(database, command.view(), &[]);
    let code = answer.get("code").and_then(|code| code.as_integer()).unwrap_or(0);
    let message = answer.get("errmsg").and_then(|message| message.as_str()).unwrap_or_default();
    (i32::try_from(code).expect("a code"), message.to_owned())
}

fn started() -> InProcess {
    let disk = SimDisk::new(1);
    let frond = frond_vcs::open_on(&disk.machine(), FrondOptions::default()).expect("opens");
    let server = InProcess::new(frond);
    for command in [document! { "create": "c" }, document! { "frondCommit": 1_i32, "message": "m" }]
    {
        assert_eq!(run(&server, "test", &command), (0, String::new()));
    }
    server
}

/// One value of each type.
fn values() -> Vec<ValueBuf> {
    let values = r#"{"v": [1.5, {"$numberDouble": "NaN"}, {"$numberDouble": "Infinity"}, "x", {}, {"a": 1}, [], [1],
        {"$binary": {"base64": "AAAA", "subType": "00"}},
        {"$uuid": "00112233-4455-4677-8899-aabbccddeeff"}, {"$undefined": true},
        {"$oid": "0123456789abcdef01234567"}, true, false, {"$date": {"$numberLong": "0"}}, null,
        {"$regularExpression": {"pattern": "a", "options": ""}},
        {"$code": "f"}, {"$symbol": "s"}, {"$code": "f", "$scope": {}}, 0, 1, -1, 2147483647,
        {"$timestamp": {"t": 1, "i": 1}}, {"$numberLong": "1"}, {"$numberLong": "2147483648"},
        {"$numberLong": "-9223372036854775808"}, {"$numberDecimal": "1"}, {"$numberDecimal": "1.5"},
        {"$numberDecimal": "1E+40"}, {"$minKey": 1}, {"$maxKey": 1}]}"#;
    let values = extended_json::parse(values).expect("JSON");
    let values = values.get("v").and_then(|values| values.as_array()).expect("an array");
    values.iter().map(|value| value.to_buf()).collect()
}

/// Returns the code with which the door refuses a value, if it does.
fn refusal(field: &Field, value: Value<'_>) -> Option<i32> {
    if matches!(value, Value::Null | Value::Undefined) {
        return match field.worded {
            Some(worded) if worded.refuses_null => Some(worded.code.number()),
            _ if field.is_required && !matches!(field.kind, Kind::Any) => Some(missed(field)),
            _ => None,
        };
    }
    if !field.kind.has(value) {
        return Some(field.worded.map_or(14, |worded| worded.code.number()));
    }
    match (field.kind, value) {
        (Kind::Word(words), Value::String(word)) => (!words.contains(&word)).then_some(2),
        (Kind::Part(fields), Value::Document(document)) => {
            let has_field = |name| fields.iter().any(|field| field.name == name);
            let unknown = document.iter().any(|(name, _)| !has_field(name));
            let missing = fields.iter().any(|field| field.is_required);
            unknown.then_some(40415).or(missing.then_some(40414))
        }
        (Kind::Each(_) | Kind::EachKind(_) | Kind::EachOf(_), Value::Array(array)) => (!array
            .is_empty()
            && !matches!(field.kind, Kind::EachOf(frond_doc::ElementType::Int32)))
        .then_some(14),
        (kind, value) => {
            let is_fraction = match value {
                Value::Double(number) => number.fract() != 0.0 || !number.is_finite(),
                Value::Decimal128(number) => {
                    ["1.5", "1E+40"].contains(&frond_doc::decimal::to_string(number).as_str())
                }
                _ => false,
            };
            if matches!(kind, Kind::Whole) && is_fraction {
                return Some(9);
            }
            if matches!(kind, Kind::Share) {
                return (!(0.0..=1.0).contains(&double(value)?)).then_some(2);
            }
            let number = integer(value)?;
            let is_outside = field.min.is_some_and(|min| number < min)
                || field.max.is_some_and(|max| max < number);
            is_outside.then(|| field.range_words.map_or(2, |(code, _)| code.number()))
        }
    }
}

/// The code by which a field that must be there is missed.
fn missed(field: &Field) -> i32 {
    field.missing_words.map_or(40414, |(code, _)| code.number())
}

/// `command` with `value` in the field `name`, or without that field.
fn with(command: &DocumentBuf, name: &str, value: Option<Value<'_>>) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    for (other, before) in command.iter().filter(|(other, _)| *other != name) {
        builder.append(other, before);
    }
    if let Some(value) = value {
        builder.append(name, value);
    }
    builder.build()
}

/// `command` with another document in the field `name`, or as the one element of its array.
fn with_part(command: &DocumentBuf, name: &str, part: &DocumentBuf, is_each: bool) -> DocumentBuf {
    let mut array = DocumentBuilder::new();
    array.begin_array("v").push(Value::from(part)).end();
    let array = array.build();
    let listed = array.get("v").expect("it is there");
    with(command, name, Some(if is_each { listed } else { Value::from(part) }))
}

/// Puts a field into its command and runs it: what came of it.
type Send<'a> = &'a dyn Fn(&str, Option<Value<'_>>) -> (i32, String);

/// Sends a field each value; `send` puts the field into its command and runs it. Answers that
/// differ from the table are noted in `faults`.
fn send_each(label: &str, field: &Field, send: Send<'_>, faults: &mut Vec<String>) -> usize {
    let mut sent = 0;
    for value in values() {
        let value = value.as_value();
        if field.name == "bytesPerSecond" && refusal(field, value).is_none() {
            continue; // It would take so long.
        }
        let (code, message) = send(field.name, Some(value));
        let fault = format!("{label}.{} = {value:?}: {code} {message}", field.name);
        match refusal(field, value) {
            Some(expected) if code != expected => faults.push(format!("{fault}, not {expected}")),
            Some(_) => {}
            None => {
                let unknown = format!(".{}' is an unknown field", field.name);
                let wrong = format!(".{}' is the wrong type", field.name);
                let is_wrong = message.contains(&wrong) && code == 14 && !has_inner(field);
                if is_wrong || code == 40413 || message.contains(&unknown) || code == 1 {
                    faults.push(fault);
                }
            }
        }
        sent += 1;
    }
    if field.is_required {
        let (code, message) = send(field.name, None);
        if code != missed(field) {
            faults.push(format!("{label} without {}: {code} {message}", field.name));
        }
    }
    sent
}

/// Whether its reader looks at what is in it: elements of arrays that may be of several types.
fn has_inner(field: &Field) -> bool {
    matches!(field.kind, Kind::Any) || field.kind.has(Value::Array(Array::from_validated(&EMPTY)))
}

#[test]
fn every_field_of_every_command_is_what_its_table_says() {
    let server = started();
    let (mut sent, mut faults) = (0, Vec::new());
    for table in TABLES {
        let (database, right) = right::of(table.command);
        // That one would; those for tests of drivers aren't there.
        let is_for_tests =
            |command: &Command| command.name == table.command && command.is_for_tests;
        if table.command == "shutdown" || COMMANDS.iter().any(is_for_tests) {
            continue;
        }
        let answer = |command: &DocumentBuf| run(&server, database, command);
        let (code, message) = answer(&with(&right, "zzz", Some(Value::Int32(1))));
        let expected = format!("BSON field '{}.zzz' is an unknown field.", table.path);
        match table.others {
            UnknownFields::Refused => assert_eq!((code, message), (40415, expected)),
            UnknownFields::Read => {}
            UnknownFields::Ignored => assert_ne!(code, 40415, "{}: {message}", table.command),
        }
        for field in table.fields {
            let send = |name: &str, value: Option<Value<'_>>| answer(&with(&right, name, value));
            sent += send_each(table.command, field, &send, &mut faults);
            let kinds: Vec<(&'static str, &'static [Field])> = match field.kind {
                Kind::Part(fields) | Kind::Each(fields) => vec![("", fields)],
                Kind::EachKind(kinds) => kinds.to_vec(),
                _ => Vec::new(),
            };
            for (kind, fields) in kinds {
                let label = format!("{}.{}", table.command, field.name);
                let part = right::part(&label, kind);
                let is_each = !matches!(field.kind, Kind::Part(_));
                for inner in fields.iter().filter(|inner| inner.name != kind) {
                    let send = |name: &str, value: Option<Value<'_>>| {
                        answer(&with_part(&right, field.name, &with(&part, name, value), is_each))
                    };
                    sent += send_each(&label, inner, &send, &mut faults);
                }
            }
        }
    }
    assert!(faults.is_empty(), "{} of {sent}:\n{}", faults.len(), faults.join("\n"));
    assert!(sent > 9_000, "{sent}");
}

#[test]
fn fields_of_every_command_are_what_their_table_says() {
    let server = started();
    let mut faults = Vec::new();
    for (command, is_own) in [("ping", false), ("find", true), ("insert", true)] {
        let (database, right) = right::of(command);
        for field in EVERY.iter().filter(|field| !["$db", "apiStrict"].contains(&field.name)) {
            let send = |name: &str, value: Option<Value<'_>>| {
                run(&server, database, &with(&right, name, value))
            };
            if field.name == "stmtId" && is_own {
                continue; // Writes have their own.
            }
            send_each(command, field, &send, &mut faults);
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(EVERY.is_sorted_by_key(|field| field.name));
}

#[test]
fn every_command_has_one_table() {
    let tables: Vec<&str> = TABLES.iter().map(|table| table.command).collect();
    assert!(tables.is_sorted());
    let answered = COMMANDS.iter().filter(|command| matches!(command.run, Run::Handler(_)));
    let answered: Vec<&str> = answered.map(|command| command.name).collect();
    assert_eq!(tables, answered);
    for table in TABLES {
        let mut names: Vec<&str> = table.fields.iter().map(|field| field.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{}", table.command);
        for command in COMMANDS.iter().filter(|command| command.name == table.command) {
            for sequence in command.sequences {
                assert!(table.field(sequence).is_some(), "{}.{sequence}", table.command);
            }
        }
    }
}
