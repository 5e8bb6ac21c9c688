//! The users who have logged in to the console, each by a cookie.
//!
//! The cookie holds 32 random bytes, of which the server keeps the hash: it is for this server's
//! port (browsers send cookies to all ports of a host), out of scripts' reach (`HttpOnly`), and
//! never sent where another site's page asks (`SameSite=Strict`).
//!
//! *Invariants*
//! 1. A login ends [`IDLE_MAX`] after its last request and [`AGE_MAX`] after it began, and with the
//!    server.
//! 2. None is found whose user is gone, or has another password than the one that was proved:
//!    the caller of [`Logins::find`] judges that.
//! 3. There are [`LOGINS_MAX`] at most: one more ends the one that was used the longest ago.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use data_encoding::BASE64URL_NOPAD;
use frond_db::Error;
use hyper::HeaderMap;
use hyper::header::COOKIE;
use ring::digest;

use crate::peer::Login;
use crate::scram::{Credentials, Mechanism, random_bytes};

const TOKEN_BYTES: usize = 32;
/// The time without a request after which a login ends.
const IDLE_MAX: Duration = Duration::from_secs(30 * 60);
/// The lifetime of a login.
const AGE_MAX: Duration = Duration::from_secs(12 * 60 * 60);
const LOGINS_MAX: usize = 1_000;

/// The hash of what a cookie holds.
type Token = [u8; 32];

/// The user who has logged in.
pub(super) struct Logins {
    cookie: String,
    attributes: &'static str,
    known: Mutex<HashMap<Token, Entry>>,
}

/// A user who has proved to know its password, and the credentials that were checked.
pub(super) struct VerifiedLogin {
    /// The user.
    pub login: Arc<Login>,
    /// The credentials when the password was proved: another password has others, and so does the
    /// same one if it was set again.
    pub credentials: Vec<(Mechanism, Credentials)>,
}

struct Entry {
    proved: VerifiedLogin,
    begun: Instant,
    used: Instant,
}

impl Logins {
    /// Has no logins yet, at a console on this port.
    pub fn new(port: u16, is_tls: bool) -> Logins {
        let attributes = match is_tls {
            true => "Path=/; HttpOnly; SameSite=Strict; Secure",
            false => "Path=/; HttpOnly; SameSite=Strict",
        };
        let cookie = format!("frond_console_{port}");
        Logins { cookie, attributes, known: Mutex::default() }
    }

    /// Enters the user who has proved the password; returns the value of `set-cookie`.
    ///
    /// # Errors
    /// As [`random_bytes`].
    pub fn enter(&self, proved: VerifiedLogin, now: Instant) -> Result<String, Error> {
        let bytes = random_bytes(TOKEN_BYTES)?;
        let mut known = self.lock();
        known.retain(|_, entry| !entry.is_over(now));
        if known.len() >= LOGINS_MAX {
            let oldest = known.iter().min_by_key(|(_, entry)| entry.used).map(|(token, _)| *token);
            oldest.and_then(|token| known.remove(&token));
        }
        known.insert(hash(&bytes), Entry { proved, begun: now, used: now });
        Ok(format!("{}={}; {}", self.cookie, BASE64URL_NOPAD.encode(&bytes), self.attributes))
    }

    /// Returns the login that a request's cookie belongs to; one that `is_valid` refuses ends.
    pub fn find(
        &self,
        headers: &HeaderMap,
        now: Instant,
        is_valid: impl FnOnce(&VerifiedLogin) -> bool,
    ) -> Option<Arc<Login>> {
        let token = self.token(headers)?;
        let mut known = self.lock();
        let entry = known.get_mut(&token)?;
        if entry.is_over(now) || !is_valid(&entry.proved) {
            known.remove(&token);
            return None;
        }
        entry.used = now;
        Some(Arc::clone(&entry.proved.login))
    }

    /// Ends a login; returns the value of `set-cookie` that has the browser forget it.
    pub fn leave(&self, headers: &HeaderMap) -> String {
        if let Some(token) = self.token(headers) {
            self.lock().remove(&token);
        }
        format!("{}=; Max-Age=0; {}", self.cookie, self.attributes)
    }

    fn token(&self, headers: &HeaderMap) -> Option<Token> {
        let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
        let value = lines.flat_map(|line| line.split(';')).find_map(|pair| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == self.cookie).then_some(value)
        })?;
        BASE64URL_NOPAD.decode(value.as_bytes()).ok().map(|bytes| hash(&bytes))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Token, Entry>> {
        // The table is whole after each statement.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.used) >= IDLE_MAX
            || now.saturating_duration_since(self.begun) >= AGE_MAX
    }
}

fn hash(bytes: &[u8]) -> Token {
    let mut token = [0; 32];
    token.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    token
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::UserName;
    use crate::common_fields::UserDigest;

    fn login(name: &str) -> VerifiedLogin {
        let user = UserName { database: "admin".to_owned(), user: name.to_owned() };
        let login = Arc::new(Login { digest: UserDigest::of(name), user, id: [1; 16] });
        VerifiedLogin { login, credentials: Vec::new() }
    }

    fn find(logins: &Logins, headers: &HeaderMap, now: Instant) -> Option<Arc<Login>> {
        logins.find(headers, now, |_| true)
    }

    fn with_cookie(set: &str) -> HeaderMap {
        let pair = set.split(';').next().expect("a pair");
        let mut headers = HeaderMap::new();
        let value = format!("other=1; {pair}").parse().expect("a value");
        headers.insert(COOKIE, value);
        headers
    }

    #[test]
    fn logins_end() {
        let (logins, start) = (Logins::new(1, false), Instant::now());
        let set = logins.enter(login("ann"), start).expect("random bytes");
        assert!(set.contains("HttpOnly; SameSite=Strict") && !set.contains("Secure"), "{set}");
        let cookie = with_cookie(&set);
        let mut now = start;
        while now + IDLE_MAX / 2 < start + AGE_MAX {
            now += IDLE_MAX / 2;
            let found = find(&logins, &cookie, now).expect("it is used");
            assert_eq!(found.user.user, "ann");
        }
        assert!(find(&logins, &cookie, start + AGE_MAX).is_none());
        let set = logins.enter(login("ann"), start).expect("random bytes");
        assert!(find(&logins, &with_cookie(&set), start + IDLE_MAX).is_none());
        let set = logins.enter(login("ann"), start).expect("random bytes");
        assert!(logins.leave(&with_cookie(&set)).contains("Max-Age=0"));
        assert!(find(&logins, &with_cookie(&set), start).is_none());
        let set = logins.enter(login("ann"), start).expect("random bytes");
        assert!(logins.find(&with_cookie(&set), start, |_| false).is_none());
        assert!(find(&logins, &with_cookie(&set), start).is_none(), "it has ended");
    }

    #[test]
    fn cookies_of_others_are_none() {
        let (logins, now) = (Logins::new(1, true), Instant::now());
        let set = logins.enter(login("ann"), now).expect("random bytes");
        assert!(set.ends_with("; Secure"), "{set}");
        let of_port = set.replace("frond_console_1", "frond_console_2");
        assert!(find(&logins, &with_cookie(&of_port), now).is_none());
        for wrong in ["frond_console_1=", "frond_console_1=AAAA", "frond_console_1=%", "x"] {
            assert!(find(&logins, &with_cookie(wrong), now).is_none(), "{wrong}");
        }
        assert!(find(&logins, &HeaderMap::new(), now).is_none());
    }

    #[test]
    fn so_many_are_remembered_and_no_more() {
        let (logins, start) = (Logins::new(1, false), Instant::now());
        let mut first = None;
        for number in 0..=LOGINS_MAX as u64 {
            let set = logins.enter(login("ann"), start + Duration::from_millis(number));
            first.get_or_insert(set.expect("random bytes"));
        }
        assert_eq!(logins.lock().len(), LOGINS_MAX);
        let first = first.expect("there were some");
        assert!(find(&logins, &with_cookie(&first), start).is_none());
    }
}
