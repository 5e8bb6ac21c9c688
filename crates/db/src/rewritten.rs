//! Telling of a collection that becomes another all at once: by a merge, a reset, `$out`.
//!
//! Where few documents differ they are told one by one, in the order of their keys; otherwise that
//! it was rewritten, and a stream that meets that ends with an error: it passes over no change.

use frond_doc::{Document, DocumentBuilder, Value as BsonValue};
use frond_engine::{Engine, ToldContent, Transaction};
use frond_tree::{Tree, Value};

use crate::error::Error;
use crate::event::{EventKind, Teller, difference};
use crate::large;

/// More documents than this, or more bytes of them, aren't told one by one.
const DOCUMENTS_MAX: usize = 1_000;
const BYTES_MAX: usize = 4 << 20;

/// What one document's event says.
type Change = (EventKind, frond_doc::DocumentBuf, ToldContent);

/// Tells what differs between two trees of documents, of a collection of a branch.
///
/// # Errors
/// `Damaged` if a document can't be read.
pub fn tell_rewritten(
    engine: &Engine,
    transaction: &mut Transaction,
    scope: (&str, &str, &str),
    before: Option<Tree>,
    after: Option<Tree>,
) -> Result<(), Error> {
    let Some(teller) = Teller::new(engine, scope) else {
        return Ok(());
    };
    match changes(engine, before, after)? {
        Some(changes) => {
            for (kind, facts, content) in changes {
                teller.tell_with(transaction, kind, facts.view(), content);
            }
        }
        None => teller.tell(transaction, EventKind::Rewritten, Document::empty()),
    }
    Ok(())
}

/// The changes, if they are few.
fn changes(
    engine: &Engine,
    before: Option<Tree>,
    after: Option<Tree>,
) -> Result<Option<Vec<Change>>, Error> {
    let store = engine.store();
    let Some(format) = before.or(after).map(|tree| tree.format) else {
        return Ok(Some(Vec::new()));
    };
    let empty = Tree::empty(&**store, format)?;
    let (before, after) = (before.unwrap_or(empty), after.unwrap_or(empty));
    let (mut changes, mut bytes) = (Vec::new(), 0);
    for difference in before.diff(store, &after) {
        let difference = difference?;
        let is_few = |value: &Option<Value>| {
            value.as_ref().is_none_or(|value| value.bytes() <= BYTES_MAX as u64)
        };
        if changes.len() == DOCUMENTS_MAX || !is_few(&difference.from) || !is_few(&difference.to) {
            return Ok(None);
        }
        let read = |value: &Value| large::read_document(&**store, value);
        let old = difference.from.as_ref().map(read).transpose()?;
        let new = difference.to.as_ref().map(read).transpose()?;
        bytes += new.as_ref().map_or(0, |new| new.as_bytes().len());
        if BYTES_MAX < bytes {
            return Ok(None);
        }
        let whole =
            |document: &frond_doc::DocumentBuf| ToldContent::Whole(document.clone().into_bytes());
        let mut facts = DocumentBuilder::new();
        changes.push(match (old, new) {
            (None, Some(new)) => (EventKind::Insert, facts.build(), whole(&new)),
            (Some(old), Some(new)) => match difference::describe(old.view(), new.view()) {
                Some(description) => {
                    key(&mut facts, new.view());
                    facts.append("description", BsonValue::Document(description.view()));
                    (EventKind::Update, facts.build(), ToldContent::None)
                }
                None => (EventKind::Replace, facts.build(), whole(&new)),
            },
            (Some(old), None) => {
                key(&mut facts, old.view());
                (EventKind::Delete, facts.build(), ToldContent::None)
            }
            (None, None) => continue,
        });
    }
    Ok(Some(changes))
}

fn key(facts: &mut DocumentBuilder, document: Document<'_>) {
    let id = document.get("_id").unwrap_or(BsonValue::Null);
    facts.begin_document("key").append("_id", id).end();
}
