//! Leases keep the chunks of a transfer from being collected while a client is at it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use frond_db::{Error, Frond};
use frond_store::io::{Chance, SystemChance};
use frond_vcs::remote::{DataImage, DataRemote};

use crate::http::protocol::{LEASE_CROWDED_SECONDS, LEASE_SECONDS};

/// The number of transfers above which more at once are refused: each keeps memory and disk space
/// from being given back.
const LEASES_MAX: usize = 64;

/// The transfer that a client is busy with.
pub(crate) enum Held {
    /// A database: it is cloned, fetched from or pushed to.
    Database(String, DataRemote),
    /// The whole data directory at one moment: it is backed up.
    Image(DataImage),
}

/// Keeps what it holds as long as it is used.
pub(crate) struct Lease {
    pub held: Held,
    used: Mutex<Instant>,
}

/// The leases of a server, by the names that clients know.
#[derive(Default)]
pub(crate) struct Leases(Mutex<HashMap<String, Arc<Lease>>>);

impl Leases {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<Lease>>> {
        self.0.lock().expect("no panic while the lock is held")
    }

    /// Gives a lease of the database `name`.
    ///
    /// # Errors
    /// `Unavailable` if too many are held; as [`DataRemote::new`].
    pub fn of_database(&self, frond: &Frond, name: &str) -> Result<(String, Arc<Lease>), Error> {
        self.check_room()?;
        let remote = DataRemote::new(frond.clone(), name)?;
        Ok(self.add(Held::Database(name.to_owned(), remote)))
    }

    /// Gives a lease of everything.
    ///
    /// # Errors
    /// `Unavailable` if too many are held; as [`DataImage::take`].
    pub fn of_image(&self, frond: &Frond) -> Result<(String, Arc<Lease>), Error> {
        self.check_room()?;
        Ok(self.add(Held::Image(DataImage::take(frond)?)))
    }

    fn check_room(&self) -> Result<(), Error> {
        for idle_seconds in [LEASE_SECONDS, LEASE_CROWDED_SECONDS] {
            self.expire(Duration::from_secs(idle_seconds));
            if self.all().len() < LEASES_MAX {
                return Ok(());
            }
        }
        Err(Error::unavailable("too many transfers at once: try again later"))
    }

    fn add(&self, held: Held) -> (String, Arc<Lease>) {
        let mut own = [0; 16];
        SystemChance.fill(&mut own);
        let name: String = own.iter().map(|byte| format!("{byte:02x}")).collect();
        let lease = Arc::new(Lease { held, used: Mutex::new(Instant::now()) });
        self.all().insert(name.clone(), lease.clone());
        (name, lease)
    }

    /// The lease that a client names, if it lasts; it is used now.
    pub fn find(&self, name: &str) -> Option<Arc<Lease>> {
        let lease = self.all().get(name).cloned()?;
        *lease.used.lock().expect("no panic while the lock is held") = Instant::now();
        Some(lease)
    }

    /// Ends one: its client is done.
    pub fn end(&self, name: &str) {
        let gone = self.all().remove(name);
        // The chunks it holds are released without the lock.
        drop(gone);
    }

    /// Ends leases that were not used for `idle`, and are not just being used.
    pub fn expire(&self, idle: Duration) {
        let gone: Vec<Arc<Lease>> = {
            let mut all = self.all();
            let is_over = |lease: &Arc<Lease>| {
                let used = *lease.used.lock().expect("no panic while the lock is held");
                Arc::strong_count(lease) == 1 && idle <= used.elapsed()
            };
            let names: Vec<String> =
                all.iter().filter(|(_, lease)| is_over(lease)).map(|(n, _)| n.clone()).collect();
            names.iter().filter_map(|name| all.remove(name)).collect()
        };
        // The chunks they hold are released without the lock.
        drop(gone);
    }

    /// Ends all.
    pub fn clear(&self) {
        let all = std::mem::take(&mut *self.all());
        drop(all);
    }
}
