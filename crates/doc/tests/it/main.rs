//! Properties of documents, for random documents of all types.

mod field_index;
mod generate;
mod keys;
mod pieces;
mod streams;
mod validation;
