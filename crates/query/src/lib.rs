//! MongoDB's query language over documents: filters, updates, projections, sorts, expressions,
//! pipelines, and the choice of an index. Parsed once into typed trees, with MongoDB's codes.
//!
//! This crate knows no disk: documents come from iterators, collections through
//! [`pipeline::Collections`].

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod accumulator;
mod batched_calls;
mod by_name;
pub mod code;
pub mod collation;
pub mod cores;
pub mod error;
pub mod examined;
pub mod expression;
mod feature;
pub mod filter;
mod geometry;
pub mod index;
mod keys;
pub mod known_fields;
pub mod large;
pub mod memory;
pub mod metadata;
mod number;
pub mod outermost;
pub mod pipeline;
pub mod planner;
pub mod projection;
pub mod reference;
mod regex;
mod replacement;
mod sandbox;
mod script;
pub mod script_batches;
pub mod search;
pub mod sort;
mod sort_field;
pub mod text;
pub mod update;

pub use code::Code;
pub use collation::Collation;
pub use error::QueryError;
pub use expression::Expression;
pub use filter::{Filter, TextPosition};
pub use geometry::grid::{Grid, GridFault};
pub use geometry::near::{Distance, Near};
pub use projection::Projection;
pub use sort::SortPattern;
pub use update::Update;
