//! Change streams of an embedded database: what the background does, and what isn't kept.

use frond_db::catalog::IndexSpec;
use frond_db::{
    ChangeRetention, ChangeStream, ChangeStreamRequest, Database, Frond, FrondOptions, Interrupt,
    ReclaimOptions, UpdateStatement, Watched,
};
use frond_doc::{Binary, DocumentBuf, DocumentBuilder, Value, document};
use frond_testkit::{Random, SimDisk};
use frond_vcs::Repository;

use crate::support::{aggregate, delete, insert, json, statement, try_insert, update};

fn open() -> Frond {
    let mut options = FrondOptions::default();
    options.engine.changes =
        ChangeRetention { seconds: 3600, bytes: 64 << 20, ..ChangeRetention::default() };
    frond_vcs::open_on(&SimDisk::new(1).machine(), options).expect("opens")
}

fn watch(database: &Database, collection: &str) -> ChangeStream {
    let watched = Watched::Collection(database.clone(), collection.to_owned());
    database.frond().watch(watched, &ChangeStreamRequest::default()).expect("it is kept")
}

/// Returns the events up to now, with their `_id`s.
fn delivered(frond: &Frond, stream: &mut ChangeStream) -> Vec<String> {
    // Changes that aren't durable yet give no events.
    frond.flush().expect("the disk works");
    let mut delivered = Vec::new();
    while let Some(event) = stream.next(&Interrupt::default()).expect("it is kept") {
        let kind = event.get("operationType").and_then(|kind| kind.as_str()).expect("a kind");
        let key = event.get("documentKey").and_then(|key| key.as_document()?.get("_id"));
        let key = key.and_then(|key| key.as_integer()).unwrap_or_default();
        delivered.push(format!("{kind} {key}"));
    }
    delivered
}

#[test]
fn expiry_is_an_event() {
    let frond = open();
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    let mut stream = watch(&shop, "things");
    let documents = [document! { "_id": 1, "at": Value::DateTime(1_000) }, document! { "_id": 2 }];
    try_insert(&shop, "things", &documents);
    shop.create_indexes(
        "things",
        &[IndexSpec::parse(json("{'key': {'at': 1}, 'expireAfterSeconds': 5}").view())
            .expect("right")],
    )
    .expect("made");
    assert_eq!(frond.expire_documents(&Interrupt::default()).expect("done"), 1);
    assert_eq!(delivered(&frond, &mut stream), ["insert 1", "insert 2", "delete 1"]);
}

/// Two streams of a collection beside which much is written: the first one reads the log, the other
/// one what the first has read. Neither misses an event behind the last that it passed over.
#[test]
fn streams_pass_over_what_is_written_elsewhere() {
    let frond = open();
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    insert(&shop, "things", "[{'_id': 0}]");
    let mut streams = [watch(&shop, "things"), watch(&shop, "things")];
    let write_elsewhere = |count: i32| {
        for number in 0..count {
            try_insert(&shop, "others", &[document! { "number": number }]);
        }
        frond.flush().expect("the disk works");
    };
    for (id, elsewhere) in [(1, 3), (2, 2_500), (3, 0)] {
        write_elsewhere(elsewhere);
        insert(&shop, "things", &format!("[{{'_id': {id}}}]"));
        write_elsewhere(elsewhere);
        frond.flush().expect("the disk works");
        for stream in &mut streams {
            let (mut ids, mut looks) = (Vec::new(), 0);
            while stream.has_news() {
                let before = stream.token();
                match stream.next(&Interrupt::default()).expect("it is kept") {
                    Some(event) => ids.push(event.get("documentKey").map(|key| key.to_buf())),
                    None => assert!(before != stream.token(), "it goes on"),
                }
                looks += 1;
            }
            assert_eq!(ids, [Some(Value::Document(document! { "_id": id }.view()).to_buf())]);
            // Not one for each of the others.
            assert!(looks < 12, "{looks}");
        }
    }
}

#[test]
fn a_relaxed_write_is_delivered_once_it_is_durable_and_tokens_outlive_the_stream() {
    let frond = open();
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    let mut stream = watch(&shop, "things");
    insert(&shop, "things", "[{'_id': 1}, {'_id': 2}]");
    update(&shop, "things", statement("{'_id': 1}", "{'$set': {'v': 1}}"));
    assert_eq!(delivered(&frond, &mut stream), ["insert 1", "insert 2", "update 1"]);
    let start = frond_db::StreamStart::Resume(stream.token());
    let watched = Watched::Database((*shop).clone());
    insert(&shop, "others", "[{'_id': 3}]");
    let request = ChangeStreamRequest { start, ..ChangeStreamRequest::default() };
    let mut after = frond.watch(watched, &request).expect("it is kept");
    assert_eq!(delivered(&frond, &mut after), ["insert 3"]);
}

#[test]
fn where_nothing_is_kept_streams_are_refused_and_writes_record_nothing() {
    let mut options = FrondOptions::default();
    options.engine.changes = ChangeRetention::default();
    let frond = frond_vcs::open_on(&SimDisk::new(1).machine(), options).expect("opens");
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    insert(&shop, "things", "[{'_id': 1}]");
    let watched = Watched::Database((*shop).clone());
    let refused = frond.watch(watched, &ChangeStreamRequest::default()).err().expect("refused");
    assert_eq!(refused.code.number(), 20);
}

/// A document of `bytes` that nothing compresses, with an array; `seed` says which.
fn large(seed: u64, bytes: usize) -> DocumentBuf {
    let mut random = Random::new(seed);
    let mut document = DocumentBuilder::new();
    document.append("_id", Value::Int32(1));
    let binary = random.bytes(bytes / 2);
    document.append("binary", Value::Binary(Binary { subtype: 0, bytes: &binary }));
    document.begin_array("list");
    for number in 0..bytes / 2 / 40 {
        let text = format!("{number:010} {:016x}", random.next());
        document.push_begin_document().append("text", Value::String(&text)).end();
    }
    document.end();
    document.build()
}

fn replace(database: &Database, document: &DocumentBuf) {
    let whole = Value::Document(document.view()).to_buf();
    update(database, "things", UpdateStatement::new(document! { "_id": 1 }, whole));
}

#[test]
fn large_documents_are_delivered_from_the_log_alone_whatever_became_of_them() {
    let frond = open();
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    let mut stream = watch(&shop, "things");
    let (first, other) = (large(1, 200_000), large(2, 100_000));
    // Much of it is as it was.
    let mut like = DocumentBuilder::new();
    first.iter().for_each(|(name, value)| {
        like.append(name, value);
    });
    let like = like.append("more", Value::Int32(7)).clone().build();
    try_insert(&shop, "things", std::slice::from_ref(&first));
    for document in [&like, &other] {
        frond.flush().expect("the disk works");
        replace(&shop, document);
    }
    frond.flush().expect("the disk works");
    let count = other.get("list").and_then(|list| list.as_array()).expect("it has one");
    let count = count.iter().count();
    update(&shop, "things", statement("{'_id': 1}", "{'$push': {'list': 5}, '$set': {'a.b': 1}}"));
    update(&shop, "things", statement("{'_id': 1}", "{'$set': {'list.3.text': 'z'}}"));
    delete(&shop, "things", "{}");
    frond.flush().expect("the disk works");
    frond.engine().reclaim(ReclaimOptions::default()).expect("what is gone is collected");
    let mut whole = Vec::new();
    let mut rest = Vec::new();
    while let Some(event) = stream.next(&Interrupt::default()).expect("it is kept") {
        match event.get("fullDocument").and_then(|document| document.as_document()) {
            Some(document) => whole.push(document.to_buf()),
            None => {
                let delivered = event.get("updateDescription").and_then(|it| it.as_document());
                let updated = delivered.and_then(|delivered| delivered.get("updatedFields"));
                rest.push(updated.and_then(|it| it.as_document()).map(|it| it.to_buf()));
            }
        }
    }
    assert!(whole == [first, like, other]);
    let pushed = format!("list.{count}");
    let expected = format!("{{'{pushed}': 5, 'a': {{'b': 1}}}}");
    assert_eq!(rest, [Some(json(&expected)), Some(json("{'list.3.text': 'z'}")), None]);
}

/// Documents that `$merge` stores by reference give events of insertions, changes and replacements.
#[test]
fn merged_documents_are_delivered_whole_or_by_what_changed() {
    let frond = open();
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    let other = Repository::open(&frond, "other").expect("a proper name");
    let source = large(1, 200_000);
    try_insert(&shop, "things", std::slice::from_ref(&source));
    for (database, into) in [(&shop, "'to'"), (&other, "{'db': 'other', 'coll': 'to'}")] {
        let mut stream = watch(database, "to");
        for stages in ["", "", "{'$set': {'n': 1}},", "{'$project': {'list': 1}},"] {
            let matched = if stages.contains("project") { "replace" } else { "merge" };
            let merge = format!("{{'into': {into}, 'whenMatched': '{matched}'}}");
            let stages = format!("[{stages} {{'$merge': {merge}}}]");
            aggregate(&shop, Some("things"), &stages).expect("merged");
        }
        delete(&shop, "to", "{}");
        frond.flush().expect("the disk works");
        frond.engine().reclaim(ReclaimOptions::default()).expect("what is gone is collected");
        let mut events = Vec::new();
        while let Some(event) = stream.next(&Interrupt::default()).expect("it is kept") {
            events.push(event);
        }
        let whole = |at: usize| events[at].get("fullDocument").map(|it| it.to_buf());
        assert!(whole(0) == Some(Value::from(&source).to_buf()));
        let change = |at: usize| {
            let delivered = events[at].get("updateDescription").and_then(|it| it.as_document());
            delivered.and_then(|delivered| delivered.get("updatedFields")).map(|it| it.to_buf())
        };
        assert_eq!(change(1), Some(Value::from(&json("{'n': 1}")).to_buf()));
        assert!(change(2).is_some() || whole(2).is_some());
    }
}

/// The log's bytes for what `write` does to a document of 4 MB, or to a small one.
fn logged(records_events: bool, document: &DocumentBuf, write: impl Fn(&Database, u32)) -> u64 {
    let frond = if records_events { open() } else { crate::support::open() };
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    try_insert(&shop, "others", &[document! { "_id": 1 }]);
    let bytes = || frond.counters().0.log_record_bytes;
    let mut before = 0;
    for round in 0..3 {
        if round == 1 {
            frond.flush().expect("the disk works");
            before = bytes();
        }
        if round == 0 {
            try_insert(&shop, "things", std::slice::from_ref(document));
        }
        write(&shop, round);
    }
    frond.flush().expect("the disk works");
    bytes() - before
}

#[test]
fn events_of_large_documents_hardly_lengthen_the_log() {
    let large = large(1, 4 << 20);
    let push = |shop: &Database, round: u32| {
        let push = format!("{{'$push': {{'list': {round}}}}}");
        update(shop, "things", statement("{'_id': 1}", &push));
    };
    let insert = |shop: &Database, round: u32| {
        let mut other = DocumentBuilder::new();
        other.append("_id", Value::Int32(10 + round as i32));
        let big = self::large(u64::from(10 + round), 1 << 20);
        other.append("in", Value::Document(big.view()));
        try_insert(shop, "things", &[other.build()]);
    };
    let renew =
        |shop: &Database, round: u32| replace(shop, &self::large(u64::from(round), 1 << 20));
    let (more, less) = (logged(true, &large, push), logged(false, &large, push));
    assert!(more < less + 1_000, "two updates of an array of 4 MB: {more} and {less}");
    let share = logged(true, &large, insert) as f64 / logged(false, &large, insert) as f64;
    assert!(share < 1.01, "an insertion of 1 MB: {share}");
    // Without streams it would get what differs, where that is less.
    let bytes = logged(true, &large, renew);
    assert!(bytes < (2 << 20) * 23 / 20, "two replacements by 1 MB each: {bytes}");
}

/// Documents in the order of their `_id`s have one event, however many they are: the log has them
/// anyway.
#[test]
fn events_of_inserts_hardly_lengthen_the_log() {
    let insert = |ids: fn(u32) -> u32| {
        move |shop: &Database, round: u32| {
            let documents = (0..200).map(|number| {
                let mut document = DocumentBuilder::new();
                document.append("_id", Value::Int64(i64::from(1_000 * round + ids(number))));
                document.append("text", Value::String(&"x".repeat(100)));
                document.build()
            });
            try_insert(shop, "things", &documents.collect::<Vec<_>>());
        }
    };
    let first = document! { "_id": -1 };
    let more = |ids| logged(true, &first, insert(ids)) - logged(false, &first, insert(ids));
    let ascending = more(|number| number);
    assert!(ascending < 400, "two inserts of 200 in order: {ascending}");
    // Each by itself, but no scope twice.
    let descending = more(|number| 200 - number);
    assert!(descending < 400 + 2 * 200 * 10, "in another order: {descending}");
}
