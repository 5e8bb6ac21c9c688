//! Resume tokens: where a stream goes on.
//!
//! `_data` is upper-case hex, whose text sorts as the places do:
//!
//! ```text
//! BYTES  MEANING
//! 1      82, as MongoDB's tokens begin
//! 8      the Sequence, which is the event's `clusterTime`
//! 4      the event's position in its transaction
//! 1      the step
//! 4      the era, which distinguishes data directories and sets
//! ```
//!
//! What follows depends on what the token stands for:
//! - *a fragment of an event*: its number (4);
//! - *one of many events that a change of versions made*: its number among them (4), and its
//!   fragment's, counted from 1, or 0 (4);
//! - *a difference between a commit and a moment*: the numbers of the last event and of its
//!   fragment, both counted from 1, or 0 (4 + 4), the commit (20), and the branch's last one if
//!   nothing was changed since, or zeros (20).

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_engine::Sequence;
use frond_query::Code;

use crate::commit_id::{COMMIT_ID_BYTES, CommitId};
use crate::error::Error;

pub const ERA_BYTES: usize = 4;
/// As MongoDB's tokens begin: a timestamp follows.
const FIRST: u8 = 0x82;
const BYTES: usize = 1 + 8 + 4 + 1 + ERA_BYTES;
const PART_BYTES: usize = 4;
/// A token of what lies between a commit and a moment.
const NET_BYTES: usize = BYTES + 2 * PART_BYTES + 2 * COMMIT_ID_BYTES;

/// The kind of event at a place. Stored by clients: never renumber.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Step {
    /// A difference between a commit and this Sequence, before all events behind it.
    Net = 0,
    /// An event, behind which its transaction has others.
    Event = 1,
    /// The last event of its transaction.
    LastEvent = 2,
    /// The end of a stream behind the event at this place.
    Invalidate = 3,
    /// All of the transaction, and all before.
    HighWater = 4,
}

/// A place behind an event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ResumePoint {
    pub sequence: Sequence,
    pub position: u32,
    pub step: Step,
    /// The number of one of the many events that a change of versions made, among them.
    pub item: Option<u32>,
    /// The fragment of an event that was split, counted from 0.
    pub fragment: Option<u32>,
    /// The ends of what lies between a commit and a moment.
    pub span: Option<SpanEnds>,
}

/// A commit, and the one that the branch had last, if nothing was changed since.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SpanEnds {
    pub from: CommitId,
    pub to: Option<CommitId>,
}

impl ResumePoint {
    /// The place behind all that a transaction recorded.
    pub fn after(sequence: Sequence) -> ResumePoint {
        ResumePoint { position: u32::MAX, ..ResumePoint::of(sequence, Step::HighWater) }
    }

    /// The first place of this kind at a Sequence.
    pub fn of(sequence: Sequence, step: Step) -> ResumePoint {
        ResumePoint { sequence, position: 0, step, item: None, fragment: None, span: None }
    }

    /// The place of the recorded event, a part of which this may be.
    pub fn of_event(self) -> ResumePoint {
        ResumePoint { item: None, fragment: None, ..self }
    }

    /// The place of the client's event, a fragment of which this may be.
    pub fn of_item(self) -> ResumePoint {
        ResumePoint { fragment: None, ..self }
    }

    /// Returns the Sequence behind which the log has to be read.
    pub fn read_after(self) -> Sequence {
        match self.step {
            Step::Net => self.sequence,
            Step::HighWater | Step::LastEvent if self == self.of_event() => self.sequence,
            _ => Sequence(self.sequence.0.saturating_sub(1)),
        }
    }
}

/// Returns the mark that distinguishes data directories, and sets: from the salt of a directory's
/// trees, or the id of the set.
pub fn era(salt: u64) -> [u8; ERA_BYTES] {
    let [a, b, c, d, ..] = salt.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
    [a, b, c, d]
}

/// The token of a place.
pub fn encode(place: ResumePoint, era: [u8; ERA_BYTES]) -> DocumentBuf {
    let mut bytes = vec![FIRST];
    bytes.extend_from_slice(&place.sequence.0.to_be_bytes());
    bytes.extend_from_slice(&place.position.to_be_bytes());
    bytes.push(place.step as u8);
    bytes.extend_from_slice(&era);
    let item = match place.span {
        Some(_) => Some(place.item.map_or(0, |item| item.saturating_add(1))),
        None => place.item,
    };
    match (item, place.fragment) {
        (None, fragment) => bytes.extend(fragment.into_iter().flat_map(u32::to_be_bytes)),
        (Some(item), fragment) => {
            bytes.extend_from_slice(&item.to_be_bytes());
            let fragment = fragment.map_or(0, |fragment| fragment.saturating_add(1));
            bytes.extend_from_slice(&fragment.to_be_bytes());
        }
    }
    if let Some(SpanEnds { from, to }) = place.span {
        bytes.extend_from_slice(&from.0);
        bytes.extend_from_slice(&to.map_or([0; COMMIT_ID_BYTES], |to| to.0));
    }
    let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    let mut token = DocumentBuilder::new();
    token.append("_data", Value::String(&hex));
    token.build()
}

/// Returns where a token leads, and the era that it is of.
///
/// # Errors
/// `InvalidResumeToken` (260) if it is none of ours.
pub fn decode(token: Document<'_>) -> Result<(ResumePoint, [u8; ERA_BYTES]), Error> {
    let data = match token.get("_data") {
        Some(Value::String(data)) => data,
        _ => {
            let message = "Bad resume token: _data of missing or of wrong type";
            return Err(Error::invalid(Code::InvalidResumeToken, message));
        }
    };
    parse(data).ok_or_else(|| {
        let message = "The resume token string was not one that Frond gave";
        Error::invalid(Code::InvalidResumeToken, message)
    })
}

fn parse(data: &str) -> Option<(ResumePoint, [u8; ERA_BYTES])> {
    let lengths = [BYTES, BYTES + PART_BYTES, BYTES + 2 * PART_BYTES, NET_BYTES];
    let is_known = lengths.contains(&(data.len() / 2)) && data.len().is_multiple_of(2);
    if !is_known || !data.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let byte =
        |position: usize| u8::from_str_radix(data.get(2 * position..2 * position + 2)?, 16).ok();
    let bytes: Vec<u8> = (0..data.len() / 2).map(byte).collect::<Option<_>>()?;
    let (first, rest) = bytes.split_first()?;
    let (sequence, rest) = rest.split_first_chunk::<8>()?;
    let (position, rest) = rest.split_first_chunk::<4>()?;
    let (step, rest) = rest.split_first()?;
    let (era, rest) = rest.split_first_chunk::<ERA_BYTES>()?;
    let number = |bytes: &[u8]| bytes.first_chunk().map(|number| u32::from_be_bytes(*number));
    let (item, fragment) = match rest.len() {
        0 => (None, None),
        PART_BYTES => (None, number(rest)),
        _ => (number(rest), number(&rest[PART_BYTES..])?.checked_sub(1)),
    };
    let item = if bytes.len() == NET_BYTES { item?.checked_sub(1) } else { item };
    let span = match bytes.len() {
        NET_BYTES => {
            let (from, to) = rest[2 * PART_BYTES..].split_first_chunk::<COMMIT_ID_BYTES>()?;
            let to = to.first_chunk().copied()?;
            let to = (to != [0; COMMIT_ID_BYTES]).then_some(CommitId(to));
            Some(SpanEnds { from: CommitId(*from), to })
        }
        _ => None,
    };
    let steps = [Step::Net, Step::Event, Step::LastEvent, Step::Invalidate, Step::HighWater];
    let step = steps.into_iter().find(|known| *known as u8 == *step)?;
    let sequence = Sequence(u64::from_be_bytes(*sequence));
    let position = u32::from_be_bytes(*position);
    let place = ResumePoint { sequence, position, step, item, fragment, span };
    let is_right = *first == FIRST && (step == Step::Net) == span.is_some();
    is_right.then_some((place, *era))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_sort_as_their_places_and_are_read_back() {
        let place = |sequence, position, step| ResumePoint {
            position,
            ..ResumePoint::of(Sequence(sequence), step)
        };
        let span = Some(SpanEnds { from: CommitId([3; 20]), to: None });
        let ended = Some(SpanEnds { to: Some(CommitId([5; 20])), from: CommitId([3; 20]) });
        let places = [
            ResumePoint { span, ..place(1, 0, Step::Net) },
            ResumePoint { item: Some(0), span, ..place(1, 0, Step::Net) },
            ResumePoint { item: Some(7), span, ..place(1, 0, Step::Net) },
            ResumePoint { item: Some(7), fragment: Some(2), span: ended, ..place(1, 0, Step::Net) },
            place(1, 0, Step::Event),
            place(1, 1, Step::LastEvent),
            ResumePoint { fragment: Some(0), ..place(1, 1, Step::LastEvent) },
            ResumePoint { fragment: Some(256), ..place(1, 1, Step::LastEvent) },
            place(1, 2, Step::Event),
            ResumePoint { item: Some(0), ..place(1, 2, Step::Event) },
            ResumePoint { item: Some(0), fragment: Some(0), ..place(1, 2, Step::Event) },
            ResumePoint { item: Some(0), fragment: Some(7), ..place(1, 2, Step::Event) },
            ResumePoint { item: Some(300), ..place(1, 2, Step::Event) },
            place(1, 2, Step::Invalidate),
            ResumePoint::after(Sequence(1)),
            place(2, 0, Step::LastEvent),
            place(256, 0, Step::Event),
            place(256, 300, Step::Event),
            ResumePoint::after(Sequence(u64::MAX)),
        ];
        assert!(places.is_sorted());
        let tokens = places.map(|place| encode(place, [1, 2, 3, 4]));
        let data = |token: &DocumentBuf| match token.get("_data") {
            Some(Value::String(data)) => data.to_owned(),
            _ => panic!("a token has data"),
        };
        assert!(tokens.each_ref().map(data).is_sorted());
        for (place, token) in places.iter().zip(&tokens) {
            assert_eq!(decode(token.view()).unwrap(), (*place, [1, 2, 3, 4]));
            let data = data(token);
            assert!(data.starts_with("82") && data.to_uppercase() == data);
            // The length without a span, which would be missing.
            let lengths = [BYTES, BYTES + PART_BYTES, BYTES + 2 * PART_BYTES];
            let whole = |end: &usize| {
                place.span.is_none() && lengths.contains(&(end / 2)) && end.is_multiple_of(2)
            };
            for end in (0..data.len()).filter(|end| !whole(end)) {
                let mut cut = DocumentBuilder::new();
                cut.append("_data", Value::String(&data[..end]));
                assert_eq!(decode(cut.build().view()).unwrap_err().code.number(), 260);
            }
        }
    }
}
