//! Goal: the answers of a replica set's writes are held until a majority has them, without a thread
//! each; and whatever becomes of their leader meanwhile, each write that is sent again until it is
//! acknowledged was done once. Method: a set of two, whose follower is stopped, so that nothing can
//! be agreed on; clients that write, and some that leave at once. Then the follower goes on, or the
//! leader notices that it has no majority, or is killed, or is to step down.

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use frond_doc::{DocumentBuf, Value, document, extended_json};
use frond_server::Client;
use rustix::process::{Pid, Signal};

use crate::begun_sets::{Mongod, WAIT_MAX, initiate, two, until};

const CLIENTS: usize = 70;
/// Those that leave.
const GONE: usize = 9;
/// A server has so many threads besides those that wait for a write.
const THREADS_MAX: usize = 60;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Event {
    FollowerGoesOn,
    MajorityIsLost,
    LeaderIsKilled,
    LeaderStepsDown,
}

/// A retryable write of a client: it counts up in a document of its own. `more` fields follow.
fn write_of(client: usize, more: &str) -> DocumentBuf {
    let text = format!(
        r#"{{"update": "c", "updates": [{{"q": {{"_id": {client}}}, "u": {{"$inc": {{"n": 1}}}}}}],
            "lsid": {{"id": {{"$uuid": "00000000-0000-4000-8000-0000000000{client:02}"}}}},
            "txnNumber": {{"$numberLong": "1"}}, "writeConcern": {{"w": "majority"}}{more}}}"#
    );
    extended_json::parse(&text).expect("it is well formed")
}

/// Sends a command, and leaves without its answer.
fn send_and_leave(address: &str, command: &DocumentBuf) {
    const MESSAGE: u32 = 2013;
    let body = command.as_bytes();
    let bytes = u32::try_from(16 + 4 + 1 + body.len()).expect("a short one");
    let mut message: Vec<u8> =
        [bytes, 1, 0, MESSAGE, 0].iter().flat_map(|field| field.to_le_bytes()).collect();
    message.push(0);
    message.extend(body);
    TcpStream::connect(address).unwrap().write_all(&message).unwrap();
}

/// Sends a write until it is acknowledged, to whichever of the members takes it.
fn write_until_done(addresses: &[String; 2], leader: usize, client: usize) {
    let (command, begun) = (write_of(client, ""), Instant::now());
    for attempt in leader.. {
        assert!(begun.elapsed() < WAIT_MAX, "client {client} isn't acknowledged");
        let Ok(mut connection) = Client::connect(&addresses[attempt % 2]) else { continue };
        if let Ok(answer) = connection.command("test", command.view()) {
            assert_eq!(answer.get("n").and_then(|n| n.as_integer()), Some(1), "{answer:?}");
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn thread_count(server: Pid) -> usize {
    let tasks = format!("/proc/{}/task", server.as_raw_nonzero());
    std::fs::read_dir(tasks).map_or(0, Iterator::count)
}

/// The updates that run on a server; `None`: it leads no more.
fn running(client: &mut Client) -> Option<usize> {
    let answer = client.command("admin", document! { "currentOp": 1_i32 }.view()).ok()?;
    let all = answer.get("inprog").and_then(|all| all.as_array()).expect("a list");
    let is_update = |one: &Value<'_>| {
        let command = one.as_document().and_then(|one| one.get("command")?.as_document());
        command.is_some_and(|command| command.get("update").is_some())
    };
    Some(all.iter().filter(is_update).count())
}

/// Looks at a leader whose clients all wait; false if it gave up before they did, as it does in two
/// seconds.
fn is_seen_waiting(leader: &Mongod, watcher: &mut Client) -> bool {
    let mut count = Some(0);
    until(|| {
        count = running(watcher);
        count.is_none_or(|count| CLIENTS <= count)
    });
    if count.is_none() {
        return false;
    }
    let threads = thread_count(leader.pid());
    let find = document! { "count": "c", "query": &document! { "n": 1_i32 } };
    let Ok(answer) = watcher.command("test", find.view()) else { return false };
    assert_eq!(answer.get("n").and_then(|n| n.as_integer()), Some(0), "it isn't agreed on");
    assert!(threads < THREADS_MAX, "{threads} threads");
    true
}

/// How often each client's write was done, as a leader shows it.
fn done(leader: &Mongod) -> Vec<i64> {
    let sorted = document! { "_id": 1_i32 };
    let find = document! { "find": "c", "sort": &sorted, "batchSize": 1000_i32 };
    let answer = leader.client().unwrap().command("test", find.view()).unwrap();
    let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document()).unwrap();
    let batch = cursor.get("firstBatch").and_then(|batch| batch.as_array()).unwrap();
    let count_of = |one: Value<'_>| one.as_document()?.get("n")?.as_integer();
    batch.iter().map(|one| count_of(one).expect("a number")).collect()
}

fn begin() -> [Mongod; 2] {
    let servers = two(["", ""]);
    initiate(&servers).unwrap();
    until(|| servers.iter().all(Mongod::is_of_two) && servers.iter().any(Mongod::leads));
    let documents: Vec<String> =
        (0..CLIENTS + GONE).map(|id| format!(r#"{{"_id": {id}, "n": 0}}"#)).collect();
    let text = format!(r#"{{"insert": "c", "documents": [{}]}}"#, documents.join(", "));
    let insert = extended_json::parse(&text).unwrap();
    until(|| {
        let leader = servers.iter().find(|server| server.leads());
        let client = leader.and_then(Mongod::client);
        client.is_some_and(|mut client| client.command("test", insert.view()).is_ok())
    });
    servers
}

/// Lets it happen; returns whether all clients were seen waiting before.
fn happens(event: Event) -> bool {
    let servers = begin();
    let leader = servers.iter().position(Mongod::leads).unwrap();
    let addresses = [servers[0].address(), servers[1].address()];
    let mut watcher = servers[leader].client().unwrap();
    let is_silent = event != Event::LeaderStepsDown;
    if is_silent {
        servers[1 - leader].signal(Signal::STOP);
    }
    for client in CLIENTS..CLIENTS + GONE {
        send_and_leave(&addresses[leader], &write_of(client, r#", "$db": "test""#));
    }
    let (is_seen, servers) = thread::scope(|scope| {
        let mut servers = servers;
        for client in 0..CLIENTS {
            let addresses = &addresses;
            scope.spawn(move || write_until_done(addresses, leader, client));
        }
        let is_seen = is_silent && is_seen_waiting(&servers[leader], &mut watcher);
        match event {
            Event::FollowerGoesOn => {}
            Event::MajorityIsLost => until(|| !servers[leader].leads()),
            Event::LeaderIsKilled => servers[leader].signal(Signal::KILL),
            Event::LeaderStepsDown => {
                let command = document! { "replSetStepDown": 5_i32, "force": true };
                let _ = watcher.command("admin", command.view());
            }
        }
        servers[1 - leader].signal(Signal::CONT);
        if event == Event::LeaderIsKilled {
            let [first, second] = servers;
            servers = match leader {
                0 => [first.again(), second],
                _ => [first, second.again()],
            };
        }
        (is_seen, servers)
    });
    until(|| servers.iter().any(Mongod::leads));
    let leader = servers.iter().find(|server| server.leads()).unwrap();
    let counts = done(leader);
    assert_eq!(counts.len(), CLIENTS + GONE);
    let (stayed, gone) = counts.split_at(CLIENTS);
    assert!(stayed.iter().all(|count| *count == 1), "{stayed:?}");
    // Nothing was promised to these.
    assert!(gone.iter().all(|count| (0..=1).contains(count)), "{gone:?}");
    is_seen
}

/// Until clients are seen waiting, which on a busy machine takes several sets.
fn check(event: Event) {
    assert!((0..8).any(|_| happens(event)), "no set was seen waiting");
}

#[test]
fn held_writes_are_answered_when_the_follower_goes_on() {
    check(Event::FollowerGoesOn);
}

#[test]
fn held_writes_of_a_leader_without_a_majority_are_done_once() {
    check(Event::MajorityIsLost);
}

#[test]
fn held_writes_of_a_leader_that_is_killed_are_done_once() {
    check(Event::LeaderIsKilled);
}

#[test]
fn writes_of_a_leader_that_steps_down_are_done_once() {
    assert!(!happens(Event::LeaderStepsDown), "nothing waits there");
}
