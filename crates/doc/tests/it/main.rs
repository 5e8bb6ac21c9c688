//! Properties of documents, for random documents of all types.

mod generate;
mod keys;
mod pieces;
mod shapes;
