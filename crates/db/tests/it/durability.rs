//! Goal: acknowledged writes are there after opening again: after a close, after a drop without a
//! close, after a crash of the machine. Method: a simulated disk, and a real directory once.

use frond_db::catalog::IndexSpec;
use frond_db::{Durability, FindRequest, Frond, FrondOptions};
use frond_doc::document;
use frond_testkit::SimDisk;

use crate::support::*;

const CONTENT: &str = "[{'_id':1,'a':'x'},{'_id':2,'a':'y'}]";

fn fill(frond: &Frond) {
    let shop = frond.database("shop").expect("a proper name");
    let spec = IndexSpec::parse(json("{'key': {'a': 1}, 'unique': true}").view());
    shop.create_indexes("things", &[spec.expect("a proper index")]).expect("made");
    let documents = jsons(CONTENT);
    let report = shop.insert("things", &documents, true, Durability::Synced).expect("inserted");
    assert_eq!(report.count, 2);
    shop.create_collection("empty", json("{}").view()).expect("made");
    shop.create_collection("gone", json("{}").view()).expect("made");
    assert!(shop.drop_collection("gone").expect("dropped"));
}

fn check(frond: &Frond) {
    let shop = frond.database("shop").expect("a proper name");
    let names: Vec<String> = shop
        .list_collections()
        .expect("listed")
        .into_iter()
        .map(|collection| collection.name)
        .collect();
    assert_eq!(names, ["empty", "things"]);
    assert_eq!(all(&shop, "things"), CONTENT);
    let hinted = FindRequest { hint: Some(value("'a_1'")), ..request("{'a': 'y'}") };
    let found = run(&shop, "things", &hinted).expect("found");
    assert_eq!(texts(&found), "[{'_id':2,'a':'y'}]");
    let report = try_insert(&shop, "things", &[document! { "_id": 3, "a": "y" }]);
    assert_eq!(report.errors.len(), 1, "the unique index holds");
    frond.engine().check().expect("every invariant holds");
}

#[test]
fn after_a_close() {
    let disk = SimDisk::new(1);
    let frond = frond_vcs::open_on(&disk.machine(), FrondOptions::default()).expect("opens");
    fill(&frond);
    frond.close().expect("closes");
    let error = frond
        .database("shop")
        .and_then(|shop| shop.insert("t", &[json("{}")], true, Durability::Synced));
    assert!(error.is_err(), "a closed directory takes nothing");
    drop(frond);
    check(&frond_vcs::open_on(&disk.machine(), FrondOptions::default()).expect("opens again"));
}

#[test]
fn after_a_kill_and_after_a_crash() {
    let disk = SimDisk::new(1);
    let frond = frond_vcs::open_on(&disk.machine(), FrondOptions::default()).expect("opens");
    fill(&frond);
    let killed = disk.kill();
    let crashed = disk.crash();
    for after in [killed, crashed] {
        check(&frond_vcs::open_on(&after.machine(), FrondOptions::default()).expect("opens again"));
    }
}

#[test]
fn in_a_real_directory() {
    let directory = std::env::temp_dir().join(format!("frond-db-test-{}", std::process::id()));
    let frond = frond_vcs::open(&directory, FrondOptions::default()).expect("opens");
    fill(&frond);
    assert!(
        frond_vcs::open(&directory, FrondOptions::default()).is_err(),
        "the directory is taken"
    );
    drop(frond);
    let frond = frond_vcs::open(&directory, FrondOptions::default()).expect("opens again");
    check(&frond);
    frond.close().expect("closes");
    drop(frond);
    std::fs::remove_dir_all(&directory).expect("removed");
}
