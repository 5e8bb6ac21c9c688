//! `$lookup` end to end: by equality, by pipeline, and how often it asks.

use frond_doc::DocumentBuf;

use crate::pipelines::{canonical, check, json, list, memory, run_on};

#[test]
fn lookups_join_by_equality() {
    check(&[
        (
            r#"[{"$project": {"sku": 1}}, {"$lookup": {"from": "orders", "localField": "sku", "foreignField": "sku", "as": "o"}},
                {"$project": {"o": "$o._id"}}]"#,
            // A missing field joins null and missing ones.
            r#"[{"_id": 1, "o": [1, 3]}, {"_id": 2, "o": [2]}, {"_id": 3, "o": [3]}, {"_id": 4, "o": [4, 5]}]"#,
        ),
        (
            r#"[{"$set": {"k": ["a", "b", "a"]}}, {"$limit": 1},
                {"$lookup": {"from": "orders", "localField": "k", "foreignField": "sku", "as": "r.o"}},
                {"$project": {"_id": 0, "r": "$r.o._id"}}]"#,
            r#"[{"r": [1, 2, 3]}]"#,
        ),
        (
            r#"[{"$lookup": {"from": "absent", "localField": "sku", "foreignField": "sku", "as": "sku"}},
                {"$limit": 1}, {"$project": {"sku": 1}}]"#,
            r#"[{"_id": 1, "sku": []}]"#,
        ),
        (
            r#"[{"$lookup": {"from": "orders", "localField": "sku", "foreignField": "sku", "as": "o",
                  "let": {"least": "$_id"}, "pipeline": [{"$match": {"$expr": {"$gt": ["$n", "$$least"]}}}, {"$project": {"n": 1}}]}},
                {"$project": {"o": 1}}]"#,
            r#"[{"_id": 1, "o": [{"_id": 1, "n": 2}, {"_id": 3, "n": 5}]}, {"_id": 2, "o": []},
                {"_id": 3, "o": [{"_id": 3, "n": 5}]}, {"_id": 4, "o": [{"_id": 4, "n": 7}]}]"#,
        ),
        (r#"[{"$lookup": 1}]"#, "!9"),
        (r#"[{"$lookup": {"from": "x", "as": "y"}}]"#, "!9"),
        (r#"[{"$lookup": {"from": "x", "as": "y", "localField": "a"}}]"#, "!9"),
        (r#"[{"$lookup": {"from": "x", "localField": "a", "foreignField": "b"}}]"#, "!9"),
        (r#"[{"$lookup": {"as": "x", "localField": "a", "foreignField": "b"}}]"#, "!9"),
        (r#"[{"$lookup": {"from": 1, "as": "y"}}]"#, "!9"),
        (r#"[{"$lookup": {"from": "x", "as": "y", "q": 1}}]"#, "!9"),
        (
            r#"[{"$lookup": {"from": "x", "as": "$y", "localField": "a", "foreignField": "b"}}]"#,
            "!16410",
        ),
        (
            r#"[{"$lookup": {"from": "x", "as": "y", "localField": "$a", "foreignField": "b"}}]"#,
            "!16410",
        ),
        (r#"[{"$lookup": {"from": "x", "as": "y", "let": {"A": 1}, "pipeline": []}}]"#, "!9"),
    ]);
}

#[test]
fn lookups_by_chance_are_run_for_each_document() {
    let orders = (0..200).map(|id| json(&format!("{{\"_id\": {id}}}"))).collect::<Vec<_>>();
    for stages in [
        r#"[{"$sample": {"size": 1}}]"#,
        r#"[{"$set": {"_id": {"$rand": {}}}}, {"$limit": 1}]"#,
        r#"[{"$facet": {"f": [{"$sample": {"size": 1}}]}}, {"$set": {"_id": {"$first": "$f._id"}}}]"#,
    ] {
        let store = memory();
        store.set("orders", orders.clone());
        store.set("items", orders.clone());
        let lookup = format!(r#"{{"from": "orders", "as": "o", "pipeline": {stages}}}"#);
        let pipeline = format!(
            r#"[{{"$lookup": {lookup}}}, {{"$group": {{"_id": {{"$first": "$o._id"}}}}}}]"#
        );
        let found = run_on(&store, &pipeline).expect("the pipeline is right");
        assert!(20 < found.len(), "{} of 200 chances, {stages}", found.len());
    }
}

#[test]
fn lookups_run_pipelines_with_variables() {
    check(&[
        (
            r#"[{"$limit": 2}, {"$lookup": {"from": "orders", "let": {"s": "$sku"}, "as": "o", "pipeline": [
                  {"$match": {"$expr": {"$eq": ["$sku", "$$s"]}}}, {"$project": {"_id": 0, "n": 1, "s": "$$s", "g": "$$given"}}]}},
                {"$project": {"o": 1}}]"#,
            r#"[{"_id": 1, "o": [{"n": 2, "s": "a", "g": 10}]}, {"_id": 2, "o": [{"n": 1, "s": "b", "g": 10}]}]"#,
        ),
        (
            r#"[{"$limit": 1}, {"$lookup": {"from": "orders", "let": {"s": "$no"}, "as": "o", "pipeline": [
                  {"$limit": 1}, {"$project": {"_id": 0, "t": {"$type": "$$s"}}}]}}, {"$project": {"o": 1}}]"#,
            r#"[{"_id": 1, "o": [{"t": "missing"}]}]"#,
        ),
        (
            r#"[{"$limit": 1}, {"$lookup": {"from": "orders", "let": {"x": 1}, "as": "o", "pipeline": [{"$limit": 1},
                  {"$lookup": {"from": "items", "let": {"y": "$n"}, "as": "i", "pipeline": [
                    {"$match": {"$expr": {"$eq": ["$_id", {"$add": ["$$x", "$$y"]}]}}}, {"$project": {"sku": 1}}]}}]}},
                {"$project": {"_id": 0, "o.i": 1}}]"#,
            r#"[{"o": [{"i": [{"_id": 3, "sku": "c"}]}]}]"#,
        ),
        (
            r#"[{"$lookup": {"from": {"db": "other", "coll": "far"}, "as": "o", "pipeline": []}}, {"$limit": 1}, {"$project": {"o": 1}}]"#,
            r#"[{"_id": 1, "o": [{"_id": 9, "far": true}]}]"#,
        ),
        (
            r#"[{"$limit": 1}, {"$lookup": {"as": "o", "pipeline": [{"$documents": [{"a": 1}, {"a": 2}]}, {"$skip": 1}]}}, {"$project": {"o": 1}}]"#,
            r#"[{"_id": 1, "o": [{"a": 2}]}]"#,
        ),
        (
            r#"[{"$lookup": {"from": "x", "as": "y", "pipeline": [{"$project": {"a": "$$free"}}]}}]"#,
            "!17276",
        ),
        (r#"[{"$lookup": {"from": "x", "as": "y", "pipeline": [{"$nonsense": 1}]}}]"#, "!40324"),
        (r#"[{"$lookup": {"from": "x", "as": "y", "pipeline": 1}}]"#, "!9"),
    ]);
}

#[test]
fn a_lookup_asks_once_a_batch() {
    let memory = memory();
    let many: Vec<DocumentBuf> = (0..3000)
        .map(|id| frond_doc::document! { "_id": id, "sku": if id % 2 == 0 { "a" } else { "b" } })
        .collect();
    memory.set("items", many);
    let equal = r#"[{"$lookup": {"from": "orders", "localField": "sku", "foreignField": "sku", "as": "o"}},
        {"$group": {"_id": {"$size": "$o"}, "n": {"$sum": 1}}}]"#;
    let found = run_on(&memory, equal).unwrap();
    let expected = list(r#"[{"_id": 2, "n": 1500}, {"_id": 1, "n": 1500}]"#);
    assert_eq!(canonical(&found), canonical(&expected));
    assert!(memory.finds() < 16, "batches double");

    let before = memory.finds();
    let constant = r#"[{"$lookup": {"from": "orders", "as": "o", "pipeline": [{"$count": "n"}]}},
        {"$group": {"_id": "$o", "n": {"$sum": 1}}}]"#;
    let found = run_on(&memory, constant).unwrap();
    assert_eq!(canonical(&found), canonical(&list(r#"[{"_id": [{"n": 5}], "n": 3000}]"#)));
    assert_eq!(memory.finds() - before, 1, "a pipeline without variables runs once");
}
