//! The answers of every operator: one table an operator, by family.
//!
//! The facts are those of MongoDB's manual and server, in our own words and data; a table is
//! written from them and not from what our code says. A case is `argument => answer`: a value,
//! `missing`, or `!code` for an error. It may go on over several lines; `long(5)`, `double(NaN)`,
//! `decimal(1.10)`, `date(2020-02-29T00:00:00Z)`, `millis(-1)` and `binary(base64, subtype)` stand
//! for extended JSON.
//!
//! [`every_operator_shows_what_it_does_with_everything`] looks at what the arguments of the cases
//! are, and wants from each operator a case of each [`Kind`] that its family knows, except where
//! [`EXEMPT`] says why there is none.

mod arithmetic;
mod arrays;
mod comparison;
mod conversions;
mod convert;
mod date_parts;
mod date_periods;
mod date_sums;
mod date_texts;
mod elements;
mod objects;
mod patterns;
mod powers;
mod rounding;
mod sets;
mod strings;
mod substrings;
mod totals;
mod trigonometry;
mod variables;

use std::collections::{BTreeMap, BTreeSet};

use frond_doc::decimal::{self, Parts};
use frond_doc::{DocumentBuf, Value, ValueBuf};

use super::super::parse::has_names;
use super::super::table::features;
use super::{DOCUMENT, check, evaluate, json};

/// An operator and its cases.
struct Table(&'static str, &'static str);

/// The kind of a case, by the values of the operator's arguments, or by the answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    /// A value comes out.
    Plain,
    Null,
    Missing,
    /// An error comes out, or the argument's type is none of the family's.
    WrongType,
    Array,
    /// The least or greatest of a type of numbers, or a date in the first or last year or beyond.
    Bound,
    /// NaN, Infinity.
    NotFinite,
    /// Text beyond ASCII.
    Unicode,
    /// A time zone.
    Zone,
}

use Kind::{Array, Bound, Missing, NotFinite, Null, Plain, Unicode, WrongType, Zone};

/// Tables, the kinds that each of their operators must show, and the types that are theirs.
struct Family {
    tables: &'static [Table],
    kinds: &'static [Kind],
    types: &'static [&'static str],
}

const NUMBERS: &[&str] = &["int", "long", "double", "decimal"];
const EVERY: &[Kind] = &[Plain, Null, Missing, WrongType];

const FAMILIES: [Family; 20] = [
    family(arithmetic::TABLES, &[Array, Bound, NotFinite], NUMBERS),
    family(powers::TABLES, &[Array, Bound, NotFinite], NUMBERS),
    family(rounding::TABLES, &[Array, Bound, NotFinite], NUMBERS),
    family(trigonometry::TABLES, &[Bound, NotFinite], NUMBERS),
    family(totals::TABLES, &[Array, Bound, NotFinite], NUMBERS),
    family(comparison::TABLES, &[Array, NotFinite], &[]),
    family(variables::TABLES, &[], &[]),
    family(strings::TABLES, &[Unicode], &["string"]),
    family(substrings::TABLES, &[Unicode], &["string", "int"]),
    family(patterns::TABLES, &[Unicode], &["string"]),
    family(arrays::TABLES, &[Array], &["array"]),
    family(elements::TABLES, &[Array, Unicode], &["array"]),
    family(sets::TABLES, &[Array], &["array"]),
    family(objects::TABLES, &[Array, Unicode], &["object"]),
    family(convert::TABLES, &[Array, Bound, NotFinite], &[]),
    family(conversions::TABLES, &[Array, Bound, NotFinite], &[]),
    family(date_parts::TABLES, &[Bound, Zone], &["date"]),
    family(date_texts::TABLES, &[Bound, Unicode, Zone], &["date"]),
    family(date_sums::TABLES, &[Bound, Zone], &["date"]),
    family(date_periods::TABLES, &[Bound, Zone], &["date"]),
];

const fn family(
    tables: &'static [Table],
    kinds: &'static [Kind],
    types: &'static [&'static str],
) -> Family {
    Family { tables, kinds, types }
}

/// Kinds that an operator has no case of, and why.
const EXEMPT: [(&str, &[Kind], &str); 17] = [
    ("$bitAnd", &[NotFinite], "takes no doubles"),
    ("$bitOr", &[NotFinite], "takes no doubles"),
    ("$bitXor", &[NotFinite], "takes no doubles"),
    ("$bitNot", &[NotFinite], "takes no doubles"),
    ("$const", &[Null, Missing, WrongType], "its argument isn't evaluated"),
    ("$literal", &[Null, Missing, WrongType], "its argument isn't evaluated"),
    ("$let", &[Missing], "its arguments' values are its variables'"),
    ("$meta", &[Plain, Missing], "its argument is a name; what it gives, the search knows"),
    ("$rand", &[Plain, Missing], "takes no argument, gives a random number"),
    ("$toHashedIndexKey", &[WrongType], "takes every type"),
    ("$type", &[WrongType], "takes every type"),
    ("$isNumber", &[WrongType], "takes every type"),
    ("$tsSecond", &[Bound, Zone], "takes timestamps"),
    ("$tsIncrement", &[Bound, Zone], "takes timestamps"),
    ("$and", &[WrongType], "takes every type"),
    ("$or", &[WrongType], "takes every type"),
    ("$toUUID", &[Bound], "a UUID has no bounds"),
];

/// The cases of a table: argument and answer.
fn cases(table: &Table) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut line = String::new();
    for part in table.1.lines().map(str::trim) {
        if part.is_empty() || part.starts_with("//") {
            continue;
        }
        line = format!("{line} {part}");
        if let Some((argument, answer)) = line.rsplit_once(" => ").filter(|_| is_whole(&line)) {
            found.push((expanded(argument.trim()), expanded(answer.trim())));
            line.clear();
        }
    }
    assert_eq!(line, "", "{}: no answer", table.0);
    found
}

/// Whether all quotes and brackets are closed.
fn is_whole(line: &str) -> bool {
    let (mut depth, mut is_quoted, mut is_escaped) = (0, false, false);
    for letter in line.chars() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '{' | '[' | '(' if !is_quoted => depth += 1,
            '}' | ']' | ')' if !is_quoted => depth -= 1,
            _ => {}
        }
    }
    depth == 0 && !is_quoted
}

/// Extended JSON, written out.
fn expanded(text: &str) -> String {
    let forms = [
        ("long(", r#"{"$numberLong": "#),
        ("double(", r#"{"$numberDouble": "#),
        ("decimal(", r#"{"$numberDecimal": "#),
        ("date(", r#"{"$date": "#),
        ("millis(", r#"{"$date": {"$numberLong": "#),
        ("binary(", ""),
    ];
    let (mut out, mut rest, mut is_quoted) = (String::new(), text, false);
    while let Some(letter) = rest.chars().next() {
        let form = forms.iter().find(|(short, _)| !is_quoted && rest.starts_with(short));
        if let Some((short, long)) = form {
            let (inner, behind) = rest[short.len()..].split_once(')').expect("a closed bracket");
            if let Some((base64, kind)) = inner.split_once(", ") {
                out += &format!(r#"{{"$binary": {{"base64": "{base64}", "subType": "{kind}"}}}}"#);
            } else {
                let braces = long.matches('{').count();
                out += &format!("{long}\"{inner}\"{}", "}".repeat(braces));
            }
            rest = behind;
            continue;
        }
        is_quoted ^= letter == '"';
        out.push(letter);
        rest = &rest[letter.len_utf8()..];
        if letter == '\\' {
            let escaped = rest.chars().next().map_or(0, char::len_utf8);
            out += &rest[..escaped];
            rest = &rest[escaped..];
        }
    }
    out
}

#[test]
fn operators_answer_as_mongodb_does() {
    let mut failures = Vec::new();
    for table in FAMILIES.iter().flat_map(|family| family.tables) {
        for (argument, answer) in cases(table) {
            let expression = format!("{{\"{}\": {argument}}}", table.0);
            let run = || check(&[(expression.as_str(), answer.as_str())]);
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
                failures.push(format!("{expression} => {answer}"));
            }
        }
    }
    assert!(failures.is_empty(), "{} wrong:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_operator_shows_what_it_does_with_everything() {
    let document = json(DOCUMENT);
    let mut shown: BTreeMap<&str, BTreeSet<Kind>> = BTreeMap::new();
    let mut wanted: BTreeMap<&str, BTreeSet<Kind>> = BTreeMap::new();
    for family in &FAMILIES {
        for table in family.tables {
            let kinds = shown.entry(table.0).or_default();
            for (argument, answer) in cases(table) {
                kinds.extend(kinds_of(&argument, &answer, family.types, &document));
            }
            let kinds = family.kinds.iter().chain(EVERY).copied();
            wanted.entry(table.0).or_default().extend(kinds);
        }
    }
    for (operator, kinds, reason) in EXEMPT {
        assert!(!reason.is_empty(), "{operator}: no reason");
        let wanted = wanted.get_mut(operator).expect("an operator with a table");
        wanted.retain(|kind| !kinds.contains(kind));
    }
    let mut gaps = Vec::new();
    for feature in features() {
        let Some(wanted) = wanted.get(feature.name) else {
            gaps.push(format!("{} has no table", feature.name));
            continue;
        };
        let missing: Vec<_> = wanted.difference(&shown[feature.name]).collect();
        if !missing.is_empty() {
            gaps.push(format!("{} shows no {missing:?}", feature.name));
        }
    }
    assert!(gaps.is_empty(), "{}", gaps.join("\n"));
    assert_eq!(features().count(), wanted.len(), "a table for what is no operator");
}

/// Returns the kinds of a case.
fn kinds_of(
    argument: &str,
    answer: &str,
    types: &[&str],
    document: &DocumentBuf,
) -> BTreeSet<Kind> {
    let mut kinds = BTreeSet::new();
    if answer.starts_with('!') {
        kinds.insert(WrongType);
    } else if answer != "missing" {
        let answer = json(&format!("{{\"v\": {answer}}}"));
        let answer = answer.get("v").expect("it was put there");
        kinds.extend(kinds_of_value(Some(answer), types).into_iter().filter(|kind| *kind == Bound));
        if answer != Value::Null {
            kinds.insert(Plain);
        }
    }
    let wrapped = json(&format!("{{\"v\": {argument}}}"));
    for (name, part) in arguments(wrapped.get("v").expect("it was put there")) {
        if name == "timezone" {
            kinds.insert(Zone);
        }
        let mut text = String::new();
        let form = frond_doc::extended_json::Form::Canonical;
        frond_doc::extended_json::write_value(part, form, &mut text);
        // A part that needs a variable which isn't there has no value by itself.
        if let Ok(value) = evaluate(&text, document) {
            kinds.extend(kinds_of_value(value.as_ref().map(ValueBuf::as_value), types));
        }
    }
    kinds
}

/// The arguments of an operator, with their names: one, a list, or some by name, some of which are
/// lists or have names within.
fn arguments(whole: Value<'_>) -> Vec<(&str, Value<'_>)> {
    let named = match whole {
        Value::Array(list) => return list.iter().map(|part| ("", part)).collect(),
        Value::Document(named) if has_names(whole) => named,
        _ => return vec![("", whole)],
    };
    let mut parts = Vec::new();
    for (name, part) in named.iter() {
        parts.push((name, part));
        match part {
            Value::Array(list) if matches!(name, "inputs" | "defaults") => {
                parts.extend(list.iter().map(|part| ("", part)));
            }
            Value::Array(list) if name == "branches" => {
                parts.extend(list.iter().flat_map(arguments));
            }
            Value::Document(variables) if name == "vars" => parts.extend(variables.iter()),
            _ => {}
        }
    }
    parts
}

fn kinds_of_value(value: Option<Value<'_>>, types: &[&str]) -> Vec<Kind> {
    let mut kinds = Vec::new();
    let Some(value) = value else { return vec![Missing] };
    match value {
        Value::Null => kinds.push(Null),
        Value::Array(_) => kinds.push(Array),
        Value::String(text) if !text.is_ascii() => kinds.push(Unicode),
        Value::Int32(i32::MIN | i32::MAX) => kinds.push(Bound),
        Value::Int64(number) if number.unsigned_abs() >= i64::MAX as u64 => kinds.push(Bound),
        Value::Double(number) if !number.is_finite() => kinds.push(NotFinite),
        Value::Decimal128(number) if !matches!(decimal::parts(number), Parts::Finite { .. }) => {
            kinds.push(NotFinite);
        }
        Value::DateTime(millis) if !(YEAR_TWO..YEAR_9999).contains(&millis) => kinds.push(Bound),
        _ => {}
    }
    let name = value.element_type().alias();
    if !types.is_empty() && !types.contains(&name) && name != "null" {
        kinds.push(WrongType);
    }
    kinds
}

const YEAR_TWO: i64 = -62_104_060_800_000;
const YEAR_9999: i64 = 253_370_764_800_000;
