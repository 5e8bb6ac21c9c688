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
/// Stored: this and some more events differ only in their values, those of entries in a row.
const ROW: u8 = 8;

/// About what an event takes besides its head: tag, lengths, position, count.
const EVENT_BYTES: usize = 20;
/// Room is made at once for so many events: mostly there is one, or they lie in a row.
const CAPACITY_COUNT: usize = 4;

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
    let scope_bytes = events.first().map_or(0, |first| first.scope.len());
    let heads = events.iter().take(CAPACITY_COUNT).map(|one| one.head.len() + EVENT_BYTES);
    let mut out = Vec::with_capacity(scope_bytes + heads.sum::<usize>());
    let mut scope: Option<&Bytes> = None;
    let mut number = 0;
    while let Some(one) = events.get(number) {
        let position = position_of(number);
        let count = position.map_or(1, |first| {
            row_of(&events[number..], |at| {
                position_of(number + at)
                    == u32::try_from(at).ok().and_then(|at| first.checked_add(at))
            })
        });
        let is_same = scope.is_some_and(|scope| is_alike(scope, &one.scope));
        let same = if is_same { SAME_SCOPE } else { 0 };
        let row = if count == 1 { 0 } else { ROW };
        out.push(tag_of(&one.content, position) | same | row);
        if !is_same {
            put(&mut out, &one.scope);
            scope = Some(&one.scope);
        }
        put(&mut out, &one.head);
        put_content(&mut out, &one.content, position);
        if count > 1 {
            put_count(&mut out, count);
        }
        number += count;
    }
    out.into()
}

/// The number of `events` from the first on that are alike but for their values, of which
/// `is_next` says whether one is where it would be in a row.
fn row_of(events: &[ChangeEvent], is_next: impl Fn(usize) -> bool) -> usize {
    let first = &events[0];
    let is_in_row = |(at, one): &(usize, &ChangeEvent)| {
        matches!(one.content, EventContent::Written { .. })
            && is_alike(&first.scope, &one.scope)
            && is_alike(&first.head, &one.head)
            && is_next(*at)
    };
    events.iter().enumerate().take_while(is_in_row).count().max(1)
}

fn tag_of(content: &EventContent, position: Option<u32>) -> u8 {
    match (content, position) {
        (EventContent::None, _) => CONTENT_NONE,
        (EventContent::Chunks { .. }, _) => CONTENT_CHUNKS,
        (EventContent::Written { .. }, Some(_)) => CONTENT_WRITTEN,
        (EventContent::Written { .. } | EventContent::Whole(_), _) => CONTENT_WHOLE,
    }
}

fn put_content(out: &mut Vec<u8>, content: &EventContent, position: Option<u32>) {
    match (content, position) {
        (EventContent::None, _) => {}
        (EventContent::Chunks { root, bytes }, _) => {
            out.extend_from_slice(&root.0);
            out.extend_from_slice(&bytes.to_le_bytes());
        }
        (EventContent::Written { .. }, Some(position)) => {
            out.extend_from_slice(&position.to_le_bytes());
        }
        (EventContent::Written { content, .. } | EventContent::Whole(content), _) => {
            put(out, content);
        }
    }
}

/// Whether these are equal; mostly they are the same bytes.
fn is_alike(left: &Bytes, right: &Bytes) -> bool {
    std::ptr::eq(&left[..], &right[..]) || left == right
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    put_count(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    let count = u32::try_from(count).expect("a transaction's limit is below 4 GiB");
    out.extend_from_slice(&count.to_le_bytes());
}

/// What is wrong with the position of a value.
const NO_VALUE: &str = "what is told names no value of the record";

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
        let is_row = tag & ROW != 0;
        let is_unknown = tag & !(CONTENT_MASK | SAME_SCOPE | ROW) != 0;
        if is_unknown || is_row && tag & CONTENT_MASK != CONTENT_WRITTEN {
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
                let count = if is_row { take_u32(&mut rest)? as usize } else { 1 };
                let row = position.checked_add(count).and_then(|end| values.get(position..end));
                for value in row.ok_or(NO_VALUE)? {
                    let content = LoggedContent::Whole(value.clone().ok_or(NO_VALUE)?);
                    events.push(LoggedEvent { scope: scope.clone(), head: head.clone(), content });
                }
                continue;
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
    /// Events that are alike and whose values lie in a row are one; any other begins the next.
    #[test]
    fn insertions_in_a_row_are_stored_as_one() {
        let event = |scope: &'static str, head: &'static str, content: &'static str| {
            let (key, content) = (Bytes::from("k"), Bytes::from(content));
            let content = EventContent::Written { tree: TreeId(2), key, content };
            ChangeEvent { scope: scope.into(), head: head.into(), content }
        };
        let check = |events: &[ChangeEvent], positions: &[Option<u32>], rows: usize| {
            let encoded = encode(events, |number| positions[number]);
            let values: Vec<Option<Bytes>> =
                "abcdefgh".chars().map(|letter| Some(letter.to_string().into())).collect();
            let read = decode(&encoded, &values).unwrap();
            let contents = read.iter().map(|one| &one.content);
            let expected = events.iter().map(|one| match &one.content {
                EventContent::Written { content, .. } => LoggedContent::Whole(content.clone()),
                EventContent::None => LoggedContent::None,
                _ => unreachable!("none of these are here"),
            });
            assert!(contents.eq(expected.collect::<Vec<_>>().iter()), "{positions:?}");
            assert!(events.iter().zip(&read).all(|(l, r)| l.scope == r.scope && l.head == r.head));
            let heads = encoded.windows(5).filter(|at| at[..4] == [1, 0, 0, 0] && at[4] >= b'i');
            assert_eq!(heads.count(), rows, "{positions:?}");
            for end in 0..encoded.len() {
                let begun = decode(&encoded.slice(..end), &values).unwrap_or_default();
                assert!(begun.len() < events.len(), "a part of it has all");
            }
            assert!(decode(&encoded, &values[..2]).is_err(), "values that aren't there");
        };
        let some = |positions: &[u32]| positions.iter().copied().map(Some).collect::<Vec<_>>();
        // The scope of one letter stands as a head does.
        let inserted = ["c", "d", "e"].map(|content| event("S", "i", content));
        check(&inserted, &some(&[2, 3, 4]), 1);
        check(&inserted[1..], &[None, Some(4)], 2);
        let others = ["e", "d", "c"].map(|content| event("S", "i", content));
        check(&others, &some(&[4, 3, 2]), 3);
        check(&[event("S", "i", "c"), event("S", "r", "d")], &some(&[2, 3]), 2);
        check(&[event("S", "i", "c"), event("T", "i", "d")], &some(&[2, 3]), 2);
        let none = ChangeEvent { content: EventContent::None, ..event("S", "i", "") };
        let between = [event("S", "i", "c"), none, event("S", "i", "d"), event("S", "i", "e")];
        check(&between, &[Some(2), None, Some(3), Some(4)], 3);
    }
}
