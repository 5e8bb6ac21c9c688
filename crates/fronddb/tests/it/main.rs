//! The examples, and what they don't show.

mod examples;
mod network;
mod typed;
