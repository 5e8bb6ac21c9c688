//! Goal: an operator learns how it is, in Prometheus' format, also while it stops.
//! Method: requests over a socket; each line of the answer is held against the format.

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::net::TcpStream;

use frond_db::FrondOptions;
use frond_doc::document;
use frond_server::{Client, LogOutput, Server, ServerOptions};
use frond_testkit::SimDisk;

fn ask(address: &str, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "{request} HTTP/1.1\r\nHost: x\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("a status"), body.to_owned())
}

fn bind() -> Server {
    let frond = frond_vcs::open_on(&SimDisk::new(1).machine(), FrondOptions::default());
    let options = ServerOptions {
        listen: Some("127.0.0.1:0".to_owned()),
        metrics_listen: Some("127.0.0.1:0".to_owned()),
        log: LogOutput::Memory,
        ..ServerOptions::default()
    };
    Server::bind(frond.expect("the disk opens"), options).expect("binds")
}

/// The samples by name and labels; panics where a line is none of the format's.
fn samples(text: &str) -> HashMap<String, f64> {
    let (mut families, mut samples) = (HashSet::new(), HashMap::new());
    let mut family = String::new();
    let mut is_typed = false;
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            family = help.split(' ').next().expect("a name").to_owned();
            assert!(families.insert(family.clone()), "{family} is told twice");
            is_typed = false;
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a type");
            assert_eq!(name, family);
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            is_typed = true;
        } else {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            let bare = name.split('{').next().expect("a name");
            let is_part = ["", "_bucket", "_sum", "_count"]
                .iter()
                .any(|end| bare == format!("{family}{end}"));
            assert!(is_typed && is_part, "{line} stands in {family}");
            let before = samples.insert(name.to_owned(), value.parse().expect("a number"));
            assert_eq!(before, None, "{name} is told twice");
        }
    }
    samples
}

#[test]
fn metrics_follow_the_format_and_count() {
    let server = bind();
    let address = server.address().to_string();
    let metrics = server.metrics_address().expect("it listens").to_string();
    let stopper = server.stopper();
    let thread = std::thread::spawn(move || server.run());
    let (status, before) = ask(&metrics, "GET /metrics");
    assert_eq!(status, 200);
    let before = samples(&before);
    let mut client = Client::connect(&address).expect("it listens");
    let insert = document! { "insert": "c" };
    let documents = frond_server::wire::DocumentSequence {
        name: "documents".to_owned(),
        documents: vec![document! { "_id": 1_i32 }, document! { "_id": 2_i32 }],
    };
    client.command_with("shop", insert.view(), vec![documents]).expect("there is room");
    client.command("shop", document! { "find": "c" }.view()).expect("it is there");
    client.command("shop", document! { "nonsense": 1_i32 }.view()).expect_err("no command");
    let (_, text) = ask(&metrics, "GET /metrics");
    assert!(!text.contains("shop"), "no name of a database is told");
    let after = samples(&text);
    let rise = |name: &str| after[name] - before[name];
    assert_eq!(rise("frond_operations_total{type=\"insert\"}"), 2.0);
    assert_eq!(rise("frond_operations_total{type=\"query\"}"), 1.0);
    assert_eq!(rise("frond_command_failures_total{kind=\"user\"}"), 1.0);
    assert_eq!(rise("frond_command_duration_seconds_count{kind=\"reads\"}"), 1.0);
    assert_eq!(rise("frond_command_duration_seconds_bucket{kind=\"reads\",le=\"+Inf\"}"), 1.0);
    assert!(rise("frond_network_bytes_total{direction=\"in\"}") > 100.0);
    assert_eq!((after["frond_connections"], after["frond_ready"]), (1.0, 1.0));
    assert!(after.len() > 100, "{}", after.len());

    assert_eq!(ask(&metrics, "GET /live"), (200, "live\n".to_owned()));
    assert_eq!(ask(&metrics, "GET /ready"), (200, "ready\n".to_owned()));
    assert_eq!(ask(&metrics, "HEAD /ready"), (200, String::new()));
    assert_eq!(ask(&metrics, "GET /").0, 404);
    assert_eq!(ask(&metrics, "POST /metrics").0, 405);
    drop(client);
    stopper.stop();
    thread.join().expect("it doesn't panic").expect("it stops well");
    assert!(TcpStream::connect(&metrics).is_err(), "it is over");
}
