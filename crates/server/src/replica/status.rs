//! The status that members send one another, beside the set's log: the role of each for its
//! clients, and how far it has come. docs/format/set-member.md has the bytes.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use frond_doc::Timestamp;
use frond_store::field;

/// A member that has said nothing for so long isn't reached: as in MongoDB.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// The state of a member as clients see it, by MongoDB's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The members of the set aren't known yet.
    Startup = 0,
    /// It takes writes.
    Primary = 1,
    /// It follows, and can be read.
    Secondary = 2,
    /// It gets a copy of what others have, and can't be read.
    Recovering = 3,
    /// It isn't reached.
    Unreachable = 8,
    /// The set doesn't have it, or not any more.
    Removed = 10,
}

impl State {
    /// MongoDB's name of it.
    pub fn name(self) -> &'static str {
        match self {
            State::Startup => "STARTUP",
            State::Primary => "PRIMARY",
            State::Secondary => "SECONDARY",
            State::Recovering => "RECOVERING",
            State::Removed => "REMOVED",
            State::Unreachable => "(not reachable/healthy)",
        }
    }

    fn of(number: u8) -> Option<State> {
        use State::{Primary, Recovering, Removed, Secondary, Startup};
        let all = [Startup, Primary, Secondary, Recovering, Removed];
        all.into_iter().find(|state| *state as u8 == number)
    }
}

/// A member's report of its own state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemberStatus {
    /// The state.
    pub state: State,
    /// The moment of the last that it has applied.
    pub moment: Timestamp,
    /// The seconds for which its process runs.
    pub uptime_seconds: u64,
    /// The version of the newest configuration of the set that it has applied.
    pub configuration: i32,
    /// Whether that has the member to which this is said.
    pub has_receiver: bool,
    /// Whether its disk has no room for what grows.
    pub is_full: bool,
    /// The purge of the set up to which nothing that was erased is on its disk.
    pub purged: u64,
}

const OFFSET_MOMENT: usize = size_of::<u8>();
const OFFSET_UPTIME: usize = OFFSET_MOMENT + size_of::<u64>();
const OFFSET_CONFIGURATION: usize = OFFSET_UPTIME + size_of::<u64>();
const OFFSET_FLAGS: usize = OFFSET_CONFIGURATION + size_of::<i32>();
const OFFSET_PURGED: usize = OFFSET_FLAGS + size_of::<u8>();
/// The length of a status, which is less than any frame has.
const BYTES: usize = OFFSET_PURGED + size_of::<u64>();
const FLAG_HAS_RECEIVER: u8 = 1;
const FLAG_IS_FULL: u8 = 2;

impl MemberStatus {
    /// As it is sent.
    pub fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[0] = self.state as u8;
        bytes[OFFSET_MOMENT..OFFSET_UPTIME].copy_from_slice(&self.moment.0.to_le_bytes());
        bytes[OFFSET_UPTIME..OFFSET_CONFIGURATION]
            .copy_from_slice(&self.uptime_seconds.to_le_bytes());
        bytes[OFFSET_CONFIGURATION..OFFSET_FLAGS]
            .copy_from_slice(&self.configuration.to_le_bytes());
        let flags = [(self.has_receiver, FLAG_HAS_RECEIVER), (self.is_full, FLAG_IS_FULL)];
        bytes[OFFSET_FLAGS] = flags.iter().filter(|(is, _)| *is).map(|(_, flag)| flag).sum();
        bytes[OFFSET_PURGED..].copy_from_slice(&self.purged.to_le_bytes());
        bytes
    }

    /// Reads what `encode` made; `None`: it is something else.
    pub fn decode(bytes: &[u8]) -> Option<MemberStatus> {
        let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
        Some(MemberStatus {
            state: State::of(bytes[0])?,
            moment: Timestamp(field::u64_at(bytes, OFFSET_MOMENT)?),
            uptime_seconds: field::u64_at(bytes, OFFSET_UPTIME)?,
            configuration: field::u32_at(bytes, OFFSET_CONFIGURATION)?.cast_signed(),
            has_receiver: bytes[OFFSET_FLAGS] & FLAG_HAS_RECEIVER != 0,
            is_full: bytes[OFFSET_FLAGS] & FLAG_IS_FULL != 0,
            purged: field::u64_at(bytes, OFFSET_PURGED)?,
        })
    }
}

/// The last reports of other members, by their addresses.
#[derive(Default)]
pub struct PeerStatuses {
    last: HashMap<String, (u64, Instant, MemberStatus)>,
    streams: u64,
    /// The version of the newest configuration for which it is known whether it has this member,
    /// and whether it has.
    newest: (i32, bool),
}

impl PeerStatuses {
    /// Begins to listen to a stream: its number.
    pub fn begin(&mut self) -> u64 {
        self.streams += 1;
        self.streams
    }

    /// Notes what came on a stream.
    pub fn note(&mut self, stream: u64, address: &str, status: MemberStatus) {
        self.last.insert(address.to_owned(), (stream, Instant::now(), status));
        if self.newest.0 < status.configuration {
            self.newest = (status.configuration, status.has_receiver);
        }
    }

    /// Whether the set has a configuration without this member, that is newer than the one of
    /// `version`: what a member has applied was agreed on.
    pub fn is_without_this(&self, version: i32) -> bool {
        version < self.newest.0 && !self.newest.1
    }

    /// The stream has ended: what came on it, and wasn't said again since, counts no more. Returns
    /// whether it was the newest of the member that sent on it.
    pub fn end(&mut self, stream: u64) -> bool {
        let before = self.last.len();
        self.last.retain(|_, (of, ..)| *of != stream);
        self.last.len() < before
    }

    /// Returns the newest moment that a member has reported.
    pub fn newest_moment(&self) -> Timestamp {
        let moments = self.last.values().map(|(.., status)| status.moment.0);
        Timestamp(moments.max().unwrap_or(0))
    }

    /// Returns a member's last report, and how long ago it came; `None` if the member isn't
    /// reached.
    pub fn of(&self, address: &str) -> Option<(Duration, MemberStatus)> {
        let (_, at, status) = self.last.get(address)?;
        Some((at.elapsed(), *status)).filter(|(ago, _)| *ago < SILENCE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: MemberStatus = MemberStatus {
        state: State::Recovering,
        moment: Timestamp(7 << 32 | 1),
        uptime_seconds: 90,
        configuration: 3,
        has_receiver: true,
        is_full: false,
        purged: 7,
    };

    #[test]
    fn statuses_are_read_back_and_malformed_ones_refused() {
        let bytes = STATUS.encode();
        assert_eq!(MemberStatus::decode(&bytes), Some(STATUS));
        let full = MemberStatus { has_receiver: false, is_full: true, ..STATUS };
        assert_eq!(MemberStatus::decode(&full.encode()), Some(full));
        assert_eq!(MemberStatus::decode(&bytes[1..]), None);
        assert_eq!(MemberStatus::decode(&[&[8], &bytes[1..]].concat()), None);
        assert_eq!(MemberStatus::decode(&[]), None);
    }

    #[test]
    fn a_reconnected_member_stays_reachable_when_its_old_stream_ends() {
        let mut peers = PeerStatuses::default();
        let (old, new) = (peers.begin(), peers.begin());
        peers.note(old, "a:1", STATUS);
        peers.note(new, "a:1", MemberStatus { state: State::Primary, ..STATUS });
        let later = Timestamp(STATUS.moment.0 + 5);
        peers.note(new, "b:1", MemberStatus { moment: later, ..STATUS });
        assert_eq!(peers.newest_moment(), later);
        assert!(!peers.end(old));
        assert_eq!(peers.of("a:1").map(|(_, status)| status.state), Some(State::Primary));
        assert!(peers.end(new));
        assert_eq!(peers.newest_moment(), Timestamp(0));
        assert_eq!(peers.of("a:1"), None);
    }

    #[test]
    fn the_newest_configuration_says_who_is_a_member() {
        let mut peers = PeerStatuses::default();
        let mut note = |configuration, has_receiver| {
            peers.note(0, "a:1", MemberStatus { configuration, has_receiver, ..STATUS });
            peers.is_without_this(2)
        };
        // One without this member that is older than what it has itself; newer; one that has it
        // again; what another says that hasn't come so far.
        assert!(!note(2, false));
        assert!(note(3, false));
        assert!(!note(4, true));
        assert!(!note(3, false));
        assert!(note(5, false));
        assert!(!peers.is_without_this(5));
    }
}
