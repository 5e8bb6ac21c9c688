//! Clone, fetch, pull and push: between data directories, and with a plain directory between them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use frond_db::{Code, Error, Frond, Interrupt, ReclaimOptions};
use frond_doc::{DocumentBuf, document, extended_json};
use frond_store::{Chunk, ChunkHash};
use frond_vcs::Repository;
use frond_vcs::remote::{
    DataRemote, Depth, Moved, ORIGIN, PlainRemote, PushRequest, RefUpdate, Remote, RemoteState,
    WatchedRemote,
};
use frond_vcs::{CommitPolicy, LogRequest, MergeOutcome, MergeRequest};

use super::*;

fn quiet() -> impl FnMut(&Moved) {
    |_: &Moved| {}
}

/// A shop with an index, two branches and a tag; some documents lie out of line.
fn origin() -> (Frond, Repository) {
    origin_on(&SimDisk::new(1))
}

/// The same, on a disk: another seed is another repository.
fn origin_on(disk: &SimDisk) -> (Frond, Repository) {
    let frond = open(disk);
    let main = shop(&frond, "");
    let long = "x".repeat(50_000);
    let documents: Vec<DocumentBuf> = (0..3_000)
        .map(|id: i32| {
            let text = if id % 500 == 0 { long.as_str() } else { "short" };
            document! { "_id": id, "a": id % 10, "text": text }
        })
        .collect();
    insert(&main, "things", &documents);
    index(&main, "things", document! { "a": 1_i32 }, false);
    main.commit("first", "Ada").unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    put(&side, "things", &document! { "_id": 7_i32, "a": 77_i32 }).unwrap();
    side.commit("side", "Bob").unwrap();
    main.create_tag("v1", None, Some(("one", "Ada")), false).unwrap();
    (frond, main)
}

fn clone_of(remote: &dyn Remote) -> (Frond, Repository) {
    let frond = new();
    let database = shop(&frond, "");
    database.clone_from("elsewhere", remote, &mut quiet()).expect("the clone comes");
    (frond, database)
}

fn data(frond: &Frond) -> DataRemote {
    DataRemote::new(frond.clone(), "shop").expect("a database's name")
}

/// Goal: a push brings nothing that the remote's commit policy forbids, as new commits or by moving
/// a branch to what is there already.
#[test]
fn a_push_passes_the_rules_of_the_policy() {
    let (there, main) = origin();
    let (_here, local) = clone_of(&data(&there));
    let rules = r#"{"rules": [{"name": "small", "collection": "things",
                     "documents": {"a": {"$lt": 50}}}]}"#;
    let rules = extended_json::parse(rules).expect("JSON");
    let policy = CommitPolicy::parse(rules.view(), 0).expect("a policy");
    main.set_commit_policy(Some(&policy)).unwrap();
    let head = main.log(Some(1), None).unwrap()[0].id;
    let push = |from: &Repository, branch: &str| {
        let request = PushRequest { branch: Some(branch.to_owned()), ..PushRequest::default() };
        from.push(ORIGIN, &data(&there), &request, &mut quiet())
    };
    let refused = |from: &Repository, branch: &str| {
        let error = push(from, branch).expect_err("the policy forbids it");
        assert_eq!(error.code.name(), "DocumentValidationFailure", "{}", error.message);
        assert!(error.message.contains("rule small"), "{}", error.message);
        assert_eq!(main.log(Some(1), None).unwrap()[0].id, head);
    };
    // Commits that were there before the policy, on another branch.
    local.create_branch("mine", Some("origin/side")).unwrap();
    let mine = Repository::open(local.frond(), "shop@mine").unwrap();
    refused(&mine, "main");
    // Nor below a commit that is right.
    put(&mine, "things", &document! { "_id": 6_i32, "a": 6_i32 }).unwrap();
    mine.commit("on top of it", "Eve").unwrap();
    refused(&mine, "main");
    mine.reset(Some("mine~1"), true).unwrap();
    put(&local, "things", &document! { "_id": 8_i32, "a": 88_i32 }).unwrap();
    local.commit("too much", "Eve").unwrap();
    refused(&local, "main");
    refused(&local, "new");
    assert_eq!(main.list_branches().unwrap().len(), 2);
    put(&local, "things", &document! { "_id": 8_i32, "a": 8_i32 }).unwrap();
    local.commit("enough", "Eve").unwrap();
    // Each commit is asked, as if it were made there.
    refused(&local, "main");
    local.reset(Some("main~2"), true).unwrap();
    put(&local, "things", &document! { "_id": 9_i32, "a": 9_i32 }).unwrap();
    local.commit("right", "Eve").unwrap();
    push(&local, "main").expect("nothing is wrong with it");
    assert_eq!(all(&main, "things"), all(&local, "things"));
    // A branch that begins with what is there is no change of it.
    push(&Repository::open(local.frond(), "shop@mine").unwrap(), "mine").expect("a new branch");
}

fn everything(database: &Repository) -> Vec<(String, Vec<DocumentBuf>)> {
    let collections = database.list_collections().unwrap().into_iter();
    collections.map(|found| (found.name.clone(), all(database, &found.name))).collect()
}

fn push(database: &Repository, remote: &dyn Remote) -> Result<Moved, Error> {
    let request = PushRequest { tags: true, ..PushRequest::default() };
    database.push(ORIGIN, remote, &request, &mut quiet()).map(|report| report.moved)
}

#[test]
fn a_clone_is_the_same_and_later_only_what_is_new_moves() {
    let (frond, main) = origin();
    let remote = data(&frond);
    let (there, clone) = clone_of(&remote);
    assert_eq!(everything(&clone), everything(&main));
    assert_eq!(everything(&shop(&there, "v1")), everything(&main));
    assert_eq!(everything(&shop(&there, "origin%2Fside")), everything(&shop(&frond, "side")));
    let found = find(&clone, "things", Some(document! { "a": 3_i32 }), Some("a_1"));
    assert_eq!(found.len(), 300);
    assert_eq!(clone.list_remotes().unwrap()[0].url, "elsewhere");
    assert_eq!(clone.status().unwrap().head, main.status().unwrap().head);
    assert!(clone.clone_from("x", &remote, &mut quiet()).is_err(), "it exists");
    there.engine().check().unwrap();

    // One document changed there: a path of the tree moves, whatever lies beside it.
    put(&main, "things", &document! { "_id": 9_i32, "a": 99_i32 }).unwrap();
    main.commit("second", "Ada").unwrap();
    let report = clone.fetch(ORIGIN, &remote, &mut quiet()).unwrap();
    assert_eq!(report.branches.len(), 1);
    assert_eq!((report.moved.commits, report.moved.commits_done), (1, 1));
    assert!(report.moved.chunks < 15, "{:?}", report.moved);
    assert_ne!(everything(&clone), everything(&main), "nothing of this directory moved");
    let nothing = clone.fetch(ORIGIN, &remote, &mut quiet()).unwrap();
    assert!(nothing.branches.is_empty() && nothing.moved == Moved::default());

    // A pull is a fetch and a merge.
    put(&clone, "things", &document! { "_id": 10_i32, "a": 100_i32 }).unwrap();
    clone.commit("ours", "Carl").unwrap();
    let (_, outcome) =
        clone.pull(ORIGIN, &remote, None, MergeRequest::default(), &mut quiet()).unwrap();
    assert!(matches!(outcome, MergeOutcome::Merged { .. }), "{outcome:?}");
    let moved = push(&clone, &remote).unwrap();
    assert_eq!(moved.commits, 2);
    assert!(moved.chunks < 30, "{moved:?}");
    assert_eq!(everything(&clone), everything(&main), "the branch there moved, with its state");
    assert_eq!(find(&main, "things", Some(document! { "a": 100_i32 }), Some("a_1")).len(), 1);
    assert!(main.undo(None, None).is_ok(), "and can be moved back there");
    frond.engine().check().unwrap();
}

#[test]
fn a_push_loses_no_commits() {
    let (frond, main) = origin();
    let remote = data(&frond);
    let (_there, clone) = clone_of(&remote);
    put(&clone, "things", &document! { "_id": 1_i32, "a": 1_i32, "by": "clone" }).unwrap();
    clone.commit("clone's", "").unwrap();
    put(&main, "things", &document! { "_id": 2_i32, "a": 1_i32, "by": "main" }).unwrap();
    let error = push(&clone, &remote).unwrap_err();
    assert!(error.message.contains("not committed"), "{error}");
    main.commit("main's", "").unwrap();
    assert!(push(&clone, &remote).unwrap_err().message.contains("pull"));
    let force = PushRequest { force_with_lease: true, ..PushRequest::default() };
    // Not even by force: what came since was not seen.
    assert!(clone.push(ORIGIN, &remote, &force, &mut quiet()).is_err());
    clone.fetch(ORIGIN, &remote, &mut quiet()).unwrap();
    assert!(push(&clone, &remote).is_err());
    let protected = frond_vcs::BranchPolicy { protected: true, ..Default::default() };
    main.set_branch_policy("main", protected).unwrap();
    assert!(clone.push(ORIGIN, &remote, &force, &mut quiet()).is_err(), "it is protected");
    let closed = frond_vcs::BranchPolicy { closed: true, ..Default::default() };
    main.set_branch_policy("main", closed).unwrap();
    let error = clone.push(ORIGIN, &remote, &force, &mut quiet()).unwrap_err();
    assert_eq!(error.code, frond_query::Code::UserWritesBlocked, "{error}");
    main.set_branch_policy("main", Default::default()).unwrap();
    let report = clone.push(ORIGIN, &remote, &force, &mut quiet()).unwrap();
    assert_eq!(Some(report.to), clone.status().unwrap().head);
    assert_eq!(everything(&main), everything(&clone));
    // To a branch of another name, which is made.
    let named = PushRequest { branch: Some("new/name".to_owned()), ..PushRequest::default() };
    clone.push(ORIGIN, &remote, &named, &mut quiet()).unwrap();
    assert_eq!(everything(&shop(&frond, "new%2Fname")), everything(&clone));
    // Another origin altogether.
    let (other, _) = origin_on(&SimDisk::new(2));
    assert!(clone.fetch("other", &data(&other), &mut quiet()).is_err());
    assert!(push(&clone, &data(&other)).is_err());
}

#[test]
fn a_tag_of_another_commit_stays_and_is_reported() {
    let (frond, main) = origin();
    let (_there, clone) = clone_of(&data(&frond));
    let before = clone.list_tags().unwrap();
    main.delete_tag("v1").unwrap();
    put(&main, "things", &document! { "_id": 9_i32, "a": 99_i32 }).unwrap();
    main.commit("second", "Ada").unwrap();
    main.create_tag("v1", None, None, false).unwrap();
    let report = clone.fetch(ORIGIN, &data(&frond), &mut quiet()).unwrap();
    assert_eq!((report.tags_kept, report.tags), (vec!["v1".to_owned()], Vec::new()));
    assert_eq!(clone.list_tags().unwrap(), before);
    let again = clone_of(&data(&frond)).1.fetch(ORIGIN, &data(&frond), &mut quiet()).unwrap();
    assert!(again.tags_kept.is_empty(), "the same tag is no news");
}

#[test]
fn a_plain_directory_lies_between() {
    let (_frond, main) = origin();
    let disk = SimDisk::new(7);
    let open = || PlainRemote::open(&disk.machine()).expect("a good directory");
    assert_eq!(open().state().unwrap(), None);
    let first = push(&main, &open()).unwrap();
    assert!(first.chunks > 20, "{first:?}");
    let state: RemoteState = open().state().unwrap().expect("it is there now");
    assert_eq!(state.branches.keys().collect::<Vec<_>>(), ["main"]);
    assert_eq!(state.tags.keys().collect::<Vec<_>>(), ["v1"]);
    assert_eq!(push(&main, &open()).unwrap(), Moved::default());

    let (there, clone) = clone_of(&open());
    assert_eq!(everything(&clone), everything(&main));
    assert_eq!(everything(&shop(&there, "v1")), everything(&main));
    put(&clone, "things", &document! { "_id": 5_i32, "a": 55_i32 }).unwrap();
    clone.commit("by the clone", "").unwrap();
    let stale = open();
    let second = push(&clone, &open()).unwrap();
    assert!(second.chunks < 15, "{second:?}");
    // A remote that was opened before sees later commits.
    let (_, outcome) =
        main.pull(ORIGIN, &stale, None, MergeRequest::default(), &mut quiet()).unwrap();
    assert!(matches!(outcome, MergeOutcome::FastForward { .. }));
    assert_eq!(everything(&clone), everything(&main));
    there.engine().check().unwrap();

    // A pack in which a bit is flipped is damage, never another document.
    let packs: Vec<String> = disk.machine().disk.list().unwrap();
    let pack = packs.iter().find(|name| name.starts_with("pack-")).unwrap();
    disk.flip_bit(pack, 8 * 2_000);
    let frond = new();
    let damaged = shop(&frond, "").clone_from("plain", &open(), &mut quiet()).unwrap_err();
    assert_eq!(damaged.kind, frond_db::ErrorKind::Damaged, "{damaged}");
}

#[test]
fn of_two_pushes_at_once_one_is_reported() {
    let (_frond, main) = origin();
    let disk = SimDisk::new(3);
    let remote = PlainRemote::open(&disk.machine()).unwrap();
    push(&main, &remote).unwrap();
    let head = remote.state().unwrap().unwrap().branches["main"];
    let update = |expected: Option<ChunkHash>| RefUpdate {
        salt: remote_salt(&disk),
        default_branch: "main".to_owned(),
        branch: "main".to_owned(),
        expected,
        new: head,
        force: false,
        commits: Vec::new(),
        tags: Vec::new(),
    };
    assert!(remote.update(&update(Some(head))).is_ok());
    assert!(remote.update(&update(None)).is_err());
    assert!(remote.update(&update(Some(ChunkHash([1; 32])))).is_err());
    let other = RefUpdate { salt: 1, ..update(Some(head)) };
    assert!(remote.update(&other).is_err());
}

fn remote_salt(disk: &SimDisk) -> u64 {
    PlainRemote::open(&disk.machine()).unwrap().state().unwrap().unwrap().salt
}

/// A remote that breaks after so many chunks.
struct Cut<'a> {
    remote: &'a dyn Remote,
    left: AtomicUsize,
}

impl Cut<'_> {
    fn after(left: usize, remote: &dyn Remote) -> Cut<'_> {
        Cut { remote, left: AtomicUsize::new(left) }
    }

    fn spend(&self, chunks: usize) -> Result<(), Error> {
        let spend = |left: usize| left.checked_sub(chunks);
        let spent = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, spend);
        spent.map(drop).map_err(|_| Error::unavailable("the line was cut"))
    }
}

impl Remote for Cut<'_> {
    fn state(&self) -> Result<Option<RemoteState>, Error> {
        self.remote.state()
    }
    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, Error> {
        self.remote.has_many(hashes)
    }
    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        self.spend(hashes.len())?;
        self.remote.get_many(hashes)
    }
    fn put_many(&self, chunks: &[Chunk]) -> Result<(), Error> {
        self.spend(chunks.len())?;
        self.remote.put_many(chunks)
    }
    fn update(&self, update: &RefUpdate) -> Result<(), Error> {
        self.remote.update(update)
    }
}

/// What is here already takes time, and nothing from the remote.
#[test]
fn a_transfer_of_what_is_here_is_stopped_amid() {
    let (there, _) = origin();
    let (here, _) = clone_of(&data(&there));
    let clone = |name: &str, batches_max: usize| {
        let batches = AtomicUsize::new(0);
        let done = Arc::new(AtomicUsize::new(0));
        let looked_at = Arc::clone(&done);
        let interrupt = Interrupt::new(move || match looked_at.load(Ordering::SeqCst) {
            count if count < batches_max => Ok(()),
            _ => Err(Error::invalid(Code::Interrupted, "enough")),
        });
        let watched = WatchedRemote::new(Box::new(data(&there)), interrupt);
        let copy = Repository::open(&here, name).unwrap();
        let report = copy.clone_from("x", &watched, &mut |moved| {
            batches.fetch_add(1, Ordering::SeqCst);
            if 0 < moved.known {
                done.fetch_add(1, Ordering::SeqCst);
            }
        });
        (report.map(|report| report.moved), batches.into_inner(), copy)
    };
    let (whole, batches, _) = clone("whole", usize::MAX);
    let moved = whole.unwrap();
    assert!(3 < batches && moved.looked_at() == moved.found, "{batches} batches: {moved:?}");
    assert!(moved.known > 3 * moved.chunks, "{moved:?}");
    let (stopped, until, copy) = clone("stopped", 1);
    assert_eq!(stopped.unwrap_err().code, Code::Interrupted);
    assert!(until < batches && !copy.exists().unwrap(), "{until} of {batches}");
}

#[test]
fn transfers_keep_what_came_before_a_cut() {
    let (frond, main) = origin();
    let remote = data(&frond);
    let (whole, _) = {
        let (there, clone) = clone_of(&remote);
        (everything(&clone), there)
    };
    for left in [0, 1, 3, 10, 40, 80, 150] {
        let there = new();
        let clone = shop(&there, "");
        let cut = &Cut::after(left, &remote);
        let was_cut = clone.clone_from("x", cut, &mut quiet()).is_err();
        assert!(was_cut || left > 10, "{left}");
        if was_cut {
            assert!(!clone.exists().unwrap(), "nothing is half there");
            let report = clone.clone_from("x", &remote, &mut quiet()).unwrap();
            assert!(left < 10 || report.moved.known > 0, "{left}: {:?}", report.moved);
        }
        assert_eq!(everything(&clone), whole, "{left}");
        there.engine().check().unwrap();
    }
    // The same outwards: the directory there keeps what came, and no ref moved.
    let disk = SimDisk::new(5);
    let plain = PlainRemote::open(&disk.machine()).unwrap();
    assert!(push(&main, &Cut::after(8, &plain)).is_err());
    assert_eq!(plain.state().unwrap(), None);
    let again = push(&main, &plain).unwrap();
    assert!(again.known > 0, "{again:?}");
    let (_, clone) = clone_of(&PlainRemote::open(&disk.machine()).unwrap());
    assert_eq!(everything(&clone), whole);
}

#[test]
fn histories_with_merges_move_whole() {
    let (frond, main) = origin();
    for round in 0..4_i32 {
        let side = shop(&frond, "side");
        put(&side, "things", &document! { "_id": 100 + round, "a": 5_i32 }).unwrap();
        side.commit(&format!("side {round}"), "").unwrap();
        put(&main, "things", &document! { "_id": 200 + round, "a": 6_i32 }).unwrap();
        main.drop_collection("other").unwrap();
        insert(&main, "other", &[document! { "_id": round }]);
        main.commit(&format!("main {round}"), "").unwrap();
        merge(&main, "side").unwrap();
        if round == 1 {
            merge(&side, "main").unwrap();
        }
    }
    let remote = data(&frond);
    let (there, clone) = clone_of(&remote);
    let history_of = |database: &Repository| -> Vec<String> {
        let log = database.log_of(LogRequest::default()).unwrap();
        log.map(|commit| commit.unwrap().id.to_string()).collect()
    };
    assert_eq!(history_of(&clone), history_of(&main));
    for commit in history_of(&main) {
        assert_eq!(everything(&shop(&there, &commit)), everything(&shop(&frond, &commit)));
    }
    clone.remove_remote(ORIGIN).unwrap();
    assert!(clone.remote_branches(None).unwrap().is_empty());
    assert!(Repository::open(&there, "shop@origin%2Fmain").is_err());
    clone.add_remote("up", "somewhere").unwrap();
    assert!(clone.add_remote("up", "somewhere").is_err());
    for place in ["http://user:secret@h/x", "https://secret@h"] {
        let message = clone.add_remote("by", place).unwrap_err().message;
        assert!(message.contains("names no user") && !message.contains("secret"), "{message}");
    }
    assert!(clone.add_remote("a/b", "somewhere").is_err());
    assert!(clone.remote_url("down").is_err());
}

fn log_of(database: &Repository) -> Vec<String> {
    let log = database.log_of(LogRequest::default()).unwrap();
    log.map(|commit| commit.expect("history ends cleanly").message).collect()
}

#[test]
fn a_shallow_clone_ends_cleanly_and_is_deepened() {
    let (frond, main) = origin();
    for round in 0..6_i32 {
        put(&main, "things", &document! { "_id": 9_000 + round, "a": round }).unwrap();
        main.commit(&format!("round {round}"), "").unwrap();
    }
    let remote = data(&frond);
    let disk = SimDisk::new(77);
    let there = open(&disk);
    let clone = shop(&there, "");
    let report = clone.clone_to("x", &remote, Depth::Commits(2), &mut quiet()).unwrap();
    assert!(report.moved.commits <= 6, "{:?}", report.moved);
    assert_eq!(everything(&clone), everything(&main));
    assert_eq!(log_of(&clone), ["round 5", "round 4"]);
    assert!(Repository::open(&there, "shop@main~2").is_err(), "beyond the end");
    assert!(
        clone
            .document_history(
                "things",
                &document! { "v": 9_000_i32 }.get("v").unwrap().to_buf(),
                LogRequest::default()
            )
            .unwrap()
            .all(|version| version.is_ok())
    );
    frond_vcs::reclaim(
        &there,
        0,
        frond_db::ReclaimOptions { thorough: true, bytes_a_second: None, purge: false },
    )
    .unwrap();
    there.engine().check().unwrap();

    // An operation that would need the parents is refused, and a push works: the other side has
    // them.
    let oldest = shop(&there, "main~1");
    let id = oldest.log_of(LogRequest::default()).unwrap().next().unwrap().unwrap().id.to_string();
    let pick = frond_vcs::PickRequest { revision: id, ..Default::default() };
    assert!(clone.pick(&pick).unwrap_err().message.contains("shallow"));
    put(&clone, "things", &document! { "_id": 10_000_i32, "a": 1_i32 }).unwrap();
    clone.commit("by the clone", "").unwrap();
    let moved = push(&clone, &remote).unwrap();
    assert_eq!(moved.commits, 1);
    assert_eq!(everything(&clone), everything(&main));
    let plain_disk = SimDisk::new(78);
    let plain = PlainRemote::open(&plain_disk.machine()).unwrap();
    let error = push(&clone, &plain).unwrap_err();
    assert!(error.message.contains("shallow"), "{error}");

    // A fetch stays within, or goes deeper; cut or not, history is whole as far as it goes.
    put(&main, "things", &document! { "_id": 10_001_i32, "a": 1_i32 }).unwrap();
    main.commit("later", "").unwrap();
    clone.fetch(ORIGIN, &remote, &mut quiet()).unwrap();
    assert_eq!(log_of(&clone), ["by the clone", "round 5", "round 4"]);
    let deeper = Depth::Commits(5);
    for left in [0, 2, 9] {
        let cut = Cut::after(left, &remote);
        let _ = clone.fetch_to(ORIGIN, &cut, deeper, &mut quiet());
        assert!(log_of(&clone).len() >= 3);
        frond_vcs::reclaim(&there, 0, frond_db::ReclaimOptions::default()).unwrap();
    }
    clone.fetch_to(ORIGIN, &remote, deeper, &mut quiet()).unwrap();
    assert_eq!(log_of(&clone), ["by the clone", "round 5", "round 4", "round 3"]);
    clone.fetch_to(ORIGIN, &remote, Depth::All, &mut quiet()).unwrap();
    clone.pull(ORIGIN, &remote, None, MergeRequest::default(), &mut quiet()).unwrap();
    assert_eq!(log_of(&clone), log_of(&main));
    push(&clone, &plain).expect("it has all of it now");
    frond_vcs::reclaim(
        &there,
        0,
        frond_db::ReclaimOptions { thorough: true, bytes_a_second: None, purge: false },
    )
    .unwrap();
    there.close().unwrap();
}

/// A remote beside which a directory is collected, the remote's or the client's, whenever chunks
/// went there or are about to come, and before its refs change.
struct GcReport<'a> {
    remote: DataRemote,
    frond: &'a Frond,
    count: AtomicUsize,
}

impl GcReport<'_> {
    fn collect(&self) {
        // Twice: what is kept from the first by chance goes with the second.
        for _ in 0..2 {
            let thorough = ReclaimOptions { thorough: true, ..ReclaimOptions::default() };
            frond_vcs::reclaim(self.frond, 0, thorough).expect("a collection");
        }
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

impl Remote for GcReport<'_> {
    fn state(&self) -> Result<Option<RemoteState>, Error> {
        self.remote.state()
    }

    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, Error> {
        let found = self.remote.has_many(hashes);
        // Chunks that were found there, and aren't sent for that reason, mustn't go any more.
        self.collect();
        found
    }

    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        // What came before these mustn't go.
        self.collect();
        self.remote.get_many(hashes)
    }

    fn put_many(&self, chunks: &[Chunk]) -> Result<(), Error> {
        self.remote.put_many(chunks)?;
        self.collect();
        Ok(())
    }

    fn update(&self, update: &RefUpdate) -> Result<(), Error> {
        self.collect();
        self.remote.update(update)
    }
}

#[test]
fn a_collection_beside_a_push_takes_nothing_that_it_put_or_found() {
    let (there, _) = origin();
    let (_here, clone) = clone_of(&data(&there));
    // Chunks that are there, and no longer referred to when the push finds them.
    let documents: Vec<DocumentBuf> = (10_000..12_000)
        .map(|id: i32| document! { "_id": id, "a": id % 10, "text": "new" })
        .collect();
    insert(&clone, "things", &documents);
    clone.commit("more", "Ada").unwrap();
    let cut = GcReport { remote: data(&there), frond: &there, count: AtomicUsize::new(0) };
    let found = clone.push(ORIGIN, &Dropped(&cut), &PushRequest::default(), &mut quiet());
    found.expect_err("its refs don't change");
    drop(cut);
    let remote = GcReport { remote: data(&there), frond: &there, count: AtomicUsize::new(0) };
    push(&clone, &remote).expect("nothing of it went");
    assert!(remote.count.load(Ordering::Relaxed) > 2);
    drop(remote);
    assert_eq!(everything(&shop(&there, "")), everything(&clone));
    there.engine().check().unwrap();
}

#[test]
fn a_collection_beside_a_clone_or_a_fetch_takes_nothing_that_came() {
    let (there, main) = origin();
    let here = new();
    let clone = shop(&here, "");
    let remote = GcReport { remote: data(&there), frond: &here, count: AtomicUsize::new(0) };
    clone.clone_from("elsewhere", &remote, &mut quiet()).expect("nothing of it went");
    here.engine().check().unwrap();
    let documents: Vec<DocumentBuf> = (10_000..12_000)
        .map(|id: i32| document! { "_id": id, "a": id % 10, "text": "new" })
        .collect();
    insert(&main, "things", &documents);
    main.commit("more", "Ada").unwrap();
    clone.fetch(ORIGIN, &remote, &mut quiet()).expect("nothing of it went");
    assert!(remote.count.load(Ordering::Relaxed) > 4);
    assert_eq!(everything(&shop(&here, "origin%2Fmain")), everything(&main));
    here.engine().check().unwrap();
}

/// A remote that takes chunks and then no refs.
struct Dropped<'a>(&'a GcReport<'a>);

impl Remote for Dropped<'_> {
    fn state(&self) -> Result<Option<RemoteState>, Error> {
        self.0.remote.state()
    }

    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, Error> {
        self.0.remote.has_many(hashes)
    }

    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        self.0.remote.get_many(hashes)
    }

    fn put_many(&self, chunks: &[Chunk]) -> Result<(), Error> {
        self.0.remote.put_many(chunks)
    }

    fn update(&self, _: &RefUpdate) -> Result<(), Error> {
        Err(Error::invalid(frond_query::Code::BadValue, "no"))
    }
}

/// A branch of this repository that is called as one of the remote's can't take its place.
#[test]
fn names_that_would_be_taken_for_a_remotes_branch() {
    let (frond, main) = origin();
    let remote = data(&frond);
    let (there, clone) = clone_of(&remote);
    assert_eq!(
        clone.create_branch("origin/mine", None).unwrap_err().code.name(),
        "NamespaceExists"
    );
    let tagged = clone.create_tag("origin/mine", None, None, false);
    assert_eq!(tagged.unwrap_err().code.name(), "NamespaceExists");
    clone.create_branch("up/main", None).unwrap();
    let added = clone.add_remote("up", "elsewhere");
    assert_eq!(added.unwrap_err().code.name(), "NamespaceExists");
    // One that is there nevertheless is not what a pull merges.
    let up = shop(&there, "up%2Fmain");
    insert(&up, "things", &[document! { "_id": "mine" }]);
    up.commit("mine", "").unwrap();
    insert(&main, "things", &[document! { "_id": "theirs" }]);
    main.commit("theirs", "").unwrap();
    clone.pull("up", &remote, Some("main"), MergeRequest::default(), &mut quiet()).unwrap();
    assert_eq!(everything(&clone), everything(&main));
    let none = clone.pull("up", &remote, Some("none"), MergeRequest::default(), &mut quiet());
    assert_eq!(none.unwrap_err().code.name(), "BadValue");
}
