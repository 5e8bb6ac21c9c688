//! The whole of it in twenty lines: documents, a commit, a branch, a diff, a merge. The README
//! shows them.

use fronddb::{Document, Merge, Side, doc};

/// Runs the example.
pub fn main() -> fronddb::Result<()> {
    let data = tempfile::tempdir()?;

    let shop = fronddb::open(&data)?.database("shop")?;
    let items = shop.collection::<Document>("items"); // Or any type with serde's derives.
    items.insert_many([
        doc! { "_id": 1, "name": "lamp", "price": 30 },
        doc! { "_id": 2, "name": "desk", "price": 240 },
    ])?;
    shop.commit("first items")?;

    let sale = shop.branch("sale")?; // A pointer, however large the shop is.
    sale.collection::<Document>("items").update_many(doc! {}, doc! { "$mul": { "price": 0.5 } })?;
    sale.commit("half price")?;

    for change in shop.diff("main", "sale")? {
        println!("{}", change?); // modified items 1: price 30 -> 15.0
    }
    match shop.merge("sale")? {
        Merge::Merged(id) => println!("merged: {id}"),
        Merge::Conflicts(conflicts) => println!("merged: {}", conflicts.resolve_all(Side::Theirs)?),
    }

    assert_eq!(items.get(2)?, Some(doc! { "_id": 2, "name": "desk", "price": 120.0 }));
    Ok(())
}
