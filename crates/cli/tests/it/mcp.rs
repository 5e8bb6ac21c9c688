//! Goal: an agent reads every version and writes to its own branch only, and its proposals wait for
//! a person. Method: sessions as clients of the Model Context Protocol have them, a line a message.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use frond_doc::{Document, DocumentBuf, Value, extended_json};

use crate::serving::Server;
use crate::{Directory, command, frond, frond_with};

/// A session.
struct Session {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last: i32,
}

impl Session {
    fn start(directory: &Directory, line: &str) -> Session {
        let mut child = command(directory, &format!("mcp {line}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut session = Session { child, input, output, last: 0 };
        let hello = session.ask(
            "initialize",
            r#"{"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}"#,
        );
        assert_eq!(text(at(&hello, "result").view(), "protocolVersion"), "2025-03-26");
        session.send(r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#);
        session
    }

    fn send(&mut self, line: &str) {
        let line = line.replace('\n', " ");
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn receive(&mut self) -> DocumentBuf {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        extended_json::parse(&line).expect(&line)
    }

    fn ask(&mut self, method: &str, params: &str) -> DocumentBuf {
        self.last += 1;
        let id = self.last;
        self.send(&format!(
            r#"{{"jsonrpc": "2.0", "id": {id}, "method": "{method}", "params": {params}}}"#
        ));
        let answer = self.receive();
        assert_eq!(answer.get("id"), Some(Value::Int32(id)), "{answer:?}");
        answer
    }

    /// Calls a tool; its text, and whether it is an error.
    fn call(&mut self, name: &str, arguments: &str) -> (String, bool) {
        let params = format!(r#"{{"name": "{name}", "arguments": {arguments}}}"#);
        let result = at(&self.ask("tools/call", &params), "result");
        let content = result.get("content").and_then(|it| it.as_array()).unwrap();
        let item = content.get(0).and_then(|it| it.as_document()).unwrap();
        (text(item, "text").to_owned(), result.get("isError") == Some(Value::Boolean(true)))
    }

    #[track_caller]
    fn ok(&mut self, name: &str, arguments: &str) -> String {
        let (text, is_error) = self.call(name, arguments);
        assert!(!is_error, "{name}: {text}");
        text
    }

    #[track_caller]
    fn fails(&mut self, name: &str, arguments: &str) -> String {
        let (text, is_error) = self.call(name, arguments);
        assert!(is_error, "{name}: {text}");
        text
    }

    fn end(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

fn at(document: &DocumentBuf, name: &str) -> DocumentBuf {
    document.get(name).and_then(|it| it.as_document()).expect(name).to_buf()
}

fn text<'a>(document: Document<'a>, name: &str) -> &'a str {
    document.get(name).and_then(|it| it.as_str()).unwrap_or("")
}

fn tools(session: &mut Session) -> Vec<String> {
    let listed = at(&session.ask("tools/list", "{}"), "result");
    let listed = listed.get("tools").and_then(|it| it.as_array()).unwrap();
    let listed = listed.iter().map(|tool| {
        let tool = tool.as_document().unwrap();
        let schema = tool.get("inputSchema").and_then(|it| it.as_document()).unwrap();
        assert_eq!(text(schema, "type"), "object");
        assert!(!text(tool, "description").is_empty() && tool.get("annotations").is_some());
        text(tool, "name").to_owned()
    });
    listed.collect()
}

fn shop() -> Directory {
    let directory = Directory::new();
    let items = "{\"_id\": 1, \"price\": 30}\n{\"_id\": 2, \"price\": -240}";
    frond_with(&directory, "import -d shop -c items --commit first", items).ok();
    directory
}

#[test]
fn an_agent_works_on_its_branch_and_a_person_merges() {
    let directory = shop();
    let mut session = Session::start(&directory, "shop@agent/prices");
    assert_eq!(tools(&mut session).len(), 15);
    let listed = session.ok("collections", "{}");
    assert!(listed.contains("\"name\":\"items\"") && listed.contains("\"price\":30"), "{listed}");
    let wrong = session.ok("find", r#"{"collection": "items", "filter": {"price": {"$lt": 0}}}"#);
    assert_eq!(wrong, r#"{"_id":2,"price":-240}"#);
    assert!(
        session.fails("propose", r#"{"message": "nothing"}"#).contains("has all of it already")
    );
    session.ok(
        "update",
        r#"{"collection": "items", "filter": {"_id": 2}, "update": {"$set": {"price": 240}}}"#,
    );
    session.ok("insert", r#"{"collection": "items", "documents": [{"_id": 3}, {"_id": 4}]}"#);
    session.ok("delete", r#"{"collection": "items", "filter": {"_id": 4}}"#);
    session.ok("create_index", r#"{"collection": "items", "key": {"price": 1}}"#);
    let at_main = r#"{"collection": "items", "version": "main", "filter": {"_id": 2}}"#;
    assert_eq!(session.ok("find", at_main), r#"{"_id":2,"price":-240}"#);
    assert!(session.ok("count", r#"{"collection": "items"}"#).contains("\"n\":3"));
    let sum = r#"{"collection": "items", "pipeline": [{"$group": {"_id": null, "sum": {"$sum": "$price"}}}]}"#;
    assert_eq!(session.ok("aggregate", sum), r#"{"_id":null,"sum":270}"#);
    let plan = r#"{"collection": "items", "filter": {"price": {"$gt": 100}}}"#;
    assert!(session.ok("explain", plan).contains("price_1"));
    assert!(session.ok("diff", "{}").contains("\"to\":240"));
    session.ok("commit", r#"{"message": "prices are positive"}"#);
    session.ok("insert", r#"{"collection": "items", "documents": [{"_id": 5}]}"#);
    session.ok("discard", "{}");
    session.ok("insert", r#"{"collection": "items", "documents": [{"_id": 6}]}"#);
    let proposed = session.ok("propose", r#"{"message": "and a sixth"}"#);
    assert!(proposed.contains("frond merge shop agent/prices"), "{proposed}");
    let history = session.ok("history", r#"{"collection": "items", "id": 2}"#);
    assert!(history.contains("prices are positive"), "{history}");
    assert!(session.ok("log", r#"{"limit": 1}"#).contains("and a sixth"));
    session.end();
    let diff = frond(&directory, "diff shop main...agent/prices").ok();
    assert!(diff.contains("-240 → 240") && diff.contains("+ {\"_id\":6}"), "{diff}");
    assert!(!diff.contains("\"_id\":5"), "{diff}");
    let before = frond(&directory, "export -d shop -c items").ok();
    assert!(before.contains("-240"), "nothing is merged by the agent: {before}");
    frond(&directory, "merge shop agent/prices").ok();
    assert!(!frond(&directory, "export -d shop -c items").ok().contains("-240"));
}

#[test]
fn nothing_leads_off_the_branch() {
    let directory = shop();
    frond_with(&directory, "import -d hr -c pay", "{\"_id\":\"boss\"}").ok();
    let mut session = Session::start(&directory, "shop@agent/x");
    for stage in
        [r#"{"$out": "items"}"#, r#"{"$merge": {"into": {"db": "shop", "coll": "items"}}}"#]
    {
        let arguments = format!(r#"{{"collection": "items", "pipeline": [{stage}]}}"#);
        assert!(session.fails("aggregate", &arguments).contains("reads only"));
        let nested = format!(
            r#"{{"collection": "items", "pipeline": [{{"$unionWith": {{"coll": "items", "pipeline": [{stage}]}}}}]}}"#
        );
        session.fails("aggregate", &nested);
    }
    for stage in [
        r#"{"$unionWith": {"db": "hr", "coll": "pay"}}"#,
        r#"{"$lookup": {"from": {"db": "hr", "coll": "pay"}, "pipeline": [], "as": "a"}}"#,
        r#"{"$facet": {"a": [{"$lookup": {"from": "items", "as": "a", "pipeline":
            [{"$unionWith": {"db": "hr", "coll": "pay"}}]}}]}}"#,
    ] {
        let arguments = format!(r#"{{"collection": "items", "pipeline": [{stage}]}}"#);
        assert!(session.fails("aggregate", &arguments).contains("db is refused"), "{stage}");
    }
    let elsewhere = r#"{"collection": "items", "documents": [{"_id": 9}], "version": "main"}"#;
    assert!(session.fails("insert", elsewhere).contains("insert takes no version"));
    session.fails("insert", r#"{"collection": "items", "documents": [{"_id": 9}], "$db": "shop"}"#);
    session.fails("insert", r#"{"collection": "items", "documents": {"_id": 9}}"#);
    session.ok("insert", r#"{"collection": "items", "documents": [{"_id": 9}]}"#);
    session.fails("insert", r#"{"collection": "items", "documents": [{"_id": 9}]}"#);
    session.fails("insert", r#"{"documents": [{"_id": 9}]}"#);
    session.fails("insert", r#"{"collection": {"a": 1}, "documents": [{"_id": 10}]}"#);
    session.fails("find", r#"{"collection": "items", "version": 1}"#);
    for (message, code) in [
        ("{", -32700),
        ("[]", -32700),
        (r#"{"id": 1, "method": "ping"}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": {"a": 1}, "method": "ping"}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": null, "method": "ping"}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": "a", "method": "resources/list"}"#, -32601),
        (
            r#"{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "drop"}}"#,
            -32602,
        ),
    ] {
        session.send(message);
        let answer = session.receive();
        assert_eq!(at(&answer, "error").get("code"), Some(Value::Int32(code)), "{message}");
    }
    assert!(at(&session.ask("ping", "{}"), "result").view().is_empty());
    session.end();
    assert_eq!(frond(&directory, "export -d shop -c items").ok().lines().count(), 2);

    let mut session = Session::start(&directory, "shop --read-only");
    assert_eq!(tools(&mut session).len(), 8);
    let insert = r#"{"name": "insert", "arguments": {"collection": "items", "documents": [{}]}}"#;
    let refused = at(&session.ask("tools/call", insert), "error");
    assert_eq!(refused.get("code"), Some(Value::Int32(-32602)));
    session.end();
    for line in ["mcp shop", "mcp shop@main", "mcp shop@"] {
        let error = frond(&directory, line).fails(2);
        assert!(error.contains("name"), "{error}");
    }
}

#[test]
fn a_call_that_does_not_end_is_ended() {
    let directory = shop();
    let mut session = Session::start(&directory, "shop@agent/x --max-time 1");
    let endless = r#"{"collection": "items", "filter": {"$where": "while (true) {}"}}"#;
    for tool in ["find", "count", "explain", "delete"] {
        let error = session.fails(tool, endless);
        assert!(error.contains("exceeded time limit"), "{tool}: {error}");
    }
    session.ok("find", r#"{"collection": "items"}"#);
    session.end();
}

/// On a server, what an agent may do beside its tools is for its roles to say.
#[test]
fn an_agent_works_on_a_running_server() {
    let directory = shop();
    let server = Server::start(&directory);
    let mut session = Session::start(&directory, &format!("shop@agent/x --uri {}", server.address));
    session.ok(
        "insert",
        r#"{"collection": "items", "documents": [{"_id": {"$oid": "0123456789abcdef01234567"}}]}"#,
    );
    session.ok("propose", r#"{"message": "an id"}"#);
    session.end();
    let diff = format!("diff shop main...agent/x --uri {}", server.address);
    assert!(frond(&directory, &diff).ok().contains("$oid"));
    server.stop();
}

/// A session that reached the data through a server leaves them to the next one.
#[test]
fn a_server_that_is_started_again_finds_its_data_free() {
    let directory = shop();
    let server = Server::start(&directory);
    let mut session = Session::start(&directory, "shop@agent/x");
    assert_eq!(session.ok("count", r#"{"collection": "items"}"#), "{\"n\":2}");
    server.stop();
    session.fails("count", r#"{"collection": "items"}"#);
    session.fails("count", r#"{"collection": "items"}"#);
    let server = Server::start(&directory);
    session.fails("count", r#"{"collection": "items"}"#);
    assert_eq!(session.ok("count", r#"{"collection": "items"}"#), "{\"n\":2}");
    session.end();
    server.stop();
}

#[test]
fn a_branchs_name_is_read_as_a_databases_is() {
    let directory = shop();
    let refused = frond(&directory, "mcp shop@ma%69n").fails(2);
    assert!(refused.contains("main is what branches are merged into"), "{refused}");
    let mut session = Session::start(&directory, "shop@x%2541");
    session.ok("insert", r#"{"collection": "items", "documents": [{"_id": 9}]}"#);
    session.ok("commit", r#"{"message": "one more"}"#);
    session.end();
    assert_eq!(frond(&directory, "export -d shop@x%2541 -c items").ok().lines().count(), 3);
    assert_eq!(frond(&directory, "export -d shop -c items").ok().lines().count(), 2);
}

/// `HEAD`, and what is counted from it, is the branch's own last commit in every tool.
#[test]
fn head_is_the_bound_branchs() {
    let directory = shop();
    let mut session = Session::start(&directory, "shop@agent/h");
    for step in ["first", "second"] {
        session.ok(
            "update",
            &format!(
                r#"{{"collection": "items", "filter": {{}}, "update": {{"$set": {{"by": "{step}"}}}}, "many": true}}"#
            ),
        );
        session.ok("commit", &format!(r#"{{"message": "{step}"}}"#));
    }
    let change = r#"{"collection": "items", "filter": {}, "update": {"$set": {"by": "third"}}, "many": true}"#;
    session.ok("update", change);
    let mut by = |version: &str| {
        let version = match version {
            "" => String::new(),
            version => format!(r#", "version": "{version}""#),
        };
        let found = session.ok("find", &format!(r#"{{"collection": "items"{version}}}"#));
        ["first", "second", "third"].into_iter().find(|step| found.contains(step))
    };
    assert_eq!(by(""), Some("third"));
    assert_eq!(by("HEAD"), Some("second"));
    for before in ["HEAD~1", "HEAD^", "agent/h~1"] {
        assert_eq!(by(before), Some("first"), "{before}");
    }
    assert_eq!(by("main"), None);
    assert_eq!(by("HEAD~2"), None);
    assert_eq!(by("@{now}"), Some("third"));
    session.end();
}
