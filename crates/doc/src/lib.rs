//! BSON documents: views over bytes, order and equality, keys, paths, extended JSON.
//!
//! Reading order: [`mod@document`] (a view over validated bytes), [`document::value`] (one field's
//! value), [`builder`] (making documents), [`validate`] (bytes from outside), [`order`] (how
//! MongoDB compares), [`key`] (bytes that sort the same way). This crate knows no queries and no
//! log.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod builder;
pub mod column;
pub mod decimal;
pub mod document;
pub mod element_type;
pub mod error;
pub mod extended_json;
pub mod field_index;
pub mod field_scan;
pub mod key;
mod name_walk;
pub mod normalise;
pub mod order;
pub mod path;
pub mod pieces;
pub mod raw;
pub mod reference;
pub mod validate;

pub use builder::DocumentBuilder;
pub use document::value::{Binary, Decimal128, ObjectId, Regex, Timestamp, Value, ValueBuf};
pub use document::{Array, Document, DocumentBuf};
pub use element_type::ElementType;
pub use error::DocError;
pub use reference::Reference;
