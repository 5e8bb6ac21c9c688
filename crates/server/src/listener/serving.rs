//! The work of a server on its runtime: it takes connections until it is asked to stop, then waits
//! for running work to end.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::MissedTickBehavior;

use super::accept::{ACCEPT_RETRY, accept, accept_tcp, accept_unix};
use crate::connection::socket::IdleSocket;
use crate::console::{self, ConsoleOptions};
use crate::limits::{
    CURSOR_SWEEP_INTERVAL, DRAIN_STEP, GONE_STEP, STALL_MAX, STOP_SWEEP_INTERVAL, STOP_WAIT_MAX,
};
use crate::log;
use crate::metrics;
use crate::shared::Shared;
use crate::supervisor::Supervisor;
use crate::sweep;
use crate::unix_socket::UnixSocket;
use crate::workers::STALLED;

const _: () = assert!(STOP_WAIT_MAX.as_secs() < STALL_MAX.as_secs());

/// The address that stands for clients of the Unix socket: they are on this machine.
pub(super) const UNIX_PEER: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));

/// The parts of a server that work on its runtime.
pub(super) struct Serving {
    pub listeners: Vec<TcpListener>,
    pub unix_socket: Option<UnixSocket>,
    pub metrics: Option<TcpListener>,
    pub console: Option<(TcpListener, ConsoleOptions)>,
    pub supervisor: Option<Supervisor>,
    pub shared: Arc<Shared>,
    pub drain_requested: watch::Receiver<Option<Duration>>,
    /// Signals to connections that the drain is over.
    pub stop: watch::Sender<bool>,
    pub memory_bytes: Option<u64>,
}

impl Serving {
    /// Runs until the server is asked to stop, and running work has ended.
    pub async fn serve(mut self) {
        let mut cursors = tokio::time::interval(CURSOR_SWEEP_INTERVAL);
        let sweeper = sweep::start(&self.shared, &self.stop);
        // A supervisor, or the parent of `--fork`, may read the log as soon as it is notified.
        log::serves(&self.shared.log, self.shared.address);
        if self.shared.replica.is_none() && !self.shared.awaits_set() {
            log::leads(&self.shared.log);
        }
        let tasks = self.start_tasks();
        let mut connections = JoinSet::new();
        let time_max = loop {
            tokio::select! {
                // The sender is in what is shared.
                drain_requested = self.drain_requested.wait_for(Option::is_some) => {
                    break drain_requested.ok().and_then(|time_max| *time_max).unwrap_or_default();
                }
                accepted = accept_tcp(&self.listeners) => match accepted {
                    Ok((stream, address)) => {
                        // An answer goes out in one piece; waiting to fill a packet would only
                        // delay it.
                        let _ = stream.set_nodelay(true);
                        let socket = IdleSocket::Tcp(stream);
                        accept(&mut connections, &self.shared, &self.stop, socket, address);
                    }
                    // Out of file descriptors, mostly: others will be closed, try again.
                    Err(_) => tokio::time::sleep(ACCEPT_RETRY).await,
                },
                accepted = accept_unix(self.unix_socket.as_ref()) => match accepted {
                    Ok(stream) => {
                        let socket = IdleSocket::Unix(stream);
                        accept(&mut connections, &self.shared, &self.stop, socket, UNIX_PEER);
                    }
                    Err(_) => tokio::time::sleep(ACCEPT_RETRY).await,
                },
                _ = cursors.tick() => self.shared.expire_cursors(),
                Some(_) = connections.join_next() => {}
            }
        };
        if let Some(supervisor) = &self.supervisor {
            let _ = supervisor.notify("STOPPING=1\nSTATUS=answers what runs");
        }
        drop((self.listeners, self.unix_socket));
        if !drain(&mut connections, &self.shared, time_max).await {
            self.shared.operations.stop_all();
        }
        self.stop.send_replace(true);
        drop(sweeper.await);
        if !finish(&mut connections, &self.shared).await {
            // A client would rather hear that than be cut off.
            self.shared.operations.stop_all();
            finish(&mut connections, &self.shared).await;
        }
        // Connections that have not finished by then are cut off when the set is dropped.
        for task in tasks {
            task.abort();
            drop(task.await);
        }
    }

    /// Starts what runs beside the connections, and notifies a supervisor that clients may come.
    fn start_tasks(&mut self) -> Vec<JoinHandle<()>> {
        let shared = || Arc::clone(&self.shared);
        let mut tasks = vec![
            tokio::spawn(look_after_threads(shared())),
            tokio::spawn(look_after_clients(shared())),
        ];
        if let Some(listener) = self.metrics.take() {
            tasks.push(tokio::spawn(metrics::serve(listener, shared())));
        }
        if let Some((listener, options)) = self.console.take() {
            tasks.push(tokio::spawn(console::serve(listener, shared(), options)));
        }
        if let Some(supervisor) = &self.supervisor {
            // A client that doesn't listen gets no answer.
            let _ = supervisor.notify("READY=1\nSTATUS=serves clients");
            tasks.push(tokio::spawn(keep_awake(supervisor.clone(), shared())));
        }
        tasks
    }
}

/// Notifies a supervisor, where it wants that, that the server goes on.
async fn keep_awake(supervisor: Supervisor, shared: Arc<Shared>) {
    let Some(watchdog) = supervisor.watchdog else { return };
    let mut look = tokio::time::interval(watchdog / 2);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        let (supervisor, shared) = (supervisor.clone(), Arc::clone(&shared));
        // On a thread that may wait: where none is to be had, or it can't get at the engine, the
        // server hangs.
        let notified = tokio::task::spawn_blocking(move || {
            let _ = shared.frond.counters();
            supervisor.notify("WATCHDOG=1")
        });
        drop(notified.await);
    }
}

/// Begins more threads where no client gets on, also while the server stops.
async fn look_after_threads(shared: Arc<Shared>) {
    let mut look = tokio::time::interval(STALLED);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        shared.workers.look(shared.sessions.has_open());
    }
}

/// Stops commands whose clients have gone, also while the server stops.
async fn look_after_clients(shared: Arc<Shared>) {
    let mut look = tokio::time::interval(GONE_STEP);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        shared.lent_connections.abandon_gone(&shared.operations);
    }
}

/// Lets what runs go on, and answers all else that the server stops; returns whether it was in
/// time.
async fn drain(connections: &mut JoinSet<()>, shared: &Arc<Shared>, time_max: Duration) -> bool {
    let end = shared.drain.begin(time_max).into();
    shared.topology.send_modify(|counter| *counter += 1);
    let mut transactions = tokio::time::interval(STOP_SWEEP_INTERVAL);
    let mut step = tokio::time::interval(DRAIN_STEP);
    while !shared.operations.is_empty() {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            _ = transactions.tick() => abort_idle(shared).await,
            _ = step.tick() => {}
            () = tokio::time::sleep_until(end) => return false,
        }
    }
    true
}

/// Ends transactions whose clients can't go on with them.
async fn abort_idle(shared: &Arc<Shared>) {
    let shared = Arc::clone(shared);
    drop(tokio::task::spawn_blocking(move || sweep::abort_all_idle(&shared)).await);
}

/// Waits until the commands that run are answered; returns whether they are in time.
async fn finish(connections: &mut JoinSet<()>, shared: &Arc<Shared>) -> bool {
    let mut transactions = tokio::time::interval(STOP_SWEEP_INTERVAL);
    let end = tokio::time::Instant::now() + STOP_WAIT_MAX;
    loop {
        tokio::select! {
            biased;
            ended = connections.join_next() => if ended.is_none() { return true },
            _ = transactions.tick() => abort_idle(shared).await,
            () = tokio::time::sleep_until(end) => return false,
        }
    }
}
