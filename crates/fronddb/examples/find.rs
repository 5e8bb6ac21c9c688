//! Finding documents: filters, order, parts of documents, lazily or all at once.

use fronddb::{Bson, Document, doc};
use serde::{Deserialize, Serialize};

#[derive(PartialEq, Serialize, Deserialize, Debug)]
struct City {
    #[serde(rename = "_id")]
    name: String,
    country: String,
    people: i64,
}

/// Runs the example.
pub fn main() -> fronddb::Result<()> {
    let data = tempfile::tempdir()?;
    let world = fronddb::open(&data)?.database("world")?;
    let cities = world.collection::<City>("cities");
    let rows = [
        ("Lyon", "France", 522_000),
        ("Paris", "France", 2_103_000),
        ("Porto", "Portugal", 231_000),
        ("Roma", "Italia", 2_751_000),
    ];
    cities.insert_many(rows.map(|(name, country, people)| City {
        name: name.to_owned(),
        country: country.to_owned(),
        people,
    }))?;

    // Nothing is read before the loop asks for it.
    let mut names = Vec::new();
    for city in
        cities.find(doc! { "people": { "$gt": 500_000 } }).sort(doc! { "people": -1 }).limit(2)
    {
        names.push(city?.name);
    }
    assert_eq!(names, ["Roma", "Paris"]);

    let french = cities.find(doc! { "country": "France" }).sort(doc! { "_id": 1 }).to_vec()?;
    assert_eq!(french[0].name, "Lyon");
    assert_eq!(
        cities.find_one(doc! { "_id": /* a pattern */ { "$regex": "^Po" } })?.unwrap().people,
        231_000
    );
    assert_eq!(cities.get("Berlin")?, None);
    assert_eq!(cities.count(doc! { "country": "France" })?, 2);
    assert_eq!(cities.find(doc! {}).skip(1).count()?, 3);

    // Some fields only, as documents.
    let first = cities
        .find(doc! {})
        .sort(doc! { "_id": -1 })
        .project::<Document>(doc! { "people": 1, "_id": 0 });
    assert_eq!(first.first()?, Some(doc! { "people": 2_751_000_i64 }));

    let mut countries = cities.distinct("country", doc! {})?;
    countries.sort_by_key(Bson::to_string);
    assert_eq!(countries, ["France", "Italia", "Portugal"].map(Bson::from));

    // Errors in a request show when it is run.
    assert!(cities.find(doc! { "people": { "$above": 1 } }).to_vec().is_err());
    Ok(())
}
