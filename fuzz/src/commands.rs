//! Commands as clients send them: a line of extended JSON each, run one after the other.

use std::cell::RefCell;

use frond_db::FrondOptions;
use frond_doc::extended_json;
use frond_server::InProcess;
use frond_testkit::SimDisk;

/// How many inputs share a server, so that what one leaves behind hardly matters to others.
const INPUTS_PER_SERVER: usize = 200;
/// Most commands of one input.
const COMMANDS_MAX: usize = 8;

/// What each input begins with.
const BEFORE: &[&str] = &[
    r#"{"dropDatabase": 1}"#,
    r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1, "b.c": -1}, "name": "ab"}, {"key": {"t": "text"}, "name": "t"}]}"#,
    r#"{"insert": "c", "documents": [{"_id": 1, "a": 5, "b": [{"c": 1}, {"c": [2, 3]}], "t": "some words", "d": {"$date": "2026-01-02T03:04:05Z"}},
        {"_id": 2, "a": null, "b": {"c": 1.5}, "t": "other words", "g": {"type": "Point", "coordinates": [1, 2]}},
        {"_id": 3, "a": {"$numberDecimal": "1E3"}, "s": "Straße", "x": {"y": {"z": [1, [2, 3], "4"]}}}]}"#,
];

thread_local! {
    static SERVER: RefCell<(InProcess, usize)> = RefCell::new((server(), 0));
}

/// A new server on a new disk.
pub fn server() -> InProcess {
    let machine = SimDisk::new(1).machine();
    let options = FrondOptions::for_memory(64 << 20);
    InProcess::new(frond_vcs::open_on(&machine, options).expect("an empty disk is opened"))
}

/// Runs a command, if `text` is a document, and returns the answer as JSON.
pub fn run(server: &InProcess, text: &str) -> Option<String> {
    let command = extended_json::parse(text).ok()?;
    let database = if text.starts_with(r#"{"frondGc""#) { "admin" } else { "fuzz" };
    let answer = server.execute(database, command.view(), &[]);
    let mut json = String::new();
    extended_json::write(answer.view(), extended_json::Form::Relaxed, &mut json);
    Some(json)
}

/// Lines that may be commands.
pub fn command(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    SERVER.with_borrow_mut(|(server, inputs)| {
        if *inputs == INPUTS_PER_SERVER {
            (*server, *inputs) = (self::server(), 0);
        }
        *inputs += 1;
        for line in BEFORE.iter().copied().chain(text.lines().take(COMMANDS_MAX)) {
            run(server, line);
        }
    });
}
