//! Changing an index that is there: `collMod` with `index`.
//!
//! Whether it is hidden, whether it takes further duplicates, when documents expire and its name
//! are in its definition alone: no entry changes. An index that becomes unique is built again,
//! since keys of unique indexes have another form; that takes one that was prepared, and had its
//! duplicates resolved.

use std::collections::BTreeMap;

use frond_doc::{DocumentBuf, DocumentBuilder, Value, ValueBuf, key};
use frond_engine::{Durability, Transaction, TreeId};
use frond_query::{Code, text};
use frond_tree::{Bounds, Direction};

use crate::catalog::build::Builder;
use crate::catalog::indexes::no_collection;
use crate::catalog::record::record_event;
use crate::catalog::{adopt, index_entry};
use crate::contention::{LatchMode, Scope};
use crate::database::Database;
use crate::definition::{ID_INDEX_NAME, IndexSpec};
use crate::error::Error;
use crate::event::EventKind;
use crate::interrupt::Interrupt;
use crate::reader::Reader;
use crate::schema::{Collection, Index};
use crate::system::WorkingEntry;
use crate::transact::Outcome;

/// The number of violations that are reported at most, and of documents of each.
const VIOLATIONS_MAX: usize = 1_000;

/// The changes to an index.
#[derive(Clone, Debug, Default)]
pub struct IndexChange {
    /// Whether queries don't use it.
    pub hidden: Option<bool>,
    /// Whether it refuses documents with a key that another has, from now on.
    pub prepare_unique: Option<bool>,
    /// Whether it becomes unique.
    pub becomes_unique: bool,
    /// Says when documents expire.
    pub expire_after_seconds: Option<i64>,
    /// Its name.
    pub name: Option<String>,
}

/// Changes the index that `index`, a name or a key, stands for; answers with it before and
/// after.
pub(crate) fn change_index(
    database: &Database,
    collection: &str,
    index: &ValueBuf,
    change: &IndexChange,
) -> Result<(IndexSpec, IndexSpec), Error> {
    change_index_unless(database, collection, index, change, false)
}

/// Does all of [`Database::change_index`] but the change.
pub(crate) fn try_change_index(
    database: &Database,
    collection: &str,
    index: &ValueBuf,
    change: &IndexChange,
) -> Result<(), Error> {
    change_index_unless(database, collection, index, change, true).map(drop)
}

fn change_index_unless(
    database: &Database,
    collection: &str,
    index: &ValueBuf,
    change: &IndexChange,
    is_dry: bool,
) -> Result<(IndexSpec, IndexSpec), Error> {
    let branch = database.writable_branch()?;
    let scope = Scope::collection(database.repository_name(), branch, collection);
    database.transact(scope, LatchMode::Replacer, Durability::Synced, |transaction| {
        let Some(found) = adopt::find(transaction, database, branch, collection)? else {
            return Err(no_collection(database, collection));
        };
        if found.options.get("viewOn").is_some() {
            return Err(Error::invalid(
                Code::InvalidOptions,
                "option not supported on a view: index",
            ));
        }
        let is_wanted = |spec: &IndexSpec| match index.as_value() {
            Value::String(name) => spec.name == name,
            Value::Document(key) => spec.has_key(key),
            _ => false,
        };
        if found.series.is_none() && is_wanted(&IndexSpec::of_id()) {
            return Err(of_id(change));
        }
        let mut live = adopt::adopt(transaction, database, branch, collection, &found)?;
        let specs = live.indexes.iter().map(|index| &index.spec);
        let position = only_one(specs, is_wanted, index.as_value())?
            .ok_or_else(|| not_found(database, collection, index.as_value()))?;
        let before = live.indexes[position].spec.clone();
        let after = changed(&before, change)?;
        if let Some(series) = &found.series {
            series.check_change(change.prepare_unique.is_some(), &after)?;
        }
        let others = live.indexes.iter().enumerate().filter(|(place, _)| *place != position);
        refuse_taken(&after.name, others.map(|(_, index)| index.spec.name.as_str()))?;
        if before == after || is_dry && !after.unique {
            return Ok(Outcome::Discard((before, after)));
        }
        if after.unique && !before.unique {
            check_convertible(database, transaction, &found, &found.indexes[position])?;
            if is_dry {
                return Ok(Outcome::Discard((before, after)));
            }
            let tree = live.documents;
            let built = build_unique(database, transaction, collection, tree, &after)?;
            transaction.drop_tree(live.indexes[position].tree)?;
            live.indexes[position].tree = built;
        }
        live.indexes[position].spec = after.clone();
        let of = (branch, collection, Some(&live.uuid));
        let facts = facts_of(&before, &after);
        record_event(database, transaction, of, EventKind::Modify, facts.view());
        adopt::put_entry(transaction, database, branch, collection, &WorkingEntry::Live(live))?;
        Ok(Outcome::Commit((before, after)))
    })
}

fn not_found(database: &Database, collection: &str, index: Value<'_>) -> Error {
    let namespace = database.namespace(collection);
    let message = format!("cannot find index {} for ns {namespace}", text::value(index));
    Error::invalid(Code::IndexNotFound, message)
}

/// Refuses a name that another of a collection's indexes has.
fn refuse_taken<'a>(name: &str, mut others: impl Iterator<Item = &'a str>) -> Result<(), Error> {
    if others.any(|other| other == name) || name == ID_INDEX_NAME {
        let message = format!("another index is called {name}");
        return Err(Error::invalid(Code::IndexKeySpecsConflict, message));
    }
    Ok(())
}

/// Refuses to make an index unique under whose keys lie several documents, naming them.
fn check_convertible(
    database: &Database,
    transaction: &Transaction,
    collection: &Collection,
    index: &Index,
) -> Result<(), Error> {
    let reader = Reader::within(database.frond().engine(), transaction);
    let mut violations = DocumentBuilder::new();
    violations.begin_array("violations");
    let (mut group, mut ids): (Vec<u8>, Vec<ValueBuf>) = (Vec::new(), Vec::new());
    // Those that share what is left of a key that is cut don't lie in the order of their keys.
    let mut in_runs: BTreeMap<Vec<u8>, Vec<ValueBuf>> = BTreeMap::new();
    let mut count = 0;
    let mut count_in = |ids: &mut Vec<ValueBuf>| {
        if ids.len() > 1 && count < VIOLATIONS_MAX {
            count += 1;
            violations.push_begin_document().begin_array("ids");
            for id in ids.iter() {
                violations.push(Value::from(id));
            }
            violations.end().end();
        }
        ids.clear();
    };
    for entry in reader.range(index.tree, Bounds::all(), Direction::Ascending)? {
        let entry = entry?;
        let content = reader.read(&entry.value)?;
        let id_key = index_entry::id_key_of(index, &entry.key, &content)?;
        let bare = index_entry::bare_key_of(&reader, collection, index, &entry.key, &id_key)?;
        let id = id_of(&reader, collection, &id_key)?;
        if bare.len() > key::CUT_PREFIX_BYTES {
            in_runs.entry(bare).or_default().push(id);
            continue;
        }
        if bare != group {
            count_in(&mut ids);
            group = bare;
        }
        if ids.len() < VIOLATIONS_MAX {
            ids.push(id);
        }
    }
    count_in(&mut ids);
    in_runs.values_mut().for_each(count_in);
    if count == 0 {
        return Ok(());
    }
    violations.end();
    let message = "Cannot convert the index to unique. Please resolve conflicting documents before \
                   running collMod again.";
    let error = Error::invalid(Code::CannotConvertIndexToUnique, message);
    Err(error.with_details(violations.build()))
}

/// Builds a unique index over the documents in `documents`, in a tree of its own.
fn build_unique(
    database: &Database,
    transaction: &mut Transaction,
    collection: &str,
    documents: TreeId,
    spec: &IndexSpec,
) -> Result<TreeId, Error> {
    let engine = database.frond().engine();
    let snapshot = transaction.snapshot().clone();
    let folded = engine.fold(&snapshot, &[documents])?;
    let folded = folded.first().ok_or_else(|| Error::internal("a fold of one tree gave none"))?;
    let builder = Builder {
        frond: database.frond(),
        format: folded.format,
        namespace: &database.namespace(collection),
        interrupt: &Interrupt::default(),
        progress: None,
    };
    let tree = builder.index_over(*folded, spec)?;
    let id = engine.reserve_tree_id();
    transaction.set_base(id, tree)?;
    // A transaction that writes a document meanwhile doesn't know the new tree: that must
    // conflict.
    transaction.set_base(documents, *folded)?;
    Ok(id)
}

/// The error for a key that several indexes have.
pub fn ambiguous(key: Value<'_>, names: [&str; 2]) -> Error {
    let key = text::value(key);
    let message = format!(
        "several indexes found for key: {key}, identify by name instead. Conflicting indexes: {}",
        names.join(", ")
    );
    Error::invalid(Code::AmbiguousIndexKeyPattern, message)
}

/// The position of the index that is wanted, by a key that no other has.
fn only_one<'a>(
    mut specs: impl Iterator<Item = &'a IndexSpec> + Clone,
    is_wanted: impl Fn(&IndexSpec) -> bool,
    key: Value<'_>,
) -> Result<Option<usize>, Error> {
    let mut wanted = specs.clone().filter(|spec| is_wanted(spec));
    if let (Some(one), Some(other)) = (wanted.next(), wanted.next()) {
        return Err(ambiguous(key, [&one.name, &other.name]));
    }
    Ok(specs.position(is_wanted))
}

/// Returns the facts about a changed index for change streams.
fn facts_of(before: &IndexSpec, after: &IndexSpec) -> DocumentBuf {
    let mut facts = DocumentBuilder::new();
    facts.begin_document("what").append("index", Value::Document(after.to_document().view()));
    facts.end().begin_document("was");
    facts.append("indexOptions", Value::Document(before.to_document().view())).end();
    facts.build()
}

fn changed(before: &IndexSpec, change: &IndexChange) -> Result<IndexSpec, Error> {
    let mut after = before.clone();
    if let Some(hidden) = change.hidden {
        after.hidden = hidden;
    }
    if let Some(prepare) = change.prepare_unique {
        after.prepare_unique = prepare;
    }
    if change.becomes_unique && !before.unique {
        if !after.prepare_unique {
            let message =
                "Cannot make index unique with 'prepareUnique=false'. Run collMod to set it first.";
            return Err(Error::invalid(Code::InvalidOptions, message));
        }
        (after.unique, after.prepare_unique) = (true, false);
    }
    if let Some(seconds) = change.expire_after_seconds {
        after.expire_after_seconds = Some(seconds);
    }
    if let Some(name) = &change.name {
        after.name.clone_from(name);
    }
    // The rule of its creation is checked again: a compound index can't have documents expire.
    IndexSpec::parse(after.to_document().view())
}

fn of_id(change: &IndexChange) -> Error {
    let (code, message) = match change {
        IndexChange { hidden: Some(_), .. } => (Code::BadValue, "can't hide _id index"),
        IndexChange { expire_after_seconds: Some(_), .. } => {
            (Code::InvalidOptions, "the _id field does not support TTL indexes")
        }
        _ => (Code::InvalidOptions, "can't rename _id index"),
    };
    Error::invalid(code, message)
}

/// The `_id` whose key this is.
fn id_of(reader: &Reader<'_>, collection: &Collection, id_key: &[u8]) -> Result<ValueBuf, Error> {
    if !key::is_id_cut(id_key) {
        return index_entry::id_of(id_key, &mut &[][..]);
    }
    let value = reader.get(collection.documents, id_key)?;
    let document = value.map(|value| reader.document(&value)).transpose()?;
    let id = document.as_ref().and_then(|document| document.get("_id"));
    id.map(|id| id.to_buf()).ok_or_else(|| Error::damaged("an index names an absent document"))
}
