//! Transactions: all or nothing, over collections and databases, run again by themselves when they
//! lose.

use fronddb::{Document, Error, doc};

/// Runs the example.
pub fn main() -> fronddb::Result<()> {
    let data = tempfile::tempdir()?;
    let frond = fronddb::open(&data)?;
    let accounts = frond.database("bank")?.collection::<Document>("accounts");
    accounts.insert_many([doc! { "_id": "ada", "sum": 100 }, doc! { "_id": "bob", "sum": 0 }])?;

    let pay = |sum: i32| {
        frond.transaction(|transaction| {
            let bank = transaction.database("bank")?;
            let accounts = bank.collection::<Document>("accounts");
            let ada = accounts.get("ada")?.expect("she has an account");
            if ada.get_i32("sum").unwrap_or(0) < sum {
                return Err(Error::other("too little money"));
            }
            accounts.update_one(doc! { "_id": "ada" }, doc! { "$inc": { "sum": -sum } })?;
            accounts.update_one(doc! { "_id": "bob" }, doc! { "$inc": { "sum": sum } })?;
            let journal = transaction.database("audit")?.collection::<Document>("journal");
            journal.insert_one(doc! { "sum": sum })?;
            Ok(())
        })
    };

    // From several threads at once: those that meet wait for one another, or run again.
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(|| (0..5).try_for_each(|_| pay(5)))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("the thread ends"))
    })?;
    assert_eq!(accounts.get("bob")?, Some(doc! { "_id": "bob", "sum": 100 }));

    // Nothing of it happens if the closure fails.
    let error = pay(1).expect_err("there is nothing left");
    assert_eq!(error.to_string(), "too little money");
    let journal = frond.database("audit")?.collection::<Document>("journal");
    assert_eq!(journal.count(doc! {})?, 20);
    Ok(())
}
