//! Clients that change a database in every way that a copy must follow, and take it as it comes
//! where the server dies.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use frond_doc::{DocumentBuf, extended_json};
use frond_server::Client;

/// Accounts between which money goes to and fro, and how much of it there is.
pub const ACCOUNTS: i64 = 20;
pub const MONEY: i64 = 2_000;

/// Clients at work.
pub struct Load {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<u64>>,
}

impl Load {
    pub fn start(address: &Arc<Mutex<String>>, seed: u64) -> Load {
        let ends = Arc::new(AtomicBool::new(false));
        let threads = (0..3)
            .map(|number| {
                let (ends, address) = (Arc::clone(&ends), Arc::clone(address));
                thread::spawn(move || work(number, seed * 10 + number, &address, &ends))
            })
            .collect();
        Load { ends, threads }
    }

    /// Ends them; returns how many commands were answered.
    pub fn stop(self) -> u64 {
        self.ends.store(true, Ordering::Relaxed);
        self.threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    }
}

pub fn run(client: &mut Client, database: &str, command: &str) -> Option<DocumentBuf> {
    let command = extended_json::parse(command).expect(command);
    client.command(database, command.view()).ok()
}

/// xorshift64*
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % limit
    }
}

fn work(number: u64, seed: u64, address: &Mutex<String>, ends: &AtomicBool) -> u64 {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let (mut answered, mut transactions) = (0, 0);
    let mut client = None;
    while !ends.load(Ordering::Relaxed) {
        let at = address.lock().unwrap().clone();
        let Some(connected) = client.as_mut() else {
            client = Client::connect(&at).ok();
            thread::sleep(Duration::from_millis(5));
            continue;
        };
        let done = match number {
            0 => transfer(connected, &mut random, seed, &mut transactions),
            1 => change(connected, &mut random),
            _ => alter(connected, &mut random),
        };
        answered += u64::from(done);
        // Whether it was lost, or refused what isn't there, is found out by asking.
        if !done && run(connected, "admin", r#"{"ping": 1}"#).is_none() {
            client = None;
        }
    }
    answered
}

/// Moves money, in a transaction of several commands.
fn transfer(client: &mut Client, random: &mut Random, seed: u64, transactions: &mut u64) -> bool {
    *transactions += 1;
    let (from, to) = (random.below(ACCOUNTS as u64), random.below(ACCOUNTS as u64));
    let session = format!(
        r#""lsid": {{"id": {{"$uuid": "00000000-0000-4000-8000-{seed:012}"}}}},
           "txnNumber": {{"$numberLong": "{transactions}"}}, "autocommit": false"#
    );
    let mut add = |id: u64, amount: i32, start: &str| {
        let command = format!(
            r#"{{"update": "accounts", "updates": [{{"q": {{"_id": {id}}}, "u": {{"$inc": {{"v": {amount}}}}}}}],
                {session} {start}}}"#
        );
        run(client, "shop", &command).is_some()
    };
    if from == to || !add(from, -1, r#", "startTransaction": true"#) || !add(to, 1, "") {
        let _ = run(client, "admin", &format!(r#"{{"abortTransaction": 1, {session}}}"#));
        return from == to;
    }
    run(client, "admin", &format!(r#"{{"commitTransaction": 1, {session}}}"#)).is_some()
}

/// Changes documents.
fn change(client: &mut Client, random: &mut Random) -> bool {
    let id = random.below(400);
    let n = random.below(1_000);
    let update = |update: &str| {
        format!(
            r#"{{"update": "items", "updates": [{{"q": {{"_id": {id}}}, "u": {update}, "upsert": true}}]}}"#
        )
    };
    let command = match random.below(10) {
        0 => format!(r#"{{"delete": "items", "deletes": [{{"q": {{"_id": {id}}}, "limit": 1}}]}}"#),
        1 => {
            update(&format!(r#"{{"n": {n}, "list": [1, 2, {{"x": {n}}}], "deep": {{"a": {{}}}}}}"#))
        }
        2 => update(&format!(r#"{{"$push": {{"list": {{"$each": [{n}, 2], "$slice": -4}}}}}}"#)),
        3 => update(r#"{"$push": {"list": {"$each": [], "$slice": 1}}}"#),
        4 => update(&format!(r#"{{"$set": {{"deep.a.z{n}": 1, "deep.a.b": {n}, "a{n}": 1}}}}"#)),
        5 => update(r#"{"$unset": {"deep.a": 1, "n": 1}}"#),
        6 => update(&format!(r#"[{{"$set": {{"both": {{"$ifNull": ["$n", {n}]}}}}}}]"#)),
        7 => update(&format!(r#"{{"$set": {{"list.0": {n}}}}}"#)),
        _ => format!(
            r#"{{"insert": "journal", "documents": [{{"at": {n}, "text": "{}"}}, {{"at": {id}}}]}}"#,
            "long ".repeat(usize::try_from(random.below(100)).unwrap())
        ),
    };
    // Paths that don't lead anywhere are refused: that is a part of it.
    run(client, "shop", &command).is_some()
}

/// Changes collections and indexes, and swaps values of a unique index.
fn alter(client: &mut Client, random: &mut Random) -> bool {
    thread::sleep(Duration::from_millis(3));
    let n = random.below(4);
    let other = random.below(4);
    match random.below(9) {
        0 => run(client, "shop", &format!(r#"{{"drop": "side{n}"}}"#)),
        1 => run(
            client,
            "admin",
            &format!(
                r#"{{"renameCollection": "shop.side{n}", "to": "shop.side{other}", "dropTarget": true}}"#
            ),
        ),
        2 => run(
            client,
            "shop",
            &format!(
                r#"{{"createIndexes": "side{n}", "indexes": [{{"key": {{"v": 1}}, "name": "v"}}]}}"#
            ),
        ),
        3 => run(client, "shop", &format!(r#"{{"dropIndexes": "side{n}", "index": "v"}}"#)),
        4 => {
            let free = |id: u64, u: u64| {
                format!(
                    r#"{{"update": "unique", "updates": [{{"q": {{"_id": {id}}}, "u": {{"$set": {{"u": {u}}}}}, "upsert": true}}]}}"#
                )
            };
            // 0 and 1 exchange what is unique, by way of a third value.
            let mut is_done = true;
            for (id, u) in [(0, 90), (1, 91), (0, 1), (1, 0), (0, 92), (1, 1), (0, 0)] {
                is_done &= run(client, "shop", &free(id, u)).is_some();
            }
            return is_done;
        }
        5 => run(
            client,
            "shop",
            &format!(r#"{{"create": "made{n}{other}", "collation": {{"locale": "de"}}}}"#),
        ),
        _ => run(
            client,
            "shop",
            &format!(
                r#"{{"insert": "side{n}", "documents": [{{"v": {other}}}, {{"v": {n}}}, {{"v": 7}}]}}"#
            ),
        ),
    }
    .is_some()
}
