//! The file beside a member's log with its vote, and whether it doubts the log's end. The authority
//! is docs/format/quorum-vote.md.
//!
//! A write that a crash has cut short and an end that is lost look alike, so what a log says last
//! may be gone. A vote must not be: given again in its term, it may elect a second leader. So each
//! is here before it is in the log. Votes are rare, so the file is made anew for each.

use frond_store::StoreError;
use frond_store::field::{self, Magic, PREFIX_BYTES, checksum_holds};
use frond_store::io::Machine;
use twox_hash::XxHash3_64;

use super::Ballot;
use crate::ids::{MemberId, SetId, Term};

/// The file's name.
pub(crate) const FILE_NAME: &str = "quorum-vote";
const NEW_FILE_NAME: &str = "quorum-vote.new";
const MAGIC: Magic = *b"FRNDQV\x1A\n";

const OFFSET_MEMBER: usize = PREFIX_BYTES;
const OFFSET_SET: usize = OFFSET_MEMBER + size_of::<u64>();
const OFFSET_TERM: usize = OFFSET_SET + size_of::<u64>();
const OFFSET_VOTE: usize = OFFSET_TERM + size_of::<u64>();
const OFFSET_DOUBT: usize = OFFSET_VOTE + size_of::<u64>();
const OFFSET_CHECKSUM: usize = OFFSET_DOUBT + size_of::<u64>();
const FILE_BYTES: usize = OFFSET_CHECKSUM + size_of::<u64>();
const _: () = assert!(FILE_BYTES == 64); // Stored: change only with a new version.

/// The part of a ballot that is stored here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Vote {
    term: Term,
    vote: Option<MemberId>,
    doubt: Option<Term>,
}

impl Vote {
    pub fn of(ballot: &Ballot) -> Vote {
        let Ballot { term, vote, doubt, .. } = *ballot;
        Vote { term, vote, doubt }
    }

    /// The ballot that counts, where the log has `found`, whose end may be lost.
    pub fn and(self, found: Ballot) -> Ballot {
        let Vote { term, vote, doubt } = self;
        match found.term <= term {
            true => Ballot { term, vote, doubt, committed: found.committed },
            false => Ballot { doubt, ..found },
        }
    }

    /// Reads the vote from the member's directory; `None` if there is none of this member.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if it isn't what was written; what the disk says.
    pub fn read(
        machine: &Machine,
        member: MemberId,
        set: SetId,
    ) -> Result<Option<Vote>, StoreError> {
        let disk = &*machine.disk;
        if !disk.list().map_err(io)?.iter().any(|name| name == FILE_NAME) {
            return Ok(None);
        }
        let file = disk.open(FILE_NAME).map_err(io)?;
        if file.bytes().map_err(io)? != FILE_BYTES as u64 {
            return Err(StoreError::damaged(FILE_NAME, 0, "its length is wrong"));
        }
        let mut bytes = [0; FILE_BYTES];
        file.read_exact_at(0, &mut bytes).map_err(io)?;
        let (of_member, of_set, vote) = decode(&bytes)?;
        // The vote may have been left by another member, whose place this one took.
        Ok((of_member == member && of_set == set).then_some(vote))
    }

    /// Keeps it, durably.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn write(self, machine: &Machine, member: MemberId, set: SetId) -> Result<(), StoreError> {
        let disk = &*machine.disk;
        if disk.list().map_err(io)?.iter().any(|name| name == NEW_FILE_NAME) {
            disk.remove(NEW_FILE_NAME).map_err(io)?;
        }
        let file = disk.create(NEW_FILE_NAME).map_err(io)?;
        file.write_all_at(0, &encode(member, set, self))
            .and_then(|()| file.sync())
            .and_then(|()| disk.rename(NEW_FILE_NAME, FILE_NAME))
            .and_then(|()| disk.sync_directory())
            .map_err(io)
    }
}

fn encode(member: MemberId, set: SetId, vote: Vote) -> [u8; FILE_BYTES] {
    let mut bytes = [0; FILE_BYTES];
    bytes[..PREFIX_BYTES].copy_from_slice(&field::prefix(MAGIC));
    for (offset, value) in [
        (OFFSET_MEMBER, member.0),
        (OFFSET_SET, set.0),
        (OFFSET_TERM, vote.term.0),
        (OFFSET_VOTE, vote.vote.map_or(0, |member| member.0)),
        (OFFSET_DOUBT, vote.doubt.map_or(0, |term| term.0)),
    ] {
        bytes[offset..offset + size_of::<u64>()].copy_from_slice(&value.to_le_bytes());
    }
    let checksum = XxHash3_64::oneshot(&bytes[..OFFSET_CHECKSUM]);
    bytes[OFFSET_CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8; FILE_BYTES]) -> Result<(MemberId, SetId, Vote), StoreError> {
    field::check_prefix(bytes, MAGIC, FILE_NAME)?;
    let get = |offset| field::u64_at(bytes, offset).expect("the file is so long");
    if !checksum_holds(get(OFFSET_CHECKSUM), XxHash3_64::oneshot(&bytes[..OFFSET_CHECKSUM])) {
        return Err(StoreError::damaged(FILE_NAME, 0, "its checksum is wrong"));
    }
    let or_none = |value: u64| (value != 0).then_some(value);
    let vote = Vote {
        term: Term(get(OFFSET_TERM)),
        vote: or_none(get(OFFSET_VOTE)).map(MemberId),
        doubt: or_none(get(OFFSET_DOUBT)).map(Term),
    };
    Ok((MemberId(get(OFFSET_MEMBER)), SetId(get(OFFSET_SET)), vote))
}

fn io(error: std::io::Error) -> StoreError {
    StoreError::io(FILE_NAME, error)
}

#[cfg(test)]
mod tests {
    use frond_testkit::SimDisk;

    use super::*;

    const VOTE: Vote = Vote { term: Term(7), vote: Some(MemberId(3)), doubt: Some(Term(6)) };

    #[test]
    fn it_reads_back_and_any_other_bit_is_damage() {
        let disk = SimDisk::new(1);
        let read = |member| Vote::read(&disk.machine(), MemberId(member), SetId(5));
        assert_eq!(read(2).expect("none"), None);
        for vote in [Vote::default(), VOTE] {
            vote.write(&disk.machine(), MemberId(2), SetId(5)).expect("written");
            assert_eq!(read(2).expect("it reads"), Some(vote));
        }
        assert_eq!(read(4).expect("of another"), None);
        for bit in 0..FILE_BYTES as u64 * 8 {
            disk.flip_bit(FILE_NAME, bit);
            assert!(read(2).is_err(), "bit {bit}");
            disk.flip_bit(FILE_NAME, bit);
        }
    }

    #[test]
    fn the_newer_of_two_votes_counts_and_the_file_where_both_are_of_one_term() {
        let found = |term, vote| Ballot {
            term: Term(term),
            vote: Some(MemberId(vote)),
            committed: crate::EntryIndex(9),
            doubt: None,
        };
        let (term, vote, doubt) = (VOTE.term, VOTE.vote, VOTE.doubt);
        let own = Ballot { term, vote, doubt, ..found(0, 0) };
        assert_eq!(VOTE.and(found(6, 1)), own);
        assert_eq!(VOTE.and(found(7, 1)), own);
        assert_eq!(VOTE.and(found(8, 1)), Ballot { doubt, ..found(8, 1) });
    }

    #[test]
    fn the_file_as_the_document_shows_it() {
        let bytes = encode(MemberId(2), SetId(5), VOTE);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "46524e4451561a0a00000000a40da23f02000000000000000500000000000000070000000000000003\
             000000000000000600000000000000dc8d436ac6312d4f"
        );
    }
}
