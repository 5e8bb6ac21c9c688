//! The clients that are silent and have no thread, in one `epoll`.
//!
//! A client is put under a number of its own each time, and watched for one event; then it is no
//! longer here. The system forgets a socket when it is closed, so none is ever removed.
//!
//! *Invariant*: a socket is watched only while its client is in the table: the table's part is
//! locked from before it is watched until after it is in, and the thread that gets the event takes
//! it out.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::fast::FixedState;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use super::talk::Talk;
use super::watch::Woken;

/// The parts of the table, each with its lock.
const PARTS: usize = 16;
/// The number of the bell: no client has it.
const BELL: u64 = u64::MAX;
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

type Part = HashMap<u64, Box<dyn Talk>, FixedState>;

/// The silent clients.
///
/// *Thread safety*: everything may be called from any number of threads at once.
pub struct SilentClients {
    epoll: OwnedFd,
    bell: OwnedFd,
    parts: [Mutex<Part>; PARTS],
    /// The next client's number.
    next: AtomicU64,
}

impl SilentClients {
    /// Makes a table without clients.
    ///
    /// # Errors
    /// The system has no descriptor for it.
    pub fn new() -> io::Result<SilentClients> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // One event for each ring: nothing ever reads it.
        epoll::add(&epoll, &bell, EventData::new_u64(BELL), EventFlags::IN | EventFlags::ET)?;
        let parts = std::array::from_fn(|_| Mutex::default());
        Ok(SilentClients { epoll, bell, parts, next: AtomicU64::new(0) })
    }

    /// Wakes a thread.
    pub fn ring(&self) {
        // It fails only where it has rung 2^64 times.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// Waits for an event.
    pub fn wait(&self, at_most: Duration) -> Woken {
        let mut events = [Event { flags: EventFlags::empty(), data: EventData::new_u64(BELL) }];
        let at_most = Timespec::try_from(at_most).unwrap_or(AT_ONCE);
        match epoll::wait(&self.epoll, &mut events, Some(&at_most)) {
            Ok(0) => Woken::Late,
            Ok(_) => {
                let number = events[0].data.u64();
                self.part(number).remove(&number).map_or(Woken::ByBell, Woken::ByClient)
            }
            // A signal came.
            Err(_) => Woken::ByBell,
        }
    }

    /// Watches a client, or gives it back where the system can't watch so many.
    pub fn put(&self, talk: Box<dyn Talk>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut part = self.part(number);
        let data = EventData::new_u64(number);
        let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ONESHOT;
        let watched = match epoll::modify(&self.epoll, talk.socket(), data, flags) {
            Err(Errno::NOENT) => epoll::add(&self.epoll, talk.socket(), data, flags),
            other => other,
        };
        match watched {
            Ok(()) => drop(part.insert(number, talk)),
            Err(_) => {
                drop(part);
                talk.give_back();
            }
        }
    }

    /// Whether any thread that waited now would be woken.
    pub fn is_any_ready(&self) -> bool {
        let mut polled = [PollFd::new(&self.epoll, PollFlags::IN)];
        poll(&mut polled, Some(&AT_ONCE)).is_ok_and(|ready| ready > 0)
    }

    /// How many clients have spoken.
    pub fn ready(&self) -> usize {
        let ready_in = |part: &Mutex<Part>| {
            let part = part.lock().unwrap_or_else(PoisonError::into_inner);
            let polled =
                part.values().map(|talk| PollFd::from_borrowed_fd(talk.socket(), PollFlags::IN));
            let mut polled: Vec<PollFd<'_>> = polled.collect();
            poll(&mut polled, Some(&AT_ONCE)).unwrap_or(0)
        };
        self.parts.iter().map(ready_in).sum()
    }

    fn part(&self, number: u64) -> MutexGuard<'_, Part> {
        // A panic elsewhere can't have broken it.
        let part = &self.parts[number as usize % PARTS];
        part.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
