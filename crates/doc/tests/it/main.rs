//! Properties of documents, for random documents of all types.

#![allow(clippy::disallowed_methods)]

mod field_index;
mod generate;
mod keys;
mod pieces;
mod shallow;
mod streams;
mod validation;
