//! The messages between members: Raft's messages in an encoding of ours. The authority is
//! docs/format/quorum-frames.md.
//!
//! The library's own encoding isn't used: its parser recurses without a bound. Messages that only
//! a member itself may step (proposals, ticks) and snapshots have no bytes here.

use bytes::{Buf, Bytes};
use raft::eraftpb::{Message, MessageType};
use twox_hash::XxHash3_64;

use crate::configuration::Change;
use crate::convert;
use crate::entry::{Content, ENTRY_BYTES_MAX, Entry};
use crate::ids::{EntryIndex, MemberId, SetId, Term};

/// The version of frames; members of one set have the same.
const VERSION: u16 = 0;
/// The greatest number of bytes of a frame: one entry of the largest, or several smaller ones.
pub const FRAME_BYTES_MAX: usize = ENTRY_BYTES_MAX + (1 << 20);
/// The greatest number of bytes of what a read is recognised by.
const CONTEXT_BYTES_MAX: usize = 64;

const HEADER_BYTES: usize = 8 + 2 + 1 + 1 + 4 + 10 * 8;
const ENTRY_HEADER_BYTES: usize = 8 + 1 + 4;
const KIND_DATA: u8 = 0;
const KIND_CHANGE: u8 = 1;
const FLAG_REJECTED: u8 = 1;
const FLAG_DOUBTS: u8 = 2;

/// The messages that travel, and their numbers. Never renumber: members of two builds may meet.
const TYPES: &[(u8, MessageType)] = &[
    (1, MessageType::MsgAppend),
    (2, MessageType::MsgAppendResponse),
    (3, MessageType::MsgRequestVote),
    (4, MessageType::MsgRequestVoteResponse),
    (5, MessageType::MsgHeartbeat),
    (6, MessageType::MsgHeartbeatResponse),
    (7, MessageType::MsgTimeoutNow),
    (8, MessageType::MsgRequestPreVote),
    (9, MessageType::MsgRequestPreVoteResponse),
];

/// The reason why bytes are no message for this member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FrameError {
    /// The bytes aren't what a member sends.
    #[error("a frame from another member: {0}")]
    Wrong(&'static str),
    /// Another version.
    #[error("a frame of version {0}, and {VERSION} is understood")]
    Version(u16),
    /// A member of another set, or for another member.
    #[error("a frame of another replica set, or for another member")]
    Foreign,
}

/// A message, and whether its sender doubted the end of its log when it made that.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Sent {
    pub message: Message,
    pub doubts: bool,
}

/// The bytes of a message of the set; `None`: it doesn't travel.
pub(crate) fn encode(set: SetId, sent: &Sent) -> Option<Bytes> {
    let message = &sent.message;
    let (tag, _) = TYPES.iter().find(|(_, of)| *of == message.get_msg_type())?;
    let context = message.get_context();
    let entries_bytes: usize =
        message.get_entries().iter().map(|entry| ENTRY_HEADER_BYTES + entry.get_data().len()).sum();
    let mut bytes = Vec::with_capacity(HEADER_BYTES + context.len() + entries_bytes);
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.push(*tag);
    let rejected = if message.reject { FLAG_REJECTED } else { 0 };
    bytes.push(rejected | if sent.doubts { FLAG_DOUBTS } else { 0 });
    bytes.extend_from_slice(&(context.len() as u16).to_le_bytes());
    bytes.extend_from_slice(&[0; 2]);
    for field in [
        set.0,
        message.to,
        message.from,
        message.term,
        message.log_term,
        message.index,
        message.commit,
        message.commit_term,
        message.reject_hint,
        message.get_entries().len() as u64,
    ] {
        bytes.extend_from_slice(&field.to_le_bytes());
    }
    bytes.extend_from_slice(context);
    for entry in message.get_entries() {
        let entry = convert::entry_of(entry);
        let (kind, content) = match entry.content {
            Content::Data(data) => (KIND_DATA, data),
            Content::Change(change) => (KIND_CHANGE, Bytes::copy_from_slice(&change.encode())),
        };
        bytes.extend_from_slice(&entry.term.0.to_le_bytes());
        bytes.push(kind);
        bytes.extend_from_slice(&(content.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&content);
    }
    let checksum = XxHash3_64::oneshot(&bytes[8..]);
    bytes[..8].copy_from_slice(&checksum.to_le_bytes());
    Some(bytes.into())
}

/// Reads what `encode` made, from `from` for `to`.
pub(crate) fn decode(
    set: SetId,
    from: MemberId,
    to: MemberId,
    frame: &Bytes,
) -> Result<Sent, FrameError> {
    if frame.len() < HEADER_BYTES || FRAME_BYTES_MAX < frame.len() {
        return Err(FrameError::Wrong("its length"));
    }
    let mut rest = frame.clone();
    let checksum = rest.get_u64_le();
    if !frond_store::field::checksum_holds(checksum, XxHash3_64::oneshot(&rest)) {
        return Err(FrameError::Wrong("its checksum"));
    }
    let version = rest.get_u16_le();
    if version != VERSION {
        return Err(FrameError::Version(version));
    }
    let (tag, flags) = (rest.get_u8(), rest.get_u8());
    let (context_bytes, zero) = (usize::from(rest.get_u16_le()), rest.get_u16_le());
    let (of_set, for_member, of_member) = (rest.get_u64_le(), rest.get_u64_le(), rest.get_u64_le());
    if (SetId(of_set), MemberId(for_member), MemberId(of_member)) != (set, to, from) {
        return Err(FrameError::Foreign);
    }
    let known = TYPES.iter().find(|(known, _)| *known == tag);
    let (_, kind) = known.ok_or(FrameError::Wrong("its type"))?;
    if flags & !(FLAG_REJECTED | FLAG_DOUBTS) != 0 || zero != 0 || CONTEXT_BYTES_MAX < context_bytes
    {
        return Err(FrameError::Wrong("its header"));
    }
    let mut message = Message { to: to.0, from: from.0, ..Message::default() };
    message.set_msg_type(*kind);
    message.reject = flags & FLAG_REJECTED != 0;
    message.term = rest.get_u64_le();
    message.log_term = rest.get_u64_le();
    message.index = rest.get_u64_le();
    message.commit = rest.get_u64_le();
    message.commit_term = rest.get_u64_le();
    message.reject_hint = rest.get_u64_le();
    let entry_count = rest.get_u64_le();
    if rest.len() < context_bytes {
        return Err(FrameError::Wrong("its context"));
    }
    message.context = rest.split_to(context_bytes);
    if entry_count != 0 && *kind != MessageType::MsgAppend {
        return Err(FrameError::Wrong("entries where none belong"));
    }
    let mut index = EntryIndex(message.index);
    for _ in 0..entry_count {
        index = index.0.checked_add(1).map(EntryIndex).ok_or(FrameError::Wrong("an index"))?;
        let entry = decode_entry(&mut rest, index).map_err(FrameError::Wrong)?;
        message.mut_entries().push(convert::raft_entry(&entry));
    }
    if !rest.is_empty() {
        return Err(FrameError::Wrong("bytes after the last entry"));
    }
    Ok(Sent { message, doubts: flags & FLAG_DOUBTS != 0 })
}

fn decode_entry(rest: &mut Bytes, index: EntryIndex) -> Result<Entry, &'static str> {
    if rest.len() < ENTRY_HEADER_BYTES {
        return Err("an entry exceeds it");
    }
    let (term, kind, bytes) = (Term(rest.get_u64_le()), rest.get_u8(), rest.get_u32_le() as usize);
    if rest.len() < bytes {
        return Err("an entry exceeds it");
    }
    let content = rest.split_to(bytes);
    let content = match kind {
        KIND_DATA => Content::Data(content),
        KIND_CHANGE => Content::Change(Change::decode(&content).ok_or("a change of the members")?),
        _ => return Err("the kind of an entry"),
    };
    Ok(Entry { index, term, content })
}

#[cfg(test)]
mod tests {
    use frond_testkit::Random;

    use super::*;

    const SET: SetId = SetId(77);

    fn sample(tag: MessageType) -> Sent {
        let mut message = Message { to: 2, from: 1, term: 9, log_term: 8, ..Message::default() };
        message.set_msg_type(tag);
        (message.index, message.commit, message.commit_term) = (20, 19, 7);
        (message.reject, message.reject_hint) = (true, 18);
        message.context = Bytes::from("read 5");
        if tag == MessageType::MsgAppend {
            let contents = [
                Content::Data(Bytes::from("a group")),
                Content::Data(Bytes::new()),
                Content::Change(Change::Remove(MemberId(3))),
            ];
            for (content, index) in contents.into_iter().zip(21..) {
                let entry = Entry { index: EntryIndex(index), term: Term(9), content };
                message.mut_entries().push(convert::raft_entry(&entry));
            }
        }
        Sent { message, doubts: tag == MessageType::MsgRequestVoteResponse }
    }

    fn read(frame: &Bytes) -> Result<Sent, FrameError> {
        decode(SET, MemberId(1), MemberId(2), frame)
    }

    #[test]
    fn every_message_that_travels_reads_back() {
        for (_, kind) in TYPES {
            let message = sample(*kind);
            let frame = encode(SET, &message).expect("it travels");
            assert_eq!(read(&frame), Ok(message));
            let of_another = decode(SET, MemberId(3), MemberId(2), &frame);
            assert_eq!(of_another, Err(FrameError::Foreign));
            let other_set = decode(SetId(78), MemberId(1), MemberId(2), &frame);
            assert_eq!(other_set, Err(FrameError::Foreign));
        }
        for kind in [MessageType::MsgPropose, MessageType::MsgSnapshot, MessageType::MsgReadIndex] {
            assert_eq!(encode(SET, &sample(kind)), None);
        }
    }

    /// Also with a checksum that is right: a member of another build may have made it.
    #[test]
    fn other_bytes_are_refused_and_never_panic() {
        let mut random = Random::new(3);
        let whole = encode(SET, &sample(MessageType::MsgAppend)).expect("it travels");
        for bytes in 0..whole.len() {
            assert!(read(&whole.slice(..bytes)).is_err());
        }
        for _ in 0..20_000 {
            let mut bytes = whole.to_vec();
            for _ in 0..=random.below(3) {
                let position = 8 + random.below(bytes.len() - 8);
                bytes[position] = random.next() as u8;
            }
            if bytes[..] != whole[..] {
                assert!(read(&Bytes::from(bytes.clone())).is_err());
            }
            bytes.truncate(bytes.len() - random.below(20));
            let checksum = XxHash3_64::oneshot(&bytes[8..]);
            bytes[..8].copy_from_slice(&checksum.to_le_bytes());
            let _ = read(&bytes.into());
        }
    }
}
