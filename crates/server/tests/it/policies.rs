//! Goal: a rule that takes for ever holds up its own database's automatic commits alone, is seen,
//! and can be ended: by `killOp`, by its policy's limit of time, by the server's stop. Method: a
//! rule that counts to ten billion, beside a database that commits after each write.

use std::time::{Duration, Instant};

use frond_doc::{DocumentBuf, Value};

use crate::running::{Running, TestClient};

/// It depends on the document, so that it isn't evaluated once for all.
const ENDLESS: &str = r#"{"$expr": {"$gte": [{"$size": {"$filter": {
    "input": {"$range": [0, {"$add": [100000, "$n"]}]},
    "cond": {"$gte": [{"$size": {"$range": [0, {"$add": [100000, "$n"]}]}}, 0]}}}}, 0]}}"#;

/// More than the server needs for anything here, and less than the rule.
const PATIENCE: Duration = Duration::from_secs(45);

/// Waits until `found` finds something.
fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{what} never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The id of the automatic commit that runs in `slow`.
fn running(client: &mut TestClient) -> Option<i32> {
    let own = r#"{"currentOp": 1, "desc": "commit policy", "ns": "slow@main.$cmd"}"#;
    let answer = client.ok("admin", own);
    let list = answer.get("inprog")?.as_array()?;
    let operation = list.iter().next()?.as_document()?;
    assert!(operation.get("client").is_none());
    operation.get("opid")?.as_integer().and_then(|id| i32::try_from(id).ok())
}

/// As `running`, of one that doesn't end at once, as one does that finds nothing to commit.
fn lasting(client: &mut TestClient) -> Option<i32> {
    let id = running(client)?;
    std::thread::sleep(Duration::from_secs(1));
    running(client).filter(|still| *still == id)
}

/// Whether the log says that a commit of `slow` failed with such an error.
fn failed_with(client: &mut TestClient, error: &str) -> Option<()> {
    let log = client.ok("admin", r#"{"getLog": "global"}"#);
    let lines = log.get("log")?.as_array()?;
    let mut lines = lines.iter().filter_map(|line| line.as_str().map(str::to_owned));
    lines.any(|line| line.contains("a policy failed") && line.contains(error)).then_some(())
}

fn set(client: &mut TestClient, database: &str, fields: &str) -> DocumentBuf {
    client.ok(database, r#"{"insert": "c", "documents": [{"_id": "first", "n": 0}]}"#);
    client.ok(database, r#"{"frondCommit": 1, "message": "first"}"#);
    client.ok(database, &format!(r#"{{"frondPolicy": 1, "set": {{"changedBytes": 1{fields}}}}}"#))
}

fn insert(client: &mut TestClient, database: &str) {
    client.ok(database, r#"{"insert": "c", "documents": [{"n": 3}]}"#);
}

fn is_clean(client: &mut TestClient, database: &str) -> Option<()> {
    let status = client.ok(database, r#"{"frondStatus": 1}"#);
    (status.get("dirty")? == Value::Boolean(false)).then_some(())
}

fn rules() -> String {
    format!(r#", "rules": [{{"name": "r", "collection": "c", "documents": {ENDLESS}}}]"#)
}

#[test]
fn a_slow_rule_holds_up_no_other_database() {
    let server = Running::start();
    let mut client = server.client();
    set(&mut client, "slow", &rules());
    set(&mut client, "other", "");
    insert(&mut client, "slow");
    let id = wait_for("slow's commit", || lasting(&mut client));
    insert(&mut client, "other");
    wait_for("other's commit", || is_clean(&mut client, "other"));
    assert_eq!(running(&mut client), Some(id));
    // What is written meanwhile begins no second one.
    insert(&mut client, "slow");
    insert(&mut client, "other");
    wait_for("other's commit", || is_clean(&mut client, "other"));
    assert_eq!(running(&mut client), Some(id));
    client.ok("admin", &format!(r#"{{"killOp": 1, "op": {id}}}"#));
    wait_for("the reason", || failed_with(&mut client, "operation was interrupted"));
    // The write that came meanwhile has it tried again; the server's stop doesn't wait for it.
    wait_for("slow's next commit", || running(&mut client).filter(|next| *next != id));
    assert_eq!(is_clean(&mut client, "slow"), None);
    drop(client);
    let begun = Instant::now();
    drop(server);
    assert!(begun.elapsed() < PATIENCE, "it waits for the rule");
}

#[test]
fn a_policy_limits_its_commits_time() {
    let server = Running::start();
    let mut client = server.client();
    set(&mut client, "slow", &format!(r#", "maxSeconds": 1{}"#, rules()));
    insert(&mut client, "slow");
    wait_for("the reason", || failed_with(&mut client, "maxSeconds, 1"));
    assert_eq!(is_clean(&mut client, "slow"), None);
    assert_eq!(running(&mut client), None);
}
