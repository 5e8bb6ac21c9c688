//! Opening a data directory, with and without settings, and opening it again.

use fronddb::{Document, Frond, Options, doc};

/// Runs the example.
pub fn main() -> fronddb::Result<()> {
    let data = tempfile::tempdir()?;

    let frond = fronddb::open(&data)?;
    frond.database("shop")?.collection::<Document>("items").insert_one(doc! { "_id": 1 })?;
    frond.database("blog")?.collection::<Document>("posts").insert_one(doc! { "_id": 1 })?;
    assert_eq!(frond.list_databases()?, ["blog", "shop"]);
    frond.close()?;

    // With less memory than it would take by itself, and with a name for commits.
    let options = Options {
        memory_bytes: Some(64 << 20),
        author: "Ada <ada@example.org>".to_owned(),
        ..Options::default()
    };
    let frond = Frond::open_with(&data, options)?;
    let shop = frond.database("shop")?;
    assert_eq!(shop.collection::<Document>("items").count(doc! {})?, 1);
    shop.commit("first items")?;
    assert_eq!(shop.log()?.next().unwrap()?.author, "Ada <ada@example.org>");

    // A directory is open in one process, once: `frond` can be cloned, and used from any thread.
    assert!(fronddb::open(&data).is_err());
    let second = frond.clone();
    let count = std::thread::spawn(move || {
        second.database("shop")?.collection::<Document>("items").count(doc! {})
    });
    assert_eq!(count.join().expect("the thread ends")?, 1);
    Ok(())
}
