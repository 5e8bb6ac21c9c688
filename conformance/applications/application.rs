//! The application of drivers.py with the Rust driver. It is built with docbench, which has the
//! driver already.

use std::error::Error;
use std::io::Write;
use std::time::{Duration, Instant};

use bson::{Bson, Document, doc};
use futures_util::{AsyncReadExt, AsyncWriteExt, TryStreamExt};
use mongodb::change_stream::event::{ChangeStreamEvent, ResumeToken};
use mongodb::{Client, Collection, Database};

const COUNTED: Duration = Duration::from_secs(3);
const FILE_BYTES: usize = 2_000_000;
const TEXT_BYTES: usize = 1_000_000;

type Done<T = ()> = Result<T, Box<dyn Error>>;

#[tokio::main]
async fn main() -> Done {
    let uri = std::env::args().nth(1).ok_or("usage: driver-application URI")?;
    let client = Client::with_uri_str(uri).await?;
    let database = client.database("rust");
    let things = database.collection::<Document>("things");
    let mut findings = doc! {};
    let status = client.database("admin").run_command(doc! { "connectionStatus": 1 }).await?;
    let users = status.get_document("authInfo")?.get_array("authenticatedUsers")?;
    findings.insert("user", users[0].as_document().ok_or("no user")?.get_str("user")?);
    read_and_write(&things, &mut findings).await?;
    transact(&client, &things, &mut findings).await?;
    let token = watch(&things, &mut findings).await?;
    count_through_a_kill(&things, &mut findings).await?;
    let mut stream = things.watch().resume_after(token).await?;
    findings.insert("resumed", described(stream.try_next().await?)?);
    keep_file(&database, &mut findings).await?;
    compress(&client, &things, &mut findings).await?;
    println!("{}", serde_json::to_string(&findings)?);
    Ok(())
}

async fn read_and_write(things: &Collection<Document>, findings: &mut Document) -> Done {
    things.drop().await?;
    things.insert_many((0..500).map(|number| doc! { "_id": number, "v": number })).await?;
    findings.insert("found", values(things, doc! { "v": { "$lt": 5 } }, -1).await?);
    let add = doc! { "$inc": { "v": 1000 } };
    let updated = things.update_many(doc! { "v": { "$gte": 490 } }, add).await?;
    findings.insert("modified", i64::try_from(updated.modified_count)?);
    let deleted = things.delete_one(doc! { "_id": 499 }).await?;
    findings.insert("deleted", i64::try_from(deleted.deleted_count)?);
    findings.insert("count", i64::try_from(things.count_documents(doc! {}).await?)?);
    let group = doc! { "$group": { "_id": null, "sum": { "$sum": "$v" } } };
    let sums: Vec<Document> = things.aggregate([group]).await?.try_collect().await?;
    findings.insert("sum", sums[0].get("sum").ok_or("no sum")?);
    Ok(())
}

async fn transact(client: &Client, things: &Collection<Document>, findings: &mut Document) -> Done {
    let mut session = client.start_session().await?;
    let add = doc! { "$inc": { "v": 10 } };
    let changed = session.start_transaction().and_run2(async |inside| {
        things.update_one(doc! { "_id": 1 }, add.clone()).session(&mut *inside).await?;
        things.delete_one(doc! { "_id": 2 }).session(inside).await
    });
    changed.await?;
    let failed = session.start_transaction().and_run2(async |inside| {
        things.update_one(doc! { "_id": 3 }, add.clone()).session(inside).await?;
        Err::<(), _>(mongodb::error::Error::custom("taken back"))
    });
    let error = failed.await.expect_err("the callback failed");
    error.get_custom::<&str>().ok_or_else(|| error.to_string())?;
    findings.insert("transaction", values(things, doc! { "_id": { "$in": [1, 2, 3] } }, 1).await?);
    Ok(())
}

async fn watch(things: &Collection<Document>, findings: &mut Document) -> Done<ResumeToken> {
    let mut stream = things.watch().await?;
    things.insert_one(doc! { "_id": "event" }).await?;
    findings.insert("event", described(stream.try_next().await?)?);
    Ok(stream.resume_token().ok_or("no token")?)
}

async fn count_through_a_kill(things: &Collection<Document>, findings: &mut Document) -> Done {
    println!("kill");
    std::io::stdout().flush()?;
    let (mut acknowledged, mut unknown) = (0, 0);
    let begun = Instant::now();
    while begun.elapsed() < COUNTED {
        match things.update_one(doc! { "_id": 0 }, doc! { "$inc": { "n": 1 } }).await {
            Ok(_) => acknowledged += 1,
            Err(_) => unknown += 1,
        }
    }
    let found = things.find_one(doc! { "_id": 0 }).await?.ok_or("not there")?;
    findings.insert("counts", vec![acknowledged, found.get_i32("n")?, unknown]);
    Ok(())
}

async fn keep_file(database: &Database, findings: &mut Document) -> Done {
    let files = database.gridfs_bucket(None);
    let written: Vec<u8> = (0..FILE_BYTES).map(|at| (at * at / 7) as u8).collect();
    let mut upload = files.open_upload_stream("file").await?;
    upload.write_all(&written).await?;
    upload.close().await?;
    let mut read = Vec::new();
    files.open_download_stream(upload.id().clone()).await?.read_to_end(&mut read).await?;
    findings.insert("file", read == written);
    Ok(())
}

/// How much of an answer that repeats itself goes over the wire.
async fn compress(client: &Client, things: &Collection<Document>, findings: &mut Document) -> Done {
    things.insert_one(doc! { "_id": "text", "text": "x".repeat(TEXT_BYTES) }).await?;
    let before = traffic(client).await?;
    things.find_one(doc! { "_id": "text" }).await?;
    let after = traffic(client).await?;
    findings.insert("compressed", after.1 - before.1 < (after.0 - before.0) / 2);
    Ok(())
}

async fn traffic(client: &Client) -> Done<(i64, i64)> {
    let status = client.database("admin").run_command(doc! { "serverStatus": 1 }).await?;
    let network = status.get_document("network")?;
    Ok((network.get_i64("bytesOut")?, network.get_i64("physicalBytesOut")?))
}

/// The field `v` of what a filter finds, by `_id`.
async fn values(
    things: &Collection<Document>,
    filter: Document,
    direction: i32,
) -> Done<Vec<Bson>> {
    let found = things.find(filter).sort(doc! { "_id": direction }).await?;
    let found: Vec<Document> = found.try_collect().await?;
    Ok(found.into_iter().filter_map(|each| each.get("v").cloned()).collect())
}

fn described(event: Option<ChangeStreamEvent<Document>>) -> Done<Vec<Bson>> {
    let event = event.ok_or("the stream ended")?;
    let kind = bson::serialize_to_bson(&event.operation_type)?;
    let key = event.document_key.ok_or("no key")?;
    Ok(vec![kind, key.get("_id").ok_or("no _id")?.clone()])
}
