//! The differences between versions: documents field by field, collections, indexes; lazily, at the
//! cost of the difference.

use fronddb::{Change, ChangeKind, Changed, DiffOptions, Document, doc};

/// Runs the example.
pub fn main() -> fronddb::Result<()> {
    let data = tempfile::tempdir()?;
    let shop = fronddb::open(&data)?.database("shop")?;
    let items = shop.collection::<Document>("items");
    items.insert_many((0..10_000).map(|n| doc! { "_id": n, "price": n, "size": { "w": 1 } }))?;
    shop.commit("items")?;

    items.update_one(doc! { "_id": 7 }, doc! { "$set": { "size.w": 2, "new": true } })?;
    items.delete_one(doc! { "_id": 8 })?;
    items.insert_one(doc! { "_id": 10_000 })?;
    items.create_index(doc! { "price": 1 })?;

    // Changes that aren't committed yet.
    let changes: Vec<Change> =
        shop.diff_with(DiffOptions::default())?.collect::<fronddb::Result<_>>()?;
    let lines: Vec<String> = changes.iter().map(Change::to_string).collect();
    let expected = [
        "added items index price_1",
        "modified items 7: size.w 1 -> 2, new added true",
        "removed items 8",
        "added items 10000",
    ];
    assert_eq!(lines, expected);

    // Any two versions.
    shop.commit("changes")?;
    let mut modified = 0;
    for change in shop.diff("main~1", "main")? {
        let change = change?;
        if let (ChangeKind::Modified, Changed::Document { id, fields, .. }) =
            (change.kind, change.what)
        {
            assert_eq!((id, fields[0].path.as_str()), (7.into(), "size.w"));
            modified += 1;
        }
    }
    assert_eq!(modified, 1);

    // One document, without looking at the others.
    let one = DiffOptions {
        from: Some("main~1".to_owned()),
        collection: Some("items".to_owned()),
        document: Some(8.into()),
        ..DiffOptions::default()
    };
    assert_eq!(shop.diff_with(one)?.count(), 1);
    Ok(())
}
