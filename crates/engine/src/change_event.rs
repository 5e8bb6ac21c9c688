//! Change events: what transactions record in the log for change streams, in their order.
//!
//! The engine doesn't know what the events say; it only spares the log a second copy of a value
//! that the transaction writes anyway. The bytes are docs/format/log.md's "event".

use bytes::Bytes;
use frond_store::ChunkHash;
use frond_store::chunk::HASH_BYTES;

use crate::ids::TreeId;

/// An event that a transaction records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangeEvent {
    /// The common part of many events in a row: it is stored once for them.
    pub scope: Bytes,
    /// The event's own bytes.
    pub head: Bytes,
    /// Bytes that belong to it.
    pub content: EventContent,
}

/// The content of an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EventContent {
    /// None.
    None,
    /// These.
    Whole(Bytes),
    /// The inline value that the transaction has just given this key: if it gives it no other, the
    /// log has it once.
    Written {
        /// The key's tree.
        tree: TreeId,
        /// The key.
        key: Bytes,
        /// The value's content.
        content: Bytes,
    },
    /// The content below this chunk. The transaction has brought all of it
    /// ([`Transaction::put_chunks`](crate::Transaction::put_chunks)), and the log has it whole.
    Chunks {
        /// The chunk.
        root: ChunkHash,
        /// Its length, as the layer above counts.
        bytes: u64,
    },
}

/// An event as it is read back from the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoggedEvent {
    /// As [`ChangeEvent::scope`].
    pub scope: Bytes,
    /// As [`ChangeEvent::head`].
    pub head: Bytes,
    /// The event's content.
    pub content: LoggedContent,
}

/// The content of a logged event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoggedContent {
    /// Nothing.
    None,
    /// These bytes.
    Whole(Bytes),
    /// The content below a chunk: its record has all of it.
    Chunks {
        /// The chunk.
        root: ChunkHash,
        /// Its length, as the layer above counts.
        bytes: u64,
    },
}

/// Stored: never renumber.
const CONTENT_NONE: u8 = 0;
const CONTENT_WHOLE: u8 = 1;
const CONTENT_WRITTEN: u8 = 2;
const CONTENT_CHUNKS: u8 = 3;
const CONTENT_MASK: u8 = 3;
/// Stored: the scope is that of the one before.
const SAME_SCOPE: u8 = 4;

impl ChangeEvent {
    /// About how much memory, and how much of the log, it takes.
    pub(crate) fn bytes(&self) -> u64 {
        let content = match &self.content {
            EventContent::None | EventContent::Written { .. } | EventContent::Chunks { .. } => 0,
            EventContent::Whole(content) => content.len(),
        };
        (self.head.len() + content + 16) as u64
    }
}

/// The event of a record; `position_of` returns where among all its entries a value stands that the
/// record has once.
pub(crate) fn encode(events: &[ChangeEvent], position_of: impl Fn(usize) -> Option<u32>) -> Bytes {
    let mut out = Vec::new();
    let mut scope: Option<&Bytes> = None;
    for (number, one) in events.iter().enumerate() {
        let position = position_of(number);
        let content = match (&one.content, position) {
            (EventContent::None, _) => CONTENT_NONE,
            (EventContent::Chunks { .. }, _) => CONTENT_CHUNKS,
            (EventContent::Written { .. }, Some(_)) => CONTENT_WRITTEN,
            (EventContent::Written { .. } | EventContent::Whole(_), _) => CONTENT_WHOLE,
        };
        let is_same = scope == Some(&one.scope);
        out.push(content | if is_same { SAME_SCOPE } else { 0 });
        if !is_same {
            put(&mut out, &one.scope);
            scope = Some(&one.scope);
        }
        put(&mut out, &one.head);
        match (&one.content, position) {
            (EventContent::None, _) => {}
            (EventContent::Chunks { root, bytes }, _) => {
                out.extend_from_slice(&root.0);
                out.extend_from_slice(&bytes.to_le_bytes());
            }
            (EventContent::Written { .. }, Some(position)) => {
                out.extend_from_slice(&position.to_le_bytes());
            }
            (EventContent::Written { content, .. } | EventContent::Whole(content), _) => {
                put(&mut out, content);
            }
        }
    }
    out.into()
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    let count = u32::try_from(bytes.len()).expect("a transaction's limit is below 4 GiB");
    out.extend_from_slice(&count.to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Reads an event back; `values` are the inline values of all entries of its record.
///
/// # Errors
/// Says what of the bytes is no event.
pub(crate) fn decode(
    event: &Bytes,
    values: &[Option<Bytes>],
) -> Result<Vec<LoggedEvent>, &'static str> {
    let mut rest = event.clone();
    let mut events = Vec::new();
    let mut scope: Option<Bytes> = None;
    while !rest.is_empty() {
        let tag = rest.split_to(1)[0];
        if tag & !(CONTENT_MASK | SAME_SCOPE) != 0 {
            return Err("an unknown tag of what is told");
        }
        if tag & SAME_SCOPE == 0 {
            scope = Some(take(&mut rest)?);
        }
        let scope = scope.clone().ok_or("what is told has no scope")?;
        let head = take(&mut rest)?;
        let content = match tag & CONTENT_MASK {
            CONTENT_NONE => LoggedContent::None,
            CONTENT_WHOLE => LoggedContent::Whole(take(&mut rest)?),
            CONTENT_WRITTEN => {
                let position = take_u32(&mut rest)? as usize;
                let value = values.get(position).and_then(Option::as_ref);
                let value = value.ok_or("what is told names no value of the record")?;
                LoggedContent::Whole(value.clone())
            }
            CONTENT_CHUNKS => {
                let root = ChunkHash(take_array::<HASH_BYTES>(&mut rest)?);
                let bytes = u64::from_le_bytes(take_array(&mut rest)?);
                LoggedContent::Chunks { root, bytes }
            }
            _ => return Err("an unknown tag of what is told"),
        };
        events.push(LoggedEvent { scope, head, content });
    }
    Ok(events)
}

fn take_array<const BYTES: usize>(rest: &mut Bytes) -> Result<[u8; BYTES], &'static str> {
    let bytes = *rest.first_chunk().ok_or("what is told is cut off")?;
    *rest = rest.slice(BYTES..);
    Ok(bytes)
}

fn take_u32(rest: &mut Bytes) -> Result<u32, &'static str> {
    Ok(u32::from_le_bytes(take_array(rest)?))
}

fn take(rest: &mut Bytes) -> Result<Bytes, &'static str> {
    let count = take_u32(rest)? as usize;
    if rest.len() < count {
        return Err("what is told is cut off");
    }
    Ok(rest.split_to(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_back_and_truncated_ones_refused() {
        let bytes = |text: &'static str| Bytes::from(text);
        let root = ChunkHash([5; HASH_BYTES]);
        let written = |content| EventContent::Written { tree: TreeId(2), key: bytes("k"), content };
        let events = [
            (bytes("s"), bytes("a"), EventContent::None),
            (bytes("s"), bytes("b"), EventContent::Whole(bytes("whole"))),
            (bytes("t"), bytes("c"), written(bytes("once"))),
            (bytes("t"), bytes("d"), written(bytes("gone"))),
            (bytes("t"), bytes("e"), EventContent::Chunks { root, bytes: 7 }),
        ]
        .map(|(scope, head, content)| ChangeEvent { scope, head, content });
        let event = encode(&events, |number| (number == 2).then_some(1));
        // Tags, two scopes, heads, and contents, each with its length.
        let lengths = [5, 2 * (4 + 1), 5 * (4 + 1), (4 + 5) + 4 + (4 + 4), HASH_BYTES + 8];
        assert_eq!(event.len(), lengths.into_iter().sum::<usize>(), "a scope is told once");
        let values = [None, Some(bytes("once"))];
        let read = decode(&event, &values).unwrap();
        let contents: Vec<_> = read.iter().map(|one| one.content.clone()).collect();
        let whole = |text| LoggedContent::Whole(bytes(text));
        let chunks = LoggedContent::Chunks { root, bytes: 7 };
        assert_eq!(
            contents,
            [LoggedContent::None, whole("whole"), whole("once"), whole("gone"), chunks]
        );
        assert!(events.iter().zip(&read).all(|(l, r)| l.scope == r.scope && l.head == r.head));
        let whole = (0..event.len()).filter(|end| decode(&event.slice(..*end), &values).is_ok());
        assert_eq!(whole.count(), 5, "only where one ends");
        assert!(decode(&event, &[None]).is_err());
    }
}
