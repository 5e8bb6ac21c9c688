//! `dbHash`: by which two databases are compared, of one moment.
//!
//! A collection's hash is MD5 of its documents' bytes in the order of their `_id`s, the database's
//! that of the collections' hashes as hexadecimal digits, as in MongoDB.

use std::collections::BTreeSet;
use std::time::Duration;

use data_encoding::HEXLOWER;
use frond_db::{Database, Error, FindRequest};
use frond_doc::{Binary, DocumentBuilder, Value, document};
use frond_query::Code;
use md5::{Digest, Md5};

use crate::common_fields::UUID_SUBTYPE;
use crate::profiler;
use crate::request::{Answer, Request};

/// Runs a `dbHash`.
pub fn run(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let mut wanted = BTreeSet::new();
    // A value that is no array is ignored, as by MongoDB.
    let names = fields.value("collections").and_then(|names| names.as_array());
    for name in names.iter().flat_map(|names| names.iter()) {
        let Value::String(name) = name else {
            let message = "collections entries have to be strings";
            return Err(Error::invalid(Code::BadValue, message));
        };
        wanted.insert(name.to_owned());
    }
    fields.finish()?;
    let began = request.server.frond.steady_millis();
    // The list of collections is of one moment, like the reads of every collection.
    let interrupt = request.database()?.interrupt().clone();
    let frond = &request.server.frond;
    let moment = frond.lease_moment(Duration::ZERO);
    let database = frond.database_at(request.database_name, &moment)?.interruptible(interrupt);
    let mut collections = database.list_collections()?;
    collections.retain(|collection| {
        let is_wanted = wanted.is_empty() || wanted.contains(&collection.name);
        is_wanted && !collection.is_view() && collection.name != profiler::COLLECTION
    });
    let mut answer = DocumentBuilder::new();
    answer.append("host", Value::String(&request.server.address.to_string()));
    answer.begin_document("collections");
    let mut all = Md5::new();
    for collection in &collections {
        let hash = hash_of(&database, &collection.name)?;
        all.update(hash.as_bytes());
        answer.append(&collection.name, Value::String(&hash));
    }
    answer.end().begin_array("capped");
    for collection in &collections {
        if collection.options.get("capped").is_some_and(|capped| capped.is_truthy()) {
            answer.push(Value::String(&collection.name));
        }
    }
    answer.end().begin_document("uuids");
    for collection in &collections {
        let uuid = Binary { subtype: UUID_SUBTYPE, bytes: &collection.uuid };
        answer.append(&collection.name, Value::Binary(uuid));
    }
    let millis = request.server.frond.steady_millis().saturating_sub(began);
    answer
        .end()
        .append("md5", Value::String(&HEXLOWER.encode(&all.finalize())))
        .append("timeMillis", Value::Int64(millis));
    Ok(answer)
}

fn hash_of(database: &Database, collection: &str) -> Result<String, Error> {
    let find = FindRequest {
        sort: Some(document! { "_id": 1_i32 }),
        interrupt: database.interrupt().clone(),
        ..FindRequest::default()
    };
    let mut hash = Md5::new();
    for document in database.find(collection, &find)? {
        hash.update(document?.as_bytes());
    }
    Ok(HEXLOWER.encode(&hash.finalize()))
}
