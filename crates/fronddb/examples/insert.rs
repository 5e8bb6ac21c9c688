//! Inserting documents of a type of one's own: one, many, and what fails.

use fronddb::{Code, Document, ErrorKind, ObjectId, doc};
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
struct Person {
    #[serde(rename = "_id", skip_serializing_if = "Option::is_none")]
    id: Option<ObjectId>,
    name: String,
    languages: Vec<String>,
}

fn person(name: &str) -> Person {
    Person { id: None, name: name.to_owned(), languages: vec!["en".to_owned()] }
}

/// Runs the example.
pub fn main() -> fronddb::Result<()> {
    let data = tempfile::tempdir()?;
    let town = fronddb::open(&data)?.database("town")?;
    let people = town.collection::<Person>("people");

    // A document without an `_id` gets one.
    let id = people.insert_one(person("Ada"))?;
    let ada = people.get(&id)?.expect("she was just inserted");
    assert_eq!(ada.id, id.as_object_id());
    assert_eq!(ada, Person { id: ada.id, ..person("Ada") });

    // Any number, from an iterator that makes them as they are asked for.
    let ids = people.insert_many((0..5_000).map(|n| person(&format!("Bob {n}"))))?;
    assert_eq!(ids.len(), 5_000);
    assert_eq!(people.count(doc! {})?, 5_001);

    // The same collection as documents of any shape.
    let anything = people.with_type::<Document>();
    let error = anything.insert_many([
        doc! { "_id": 1, "name": "Eve" },
        doc! { "_id": 1, "name": "Mallory" },
        doc! { "_id": 2, "name": "Peggy" },
    ]);
    let error = error.expect_err("there are two with one _id");
    assert_eq!((error.kind(), error.code()), (ErrorKind::Invalid, Code::DuplicateKey));
    assert_eq!(error.position(), Some(1));
    assert_eq!(anything.count(doc! { "_id": { "$in": [1, 2] } })?, 1);
    Ok(())
}
