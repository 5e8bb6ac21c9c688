//! The same database in several places: clone, push, pull, over a directory that all reach. A
//! running server or a bucket is named as `https://db.example.org:4224/shop` or `s3://bucket/shop`,
//! with the feature `network`.

use fronddb::{Document, ErrorKind, Merge, PushOptions, Side, doc};

/// Runs the example.
pub fn main() -> fronddb::Result<()> {
    let data = tempfile::tempdir()?;
    let shared = data.path().join("shared");

    // Ada begins, and pushes.
    let shop = fronddb::open(data.path().join("ada"))?.database("shop")?;
    let items = shop.collection::<Document>("items");
    items.insert_many((0..1_000).map(|n| doc! { "_id": n, "price": n }))?;
    shop.commit("items")?;
    shop.tag("v1")?;
    shop.add_remote("origin", &shared)?;
    let tags = PushOptions { tags: true, ..PushOptions::default() };
    let sent = shop.push_with("origin", tags)?;
    assert_eq!((sent.branch.as_str(), sent.tags), ("main", vec!["v1".to_owned()]));

    // Bob clones, changes a document and pushes: what travels is what changed.
    let bob = fronddb::open(data.path().join("bob"))?;
    let bobs = bob.clone_database(&shared, "shop")?;
    assert_eq!(bobs.head()?, shop.head()?);
    assert_eq!(bobs.list_remotes()?[0].name, "origin");
    bobs.collection::<Document>("items")
        .update_one(doc! { "_id": 1 }, doc! { "$set": { "price": 9 } })?;
    bobs.commit("a dearer lamp")?;
    assert_eq!(bobs.push("origin")?.moved.commits, 1);

    // Ada has gone on, too: a push would lose what Bob did.
    items.update_one(doc! { "_id": 1 }, doc! { "$set": { "price": 7 } })?;
    shop.commit("a lamp that is dearer still")?;
    assert_eq!(shop.push("origin").unwrap_err().kind(), ErrorKind::Invalid);

    // She looks at what there is, pulls, decides, and pushes.
    shop.fetch("origin")?;
    assert_eq!(shop.diff("main", "origin/main")?.count(), 1);
    match shop.pull("origin")? {
        Merge::Conflicts(conflicts) => conflicts.resolve_all(Side::Theirs)?,
        Merge::Merged(id) => panic!("merged as {id} without conflicts"),
    };
    shop.push("origin")?;

    assert!(matches!(bobs.pull("origin")?, Merge::Merged(_)));
    assert_eq!(bobs.head()?, shop.head()?);
    assert_eq!(items.get(1)?, Some(doc! { "_id": 1, "price": 9 }));
    Ok(())
}
