//! The collections that mongosh's `sh.status()` reads of a sharded cluster, made up from the lines:
//! `version`, `shards`, `settings` and `mongos` of `config`, none of which is stored.
//! (`config.databases` is: see [`table`](super::table).)
//!
//! The router puts its documents into the client's query, behind a stage that takes the
//! collection's own, and sends it to the default line: the server there says whether the client may
//! read the collection, and runs the query.

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, document};
use frond_store::io::{Clock, SystemClock};

use super::routed_request::RoutedRequest;
use super::shared::Shared;
use super::table::Table;
use crate::commands::handshake::{FROND_VERSION, MONGODB_VERSION};
use crate::wire::{Header, Message};

/// Fields of a `find` that become stages, in their order.
const STAGES: &[(&str, &str)] = &[
    ("filter", "$match"),
    ("sort", "$sort"),
    ("skip", "$skip"),
    ("limit", "$limit"),
    ("projection", "$project"),
];
/// Fields of a `find` that an `aggregate` has not, or by another name.
const OF_FIND: &[&str] = &["batchSize", "singleBatch", "noCursorTimeout"];

/// The query in the place of one that reads such a collection; `None` of any other message.
pub(super) fn query(
    shared: &Shared,
    table: &Table,
    (message, ask): (&[u8], &RoutedRequest<'_>),
) -> Option<Vec<u8>> {
    if ask.database != "config" || !matches!(ask.name, "find" | "aggregate") {
        return None;
    }
    let (_, collection) = ask.body.iter().next()?;
    let documents = documents(shared, table, collection.as_str()?)?;
    let mut query = DocumentBuilder::new();
    query.append("aggregate", collection);
    begin_pipeline(&mut query, &documents);
    match ask.name {
        "find" => append_find(&mut query, ask.body),
        _ => {
            let stages = ask.body.get("pipeline").and_then(|stages| stages.as_array());
            for stage in stages.iter().flat_map(|stages| stages.iter()) {
                query.push(stage);
            }
            query.end();
            for (name, value) in ask.body.iter().skip(1).filter(|(name, _)| *name != "pipeline") {
                query.append(name, value);
            }
        }
    }
    let header = Header::decode(message.first_chunk()?).ok()?;
    Some(Message::new(query.build()).encode(header.request_id, 0))
}

/// Begins a pipeline that gives these documents.
fn begin_pipeline(query: &mut DocumentBuilder, documents: &[DocumentBuf]) {
    query
        .begin_array("pipeline")
        .push_begin_document()
        .begin_document("$match")
        .append("$alwaysFalse", Value::Int32(1))
        .end()
        .end()
        .push_begin_document()
        .begin_document("$unionWith")
        .begin_array("pipeline")
        .push_begin_document()
        .begin_array("$documents");
    for document in documents {
        query.push(Value::from(document));
    }
    query.end().end().end().end().end();
}

/// MoveEnds the pipeline by what a `find` asks, and appends its other fields.
fn append_find(query: &mut DocumentBuilder, find: Document<'_>) {
    for (field, stage) in STAGES {
        let option = find.get(field).filter(|option| match option {
            Value::Document(option) => !option.is_empty(),
            option => option.as_integer() != Some(0),
        });
        if let Some(option) = option {
            query.push_begin_document().append(stage, option).end();
        }
    }
    query.end().begin_document("cursor");
    if let Some(size) = find.get("batchSize") {
        query.append("batchSize", size);
    }
    query.end();
    for (name, value) in find.iter().skip(1) {
        let is_stage = STAGES.iter().any(|(field, _)| *field == name);
        if !is_stage && !OF_FIND.contains(&name) {
            query.append(name, value);
        }
    }
}

/// The documents of a collection; `None` of one that is stored, or that there isn't.
fn documents(shared: &Shared, table: &Table, collection: &str) -> Option<Vec<DocumentBuf>> {
    let now_millis = SystemClock.now_micros().div_euclid(1_000);
    Some(match collection {
        "version" => vec![document! { "_id": 1_i32, "frond": FROND_VERSION }],
        "settings" => vec![document! { "_id": "balancer", "mode": "off", "stopped": true }],
        "mongos" => {
            let up = i64::try_from(shared.started.elapsed().as_secs()).unwrap_or(i64::MAX);
            vec![document! {
                "_id": &*shared.address.to_string(),
                "ping": Value::DateTime(now_millis),
                "up": up,
                "waiting": true,
                "mongoVersion": MONGODB_VERSION,
            }]
        }
        "shards" => {
            let shard = |name: &str, uri: &str| {
                document! { "_id": name, "host": &*host(uri), "state": 1_i32 }
            };
            table.lines().map(|line| shard(&line.name, &line.uri)).collect()
        }
        _ => return None,
    })
}

/// A line's members in the form of a shard's: `rs0/a:27017,b:27017`.
fn host(uri: &str) -> String {
    let rest = uri.strip_prefix("mongodb://").unwrap_or(uri);
    let (hosts, options) = rest.split_once('?').unwrap_or((rest, ""));
    let hosts = hosts.split_once('/').map_or(hosts, |(hosts, _)| hosts);
    let set = options.split('&').find_map(|option| option.strip_prefix("replicaSet="));
    set.map_or_else(|| hosts.to_owned(), |set| format!("{set}/{hosts}"))
}

/// `balancerStatus`: nothing moves by itself.
pub(super) fn balancer() -> DocumentBuf {
    document! { "mode": "off", "inBalancerRound": false, "numBalancerRounds": 0_i64, "ok": 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_listed_as_a_shards() {
        for (uri, expected) in [
            ("mongodb://a:1", "a:1"),
            ("mongodb://a:1,b:2/?replicaSet=rs0&tls=true", "rs0/a:1,b:2"),
            ("mongodb://[::1]:1/?tls=true", "[::1]:1"),
        ] {
            assert_eq!(host(uri), expected, "{uri}");
        }
    }

    #[test]
    fn a_find_becomes_stages_and_keeps_what_both_commands_have() {
        let (filter, empty) = (document! { "_id": "eu" }, document! {});
        let find = document! {
            "find": "shards", "filter": &filter, "sort": &empty, "limit": 1_i32, "skip": 0_i32,
            "batchSize": 2_i32, "singleBatch": true, "comment": "why", "$db": "config",
        };
        let mut query = DocumentBuilder::new();
        query.append("aggregate", Value::String("shards"));
        begin_pipeline(&mut query, &[document! { "_id": 7_i32 }]);
        append_find(&mut query, find.view());
        let text = frond_query::text::value(Value::from(&query.build()));
        assert_eq!(
            text,
            "{ aggregate: \"shards\", pipeline: [ { $match: { $alwaysFalse: 1 } }, { $unionWith: \
             { pipeline: [ { $documents: [ { _id: 7 } ] } ] } }, { $match: { _id: \"eu\" } }, \
             { $limit: 1 } ], cursor: { batchSize: 2 }, comment: \"why\", $db: \"config\" }"
        );
    }
}
