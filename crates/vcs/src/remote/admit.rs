//! Checks chunks from elsewhere before anything refers to them.
//!
//! A chunk's content matches its name; that doesn't make it right. Chunks from elsewhere are
//! believed only if
//!
//! 1. everything that they refer to is here, is of a kind that has a place there, and isn't nested
//!    deeper than any tree ([`complete`]; a fetch has walked all that itself, so this is for what
//!    others push here);
//! 2. each commit belongs to this repository, and follows its parents ([`check`]);
//! 3. each collection that a commit changed has a proper name and entry, and each document that it
//!    changed is BSON and lies under the key of its `_id`; of the indexes the nodes are looked at.
//!
//! Readers rely on these. That an index has the entries that its documents call for, and that keys
//! ascend within a node, is not checked: a repository that lies there gives wrong answers, to
//! itself.
//!
//! The cost is that of the change against the first parent.

use std::collections::HashSet;
use std::sync::Arc;

use frond_db::inside::{CatalogEntry, Commit, Error, is_key_of, large, name};
use frond_doc::DocumentBuf;
use frond_store::{Chunk, ChunkHash, ChunkStore, StoreError};
use frond_tree::{Tree, TreeFormat, Value};

use crate::diff::changed_collections;
use crate::history;
use crate::remote::transfer::{Endpoint, Transfer};

/// The greatest number of bytes of a large document.
const DOCUMENT_BYTES_MAX: u64 = 64 << 20;

/// A transfer from here to here, which moves nothing and finds out what is missing.
struct Here<'a>(&'a dyn ChunkStore);

impl Endpoint for Here<'_> {
    fn has_many(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, Error> {
        let there = self.0.has_many(hashes)?;
        match hashes.iter().zip(&there).find(|(_, there)| !**there) {
            Some((missing, _)) => Err(StoreError::Missing(*missing).into()),
            None => Ok(there),
        }
    }

    fn get_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        Ok(self.0.get_many(hashes)?)
    }

    fn put_many(&self, _chunks: &[Chunk]) -> Result<(), Error> {
        Ok(())
    }

    fn read_many(&self, hashes: &[ChunkHash]) -> Result<Vec<Chunk>, Error> {
        Ok(self.0.get_many(hashes)?)
    }
}

/// Checks that all that `commits` (the oldest first) reach is here and where it belongs.
///
/// # Errors
/// `Damaged` with what is missing or wrong.
pub(crate) fn complete(
    store: &dyn ChunkStore,
    commits: &[Chunk],
    absent: &HashSet<ChunkHash>,
) -> Result<(), Error> {
    let lane = Here(store);
    Transfer::new(&lane, &mut |_| {}).commits(commits, absent)
}

/// Checks commits (the oldest first) of the repository `database` whose trees are of `format`. All
/// that they refer to is here, but for parents that are `absent`.
///
/// # Errors
/// `Damaged` with what is wrong.
pub(crate) fn check(
    store: &Arc<dyn ChunkStore>,
    database: &str,
    format: TreeFormat,
    commits: &[Chunk],
    absent: &HashSet<ChunkHash>,
) -> Result<(), Error> {
    let empty = Tree::empty(&**store, format)?;
    for chunk in commits {
        let commit = Commit::decode(chunk)?;
        let wrong = |what: &str| Error::damaged(format!("commit {}: {what}", chunk.hash()));
        if commit.catalog.format != format {
            return Err(wrong("is of another repository"));
        }
        let mut generation = 0;
        let mut before = None;
        for parent in commit.parents.iter().filter(|parent| !absent.contains(parent)) {
            let parent = history::load(&**store, *parent)?;
            generation = generation.max(parent.generation);
            before = before.or(Some(parent.catalog));
        }
        // That of a parent which isn't here may be greater.
        let is_shallow = commit.parents.iter().any(|parent| absent.contains(parent));
        let follows = match is_shallow {
            true => generation < commit.generation,
            false => generation.checked_add(1) == Some(commit.generation),
        };
        if !follows {
            return Err(wrong("its generation doesn't follow from its parents'"));
        }
        for changed in changed_collections(store, &before.unwrap_or(empty), &commit.catalog)? {
            name::check_collection(database, &changed.name)
                .map_err(|error| wrong(&error.message))?;
            let Some(entry) = &changed.to else { continue };
            check_documents(store, &changed)?;
            check_indexes(store, format, changed.from.as_ref(), entry, &empty)?;
        }
    }
    Ok(())
}

fn check_documents(
    store: &Arc<dyn ChunkStore>,
    changed: &crate::diff::ChangedCollection,
) -> Result<(), Error> {
    let series = changed.to.as_ref().and_then(CatalogEntry::series);
    for change in changed.documents(store)? {
        let change = change?;
        let Some(value) = &change.to else { continue };
        let wrong = |what: &str| {
            let message = format!("collection {}: a document {what}", changed.name);
            Error::damaged(message)
        };
        let document = read_foreign(&**store, value).map_err(|what| wrong(&what))?;
        if !is_key_of(series.as_ref(), &change.key, document.view()) {
            return Err(wrong("doesn't lie under its key"));
        }
    }
    Ok(())
}

/// Reads a document that was not validated yet.
fn read_foreign(store: &dyn ChunkStore, value: &Value) -> Result<DocumentBuf, String> {
    let bytes = match large::head(value) {
        Some(large) if DOCUMENT_BYTES_MAX < large.bytes() => {
            return Err(format!("is larger than {} MB", DOCUMENT_BYTES_MAX >> 20));
        }
        Some(large) => large.read(store).map_err(|error| error.to_string())?.into_bytes(),
        None => value.read(store).map_err(|error| error.to_string())?,
    };
    DocumentBuf::validated(bytes).map_err(|error| format!("is no BSON: {error}"))
}

/// Opens the nodes of indexes that are new.
fn check_indexes(
    store: &Arc<dyn ChunkStore>,
    format: TreeFormat,
    from: Option<&CatalogEntry>,
    to: &CatalogEntry,
    empty: &Tree,
) -> Result<(), Error> {
    for (spec, root) in &to.indexes {
        let same_name =
            |(known, _): &&(frond_db::inside::IndexSpec, ChunkHash)| known.name == spec.name;
        let before = from.and_then(|entry| entry.indexes.iter().find(same_name));
        let before = before.map_or(*empty, |(_, root)| spec.tree(*root, format));
        for change in before.diff(store, &spec.tree(*root, format)) {
            change?;
        }
    }
    Ok(())
}
