//! The file of a member's log: its header, and the headers and payloads of records. The authority
//! is docs/format/quorum-log.md.
//!
//! 1. A record's checksum covers the rest of its header and is seeded with the file's nonce.
//! 2. `previous` is the checksum of what stands before: behind a hole no record is the next one.
//! 3. The last record of a batch says so: what a crash left of a batch doesn't count. An entry that
//!    is known without what its leader knew to be committed is a danger: the member might go on
//!    with a configuration that is two changes old.
//! 4. A log that was cut begins with the configuration and the entry up to which it was. Records
//!    are moved to it as they are, but for what chains them ([`chain_anew`]).
//! 5. `synced` is how much of the file was durable when the record was made. A broken record before
//!    that is damage, not a torn write.
//! 6. Behind the last record are zeros that show that nothing is missing there ([`END_BYTES`]), and
//!    behind these what is reserved for the next ([`RESERVED`]).

use bytes::Bytes;
use frond_store::StoreError;
use frond_store::field::{self, Magic, PREFIX_BYTES, checksum_holds};
use twox_hash::XxHash3_64;

use super::Ballot;
use crate::configuration::{Change, Configuration};
use crate::entry::{Content, ENTRY_BYTES_MAX, Entry};
use crate::ids::{EntryIndex, MemberId, SetId, Term};

/// The file's name.
pub(super) const FILE_NAME: &str = "quorum-log";
/// Its name until it is whole.
pub(super) const NEW_FILE_NAME: &str = "quorum-log.new";
const MAGIC: Magic = *b"FRNDQL\x1A\n";

const OFFSET_NONCE: usize = PREFIX_BYTES;
const OFFSET_MEMBER: usize = OFFSET_NONCE + size_of::<u64>();
const OFFSET_SET: usize = OFFSET_MEMBER + size_of::<u64>();
const OFFSET_HEADER_CHECKSUM: usize = OFFSET_SET + size_of::<u64>();
/// Bytes of the file's header.
pub(super) const HEADER_BYTES: usize = OFFSET_HEADER_CHECKSUM + size_of::<u64>();
const _: () = assert!(HEADER_BYTES == 48); // Stored: change only with a new version.

const OFFSET_RECORD_PREVIOUS: usize = size_of::<u64>();
const OFFSET_RECORD_PAYLOAD_CHECKSUM: usize = OFFSET_RECORD_PREVIOUS + size_of::<u64>();
const OFFSET_RECORD_INDEX: usize = OFFSET_RECORD_PAYLOAD_CHECKSUM + size_of::<u64>();
const OFFSET_RECORD_TERM: usize = OFFSET_RECORD_INDEX + size_of::<u64>();
const OFFSET_RECORD_SYNCED: usize = OFFSET_RECORD_TERM + size_of::<u64>();
const OFFSET_RECORD_PAYLOAD_BYTES: usize = OFFSET_RECORD_SYNCED + size_of::<u64>();
const OFFSET_RECORD_KIND: usize = OFFSET_RECORD_PAYLOAD_BYTES + size_of::<u32>();
const OFFSET_RECORD_FLAGS: usize = OFFSET_RECORD_KIND + size_of::<u8>();
const OFFSET_RECORD_ZERO: usize = OFFSET_RECORD_FLAGS + size_of::<u8>();
/// Bytes of a record's header.
pub(super) const RECORD_HEADER_BYTES: usize = OFFSET_RECORD_ZERO + size_of::<u16>();
const _: () = assert!(RECORD_HEADER_BYTES == 56); // Stored: change only with a new version.

/// The number of zeros that are written with each batch, behind it, and whose place the next one
/// takes: no record begins with them. A file without these, and what is reserved, at its end has
/// lost something there, or has what a crash left of a write.
pub(super) const END_BYTES: usize = 8;
/// The byte that fills what is reserved: a block that a disk has lost is not full of it.
pub(crate) const RESERVED: u8 = 0xff;
/// A batch for which the file is too short makes it longer by so much besides. The sync of a file
/// that has become longer waits for the file system's journal, and so for all that others have
/// written; that of one whose blocks are there doesn't.
pub(super) const RESERVED_BYTES: usize = if cfg!(test) { 300 } else { 1 << 20 };

/// Records begin at multiples of this; the gap is filled with zeros.
pub(super) const RECORD_ALIGNMENT: usize = 8;
const _: () = assert!(HEADER_BYTES.is_multiple_of(RECORD_ALIGNMENT));

// Stored: never renumber.
const KIND_DATA: u8 = 0;
const KIND_CHANGE: u8 = 1;
const KIND_BALLOT: u8 = 2;
const KIND_BEGINNING: u8 = 3;
const FLAG_LAST: u8 = 1;

/// The header of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    /// Random: seeds the checksums of records.
    pub nonce: u64,
    pub member: MemberId,
    pub set: SetId,
}

/// A checksum of a record, or of the file's header: what the next record is chained to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Chain(pub u64);

/// The content of a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Record {
    Entry(Entry),
    Ballot(Ballot),
    /// The entry behind which it begins; the first record, and only that.
    Beginning(Beginning),
}

/// The entry behind which a log begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Beginning {
    /// That entry; 0 where nothing was cut.
    pub before: EntryIndex,
    /// Its term.
    pub term: Term,
    /// The members once it was applied.
    pub configuration: Configuration,
}

impl Header {
    /// The bytes, and what the first record is chained to.
    pub fn encode(&self) -> ([u8; HEADER_BYTES], Chain) {
        let mut bytes = [0; HEADER_BYTES];
        put(&mut bytes, 0, &field::prefix(MAGIC));
        put(&mut bytes, OFFSET_NONCE, &self.nonce.to_le_bytes());
        put(&mut bytes, OFFSET_MEMBER, &self.member.0.to_le_bytes());
        put(&mut bytes, OFFSET_SET, &self.set.0.to_le_bytes());
        let checksum = XxHash3_64::oneshot(&bytes[..OFFSET_HEADER_CHECKSUM]);
        put(&mut bytes, OFFSET_HEADER_CHECKSUM, &checksum.to_le_bytes());
        (bytes, Chain(checksum))
    }

    /// # Errors
    /// [`StoreError::Damaged`] if it is none; [`StoreError::Version`] if another version wrote it.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<(Header, Chain), StoreError> {
        field::check_prefix(bytes, MAGIC, FILE_NAME)?;
        let checksum = get_u64(bytes, OFFSET_HEADER_CHECKSUM);
        if !checksum_holds(checksum, XxHash3_64::oneshot(&bytes[..OFFSET_HEADER_CHECKSUM])) {
            return Err(damaged(0, "the header's checksum is wrong"));
        }
        let header = Header {
            nonce: get_u64(bytes, OFFSET_NONCE),
            member: MemberId(get_u64(bytes, OFFSET_MEMBER)),
            set: SetId(get_u64(bytes, OFFSET_SET)),
        };
        Ok((header, Chain(checksum)))
    }
}

/// A record's header, its checksum verified. Its payload isn't.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordHeader {
    pub chain: Chain,
    pub previous: Chain,
    pub synced: u64,
    pub payload_bytes: usize,
    /// Whether it is the last of its batch.
    pub is_last: bool,
    payload_checksum: u64,
    index: EntryIndex,
    term: Term,
    kind: u8,
}

impl RecordHeader {
    /// `None`: these bytes are no record's header of a file with this nonce.
    pub fn decode(bytes: &[u8; RECORD_HEADER_BYTES], nonce: u64) -> Option<RecordHeader> {
        let checksum = get_u64(bytes, 0);
        if !checksum_holds(
            checksum,
            XxHash3_64::oneshot_with_seed(nonce, &bytes[OFFSET_RECORD_PREVIOUS..]),
        ) {
            return None;
        }
        let payload_bytes = get_u32(bytes, OFFSET_RECORD_PAYLOAD_BYTES) as usize;
        (payload_bytes <= ENTRY_BYTES_MAX).then(|| RecordHeader {
            chain: Chain(checksum),
            previous: Chain(get_u64(bytes, OFFSET_RECORD_PREVIOUS)),
            synced: get_u64(bytes, OFFSET_RECORD_SYNCED),
            payload_bytes,
            is_last: bytes[OFFSET_RECORD_FLAGS] & FLAG_LAST != 0,
            payload_checksum: get_u64(bytes, OFFSET_RECORD_PAYLOAD_CHECKSUM),
            index: EntryIndex(get_u64(bytes, OFFSET_RECORD_INDEX)),
            term: Term(get_u64(bytes, OFFSET_RECORD_TERM)),
            kind: bytes[OFFSET_RECORD_KIND],
        })
    }

    /// The term of an entry or ballot.
    pub fn term(&self) -> Term {
        self.term
    }

    /// Whether `payload` is the one that belongs to it.
    pub fn is_of(&self, payload: &[u8]) -> bool {
        checksum_holds(self.payload_checksum, XxHash3_64::oneshot(payload))
    }

    /// Decodes the record.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn record(&self, payload: Bytes) -> Result<Record, &'static str> {
        let entry = |content| Record::Entry(Entry { index: self.index, term: self.term, content });
        match self.kind {
            KIND_DATA => Ok(entry(Content::Data(payload))),
            KIND_CHANGE => {
                let change = Change::decode(&payload).ok_or("not a change of the members")?;
                Ok(entry(Content::Change(change)))
            }
            KIND_BALLOT => {
                let (Some(vote), Some(committed), 16) =
                    (field::u64_at(&payload, 0), field::u64_at(&payload, 8), payload.len())
                else {
                    return Err("not a ballot");
                };
                let vote = (vote != 0).then_some(MemberId(vote));
                Ok(Record::Ballot(Ballot {
                    term: self.term,
                    vote,
                    committed: EntryIndex(committed),
                    doubt: None,
                }))
            }
            KIND_BEGINNING => {
                let configuration = decode_members(&payload).ok_or("not a configuration")?;
                let (before, term) = (self.index, self.term);
                Ok(Record::Beginning(Beginning { before, term, configuration }))
            }
            _ => Err("a record of an unknown kind"),
        }
    }
}

/// Encodes how many have a vote, and the ids: of those with one, then of those without.
fn encode_members(members: &Configuration) -> Bytes {
    let mut bytes = (members.voters.len() as u64).to_le_bytes().to_vec();
    let ids = members.voters.iter().chain(&members.learners);
    bytes.extend(ids.flat_map(|id| id.0.to_le_bytes()));
    bytes.into()
}

/// Reads what `encode_members` made; `None`: that isn't one.
fn decode_members(bytes: &[u8]) -> Option<Configuration> {
    let (numbers, rest) = bytes.as_chunks::<8>();
    let mut numbers = numbers.iter().map(|number| u64::from_le_bytes(*number));
    let voter_count = usize::try_from(numbers.next()?).ok()?;
    let ids: Vec<MemberId> = numbers.map(MemberId).collect();
    let (voters, learners) = ids.split_at_checked(voter_count)?;
    if voters.is_empty() || !rest.is_empty() {
        return None;
    }
    let learners = learners.iter().copied().collect();
    Some(Configuration { learners, ..Configuration::of(voters.iter().copied()) })
}

/// Chains a record that is moved, whose header this is, to the one before it in the new file.
/// Returns what the next one is chained to.
pub(super) fn chain_anew(
    header: &mut [u8; RECORD_HEADER_BYTES],
    previous: Chain,
    synced: u64,
    nonce: u64,
) -> Chain {
    put(header, OFFSET_RECORD_PREVIOUS, &previous.0.to_le_bytes());
    put(header, OFFSET_RECORD_SYNCED, &synced.to_le_bytes());
    let checksum = XxHash3_64::oneshot_with_seed(nonce, &header[OFFSET_RECORD_PREVIOUS..]);
    put(header, 0, &checksum.to_le_bytes());
    Chain(checksum)
}

/// Puts the records of a batch behind `buffer`, which begins where a record may. Returns what the
/// next batch is chained to.
pub(super) fn encode_batch(
    buffer: &mut Vec<u8>,
    records: &[Record],
    previous: Chain,
    synced: u64,
    nonce: u64,
) -> Chain {
    let mut chain = previous;
    for (position, record) in records.iter().enumerate() {
        let flags = if position + 1 == records.len() { FLAG_LAST } else { 0 };
        chain = encode(buffer, record, flags, chain, synced, nonce);
    }
    chain
}

fn encode(
    buffer: &mut Vec<u8>,
    record: &Record,
    flags: u8,
    previous: Chain,
    synced: u64,
    nonce: u64,
) -> Chain {
    let (kind, index, term, payload) = match record {
        Record::Entry(Entry { index, term, content: Content::Data(bytes) }) => {
            (KIND_DATA, *index, *term, bytes.clone())
        }
        Record::Entry(Entry { index, term, content: Content::Change(change) }) => {
            (KIND_CHANGE, *index, *term, Bytes::copy_from_slice(&change.encode()))
        }
        Record::Ballot(ballot) => {
            let vote = ballot.vote.map_or(0, |member| member.0);
            let payload = [vote.to_le_bytes(), ballot.committed.0.to_le_bytes()].concat();
            (KIND_BALLOT, EntryIndex::ZERO, ballot.term, payload.into())
        }
        Record::Beginning(Beginning { before, term, configuration }) => {
            (KIND_BEGINNING, *before, *term, encode_members(configuration))
        }
    };
    assert!(payload.len() <= ENTRY_BYTES_MAX, "what is proposed has been measured");
    let mut header = [0; RECORD_HEADER_BYTES];
    put(&mut header, OFFSET_RECORD_PAYLOAD_CHECKSUM, &XxHash3_64::oneshot(&payload).to_le_bytes());
    put(&mut header, OFFSET_RECORD_INDEX, &index.0.to_le_bytes());
    put(&mut header, OFFSET_RECORD_TERM, &term.0.to_le_bytes());
    put(&mut header, OFFSET_RECORD_PAYLOAD_BYTES, &(payload.len() as u32).to_le_bytes());
    header[OFFSET_RECORD_KIND] = kind;
    header[OFFSET_RECORD_FLAGS] = flags;
    let chain = chain_anew(&mut header, previous, synced, nonce);
    buffer.extend_from_slice(&header);
    buffer.extend_from_slice(&payload);
    buffer.resize(buffer.len().next_multiple_of(RECORD_ALIGNMENT), 0);
    chain
}

/// Bytes of a record with such a payload, gap included.
pub(super) fn record_bytes(payload_bytes: usize) -> u64 {
    (RECORD_HEADER_BYTES + payload_bytes).next_multiple_of(RECORD_ALIGNMENT) as u64
}

pub(super) fn damaged(offset: u64, what: &str) -> StoreError {
    StoreError::damaged(FILE_NAME, offset, what)
}

fn put(bytes: &mut [u8], offset: usize, field: &[u8]) {
    bytes[offset..offset + field.len()].copy_from_slice(field);
}

fn get_u64(bytes: &[u8], offset: usize) -> u64 {
    field::u64_at(bytes, offset).expect("the header is so long")
}

fn get_u32(bytes: &[u8], offset: usize) -> u32 {
    field::u32_at(bytes, offset).expect("the header is so long")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: u64 = 0x1122_3344_5566_7788;

    fn sample() -> Vec<Record> {
        let entry = |content| Record::Entry(Entry { index: EntryIndex(7), term: Term(3), content });
        let committed = EntryIndex(6);
        let ballot = Ballot { term: Term(3), vote: Some(MemberId(2)), committed, doubt: None };
        vec![
            Record::Beginning(Beginning {
                before: EntryIndex(6),
                term: Term(2),
                configuration: Configuration::of([1, 2, 3].map(MemberId))
                    .after(Change::AddLearner(MemberId(4)))
                    .expect("a new member"),
            }),
            Record::Ballot(ballot),
            Record::Ballot(Ballot { vote: None, ..ballot }),
            entry(Content::Data(Bytes::from("a group"))),
            entry(Content::Data(Bytes::new())),
            entry(Content::Change(Change::Promote(MemberId(9)))),
        ]
    }

    #[test]
    fn records_read_back_and_any_other_bit_is_none() {
        for record in sample() {
            let mut bytes = Vec::new();
            let batch = [record.clone()];
            let chain = encode_batch(&mut bytes, &batch, Chain(42), 48, NONCE);
            let header = *bytes.first_chunk().expect("a header");
            let read = RecordHeader::decode(&header, NONCE).expect("a record");
            assert_eq!((read.chain, read.previous, read.synced), (chain, Chain(42), 48));
            assert!(read.is_last);
            assert_eq!(bytes.len() as u64, record_bytes(read.payload_bytes));
            let end = RECORD_HEADER_BYTES + read.payload_bytes;
            let payload = Bytes::copy_from_slice(&bytes[RECORD_HEADER_BYTES..end]);
            assert!(read.is_of(&payload));
            assert_eq!(read.record(payload.clone()), Ok(record));
            assert!(RecordHeader::decode(&header, NONCE + 1).is_none());
            for bit in 0..RECORD_HEADER_BYTES * 8 {
                let mut other = header;
                other[bit / 8] ^= 1 << (bit % 8);
                assert!(RecordHeader::decode(&other, NONCE).is_none());
            }
            for bit in 0..payload.len() * 8 {
                let mut other = payload.to_vec();
                other[bit / 8] ^= 1 << (bit % 8);
                assert!(!read.is_of(&other));
            }
        }
    }

    #[test]
    fn a_header_as_the_document_shows_it() {
        let header = Header { nonce: NONCE, member: MemberId(2), set: SetId(5) };
        let (bytes, chain) = header.encode();
        assert_eq!(Header::decode(&bytes).expect("a header"), (header, chain));
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "46524e44514c1a0a00000000b484f626887766554433221102000000000000000500000000000000\
             e7d6d6b7c17f8bfe"
        );
    }
}
