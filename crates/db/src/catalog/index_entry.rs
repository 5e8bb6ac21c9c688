//! An index's entry: under which key it lies, what its value holds, and both read again.
//!
//! | | key | value |
//! |---|---|---|
//! | unique | the index's key | the key of `_id`, then the rest |
//! | any other | the index's key, then that of `_id` | the rest |
//! | any other, where that is too long | the same, cut | the key of `_id`, then the rest |
//!
//! Keys that are too long are cut ([`key::cut`]), which a flag shows. They end in a hash, so
//! entries whose first [`key::CUT_PREFIX_BYTES`] are equal, a *run*, have no order, and what those
//! bytes don't show is asked of documents: type bits, which would give values back, aren't kept.
//!
//! The rest is, for an index that holds nothing of documents, the type bits of the key's parts and
//! of `_id`, without the zeros at their end: mostly nothing. For one that does (`include`,
//! `clustering`) it is the number of bytes of type bits (two bytes, little-endian), these, and a
//! document: the included fields with those of the key and `_id`, or the whole document. A large
//! document ([`frond_doc::pieces::LARGE_DOCUMENT_BYTES`]) isn't repeated: nothing stands there, and
//! it is fetched.
//!
//! *Invariant*: an entry is a function of the definition and the document alone, so that merged and
//! rebuilt indexes are equal.

use std::collections::BTreeMap;

use bytes::Bytes;
use frond_doc::pieces::LARGE_DOCUMENT_BYTES;
use frond_doc::{Document, DocumentBuf, Value as BsonValue, key};
use frond_query::index::{FLAG_INEXACT_KEY, IndexKey, decode};
use frond_tree::Value;
use frond_tree::format::KEY_BYTES_MAX;

use crate::error::Error;
use crate::reader::Reader;
use crate::schema::{Collection, Held, Index};

/// Bytes that say how many type bits there are.
const BITS_COUNT_BYTES: usize = 2;

/// A value of an entry, cut.
#[derive(Debug)]
pub(crate) struct EntryParts {
    /// The key of `_id`.
    pub id_key: Bytes,
    /// Type bits of the key's parts and of `_id`.
    pub bits: Bytes,
    /// The document's fields that the index holds, if it does.
    pub document: Option<DocumentBuf>,
}

/// The entries by which `index` files a document.
///
/// # Errors
/// The reasons why the document can't be filed, by MongoDB's codes.
pub(crate) fn entries(
    index: &Index,
    id_key: &Bytes,
    document: Document<'_>,
) -> Result<BTreeMap<Bytes, Value>, Error> {
    let found = index.shape.keys(document)?;
    let mut entries = BTreeMap::new();
    if found.keys.is_empty() {
        return Ok(entries);
    }
    let held = match &index.held {
        Held::Nothing => None,
        Held::Fields(projection) => {
            Some(projection.apply(document, &frond_query::Filter::all())?.into_bytes())
        }
        Held::Document if document.as_bytes().len() < LARGE_DOCUMENT_BYTES => {
            Some(Bytes::copy_from_slice(document.as_bytes()))
        }
        Held::Document => Some(Bytes::new()),
    };
    for mut filed in found.keys {
        decode::append_bits(&mut filed.bits, document.get("_id"));
        key::trim_type_bits(&mut filed.bits);
        let mut content = Vec::new();
        if !index.spec.unique {
            filed.key.extend_from_slice(id_key);
        }
        let is_cut = filed.key.len() > KEY_BYTES_MAX;
        if is_cut {
            filed.bits.clear();
        }
        if index.spec.unique || is_cut {
            content.extend_from_slice(id_key);
        }
        if let Some(held) = &held {
            // More type bits than this can't be stored, and aren't needed beside the document.
            let count = u16::try_from(filed.bits.len()).unwrap_or(0);
            content.extend_from_slice(&count.to_le_bytes());
            content.extend_from_slice(&filed.bits[..usize::from(count)]);
            content.extend_from_slice(held);
        } else {
            content.extend_from_slice(&filed.bits);
        }
        let (key, content) = (key::cut(filed.key), Bytes::from(content));
        debug_assert_eq!(
            id_key_of(index, &key, &content).ok().as_ref(),
            Some(id_key),
            "an entry leads back to its document"
        );
        let flags = if is_cut { found.flags | FLAG_INEXACT_KEY } else { found.flags };
        entries.insert(key, Value { flags, ..Value::inline(content) });
    }
    Ok(entries)
}

/// The `_id`'s key of an entry: all that is needed to fetch its document. `content` is the value's.
pub(crate) fn id_key_of(index: &Index, key: &Bytes, content: &Bytes) -> Result<Bytes, Error> {
    if has_id_in_value(index, key) {
        let bytes = key::id_bytes(content).ok_or_else(|| damaged(&"no `_id` in its value"))?;
        return Ok(content.slice(..bytes));
    }
    let mut rest = &key[..];
    index.skip_key(&mut rest)?;
    Ok(key.slice(key.len() - rest.len()..))
}

/// Whether an entry's value names the document, and not its key.
fn has_id_in_value(index: &Index, key: &[u8]) -> bool {
    index.spec.unique || index.is_cut(key)
}

/// Returns the key under which `index` files the document for an entry, if it does: the key as it
/// was before it was cut, without that of `_id`.
pub(crate) fn whole_key(
    index: &Index,
    key: &[u8],
    id_key: &[u8],
    document: Document<'_>,
) -> Result<Option<IndexKey>, Error> {
    let behind = if index.spec.unique { &[][..] } else { id_key };
    let is_it = |filed: &IndexKey| key::cut([&filed.key[..], behind].concat()) == key;
    Ok(index.shape.keys(document)?.keys.into_iter().find(is_it))
}

/// The key of an entry without that of `_id`, as far as the key holds it: `None` if it was cut
/// before its end.
pub(crate) fn bare_key<'k>(index: &Index, key: &'k [u8]) -> Result<Option<&'k [u8]>, Error> {
    let is_cut = index.is_cut(key);
    let known = key::known(key, is_cut);
    let mut rest = known;
    match index.skip_key(&mut rest) {
        Ok(()) => Ok(Some(&known[..known.len() - rest.len()])),
        Err(_) if is_cut => Ok(None),
        Err(error) => Err(error),
    }
}

/// As [`bare_key`]; of a key that doesn't hold it, as the document with this `_id` does.
pub(crate) fn bare_key_of(
    reader: &Reader<'_>,
    collection: &Collection,
    index: &Index,
    key: &[u8],
    id_key: &[u8],
) -> Result<Vec<u8>, Error> {
    if let Some(bare) = bare_key(index, key)? {
        return Ok(bare.to_vec());
    }
    let absent = || Error::damaged("an index names an absent document");
    let value = reader.get(collection.documents, id_key)?.ok_or_else(absent)?;
    let document = reader.document(&value)?;
    Ok(whole_key(index, key, id_key, document.view())?.ok_or_else(absent)?.key)
}

/// Cuts an entry. `content` is the value's.
pub(crate) fn cut(index: &Index, key: &Bytes, content: &Bytes) -> Result<EntryParts, Error> {
    let id_key = id_key_of(index, key, content)?;
    let rest = match has_id_in_value(index, key) {
        true => content.slice(id_key.len()..),
        false => content.clone(),
    };
    if matches!(index.held, Held::Nothing) {
        return Ok(EntryParts { id_key, bits: rest, document: None });
    }
    let short = || damaged(&"its value ends early");
    let (count, _) = rest.split_first_chunk::<BITS_COUNT_BYTES>().ok_or_else(short)?;
    let end = BITS_COUNT_BYTES + usize::from(u16::from_le_bytes(*count));
    if rest.len() < end {
        return Err(short());
    }
    let held = rest.slice(end..);
    let document = match held.is_empty() {
        true => None,
        false => Some(DocumentBuf::from_validated(held)),
    };
    Ok(EntryParts { id_key, bits: rest.slice(BITS_COUNT_BYTES..end), document })
}

/// Whether an entry of a unique index belongs to the document whose `_id` has that key.
pub(crate) fn is_of_document(content: &[u8], id_key: &[u8]) -> bool {
    // Keys of values end by themselves: none begins with another.
    content.starts_with(id_key)
}

fn damaged(error: &dyn std::fmt::Display) -> Error {
    Error::damaged(format!("entry of an index: {error}"))
}

/// The value of `_id` from its key, which wasn't cut, and the type bits that are left.
pub(crate) fn id_of(id_key: &[u8], bits: &mut &[u8]) -> Result<frond_doc::ValueBuf, Error> {
    let mut rest = id_key;
    let id = decode::part(&mut rest, bits, false).map_err(|error| damaged(&error))?;
    Ok(id.unwrap_or_else(|| BsonValue::Null.to_buf()))
}
