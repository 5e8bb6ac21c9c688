//! Changing documents: operators, pipelines, replacements, upserts, and having the document that
//! was changed.

use fronddb::{Document, FindOneAndOptions, UpdateOptions, doc};

/// Runs the example.
pub fn main() -> fronddb::Result<()> {
    let data = tempfile::tempdir()?;
    let shop = fronddb::open(&data)?.database("shop")?;
    let items = shop.collection::<Document>("items");
    items.insert_many((1..=3).map(|n| doc! { "_id": n, "stock": 10 * n, "tags": ["new"] }))?;

    let done = items.update_one(
        doc! { "_id": 1 },
        doc! { "$inc": { "stock": -1 }, "$push": { "tags": "hot" } },
    )?;
    assert_eq!((done.matched_count, done.modified_count), (1, 1));
    assert_eq!(items.get(1)?, Some(doc! { "_id": 1, "stock": 9, "tags": ["new", "hot"] }));

    // A pipeline computes from the document.
    items.update_many(doc! {}, vec![doc! { "$set": { "low": { "$lt": ["$stock", 20] } } }])?;
    assert_eq!(items.count(doc! { "low": true })?, 1);

    // Insert what isn't there.
    let upsert = UpdateOptions { upsert: true, ..UpdateOptions::default() };
    let done = items.update_one_with(
        doc! { "_id": 4 },
        doc! { "$set": { "stock": 1 } },
        upsert.clone(),
    )?;
    assert_eq!(done.upserted_id, Some(4.into()));
    items.replace_one_with(doc! { "_id": 4 }, doc! { "stock": 2 }, upsert)?;
    assert_eq!(items.get(4)?, Some(doc! { "_id": 4, "stock": 2 }));

    // Change one document and have it, as one step: a counter.
    let next = || {
        let options =
            FindOneAndOptions { upsert: true, return_new: true, ..FindOneAndOptions::default() };
        let counters = shop.collection::<Document>("counters");
        counters.find_one_and_update_with(
            doc! { "_id": "orders" },
            doc! { "$inc": { "n": 1 } },
            options,
        )
    };
    next()?;
    assert_eq!(next()?, Some(doc! { "_id": "orders", "n": 2 }));

    assert_eq!(items.find_one_and_delete(doc! { "_id": 4 })?, Some(doc! { "_id": 4, "stock": 2 }));
    assert_eq!(items.delete_many(doc! { "stock": { "$gte": 20 } })?, 2);
    assert_eq!(items.delete_one(doc! { "_id": 9 })?, 0);
    Ok(())
}
