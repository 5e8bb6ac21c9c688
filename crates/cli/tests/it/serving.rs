//! Goal: the command line does the same on a running server as on a data directory, and the two
//! keep out of each other's way. Method: `frond serve` as a child process on a free port, ended by
//! SIGTERM.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use frond_db::FrondOptions;
use frond_doc::{DocumentBuf, DocumentBuilder, Value, document, extended_json};
use frond_server::wire::DocumentSequence;
use frond_server::{Client, ClientError};
use frond_store::io::{Clock, Machine};

use crate::{Directory, command, frond, frond_with};

/// A server on a directory's `frond-data`.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(directory: &Directory) -> Server {
        Server::start_with(directory, "")
    }

    pub(crate) fn start_with(directory: &Directory, arguments: &str) -> Server {
        Server::start_as(command(directory, &format!("serve --listen 127.0.0.1:0 {arguments}")))
    }

    pub(crate) fn start_as(mut command: Command) -> Server {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.map(Result::unwrap).find_map(|line| {
            line.trim().strip_prefix("listening on").map(|address| address.trim().to_owned())
        });
        Server { child, address: address.expect("the server tells its address") }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the server as a service manager would; it must end well.
    pub(crate) fn stop(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Gone already, unless a test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns where a server listens whose log says that it waits for connections.
fn address_of(waits: &str) -> String {
    let waits = extended_json::parse(waits).unwrap();
    let port = waits.get("attr").and_then(|named| named.as_document()?.get("port")?.as_integer());
    format!("127.0.0.1:{}", port.expect("it tells its port"))
}

/// The use in containers' entry points: a server that goes on when its command has ended, and is
/// ended by another.
#[test]
fn a_mongod_goes_on_in_the_background_until_it_is_shut_down() {
    let directory = Directory::new();
    let run = |arguments: &str| {
        let output = command(&directory, &format!("mongod {arguments}")).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        (output.status.code(), text)
    };
    let (code, error) = run("--fork --dbpath .");
    assert!(code == Some(2) && error.contains("--logpath"), "{error}");
    let (code, error) = run("--fork --logpath log --dbpath /proc/nothing --port 0");
    assert!(code == Some(1) && error.contains("child process failed"), "{error}");
    let start = "--fork --logpath log --pidfilepath pid --dbpath data --port 0 --quiet";
    for has_users in [false, true] {
        let auth = if has_users { " --auth" } else { "" };
        let (code, error) = run(&format!("{start}{auth}"));
        assert_eq!(code, Some(0), "{error}");
        assert!(error.contains("child process started successfully, parent exiting"), "{error}");
        let pid = std::fs::read_to_string(directory.path().join("pid")).unwrap();
        assert!(error.contains(&format!("forked process: {}", pid.trim())), "{error} {pid}");
        let log = std::fs::read_to_string(directory.path().join("log")).unwrap();
        let waits = log.lines().rfind(|line| line.contains("Waiting for connections")).unwrap();
        let mut client = Client::connect(&address_of(waits)).unwrap();
        client.command("admin", document! { "ping": 1_i32 }.view()).unwrap();
        let by = if has_users { " --pidfilepath pid" } else { "" };
        let (code, error) = run(&format!("--shutdown --dbpath data{by}"));
        assert_eq!(code, Some(0), "{error}");
        assert!(client.command("admin", document! { "ping": 1_i32 }.view()).is_err());
        assert!(!directory.path().join("pid").exists(), "it is removed");
    }
    let (code, error) = run("--shutdown --dbpath data");
    assert!(code == Some(1) && error.contains("server running"), "{error}");
}

/// Where there is little memory a server begins again, with another environment.
#[test]
fn a_link_called_mongod_takes_its_options_with_little_memory_too() {
    let directory = Directory::new();
    let link = directory.path().join("mongod");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_frond"), &link).unwrap();
    let mut serve = Command::new(&link);
    serve.current_dir(directory.path()).env("FROND_MEMORY", "100MB");
    serve.env_remove("MIMALLOC_PURGE_DELAY").args(["--port", "0", "--dbpath", "data"]);
    let mut child = serve.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let waits = lines.find(|line| line.contains("Waiting for connections"));
    let address = address_of(&waits.expect("it starts"));
    Server { child, address }.stop();
}

/// `frond mongod` has its log on standard output, which threads of clients write to.
#[test]
fn a_mongod_answers_what_it_logs_as_slow() {
    let directory = Directory::new();
    let mut serve = command(&directory, "mongod --port 0 --dbpath .");
    let mut child = serve.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let waits = lines.find(|line| line.contains("Waiting for connections"));
    let address = address_of(&waits.expect("it says so"));
    let (answered, awaited) = mpsc::channel();
    let mut client = Client::connect(&address).unwrap();
    thread::spawn(move || {
        let slow = document! { "profile": 0_i32, "slowms": -1_i32 };
        client.command("test", slow.view()).unwrap();
        client.command("test", document! { "ping": 1_i32 }.view()).unwrap();
        answered.send(())
    });
    awaited.recv_timeout(Duration::from_secs(60)).expect("it answers");
    assert!(lines.any(|line| line.contains("Slow query")));
    Server { child, address }.stop();
}

/// As where the server's output goes to the disk that it has filled.
#[test]
fn a_server_serves_where_its_output_has_no_room() {
    let directory = Directory::new();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut serve = command(&directory, "serve --listen 127.0.0.1:0");
    let mut child = serve.stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let waits = lines.find(|line| line.contains("Waiting for connections"));
    let address = address_of(&waits.expect("it says so"));
    frond(&directory, &format!("ls --uri {address}")).ok();
    Server { child, address }.stop();
}

/// A clock that is some fifty years ahead.
struct Ahead(Machine);

impl Clock for Ahead {
    fn now_micros(&self) -> i64 {
        self.0.clock.now_micros() + 50 * 365 * 24 * 3_600 * 1_000_000
    }

    fn steady_micros(&self) -> i64 {
        self.0.clock.steady_micros()
    }
}

#[test]
fn the_doctor_reports_a_clock_that_is_doubted() {
    let directory = Directory::new();
    let machine = Machine::system(&directory.path().join("frond-data")).unwrap();
    let ahead = Machine { clock: Arc::new(Ahead(machine.clone())), ..machine };
    let data = frond_vcs::open_on(&ahead, FrondOptions::default()).unwrap();
    data.keep_clock().unwrap();
    data.engine().close().unwrap();
    drop((data, ahead));
    let is_output = |line: &str| {
        let ran = frond(&directory, line);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.out.contains(" days behind"), "{ran:?}");
        assert!(ran.out.contains("frond doctor --accept-clock"), "{ran:?}");
    };
    is_output("doctor");
    let server = Server::start(&directory);
    let uri = format!("--uri {}", server.address);
    is_output(&format!("doctor {uri}"));
    frond(&directory, &format!("doctor --accept-clock {uri}")).ok();
    let out = frond(&directory, &format!("doctor {uri}")).ok();
    assert!(out.lines().any(|line| line.starts_with("clock ") && line.ends_with(", believed")));
    server.stop();
}

#[test]
fn a_running_server_is_used_by_its_address() {
    let directory = Directory::new();
    let server = Server::start(&directory);
    let uri = format!("--uri {}", server.address);
    let lines: String = (0..3000).map(|id| format!("{{\"_id\":{id}}}\n")).collect();
    let import = format!("import -d shop -c items --commit first {uri}");
    assert!(frond_with(&directory, &import, &lines).ok().contains("3,000 documents"));
    assert_eq!(frond(&directory, &format!("export -d shop -c items {uri}")).ok(), lines);
    frond(&directory, &format!("branch shop sale {uri}")).ok();
    frond_with(&directory, &format!("import -d shop@sale -c items {uri}"), "{\"_id\":-1}").ok();
    let diff = frond(&directory, &format!("diff shop@sale {uri}")).ok();
    assert_eq!(diff, "items\n  + {\"_id\":-1}\n");
    let error = frond(&directory, &format!("commit shop -m again {uri}")).fails(1);
    assert!(error.contains("nothing to commit"), "{error}");

    // Without an address the server that has the directory is found.
    assert!(frond(&directory, "log shop --oneline").ok().contains("first"));
    frond_with(&directory, "import -d shop -c others", "{\"_id\":1}").ok();
    assert_eq!(frond(&directory, &format!("export -d shop -c others {uri}")).ok(), "{\"_id\":1}\n");
    // Commands without --uri advise something else.
    for (line, advice) in [
        ("backup place", "--from http://"),
        ("fsck", "stop it first"),
        ("salvage --to saved", "stop it first"),
        ("serve --listen 127.0.0.1:0", "another --data"),
    ] {
        let error = frond(&directory, line).fails(1);
        assert!(error.contains("in use by another process"), "{line}: {error}");
        assert!(error.contains(advice) && !error.contains("--uri"), "{line}: {error}");
    }
    // The server does what needs no other directory.
    assert!(frond(&directory, "push shop").fails(1).contains("no remote origin"));
    let error = frond(&directory, "clone . other").fails(1);
    assert!(error.contains("stop it first, or name http"), "{error}");
    let error =
        frond(&directory, &format!("serve --data new --listen {}", server.address)).fails(1);
    assert!(
        error.contains("address already in use by another process")
            && error.contains("another port"),
        "{error}"
    );
    assert!(!directory.path().join("new").exists(), "nothing is left behind");
    let place = format!("clone http://{}/shop shop --data mine", server.address);
    let error = frond(&directory, &place).fails(1);
    assert!(error.contains("--remote-listen"), "{error}");
    let error = frond(&directory, &format!("tag shop x..y {uri}")).fails(1);
    assert!(error.contains("'x..y' can't be a tag's name"), "{error}");
    server.stop();
    assert!(frond(&directory, "log shop --oneline").ok().contains("first"));
    let error = frond(&directory, &format!("log shop {uri}")).fails(1);
    assert!(error.contains("is a server running there?"), "{error}");
}

/// Shells allow few open files unless asked for more: the server asks.
#[test]
fn more_clients_are_served_than_the_soft_limit_has_files() {
    let directory = Directory::new();
    let serve = command(&directory, "serve --listen 127.0.0.1:0");
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -Sn 100; exec \"$@\"", "sh"]);
    limited.arg(serve.get_program()).args(serve.get_args()).current_dir(directory.path());
    let server = Server::start_as(limited);
    let mut clients: Vec<Client> =
        (0..150).map(|_| Client::connect(&server.address).unwrap()).collect();
    for client in &mut clients {
        client.command("admin", document! { "ping": 1_i32 }.view()).unwrap();
    }
    server.stop();
}

/// Of the files that the process may open, connections leave a fifth to what is written.
#[test]
fn connections_leave_files_for_the_data() {
    const FILES: usize = 120;
    let directory = Directory::new();
    let serve = command(&directory, "serve --listen 127.0.0.1:0 --memory 64MB");
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -n {FILES}; exec \"$@\""), "sh"]);
    limited.arg(serve.get_program()).args(serve.get_args()).current_dir(directory.path());
    let server = Server::start_as(limited);
    let mut client = Client::connect(&server.address).unwrap();
    client.command("admin", document! { "ping": 1_i32 }.view()).unwrap();
    let idle: Vec<_> =
        (0..2 * FILES).filter_map(|_| std::net::TcpStream::connect(&server.address).ok()).collect();
    // More than a segment of the log, and than a memtable.
    let text = "x".repeat(1 << 20);
    for number in 0..80_i32 {
        let insert = document! { "insert": "things" };
        let documents = vec![document! { "_id": number, "text": &*text }];
        let sequence = DocumentSequence { name: "documents".to_owned(), documents };
        let answer = client.command_with("shop", insert.view(), vec![sequence]).unwrap();
        assert_eq!(answer.get("n"), Some(Value::Int32(1)));
    }
    let status = client.command("admin", document! { "serverStatus": 1_i32 }.view()).unwrap();
    let connections = status.get("connections").and_then(|found| found.as_document()).unwrap();
    let count = |name| connections.get(name).and_then(|found| found.as_integer()).unwrap();
    assert_eq!(count("current") + count("available"), FILES as i64 / 5 * 4);
    drop(idle);
    server.stop();
}

/// A client's document of 30 MB: stored and read back where the server was told to take such, and
/// refused with MongoDB's code where it wasn't. The server says itself which documents it takes.
#[test]
fn the_largest_document_is_an_option() {
    const BYTES_MAX: i32 = 32 << 20;
    const TOO_LARGE: i32 = 10334;
    let mut document = DocumentBuilder::new();
    document.append("_id", Value::Int32(1)).begin_array("texts");
    for number in 0..30 {
        document.push(Value::String(&format!("{number} ").repeat(350_000)));
    }
    document.end();
    let document = document.build();
    assert!((25 << 20..BYTES_MAX as usize).contains(&document.as_bytes().len()));
    for (arguments, bytes_max) in
        [(format!("--max-document-bytes {BYTES_MAX}"), BYTES_MAX), (String::new(), 16 << 20)]
    {
        let directory = Directory::new();
        let server = Server::start_with(&directory, &arguments);
        let mut client = Client::connect(&server.address).unwrap();
        let hello = client.command("admin", document! { "hello": 1_i32 }.view()).unwrap();
        assert_eq!(hello.get("maxBsonObjectSize"), Some(Value::Int32(bytes_max)));
        let sequence =
            DocumentSequence { name: "documents".to_owned(), documents: vec![document.clone()] };
        let insert = document! { "insert": "large" };
        let answer = client.command_with("shop", insert.view(), vec![sequence]);
        let found = client.documents("shop", document! { "find": "large" }.view()).unwrap();
        if bytes_max == BYTES_MAX {
            assert_eq!(answer.unwrap().get("n"), Some(Value::Int32(1)));
            assert!(found == [document.clone()], "another document came back");
        } else {
            assert_eq!(code_of(answer), Some(TOO_LARGE));
            assert!(found.is_empty());
        }
        server.stop();
    }
}

/// The options that `getCmdLineOpts` shows of a running server, and the messages that a supervisor
/// got.
#[test]
fn a_file_and_the_environment_say_how_to_serve() {
    let directory = Directory::new();
    let file = "net: {port: 0, bindIp: 127.0.0.1}\nstorage:\n  dbPath: filed\nreplication:\n  \
                replSetName: of-file\nfrond: {metricsListen: '127.0.0.1:0'}\n";
    directory.file("frond.conf", file);
    let socket = directory.path().join("notify");
    let supervisor = UnixDatagram::bind(&socket).unwrap();
    let mut serve = command(&directory, "serve --config frond.conf --memory 64MB");
    serve.env("FROND_REPLICA_SET", "of-environment").env("NOTIFY_SOCKET", &socket);
    let server = Server::start_as(serve);
    let datagram = || {
        let mut bytes = [0; 64];
        let count = supervisor.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..count].to_vec()).unwrap()
    };
    assert!(datagram().starts_with("READY=1\n"));
    let mut client = Client::connect(&server.address).unwrap();
    let hello = client.command("admin", document! { "hello": 1_i32 }.view()).unwrap();
    assert_eq!(hello.get("setName"), Some(Value::String("of-environment")));
    let options = client.command("admin", document! { "getCmdLineOpts": 1_i32 }.view()).unwrap();
    let parsed = |path: &str| {
        let path = format!("parsed.{path}");
        frond_doc::path::Path::new(&path).get(options.view()).map(|value| format!("{value:?}"))
    };
    for (path, expected) in [
        ("storage.dbPath", "filed"),
        ("replication.replSetName", "of-environment"),
        ("frond.memory", "64MB"),
        ("frond.metricsListen", "127.0.0.1:0"),
        ("frond.config", "frond.conf"),
        ("net.bindIp", "127.0.0.1"),
    ] {
        assert_eq!(parsed(path), Some(format!("{:?}", Value::String(expected))), "{path}");
    }
    assert!(directory.path().join("filed").exists());
    drop(client);
    server.stop();
    assert!(datagram().starts_with("STOPPING=1\n"));
    directory.file("frond.conf", "net:\n  prot: 1\n");
    let error = frond(&directory, "serve --config frond.conf").fails(2);
    assert!(error.contains("frond.conf:2: net.prot: there is no such key"), "{error}");
    directory.file("frond.conf", "frond: {memory: 1MB}\n");
    let error = frond(&directory, "serve --config frond.conf").fails(2);
    assert!(error.contains("at least 16MB") && error.contains("frond.conf:1"), "{error}");
}

/// The code of a command that was refused, or of the first document that was.
fn code_of(answer: Result<DocumentBuf, ClientError>) -> Option<i32> {
    match answer {
        Err(ClientError::Command { code, .. }) => Some(code),
        Err(_) => None,
        Ok(answer) => {
            let first = answer.get("writeErrors")?.as_array()?.get(0)?;
            i32::try_from(first.as_document()?.get("code")?.as_integer()?).ok()
        }
    }
}

#[test]
fn only_loopback_addresses_are_served() {
    let directory = Directory::new();
    let error = frond(&directory, "serve --listen 0.0.0.0:0").fails(1);
    assert!(error.contains("--auth"), "{error}");
    let error = frond(&directory, "serve --listen nonsense").fails(1);
    assert!(error.contains("can't listen on nonsense"), "{error}");
}
