//! Goal: BSON values mean the same to scripts as in MongoDB, in and out; no script runs on for
//! ever, takes much memory or finds traces of another.
//!
//! Method: tables of calls with what they give as extended JSON, or `!` and what the error says.
//! Hostile scripts are interrupted at the thousandth check whether to go on; each must have ended
//! by then.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use frond_doc::{DocumentBuf, Value, extended_json};

use crate::{Engine, Limits, ScriptError};

fn json(text: &str) -> DocumentBuf {
    extended_json::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn text(value: Value<'_>) -> String {
    let mut out = String::new();
    extended_json::write_value(value, extended_json::Form::Canonical, &mut out);
    out
}

fn engine() -> Engine {
    Engine::new(Arc::new(|| true)).expect("an engine")
}

/// `argument` is a value, `expected` too, or `!` and a part of the error.
fn check(rows: &[(&str, &str, &str)]) {
    let engine = engine();
    let mut differing = Vec::new();
    for (source, argument, expected) in rows {
        let given = json(&format!(r#"{{"v": {argument}}}"#));
        let found = match engine.call(source, None, given.get("v")) {
            Ok(value) => text(value.as_value()),
            Err(error) => format!("!{error}"),
        };
        let is_same = match expected.strip_prefix('!') {
            Some(part) => found.starts_with('!') && found.contains(part),
            None => found == text(json(&format!(r#"{{"v": {expected}}}"#)).get("v").unwrap()),
        };
        if !is_same {
            differing.push(format!("{source}\n  is    {found}\n  wants {expected}"));
        }
    }
    assert!(differing.is_empty(), "{} rows differ:\n{}", differing.len(), differing.join("\n"));
}

#[test]
fn values_go_in_and_out_as_they_are() {
    let same = |value: &'static str| ("function(x) { return {v: x}; }", value, value);
    for (source, given, value) in [
        same(r#""Straße""#),
        same(r#"{"$numberDouble": "1.5"}"#),
        same(r#"{"$numberLong": "9223372036854775807"}"#),
        same(r#"{"$numberDecimal": "1.10"}"#),
        same(r#"{"$oid": "5e5a8c000000000000000000"}"#),
        same(r#"{"$date": "2020-02-29T00:00:00Z"}"#),
        same(r#"{"$date": {"$numberLong": "-62135596800000"}}"#),
        same(r#"{"$binary": {"base64": "AQIDBA==", "subType": "80"}}"#),
        same(r#"{"$timestamp": {"t": 4294967295, "i": 7}}"#),
        same(r#"{"$regularExpression": {"pattern": "a.b", "options": "i"}}"#),
        same(r#"{"$minKey": 1}"#),
        same(r#"{"$maxKey": 1}"#),
        same(r#"{"$undefined": true}"#),
        same("null"),
        same("true"),
        same(r#"[{"$numberInt": "1"}, [], {}]"#),
        same(r#"{"a": {"$numberInt": "1"}, "b": {"c": {"$numberLong": "2"}}}"#),
        same(r#"{"__proto__": {"$numberInt": "1"}, "b": 2.5}"#),
        same(r#"{"$dbPointer": {"$ref": "c", "$id": {"$oid": "5e5a8c000000000000000000"}}}"#),
    ] {
        check(&[(source, given, format!(r#"{{"v": {value}}}"#).as_str())]);
    }
}

#[test]
fn numbers_are_doubles_but_where_an_integer_was() {
    check(&[
        ("function(x) { return x; }", "5", r#"{"$numberDouble": "5.0"}"#),
        ("function(x) { x.a++; x.b = 1; return x; }", r#"{"a": 5}"#, r#"{"a": 6, "b": 1.0}"#),
        ("function(x) { x.a = 0.5; return x; }", r#"{"a": 5}"#, r#"{"a": 0.5}"#),
        ("function(x) { return NumberInt(x + 1); }", "5", "6"),
        ("function(x) { return x + 1; }", r#"{"$numberLong": "5"}"#, r#"{"$numberDouble": "6.0"}"#),
        ("function(x) { return NumberLong(x); }", "5", r#"{"$numberLong": "5"}"#),
        (r#"NumberLong("9223372036854775807")"#, "0", r#"{"$numberLong": "9223372036854775807"}"#),
        ("5n", "0", r#"{"$numberLong": "5"}"#),
        ("2n ** 64n", "0", "!bigint"),
        (r#"NumberDecimal("1.50")"#, "0", r#"{"$numberDecimal": "1.50"}"#),
        (r#"NumberDecimal("x")"#, "0", "!NumberDecimal"),
        ("new Number(2)", "0", r#"{"$numberDouble": "2.0"}"#),
    ]);
}

#[test]
fn sources_are_functions_expressions_or_bodies() {
    check(&[
        ("x => x + 'b'", r#""a""#, r#""ab""#),
        ("(x) => { return x + 'b'; };", r#""a""#, r#""ab""#),
        ("function named(x) { return x + 'b' }", r#""a""#, r#""ab""#),
        ("'a' + 'b';", "1", r#""ab""#),
        ("return 'ab'", "1", r#""ab""#),
        ("var a = 'a'; a + 'b'", "1", r#""ab""#),
        ("var a = 'a'; if (a) { return a + 'b'; }", "1", r#""ab""#),
        ("/* one */ // two\n function(x) { return x; }", r#""a""#, r#""a""#),
        ("function(x) {", "1", "!SyntaxError"),
        ("MinKey", "1", r#"{"$minKey": 1}"#),
        ("throw 'up'", "1", "!uncaught exception: up"),
        ("function() { return missing; }", "1", "!ReferenceError: missing is not defined"),
        ("function() { }", "1", "null"),
        ("undefined", "1", "null"),
        ("function() { return this; }", "1", "{}"),
        (
            "function() { return function(a) { return a; }; }",
            "1",
            r#"{"$code": "function(a) { return a; }"}"#,
        ),
        (
            "function(f) { return f(3) + 'x'; }",
            r#"{"$code": "function(a) { return a + 1; }"}"#,
            r#""4x""#,
        ),
        ("Symbol('x')", "1", "!unable to convert"),
        ("({a: 'x\\0y', b: undefined})", "1", r#"{"a": "x\u0000y", "b": {"$undefined": true}}"#),
        ("({'x\\0y': 1})", "1", "!null char"),
        ("'\\ud800'", "1", "\"\u{fffd}\""),
        ("({get a() { return 'got'; }})", "1", r#"{"a": "got"}"#),
        ("({get a() { throw new Error('no'); }})", "1", "!Error: no"),
        ("function() { var a = {}; a.a = a; return a; }", "1", "!Do you have a cycle?"),
        ("hex_md5('abc')", "1", r#""900150983cd24fb0d6963f7d28e17f72""#),
        ("tojson({a: [1, NumberLong(2)]})", "1", r#""{ \"a\" : [ 1, NumberLong(2) ] }""#),
        ("HexData(0, '01020304')", "1", r#"{"$binary": {"base64": "AQIDBA==", "subType": "00"}}"#),
        (
            "UUID('00112233-4455-6677-8899-aabbccddeeff').hex()",
            "1",
            r#""00112233445566778899aabbccddeeff""#,
        ),
        ("ISODate('2020-02-29T12:30:00+01:00')", "1", r#"{"$date": "2020-02-29T11:30:00Z"}"#),
        (
            "[typeof require, typeof Proxy, typeof Promise, typeof fetch].join()",
            "1",
            r#""undefined,undefined,undefined,undefined""#,
        ),
        ("[3, 1, 2].sort().concat([[4]]).flat().indexOf(4)", "1", r#"{"$numberDouble": "3.0"}"#),
        ("Array.prototype.slice.call({length: 2, 0: 'a', 1: 'b'}).join()", "1", r#""a,b""#),
        ("function() { return Array.prototype.slice.call(arguments).length; }", "1", "1.0"),
    ]);
}

#[test]
fn emits_are_kept_as_they_were() {
    let emit = |source: &str| engine().emits(source, Some(json(r#"{"a": 2}"#).view()));
    let pairs =
        emit("function() { var v = {n: 1}; emit(this.a, v); v.n = 2; emit(undefined, v); }");
    assert_eq!(
        text(pairs.unwrap().as_value()),
        text(
            json(r#"{"v": [{"k": 2.0, "v": {"n": 1.0}}, {"k": null, "v": {"n": 2.0}}]}"#)
                .get("v")
                .unwrap()
        )
    );
    assert_eq!(emit("emit(1)"), Err(ScriptError::NoBson(31220, "emit takes 2 args".to_owned())));
    let endless = emit("while (true) emit(1, 'x'.repeat(1 << 20))");
    assert_eq!(endless, Err(ScriptError::TooLarge(Limits::LARGEST.result_bytes)));
}

#[test]
fn nothing_is_left_for_another_request() {
    let mine = engine();
    mine.call("Array.prototype.mine = 1; secret = 2; Object.prototype.x = 3", None, []).unwrap();
    let seen = "typeof secret + typeof [].mine + typeof ({}).x";
    let number = mine.call(seen, None, []).unwrap();
    assert_eq!(text(number.as_value()), r#""numbernumbernumber""#);
    let other = engine().call(seen, None, []).unwrap();
    assert_eq!(text(other.as_value()), r#""undefinedundefinedundefined""#);
}

/// Scripts that would run for years or take all memory.
const HOSTILE: &[&str] = &[
    "while (true);",
    "while (true) { try { while (true); } catch (e) { } finally { continue; } }",
    "for (;;) ({}).x",
    "function f() { return f(); } f()",
    "function f() { try { f(); } finally { f(); } } f()",
    "'x'.repeat(10 * 2 ** 30)",
    "var s = 'x'; while (true) s += s;",
    "var a = []; while (true) a.push('x'.repeat(1000) + a.length);",
    "new Array(2 ** 32 - 1).fill(1)",
    "new Array(2 ** 32 - 1)",
    "new Array(2 ** 32 - 1).join('')",
    "Array.prototype.indexOf.call({length: 2 ** 53 - 1}, 1)",
    "Array.prototype.includes.call({get length() { return 2 ** 53 - 1; }}, 1)",
    "Array.prototype.reverse.call({length: 2 ** 53 - 1})",
    "Array.prototype.unshift.call({length: 2 ** 53 - 2}, 1)",
    "Array.prototype.sort.call({length: 2 ** 40})",
    "Array.prototype.copyWithin.call({length: 2 ** 53 - 1}, 0, 5)",
    "Array.from({length: 2 ** 53 - 1})",
    "[new Array(2 ** 32 - 1)].flat()",
    "[].concat({length: 2 ** 53 - 1, [Symbol.isConcatSpreadable]: true})",
    "String.raw({raw: {length: 2 ** 53 - 1}})",
    "JSON.stringify({}, new Array(2 ** 32 - 1))",
    "JSON.stringify(new Array(2 ** 32 - 1))",
    "new Array(2 ** 32 - 1).values().drop(2 ** 32 - 2).next()",
    "'a'.repeat(2e7).indexOf('a'.repeat(1e7) + 'b')",
    "'a'.repeat(2e7).split('a'.repeat(1e7) + 'b')",
    "'a'.repeat(2e7).replace('a'.repeat(1e7) + 'b', '')",
    "'a'.repeat(2e7).lastIndexOf('b' + 'a'.repeat(1e7))",
    "/^(a+)+$/.test('a'.repeat(50) + 'b')",
    "/(a*)*b/.exec('a'.repeat(1e5))",
    "/((((a*)*)*)*)*b/.test('a'.repeat(1e3))",
    "new RegExp('('.repeat(1e5))",
    "eval('('.repeat(1e6))",
    "eval('['.repeat(1e5) + ']'.repeat(1e5))",
    "JSON.parse('['.repeat(1e6))",
    "var a = []; for (var i = 0; i < 149; i++) a = [a, a]; a",
    "({toString() { while (true); }}) + ''",
    "({get a() { while (true); }})",
    "throw {toString() { while (true); }}",
    "throw {get message() { while (true); }}",
    "Error.prototype.toString = function() { while (true); }; missing",
    "Object.defineProperty(Array.prototype, 0, {set() { while (true); }}); [].concat([1])",
    "sleep(1e12)",
    "var a = 2n; while (true) a = a * a;",
    "var a = Array(1e7); a.sort(); a.sort(); a.sort(); while (true) a.reverse();",
    "function* g() { while (true) yield 1; } [...g()]",
    "new Function('x'.repeat(3e7))",
    "Reflect.apply(Math.max, null, {length: 2 ** 32})",
    "new Uint8Array(2 ** 40)",
    "new Date(8.64e15).toString(); while (true) new Date().toLocaleString()",
];

#[test]
fn hostile_scripts_end() {
    for source in HOSTILE {
        let checks = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&checks);
        let go_on = move || count.fetch_add(1, Ordering::Relaxed) < 1000;
        let engine = Engine::new(Arc::new(go_on)).expect("an engine");
        let start = Instant::now();
        let result = engine.call(source, None, []);
        let took = start.elapsed();
        assert!(took < Duration::from_secs(100), "{source}: {took:?}");
        if took > Duration::from_secs(1) {
            println!("{source}: {took:?}, {} questions", checks.load(Ordering::Relaxed));
        }
        if *source == "while (true);" {
            assert_eq!(result, Err(ScriptError::Interrupted));
        }
        if let Ok(value) = result {
            println!("{source}: {:.80}", text(value.as_value()));
        }
        // Remains of one call harm no other call of the same request.
        checks.store(0, Ordering::Relaxed);
        if !source.contains("prototype") {
            let next = engine.call("1 + 1", None, []);
            assert!(next.is_ok(), "{source}: then {next:?}");
        }
    }
}

#[test]
fn scripts_of_random_pieces_neither_crash_nor_hang() {
    const PIECES: &[&str] = &[
        "this",
        "x",
        "[]",
        "{}",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "=>",
        "function",
        "return ",
        "1e9",
        "-1",
        "'a'",
        "/a+/g",
        ".length",
        ".constructor",
        ".prototype",
        ".call(",
        "new ",
        "Array",
        "Object",
        "String",
        "NumberLong",
        "ObjectId",
        "BinData",
        "Map",
        "WeakMap",
        "Date",
        "Symbol",
        "Reflect",
        "Error",
        "JSON",
        ".stringify(",
        "__frond",
        ".describe(",
        ".make(",
        "Function",
        "emit",
        "eval",
        "tojson",
        ",",
        ";",
        "=",
        "+",
        "...",
        "yield ",
        "async ",
        "await ",
        "class ",
        "extends ",
        "super",
        "get ",
        "set ",
        "null",
        "undefined",
        "NaN",
        "2n",
        "`${",
        "}`",
        "?.",
        "**",
        "delete ",
        "typeof ",
        "throw ",
        "try {",
        "} catch {",
        "while (",
        "for (",
        "of ",
        "in ",
        "Uint8Array",
        "ArrayBuffer",
        ".buffer",
        ".resize(",
        ".sort(",
        ".splice(",
        ".flat(",
        "x => ",
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |count: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % count
    };
    for round in 0..40 {
        let checks = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&checks);
        let go_on = move || count.fetch_add(1, Ordering::Relaxed) < 10;
        let engine = Engine::new(Arc::new(go_on)).expect("an engine");
        for _ in 0..50 {
            let source: String = (0..=next(12)).map(|_| PIECES[next(PIECES.len())]).collect();
            let given = json(r#"{"a": [1, {"$numberLong": "2"}], "b": {"c": "d"}}"#);
            checks.store(0, Ordering::Relaxed);
            let start = Instant::now();
            let _ = engine.call(&source, Some(given.view()), [Value::Document(given.view())]);
            assert!(start.elapsed() < Duration::from_secs(10), "{round}: {source}");
        }
    }
}

/// An engine that is dropped with what a script has begun in it doesn't end the process.
#[test]
fn no_syntax_ends_the_process() {
    for source in [
        "async function () { return true }",
        "async function () { await 1; return 2 }",
        "async () => 1",
        "async x => { await x }",
        "function () { (async () => { await new Object(); })(); return 1 }",
        "function () { return (async function* () { yield 1; })() }",
        "async function* () { yield* [1] }",
        "function* () { yield 1 }",
        "function () { const it = (function* () { yield 1; yield 2 })(); it.next(); return 1 }",
        "function () { return import('x') }",
        "function () { for await (const x of [1]) {} }",
        "async function () { for await (const x of [1]) {} }",
        "function () { return Array.fromAsync([1]) }",
        "function () { return typeof Promise }",
        "function () { return (async () => {})().then(() => 1) }",
        "class A {}",
        "function () { class A { static async a() {} } return A.a() }",
        "function () { return new WeakRef({}) }",
        "function () { return new Proxy(() => 1, {}) }",
        "function () { label: for (;;) break label; return 1n }",
        "function () { return eval('async () => 1')() }",
    ] {
        let engine = engine();
        for _ in 0..2 {
            let _ = engine.call(source, None, []);
        }
    }
    let promise = engine().call("typeof Promise", None, []).expect("called");
    assert_eq!(promise.as_value(), Value::String("undefined"));
}

/// Stored code isn't run by storing it, nor by handing the document to a script.
#[test]
fn stored_code_runs_when_it_is_called() {
    let engine = engine();
    let taken = "function(){}), (__frond.holds = function(){ return true }, globalThis.ran = 1), (function(){}";
    let handed = json(&format!(r#"{{"note": {{"$code": "{taken}"}}, "a": 2}}"#));
    assert!(!engine.holds("this.a == 1", handed.view()).expect("it runs"));
    let ran = engine.call("typeof ran", Some(handed.view()), []).expect("it runs");
    assert_eq!(ran.as_value(), Value::String("undefined"));
    // A script of the request can't take another's place either.
    let tries = "function () { 'use strict'; try { __frond.holds = () => true } catch (e) {} }";
    engine.call(tries, None, []).expect("it runs");
    assert!(!engine.holds("this.a == 1", handed.view()).expect("it runs"));
    check(&[
        (
            "v => v(20, 22)",
            r#"{"$code": "function (a, b) { return a + b }"}"#,
            r#"{"$numberDouble": "42.0"}"#,
        ),
        ("v => v", r#"{"$code": "it's a note"}"#, r#"{"$code": "it's a note"}"#),
        ("v => String(v)", r#"{"$code": "it's a note"}"#, r#""it's a note""#),
        ("v => v()", r#"{"$code": "it's a note"}"#, "!SyntaxError"),
        ("v => typeof v", r#"{"$code": "1"}"#, r#""function""#),
        (
            "v => v",
            r#"{"$regularExpression": {"pattern": "(?i)x++", "options": "i"}}"#,
            r#"{"$regularExpression": {"pattern": "(?i)x++", "options": "i"}}"#,
        ),
        (
            "v => v.test('x')",
            r#"{"$regularExpression": {"pattern": "(?i)x++", "options": ""}}"#,
            "!no pattern of JavaScript",
        ),
    ]);
}

#[test]
fn values_that_have_a_length_within_or_no_date() {
    // Here, too, the length within isn't shown.
    let old = r#"{"$binary": {"base64": "AQID", "subType": "02"}}"#;
    check(&[
        ("v => v", old, old),
        ("v => v.base64()", old, r#""AQID""#),
        ("v => BinData(2, v.base64())", old, old),
        ("v => v", r#"{"$date": {"$numberLong": "9223372036854775807"}}"#, "!an invalid date"),
        (
            "v => { const it = /a/; Object.defineProperty(it, 'flags', {value: {replace: () => 'q\\0q'}}); return it }",
            "1",
            "!a null byte in a pattern",
        ),
    ]);
}
