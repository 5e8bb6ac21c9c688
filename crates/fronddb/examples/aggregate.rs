//! Aggregations: pipelines as MongoDB's, read as a type of one's own, joined over collections and
//! over versions.

use fronddb::{Document, doc};
use serde::Deserialize;

#[derive(PartialEq, Deserialize, Debug)]
struct Sales {
    #[serde(rename = "_id")]
    item: String,
    sum: i64,
}

/// Runs the example.
pub fn main() -> fronddb::Result<()> {
    let data = tempfile::tempdir()?;
    let shop = fronddb::open(&data)?.database("shop")?;
    let orders = shop.collection::<Document>("orders");
    orders.insert_many([
        doc! { "_id": 1, "item": "lamp", "sum": 30 },
        doc! { "_id": 2, "item": "desk", "sum": 240 },
        doc! { "_id": 3, "item": "lamp", "sum": 60 },
    ])?;

    let sales = orders
        .aggregate([
            doc! { "$group": { "_id": "$item", "sum": { "$sum": "$sum" } } },
            doc! { "$sort": { "sum": 1 } },
        ])
        .with_type::<Sales>()
        .to_vec()?;
    assert_eq!(sales[0], Sales { item: "lamp".to_owned(), sum: 90 });

    // A pipeline's result can be kept in a collection of its own.
    let by_item = [
        doc! { "$group": { "_id": "$item", "orders": { "$count": {} } } },
        doc! { "$out": "items" },
    ];
    orders.aggregate(by_item).run()?;
    let items = shop.collection::<Document>("items");
    assert_eq!(items.get("lamp")?, Some(doc! { "_id": "lamp", "orders": 2 }));

    // History is data, too.
    shop.commit("first orders")?;
    orders.insert_one(doc! { "_id": 4, "item": "lamp", "sum": 20 })?;
    let added = shop
        .aggregate([
            doc! { "$diff": {} },
            doc! { "$match": { "change": "added" } },
            doc! { "$count": "orders" },
        ])
        .to_vec()?;
    assert_eq!(added, [doc! { "orders": 1 }]);
    Ok(())
}
