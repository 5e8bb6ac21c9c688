//! Goal: the console's page, and no other, runs commands as the user who has logged in; other
//! requests are refused, and values keep their types. Method: requests over a socket, written by
//! hand, on a server that asks for logins and on one that doesn't.

use std::io::{Read, Write};
use std::net::TcpStream;

use std::time::Duration;

use frond_server::commands::COMMANDS;
use frond_server::{
    Client, ConsoleOptions, LogOutput, Server, ServerError, ServerOptions, Stopper,
};
use frond_testkit::SimDisk;

use crate::auth_matrix;

/// A server with a console.
struct Served {
    address: String,
    wire: String,
    stopper: Stopper,
    thread: Option<std::thread::JoinHandle<Result<(), ServerError>>>,
}

fn bind(auth: bool, read_only: bool) -> Result<Server, ServerError> {
    let disk = SimDisk::new(1);
    let frond = frond_vcs::open_on(&disk.machine(), frond_db::FrondOptions::default());
    let console = ConsoleOptions {
        listen: "127.0.0.1:0".to_owned(),
        hosts: vec!["console.example".to_owned()],
        read_only,
    };
    let options = ServerOptions {
        listen: Some("127.0.0.1:0".to_owned()),
        console: Some(console),
        auth,
        log: LogOutput::Memory,
        ..ServerOptions::default()
    };
    Server::bind(frond.expect("the disk opens"), options)
}

impl Served {
    fn start(auth: bool, read_only: bool) -> Served {
        let server = bind(auth, read_only).expect("binds");
        let address = server.console_address().expect("it listens").to_string();
        let (wire, stopper) = (server.address().to_string(), server.stopper());
        let thread = Some(std::thread::spawn(move || server.run()));
        Served { address, wire, stopper, thread }
    }

    /// Sends a request as it stands; returns the status, the head and the body.
    fn send(&self, request: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("a status"), head.to_owned(), body.to_owned())
    }

    /// Sends what the console's page would.
    fn post(&self, path: &str, cookie: &str, body: &str) -> (u16, String, String) {
        let address = &self.address;
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\n\
             X-Frond-Console: 1\r\nContent-Type: application/json\r\nCookie: {cookie}\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        ))
    }

    /// Runs a command; returns its answer as text.
    fn run(&self, cookie: &str, database: &str, command: &str) -> String {
        let body = format!(r#"{{"db": "{database}", "command": {command}}}"#);
        let (status, _, answer) = self.post("/api/command", cookie, &body);
        assert_eq!(status, 200, "{command}: {answer}");
        answer
    }

    /// Logs in; returns the cookie.
    fn log_in(&self, user: &str, password: &str) -> Option<String> {
        let body =
            format!(r#"{{"user": "{user}", "password": "{password}", "database": "admin"}}"#);
        let (status, head, answer) = self.post("/api/login", "", &body);
        if status != 200 {
            assert_eq!((status, answer.trim()), (401, "Authentication failed."));
            return None;
        }
        let line = head.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        let line = line.expect("a cookie");
        assert!(line.contains("; HttpOnly; SameSite=Strict"), "{line}");
        Some(line.split(';').next().expect("a pair").to_owned())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stopper.stop();
        let ended = self.thread.take().expect("it runs").join();
        assert!(ended.expect("no panic").is_ok());
    }
}

/// Each type, as canonical extended JSON has it.
const TYPES: &str = r#"{"_id":{"$oid":"0123456789abcdef01234567"},"1":{"$numberInt":"1"},"0":{"$numberLong":"-9223372036854775808"},"d":{"$numberDouble":"-0.0"},"m":{"$numberDecimal":"1.20E-10"},"s":"q\"\n<script>","t":{"$timestamp":{"t":4294967295,"i":1}},"b":{"$binary":{"base64":"AAEC","subType":"80"}},"r":{"$regularExpression":{"pattern":"a/b","options":"i"}},"w":{"$date":{"$numberLong":"-62135596800001"}},"c":{"$code":"x"},"cs":{"$code":"x","$scope":{"y":{"$numberInt":"2"}}},"y":{"$symbol":"z"},"p":{"$dbPointer":{"$ref":"c","$id":{"$oid":"0123456789abcdef01234567"}}},"lo":{"$minKey":1},"hi":{"$maxKey":1},"un":{"$undefined":true},"no":null,"ok":true,"a":[[],{}]}"#;

#[test]
fn values_keep_their_types() {
    let served = Served::start(false, false);
    let insert = format!(r#"{{"insert": "c", "documents": [{TYPES}]}}"#);
    let answer = served.run("", "shop", &insert);
    assert!(answer.contains(r#""n":{"$numberInt":"1"}"#), "{answer}");
    let found = served.run("", "shop", r#"{"find": "c"}"#);
    assert!(found.contains(TYPES), "{found}");
    let failed = served.run("", "shop", r#"{"nothing": 1}"#);
    assert!(failed.contains(r#""code":{"$numberInt":"59"}"#), "{failed}");
    let (status, _, _) = served.post("/api/command", "", r#"{"command": {"ping": 1}}"#);
    assert_eq!(status, 400);
    let (status, _, _) = served.post("/api/command", "", "{nothing");
    assert_eq!(status, 400);
    let (status, _, session) = served.post("/api/session", "", "{}");
    assert_eq!(status, 200);
    assert!(session.contains(r#""auth":false"#), "{session}");
}

#[test]
fn other_pages_and_names_are_refused() {
    let served = Served::start(false, false);
    let address = &served.address;
    let port = address.rsplit(':').next().expect("a port");
    let get = |host: &str, path: &str| {
        served.send(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
    };
    let (status, head, _) = get(address, "/");
    assert_eq!(status, 200);
    for line in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "x-content-type-options: nosniff",
        "x-frame-options: DENY",
        "referrer-policy: no-referrer",
    ] {
        assert!(head.contains(line), "{head}");
    }
    assert!(!head.contains("unsafe"), "{head}");
    assert_eq!(get(&format!("localhost:{port}"), "/main.js").0, 200);
    assert_eq!(get(&format!("console.example:{port}"), "/").0, 200);
    assert_eq!(get("rebound.example", "/").0, 421);
    assert_eq!(get(address, "/nothing").0, 404);
    let body = r#"{"db": "shop", "command": {"insert": "c", "documents": [{"_id": 1}]}}"#;
    let post = |headers: &str| {
        let length = body.len();
        let request = format!(
            "POST /api/command HTTP/1.1\r\n{headers}Content-Length: {length}\r\n\
             Connection: close\r\n\r\n{body}"
        );
        served.send(&request).0
    };
    let kind = "Content-Type: application/json\r\n";
    let own = "X-Frond-Console: 1\r\n";
    let host = format!("Host: {address}\r\n");
    let origin = format!("Origin: http://{address}\r\n");
    assert_eq!(post(&format!("{host}{kind}{own}")), 403, "no origin");
    assert_eq!(post(&format!("{host}{kind}{own}Origin: http://evil.example\r\n")), 403);
    assert_eq!(post(&format!("{host}{kind}{own}Origin: http://127.0.0.1:1\r\n")), 403);
    assert_eq!(post(&format!("{host}{kind}{origin}")), 403, "not the page's own header");
    assert_eq!(post(&format!("{host}{own}{origin}Content-Type: text/plain\r\n")), 415);
    let rebound = "Host: evil.example\r\nOrigin: http://evil.example\r\n";
    assert_eq!(post(&format!("{rebound}{kind}{own}")), 421);
    let found = served.run("", "shop", r#"{"count": "c"}"#);
    assert!(found.contains(r#""n":{"$numberInt":"0"}"#), "{found}");
    assert_eq!(post(&format!("{host}{kind}{own}{origin}")), 200);
    let found = served.run("", "shop", r#"{"count": "c"}"#);
    assert!(found.contains(r#""n":{"$numberInt":"1"}"#), "{found}");
}

#[test]
fn console_users_may_do_what_their_roles_allow() {
    let served = Served::start(true, false);
    let mut first = Client::connect(&served.wire).expect("it listens");
    let roles = frond_doc::extended_json::parse(
        r#"{"createUser": "root", "pwd": "secret", "roles": ["root"]}"#,
    );
    first.command("admin", roles.expect("JSON").view()).expect("the first user");
    let ping = r#"{"db": "shop", "command": {"ping": 1}}"#;
    let long = format!(r#"{{"user": "{}"}}"#, "x".repeat(10_000));
    assert_eq!(served.post("/api/login", "", &long).0, 413);
    assert_eq!(served.post("/api/command", "", ping).0, 401, "no login");
    // Not even the first user: that takes a client that pages don't control.
    assert_eq!(served.log_in("root", "wrong"), None);
    assert_eq!(served.log_in("nobody", "secret"), None);
    let root = served.log_in("root", "secret").expect("it is right");
    served.run(&root, "shop", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    let reader = r#"{"createUser": "ann", "pwd": "ann's", "mechanisms": ["SCRAM-SHA-1"], "roles": [{"role": "read", "db": "shop"}]}"#;
    served.run(&root, "admin", reader);
    let ann = served.log_in("ann", "ann's").expect("by SCRAM-SHA-1");
    assert!(
        served.run(&ann, "shop", r#"{"find": "c"}"#).contains(r#""ok":{"$numberDouble":"1.0"}"#)
    );
    let refused = served.run(&ann, "shop", r#"{"insert": "c", "documents": [{"_id": 2}]}"#);
    assert!(refused.contains(r#""code":{"$numberInt":"13"}"#), "{refused}");
    let who = served.run(&ann, "shop", r#"{"connectionStatus": 1}"#);
    assert!(who.contains(r#""user":"ann""#), "{who}");
    for command in ["saslStart", "saslContinue", "logout", "authenticate"] {
        let body = format!(r#"{{"db": "admin", "command": {{"{command}": 1}}}}"#);
        assert_eq!(served.post("/api/command", &ann, &body).0, 400, "{command}");
    }
    served.run(&root, "admin", r#"{"dropUser": "ann"}"#);
    assert_eq!(served.post("/api/command", &ann, ping).0, 401, "who was dropped");
    let (status, head, _) = served.post("/api/logout", &root, "{}");
    assert!(status == 200 && head.contains("Max-Age=0"), "{head}");
    assert_eq!(served.post("/api/command", &root, ping).0, 401, "who has logged out");
}

/// A login holds while its user has the password that was proved, and no longer: for commands as
/// for the page's own user.
#[test]
fn a_login_ends_with_its_password_and_with_its_user() {
    let served = Served::start(true, false);
    let mut first = Client::connect(&served.wire).expect("it listens");
    let create = |user: &str, password: &str| {
        format!(r#"{{"createUser": "{user}", "pwd": "{password}", "roles": ["root"]}}"#)
    };
    let parse = |text: &str| frond_doc::extended_json::parse(text).expect("JSON");
    first.command("admin", parse(&create("root", "secret")).view()).expect("the first user");
    let root = served.log_in("root", "secret").expect("it is right");
    served.run(&root, "admin", &create("ann", "one"));
    let ping = r#"{"db": "shop", "command": {"ping": 1}}"#;
    let stands = |cookie: &str| {
        let (status, _, _) = served.post("/api/command", cookie, ping);
        let (_, _, session) = served.post("/api/session", cookie, "{}");
        let (is_known, is_shown) = (status == 200, !session.contains(r#""user":null"#));
        assert_eq!(is_known, is_shown, "{status}: {session}");
        is_known
    };
    let set_again = r#"{"updateUser": "ann", "pwd": "one"}"#;
    let dropped = r#"{"dropUser": "ann"}"#;
    let all = r#"{"dropAllUsersFromDatabase": 1}"#;
    let made_again = create("ann", "one");
    for (changes, password) in [
        (&[r#"{"updateUser": "ann", "pwd": "two"}"#][..], "two"),
        (&[r#"{"updateUser": "ann", "pwd": "one"}"#], "one"),
        (&[set_again], "one"),
        (&[dropped, &made_again], "one"),
        (&[r#"{"updateUser": "ann", "mechanisms": ["SCRAM-SHA-1"]}"#], "one"),
    ] {
        let before = served.log_in("ann", "one").or_else(|| served.log_in("ann", "two"));
        let before = before.expect("one of them is right");
        let also = served.log_in("ann", "one").or_else(|| served.log_in("ann", "two"));
        assert!(stands(&before) && stands(&also.clone().expect("right")));
        served.run(&root, "admin", r#"{"updateUser": "ann", "customData": {"a": 1}}"#);
        assert!(stands(&before), "nothing of the password has changed");
        for change in changes {
            let answer = served.run(&root, "admin", change);
            assert!(answer.contains(r#""ok":{"$numberDouble":"1.0"}"#), "{change}: {answer}");
        }
        assert!(!stands(&before) && !stands(&also.expect("right")), "{changes:?}");
        assert!(stands(&root), "another user");
        let after = served.log_in("ann", password).expect("it is the password now");
        assert!(stands(&after) && !stands(&before), "{changes:?}");
    }
    let ann = served.log_in("ann", "one").expect("it is right");
    served.run(&root, "admin", all);
    assert!(!stands(&ann) && !stands(&root), "there is no user left");
}

/// A body that is announced and doesn't come costs other clients nothing.
#[test]
fn a_body_that_does_not_come_keeps_no_client_waiting() {
    let served = Served::start(false, false);
    let address = &served.address;
    let head = |length: usize| {
        format!(
            "POST /api/command HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\n\
             X-Frond-Console: 1\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n"
        )
    };
    let mut silent = Vec::new();
    for _ in 0..8 {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(head(90 << 20).as_bytes()).expect("it reads");
        stream.write_all(&[b' '; 100_000]).expect("it reads");
        silent.push(stream);
    }
    // So that these come behind them; how long that takes matters to nothing.
    for bytes in [100, 1 << 20] {
        let text = "x".repeat(bytes);
        let command = format!(r#"{{"insert": "c", "documents": [{{"text": "{text}"}}]}}"#);
        let body = format!(r#"{{"db": "shop", "command": {command}}}"#);
        let mut stream = TcpStream::connect(address).expect("it listens");
        // Far longer than it takes, and shorter than silence is borne with.
        stream.set_read_timeout(Some(Duration::from_secs(15))).expect("a time");
        stream.write_all(head(body.len()).as_bytes()).expect("it reads");
        stream.write_all(body.as_bytes()).expect("it reads");
        let mut answer = [0; 15];
        stream.read_exact(&mut answer).expect("it answers though others are silent");
        assert_eq!(&answer, b"HTTP/1.1 200 OK");
    }
    let mut answer = String::new();
    let mut first = silent.swap_remove(0);
    first.read_to_string(&mut answer).expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

#[test]
fn one_that_only_reads_changes_nothing() {
    let served = Served::start(false, true);
    let refused = served.run("", "shop", r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    assert!(refused.contains("this console is read only"), "{refused}");
    let found = served.run("", "shop", r#"{"count": "c"}"#);
    assert!(found.contains(r#""n":{"$numberInt":"0"}"#), "{found}");
}

/// Returns the state that a command might change, as a client of the wire sees it.
fn state(client: &mut Client) -> String {
    let mut reply = String::new();
    for (database, command) in [
        ("shop", r#"{"dbHash": 1}"#),
        ("shop", r#"{"listCollections": 1}"#),
        ("shop", r#"{"frondStatus": 1}"#),
        ("shop", r#"{"frondBranch": 1}"#),
        ("shop", r#"{"frondTag": 1}"#),
        ("shop", r#"{"frondReflog": 1, "all": true}"#),
        ("shop", r#"{"frondPolicy": 1}"#),
        ("shop", r#"{"listIndexes": "things"}"#),
        ("admin", r#"{"usersInfo": {"forAllDBs": true}}"#),
        ("admin", r#"{"listDatabases": 1, "nameOnly": true}"#),
        ("admin", r#"{"getParameter": "*"}"#),
        ("admin", r#"{"profile": -1}"#),
        (
            "config",
            r#"{"aggregate": "system.sessions", "pipeline": [{"$listSessions": {}}], "cursor": {}}"#,
        ),
        ("admin", r#"{"aggregate": 1, "pipeline": [{"$listLocalSessions": {}}], "cursor": {}}"#),
        ("admin", r#"{"serverStatus": 1}"#),
    ] {
        let command = frond_doc::extended_json::parse(command).expect("JSON");
        let answer = client.command(database, command.view());
        let answer = answer.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        for (name, value) in answer.iter() {
            let is_of_server = answer.get("uptime").is_some();
            let is_time = ["$clusterTime", "operationTime", "timeMillis"].contains(&name);
            let is_shown =
                !is_of_server || ["transactions", "logicalSessionRecordCache"].contains(&name);
            if is_shown && !is_time {
                reply.push_str(&format!("{name}: {value:?}\n"));
            }
        }
    }
    reply
}

/// Those commands run, of all that there are, that only read; whatever else stands in them, neither
/// data nor the server's state change, and nothing is kept from others.
#[test]
fn every_command_of_one_that_only_reads() {
    let served = Served::start(false, true);
    let mut client = Client::connect(&served.wire).expect("it listens");
    let parse = |text: &str| frond_doc::extended_json::parse(text).expect("JSON");
    for command in [
        r#"{"insert": "things", "documents": [{"_id": 0, "a": 1}, {"_id": 1, "a": 2}]}"#,
        r#"{"frondCommit": 1, "message": "first"}"#,
        r#"{"insert": "things", "documents": [{"_id": 2, "a": 1}]}"#,
    ] {
        client.command("shop", parse(command).view()).expect("it runs");
    }
    let before = state(&mut client);
    let session = r#""lsid": {"id": {"$uuid": "00112233-4455-4677-8899-aabbccddeeff"}}"#;
    let number = r#""txnNumber": {"$numberLong": "1"}"#;
    let mut run = Vec::new();
    // Those of logins have requests of their own.
    let of_logins = ["authenticate", "logout", "saslContinue", "saslStart", "shutdown"];
    for command in COMMANDS.iter().filter(|command| !of_logins.contains(&command.name)) {
        for name in std::iter::once(&command.name).chain(command.aliases) {
            let body = auth_matrix::body(command.name).replacen(command.name, name, 1);
            let database = if command.admin_only { "admin" } else { "shop" };
            let is_refused =
                |body: &str| served.run("", database, body).contains("this console is read only");
            let with = |fields: &str| format!("{}, {fields}}}", &body[..body.len() - 1]);
            for fields in [
                session.to_owned(),
                format!(r#"{session}, {number}, "autocommit": false, "startTransaction": true"#),
                format!(r#"{session}, {number}, "autocommit": false"#),
                format!("{session}, {number}"),
                r#""noCursorTimeout": true"#.to_owned(),
            ] {
                assert!(is_refused(&with(&fields)), "{}", with(&fields));
            }
            if !is_refused(&body) {
                run.push(*name);
            }
        }
    }
    assert_eq!(state(&mut client), before);
    let reading = "aggregate buildInfo collStats connectionStatus count currentOp dbStats distinct \
                   explain find frondBlame frondConflicts frondDiff frondHelp frondHistory \
                   frondLog frondReflog frondRemote frondShow frondStatus getLog getMore hello \
                   hostInfo killCursors listCollections listCommands listDatabases listIndexes \
                   ping rolesInfo serverStatus top usersInfo";
    assert_eq!(run.join(" "), reading);
}

#[test]
fn beyond_loopback_it_takes_users_and_tls() {
    let disk = SimDisk::new(1);
    let frond = frond_vcs::open_on(&disk.machine(), frond_db::FrondOptions::default());
    let console =
        ConsoleOptions { listen: "0.0.0.0:0".to_owned(), hosts: Vec::new(), read_only: false };
    let options = ServerOptions {
        listen: Some("127.0.0.1:0".to_owned()),
        console: Some(console),
        auth: true,
        ..ServerOptions::default()
    };
    let error = Server::bind(frond.expect("the disk opens"), options).err().expect("refused");
    assert!(matches!(error, ServerError::OpenConsole { .. }), "{error}");
}
