//! Commands that run now: what `currentOp` lists and `killOp` stops.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use frond_db::request_profile::{Live, Plan};
use frond_db::{Error, Interrupt};
use frond_doc::{Document, DocumentBuf};
use frond_query::Code;
use frond_vcs::remote::Moved;
use tokio::sync::Notify;

use crate::common_fields::Common;
use crate::fail_points::TimeLimitFault;
use crate::peer::Peer;

/// The collection that a command names to work on.
pub fn collection_of(command: Document<'_>) -> Option<&str> {
    match command.iter().next()? {
        ("getMore", _) => command.get("collection")?.as_str(),
        ("explain", explained) => collection_of(explained.as_document()?),
        (_, name) => name.as_str(),
    }
}

/// Returns the kind of operation that a command is, in the words of `currentOp` and the profiler.
pub fn kind_of(command: &'static str) -> &'static str {
    match command {
        "find" => "query",
        "getMore" => "getmore",
        "delete" => "remove",
        "insert" | "update" => command,
        _ => "command",
    }
}

/// One command that runs.
#[derive(Debug)]
pub struct Operation {
    /// Names it.
    pub id: i32,
    /// The connection on which it came.
    pub peer: Arc<Peer>,
    /// Whether the client waits for its answer.
    is_awaited: bool,
    /// The command's name.
    pub command: &'static str,
    /// The database's name.
    pub database: String,
    /// The command, as it was sent.
    pub sent: DocumentBuf,
    started: Instant,
    deadline: OnceLock<Instant>,
    /// What a fail point makes of the deadline.
    time_limit_fault: OnceLock<TimeLimitFault>,
    is_killed: AtomicBool,
    is_stopped: AtomicBool,
    progress: Mutex<Option<Progress>>,
    /// Notified when something happens that it waits for.
    wake: Notify,
    /// The microseconds for which it waited without a thread.
    waited_micros: AtomicU64,
    /// The operation that opened the cursor of a `getMore`.
    origin: OnceLock<Arc<Origin>>,
    /// The counts of its work so far.
    pub live: Arc<Live>,
}

/// The command that opened a cursor.
#[derive(Debug)]
pub struct Origin {
    /// As it was sent, without what is long.
    pub command: DocumentBuf,
    /// The plan by which it finds documents.
    pub plan: Plan,
}

/// The progress of a long command.
#[derive(Clone, Debug)]
pub struct Progress {
    /// The progress in words.
    pub message: String,
    /// The number of parts that are done.
    pub done: u64,
    /// The number of all of them.
    pub total: u64,
    /// What a transfer has moved.
    pub moved: Option<Moved>,
}

impl Operation {
    /// The collection that the command names to work on.
    pub fn collection(&self) -> Option<&str> {
        collection_of(self.sent.view())
    }

    /// Returns the namespace it works on: `database.collection`, or `database.$cmd`.
    pub fn namespace(&self) -> String {
        format!("{}.{}", self.database, self.collection().unwrap_or("$cmd"))
    }

    /// Returns the kind of operation, in the words of `currentOp` and the profiler.
    pub fn kind(&self) -> &'static str {
        kind_of(self.command)
    }

    /// Whether the profiler records it: operations on a collection, as MongoDB's does, and our own
    /// commands. Operations that libraries count there are an application's requests.
    pub fn is_profiled(&self) -> bool {
        let is_of_collection = self.collection().is_some_and(|name| !name.starts_with("$cmd"));
        is_of_collection || self.command.starts_with("frond")
    }

    /// Returns when it began.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Returns how long it runs.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns how long it has worked: without what it waited for something to be written.
    pub fn worked(&self) -> Duration {
        let waited = Duration::from_micros(self.waited_micros.load(Ordering::Relaxed));
        self.elapsed().saturating_sub(waited)
    }

    /// Returns how long it may still run, if it says so.
    pub fn time_left(&self) -> Option<Duration> {
        self.deadline.get().map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Has it end after so long, unless it has said when it is to end.
    pub fn limit(&self, time_left: Duration) {
        self.deadline.get_or_init(|| Instant::now() + time_left);
    }

    /// Returns the command that opened the cursor that it reads on.
    pub fn origin(&self) -> Option<&Arc<Origin>> {
        self.origin.get()
    }

    /// Notes what opened the cursor that it reads on.
    pub fn note_origin(&self, origin: &Arc<Origin>) {
        self.origin.get_or_init(|| Arc::clone(origin));
    }

    /// Has it look again, if it waits or is going to.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// Waits for that.
    pub async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Checks whether it must stop, however long it runs.
    ///
    /// # Errors
    /// `Interrupted` (11601) after `killOp`, and when the client is gone; `InterruptedAtShutdown`
    /// (11600) where the server waits no longer.
    pub fn check_killed(&self) -> Result<(), Error> {
        if self.is_killed.load(Ordering::Relaxed) {
            return Err(Error::invalid(Code::Interrupted, "operation was interrupted"));
        }
        if self.is_stopped.load(Ordering::Relaxed) {
            return Err(Error::invalid(Code::InterruptedAtShutdown, "the server stops"));
        }
        Ok(())
    }

    /// Returns how far it is, if it reports that.
    pub fn progress(&self) -> Option<Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reports its progress.
    pub fn show(&self, progress: Progress) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress);
    }

    /// Checks whether it must stop; called between documents.
    ///
    /// # Errors
    /// As [`Operation::check_killed`], and `MaxTimeMSExpired` (50).
    pub fn check(&self) -> Result<(), Error> {
        self.check_killed()?;
        if self.is_out_of_time() {
            return Err(Error::invalid(Code::MaxTimeMSExpired, "operation exceeded time limit"));
        }
        Ok(())
    }

    fn is_out_of_time(&self) -> bool {
        self.deadline.get().is_some_and(|deadline| match self.time_limit_fault.get() {
            None => *deadline <= Instant::now(),
            Some(fault) => *fault == TimeLimitFault::Always,
        })
    }

    /// Has its deadline, if it gets one, end it at once or never.
    pub fn set_time_limit_fault(&self, fault: TimeLimitFault) {
        self.time_limit_fault.get_or_init(|| fault);
    }

    /// Returns the check that ends the waits of its writes.
    pub fn interrupt(self: &Arc<Operation>) -> Interrupt {
        let operation = Arc::clone(self);
        Interrupt::new(move || operation.check())
    }
}

/// The command that reads a cursor now: first the one that opened it, then one `getMore` after the
/// other. So each may be killed, and has its own time. Clones are of the same cursor.
#[derive(Clone, Debug, Default)]
pub struct CurrentOperation(Arc<Mutex<Option<Arc<Operation>>>>);

impl CurrentOperation {
    /// A cursor that `operation` opens.
    pub fn new(operation: &Arc<Operation>) -> CurrentOperation {
        let current = CurrentOperation::default();
        current.set(operation);
        current
    }

    /// The cursor is `operation`'s now.
    pub fn set(&self, operation: &Arc<Operation>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(operation.clone());
    }

    /// Returns the check that stops the cursor's query.
    pub fn interrupt(&self) -> Interrupt {
        let current = self.clone();
        Interrupt::new(move || {
            let operation = current.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
            operation.map_or(Ok(()), |operation| operation.check())
        })
    }
}

/// Running commands are spread over so many lists, so that connections don't meet on one lock.
const LISTS: usize = 32;

/// The commands that run on a server.
#[derive(Default)]
pub struct Operations {
    last_id: AtomicI32,
    /// The lists, each with the operations whose ids lead to it, in no order.
    lists: [Mutex<Vec<Arc<Operation>>>; LISTS],
}

/// A command's entry, removed when dropped.
pub struct Running<'a> {
    /// `None`: it stays.
    operations: Option<&'a Operations>,
    /// The command.
    pub operation: Arc<Operation>,
}

impl Operations {
    /// Enters a command, `sent` to a database, with what it says of its time and its answer.
    pub fn begin(
        &self,
        peer: &Arc<Peer>,
        command: &'static str,
        (database, sent): (&str, &DocumentBuf),
        common: &Common,
    ) -> Running<'_> {
        let started = Instant::now();
        let operation = Arc::new(Operation {
            id: self.last_id.fetch_add(1, Ordering::Relaxed).wrapping_add(1) & i32::MAX,
            peer: Arc::clone(peer),
            is_awaited: common.acknowledged,
            command,
            database: database.to_owned(),
            sent: sent.clone(),
            started,
            deadline: common.time_max.map_or_else(OnceLock::new, |max| (started + max).into()),
            time_limit_fault: OnceLock::new(),
            is_killed: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            progress: Mutex::new(None),
            wake: Notify::new(),
            waited_micros: AtomicU64::new(0),
            origin: OnceLock::new(),
            live: Arc::default(),
        });
        self.list_of(operation.id).push(Arc::clone(&operation));
        Running { operations: Some(self), operation }
    }

    /// Goes on with a command that has waited since `since`.
    pub fn resume(&self, operation: &Arc<Operation>, since: Instant) -> Running<'_> {
        let micros = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
        operation.waited_micros.fetch_add(micros, Ordering::Relaxed);
        Running { operations: Some(self), operation: Arc::clone(operation) }
    }

    /// Interrupts a command at its next check.
    pub fn kill(&self, id: i32) {
        for operation in self.list_of(id).iter().filter(|operation| operation.id == id) {
            operation.is_killed.store(true, Ordering::Relaxed);
            operation.wake();
        }
    }

    /// Interrupts the command of a lost connection, unless its client never waited for an answer.
    pub fn abandon(&self, connection: i32) {
        for list in &self.lists {
            let lost = |operation: &&Arc<Operation>| operation.peer.id == connection;
            for operation in lock(list).iter().filter(lost).filter(|lost| lost.is_awaited) {
                operation.is_killed.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Interrupts all commands at their next check, because the server stops.
    pub fn stop_all(&self) {
        for operation in self.list() {
            operation.is_stopped.store(true, Ordering::Relaxed);
            operation.wake();
        }
    }

    /// Whether none runs.
    pub fn is_empty(&self) -> bool {
        self.lists.iter().all(|list| lock(list).is_empty())
    }

    /// All that run, the oldest first.
    pub fn list(&self) -> Vec<Arc<Operation>> {
        let mut all = Vec::new();
        for list in &self.lists {
            all.extend(lock(list).iter().cloned());
        }
        all.sort_unstable_by_key(|operation| (operation.started, operation.id));
        all
    }

    fn list_of(&self, id: i32) -> MutexGuard<'_, Vec<Arc<Operation>>> {
        lock(&self.lists[id.unsigned_abs() as usize % LISTS])
    }
}

fn lock(list: &Mutex<Vec<Arc<Operation>>>) -> MutexGuard<'_, Vec<Arc<Operation>>> {
    // A list is whole after each statement, so a panic elsewhere can't have broken it.
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Running<'_> {
    /// Leaves it entered: it waits, and goes on later.
    pub fn keep(mut self) {
        self.operations = None;
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let Some(operations) = self.operations else { return };
        let mut list = operations.list_of(self.operation.id);
        if let Some(place) = list.iter().position(|other| Arc::ptr_eq(other, &self.operation)) {
            list.swap_remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use super::*;

    fn peer(id: i32) -> Arc<Peer> {
        Arc::new(Peer::new(id, SocketAddr::from((Ipv4Addr::LOCALHOST, 0))))
    }

    #[test]
    fn operations_end_when_killed_late_or_dropped() {
        let operations = Operations::default();
        let sent = DocumentBuf::empty();
        let test = ("test", &sent);
        let code = |running: &Running<'_>| running.operation.check().map_err(|e| e.code.number());
        let hasty = Common { time_max: Some(Duration::ZERO), ..Common::default() };
        let slow = operations.begin(&peer(1), "find", test, &hasty);
        assert_eq!(code(&slow), Err(50));
        let running = operations.begin(&peer(1), "find", test, &Common::default());
        assert_eq!(code(&running), Ok(()));
        operations.kill(running.operation.id + 1);
        assert_eq!(code(&running), Ok(()));
        operations.kill(running.operation.id);
        assert_eq!(code(&running), Err(11601));
        assert_eq!(operations.list().len(), 2);
        drop((slow, running));
        assert_eq!(operations.list().len(), 0);
        let awaited = operations.begin(&peer(7), "insert", test, &Common::default());
        let unacknowledged = Common { acknowledged: false, ..Common::default() };
        let unanswered = operations.begin(&peer(7), "insert", test, &unacknowledged);
        operations.abandon(8);
        assert_eq!((code(&awaited), code(&unanswered)), (Ok(()), Ok(())));
        operations.abandon(7);
        assert_eq!((code(&awaited), code(&unanswered)), (Err(11601), Ok(())));
    }
}
