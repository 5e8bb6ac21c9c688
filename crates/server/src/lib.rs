//! Frond's server: MongoDB's wire protocol over the embedded database.
//!
//! Reading order: [`wire`] (bytes to messages and back), [`listener`] and [`connection`] (sockets),
//! [`dispatch`] (a message to its answer), [`request`], [`fields`] and [`common`] (what a handler
//! works with), [`commands`] (one file a command, or a few relatives), [`cursors`] and
//! [`operations`] (what outlives a message, and what runs), [`sessions`] and [`transactions`], [`places`] (other
//! repositories). [`client`] is the other side;
//! [`in_process`] runs commands without a socket.
//!
//! Only this crate knows sockets and tokio. Everything below it blocks, so each client that is busy has a
//! thread; those that are idle have none. What they may hold together is in [`limits`] and [`budget`].

pub mod budget;
pub mod client;
pub mod commands;
pub mod common;
pub mod connection;
pub mod cursors;
pub mod dispatch;
pub mod fields;
pub mod in_process;
pub mod intake;
pub mod limits;
pub mod listener;
pub mod operations;
pub mod places;
pub mod reference;
pub mod request;
pub mod room;
pub mod sessions;
pub mod shared;
pub mod sweep;
pub mod transactions;
pub mod wire;

pub use client::{Client, ClientError};
pub use in_process::InProcess;
pub use listener::{Server, ServerError, ServerOptions, Stopper};
pub use places::Places;
pub use shared::MemberOptions;
