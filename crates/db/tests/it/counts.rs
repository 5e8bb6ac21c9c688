//! Goal: counting what lies between two keys costs what lies over the tree, not what lies in it.
//! Method: a collection whose writes are partly folded, and the chunks that a count reads. That
//! counts are right is `equivalence`'s.

use frond_db::FindRequest;
use frond_db::catalog::IndexSpec;
use frond_doc::{DocumentBuf, Value, document};

use crate::support::*;

const COUNT: i32 = 20_000;

#[test]
fn ranges_are_counted_without_being_read() {
    let shop = shop();
    let pad = "x".repeat(100);
    let make = |id: i32| document! { "_id": id, "a": id % 1_000, "pad": &pad };
    for first in (0..COUNT).step_by(2_000) {
        let batch: Vec<DocumentBuf> = (first..first + 2_000).map(make).collect();
        assert_eq!(try_insert(&shop, "things", &batch).count, 2_000);
    }
    let spec = IndexSpec::parse(json("{'key': {'a': 1}}").view()).expect("an index");
    shop.create_indexes("things", &[spec]).expect("made");
    shop.frond().engine().checkpoint().expect("folded");
    // What isn't folded yet: new ones, changed ones and removed ones.
    let batch: Vec<DocumentBuf> = (COUNT..COUNT + 100).map(make).collect();
    assert_eq!(try_insert(&shop, "things", &batch).count, 100);
    assert_eq!(delete(&shop, "things", "{'_id': {'$lt': 30}}"), 30);
    let moved = frond_db::UpdateStatement {
        multi: true,
        ..statement("{'_id': {'$gte': 40, '$lt': 50}}", "{'$set': {'a': -1}}")
    };
    assert_eq!(update(&shop, "things", moved).modified, 10);
    for (filter, expected) in [
        ("{}", i64::from(COUNT) + 100 - 30),
        ("{'a': {'$gte': 100}}", 18_000),
        ("{'a': {'$lt': 100}}", 2_000 + 100 - 30),
        ("{'a': {'$in': [-1, 45, 700]}}", 10 + 20 + 20),
        ("{'_id': {'$gte': 10000}}", 10_100),
    ] {
        let chunks = |shop: &frond_db::Database| shop.frond().counters().1.chunks_read;
        let before = chunks(&shop);
        let count = shop.count("things", &FindRequest::of(json(filter).view())).expect("right");
        assert_eq!(count as i64, expected, "{filter}");
        let read = chunks(&shop) - before;
        assert!(read < 400, "{filter} read {read} chunks");
        let explained = shop
            .explain_as("things", &request(filter), frond_db::Purpose::Count, frond_db::Effort::Run)
            .expect("explained");
        assert_eq!(examined(&explained, "totalDocsExamined"), 0, "{filter}");
        let stats = explained.get("executionStats").and_then(|stats| stats.as_document());
        let stage = stats.and_then(|stats| stats.get("executionStages")?.as_document());
        let counted = stage.and_then(|stage| stage.get("nCounted")?.as_integer());
        assert_eq!(counted, Some(expected), "{filter}");
        assert_eq!(stage.and_then(|stage| stage.get("stage")), Some(Value::String("COUNT")));
    }
}
