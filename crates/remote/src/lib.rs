//! Remotes over a network: a running server over HTTP, and a bucket of an object store.
//!
//! Reading order: [`RemoteUrl`] (what a remote's place may look like), [`open`] (what is there),
//! [`PlaceTokens`] (what a server says to whom), `runtime` (how blocking callers reach asynchronous
//! code), [`http`] (a server's side and a client's), [`bucket`] (the files of a plain remote as
//! objects), [`depot`] and [`home`] (a bucket that a data directory's packs lie in), [`cas_probe`]
//! and [`store_probe`] (is a bucket's conditional put one, and how fast is it?).
//!
//! All that is asynchronous lies here, behind `frond_db`'s blocking traits: [`Remote`] and
//! [`PlainStorage`].
//!
//! [`Remote`]: frond_vcs::remote::Remote
//! [`PlainStorage`]: frond_vcs::remote::PlainStorage

mod open;
mod place_tokens;
mod remote_url;
mod runtime;

pub mod bucket;
pub mod cas_probe;
pub mod depot;
pub mod home;
pub mod http;
pub mod store_probe;

pub use http::client::{HttpImage, HttpOptions, HttpRemote};
pub use http::server::{RemoteServer, ServeError, ServeOptions};
pub use http::tokens::Tokens;
pub use open::{open, open_plain};
pub use place_tokens::PlaceTokens;
pub use remote_url::RemoteUrl;
