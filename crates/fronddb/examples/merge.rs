//! A merge with conflicts: listed, resolved one by one and all at once, or given up.

use fronddb::{Conflicts, Database, Document, Merge, Side, doc};

fn items(database: &Database) -> fronddb::Collection<Document> {
    database.collection("items")
}

fn conflicts(merge: Merge) -> Conflicts {
    match merge {
        Merge::Conflicts(conflicts) => conflicts,
        Merge::Merged(id) => panic!("merged as {id} without conflicts"),
    }
}

/// Runs the example.
pub fn main() -> fronddb::Result<()> {
    let data = tempfile::tempdir()?;
    let shop = fronddb::open(&data)?.database("shop")?;
    items(&shop).insert_many((1..=4).map(|n| doc! { "_id": n, "name": "lamp", "price": 30 }))?;
    shop.commit("four lamps")?;

    let sale = shop.branch("sale")?;
    items(&sale).update_many(doc! {}, doc! { "$set": { "price": 15 } })?;
    sale.commit("half price")?;
    // Another field of document 1; the same field of the others.
    items(&shop).update_one(doc! { "_id": 1 }, doc! { "$set": { "name": "big lamp" } })?;
    items(&shop).update_many(doc! { "_id": { "$gt": 1 } }, doc! { "$inc": { "price": 5 } })?;
    let ours = shop.commit("dearer")?;

    let waiting = conflicts(shop.merge("sale")?);
    let list = waiting.list()?;
    assert_eq!(list.len(), 3);
    for conflict in &list {
        assert_eq!(conflict.paths, ["price"]);
        let price = |side: &Option<Document>| side.as_ref().unwrap().get_i32("price").unwrap();
        assert_eq!(
            (price(&conflict.base), price(&conflict.ours), price(&conflict.theirs)),
            (30, 35, 15)
        );
    }

    // Give it up, and all is as it was.
    waiting.abort()?;
    assert_eq!(shop.head()?, Some(ours));
    assert!(shop.conflicts()?.is_none());

    // Once more. It waits as long as it has to: another process would find it.
    let _ = shop.merge("sale")?;
    let waiting = shop.conflicts()?.expect("it waits");
    assert_eq!(waiting.resolve(&list[0], Side::Theirs)?, 2);
    assert_eq!(waiting.resolve(&list[1], doc! { "_id": 3, "name": "lamp", "price": 20 })?, 1);
    let merged = waiting.resolve_all(Side::Ours)?;

    let found = items(&shop).find(doc! {}).sort(doc! { "_id": 1 }).to_vec()?;
    let expected = [
        doc! { "_id": 1, "name": "big lamp", "price": 15 },
        doc! { "_id": 2, "name": "lamp", "price": 15 },
        doc! { "_id": 3, "name": "lamp", "price": 20 },
        doc! { "_id": 4, "name": "lamp", "price": 35 },
    ];
    assert_eq!(found, expected);
    assert_eq!(shop.log()?.next().unwrap()?.parents.len(), 2);

    // Think better of what one commit did, without losing what came since.
    items(&shop).delete_one(doc! { "_id": 4 })?;
    shop.commit("one less")?;
    assert!(matches!(shop.revert("HEAD")?, Merge::Merged(id) if id != merged));
    assert_eq!(items(&shop).count(doc! {})?, 4);
    Ok(())
}
