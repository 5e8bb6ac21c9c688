//! Goal: what a database has beside commits and documents comes whole or not at all, and then that
//! is reported. Method: a database with policies, a remote, changes to undo and a merge that waits,
//! one of whose conflicts is resolved; restored from a backup and salvaged, whole and damaged.

use frond_db::UpdateStatement;
use frond_doc::extended_json;
use frond_testkit::random;

use super::*;
use crate::policy::commit_policy::CommitPolicy;
use crate::refs::reflog::RefChangeInfo;
use crate::{BranchPolicy, MergeRequest, Resolution};

fn replace(database: &Repository, id: i32, round: i32) {
    let statement = UpdateStatement::new(document! { "_id": id }, thing(id, round));
    let report = database.update("things", &[statement], true, Durability::Synced);
    assert!(report.expect("it is there").errors.is_empty());
}

/// Documents 4 and 8 conflict, and 8 is resolved; 11 merged; `extra` was dropped before.
fn make_waiting(disk: &SimDisk) -> Frond {
    let frond = open(disk);
    let main = Repository::open(&frond, "shop").expect("a name");
    insert(&main, &(0..400).map(|id| thing(id, 0)).collect::<Vec<_>>());
    main.create_collection("extra", document! {}.view()).expect("made");
    main.commit("first", "Ada").expect("a commit");
    main.create_branch("side", None).expect("a branch");
    main.create_branch("closed", None).expect("a branch");
    main.drop_collection("extra").expect("it is there");
    let side = Repository::open(&frond, "shop@side").expect("a branch");
    for (database, ids, round) in [(&side, [4, 8, 11], 71), (&main, [4, 8, 12], 72)] {
        ids.into_iter().for_each(|id| replace(database, id, round));
        database.commit("changed", "Ada").expect("a commit");
    }
    let policy = BranchPolicy { closed: true, ..BranchPolicy::default() };
    main.set_branch_policy("closed", policy).expect("it is there");
    main.add_remote("origin", "http://origin.example:9000/shop").expect("a good name");
    let policy = r#"{"everySeconds": 86400, "branches": ["side"]}"#;
    let policy = extended_json::parse(policy).expect("JSON");
    let policy = CommitPolicy::parse(policy.view(), frond.now_millis()).expect("a good policy");
    main.set_commit_policy(Some(&policy)).expect("a good policy");
    main.merge(&MergeRequest { merge_in: "side".to_owned(), ..MergeRequest::default() })
        .expect("it waits");
    let conflicts = main.conflicts(None).expect("it waits");
    main.resolve_conflict(&conflicts[1].id, &Resolution::Theirs).expect("a conflict");
    insert(&main, &[thing(9_000, 9)]);
    frond
}

/// All that a user sees of it.
fn seen(frond: &Frond) -> String {
    let shop = Repository::open(frond, "shop").expect("a name");
    format!(
        "{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
        shop.status(),
        shop.conflicts(None),
        shop.branch_policy("closed"),
        shop.list_remotes(),
        shop.commit_policy().map(|policy| policy.map(|policy| policy.to_document().clone())),
        shop.reflog(None).map(|changes| {
            let change = |change: RefChangeInfo| (change.change, change.branch, change.why);
            changes.into_iter().map(change).collect::<Vec<_>>()
        }),
        all(&shop),
    )
}

#[test]
fn a_database_comes_with_what_it_has_beside_its_commits() {
    let disk = SimDisk::new(11);
    let frond = make_waiting(&disk);
    let expected = seen(&frond);
    let place = SimDisk::new(12);
    let opened = || PlainRemote::open(&place.machine()).expect("it opens");
    let image = DataImage::take(&frond).expect("an image");
    opened().back_up("tuesday", &image, Reread::Share, &mut |_| {}).expect("a backup");
    drop(image);
    let disk = disk.kill();
    for salvages in [false, true] {
        let (left, to) = (SimDisk::new(13), SimDisk::new(14));
        let target = open(&to);
        let request = PartRequest { backup: None, database: "shop".to_owned(), collection: None };
        let report = match salvages {
            true => salvage_on((&disk.machine(), &left.machine()), None, &target, &mut |_| {}),
            false => part::restore_on(opened(), &request, &left.machine(), &target),
        };
        let report = report.expect("it is there");
        assert!(report.is_whole(), "{report:?}");
        target.close().expect("it closes");
        drop(target);
        let target = open(&to);
        assert_eq!(seen(&target), expected, "{salvages}");

        // The merge goes on, and what was done before can be undone.
        let shop = Repository::open(&target, "shop").expect("a name");
        assert!(shop.merge_continue(None, None).is_err(), "a conflict is left");
        let conflicts = shop.conflicts(None).expect("it waits");
        let left = shop.resolve_conflict(&conflicts[0].id, &Resolution::Theirs);
        assert_eq!(left.expect("a conflict"), 0);
        shop.merge_continue(None, None).expect("none is left");
        for (id, round) in [(4, 71), (8, 71), (11, 71), (12, 72), (9_000, 9)] {
            assert_eq!(all(&shop)[&id], thing(id as i32, round), "{id}");
        }
        let changes = shop.reflog(Some("main")).expect("it is there");
        let dropped = changes.iter().find(|change| change.collection.is_some());
        shop.undo(None, dropped.map(|change| change.change)).expect("it comes back");
        let names = shop.list_collections().expect("they can be listed");
        assert!(names.iter().any(|collection| collection.name == "extra"));
        target.engine().check().expect("what was made is whole");
    }
}

/// A merge whose conflicts can't all be read must not seem to have fewer of them.
#[test]
fn a_damaged_merge_comes_whole_or_is_reported() {
    let whole = SimDisk::new(21);
    make_waiting(&whole).close().expect("it closes");
    let (mut come, mut reported) = (0, 0);
    random::for_seeds(60, |mut random| {
        let disk = whole.copy(random.next());
        let what: Vec<String> = (0..2).map(|_| damage(&mut random, &disk)).collect();
        let target = open(&SimDisk::new(random.next()));
        let machines = (&disk.machine(), &SimDisk::new(random.next()).machine());
        let Ok(report) = salvage_on(machines, None, &target, &mut |_| {}) else { return };
        let shop = Repository::open(&target, "shop").expect("a name");
        let waits =
            shop.exists().expect("known") && shop.status().expect("a status").merging.is_some();
        if waits {
            come += 1;
            let ids: Vec<_> = shop.conflicts(None).expect("it waits").into_iter().collect();
            assert_eq!(ids.len(), 1, "{what:?}: {report:?}");
            assert_eq!(ids[0].theirs, Some(thing(4, 71)), "{what:?}");
        } else {
            reported += 1;
            assert!(!report.is_whole(), "{what:?}");
        }
        target.engine().check().expect("what was made is whole");
    });
    assert!(0 < come && 0 < reported, "{come} came, {reported} did not");
}
