//! PostgreSQL: a server of our own on a socket in a temporary directory, documents as JSONB,
//! expression indexes, `fsync` and `synchronous_commit` on.
//!
//! The server may not run as root: it runs as the user `postgres` if this process is root.

mod cluster;

use std::path::Path;
use std::sync::Mutex;

use bytes::Bytes;
use postgres::{Client, NoTls, Statement};

use self::cluster::Cluster;
use crate::measure::Processes;
use crate::order::Order;
use crate::target::{Encoded, Failure, Session, Target};
use crate::targets::CACHE_BYTES;

const SCHEMA: &str = "
    create table orders (number bigint primary key, doc jsonb not null);
    create index by_customer on orders (((doc -> 'customer' ->> 'number')::bigint));
    create index by_created on orders (((doc ->> 'created')::bigint));
    create index by_total on orders (((doc ->> 'total')::bigint));
";
const INSERT: &str = "insert into orders select number, doc::jsonb \
                      from unnest($1::bigint[], $2::text[]) as batch (number, doc)";
const INSERT_ONE: &str = "insert into orders values ($1, $2::text::jsonb)";
const BY_ID: &str = "select doc::text from orders where number = $1";
const BY_CUSTOMER: &str =
    "select doc::text from orders where (doc -> 'customer' ->> 'number')::bigint = $1";
const BY_CITY: &str = "select doc::text from orders where doc -> 'address' ->> 'city' = $1";
const SET_STATUS: &str =
    "update orders set doc = jsonb_set(doc, '{status}', to_jsonb($2::text)) where number = $1";

/// Settings that the report shows as the server reports them.
const SETTINGS_SHOWN: [&str; 7] = [
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "shared_buffers",
    "max_wal_size",
    "autovacuum",
    "max_parallel_workers_per_gather",
];

/// A running server.
pub struct Server {
    cluster: Cluster,
    description: String,
    /// A connection for what isn't a session's.
    client: Mutex<Client>,
}

impl Server {
    /// Makes a cluster, starts its server and makes the table and its indexes.
    pub fn start(directory: &Path) -> Result<Server, Failure> {
        let cluster = Cluster::start(
            directory,
            &[
                &format!("shared_buffers={}MB", CACHE_BYTES >> 20),
                "fsync=on",
                "synchronous_commit=on",
            ],
        )?;
        let mut client = Client::connect(&cluster.address(), NoTls)?;
        client.batch_execute(SCHEMA)?;
        let version: String = client.query_one("show server_version", &[])?.get(0);
        let mut settings = Vec::new();
        for setting in SETTINGS_SHOWN {
            let value: String = client.query_one(&format!("show {setting}"), &[])?.get(0);
            settings.push(format!("{setting}={value}"));
        }
        let description = format!(
            "PostgreSQL {version}, a server on a Unix socket, JSONB, prepared statements; {}",
            settings.join(", ")
        );
        Ok(Server { cluster, description, client: Mutex::new(client) })
    }
}

impl Target for Server {
    fn name(&self) -> &'static str {
        "PostgreSQL"
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn processes(&self) -> Processes {
        Processes::Server { process: self.cluster.process() }
    }

    fn directory(&self) -> &Path {
        self.cluster.data()
    }

    fn encode(&self, order: &Order) -> Result<Bytes, Failure> {
        Ok(serde_json::to_vec(order)?.into())
    }

    fn decode(&self, document: &Bytes) -> Result<Order, Failure> {
        Ok(serde_json::from_slice(document)?)
    }

    fn session(&self) -> Result<Box<dyn Session>, Failure> {
        Ok(Box::new(ServerSession::connect(&self.cluster.address())?))
    }

    /// Also brings the planner's statistics up to date, which autovacuum would do a minute later.
    fn settle(&self) -> Result<(), Failure> {
        let mut client = self.client.lock().map_err(|_| "a thread panicked")?;
        Ok(client.batch_execute("analyze orders; checkpoint")?)
    }
}

struct ServerSession {
    client: Client,
    insert: Statement,
    insert_one: Statement,
    by_id: Statement,
    by_customer: Statement,
    by_city: Statement,
    set_status: Statement,
}

impl ServerSession {
    fn connect(address: &str) -> Result<ServerSession, Failure> {
        let mut client = Client::connect(address, NoTls)?;
        Ok(ServerSession {
            insert: client.prepare(INSERT)?,
            insert_one: client.prepare(INSERT_ONE)?,
            by_id: client.prepare(BY_ID)?,
            by_customer: client.prepare(BY_CUSTOMER)?,
            by_city: client.prepare(BY_CITY)?,
            set_status: client.prepare(SET_STATUS)?,
            client,
        })
    }
}

impl Session for ServerSession {
    fn insert(&mut self, documents: &[Encoded]) -> Result<(), Failure> {
        if let [(number, document)] = documents {
            let text = std::str::from_utf8(document)?;
            self.client.execute(&self.insert_one, &[number, &text])?;
            return Ok(());
        }
        let numbers: Vec<i64> = documents.iter().map(|(number, _)| *number).collect();
        let texts: Result<Vec<&str>, _> =
            documents.iter().map(|(_, document)| std::str::from_utf8(document)).collect();
        self.client.execute(&self.insert, &[&numbers, &texts?])?;
        Ok(())
    }

    fn by_id(&mut self, number: i64) -> Result<Option<Bytes>, Failure> {
        let row = self.client.query_opt(&self.by_id, &[&number])?;
        Ok(row.map(|row| Bytes::from(row.get::<_, String>(0))))
    }

    fn by_customer(&mut self, customer: i64) -> Result<Vec<Bytes>, Failure> {
        let rows = self.client.query(&self.by_customer, &[&customer])?;
        Ok(rows.iter().map(|row| Bytes::from(row.get::<_, String>(0))).collect())
    }

    fn by_city(&mut self, city: &str) -> Result<Vec<Bytes>, Failure> {
        let rows = self.client.query(&self.by_city, &[&city])?;
        Ok(rows.iter().map(|row| Bytes::from(row.get::<_, String>(0))).collect())
    }

    fn set_status(&mut self, number: i64, status: &str) -> Result<u64, Failure> {
        Ok(self.client.execute(&self.set_status, &[&number, &status])?)
    }
}
