//! Goal: a backup is everything at one moment, taken while others write; restored, it is the same,
//! and whole. Method: writers that keep an invariant over two databases (the same count in both)
//! run while backups are taken of a data directory and of a server; each is restored and compared.

use std::sync::atomic::{AtomicBool, Ordering};

use frond_db::{Durability, Frond};
use frond_doc::document;
use frond_remote::HttpImage;
use frond_testkit::SimDisk;
use frond_vcs::Repository;
use frond_vcs::remote::{DataImage, ImageSource, Remote, Reread, RestoreRequest};

use super::bucket_storage::{bucket, open as open_place};
use super::http::serve_with_token;
use super::{all, insert, open, origin, quiet, shop, thing};

pub(crate) fn named(name: &str) -> RestoreRequest {
    RestoreRequest { name: Some(name.to_owned()), ..RestoreRequest::default() }
}

/// A restored data directory holds a state that a reader could have seen.
fn check(restored: &Frond) {
    let (left, right) = (shop(restored), Repository::open(restored, "other").expect("a name"));
    let counts = (all(&left).len() - 2_000, all(&right).len());
    assert_eq!(counts.0, counts.1, "both databases are of one moment");
    assert_eq!(left.status().expect("it is there").head, {
        let log = left.log_of(Default::default()).expect("a log").next();
        log.map(|commit| commit.expect("it can be read").id)
    });
    assert_eq!(left.list_tags().expect("tags").len(), 1);
    assert_eq!(left.list_branches().expect("branches").len(), 2);
    restored.engine().check().expect("it is whole");
}

#[test]
fn backups_while_others_write() {
    let (frond, main) = origin(1);
    let other = Repository::open(&frond, "other").expect("a name");
    let (server, options) = serve_with_token(&frond);
    let place = bucket("backups");
    let stop = AtomicBool::new(false);
    let mut moved = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0;
            while !stop.load(Ordering::SeqCst) {
                // One transaction over both.
                let transaction = frond.begin();
                for name in ["shop", "other"] {
                    let database = transaction.database(name).expect("a name");
                    let documents = [thing(100_000 + round, round)];
                    let report = database.insert("things", &documents, true, Durability::Relaxed);
                    assert!(report.expect("it is there").errors.is_empty());
                }
                if transaction.commit(Durability::Relaxed, None).is_ok() {
                    round += 1;
                }
                if round % 50 == 49 {
                    let _ = main.commit("more", "");
                }
            }
        });
        for number in 0..6 {
            let name = format!("backup {number}");
            let remote = open_place(&place);
            let image: Box<dyn ImageSource> = match number % 2 {
                0 => Box::new(DataImage::take(&frond).expect("an image")),
                _ => Box::new(HttpImage::take(&server.url(), &options).expect("an image")),
            };
            let report =
                remote.back_up(&name, &*image, Reread::Share, &mut quiet()).expect("a backup");
            assert!(report.backup.databases.contains(&"shop".to_owned()));
            assert_eq!((report.damages.len(), report.unread.len()), (0, 0));
            moved.push(report.moved.chunks);
        }
        stop.store(true, Ordering::SeqCst);
    });
    let _ = other;
    for number in 0..6 {
        let disk = SimDisk::new(50 + number);
        let name = format!("backup {number}");
        let report = open_place(&place).restore_on(&named(&name), &disk.machine(), &mut quiet());
        assert!(report.expect("a restore").moved.chunks > 20);
        let restored = open(&disk);
        check(&restored);
        // It can be written to, and lives on.
        insert(&shop(&restored), &[thing(-1, 0)]);
        shop(&restored).commit("after the restore", "").expect("a commit");
        restored.close().expect("it closes");
    }
    assert!(
        open_place(&place)
            .back_up("backup 0", &*take(&frond), Reread::Share, &mut quiet())
            .is_err()
    );
    // Without a change nearly nothing moves.
    let remote = open_place(&place);
    remote.back_up("last", &*take(&frond), Reread::Share, &mut quiet()).expect("a backup");
    let again = remote.back_up("again", &*take(&frond), Reread::Share, &mut quiet());
    let again = again.expect("a backup").moved;
    assert!(again.chunks < 10 && again.known < 10, "{again:?}, before {moved:?}");

    // Backups that were removed give their space back; the others stay whole.
    for number in 0..6 {
        remote.remove_backup(&format!("backup {number}")).expect("it is there");
    }
    remote.remove_backup("backup 0").expect_err("it is gone");
    let done = open_place(&place).reclaim(&mut |_| {}).expect("a collection");
    assert!(done.chunks_dead > 0, "{done:?}");
    let disk = SimDisk::new(99);
    open_place(&place)
        .restore_on(&Default::default(), &disk.machine(), &mut quiet())
        .expect("the last one");
    let restored = open(&disk);
    check(&restored);
    assert_eq!(all(&shop(&restored)), all(&main));
    open_place(&place)
        .restore_on(&Default::default(), &disk.machine(), &mut quiet())
        .expect_err("it is in use");
    assert_eq!(open_place(&place).state().expect("it answers"), None, "no repository lies there");
}

pub(crate) fn take(frond: &Frond) -> Box<dyn ImageSource> {
    Box::new(DataImage::take(frond).expect("an image"))
}

#[test]
fn a_backup_has_uncommitted_changes_and_waiting_merges() {
    let (frond, main) = origin(2);
    insert(&main, &[thing(5_000, 1)]);
    let documents = [document! { "_id": 1_i32 }];
    main.insert("not committed", &documents, true, Durability::Synced).expect("it is there");
    main.add_remote("origin", "/somewhere").expect("a good name");
    let before = main.status().expect("a status");
    let place = bucket("");
    open_place(&place)
        .back_up("one", &*take(&frond), Reread::Share, &mut quiet())
        .expect("a backup");
    let disk = SimDisk::new(3);
    open_place(&place)
        .restore_on(&Default::default(), &disk.machine(), &mut quiet())
        .expect("a restore");
    let restored = open(&disk);
    let after = shop(&restored);
    assert_eq!(all(&after), all(&main));
    assert_eq!(after.list_remotes().expect("remotes"), main.list_remotes().expect("remotes"));
    assert_eq!(format!("{:?}", after.status().expect("a status")), format!("{before:?}"));
    assert!(after.undo(None, None).is_ok(), "the reflog is there, too");
}

/// A dropped database's commits are in a backup, each of them: it is whole, and can come back.
#[test]
fn a_backup_has_the_history_of_a_dropped_database() {
    let (frond, main) = origin(2);
    for round in 0..3 {
        insert(&main, &[thing(6_000 + round, round)]);
        main.commit(&format!("round {round}"), "Ada").expect("a commit");
    }
    main.reset(Some("main~1"), true).expect("known");
    let (content, log) = (all(&main), |database: &Repository| {
        let log = database.log_of(Default::default()).expect("a log");
        log.map(|commit| commit.expect("it can be read").id).collect::<Vec<_>>()
    });
    let before = log(&main);
    let place = bucket("");
    // The next backup begins with what this one has.
    open_place(&place)
        .back_up("before", &*take(&frond), Reread::Share, &mut quiet())
        .expect("a backup");
    main.drop_database().expect("it is there");
    for name in ["one", "two"] {
        open_place(&place)
            .back_up(name, &*take(&frond), Reread::Share, &mut quiet())
            .expect("a backup");
        let disk = SimDisk::new(4);
        open_place(&place)
            .restore_on(&named(name), &disk.machine(), &mut quiet())
            .expect("a restore");
        let restored = open(&disk);
        restored.engine().check().expect("it is whole");
        let back = Repository::open(&restored, "back").expect("a name");
        back.undrop("shop").expect("it was dropped");
        assert_eq!(all(&back), content);
        assert_eq!(log(&back), before);
        for commit in &before {
            let version = Repository::open(&restored, &format!("back@{commit}")).expect("a commit");
            all(&version);
        }
    }
}
