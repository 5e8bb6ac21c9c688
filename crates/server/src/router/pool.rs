//! Pools idle connections to lines' servers, each for the user who has logged in on it.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::line::Line;
use super::login::{self, Identity};
use super::upstream::Upstream;
use crate::replica::key::ClusterKey;

/// Idle connections that are kept for one server and one user: with more clients than that at once
/// each of them still has its own, made anew.
const IDLE_MAX: usize = 256;
/// One that was unused for so long is ended.
const IDLE_TIME_MAX: Duration = Duration::from_secs(60);

type Place = (String, Option<Identity>);

/// A pool of idle connections.
///
/// *Invariant*: a connection is given only to a client logged in as the user that it was put back
/// for.
#[derive(Default)]
pub(super) struct Pool {
    idle: Mutex<HashMap<Place, Vec<(Upstream, Instant)>>>,
}

impl Pool {
    /// A connection on which nothing runs, logged in as `identity`.
    ///
    /// # Errors
    /// If the server can't be reached, or refuses the login: nothing was asked of it.
    pub async fn take(
        &self,
        line: &Line,
        address: &str,
        identity: Option<&Identity>,
        key: Option<&ClusterKey>,
    ) -> io::Result<Upstream> {
        while let Some(mut kept) = self.pop(address, identity) {
            if kept.is_open() {
                return Ok(kept);
            }
        }
        let mut made = Upstream::connect(address, line.tls.as_ref()).await?;
        if let (Some(identity), Some(key)) = (identity, key) {
            login::act_as(&mut made, identity, key).await?;
        }
        Ok(made)
    }

    fn pop(&self, address: &str, identity: Option<&Identity>) -> Option<Upstream> {
        let place = (address.to_owned(), identity.cloned());
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_mut(&place)?
            .pop()
            .map(|(kept, _)| kept)
    }

    /// Gives a connection back whose last message was answered.
    pub fn put(&self, address: &str, identity: Option<&Identity>, upstream: Upstream) {
        let place = (address.to_owned(), identity.cloned());
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle.entry(place).or_default();
        if kept.len() < IDLE_MAX {
            kept.push((upstream, Instant::now()));
        }
    }

    /// Ends those that were unused for long.
    pub fn sweep(&self) {
        let now = Instant::now();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|_, kept| {
            kept.retain(|(_, since)| now.duration_since(*since) < IDLE_TIME_MAX);
            !kept.is_empty()
        });
    }

    /// Returns how many are idle.
    pub fn idle_count(&self) -> usize {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.values().map(Vec::len).sum()
    }
}
