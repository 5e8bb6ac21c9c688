//! Frond, embedded: the crate `frond-db` in this process.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use frond_db::catalog::IndexSpec;
use frond_db::{Database, Durability, FindRequest, Frond, FrondOptions, UpdateStatement};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_engine::EngineOptions;
use frond_vcs::{MergeOutcome, MergeRequest, Repository};

use crate::measure::Processes;
use crate::order::{Address, Customer, Item, Order};
use crate::target::{Encoded, Failure, Session, Target, Versions};
use crate::targets::CACHE_BYTES;

const DATABASE: &str = "shop";
const COLLECTION: &str = "orders";
const INDEXED: [&str; 3] = ["customer.number", "created", "total"];
const AUTHOR: &str = "frond-bench";

/// An open data directory.
pub struct Embedded {
    directory: PathBuf,
    frond: Frond,
    description: String,
}

impl Embedded {
    /// Makes the data directory, the collection and its indexes.
    pub fn start(directory: &Path) -> Result<Embedded, Failure> {
        let engine = EngineOptions { cache_bytes: CACHE_BYTES, ..EngineOptions::default() };
        let frond = frond_vcs::open(directory, FrondOptions { engine, ..FrondOptions::default() })?;
        let specs: Result<Vec<IndexSpec>, _> = INDEXED
            .iter()
            .map(|path| {
                let mut spec = DocumentBuilder::new();
                spec.begin_document("key").append(path, Value::Int32(1)).end();
                spec.append("name", Value::String(path));
                IndexSpec::parse(spec.build().view())
            })
            .collect();
        frond.database(DATABASE)?.create_indexes(COLLECTION, &specs?)?;
        let description = format!(
            "Frond {}, embedded (frond-db), BSON; synced commits, cache {} MB, memtable {} MB",
            env!("CARGO_PKG_VERSION"),
            engine.cache_bytes >> 20,
            engine.memtable_bytes_max >> 20,
        );
        Ok(Embedded { directory: directory.into(), frond, description })
    }

    fn repository(&self) -> Result<Repository, Failure> {
        Ok(Repository::open(&self.frond, DATABASE)?)
    }
}

impl Target for Embedded {
    fn name(&self) -> &'static str {
        "Frond"
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn processes(&self) -> Processes {
        Processes::Own
    }

    fn directory(&self) -> &Path {
        &self.directory
    }

    fn encode(&self, order: &Order) -> Result<Bytes, Failure> {
        Ok(document_of(order).into_bytes())
    }

    fn decode(&self, document: &Bytes) -> Result<Order, Failure> {
        let document = DocumentBuf::validated(document.clone())?;
        order_of(document.view()).ok_or_else(|| format!("not an order: {document:?}").into())
    }

    fn session(&self) -> Result<Box<dyn Session>, Failure> {
        Ok(Box::new(EmbeddedSession { database: self.frond.database(DATABASE)? }))
    }

    fn settle(&self) -> Result<(), Failure> {
        Ok(self.frond.engine().checkpoint()?)
    }

    fn versions(&self) -> Option<&dyn Versions> {
        Some(self)
    }
}

struct EmbeddedSession {
    database: Database,
}

impl EmbeddedSession {
    fn documents(&self, path: &str, value: Value<'_>) -> Result<Vec<Bytes>, Failure> {
        let request = FindRequest { filter: Some(only_field(path, value)), ..Default::default() };
        let cursor = self.database.find(COLLECTION, &request)?;
        cursor.map(|document| Ok(document?.into_bytes())).collect()
    }
}

impl Session for EmbeddedSession {
    fn insert(&mut self, documents: &[Encoded]) -> Result<(), Failure> {
        let documents: Vec<_> = documents
            .iter()
            .map(|(_, document)| DocumentBuf::from_validated(document.clone()))
            .collect();
        let done = self.database.insert(COLLECTION, &documents, true, Durability::Synced)?;
        match done.errors.into_iter().next() {
            Some(error) => Err(error.error.into()),
            None => Ok(()),
        }
    }

    fn by_id(&mut self, number: i64) -> Result<Option<Bytes>, Failure> {
        let request = FindRequest {
            filter: Some(only_field("_id", Value::Int64(number))),
            limit: Some(1),
            ..Default::default()
        };
        let found = self.database.find(COLLECTION, &request)?.next().transpose()?;
        Ok(found.map(DocumentBuf::into_bytes))
    }

    fn by_customer(&mut self, customer: i64) -> Result<Vec<Bytes>, Failure> {
        self.documents("customer.number", Value::Int64(customer))
    }

    fn by_city(&mut self, city: &str) -> Result<Vec<Bytes>, Failure> {
        self.documents("address.city", Value::String(city))
    }

    fn set_status(&mut self, number: i64, status: &str) -> Result<u64, Failure> {
        set_status(&self.database, number, status)
    }
}

fn set_status(database: &Database, number: i64, status: &str) -> Result<u64, Failure> {
    let mut update = DocumentBuilder::new();
    update.begin_document("$set").append("status", Value::String(status)).end();
    let statement = UpdateStatement::new(only_field("_id", Value::Int64(number)), update.build());
    let done = database.update(COLLECTION, &[statement], true, Durability::Synced)?;
    match done.errors.into_iter().next() {
        Some(error) => Err(error.error.into()),
        None => Ok(done.matched),
    }
}

impl Versions for Embedded {
    fn commit(&self, message: &str) -> Result<String, Failure> {
        Ok(self.repository()?.commit(message, AUTHOR)?.id.to_string())
    }

    fn branch(&self, name: &str) -> Result<(), Failure> {
        self.repository()?.create_branch(name, None)?;
        Ok(())
    }

    fn change_branch(&self, name: &str, numbers: &[i64], status: &str) -> Result<(), Failure> {
        let branch = Repository::open(&self.frond, &format!("{DATABASE}@{name}"))?;
        for number in numbers {
            if set_status(&branch, *number, status)? != 1 {
                return Err(format!("document {number} is not on branch {name}").into());
            }
        }
        branch.commit(status, AUTHOR)?;
        Ok(())
    }

    fn diff(&self, from: &str, to: &str) -> Result<u64, Failure> {
        let collections = self.repository()?.diff(Some(from), Some(to))?;
        let counts = collections.iter().map(|collection| {
            collection.added.len() + collection.removed.len() + collection.modified.len()
        });
        Ok(counts.sum::<usize>() as u64)
    }

    fn merge(&self, name: &str) -> Result<(), Failure> {
        let request = MergeRequest { merge_in: name.into(), ..Default::default() };
        match self.repository()?.merge(&request)? {
            MergeOutcome::Merged { .. } => Ok(()),
            other => Err(format!("the merge ended as {other:?}").into()),
        }
    }
}

fn only_field(path: &str, value: Value<'_>) -> DocumentBuf {
    let mut document = DocumentBuilder::new();
    document.append(path, value);
    document.build()
}

fn document_of(order: &Order) -> DocumentBuf {
    let mut document = DocumentBuilder::new();
    document.append("_id", Value::Int64(order.number));
    document
        .begin_document("customer")
        .append("number", Value::Int64(order.customer.number))
        .append("name", Value::String(&order.customer.name))
        .append("mail", Value::String(&order.customer.mail))
        .end()
        .append("created", Value::DateTime(order.created))
        .append("status", Value::String(&order.status))
        .append("total", Value::Int64(order.total))
        .begin_document("address")
        .append("street", Value::String(&order.address.street))
        .append("city", Value::String(&order.address.city))
        .append("country", Value::String(&order.address.country))
        .end()
        .begin_array("items");
    for item in &order.items {
        document
            .push_begin_document()
            .append("article", Value::String(&item.article))
            .append("name", Value::String(&item.name))
            .append("quantity", Value::Int64(item.quantity))
            .append("price", Value::Int64(item.price))
            .end();
    }
    document.end().append("note", Value::String(&order.note));
    document.build()
}

fn order_of(document: Document<'_>) -> Option<Order> {
    let customer = document.get("customer")?.as_document()?;
    let address = document.get("address")?.as_document()?;
    let items = document.get("items")?.as_array()?;
    let Some(Value::DateTime(created)) = document.get("created") else {
        return None;
    };
    Some(Order {
        number: integer(document, "_id")?,
        customer: Customer {
            number: integer(customer, "number")?,
            name: text(customer, "name")?,
            mail: text(customer, "mail")?,
        },
        created,
        status: text(document, "status")?,
        total: integer(document, "total")?,
        address: Address {
            street: text(address, "street")?,
            city: text(address, "city")?,
            country: text(address, "country")?,
        },
        items: items.iter().map(|item| item_of(item.as_document()?)).collect::<Option<_>>()?,
        note: text(document, "note")?,
    })
}

fn item_of(item: Document<'_>) -> Option<Item> {
    Some(Item {
        article: text(item, "article")?,
        name: text(item, "name")?,
        quantity: integer(item, "quantity")?,
        price: integer(item, "price")?,
    })
}

fn integer(document: Document<'_>, name: &str) -> Option<i64> {
    document.get(name)?.as_integer()
}

fn text(document: Document<'_>, name: &str) -> Option<String> {
    document.get(name)?.as_str().map(str::to_string)
}
