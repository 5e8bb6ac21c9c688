//! Events of a collection that becomes another all at once: by a merge, a reset, `$out`.
//!
//! Where few documents differ each has an event, in the order of their keys; otherwise the event
//! has the roots of both trees, and a stream that comes to it reads what differs
//! ([`crate::changes`]): so a merge of a million documents takes the log no more than one of none.

use frond_doc::{Binary, Document, DocumentBuf, DocumentBuilder, Value as BsonValue};
use frond_engine::{Engine, EventContent, Transaction};
use frond_store::ChunkHash;
use frond_tree::{Change, Tree, TreeFormat, Value};

use crate::error::Error;
use crate::event::{EventKind, EventRecorder, difference};
use crate::large;

/// The number of documents, and of bytes of them, above which they have no events of their own.
const DOCUMENTS_MAX: usize = 1_000;
const BYTES_MAX: usize = 4 << 20;
/// The fact that events show what documents were, too.
const IMAGES: &str = "images";

/// A collection's documents, before and after.
#[derive(Clone, Copy)]
pub struct Rewriting {
    /// `None`: there were none.
    pub before: Option<Tree>,
    /// `None`: there are none.
    pub after: Option<Tree>,
    /// Whether the collection keeps what documents were, for events to show it.
    pub keeps_images: bool,
}

/// The content of one document's event.
pub struct DocumentEvent {
    /// The kind of event.
    pub kind: EventKind,
    /// Its facts.
    pub facts: DocumentBuf,
    /// The document, where the event has all of it.
    pub document: Option<DocumentBuf>,
    /// The former document.
    pub before: Option<DocumentBuf>,
}

/// Records what differs between two trees of documents, of a collection of a branch.
///
/// # Errors
/// `Damaged` if a document can't be read.
pub fn record_rewrite(
    engine: &Engine,
    transaction: &mut Transaction,
    scope: (&str, &str, &str),
    rewriting: Rewriting,
) -> Result<(), Error> {
    let Some(recorder) = EventRecorder::new(engine, scope) else {
        return Ok(());
    };
    let Some(changes) = changes(engine, rewriting)? else {
        let facts = facts_of(rewriting);
        recorder.record(transaction, EventKind::Rewritten, facts.view());
        return Ok(());
    };
    let whole = |document: DocumentBuf| EventContent::Whole(document.into_bytes());
    for DocumentEvent { kind, facts, document, before } in changes {
        if let Some(before) = before.filter(|_| rewriting.keeps_images) {
            recorder.record_with(
                transaction,
                EventKind::PreImage,
                Document::empty(),
                whole(before),
            );
        }
        let content = document.map_or(EventContent::None, whole);
        recorder.record_with(transaction, kind, facts.view(), content);
    }
    Ok(())
}

/// The changes, if they are few.
fn changes(engine: &Engine, rewriting: Rewriting) -> Result<Option<Vec<DocumentEvent>>, Error> {
    let Rewriting { before, after, keeps_images } = rewriting;
    let Some((before, after)) = both(engine, before, after)? else { return Ok(Some(Vec::new())) };
    let (mut changes, mut bytes) = (Vec::new(), 0);
    for difference in before.diff(engine.store(), &after) {
        let difference = difference?;
        let is_few = |value: &Option<Value>| {
            value.as_ref().is_none_or(|value| value.bytes() <= BYTES_MAX as u64)
        };
        if changes.len() == DOCUMENTS_MAX || !is_few(&difference.from) || !is_few(&difference.to) {
            return Ok(None);
        }
        let old = difference.from.as_ref().filter(|_| keeps_images);
        let values = difference.to.iter().chain(old);
        bytes += values.map(|value| value.bytes() as usize).sum::<usize>();
        if BYTES_MAX < bytes {
            return Ok(None);
        }
        changes.extend(change_of(engine, &difference)?);
    }
    Ok(Some(changes))
}

/// Returns the event of a document that differs.
///
/// # Errors
/// `Damaged` if it can't be read.
pub fn change_of(engine: &Engine, difference: &Change) -> Result<Option<DocumentEvent>, Error> {
    let read = |value: &Value| large::read_document(&**engine.store(), value);
    let old = difference.from.as_ref().map(read).transpose()?;
    let new = difference.to.as_ref().map(read).transpose()?;
    let mut facts = DocumentBuilder::new();
    let (kind, document) = match (&old, new) {
        (None, None) => return Ok(None),
        (None, Some(new)) => (EventKind::Insert, Some(new)),
        (Some(old), None) => {
            key(&mut facts, old.view());
            (EventKind::Delete, None)
        }
        (Some(old), Some(new)) => match difference::describe(old.view(), new.view()) {
            None => (EventKind::Replace, Some(new)),
            Some(description) => {
                key(&mut facts, new.view());
                facts.append("description", BsonValue::Document(description.view()));
                (EventKind::Update, None)
            }
        },
    };
    Ok(Some(DocumentEvent { kind, facts: facts.build(), document, before: old }))
}

/// Both trees, an empty one for none; `None` if there is neither.
fn both(
    engine: &Engine,
    before: Option<Tree>,
    after: Option<Tree>,
) -> Result<Option<(Tree, Tree)>, Error> {
    let Some(format) = before.or(after).map(|tree| tree.format) else { return Ok(None) };
    let empty = Tree::empty(&**engine.store(), format)?;
    Ok(Some((before.unwrap_or(empty), after.unwrap_or(empty))))
}

/// The facts that say between which trees a change lies.
fn facts_of(rewriting: Rewriting) -> DocumentBuf {
    let Rewriting { before, after, keeps_images } = rewriting;
    let mut facts = DocumentBuilder::new();
    let mut put = |name: &str, bytes: &[u8]| {
        facts.append(name, BsonValue::Binary(Binary { subtype: 0, bytes }));
    };
    for (name, tree) in [("from", before), ("to", after)] {
        tree.into_iter().for_each(|tree| put(name, &tree.root.0));
    }
    if let Some(format) = before.or(after).map(|tree| tree.format) {
        put("target", &format.chunk_bytes_target.to_le_bytes());
        put("inline", &format.inline_bytes_max.to_le_bytes());
        put("salt", &format.salt.to_le_bytes());
    }
    if keeps_images {
        facts.append(IMAGES, BsonValue::Boolean(true));
    }
    facts.build()
}

/// Whether such facts say that events show what documents were, too.
pub fn keeps_images(facts: Document<'_>) -> bool {
    facts.get(IMAGES) == Some(BsonValue::Boolean(true))
}

/// The trees that such facts name; `None` if they name none.
///
/// # Errors
/// As the store.
pub fn trees(engine: &Engine, facts: Document<'_>) -> Result<Option<(Tree, Tree)>, Error> {
    fn bytes<const BYTES: usize>(facts: Document<'_>, name: &str) -> Option<[u8; BYTES]> {
        match facts.get(name) {
            Some(BsonValue::Binary(binary)) => binary.bytes.try_into().ok(),
            _ => None,
        }
    }
    let format = || {
        Some(TreeFormat {
            chunk_bytes_target: u32::from_le_bytes(bytes(facts, "target")?),
            inline_bytes_max: u32::from_le_bytes(bytes(facts, "inline")?),
            salt: u64::from_le_bytes(bytes(facts, "salt")?),
        })
    };
    let Some(format) = format() else { return Ok(None) };
    let tree = |name| bytes(facts, name).map(|root| Tree { root: ChunkHash(root), format });
    both(engine, tree("from"), tree("to"))
}

fn key(facts: &mut DocumentBuilder, document: Document<'_>) {
    let id = document.get("_id").unwrap_or(BsonValue::Null);
    facts.begin_document("key").append("_id", id).end();
}
