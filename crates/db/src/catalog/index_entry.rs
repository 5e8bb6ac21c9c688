//! An index's entry: under which key it lies, what its value holds, and both read again.
//!
//! | | key | value |
//! |---|---|---|
//! | unique | the index's key | the key of `_id`, then the rest |
//! | any other | the index's key, then that of `_id` | the rest |
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
use frond_query::index::decode;
use frond_tree::Value;
use frond_tree::format::KEY_BYTES_MAX;

use crate::error::{Error, KEY_TOO_LONG};
use crate::schema::{Held, Index};

/// Bytes that say how many type bits there are.
const BITS_COUNT_BYTES: usize = 2;

/// A value of an entry, cut.
#[derive(Debug)]
pub(crate) struct EntryParts {
    /// The key of `_id`.
    pub id_key: Bytes,
    /// Type bits of the key's parts and of `_id`.
    pub bits: Bytes,
    /// What the index holds of the document, if it does.
    pub document: Option<DocumentBuf>,
}

/// The entries by which `index` files a document.
///
/// # Errors
/// What the document can't be filed for, by MongoDB's codes; 17280 if a key is too long.
pub(crate) fn entries(
    index: &Index,
    id_key: &Bytes,
    document: Document<'_>,
    namespace: &str,
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
        if index.spec.unique {
            content.extend_from_slice(id_key);
        } else {
            filed.key.extend_from_slice(id_key);
        }
        if let Some(held) = &held {
            // More type bits than this can't be told, and aren't needed beside the document.
            let count = u16::try_from(filed.bits.len()).unwrap_or(0);
            content.extend_from_slice(&count.to_le_bytes());
            content.extend_from_slice(&filed.bits[..usize::from(count)]);
            content.extend_from_slice(held);
        } else {
            content.extend_from_slice(&filed.bits);
        }
        let key = checked_key(filed.key.into(), namespace, &index.spec.name)?;
        let content = Bytes::from(content);
        debug_assert_eq!(
            id_key_of(index, &key, &content).ok().as_ref(),
            Some(id_key),
            "an entry leads back to its document"
        );
        entries.insert(key, Value { flags: found.flags, ..Value::inline(content) });
    }
    Ok(entries)
}

/// The `_id`'s key of an entry: all that is needed to fetch its document. `content` is the value's.
pub(crate) fn id_key_of(index: &Index, key: &Bytes, content: &Bytes) -> Result<Bytes, Error> {
    let (whole, mut rest) = match index.spec.unique {
        true => (content, &content[..]),
        false => (key, &key[..]),
    };
    if index.spec.unique {
        key::skip(&mut rest, false).map_err(|error| damaged(&error))?;
        return Ok(whole.slice(..whole.len() - rest.len()));
    }
    index.skip_key(&mut rest)?;
    Ok(whole.slice(whole.len() - rest.len()..))
}

/// Cuts an entry. `content` is the value's.
pub(crate) fn cut(index: &Index, key: &Bytes, content: &Bytes) -> Result<EntryParts, Error> {
    let id_key = id_key_of(index, key, content)?;
    let rest = if index.spec.unique { content.slice(id_key.len()..) } else { content.clone() };
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

/// Refuses keys that are too long.
pub(crate) fn checked_key(key: Bytes, namespace: &str, index: &str) -> Result<Bytes, Error> {
    if key.len() > KEY_BYTES_MAX {
        let message = format!(
            "{namespace}: key too large to index, failing: index {index}, {} bytes, at most \
             {KEY_BYTES_MAX} are allowed",
            key.len()
        );
        return Err(Error::invalid(KEY_TOO_LONG, message));
    }
    Ok(key)
}

fn damaged(error: &dyn std::fmt::Display) -> Error {
    Error::damaged(format!("entry of an index: {error}"))
}

/// The value of `_id` from its key and the type bits that are left.
pub(crate) fn id_of(id_key: &[u8], bits: &mut &[u8]) -> Result<frond_doc::ValueBuf, Error> {
    let mut rest = id_key;
    let id = decode::part(&mut rest, bits, false).map_err(|error| damaged(&error))?;
    Ok(id.unwrap_or_else(|| BsonValue::Null.to_buf()))
}
