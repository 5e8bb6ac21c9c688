//! The chunks that sessions protect, and for how long; that notes stay small.

use super::*;
use crate::location::FrameOffset;

const PURPOSE: Purpose = Purpose::Working;

fn hash(byte: u8) -> ChunkHash {
    ChunkHash([byte; 32])
}

/// The place of a chunk in pack 1, which is open.
fn at(offset: u32) -> Location {
    let place = FrameOffset { offset, bytes: 1 };
    Location { pack: PackNumber(1), place, refers: false, position: None }
}

/// Sessions of a store whose pack 1 has bytes up to 1,000.
fn sessions() -> Arc<Sessions> {
    let sessions = Arc::new(Sessions::default());
    sessions.positions.set(PURPOSE, PackNumber(1), 1_000);
    sessions
}

fn touch(sessions: &Sessions, byte: u8) {
    sessions.touch([(hash(byte), &at(u32::from(byte)), PURPOSE)]);
}

fn touched(sessions: &Sessions) -> Vec<ChunkHash> {
    let mut touched: Vec<ChunkHash> = sessions.protected().1.names.into_iter().collect();
    touched.sort_unstable();
    touched
}

#[test]
fn notes_last_as_long_as_the_oldest_session() {
    let sessions = sessions();
    touch(&sessions, 1);
    assert_eq!(touched(&sessions), []);
    let first = sessions.begin();
    touch(&sessions, 2);
    let second = sessions.begin();
    touch(&sessions, 3);
    drop(first);
    assert!(touched(&sessions).contains(&hash(3)));
    drop(second);
    assert_eq!(touched(&sessions), []);
    assert!(sessions.protected().0.is_none());
}

#[test]
fn many_notes_of_ended_sessions_are_forgotten_while_one_is_open() {
    let sessions = sessions();
    for round in 0..10_000u32 {
        let session = sessions.begin();
        let mut name = [0; 32];
        name[..4].copy_from_slice(&round.to_le_bytes());
        sessions.touch([(ChunkHash(name), &at(5), PURPOSE)]);
        let next = sessions.begin();
        drop(session);
        touch(&sessions, 255);
        drop(next);
    }
    let open = sessions.begin();
    assert!(touched(&sessions).len() <= 2 * YOUNG_COUNT_MAX);
    drop(open);
}

#[test]
fn notes_of_a_long_session_become_bits() {
    let sessions = sessions();
    let long = sessions.begin();
    let chunk = |number: u32| PackedChunk {
        hash: ChunkHash(*blake3::hash(&number.to_le_bytes()).as_bytes()),
        place: FrameOffset { offset: number, bytes: 1 },
        refers: false,
    };
    let mut chunks: Vec<PackedChunk> = (0..900).map(chunk).collect();
    chunks.sort_unstable();
    for _ in 0..3 {
        for chunk in chunks.iter().step_by(2) {
            sessions.touch([(chunk.hash, &chunk.location(PackNumber(1), None), PURPOSE)]);
        }
    }
    sessions.seal(PackNumber(1), &chunks);
    let position = 101;
    let at = chunks[position].location(PackNumber(1), Some(position as u32));
    sessions.touch([(chunks[position].hash, &at, PURPOSE)]);
    let (moment, live_set) = sessions.protected();
    assert!(moment.is_some() && live_set.names.is_empty());
    for position in 0..900 {
        let expected = position % 2 == 0 || position == 101;
        assert_eq!(live_set.bits.get(PackNumber(1), position), expected, "{position}");
    }
    drop(long);
}

/// A chunk that was written while the first session was open, and found by the second: when the
/// first has ended, only a note protects it.
#[test]
fn chunks_written_in_all_open_sessions_need_no_note() {
    let sessions = sessions();
    let first = sessions.begin();
    sessions.touch([(hash(9), &at(2_000), PURPOSE)]);
    assert_eq!(touched(&sessions), []);
    sessions.positions.set(PURPOSE, PackNumber(1), 3_000);
    let second = sessions.begin();
    sessions.touch([(hash(9), &at(2_000), PURPOSE)]);
    drop(first);
    assert_eq!(touched(&sessions), [hash(9)]);
    drop(second);
}

#[test]
fn a_collection_hears_of_every_touch_once() {
    let sessions = sessions();
    let fresh = |sessions: &Sessions| {
        let mut names: Vec<ChunkHash> = sessions.take_fresh().names.into_iter().collect();
        names.sort_unstable();
        names
    };
    sessions.begin_collection();
    touch(&sessions, 1);
    touch(&sessions, 2);
    assert_eq!(fresh(&sessions), [hash(1), hash(2)]);
    assert_eq!(fresh(&sessions), []);
    sessions.end_collection();
    touch(&sessions, 3);
    assert_eq!(fresh(&sessions), []);
}
