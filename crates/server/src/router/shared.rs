//! The state that clients' connections share: the routing table as it was last read.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use frond_doc::{Document, DocumentBuf, Value};
use rustls::ClientConfig;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::line::Line;
use super::login::Identity;
use super::moves::Moves;
use super::pins::Pins;
use super::pool::Pool;
use super::routed_request;
use super::table::Table;
use super::upstream::Upstream;
use crate::log::{self, Log, Severity};
use crate::replica::key::ClusterKey;

const READ_INTERVAL: Duration = Duration::from_secs(1);
/// The interval while there is no table, or a database moves.
const READ_INTERVAL_SOON: Duration = Duration::from_millis(100);

/// The state that clients' connections share.
pub(super) struct Shared {
    pub address: SocketAddr,
    pub started: std::time::Instant,
    pub default: Arc<Line>,
    pub line_tls: Arc<ClientConfig>,
    pub key: Option<ClusterKey>,
    pub user: Identity,
    pub table: watch::Sender<Option<Arc<Table>>>,
    /// Has the table read at once.
    pub refresh: Notify,
    pub pool: Pool,
    pub moves: Moves,
    pub pins: Pins,
    pub counts: Counts,
    pub log: Log,
}

/// The router's counters in `serverStatus`.
#[derive(Default)]
pub(super) struct Counts {
    pub connections: AtomicU64,
    pub connections_ever: AtomicU64,
    pub messages: AtomicU64,
    pub refused: AtomicU64,
}

impl Shared {
    /// The table, once it was read; `None` if it wasn't until `end`.
    pub async fn table(&self, end: Instant) -> Option<Arc<Table>> {
        let mut watched = self.table.subscribe();
        let read = timeout_at(end, watched.wait_for(Option::is_some)).await;
        read.ok()?.ok()?.clone()
    }

    /// The table as it is read after `known`, which is doubted; `None` if it isn't until `end`.
    pub async fn later_table(&self, known: &Arc<Table>, end: Instant) -> Option<Arc<Table>> {
        let mut watched = self.table.subscribe();
        self.refresh.notify_one();
        let is_later = |table: &Option<Arc<Table>>| {
            table.as_ref().is_some_and(|table| !Arc::ptr_eq(table, known))
        };
        let read = timeout_at(end, watched.wait_for(is_later)).await;
        read.ok()?.ok()?.clone()
    }

    /// The table as it was last read.
    pub fn table_now(&self) -> Option<Arc<Table>> {
        self.table.borrow().clone()
    }

    /// A new connection to the leader of the default line, and its address.
    pub async fn connect_default(&self) -> io::Result<(Upstream, String)> {
        let leader = self.default.leader(Instant::now() + routed_request::LEADER_WAIT_MAX).await;
        let leader = leader.ok_or_else(|| io::Error::other("nobody leads the default line"))?;
        Ok((Upstream::connect(&leader, self.default.tls.as_ref()).await?, leader))
    }

    /// Asks the default line something that needs no login.
    pub async fn ask_default(&self, command: Document<'_>) -> io::Result<DocumentBuf> {
        self.connect_default().await?.0.command("admin", command).await
    }

    pub async fn read_table(&self) -> io::Result<Table> {
        let end = Instant::now() + READ_INTERVAL;
        let leader = self.default.leader(end).await.ok_or(io::ErrorKind::NotConnected)?;
        let user = self.key.as_ref().map(|_| &self.user);
        let mut upstream = self.pool.take(&self.default, &leader, user, self.key.as_ref()).await?;
        let before = self.table_now();
        let read = Table::read(&mut upstream, &self.default, before.as_deref(), &self.line_tls);
        let table =
            timeout(routed_request::LEADER_WAIT_MAX, read).await.map_err(io::Error::from)??;
        self.pool.put(&leader, user, upstream);
        Ok(table)
    }

    /// Reads the table again and again, and has each of its lines watched.
    pub async fn keep_table(self: Arc<Shared>) {
        let mut watched: Vec<(Arc<Line>, JoinHandle<()>)> = Vec::new();
        let mut last_fault = String::new();
        loop {
            match self.read_table().await {
                Ok(table) => {
                    let table = Arc::new(table);
                    watched.retain(|(line, task)| {
                        let is_there = table.lines().any(|known| Arc::ptr_eq(known, line));
                        if !is_there {
                            task.abort();
                        }
                        is_there
                    });
                    for line in table.lines().skip(1) {
                        if !watched.iter().any(|(known, _)| Arc::ptr_eq(known, line)) {
                            let task = tokio::spawn(Arc::clone(line).watch());
                            watched.push((Arc::clone(line), task));
                        }
                    }
                    self.table.send_replace(Some(table));
                    last_fault.clear();
                }
                Err(error) => {
                    let fault = error.to_string();
                    if fault != last_fault {
                        let event =
                            log::router(Severity::Warning, "The table of lines can't be read");
                        self.log.write(&event, |attributes| {
                            attributes.append("error", Value::String(&fault));
                        });
                        last_fault = fault;
                    }
                }
            }
            self.pool.sweep();
            self.pins.sweep();
            let is_calm = self.table.borrow().as_ref().is_some_and(|table| !table.any_moves());
            let rest = if is_calm { READ_INTERVAL } else { READ_INTERVAL_SOON };
            tokio::select! {
                () = sleep(rest) => {}
                // Not faster than that: requests by the hundred may doubt it.
                () = self.refresh.notified() => sleep(READ_INTERVAL_SOON / 10).await,
            }
        }
    }
}
