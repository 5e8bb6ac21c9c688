//! Where threads without work wait: for a client to speak, or for the bell that says that work was
//! queued.
//!
//! Where the system has `epoll`, all silent clients are in one, and all idle threads wait for it.
//! It wakes the thread that began to wait last, which is the one whose memory is still in a
//! processor's cache, and hands each event to one thread. Elsewhere clients are not watched here.
//!
//! *Invariant*: a ring is not lost: if no thread waits, the next one that does returns at once.
//! Rings before that may be one.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

#[cfg(target_os = "linux")]
use super::silent_clients::SilentClients;
use super::talk::Talk;

/// Why a thread waits no more.
pub enum Woken {
    /// A client has spoken, or has gone.
    ByClient(Box<dyn Talk>),
    /// The bell has rung, perhaps.
    ByBell,
    /// Nothing happened.
    Late,
}

/// Where threads wait.
pub enum Watch {
    /// For clients, too.
    #[cfg(target_os = "linux")]
    Clients(Box<SilentClients>),
    /// For the bell alone, which has rung.
    Bell(Mutex<bool>, Condvar),
}

impl Watch {
    /// Watches clients if the system can.
    pub fn new() -> Watch {
        #[cfg(target_os = "linux")]
        if let Ok(clients) = SilentClients::new() {
            return Watch::Clients(Box::new(clients));
        }
        Watch::bell()
    }

    /// Watches no clients.
    pub fn bell() -> Watch {
        Watch::Bell(Mutex::new(false), Condvar::new())
    }

    /// Whether silent clients can be watched.
    pub fn can_watch(&self) -> bool {
        !matches!(self, Watch::Bell(..))
    }

    /// Wakes a thread.
    pub fn ring(&self) {
        match self {
            #[cfg(target_os = "linux")]
            Watch::Clients(clients) => clients.ring(),
            Watch::Bell(rung, waits) => {
                *rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
                waits.notify_one();
            }
        }
    }

    /// Waits for so long at most.
    pub fn wait(&self, at_most: Duration) -> Woken {
        match self {
            #[cfg(target_os = "linux")]
            Watch::Clients(clients) => clients.wait(at_most),
            Watch::Bell(rung, waits) => {
                let rung = rung.lock().unwrap_or_else(PoisonError::into_inner);
                let waited = waits.wait_timeout_while(rung, at_most, |rung| !*rung);
                let (mut rung, _) = waited.unwrap_or_else(PoisonError::into_inner);
                match std::mem::take(&mut *rung) {
                    true => Woken::ByBell,
                    false => Woken::Late,
                }
            }
        }
    }

    /// Watches a client that is silent. If it can't, the client goes back to where it came from.
    pub fn put(&self, talk: Box<dyn Talk>) {
        match self {
            #[cfg(target_os = "linux")]
            Watch::Clients(clients) => clients.put(talk),
            Watch::Bell(..) => talk.give_back(),
        }
    }

    /// Whether a client has spoken for which no thread has come yet.
    pub fn is_any_ready(&self) -> bool {
        match self {
            #[cfg(target_os = "linux")]
            Watch::Clients(clients) => clients.is_any_ready(),
            Watch::Bell(..) => false,
        }
    }

    /// How many clients have spoken for which no thread has come yet.
    pub fn ready(&self) -> usize {
        match self {
            #[cfg(target_os = "linux")]
            Watch::Clients(clients) => clients.ready(),
            Watch::Bell(..) => 0,
        }
    }
}
