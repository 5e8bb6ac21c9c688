//! Goal: clients have their turns in their order, on as few threads as get on, whether the system
//! watches silent clients or not.

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;

/// A client that is answered what it says. [`ENDS`] ends it; [`BLOCKS`] holds its thread until
/// [`Echo::blocked`] gets something.
struct Echo {
    socket: UnixStream,
    must_go_on: bool,
    blocked: Arc<Mutex<Receiver<()>>>,
    given_back: Sender<u8>,
}

const BLOCKS: u8 = 1;
const ENDS: u8 = 0;

impl Talk for Echo {
    fn turn(mut self: Box<Self>, thread: &mut Thread<'_>) -> Option<Box<dyn Talk>> {
        let scratch = &mut *thread.scratch;
        let count = self.socket.read(scratch).expect("the client speaks");
        if count == 0 || scratch[0] == ENDS {
            return None;
        }
        if scratch[0] == BLOCKS {
            let _ = self.blocked.lock().expect("no panic").recv();
        }
        let answer = scratch[..count].to_vec();
        thread.answers(count);
        self.socket.write_all(&answer).expect("the client listens");
        Some(self)
    }

    fn give_back(self: Box<Self>) {
        self.given_back.send(0).expect("the test waits for it");
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn must_go_on(&self) -> bool {
        self.must_go_on
    }
}

/// Clients of a pool, and what ends those that block and hears of those given back.
struct Clients {
    workers: Workers,
    streams: Vec<UnixStream>,
    unblock: Sender<()>,
    given_back: Receiver<u8>,
}

impl Clients {
    /// So many clients, each of which has had a turn.
    fn begin(workers: Workers, count: usize, must_go_on: bool) -> Clients {
        let (unblock, blocked) = channel();
        let (gives_back, given_back) = channel();
        let blocked = Arc::new(Mutex::new(blocked));
        let begin = |_| {
            let (mut stream, socket) = UnixStream::pair().expect("a pair");
            stream.write_all(b"x").expect("it is listened to");
            let (blocked, given_back) = (Arc::clone(&blocked), gives_back.clone());
            let echo = Echo { socket, must_go_on, blocked, given_back };
            workers.talk(Box::new(echo)).expect("there are threads");
            stream.read_exact(&mut [0]).expect("an answer");
            stream
        };
        let streams = (0..count).map(begin).collect();
        Clients { workers, streams, unblock, given_back }
    }

    fn say(&mut self, client: usize, byte: u8) {
        self.streams[client].write_all(&[byte]).expect("it is listened to");
    }

    fn hear(&mut self, client: usize) -> u8 {
        let mut heard = [0];
        self.streams[client].read_exact(&mut heard).expect("an answer");
        heard[0]
    }

    fn stop(self) {
        drop(self.unblock);
        self.workers.stop(Duration::from_secs(60));
        assert_eq!(self.workers.counts().0, 0);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn silent_clients_keep_no_thread() {
    let mut clients = Clients::begin(Workers::new(1_000), 200, false);
    for round in 2..6 {
        for client in 0..200 {
            clients.say(client, round);
            assert_eq!(clients.hear(client), round);
        }
    }
    // One that answers, one that waits meanwhile, and one that the system began late.
    assert!(clients.workers.counts().0 <= 4, "{} threads", clients.workers.counts().0);
    clients.stop();
}

#[cfg(target_os = "linux")]
#[test]
fn while_threads_wait_others_answer() {
    let mut clients = Clients::begin(Workers::new(60), 100, false);
    (0..50).for_each(|client| clients.say(client, BLOCKS));
    for client in 50..100 {
        clients.say(client, 7);
        assert_eq!(clients.hear(client), 7);
    }
    (0..50).for_each(|_| clients.unblock.send(()).expect("they wait for it"));
    (0..50).for_each(|client| assert_eq!(clients.hear(client), BLOCKS));
    clients.stop();
}

/// All threads wait for what only another client can do.
#[cfg(target_os = "linux")]
#[test]
fn a_client_that_others_wait_for_has_a_thread_at_once() {
    let mut clients = Clients::begin(Workers::new(2), 20, true);
    (0..19).for_each(|client| clients.say(client, BLOCKS));
    clients.say(19, 7);
    assert_eq!(clients.hear(19), 7);
    (0..19).for_each(|_| clients.unblock.send(()).expect("they wait for it"));
    (0..19).for_each(|client| assert_eq!(clients.hear(client), BLOCKS));
    clients.stop();
}

#[cfg(target_os = "linux")]
#[test]
fn clients_of_a_pool_that_is_blocked_are_counted_and_get_one_more_thread() {
    let mut clients = Clients::begin(Workers::new(1), 4, false);
    clients.say(0, BLOCKS);
    while clients.workers.counts() != (1, 0) || clients.workers.0.idle.load(Ordering::SeqCst) > 0 {
        std::thread::yield_now();
    }
    (1..4).for_each(|client| clients.say(client, 7));
    while clients.workers.counts() != (1, 3) {
        std::thread::yield_now();
    }
    assert!(clients.workers.is_waited_for());
    let (begun, looks) = (Instant::now(), AtomicBool::new(true));
    std::thread::scope(|scope| {
        let (workers, looks) = (clients.workers.clone(), &looks);
        scope.spawn(move || {
            while looks.load(Ordering::Relaxed) {
                workers.look(false);
                std::thread::yield_now();
            }
        });
        (1..4).for_each(|client| assert_eq!(clients.hear(client), 7));
        looks.store(false, Ordering::Relaxed);
    });
    assert!(STALLED / 2 <= begun.elapsed(), "not before no turn has ended for a while");
    clients.unblock.send(()).expect("it is waited for");
    assert_eq!(clients.hear(0), BLOCKS);
    clients.stop();
}

#[cfg(target_os = "linux")]
#[test]
fn a_client_that_goes_or_ends_is_forgotten() {
    let mut clients = Clients::begin(Workers::new(4), 10, false);
    clients.say(0, ENDS);
    let gone: Vec<UnixStream> = clients.streams.drain(..5).collect();
    drop(gone);
    for client in 0..5 {
        clients.say(client, 7);
        assert_eq!(clients.hear(client), 7);
    }
    clients.stop();
}

#[test]
fn where_silence_is_not_watched_a_client_goes_back() {
    let clients = Clients::begin(Workers::on(Watch::bell(), 3), 10, false);
    (0..10).for_each(|_| assert_eq!(clients.given_back.recv(), Ok(0)));
    assert!(clients.workers.counts().0 <= 3);
    clients.stop();
}

/// A client's talk, which ends when it is asked to.
fn talk(workers: &Workers, name: usize, begun: &Sender<usize>, must_go_on: bool) -> Sender<()> {
    let (end, ended) = channel();
    let begun = begun.clone();
    let talk = move || {
        begun.send(name).expect("the test waits for it");
        let _ = ended.recv();
    };
    workers.run(talk, must_go_on).expect("there are threads");
    end
}

/// Pools of so many threads: one for each way in which they can wait.
fn pools(count: usize) -> [(Workers, Sender<usize>, Receiver<usize>); 2] {
    [Watch::new(), Watch::bell()].map(|watch| {
        let (begun, begins) = channel();
        (Workers::on(watch, count), begun, begins)
    })
}

#[test]
fn there_are_no_more_threads_than_turns_and_turns_go_round_in_their_order() {
    for (count, (workers, begun, begins)) in
        [1, 3].into_iter().flat_map(|count| pools(count).map(|pool| (count, pool)))
    {
        let ends: Vec<_> = (0..50).map(|name| talk(&workers, name, &begun, false)).collect();
        for (name, end) in ends.into_iter().enumerate() {
            let begins = begins.recv().expect("all have their turn");
            assert!(begins == name || 1 < count && begins < name + count);
            assert!(workers.counts().0 <= count);
            drop(end);
        }
        workers.stop(Duration::from_secs(60));
        assert_eq!(workers.counts(), (0, 0));
    }
}

#[test]
fn urgent_requests_do_not_wait() {
    for (workers, begun, begins) in pools(1) {
        let first = talk(&workers, 0, &begun, false);
        assert_eq!(begins.recv(), Ok(0));
        let second = talk(&workers, 1, &begun, false);
        assert!(workers.is_waited_for());
        workers.look(true);
        assert_eq!(begins.recv(), Ok(1));
        let third = talk(&workers, 2, &begun, true);
        assert_eq!(begins.recv(), Ok(2));
        let (threads, waiting) = workers.counts();
        // One more may wait for a client already.
        assert!((3..=4).contains(&threads) && waiting == 0, "{threads}, {waiting}");
        drop((first, second, third));
        workers.stop(Duration::from_secs(60));
        assert_eq!(workers.counts(), (0, 0));
    }
}

#[test]
fn a_blocked_pool_gets_one_more_thread_which_ends_again() {
    for (workers, begun, begins) in pools(1) {
        let stuck = talk(&workers, 0, &begun, false);
        assert_eq!(begins.recv(), Ok(0));
        let late = talk(&workers, 1, &begun, false);
        while workers.counts().1 > 0 {
            workers.look(false);
            std::thread::yield_now();
        }
        assert_eq!(begins.recv(), Ok(1));
        assert_eq!(workers.counts(), (2, 0));
        drop(late);
        while 1 < workers.counts().0 {
            std::thread::yield_now();
        }
        drop(stuck);
        workers.stop(Duration::from_secs(60));
    }
}

#[test]
fn a_panic_ends_a_turn_and_no_thread() {
    let workers = Workers::new(1);
    let (done, finished) = channel();
    workers.run(|| panic!("of a handler"), false).expect("there are threads");
    workers.run(move || done.send(()).expect("it is waited for"), false).expect("as before");
    assert_eq!(finished.recv(), Ok(()));
    assert_eq!(workers.counts().0, 1);
}

#[test]
fn memory_says_how_many() {
    let found = [0, 64 << 20, 600 << 20, u64::MAX].map(Workers::count_for);
    assert_eq!(found[..3], [32, 32, 150]);
    assert!(2_000 < found[3]);
}
