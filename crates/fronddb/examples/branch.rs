//! Branches: copies that cost nothing, each read and written as a database of its own.

use fronddb::{Document, Merge, doc};

/// Runs the example.
pub fn main() -> fronddb::Result<()> {
    let data = tempfile::tempdir()?;
    let frond = fronddb::open(&data)?;
    let shop = frond.database("shop")?;
    let items = shop.collection::<Document>("items");
    items.insert_many((0..10_000).map(|n| doc! { "_id": n, "price": n }))?;
    shop.commit("items")?;

    let sale = shop.branch("sale")?;
    let on_sale = sale.collection::<Document>("items");
    on_sale.update_one(doc! { "_id": 30 }, doc! { "$set": { "price": 15 } })?;
    assert_eq!(items.get(30)?, Some(doc! { "_id": 30, "price": 30 }));

    // It is the same by its name, from anywhere.
    let same = frond.database("shop@sale")?.collection::<Document>("items");
    assert_eq!(same.get(30)?, Some(doc! { "_id": 30, "price": 15 }));
    assert_eq!(shop.branch("sale")?.name(), "shop@sale");
    assert!(shop.create_branch("sale").is_err());

    let names: Vec<_> = shop.list_branches()?.into_iter().map(|branch| branch.name).collect();
    assert_eq!(names, ["main", "sale"]);

    // A branch with work that would be lost isn't deleted.
    assert!(shop.delete_branch("sale").is_err());
    sale.commit("a cheap lamp")?;
    assert!(matches!(shop.merge("sale")?, Merge::Merged(_)));
    shop.delete_branch("sale")?;
    assert!(frond.database("shop@sale").is_err());
    assert_eq!(items.get(30)?, Some(doc! { "_id": 30, "price": 15 }));
    Ok(())
}
