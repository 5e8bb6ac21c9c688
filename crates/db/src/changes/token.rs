//! Resume tokens: where a stream goes on.
//!
//! `_data` is upper-case hex, whose text sorts as the places do: 82, the Sequence (8 bytes, which
//! is the event's `clusterTime`), the event's position in its transaction (4), the step (1), and
//! the era (4), which tells data directories apart.

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_engine::Sequence;
use frond_query::Code;

use crate::error::Error;

pub const ERA_BYTES: usize = 4;
/// As MongoDB's tokens begin: a timestamp follows.
const FIRST: u8 = 0x82;
const BYTES: usize = 1 + 8 + 4 + 1 + ERA_BYTES;

/// What lies at a place. Stored by clients: never renumber.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Step {
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
pub struct Place {
    pub sequence: Sequence,
    pub position: u32,
    pub step: Step,
}

impl Place {
    /// The place behind all that a transaction told.
    pub fn after(sequence: Sequence) -> Place {
        Place { sequence, position: u32::MAX, step: Step::HighWater }
    }

    /// Behind which Sequence the log has to be read.
    pub fn read_after(self) -> Sequence {
        match self.step {
            Step::HighWater | Step::LastEvent => self.sequence,
            Step::Event | Step::Invalidate => Sequence(self.sequence.0.saturating_sub(1)),
        }
    }
}

/// What tells data directories apart, from what their trees are salted with.
pub fn era(salt: u64) -> [u8; ERA_BYTES] {
    let [a, b, c, d, ..] = salt.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
    [a, b, c, d]
}

/// The token of a place.
pub fn encode(place: Place, era: [u8; ERA_BYTES]) -> DocumentBuf {
    let mut bytes = vec![FIRST];
    bytes.extend_from_slice(&place.sequence.0.to_be_bytes());
    bytes.extend_from_slice(&place.position.to_be_bytes());
    bytes.push(place.step as u8);
    bytes.extend_from_slice(&era);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    let mut token = DocumentBuilder::new();
    token.append("_data", Value::String(&hex));
    token.build()
}

/// Where a token leads, and the era that it is of.
///
/// # Errors
/// `InvalidResumeToken` (260) if it is none of ours.
pub fn decode(token: Document<'_>) -> Result<(Place, [u8; ERA_BYTES]), Error> {
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

fn parse(data: &str) -> Option<(Place, [u8; ERA_BYTES])> {
    if data.len() != 2 * BYTES || !data.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let byte =
        |position: usize| u8::from_str_radix(data.get(2 * position..2 * position + 2)?, 16).ok();
    let bytes: Vec<u8> = (0..BYTES).map(byte).collect::<Option<_>>()?;
    let (first, rest) = bytes.split_first()?;
    let (sequence, rest) = rest.split_first_chunk::<8>()?;
    let (position, rest) = rest.split_first_chunk::<4>()?;
    let (step, rest) = rest.split_first()?;
    let (era, _) = rest.split_first_chunk::<ERA_BYTES>()?;
    let steps = [Step::Event, Step::LastEvent, Step::Invalidate, Step::HighWater];
    let step = steps.into_iter().find(|known| *known as u8 == *step)?;
    let sequence = Sequence(u64::from_be_bytes(*sequence));
    let place = Place { sequence, position: u32::from_be_bytes(*position), step };
    (*first == FIRST).then_some((place, *era))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_sort_as_their_places_and_are_read_back() {
        let place =
            |sequence, position, step| Place { sequence: Sequence(sequence), position, step };
        let places = [
            place(1, 0, Step::Event),
            place(1, 1, Step::LastEvent),
            place(1, 1, Step::Invalidate),
            Place::after(Sequence(1)),
            place(2, 0, Step::LastEvent),
            place(256, 0, Step::Event),
            place(256, 300, Step::Event),
            Place::after(Sequence(u64::MAX)),
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
            for end in 0..data.len() {
                let mut cut = DocumentBuilder::new();
                cut.append("_data", Value::String(&data[..end]));
                assert_eq!(decode(cut.build().view()).unwrap_err().code.number(), 260);
            }
        }
    }
}
