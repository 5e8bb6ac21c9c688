//! `getClusterParameter` and `setClusterParameter`: what is set, what is refused, and what holds
//! after a restart.

use frond_doc::{DocumentBuf, Value};
use frond_server::ServerOptions;
use frond_testkit::SimDisk;

use crate::running::{Running, TestClient};

fn set(options: &str) -> String {
    format!(r#"{{"setClusterParameter": {{"changeStreamOptions": {options}}}}}"#)
}

/// What holds, and whether it was ever set.
fn parameters(client: &mut TestClient, names: &str) -> (String, bool) {
    let answer = client.ok("admin", &format!(r#"{{"getClusterParameter": {names}}}"#));
    let all = answer.get("clusterParameters").and_then(|all| all.as_array()).expect("an array");
    let all: Vec<DocumentBuf> =
        all.iter().map(|one| one.as_document().expect("a document").to_buf()).collect();
    let [one] = &all[..] else { panic!("{all:?}") };
    assert_eq!(one.get("_id"), Some(Value::String("changeStreamOptions")));
    let Some(Value::Timestamp(time)) = one.get("clusterParameterTime") else { panic!("{one:?}") };
    (frond_query::text::value(one.get("preAndPostImages").expect("there")), 0 < time.0)
}

#[test]
fn change_stream_options_are_set_shown_and_kept() {
    let disk = SimDisk::new(1);
    let server = Running::recording_events(&disk, ServerOptions::default());
    let mut client = server.client();
    let off = r#"{ expireAfterSeconds: "off" }"#;
    for names in [r#""changeStreamOptions""#, r#""*""#, r#"["changeStreamOptions"]"#] {
        assert_eq!(parameters(&mut client, names), (off.to_owned(), false), "{names}");
    }
    // This gives the cluster a time.
    client.ok("a", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    client.ok("admin", &set(r#"{"preAndPostImages": {"expireAfterSeconds": 100.7}}"#));
    let hundred = ("{ expireAfterSeconds: 100 }".to_owned(), true);
    assert_eq!(parameters(&mut client, r#""*""#), hundred);
    drop(client);
    drop(server);
    let server = Running::recording_events(&disk, ServerOptions::default());
    let mut client = server.client();
    assert_eq!(parameters(&mut client, r#""*""#), hundred);
    client.ok("admin", &set(r#"{"preAndPostImages": {"expireAfterSeconds": "off"}}"#));
    assert_eq!(parameters(&mut client, r#""*""#), (off.to_owned(), true));
}

#[test]
fn unknown_parameters_and_wrong_values_are_refused() {
    let server = Running::start();
    let mut client = server.client();
    for (command, code) in [
        (r#"{"getClusterParameter": "other"}"#.to_owned(), 4),
        (r#"{"getClusterParameter": ["changeStreamOptions", "other"]}"#.to_owned(), 4),
        (r#"{"getClusterParameter": []}"#.to_owned(), 2),
        (r#"{"getClusterParameter": 1}"#.to_owned(), 14),
        (r#"{"setClusterParameter": {}}"#.to_owned(), 4),
        (r#"{"setClusterParameter": 1}"#.to_owned(), 14),
        (r#"{"setClusterParameter": {"other": {}}}"#.to_owned(), 4),
        (r#"{"setClusterParameter": {"changeStreamOptions": {}, "other": {}}}"#.to_owned(), 72),
        (set("1"), 2),
        (set("{}"), 2),
        (set(r#"{"preAndPostImages": {}}"#), 2),
        (set(r#"{"preAndPostImages": {"expireAfterSeconds": 0}}"#), 2),
        (set(r#"{"preAndPostImages": {"expireAfterSeconds": -1}}"#), 2),
        (set(r#"{"preAndPostImages": {"expireAfterSeconds": "never"}}"#), 2),
        (set(r#"{"preAndPostImages": {"expireAfterSeconds": true}}"#), 2),
        (set(r#"{"preAndPostImages": {"expireAfterSeconds": 1, "more": 1}}"#), 2),
        (set(r#"{"preAndPostImages": {"expireAfterSeconds": 1}, "more": 1}"#), 2),
    ] {
        assert_eq!(client.code("admin", &command), code, "{command}");
    }
    assert_eq!(client.code("test", &set("{}")), 13, "of admin alone");
    assert!(!parameters(&mut client, r#""*""#).1, "nothing was set");
}
