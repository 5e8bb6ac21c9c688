//! Goal: `shop@{TIME}` shows the writes acknowledged by then, byte for byte, on every branch,
//! committed or not, whatever happened since; or it is refused, with the earliest moment that can
//! be read and the nearest commit. It is never an older state.
//!
//! *Method*: random writes on several collections of two branches: documents of a few bytes, of
//! 40 KB and of 2 MB, transactions, indexes made and dropped, renamings, rules changed, drops; in
//! between commits, merges, resets, undoings, flushes, collections and restarts. After each the
//! collections, their options, indexes and documents are hashed and noted under the
//! `operationTime`; at the end each is read back by its name, and by an index. Once the log is kept
//! for hours, once for so little that most is given up. Then single cases: what seconds mean,
//! writing, dropped databases and branches, a diff, a restore, a branch and a reset.

use frond_db::{ChangeRetention, Durability, Error, Frond, FrondOptions};
use frond_doc::{Document, DocumentBuf, Value, document};
use frond_engine::EngineOptions;
use frond_query::Code;
use frond_store::{Chunk, ChunkKind};
use frond_testkit::machine::{SimClock, machine};
use frond_testkit::random::{assert_met, for_seeds};
use frond_testkit::{Random, SimDisk};
use frond_vcs::Repository;

use super::{all, find, index, insert, merge, put, remove, shop};

const COLLECTIONS: [&str; 3] = ["things", "others", "more"];
const BRANCHES: [&str; 2] = ["main", "side"];

struct Run {
    disk: SimDisk,
    clock: SimClock,
    options: FrondOptions,
    frond: Frond,
    /// The moment, the branch, and its content then; `None`: there was no such branch.
    noted: Vec<(u64, &'static str, Option<String>)>,
    large: u64,
}

/// Opens it; each opening has other dice, as segments of the log that are used again need them.
fn open(disk: &SimDisk, clock: &SimClock, seed: u64, options: FrondOptions) -> Frond {
    frond_vcs::open_on(&machine(disk, clock, seed), options).expect("opens")
}

/// A branch's content: what its collections are, their indexes, and a hash of their documents.
fn content(database: &Repository) -> String {
    let mut content = String::new();
    let mut collections = database.list_collections().expect("a list");
    collections.sort_by(|left, right| left.name.cmp(&right.name));
    for collection in collections {
        let name = &collection.name;
        let indexes = database.describe_indexes(name).expect("a list");
        let documents = all(database, name);
        let count = database.count(name, &Default::default()).expect("a count");
        assert_eq!(count, documents.len() as u64);
        if indexes.iter().any(|index| index.get("name") == Some(Value::String("n_1"))) {
            let by_index = find(database, name, None, Some("n_1"));
            assert_eq!(by_index.len(), documents.len(), "an index of {name}");
        }
        let mut bytes: Vec<u8> = Vec::new();
        documents.iter().for_each(|document| bytes.extend_from_slice(document.as_bytes()));
        let indexes: Vec<String> = indexes.iter().map(super::support::text).collect();
        let options = format!("{:?}", collection.options);
        let hash = Chunk::new(ChunkKind::Blob, &[], &bytes).hash();
        content.push_str(&format!("{name} {options} {indexes:?} {hash}\n"));
    }
    content
}

impl Run {
    fn new(random: &mut Random, changes: ChangeRetention) -> Run {
        let (disk, clock) = (SimDisk::new(random.next()), SimClock::new());
        let engine = EngineOptions {
            changes,
            memtable_bytes_max: *random.choose(&[100_000, 6 << 20]),
            fold_threads: 0,
            quiet_millis: None,
            relaxed_sync_millis: 3_600_000,
            ..EngineOptions::default()
        };
        let options =
            FrondOptions { engine, write_wait_millis_max: Some(0), ..FrondOptions::default() };
        let frond = open(&disk, &clock, random.next(), options);
        let (noted, large) = Default::default();
        Run { disk, clock, options, frond, noted, large }
    }

    fn document(&mut self, random: &mut Random) -> DocumentBuf {
        let id = random.below(12) as i32;
        let bytes = match random.below(30) {
            0 => 2 << 20,
            1..=5 => 40_000,
            _ => random.below(300),
        };
        self.large += u64::from(bytes >= 40_000);
        let text = "some text ".repeat(bytes / 10);
        document! { "_id": id, "n": random.below(9) as i32, "text": text.as_str() }
    }

    fn write(&mut self, random: &mut Random) {
        let Ok(database) = Repository::open(&self.frond, &self.any(random)) else { return };
        let name = *random.choose(&COLLECTIONS);
        // A rule, a waiting merge or an index that is there may refuse it: nothing is written then.
        match random.below(24) {
            0 => index(&database, name, document! { "n": 1_i32 }, false),
            1 => _ = database.drop_indexes(name, "n_1"),
            2 => {
                let to = *random.choose(&COLLECTIONS);
                _ = database.rename_collection(name, to, true);
            }
            3 => _ = database.drop_collection(name),
            4 => {
                let rule = super::support::json("{'validator': {'n': {'$lt': 100}}}");
                _ = database.change_collection(name, rule.view());
            }
            5 | 6 => {
                let transaction = self.frond.begin();
                let inside = transaction.database(&database.name().to_string()).expect("a branch");
                for _ in 0..3 {
                    _ = put(&inside, name, &self.document(random));
                }
                match random.one_in(4) {
                    true => transaction.abort(),
                    false => _ = transaction.commit(Durability::Synced, None),
                }
            }
            7..=9 => remove(&database, name, random.below(12) as i32),
            _ => _ = put(&database, name, &self.document(random)),
        }
    }

    fn any(&self, random: &mut Random) -> String {
        format!("shop@{}", random.choose(&BRANCHES))
    }

    fn step(&mut self, random: &mut Random) {
        let main = shop(&self.frond, "main");
        let database = Repository::open(&self.frond, &self.any(random)).unwrap_or(main.clone());
        match random.below(40) {
            0 | 1 => _ = database.commit("a commit", "Ada"),
            2 => _ = main.create_branch("side", None),
            3 => _ = main.delete_branch("side", true),
            4 => _ = merge(&main, "side"),
            5 => _ = database.merge_abort(),
            6 => _ = database.reset(None, true),
            7 => _ = database.reset(Some("HEAD~1"), random.one_in(2)),
            8 => _ = database.undo(None, None),
            9 | 10 => self.frond.flush().expect("there is room"),
            11 => self.frond.engine().checkpoint().expect("there is room"),
            12 => {
                _ = frond_vcs::reclaim(&self.frond, 0, Default::default()).expect("there is room")
            }
            13 => {
                self.frond.close().expect("there is room");
                self.disk = self.disk.crash();
                self.frond = open(&self.disk, &self.clock, random.next(), self.options);
            }
            14 if random.one_in(4) => _ = main.drop_database(),
            15..=17 => self.clock.step(1_000_000 * random.below(30) as i64),
            _ => self.write(random),
        }
    }

    fn note(&mut self) {
        let time = self.frond.operation_time().0;
        for branch in BRANCHES {
            let open = Repository::open(&self.frond, &format!("shop@{branch}"));
            self.noted.push((time, branch, open.ok().map(|database| content(&database))));
        }
    }

    /// Reads a moment back; `false` if it is refused.
    fn is_read(&self, (time, branch, expected): &(u64, &str, Option<String>)) -> bool {
        let (seconds, increment) = (time >> 32, time & u64::from(u32::MAX));
        let name = format!("shop@{branch}@{{Timestamp({seconds},{increment})}}");
        match (Repository::open(&self.frond, &name), expected) {
            (Ok(database), Some(expected)) => {
                assert_eq!(content(&database), *expected, "{name}");
                true
            }
            (Ok(_), None) => panic!("{name}: there was no such branch"),
            (Err(error), expected) => {
                let is_too_old = error.code == Code::SnapshotTooOld;
                let is_none = error.code == Code::NamespaceNotFound && expected.is_none();
                assert!(is_too_old || is_none, "{name}: {error:?}");
                is_none
            }
        }
    }
}

fn run(random: &mut Random, changes: ChangeRetention, steps: usize) -> (u64, u64, u64) {
    let mut run = Run::new(random, changes);
    insert(&shop(&run.frond, ""), "things", &[document! { "_id": 1_i32, "n": 1_i32 }]);
    run.note();
    for _ in 0..steps {
        run.step(random);
        run.note();
    }
    let (mut read, mut refused) = (0, 0);
    for noted in run.noted.iter().rev() {
        match run.is_read(noted) {
            true => read += 1,
            false => refused += 1,
        }
    }
    (read, refused, run.large)
}

fn kept(seconds: u64, bytes: u64) -> ChangeRetention {
    ChangeRetention { seconds, bytes, ..ChangeRetention::default() }
}

#[test]
fn every_acknowledged_state_is_read_back_byte_for_byte() {
    let (mut read, mut large) = (0, 0);
    for_seeds(12, |mut random| {
        let counts = run(&mut random, kept(1 << 20, 8 << 30), 80);
        assert_eq!(counts.1, 0, "all of the log is kept");
        (read, large) = (read + counts.0, large + counts.2);
    });
    assert_met("moments that were read", read, 1_000);
    assert_met("documents that were large", large, 20);
}

#[test]
fn moments_before_the_log_are_refused_rather_than_approximated() {
    let (mut read, mut refused) = (0, 0);
    for_seeds(12, |mut random| {
        let counts = run(&mut random, kept(100, 1 << 20), 300);
        (read, refused) = (read + counts.0, refused + counts.1);
    });
    assert_met("moments that were read", read, 100);
    assert_met("moments that were refused", refused, 20);
}

/// A directory with a clock, and a database `shop` with one committed and one uncommitted document,
/// ten seconds after each other.
fn two_things(changes: ChangeRetention) -> (Frond, SimClock, i64) {
    let (disk, clock) = (SimDisk::new(1), SimClock::new());
    let mut options = FrondOptions::default();
    options.engine.changes = changes;
    let frond = open(&disk, &clock, 3, options);
    let main = shop(&frond, "");
    insert(&main, "things", &[document! { "_id": 1_i32 }]);
    main.commit("one", "Ada").expect("something changed");
    let second = frond.time_millis() / 1_000;
    clock.step(10_000_000);
    insert(&main, "things", &[document! { "_id": 2_i32 }]);
    clock.step(10_000_000);
    insert(&main, "things", &[document! { "_id": 3_i32 }]);
    clock.step(10_000_000);
    (frond, clock, second)
}

fn at(second: i64) -> String {
    let text = super::support::text(&document! { "at": Value::DateTime(second * 1_000) });
    let date = text.split('\'').find(|part| part.contains('T') && part.ends_with('Z'));
    format!("{{{}}}", date.expect("a date within the years that are written"))
}

fn ids(database: &Repository) -> Vec<i32> {
    let id = |it: DocumentBuf| it.get("_id")?.as_integer()?.try_into().ok();
    all(database, "things").into_iter().filter_map(id).collect()
}

fn refusal(frond: &Frond, version: &str) -> Error {
    match Repository::open(frond, &format!("shop@{version}")) {
        Ok(database) => panic!("{version} reads {:?}", ids(&database)),
        Err(error) => error,
    }
}

#[test]
fn a_second_is_all_of_it_and_a_commit_is_asked_for_in_words() {
    let (frond, clock, second) = two_things(kept(3_600, 64 << 20));
    shop(&frond, "").commit("all", "Ada").expect("something changed");
    for _ in 0..2 {
        let seen = |seconds| ids(&shop(&frond, &at(second + seconds)));
        assert_eq!(seen(-1), [0; 0], "the database wasn't there");
        assert_eq!((seen(0), seen(9)), (vec![1], vec![1]));
        assert_eq!((seen(10), seen(19)), (vec![1, 2], vec![1, 2]));
        assert_eq!((seen(20), seen(29)), (vec![1, 2, 3], vec![1, 2, 3]));
        frond.flush().expect("there is room");
        frond.engine().checkpoint().expect("there is room");
    }
    assert_eq!(ids(&shop(&frond, "{15 seconds ago}")), [1, 2]);
    assert_eq!(ids(&shop(&frond, "main@{now}")), [1, 2, 3]);
    let date = at(second + 19);
    let date = date.trim_matches(['{', '}']);
    for commit in ["{commit by DATE}", "main@{commit.by.DATE}", "main@{DATE}~0", "{DATE}^0"] {
        let version = commit.replace("DATE", date);
        let database = shop(&frond, &version);
        assert_eq!((ids(&database), database.branch()), (vec![1], None), "{version}");
    }
    let half = format!("{}.500Z}}", at(second).trim_end_matches("Z}"));
    let later = "{Timestamp(4000000000,1)}".to_owned();
    for wrong in [at(second + 30), at(second + 99), half, later] {
        assert_eq!(refusal(&frond, &wrong).code, Code::BadValue, "{wrong}");
    }
    clock.step(1_000_000);
    assert_eq!(ids(&shop(&frond, &at(second + 30))), [1, 2, 3]);
}

#[test]
fn an_unreachable_moment_names_the_earliest_one_and_the_commit_before_it() {
    let (frond, _, second) = two_things(ChangeRetention::default());
    frond.flush().expect("there is room");
    let error = refusal(&frond, &at(second + 10));
    assert_eq!(error.code, Code::SnapshotTooOld);
    let head = shop(&frond, "").log(Some(1), None).expect("a log")[0].id.to_string();
    let from = at(second + 20);
    let from = from.trim_matches(['{', '}']);
    for part in [from, &head[..8], "commit by"] {
        assert!(error.message.contains(part), "{part}: {}", error.message);
    }
    assert_eq!(ids(&shop(&frond, &head[..8])), [1], "as the message says");
    assert!(refusal(&frond, &at(second - 5)).message.contains("no commit"), "there was none");
}

#[test]
fn a_clock_that_was_ahead_names_no_second_until_it_catches_up() {
    let (frond, clock, second) = two_things(kept(3_600, 64 << 20));
    clock.step(3_600 * 1_000_000);
    insert(&shop(&frond, ""), "things", &[document! { "_id": 4_i32 }]);
    clock.step(-3_600 * 1_000_000);
    insert(&shop(&frond, ""), "things", &[document! { "_id": 5_i32 }]);
    clock.step(5_000_000);
    for moment in [at(second + 31), at(second + 10), "{1 second ago}".to_owned()] {
        let error = refusal(&frond, &moment);
        assert_eq!(error.code, Code::BadValue);
        assert!(error.message.contains("behind"), "{}", error.message);
    }
    assert_eq!(ids(&shop(&frond, "main@{now}")), [1, 2, 3, 4, 5]);
    let last = frond.operation_time().0;
    let last = format!("{{Timestamp({},{})}}", last >> 32, last as u32);
    assert_eq!(ids(&shop(&frond, &last)), [1, 2, 3, 4, 5]);
    clock.step(3_600 * 1_000_000);
    assert_eq!(ids(&shop(&frond, &at(second + 10))), [1, 2]);
}

#[test]
fn a_moment_is_only_read() {
    let (frond, _, second) = two_things(kept(3_600, 64 << 20));
    let past = shop(&frond, &at(second + 10));
    assert!(past.is_read_only());
    let refused = |error: Option<Error>| {
        assert_eq!(error.expect("it is refused").code, Code::UserWritesBlocked);
    };
    refused(put(&past, "things", &document! { "_id": 9_i32 }).err());
    refused(past.drop_collection("things").err());
    refused(past.drop_database().err());
    refused(past.create_collection("new", Document::empty()).err());
    refused(past.commit("no", "Ada").err());
    refused(past.reset(None, true).err());
    refused(past.create_branch("new", None).err());
    refused(past.restore_collection("things", None).err());
    assert_eq!(ids(&shop(&frond, "")), [1, 2, 3]);
}

#[test]
fn stages_that_name_a_moment_read_it() {
    let (frond, _, second) = two_things(kept(3_600, 64 << 20));
    let main = shop(&frond, "");
    let text = "large ".repeat(100_000);
    put(&main, "things", &document! { "_id": 1_i32, "text": text.as_str() }).unwrap();
    let then = format!("shop@{}", at(second + 10));
    let from = super::support::json(&format!("{{'db': '{then}', 'coll': 'things'}}"));
    let view = super::support::json(&format!(
        "{{'viewOn': 'things', 'pipeline': [{{'$unionWith': {}}}]}}",
        super::support::text(&from)
    ));
    main.create_collection("both", view.view()).unwrap();
    let ids = |database: &Repository, collection: &str, stages: &str| -> Vec<i32> {
        let stages = stages.replace("FROM", &super::support::text(&from));
        let rows = super::support::aggregate(database, Some(collection), &stages).unwrap();
        rows.iter().filter_map(|it| it.get("_id")?.as_integer()?.try_into().ok()).collect()
    };
    assert_eq!(ids(&main, "things", "[{'$unionWith': FROM}]"), [1, 2, 3, 1, 2]);
    let joined = "{'$lookup': {'from': FROM, 'localField': '_id', 'foreignField': '_id', \
         'as': 'then'}}, {'$match': {'then': []}}";
    assert_eq!(ids(&main, "things", &format!("[{joined}]")), [3]);
    let past = shop(&frond, &at(second));
    assert_eq!(ids(&past, "things", "[{'$unionWith': FROM}]"), [1, 1, 2]);
    assert_eq!(ids(&main, "both", "[]"), [1, 2, 3, 1, 2]);
    // The value of that moment counts, not the present text.
    let types = "[{'$match': {'_id': 1}}, {'$group': {'_id': {'$type': '$text'}}}, \
        {'$sort': {'_id': 1}}]";
    let rows = super::support::aggregate(&main, Some("both"), types);
    assert_eq!(rows.unwrap(), [document! { "_id": "missing" }, document! { "_id": "string" }]);
}

#[test]
fn dropped_collections_are_there_and_later_ones_are_not() {
    let (frond, clock, second) = two_things(kept(3_600, 64 << 20));
    let main = shop(&frond, "");
    main.create_branch("side", None).expect("a good name");
    insert(&shop(&frond, "side"), "things", &[document! { "_id": 7_i32 }]);
    clock.step(10_000_000);
    main.delete_branch("side", true).expect("forced");
    clock.step(10_000_000);
    main.drop_database().expect("it is there");
    frond.engine().checkpoint().expect("there is room");
    frond.engine().reclaim(Default::default()).expect("there is room");
    let side = |seconds| format!("side@{}", at(second + seconds));
    assert_eq!(refusal(&frond, &side(29)).code, Code::NamespaceNotFound);
    assert_eq!(ids(&shop(&frond, &side(30))), [1, 7]);
    assert_eq!(refusal(&frond, &side(45)).code, Code::NamespaceNotFound);
    assert_eq!(ids(&shop(&frond, &at(second + 45))), [1, 2, 3]);
}

#[test]
fn erased_documents_are_in_no_moment() {
    let (frond, _, second) = two_things(kept(3_600, 64 << 20));
    assert_eq!(ids(&shop(&frond, &at(second + 10))), [1, 2]);
    let request = frond_vcs::EraseRequest {
        collection: "things".to_owned(),
        documents: vec![frond_doc::ValueBuf::from(Value::Int32(1))],
        fields: Vec::new(),
        dry_run: false,
    };
    shop(&frond, "").erase(&request).expect("it is there");
    assert_eq!(refusal(&frond, &at(second + 10)).code, Code::SnapshotTooOld);
}

#[test]
fn past_working_states_can_be_compared_restored_branched_and_reset_to() {
    let (frond, clock, second) = two_things(kept(3_600, 64 << 20));
    let main = shop(&frond, "");
    main.commit("all", "Ada").expect("something changed");
    remove(&main, "things", 1);
    frond.engine().checkpoint().expect("there is room");
    let then = format!("WORKING@{}", at(second + 10));
    let diff = main.diff(Some(&then), Some("WORKING")).expect("a diff");
    assert_eq!(diff[0].added, [document! { "_id": 3_i32 }]);
    assert_eq!(diff[0].removed, [document! { "_id": 1_i32 }]);
    // A database that is open at the moment has the same state as its working state.
    let past = shop(&frond, &at(second + 10));
    assert!(past.diff(Some("WORKING"), Some(&then)).is_ok_and(|diff| diff.is_empty()));
    assert_eq!(past.diff(None, None).expect("a diff")[0].added, [document! { "_id": 2_i32 }]);

    main.create_branch("rescue", Some(&then)).expect("a good name");
    let rescue = shop(&frond, "rescue");
    assert_eq!(ids(&rescue), [1, 2]);
    assert_eq!(rescue.log(None, None).expect("a log").len(), 1, "HEAD is that of then");
    insert(&rescue, "things", &[document! { "_id": 8_i32 }]);
    assert_eq!(ids(&rescue), [1, 2, 8]);

    main.restore_collection("things", Some(&then)).expect("it is kept");
    assert_eq!(ids(&main), [1, 2]);
    main.undo(None, None).expect("a restore can be undone");
    assert_eq!(ids(&main), [2, 3]);
    assert_eq!(main.reset(Some(&then), false).unwrap_err().code, Code::BadValue);
    clock.step(1_000_000);
    main.reset(Some(&then), true).expect("it is kept");
    assert_eq!((ids(&main), main.log(None, None).expect("a log").len()), (vec![1, 2], 1));
    insert(&main, "things", &[document! { "_id": 9_i32 }]);
    main.undo(None, None).expect("a reset can be undone");
    // Documents written since stay, and nothing else of the state that the reset left.
    assert_eq!((ids(&main), main.log(None, None).expect("a log").len()), (vec![2, 3, 9], 2));
    remove(&main, "things", 2);
    main.reset(Some(&then), true).expect("it is kept");
    main.undo(None, None).expect("a reset can be undone");
    assert_eq!(ids(&main), [3, 9]);
    main.restore_collection("things", Some("HEAD~1")).expect("it has it");
    main.undo(None, None).expect("a restore can be undone");
    assert_eq!(ids(&main), [3, 9]);
}
