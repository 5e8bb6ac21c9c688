//! One client's connection, as commands see it: where the client is, its user, its rights.
//!
//! *Thread safety*: one thread at a time runs commands of a connection; others look at it
//! (`currentOp`). So the locks are never waited for.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use frond_db::{Error, Frond};
use frond_doc::{Document, DocumentBuf, ValueBuf};
use frond_query::Code;

use crate::access::{Accounts, Endpoints, Grants, RoleName, User, UserName, user_roles_value};
use crate::common_fields::UserDigest;
use crate::limits::CLIENT_GONE_AFTER;
use crate::scram::Exchange;

/// The most bytes that are kept of a client's description of itself: MongoDB's limit, too.
const CLIENT_BYTES_MAX: usize = 512;

/// Whether a connection is still open, for what its client left open and may go on with over
/// another one: cursors, transactions.
#[derive(Debug, Default)]
pub struct Presence {
    closed: OnceLock<Instant>,
}

impl Presence {
    /// Notes that the connection was closed.
    pub fn end(&self, now: Instant) {
        // Nothing opens it again.
        let _ = self.closed.set(now);
    }

    /// Whether the client is gone: the connection over which it used something last has been closed
    /// for [`CLIENT_GONE_AFTER`].
    pub fn is_gone(&self, now: Instant) -> bool {
        let closed = self.closed.get();
        closed.is_some_and(|closed| now.duration_since(*closed) >= CLIENT_GONE_AFTER)
    }
}

/// One client's connection.
pub struct Peer {
    /// Counted from 1.
    pub id: i32,
    /// Whether it is still open.
    pub presence: Arc<Presence>,
    /// The client's address.
    pub address: SocketAddr,
    /// The address at which it reached the server.
    local_address: OnceLock<IpAddr>,
    /// The subject of the certificate that it came with.
    subject: OnceLock<String>,
    state: Mutex<State>,
    /// Whether there is a login in the state, so that commands of a client that hasn't logged in
    /// need no lock.
    is_logged_in: AtomicBool,
    /// Whether the connection is to be closed instead of an answer.
    is_hung_up: AtomicBool,
    /// Whether the log has said that it was accepted.
    is_logged: AtomicBool,
    /// The time that the answer that is made now waits, in milliseconds.
    delay_millis: AtomicU64,
}

#[derive(Default)]
struct State {
    /// `client` of the first `hello`.
    client: Option<DocumentBuf>,
    /// A login that is under way.
    conversation: Option<Conversation>,
    conversations: i32,
    login: Option<Arc<Login>>,
    rights: Option<Arc<Rights>>,
}

/// The user who has logged in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Login {
    /// The user.
    pub user: UserName,
    /// The user's id: a user made later under the same name has another.
    pub id: [u8; 16],
    /// The digest by which sessions are theirs.
    pub digest: UserDigest,
}

/// The rights of the user who has logged in.
#[derive(Debug)]
pub struct Rights {
    /// The user.
    pub login: Arc<Login>,
    /// The roles, with those that they include.
    pub roles: Vec<RoleName>,
    /// The same as expressions see them.
    pub user_roles: Arc<ValueBuf>,
    /// What they allow.
    pub grants: Grants,
    epoch: u64,
}

/// A login that is under way.
pub struct Conversation {
    /// Names it.
    pub id: i32,
    /// The user who logs in.
    pub user: UserName,
    /// The mechanism.
    pub mechanism: &'static str,
    /// Whether it began within a `hello`.
    pub is_speculative: bool,
    /// The time when it began.
    pub begun: Instant,
    /// Whether a last, empty message is left out.
    pub skips_empty: bool,
    /// The stage of the login.
    pub stage: Stage,
}

/// The stage of a login.
pub enum Stage {
    /// The proof is still to come; the user, if there is one.
    Proof(Box<Exchange>, Option<[u8; 16]>),
    /// The user is proved; an empty message is still to come.
    VerifiedLogin([u8; 16]),
}

impl Peer {
    /// A connection on which nothing was said.
    pub fn new(id: i32, address: SocketAddr) -> Peer {
        Peer {
            id,
            presence: Arc::default(),
            address,
            local_address: OnceLock::new(),
            subject: OnceLock::new(),
            state: Mutex::default(),
            is_logged_in: AtomicBool::new(false),
            is_hung_up: AtomicBool::new(false),
            is_logged: AtomicBool::new(false),
            delay_millis: AtomicU64::new(0),
        }
    }

    /// None: what the server does by itself, as if from a connection 0.
    pub fn own() -> Peer {
        Peer::new(0, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
    }

    /// Whether that is so.
    pub fn is_own(&self) -> bool {
        self.id == 0
    }

    /// Notes at which of the server's addresses it came.
    pub fn note_local_address(&self, address: IpAddr) {
        // It came once.
        let _ = self.local_address.set(address);
    }

    /// Returns the addresses of both ends; none of a client that came by no network (a Unix
    /// socket), whose address has no port.
    pub fn ends(&self) -> Endpoints {
        let is_remote = self.address.port() != 0;
        let client = is_remote.then(|| self.address.ip().to_canonical());
        Endpoints { client, server: self.local_address.get().map(IpAddr::to_canonical) }
    }

    /// Notes whose the certificate is that TLS has verified.
    pub fn note_subject(&self, subject: String) {
        // There is one handshake.
        let _ = self.subject.set(subject);
    }

    /// Returns the subject of the certificate that it came with, if it came with one.
    pub fn subject(&self) -> Option<&str> {
        self.subject.get().map(String::as_str)
    }

    /// Notes the client's description of itself; only the first time counts. Returns whether it
    /// did.
    pub fn note_client(&self, client: Document<'_>) -> bool {
        let mut state = self.lock();
        let counts = state.client.is_none() && client.as_bytes().len() <= CLIENT_BYTES_MAX;
        if counts {
            state.client = Some(client.to_buf());
        }
        counts
    }

    /// Returns the client's description of itself.
    pub fn client(&self) -> Option<DocumentBuf> {
        self.lock().client.clone()
    }

    /// The name that the client's application has given itself.
    pub fn app_name(&self) -> Option<String> {
        let state = self.lock();
        let application = state.client.as_ref()?.get("application")?.as_document()?;
        application.get("name")?.as_str().map(str::to_owned)
    }

    /// Begins a login; one that is under way is given up. Returns its id.
    pub fn begin_login(&self, conversation: impl FnOnce(i32) -> Conversation) -> i32 {
        let mut state = self.lock();
        state.conversations = state.conversations.wrapping_add(1);
        let id = state.conversations;
        state.conversation = Some(conversation(id));
        id
    }

    /// Takes the login that is under way, to go on with it.
    pub fn take_conversation(&self) -> Option<Conversation> {
        self.lock().conversation.take()
    }

    /// Puts it back.
    pub fn put_conversation(&self, conversation: Conversation) {
        self.lock().conversation = Some(conversation);
    }

    /// Logs a user in. Doing so again is no error.
    ///
    /// # Errors
    /// Code 5626701 if another user is logged in.
    pub fn log_in(&self, user: UserName, id: [u8; 16]) -> Result<(), Error> {
        let mut state = self.lock();
        if let Some(login) = &state.login
            && login.user != user
        {
            let message = format!(
                "Each client connection may only be authenticated once. Previously authenticated \
                 as: {}",
                login.user
            );
            return Err(Error::invalid(Code::Location(5_626_701), message));
        }
        let digest = UserDigest::of(&user.to_string());
        state.login = Some(Arc::new(Login { user, id, digest }));
        state.rights = None;
        self.is_logged_in.store(true, Ordering::Release);
        Ok(())
    }

    /// Logs out.
    pub fn log_out(&self) {
        let mut state = self.lock();
        (state.login, state.rights, state.conversation) = (None, None, None);
        self.is_logged_in.store(false, Ordering::Release);
    }

    /// The user who has logged in.
    pub fn login(&self) -> Option<Arc<Login>> {
        if !self.is_logged_in.load(Ordering::Acquire) {
            return None;
        }
        self.lock().login.clone()
    }

    /// Returns the user that its sessions and cursors belong to.
    pub fn digest(&self) -> UserDigest {
        if !self.is_logged_in.load(Ordering::Acquire) {
            return UserDigest::ANONYMOUS;
        }
        self.lock().login.as_ref().map_or(UserDigest::ANONYMOUS, |login| login.digest)
    }

    /// The user who has logged in and what they may do now: users that were dropped, or may no more
    /// log in from there, are logged out by this.
    ///
    /// # Errors
    /// An error of reading the users.
    pub fn rights(&self, accounts: &Accounts, frond: &Frond) -> Result<Option<Arc<Rights>>, Error> {
        if !self.is_logged_in.load(Ordering::Acquire) {
            return Ok(None);
        }
        let mut state = self.lock();
        // Before the directory is read: what changes meanwhile is seen the next time.
        let epoch = accounts.epoch();
        if let Some(rights) = state.rights.as_ref().filter(|rights| rights.epoch == epoch) {
            return Ok(Some(Arc::clone(rights)));
        }
        let Some(login) = state.login.clone() else { return Ok(None) };
        let directory = accounts.directory(frond)?;
        let may_stay =
            |user: &&User| user.id == login.id && directory.may_log_in(user, self.ends());
        let Some(user) = directory.users.get(&login.user).filter(may_stay) else {
            (state.login, state.rights) = (None, None);
            self.is_logged_in.store(false, Ordering::Release);
            return Ok(None);
        };
        let roles = directory.with_included(&user.roles);
        let grants = directory.grants_of(&user.roles);
        let user_roles = Arc::new(user_roles_value(&roles));
        let rights = Arc::new(Rights { login, roles, user_roles, grants, epoch });
        state.rights = Some(Arc::clone(&rights));
        Ok(Some(rights))
    }

    /// Has the answer that is made now wait.
    pub fn delay_answer(&self, delay: Duration) {
        let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.delay_millis.store(millis, Ordering::Relaxed);
    }

    /// Returns how long the answer that was made waits.
    pub fn take_delay(&self) -> Duration {
        if self.delay_millis.load(Ordering::Relaxed) == 0 {
            return Duration::ZERO;
        }
        Duration::from_millis(self.delay_millis.swap(0, Ordering::Relaxed))
    }

    /// Has the connection closed instead of the answer that is made now.
    pub fn hang_up(&self) {
        self.is_hung_up.store(true, Ordering::Relaxed);
    }

    /// Whether the connection is to be closed instead of the answer that was made.
    pub fn is_hung_up(&self) -> bool {
        self.is_hung_up.load(Ordering::Relaxed)
    }

    /// Notes that the log has said that the connection was accepted.
    pub fn set_logged(&self) {
        self.is_logged.store(true, Ordering::Relaxed);
    }

    /// Whether the log has said that the connection was accepted.
    pub fn is_logged(&self) -> bool {
        self.is_logged.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole after each statement, so a panic elsewhere can't have broken it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "connection {} of {}", self.id, self.address)
    }
}
