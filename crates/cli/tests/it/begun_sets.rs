//! Goal: servers that were started as mongod with a set's name wait for `replSetInitiate`, and take
//! no writes until then; by it they become a replica set, alone or together, as programs that start
//! sets for tests expect, and are one again later. None that is in a set already becomes a member,
//! and none with another key; where one can't, all can begin anew. One that is removed knows
//! nothing of the set any more, and `frond replicas` asks the next. Method: processes on free ports
//! of this machine.

use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use frond_doc::{DocumentBuf, DocumentBuilder, Value, document};
use frond_server::{Client, ClientError};
use rustix::process::{Pid, Signal, kill_process};

use crate::{Directory, command, frond};

pub(crate) const WAIT_MAX: Duration = Duration::from_secs(120);

/// A `frond mongod`, killed when it is dropped.
pub(crate) struct Mongod {
    directory: Directory,
    port: u16,
    child: Child,
}

impl Mongod {
    fn start(directory: Directory, port: u16, key: &str) -> Mongod {
        let key = if key.is_empty() { String::new() } else { format!("--keyFile {key}") };
        let line = format!("mongod --replSet many --port {port} --dbpath data --logpath log {key}");
        let child = command(&directory, &line).stdout(Stdio::null()).spawn().unwrap();
        let server = Mongod { directory, port, child };
        until(|| server.client().is_some());
        server
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn client(&self) -> Option<Client> {
        Client::connect(&self.address()).ok()
    }

    /// The answer to a command on `admin`; `None` where the server ends meanwhile.
    fn answer(&self, command: &DocumentBuf) -> Option<DocumentBuf> {
        self.client()?.command("admin", command.view()).ok()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Ends the process, and starts another.
    pub(crate) fn again(mut self) -> Mongod {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let (directory, port) =
            (std::mem::replace(&mut self.directory, Directory::new()), self.port);
        drop(self);
        Mongod::start(directory, port, "")
    }

    pub(crate) fn is_of_two(&self) -> bool {
        let hello = self.answer(&document! { "hello": 1_i32 });
        let hosts = hello.as_ref().and_then(|hello| hello.get("hosts")?.as_array());
        hosts.is_some_and(|hosts| hosts.iter().count() == 2)
    }

    pub(crate) fn leads(&self) -> bool {
        let hello = self.answer(&document! { "hello": 1_i32 });
        hello.is_some_and(|it| it.get("isWritablePrimary") == Some(Value::Boolean(true)))
    }
}

impl Drop for Mongod {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn until(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < WAIT_MAX, "it didn't become so");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Below those that the system gives to who asks for any: no connection and no other test's server
/// takes one, also while its server is away.
fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id() * 8;
    let mut ports = (0..1000).map(|_| {
        let next = first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        12_000 + (next % 20_000) as u16
    });
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

pub(crate) fn two(keys: [&str; 2]) -> [Mongod; 2] {
    let mut keys = keys.into_iter();
    [free_port(), free_port()].map(|port| {
        let directory = Directory::new();
        let key = keys.next().unwrap_or_default();
        if !key.is_empty() {
            directory.file("key", key);
            let key = directory.path().join("key");
            let only_ours = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(key, only_ours).unwrap();
        }
        Mongod::start(directory, port, if key.is_empty() { "" } else { "key" })
    })
}

fn initiate_alone(server: &Mongod) -> Result<DocumentBuf, ClientError> {
    let command = document! { "replSetInitiate": &DocumentBuf::empty() };
    server.client().unwrap().command("admin", command.view())
}

pub(crate) fn initiate(servers: &[Mongod; 2]) -> Result<DocumentBuf, ClientError> {
    initiate_with(servers, 1)
}

fn initiate_with(servers: &[Mongod], priority: i32) -> Result<DocumentBuf, ClientError> {
    let mut command = DocumentBuilder::new();
    command.begin_document("replSetInitiate").append("_id", Value::String("many"));
    command.begin_array("members");
    for (id, server) in (0..).zip(servers) {
        command.push_begin_document().append("_id", Value::Int32(id));
        command.append("host", Value::String(&server.address()));
        command.append("priority", Value::Int32(priority)).end();
    }
    command.end().begin_document("settings");
    command.append("electionTimeoutMillis", Value::Int32(500)).end().end();
    servers[0].client().unwrap().command("admin", command.build().view())
}

/// Has a server, which may be a secondary, have the configuration that it has.
fn set_again(server: &Mongod) -> Result<DocumentBuf, ClientError> {
    let mut client = server.client().unwrap();
    let found = client.command("admin", document! { "replSetGetConfig": 1_i32 }.view())?;
    let config = found.get("config").and_then(|config| config.as_document()).unwrap().to_buf();
    let command = document! { "replSetReconfig": &config, "force": true };
    client.command("admin", command.view())
}

/// Has a leader leave a member out of its set.
fn leave_out(leader: &Mongod, address: &str) -> Result<DocumentBuf, ClientError> {
    let mut client = leader.client().unwrap();
    let found = client.command("admin", document! { "replSetGetConfig": 1_i32 }.view())?;
    let config = found.get("config").and_then(|config| config.as_document()).unwrap();
    let version = config.get("version").and_then(|version| version.as_integer()).unwrap();
    let members = config.get("members").and_then(|members| members.as_array()).unwrap();
    let mut command = DocumentBuilder::new();
    command.begin_document("replSetReconfig").append("_id", Value::String("many"));
    command.append("version", Value::Int64(version + 1)).begin_array("members");
    for member in members.iter() {
        let host = member.as_document().and_then(|member| member.get("host"));
        if host != Some(Value::String(address)) {
            command.push(member);
        }
    }
    command.end().end();
    client.command("admin", command.build().view())
}

fn insert(server: &Mongod) -> Result<DocumentBuf, ClientError> {
    let mut command = DocumentBuilder::new();
    command.append("insert", Value::String("things")).begin_array("documents");
    command.push_begin_document().end().end();
    Client::connect(&server.address())?.command("shop", command.build().view())
}

#[test]
fn servers_by_themselves_become_a_set() {
    let mut servers = two(["", ""]);
    let error = initiate_with(&servers, 2).unwrap_err().to_string();
    assert!(error.contains("replSetReconfig gives them those"), "{error}");
    initiate(&servers).unwrap();
    for _ in 0..2 {
        until(|| servers.iter().all(Mongod::is_of_two));
        until(|| servers.iter().any(Mongod::leads));
        until(|| servers.iter().any(|server| server.leads() && insert(server).is_ok()));
        let error = initiate(&servers).unwrap_err().to_string();
        assert!(error.contains("already initialized"), "{error}");
        // A tool that gets this gives the configuration that is there.
        set_again(&servers[0]).unwrap();
        servers = servers.map(Mongod::again);
    }
}

#[test]
fn a_server_waits_for_its_initiation() {
    let [mut server, other] = two(["", ""]);
    for _ in 0..2 {
        assert_eq!(code_of(insert(&server)), 10107);
        let mut client = server.client().unwrap();
        for command in [
            document! { "replSetGetStatus": 1_i32 },
            document! { "replSetGetConfig": 1_i32 },
            document! { "replSetStepDown": 1_i32 },
        ] {
            assert_eq!(code_of(client.command("admin", command.view())), 94, "{command:?}");
        }
        let find =
            document! { "find": "things", "$readPreference": &document! { "mode": "nearest" } };
        assert_eq!(code_of(client.command("shop", find.view())), 13436);
        let find = document! { "find": "things" };
        assert_eq!(code_of(client.command("shop", find.view())), 13435);
        let hello = server.answer(&document! { "hello": 1_i32 }).unwrap();
        assert!(hello.get("setName").is_none() && hello.get("info").is_some(), "{hello:?}");
        assert!(!server.leads());
        drop(client);
        server = server.again();
    }
    for (members, code) in [
        (r#"[]"#, 93),
        (r#"5"#, 14),
        (r#"[{"_id": 0, "host": "127.0.0.1:1"}]"#, 74),
        (r#"[{"_id": 0, "host": "nohost.invalid:27017"}]"#, 74),
        (r#"[{"_id": 0, "host": "nohost.invalid:27017", "priority": 0}]"#, 93),
    ] {
        let text = format!(r#"{{"replSetInitiate": {{"_id": "many", "members": {members}}}}}"#);
        let command = frond_doc::extended_json::parse(&text).unwrap();
        let answer = server.client().unwrap().command("admin", command.view());
        assert_eq!(code_of(answer), code, "{text}");
        assert!(!server.leads());
    }
    // A priority, as programs for tests give one.
    initiate_with(std::slice::from_ref(&server), 2).unwrap();
    assert!(server.leads());
    insert(&server).unwrap();
    assert!(initiate_alone(&server).unwrap_err().to_string().contains("already initialized"));
    let server = server.again();
    until(|| server.leads());
    insert(&server).unwrap();
    // It is in a set now.
    let servers = [other, server];
    let error = initiate(&servers).unwrap_err().to_string();
    assert!(error.contains("failed with already initialized"), "{error}");
    assert!(!servers[0].leads() && !servers[0].is_of_two() && servers[1].leads());
}

#[test]
fn a_set_that_can_not_begin_is_forgotten() {
    let servers = two(["", ""]);
    let hindrance = servers[1].directory.path().join("data/set-begins.new");
    std::fs::create_dir(&hindrance).unwrap();
    let error = initiate(&servers).unwrap_err().to_string();
    assert!(error.contains("quorum check failed"), "{error}");
    std::fs::remove_dir(&hindrance).unwrap();
    let servers = servers.map(Mongod::again);
    assert!(!servers.iter().any(Mongod::is_of_two));
    initiate(&servers).unwrap();
    until(|| servers.iter().all(Mongod::is_of_two));
    until(|| servers.iter().any(|server| server.leads() && insert(server).is_ok()));
}

/// Has the directory of `servers[place]` note the set of both.
fn note(servers: &[Mongod; 2], place: usize) {
    let [first, second] = [servers[0].address(), servers[1].address()];
    let own = servers[place].address();
    let text =
        format!("frond-set-begins 0\nset many\nself {own}\nmember {first}\nmember {second}\n");
    let file = servers[place].directory.path().join("data/set-begins");
    std::fs::write(file, text).unwrap();
}

#[test]
fn a_server_that_has_noted_a_set_begins_when_a_member_calls() {
    let servers = two(["", ""]);
    // As if the first had died before it had the second begin.
    note(&servers, 0);
    note(&servers, 1);
    let [first, second] = servers;
    let servers = [first.again(), second];
    until(|| servers.iter().all(Mongod::is_of_two));
    until(|| servers.iter().any(|server| server.leads() && insert(server).is_ok()));
}

#[test]
fn a_set_that_one_server_alone_has_noted_can_be_initiated() {
    let servers = two(["", ""]);
    // As if it had been too late to forget the set.
    note(&servers, 1);
    let [first, second] = servers;
    let servers = [first, second.again()];
    assert!(!servers[0].is_of_two());
    initiate(&servers).unwrap();
    until(|| servers.iter().all(Mongod::is_of_two));
    until(|| servers.iter().any(|server| server.leads() && insert(server).is_ok()));
}

#[test]
fn a_member_that_was_removed_knows_nothing_of_the_set() {
    let servers = [(); 3].map(|()| Mongod::start(Directory::new(), free_port(), ""));
    initiate_with(&servers, 1).unwrap();
    until(|| servers.iter().any(Mongod::leads));
    let removed = servers.iter().find(|server| !server.leads()).unwrap();
    let removed_address = removed.address();
    until(|| {
        // It is refused where that is done already.
        let leader = servers.iter().find(|server| server.leads());
        let _ = leader.map(|leader| leave_out(leader, &removed_address));
        let mut client = removed.client().unwrap();
        let status = client.command("admin", document! { "replSetGetStatus": 1_i32 }.view());
        matches!(status, Err(ClientError::Command { code: 93, .. }))
    });
    let others = servers.iter().map(Mongod::address).filter(|it| *it != removed_address);
    let others = others.collect::<Vec<_>>().join(",");
    let directory = Directory::new();
    let line = format!("replicas --uri mongodb://{removed_address},{others}/?replicaSet=many");
    until(|| {
        let listed = frond(&directory, &line);
        assert!(!listed.out.contains("REMOVED"), "{listed:?}");
        listed.code == 0 && listed.out.contains("2 members")
    });
}

#[test]
fn none_with_another_key_becomes_a_member() {
    let servers = two(["secret-a", "secret-b"]);
    let error = initiate(&servers).unwrap_err().to_string();
    assert!(error.contains("not all proposed set members responded"), "{error}");
    assert!(!servers.iter().any(Mongod::leads));
    assert!(!servers.iter().any(Mongod::is_of_two));
}

fn code_of(answer: Result<DocumentBuf, ClientError>) -> i32 {
    match answer {
        Err(ClientError::Command { code, .. }) => code,
        other => panic!("{other:?}"),
    }
}
