//! `$rename`, which moves an item as it is.

use frond_doc::Value;
use frond_doc::pieces::{Edited, LargeDocument, PiecesError};
use frond_store::ChunkStore;

/// Takes an item to another name.
pub(super) fn renamed(
    store: &dyn ChunkStore,
    document: LargeDocument,
    paths: Value<'_>,
) -> Result<Option<LargeDocument>, PiecesError> {
    let mut fields = paths.as_document().into_iter().flat_map(|paths| paths.iter());
    let (Some((source, Value::String(target))), None) = (fields.next(), fields.next()) else {
        return Ok(None);
    };
    let (from, to): (Vec<&str>, Vec<&str>) =
        (source.split('.').collect(), target.split('.').collect());
    let is_plain = |part: &&str| !part.is_empty() && !part.starts_with('$') && *part != "_id";
    // A field that would lie deeper than before is left to the other way, which checks depth.
    if !from.iter().chain(&to).all(is_plain) || from.len() < to.len() {
        return Ok(None);
    }
    let found = document.find(store, &from)?;
    let is_whole = found.part_count + 1 == from.len() && found.is_in_documents();
    let Some((position, item)) = found.item.as_ref().filter(|_| is_whole) else { return Ok(None) };
    let without = match document.splice(store, &found, *position, 1, &[])? {
        Some(Edited::Large(without)) => without,
        _ => return Ok(None),
    };
    let place = without.find(store, &to)?;
    if place.part_count + 1 != to.len() || !place.is_in_documents() {
        return Ok(None);
    }
    let (position, removed) = match &place.item {
        Some((position, _)) => (*position, 1),
        None => (place.count(store)?, 0),
    };
    let name = to[place.part_count];
    match without.splice_item(store, &place, position, removed, item, name)? {
        Some(Edited::Large(changed)) => Ok(Some(changed)),
        _ => Ok(None),
    }
}
