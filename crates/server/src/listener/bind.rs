//! Binding to where a server listens: loopback addresses, others if they are allowed, and a file.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use tokio::net::{TcpListener, TcpSocket};

use crate::console::ConsoleOptions;
use crate::limits::CONNECTIONS_WAITING_MAX;
use crate::listener::ServerError;
use crate::unix_socket::{UnixSocket, UnixSocketOptions};

/// Binds the first address that `listen` resolves to, if all of them are loopback addresses or
/// others are allowed. To be called within the runtime.
pub(crate) fn to_any(listen: &str, beyond_loopback: bool) -> Result<TcpListener, ServerError> {
    let failed = |source| ServerError::Listen { address: listen.to_owned(), source };
    let failed_to_resolve = |error: io::Error| match error.kind() {
        io::ErrorKind::InvalidInput => {
            let what = "it isn't HOST:PORT, such as 127.0.0.1:27017";
            failed(io::Error::new(error.kind(), what))
        }
        _ => failed(error),
    };
    let addresses = listen.to_socket_addrs().map_err(failed_to_resolve)?;
    let mut addresses: Vec<SocketAddr> = addresses.collect();
    let outside = addresses.iter().find(|address| !address.ip().is_loopback());
    if let Some(resolved) = outside.filter(|_| !beyond_loopback) {
        return Err(ServerError::NotLoopback { address: listen.to_owned(), resolved: *resolved });
    }
    // Clients that use `localhost` try 127.0.0.1 at least.
    addresses.sort_by_key(SocketAddr::is_ipv6);
    let mut refused = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match tcp(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => refused = error,
        }
    }
    Err(failed(refused))
}

/// Binds several addresses, as [`to_any`] does each; one that is bound already (`localhost` behind
/// `127.0.0.1`) is passed over. To be called within the runtime.
pub(super) fn to_each<'a>(
    addresses: impl Iterator<Item = &'a str>,
    beyond_loopback: bool,
) -> Result<Vec<TcpListener>, ServerError> {
    let mut bound: Vec<TcpListener> = Vec::new();
    for listen in addresses {
        let is_bound = |address| bound.iter().any(|known| known.local_addr().ok() == Some(address));
        let is_there = listen.to_socket_addrs().is_ok_and(|mut resolved| resolved.any(is_bound));
        if !is_there {
            bound.push(to_any(listen, beyond_loopback)?);
        }
    }
    Ok(bound)
}

/// Binds the console's address, one of loopback unless it `is_guarded`: users log in, by TLS. To be
/// called within the runtime.
pub(super) fn console(
    options: ConsoleOptions,
    is_guarded: bool,
) -> Result<(TcpListener, ConsoleOptions), ServerError> {
    match to_any(&options.listen, is_guarded) {
        Ok(listener) => Ok((listener, options)),
        Err(ServerError::NotLoopback { address, resolved }) => {
            Err(ServerError::OpenConsole { address, resolved })
        }
        Err(error) => Err(error),
    }
}

/// Binds the socket of the Unix domain. To be called within the runtime.
pub(super) fn unix(options: &UnixSocketOptions) -> Result<UnixSocket, ServerError> {
    UnixSocket::bind(options).map_err(|source| {
        let address = format!("unix:{}", options.path.display());
        ServerError::Listen { address, source }
    })
}

fn tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A server that is started again may have the address while old connections end. Elsewhere it
    // would let two servers have it at once.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(CONNECTIONS_WAITING_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_loopback_addresses_are_listened_on() {
        for address in ["127.0.0.1:0", "127.3.2.1:0", "localhost:0"] {
            assert!(to_any(address, false).is_ok(), "{address}");
        }
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "8.8.8.8:27017"] {
            let error = to_any(address, false).expect_err("refused");
            assert!(matches!(error, ServerError::NotLoopback { .. }), "{address}: {error}");
            assert!(error.to_string().contains("--auth"), "{error}");
        }
        assert!(to_any("0.0.0.0:0", true).is_ok());
        let several = to_each(["127.0.0.1:0", "127.3.2.1:0"].into_iter(), false).expect("free");
        let address = several[0].local_addr().expect("bound").to_string();
        drop(several);
        let again = ["127.3.2.1:0", &address, &address];
        assert_eq!(to_each(again.into_iter(), false).expect("free").len(), 2);
        let open = to_each(["127.0.0.1:0", "0.0.0.0:0"].into_iter(), false);
        assert!(matches!(open, Err(ServerError::NotLoopback { .. })));
        for address in ["", "127.0.0.1", "127.0.0.1:99999", "no such host:1"] {
            let error = to_any(address, false).expect_err("refused");
            assert!(matches!(error, ServerError::Listen { .. }), "{address}: {error}");
        }
    }
}
