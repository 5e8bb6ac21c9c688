//! The documents of a branch's working state.

use std::collections::{BTreeSet, HashSet};

use bytes::Bytes;
use frond_db::inside::{
    BatchOptions, CatalogView, Collection, DatabaseName, Error, ErrorKind, Frond, Reader,
    RepositoryRecord, StatementDone, Statements, TreeRef, VersionName, WorkingEntry, capped,
};
use frond_doc::{DocumentBuf, extended_json, key};
use frond_engine::Durability;
use frond_store::UnreadableRange;
use frond_tree::{Bounds, Direction};

use crate::repository::Repository;
use crate::salvage::history::Branch;
use crate::salvage::source::Source;
use crate::salvage::{LostPart, SalvageReport, SalvagedCollection};

/// Documents that are written together.
const BATCH_COUNT: usize = 1_000;
const BATCH_BYTES: usize = 8 << 20;

/// Saves the working state of a branch.
pub(super) fn save(
    source: &Source,
    target: &Frond,
    (name, repository): (&str, &RepositoryRecord),
    branch: &Branch,
    report: &mut SalvageReport,
) -> Result<(), Error> {
    let version =
        || DatabaseName { name: name.to_owned(), version: VersionName::Named(branch.name.clone()) };
    let shown = match branch.name == repository.default_branch {
        true => name.to_owned(),
        false => format!("{name}@{}", branch.name),
    };
    let from = Repository::resolve(&source.frond, version())?;
    let to: Repository = Repository::resolve(target, version())?.without_validation().into();
    let reader = source.reader();
    let catalog = CatalogView::open(&reader, &from)?;
    let is_head_whole = branch.head == branch.saved;
    for collection in names(source, &catalog, &shown, report)? {
        let entry = catalog.working_entry(&collection)?;
        if is_head_whole && entry.is_none() {
            // As HEAD has it, which is there.
            continue;
        }
        let found = match entry {
            Some(WorkingEntry::Live(live)) => Ok(Some(Collection::live(&live))),
            Some(WorkingEntry::Dropped) => Ok(None),
            None => catalog.committed(&collection),
        };
        let mut saved = SalvagedCollection::new(shown.clone(), &collection);
        match found {
            Ok(Some(found)) => save_collection(source, &found, &to, &mut saved)?,
            Ok(None) => {
                to.drop_collection(&collection)?;
                continue;
            }
            Err(error) if error.kind == ErrorKind::Damaged => {
                saved.lost.push(LostPart::Whole(error.message));
            }
            Err(error) => return Err(error),
        }
        report.collections.push(saved);
    }
    Ok(())
}

/// Writes one collection, which `to` doesn't have.
pub(super) fn save_as(
    source: &Source,
    found: &Collection,
    to: &Repository,
    database: String,
    collection: &str,
) -> Result<SalvagedCollection, Error> {
    let mut saved = SalvagedCollection::new(database, collection);
    save_collection(source, found, to, &mut saved)?;
    Ok(saved)
}

/// The names of all collections, as far as they can be read.
pub(super) fn names(
    source: &Source,
    catalog: &CatalogView<'_>,
    shown: &str,
    report: &mut SalvageReport,
) -> Result<BTreeSet<String>, Error> {
    let mut names: BTreeSet<String> =
        catalog.working_entries()?.into_iter().map(|(name, _)| name).collect();
    match catalog.names() {
        Ok(found) => names.extend(found),
        Err(error) if error.kind == ErrorKind::Damaged => {
            report
                .notes
                .push(format!("{shown}: what its last commit had can't be listed: {error}"));
        }
        Err(error) => return Err(error),
    }
    let lost = source.losses();
    report.notes.extend(
        lost.iter().map(|lost| super::unreadable_note(&format!("{shown}: collections"), lost)),
    );
    Ok(names)
}

/// Writes what can be read of a collection.
fn save_collection(
    source: &Source,
    found: &Collection,
    to: &Repository,
    saved: &mut SalvagedCollection,
) -> Result<(), Error> {
    let options = DocumentBuf::clone(&found.options);
    if options.get("viewOn").is_some() {
        to.drop_collection(&saved.name)?;
        return to.create_collection(&saved.name, options.view());
    }
    // HEAD's documents take the place of the lost ones.
    let head_reader = to.reader();
    let head = CatalogView::open(&head_reader, to)?.committed(&saved.name)?;
    to.drop_collection(&saved.name)?;
    to.create_collection(&saved.name, options.view())?;
    let reader = source.reader();
    let mut losses: Vec<UnreadableRange> = Vec::new();
    let mut batch = Batch { to, name: saved.name.clone(), documents: Vec::new(), bytes: 0 };
    match documents_in_order(source, &reader, found, &mut |document| batch.push(document), saved) {
        Err(error) if error.kind == ErrorKind::Damaged => {
            saved.lost.push(LostPart::Whole(error.message));
        }
        done => losses.extend(done?),
    }
    batch.write()?;
    for lost in &losses {
        if let Some(head) = &head {
            saved.from_commit += fill(&head_reader, head, lost, &mut batch)?;
        }
    }
    batch.write()?;
    saved.documents += saved.from_commit;
    for index in &found.indexes {
        if let Err(error) = to.create_indexes(&saved.name, std::slice::from_ref(&index.spec)) {
            saved.indexes.push(format!("index {}: {error}", index.spec.name));
        }
    }
    Ok(())
}

/// Gathers documents, and writes them as they are.
struct Batch<'a> {
    to: &'a Repository,
    name: String,
    documents: Vec<DocumentBuf>,
    bytes: usize,
}

impl Batch<'_> {
    fn push(&mut self, document: DocumentBuf) -> Result<(), Error> {
        self.bytes += document.as_bytes().len();
        self.documents.push(document);
        if self.documents.len() < BATCH_COUNT && self.bytes < BATCH_BYTES {
            return Ok(());
        }
        self.write()
    }

    fn write(&mut self) -> Result<(), Error> {
        let documents = std::mem::take(&mut self.documents);
        self.bytes = 0;
        let options = BatchOptions { ordered: true, durability: Durability::Relaxed };
        let prepare = |begun: usize| documents[begun..].iter().cloned().map(Ok).collect();
        let statements = Statements { database: self.to, collection: &self.name, options };
        let report = statements.run(documents.len(), prepare, |writer, document| {
            writer.insert(document)?;
            Ok(StatementDone { count: 1, ..StatementDone::default() })
        })?;
        match report.errors.into_iter().next() {
            Some(failed) => Err(failed.error),
            None => Ok(()),
        }
    }
}

/// Reads every document that can be read, and notes the others.
pub(super) fn survey(
    source: &Source,
    reader: &Reader<'_>,
    found: &Collection,
    saved: &mut SalvagedCollection,
) -> Result<(), Error> {
    match documents_in_order(source, reader, found, &mut |_| Ok(()), saved) {
        Err(error) if error.kind == ErrorKind::Damaged => {
            saved.lost.push(LostPart::Whole(error.message));
            Ok(())
        }
        done => done.map(drop),
    }
}

/// Gives `take` every document that can be read, in the order of insertion where the collection is
/// capped, and returns what was passed over.
fn documents_in_order(
    source: &Source,
    reader: &Reader<'_>,
    found: &Collection,
    take: &mut dyn FnMut(DocumentBuf) -> Result<(), Error>,
    saved: &mut SalvagedCollection,
) -> Result<Vec<UnreadableRange>, Error> {
    let mut losses = Vec::new();
    let given = match found.order {
        Some(order) => {
            let (given, is_whole) = by_places(reader, found, order, take)?;
            if !is_whole || !source.losses().is_empty() {
                saved.indexes.push("the order of insertion: a part of it can't be read".to_owned());
            }
            given
        }
        None => HashSet::new(),
    };
    saved.documents += given.len() as u64;
    for entry in reader.range(found.documents, Bounds::all(), Direction::Ascending)? {
        let entry = entry?;
        if given.contains(&entry.key) {
            continue;
        }
        match reader.document(&entry.value) {
            Ok(document) => {
                saved.documents += 1;
                take(document)?;
            }
            Err(error) if error.kind == ErrorKind::Damaged => {
                saved.lost.push(LostPart::Document(shown(&entry.key)));
                let (after, up_to) = (None, Some(entry.key));
                losses.push(UnreadableRange {
                    chunk: None,
                    after,
                    up_to,
                    count: None,
                    why: error.message,
                });
            }
            Err(error) => return Err(error),
        }
    }
    for lost in source.losses() {
        let (after, up_to) = (lost.after.as_deref().map(shown), lost.up_to.as_deref().map(shown));
        saved.lost.push(LostPart::Range(after, up_to, lost.count));
        losses.push(lost);
    }
    Ok(losses)
}

/// Gives `take` the documents of a capped collection as its order has them. Returns which, and
/// whether all that the order names could be read.
fn by_places(
    reader: &Reader<'_>,
    found: &Collection,
    order: TreeRef,
    take: &mut dyn FnMut(DocumentBuf) -> Result<(), Error>,
) -> Result<(HashSet<Bytes>, bool), Error> {
    let (mut given, mut is_whole) = (HashSet::new(), true);
    for place in reader.range(order, capped::all_places(), Direction::Ascending)? {
        let read = || {
            let id_key = reader.read(&place?.value)?;
            let value = reader.get(found.documents, &id_key)?;
            let document = value.map(|value| reader.document(&value)).transpose()?;
            Ok::<_, Error>((id_key, document))
        };
        match read() {
            Ok((id_key, Some(document))) => {
                take(document)?;
                given.insert(id_key);
            }
            // It was erased.
            Ok((_, None)) => {}
            Err(error) if error.kind == ErrorKind::Damaged => is_whole = false,
            Err(error) => return Err(error),
        }
    }
    Ok((given, is_whole))
}

/// Gives `batch` what HEAD has of a part that is lost and that nothing took the place of; returns
/// how many.
fn fill(
    reader: &Reader<'_>,
    head: &Collection,
    lost: &UnreadableRange,
    batch: &mut Batch<'_>,
) -> Result<u64, Error> {
    let successor = |key: &Bytes| Bytes::from([key, &[0][..]].concat());
    let bounds = match (&lost.count, &lost.up_to) {
        // One document.
        (None, Some(key)) if lost.chunk.is_none() => {
            Bounds { start: Some(key.clone()), end: Some(successor(key)) }
        }
        (_, up_to) => {
            Bounds { start: lost.after.as_ref().map(successor), end: up_to.as_ref().map(successor) }
        }
    };
    let now = batch.to.reader();
    let there = CatalogView::open(&now, batch.to)?.collection(&batch.name)?;
    let mut count = 0;
    for entry in reader.range(head.documents, bounds, Direction::Ascending)? {
        let entry = entry?;
        let is_there = match &there {
            Some(there) => now.get(there.documents, &entry.key)?.is_some(),
            None => false,
        };
        if !is_there {
            count += 1;
            batch.push(reader.document(&entry.value)?)?;
        }
    }
    Ok(count)
}

/// The `_id` of a key, in JSON.
fn shown(id_key: &[u8]) -> String {
    let (mut rest, mut bits) = (id_key, &[][..]);
    match key::decode(&mut rest, &mut bits, false) {
        Ok(id) => {
            let mut text = String::new();
            extended_json::write_value(id.as_value(), extended_json::Form::Relaxed, &mut text);
            text
        }
        Err(_) => "?".to_owned(),
    }
}
