//! Finds the commit that each field of a document comes from.
//!
//! The fields (leaves: documents are entered, arrays and everything else are values) begin at the
//! version that is asked about. A commit hands each field on to the first parent in which it is the
//! same, bytes and type; a field that no parent has is the commit's own. Commits are visited
//! children first, so that all fields that reach a commit are there when it is visited. A parent
//! that has the very same document takes all at once, without its being read.

use std::collections::{BTreeMap, BTreeSet};

use frond_db::inside::Error;
use frond_doc::extended_json::{self, Form};
use frond_doc::{Document, DocumentBuf, Value, ValueBuf};
use frond_query::Code;
use frond_store::ChunkHash;

use crate::fields::join;
use crate::history::path_filter::{PathFilter, PathState};
use crate::history::walk::{VisitOrder, visit_order_of};
use crate::repository::Repository;
use crate::{CommitInfo, history};

/// The origins of the fields of a document.
#[derive(Clone, Debug)]
pub struct Blame {
    /// The fields in the order of the document.
    pub fields: Vec<BlamedField>,
    /// Whether the working state has another version of the document than the commit.
    pub is_dirty: bool,
}

/// A field and the commit that gave it its value.
#[derive(Clone, Debug)]
pub struct BlamedField {
    /// Dotted path.
    pub path: String,
    /// Its value.
    pub value: ValueBuf,
    /// The commit; `None` if the working state has it and no commit does.
    pub commit: Option<CommitInfo>,
}

/// The leaves of a document, by path.
fn leaves<'a>(document: Document<'a>, path: &str, found: &mut Vec<(String, Value<'a>)>) {
    for (name, value) in document.iter() {
        let path = join(path, name);
        match value {
            Value::Document(inner) if !inner.is_empty() => leaves(inner, &path, found),
            value => found.push((path, value)),
        }
    }
}

fn leaf_map(document: Option<&DocumentBuf>) -> BTreeMap<String, ValueBuf> {
    let mut found = Vec::new();
    if let Some(document) = document {
        leaves(document.view(), "", &mut found);
    }
    found.into_iter().map(|(path, value)| (path, value.to_buf())).collect()
}

/// Paths that wait at a commit for being blamed or handed on.
type Waiting = BTreeMap<VisitOrder, (ChunkHash, BTreeSet<String>)>;

impl Repository {
    /// Returns for each field of the document with this `_id` which commit gave it its value.
    ///
    /// # Errors
    /// `NoSuchKey` if there is no such document in this version.
    pub fn blame(&self, collection: &str, id: &ValueBuf) -> Result<Blame, Error> {
        let reader = self.reader();
        let store = reader.store();
        let mut filter = PathFilter::new(store, collection, Some(id));
        let now = {
            let catalog = self.catalog(&reader)?;
            filter.find(&catalog)?.document(&**store)?
        };
        let Some(now) = now else {
            let mut shown = String::new();
            extended_json::write_value(id.as_value(), Form::Relaxed, &mut shown);
            let message = format!("no document with _id {shown} in {}", self.namespace(collection));
            return Err(Error::invalid(Code::NoSuchKey, message));
        };
        let mut blamed: BTreeMap<String, CommitInfo> = BTreeMap::new();
        let mut is_dirty = true;
        if let Some(head) = self.head(&reader)? {
            let found = filter.find_in(head)?;
            let committed = found.document(&**store)?;
            is_dirty = committed.as_ref() != Some(&now);
            let (now, committed) = (leaf_map(Some(&now)), leaf_map(committed.as_ref()));
            let same: BTreeSet<String> = now
                .into_iter()
                .filter(|(path, value)| committed.get(path) == Some(value))
                .map(|(path, _)| path)
                .collect();
            self.hand_on(&mut filter, head, same, &mut blamed)?;
        }
        let mut fields = Vec::new();
        leaves(now.view(), "", &mut fields);
        let field = |(path, value): (String, Value<'_>)| BlamedField {
            commit: blamed.get(&path).cloned(),
            value: value.to_buf(),
            path,
        };
        Ok(Blame { fields: fields.into_iter().map(field).collect(), is_dirty })
    }

    /// Finds the commits that `paths` come from, which are the same at `head`.
    fn hand_on(
        &self,
        filter: &mut PathFilter,
        head: ChunkHash,
        paths: BTreeSet<String>,
        blamed: &mut BTreeMap<String, CommitInfo>,
    ) -> Result<(), Error> {
        let store = self.frond().engine().store();
        let mut waiting = Waiting::new();
        waiting.insert(visit_order_of(head, &history::load(&**store, head)?), (head, paths));
        while let Some((_, (hash, mut paths))) = waiting.pop_last() {
            let commit = history::load(&**store, hash)?;
            let found = filter.find_in(hash)?;
            let mut values: Option<BTreeMap<String, ValueBuf>> = None;
            for parent in &commit.parents {
                if paths.is_empty() {
                    break;
                }
                let before = filter.find_in(*parent)?;
                let taken = if before == found {
                    std::mem::take(&mut paths)
                } else if matches!(before, PathState::Document(_)) {
                    if values.is_none() {
                        values = Some(leaf_map(found.document(&**store)?.as_ref()));
                    }
                    let values = values.as_ref().expect("it was just made where it was absent");
                    let before = leaf_map(before.document(&**store)?.as_ref());
                    let is_same = |path: &String| before.get(path) == values.get(path);
                    let taken: BTreeSet<String> =
                        paths.iter().filter(|path| is_same(path)).cloned().collect();
                    paths.retain(|path| !taken.contains(path));
                    taken
                } else {
                    continue;
                };
                if taken.is_empty() {
                    continue;
                }
                let turn = visit_order_of(*parent, &history::load(&**store, *parent)?);
                waiting.entry(turn).or_insert((*parent, BTreeSet::new())).1.extend(taken);
            }
            let info = history::info(hash, &commit);
            blamed.extend(paths.into_iter().map(|path| (path, info.clone())));
        }
        Ok(())
    }
}
