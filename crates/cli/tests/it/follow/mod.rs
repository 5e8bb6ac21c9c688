//! Goal: a following copy equals its source, whatever interrupts it, and each of its versions is a
//! state that the source has had. Method: clients change a server in every way; a follower reads it
//! through a proxy that knows only what MongoDB knows. Both are killed again and again. When the
//! clients have stopped and the copy has come up to them, it has the same documents to the byte,
//! the same indexes, as many changes as the stream has events, and no document was ever met
//! otherwise than the source had it.

mod load;
mod proxy;
mod secure;

use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use frond_doc::{DocumentBuf, Value, document};
use frond_server::Client;

use self::load::{ACCOUNTS, Load, MONEY, run};
use self::proxy::Proxy;
use crate::serving::Server;
use crate::{Directory, command, frond};

const SERVE: &str = "--changes-bytes 500MB --data source";

fn serve(directory: &Directory) -> Server {
    Server::start_with(directory, SERVE)
}

fn fill(address: &str) {
    let mut client = Client::connect(address).unwrap();
    let each = MONEY / ACCOUNTS;
    let accounts: Vec<String> =
        (0..ACCOUNTS).map(|id| format!(r#"{{"_id": {id}, "v": {each}}}"#)).collect();
    let items: Vec<String> = (0..9_000)
        .map(|id| format!(r#"{{"_id": {}, "n": {id}, "text": "{}"}}"#, id + 200, "x".repeat(300)))
        .collect();
    for (name, documents) in [("accounts", accounts), ("items", items)] {
        for some in documents.chunks(3_000) {
            let insert = format!(r#"{{"insert": "{name}", "documents": [{}]}}"#, some.join(", "));
            run(&mut client, "shop", &insert).unwrap();
        }
    }
    for command in [
        r#"{"create": "names", "collation": {"locale": "de", "strength": 1}}"#,
        r#"{"insert": "names", "documents": [{"_id": "b"}, {"_id": "Ä"}, {"_id": "z"}]}"#,
        r#"{"create": "checked", "validator": {"v": {"$gt": 0}}}"#,
        r#"{"insert": "checked", "documents": [{"v": -1}], "bypassDocumentValidation": true}"#,
        r#"{"create": "few", "capped": true, "size": 4096}"#,
        r#"{"create": "rich", "viewOn": "accounts", "pipeline": [{"$match": {"v": {"$gt": 100}}}]}"#,
        r#"{"createIndexes": "unique", "indexes": [{"key": {"u": 1}, "name": "u", "unique": true}]}"#,
        r#"{"createIndexes": "items", "indexes": [
            {"key": {"n": 1}, "name": "n"},
            {"key": {"at": 1}, "name": "at", "expireAfterSeconds": 3600}]}"#,
    ] {
        run(&mut client, "shop", command).expect(command);
    }
}

fn follow(directory: &Directory, proxy: &Proxy, more: &str) -> Child {
    let line = format!("follow mongodb://{}/shop --data copy {more}", proxy.address);
    let mut follow = command(directory, &line);
    follow.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Follows up to now; it must end well.
fn follow_once(directory: &Directory, proxy: &Proxy) -> String {
    let line = format!("follow mongodb://{}/shop --data copy --once", proxy.address);
    let ran = frond(directory, &line);
    assert_eq!(proxy.wrong(), Vec::<String>::new());
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.err
}

/// All documents and indexes of a database, by collections.
fn content(directory: &Directory, at: &str) -> Vec<(String, String)> {
    let listed = frond(directory, &format!("ls shop --json {at}")).ok();
    let names = listed.lines().filter_map(|line| {
        let row = frond_doc::extended_json::parse(line).unwrap();
        let text = |name: &str| row.get(name).and_then(|it| it.as_str()).unwrap_or("").to_owned();
        (text("type") == "collection").then(|| text("name"))
    });
    let mut content = Vec::new();
    let is_own =
        |name: &String| name == "few" || name == "frond.follow" || name.starts_with("system.");
    for name in names.filter(|name| !is_own(name)) {
        let documents = frond(directory, &format!("export -d shop -c {name} {at}")).ok();
        content.push((name, documents));
    }
    content.sort();
    content
}

/// The record of the copy.
fn record(directory: &Directory) -> DocumentBuf {
    let text = frond(directory, "export -d shop -c frond.follow --data copy").ok();
    frond_doc::extended_json::parse(text.trim()).unwrap()
}

fn number(record: &DocumentBuf, name: &str) -> i64 {
    record.get(name).and_then(|it| it.as_integer()).unwrap()
}

/// Returns how many documents the source's stream says were changed since then.
fn events_since(address: &str, record: &DocumentBuf) -> i64 {
    let mut client = Client::connect(address).unwrap();
    let token = record.get("token").unwrap().as_document().unwrap();
    let mut command = frond_doc::DocumentBuilder::new();
    command.append("aggregate", Value::Int32(1)).begin_array("pipeline").push_begin_document();
    command.begin_document("$changeStream").append("startAfter", Value::Document(token));
    command.end().end().end().begin_document("cursor").end();
    let mut answer = client.command("shop", command.build().view()).unwrap();
    let mut count = 0;
    loop {
        let cursor = answer.get("cursor").unwrap().as_document().unwrap().to_buf();
        let batch = cursor.get("nextBatch").or(cursor.get("firstBatch")).unwrap();
        let batch = batch.as_array().unwrap();
        let kinds = batch.iter().map(|event| event.as_document().unwrap().get("operationType"));
        count += kinds
            .filter(|kind| {
                let kind = kind.unwrap().as_str().unwrap();
                ["insert", "update", "replace", "delete"].contains(&kind)
            })
            .count() as i64;
        if batch.is_empty() && cursor.get("nextBatch").is_some() {
            return count;
        }
        let id = cursor.get("id").unwrap().as_integer().unwrap();
        let more = document! { "getMore": id, "collection": "$cmd.aggregate", "maxTimeMS": 10_i32 };
        answer = client.command("shop", more.view()).unwrap();
    }
}

#[track_caller]
fn assert_equal(directory: &Directory, server: &Server) {
    let source = content(directory, &format!("--uri {}", server.address));
    let copy = content(directory, "--data copy");
    let names = |of: &[(String, String)]| of.iter().map(|it| it.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&source), names(&copy));
    for ((name, source), (_, copy)) in source.iter().zip(&copy) {
        let differs = source.lines().zip(copy.lines()).find(|(source, copy)| source != copy);
        let counts = (source.lines().count(), copy.lines().count());
        assert!(source == copy, "{name}: {counts:?} {differs:?}");
    }
    let record = record(directory);
    assert_eq!(number(&record, "unlike"), 0);
}

#[test]
fn a_copy_follows_under_load_and_kills() {
    let directory = Directory::new();
    let mut server = serve(&directory);
    fill(&server.address);
    let proxy = Proxy::start(&server.address);
    let address = Arc::new(Mutex::new(server.address.clone()));
    let pause = |millis| thread::sleep(Duration::from_millis(millis));
    // Copied under load, by a follower that is killed.
    let load = Load::start(&address, 1);
    for millis in [150, 300, 500, 700] {
        let mut follower = follow(&directory, &proxy, "");
        pause(millis);
        follower.kill().unwrap();
        follower.wait().unwrap();
    }
    let output = follow_once(&directory, &proxy);
    assert!(output.contains("few is left out: capped"), "{output}");
    let answered = load.stop();
    follow_once(&directory, &proxy);
    assert_equal(&directory, &server);
    let before = record(&directory);
    // Followed under load; both are killed.
    let load = Load::start(&address, 2);
    for round in 0..6 {
        let mut follower = follow(&directory, &proxy, "--commit-every 40 --commit-every 1s");
        pause(400 + round * 50);
        if round % 2 == 1 {
            drop(server);
            server = serve(&directory);
            address.lock().unwrap().clone_from(&server.address);
            proxy.upstream.lock().unwrap().clone_from(&server.address);
            pause(600);
        }
        follower.kill().unwrap();
        follower.wait().unwrap();
    }
    let answered = answered + load.stop();
    assert!(answered > 300, "{answered} commands under load");
    follow_once(&directory, &proxy);
    assert_equal(&directory, &server);
    let after = record(&directory);
    let changes = number(&after, "changes") - number(&before, "changes");
    assert_eq!(changes, events_since(&server.address, &before));
    assert_whole_versions(&directory);
    assert_same_indexes(&directory, &server);
    eprintln!("{answered} commands, {changes} changes followed under kills");
}

/// A merge changes its documents all at once: in no order could one after the other have the value
/// that another gives up.
#[test]
fn unique_values_that_a_merge_exchanges_are_followed() {
    let directory = Directory::new();
    let server = serve(&directory);
    let mut client = Client::connect(&server.address).unwrap();
    let mut command = |database: &str, text: &str| run(&mut client, database, text).expect(text);
    command(
        "shop",
        r#"{"createIndexes": "c", "indexes": [{"key": {"k": 1}, "name": "k", "unique": true}]}"#,
    );
    command(
        "shop",
        r#"{"insert": "c", "documents": [{"_id": 0, "k": 0}, {"_id": 1, "k": 1},
        {"_id": 2, "k": 2}, {"_id": 3, "k": 3}]}"#,
    );
    command("shop", r#"{"frondCommit": 1, "message": "first"}"#);
    let follow = format!("follow mongodb://{}/shop --data copy --once", server.address);
    frond(&directory, &follow).ok();
    command("shop", r#"{"frondBranch": 1, "branch": "side"}"#);
    // Two exchange theirs, one takes that of one that goes, and one is new with what another had.
    for (id, k) in [(0, -1), (1, 0), (0, 1)] {
        let set = format!(r#"{{"q": {{"_id": {id}}}, "u": {{"$set": {{"k": {k}}}}}}}"#);
        command("shop@side", &format!(r#"{{"update": "c", "updates": [{set}]}}"#));
    }
    command("shop@side", r#"{"delete": "c", "deletes": [{"q": {"_id": 3}, "limit": 1}]}"#);
    command(
        "shop@side",
        r#"{"update": "c", "updates": [{"q": {"_id": 2}, "u": {"$set": {"k": 3}}}]}"#,
    );
    command("shop@side", r#"{"insert": "c", "documents": [{"_id": -7, "k": 2}]}"#);
    command("shop@side", r#"{"frondCommit": 1, "message": "exchanged"}"#);
    command("shop", r#"{"insert": "c", "documents": [{"_id": 9, "k": 9}]}"#);
    command("shop", r#"{"frondMerge": 1, "merge_in": "side"}"#);
    frond(&directory, &follow).ok();
    assert_equal(&directory, &server);
    // A version has no unique index, and no such collection.
    command("shop", r#"{"insert": "d", "documents": [{"_id": 0, "k": 0}, {"_id": 1, "k": 1}]}"#);
    command("shop", r#"{"frondCommit": 1, "message": "without"}"#);
    command(
        "shop",
        r#"{"createIndexes": "d", "indexes": [{"key": {"k": 1}, "name": "k", "unique": true}]}"#,
    );
    command("shop", r#"{"create": "empty"}"#);
    frond(&directory, &follow).ok();
    command("shop", r#"{"frondReset": 1, "target": "HEAD", "hard": true}"#);
    command("shop", r#"{"insert": "d", "documents": [{"_id": 2, "k": 0}]}"#);
    // Collections come to be in other ways than by an insert.
    let kept = r#""changeStreamPreAndPostImages": {"enabled": true}"#;
    command("shop", &format!(r#"{{"create": "bare", {kept}}}"#));
    command("shop", &format!(r#"{{"collMod": "c", {kept}}}"#));
    command("shop", r#"{"aggregate": "c", "pipeline": [{"$out": "made"}], "cursor": {}}"#);
    command("other", r#"{"insert": "x", "documents": [{"_id": 1}]}"#);
    command("other", r#"{"createIndexes": "x", "indexes": [{"key": {"k": 1}, "name": "k"}]}"#);
    command("admin", r#"{"renameCollection": "other.x", "to": "shop.came"}"#);
    command("shop@side", r#"{"insert": "fresh", "documents": [{"_id": 1}]}"#);
    command("shop@side", r#"{"frondCommit": 1, "message": "fresh"}"#);
    command("shop", r#"{"frondCommit": 1, "message": "others"}"#);
    command("shop", r#"{"frondMerge": 1, "merge_in": "side"}"#);
    frond(&directory, &follow).ok();
    assert_equal(&directory, &server);
    assert_same_options(&directory, &server);
    for name in ["made", "came", "fresh", "bare", "d"] {
        command("shop", &format!(r#"{{"insert": "{name}", "documents": [{{"_id": 70}}]}}"#));
    }
    frond(&directory, &follow).ok();
    assert_equal(&directory, &server);
}

/// Also whether documents are kept as they were.
fn assert_same_options(directory: &Directory, server: &Server) {
    let copy = Server::start_with(directory, "--data copy");
    let options = |server: &Server, name: &str| {
        let mut client = Client::connect(&server.address).unwrap();
        let filter = document! { "name": name };
        let list = document! { "listCollections": 1_i32, "filter": &filter };
        let listed = client.documents("shop", list.view()).unwrap();
        format!("{:?}", listed.first().and_then(|listed| listed.get("options")))
    };
    for (name, keeps) in [("bare", true), ("c", true), ("came", false)] {
        let of_source = options(server, name);
        assert_eq!(of_source.contains("PreAndPostImages"), keeps, "{of_source}");
        assert_eq!(of_source, options(&copy, name));
    }
    copy.stop();
}

/// Also how they are made; but that nothing expires in a copy.
fn assert_same_indexes(directory: &Directory, server: &Server) {
    let copy = Server::start_with(directory, "--data copy");
    let listed = |server: &Server, what: &DocumentBuf| {
        let mut client = Client::connect(&server.address).unwrap();
        let found = client.documents("shop", what.view()).unwrap();
        let described = found.iter().filter_map(|index| {
            let name = index.get("name")?.as_str()?.to_owned();
            let parts = ["key", "unique", "type", "options"].map(|part| index.get(part));
            let is_own = ["few", "frond.follow", "system.views"].contains(&&*name);
            (!is_own).then(|| (name, format!("{parts:?}")))
        });
        let mut described: Vec<(String, String)> = described.collect();
        described.sort();
        described
    };
    let collections = document! { "listCollections": 1_i32 };
    assert_eq!(listed(server, &collections), listed(&copy, &collections));
    for (name, _) in content(directory, &format!("--uri {}", server.address)) {
        let indexes = document! { "listIndexes": name.as_str() };
        assert_eq!(listed(server, &indexes), listed(&copy, &indexes), "{name}");
    }
    let items = listed(&copy, &document! { "listIndexes": "items" });
    assert_eq!(items.len(), 3, "{items:?}");
}

/// No version has a part of a transfer.
fn assert_whole_versions(directory: &Directory) {
    let log = frond(directory, "log shop --json --data copy").ok();
    let log = frond_doc::extended_json::parse(&log).unwrap();
    let commits = log.get("commits").unwrap().as_array().unwrap();
    let id = |commit: Value<'_>| {
        let commit = commit.as_document().unwrap();
        commit.get("commitId").unwrap().as_str().unwrap().to_owned()
    };
    let ids: Vec<String> = commits.iter().map(id).collect();
    assert!(ids.len() > 4, "{log:?}");
    for id in ids {
        let accounts =
            frond(directory, &format!("export -d shop@{id} -c accounts --data copy")).ok();
        let money: i64 = accounts
            .lines()
            .map(|line| frond_doc::extended_json::parse(line).unwrap())
            .map(|account| number(&account, "v"))
            .sum();
        assert_eq!(money, MONEY, "{id}");
    }
}

#[test]
fn a_copy_in_a_running_server_and_what_is_refused() {
    let directory = Directory::new();
    let source = serve(&directory);
    let mut client = Client::connect(&source.address).unwrap();
    run(&mut client, "shop", r#"{"insert": "items", "documents": [{"_id": 1}]}"#).unwrap();
    let target = Server::start_with(&directory, "--data target");
    let silent = Server::start_with(&directory, "--data silent --changes off");
    let into = format!("--uri {} --into copy@live", target.address);
    let follow = format!("follow mongodb://{}/shop", source.address);
    // A branch is of a database that is there.
    let mut to = Client::connect(&target.address).unwrap();
    run(&mut to, "copy", r#"{"insert": "notes", "documents": [{"_id": 1}]}"#).unwrap();
    run(&mut to, "copy", r#"{"frondCommit": 1, "message": "mine"}"#).unwrap();
    run(&mut to, "copy", r#"{"frondBranch": 1, "branch": "live"}"#).unwrap();
    let out = frond(&directory, &format!("{follow} {into} --once")).ok();
    assert!(out.contains("copied items: 1 document"), "{out}");
    assert!(out.contains("copy of "), "{out}");
    run(&mut client, "shop", r#"{"insert": "items", "documents": [{"_id": 2}, {"_id": 3}]}"#);
    let out = frond(&directory, &format!("{follow} {into} --once --json")).ok();
    assert!(out.contains("\"message\":\"2 changes of "), "{out}");
    let diff = format!("diff copy main live -c items --uri {}", target.address);
    let diff = frond(&directory, &diff).ok();
    assert_eq!(diff.matches("+ {\"_id\":").count(), 3, "{diff}");
    // Others write to it: that is reported, and the copy is as the source has it.
    run(&mut to, "copy@live", r#"{"insert": "items", "documents": [{"_id": 4, "mine": 1}]}"#);
    run(&mut client, "shop", r#"{"insert": "items", "documents": [{"_id": 4}]}"#);
    let output = frond(&directory, &format!("{follow} {into} --once")).fails(3);
    assert!(output.contains("1 document of the copy not as the source had them"), "{output}");
    for (line, expected) in [
        (format!("{follow} --into shop2 --uri {} --once", source.address), ""),
        (format!("{follow} --once --uri {}", source.address), "is there already"),
        (format!("follow mongodb://{}/other {into}", source.address), "is a copy of shop"),
        (format!("follow mongodb://{}/shop --once", silent.address), "change streams"),
        ("follow mongodb://127.0.0.1:1/shop".to_owned(), "is a server running there?"),
    ] {
        let ran = frond(&directory, &line);
        assert_eq!(ran.code, i32::from(!expected.is_empty()), "{line}: {ran:?}");
        assert!(ran.err.contains(expected), "{line}: {ran:?}");
    }
    frond(&directory, &format!("follow mongodb://{} --once", source.address)).fails(2);
}
