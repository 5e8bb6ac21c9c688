//! SQLite (documents as JSONB, and plain columns) and PostgreSQL (JSONB), with the same readings.

#[path = "../../src/targets/postgres/cluster.rs"]
mod cluster;

use std::path::Path;
use std::time::Instant;

use cluster::Cluster;
use postgres::{Client, NoTls};
use rusqlite::Connection;

use crate::Failure;
use crate::reading::{Reading, reading};

/// A reading as JSON.
fn json(reading: &Reading) -> String {
    format!(
        r#"{{"_id":{},"station":"{}","region":{},"at":{},"value":{},"count":{},"status":"{}","place":{{"x":{},"y":{}}},"note":"{}"}}"#,
        reading.number,
        reading.station,
        reading.region,
        reading.at,
        reading.value,
        reading.count,
        reading.status,
        reading.region * 7,
        reading.count * 3,
        reading.note
    )
}

/// SQLite with a table of JSONB (`docs`) and one of columns (`plain`), in memory: all is in cache.
pub struct Sqlite(Connection);

impl Sqlite {
    /// Loads `count` readings.
    pub fn load(count: u32, note_words: u64) -> Result<Sqlite, Failure> {
        let mut connection = Connection::open_in_memory()?;
        connection.execute_batch(
            "create table docs (number integer primary key, doc blob not null);
             create table plain (number integer primary key, station text, region int, at int, value real,
                                 count int, status text, x int, y int, note text);",
        )?;
        let transaction = connection.transaction()?;
        {
            let mut docs = transaction.prepare("insert into docs values (?1, jsonb(?2))")?;
            let mut plain =
                transaction.prepare("insert into plain values (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)")?;
            for number in 0..count {
                let one = reading(number, note_words);
                docs.execute((one.number, json(&one)))?;
                let (x, y) = (one.region * 7, one.count * 3);
                plain.execute((
                    one.number,
                    one.station,
                    one.region,
                    one.at,
                    one.value,
                    one.count,
                    one.status,
                    x,
                    y,
                    one.note,
                ))?;
            }
        }
        transaction.commit()?;
        Ok(Sqlite(connection))
    }

    /// Runs a query; answers how many rows came.
    pub fn run(&self, query: &str) -> Result<u64, Failure> {
        let mut statement = self.0.prepare(query)?;
        let mut rows = statement.query([])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            // Rows are read, as a client would.
            let _ = row.get_ref(0)?;
            count += 1;
        }
        Ok(count)
    }
}

/// PostgreSQL, a server of our own with 1 GB of buffers and without parallel workers, so that its
/// time is that of one core.
pub struct Postgres {
    client: Client,
    _cluster: Cluster,
}

impl Postgres {
    /// Starts a server and loads `count` readings.
    pub fn load(directory: &Path, count: u32, note_words: u64) -> Result<Postgres, Failure> {
        let settings = ["shared_buffers=1GB", "max_parallel_workers_per_gather=0", "jit=off"];
        let cluster = Cluster::start(directory, &settings)?;
        let mut client = Client::connect(&cluster.address(), NoTls)?;
        client
            .batch_execute("create table docs (number bigint primary key, doc jsonb not null)")?;
        for first in (0..count).step_by(10_000) {
            let numbers = first..count.min(first + 10_000);
            let texts: Vec<String> =
                numbers.map(|number| json(&reading(number, note_words))).collect();
            client.execute(
                "insert into docs select (doc::jsonb ->> '_id')::bigint, doc::jsonb \
                 from unnest($1::text[]) as batch (doc)",
                &[&texts],
            )?;
        }
        client.batch_execute("vacuum analyze docs")?;
        Ok(Postgres { client, _cluster: cluster })
    }

    /// Runs a query in the server; answers how many rows came, and in how many seconds.
    pub fn run(&mut self, query: &str) -> Result<(u64, f64), Failure> {
        let begin = Instant::now();
        let rows = self.client.query(query, &[])?;
        Ok((rows.len() as u64, begin.elapsed().as_secs_f64()))
    }
}
