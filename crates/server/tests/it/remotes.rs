//! Goal: servers fetch from and push to other places while they serve, show how far they are, and
//! show no client a token. Method: two servers, and a plain remote on a simulated disk in place of
//! what the network has; the network itself is `frond-remote`'s, and tested there.

use std::sync::{Arc, Mutex};

use frond_db::Error;
use frond_doc::Value;
use frond_server::{Client, RemoteOpener};
use frond_store::{Chunk, ChunkHash};
use frond_testkit::SimDisk;
use frond_vcs::remote::{PlainRemote, RefUpdate, Remote, RemoteState};

use crate::running::{Running, TestClient, text};

const TOKEN: &str = "a-token-that-nobody-may-see";

/// Tokens that were given.
type Given = Arc<Mutex<Vec<Option<String>>>>;

/// A server that finds everything at `disk`.
fn server(disk: &SimDisk, given: &Given) -> Running {
    let (machine, given) = (disk.machine(), given.clone());
    let places = RemoteOpener::new(move |_, _, token| {
        given.lock().unwrap().push(token.map(str::to_owned));
        Ok(Box::new(PlainRemote::open(&machine)?) as Box<dyn Remote>)
    });
    Running::with_places(places)
}

fn commit(client: &mut TestClient, database: &str, id: i32) {
    let insert = format!(r#"{{"insert": "c", "documents": [{{"_id": {id}}}]}}"#);
    client.ok(database, &insert);
    client.ok(database, r#"{"frondCommit": 1, "message": "more", "author": "Ada"}"#);
}

#[test]
fn servers_push_clone_fetch_and_pull() {
    let (disk, given) = (SimDisk::new(2), Given::default());
    let (ours, theirs) = (server(&disk, &given), server(&disk, &given));
    let (mut our, mut their) = (ours.client(), theirs.client());
    commit(&mut our, "shop", 1);
    let add = r#"{"frondRemote": 1, "name": "origin", "url": "https://h/shop"}"#;
    our.check("shop", add, r#"{"name": "origin", "url": "https://h/shop", "ok": 1.0}"#);
    our.check(
        "shop",
        r#"{"frondRemote": 1}"#,
        r#"{"remotes": [{"name": "origin", "url": "https://h/shop"}], "ok": 1.0}"#,
    );
    let pushed = our.ok("shop", &format!(r#"{{"frondPush": 1, "token": "{TOKEN}"}}"#));
    assert_eq!(pushed.get("branch"), Some(Value::String("main")));
    assert!(!text(&pushed).contains(TOKEN));
    assert_eq!(given.lock().unwrap()[..], [Some(TOKEN.to_owned())]);

    let cloned = their.ok("shop", r#"{"frondClone": 1, "from": "https://h/shop"}"#);
    assert!(text(&cloned).contains("origin/main"), "{}", text(&cloned));
    let find = r#"{"find": "c"}"#;
    their.check_documents("shop", find, &[r#"{"_id": 1}"#]);
    commit(&mut our, "shop", 2);
    our.ok("shop", r#"{"frondPush": 1}"#);
    let fetched = their.ok("shop", r#"{"frondFetch": 1}"#);
    assert!(text(&fetched).contains(r#""moved":{"commits":1"#), "{}", text(&fetched));
    their.check_documents("shop", find, &[r#"{"_id": 1}"#]);
    let pulled = their.ok("shop", r#"{"doltPull": 1}"#);
    assert_eq!(pulled.get("result"), Some(Value::String("fastForward")));
    their.check_documents("shop", find, &[r#"{"_id": 1}"#, r#"{"_id": 2}"#]);

    // A clone that is behind is refused, and may force it only after a look.
    commit(&mut our, "shop", 3);
    our.ok("shop", r#"{"frondPush": 1}"#);
    commit(&mut their, "shop", 4);
    assert_eq!(their.error("shop", r#"{"frondPush": 1}"#).0, 20);
    assert_eq!(their.error("shop", r#"{"frondPush": 1, "forceWithLease": true}"#).0, 20);
    let pulled = their.ok("shop", r#"{"frondPull": 1, "author": "Ada"}"#);
    assert_eq!(pulled.get("result"), Some(Value::String("merged")));
    their.ok("shop", r#"{"frondPush": 1}"#);
    our.ok("shop", r#"{"frondPull": 1}"#);
    our.check_documents(
        "shop",
        find,
        &[r#"{"_id": 1}"#, r#"{"_id": 2}"#, r#"{"_id": 3}"#, r#"{"_id": 4}"#],
    );
    our.check(
        "shop",
        r#"{"frondRemote": 1, "name": "origin", "remove": true}"#,
        r#"{"removed": "origin", "ok": 1.0}"#,
    );
}

#[test]
fn a_server_goes_to_no_directory() {
    let (disk, given) = (SimDisk::new(3), Given::default());
    let server = server(&disk, &given);
    let mut client = server.client();
    commit(&mut client, "shop", 1);
    for url in ["/data/shop", "file:///data", "data#shop"] {
        let add = format!(r#"{{"frondRemote": 1, "name": "origin", "url": "{url}"}}"#);
        assert_eq!(client.error("shop", &add).0, 2, "{url}");
        let clone = format!(r#"{{"frondClone": 1, "from": "{url}"}}"#);
        assert_eq!(client.error("copy", &clone).0, 2, "{url}");
    }
    assert_eq!(client.error("shop", r#"{"frondFetch": 1}"#).0, 4);
    let both = r#"{"frondClone": 1, "from": "https://h/x", "depth": 1, "unshallow": true}"#;
    assert_eq!(client.error("copy", both).0, 2);
    assert!(given.lock().unwrap().is_empty());
    // A server without places.
    let alone = Running::start();
    let mut client = alone.client();
    assert_eq!(client.error("copy", r#"{"frondClone": 1, "from": "https://h/x"}"#).0, 115);
}

/// A place that, when asked, looks at what the server shows of the transfer that asks it, and then
/// stops that.
#[test]
fn a_transfer_shows_how_far_it_is_and_can_be_stopped() {
    let (disk, given) = (SimDisk::new(4), Given::default());
    let first = server(&disk, &given);
    let mut client = first.client();
    commit(&mut client, "shop", 1);
    commit(&mut client, "shop", 2);
    client.ok("shop", r#"{"frondRemote": 1, "name": "origin", "url": "https://h/shop"}"#);
    client.ok("shop", r#"{"frondPush": 1}"#);
    let seen = Arc::new(Mutex::new(Vec::<String>::new()));
    let address = Arc::new(Mutex::new(String::new()));
    let places = {
        let (machine, seen, address) = (disk.machine(), seen.clone(), address.clone());
        RemoteOpener::new(move |_, _, _| {
            let plain = PlainRemote::open(&machine)?;
            let (seen, address) = (seen.clone(), address.lock().unwrap().clone());
            Ok(Box::new(Recorded { plain, seen, address }) as Box<dyn Remote>)
        })
    };
    let second = Running::with_places(places);
    *address.lock().unwrap() = second.address.clone();
    let mut client = second.client();
    let clone = format!(r#"{{"frondClone": 1, "from": "https://h/shop", "token": "{TOKEN}"}}"#);
    assert_eq!(client.error("shop", &clone).0, 11601);
    let seen = seen.lock().unwrap();
    let last = seen.last().expect("it was asked for chunks");
    assert!(last.contains("frondClone") && !last.contains(TOKEN), "{last}");
    assert!(seen.iter().any(|answer| answer.contains("commits, ")), "{seen:?}");
    assert!(last.contains(r#""moved":{"commits":2,"commitsDone":0,"chunks":"#), "{last}");
    assert_eq!(client.error("shop", r#"{"frondFetch": 1}"#).0, 26, "nothing was cloned");
}

struct Recorded {
    plain: PlainRemote,
    seen: Arc<Mutex<Vec<String>>>,
    address: String,
}

impl Remote for Recorded {
    fn state(&self) -> Result<Option<RemoteState>, Error> {
        self.plain.state()
    }

    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, Error> {
        self.plain.has_many(hashes)
    }

    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        let client = Client::connect(&self.address).expect("the server listens");
        let mut client = TestClient(client);
        let answer =
            client.ok("admin", r#"{"currentOp": 1, "command.frondClone": {"$exists": true}}"#);
        let answer = text(&answer);
        let is_known = answer.contains("commits, ");
        self.seen.lock().unwrap().push(answer.clone());
        if is_known {
            let id = answer.split(r#""opid":"#).nth(1).and_then(|rest| rest.split(',').next());
            client.ok("admin", &format!(r#"{{"killOp": 1, "op": {}}}"#, id.expect("an id")));
        }
        self.plain.get_many(hashes)
    }

    fn put_many(&self, chunks: &[Chunk]) -> Result<(), Error> {
        self.plain.put_many(chunks)
    }

    fn update(&self, update: &RefUpdate) -> Result<(), Error> {
        self.plain.update(update)
    }
}
