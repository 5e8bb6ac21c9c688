//! A server that runs on a thread of its own while a test lasts.

use std::net::TcpStream;
use std::thread::JoinHandle;

use frond_db::{ChangeRetention, FrondOptions};
use frond_doc::{DocumentBuf, DocumentBuilder, extended_json};
use frond_server::{
    Client, ClientError, LogOutput, RemoteOpener, Server, ServerError, ServerOptions, Stopper,
};
use frond_store::io::Machine;
use frond_testkit::SimDisk;

/// A server that stops, and must stop well, when it is dropped.
pub struct Running {
    /// `HOST:PORT`.
    pub address: String,
    stopper: Stopper,
    thread: Option<JoinHandle<Result<(), ServerError>>>,
}

impl Running {
    /// Starts a server on an empty disk.
    pub fn start() -> Running {
        Running::with_connections(2_000)
    }

    /// Starts a server that takes at most `connections_max` connections.
    pub fn with_connections(connections_max: usize) -> Running {
        Running::on_disk(&SimDisk::new(1), connections_max)
    }

    /// Starts a server on a disk.
    pub fn on_disk(disk: &SimDisk, connections_max: usize) -> Running {
        Running::with(disk, ServerOptions { connections_max, ..ServerOptions::default() })
    }

    /// Starts a server on an empty disk that goes to `remote_opener`.
    pub fn with_places(places: RemoteOpener) -> Running {
        Running::with(&SimDisk::new(1), ServerOptions { places, ..ServerOptions::default() })
    }

    /// Starts a server whose messages and answers may hold so many bytes each.
    pub fn with_memory(bytes_max: usize) -> Running {
        let memory = ServerOptions {
            messages_bytes_max: bytes_max,
            answers_bytes_max: bytes_max,
            ..ServerOptions::default()
        };
        Running::with(&SimDisk::new(1), memory)
    }

    /// Starts a server on a disk that asks for logins, and has all commands.
    pub fn with_auth(disk: &SimDisk) -> Running {
        let options = ServerOptions { auth: true, test_commands: true, ..ServerOptions::default() };
        Running::with(disk, options)
    }

    /// Starts a server whose process takes more than it may, whatever it gives back.
    pub fn above_its_memory() -> Running {
        let memory = ServerOptions { memory_bytes: Some(1), ..ServerOptions::default() };
        Running::with(&SimDisk::new(1), memory)
    }

    /// Starts a server on a disk, with `options`.
    pub fn with(disk: &SimDisk, options: ServerOptions) -> Running {
        Running::on_machine(&disk.machine(), options)
    }

    /// Starts a server that keeps the log for change streams.
    pub fn recording_events(disk: &SimDisk, options: ServerOptions) -> Running {
        let mut own = FrondOptions::default();
        own.engine.changes =
            ChangeRetention { seconds: 3600, bytes: 64 << 20, ..ChangeRetention::default() };
        Running::opened(&disk.machine(), own, options)
    }

    /// Starts a server that keeps nothing for change streams.
    pub fn keeping_no_log() -> Running {
        let mut own = FrondOptions::default();
        own.engine.changes = ChangeRetention::default();
        Running::opened(&SimDisk::new(1).machine(), own, ServerOptions::default())
    }

    /// Starts a server that runs no scripts of clients.
    pub fn without_scripts() -> Running {
        let own = FrondOptions { refuses_scripts: true, ..FrondOptions::default() };
        Running::opened(&SimDisk::new(1).machine(), own, ServerOptions::default())
    }

    /// Starts a server on a machine, with `options`.
    pub fn on_machine(machine: &Machine, options: ServerOptions) -> Running {
        Running::opened(machine, FrondOptions::default(), options)
    }

    fn opened(machine: &Machine, own: FrondOptions, options: ServerOptions) -> Running {
        let frond = frond_vcs::open_on(machine, own);
        // `getLog` has the lines, too.
        let (listen, log) = (Some("127.0.0.1:0".to_owned()), LogOutput::Memory);
        let options = ServerOptions { listen, log, ..options };
        let server = Server::bind(frond.expect("the disk opens"), options).expect("binds");
        let (address, stopper) = (server.address().to_string(), server.stopper());
        let thread = Some(std::thread::spawn(move || server.run()));
        Running { address, stopper, thread }
    }

    /// A client.
    pub fn client(&self) -> TestClient {
        TestClient(Client::connect(&self.address).expect("the server listens"))
    }

    /// A bare connection.
    pub fn stream(&self) -> TcpStream {
        TcpStream::connect(&self.address).expect("the server listens")
    }

    /// Ends a server whose disk is gone: it can't stop well.
    pub fn abandon(mut self) {
        self.stopper.stop();
        let result = self.thread.take().expect("ended once").join();
        assert!(result.expect("the server's thread doesn't panic").is_err());
    }

    /// Checks that the server still answers.
    pub fn check(&self) {
        self.client().ok("admin", r#"{"ping": 1}"#);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.stopper.stop();
        let result = thread.join();
        if !std::thread::panicking() {
            result.expect("the server's thread doesn't panic").expect("the server stops well");
        }
    }
}

/// The small client, with commands as JSON.
pub struct TestClient(pub Client);

impl TestClient {
    /// Runs a command that must succeed.
    pub fn ok(&mut self, database: &str, command: &str) -> DocumentBuf {
        let answer = self.0.command(database, json(command).view());
        answer.unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    /// Runs a command; returns its code, 0 if it is ok.
    pub fn code(&mut self, database: &str, command: &str) -> i32 {
        match self.0.command(database, json(command).view()) {
            Ok(_) => 0,
            Err(ClientError::Command { code, .. }) => code,
            Err(error) => panic!("{command}: {error}"),
        }
    }

    /// Runs a command that must fail; returns code and message.
    pub fn error(&mut self, database: &str, command: &str) -> (i32, String) {
        match self.0.command(database, json(command).view()) {
            Err(ClientError::Command { code, message, .. }) => (code, message),
            other => panic!("{command}: {other:?}"),
        }
    }

    /// Runs a command that must fail; returns its code and its labels.
    pub fn labels(&mut self, database: &str, command: &str) -> (i32, Vec<String>) {
        let answer = match self.0.command(database, json(command).view()) {
            Err(ClientError::Command { answer, .. }) => answer,
            other => panic!("{command}: {other:?}"),
        };
        let code = answer.get("code").and_then(|code| code.as_integer()).expect("a code");
        let labels = answer.get("errorLabels").and_then(|labels| labels.as_array());
        let labels = labels.iter().flat_map(|labels| labels.iter());
        let labels = labels.filter_map(|label| label.as_str().map(str::to_owned)).collect();
        (code as i32, labels)
    }

    /// Runs a command and compares its whole answer, the time apart.
    pub fn check(&mut self, database: &str, command: &str, expected: &str) {
        let answer = match self.0.command(database, json(command).view()) {
            Ok(answer) | Err(ClientError::Command { answer, .. }) => answer,
            Err(error) => panic!("{command}: {error}"),
        };
        assert_eq!(text(&without_time(&answer)), text(&json(expected)), "{command}");
    }

    /// Runs a command that answers with a cursor; compares its documents.
    pub fn check_documents(&mut self, database: &str, command: &str, expected: &[&str]) {
        let documents = self.0.documents(database, json(command).view());
        let documents = documents.unwrap_or_else(|error| panic!("{command}: {error}"));
        let found: Vec<String> = documents.iter().map(text).collect();
        let expected: Vec<String> = expected.iter().map(|line| text(&json(line))).collect();
        assert_eq!(found, expected, "{command}");
    }
}

/// An answer without the cluster's time, which every answer must have.
pub fn without_time(answer: &DocumentBuf) -> DocumentBuf {
    let mut rest = DocumentBuilder::new();
    let mut times = 0;
    for (name, value) in answer.iter() {
        match name {
            "$clusterTime" | "operationTime" => times += 1,
            _ => drop(rest.append(name, value)),
        }
    }
    assert_eq!(times, 2, "{answer:?}");
    rest.build()
}

/// Reads JSON.
pub fn json(text: &str) -> DocumentBuf {
    extended_json::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Writes JSON.
pub fn text(document: &DocumentBuf) -> String {
    let mut out = String::new();
    extended_json::write(document.view(), extended_json::Form::Relaxed, &mut out);
    out
}
