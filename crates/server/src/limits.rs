//! Every limit of the server, in one table.
//!
//! A client can make the server hold at most one message that it sent whole (48 MB), the reply to
//! one command (48 MB), and its cursors, each a snapshot and one document. The server as a whole is
//! bounded by its connections ([`CONNECTIONS_LIMIT`]) times four times [`FREE_BYTES`] (a message
//! and an answer, and each of them compressed), [`MESSAGES_BYTES_MAX`] and [`ANSWERS_BYTES_MAX`],
//! and by [`CURSORS_MAX`]; its files for clients that stall, and those for what cursors keep, by
//! [`STALLED_BYTES_MAX`] each.

use std::time::Duration;

/// Connections at one time, by default. More are closed as they come in.
pub const CONNECTIONS_MAX: usize = 2_000;
/// The greatest limit that may be set: an idle connection is a task, and takes no thread.
pub const CONNECTIONS_LIMIT: usize = 20_000;

/// Collections whose use is counted one by one (`top`): a kilobyte each, or two.
pub const NAMESPACES_COUNTED_MAX: usize = 10_000;

/// Connections that wait to be taken. With the usual 128, hundreds of clients that come at once are
/// asked to come again, which the system does after a second or three.
pub const CONNECTIONS_WAITING_MAX: u32 = 4_096;

/// Threads that do nothing but what comes up from time to time, beside those that talk to clients.
pub const THREADS_EXTRA: usize = 16;

/// Databases whose automatic commits are made at one time: each takes one more thread.
pub const AUTOMATIC_COMMITS_MAX: usize = 16;

/// The time that a client may say nothing inside a message before the thread that serves it leaves
/// it; between messages a thread leaves at once ([`crate::workers`]). With hundreds of clients more
/// than the processors can serve, each is silent for a good part of a second.
pub const QUIET: Duration = Duration::from_secs(2);
/// Or so long, where more clients are connected than may have a thread.
pub const QUIET_CROWDED: Duration = Duration::from_millis(20);
/// Or hardly at all, once it was silent for so long inside the same message: hundreds of clients
/// that send a byte now and then would have a thread each.
pub const QUIET_AGAIN: Duration = Duration::from_millis(1);

/// The time that a message that has begun may make no progress, either way, before its connection
/// is closed. Between messages a connection may be idle for as long as it likes.
pub const STALL_MAX: Duration = Duration::from_secs(60);

/// The interval of checks whether a client whose command runs is still there.
pub const GONE_STEP: Duration = Duration::from_secs(1);

/// The interval at which a stalled connection is checked.
pub const STALL_STEP: Duration = Duration::from_secs(1);

/// Returns how long a message or an answer may take that holds so much memory for which another
/// client waits: two megabytes a second, and ten seconds more for a client that the system keeps
/// from running, are within reach of any client on this machine.
pub fn progress_time(bytes: usize) -> Duration {
    Duration::from_secs(10) + Duration::from_millis(bytes as u64 / 2_000)
}

/// Returns how long it may take before what it holds goes to a file, and the memory to the client
/// that waits. That costs its own client a detour and nothing else, so it may be soon.
pub fn stall_time(bytes: usize) -> Duration {
    Duration::from_secs(1) + Duration::from_millis(bytes as u64 / 20_000)
}

/// The bytes of all such files, and of all of [`crate::kept_documents`].
pub const STALLED_BYTES_MAX: usize = 1 << 30;

/// The bytes that a message or an answer may hold without a share of a budget.
pub const FREE_BYTES: usize = 64 << 10;

/// The bytes that larger messages may hold together, from when they come in until they are
/// answered.
pub const MESSAGES_BYTES_MAX: usize = 256 << 20;

/// The bytes that larger answers may hold together, from when they are made until the client has
/// them.
pub const ANSWERS_BYTES_MAX: usize = 256 << 20;

/// The part of the budget of all memory that messages and answers may each hold, within these
/// bounds.
pub const MESSAGES_SHARE: u64 = 8;
/// As [`MESSAGES_SHARE`]: a batch of an answer.
pub const MESSAGES_BYTES_MIN: usize = BATCH_BYTES_MAX;
/// As [`MESSAGES_SHARE`], for what documents hold that cursors keep.
pub const CURSORS_SHARE: u64 = 16;

/// Memory for an answer is taken in steps of this.
pub const ROOM_STEP_BYTES: usize = 1 << 20;

/// The bytes of all documents that cursors have read and not answered with: those above
/// [`FREE_BYTES`]. Beyond it, such a document goes to a file.
pub const CURSORS_BYTES_MAX: usize = 128 << 20;

/// Memory for a message is taken in steps of at least this, as its bytes come in.
pub const READ_STEP_BYTES: usize = 64 << 10;

/// Memory into which a thread reads what comes in.
pub const SCRATCH_BYTES: usize = 16 << 10;

/// Memory into which a thread reads what comes in by TLS: two of its records.
pub const CIPHERTEXT_BYTES: usize = 32 << 10;

/// The time that a TLS handshake may take.
pub const HANDSHAKE_MAX: Duration = Duration::from_secs(15);

/// The interval of checks whether so much came in that TLS can be distinguished from a message.
pub const HANDSHAKE_STEP: Duration = Duration::from_millis(10);

/// The time that a stopping server waits for the commands that are running.
pub const STOP_WAIT_MAX: Duration = Duration::from_secs(10);
/// The time that commands that run may go on after `shutdown`, if it doesn't say: as in MongoDB.
pub const SHUTDOWN_DEFAULT: Duration = Duration::from_secs(15);
/// As [`SHUTDOWN_DEFAULT`], if it says.
pub const SHUTDOWN_MAX: Duration = Duration::from_secs(24 * 3_600);
/// The interval of checks whether anything runs yet.
pub const DRAIN_STEP: Duration = Duration::from_millis(5);
/// The interval at which a stopping server ends the transactions whose clients can't go on with
/// them.
pub const STOP_SWEEP_INTERVAL: Duration = Duration::from_millis(100);

/// Open cursors, of all clients.
pub const CURSORS_MAX: usize = 10_000;
/// The time that a `getMore` of an awaiting cursor waits, if it doesn't say, as in MongoDB.
pub const AWAIT_DEFAULT: Duration = Duration::from_secs(1);

/// Open cursors of one session, and of those that one connection opened: a client that forgets to
/// close its own leaves the others theirs.
pub const CURSORS_OF_CLIENT_MAX: usize = 1_000;

/// From so many open cursors on, the rest is left to those who have few.
pub const CURSORS_CROWDED: usize = CURSORS_MAX / 4 * 3;

/// The open cursors with which a user, or an address, has many then.
pub const CURSORS_SHARE_MAX: usize = CURSORS_MAX / 2;

/// A cursor that was not used for so long is closed, unless it asked for no timeout.
pub const CURSOR_IDLE_MAX: Duration = Duration::from_secs(600);

/// A client whose connection has been closed for so long, and that didn't use a cursor or a
/// transaction over another one since, has none of them where a limit would keep others from
/// theirs. As long as a driver, after it has closed its connections, takes to look for the server
/// again (`heartbeatFrequencyMS`).
pub const CLIENT_GONE_AFTER: Duration = Duration::from_secs(10);

/// The interval at which idle cursors are looked for.
pub const CURSOR_SWEEP_INTERVAL: Duration = Duration::from_secs(30);

/// Documents of a first batch whose request names no batch size.
pub const FIRST_BATCH_DOCUMENTS: u64 = 101;

/// Bytes of documents in one batch, unless a single document is larger.
pub const BATCH_BYTES_MAX: usize = 16 << 20;

/// Largest document that a client may store, by default: MongoDB's.
pub const DOCUMENT_BYTES_MAX: usize = frond_doc::document::DOCUMENT_BYTES_MAX;

/// The greatest value that may be set: a message with a command around one such document, and a
/// reply with a batch of one, still fit.
pub const DOCUMENT_BYTES_LIMIT: usize = crate::wire::MESSAGE_BYTES_MAX - (64 << 10);

/// The bytes that a command may have beyond the documents in it.
pub const COMMAND_BYTES_MARGIN: u64 = 16 << 10;

/// Largest reply: a message less its header and flags.
pub const REPLY_BYTES_MAX: usize = crate::wire::MESSAGE_BYTES_MAX - 1024;

/// Statements of one write command.
pub const WRITE_BATCH_MAX: usize = crate::wire::message::DOCUMENTS_MAX;

/// Fields of one command or statement: none has more than thirty.
pub const FIELDS_MAX: usize = 256;

/// Sessions that are known, of all clients: as many as MongoDB allows.
pub const SESSIONS_MAX: usize = 1_000_000;

/// A session that was not used for so long is forgotten, its cursors and its transaction with it.
pub const SESSION_IDLE_MAX: Duration = Duration::from_secs(SESSION_TIMEOUT_MINUTES as u64 * 60);

/// The time for which a moment at which a client has read can be read again: MongoDB's
/// `minSnapshotHistoryWindowInSeconds`.
pub const SNAPSHOT_WINDOW: Duration = Duration::from_secs(300);

/// The most seconds that may be set for it: a day. The budget of snapshots bounds what it costs.
pub const SNAPSHOT_WINDOW_MAX: u64 = 86_400;

/// Transactions in progress, of all clients. Each holds a snapshot.
pub const OPEN_TRANSACTIONS_MAX: usize = 1_000;

/// The bytes that the writes of all transactions in progress may take together.
pub const OPEN_TRANSACTIONS_BYTES_MAX: u64 = 1 << 30;

/// A transaction that is open for so long is aborted: MongoDB's `transactionLifetimeLimitSeconds`.
pub const TRANSACTION_LIFETIME_MAX: Duration = Duration::from_secs(60);

/// The interval at which transactions that are open for too long are looked for.
pub const TRANSACTION_SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The interval at which policies are asked for work to do.
pub const POLICY_INTERVAL: Duration = Duration::from_secs(1);

/// The interval at which old sessions, and the records of their writes, are looked for.
pub const SESSION_SWEEP_INTERVAL: Duration = Duration::from_secs(300);

/// The interval of checks whether the server's certificate ends soon.
pub const CERTIFICATE_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// The seconds after which documents that have expired are looked for again, unless
/// `ttlMonitorSleepSecs` says otherwise: as MongoDB does.
pub const EXPIRE_SECONDS: u32 = 60;

/// The longest that a `hello` waits for news, whatever the client asks for.
pub const HELLO_WAIT_MAX: Duration = Duration::from_secs(600);

/// Minutes that a session lives without being used: what `hello` announces.
pub const SESSION_TIMEOUT_MINUTES: i32 = 30;
