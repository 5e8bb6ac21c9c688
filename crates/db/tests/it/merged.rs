//! Goal: `$merge` and `$out` store large documents by reference, also in another database: the
//! stored documents are the whole ones, and only changed parts are read. Method: each is computed
//! from the whole documents by a model of a few lines and compared; written again as wholes they
//! are the same values; chunks that are read are counted.

use frond_db::catalog::IndexSpec;
use frond_db::{Database, FrondOptions};
use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_testkit::SimDisk;
use frond_vcs::Repository;

use crate::support::*;

/// Two databases that keep no documents in memory whole.
fn databases() -> (Repository, Repository) {
    let options = FrondOptions { documents_cache_bytes: Some(64 << 10), ..FrondOptions::default() };
    let frond = frond_vcs::open_on(&SimDisk::new(5).machine(), options).expect("opens");
    let open = |name| Repository::open(&frond, name).expect("a proper name");
    (open("shop"), open("other"))
}

/// Makes a document of about so many bytes: short and long texts, containers in containers, arrays
/// with and without long elements.
fn document(id: i32, level: i32, bytes: usize) -> DocumentBuf {
    let mut out = DocumentBuilder::new();
    out.append("_id", Value::Int32(id)).append("level", Value::Int32(level));
    out.append("name", Value::String(&format!("name {id} ").repeat(150)));
    out.begin_document("meta").begin_document("a").append("b", Value::Int32(id % 3));
    out.append("pad", Value::String(&"pad ".repeat(300))).end();
    out.append("x", Value::Int32(id)).end();
    let mut named = DocumentBuilder::new();
    for name in ["x", "y", "0"] {
        let inner = frond_doc::document! { "n": 1_i32, "long": &"n".repeat(400) };
        named.append(name, Value::from(&inner));
    }
    let named = named.build();
    out.append("named", Value::Array(frond_doc::Array::from_validated(named.as_bytes())));
    out.begin_array("rows");
    let mut row = 0;
    while out.bytes() < bytes {
        out.push_begin_document().append("at", Value::Int32(row));
        out.append("body", Value::String(&format!("{id} {row} ").repeat(90))).end();
        out.push(Value::Int32(row));
        row += 1;
    }
    out.end().append("last", Value::Int32(id));
    out.build()
}

const SIZES: [usize; 6] = [20_000, 32_700, 34_000, 90_000, 300_000, 1_100_000];

fn sources() -> Vec<DocumentBuf> {
    (0..).zip(SIZES).map(|(id, bytes)| document(id, 1, bytes)).collect()
}

fn put(database: &Database, collection: &str, documents: &[DocumentBuf]) {
    for document in documents {
        assert_eq!(try_insert(database, collection, std::slice::from_ref(document)).count, 1);
    }
}

/// Returns the documents of the target: an equal document, one that differs, small ones for large
/// ones and the other way about, one without a partner.
fn targets() -> Vec<DocumentBuf> {
    let small = frond_doc::document! { "_id": 3_i32, "level": 9_i32, "own": 1_i32 };
    vec![
        document(0, 2, 120_000),
        document(2, 2, 34_000),
        small,
        document(4, 1, SIZES[4]),
        document(8, 2, 60_000),
    ]
}

fn sorted(database: &Database, collection: &str) -> Vec<DocumentBuf> {
    let mut request = request("{}");
    request.sort = Some(json("{'_id': 1}"));
    run(database, collection, &request).expect("found")
}

/// Checks a collection's documents, and that they are stored as if they had been written whole.
fn check(shop: &Repository, collection: &str, expected: &[DocumentBuf], what: &str) {
    let found = sorted(shop, collection);
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        let found = DocumentBuf::validated(found.as_bytes().to_vec().into());
        assert!(found.expect("no reference is stored") == *expected, "{what}");
    }
    insert(shop, "marks", "[{}]");
    shop.commit("merged", "test").expect("committed");
    delete(shop, collection, "{}");
    put(shop, collection, expected);
    let error = shop.commit("again", "test").expect_err("the content is what it was");
    assert!(error.message.contains("nothing"), "{what}: {}", error.message);
}

/// The fields of `existing`, those of `new` in their place or after them.
fn merged(existing: &DocumentBuf, new: &DocumentBuf) -> DocumentBuf {
    let mut out = DocumentBuilder::new();
    for (name, value) in existing.view().iter() {
        out.append(name, new.get(name).unwrap_or(value));
    }
    for (name, value) in new.view().iter().filter(|(name, _)| existing.get(name).is_none()) {
        out.append(name, value);
    }
    out.build()
}

fn with(existing: &DocumentBuf, name: &str, value: Option<Value<'_>>) -> DocumentBuf {
    let mut fields = DocumentBuilder::new();
    value.iter().for_each(|value| {
        fields.append(name, *value);
    });
    merged(existing, &fields.build())
}

type Model = fn(&DocumentBuf, &DocumentBuf) -> DocumentBuf;

const MATCHED: &[(&str, Model)] = &[
    ("'merge'", merged),
    ("'replace'", |_, new| new.clone()),
    ("'keepExisting'", |existing, _| existing.clone()),
    ("[{'$set': {'level': 7}}]", |existing, _| with(existing, "level", Some(Value::Int32(7)))),
    ("[{'$set': {'theirs': '$$new.rows'}}]", |existing, new| {
        with(existing, "theirs", new.get("rows"))
    }),
    ("[{'$set': {'theirs': '$$new'}}]", |existing, new| {
        with(existing, "theirs", Some(Value::from(new)))
    }),
    ("[{'$replaceWith': '$$new'}]", |_, new| new.clone()),
    ("[{'$set': {'name': '$$new.name'}}]", |existing, new| with(existing, "name", new.get("name"))),
    ("[{'$project': {'last': 1}}]", |existing, _| {
        let mut out = DocumentBuilder::new();
        for name in ["_id", "last"] {
            existing.get(name).iter().for_each(|value| {
                out.append(name, *value);
            });
        }
        out.build()
    }),
];

/// Returns the model's result of `$merge` into the target.
fn expected(matched: Model, inserts: bool) -> Vec<DocumentBuf> {
    let mut all = targets();
    for new in sources() {
        match all.iter_mut().find(|it| it.get("_id") == new.get("_id")) {
            Some(existing) => *existing = matched(existing, &new),
            None if inserts => all.push(new),
            None => {}
        }
    }
    all.sort_by_key(|it| it.get("_id").map(frond_doc::key::of_value));
    all
}

#[test]
fn merges_store_what_whole_documents_would() {
    let (shop, other) = databases();
    put(&shop, "docs", &sources());
    for (target, into) in [(&shop, "'copies'"), (&other, "{'db': 'other', 'coll': 'copies'}")] {
        for (matched, model) in MATCHED {
            for inserts in [true, false] {
                if !inserts && *matched == "'keepExisting'" {
                    continue; // It would do nothing, and is refused.
                }
                put(target, "copies", &targets());
                let not = if inserts { "insert" } else { "discard" };
                let stages = format!(
                    "[{{'$merge': {{'into': {into}, 'whenMatched': {matched}, \
                     'whenNotMatched': '{not}'}}}}]"
                );
                aggregate(&shop, Some("docs"), &stages).expect("merged");
                collect(shop.frond());
                check(target, "copies", &expected(*model, inserts), &stages);
                delete(target, "copies", "{}");
            }
        }
    }
    shop.frond().engine().check().expect("every invariant holds");
}

#[test]
fn copies_in_another_database_are_what_whole_documents_would_be() {
    let (shop, other) = databases();
    put(&shop, "docs", &sources());
    for change in
        ["", "{'$set': {'copy': '$rows', 'meta.own': '$named'}},", "{'$sort': {'last': -1}},"]
    {
        let stages = format!("[{change} {{'$out': {{'db': 'other', 'coll': 'copies'}}}}]");
        aggregate(&shop, Some("docs"), &stages).expect("copied");
        collect(shop.frond());
        let made = aggregate(&shop, Some("docs"), &format!("[{change} {{'$sort': {{'_id': 1}}}}]"));
        check(&other, "copies", &made.expect("proper"), &stages);
    }
    shop.frond().engine().check().expect("every invariant holds");
}

/// Merged documents stay when their source is gone, and were never in packs before.
#[test]
fn merged_documents_outlive_their_source() {
    let (shop, other) = databases();
    for round in 0..3 {
        put(&shop, "docs", &sources());
        for into in ["'copies'", "{'db': 'other', 'coll': 'copies'}"] {
            let stages =
                format!("[{{'$set': {{'level': {round}}}}}, {{'$merge': {{'into': {into}}}}}]");
            aggregate(&shop, Some("docs"), &stages).expect("merged");
        }
        delete(&shop, "docs", "{}");
        collect(shop.frond());
        for database in [&shop, &other] {
            let found = sorted(database, "copies");
            assert_eq!(found.len(), SIZES.len());
            for (found, source) in found.iter().zip(sources()) {
                assert!(*found == with(&source, "level", Some(Value::Int32(round))), "{round}");
            }
        }
    }
    shop.frond().engine().check().expect("every invariant holds");
}

/// By a unique index over a text that lies in pieces.
#[test]
fn merges_by_another_key_keep_indexes() {
    let (shop, _) = databases();
    put(&shop, "docs", &sources());
    put(&shop, "copies", &[document(3, 5, 40_000), document(5, 5, 400)]);
    for key in ["{'key': {'name': 1}, 'unique': true}", "{'key': {'level': 1}}"] {
        let spec = IndexSpec::parse(json(key).view()).expect("proper");
        shop.create_indexes("copies", &[spec]).expect("made");
    }
    let stages = "[{'$unset': '_id'}, {'$merge': {'into': 'copies', 'on': 'name'}}]";
    aggregate(&shop, Some("docs"), stages).expect("merged");
    assert_eq!(shop.count("copies", &request("{'level': 1}")).expect("counted"), 6);
    assert_eq!(shop.count("copies", &request("{'level': 5}")).expect("counted"), 0);
    let found = run(&shop, "copies", &request("{'last': 3}")).expect("found").pop();
    assert!(found.expect("there") == merged(&document(3, 5, 40_000), &sources()[3]));
    // The second of two with one key is refused, and what came before it stays.
    let stages =
        "[{'$set': {'name': 'the same', 'level': 3}}, {'$unset': '_id'}, {'$merge': 'copies'}]";
    let error = aggregate(&shop, Some("docs"), stages).expect_err("refused");
    assert_eq!(error.code.number(), 11000);
    assert_eq!(shop.count("copies", &request("{'level': 3}")).expect("counted"), 1);
    shop.frond().engine().check().expect("every invariant holds");
}

#[test]
fn merges_read_a_few_chunks() {
    let (shop, _) = databases();
    put(&shop, "docs", &[document(1, 1, 4_000_000)]);
    shop.commit("documents", "test").expect("committed");
    for stages in [
        "{'$set': {'level': 2}}, {'$merge': 'copies'}",
        "{'$merge': 'copies'}",
        "{'$merge': {'into': 'copies', 'whenMatched': 'replace'}}",
        "{'$set': {'level': 4}}, {'$merge': {'into': 'copies', 'whenMatched': 'keepExisting'}}",
        "{'$merge': {'into': 'copies', 'whenMatched': [{'$set': {'level': {'$add': ['$$new.level', '$level']}}}]}}",
        "{'$merge': {'into': 'copies', 'whenMatched': [{'$set': {'x': '$$new.rows', 'level': 5}}]}}",
        "{'$merge': 'docs'}",
        "{'$set': {'level': 9}}, {'$merge': {'into': 'docs', 'whenMatched': 'replace'}}",
    ] {
        let stages = format!("[{stages}]");
        let read = chunks(&shop, || {
            aggregate(&shop, Some("docs"), &stages).expect("merged");
        });
        assert!(read <= 72, "{stages}: {read} chunks");
        shop.frond().engine().flush().expect("flushed");
    }
    let level = |collection| {
        let found = sorted(&shop, collection);
        found[0].get("level").map(|it| it.to_buf())
    };
    assert_eq!(level("docs"), Some(value("9")));
}
