//! Pipelines end to end, over a database that is a map of vectors.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use frond_doc::{Document, DocumentBuf, Value, extended_json};
use frond_query::expression::Variables;
use frond_query::pipeline::{Collections, Documents, Merge, MergeAction, Pipeline, Resources};
use frond_query::{Code, Filter, QueryError};

/// Collections by name, in database "other" by `other.name`; counts how often they are asked.
#[derive(Default)]
pub struct Memory {
    collections: Mutex<BTreeMap<String, Vec<DocumentBuf>>>,
    finds: Mutex<usize>,
    resources: Mutex<Resources>,
}

fn name(database: Option<&str>, collection: &str) -> String {
    database.map_or_else(|| collection.to_owned(), |database| format!("{database}.{collection}"))
}

impl Memory {
    pub fn finds(&self) -> usize {
        *self.finds.lock().unwrap()
    }

    pub fn limit(&self, resources: Resources) {
        *self.resources.lock().unwrap() = resources;
    }

    pub fn all(&self, name: &str) -> Vec<DocumentBuf> {
        self.collections.lock().unwrap().get(name).cloned().unwrap_or_default()
    }

    pub fn set(&self, name: &str, documents: Vec<DocumentBuf>) {
        self.collections.lock().unwrap().insert(name.to_owned(), documents);
    }
}

impl Collections for Memory {
    fn find(
        &self,
        database: Option<&str>,
        collection: &str,
        filter: &Filter,
    ) -> Result<Documents<'static>, QueryError> {
        *self.finds.lock().unwrap() += 1;
        let all = self.collections.lock().unwrap();
        let mut found = Vec::new();
        for document in all.get(&name(database, collection)).into_iter().flatten() {
            if filter.try_matches(document.view())? {
                found.push(Ok(document.clone()));
            }
        }
        Ok(Box::new(found.into_iter()))
    }

    fn replace(
        &self,
        database: Option<&str>,
        collection: &str,
        _: Option<Document<'_>>,
        documents: Documents<'_>,
    ) -> Result<(), QueryError> {
        let documents = documents.collect::<Result<Vec<_>, _>>()?;
        self.collections.lock().unwrap().insert(name(database, collection), documents);
        Ok(())
    }

    fn merge(
        &self,
        database: Option<&str>,
        collection: &str,
        merge: &Merge,
        documents: Documents<'_>,
    ) -> Result<(), QueryError> {
        let documents = documents.collect::<Result<Vec<_>, _>>()?;
        let mut all = self.collections.lock().unwrap();
        let target = all.entry(name(database, collection)).or_default();
        for new in documents {
            let filter = merge.filter(new.view())?;
            let matches = |document: &DocumentBuf| {
                filter.as_ref().is_some_and(|filter| filter.matches(document.view()))
            };
            let place = target.iter().position(matches);
            let existing = place.map(|place| target[place].view());
            match (merge.apply(existing, new.view())?, place) {
                (MergeAction::Nothing, _) => {}
                (MergeAction::Insert(_), Some(_)) => {
                    return Err(QueryError::new(Code::DuplicateKey, "it is there already"));
                }
                (MergeAction::Replace(made), Some(place)) => target[place] = made,
                (MergeAction::Insert(made) | MergeAction::Replace(made), _) => target.push(made),
            }
        }
        Ok(())
    }

    fn resources(&self) -> Resources {
        self.resources.lock().unwrap().clone()
    }
}

pub fn json(text: &str) -> DocumentBuf {
    extended_json::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub fn list(text: &str) -> Vec<DocumentBuf> {
    let wrapped = json(&format!("{{\"v\": {text}}}"));
    let array = wrapped.get("v").and_then(|value| value.as_array()).unwrap();
    array.iter().map(|element| element.as_document().unwrap().to_buf()).collect()
}

pub fn canonical(documents: &[DocumentBuf]) -> Vec<String> {
    let write = |document: &DocumentBuf| {
        let mut text = String::new();
        extended_json::write(document.view(), extended_json::Form::Canonical, &mut text);
        text
    };
    documents.iter().map(write).collect()
}

pub fn memory() -> Arc<Memory> {
    let memory = Memory::default();
    for (name, documents) in [
        ("items", ITEMS),
        (
            "orders",
            r#"[
            {"_id": 1, "sku": "a", "n": 2}, {"_id": 2, "sku": "b", "n": 1},
            {"_id": 3, "sku": ["a", "c"], "n": 5}, {"_id": 4, "n": 7}, {"_id": 5, "sku": null}
        ]"#,
        ),
        ("other.far", r#"[{"_id": 9, "far": true}]"#),
    ] {
        memory.collections.lock().unwrap().insert(name.to_owned(), list(documents));
    }
    Arc::new(memory)
}

const ITEMS: &str = r#"[
    {"_id": 1, "sku": "a", "price": 10, "tags": ["x", "y"], "size": {"h": 1, "w": 2}},
    {"_id": 2, "sku": "b", "price": 2.5, "tags": [], "size": {"h": 3, "w": 4}},
    {"_id": 3, "sku": "c", "price": null, "tags": "z"},
    {"_id": 4, "price": 10, "size": [{"h": 5}, {"h": 6, "w": 7}, 8]}
]"#;

pub fn run_on(memory: &Arc<Memory>, stages: &str) -> Result<Vec<DocumentBuf>, QueryError> {
    let wrapped = json(&format!("{{\"v\": {stages}}}"));
    let pipeline = Pipeline::parse(wrapped.get("v").and_then(|value| value.as_array()).unwrap())?;
    let input = memory.collections.lock().unwrap()["items"].clone();
    let given = json(r#"{"given": 10}"#);
    let variables = Variables::new(1000, Some(given.view()))?;
    let collections: Arc<dyn Collections> = Arc::<Memory>::clone(memory);
    pipeline.run(Box::new(input.into_iter().map(Ok)), variables, collections)?.collect()
}

/// Runs `stages` over the items and compares with a list of documents, or `!code`.
pub fn check(table: &[(&str, &str)]) {
    for (stages, expected) in table {
        match run_on(&memory(), stages) {
            Ok(found) => {
                assert!(!expected.starts_with('!'), "{stages} gave {found:?}");
                assert_eq!(canonical(&found), canonical(&list(expected)), "{stages}");
            }
            Err(error) => {
                assert_eq!(format!("!{}", error.code.number()), *expected, "{stages}: {error}")
            }
        }
    }
}

#[test]
fn stages_must_be_known_and_in_their_places() {
    check(&[
        ("[]", ITEMS),
        (r#"[1]"#, "!14"),
        (r#"[{}]"#, "!40323"),
        (r#"[{"$limit": 1, "$skip": 1}]"#, "!40323"),
        (r#"[{"$nonsense": 1}]"#, "!40324"),
        (r#"[{"$geoNear": {}}]"#, "!5860400"),
        (r#"[{"$out": "x"}, {"$limit": 1}]"#, "!40601"),
        (r#"[{"$facet": {"a": [{"$out": "x"}]}}]"#, "!40600"),
        (r#"[{"$facet": {"a": [{"$facet": {"b": [{"$limit": 1}]}}]}}]"#, "!40600"),
        (r#"[{"$lookup": {"from": "x", "as": "y", "pipeline": [{"$out": "x"}]}}]"#, "!51047"),
        (r#"[{"$unionWith": {"coll": "x", "pipeline": [{"$out": "x"}]}}]"#, "!31441"),
        (r#"[{"$limit": 1}, {"$documents": []}]"#, "!40602"),
        (r#"[{"$limit": 1}, {"$collStats": {}}]"#, "!40602"),
        (r#"[{"$limit": 1}, {"$log": {}}]"#, "!40602"),
        (r#"[{"$facet": {"a": [{"$indexStats": {}}]}}]"#, "!40600"),
        (r#"[{"$facet": {"": [{"$limit": 1}]}}]"#, "!15998"),
        (r#"[{"$set": {"": 1}}]"#, "!40352"),
        (r#"[{"$unset": ""}]"#, "!40352"),
        (r#"[{"$project": {"": 1}}]"#, "!40352"),
        (r#"[{"$unwind": "$"}]"#, "!40352"),
        (r#"[{"$lookup": {"from": "x", "as": "", "pipeline": []}}]"#, "!40352"),
        (r#"[{"$project": {"x": "$$ROOT."}}]"#, "!40353"),
        (r#"[{"$project": {"x": "$$unbound"}}]"#, "!17276"),
        (r#"[{"$match": {"_id": -1}}, {"$project": {"x": "$$unbound"}}]"#, "!17276"),
        (r#"[{"$match": 1}]"#, "!15959"),
        (r#"[{"$match": {"$nonsense": 1}}]"#, "!2"),
    ]);
}

#[test]
fn documents_are_matched_cut_counted() {
    check(&[
        (r#"[{"$match": {"price": 10}}, {"$project": {"_id": 1}}]"#, r#"[{"_id": 1}, {"_id": 4}]"#),
        (
            r#"[{"$match": {"$expr": {"$eq": ["$price", "$$given"]}}}, {"$project": {"_id": 1}}]"#,
            r#"[{"_id": 1}, {"_id": 4}]"#,
        ),
        (r#"[{"$match": {"$expr": {"$divide": [1, 0]}}}]"#, "!2"),
        (
            r#"[{"$skip": 1}, {"$limit": 2}, {"$project": {"_id": 1}}]"#,
            r#"[{"_id": 2}, {"_id": 3}]"#,
        ),
        (r#"[{"$skip": 9}]"#, "[]"),
        (r#"[{"$limit": 0}]"#, "!15958"),
        (r#"[{"$limit": -1}]"#, "!5107201"),
        (r#"[{"$limit": "x"}]"#, "!5107201"),
        (r#"[{"$limit": 1.5}]"#, "!5107201"),
        (r#"[{"$skip": -1}]"#, "!5107200"),
        (r#"[{"$count": "n"}]"#, r#"[{"n": 4}]"#),
        (r#"[{"$match": {"_id": 9}}, {"$count": "n"}]"#, "[]"),
        (r#"[{"$count": ""}]"#, "!40157"),
        (r#"[{"$count": 1}]"#, "!40156"),
        (r#"[{"$count": "$n"}]"#, "!40158"),
        (r#"[{"$count": "a\u0000"}]"#, "!40159"),
        (r#"[{"$count": "a.b"}]"#, "!40160"),
        (r#"[{"$sample": {"size": 9}}, {"$count": "n"}]"#, r#"[{"n": 4}]"#),
        (r#"[{"$sample": {"size": 2}}, {"$count": "n"}]"#, r#"[{"n": 2}]"#),
        (r#"[{"$sample": {"size": -1}}]"#, "!28747"),
        (r#"[{"$sample": {}}]"#, "!28749"),
    ]);
}

#[test]
fn projections_include_exclude_and_compute() {
    check(&[
        (
            r#"[{"$limit": 1}, {"$project": {"size.h": 1, "sku": 1}}]"#,
            r#"[{"_id": 1, "sku": "a", "size": {"h": 1}}]"#,
        ),
        (
            r#"[{"$skip": 3}, {"$project": {"_id": 0, "size": {"w": 1}}}]"#,
            r#"[{"size": [{}, {"w": 7}]}]"#,
        ),
        (
            r#"[{"$skip": 3}, {"$project": {"size.h": 0, "price": 0}}]"#,
            r#"[{"_id": 4, "size": [{}, {"w": 7}, 8]}]"#,
        ),
        (
            r#"[{"$limit": 1}, {"$project": {"_id": 0, "total": {"$add": ["$price", 1]}, "sku": 1, "n.m": "$sku"}}]"#,
            r#"[{"sku": "a", "total": 11, "n": {"m": "a"}}]"#,
        ),
        (
            r#"[{"$limit": 1}, {"$project": {"_id": 0, "size": {"h": 1, "a": "$price"}}}]"#,
            r#"[{"size": {"h": 1, "a": 10}}]"#,
        ),
        (
            r#"[{"$limit": 1}, {"$project": {"_id": 0, "price": {"x": "$sku"}, "list": ["$sku", "$no"]}}]"#,
            r#"[{"price": {"x": "a"}, "list": ["a", null]}]"#,
        ),
        (
            r#"[{"$limit": 1}, {"$project": {"_id": 0}}, {"$project": {"sku": 1}}]"#,
            r#"[{"sku": "a"}]"#,
        ),
        (r#"[{"$limit": 1}, {"$project": {"sku": "$$REMOVE"}}]"#, r#"[{"_id": 1}]"#),
        (
            r#"[{"$limit": 1}, {"$project": {"t": "text", "_id": "$sku"}}]"#,
            r#"[{"t": "text", "_id": "a"}]"#,
        ),
        (r#"[{"$project": {}}]"#, "!51272"),
        (r#"[{"$project": 1}]"#, "!15969"),
        (r#"[{"$project": {"a": 1, "b": 0}}]"#, "!31254"),
        (r#"[{"$project": {"a": 0, "b": 1}}]"#, "!31253"),
        (r#"[{"$project": {"a": 0, "b": "$x"}}]"#, "!31310"),
        (r#"[{"$project": {"a": 1, "a.b": 1}}]"#, "!31249"),
        (r#"[{"$project": {"a.b": 1, "a": 1}}]"#, "!31250"),
        (r#"[{"$project": {"a": {}}}]"#, "!51270"),
        (r#"[{"$project": {"a.": 1}}]"#, "!40353"),
        (r#"[{"$project": {"$a": 1}}]"#, "!16410"),
        (r#"[{"$project": {"a": {"$nonsense": 1}}}]"#, "!31325"),
    ]);
}

#[test]
fn fields_are_added_in_place_and_removed() {
    check(&[
        (
            r#"[{"$limit": 1}, {"$addFields": {"price": 1, "size.h": "$sku", "new": {"x": true}}}]"#,
            r#"[{"_id": 1, "sku": "a", "price": 1, "tags": ["x", "y"], "size": {"h": "a", "w": 2}, "new": {"x": true}}]"#,
        ),
        (
            r#"[{"$skip": 3}, {"$set": {"size.h": 0, "price.x": 1}}]"#,
            r#"[{"_id": 4, "price": {"x": 1}, "size": [{"h": 0}, {"h": 0, "w": 7}, {"h": 0}]}]"#,
        ),
        (r#"[{"$skip": 3}, {"$set": {"size": "$$REMOVE"}}]"#, r#"[{"_id": 4, "price": 10}]"#),
        (
            r#"[{"$skip": 3}, {"$set": {"size": "$price", "price": "$_id"}}]"#,
            r#"[{"_id": 4, "price": 4, "size": 10}]"#,
        ),
        (r#"[{"$skip": 3}, {"$unset": "size"}]"#, r#"[{"_id": 4, "price": 10}]"#),
        (
            r#"[{"$skip": 3}, {"$unset": ["size.h", "_id"]}]"#,
            r#"[{"price": 10, "size": [{}, {"w": 7}, 8]}]"#,
        ),
        (r#"[{"$unset": []}]"#, "!31119"),
        (r#"[{"$unset": [1]}]"#, "!31120"),
        (r#"[{"$unset": 1}]"#, "!31002"),
        (r#"[{"$unset": "a\u0000b"}]"#, "!16411"),
        (r#"[{"$addFields": 1}]"#, "!40272"),
        (r#"[{"$set": {"a": {}}}]"#, "!40180"),
        (r#"[{"$limit": 1}, {"$replaceRoot": {"newRoot": "$size"}}]"#, r#"[{"h": 1, "w": 2}]"#),
        (
            r#"[{"$limit": 1}, {"$replaceWith": {"$mergeObjects": [{"w": 0, "q": 1}, "$size"]}}]"#,
            r#"[{"w": 2, "q": 1, "h": 1}]"#,
        ),
        (r#"[{"$replaceRoot": {"newRoot": "$price"}}]"#, "!40228"),
        (r#"[{"$replaceRoot": {"root": 1}}]"#, "!40415"),
        (r#"[{"$replaceRoot": {}}]"#, "!40414"),
        (r#"[{"$replaceRoot": 1}]"#, "!40229"),
    ]);
}

#[test]
fn groups_keep_the_order_of_their_first_documents() {
    check(&[
        (
            r#"[{"$group": {"_id": "$price", "n": {"$sum": 1}, "ids": {"$push": "$_id"}}}]"#,
            r#"[{"_id": 10, "n": 2, "ids": [1, 4]}, {"_id": 2.5, "n": 1, "ids": [2]}, {"_id": null, "n": 1, "ids": [3]}]"#,
        ),
        (
            r#"[{"$group": {"_id": null, "sum": {"$sum": "$price"}, "avg": {"$avg": "$price"}, "min": {"$min": "$price"},
                "max": {"$max": "$sku"}, "first": {"$first": "$sku"}, "last": {"$last": "$sku"}, "count": {"$count": {}},
                "skus": {"$addToSet": "$sku"}, "prices": {"$addToSet": "$price"}, "pushed": {"$push": "$sku"}}}]"#,
            r#"[{"_id": null, "sum": 22.5, "avg": 7.5, "min": 2.5, "max": "c", "first": "a", "last": null,
                "count": 4, "skus": ["a", "b", "c"], "prices": [10, 2.5, null], "pushed": ["a", "b", "c"]}]"#,
        ),
        (
            r#"[{"$match": {"_id": {"$lte": 2}}}, {"$group": {"_id": {"h": "$no", "t": "x"}, "m": {"$mergeObjects": "$size"}, "d": {"$stdDevPop": "$size.h"}, "s": {"$stdDevSamp": "$no"}}}]"#,
            r#"[{"_id": {"t": "x"}, "m": {"h": 3, "w": 4}, "d": {"$numberDouble": "1.0"}, "s": null}]"#,
        ),
        (r#"[{"$match": {"_id": 9}}, {"$group": {"_id": null, "n": {"$sum": 1}}}]"#, "[]"),
        (r#"[{"$group": {"_id": null, "m": {"$mergeObjects": "$price"}}}]"#, "!40400"),
        (r#"[{"$group": {"n": {"$sum": 1}}}]"#, "!15955"),
        (r#"[{"$group": 1}]"#, "!15947"),
        (r#"[{"$group": {"_id": 1, "n": 1}}]"#, "!40234"),
        (r#"[{"$group": {"_id": 1, "n": {}}}]"#, "!40238"),
        (r#"[{"$group": {"_id": 1, "n": {"$sum": 1, "$avg": 1}}}]"#, "!40238"),
        (r#"[{"$group": {"_id": 1, "n": {"$nonsense": 1}}}]"#, "!15952"),
        (r#"[{"$group": {"_id": 1, "n": {"$topN": 1}}}]"#, "!5788001"),
        (r#"[{"$group": {"_id": 1, "n": {"$accumulator": {}}}}]"#, "!4544707"),
        (r#"[{"$group": {"_id": 1, "n": {"$sum": [1, 2]}}}]"#, "!40237"),
        (r#"[{"$group": {"_id": 1, "a.b": {"$sum": 1}}}]"#, "!40235"),
        (r#"[{"$group": {"_id": 1, "$a": {"$sum": 1}}}]"#, "!40236"),
        (r#"[{"$sortByCount": "$price"}, {"$limit": 1}]"#, r#"[{"_id": 10, "count": 2}]"#),
        (r#"[{"$sortByCount": "price"}]"#, "!40148"),
        (r#"[{"$sortByCount": {"a": 1}}]"#, "!40147"),
        (r#"[{"$sortByCount": 1}]"#, "!40149"),
        (
            r#"[{"$bucket": {"groupBy": "$_id", "boundaries": [0, 2, 4], "default": "rest", "output": {"ids": {"$push": "$_id"}}}}]"#,
            r#"[{"_id": 0, "ids": [1]}, {"_id": 2, "ids": [2, 3]}, {"_id": "rest", "ids": [4]}]"#,
        ),
        (r#"[{"$bucket": {"groupBy": "$_id", "boundaries": [0, 2]}}]"#, "!40066"),
        (r#"[{"$bucket": {"groupBy": "$_id", "boundaries": [0]}}]"#, "!40192"),
        (r#"[{"$bucket": {"groupBy": "$_id", "boundaries": [2, 0]}}]"#, "!40194"),
        (r#"[{"$bucket": {"groupBy": "$_id", "boundaries": [2, "a"]}}]"#, "!40193"),
        (r#"[{"$bucket": {"groupBy": "$_id", "boundaries": [0, 9], "default": 5}}]"#, "!40199"),
        (r#"[{"$bucket": {"groupBy": "_id", "boundaries": [0, 9]}}]"#, "!40202"),
    ]);
}

#[test]
fn documents_are_sorted_and_unwound() {
    check(&[
        (
            r#"[{"$sort": {"price": -1, "_id": -1}}, {"$project": {"_id": 1}}]"#,
            r#"[{"_id": 4}, {"_id": 1}, {"_id": 2}, {"_id": 3}]"#,
        ),
        (
            r#"[{"$sort": {"price": -1}}, {"$project": {"_id": 1}}, {"$skip": 1}, {"$limit": 2}]"#,
            r#"[{"_id": 4}, {"_id": 2}]"#,
        ),
        (r#"[{"$sort": {}}]"#, "!15976"),
        (r#"[{"$sort": 1}]"#, "!15973"),
        (
            r#"[{"$unwind": "$tags"}, {"$project": {"tags": 1}}]"#,
            r#"[{"_id": 1, "tags": "x"}, {"_id": 1, "tags": "y"}, {"_id": 3, "tags": "z"}]"#,
        ),
        (
            r#"[{"$unwind": {"path": "$tags", "includeArrayIndex": "at", "preserveNullAndEmptyArrays": true}}, {"$project": {"tags": 1, "at": 1}}]"#,
            r#"[{"_id": 1, "tags": "x", "at": {"$numberLong": "0"}}, {"_id": 1, "tags": "y", "at": {"$numberLong": "1"}},
                {"_id": 2, "at": null}, {"_id": 3, "tags": "z", "at": null}, {"_id": 4, "at": null}]"#,
        ),
        (
            r#"[{"$limit": 1}, {"$project": {"_id": 0, "o.list": "$tags", "o.k": "$sku"}}, {"$unwind": "$o.list"}]"#,
            r#"[{"o": {"list": "x", "k": "a"}}, {"o": {"list": "y", "k": "a"}}]"#,
        ),
        (r#"[{"$unwind": 1}]"#, "!15981"),
        (r#"[{"$unwind": "tags"}]"#, "!28818"),
        (r#"[{"$unwind": ""}]"#, "!28812"),
        (r#"[{"$unwind": {}}]"#, "!28812"),
        (r#"[{"$unwind": {"path": 1}}]"#, "!28808"),
        (r#"[{"$unwind": {"path": "$a", "preserveNullAndEmptyArrays": 1}}]"#, "!28809"),
        (r#"[{"$unwind": {"path": "$a", "includeArrayIndex": ""}}]"#, "!28810"),
        (r#"[{"$unwind": {"path": "$a", "includeArrayIndex": "$b"}}]"#, "!28822"),
        (r#"[{"$unwind": {"path": "$a", "x": 1}}]"#, "!28811"),
    ]);
}

#[test]
fn pipelines_stand_side_by_side_and_one_after_the_other() {
    check(&[
        (
            r#"[{"$facet": {"n": [{"$count": "n"}], "first": [{"$limit": 1}, {"$project": {"sku": 1}}]}}]"#,
            r#"[{"n": [{"n": 4}], "first": [{"_id": 1, "sku": "a"}]}]"#,
        ),
        (r#"[{"$facet": {}}]"#, "!40169"),
        (r#"[{"$facet": {"a": 1}}]"#, "!40170"),
        (
            r#"[{"$limit": 1}, {"$project": {"_id": 1}}, {"$unionWith": "nothing"}]"#,
            r#"[{"_id": 1}]"#,
        ),
        (
            r#"[{"$limit": 1}, {"$project": {"_id": 1}},
                {"$unionWith": {"coll": "orders", "pipeline": [{"$match": {"n": 5}}, {"$project": {"n": 1}}]}}]"#,
            r#"[{"_id": 1}, {"_id": 3, "n": 5}]"#,
        ),
        (
            r#"[{"$limit": 1}, {"$project": {"_id": 1}}, {"$unionWith": {"pipeline": [{"$documents": [{"a": "$$given"}]}]}}]"#,
            r#"[{"_id": 1}, {"a": 10}]"#,
        ),
        (r#"[{"$unionWith": {"pipeline": []}}]"#, "!9"),
        (r#"[{"$unionWith": 1}]"#, "!9"),
        (r#"[{"$documents": [{"a": 1}, {"a": {"$add": [1, 1]}}]}]"#, r#"[{"a": 1}, {"a": 2}]"#),
        (r#"[{"$documents": [1]}]"#, "!5858203"),
    ]);
}

#[test]
fn results_are_written_to_a_collection() {
    let memory = memory();
    let found = run_on(&memory, r#"[{"$project": {"sku": 1}}, {"$limit": 1}, {"$out": "made"}]"#);
    assert!(found.unwrap().is_empty());
    let made = memory.collections.lock().unwrap()["made"].clone();
    assert_eq!(canonical(&made), canonical(&list(r#"[{"_id": 1, "sku": "a"}]"#)));
    run_on(&memory, r#"[{"$out": {"db": "other", "coll": "made"}}]"#).unwrap();
    assert_eq!(memory.collections.lock().unwrap()["other.made"].len(), 4);
    // A pipeline that fails on the way writes nothing.
    let failing =
        r#"[{"$project": {"x": {"$divide": [1, {"$subtract": ["$_id", 3]}]}}}, {"$out": "no"}]"#;
    assert_eq!(run_on(&memory, failing).unwrap_err().code.number(), 2);
    assert!(!memory.collections.lock().unwrap().contains_key("no"));
    check(&[
        (r#"[{"$out": 1}]"#, "!16990"),
        (r#"[{"$out": {"coll": "x"}}]"#, "!40414"),
        (r#"[{"$out": {"db": "x", "coll": "y", "z": 1}}]"#, "!40415"),
        (r#"[{"$out": ""}]"#, "!73"),
    ]);
}

#[test]
fn the_planner_takes_what_it_can_do() {
    let parse = |stages: &str| {
        let wrapped = json(&format!("{{\"v\": {stages}}}"));
        Pipeline::parse(wrapped.get("v").and_then(|value| value.as_array()).unwrap()).unwrap()
    };
    let mut pipeline =
        parse(r#"[{"$match": {"sku": "a"}}, {"$limit": 1}, {"$out": {"db": "d", "coll": "c"}}]"#);
    let filter = pipeline.take_filter();
    assert!(filter.matches(json(r#"{"sku": "a"}"#).view()));
    assert!(!filter.matches(json(r#"{"sku": "b"}"#).view()));
    assert!(pipeline.take_filter().is_all());
    assert_eq!(pipeline.output(), Some((Some("d".to_owned()), "c".to_owned())));
    assert!(!pipeline.is_source());
    assert!(parse(r#"[{"$documents": []}]"#).is_source());
    assert_eq!(parse(r#"[{"$out": "c"}]"#).output(), Some((None, "c".to_owned())));
    assert_eq!(parse("[]").output(), None);
}

#[test]
fn stages_are_lazy() {
    let wrapped = json(r#"{"v": [{"$set": {"x": 1}}, {"$match": {"x": 1}}, {"$limit": 2}]}"#);
    let pipeline = Pipeline::parse(wrapped.get("v").and_then(|value| value.as_array()).unwrap());
    let mut count = 0;
    let endless = std::iter::repeat_with(|| {
        count += 1;
        assert!(count < 10, "the limit ends it");
        Ok(frond_doc::document! { "a": count })
    });
    let variables = Variables::default();
    let found = pipeline.unwrap().run(Box::new(endless), variables, memory()).unwrap();
    assert_eq!(found.count(), 2);
}

#[test]
fn memory_is_bounded() {
    let wrapped = |stages: &str| {
        let wrapped = json(&format!("{{\"v\": {stages}}}"));
        Pipeline::parse(wrapped.get("v").and_then(|value| value.as_array()).unwrap()).unwrap()
    };
    let large = DocumentBuf::from_validated(
        frond_doc::document! { "s": "x".repeat(1 << 20).as_str(), "n": 1 }.into_bytes(),
    );
    let run = |stages: &str, count: usize| {
        let input = Box::new(std::iter::repeat_n(large.clone(), count).map(Ok));
        let documents = wrapped(stages).run(input, Variables::default(), memory()).unwrap();
        let mut last = Ok(0);
        for document in documents {
            last = document.map(|document| document.as_bytes().len());
        }
        last.map_err(|error| error.code.number())
    };
    assert_eq!(run(r#"[{"$sort": {"n": 1}}, {"$skip": 1}]"#, 150), Err(292));
    assert!(run(r#"[{"$sort": {"n": 1}}, {"$count": "c"}]"#, 150).is_ok(), "no \"s\" is kept");
    assert!(run(r#"[{"$sort": {"n": 1}}, {"$limit": 3}]"#, 150).is_ok(), "few are kept");
    assert_eq!(run(r#"[{"$group": {"_id": null, "all": {"$push": "$s"}}}]"#, 150), Err(10334));
    assert_eq!(run(r#"[{"$group": {"_id": null, "all": {"$push": "$s"}}}]"#, 20), Err(10334));
    assert!(run(r#"[{"$group": {"_id": null, "all": {"$addToSet": "$s"}}}]"#, 150).is_ok());
    assert_eq!(run(r#"[{"$facet": {"a": [{"$limit": 1}]}}]"#, 150), Err(292));
}

#[test]
fn pipelines_nest_no_deeper_than_allowed() {
    let nest = |times: usize| {
        let mut stages = r#"[{"$limit": 1}]"#.to_owned();
        for _ in 0..times {
            stages = format!(
                r#"[{{"$limit": 1}}, {{"$lookup": {{"from": "items", "as": "x", "pipeline": {stages}}}}}]"#
            );
        }
        stages
    };
    assert!(run_on(&memory(), &nest(20)).is_ok());
    assert_eq!(run_on(&memory(), &nest(21)).unwrap_err().code.number(), 232);
    // Each stage wraps the document once more.
    let wrap = |times: usize| {
        let stage = r#"{"$replaceWith": {"a": "$$ROOT"}}"#;
        format!("[{}]", vec![stage; times].join(","))
    };
    assert!(run_on(&memory(), &wrap(100)).is_ok());
    assert_eq!(run_on(&memory(), &wrap(900)).unwrap_err().code.number(), 15);
    let long = format!("[{}]", vec![r#"{"$limit": 1}"#; 1001].join(","));
    assert_eq!(run_on(&memory(), &long).unwrap_err().code.number(), 7_749_501);
}

#[test]
fn values_of_results_are_kept_exactly() {
    let found =
        run_on(&memory(), r#"[{"$limit": 1}, {"$set": {"l": {"$numberLong": "1"}}}]"#).unwrap();
    assert_eq!(found[0].get("l"), Some(Value::Int64(1)));
}
