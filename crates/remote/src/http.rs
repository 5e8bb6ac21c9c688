//! A running server as a remote, over HTTP/1.1.
//!
//! Reading order: [`protocol`] (the messages), [`tokens`] (the rights), `guard` (that it isn't a
//! web page), `lease` (what keeps a clone's chunks), [`server`] (the connections), `service` (the
//! requests), [`client`].
//!
//! *Leases*: the first request of a transfer is answered with a lease, which all others name. As
//! long as it lasts, no collection takes away what was there when it began, or what was put or
//! found since. It ends when its client has not used it for [`protocol::LEASE_SECONDS`]; then the
//! client gets an error, and takes another.
//!
//! *Bounds*: requests are limited in length before they are read, in how slowly they come and how
//! much they hold (`intake`), and in number: those that carry chunks wait, once they are there, for
//! one of a few permits. An answer holds as many of the wanted chunks as fit, one at least, and the
//! client asks again for the rest.

pub mod client;
mod guard;
mod intake;
mod lease;
pub mod protocol;
pub mod server;
mod service;
mod tls;
pub mod tokens;
