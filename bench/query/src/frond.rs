//! Frond, embedded: requests run through the same code as the server's.

use std::path::Path;

use frond_db::{AggregateRequest, Database, Durability, FindRequest, FrondOptions, Interrupt};
use frond_doc::{DocumentBuf, ValueBuf, extended_json};
use frond_engine::EngineOptions;

use crate::Failure;
use crate::reading::{document, reading};

const COLLECTION: &str = "readings";
const BATCH: u32 = 10_000;

/// A request.
#[derive(Clone, Copy, Debug)]
pub enum Request {
    /// Stages, as extended JSON.
    Aggregate(&'static str),
    /// A filter.
    Find(&'static str),
    /// A filter.
    Count(&'static str),
    /// A path.
    Distinct(&'static str),
}

/// A data directory with readings.
pub struct Embedded {
    database: Database,
}

impl Embedded {
    /// Loads `count` readings, and folds them into their tree.
    pub fn load(
        directory: &Path,
        count: u32,
        note_words: u64,
        options: FrondOptions,
    ) -> Result<Embedded, Failure> {
        let frond = frond_vcs::open(directory, options)?;
        let database = frond.database("bench")?;
        for first in (0..count).step_by(BATCH as usize) {
            let numbers = first..count.min(first + BATCH);
            let batch: Vec<DocumentBuf> =
                numbers.map(|number| document(&reading(number, note_words))).collect();
            let done = database.insert(COLLECTION, &batch, true, Durability::Relaxed)?;
            if let Some(error) = done.errors.into_iter().next() {
                return Err(error.error.into());
            }
        }
        frond.engine().checkpoint()?;
        Ok(Embedded { database })
    }

    /// Opens what was loaded.
    pub fn open(directory: &Path, options: FrondOptions) -> Result<Embedded, Failure> {
        Ok(Embedded { database: frond_vcs::open(directory, options)?.database("bench")? })
    }

    /// Runs a request; answers how many documents or values came, and a checksum of them.
    pub fn run(&self, request: Request) -> Result<(u64, u64), Failure> {
        match request {
            Request::Aggregate(stages) => self.aggregate(stages, true),
            Request::Find(filter) => {
                let request = FindRequest {
                    filter: Some(extended_json::parse(filter)?),
                    ..Default::default()
                };
                sum(self.database.find(COLLECTION, &request)?)
            }
            Request::Count(filter) => {
                let filter = extended_json::parse(filter)?;
                Ok((self.database.count(COLLECTION, &FindRequest::of(filter.view()))?, 0))
            }
            Request::Distinct(path) => {
                let values = self.database.distinct(COLLECTION, path, &FindRequest::default())?;
                Ok((values.len() as u64, 0))
            }
        }
    }

    /// Runs a pipeline, which may go to disk or not.
    pub fn aggregate(&self, stages: &str, allows_disk: bool) -> Result<(u64, u64), Failure> {
        let request = AggregateRequest {
            pipeline: array(stages)?,
            variables: None,
            collation: None,
            hint: None,
            in_memory_only: !allows_disk,
            interrupt: Interrupt::default(),
        };
        sum(self.database.aggregate(Some(COLLECTION), &request)?)
    }
}

fn sum(
    documents: impl Iterator<Item = Result<DocumentBuf, frond_db::Error>>,
) -> Result<(u64, u64), Failure> {
    let (mut count, mut bytes) = (0, 0);
    for document in documents {
        count += 1;
        bytes += document?.as_bytes().len() as u64;
    }
    Ok((count, bytes))
}

fn array(text: &str) -> Result<ValueBuf, Failure> {
    let document = extended_json::parse(&format!("{{\"stages\": {text}}}"))?;
    Ok(document.get("stages").ok_or("no stages")?.to_buf())
}

/// Settings with so much cache.
pub fn options(cache_bytes: u64) -> FrondOptions {
    let engine = EngineOptions { cache_bytes, ..EngineOptions::default() };
    FrondOptions { engine, ..FrondOptions::default() }
}
