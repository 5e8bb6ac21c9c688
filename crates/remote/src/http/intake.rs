//! The bodies of requests, as they arrive.
//!
//! *Bounds*: bytes that have arrived and are not processed yet take a share of [`BYTES_MAX`], half
//! of which at most is one peer's. A body takes its share as it arrives, so a client that sends
//! nothing holds nothing; it must arrive at [`BYTES_A_SECOND_MIN`] at least, but for a grace, and
//! one that waits for its share longer than [`ROOM_WAIT_MAX`] is refused, so that bodies which wait
//! for one another end.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use frond_db::ErrorKind;
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use crate::http::protocol::MESSAGE_BYTES_MAX;
use crate::http::service::Refusal;

/// Bytes of all bodies together.
const BYTES_MAX: usize = 128 << 20;
/// Shares are counted in this.
const UNIT_BYTES: usize = 64 << 10;
const UNITS_MAX: usize = BYTES_MAX / UNIT_BYTES;
const UNITS_OF_PEER_MAX: usize = UNITS_MAX / 2;
const _: () = assert!(MESSAGE_BYTES_MAX.div_ceil(UNIT_BYTES) <= UNITS_OF_PEER_MAX);
/// The slowest line on which a transfer is worth waiting for.
const BYTES_A_SECOND_MIN: u64 = 32 << 10;
/// The time that a client has in addition at the beginning.
const GRACE: Duration = Duration::from_secs(10);
/// The time that a body waits for its share.
const ROOM_WAIT_MAX: Duration = Duration::from_secs(20);

/// See the module.
pub(crate) struct BodyBudget {
    all: Arc<Semaphore>,
    peers: Mutex<HashMap<IpAddr, Weak<Semaphore>>>,
}

/// A body, and its share, which is given back when it is dropped.
pub(crate) struct Arrived {
    pub bytes: Bytes,
    _share: Reservation,
}

#[derive(Default)]
struct Reservation {
    units: usize,
    permits: Vec<OwnedSemaphorePermit>,
}

impl Default for BodyBudget {
    fn default() -> BodyBudget {
        BodyBudget { all: Arc::new(Semaphore::new(UNITS_MAX)), peers: Mutex::default() }
    }
}

/// Returns how long a client may have taken to send so many bytes.
fn progress_time(bytes: usize) -> Duration {
    GRACE + Duration::from_secs(bytes as u64 / BYTES_A_SECOND_MIN)
}

impl BodyBudget {
    /// Reads a body of `bytes_max` bytes at most.
    pub async fn read(
        &self,
        peer: IpAddr,
        mut body: Incoming,
        bytes_max: usize,
    ) -> Result<Arrived, Refusal> {
        let refuse = |status, kind, message: &str| Err(Refusal::new(status, kind, message));
        let too_long = || {
            let message = "the request is cut, or longer than it may be";
            Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, ErrorKind::Invalid, message)
        };
        if (bytes_max as u64) < body.size_hint().lower() {
            return Err(too_long());
        }
        let of_peer = self.of_peer(peer);
        let (mut bytes, mut share) = (BytesMut::new(), Reservation::default());
        let mut begun = Instant::now();
        loop {
            let Ok(frame) = timeout_at(begun + progress_time(bytes.len()), body.frame()).await
            else {
                let message = "the request didn't come in time";
                return refuse(StatusCode::REQUEST_TIMEOUT, ErrorKind::Unavailable, message);
            };
            let Some(frame) = frame else {
                return Ok(Arrived { bytes: bytes.freeze(), _share: share });
            };
            let Ok(data) = frame.map_err(|_| too_long())?.into_data() else { continue };
            if bytes_max - bytes.len() < data.len() {
                return Err(too_long());
            }
            bytes.extend_from_slice(&data);
            let waited = Instant::now();
            let grown = self.grow(&mut share, &of_peer, bytes.len());
            if timeout(ROOM_WAIT_MAX, grown).await.is_err() {
                let message = "the server has too many requests to hold: try again";
                return refuse(StatusCode::SERVICE_UNAVAILABLE, ErrorKind::Unavailable, message);
            }
            // That wait was not the client's.
            begun += waited.elapsed();
        }
    }

    /// Makes a share that of so many bytes.
    async fn grow(&self, share: &mut Reservation, of_peer: &Arc<Semaphore>, bytes: usize) {
        let more = bytes.div_ceil(UNIT_BYTES) - share.units;
        if more == 0 {
            return;
        }
        let count = u32::try_from(more).expect("a body's limit is below 2^32 units");
        for semaphore in [of_peer, &self.all] {
            let permit = Arc::clone(semaphore).acquire_many_owned(count).await;
            share.permits.push(permit.expect("the semaphores are never closed"));
        }
        share.units += more;
    }

    fn of_peer(&self, peer: IpAddr) -> Arc<Semaphore> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = peers.get(&peer).and_then(Weak::upgrade) {
            return found;
        }
        peers.retain(|_, semaphore| semaphore.strong_count() > 0);
        let semaphore = Arc::new(Semaphore::new(UNITS_OF_PEER_MAX));
        peers.insert(peer, Arc::downgrade(&semaphore));
        semaphore
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn patience_grows_with_what_arrived() {
        assert_eq!(progress_time(0), GRACE);
        assert_eq!(progress_time(4 << 20), GRACE + Duration::from_secs(128));
    }

    #[tokio::test]
    async fn one_peer_leaves_half_to_others() {
        let intake = BodyBudget::default();
        let peers = [1, 2].map(|last| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)));
        let [first, second] = peers.map(|peer| intake.of_peer(peer));
        let (mut of_first, mut of_second) = (Reservation::default(), Reservation::default());
        intake.grow(&mut of_first, &first, BYTES_MAX / 2).await;
        let step = Duration::from_millis(20);
        let more = intake.grow(&mut of_first, &first, BYTES_MAX / 2 + 1);
        assert!(timeout(step, more).await.is_err(), "no more than half");
        intake.grow(&mut of_second, &second, BYTES_MAX / 2).await;
        drop((of_first, of_second));
        assert_eq!(intake.all.available_permits(), UNITS_MAX);
        drop((first, second));
        intake.of_peer(peers[0]);
        assert_eq!(intake.peers.lock().expect("no panic").len(), 1, "who is gone is forgotten");
    }
}
