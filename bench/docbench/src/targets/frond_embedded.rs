//! Frond, embedded: the crate `frond-db` in this process, every write synced.

use std::path::PathBuf;

use bson::{Bson, Document, doc};
use bytes::Bytes;
use frond_db::catalog::IndexSpec as FrondIndex;
use frond_db::{
    AggregateRequest, Database, Durability as FrondDurability, Error, ErrorKind, FindAndModify,
    FindRequest, Frond, FrondOptions, Transaction, UpdateStatement,
};
use frond_doc::{DocumentBuf, ValueBuf};
use frond_engine::EngineOptions;

use crate::machine;
use crate::query::{Answer, Change, CollectionSpec, IndexSpec, Query};
use crate::target::{About, Capabilities, Durability, Encoded, Failure, Session, Target};
use crate::targets::{Settings, mongo_form};

const DATABASE: &str = "docbench";

/// An open data directory.
pub struct Embedded {
    about: About,
    directory: PathBuf,
    frond: Frond,
}

impl Embedded {
    /// Makes the data directory.
    pub fn start(settings: &Settings<'_>) -> Result<Embedded, Failure> {
        let engine =
            EngineOptions { cache_bytes: settings.cache_bytes, ..EngineOptions::default() };
        let options = FrondOptions { engine, ..FrondOptions::default() };
        let directory = settings.directory.join("data");
        let frond = frond_vcs::open(&directory, options).map_err(failure)?;
        let about = About {
            name: "frond-embedded".into(),
            version: format!("Frond {}", env!("CARGO_PKG_VERSION")),
            connection: "embedded".into(),
            durability: Durability::Synced,
            capabilities: Capabilities {
                documents: true,
                indexes: true,
                clustered_indexes: true,
                transactions: true,
                sql: false,
                array_positions: true,
                concurrent_writers: true,
            },
            settings: vec![
                ("cache".into(), format!("{} MB", engine.cache_bytes >> 20)),
                ("memtable".into(), format!("{} MB", engine.memtable_bytes_max >> 20)),
            ],
        };
        Ok(Embedded { about, directory, frond })
    }
}

impl Target for Embedded {
    fn about(&self) -> &About {
        &self.about
    }

    fn session(&self) -> Result<Box<dyn Session>, Failure> {
        let database = self.frond.database(DATABASE).map_err(failure)?;
        Ok(Box::new(EmbeddedSession { frond: self.frond.clone(), database, transaction: None }))
    }

    fn encode(&self, document: &Document) -> Result<Bytes, Failure> {
        Ok(Bytes::from(document.to_vec()?))
    }

    fn decode(&self, bytes: &[u8]) -> Result<Document, Failure> {
        Ok(Document::from_reader(bytes)?)
    }

    fn settle(&self) -> Result<(), Failure> {
        self.frond.engine().checkpoint().map_err(Failure::other)
    }

    fn disk_bytes(&self) -> Option<u64> {
        Some(machine::disk_bytes(&self.directory))
    }

    fn processes(&self) -> Vec<u32> {
        vec![std::process::id()]
    }
}

fn failure(error: Error) -> Failure {
    match error.kind {
        ErrorKind::Conflict => Failure::Conflict(error.to_string()),
        _ => Failure::other(error),
    }
}

fn buffer(document: &Document) -> Result<DocumentBuf, Failure> {
    DocumentBuf::validated(Bytes::from(document.to_vec()?)).map_err(Failure::other)
}

struct EmbeddedSession {
    frond: Frond,
    database: Database,
    /// The transaction, and the database as it sees it.
    transaction: Option<(Transaction, Database)>,
}

impl EmbeddedSession {
    fn database(&self) -> &Database {
        self.transaction.as_ref().map_or(&self.database, |(_, database)| database)
    }

    fn run_updates(
        &self,
        collection: &str,
        statements: &[UpdateStatement],
    ) -> Result<u64, Failure> {
        let done = self.database().update(collection, statements, true, FrondDurability::Synced);
        let done = done.map_err(failure)?;
        match done.errors.into_iter().next() {
            Some(error) => Err(failure(error.error)),
            None => Ok(done.matched),
        }
    }

    /// Changes or removes the first document that is found.
    fn find_and_modify(
        &self,
        collection: &str,
        filter: &Document,
        sort: Option<&Document>,
        update: Option<&Document>,
    ) -> Result<Option<Bytes>, Failure> {
        let request = FindAndModify {
            filter: buffer(filter)?,
            sort: sort.map(buffer).transpose()?,
            update: update.map(buffer).transpose()?.map(ValueBuf::from),
            upsert: false,
            return_new: false,
            projection: None,
            array_filters: None,
            hint: None,
            variables: None,
            collation: None,
        };
        let done = self.database().find_and_modify(collection, &request, FrondDurability::Synced);
        Ok(done.map_err(failure)?.value.map(DocumentBuf::into_bytes))
    }
}

fn update_statement(id: &Bson, changes: &[Change]) -> Result<UpdateStatement, Failure> {
    Ok(UpdateStatement::new(
        buffer(&doc! { "_id": id.clone() })?,
        buffer(&mongo_form::update(changes))?,
    ))
}

impl Session for EmbeddedSession {
    fn create(&mut self, collection: &CollectionSpec) -> Result<(), Failure> {
        self.database.drop_collection(&collection.name).map_err(failure)?;
        let options = buffer(&Document::new())?;
        self.database.create_collection(&collection.name, options.view()).map_err(failure)?;
        for index in &collection.indexes {
            self.create_index(&collection.name, index)?;
        }
        Ok(())
    }

    fn create_index(&mut self, collection: &str, index: &IndexSpec) -> Result<(), Failure> {
        let spec = buffer(&mongo_form::index(index))?;
        let spec = FrondIndex::parse(spec.view()).map_err(Failure::other)?;
        self.database.create_indexes(collection, &[spec]).map_err(failure)?;
        Ok(())
    }

    fn insert(&mut self, collection: &str, documents: &[Encoded]) -> Result<(), Failure> {
        let documents: Vec<_> =
            documents.iter().map(|one| DocumentBuf::from_validated(one.bytes.clone())).collect();
        let done = self.database().insert(collection, &documents, true, FrondDurability::Synced);
        match done.map_err(failure)?.errors.into_iter().next() {
            Some(error) => Err(failure(error.error)),
            None => Ok(()),
        }
    }

    fn get(&mut self, collection: &str, id: &Bson) -> Result<Option<Bytes>, Failure> {
        let request = FindRequest {
            filter: Some(buffer(&doc! { "_id": id.clone() })?),
            limit: Some(1),
            ..FindRequest::default()
        };
        let mut cursor = self.database().find(collection, &request).map_err(failure)?;
        let found = cursor.next().transpose().map_err(failure)?;
        Ok(found.map(DocumentBuf::into_bytes))
    }

    fn find(
        &mut self,
        query: &Query,
        each: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let filter = buffer(&mongo_form::filter(&query.conditions))?;
        if matches!(query.answer, Answer::Count) {
            let request = FindRequest { limit: query.limit, ..FindRequest::of(filter.view()) };
            let count = self.database().count(&query.collection, &request);
            return count.map_err(failure);
        }
        let request = FindRequest {
            filter: Some(filter),
            sort: mongo_form::sort(query).as_ref().map(buffer).transpose()?,
            projection: mongo_form::projection(query).as_ref().map(buffer).transpose()?,
            limit: query.limit,
            ..FindRequest::default()
        };
        let mut count = 0;
        for found in self.database().find(&query.collection, &request).map_err(failure)? {
            count += 1;
            each(&found.map_err(failure)?.into_bytes())?;
        }
        Ok(count)
    }

    fn update(&mut self, collection: &str, id: &Bson, changes: &[Change]) -> Result<u64, Failure> {
        self.run_updates(collection, &[update_statement(id, changes)?])
    }

    fn update_each(
        &mut self,
        collection: &str,
        changes: &[(Bson, Vec<Change>)],
    ) -> Result<u64, Failure> {
        let statements: Result<Vec<_>, _> =
            changes.iter().map(|(id, changes)| update_statement(id, changes)).collect();
        self.run_updates(collection, &statements?)
    }

    fn modify(
        &mut self,
        collection: &str,
        id: &Bson,
        changes: &[Change],
    ) -> Result<Option<Bytes>, Failure> {
        let (filter, update) = (doc! { "_id": id.clone() }, mongo_form::update(changes));
        self.find_and_modify(collection, &filter, None, Some(&update))
    }

    fn remove_first(&mut self, query: &Query) -> Result<Option<Bytes>, Failure> {
        let filter = mongo_form::filter(&query.conditions);
        let sort = mongo_form::sort(query);
        self.find_and_modify(&query.collection, &filter, sort.as_ref(), None)
    }

    fn copy(&mut self, from: &str, to: &str, change: &Change) -> Result<(), Failure> {
        let holder = buffer(&doc! { "pipeline": mongo_form::copy(to, change)? })?;
        let pipeline = holder.view().get("pipeline").map(ValueBuf::from);
        let request = AggregateRequest {
            pipeline: pipeline.ok_or_else(|| Failure::Other("no pipeline".into()))?,
            collation: None,
            variables: None,
            hint: None,
            in_memory_only: false,
            interrupt: Default::default(),
        };
        for document in self.database().aggregate(Some(from), &request).map_err(failure)? {
            document.map_err(failure)?;
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Failure> {
        let transaction = self.frond.begin();
        let database = transaction.database(DATABASE).map_err(failure)?;
        self.transaction = Some((transaction, database));
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Failure> {
        match self.transaction.take() {
            Some((transaction, _)) => {
                transaction.commit(FrondDurability::Synced, None).map_err(failure)
            }
            None => Ok(()),
        }
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        if let Some((transaction, _)) = self.transaction.take() {
            transaction.abort();
        }
        Ok(())
    }
}
