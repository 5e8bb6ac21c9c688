//! A proxy that lets through what MongoDB 6 to 8 knows of the commands that a follower needs, and
//! notes everything else.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use frond_doc::{Document, Value};
use frond_server::wire::Message;

/// Commands, and their fields by the reference of MongoDB 6.0.
const KNOWN: &[(&str, &[&str])] = &[
    ("hello", &["hello", "client", "saslSupportedMechs"]),
    ("listCollections", &["listCollections", "filter", "nameOnly", "cursor"]),
    ("listIndexes", &["listIndexes", "cursor"]),
    (
        "find",
        &[
            "find",
            "filter",
            "sort",
            "hint",
            "min",
            "max",
            "limit",
            "batchSize",
            "singleBatch",
            "readConcern",
        ],
    ),
    ("aggregate", &["aggregate", "pipeline", "cursor"]),
    ("getMore", &["getMore", "collection", "batchSize", "maxTimeMS"]),
];
const STREAM: &[&str] = &["showExpandedEvents", "startAfter", "resumeAfter", "fullDocument"];

/// A proxy before a server that may be exchanged.
pub struct Proxy {
    pub address: String,
    pub upstream: Arc<Mutex<String>>,
    wrong: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    pub fn start(upstream: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let upstream = Arc::new(Mutex::new(upstream.to_owned()));
        let wrong = Arc::new(Mutex::new(Vec::new()));
        let shared = (Arc::clone(&upstream), Arc::clone(&wrong));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (upstream, wrong) = (shared.0.lock().unwrap().clone(), Arc::clone(&shared.1));
                thread::spawn(move || drop(pass(client, &upstream, &wrong)));
            }
        });
        Proxy { address, upstream, wrong }
    }

    /// Returns the requests that no MongoDB would know.
    pub fn wrong(&self) -> Vec<String> {
        self.wrong.lock().unwrap().clone()
    }
}

fn pass(mut client: TcpStream, upstream: &str, wrong: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut server = TcpStream::connect(upstream)?;
    loop {
        let question = read(&mut client)?;
        let message = Message::decode(question.clone().into());
        match message.map_err(|error| error.to_string()).and_then(|it| check(it.body.view())) {
            Ok(()) => server.write_all(&question)?,
            Err(what) => {
                wrong.lock().unwrap().push(what);
                return Ok(());
            }
        }
        let answer = read(&mut server)?;
        client.write_all(&answer)?;
    }
}

fn read(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut message = vec![0; 16];
    stream.read_exact(&mut message)?;
    let bytes = i32::from_le_bytes(message[..4].try_into().unwrap());
    message.resize(usize::try_from(bytes).unwrap(), 0);
    stream.read_exact(&mut message[16..])?;
    Ok(message)
}

fn check(command: Document<'_>) -> Result<(), String> {
    let name = command.iter().next().map_or("", |(name, _)| name);
    let known = KNOWN.iter().find(|(known, _)| *known == name);
    let (_, fields) = known.ok_or_else(|| format!("the command {name}"))?;
    for (field, value) in command.iter() {
        if !fields.contains(&field) && field != "$db" {
            return Err(format!("{name}.{field}"));
        }
        if field == "pipeline" {
            check_stream(value)?;
        }
    }
    // MongoDB takes `min` with a hint only.
    match command.get("min").is_some() && command.get("hint").is_none() {
        true => Err("min without hint".to_owned()),
        false => Ok(()),
    }
}

fn check_stream(pipeline: Value<'_>) -> Result<(), String> {
    for stage in pipeline.as_array().ok_or("a pipeline that is none")?.iter() {
        for (stage, options) in stage.as_document().ok_or("a stage that is none")?.iter() {
            let options = options.as_document().ok_or("options that are none")?;
            let unknown = options.iter().find(|(option, _)| !STREAM.contains(option));
            if stage != "$changeStream" || unknown.is_some() {
                return Err(format!("{stage} {unknown:?}"));
            }
        }
    }
    Ok(())
}

#[test]
fn the_proxy_notes_what_is_not_mongodbs() {
    use frond_doc::document;
    let frond = document! { "frondLog": 1_i32, "$db": "shop" };
    let lease = document! { "find": "c", "lease": true, "$db": "shop" };
    let find = document! { "find": "c", "limit": 1_i32, "$db": "shop" };
    assert!(check(frond.view()).is_err() && check(lease.view()).is_err());
    assert_eq!(check(find.view()), Ok(()));
}
