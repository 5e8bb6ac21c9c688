//! Everything at once, on branches that merge with one another: nothing fails that may not, and at
//! the end every index of every version has exactly what its documents say.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use frond_db::catalog::IndexSpec;
use frond_db::{DeleteStatement, Durability, Error, ErrorKind, FindRequest, Frond};
use frond_doc::{DocumentBuf, Value, document};
use frond_testkit::{Random, SimDisk};
use frond_vcs::Repository;
use frond_vcs::{MergeOutcome, Resolution};

use super::{all, find, insert, merge, open, shop};

const COLLECTION: &str = "things";
/// The number of writes by each of three writers, in each storm.
const WRITES: u32 = 1_000;
const STORMS: u64 = 4;

fn allowed<T>(result: Result<T, Error>) -> Option<T> {
    match result {
        Ok(found) => Some(found),
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::Invalid, "{error:?}");
            None
        }
    }
}

fn spec(path: &str, unique: bool) -> IndexSpec {
    let mut key = frond_doc::DocumentBuilder::new();
    key.append(path, Value::Int32(1));
    let spec = document! { "key": &key.build(), "unique": unique };
    IndexSpec::parse(spec.view()).unwrap()
}

fn write(database: &Repository, random: &mut Random) {
    let id = random.below(60) as i32;
    let (a, u) = (random.below(5) as i32, random.below(80) as i32);
    if random.below(4) == 0 {
        let filter = document! { "_id": id };
        let statement = DeleteStatement {
            filter,
            only_first: true,
            hint: None,
            variables: None,
            collation: None,
        };
        allowed(database.delete(COLLECTION, &[statement], true, Durability::Relaxed));
    } else {
        let document = document! { "_id": id, "a": a, "u": u };
        allowed(super::put(database, COLLECTION, &document));
    }
}

fn merge_and_resolve(database: &Repository, from: &str, random: &mut Random) {
    let _ = allowed(database.commit("before a merge", ""));
    if let Some(MergeOutcome::Conflicts { .. }) = allowed(merge(database, from)) {
        for conflict in allowed(database.conflicts(None)).unwrap_or_default() {
            let resolution = match random.below(3) {
                0 => Resolution::Ours,
                1 => Resolution::Theirs,
                _ => Resolution::Value(None),
            };
            allowed(database.resolve_conflict(&conflict.id, &resolution));
        }
        if random.below(4) == 0 || allowed(database.merge_continue(None, None)).is_none() {
            allowed(database.merge_abort());
        }
    }
}

fn check(database: &Repository) {
    for collection in database.list_collections().unwrap() {
        let documents = by_id(all(database, &collection.name));
        let count = database.count(&collection.name, &FindRequest::default()).unwrap();
        assert_eq!(count as usize, documents.len());
        for index in database.list_indexes(&collection.name).unwrap() {
            let found = find(database, &collection.name, None, Some(&index.name));
            assert_eq!(found.len(), documents.len(), "{}", index.name);
            assert_eq!(by_id(found), documents, "{}", index.name);
            for document in documents.values().filter(|_| index.name != "_id_") {
                let path = index.key.iter().next().unwrap().0;
                let mut filter = frond_doc::DocumentBuilder::new();
                filter.append(path, document.get(path).unwrap());
                let same =
                    find(database, &collection.name, Some(filter.build()), Some(&index.name));
                assert!(same.contains(document), "{}: {document:?}", index.name);
                assert!(!index.unique || same.len() == 1, "{}: {same:?}", index.name);
            }
        }
    }
}

fn by_id(documents: Vec<DocumentBuf>) -> BTreeMap<String, DocumentBuf> {
    let id = |found: &DocumentBuf| format!("{:?}", found.get("_id").unwrap());
    documents.into_iter().map(|found| (id(&found), found)).collect()
}

fn storm(frond: &Frond, seed: u64) {
    let (main, side) = (shop(frond, ""), shop(frond, "side"));
    let is_done = AtomicBool::new(false);
    let until_done = |seed: u64, step: &(dyn Fn(&mut Random) + Sync)| {
        let mut random = Random::new(seed);
        while !is_done.load(Ordering::SeqCst) {
            step(&mut random);
            thread::yield_now();
        }
    };
    thread::scope(|scope| {
        let writers: Vec<_> = [&main, &side, &main]
            .into_iter()
            .enumerate()
            .map(|(number, branch)| {
                scope.spawn(move || {
                    let mut random = Random::new(seed * 100 + number as u64);
                    (0..WRITES).for_each(|_| write(branch, &mut random));
                })
            })
            .collect();
        scope.spawn(|| {
            until_done(seed * 100 + 10, &|random| merge_and_resolve(&main, "side", random))
        });
        scope.spawn(|| {
            until_done(seed * 100 + 11, &|random| merge_and_resolve(&side, "main", random))
        });
        scope.spawn(|| {
            until_done(seed * 100 + 12, &|random| {
                let branch = if random.below(2) == 0 { &main } else { &side };
                let path = ["a", "u"][random.below(2)];
                if random.below(3) == 0 {
                    allowed(branch.drop_indexes(COLLECTION, &format!("{path}_1")));
                } else {
                    allowed(branch.create_indexes(COLLECTION, &[spec(path, path == "u")]));
                }
            });
        });
        scope.spawn(|| {
            until_done(seed * 100 + 13, &|random| match random.below(8) {
                0 => drop(allowed(side.reset(None, true))),
                1 => drop(allowed(side.reset(Some("HEAD~1"), false))),
                2 => drop(allowed(side.reset(Some("main"), true))),
                3 => drop(allowed(main.drop_collection("other"))),
                4 => drop(allowed(main.rename_collection("other", "renamed", true))),
                5 => drop(allowed(main.rename_collection("renamed", "other", true))),
                _ => insert(&main, "other", &[document! { "a": 1_i32 }]),
            });
        });
        let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_done.store(true, Ordering::SeqCst);
        assert!(results.iter().all(Result::is_ok));
    });
    for branch in [&main, &side] {
        allowed(branch.merge_abort());
        check(branch);
        allowed(branch.commit("the rest", ""));
        for commit in branch.log(None, None).unwrap().iter().take(20) {
            check(&shop(frond, &commit.id.to_string()));
        }
    }
    frond.engine().check().unwrap();
}

#[test]
fn everything_at_once() {
    for seed in frond_testkit::random::seeds(STORMS) {
        let disk = SimDisk::new(seed);
        let frond = open(&disk);
        let main = shop(&frond, "");
        insert(&main, COLLECTION, &[document! { "_id": 1_i32, "a": 1_i32, "u": 1_i32 }]);
        main.create_indexes(COLLECTION, &[spec("a", false), spec("u", true)]).unwrap();
        main.commit("start", "").unwrap();
        main.create_branch("side", None).unwrap();
        storm(&frond, seed);
        frond.close().unwrap();
        drop((main, frond));
        let frond = open(&disk);
        check(&shop(&frond, ""));
        check(&shop(&frond, "side"));
    }
}
