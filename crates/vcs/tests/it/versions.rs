//! Goal: names of versions in a diff, an undo and the doctor mean what they say. Method: histories
//! in which the one that stands beside the right one would answer otherwise.

use frond_db::collection::Effort;
use frond_db::{
    ChangeRetention, ChangeStream, ChangeStreamRequest, Error, FrondOptions, Interrupt,
    StreamStart, Watched,
};
use frond_doc::{DocumentBuf, Value, document};
use frond_query::Code;
use frond_testkit::SimDisk;
use frond_vcs::{CommitRequest, DiffDetail, DiffRequest, Repository};

use super::{all, insert, merge, new, put, shop};

fn thing(id: i32) -> DocumentBuf {
    document! { "_id": id }
}

fn commit(database: &Repository, ids: &[i32]) -> String {
    insert(database, "things", &ids.iter().map(|id| thing(*id)).collect::<Vec<_>>());
    database.commit("one more", "Ada").expect("something changed").id.to_string()
}

/// Both branches merged what the other was: their last common commits are main's third and the
/// side's second, and a merge begins with the later.
#[test]
fn a_diff_of_branches_that_crossed_begins_with_the_later_of_their_bases() {
    let frond = new();
    let main = shop(&frond, "");
    commit(&main, &[1]);
    main.create_branch("side", None).expect("a good name");
    let side = shop(&frond, "side");
    commit(&main, &[2]);
    let third = commit(&main, &[3]);
    commit(&side, &[10]);
    merge(&main, "side").expect("merges");
    merge(&side, &third).expect("merges");
    commit(&side, &[11]);
    let added =
        |range: &str| main.diff(Some(range), None).expect("both are there")[0].added.clone();
    assert_eq!(added("main...side"), [thing(10), thing(11)]);
    assert_eq!(added("side...main"), [thing(10)]);
}

#[test]
fn before_the_first_commit_head_is_empty_and_other_names_are_none() {
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &[thing(1)]);
    assert_eq!(main.diff(None, None).expect("HEAD is empty")[0].added, [thing(1)]);
    assert_eq!(main.diff(Some("HEAD"), None).expect("HEAD is empty")[0].added, [thing(1)]);
    assert!(main.diff(Some("HEAD"), Some("main")).expect("both are empty").is_empty());
    assert!(main.diff(Some("nowhere"), None).is_err());
}

#[test]
fn a_diff_has_a_row_for_options_that_changed() {
    let frond = new();
    let main = shop(&frond, "");
    commit(&main, &[1]);
    let rule = super::support::json("{'a': {'$gt': 0}}");
    let options = document! { "validator": &rule };
    main.change_collection("things", options.view()).expect("a good validator");
    let rows = main.diff_rows(&DiffRequest::default()).expect("a diff");
    let rows = rows.collect::<Result<Vec<_>, _>>().expect("a diff");
    let [DiffDetail::Options { from, to }] =
        rows.iter().map(|row| &row.detail).collect::<Vec<_>>()[..]
    else {
        panic!("{rows:?}");
    };
    assert_eq!((from.get("validator"), to.get("validator")), (None, Some(Value::from(&rule))));
}

#[test]
fn an_explained_diff_shows_its_rows_and_its_time() {
    let frond = new();
    let main = shop(&frond, "");
    commit(&main, &[1]);
    insert(&main, "things", &[thing(2), thing(3)]);
    let stages = super::support::value("[{'$diff': {}}]");
    let stages = stages.as_value().as_array().expect("one stage");
    let explained = |effort| {
        let plan = main.explain_source(Some("things"), stages, effort).expect("a good stage");
        plan.expect("it tells of history").0
    };
    let plan = explained(Effort::Run);
    assert_eq!(plan.get("nReturned"), Some(Value::Int64(2)));
    let millis = plan.get("executionTimeMillisEstimate").and_then(|millis| millis.as_integer());
    assert!(millis.is_some_and(|millis| millis >= 0), "{plan:?}");
    assert_eq!(explained(Effort::Plan).get("nReturned"), None);
}

/// HEAD has the collection otherwise than it was when the branch was reset.
#[test]
fn an_undone_reset_brings_back_a_collection_dropped_since() {
    let frond = new();
    let main = shop(&frond, "");
    commit(&main, &[1]);
    put(&main, "things", &document! { "_id": 2_i32 }).expect("written");
    main.reset(None, true).expect("HEAD is there");
    let reset = main.reflog(Some("main")).expect("a reflog")[0].change;
    assert_eq!(all(&main, "things"), [thing(1)]);
    assert!(main.drop_collection("things").expect("it is there"));
    main.undo(None, Some(reset)).expect("a reset can be undone");
    assert_eq!(all(&main, "things"), [thing(1), thing(2)]);
}

#[test]
fn the_doctor_counts_databases_branches_and_commits() {
    let directory = std::env::temp_dir().join(format!("frond-vcs-doctor-{}", std::process::id()));
    let frond = frond_vcs::open(&directory, FrondOptions::default()).expect("opens");
    let main = shop(&frond, "");
    commit(&main, &[1]);
    main.create_branch("side", None).expect("a good name");
    commit(&shop(&frond, "side"), &[2]);
    commit(&Repository::open(&frond, "other").expect("a good name"), &[1]);
    frond.close().expect("closes");
    drop((main, frond));
    let health = frond_vcs::health(&directory).expect("it is whole");
    assert_eq!((health.databases, health.branches, health.commits), (2, 3, 3));
    std::fs::remove_dir_all(&directory).expect("removed");
}

#[test]
fn keys_of_time_series_points_are_not_erased() {
    let frond = new();
    let main = shop(&frond, "");
    let options = super::support::json("{'timeseries': {'timeField': 't', 'metaField': 'm'}}");
    main.create_collection("points", options.view()).expect("a good series");
    let point = document! { "t": Value::DateTime(1), "m": 1_i32, "v": 1_i32 };
    insert(&main, "points", &[point]);
    main.commit("a point", "Ada").expect("something changed");
    let erase = |field: &str| {
        main.erase(&frond_vcs::EraseRequest {
            collection: "points".to_owned(),
            documents: Vec::new(),
            fields: vec![field.to_owned()],
            dry_run: false,
        })
    };
    for field in ["t", "m", "m.a"] {
        assert_eq!(erase(field).expect_err("points lie by it").code, Code::BadValue, "{field}");
    }
    erase("v").expect("points do not lie by it");
    assert_eq!(all(&main, "points")[0].get("v"), None);
}

/// No event reports the branch's former documents, so a stream must not go on as if nothing had
/// come.
#[test]
fn a_stream_does_not_pass_over_a_branch_that_came_back() {
    let mut options = FrondOptions::default();
    options.engine.changes =
        ChangeRetention { seconds: 3_600, bytes: 64 << 20, ..ChangeRetention::default() };
    let frond = frond_vcs::open_on(&SimDisk::new(1).machine(), options).expect("opens");
    let main = shop(&frond, "");
    commit(&main, &[1]);
    main.create_branch("side", None).expect("a good name");
    let watch = |start| {
        let watched = Watched::Database((*shop(&frond, "side")).clone());
        let request = ChangeStreamRequest { start, ..ChangeStreamRequest::default() };
        frond.watch(watched, &request).expect("it is kept")
    };
    let count_events = |stream: &mut ChangeStream| -> Result<usize, Error> {
        frond.flush()?;
        let mut count = 0;
        while stream.next(&Interrupt::default())?.is_some() {
            count += 1;
        }
        Ok(count)
    };
    let mut stream = watch(StreamStart::Now);
    insert(&shop(&frond, "side"), "things", &[thing(2)]);
    assert_eq!(count_events(&mut stream).expect("an insert"), 1);
    main.delete_branch("side", true).expect("forced");
    assert!(count_events(&mut stream).expect("the end") > 0);
    main.undo(Some("side"), None).expect("it comes back");
    let mut after = watch(StreamStart::After(stream.token()));
    let error = count_events(&mut after).expect_err("all that came back is new");
    assert_eq!(error.code, Code::ChangeStreamHistoryLost);
}

/// Until a commit that is judged is a branch's, its working state may come to be what HEAD has: of
/// these collections nothing is written down, and they are what they are all the same.
#[test]
fn what_went_back_to_head_while_a_commit_was_judged_stays_so() {
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "kept", &[thing(1)]);
    insert(&main, "dropped", &[thing(2)]);
    insert(&main, "old", &[thing(3)]);
    main.commit("first", "").unwrap();
    put(&main, "kept", &document! { "_id": 1_i32, "a": "changed" }).unwrap();
    main.drop_collection("dropped").unwrap();
    main.drop_collection("old").unwrap();
    insert(&main, "new", &[thing(4)]);
    insert(&main, "renamed", &[thing(5)]);
    insert(&main, "written", &[thing(6)]);
    let request = CommitRequest { message: Some("second".to_owned()), ..CommitRequest::default() };
    let judged = main.commit_to_judge(&request).unwrap();
    main.drop_collection("new").unwrap();
    main.rename_collection("renamed", "other", false).unwrap();
    main.restore_collection("kept", None).unwrap();
    main.restore_collection("dropped", None).unwrap();
    insert(&main, "written", &[thing(7)]);
    let state = |database: &Repository| -> Vec<(String, Vec<DocumentBuf>)> {
        let names = database.list_collections().unwrap().into_iter().map(|found| found.name);
        names.map(|name| (name.clone(), all(database, &name))).collect()
    };
    let before = state(&main);
    let committed = main.commit_judged(&judged).unwrap().id;
    assert_eq!(state(&main), before);
    let names = |database: &Repository| -> Vec<String> {
        state(database).into_iter().map(|(name, _)| name).collect()
    };
    assert_eq!(names(&shop(&frond, &committed.to_string())), ["kept", "new", "renamed", "written"]);
    assert_eq!(names(&main), ["dropped", "kept", "other", "written"]);
    main.commit("third", "").expect("that is what changed since");
    assert_eq!(state(&shop(&frond, "HEAD")), before);
}
