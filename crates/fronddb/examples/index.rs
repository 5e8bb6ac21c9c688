//! Indexes: for sorting and for ranges, unique ones, ones that expire documents; versioned with the
//! documents.

use std::time::Duration;

use fronddb::{Code, DateTime, Document, IndexOptions, doc};

/// Runs the example.
pub fn main() -> fronddb::Result<()> {
    let data = tempfile::tempdir()?;
    let frond = fronddb::open(&data)?;
    let shop = frond.database("shop")?;
    let items = shop.collection::<Document>("items");
    items.insert_many(
        (0..1_000).map(|n| doc! { "_id": n, "sku": format!("s{n}"), "price": n % 50 }),
    )?;
    shop.commit("items")?;

    assert_eq!(items.create_index(doc! { "price": 1, "_id": -1 })?, "price_1__id_-1");
    let dear = items.find(doc! { "price": { "$gte": 49 } }).hint("price_1__id_-1");
    assert_eq!(dear.count()?, 20);

    let unique =
        IndexOptions { unique: true, name: Some("sku".to_owned()), ..IndexOptions::default() };
    items.create_index_with(doc! { "sku": 1 }, unique)?;
    let error = items.insert_one(doc! { "_id": 1_000, "sku": "s1" }).expect_err("there is an s1");
    assert_eq!(error.code(), Code::DuplicateKey);
    assert_eq!(error.details().unwrap().get_document("keyValue").unwrap(), &doc! { "sku": "s1" });

    let names: Vec<_> = items
        .list_indexes()?
        .iter()
        .map(|index| index.get_str("name").unwrap().to_owned())
        .collect();
    assert_eq!(names, ["_id_", "price_1__id_-1", "sku"]);
    items.drop_index("sku")?;

    // The version before has the indexes that it had.
    assert_eq!(shop.checkout("main~0")?.collection::<Document>("items").list_indexes()?.len(), 1);

    // Sessions that were not used for an hour.
    let sessions = shop.collection::<Document>("sessions");
    let hour =
        IndexOptions { expire_after: Some(Duration::from_secs(3600)), ..IndexOptions::default() };
    sessions.create_index_with(doc! { "used": 1 }, hour)?;
    let long_ago = DateTime::from_millis(0);
    sessions.insert_many([doc! { "used": long_ago }, doc! { "used": DateTime::now() }])?;
    assert_eq!(frond.expire_documents()?, 1);
    Ok(())
}
