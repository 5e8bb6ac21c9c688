//! Goal: what is under way when something is erased doesn't bring it back: no pipeline that writes
//! what it read before, no transaction, index build, restore or commit that a hook judges, and no
//! commit that comes from a clone. Method: the erase runs amid the other, where that asks whether
//! it is to stop, once before and once after each document that it reads; afterwards no version, no
//! working state and no file holds the marker.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use frond_db::catalog::IndexSpec;
use frond_db::{
    AggregateRequest, Durability, Error, ErrorKind, Frond, Interrupt, ReclaimOptions,
    UpdateStatement,
};
use frond_doc::{DocumentBuf, Value, ValueBuf, document};
use frond_query::Code;
use frond_testkit::SimDisk;
use frond_testkit::random::assert_met;
use frond_vcs::remote::{DataRemote, Moved, ORIGIN, PushRequest};
use frond_vcs::{CommitRequest, EraseRequest, MergeRequest, Repository};

use super::support::json;
use super::{all, insert, open, put, shop};

const MARKER: &str = "uW4hBn8rJt5eXo0aLs6vDz3gKq9yPc7M";
const PURGE: ReclaimOptions = ReclaimOptions { thorough: true, bytes_a_second: None, purge: true };
const ID: i32 = 11;

/// Twenty people, one of them marked, on two branches; and another database.
fn people(disk: &SimDisk) -> (Frond, Repository) {
    let frond = open(disk);
    let main = shop(&frond, "");
    let person = |id: i32| {
        let name = if id == ID { MARKER } else { "someone" };
        document! { "_id": id, "name": name, "age": id * 3 }
    };
    let (marked, others): (Vec<_>, Vec<_>) = (0..20).partition(|id| *id == ID);
    insert(&main, "people", &others.into_iter().map(person).collect::<Vec<_>>());
    main.commit("before", "ada").unwrap();
    insert(&main, "people", &marked.into_iter().map(person).collect::<Vec<_>>());
    main.commit("it comes", "ada").unwrap();
    main.create_branch("side", None).unwrap();
    put(&main, "people", &document! { "_id": 3_i32, "name": "other" }).unwrap();
    let aside = Repository::open(&frond, "aside").unwrap();
    insert(&aside, "people", &[document! { "_id": 1_i32 }]);
    (frond, main)
}

fn erase(database: &Repository) {
    let request = EraseRequest {
        collection: "people".to_owned(),
        documents: vec![Value::Int32(ID).to_buf()],
        ..EraseRequest::default()
    };
    database.erase(&request).expect("it is there");
}

/// Files that hold the marker once what is dead was removed.
fn files_with_marker(frond: &Frond, disk: &SimDisk) -> Vec<String> {
    frond_vcs::reclaim(frond, 14 * 24 * 3600 * 1000, PURGE).unwrap();
    frond.engine().check().unwrap();
    let names = disk.machine().disk.list().expect("the disk works");
    let holds = |name: &String| {
        let bytes = disk.contents(name).unwrap_or_default();
        bytes.windows(MARKER.len()).any(|window| window == MARKER.as_bytes())
    };
    names.into_iter().filter(holds).collect()
}

/// Erases at the look `at`.
fn erasing(database: &Repository, at: usize) -> (Interrupt, Arc<AtomicUsize>) {
    let looks = Arc::new(AtomicUsize::new(0));
    let (database, count) = (database.clone(), Arc::clone(&looks));
    let interrupt = Interrupt::new(move || {
        if count.fetch_add(1, Ordering::SeqCst) == at {
            erase(&database);
        }
        Ok(())
    });
    (interrupt, looks)
}

fn aggregation(pipeline: ValueBuf, interrupt: Interrupt) -> AggregateRequest {
    AggregateRequest {
        pipeline,
        variables: None,
        collation: None,
        hint: None,
        in_memory_only: false,
        interrupt,
    }
}

#[test]
fn pipelines_write_nothing_that_was_erased_since_they_read_it() {
    let mut ended = 0;
    for pipeline in [
        "[{'$out': 'copy'}]",
        "[{'$out': 'people'}]",
        "[{'$match': {'age': {'$gte': 9}}}, {'$out': {'db': 'aside', 'coll': 'people'}}]",
        "[{'$merge': 'people'}]",
        "[{'$sort': {'age': -1}}, {'$merge': {'into': {'db': 'shop@side', 'coll': 'people'}}}]",
        "[{'$group': {'_id': '$name'}}, {'$merge': {'into': {'db': 'aside', 'coll': 'names'}}}]",
        "[{'$limit': 1}, {'$lookup': {'from': 'people', 'pipeline': [], 'as': 'all'}},
          {'$merge': 'copy'}]",
    ] {
        for at in 0..40 {
            let disk = SimDisk::new(5);
            let (frond, main) = people(&disk);
            // A scan asks now and then.
            let more: Vec<_> = (100..500)
                .map(|id| document! { "_id": id, "name": "someone", "age": id })
                .collect();
            insert(&main, "people", &more);
            let (interrupt, looks) = erasing(&main, at);
            let pipeline = json(&format!("{{'p': {pipeline}}}")).get("p").expect("it").to_buf();
            let request = aggregation(pipeline, interrupt);
            let run = || main.aggregate(Some("people"), &request)?.collect::<Result<Vec<_>, _>>();
            let result = run();
            if looks.load(Ordering::SeqCst) <= at {
                break; // It was over before.
            }
            match result {
                // It reads at a moment behind the erase.
                Ok(_) => {}
                Err(error) => {
                    assert_eq!(error.code, Code::QueryPlanKilled, "{at}: {error}");
                    ended += 1;
                }
            }
            assert_eq!(files_with_marker(&frond, &disk), Vec::<String>::new(), "at {at}");
        }
    }
    assert_met("ended", ended, 20);
}

#[test]
fn transactions_that_began_before_conflict() {
    let disk = SimDisk::new(6);
    let (frond, main) = people(&disk);
    let transaction = frond.begin();
    let within = transaction.database("shop").unwrap();
    let change = document! { "$inc": &document! { "age": 1_i32 } };
    let statements = [ID, 12].map(|id| UpdateStatement {
        ..UpdateStatement::new(document! { "_id": id }, change.clone())
    });
    let report = within.update("people", &statements, true, Durability::Synced).unwrap();
    assert_eq!(report.modified, 2);
    erase(&main);
    let error = transaction.commit(Durability::Synced, None).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict, "{error}");
    drop((transaction, within));
    assert_eq!(files_with_marker(&frond, &disk), Vec::<String>::new());
    assert_eq!(all(&main, "people").len(), 19);
}

#[test]
fn indexes_that_are_being_built_have_none_of_it() {
    let (mut built, mut amid) = (0, 0);
    for at in 0..12 {
        let disk = SimDisk::new(7);
        let (frond, main) = people(&disk);
        let (interrupt, looks) = erasing(&main, at);
        let spec = document! { "key": &document! { "name": 1_i32 } };
        let spec = IndexSpec::parse(spec.view()).unwrap();
        main.create_indexes_unless("people", &[spec], &interrupt).expect("it is built");
        amid += usize::from(at < looks.load(Ordering::SeqCst));
        if looks.load(Ordering::SeqCst) <= at {
            erase(&main);
        }
        assert_eq!(files_with_marker(&frond, &disk), Vec::<String>::new(), "at {at}");
        let found = super::find(&main, "people", None, Some("name_1"));
        assert_eq!(found.len(), 19);
        built += 1;
    }
    assert_met("built", built, 12);
    assert_met("erased amid the build", amid, 5);
}

#[test]
fn a_commit_that_is_judged_meanwhile_is_not_made() {
    let disk = SimDisk::new(8);
    let (frond, main) = people(&disk);
    let request = CommitRequest { message: Some("later".to_owned()), ..CommitRequest::default() };
    let judged = main.commit_to_judge(&request).unwrap();
    erase(&main);
    assert_eq!(main.commit_judged(&judged).unwrap_err().code, Code::QueryPlanKilled);
    drop(judged);
    assert_eq!(files_with_marker(&frond, &disk), Vec::<String>::new());
    main.commit_as(&request).expect("what is left of it");
}

/// A version that was opened before is what it was, as long as it is only read.
#[test]
fn a_version_that_is_open_brings_nothing_back() {
    let disk = SimDisk::new(12);
    let (frond, main) = people(&disk);
    let before = shop(&frond, "main~0");
    erase(&main);
    assert_eq!(all(&before, "people").len(), 20, "it isn't purged yet");
    let pipeline = json("{'p': [{'$out': {'db': 'aside', 'coll': 'copy'}}]}");
    let pipeline = pipeline.get("p").expect("it").to_buf();
    let request = aggregation(pipeline, Interrupt::default());
    let run = || before.aggregate(Some("people"), &request)?.collect::<Result<Vec<_>, _>>();
    for error in [
        run().unwrap_err(),
        before.create_branch("back", None).unwrap_err(),
        before.create_tag("back", None, None, false).unwrap_err(),
    ] {
        assert_eq!(error.code, Code::BadValue, "{error}");
        assert!(error.message.contains("is known no more"), "{error}");
    }
    assert_eq!(files_with_marker(&frond, &disk), Vec::<String>::new());
    assert_eq!(all(&shop(&frond, "main~0"), "people").len(), 19);
}

/// What is put aside for something that began before may hold it: that is told, until it has ended.
#[test]
fn what_began_before_is_counted_until_it_ends() {
    let (frond, main) = people(&SimDisk::new(10));
    let (before, other) = (frond.engine().store().session(), frond.engine().store().session());
    let request = EraseRequest {
        collection: "people".to_owned(),
        documents: vec![Value::Int32(ID).to_buf()],
        ..EraseRequest::default()
    };
    let dry = main.erase(&EraseRequest { dry_run: true, ..request.clone() }).unwrap();
    assert_eq!(dry.under_way(), 0, "nothing was erased");
    let erased = main.erase(&request).unwrap();
    let after = frond.engine().store().session();
    assert_eq!(erased.under_way(), 2);
    drop(before);
    assert_eq!(erased.under_way(), 1);
    drop(other);
    assert_eq!(erased.under_way(), 0);
    drop(after);
}

fn remote(frond: &Frond) -> DataRemote {
    DataRemote::new(frond.clone(), "shop").expect("a database's name")
}

fn quiet() -> impl FnMut(&Moved) {
    |_: &Moved| {}
}

fn refused<T: std::fmt::Debug>(result: Result<T, Error>, why: &str) {
    let error = result.expect_err("it would bring the erased back");
    assert_eq!(error.code, Code::IllegalOperation, "{error}");
    assert!(error.message.contains(why), "{error}");
}

/// A clone has the erased still: neither what is pushed from there nor what is fetched brings it
/// back, under whatever name, merged with what is here or not.
#[test]
fn clones_don_t_bring_it_back() {
    let disk = SimDisk::new(9);
    let (frond, main) = people(&disk);
    main.commit("all", "ada").unwrap();
    let there = super::new();
    let clone = shop(&there, "");
    clone.clone_from("elsewhere", &remote(&frond), &mut quiet()).unwrap();
    put(&clone, "people", &document! { "_id": 70_i32 }).unwrap();
    clone.commit("of the clone", "bob").unwrap();
    erase(&main);
    let push = |name: &str| {
        let request = PushRequest { branch: Some(name.to_owned()), ..PushRequest::default() };
        clone.push(ORIGIN, &remote(&frond), &request, &mut quiet())
    };
    refused(push("main"), "pull them first");
    refused(push("another"), "was erased from shop");
    main.add_remote("clone", "elsewhere").unwrap();
    refused(main.fetch("clone", &remote(&there), &mut quiet()), "was erased from shop");
    assert!(main.remote_branches(None).unwrap().is_empty());
    // As one does that is told to pull.
    clone.fetch(ORIGIN, &remote(&frond), &mut quiet()).unwrap();
    let request = MergeRequest { merge_in: "origin/main".to_owned(), ..MergeRequest::default() };
    clone.merge(&request).unwrap();
    refused(push("main"), "was erased from shop");
    assert_eq!(files_with_marker(&frond, &disk), Vec::<String>::new());
    // Once it is erased there, too, all goes on.
    erase(&clone);
    let made = super::new();
    let anew = shop(&made, "");
    anew.clone_from("elsewhere", &remote(&frond), &mut quiet()).unwrap();
    put(&anew, "people", &document! { "_id": 71_i32 }).unwrap();
    anew.commit("of the other clone", "bob").unwrap();
    anew.push(ORIGIN, &remote(&frond), &PushRequest::default(), &mut quiet()).unwrap();
    assert_eq!(all(&main, "people").len(), 20);
    let names: Vec<DocumentBuf> = all(&main, "people");
    assert!(names.iter().all(|person| person.get("name") != Some(Value::String(MARKER))));
    assert_eq!(files_with_marker(&frond, &disk), Vec::<String>::new());
}
