//! Goal: a transfer that is cut at any moment and run again ends as if it had not been cut, and
//! goes on where it was. Method: over HTTP a line between client and server that is cut after a
//! random number of bytes; over a bucket and a directory a place that breaks after a random number
//! of calls. For some seeds each.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use frond_db::Error;
use frond_remote::{HttpOptions, HttpRemote};
use frond_store::io::SystemChance;
use frond_testkit::{SimDisk, random};
use frond_vcs::remote::{
    FilePart, FileVersion, Moved, ORIGIN, PlainRemote, PlainStorage, PushRequest, Remote,
};

use super::bucket_storage::{bucket, push};
use super::http::serve;
use super::{all, insert, new, open, origin, quiet, shop, thing};

/// A line to a server, which breaks when so many bytes have passed.
struct Line {
    address: SocketAddr,
    server: Arc<Mutex<SocketAddr>>,
    left: Arc<AtomicI64>,
}

impl Line {
    fn to(server: SocketAddr) -> Line {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let left = Arc::new(AtomicI64::new(i64::MAX));
        let server = Arc::new(Mutex::new(server));
        let (budget, place) = (left.clone(), server.clone());
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                let there = *place.lock().expect("no panic while the lock is held");
                let Ok(there) = TcpStream::connect(there) else { return };
                pump(&client, &there, &budget);
                pump(&there, &client, &budget);
            }
        });
        Line { address, server, left }
    }

    fn remote(&self) -> HttpRemote {
        let url = format!("http://{}/shop", self.address);
        let options = HttpOptions { attempts: 2, ..HttpOptions::default() };
        HttpRemote::open(&url, &options).expect("a good address")
    }
}

/// Passes bytes on, until either end or the line is cut.
fn pump(from: &TcpStream, to: &TcpStream, left: &Arc<AtomicI64>) {
    let (mut from, mut to) = (from.try_clone().expect("open"), to.try_clone().expect("open"));
    let left = left.clone();
    std::thread::spawn(move || {
        let mut buffer = [0; 2_048];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let before = left.fetch_sub(count as i64, Ordering::SeqCst);
            if before < count as i64 || to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    });
}

#[test]
fn over_http() {
    let (frond, main) = origin(1);
    let server = serve(&frond);
    let line = Line::to(server.address());
    // The bytes that pass without a cut.
    shop(&new(2)).clone_from("x", &line.remote(), &mut quiet()).expect("it comes");
    let whole = (i64::MAX - line.left.load(Ordering::SeqCst)) as usize;
    assert!(whole > 100_000, "{whole} bytes");
    let mut cuts = 0;
    random::for_seeds(6, |mut random| {
        let there = new(3);
        let clone = shop(&there);
        let mut passed = 0;
        loop {
            let cut = 2_000 + random.below(whole);
            line.left.store(cut as i64, Ordering::SeqCst);
            let done = clone.clone_from("x", &line.remote(), &mut quiet());
            passed += cut as i64 - line.left.load(Ordering::SeqCst).max(0);
            if done.is_ok() {
                break;
            }
            cuts += 1;
            assert!(!clone.exists().expect("it answers"), "nothing is half there");
        }
        assert!(passed < 12 * whole as i64, "{passed} of {whole} bytes");
        assert_eq!(all(&clone), all(&main));
        insert(&clone, &(0..300).map(|n| thing(10_000 + n, 3)).collect::<Vec<_>>());
        clone.commit("more", "").expect("a commit");
        loop {
            line.left.store(5_000 + random.below(whole / 2) as i64, Ordering::SeqCst);
            if push(&clone, &line.remote()).is_ok() {
                break;
            }
            cuts += 1;
        }
        assert_eq!(all(&clone), all(&main));
        there.engine().check().expect("it is whole");
        main.reset(Some("HEAD~1"), true).expect("for the next seed");
    });
    random::assert_met("cuts", cuts, 1);
    frond.engine().check().expect("it is whole");
}

#[test]
fn into_a_server_that_loses_power_and_comes_back() {
    let mut lost = 0;
    random::for_seeds(8, |mut random| {
        let (_frond, main) = origin(8);
        let mut disk = SimDisk::new(random.next());
        let mut frond = open(&disk);
        let mut server = Some(serve(&frond));
        let line = Line::to(server.as_ref().expect("it was started").address());
        let (mut calls, when) = (0, 1 + random.below(6));
        let mut restart = |_: &Moved| {
            calls += 1;
            if calls == when {
                server = None;
                disk = disk.crash();
                frond = open(&disk);
                let begun = serve(&frond);
                *line.server.lock().expect("no panic while the lock is held") = begun.address();
                server = Some(begun);
            }
        };
        let request = PushRequest { tags: true, ..PushRequest::default() };
        let remote =
            HttpRemote::open(&format!("http://{}/shop", line.address), &HttpOptions::default());
        let remote = remote.expect("a good address");
        let report = main.push(ORIGIN, &remote, &request, &mut restart).expect("it is sent again");
        let again = push(&main, &line.remote()).expect("it is there");
        lost += usize::from(calls > when);
        assert_eq!((again, report.to), (0, main.log(Some(1), None).expect("a log")[0].id));
        assert_eq!(all(&shop(&frond)), all(&main));
        frond.engine().check().expect("it is whole");
    });
    random::assert_met("servers that lost power", lost, 1);
}

/// A place that breaks after so many calls.
struct Breaks<P> {
    place: Arc<P>,
    left: AtomicI64,
}

impl<P> Breaks<P> {
    fn spend(&self) -> Result<&P, Error> {
        match self.left.fetch_sub(1, Ordering::SeqCst) {
            1.. => Ok(&self.place),
            _ => Err(Error::unavailable("the line was cut")),
        }
    }
}

impl<P: PlainStorage> PlainStorage for Breaks<P> {
    fn list(&self, prefix: &str) -> Result<Vec<(String, u64)>, Error> {
        self.spend()?.list(prefix)
    }
    fn read_many(&self, parts: &[FilePart]) -> Result<Option<Vec<Bytes>>, Error> {
        self.spend()?.read_many(parts)
    }
    fn create(&self, name: &str, bytes: Bytes) -> Result<(), Error> {
        self.spend()?.create(name, bytes)
    }
    fn remove(&self, name: &str) -> Result<(), Error> {
        self.spend()?.remove(name)
    }
    fn load(&self, name: &str, bytes_max: usize) -> Result<Option<(Bytes, FileVersion)>, Error> {
        self.spend()?.load(name, bytes_max)
    }
    fn swap(&self, name: &str, expected: Option<&FileVersion>, new: Bytes) -> Result<bool, Error> {
        self.spend()?.swap(name, expected, new)
    }
    fn sweep(&self) -> Result<(), Error> {
        self.spend()?.sweep()
    }
}

#[test]
fn over_a_bucket() {
    let mut cuts = 0;
    random::for_seeds(8, |mut random| {
        let (_frond, main) = origin(4);
        let place = bucket("");
        let mut cut = |most: usize| {
            let left = AtomicI64::new(random.below(most) as i64);
            let breaks: Arc<dyn PlainStorage> = Arc::new(Breaks { place: place.clone(), left });
            PlainRemote::open_in(breaks, Arc::new(SystemChance))
        };
        for round in 0..3 {
            insert(
                &main,
                &(0..100).map(|n| thing(30_000 + 100 * round + n, 3)).collect::<Vec<_>>(),
            );
            main.commit("more", "").expect("a commit");
            // The parts of the place that a push reads again count as well: each try may go a
            // little further.
            let mut most = 10;
            while cut(most).and_then(|remote| push(&main, &remote)).is_err() {
                (cuts, most) = (cuts + 1, most + 5);
            }
        }
        let clone = shop(&new(5));
        let mut most = 30;
        while cut(most).and_then(|r| clone.clone_from("x", &r, &mut quiet()).map(drop)).is_err() {
            (cuts, most) = (cuts + 1, most + 5);
            assert!(!clone.exists().expect("it answers"), "nothing is half there");
        }
        assert_eq!(all(&clone), all(&main));
    });
    random::assert_met("cuts", cuts, 10);
}

#[test]
fn into_a_directory_that_loses_power() {
    random::for_seeds(10, |mut random| {
        let (_frond, main) = origin(6);
        let mut disk = SimDisk::new(random.next());
        let open = |disk: &SimDisk| PlainRemote::open(&disk.machine());
        for round in 0..3 {
            insert(
                &main,
                &(0..100).map(|n| thing(40_000 + 100 * round + n, 3)).collect::<Vec<_>>(),
            );
            main.commit("more", "").expect("a commit");
            disk.crash_after(random.below(40) as u64);
            let done = open(&disk).and_then(|remote| push(&main, &remote));
            disk = disk.crash();
            let state =
                open(&disk).and_then(|remote| remote.state()).expect("it is good at any moment");
            let head = state.as_ref().and_then(|state| state.branches.get("main").copied());
            assert!(done.is_err() || head.is_some(), "what was acknowledged is there");
            push(&main, &open(&disk).expect("a good directory")).expect("it goes on");
        }
        let clone = shop(&new(7));
        let remote = open(&disk).expect("a good directory");
        clone.clone_from("x", &remote, &mut quiet()).expect("it comes");
        assert_eq!(all(&clone), all(&main));
    });
}
