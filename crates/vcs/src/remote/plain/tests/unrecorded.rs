//! Commits that have no record, of a database that was dropped before drops recorded each commit:
//! a backup has them, and a verification finds a place that lacks them.

use frond_db::inside::{LatchMode, Outcome, Scope, TreeRef, system};
use frond_engine::TreeId;
use frond_store::{Chunk, ChunkHash, ChunkKind};
use frond_tree::{Bounds, Direction};

use super::*;
use crate::fsck::fsck_on;
use crate::history;
use crate::remote::image::ImageSource;

const COMMITS: usize = 4;

/// A data directory in which `shop` was dropped as by an older program, and the commits of that.
fn dropped(seed: u64) -> (Frond, Vec<ChunkHash>) {
    let (frond, main) = origin(seed);
    for round in 1..COMMITS as i32 {
        insert(&main, &[thing(6_000 + round, round)]);
        main.commit(&format!("round {round}"), "Ada").expect("a commit");
    }
    let reader = Reader::now(frond.engine());
    let commits = history::recorded_commits(&reader, "shop").expect("recorded");
    assert_eq!(commits.len(), COMMITS);
    main.drop_database().expect("it is there");
    forget_commits(&frond);
    (frond, commits)
}

/// Takes the lists of commits from the record of the drop.
fn forget_commits(frond: &Frond) {
    let other = Repository::open(frond, "other").expect("a database's name");
    insert(&other, &[thing(1, 1)]);
    let scope = Scope::branch("other", "main");
    let forgotten = other.transact_alone(scope, LatchMode::Writer, Durability::Synced, |it| {
        let (key, references, record) = {
            let reader = Reader::within(frond.engine(), it);
            let bounds = Bounds::prefix(&system::dropped_prefix("shop"));
            let place = TreeRef::Live(TreeId::SYSTEM);
            let mut entries = reader.range(place, bounds, Direction::Ascending)?;
            let entry = entries.next().expect("it was dropped")?;
            let store = &**reader.store();
            let mut references = system::references_of(store, &entry.value)?;
            let is_list = |hash| store.get(hash).expect("there").kind() == ChunkKind::Blob;
            references.retain(|hash| !is_list(*hash));
            (entry.key, references, reader.read(&entry.value)?)
        };
        let value = system::referring_value(it, &references, &record);
        it.put(TreeId::SYSTEM, key, value)?;
        Ok(Outcome::Commit(()))
    });
    forgotten.expect("written");
}

#[test]
fn a_backup_has_commits_that_only_their_children_name() {
    let (frond, _) = dropped(7);
    let disk = SimDisk::new(8);
    for name in ["monday", "tuesday"] {
        assert!(back_up(&disk, &frond, name).unread.is_empty());
        let report = verify(&disk, Some(name));
        assert!(report.parts[0].lost.is_empty(), "{report:?}");
        let restored = restore(&disk, name).expect("it is whole");
        let back = Repository::open(&restored, "back").expect("a database's name");
        back.undrop("shop").expect("it was dropped");
        assert_eq!(back.log(None, None).expect("whole").len(), COMMITS);
        let target = SimDisk::new(99);
        let place = PlainRemote::open(&disk.machine()).expect("it opens");
        place.restore_on(&named(name), &target.machine(), &mut quiet()).expect("restored");
        let report = fsck_on(&target.machine(), &mut |_| ()).expect("it can be read");
        assert!(report.damages.is_empty(), "{report:?}");
    }
}

/// An image that says of `absent` that a shallow clone lacks them, so that a backup passes them by.
struct Without<'a>(&'a DataImage, Vec<ChunkHash>);

impl ImageSource for Without<'_> {
    fn root(&self) -> ChunkHash {
        self.0.root()
    }

    fn time_millis(&self) -> i64 {
        self.0.time_millis()
    }

    fn databases(&self) -> &[String] {
        self.0.databases()
    }

    fn absent(&self) -> &[ChunkHash] {
        &self.1
    }

    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        self.0.get_many(hashes)
    }
}

#[test]
fn a_verification_follows_commits_to_their_parents() {
    let (frond, commits) = dropped(9);
    let disk = SimDisk::new(10);
    let place = PlainRemote::open(&disk.machine()).expect("it opens");
    let image = DataImage::take(&frond).expect("an image");
    let without = Without(&image, commits);
    let report = place.back_up("monday", &without, Reread::Share, &mut quiet()).expect("a backup");
    assert!(verify(&disk, None).parts[0].lost.is_empty(), "they are elsewhere");
    // As a backup was that didn't follow them.
    place.remove_backup("monday").expect("it is there");
    let backup = BackupInfo { absent: Vec::new(), has_parents: false, ..report.backup };
    place.add_backup(&backup, &[]).expect("added");
    assert_eq!(verify(&disk, None).parts[0].lost.len(), 1, "HEAD's parent");
    assert!(restore(&disk, "monday").is_none(), "not without --partial");
    // It proves nothing to the next one, which brings what is lacking.
    back_up(&disk, &frond, "tuesday");
    for part in verify(&disk, None).parts {
        assert!(part.lost.is_empty(), "{part:?}");
        assert!(restore(&disk, part.name.trim_start_matches("backup ")).is_some(), "{part:?}");
    }
}
