//! Commits: recording, looking back, going back.

use fronddb::{CommitOptions, Document, LogOptions, doc};

/// Runs the example.
pub fn main() -> fronddb::Result<()> {
    let data = tempfile::tempdir()?;
    let shop = fronddb::open(&data)?.database("shop")?;
    let items = shop.collection::<Document>("items");

    items.insert_many((1..=3).map(|n| doc! { "_id": n, "price": 10 * n }))?;
    let first = shop.commit("first items")?;
    items.update_one(doc! { "_id": 1 }, doc! { "$set": { "price": 11 } })?;
    let by_bob = CommitOptions { author: Some("Bob".to_owned()), ..CommitOptions::default() };
    let second = shop.commit_with("a lamp is dearer", by_bob)?;
    shop.tag("v1")?;

    for commit in shop.log()? {
        println!("{}", commit?);
    }
    let of_bob = LogOptions { author: Some("Bob".to_owned()), ..LogOptions::default() };
    let of_bob: Vec<_> = shop.log_with(of_bob)?.collect::<fronddb::Result<_>>()?;
    assert_eq!((of_bob.len(), of_bob[0].id), (1, second));
    assert_eq!(of_bob[0].parents, [first]);

    // Any version can be read, beside the newest.
    let before = shop.checkout(first)?.collection::<Document>("items");
    assert_eq!(before.get(1)?, Some(doc! { "_id": 1, "price": 10 }));
    assert!(before.insert_one(doc! {}).is_err());
    assert_eq!(shop.checkout("v1")?.head()?, Some(second));

    // Changes that aren't committed yet.
    items.delete_many(doc! {})?;
    let status = shop.status()?;
    assert_eq!((status.head, status.collections[0].removed), (Some(second), 3));

    // Throw it away; or go back further; or not at all.
    shop.reset("HEAD")?;
    assert_eq!(items.count(doc! {})?, 3);
    shop.reset("main~1")?;
    assert_eq!(shop.head()?, Some(first));
    assert_eq!(shop.undo()?, "reset: moving to main~1");
    assert_eq!(shop.head()?, Some(second));
    assert_eq!(items.get(1)?, Some(doc! { "_id": 1, "price": 11 }));
    Ok(())
}
