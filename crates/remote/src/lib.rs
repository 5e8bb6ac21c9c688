//! Remotes over a network: a running server over HTTP, and a bucket of an object store.
//!
//! Reading order: [`RemoteUrl`] (the forms of a remote's address), [`open`] (opening it),
//! [`PlaceTokens`] (a server's tokens for other places), `runtime` (how blocking callers reach
//! asynchronous code), [`http`] (a server's side and a client's), `object_client` (clients of
//! buckets), [`bucket_storage`] (the files of a plain remote as objects), [`object_bucket`] and
//! [`tiered`] (a bucket that a data directory's packs lie in), [`cas_probe`] and [`store_probe`]
//! (is a bucket's conditional put one, and how fast is it?).
//!
//! All that is asynchronous lies here, behind `frond_db`'s blocking traits: [`Remote`] and
//! [`PlainStorage`].
//!
//! [`Remote`]: frond_vcs::remote::Remote
//! [`PlainStorage`]: frond_vcs::remote::PlainStorage

mod azure_account;
mod object_client;
mod open;
mod place_tokens;
mod remote_url;
mod runtime;

pub mod bucket_storage;
pub mod cas_probe;
pub mod http;
pub mod object_bucket;
pub mod store_probe;
pub mod tiered;

pub use http::client::{HttpImage, HttpOptions, HttpRemote};
pub use http::server::{RemoteServer, ServeError, ServeOptions};
pub use http::tokens::Tokens;
pub use open::{open, open_plain};
pub use place_tokens::PlaceTokens;
pub use remote_url::{BucketUrl, Protocol, RemoteUrl};
