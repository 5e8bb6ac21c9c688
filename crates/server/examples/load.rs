//! What an operation costs a server: clients that do nothing but ask, and the server's processor time.
//!
//! ```text
//! frond serve --data DIRECTORY --listen 127.0.0.1:28000 &
//! cargo run --release -p frond-server --example load -- 127.0.0.1:28000 --pid $!
//! ```
//!
//! Fills `load.records` with 20,000 documents of ten fields of 100 bytes (YCSB's), then runs each mix with
//! each number of clients in a closed loop, as drivers ask: in a session, with the cluster's time, writes
//! retryable and synced. Prints rates, latencies, and for the process `--pid` (on Linux) processor time and
//! switches of threads for each operation. The clients take part of the same processors.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use frond_doc::{Binary, DocumentBuf, DocumentBuilder, Value, document};
use frond_server::Client;
use frond_server::wire::DocumentSequence;

const DATABASE: &str = "load";
const RECORDS: u64 = 20_000;
const FIELDS: u64 = 10;
const BATCH: u64 = 500;
const UUID_SUBTYPE: u8 = 4;

/// Sessions that were begun, and records that were inserted after the first ones: none comes twice.
static SESSIONS: AtomicU64 = AtomicU64::new(0);
static INSERTED: AtomicU64 = AtomicU64::new(RECORDS);

/// What clients do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mix {
    Ping,
    Find,
    Aggregate,
    Update,
    Insert,
    /// As many finds as updates: YCSB's A.
    Half,
}

const MIXES: [Mix; 6] = [Mix::Ping, Mix::Find, Mix::Aggregate, Mix::Update, Mix::Insert, Mix::Half];

/// One client: a session on a connection.
struct Asker {
    client: Client,
    session: DocumentBuf,
    number: i64,
    random: u64,
}

impl Asker {
    fn connect(address: &str) -> Asker {
        let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
        let client = Client::connect(address).unwrap_or_else(|error| stop(&error.to_string()));
        let unique = u128::from(std::process::id()) << 64 | u128::from(number);
        let id = Binary { subtype: UUID_SUBTYPE, bytes: &unique.to_le_bytes() };
        let session = document! { "id": Value::Binary(id) };
        let random = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Asker { client, session, number: 0, random }
    }

    /// Marsaglia's xorshift.
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 8
    }

    fn ask(&mut self, mix: Mix) {
        let record = self.random() % RECORDS;
        match mix {
            Mix::Ping => drop(self.send(&document! { "ping": 1_i32 }, Vec::new())),
            Mix::Find => self.find(record),
            Mix::Aggregate => self.aggregate(record),
            Mix::Update => self.update(record),
            Mix::Insert => {
                let record = INSERTED.fetch_add(1, Ordering::Relaxed);
                self.write("insert", "documents", vec![document_of(record)]);
            }
            Mix::Half if self.random().is_multiple_of(2) => self.find(record),
            Mix::Half => self.update(record),
        }
    }

    fn find(&mut self, record: u64) {
        let filter = document! { "_id": &key(record) };
        let command = document! {
            "find": "records", "filter": &filter, "limit": 1_i32, "singleBatch": true,
        };
        let answer = self.send(&command, Vec::new());
        assert!(answer.as_bytes().len() > 1_000, "no document: {answer:?}");
    }

    fn aggregate(&mut self, record: u64) {
        let (filter, fields) = (document! { "_id": &key(record) }, document! { "field1": 1_i32 });
        let mut command = DocumentBuilder::new();
        command.append("aggregate", Value::String("records")).begin_array("pipeline");
        command.push(Value::Document(document! { "$match": &filter }.view()));
        command.push(Value::Document(document! { "$project": &fields }.view()));
        command.end().begin_document("cursor").end();
        self.send(&command.build(), Vec::new());
    }

    fn update(&mut self, record: u64) {
        let value = format!("{:0100}", self.random());
        let mut set = DocumentBuilder::new();
        set.append(&format!("field{}", record % FIELDS), Value::String(&value));
        let set = document! { "$set": &set.build() };
        let filter = document! { "_id": &key(record) };
        self.write("update", "updates", vec![document! { "q": &filter, "u": &set }]);
    }

    fn write(&mut self, command: &str, sequence: &str, documents: Vec<DocumentBuf>) {
        self.number += 1;
        let expected = documents.len() as i64;
        let concern = document! { "w": "majority", "j": true };
        let mut body = DocumentBuilder::new();
        body.append(command, Value::String("records"))
            .append("ordered", Value::Boolean(true))
            .append("txnNumber", Value::Int64(self.number))
            .append("writeConcern", Value::Document(concern.view()));
        let sequence = DocumentSequence { name: sequence.to_owned(), documents };
        let answer = self.send(&body.build(), vec![sequence]);
        let done = answer.get("n").and_then(|count| count.as_integer());
        assert_eq!(done, Some(expected), "{answer:?}");
    }

    fn send(&mut self, command: &DocumentBuf, sequences: Vec<DocumentSequence>) -> DocumentBuf {
        let time = document! { "clusterTime": frond_doc::Timestamp(0) };
        let mut body = DocumentBuilder::new();
        for (name, value) in command.iter() {
            body.append(name, value);
        }
        body.append("lsid", Value::Document(self.session.view()))
            .append("$clusterTime", Value::Document(time.view()));
        let answer = self.client.command_with(DATABASE, body.build().view(), sequences);
        answer.unwrap_or_else(|error| stop(&error.to_string()))
    }
}

fn key(record: u64) -> String {
    format!("user{record:012}")
}

fn document_of(record: u64) -> DocumentBuf {
    let mut document = DocumentBuilder::new();
    document.append("_id", Value::String(&key(record)));
    for field in 0..FIELDS {
        let value = format!("{:0100}", record * FIELDS + field);
        document.append(&format!("field{field}"), Value::String(&value));
    }
    document.build()
}

/// Processor time of a process in microseconds and the switches of its threads, as Linux tells them.
fn cost_of(process: u32) -> Option<(f64, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().ok()? + fields[12].parse::<f64>().ok()?;
    let mut switches = 0;
    for thread in std::fs::read_dir(format!("/proc/{process}/task")).ok()?.flatten() {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
        let counts = counts.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok());
        switches += counts.sum::<u64>();
    }
    Some((ticks * 10_000.0, switches))
}

/// Runs one mix with so many clients, and prints a line.
fn measure(address: &str, mix: Mix, clients: usize, span: Duration, process: Option<u32>) {
    let (stopped, barrier) = (AtomicBool::new(false), Barrier::new(clients + 1));
    let mut latencies: Vec<Vec<u32>> = Vec::new();
    let (mut before, mut after) = (None, None);
    std::thread::scope(|scope| {
        let run = || {
            let mut asker = Asker::connect(address);
            let mut latencies = Vec::new();
            barrier.wait();
            while !stopped.load(Ordering::Relaxed) {
                let began = Instant::now();
                asker.ask(mix);
                latencies.push(began.elapsed().as_micros() as u32);
            }
            latencies
        };
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(run)).collect();
        barrier.wait();
        before = process.and_then(cost_of);
        std::thread::sleep(span);
        after = process.and_then(cost_of);
        stopped.store(true, Ordering::Relaxed);
        let ended = threads.into_iter().map(|thread| thread.join().unwrap_or_default());
        latencies = ended.collect();
    });
    let counts = latencies.iter().map(Vec::len);
    let (least, most) = (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0));
    let mut all: Vec<u32> = latencies.into_iter().flatten().collect();
    all.sort_unstable();
    let at = |share: f64| all.get((all.len() as f64 * share) as usize).copied().unwrap_or(0);
    let count = all.len().max(1) as f64;
    print!(
        "{mix:?} {clients:>4} clients {:>7.0}/s p50 {:>6} p95 {:>6} p99 {:>6} max {:>7} us, a client {least} to {most}",
        count / span.as_secs_f64(),
        at(0.5),
        at(0.95),
        at(0.99),
        all.last().copied().unwrap_or(0),
    );
    if let (Some(before), Some(after)) = (before, after) {
        let switches = after.1.saturating_sub(before.1) as f64 / count;
        print!(
            "; server {:.1} us, {switches:.2} switches an operation",
            (after.0 - before.0) / count
        );
    }
    println!();
}

fn fill(address: &str) {
    let mut asker = Asker::connect(address);
    asker.send(&document! { "drop": "records" }, Vec::new());
    for first in (0..RECORDS).step_by(BATCH as usize) {
        let documents = (first..first + BATCH).map(document_of).collect();
        asker.write("insert", "documents", documents);
    }
}

fn stop(message: &str) -> ! {
    eprintln!("load: {message}");
    std::process::exit(1);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(address) = arguments.first() else {
        stop("ADDRESS [--pid PID] [--clients 1,8,500] [--mixes find,update] [--seconds 2]")
    };
    let option = |name: &str| {
        let place = arguments.iter().position(|argument| argument == name)?;
        arguments.get(place + 1).cloned()
    };
    let process = option("--pid").and_then(|process| process.parse().ok());
    let clients = option("--clients").unwrap_or_else(|| "1,8".to_owned());
    let mixes = option("--mixes").map(|mixes| mixes.to_lowercase());
    let is_wanted = |mix: &Mix| {
        let name = format!("{mix:?}").to_lowercase();
        mixes.as_ref().is_none_or(|mixes| mixes.split(',').any(|wanted| wanted == name))
    };
    let seconds = option("--seconds").and_then(|seconds| seconds.parse().ok()).unwrap_or(2);
    fill(address);
    for mix in MIXES.into_iter().filter(is_wanted) {
        for clients in clients.split(',').filter_map(|clients| clients.parse().ok()) {
            measure(address, mix, clients, Duration::from_secs(seconds), process);
        }
    }
}
