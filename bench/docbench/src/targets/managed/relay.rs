//! A network that takes time: a process of this program between servers and all who connect to
//! them.
//!
//! It passes on what it gets after the delay, in order, however much is under way: latency is
//! added, and no bandwidth taken. As the delay is the same for all, what comes first is due first:
//! one thread waits for all, to some tens of microseconds.

use std::io;
use std::process::{Command, ExitCode};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::target::Failure;
use crate::targets::Settings;
use crate::targets::managed::{Server, free_port};

const READ_BYTES: usize = 64 << 10;

/// Answers a server that listens on `port` of loopback, and the port to reach it by: through a
/// relay if the network is to take time.
pub fn reached(
    server: Server,
    port: u16,
    settings: &Settings<'_>,
) -> Result<(Server, u16), Failure> {
    if settings.delay.is_zero() {
        return Ok((server, port));
    }
    let from = free_port()?;
    Ok((server.with(start(from, port, settings)?), from))
}

/// Starts a relay from one port of loopback to another.
pub fn start(from: u16, to: u16, settings: &Settings<'_>) -> Result<Server, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["relay", &from.to_string(), &to.to_string()]);
    command.arg(settings.delay.as_micros().to_string());
    Server::start(&format!("relay-{from}"), command, settings.directory)
}

/// Bytes that are under way, when they are due, and to whom they go.
type UnderWay = (Instant, Bytes, UnboundedSender<Bytes>);

/// Runs a relay until the process is stopped.
///
/// # Errors
/// `from` can't be listened on.
pub fn run(from: u16, to: u16, delay: Duration) -> Result<ExitCode, Failure> {
    let (sender, under_way) = mpsc::channel::<UnderWay>();
    std::thread::spawn(move || {
        for (due, bytes, receiver) in under_way {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            // Whose connection is gone gets nothing.
            let _ = receiver.send(bytes);
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", from)).await?;
        loop {
            // One that was reset while it waited is no connection.
            if let Ok((client, _)) = listener.accept().await {
                let sender = sender.clone();
                tokio::spawn(relay(client, to, move |bytes, receiver| {
                    sender.send((Instant::now() + delay, bytes, receiver)).is_ok()
                }));
            }
        }
    })
}

/// Passes on what client and server say to each other, by `send`, until one of them closes the
/// connection.
async fn relay(
    client: TcpStream,
    to: u16,
    send: impl Fn(Bytes, UnboundedSender<Bytes>) -> bool,
) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", to)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (client_sender, client_receiver) = unbounded_channel();
    let (server_sender, server_receiver) = unbounded_channel();
    tokio::join!(
        read(from_client, |bytes| send(bytes, server_sender.clone())),
        write(server_receiver, to_server),
        read(from_server, |bytes| send(bytes, client_sender.clone())),
        write(client_receiver, to_client),
    );
    Ok(())
}

/// Gives `send` what is read; at the end nothing.
async fn read(mut from: OwnedReadHalf, send: impl Fn(Bytes) -> bool) {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(READ_BYTES);
        let is_at_end = !matches!(from.read_buf(&mut buffer).await, Ok(1..));
        if !send(buffer.split().freeze()) || is_at_end {
            return;
        }
    }
}

/// Writes what comes; where nothing comes, no more will.
async fn write(mut from: UnboundedReceiver<Bytes>, mut to: OwnedWriteHalf) {
    while let Some(bytes) = from.recv().await
        && !bytes.is_empty()
    {
        if to.write_all(&bytes).await.is_err() {
            return;
        }
    }
    // Where that fails the connection is gone.
    let _ = to.shutdown().await;
}
