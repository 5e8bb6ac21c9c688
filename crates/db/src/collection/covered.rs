//! Makes documents of an index's entries without fetching them.
//!
//! - An index with `clustering` holds whole documents, one that includes fields those and its
//!   key's.
//! - The key of an index of values gives its fields back, with the type bits beside it, where no
//!   document has an array on their paths: one entry is then all that the document has there. A
//!   field below another (`a.b`) that is absent doesn't show whether `a` is there: that document is
//!   fetched.
//!
//! - Included fields are held as a projection shows them: of an array on the way to one only the
//!   documents in it. All that is asked of a path looks at these alone, but for an order: to it the
//!   other elements are null. So it isn't made of such a field.
//!
//! *Surprise*: a document made of a key has its fields in the key's order, as in MongoDB.

use bytes::Bytes;
use frond_doc::{DocumentBuf, DocumentBuilder, ValueBuf, key};
use frond_query::SortPattern;
use frond_query::index::decode;

use crate::catalog::index_entry::{self, EntryParts};
use crate::error::Error;
use crate::schema::{Held, Index};

/// The paths that a request asks of documents; `None`: all there is.
pub(crate) type NeededPaths = Option<Vec<String>>;

/// The way in which documents, or the parts of them that are asked for, come out of an index's
/// entries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Cover {
    /// They don't.
    Nothing,
    /// They lie in the entries.
    Held,
    /// They are made of the keys: the places of the parts that are asked for.
    Key(Vec<usize>),
}

impl Cover {
    /// Returns how `index`, whose entries' flags are `flags`, gives what `needs` asks for, to be
    /// sorted by `order` if there is one.
    pub fn of(index: &Index, flags: u8, needs: &NeededPaths, order: Option<&SortPattern>) -> Cover {
        if matches!(index.held, Held::Document) {
            return Cover::Held;
        }
        let Some(needs) = needs else {
            return Cover::Nothing;
        };
        let is_held = |path: &String| {
            let keys = index.fields().iter().map(|field| field.path.as_str());
            let mut held = index.spec.include.iter().map(String::as_str).chain(keys);
            path == "_id" || held.any(|outer| is_at_or_below(path, outer)) && !has_number(path)
        };
        let keeps_order = || order.is_none_or(|order| holds_order(index, flags, order));
        if matches!(index.held, Held::Fields(_)) && needs.iter().all(is_held) && keeps_order() {
            return Cover::Held;
        }
        Cover::of_key(index, flags, needs).map_or(Cover::Nothing, Cover::Key)
    }

    /// The parts of the key that give what `needs` asks for.
    pub fn of_key(index: &Index, flags: u8, needs: &[String]) -> Option<Vec<usize>> {
        // Collated keys can't be turned back.
        let is_simple = index.shape.collation().is_simple();
        if flags != 0 || !index.shape.is_of_values() || !is_simple || !index.holds_ids {
            return None;
        }
        let mut places = Vec::new();
        for path in needs.iter().filter(|path| *path != "_id") {
            let fields = index.fields();
            let place = fields.iter().position(|field| is_at_or_below(path, &field.path))?;
            if has_number(path) {
                return None;
            }
            places.push(place);
        }
        places.sort_unstable();
        places.dedup();
        // If one of two fields lies below the other, both would have to be shown.
        let paths: Vec<&str> =
            places.iter().map(|place| index.fields()[*place].path.as_str()).collect();
        let meets =
            |path: &str| paths.iter().filter(|other| is_at_or_below(path, other)).count() > 1;
        (!paths.iter().any(|path| meets(path))).then_some(places)
    }

    /// Makes an entry's document; `None` if the document must be fetched.
    ///
    /// # Errors
    /// `Damaged` if the key is none of this index.
    pub fn document(
        &self,
        index: &Index,
        key: &Bytes,
        parts: &EntryParts,
    ) -> Result<Option<DocumentBuf>, Error> {
        match self {
            Cover::Nothing => Ok(None),
            Cover::Held => Ok(parts.document.clone()),
            // In a unique index the `_id` may be cut though the key isn't.
            Cover::Key(_) if index.is_cut(key) || key::is_id_cut(&parts.id_key) => Ok(None),
            Cover::Key(places) => of_key(index, places, key, parts),
        }
    }
}

/// The document of `_id` and the parts of a key at `places`.
fn of_key(
    index: &Index,
    places: &[usize],
    key: &Bytes,
    parts: &EntryParts,
) -> Result<Option<DocumentBuf>, Error> {
    let damaged =
        |error: &dyn std::fmt::Display| Error::damaged(format!("key of an index: {error}"));
    let (mut rest, mut bits) = (&key[..], &parts.bits[..]);
    let mut found: Vec<(Vec<&str>, ValueBuf)> = Vec::with_capacity(places.len());
    for (place, field) in index.fields().iter().enumerate() {
        // Type bits have no lengths: what isn't asked for is decoded, too.
        let value = decode::part(&mut rest, &mut bits, field.descending);
        let value = value.map_err(|error| damaged(&error))?;
        if !places.contains(&place) {
            continue;
        }
        match value {
            Some(value) => found.push((field.path.split('.').collect(), value)),
            None if field.path.contains('.') => return Ok(None),
            None => {}
        }
    }
    let id = index_entry::id_of(&parts.id_key, &mut bits)?;
    let mut document = DocumentBuilder::new();
    document.append("_id", id.as_value());
    found.retain(|(path, _)| path[..] != ["_id"]);
    append(&mut document, &found);
    Ok(Some(document.build()))
}

/// Appends values at their paths, those below one name together.
fn append(builder: &mut DocumentBuilder, fields: &[(Vec<&str>, ValueBuf)]) {
    let mut done: Vec<&str> = Vec::new();
    for (path, value) in fields {
        let Some((first, rest)) = path.split_first() else { continue };
        if done.contains(first) {
            continue;
        }
        done.push(first);
        if rest.is_empty() {
            builder.append(first, value.as_value());
            continue;
        }
        let below: Vec<(Vec<&str>, ValueBuf)> = fields
            .iter()
            .filter(|(path, _)| path.first() == Some(first))
            .map(|(path, value)| (path[1..].to_vec(), value.clone()))
            .collect();
        let mut inner = DocumentBuilder::new();
        append(&mut inner, &below);
        builder.append(first, frond_doc::Value::from(&inner.build()));
    }
}

/// Whether the fields that `index` holds sort as the document does: they are whole, or no array is
/// on the way to them.
fn holds_order(index: &Index, flags: u8, order: &SortPattern) -> bool {
    let whole = index.spec.include.iter().filter(|path| !path.contains('.'));
    let keys = index.fields().iter().map(|field| &field.path);
    let keys = keys.filter(|path| flags == 0 || !path.contains('.'));
    let exact: Vec<&String> = whole.chain(keys).collect();
    let is_exact = |path: &str| exact.iter().any(|outer| is_at_or_below(path, outer));
    order.fields.iter().all(|field| !field.path.contains('.') || is_exact(&field.path))
}

fn is_at_or_below(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn has_number(path: &str) -> bool {
    path.split('.').any(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
}
