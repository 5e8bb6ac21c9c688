//! Any server of MongoDB's protocol, by MongoDB's own Rust driver: Frond, MongoDB, FerretDB and
//! others.
//!
//! Writes have the write concern `{w: "majority", j: true}`; documents travel as raw BSON, so that
//! the driver doesn't build them. Everything else is the driver's default, retryable writes
//! included. With the scheme `plain+mongodb` sessions do without a driver ([`plain`]).
//!
//! Each session has a client of the driver of its own, on a runtime of its own thread, as the
//! PostgreSQL driver's sessions have: shared by threads, the driver hands each operation to another
//! thread and back, which cost more than what the server does. So a session has a second
//! connection, by which the driver's monitor asks the server now and then how it is.

mod plain;
mod wire;

use std::time::Duration;

use bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};
use bytes::Bytes;
use mongodb::error::{Error, ErrorKind, TRANSIENT_TRANSACTION_ERROR};
use mongodb::options::{Acknowledgment, ClientOptions, TransactionOptions, WriteConcern};
use mongodb::options::{ReadConcern, SelectionCriteria, ServerMonitoringMode};
use mongodb::{Client, ClientSession, Collection, Database};
use tokio::runtime::{Builder, Runtime};

use crate::machine;
use crate::query::{Answer, Change, CollectionSpec, IndexSpec, Query};
use crate::target::{About, Capabilities, Durability, Encoded, Failure, Session, Target};
use crate::targets::managed::Server;
use crate::targets::managed::frond::{PASSWORD, USER};
use crate::targets::{Settings, mongo_form};

const DATABASE: &str = "docbench";
const PATIENCE: Duration = Duration::from_secs(20);
/// MongoDB's WriteConflict.
const WRITE_CONFLICT: i32 = 112;
/// MongoDB's Unauthorized.
const UNAUTHORIZED: i32 = 13;

/// What an address begins with whose sessions do without a driver.
pub const PLAIN: &str = "plain+";

/// A server.
pub struct Mongo {
    about: About,
    own: Driver,
    options: ClientOptions,
    /// Where sessions connect that do without a driver.
    plain: Option<String>,
    directory: Option<std::path::PathBuf>,
    /// Stopped after the client has gone: fields are dropped in this order.
    server: Option<Server>,
}

/// A client of the driver, on a runtime that works only while a caller waits for it.
struct Driver {
    client: Client,
    runtime: Runtime,
}

impl Driver {
    fn connect(options: ClientOptions) -> Result<Driver, Failure> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::other)?;
        let client = runtime.block_on(async { Client::with_options(options) });
        Ok(Driver { client: client.map_err(Failure::other)?, runtime })
    }

    fn command(&self, database: &str, command: Document) -> Result<Document, Error> {
        let database = self.client.database(database);
        self.runtime.block_on(async { database.run_command(command).await })
    }
}

/// Makes the first user of the server at `uri`, unless an earlier start did; answers the address by
/// which it logs in.
pub fn with_user(uri: &str, server: &mut Server) -> Result<String, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::other)?;
    let anonymous = runtime.block_on(async { ClientOptions::parse(uri).await });
    let mut options = anonymous.map_err(Failure::other)?;
    options.server_selection_timeout = Some(Duration::from_secs(1));
    let anonymous = Driver::connect(options)?;
    let user = doc! { "createUser": USER, "pwd": PASSWORD, "roles": ["root"] };
    server.ready(|| match anonymous.command("admin", user.clone()) {
        Err(error) if !is_unauthorized(&error) => Err(Failure::other(error)),
        _ => Ok(()),
    })?;
    let password = PASSWORD.replace(' ', "%20");
    Ok(uri.replacen("://", &format!("://{USER}:{password}@"), 1))
}

/// Whether the server wants a user first: it has one.
fn is_unauthorized(error: &Error) -> bool {
    matches!(&*error.kind, ErrorKind::Command(command) if command.code == UNAUTHORIZED)
}

impl Mongo {
    /// Connects to the server at `uri`, which may begin with [`PLAIN`]; `server` is the one that we
    /// started, if we did.
    pub fn connect(
        name: &str,
        uri: &str,
        mut server: Option<Server>,
        durability: Durability,
        settings: &Settings<'_>,
    ) -> Result<Mongo, Failure> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::other)?;
        let (is_plain, uri) = uri.strip_prefix(PLAIN).map_or((false, uri), |uri| (true, uri));
        let options = runtime.block_on(async { ClientOptions::parse(uri).await });
        let mut options = options.map_err(Failure::other)?;
        let plain = options.hosts.first().filter(|_| is_plain).map(ToString::to_string);
        options.server_monitoring_mode = Some(ServerMonitoringMode::Poll);
        options.server_selection_timeout = Some(PATIENCE);
        let concern = WriteConcern::builder().w(Acknowledgment::Majority).journal(true).build();
        options.write_concern = Some(concern);
        let own = Driver::connect(options.clone())?;
        let ping = || own.command("admin", doc! { "ping": 1 }).map_err(Failure::other);
        match &mut server {
            Some(server) => server.ready(ping)?,
            None => ping()?,
        };
        let build = own.command("admin", doc! { "buildInfo": 1 }).map_err(Failure::other)?;
        let hello = own.command("admin", doc! { "hello": 1 }).map_err(Failure::other)?;
        let transactions = hello.contains_key("setName")
            || hello.get_str("msg").is_ok_and(|text| text == "isdbgrid");
        let is_frond = build.contains_key("frond") || name.starts_with("frond");
        let cache = settings.cache_bytes >> 20;
        let client = match is_plain {
            true => "plain: commands over one connection, no driver",
            false => "the driver mongodb 3 (Rust), one client a session, on its thread",
        };
        let mut server_settings = vec![
            ("write concern".into(), "{w: \"majority\", j: true}".into()),
            ("client".into(), client.into()),
        ];
        if server.is_some() {
            server_settings.push(("cache".into(), format!("{cache} MB")));
        }
        let version = build.get_str("version").unwrap_or("unknown");
        let about = About {
            name: name.into(),
            version: match is_frond {
                true => format!("Frond {}, speaks MongoDB {version}", env!("CARGO_PKG_VERSION")),
                false => version.into(),
            },
            connection: "TCP, MongoDB's protocol".into(),
            durability,
            capabilities: Capabilities {
                documents: true,
                indexes: true,
                clustered_indexes: is_frond,
                transactions,
                sql: false,
                array_positions: true,
                concurrent_writers: true,
            },
            settings: server_settings,
        };
        // A server of ours has what it is meant to have; another may have an earlier run's data.
        if server.is_none() {
            own.command(DATABASE, doc! { "dropDatabase": 1 }).map_err(Failure::other)?;
        }
        let directory = server.is_some().then(|| settings.directory.into());
        Ok(Mongo { about, own, options, plain, directory, server })
    }
}

impl Target for Mongo {
    fn about(&self) -> &About {
        &self.about
    }

    fn session(&self) -> Result<Box<dyn Session>, Failure> {
        if let Some(address) = &self.plain {
            return Ok(Box::new(plain::PlainSession::connect(address)?));
        }
        let driver = Driver::connect(self.options.clone())?;
        let database = driver.client.database(DATABASE);
        Ok(Box::new(MongoSession { transaction: None, database, driver }))
    }

    fn encode(&self, document: &Document) -> Result<Bytes, Failure> {
        Ok(Bytes::from(document.to_vec()?))
    }

    fn decode(&self, bytes: &[u8]) -> Result<Document, Failure> {
        Ok(Document::from_reader(bytes)?)
    }

    /// `fsync` is MongoDB's own checkpoint; a server that doesn't have it goes without.
    fn settle(&self) -> Result<(), Failure> {
        match self.own.command("admin", doc! { "fsync": 1 }) {
            Ok(_) => Ok(()),
            Err(error) if matches!(*error.kind, ErrorKind::Command(_)) => Ok(()),
            Err(error) => Err(Failure::other(error)),
        }
    }

    fn disk_bytes(&self) -> Option<u64> {
        self.directory.as_deref().map(machine::disk_bytes)
    }

    fn processes(&self) -> Vec<u32> {
        self.server.iter().flat_map(Server::processes).collect()
    }
}

struct MongoSession {
    transaction: Option<ClientSession>,
    database: Database,
    /// Fields are dropped in their order: the runtime after all that uses it.
    driver: Driver,
}

fn failure(error: Error) -> Failure {
    let is_conflict = match error.kind.as_ref() {
        ErrorKind::Command(command) => command.code == WRITE_CONFLICT,
        _ => false,
    };
    if is_conflict || error.contains_label(TRANSIENT_TRANSACTION_ERROR) {
        return Failure::Conflict(error.to_string());
    }
    Failure::other(error)
}

/// Runs an operation of the driver, in the transaction if there is one.
macro_rules! run {
    ($session:expr, $operation:expr) => {{
        let operation = $operation;
        let MongoSession { transaction, driver, .. } = $session;
        let answer = driver.runtime.block_on(async {
            match transaction {
                Some(transaction) => operation.session(transaction).await,
                None => operation.await,
            }
        });
        answer.map_err(failure)
    }};
}

impl MongoSession {
    fn collection(&self, name: &str) -> Collection<RawDocumentBuf> {
        self.database.collection(name)
    }

    fn command(&mut self, command: Document) -> Result<Document, Failure> {
        self.driver.command(DATABASE, command).map_err(failure)
    }
}

fn raw(bytes: &Bytes) -> Result<RawDocumentBuf, Failure> {
    Ok(RawDocument::from_bytes(bytes).map_err(Failure::other)?.to_owned())
}

impl Session for MongoSession {
    fn create(&mut self, collection: &CollectionSpec) -> Result<(), Failure> {
        let old = self.collection(&collection.name);
        self.driver.runtime.block_on(async { old.drop().await }).map_err(failure)?;
        self.command(doc! { "create": &collection.name })?;
        match mongo_form::indexes_of(collection) {
            Some(command) => self.command(command).map(drop),
            None => Ok(()),
        }
    }

    fn create_index(&mut self, collection: &str, index: &IndexSpec) -> Result<(), Failure> {
        match mongo_form::create_indexes(collection, std::slice::from_ref(index)) {
            Some(command) => self.command(command).map(drop),
            None => Ok(()),
        }
    }

    fn insert(&mut self, collection: &str, documents: &[Encoded]) -> Result<(), Failure> {
        let collection = self.collection(collection);
        if let [document] = documents {
            let document = raw(&document.bytes)?;
            run!(self, collection.insert_one(document))?;
            return Ok(());
        }
        let all: Result<Vec<_>, _> = documents.iter().map(|one| raw(&one.bytes)).collect();
        run!(self, collection.insert_many(all?))?;
        Ok(())
    }

    fn get(&mut self, collection: &str, id: &Bson) -> Result<Option<Bytes>, Failure> {
        let collection = self.collection(collection);
        let found = run!(self, collection.find_one(doc! { "_id": id.clone() }))?;
        Ok(found.map(|document| Bytes::from(document.into_bytes())))
    }

    fn find(
        &mut self,
        query: &Query,
        each: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let collection = self.collection(&query.collection);
        let filter = mongo_form::filter(&query.conditions);
        if matches!(query.answer, Answer::Count) {
            return run!(self, collection.count_documents(filter));
        }
        let mut find = collection.find(filter);
        if let Some(sort) = mongo_form::sort(query) {
            find = find.sort(sort);
        }
        if let Some(projection) = mongo_form::projection(query) {
            find = find.projection(projection);
        }
        if let Some(limit) = query.limit {
            find = find.limit(limit as i64);
            // One batch, where it fits.
            find = find.batch_size(u32::try_from(limit).unwrap_or(u32::MAX).saturating_add(1));
        }
        let MongoSession { transaction, driver, .. } = self;
        driver.runtime.block_on(async {
            let mut count = 0;
            match transaction {
                Some(transaction) => {
                    let cursor = find.session(&mut *transaction).await;
                    let mut cursor = cursor.map_err(failure)?;
                    while cursor.advance(transaction).await.map_err(failure)? {
                        count += 1;
                        each(cursor.current().as_bytes())?;
                    }
                }
                None => {
                    let mut cursor = find.await.map_err(failure)?;
                    while cursor.advance().await.map_err(failure)? {
                        count += 1;
                        each(cursor.current().as_bytes())?;
                    }
                }
            }
            Ok(count)
        })
    }

    fn update(&mut self, collection: &str, id: &Bson, changes: &[Change]) -> Result<u64, Failure> {
        let collection = self.collection(collection);
        let update = mongo_form::update(changes);
        let done = run!(self, collection.update_one(doc! { "_id": id.clone() }, update))?;
        Ok(done.matched_count)
    }

    fn update_each(
        &mut self,
        collection: &str,
        changes: &[(Bson, Vec<Change>)],
    ) -> Result<u64, Failure> {
        let database = self.database.clone();
        let command = mongo_form::update_each(collection, changes);
        let answer: Document = run!(self, database.run_command(command))?;
        if let Some(errors) = answer.get("writeErrors") {
            return Err(Failure::Other(errors.to_string()));
        }
        let count = answer.get("n").and_then(|count| match count {
            Bson::Int32(count) => u64::try_from(*count).ok(),
            Bson::Int64(count) => u64::try_from(*count).ok(),
            _ => None,
        });
        count.ok_or_else(|| Failure::Wrong(format!("an update answered {answer}")))
    }

    fn modify(
        &mut self,
        collection: &str,
        id: &Bson,
        changes: &[Change],
    ) -> Result<Option<Bytes>, Failure> {
        let (collection, update) = (self.collection(collection), mongo_form::update(changes));
        let found = run!(self, collection.find_one_and_update(doc! { "_id": id.clone() }, update))?;
        Ok(found.map(|document| Bytes::from(document.into_bytes())))
    }

    fn remove_first(&mut self, query: &Query) -> Result<Option<Bytes>, Failure> {
        let collection = self.collection(&query.collection);
        let mut remove = collection.find_one_and_delete(mongo_form::filter(&query.conditions));
        if let Some(sort) = mongo_form::sort(query) {
            remove = remove.sort(sort);
        }
        let found = run!(self, remove)?;
        Ok(found.map(|document| Bytes::from(document.into_bytes())))
    }

    fn copy(&mut self, from: &str, to: &str, change: &Change) -> Result<(), Failure> {
        let pipeline = mongo_form::copy(to, change)?;
        let from = self.collection(from);
        self.driver.runtime.block_on(async { from.aggregate(pipeline).await }).map_err(failure)?;
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Failure> {
        let concern = WriteConcern::builder().w(Acknowledgment::Majority).journal(true).build();
        let options = TransactionOptions::builder()
            .write_concern(concern)
            .read_concern(ReadConcern::snapshot())
            .selection_criteria(SelectionCriteria::ReadPreference(
                mongodb::options::ReadPreference::Primary,
            ))
            .build();
        let Driver { client, runtime } = &self.driver;
        let session = runtime.block_on(async {
            let mut session = client.start_session().await?;
            session.start_transaction().with_options(options).await?;
            Ok(session)
        });
        self.transaction = Some(session.map_err(failure)?);
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Failure> {
        match self.transaction.take() {
            Some(mut session) => {
                let runtime = &self.driver.runtime;
                runtime.block_on(async { session.commit_transaction().await }).map_err(failure)
            }
            None => Ok(()),
        }
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        if let Some(mut session) = self.transaction.take() {
            // The server may have ended it by itself, when it told of a conflict.
            let _ = self.driver.runtime.block_on(async { session.abort_transaction().await });
        }
        Ok(())
    }
}
