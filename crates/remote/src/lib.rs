//! Remotes over a network: a running server over HTTP, and a bucket of an object store.
//!
//! Reading order: [`PlaceUrl`] (what a remote's place may look like), [`open`] (what is there), [`PlaceTokens`] (what a
//! server says to whom), `runtime` (how
//! blocking callers reach asynchronous code), [`http`] (a server's side and a client's), [`bucket`]
//! (the files of a plain remote as objects), [`race`] (is a bucket's conditional put one?).
//!
//! All that is asynchronous lies here, behind `frond_db`'s blocking traits: [`Remote`] and [`PlainPlace`].
//!
//! [`Remote`]: frond_db::version::remote::Remote
//! [`PlainPlace`]: frond_db::version::remote::PlainPlace

mod open;
mod place_tokens;
mod place_url;
mod runtime;

pub mod bucket;
pub mod http;
pub mod race;

pub use http::client::{HttpImage, HttpOptions, HttpRemote};
pub use http::server::{RemoteServer, ServeError, ServeOptions};
pub use http::tokens::Tokens;
pub use open::{open, open_plain};
pub use place_tokens::PlaceTokens;
pub use place_url::PlaceUrl;
