//! Remotes over a network, whole: a server on loopback and clients of it, and a bucket.
//!
//! - [`http`]: clone, fetch, push and pull over HTTP and HTTPS, tokens, hostile clients,
//!   collections meanwhile;
//! - [`bucket_storage`]: the same over an object store in memory, racing writers, faults;
//! - [`cuts`]: transfers that are cut at random moments, and run again;
//! - [`tiered`]: packs in a bucket, and takeovers;
//! - [`buckets`]: what is erased, repaired and saved there;
//! - [`readers`]: servers that read what another one has there;
//! - [`backups`]: backups while others write, restored and compared.

mod backups;
mod bucket_storage;
mod buckets;
mod cuts;
mod http;
mod readers;
mod tiered;

use frond_db::{FindRequest, Frond, FrondOptions};
use frond_doc::{DocumentBuf, document};
use frond_testkit::SimDisk;
use frond_vcs::Repository;
use frond_vcs::remote::Moved;

pub(crate) fn quiet() -> impl FnMut(&Moved) {
    |_: &Moved| {}
}

/// An empty data directory.
pub(crate) fn new(seed: u64) -> Frond {
    open(&SimDisk::new(seed))
}

pub(crate) fn open(disk: &SimDisk) -> Frond {
    frond_vcs::open_on(&disk.machine(), FrondOptions::default()).expect("a good directory")
}

pub(crate) fn shop(frond: &Frond) -> Repository {
    Repository::open(frond, "shop").expect("a database's name")
}

pub(crate) fn insert(database: &Repository, documents: &[DocumentBuf]) {
    let report = database.insert("things", documents, true, frond_db::Durability::Synced);
    assert!(report.expect("it is there").errors.is_empty());
}

/// A document whose text is its own, some longer than fits into a leaf.
pub(crate) fn thing(id: i32, round: i32) -> DocumentBuf {
    let long = if id % 250 == 0 { 40_000 } else { 60 };
    let mut number =
        (id as u32).wrapping_add(1).wrapping_mul(2_654_435_761).wrapping_add(round as u32);
    let mut text = String::new();
    while text.len() < long {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.push_str(&format!("{number:08x} "));
    }
    document! { "_id": id, "round": round, "text": text.as_str() }
}

/// A shop with a few thousand documents, two branches and a tag.
pub(crate) fn origin(seed: u64) -> (Frond, Repository) {
    let frond = new(seed);
    let main = shop(&frond);
    insert(&main, &(0..2_000).map(|id| thing(id, 0)).collect::<Vec<_>>());
    main.commit("first", "Ada").expect("a commit");
    main.create_branch("side", None).expect("a branch");
    main.create_tag("v1", None, Some(("one", "Ada")), false).expect("a tag");
    (frond, main)
}

/// All documents, in order.
pub(crate) fn all(database: &Repository) -> Vec<DocumentBuf> {
    let cursor = database.find("things", &FindRequest::default()).expect("it can be read");
    cursor.collect::<Result<_, _>>().expect("it can be read")
}
