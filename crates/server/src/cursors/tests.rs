//! Batches of their sizes, owners, limits.

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use frond_db::FrondOptions;
use frond_db::memory_queue::{MemoryQueue, MemoryShare};
use frond_doc::{DocumentBuf, DocumentBuilder, document};
use frond_testkit::SimDisk;

use super::*;
use crate::answer_memory::AnswerMemory;
use crate::common_fields::Common;
use crate::kept_documents::KeptRoom;
use crate::limits::{BATCH_BYTES_MAX, CLIENT_GONE_AFTER, CURSOR_IDLE_MAX, FREE_BYTES};
use crate::operations::Operations;
use crate::peer::{Peer, Presence};
use crate::stalled_bytes::StalledFiles;

fn facts(session: Option<SessionId>, connection: i32) -> CursorFacts {
    let namespace = "test.c".to_owned();
    let user = UserDigest::ANONYMOUS;
    CursorFacts {
        granted: None,
        namespace,
        session,
        user,
        connection,
        address: Ipv4Addr::LOCALHOST.into(),
        transaction: None,
        no_timeout: false,
        api: Default::default(),
        read_time: None,
        resume_token: None,
    }
}

fn cursor(count: i32, session: Option<SessionId>) -> OpenCursor {
    let documents = (0..count).map(|number| Ok(document! { "_id": number }));
    OpenCursor::new(facts(session, 1), Box::new(documents))
}

/// Documents of so many bytes or a few more.
fn texts(count: usize, bytes: usize) -> impl Iterator<Item = Result<DocumentBuf, Error>> {
    let text = "x".repeat(bytes);
    (0..count).map(move |_| Ok(document! { "text": &text }))
}

fn large(count: usize, bytes: usize) -> OpenCursor {
    OpenCursor::new(facts(None, 1), Box::new(texts(count, bytes)))
}

/// The memory of a server.
struct Memory {
    answers: MemoryQueue,
    waiting_max: usize,
    cursors: MemoryQueue,
    files: StalledFiles,
    operations: Operations,
}

impl Memory {
    fn new(answers: usize, cursors: usize) -> Memory {
        let operations = Operations::default();
        let frond = frond_vcs::open_on(&SimDisk::new(1).machine(), FrondOptions::default());
        Memory {
            files: StalledFiles::new(frond.expect("an empty disk opens")),
            answers: MemoryQueue::new(answers),
            waiting_max: 1,
            cursors: MemoryQueue::new(cursors),
            operations,
        }
    }

    /// Reads a batch: how many documents, whether it is the last, and what the answer holds.
    fn batch(
        &self,
        cursor: &mut OpenCursor,
        documents_max: Option<u64>,
        is_single: bool,
    ) -> Result<(usize, bool, Option<MemoryShare>), i32> {
        self.batch_within(cursor, documents_max, is_single, &Common::default())
    }

    /// The same by a command with these fields.
    fn batch_within(
        &self,
        cursor: &mut OpenCursor,
        documents_max: Option<u64>,
        is_single: bool,
        common: &Common,
    ) -> Result<(usize, bool, Option<MemoryShare>), i32> {
        let peer = Arc::new(Peer::new(1, SocketAddr::from((Ipv4Addr::LOCALHOST, 0))));
        let running = self.operations.begin(&peer, "find", ("test", &DocumentBuf::empty()), common);
        let share = RefCell::new(None);
        let room = AnswerMemory {
            answers: &self.answers,
            waiting_max: self.waiting_max,
            kept: KeptRoom { memory: &self.cursors, files: &self.files },
            share: &share,
            operation: &running.operation,
        };
        let mut answer = DocumentBuilder::new();
        answer.begin_array("batch");
        let size = BatchSize { documents_max, is_single, is_awaited: false };
        let is_last = cursor.next_batch(&mut answer, size, &room);
        let is_last = is_last.map_err(|error| error.code.number())?;
        answer.end();
        let answer = answer.build();
        let batch = answer.get("batch").and_then(|batch| batch.as_array()).expect("an array");
        Ok((batch.iter().count(), is_last, share.take()))
    }
}

fn batch(cursor: &mut OpenCursor, max: Option<u64>) -> (usize, bool) {
    let memory = Memory::new(64 << 20, 64 << 20);
    let (count, is_last, share) = memory.batch(cursor, max, false).expect("no document fails");
    drop(share);
    assert_eq!(memory.answers.held(), 0);
    (count, is_last)
}

#[test]
fn batches_end_at_their_limits() {
    let mut five = cursor(5, None);
    assert_eq!(batch(&mut five, Some(0)), (0, false));
    assert_eq!(batch(&mut five, Some(2)), (2, false));
    assert_eq!(batch(&mut five, Some(3)), (3, true));
    assert_eq!(batch(&mut cursor(5, None), None), (5, true));
    assert_eq!(batch(&mut cursor(0, None), Some(3)), (0, true));
}

#[test]
fn an_error_of_the_look_ahead_fails_the_next_batch() {
    let failed = || Err(Error::invalid(Code::BadValue, "the third"));
    let documents = texts(2, 10).chain(std::iter::once_with(failed));
    let mut cursor = OpenCursor::new(facts(None, 1), Box::new(documents));
    assert_eq!(batch(&mut cursor, Some(2)), (2, false));
    let memory = Memory::new(64 << 20, 64 << 20);
    assert_eq!(memory.batch(&mut cursor, Some(2), false).err(), Some(2));
}

/// A pipeline that ends in `$out` has written when it gives nothing: it didn't fail.
#[test]
fn what_gives_nothing_is_never_too_late() {
    let memory = Memory::new(64 << 20, 64 << 20);
    let late = Common { time_max: Some(std::time::Duration::ZERO), ..Common::default() };
    let found = |count| memory.batch_within(&mut cursor(count, None), None, false, &late);
    assert!(matches!(found(0), Ok((0, true, _))));
    assert_eq!(found(1).err(), Some(50));
}

#[test]
fn batches_end_at_sixteen_megabytes() {
    let mut cursor = large(4, 6 << 20);
    assert_eq!(batch(&mut cursor, None), (2, false));
    assert_eq!(batch(&mut cursor, None), (2, true));
}

#[test]
fn batches_end_where_there_is_no_more_memory() {
    let memory = Memory::new(BATCH_BYTES_MAX, 1 << 20);
    let others = memory.answers.try_take(BATCH_BYTES_MAX - (2 << 20)).expect("free");
    let mut cursor = large(20, 300_000);
    let (count, is_last, share) = memory.batch(&mut cursor, None, false).expect("room for some");
    assert!(!is_last && (5..7).contains(&count), "{count}");
    assert_eq!(memory.cursors.held(), 300_016);
    drop((others, share));
    let (count, is_last, share) = memory.batch(&mut cursor, Some(4), false).expect("room for all");
    assert_eq!((count, is_last), (4, false));
    // Memory that isn't needed is given back at once.
    assert!(share.expect("it is large").bytes() < 4 * 300_000 + (64 << 10));
    drop(cursor);
    assert_eq!((memory.answers.held(), memory.cursors.held()), (0, 0));
}

#[test]
fn small_answers_need_no_memory_of_others() {
    let memory = Memory::new(BATCH_BYTES_MAX, 0);
    let _others = memory.answers.try_take(BATCH_BYTES_MAX).expect("free");
    let mut cursor = large(10, FREE_BYTES / 8);
    let (count, is_last, _) = memory.batch(&mut cursor, None, false).expect("free memory");
    assert!(!is_last && (5..8).contains(&count), "{count}");
}

/// Cursors whose clients read nothing have taken all memory for documents: another one is read on,
/// by batches as large as always.
#[test]
fn a_document_goes_to_a_file_where_others_have_the_memory() {
    let memory = Memory::new(BATCH_BYTES_MAX, 0);
    let mut cursor = large(6, 6 << 20);
    for expected in [2, 2] {
        let (count, is_last, share) = memory.batch(&mut cursor, None, false).expect("room");
        assert_eq!((count, is_last), (expected, false));
        assert!((6 << 20..7 << 20).contains(&memory.files.bytes()), "{}", memory.files.bytes());
        // It waits for memory where it is: in the file.
        drop(share);
        let others = memory.answers.try_take(BATCH_BYTES_MAX).expect("free");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| memory.batch(&mut cursor, Some(1), false));
            while !memory.answers.is_waited_for() {
                std::thread::yield_now();
            }
            let bytes = memory.files.bytes();
            drop(others);
            let (count, ..) = waiting.join().expect("it doesn't panic").expect("room");
            assert_eq!(count, 1);
            assert!(6 << 20 <= bytes, "{bytes}");
        });
    }
}

#[test]
fn a_kept_document_is_what_it_was() {
    let memory = Memory::new(BATCH_BYTES_MAX, 1 << 20);
    let room = KeptRoom { memory: &memory.cursors, files: &memory.files };
    for (bytes, in_memory, in_files) in
        [(100, 0, 0), (FREE_BYTES - 100, 0, 0), (900_000, 900_000, 0), (2 << 20, 0, 2 << 20)]
    {
        let document = texts(1, bytes).next().expect("one").expect("it doesn't fail");
        let (kept, all) = (room.keep(document.clone()), document.as_bytes().len());
        let Ok(kept) = kept else { panic!("no room for {bytes}") };
        let expected = |least: usize| if least == 0 { 0 } else { all };
        let held = (memory.cursors.held(), memory.files.bytes());
        assert_eq!((kept.bytes(), held), (all, (expected(in_memory), expected(in_files))));
        assert!(kept.take().expect("it is read") == document);
        assert_eq!((memory.cursors.held(), memory.files.bytes()), (0, 0));
    }
}

#[test]
fn results_that_cannot_be_kept_are_sent_or_refused() {
    let memory = Memory::new(BATCH_BYTES_MAX, 0);
    let _files = memory.files.take_room();
    let mut cursor = large(3, 1 << 20);
    // After a large document the cursor doesn't look ahead.
    for expected in [(1, false), (1, false), (1, false), (0, true)] {
        let (count, is_last, _) = memory.batch(&mut cursor, Some(1), false).expect("room");
        assert_eq!((count, is_last), expected);
    }
    let documents = texts(1, 10).chain(texts(2, 1 << 20));
    let mut cursor = OpenCursor::new(facts(None, 1), Box::new(documents));
    for expected in [(2, false), (1, false), (0, true)] {
        let (count, is_last, _) = memory.batch(&mut cursor, Some(1), false).expect("room");
        assert_eq!((count, is_last), expected);
    }
    let _others = memory.answers.try_take(BATCH_BYTES_MAX - (2 << 20)).expect("free");
    let mut cursor = large(3, 1 << 20);
    assert_eq!(memory.batch(&mut cursor, None, false).err(), Some(146));
}

#[test]
fn cursors_that_need_more_memory_wait() {
    let memory = Memory::new(BATCH_BYTES_MAX, 0);
    for is_single in [false, true] {
        let others = memory.answers.try_take(BATCH_BYTES_MAX).expect("free");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| memory.batch(&mut large(2, 1 << 20), None, is_single));
            while !memory.answers.is_waited_for() {
                std::thread::yield_now();
            }
            drop(others);
            let batch = waiting.join().expect("it doesn't panic").expect("there was room");
            assert_eq!((batch.0, batch.1), (2, true));
        });
    }
    let _others = memory.answers.try_take(BATCH_BYTES_MAX).expect("free");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| memory.batch(&mut large(2, 1 << 20), None, true).err());
        while !memory.answers.is_waited_for() {
            std::thread::yield_now();
        }
        let next = memory.batch(&mut large(2, 1 << 20), None, true);
        assert_eq!(next.err(), Some(146), "only one may wait");
        memory.operations.kill(memory.operations.list()[0].id);
        assert_eq!(waiting.join().expect("it doesn't panic"), Some(11601));
    });
}

#[test]
fn a_cursor_belongs_to_its_session_and_namespace() {
    let cursors = Cursors::default();
    let (one, other) = (Some(SessionId::anonymous([1; 16])), Some(SessionId::anonymous([2; 16])));
    let id = cursors.open(cursor(3, one), Instant::now()).expect("room");
    let code_of = |id, namespace: &str, user, session| {
        let checked_out = cursors.check_out(id, namespace, user, session, None);
        checked_out.map(|_| ()).map_err(|error| error.code.number())
    };
    let code =
        |id, namespace: &str, session| code_of(id, namespace, UserDigest::ANONYMOUS, session);
    assert_eq!(code_of(id, "test.c", UserDigest::of("ann@test"), one), Err(13));
    assert_eq!(cursors.user_of(id), Some(UserDigest::ANONYMOUS));
    assert_eq!(code(id, "test.d", one), Err(13));
    assert_eq!(code(id, "test.c", other), Err(50738));
    assert_eq!(code(id, "test.c", None), Err(50737));
    assert_eq!(code(id + 1, "test.c", one), Err(43));
    let checked_out =
        cursors.check_out(id, "test.c", UserDigest::ANONYMOUS, one, None).expect("mine");
    assert_eq!(code(id, "test.c", one), Err(12051));
    checked_out.check_in(Instant::now());
    assert_eq!(code(id, "test.c", one), Ok(()));
    // Checked out and dropped above: closed.
    assert_eq!(code(id, "test.c", one), Err(43));
}

#[test]
fn a_kill_reaches_a_cursor_in_use() {
    let cursors = Cursors::default();
    let id = cursors.open(cursor(3, None), Instant::now()).expect("room");
    let checked_out =
        cursors.check_out(id, "test.c", UserDigest::ANONYMOUS, None, None).expect("there");
    assert!(!cursors.kill(id, "test.other"));
    assert!(cursors.kill(id, "test.c"));
    checked_out.check_in(Instant::now());
    assert_eq!(cursors.counts().open, 0);
    assert!(!cursors.kill(id, "test.c"));
}

#[test]
fn idle_cursors_and_ended_sessions_let_go() {
    let cursors = Cursors::default();
    let start = Instant::now();
    let session = SessionId::anonymous([1; 16]);
    cursors.open(cursor(3, Some(session)), start).expect("room");
    let mut eternal = cursor(3, None);
    eternal.facts.no_timeout = true;
    cursors.open(eternal, start).expect("room");
    cursors.open(cursor(3, None), start).expect("room");
    cursors.kill_sessions(Some(&[SessionId::anonymous([9; 16])]));
    assert_eq!(cursors.counts().open, 3);
    cursors.kill_sessions(Some(&[session]));
    assert_eq!(cursors.counts().open, 2);
    cursors.expire(start + CURSOR_IDLE_MAX, CURSOR_IDLE_MAX);
    let expected = CursorCounts { open: 1, no_timeout: 1, pinned: 0, timed_out: 1 };
    assert_eq!(cursors.counts(), expected);
}

#[test]
fn one_client_cannot_have_all() {
    let (cursors, now) = (Cursors::default(), Instant::now());
    let open = |session, connection| {
        cursors.open(OpenCursor::new(facts(session, connection), Box::new(std::iter::empty())), now)
    };
    let session = |number: i32| {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&number.to_le_bytes());
        Some(SessionId::anonymous(id))
    };
    // A client with many connections and one session, and one with one connection and many
    // sessions.
    let ids: Vec<i64> = (0..CURSORS_OF_CLIENT_MAX as i32)
        .flat_map(|number| [open(session(1), number), open(session(number + 2), -1)])
        .collect::<Result<_, _>>()
        .expect("room");
    assert!(open(session(1), -2).is_err());
    assert!(open(None, -1).is_err());
    open(session(-1), -2).expect("room for others");
    assert!(cursors.kill(ids[0], "test.c"));
    open(session(1), -2).expect("one was closed");
    cursors.kill_sessions(None);
    assert_eq!(cursors.counts().open, 0);
    assert!(cursors.lock().counts.is_empty());
}

#[test]
fn there_is_a_limit() {
    let (cursors, now) = (Cursors::default(), Instant::now());
    let open = |connection: i32| {
        // Of several addresses: the last ones aren't for a client that has many.
        let address = Ipv4Addr::from(connection.unsigned_abs() % 4).into();
        let facts = CursorFacts { address, ..facts(None, connection) };
        cursors.open(OpenCursor::new(facts, Box::new(std::iter::empty())), now)
    };
    for connection in 0..CURSORS_MAX as i32 {
        open(connection).expect("room");
    }
    assert!(open(-1).is_err());
}

/// A user with many connections, or many users of an address, don't take the last cursors.
#[test]
fn the_last_cursors_are_left_to_those_who_have_few() {
    let (cursors, now) = (Cursors::default(), Instant::now());
    let open = |user: u8, address: u8, connection: usize| {
        let facts = CursorFacts {
            user: UserDigest([user; 32]),
            address: Ipv4Addr::new(192, 0, 2, address).into(),
            ..facts(None, i32::try_from(connection).expect("few"))
        };
        let documents = std::iter::once_with(|| Ok(document! { "_id": 1 }));
        let opened = cursors.open(OpenCursor::new(facts, Box::new(documents)), now);
        opened.map(drop).map_err(|error| error.code.number())
    };
    let mut opened = 0;
    // One user, from ever other addresses: 7,500, since others may need none.
    while open(1, (opened % 200) as u8, opened / 100) == Ok(()) {
        opened += 1;
    }
    assert_eq!(opened, CURSORS_CROWDED);
    assert_eq!(open(2, 1, 10_000), Ok(()), "another user's, from an address of those");
    let mut others = 1;
    while open(3 + (others % 200) as u8, 250, 20_000 + others / 100) == Ok(()) {
        others += 1;
    }
    assert_eq!(opened + others, CURSORS_MAX, "many users of an address that has no half of all");
}

/// A cursor as `change` makes its facts, last used over the connection of `client`.
fn used_by(client: &Arc<Presence>, change: impl FnOnce(&mut CursorFacts)) -> OpenCursor {
    let mut cursor = cursor(1, None);
    change(&mut cursor.facts);
    cursor.client = Arc::clone(client);
    cursor
}

/// By turns a client is connected, has just lost its connection, and is gone; some cursors are in
/// use, without a timeout, or of a transaction.
#[test]
fn cursors_of_clients_that_are_gone_give_way() {
    let (cursors, start) = (Cursors::default(), Instant::now());
    let now = start + CLIENT_GONE_AFTER;
    let clients: [Arc<Presence>; 3] = Default::default();
    clients[1].end(start + CLIENT_GONE_AFTER / 2);
    clients[2].end(start);
    let (mut in_use, mut going) = (Vec::new(), Vec::new());
    for number in 0..CURSORS_MAX {
        let transaction = (number % 11 == 0).then_some(1);
        let cursor = used_by(&clients[number % 3], |facts| {
            facts.connection = number as i32;
            facts.address = Ipv4Addr::new(192, 0, 2, (number % 5) as u8).into();
            facts.no_timeout = number % 7 == 0;
            facts.transaction = transaction;
        });
        // The later one is opened, the longer it was idle.
        let id = cursors.open(cursor, start - Duration::from_millis(number as u64)).expect("room");
        if number % 13 == 0 {
            let user = UserDigest::ANONYMOUS;
            in_use.push(cursors.check_out(id, "test.c", user, None, transaction).expect("idle"));
        } else if number % 3 == 2 && number % 7 != 0 && transaction.is_none() {
            going.push(id);
        }
    }
    let live = Arc::default();
    let open = |connection: i32, now| {
        let new = used_by(&live, |facts| {
            facts.connection = -connection;
            facts.address = Ipv4Addr::new(192, 0, 2, 77).into();
        });
        cursors.open(new, now).map(drop)
    };
    assert!(open(1, start).is_err(), "none is gone for long enough");
    assert!(1_000 < going.len());
    let is_open = |id: &i64| cursors.lock().slots.contains_key(id);
    for (count, id) in going.iter().enumerate().rev() {
        assert!(is_open(id), "{count}: one that was idle for less gave way");
        open(count as i32, now).expect("one gives way");
        assert!(!is_open(id), "{count}");
    }
    assert!(open(1, now).is_err(), "the others stay");
    let counts = cursors.counts();
    assert_eq!((counts.open, counts.timed_out), (CURSORS_MAX, going.len() as u64));
    in_use.into_iter().for_each(|cursor| cursor.check_in(now));
    assert!(open(1, now).is_ok(), "one that was in use until now");
}

/// Where one client has too many, none of another's gives way; and one that goes on over another
/// connection isn't gone.
#[test]
fn only_cursors_that_a_limit_counts_give_way() {
    let (cursors, start) = (Cursors::default(), Instant::now());
    let now = start + CLIENT_GONE_AFTER;
    let (gone, live) = (Arc::<Presence>::default(), Arc::default());
    gone.end(start);
    let of = |session: u8, client: &Arc<Presence>, connection: usize| {
        used_by(client, |facts| {
            facts.session = Some(SessionId::anonymous([session; 16]));
            facts.connection = connection as i32;
        })
    };
    let others = cursors.open(of(1, &gone, 1), start - Duration::from_secs(9)).expect("room");
    let ids: Vec<i64> = (0..CURSORS_OF_CLIENT_MAX)
        .map(|number| cursors.open(of(2, &gone, 2 + number), start).expect("room"))
        .collect();
    let session = Some(SessionId::anonymous([2; 16]));
    for id in &ids[1..] {
        let user = UserDigest::ANONYMOUS;
        let mut back = cursors.check_out(*id, "test.c", user, session, None).expect("idle");
        back.cursor().client = Arc::clone(&live);
        back.check_in(start);
    }
    cursors.open(of(2, &live, 0), now).expect("one gives way");
    assert!(!cursors.kill(ids[0], "test.c"), "it was the only one");
    assert!(cursors.open(of(2, &live, 0), now).is_err(), "none is left");
    assert!(cursors.kill(others, "test.c"), "it is another session's");
}
